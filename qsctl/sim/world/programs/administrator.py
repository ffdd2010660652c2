"""The administrator of a world, which deletes a queue and creates it again by commands [QS 5.4].

Decides the times of commands. A command is sent to every service, and repeated to those that have not answered. The
operation continues once a quorum has answered and the others had time to: a service that was away meanwhile never
receives the command, except that one which deleted the queue and did not create it, by its answer or by what it hosts,
receives the creation later. A command that a service cannot carry out is sent under a new identity; the first may still
be carried out whenever its log entry is found.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Final

from qsctl.core.admin.command import Command, CreateQueue, CreateSubscriber, DeleteQueue, DeleteSubscriber
from qsctl.core.admin.reply import Reply, ReturnCode
from qsctl.core.queue.hosting import participant_identifier, queue_identifier, subscriber_identifier
from qsctl.core.settings import ServiceSettings, queues_of
from qsctl.identity import SampleIdentity
from qsctl.instant import MILLISECOND_NS, Nanoseconds
from qsctl.sim.world.environment.agenda import WorldAgenda

ASKS_AGAIN_NS: Final[Nanoseconds] = 300 * MILLISECOND_NS
"""Interval at which a command is repeated to services that have not answered."""

WAITS_NS: Final[Nanoseconds] = 700 * MILLISECOND_NS
"""Time that the administrator waits for the answers of all services; after that a quorum suffices."""

_CREATED: Final = frozenset({ReturnCode.OK, ReturnCode.DUPLICATED, ReturnCode.ALREADY_EXISTS})


@dataclass(slots=True, eq=False)
class QueueReplacement:
    """The deletion and new creation of a queue, or of the queues of a shared subscriber."""

    queues: tuple[str, ...]
    """Full names of the queues."""
    deletion: Command
    creation: Command
    grace_ns: Nanoseconds
    """Time after the creation in which a master of the deleted queue may still deliver: the quorum answered before it.
    """
    asked_ns: Nanoseconds
    """Instant at which the deletion was requested."""
    request: SampleIdentity
    """Identity of the present command."""
    began_ns: Nanoseconds
    """Instant at which the present command was first sent."""
    is_creating: bool = False
    deletion_request: SampleIdentity | None = None
    """Identity of the deletion command, once the creation is the present command."""
    deleted_at: set[int] = field(default_factory=set)
    created_at: set[int] = field(default_factory=set)
    settled_ns: Nanoseconds | None = None
    """Instant at which a quorum had created the queue; None until then."""
    is_over: bool = False
    is_refused: bool = False
    """Whether a service could not carry out the present command, which is then sent under a new identity."""

    def is_replaced(self, now: Nanoseconds) -> bool:
        """Return whether the deleted queue can no longer send anything from any service."""
        return self.settled_ns is not None and now > self.settled_ns + self.grace_ns

    @property
    def lacking(self) -> set[int]:
        """Return the services that are known to have deleted the queue and not to have created it."""
        return self.deleted_at - self.created_at if self.is_creating else set()

    @property
    def answered(self) -> set[int]:
        """Return the services that have carried out the present command."""
        return self.created_at if self.is_creating else self.deleted_at


class WorldAdministrator:
    """The administrator's replacements of queues, and their progress.

    Args:
        settings: the service's configuration: a queue is created again with its former settings.
        service_count: number of services.
        agenda: the clock.
        orders: whether the services replicate their configuration, and so agree on the order of commands: a command is
            then carried out once, however often it is sent.
        members: returns the services that carry out a deletion: a removed member of the configuration does not.
        new_request: returns the identity of a new command.
        send: sends a command to a service.
    """

    def __init__(
        self,
        settings: ServiceSettings,
        service_count: int,
        agenda: WorldAgenda,
        *,
        orders: bool,
        members: Callable[[], Collection[int]],
        new_request: Callable[[], SampleIdentity],
        send: Callable[[int, SampleIdentity, Command], None],
    ) -> None:
        self._settings = settings
        self._services = range(1, service_count + 1)
        self._quorum = service_count // 2 + 1
        self._agenda = agenda
        self._orders = orders
        self._members = members
        self._new_request = new_request
        self._send = send
        self.replacements: list[QueueReplacement] = []
        """All replacements so far, in the order of their requests."""
        self.on_ask: list[Callable[[QueueReplacement], None]] = []
        """Called when a deletion is requested."""

    @property
    def now(self) -> Nanoseconds:
        """Return the present instant."""
        return self._agenda.now

    # Operations.

    def replace(self, name: str) -> None:
        """Delete a queue and create it again, unless that is in progress already."""
        queues, deletion, creation, grace_ns = self._commands(name)
        if any(not each.is_over and set(each.queues) & set(queues) for each in self.replacements):
            return
        now = self._agenda.now
        replacement = QueueReplacement(queues, deletion, creation, grace_ns, now, self._new_request(), now)
        self.replacements.append(replacement)
        for note in self.on_ask:
            note(replacement)
        self._ask(replacement)

    def receive(self, service: int, request: SampleIdentity, reply: Reply) -> None:
        """Process a service's answer; one to an earlier command changes nothing but a late deletion."""
        self._note_late_deletion(service, request, reply)
        replacement = next((each for each in self.replacements if each.request == request), None)
        if replacement is None:
            return
        if replacement.is_creating:
            if reply.retcode not in _CREATED or not (self._orders or service in replacement.deleted_at):
                replacement.is_refused = self._orders
                return  # the queue that exists there was never deleted
        elif reply.retcode is not ReturnCode.OK and not reply.not_found:
            replacement.is_refused = self._orders
            return
        if replacement.is_over:
            replacement.answered.add(service)
            return
        replacement.answered.add(service)
        if replacement.is_creating and replacement.settled_ns is None and len(replacement.answered) >= self._quorum:
            replacement.settled_ns = self._agenda.now
        self._go_on(replacement)

    def _note_late_deletion(self, service: int, request: SampleIdentity, reply: Reply) -> None:
        """Note a service that carried out the deletion late, and send it the creation."""
        for each in self.replacements:
            if each.is_creating and each.deletion_request == request and reply.retcode is ReturnCode.OK:
                each.deleted_at.add(service)
                if each.is_over and service in each.lacking:
                    self._ask(each)

    def note_hosted(self, service: int, queues: Collection[str]) -> None:
        """Process what a service hosts: one that lacks a replaced queue deleted it, though its answer was lost."""
        for each in self.replacements:
            lacks = not self._orders and not set(each.queues) & set(queues)
            if lacks and each.is_over and service not in each.deleted_at and not self._is_replaced_again(each):
                each.deleted_at.add(service)
                self._ask(each)

    # The known state of replacements.

    def may_be_deleted(self, queue: str, accepted_ns: Nanoseconds) -> bool:
        """Return whether a sample accepted at an instant may have been deleted with its queue."""
        return any(
            each.asked_ns >= accepted_ns or not each.is_replaced(accepted_ns)
            for each in self.replacements
            if queue in each.queues
        )

    def is_of_deleted(self, queue: str, written_ns: Nanoseconds, *, asked_after_ns: Nanoseconds = 0) -> bool:
        """Return whether a sample whose last copy reached a service at this instant belongs to a deleted queue.

        Deletions that were requested before `asked_after_ns` are ignored.
        """
        now = self._agenda.now
        return any(
            max(written_ns, asked_after_ns) < each.asked_ns and each.is_replaced(now)
            for each in self.replacements
            if queue in each.queues
        )

    def part_at(self, queue: str, instant: Nanoseconds) -> tuple[int, int]:
        """Return the number of deletions of a queue requested up to an instant, and how many of them were complete."""
        own = [each for each in self.replacements if queue in each.queues and each.asked_ns <= instant]
        return len(own), sum(each.is_replaced(instant) for each in own)

    def is_done(self, name: str) -> bool:
        """Return whether a queue of this name was replaced at least once, and no replacement is in progress."""
        own = [each for each in self.replacements if any(full.endswith(f"/{name}") for full in each.queues)]
        return bool(own) and all(each.is_over for each in own)

    # Sending of commands.

    def _ask(self, replacement: QueueReplacement) -> None:
        """Send the present command to the services that have not answered it, and schedule the next check."""
        command = replacement.creation if replacement.is_creating else replacement.deletion
        waits_for = replacement.lacking if replacement.is_over else set(self._services) - replacement.answered
        for service in self._services:
            if service in waits_for:
                self._send(service, replacement.request, command)
        request = replacement.request
        self._agenda.after(ASKS_AGAIN_NS, lambda: self._look(replacement, request))

    def _look(self, replacement: QueueReplacement, request: SampleIdentity) -> None:
        if replacement.request != request or (self._go_on(replacement) and not replacement.lacking):
            return
        if replacement.is_over and (not replacement.lacking or self._is_replaced_again(replacement)):
            return
        if replacement.is_refused:
            replacement.request, replacement.is_refused = self._new_request(), False
        self._ask(replacement)

    def _is_replaced_again(self, replacement: QueueReplacement) -> bool:
        return any(
            set(each.queues) & set(replacement.queues)
            for each in self.replacements[self.replacements.index(replacement) + 1 :]
        )

    def is_current(self, service: int, request: SampleIdentity) -> bool:
        """Return whether a service's answer to a command is still awaited; the command is dropped otherwise."""
        return any(
            each.request == request
            and (not each.is_over or (service in each.lacking and not self._is_replaced_again(each)))
            for each in self.replacements
        )

    def _go_on(self, replacement: QueueReplacement) -> bool:
        """Proceed to the creation, or to the end, if enough services have answered; return whether they have."""
        answered, now = len(replacement.answered), self._agenda.now
        if answered < len(self._services) and now - replacement.began_ns < WAITS_NS:
            return False
        if not (answered >= self._quorum or (self._orders and self._is_deleted_by_members(replacement))):
            return False
        if replacement.is_creating:
            replacement.is_over = replacement.settled_ns is not None
            return replacement.is_over
        replacement.is_creating, replacement.deletion_request = True, replacement.request
        replacement.request, replacement.began_ns = self._new_request(), now
        self._ask(replacement)
        return True

    def _is_deleted_by_members(self, replacement: QueueReplacement) -> bool:
        """Return whether the deletion was carried out by a quorum of those left that are to do so."""
        members = set(self._members())
        return not replacement.is_creating and len(members & replacement.deleted_at) > len(members) // 2

    def _commands(self, name: str) -> tuple[tuple[str, ...], Command, Command, Nanoseconds]:
        """Return the affected queues, both commands, and the grace time after which old deliveries must have ended.

        A replicated queue of a dead-letter group is replaced together with its whole shared subscriber.
        """
        participant, subscriber, queue = next(each for each in queues_of(self._settings) if each[2].name == name)
        group = [each for each in subscriber.queues if each.dead_letter_queue or each.is_dead_letter]
        grace_ns = max((each.replication.master_timeout_ns for each in subscriber.queues), default=0)
        where = f"{participant.name}/{subscriber.name}"
        of_subscriber = subscriber_identifier(participant.name, subscriber.name)
        if queue in group and queue.replication.enabled:
            return (
                tuple(f"{where}/{each.name}" for each in subscriber.queues),
                DeleteSubscriber(of_subscriber),
                CreateSubscriber(participant_identifier(participant.name), subscriber),
                grace_ns,
            )
        return (
            (f"{where}/{name}",),
            DeleteQueue(queue_identifier(participant.name, subscriber.name, queue)),
            CreateQueue(of_subscriber, queue),
            grace_ns,
        )
