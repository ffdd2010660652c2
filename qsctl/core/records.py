"""The durable records. Replaying a store's records into a new engine gives the state that wrote them.

A message is never sent before the record that it rests on is stored. Records of one queue are in order; `position` is
the sample's place in its queue and never reused. A move to the dead-letter queue stores the dead letter first and the
removal after it; the dead letter identifies the sample, so that a restart completes a move that a crash interrupted.
Replicated queues share one stream with their dead-letter queue: there the dead letter is the only record of the move. A
command that moves a sample stores it in the target first, with its former place, and the removal after it. The record
in the target decides: after a crash, a sample that its target has is not in its source.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from typing import Final, TypeAlias, overload

import msgspec

from qsctl.core.queue.settings import SharedReaderQueueSettings
from qsctl.core.settings import ServiceSettings, SharedSubscriberSettings
from qsctl.identity import (
    NIL_GUID,
    NIL_IDENTITY,
    NIL_INCARNATION,
    Count,
    Guid,
    SampleIdentity,
    WholeGuid,
    WholeIncarnation,
    identities_from,
    identity_behind,
)
from qsctl.instant import Nanoseconds


class RemovalCause(IntEnum):
    """The cause for which a sample left its queue for good [QS 2.9 and 5.4.3]."""

    DELIVERED = 1
    EXPIRED = 2
    FAILED_DELIVERY = 3
    FLUSHED = 4


class DeadLetterReason(IntEnum):
    """The reason of a dead letter, `UndeliveredReasonKind` [QS 2.12]."""

    LIFESPAN = 0
    MAX_RETRIES = 1


class MovedFrom(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The place from which a command moved a sample: a queue, by full name, its incarnation, and a position in it."""

    queue: str
    position: Count
    incarnation: WholeIncarnation = NIL_INCARNATION


class Enqueued(msgspec.Struct, frozen=True, array_like=True, tag=1, gc=False):
    """A sample was accepted. `expires_at_ns` is absolute and set once [QS 2.14.2.1].

    The members `dead_letter_…` are set in a dead-letter queue only: the queue from which the sample came
    (`<topic>@<subscriber>`), its incarnation, the sample's position in it (0: unknown, as in stores of version 0.1),
    and the reason. `identity` is then that of the undelivered sample. `flags` contain the bit REDELIVERED if a consumer
    may have processed the sample. `payload_from`, a queue and a position in it, replaces a payload that is on disk
    only: the driver inserts the payload before it stores the record, see `qsctl.core.payloads`. With `moved_from` the
    record also removes the sample at that place.
    """

    queue: str
    position: Count
    identity: SampleIdentity
    enqueued_at_ns: Nanoseconds
    expires_at_ns: Nanoseconds
    source_guid: WholeGuid = NIL_GUID
    related_source_guid: Guid = NIL_GUID
    related_identity: SampleIdentity = NIL_IDENTITY
    related_reader_guid: WholeGuid = NIL_GUID
    flags: int = 0
    dead_letter_from: str = ""
    dead_letter_reason: DeadLetterReason | None = None
    dead_letter_position: int = 0
    payload: bytes = b""
    payload_from: tuple[str, int] | None = None
    dead_letter_incarnation: WholeIncarnation = NIL_INCARNATION
    moved_from: MovedFrom | None = None


class Assigned(msgspec.Struct, frozen=True, array_like=True, tag=2, gc=False):
    """A sample is about to be sent to a consumer, for the `attempt`-th time, counted from 1."""

    queue: str
    position: Count
    consumer_guid: Guid
    attempt: int


class Returned(msgspec.Struct, frozen=True, array_like=True, tag=3, gc=False):
    """A sample is Enqueued again after `attempts` failed deliveries (rejected, timed out, consumer gone).

    In a snapshot `past_holders` are the consumers that held the sample before, latest last: they may still acknowledge
    it late.
    """

    queue: str
    position: Count
    attempts: int
    redelivered: bool
    past_holders: tuple[Guid, ...] = ()


class Undeliverable(msgspec.Struct, frozen=True, array_like=True, tag=8, gc=False):
    """An expired or finally failed sample remains in its queue until the dead-letter queue accepts it."""

    queue: str
    position: Count
    reason: DeadLetterReason


class Removed(msgspec.Struct, frozen=True, array_like=True, tag=4, gc=False):
    """A sample left the queue for good."""

    queue: str
    position: Count
    cause: RemovalCause


class Remembered(msgspec.Struct, frozen=True, array_like=True, tag=5, gc=False):
    """The incarnation of a queue, and the identities that it recently retired, oldest first, to suppress duplicates.

    It is the first record of a queue's stream, without identities, and part of a compacted store. Every position in the
    stream belongs to this incarnation.
    """

    queue: str
    next_position: int
    identities: tuple[SampleIdentity, ...]
    incarnation: WholeIncarnation = NIL_INCARNATION


