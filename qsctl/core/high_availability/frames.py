"""The frames that replicas send to each other. Every frame names its stream, its sender, and the sender's epoch.

A receiver that has seen a later epoch refuses a frame of an earlier one and answers with its own. `run` is a number
that the sender's process drew: it distinguishes a replica that lost its log from its former self, and an answer to this
process from one to another.

`incarnation` is that of the sender's group [see `groups`]: 0 where it has no log and received none, negative where no
entry with it is committed yet, as far as the sender knows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias, TypeVar

import msgspec
from msgspec import structs

from qsctl.core.messages import Write
from qsctl.core.records import Enqueued, EnqueuedRun, QueueRecord, QueueStreamRecord, StreamRecord
from qsctl.identity import Count, SampleIdentity, identity_behind
from qsctl.instant import Nanoseconds


class Canvass(msgspec.Struct, frozen=True, array_like=True, tag="canvass", gc=False):
    """A replica asks for a vote in `candidate_epoch`; a trial asks whether it would get one [QS 7.1.2].

    `last_epoch` and `last_index` are those of its last entry.
    """

    stream: str
    sender: str
    epoch: int
    candidate_epoch: int
    last_epoch: int
    last_index: int
    is_trial: bool
    incarnation: int = 0


class Vote(msgspec.Struct, frozen=True, array_like=True, tag="vote", gc=False):
    """The answer to a `Canvass`."""

    stream: str
    sender: str
    epoch: int
    candidate_epoch: int
    is_trial: bool
    granted: bool
    incarnation: int = 0


class Ordered(msgspec.Struct, frozen=True, array_like=True, tag=23, gc=False):
    """The entry of a sample that its producer sends to all replicas directly: what the master decided about it."""

    queue: str
    position: Count
    identity: SampleIdentity
    enqueued_at_ns: Nanoseconds
    expires_at_ns: Nanoseconds
    flags: int


class OrderedRun(msgspec.Struct, frozen=True, array_like=True, tag=30, gc=False):
    """The entries of samples of a run that their producer sends to all replicas directly, see `Ordered`.

    Positions and sequence numbers are consecutive; `position` and `identity` are those of the first sample.
    """

    queue: str
    position: Count
    identity: SampleIdentity
    count: Count
    enqueued_at_ns: Nanoseconds
    expires_at_ns: Nanoseconds
    flags: int

    def part(self, start: int, stop: int) -> OrderedRun:
        """Return the entries of the samples between two offsets."""
        identity = identity_behind(self.identity, start)
        return structs.replace(self, position=self.position + start, identity=identity, count=stop - start)

    def singles(self) -> list[Ordered]:
        """Return the entries one by one."""
        writer_guid, number = self.identity.writer_guid, self.identity.sequence_number
        return [
            Ordered(
                self.queue,
                self.position + offset,
                SampleIdentity(writer_guid, number + offset),
                self.enqueued_at_ns,
                self.expires_at_ns,
                self.flags,
            )
            for offset in range(self.count)
        ]


Entry: TypeAlias = QueueStreamRecord | Ordered | OrderedRun
"""An entry on its way, or several that are one object."""


class Heartbeat(msgspec.Struct, frozen=True, array_like=True, tag="heartbeat", gc=False):
    """A sign of the master that passes frames of samples: see `passes`.

    `index` is the last entry that was sent to the receiver, which has confirmed it, and `index_epoch` is that entry's
    epoch. Both are 0 while frames of samples are on their way: then it claims nothing about the log, since it would
    arrive before what it rests on.
    """

    stream: str
    sender: str
    epoch: int
    index: int
    index_epoch: int
    commit_index: int
    sent_at_ns: Nanoseconds
    incarnation: int = 0


class Entries(msgspec.Struct, frozen=True, array_like=True, tag="entries", gc=False):
    """Entries of the master's log behind `previous_index`; without any it follows those that were sent before.

    With `lacks_payloads` some are `Ordered`, and the receiver has the rest of these samples from their producers; one
    that lacks it reports that. `sent_at_ns` is the instant on the master's clock.
    """

    stream: str
    sender: str
    epoch: int
    previous_index: int
    previous_epoch: int
    records: tuple[Entry, ...]
    commit_index: int
    sent_at_ns: Nanoseconds
    lacks_payloads: bool = False
    incarnation: int = 0


class Confirmed(msgspec.Struct, frozen=True, array_like=True, tag="confirmed", gc=False):
    """The sender's log is durable and agrees with the master's up to `match_index`.

    With a `snapshot_mark` it holds the first `snapshot_count` records of that snapshot; not `agreed`: it lacks a piece
    before the confirmed one. Otherwise, not `agreed`: it does not agree with the received entries, and `match_index` is
    where the master should try next.

    With `lacks_payload` the entry behind `match_index` needs its payload. A learner's confirmation counts for no
    quorum. `sent_at_ns` is that of the confirmed frame: the earliest instant at which the sender can have received it.
    """

    stream: str
    sender: str
    epoch: int
    run: int
    match_index: int
    sent_at_ns: Nanoseconds
    agreed: bool = True
    lacks_payload: bool = False
    is_learner: bool = False
    incarnation: int = 0
    snapshot_mark: int = 0
    snapshot_count: int = 0


class Snapshot(msgspec.Struct, frozen=True, array_like=True, tag="snapshot", gc=False):
    """Records that replace the master's log up to `index`, an entry of `index_epoch`, for earlier versions."""

    stream: str
    sender: str
    epoch: int
    index: int
    index_epoch: int
    records: tuple[QueueRecord, ...]
    sent_at_ns: Nanoseconds
    incarnation: int = 0


