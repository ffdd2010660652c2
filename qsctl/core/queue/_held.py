"""The samples of a queue by identity, and the identities that it recently retired [QS 2.9 and 5.2.2].

Decides: how long a retired identity is remembered, so that a second sample with it is recognized as a duplicate. Every
held sample passed `Held.enter`: samples that `Entry` enqueued, and samples that `QueueReplay` restored from a store or
from the log of a replication group, for which an `Entry` had decided before.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import takewhile
from operator import attrgetter
from typing import Final

from qsctl.core.queue._run import FORGOTTEN, RETIRED, SINGLE, Run
from qsctl.core.queue.sample import Sample
from qsctl.identity import Guid, SampleIdentity, identities_from

RETIRED_IDENTITIES_MAX: Final = 8_192
"""Number of remembered identities: far more than a producer, whose send window is finite, repeats unacknowledged."""


_POSITION: Final = attrgetter("position")


class RunsOfWriter:
    """The runs of one writer that are held or remembered, by number; no two of them overlap."""

    __slots__ = ("numbers", "runs")

    def __init__(self) -> None:
        self.numbers: list[int] = []
        """The first number of each run."""
        self.runs: list[Run] = []

    def free_count(self, first: int, count: int) -> int:
        """Return how many of these consecutive numbers precede the first that a run has."""
        at = bisect_right(self.numbers, first)
        if at and first - self.numbers[at - 1] < self.runs[at - 1].count:
            return 0
        return min(count, self.numbers[at] - first) if at < len(self.numbers) else count

    def add(self, run: Run) -> None:
        """Add a run."""
        at = bisect_right(self.numbers, run.first_number)
        self.numbers.insert(at, run.first_number)
        self.runs.insert(at, run)

    def remove(self, run: Run) -> None:
        """Remove a run."""
        at = bisect_right(self.numbers, run.first_number) - 1
        del self.numbers[at], self.runs[at]


class Held:
    """The identities that may not enter again: of held samples and of retired ones.

    Samples by themselves are in one dictionary, a retired one as None. It is in queue order: positions only grow, and a
    dictionary keeps the order of insertion. Samples of runs are found by writer and number.
    """

    __slots__ = (
        "_held_runs",
        "_in_runs_count",
        "_retired",
        "_retired_in_runs_count",
        "_retired_ranges_count",
        "known",
        "next_position",
        "runs",
    )

    def __init__(self) -> None:
        self.known: dict[SampleIdentity, Sample | None] = {}
        """The samples by themselves. Read by all parts of the queue; changed only here."""
        self.runs: dict[Guid, RunsOfWriter] = {}
        """The runs, by writer. Read by all parts of the queue; changed only here."""
        self._held_runs: dict[int, Run] = {}
        """The runs with held samples, by position, in queue order."""
        self._in_runs_count = 0
        """Number of held samples in runs."""
        self._retired: deque[SampleIdentity | tuple[Run, range]] = deque()
        self._retired_ranges_count = 0
        """Number of entries of `_retired` that are ranges of a run."""
        self._retired_in_runs_count = 0
        """Number of samples in these ranges."""
        self.next_position = 1

    def __len__(self) -> int:
        return len(self.known) - (len(self._retired) - self._retired_ranges_count) + self._in_runs_count

    def __iter__(self) -> Iterator[Sample]:
        """Yield the held samples in queue order; a sample of a run is a copy, see `current`."""
        singles = filter(None, self.known.values())
        return _in_queue_order(singles, self._held_runs.values()) if self._held_runs else singles

    # Samples of runs.

    def run_of(self, identity: SampleIdentity) -> Run | None:
        """Return the run that has this identity and remembers it; None: there is none."""
        of_writer = self.runs.get(identity.writer_guid)
        if of_writer is None:
            return None
        number = identity.sequence_number
        if at := bisect_right(of_writer.numbers, number):
            run = of_writer.runs[at - 1]
            offset = number - run.first_number
            if offset < run.count and run.marks[offset] != FORGOTTEN:
                return run
        return None

    def knows(self, identity: SampleIdentity) -> bool:
        """Return whether a sample of this identity is held or was recently retired."""
        return identity in self.known or (bool(self.runs) and self.run_of(identity) is not None)

    def find(self, identity: SampleIdentity) -> Sample | None:
        """Return the held sample of this identity, see `current` for one in a run; None: it is not held."""
        sample = self.known.get(identity)
        if sample is None and self.runs and (run := self.run_of(identity)) is not None:
            offset = identity.sequence_number - run.first_number
            return run.view(offset) if run.marks[offset] != RETIRED else None
        return sample

    def is_held(self, sample: Sample) -> bool:
        """Return whether the queue holds this sample."""
        found = self.find(sample.identity)
        return found is not None and found.position == sample.position

    def current(self, sample: Sample) -> Sample:
        """Return the object of a held sample, which steps may change: a sample of a run is singled out."""
        if self.runs and self.known.get(sample.identity) is None:
            run = self.run_of(sample.identity)
            assert run is not None
            return run.single_out(sample.identity.sequence_number - run.first_number)
        return sample

    def admits_run(self, first: SampleIdentity, count: int) -> bool:
        """Return whether none of these consecutive identities is known, nor among the numbers of another run."""
        return self.new_count(first, count) == count

    def new_count(self, first: SampleIdentity, count: int) -> int:
        """Return how many of these consecutive identities precede the first that `admits_run` would not admit."""
        if (of_writer := self.runs.get(first.writer_guid)) is not None:
            count = of_writer.free_count(first.sequence_number, count)
        known = self.known
        if known and count:
            identities = identities_from(first, count)
            if not known.keys().isdisjoint(identities):
                return next(at for at, each in enumerate(identities) if each in known)
        return count

    def enter_run(self, run: Run) -> None:
        """Hold the samples of a run, which `admits_run` admitted."""
        of_writer = self.runs.get(run.writer_guid)
        if of_writer is None:
            of_writer = self.runs[run.writer_guid] = RunsOfWriter()
        of_writer.add(run)
        self._held_runs[run.position] = run
        self._in_runs_count += run.count
        # In a compacted store the next position precedes the held samples.
        self.go_beyond(run.position + run.count - 1)

    def retire_range(self, run: Run, offsets: range, count: int) -> None:
        """Remove samples of a run, and remember their identities for a while."""
        run.leave(offsets, count)
        if not run.held_count:
            del self._held_runs[run.position]
        self._in_runs_count -= count
        self._retired.append((run, offsets))
        self._retired_ranges_count += 1
        self._retired_in_runs_count += count
        if len(self._retired) - self._retired_ranges_count + self._retired_in_runs_count > RETIRED_IDENTITIES_MAX:
            self._forget_oldest()

    def _forget_oldest(self) -> None:
        retired = self._retired
        excess = len(retired) - self._retired_ranges_count + self._retired_in_runs_count - RETIRED_IDENTITIES_MAX
        while excess > 0:
            oldest = retired.popleft()
            if isinstance(oldest, SampleIdentity):
                del self.known[oldest]
                excess -= 1
                continue
            run, offsets = oldest
            if len(offsets) > excess:
                retired.appendleft((run, offsets[excess:]))
                offsets = offsets[:excess]
            else:
                self._retired_ranges_count -= 1
            self._forget_range(run, offsets)
            excess -= len(offsets)

    def _forget_range(self, run: Run, offsets: range) -> None:
        count = len(offsets)
        run.marks[offsets.start : offsets.stop : offsets.step] = b"\x04" * count
        self._retired_in_runs_count -= count
        run.remembered_count -= count
        if not run.remembered_count:
            of_writer = self.runs[run.writer_guid]
            of_writer.remove(run)
            if not of_writer.runs:
                del self.runs[run.writer_guid]

    # Samples by themselves.

    def enter(self, sample: Sample) -> bool:
        """Hold a sample; return False if its identity is held, or was retired at this position or a later one.

        A retired identity may enter again, at a position behind all earlier ones, if a command brings it.
        """
        # One look-up: a restart may bring a million samples.
        known, identity = self.known, sample.identity
        if known.setdefault(identity, sample) is not sample:
            if known[identity] is not None or sample.position < self.next_position:
                return False
            self.forget(identity)
            known[identity] = sample
        # In a compacted store the next position precedes the held samples.
        if sample.position >= self.next_position:
            self.next_position = sample.position + 1
        return True

    def enter_stored(self, sample: Sample) -> bool:
        """Hold a sample from a store as `enter` does, which ignores the samples of runs."""
        if self.runs and (run := self.run_of(sample.identity)) is not None:
            offset = sample.identity.sequence_number - run.first_number
            if run.marks[offset] != RETIRED or sample.position < self.next_position:
                return False
            self.forget(sample.identity)
        return self.enter(sample)

    def go_beyond(self, position: int) -> None:
        """Ensure that new samples get positions behind this one."""
        self.next_position = max(self.next_position, position + 1)

    def retire(self, sample: Sample) -> None:
        """Remove a sample and remember its identity for a while."""
        if self.runs:
            self._retire_beside_runs(sample)
            return
        self.known[sample.identity] = None
        retired = self._retired
        retired.append(sample.identity)
        if len(retired) > RETIRED_IDENTITIES_MAX:
            del self.known[retired.popleft()]  # type: ignore[arg-type]

    def _retire_beside_runs(self, sample: Sample) -> None:
        identity = sample.identity
        if (run := self.run_of(identity)) is not None:
            offset = identity.sequence_number - run.first_number
            if run.marks[offset] == SINGLE and run.samples.get(offset) is sample:
                del run.samples[offset]
                self.retire_range(run, range(offset, offset + 1), 1)
                return
        self.known[identity] = None
        self._retired.append(identity)
        self._forget_oldest()

    def make_way(self, identity: SampleIdentity) -> None:
        """Forget an identity that a run has retired, because a command brings a sample of it."""
        if self.runs and self.run_of(identity) is not None:
            self.forget(identity)

    def forget(self, identity: SampleIdentity) -> None:
        """Forget a retired identity, so that a sample with it may enter again."""
        if identity in self.known:
            self._retired.remove(identity)
            del self.known[identity]
            return
        run = self.run_of(identity)
        assert run is not None
        offset = identity.sequence_number - run.first_number
        at = next(
            at for at, each in enumerate(self._retired) if type(each) is tuple and each[0] is run and offset in each[1]
        )
        offsets = self._retired[at][1]  # type: ignore[index]
        del self._retired[at]
        self._retired_ranges_count -= 1
        index = offsets.index(offset)
        for part in (offsets[index + 1 :], offsets[:index]):
            if part:
                self._retired.insert(at, (run, part))
                self._retired_ranges_count += 1
        self._forget_range(run, range(offset, offset + 1))

    def retired(self) -> tuple[SampleIdentity, ...]:
        """Return the remembered identities, oldest first."""
        if not self._retired_ranges_count:
            return tuple(self._retired)  # type: ignore[arg-type]
        return tuple(identity for each in self._retired for identity in _identities(each))

    def newer_than(self, position: int) -> Iterator[Sample]:
        """Return the samples that are held now behind a position, in queue order.

        A sample of a run is a copy of it as it is when the iterator reaches it, see `current`; then it may have left.
        """
        return _singles_of(self.entries_behind(position), position)

    def entries_behind(self, position: int) -> list[Sample | Run]:
        """Return the samples by themselves, and the runs with held samples, that have later positions, in queue order.

        A run has no object for each sample: a queue with a million samples has few entries.
        """
        singles = takewhile(lambda sample: sample.position > position, filter(None, reversed(self.known.values())))
        if not self._held_runs:
            entries: list[Sample | Run] = [*singles]
            return entries[::-1]
        runs = takewhile(lambda run: run.position + run.count - 1 > position, reversed(self._held_runs.values()))
        return sorted((*singles, *runs), key=_POSITION)

    def sizes_bytes(self) -> Iterator[int]:
        """Yield the size of the payload of each held sample, in no order."""
        for sample in filter(None, self.known.values()):
            yield sample.size_bytes
        for run in self._held_runs.values():
            yield from run.sizes_bytes()

    @property
    def run_count(self) -> int:
        """Return the number of runs with held samples."""
        return len(self._held_runs)

    def holds_run(self, run: Run) -> bool:
        """Return whether samples of this run are held."""
        return self._held_runs.get(run.position) is run

    def clear(self) -> None:
        """Drop all samples and remembered identities, as in a queue that was just created."""
        for collection in (self.known, self.runs, self._held_runs, self._retired):
            collection.clear()
        self._in_runs_count = self._retired_ranges_count = self._retired_in_runs_count = 0
        self.next_position = 1

    def remember(self, next_position: int, identities: Iterable[SampleIdentity]) -> None:
        """Restore the next position and the retired identities from the state of a compacted store."""
        self.next_position = max(self.next_position, next_position)
        for identity in self.retired():
            self.forget(identity)
        for identity in identities:
            if not self.knows(identity):
                self.known[identity] = None
                self._retired.append(identity)


def _in_queue_order(singles: Iterator[Sample], runs: Iterable[Run]) -> Iterator[Sample]:
    """Yield samples by themselves and the held ones of runs, both of which are in queue order."""
    single = next(singles, None)
    for run in runs:
        while single is not None and single.position < run.position:
            yield single
            single = next(singles, None)
        yield from run.views()
    if single is not None:
        yield single
        yield from singles


def _singles_of(entries: Iterable[Sample | Run], position: int) -> Iterator[Sample]:
    """Yield samples by themselves, and those held samples of runs that are behind a position."""
    for entry in entries:
        if isinstance(entry, Run):
            yield from entry.views(max(0, position + 1 - entry.position))
        else:
            yield entry


def _identities(retired: SampleIdentity | tuple[Run, range]) -> Iterator[SampleIdentity]:
    """Yield the identities of one entry of the retired samples."""
    if isinstance(retired, SampleIdentity):
        yield retired
        return
    run, offsets = retired
    for offset in offsets:
        yield SampleIdentity(run.writer_guid, run.first_number + offset)
