"""The configuration of a cluster's members, as a function of the log of their commands [QS 7.2].

Decides: the outcome of a command. It depends on neither samples nor files nor a clock: every member that has followed
the same entries has the same configuration and gives the same answers, whatever its own file contains.
"""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

import msgspec
from msgspec import structs

from qsctl.core.admin.command import (
    Command,
    CreateQueue,
    CreateSubscriber,
    Creation,
    DeleteQueue,
    DeleteSubscriber,
    FirstMembers,
    UpdateQueue,
)
from qsctl.core.admin.handle import LongAnswer, handle
from qsctl.core.admin.reply import Reply, ReturnCode, refusal
from qsctl.core.high_availability._changes import check_change
from qsctl.core.hosted_service import HostedService
from qsctl.core.records import ConfigurationKnown, Enqueued, QueueRecord, Remembered
from qsctl.core.settings import DomainParticipantSettings, ServiceSettings, SharedSubscriberSettings
from qsctl.errors import UNREADABLE, NotFound, QsctlError, Refused
from qsctl.identity import Guid, SampleIdentity, no_incarnation

CONFIGURATION_STREAM: Final = "configuration"
"""The stream of the commands, the special shared reader queue of [QS 7.2.1]; a queue's has slashes in its name."""

REMEMBERED_MAX: Final = 10_000
"""Commands whose outcome is remembered: a copy that comes late is not carried out again."""

Change: TypeAlias = CreateQueue | UpdateQueue | DeleteQueue | CreateSubscriber | DeleteSubscriber
"""The commands that change a configuration [QS 5.4.1, 5.4.2, 5.4.7 and 5.4.8], and UPDATE."""

Subscribers: TypeAlias = Mapping[str, tuple[SharedSubscriberSettings, ...]]
"""Shared subscribers with their queues, by domain participant."""

CHANGES: Final = (CreateQueue, UpdateQueue, DeleteQueue, CreateSubscriber, DeleteSubscriber)
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Change).decode


def encoded(command: Change) -> bytes:
    """Return a command as the payload of a sample."""
    return _encode(command)


def with_members(payload: bytes, members: FirstMembers) -> bytes:
    """Return the payload of a command; of one that creates, with the members that groups begin with."""
    try:
        command = _decode(payload)
    except UNREADABLE:
        return payload  # its outcome states that
    if isinstance(command, CreateQueue | CreateSubscriber):
        return encoded(structs.replace(command, members=members))
    return payload