class EpochBegan(msgspec.Struct, frozen=True, array_like=True, tag=20, gc=False):
    """A replica became master of a replicated stream; later records belong to this epoch, until the next such record.

    Assigned samples become Enqueued again, flagged as redelivered: their consumers may have processed them [QS
    7.1.1.3]. With `flags_all` every held sample is flagged: the master before may have sent it without a committed
    assignment, see `SendsAhead`. `incarnation` is that of the replication group, drawn by its first master unless a
    command set it.
    """

    queue: str
    epoch: int
    master: str
    flags_all: bool
    incarnation: WholeIncarnation = NIL_INCARNATION


class ReplicaRejoined(msgspec.Struct, frozen=True, array_like=True, tag=21, gc=False):
    """A replica that had lost its log has it again up to this record, and may vote from now on.

    `run` is the number of its process, as in its frames.
    """

    queue: str
    replica: str
    run: int


class SendsAhead(msgspec.Struct, frozen=True, array_like=True, tag=25, gc=False):
    """The permission of a master to send samples before their assignment is committed, or its end [QS 7.1.1.3].

    The permission takes effect once this record is committed, its end at once. An epoch begins with a permission. A new
    master whose log has no such record at its end can thus decide for each sample whether a consumer may have it.
    """

    queue: str
    is_allowed: bool


class MembersChanged(msgspec.Struct, frozen=True, array_like=True, tag=26, gc=False):
    """The members of a replication group from this entry on: those that have a vote, and the learners.

    `witnesses` are the members that hold no payloads; a name stays among them when the member is removed.
    """

    queue: str
    voters: tuple[str, ...]
    learners: tuple[str, ...] = ()
    witnesses: tuple[str, ...] = ()


class ConfigurationKnown(msgspec.Struct, frozen=True, array_like=True, tag=22):
    """The configuration of a cluster from here on [QS 7.2]: the first master's own, or that of a snapshot.

    `queue` is the name of the stream. `origin` distinguishes this log from any other of the same members. `subscribers`
    are grouped by domain participant. `created` maps the full name of each resource to the log entry that created it,
    `members` to the voters and the learners that its replication group began with, where its creation named them.
    """

    queue: str
    origin: str
    subscribers: dict[str, tuple[SharedSubscriberSettings, ...]]
    created: dict[str, int]
    members: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {}


class ServiceStarted(msgspec.Struct, frozen=True, array_like=True, tag=10):
    """The configuration with which a service started [QS 2.14.1].

    `incarnation` is that of the service. A subscriber has the service's, and a queue that of its subscriber, unless
    `incarnations` lists another by full name. `deleted` contains the streams of deleted replicated queues whose log may
    still exist, with the incarnation of the group if it was created again.
    """

    settings: ServiceSettings
    incarnation: WholeIncarnation = NIL_INCARNATION
    incarnations: dict[str, WholeIncarnation] = {}
    deleted: dict[str, WholeIncarnation] = {}


class SubscriberCreated(msgspec.Struct, frozen=True, array_like=True, tag=11):
    """A shared subscriber was created in a domain participant with its queues; all have one incarnation."""

    participant: str
    settings: SharedSubscriberSettings
    incarnation: WholeIncarnation = NIL_INCARNATION


class SubscriberDeleted(msgspec.Struct, frozen=True, array_like=True, tag=12):
    """A shared subscriber was deleted with its queues."""

    participant: str
    subscriber: str


class QueueCreated(msgspec.Struct, frozen=True, array_like=True, tag=13):
    """A queue was created, and its implicit reply queue, which has the same incarnation."""

    participant: str
    subscriber: str
    settings: SharedReaderQueueSettings
    incarnation: WholeIncarnation = NIL_INCARNATION


class QueueDeleted(msgspec.Struct, frozen=True, array_like=True, tag=14):
    """A queue was deleted with its samples."""

    participant: str
    subscriber: str
    name: str


class ConfigurationFollowed(msgspec.Struct, frozen=True, array_like=True, tag=15):
    """The service follows the configuration of its cluster up to entry `index` of the log `origin`.

    `created` is `ConfigurationKnown.created` restricted to the resources that the service hosts or is about to create:
    it shows that a queue was deleted and created again while the service was away.
    """

    origin: str
    index: int
    created: dict[str, int]


class QueueChanged(msgspec.Struct, frozen=True, array_like=True, tag=16):
    """The settings of a queue were changed, see `core.queue.change`; `settings` are complete."""

    participant: str
    subscriber: str
    settings: SharedReaderQueueSettings


