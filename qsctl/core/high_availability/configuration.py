"""A member's part in the replication of the configuration [QS 7.2]: commands become entries, entries become changes.

Decides: when a command is answered, and when the service makes the next change. Every member answers what it was sent:
once it has made the change itself, durably, or once it is sure that nothing came of the command here. A change that
this member cannot make (its disk refuses, a file is taken) is tried again; until then no later one is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

import msgspec
from msgspec import structs

from qsctl.core.admin.command import CreateQueue, CreateSubscriber, DeleteQueue, DeleteSubscriber, FirstMembers
from qsctl.core.admin.reply import Reply, ReturnCode
from qsctl.core.admin.target import matches
from qsctl.core.engine import ServiceEngine
from qsctl.core.high_availability._configuration_follower import ConfigurationFollower
from qsctl.core.high_availability._configuration_steps import lacking_participants, next_change
from qsctl.core.high_availability.cluster_configuration import (
    CHANGES,
    CONFIGURATION_STREAM,
    Change,
    encoded,
    names_of,
    subscribers_of,
)
from qsctl.core.high_availability.replica import Replica
from qsctl.core.messages import AckResponse, CommandReply, CommandRequest, Outbound, SampleFlag, Write
from qsctl.core.messages import WriteAcknowledgment as Answer
from qsctl.core.queue.settings import ReplicationSettings
from qsctl.core.records import ConfigurationFollowed
from qsctl.core.settings import ServiceSettings
from qsctl.identity import NIL_GUID, SampleIdentity
from qsctl.instant import INFINITE_NS, SECOND_NS, Nanoseconds, later

TRIED_AGAIN_AFTER_NS: Final[Nanoseconds] = SECOND_NS
"""Time before a member repeats a change that failed."""

_TRY_AGAIN: Final = "Send the command again once more than half of the members are reachable."


class FollowingReport(msgspec.Struct, frozen=True):
    """The changes that a member made to adopt its cluster's configuration, or could not make, for people."""

    text: str
    is_adoption: bool = False
    """It had another configuration than the cluster, by its file or from an earlier cluster, and takes over this."""
    is_refusal: bool = False


