"""Which stores a batch of records goes to, in which order, and what they share [QS 2.14.2].

Decides: that no sample is gone from its queue before it is among the dead letters, or in the queue that a command moves
it to. Queues that share a write-ahead log share an append, in which that is the order; other files are synced in it.
Where one of the two cannot be stored, neither counts as stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from qsctl.core.messages import QueueName
from qsctl.core.records import Record
from qsctl.service.guarded_writes import GuardedWrites
from qsctl.service.places import Places
from qsctl.storage.base import Storage, Sync
from qsctl.storage.logged import LoggedStorage
from qsctl.storage.write_ahead_log import WriteAheadLog


class QueueWrites:
    """Writes to the stores of queues, where `places` they have."""

    def __init__(self, queues: Mapping[QueueName, Storage], guarded: GuardedWrites) -> None:
        self.places: Places = {}
        self._queues = queues
        self._guarded = guarded

    def write_moves(self, batch: Mapping[QueueName, Sequence[Record]]) -> Sync | None:
        """Write the records of a turn that moves samples, in order; return the sync that is left to do, or None.

        A file is synced before the next one is written, so that a sample is in its target before it leaves its source.
        """
        groups: list[list[QueueName]] = []
        for name in batch:
            log = log_of(self._queues[name])
            if groups and log is not None and log_of(self._queues[groups[-1][-1]]) is log:
                groups[-1].append(name)
            else:
                groups.append([name])
        self._fail_with_others(batch)
        left: Sync | None = None
        for group in groups:
            if left is not None:
                left()
                self._fail_with_others(batch)
            left = self._write_group(group, batch, may_defer=False)
            self._fail_with_others(batch)
        return None if left is None else partial(self._end_moves, left, tuple(batch))

    def _end_moves(self, sync: Sync, names: Iterable[QueueName]) -> None:
        sync()
        self._fail_with_others(names)

    def _fail_with_others(self, names: Iterable[QueueName]) -> None:
        """Store nothing more of any of these queues where one of them cannot be stored."""
        failures = self._guarded.failures
        failure = next((failures[name] for name in names if name in failures), None)
        if failure is not None:
            for name in names:
                self._guarded.fail(name, failure.error)

    def write(self, batch: Mapping[QueueName, Sequence[Record]], *, may_defer: bool = False) -> Sync | None:
        """Return what is left to do for the queues' own stores. Those that share a log share an append, and a sync."""
        dead_letters = list(filter(self._is_dead_letter, batch))
        names = [*dead_letters, *(name for name in batch if name not in dead_letters)]
        logs = {log_of(self._queues[name]) for name in names}
        if dead_letters and (len(logs) > 1 or None in logs):
            for name in dead_letters:  # what is in another file would not wait for them
                sync = self._write_group([name], batch, may_defer=False)
                if sync is not None:
                    sync()
            names = names[len(dead_letters) :]
        for name in names:
            if (of_dead := self._dead_letters_of(name)) in batch and of_dead in self._guarded.failures:
                self._guarded.fail(
                    name, self._guarded.failures[of_dead].error
                )  # else a dead sample would be in neither
        groups: dict[WriteAheadLog | QueueName, list[QueueName]] = {}
        for name in names:
            groups.setdefault(log_of(self._queues[name]) or name, []).append(name)
        syncs = [self._write_group(group, batch, may_defer=may_defer) for group in groups.values()]
        left = [sync for sync in syncs if sync is not None]
        return partial(_do_all, left) if len(left) > 1 else left[0] if left else None

    def _write_group(
        self, names: Sequence[QueueName], batch: Mapping[QueueName, Sequence[Record]], *, may_defer: bool
    ) -> Sync | None:
        """Write the records of one queue, or of some that share a log."""
        if log_of(self._queues[names[0]]) is None:
            return self._guarded.begin(names[0], self._queues[names[0]], batch[names[0]], may_defer=may_defer)
        return self._guarded.begin_group({name: batch[name] for name in names}, self._queues, may_defer=may_defer)

    def _dead_letters_of(self, name: QueueName) -> QueueName:
        place = self.places.get(name)
        return f"{name.rpartition('/')[0]}/{place.settings.dead_letter_queue}" if place is not None else ""

    def _is_dead_letter(self, name: QueueName) -> bool:
        place = self.places.get(name)
        return place is not None and place.settings.is_dead_letter


def log_of(store: Storage) -> WriteAheadLog | None:
    """Return the log that a store shares with others; None: it has files of its own only."""
    return store.log if isinstance(store, LoggedStorage) else None


def _do_all(syncs: Sequence[Sync]) -> None:
    for sync in syncs:
        sync()
