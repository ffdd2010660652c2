"""The samples that entries of a log enqueued which are not committed, by identity.

A run of samples is kept as its numbers: it enters and leaves without a step for each sample.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple, TypeAlias

from qsctl.core.records import Enqueued, EnqueuedRun
from qsctl.identity import Guid, SampleIdentity

Key: TypeAlias = tuple[str, SampleIdentity]
"""A queue, by its full name, and a sample."""


class _Run(NamedTuple):
    """The numbers of a run's samples, and the index of the first one's entry."""

    first: int
    stop: int
    entry: int


class UncommittedSamples:
    """The uncommitted samples of one log."""

    def __init__(self) -> None:
        self._singles: dict[Key, int] = {}
        self._runs: dict[tuple[str, Guid], deque[_Run]] = {}
        """By queue and writer, in the order of the log."""

    def add(self, record: Enqueued, index: int) -> None:
        """Note a sample with the index of its entry."""
        self._singles[record.queue, record.identity] = index

    def add_run(self, record: EnqueuedRun, index: int) -> None:
        """Note the samples of a run with the index of the first one's entry."""
        of_writer = self._runs.setdefault((record.queue, record.identity.writer_guid), deque())
        first = record.identity.sequence_number
        of_writer.append(_Run(first, first + record.count, index))

    def commit(self, record: Enqueued) -> None:
        """Forget a sample whose entry is committed."""
        self._singles.pop((record.queue, record.identity), None)

    def commit_run(self, record: EnqueuedRun) -> None:
        """Forget samples whose entries are committed: the first ones of the oldest run of their writer."""
        key = (record.queue, record.identity.writer_guid)
        of_writer = self._runs[key]
        run, count = of_writer.popleft(), record.count
        if run.first + count < run.stop:
            of_writer.appendleft(_Run(run.first + count, run.stop, run.entry + count))
        elif not of_writer:
            del self._runs[key]

    def find(self, queue: str, identity: SampleIdentity) -> int:
        """Return the index of a sample's entry; 0: there is none that is not committed."""
        index = self._singles.get((queue, identity), 0)
        if not self._runs:
            return index
        number = identity.sequence_number
        for run in self._runs.get((queue, identity.writer_guid), ()):
            if run.first <= number < run.stop:
                index = max(index, run.entry + number - run.first)
        return index

    def find_run(self, queue: str, identities: list[SampleIdentity]) -> int:
        """Return the index of the last of these consecutive samples of a writer; 0: no single run has all."""
        first, last = identities[0].sequence_number, identities[-1].sequence_number
        for run in self._runs.get((queue, identities[0].writer_guid), ()):
            if run.first <= first and last < run.stop:
                return run.entry + last - run.first
        return 0

    def has_any(self, queue: str, identities: list[SampleIdentity]) -> bool:
        """Return whether one of these consecutive samples of a writer is uncommitted."""
        if self._singles and any((queue, identity) in self._singles for identity in identities):
            return True
        first = identities[0]
        of_writer = self._runs.get((queue, first.writer_guid))
        if of_writer is None:
            return False
        number, stop = first.sequence_number, first.sequence_number + len(identities)
        return any(number < run.stop and run.first < stop for run in of_writer)

    def items(self) -> list[tuple[Key, int]]:
        """Return queue and identity of each sample with the index of its entry."""
        return [*self._singles.items(), *chain.from_iterable(map(_samples_of, self._all_runs()))]

    def pop_from(self, from_index: int) -> list[tuple[Key, int]]:
        """Forget the samples of entries from an index on, and return them."""
        gone = [(key, index) for key, index in self.items() if index >= from_index]
        self._singles = {key: index for key, index in self._singles.items() if index < from_index}
        kept: dict[tuple[str, Guid], deque[_Run]] = {}
        for key, run in self._all_runs():
            if run.entry < from_index:
                stop = min(run.stop, run.first + from_index - run.entry)
                kept.setdefault(key, deque()).append(run._replace(stop=stop))
        self._runs = kept
        return gone

    def _all_runs(self) -> Iterator[tuple[tuple[str, Guid], _Run]]:
        return ((key, run) for key, runs in self._runs.items() for run in runs)


def _samples_of(of: tuple[tuple[str, Guid], _Run]) -> Iterator[tuple[Key, int]]:
    (queue, writer_guid), run = of
    for index, number in enumerate(range(run.first, run.stop), run.entry):
        yield (queue, SampleIdentity(writer_guid, number)), index