class Configuration:
    """The replicated configuration at one member.

    Args:
        engine: the member's.
        settings: `<configuration_replication><replication_settings>`.
        follower: of the log of commands.
        replica: of the same log.
    """

    def __init__(
        self, engine: ServiceEngine, settings: ReplicationSettings, follower: ConfigurationFollower, replica: Replica
    ) -> None:
        self._engine = engine
        self._undecided_after_ns = settings.sample_timeout_ns + settings.master_timeout_ns
        self._follower = follower
        self.replica = replica
        follower.replica = replica
        self.admit: Callable[[CommandRequest], CommandReply | None] = lambda _: None
        """Refuses a change that this member's disk, files or endpoints do not take; the driver's."""
        self.reports: list[FollowingReport] = []
        """Changes made since the driver read them last."""
        self._pending: dict[SampleIdentity, Nanoseconds] = {}
        """Commands that were sent here and have no answer, and since when."""
        self._replies: list[CommandReply] = []
        self._change: Change | None = None
        """The change that the engine is making."""
        self._change_count = 0
        self._tried_at_ns: Nanoseconds | None = None
        self._refusal = ""

    # Commands.

    def takes(self, request: CommandRequest) -> bool:
        """Return whether a command changes the configuration of this member."""
        return isinstance(request.command, CHANGES) and matches(request.target, self._engine.hosted.application_name)

    def receive(self, now: Nanoseconds, request: CommandRequest) -> None:
        """Put a command to the log; whatever becomes of it is answered later."""
        assert isinstance(request.command, CHANGES), request
        if isinstance(request.command, DeleteQueue | DeleteSubscriber) and request.command.only_if_empty:
            self._pending[request.request] = now
            text = (
                "whether a queue is empty at all members of the cluster is known to none of them; nothing was deleted"
            )
            self._answer(
                request.request, Reply(ReturnCode.ERROR, f"{text}. Look at each, and delete it whatever it holds")
            )
            return
        self._pending.setdefault(request.request, now)
        command = self._follower.configuration.naming(request.command)
        write = Write(
            "", CONFIGURATION_STREAM, request.request, encoded(command), flags=SampleFlag.REPLICATE, attempt=1
        )
        self.replica.receive_write(now, self._follower, write)

    def note_answer(self, now: Nanoseconds, message: Outbound) -> None:
        """Process the answer that the replica would send to the producer of a command."""
        if isinstance(message, Answer) and message.response == AckResponse.REJECTED:
            text = "the configuration has no master now, and this member does not carry out the command"
            self._answer(message.identity, Reply(ReturnCode.ERROR, f"{text}. {self._remedy(now, _TRY_AGAIN)}"))

    def _remedy(self, now: Nanoseconds, otherwise: str) -> str:
        """Return what lets the configuration have a master again, for people."""
        lack = self.replica.lack(now).replace("force-quorum`", "force-quorum --configuration`")
        return f"Of the members of the cluster: {lack}." if lack else otherwise

    def pop_replies(self) -> list[CommandReply]:
        """Return the answers that are due."""
        replies, self._replies = self._replies, []
        return replies

    # Changes.

    def target_of(self, own: ServiceSettings) -> ServiceSettings:
        """Return a member's configuration with what the cluster has in the place of its own queues."""
        target = self._follower.configuration.subscribers()
        return replace(
            own, participants=tuple(replace(each, subscribers=target.get(each.name, ())) for each in own.participants)
        )

    def created_by(self, names: Iterable[str]) -> tuple[str, int]:
        """Return the origin of the log, and the latest of its entries that created one of these; 0: none did."""
        configuration = self._follower.configuration
        return configuration.origin, max((configuration.created.get(name, 0) for name in names), default=0)

    def members_of(self, names: Iterable[str]) -> FirstMembers | None:
        """Return the members that a group begins with, by the command that created it; None: it named none."""
        configuration = self._follower.configuration
        created = {configuration.created.get(name, 0): name for name in names}
        return configuration.members.get(created[max(created)])

    def next_deadline(self) -> Nanoseconds:
        """Return when there is something to do though nothing comes; an instant that has passed: now."""
        deadline = min(self._pending.values(), default=INFINITE_NS)
        if deadline < INFINITE_NS:
            deadline = later(deadline, self._undecided_after_ns)
        if self._replies:
            return 0
        if self._change is None and self._is_behind:
            due = 0 if self._tried_at_ns is None else self._tried_at_ns + TRIED_AGAIN_AFTER_NS
            deadline = min(deadline, due)
        return deadline

    def go_on(self, now: Nanoseconds) -> None:
        """Make the next change, if there is one to make, and answer what is decided."""
        if self._change is None and self._is_behind and not self._waits(now):
            self._go_on(now)
        self._answer_decided()
        for identity, since_ns in list(self._pending.items()):
            if later(since_ns, self._undecided_after_ns) <= now:
                text = "it is not decided what becomes of the command: too few members of the cluster answered in time"
                if identity in self._follower.configuration.outcomes:
                    text = f"the cluster carries out the command, and this member cannot yet: {self._refusal}"
                remedy = self._remedy(now, "Look again before you repeat it.")
                self._answer(identity, Reply(ReturnCode.ERROR, f"{text}. {remedy}"))

    def note_reply(self, reply: CommandReply) -> bool:
        """Process the engine's reply to a change that was requested here; False: it is a reply to another requester."""
        if reply.request != self._own_request:
            return False
        change, self._change = self._change, None
        if reply.reply.retcode is ReturnCode.OK:
            self._refusal, self._tried_at_ns = "", None
            self.reports.append(FollowingReport(reply.reply.text))
        else:
            self._refuse(f"{type(change).__name__}: {reply.reply.text}")
        return True

    @property
    def _own_request(self) -> SampleIdentity:
        return SampleIdentity(NIL_GUID, self._change_count)

    @property
    def _is_behind(self) -> bool:
        """Return whether the cluster is ahead of what this member has made of it.

        After a restart the log is known to be committed later than the member knew before: it waits for that.
        """
        wanted, followed = self._follower.configuration, self._engine.hosted.followed
        if not wanted.origin:
            return False
        return followed is None or followed.origin != wanted.origin or followed.index < wanted.index

    def _waits(self, now: Nanoseconds) -> bool:
        return self._tried_at_ns is not None and now < self._tried_at_ns + TRIED_AGAIN_AFTER_NS

    def _go_on(self, now: Nanoseconds) -> None:
        wanted, hosted = self._follower.configuration, self._engine.hosted
        own, target = subscribers_of(hosted.settings()), wanted.subscribers()
        self._tried_at_ns = now
        if lacking := lacking_participants(own, target):
            self._refuse(f"the cluster has queues in the domain participant {lacking[0]}, and this member has none")
            return
        followed = hosted.followed
        if followed is None or followed.origin != wanted.origin:
            followed = ConfigurationFollowed(wanted.origin, 0, dict(wanted.created))
            hosted.follow_cluster(followed)
            if next_change(own, {}, target, {}) is not None:
                self.reports.append(FollowingReport(f"the cluster began with {wanted.origin}", is_adoption=True))
        change = next_change(own, followed.created, target, wanted.created)
        if change is None:
            self._tried_at_ns, self._refusal = None, ""
            hosted.follow_cluster(ConfigurationFollowed(wanted.origin, wanted.index, dict(wanted.created)))
            return
        self._change_count += 1
        request = CommandRequest(self._own_request, "*", change)
        if (refusal := self.admit(request)) is not None:
            self._refuse(refusal.reply.text)
            return
        made = _made(change, wanted.created)
        if any(followed.created.get(name, 0) != index for name, index in made.items()):
            # Before what it creates: else a crash in between would take it for an older one, and delete it.
            hosted.follow_cluster(structs.replace(followed, created=followed.created | made))
        self._change = change
        self._engine.answers.receive(now, request)

    def _refuse(self, text: str) -> None:
        if text != self._refusal:
            self.reports.append(FollowingReport(text, is_refusal=True))
        self._refusal = text

    # Answers.

    def _answer_decided(self) -> None:
        followed, configuration = self._engine.hosted.followed, self._follower.configuration
        is_done = followed is not None and not self._is_behind
        for identity in list(self._pending):
            outcome = configuration.outcomes.get(identity)
            if outcome is not None and (is_done or outcome.retcode is not ReturnCode.OK):
                self._answer(identity, outcome)

    def _answer(self, identity: SampleIdentity, reply: Reply) -> None:
        if self._pending.pop(identity, None) is None:
            return
        stream = self._engine.hosted.outbox.service_stream
        name = self._engine.hosted.application_name
        self._replies.append(CommandReply(identity, name, reply, queue=stream.name, rests_on=stream.last_index))


def configuration_of(
    engine: ServiceEngine,
    settings: ReplicationSettings,
    member_count: int,
    make_replica: Callable[[ConfigurationFollower], Replica],
) -> Configuration:
    """Return the replicated configuration at a member, with the replica that is made for it."""
    hosted = engine.hosted
    follower = ConfigurationFollower(CONFIGURATION_STREAM, member_count, lambda: subscribers_of(hosted.settings()))
    return Configuration(engine, settings, follower, make_replica(follower))


def _made(change: Change, created: dict[str, int]) -> dict[str, int]:
    """Return the entries that created what a change creates, by full name."""
    match change:
        case CreateQueue(subscriber, settings):
            names = ["/".join((*(name for _, name in subscriber.names), settings.name))]
        case CreateSubscriber(participant, settings):
            names = list(names_of({participant.name: (settings,)}))
        case _:
            return {}
    return {name: created.get(name, 0) for name in names}