class EnqueuedRun(msgspec.Struct, frozen=True, array_like=True, tag=27, gc=False):
    """Samples of one writer were accepted at one instant: an `Enqueued` for each, see `StreamRecord`.

    Positions and sequence numbers are consecutive; `position` and `identity` are those of the first sample.
    """

    queue: str
    position: Count
    identity: SampleIdentity
    payloads: tuple[bytes, ...]
    enqueued_at_ns: Nanoseconds
    expires_at_ns: Nanoseconds
    source_guid: WholeGuid
    related_source_guid: Guid
    related_identity: SampleIdentity
    related_reader_guid: WholeGuid
    flags: int

    @property
    def count(self) -> int:
        """Return the number of samples."""
        return len(self.payloads)

    @property
    def payload_bytes(self) -> int:
        """Return the octets of all payloads."""
        return sum(map(len, self.payloads))

    def identities(self) -> list[SampleIdentity]:
        """Return the identities of the samples."""
        return identities_from(self.identity, len(self.payloads))

    def part(self, start: int, stop: int) -> EnqueuedRun:
        """Return the records of the samples between two offsets."""
        identity = identity_behind(self.identity, start)
        return msgspec.structs.replace(
            self, position=self.position + start, identity=identity, payloads=self.payloads[start:stop]
        )

    def singles(self) -> list[Enqueued]:
        """Return the records one by one."""
        writer_guid, number = self.identity.writer_guid, self.identity.sequence_number
        return [
            Enqueued(
                self.queue,
                self.position + offset,
                SampleIdentity(writer_guid, number + offset),
                self.enqueued_at_ns,
                self.expires_at_ns,
                self.source_guid,
                self.related_source_guid,
                self.related_identity,
                self.related_reader_guid,
                self.flags,
                payload=payload,
            )
            for offset, payload in enumerate(self.payloads)
        ]


class AssignedRun(msgspec.Struct, frozen=True, array_like=True, tag=28, gc=False):
    """Samples at consecutive positions are about to be sent for the first time, to these consumers in turn."""

    queue: str
    position: Count
    count: Count
    consumers: tuple[WholeGuid, ...]

    @property
    def positions(self) -> range:
        """Return the positions of the samples."""
        return range(self.position, self.position + self.count)

    def consumers_of(self, start: int, stop: int) -> list[Guid]:
        """Return the consumers of the samples between two offsets."""
        consumers = self.consumers
        return [consumers[offset % len(consumers)] for offset in range(start, stop)]

    def part(self, start: int, stop: int) -> AssignedRun:
        """Return the records of the samples between two offsets."""
        turn = start % len(self.consumers)
        consumers = (self.consumers[turn:] + self.consumers[:turn])[: stop - start]
        return AssignedRun(self.queue, self.position + start, stop - start, consumers)

    def singles(self) -> list[Assigned]:
        """Return the records one by one."""
        return [
            Assigned(self.queue, position, guid, 1)
            for position, guid in enumerate(self.consumers_of(0, self.count), self.position)
        ]


class RemovedRun(msgspec.Struct, frozen=True, array_like=True, tag=29, gc=False):
    """Samples, whose positions have a constant step, left the queue for good; `position` is that of the first one."""

    queue: str
    position: Count
    count: Count
    step: Count
    cause: RemovalCause

    @property
    def positions(self) -> range:
        """Return the positions of the samples."""
        return range(self.position, self.position + self.count * self.step, self.step)

    def part(self, start: int, stop: int) -> RemovedRun:
        """Return the records of the samples between two offsets."""
        return RemovedRun(self.queue, self.position + start * self.step, stop - start, self.step, self.cause)

    def singles(self) -> list[Removed]:
        """Return the records one by one."""
        return [Removed(self.queue, position, self.cause) for position in self.positions]


QueueRecord: TypeAlias = (
    Enqueued
    | Assigned
    | Returned
    | Undeliverable
    | Removed
    | Remembered
    | EpochBegan
    | ReplicaRejoined
    | SendsAhead
    | MembersChanged
    | ConfigurationKnown
)
"""Records in the store of a queue or of its replication group; `queue` is the name of the queue or of the stream."""

ServiceRecord: TypeAlias = (
    ServiceStarted
    | SubscriberCreated
    | SubscriberDeleted
    | QueueCreated
    | QueueDeleted
    | QueueChanged
    | ConfigurationFollowed
)
"""Records in the service's own store."""

Record: TypeAlias = QueueRecord | ServiceRecord

RunRecord: TypeAlias = EnqueuedRun | AssignedRun | RemovedRun
"""Several records of a queue as one object, with as many indexes in the stream as there are samples."""

QueueStreamRecord: TypeAlias = QueueRecord | RunRecord
"""Records of a queue or of its replication group, single or of a run."""

StreamRecord: TypeAlias = Record | RunRecord
"""A record that an engine writes. Stores keep, and a restart reads, single ones: the codec of a store divides runs."""

RUN_RECORDS: Final = frozenset({EnqueuedRun, AssignedRun, RemovedRun})


@overload
def one_by_one(records: Iterable[QueueStreamRecord]) -> Iterator[QueueRecord]: ...


@overload
def one_by_one(records: Iterable[StreamRecord]) -> Iterator[Record]: ...


def one_by_one(records: Iterable[StreamRecord]) -> Iterator[Record]:
    """Yield records, those of a run one by one."""
    for record in records:
        if isinstance(record, RunRecord):
            yield from record.singles()
        else:
            yield record


def payload_bytes_of(records: Sequence[StreamRecord]) -> int:
    """Return the octets of payload in records."""
    singles = sum([len(record.payload) for record in records if type(record) is Enqueued])
    return singles + sum([record.payload_bytes for record in records if type(record) is EnqueuedRun])
