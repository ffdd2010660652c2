"""A log with the records of runs as objects, beside one with single records: both give the same after every step."""

from __future__ import annotations

from random import Random

import pytest

from qsctl.core.high_availability._log import LogSnapshot, ReplicatedLog, behind, entry_count
from qsctl.core.high_availability._octets_behind import OctetsBehind
from qsctl.core.high_availability._progress import FRAME_BYTES_MAX, PROBE_BYTES_MAX, entries_that_fit
from qsctl.core.records import (
    Assigned,
    AssignedRun,
    Enqueued,
    QueueStreamRecord,
    RemovalCause,
    Removed,
    RemovedRun,
    one_by_one,
)
from qsctl.identity import SampleIdentity
from tests.core.high_availability.cluster import OTHER_READER, READER, STREAM, WRITER
from tests.core.high_availability.logs import began, enqueued, enqueued_run


class Twins:
    """Two logs with the same entries, one of them by single records."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.runs, self.singles = ReplicatedLog(), ReplicatedLog()
        self.octets = [OctetsBehind(log) for log in self.logs]
        self.epoch = 0
        self.next_number = 1
        self.found_count = 0
        """Runs of which all samples were found in one that is not committed."""

    @property
    def logs(self) -> tuple[ReplicatedLog, ReplicatedLog]:
        return self.runs, self.singles

    def record(self) -> QueueStreamRecord:
        random, number = self.random, self.next_number
        kind, count = random.randrange(8), random.randint(1, 9)
        if kind < 3:
            self.next_number += count
            return enqueued_run(number, *(b"x" * random.randint(0, 9) for _ in range(count)))
        if kind == 3:
            self.next_number += 1
            return enqueued(number)
        if kind == 4:
            return AssignedRun(STREAM, random.randint(1, number), count, (READER, OTHER_READER)[: random.randint(1, 2)])
        if kind == 5:
            step = random.randint(1, 3)
            return RemovedRun(STREAM, random.randint(1, number), count, step, RemovalCause.DELIVERED)
        if kind == 6:
            return Removed(STREAM, number, RemovalCause.EXPIRED)
        return Assigned(STREAM, number, READER, 1)

    def step(self) -> None:
        random, log = self.random, self.singles
        kind = random.randrange(8)
        if kind == 0 or not self.epoch:
            self.epoch += 1
            for each in self.logs:
                each.append([began(self.epoch)])
        elif kind < 4:
            records = [self.record() for _ in range(random.randint(1, 4))]
            self.runs.append(records)
            self.singles.append(list(one_by_one(records)))
        elif kind == 4:
            index = random.randint(log.commit_index, log.last_index)
            by_runs, by_singles = (each.commit(index) for each in self.logs)
            assert [*one_by_one(by_runs)] == by_singles
        elif kind == 5 and log.commit_index < log.last_index:
            index = random.randint(log.commit_index + 1, log.last_index)
            for each in self.logs:
                each.truncate(index)
            self.octets = [OctetsBehind(each) for each in self.logs]  # a master's, which takes nothing back
            self.next_number = 1 + max(
                (each[1].position for each in self.entries() if type(each[1]) is Enqueued), default=0
            )
        elif kind == 6 and random.random() < 0.3:
            index = random.randint(log.base.index, log.commit_index)
            for each in self.logs:
                each.compact(index, [began(each.epoch_at(index))])
        elif kind == 7 and random.random() < 0.1:
            base = LogSnapshot(log.last_index + 3, self.epoch, (began(self.epoch),))
            for each in self.logs:
                each.install(base)
            self.octets = [OctetsBehind(each) for each in self.logs]

    def entries(self) -> list[tuple[int, QueueStreamRecord]]:
        log = self.singles
        return [log.entry(index) for index in range(log.base.index + 1, log.last_index + 1)]

    def compare(self) -> None:
        runs, singles, random = self.runs, self.singles, self.random
        for of in ("last_index", "last", "commit_index", "payload_bytes", "appended_bytes", "has_payloads", "base"):
            assert getattr(runs, of) == getattr(singles, of), of
        assert len(runs) == len(singles)
        assert sorted(runs.uncommitted()) == sorted(singles.uncommitted())
        entries = self.entries()
        assert [runs.entry(index) for index in range(runs.base.index + 1, runs.last_index + 1)] == entries
        first, count = random.randint(singles.base.index + 1, singles.last_index + 1), random.randint(0, 20)
        found = runs.records_from(first, count)
        assert [*one_by_one(found)] == singles.records_from(first, count)
        assert entry_count(found) == len(singles.records_from(first, count))
        skipped = random.randint(0, entry_count(found))
        assert [*one_by_one(behind(found, skipped))] == [*one_by_one(found)][skipped:]
        if found:
            epoch = singles.epoch_at(first - 1) + random.randint(0, 1)
            more = [*found, enqueued_run(10**6, b"", b"")]
            assert runs.first_conflict(first, more, epoch) == singles.first_conflict(first, [*one_by_one(more)], epoch)
        for number in range(max(1, self.next_number - 30), self.next_number + 2):
            identity = SampleIdentity(WRITER, number)
            index = singles.uncommitted_index(STREAM, identity)
            assert runs.uncommitted_index(STREAM, identity) == index
            assert runs.was_taken_back(STREAM, identity) == singles.was_taken_back(STREAM, identity)
            identities = [SampleIdentity(WRITER, each) for each in range(number, number + random.randint(1, 5))]
            assert runs.has_uncommitted(STREAM, identities) == any(
                singles.uncommitted_index(STREAM, each) for each in identities
            )
            if index := runs.uncommitted_run_index(STREAM, identities):
                indexes = [singles.uncommitted_index(STREAM, each) for each in identities]
                assert indexes == [*range(index - len(identities) + 1, index + 1)]
                self.found_count += len(identities) > 1
        index = random.randint(singles.base.index, singles.last_index)
        by_runs, by_singles = (each.of(index) for each in self.octets)
        assert by_runs == by_singles


@pytest.mark.parametrize("seed", range(40))
def test_log_of_runs_is_the_log_of_its_single_records(seed: int) -> None:
    twins = Twins(seed)
    for _ in range(120):
        twins.step()
        twins.compare()
    assert twins.found_count > 10


@pytest.mark.parametrize("is_probe", [False, True])
def test_frame_contains_the_first_samples_of_a_run_that_is_too_large(is_probe: bool) -> None:
    bytes_max = PROBE_BYTES_MAX if is_probe else FRAME_BYTES_MAX
    quarter = bytes(bytes_max // 4)
    entries = [enqueued(1), enqueued_run(2, *[quarter] * 6), enqueued(8)]
    fitting, size_bytes = entries_that_fit(entries, is_probe=is_probe)
    assert fitting == (enqueued(1), enqueued_run(2, *[quarter] * 3))
    assert size_bytes == 3 * len(quarter) + len(enqueued(1).payload)


def test_larger_sample_of_a_run_is_alone_in_its_frame_and_in_no_probe() -> None:
    entries = [enqueued_run(2, bytes(FRAME_BYTES_MAX + 1), b"x"), enqueued(4)]
    assert entries_that_fit(entries)[0] == (entries[0].part(0, 1),)  # type: ignore[union-attr]
    assert not entries_that_fit(entries, is_probe=True)[0]