class ClusterConfiguration:
    """The configuration of a cluster, entry by entry.

    Args:
        stream: the log's name.
        member_count: how many members there are: what is replicated needs as many.
    """

    def __init__(self, stream: str, member_count: int) -> None:
        self._stream = stream
        self._member_count = member_count
        self.origin = ""
        """Of the log; empty: nothing is known yet."""
        self.index = 0
        """It is the configuration after this entry."""
        self.created: dict[str, int] = {}
        """The entry that created what a command created, by full name; what the first master had is not in it."""
        self.members: dict[str, FirstMembers] = {}
        """The members that groups begin with, by the full names of what commands created, where these named them."""
        self.outcomes: OrderedDict[SampleIdentity, Reply] = OrderedDict()
        """The outcomes of the latest commands, oldest first."""
        self._latest: dict[Guid, int] = {}
        """The highest number of each administrator's commands of which the outcome is remembered."""
        self._next_position = 1
        self._host = _host({})

    def play(self, index: int, record: QueueRecord) -> None:
        """Follow one entry; an entry before `index` changes nothing."""
        if index <= self.index and self.origin:
            return
        self.index = index
        if isinstance(record, ConfigurationKnown):
            if not self.origin:
                self.install(index, (record,))
        elif isinstance(record, Enqueued):
            self._next_position = record.position + 1
            if record.identity not in self.outcomes:
                self._remember(record.identity, self._carry_out(index, record.identity, record.payload))

    def install(self, index: int, records: tuple[QueueRecord, ...]) -> None:
        """Begin with the records that replace the entries up to `index`."""
        self.index = index
        for record in records:
            if isinstance(record, ConfigurationKnown):
                self.origin = record.origin
                self.created = dict(record.created)
                self.members = {name: FirstMembers(*lists) for name, lists in record.members.items()}
                self._host = _host(record.subscribers)
            elif isinstance(record, Remembered):
                self._next_position = record.next_position
                for identity in record.identities:
                    if identity not in self.outcomes:
                        self._remember(identity, Reply(ReturnCode.OK, "the command was carried out before"))

    def naming(self, command: Change) -> Change:
        """Return a command with the creation of what it changes or deletes, as far as this member knows.

        A command waits at members until there is a master. It may be carried out late, when the queue that was meant is
        deleted and another has its name.
        """
        if isinstance(command, CreateQueue | CreateSubscriber):
            return command
        return structs.replace(command, creation=Creation(self.origin, self._created_at(command)))

    def _created_at(self, command: UpdateQueue | DeleteQueue | DeleteSubscriber) -> int:
        """Return the entry that created what a command is about; 0: none did."""
        return max((self.created.get(name, 0) for name in _names_in(command)), default=0)

    def _check_creation(self, command: Change) -> None:
        """Compare the creation that a command is about with what is there now.

        Raises:
            Refused: what has the name is another one.
        """
        if isinstance(command, CreateQueue | CreateSubscriber) or command.creation is None:
            return
        name = _names_in(command)[-1]
        is_there = name in names_of(self.subscribers())
        if is_there and command.creation != Creation(self.origin, self._created_at(command)):
            raise Refused(
                f"{name} is another one than the member knew that got the command: it was created since, or the member "
                "did not know yet what the cluster has",
                remedy="Look at what it is now, and send the command again if it is meant.",
            )

    def snapshot(self) -> Iterator[QueueRecord]:
        """Return the records that replace all entries so far."""
        members = {name: (each.voters, each.learners) for name, each in self.members.items()}
        yield ConfigurationKnown(self._stream, self.origin, dict(self.subscribers()), dict(self.created), members)
        yield Remembered(self._stream, self._next_position, tuple(self.outcomes))

    def subscribers(self) -> Subscribers:
        """Return what is hosted."""
        return subscribers_of(self._host.settings())

    def _remember(self, identity: SampleIdentity, outcome: Reply) -> None:
        self.outcomes[identity] = outcome
        writer, number = identity.writer_guid, identity.sequence_number
        self._latest[writer] = max(number, self._latest.get(writer, number))
        if len(self.outcomes) > REMEMBERED_MAX:
            oldest, _ = self.outcomes.popitem(last=False)
            if self._latest[oldest.writer_guid] == oldest.sequence_number:
                self._find_latest(oldest.writer_guid)

    def _find_latest(self, writer: Guid) -> None:
        """Find the highest number again that is remembered of an administrator: a snapshot has no more."""
        left = [each.sequence_number for each in self.outcomes if each.writer_guid == writer]
        if left:
            self._latest[writer] = max(left)
        else:
            del self._latest[writer]

    def _carry_out(self, index: int, identity: SampleIdentity, payload: bytes) -> Reply:
        if identity.sequence_number < self._latest.get(identity.writer_guid, 0):
            text = "a later command of the same administrator was carried out before; this one is not any more"
            return Reply(ReturnCode.ERROR, f"{text}. Look at what there is, and send it again if it is meant")
        try:
            command = _decode(payload)
        except UNREADABLE as error:
            return Reply(ReturnCode.ERROR, f"what was to be carried out is not a command: {error}")
        try:
            with contextlib.suppress(NotFound):  # `handle` reports it, with the existing names
                check_change(self._host, self._member_count, command)
            self._check_creation(command)
            replies = handle(self._host, 0, command)
        except QsctlError as error:
            return refusal(error)
        if isinstance(replies, LongAnswer):
            answer, replies = replies, []
            while not answer.is_over:
                replies = [*replies, *answer.go_on(0)]
        self._host.take_ready()
        if replies[-1].retcode is ReturnCode.OK:
            self._note(index, command)
        return replies[-1]

    def _note(self, index: int, command: Change) -> None:
        """Enter what a command created, and forget what it deleted."""
        if names := created_names(command):
            self.created |= dict.fromkeys(names, index)
            members = command.members if isinstance(command, CreateQueue | CreateSubscriber) else None
            self.members = {name: each for name, each in self.members.items() if name not in names}
            if members is not None:
                self.members |= dict.fromkeys(names, members)
        else:
            hosted = set(names_of(self.subscribers()))
            self.created = {name: at for name, at in self.created.items() if name in hosted}
            self.members = {name: each for name, each in self.members.items() if name in hosted}


def check_hostable(known: ConfigurationKnown) -> None:
    """Find out whether a service can have a configuration at all.

    Raises:
        Refused: it holds what contradicts itself.
    """
    _host(known.subscribers)


def created_names(command: Command) -> list[str]:
    """Return the full names of what a command creates: the shared subscriber, or the queue."""
    match command:
        case CreateQueue(subscriber, settings):
            return ["/".join((*(name for _, name in subscriber.names), settings.name))]
        case CreateSubscriber(participant, settings):
            return [f"{participant.name}/{settings.name}"]
        case _:
            return []


def _names_in(command: UpdateQueue | DeleteQueue | DeleteSubscriber) -> list[str]:
    """Return the full names of what a command is about, and before it of what it is in, down from the subscriber."""
    resource = command.subscriber if isinstance(command, DeleteSubscriber) else command.queue
    names = [name for _, name in resource.names]
    return ["/".join(names[:count]) for count in range(2, len(names) + 1)]


def subscribers_of(settings: ServiceSettings) -> dict[str, tuple[SharedSubscriberSettings, ...]]:
    """Return the part of a configuration that the members have in common."""
    return {participant.name: participant.subscribers for participant in settings.participants}


def names_of(subscribers: Subscribers) -> Iterator[str]:
    """Give the full names of shared subscribers and queues."""
    for participant, each in subscribers.items():
        for subscriber in each:
            yield f"{participant}/{subscriber.name}"
            yield from (f"{participant}/{subscriber.name}/{queue.name}" for queue in subscriber.queues)


def _host(subscribers: Subscribers) -> HostedService:
    participants = tuple(DomainParticipantSettings(name, 0, each) for name, each in subscribers.items())
    return HostedService(
        ServiceSettings("", participants), 0, draw=no_incarnation, journals_everything=False, replicates=True
    )
