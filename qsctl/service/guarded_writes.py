"""Writes to the stores of queues, so that a disk that refuses concerns the queue whose store it refuses [QS 2.14.2].

Decides: what is tried again. What was undone as a whole for lack of room is, with the room of the reserve; a sync that
failed is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from qsctl.core.messages import QueueName
from qsctl.core.records import Record
from qsctl.errors import Damaged
from qsctl.service.store_files import StoreFiles
from qsctl.service.withholding import Failure
from qsctl.storage.base import Storage, Sync
from qsctl.storage.logged import LoggedStorage, write_group


class GuardedWrites:
    """Both halves of every write. The second may be done in another thread."""

    def __init__(self, files: StoreFiles) -> None:
        self._files = files
        self.failures: dict[QueueName, Failure] = {}
        """The queues of which nothing can be stored for now, see `qsctl.service.recovery`."""

    def begin(self, name: QueueName, store: Storage, records: Sequence[Record], *, may_defer: bool) -> Sync | None:
        """Write records; returns what is left to do until they are durable."""
        if name in self.failures:
            return None
        try:
            sync = self._files.with_reserve(partial(store.write_deferred if may_defer else store.write, records))
        except Damaged as error:
            self.fail(name, error)
            return None
        return None if sync is None else partial(self.finish, name, sync)

    def begin_group(
        self, batch: Mapping[QueueName, Sequence[Record]], stores: Mapping[QueueName, Storage], *, may_defer: bool
    ) -> Sync | None:
        """Begin the same for queues that share a write-ahead log: one append, and one sync."""
        names = [name for name in batch if name not in self.failures]
        streams = [(store, batch[name]) for name in names if isinstance(store := stores[name], LoggedStorage)]
        if not streams:
            return None
        log = streams[0][0].log
        try:
            sync = self._files.with_reserve(partial(write_group, log, streams))
        except Damaged as error:
            self._fail_all(names, error)
            return None
        return None if sync is None or may_defer else partial(self.finish_all, names, sync)

    def finish_all(self, names: Sequence[QueueName], sync: Sync) -> None:
        """Do the second half for queues that share a log."""
        try:
            self._files.with_reserve(sync)
        except Damaged as error:
            self._fail_all(names, error)

    def _fail_all(self, names: Iterable[QueueName], error: Damaged) -> None:
        for name in names:
            self.fail(name, error)

    def finish(self, name: QueueName, sync: Sync) -> None:
        """Do the second half."""
        if name in self.failures:
            return
        try:
            self._files.with_reserve(sync)
        except Damaged as error:
            self.fail(name, error)

    def fail(self, name: QueueName, error: Damaged) -> None:
        """Store nothing more of a queue until the whole of it was stored anew."""
        self.failures.setdefault(name, Failure(error))