class SnapshotPiece(msgspec.Struct, frozen=True, array_like=True, tag="piece", gc=False):
    """The records from number `first` on, counted from 0, of a snapshot of `count` records up to `index`.

    `mark` distinguishes the snapshot from another one up to the same index, see `_snapshot_pieces`.
    """

    stream: str
    sender: str
    epoch: int
    index: int
    index_epoch: int
    count: int
    mark: int
    first: int
    records: tuple[QueueRecord, ...]
    sent_at_ns: Nanoseconds
    incarnation: int = 0


class Roll(msgspec.Struct, frozen=True, array_like=True, tag="roll", gc=False):
    """A replica asks the others what they have and in which epoch they are; `answers` is the run that asked.

    `answers` is None in a question. A learner without a master asks, and a replica that meets an epoch which is further
    ahead of its own than one step, or another group of its own name. `is_new`: it never had a log, as far as it can
    know. `left` are the groups of this name that it was in before. It votes for no log below the floor [see `ballot`].
    """

    stream: str
    sender: str
    epoch: int
    run: int
    last_epoch: int
    last_index: int
    is_learner: bool
    answers: int | None = None
    incarnation: int = 0
    is_new: bool = False
    left: tuple[int, ...] = ()
    floor_epoch: int = 0
    floor_index: int = 0


class Relayed(msgspec.Struct, frozen=True, array_like=True, tag="relayed", gc=False):
    """A sample that its producer sent to this replica to be passed on: DDS_REPLICATE_SAMPLE [QS 7.1.1.1]."""

    stream: str
    sender: str
    epoch: int
    queue: str
    write: Write
    incarnation: int = 0


class Farewell(msgspec.Struct, frozen=True, array_like=True, tag="farewell", gc=False):
    """The master of this epoch is none any more: it leaves, and `successor` has as much as any other."""

    stream: str
    sender: str
    epoch: int
    successor: str
    incarnation: int = 0


class ConditionReport(msgspec.Struct, frozen=True, array_like=True, tag="condition", gc=False):
    """A replica's report to its master, for operators: its queues have followed the log up to `applied_index`.

    It does not wait for the replica's disk, which may hang, and decides nothing.
    """

    stream: str
    sender: str
    epoch: int
    applied_index: int
    disk_hangs: bool
    incarnation: int = 0


class Preference(msgspec.Struct, frozen=True, array_like=True, tag="preference", gc=False):
    """A member announces how much it is preferred as master, and whether it is drained. It decides no election."""

    stream: str
    sender: str
    epoch: int
    run: int
    priority: int
    is_drained: bool
    incarnation: int = 0


Recorded = TypeVar("Recorded", bound=StreamRecord)

OfMaster: TypeAlias = Entries | Heartbeat | Snapshot | SnapshotPiece
"""What only the master of an epoch sends; a replica confirms each."""

Frame: TypeAlias = Canvass | Vote | OfMaster | Confirmed | Roll | Relayed | Farewell | ConditionReport | Preference


def for_witness(records: Sequence[Recorded]) -> list[Recorded]:
    """Return the records without the payloads of samples: a witness holds none."""
    return [_without_payload(record) for record in records]


def _without_payload(record: Recorded) -> Recorded:
    if type(record) is Enqueued:
        return structs.replace(record, payload=b"", payload_from=None)
    if isinstance(record, EnqueuedRun):
        return structs.replace(record, payloads=(b"",) * len(record.payloads))
    return record


def has_samples(frame: Frame) -> bool:
    """Return whether a frame contains entries, a snapshot or a sample, and so may be large."""
    return isinstance(frame, Snapshot | SnapshotPiece | Relayed) or (isinstance(frame, Entries) and bool(frame.records))


def passes(frame: Frame) -> bool:
    """Return whether a frame may arrive before frames of samples that were sent before it.

    Entries without records and `Farewell` do not: they refer to what was sent before them.
    """
    return isinstance(frame, Heartbeat | Canvass | Vote | Confirmed | Roll | ConditionReport | Preference)
