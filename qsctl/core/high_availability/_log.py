"""The log of a replication group: records with consecutive indexes, and the epochs in which they were appended.

Decides: when two logs agree up to an index, what is taken back where they do not, and which of two is more up to date.

The records of a run of samples are one object with an index for each sample: indexes count as if the records were
single ones, and an operation whose bound is inside a run divides it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

import msgspec

from qsctl.core.high_availability._uncommitted import Key, UncommittedSamples
from qsctl.core.high_availability.frames import Entry, OrderedRun
from qsctl.core.records import (
    RUN_RECORDS,
    Enqueued,
    EnqueuedRun,
    EpochBegan,
    MembersChanged,
    QueueRecord,
    QueueStreamRecord,
    RunRecord,
    payload_bytes_of,
)
from qsctl.identity import SampleIdentity

TAKEN_BACK_MAX: Final = 65_536
"""Identities that are remembered once their entries were taken back: far more than producers have unanswered."""


class LastEntry(msgspec.Struct, frozen=True, order=True, gc=False):
    """The last entry of a log, by which logs are compared: first its epoch, then the log's length."""

    epoch: int
    index: int


class LogSnapshot(msgspec.Struct, frozen=True):
    """Records that replace a log up to `index`, an entry of `epoch`."""

    index: int
    epoch: int
    records: Sequence[QueueRecord]


EMPTY: Final = LogSnapshot(0, 0, ())
"""The base of a first log."""


def count_of(record: Entry) -> int:
    """Return the number of entries that a record is."""
    return record.count if isinstance(record, RunRecord | OrderedRun) else 1


def entry_count(records: Sequence[Entry]) -> int:
    """Return the number of entries that records are."""
    return sum(map(count_of, records))


def behind(entries: Sequence[Entry], count: int) -> Sequence[Entry]:
    """Return the entries behind the first ones, of which there are `count`."""
    if not count:
        return entries
    for at, entry in enumerate(entries):
        if not count:
            return entries[at:]
        own_count = count_of(entry)
        if count < own_count:
            assert isinstance(entry, RunRecord | OrderedRun)
            return (entry.part(count, own_count), *entries[at + 1 :])
        count -= own_count
    return ()


