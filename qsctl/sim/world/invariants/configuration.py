"""P14: the members of a cluster host the same queues, judged by their stored records, and answer commands alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from qsctl.core.admin.reply import ReturnCode
from qsctl.core.messages import CommandReply, Outbound
from qsctl.core.queue.settings import SharedReaderQueueSettings
from qsctl.core.ready import SERVICE_STREAM
from qsctl.core.records import (
    ConfigurationFollowed,
    QueueCreated,
    QueueDeleted,
    Record,
    ServiceStarted,
    SubscriberCreated,
    SubscriberDeleted,
)
from qsctl.core.settings import queues_by_name
from qsctl.identity import SampleIdentity
from qsctl.instant import Nanoseconds
from qsctl.sim.world.invariants.base import Invariant
from qsctl.sim.world.services.stored import Append, Compact, Operation

if TYPE_CHECKING:
    from qsctl.sim.world._world import World

_OF_ONE_MEMBER: Final = (
    " no master now",
    "it is not decided",
    "cannot yet",
    "carried out before",
    "Free space on the disk or mend it.",
)
"""Text in answers that describe the state of one member alone."""

_Queues: TypeAlias = dict[str, SharedReaderQueueSettings]


class SameConfiguration(Invariant):
    """P14: the members of a cluster host the same queues and answer commands alike.

    It folds each member's service stream, independently of the replicated log of commands.
    """

    name = "P14"
    rule = "after the same command all members have the same configuration, and answer alike"

    def __init__(self, clock: Callable[[], Nanoseconds], world: World) -> None:
        super().__init__(clock)
        self._world = world
        self._hosted: dict[int, _Queues] = {}
        self._followed: dict[int, ConfigurationFollowed] = {}
        self._made_by: dict[int, dict[str, int]] = {}
        """The index of the log entry that created each queue of a service, by service and queue."""
        self._seen: dict[tuple[str, int], tuple[int, _Queues, dict[str, int]]] = {}
        self._answers: dict[SampleIdentity, tuple[int, ReturnCode, str]] = {}

    def stored(self, service: int, operations: Sequence[Operation]) -> None:
        """Fold the records of the service streams that have become durable."""
        for operation in operations:
            if isinstance(operation, Append) and operation.stream == SERVICE_STREAM:
                for record in operation.records:
                    self._fold(service, record)
            elif isinstance(operation, Compact) and operation.stream == SERVICE_STREAM:
                self._made_by.pop(service, None)
                for record in operation.snapshot:
                    if isinstance(record, ConfigurationFollowed):
                        self._made_by[service] = dict(record.created)
                    self._fold(service, record)

    def lost_disk(self, service: int) -> None:
        """Forget a service's configuration, unless its state file survived and only a log was damaged."""
        if self._world.services[service].disk.databases:
            return
        self._hosted.pop(service, None)
        self._followed.pop(service, None)
        self._made_by.pop(service, None)

    def released(self, service: int, message: Outbound) -> None:
        """Compare the members' answers to one command, except those about the state of one member alone."""
        if not isinstance(message, CommandReply) or message.request not in self._world.changes:
            return
        code, text = message.reply.retcode, message.reply.text
        if any(each in text for each in _OF_ONE_MEMBER):
            return
        self.checked_count += 1
        first = self._answers.setdefault(message.request, (service, code, text))
        if first[1:] != (code, text):
            self.violate(f"{message.request}: {first[0]} answers {first[2]!r}, and {service} {text!r}")

    def concluded(self) -> None:
        """Compare how far each member has followed the log: at the end all must have reached its last entry.

        One that was removed receives no more of it.
        """
        self.checked_count += 1
        latest = max((each.index for each in self._followed.values()), default=0)
        members = self._world.members_of_configuration()
        behind = [
            str(number)
            for number, service in self._world.services.items()
            if number in members and not service.is_gone
            if number not in self._followed or self._followed[number].index < latest
        ]
        if behind or not latest:
            self.violate(f"after the time without faults {', '.join(behind)} have not followed to entry {latest}")

    def _fold(self, service: int, record: Record) -> None:
        queues = self._hosted.setdefault(service, {})
        match record:
            case ServiceStarted(settings):
                self._hosted[service] = queues_by_name(settings)
            case QueueCreated(participant, subscriber, settings):
                queue = f"{participant}/{subscriber}/{settings.name}"
                queues[queue] = settings
                followed = self._followed.get(service)
                made_by = self._made_by.setdefault(service, {})
                made_by[queue] = 0 if followed is None else followed.created.get(queue, 0)
            case QueueDeleted(participant, subscriber, name):
                queues.pop(f"{participant}/{subscriber}/{name}", None)
            case SubscriberCreated(participant, settings):
                queues |= {f"{participant}/{settings.name}/{queue.name}": queue for queue in settings.queues}
            case SubscriberDeleted(participant, subscriber):
                for each in [each for each in queues if each.startswith(f"{participant}/{subscriber}/")]:
                    del queues[each]
            case ConfigurationFollowed():
                former = self._followed.get(service)
                self._followed[service] = record
                if not record.index:  # it begins to follow: the queues of its file are those of the cluster
                    made_by = self._made_by.setdefault(service, {})
                    for queue in queues.keys() - made_by.keys():
                        made_by[queue] = record.created.get(queue, 0)
                if former is None or (former.origin, former.index) != (record.origin, record.index):
                    self._compare(service, record)
            case _:
                pass

    def _compare(self, service: int, record: ConfigurationFollowed) -> None:
        if not record.index:
            return  # it begins to follow
        self.checked_count += 1
        made_by = self._made_by.get(service, {})
        # A later entry is noted before the queue is created.
        created = {queue: index for queue, index in record.created.items() if index <= record.index}
        for queue, index in created.items():
            if queue in self._hosted[service] and made_by.get(queue, 0) != index:
                self.violate(f"{queue} of entry {index} is at {service} that of entry {made_by.get(queue, 0)}")
        found = (service, dict(self._hosted[service]), created)
        first = self._seen.setdefault((record.origin, record.index), found)
        if first[1:] != found[1:]:
            self.violate(
                f"after entry {record.index} {service} hosts {sorted(found[1])} by {found[2]}, and {first[0]} "
                f"{sorted(first[1])} by {first[2]}"
            )