class ReplicatedLog:
    """One replica's log. Entries up to its snapshot are not kept one by one.

    Args:
        base: the snapshot that the log begins with.
    """

    def __init__(self, base: LogSnapshot = EMPTY) -> None:
        self._taken_back: OrderedDict[Key, int] = OrderedDict()
        self.appended_bytes = 0
        """Octets of payload in all records that were ever appended here."""
        self._begin(base)

    def _begin(self, base: LogSnapshot) -> None:
        self.base = base
        self.commit_index = base.index
        """Entries up to here are at a quorum: they are never taken back."""
        self.payload_bytes = payload_bytes_of(base.records)
        """Octets of payload in the snapshot and in the entries behind it."""
        self._records: list[QueueStreamRecord] = []
        self._ends: list[int] = []
        """The last index of each record."""
        self._epoch_starts: list[int] = []
        self._epochs: list[int] = []
        self._incarnations: list[int] = []
        began = base.records[0] if base.records else None
        self._base_incarnation = began.incarnation if isinstance(began, EpochBegan) else 0
        self._base_members = next((each for each in base.records[:2] if isinstance(each, MembersChanged)), None)
        self._members: list[tuple[int, MembersChanged]] = []
        self._uncommitted = UncommittedSamples()

    @property
    def last_index(self) -> int:
        """The index of the last entry."""
        return self._ends[-1] if self._ends else self.base.index

    @property
    def last(self) -> LastEntry:
        """Return how up to date it is."""
        return LastEntry(self._epochs[-1] if self._epochs else self.base.epoch, self.last_index)

    def __len__(self) -> int:
        return self.last_index - self.base.index

    def entry(self, index: int) -> tuple[int, QueueRecord]:
        """Return the epoch and the record at an index; that of a run is a single one.

        Raises:
            LookupError: a snapshot covers it, or it does not exist yet.
        """
        if not self.base.index < index <= self.last_index:
            raise LookupError(f"no entry {index}; there are {self.base.index + 1} to {self.last_index}")
        (record,) = self.records_from(index, 1)
        if isinstance(record, RunRecord):
            (record,) = record.singles()
        return self.epoch_at(index), record

    def epoch_at(self, index: int) -> int:
        """Return the epoch of an entry from `base.index` on."""
        at = bisect_right(self._epoch_starts, index) - 1
        return self._epochs[at] if at >= 0 else self.base.epoch

    def incarnation_at(self, index: int) -> int:
        """Return the incarnation of the group by the entries up to an index; 0: they contain none."""
        at = bisect_right(self._epoch_starts, index) - 1
        return self._incarnations[at] if at >= 0 else self._base_incarnation

    def members_at(self, index: int) -> MembersChanged | None:
        """Return the members by the entries up to an index; None: they list none."""
        for at, members in reversed(self._members):
            if at <= index:
                return members
        return self._base_members

    @property
    def members_index(self) -> int:
        """The index of the latest list of members; that of the snapshot: none is behind it."""
        return self._members[-1][0] if self._members else self.base.index

    @property
    def has_payloads(self) -> bool:
        """Return whether an entry, or a record of the snapshot, has the payload of a sample."""
        return payload_bytes_of((*self.base.records, *self._records)) > 0

    def records_from(self, first_index: int, count_max: int) -> list[QueueStreamRecord]:
        """Return records from an index behind `base.index` on, at most the given number, divided at both ends."""
        assert first_index > self.base.index, f"entry {first_index} is replaced by a snapshot up to {self.base.index}"
        last_index, ends = min(first_index + count_max - 1, self.last_index), self._ends
        if last_index < first_index:
            return []
        at, to = bisect_left(ends, first_index), bisect_left(ends, last_index)
        records = self._records[at : to + 1]
        if over := ends[to] - last_index:
            records[-1] = _part(records[-1], 0, count_of(records[-1]) - over)
        if skipped := first_index - self._begin_of(at):
            records[0] = _part(records[0], skipped, count_of(records[0]))
        return records

    def _begin_of(self, at: int) -> int:
        """Return the first index of a record, by its place."""
        return (self._ends[at - 1] if at else self.base.index) + 1

    def agrees(self, index: int, epoch: int) -> bool:
        """Return whether it has an entry of this epoch at this index; then it agrees with the other log up to there."""
        if index < self.base.index:
            return True  # committed, and so the same in every log
        return index <= self.last_index and self.epoch_at(index) == epoch

    def last_before(self, index: int) -> int:
        """Return the last index below a given one at which the log may agree with one that has another entry there."""
        if index > self.last_index:
            return self.last_index
        at = bisect_right(self._epoch_starts, index) - 1
        return max(self._epoch_starts[at] - 1 if at >= 0 else self.base.index, self.commit_index)

    def append(self, records: Sequence[QueueStreamRecord]) -> None:
        """Put records behind the last one."""
        index, ends = self.last_index, self._ends
        for record in records:
            index += 1
            if type(record) is EpochBegan:
                self._epoch_starts.append(index)
                self._epochs.append(record.epoch)
                self._incarnations.append(record.incarnation)
            elif type(record) is Enqueued:
                self._uncommitted.add(record, index)
                self.appended_bytes += len(record.payload)
                self.payload_bytes += len(record.payload)
            elif type(record) is MembersChanged:
                self._members.append((index, record))
            elif type(record) in RUN_RECORDS:
                if type(record) is EnqueuedRun:
                    self._uncommitted.add_run(record, index)
                    size_bytes = record.payload_bytes
                    self.appended_bytes += size_bytes
                    self.payload_bytes += size_bytes
                index += count_of(record) - 1
            ends.append(index)
        self._records += records

    def first_conflict(self, first_index: int, entries: Sequence[Entry], previous_epoch: int) -> int:
        """Return the first index from which these entries are not in the log; behind the last of them: all are."""
        epoch, index = previous_epoch, first_index
        for record in entries:
            if type(record) is EpochBegan:
                epoch = record.epoch
            for _ in range(count_of(record)):
                if index > self.last_index or (index > self.base.index and self.epoch_at(index) != epoch):
                    return index
                index += 1
        return index

    def truncate(self, from_index: int) -> None:
        """Take back the entries from an index on.

        Raises:
            AssertionError: one of them is committed.
        """
        if from_index <= self.commit_index:
            raise AssertionError(
                f"entry {from_index} is committed, up to {self.commit_index}, and cannot be taken back"
            )
        for key, index in self._uncommitted.pop_from(from_index):
            self._take_back(key, index)
        self.payload_bytes -= payload_bytes_of(self.records_from(from_index, len(self)))
        at = bisect_left(self._ends, from_index)
        divided, kept_count = self._records[at : at + 1], from_index - self._begin_of(at)
        del self._records[at:], self._ends[at:]
        if kept_count > 0:
            self._records.append(_part(divided[0], 0, kept_count))
            self._ends.append(from_index - 1)
        while self._epoch_starts and self._epoch_starts[-1] >= from_index:
            self._epoch_starts.pop()
            self._epochs.pop()
            self._incarnations.pop()
        while self._members and self._members[-1][0] >= from_index:
            self._members.pop()

    def commit(self, index: int) -> Sequence[QueueStreamRecord]:
        """Note that entries up to an index are at a quorum; return those that were not known to be."""
        records = self.records_from(self.commit_index + 1, index - self.commit_index)
        for record in records:
            if type(record) is Enqueued:
                self._uncommitted.commit(record)
                if self._taken_back:
                    self._taken_back.pop((record.queue, record.identity), None)
            elif type(record) is EnqueuedRun:
                self._uncommitted.commit_run(record)
                if self._taken_back:
                    for identity in record.identities():
                        self._taken_back.pop((record.queue, identity), None)
        self.commit_index = max(self.commit_index, min(index, self.last_index))
        return records

    def uncommitted_index(self, queue: str, identity: SampleIdentity) -> int:
        """Return the index of the entry by which a sample was enqueued and that is not committed; 0: there is none."""
        return self._uncommitted.find(queue, identity)

    def has_uncommitted(self, queue: str, identities: list[SampleIdentity]) -> bool:
        """Return whether one of these consecutive samples of a writer is in an entry that is not committed."""
        return self._uncommitted.has_any(queue, identities)

    def uncommitted_run_index(self, queue: str, identities: list[SampleIdentity]) -> int:
        """Return the index of the last of these consecutive samples of a writer, which one run enqueued that is not
        committed; 0: none did.
        """
        return self._uncommitted.find_run(queue, identities)

    def uncommitted(self) -> list[tuple[Key, int]]:
        """Return the samples that were enqueued by entries that are not committed: queue, identity, index."""
        return self._uncommitted.items()

    def was_taken_back(self, queue: str, identity: SampleIdentity) -> bool:
        """Return whether a sample was in an entry that was taken back here, and that another replica may have still.

        Once an entry of a later epoch is committed, no replica that has the former can become master.
        """
        epoch = self._taken_back.get((queue, identity))
        if epoch is not None and epoch < self.epoch_at(self.commit_index):
            del self._taken_back[queue, identity]
            return False
        return epoch is not None

    def compact(self, index: int, records: Sequence[QueueRecord]) -> None:
        """Replace the entries up to a committed index by records."""
        base = LogSnapshot(index, self.epoch_at(index), records)
        replaced = (*self.base.records, *self.records_from(self.base.index + 1, index - self.base.index))
        self.payload_bytes += payload_bytes_of(records) - payload_bytes_of(replaced)
        at = bisect_right(self._ends, index)
        if at < len(self._records) and (covered := index + 1 - self._begin_of(at)):
            self._records[at] = _part(self._records[at], covered, count_of(self._records[at]))
        del self._records[:at], self._ends[:at]
        kept = bisect_right(self._epoch_starts, index)
        if kept:
            self._base_incarnation = self._incarnations[kept - 1]
        del self._epoch_starts[:kept], self._epochs[:kept], self._incarnations[:kept]
        self._base_members = self.members_at(index)
        self._members = [each for each in self._members if each[0] > index]
        self.base = base

    def install(self, base: LogSnapshot) -> None:
        """Begin again with another replica's snapshot, which reaches further than what is committed here."""
        for key, index in self._uncommitted.items():
            self._take_back(key, index)
        self._begin(base)

    def _take_back(self, key: Key, index: int) -> None:
        self._taken_back.pop(key, None)
        self._taken_back[key] = self.epoch_at(index)
        if len(self._taken_back) > TAKEN_BACK_MAX:
            self._taken_back.popitem(last=False)


def _part(record: QueueStreamRecord, start: int, stop: int) -> QueueStreamRecord:
    """Return the records of a run between two offsets."""
    assert isinstance(record, RunRecord), f"{record!r} is divided"
    return record if stop - start == record.count else record.part(start, stop)
