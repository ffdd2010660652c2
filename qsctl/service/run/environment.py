"""The environment of a service process: the interface between the driver and its machine.

Decides: the defaults. The driver (`loop`, `stores`, `replication` and their parts) accesses files, threads and
randomness through an `Environment` only, and time through that and a clock, so that a simulated world can step the same
driver.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Protocol

from qsctl.config.filesystem import FilesystemSettings
from qsctl.core.high_availability.roles import Jitter
from qsctl.instant import Nanoseconds
from qsctl.service.stores.sync_thread import SyncThread
from qsctl.storage.base import DatabaseStorage, Extent, Sync
from qsctl.storage.codec import RecordCodec
from qsctl.storage.file_system import HOST, FileSystem
from qsctl.storage.replicas.replica_log import ReplicaLog
from qsctl.storage.replicas.replica_operations import RecordsCodec
from qsctl.storage.sqlite.store import SqliteStorage


class Syncs(Protocol):
    """A runner of syncs, at most one in progress while the service works; see `SyncThread`."""

    def begin(self, sync: Sync) -> bool:
        """Start a sync, while none is in progress; return whether it is finished already."""

    @property
    def is_done(self) -> bool:
        """Return whether the sync in progress is finished; `end` returns or raises its result."""

    def end(self) -> None:
        """Wait for the sync in progress, and raise its error."""

    def close(self) -> None:
        """Accept no more syncs."""


class OpenSyncs(Protocol):
    """Function that creates a runner of syncs; `on_synced` is called when a sync in the background has finished."""

    def __call__(self, on_synced: Callable[[], object], /, *, quick_sync_s: float) -> Syncs:
        """Return the runner; a sync faster than `quick_sync_s` runs in the calling thread, 0: none does."""


class OpenDatabase(Protocol):
    """Function that opens a database file as a store; see `SqliteStorage`."""

    def __call__(
        self,
        path: Path,
        settings: FilesystemSettings,
        codec: RecordCodec,
        known: Extent | None,
        /,
        *,
        discards_damaged: bool,
    ) -> DatabaseStorage:
        """Open the database, creating it where it is missing."""


class OpenReplicaLog(Protocol):
    """Function that opens the log of a process's replicas; see `ReplicaLog`."""

    def __call__(
        self,
        stem: Path,
        settings: FilesystemSettings,
        records: RecordsCodec,
        known: Extent | None,
        note: Callable[[Extent], None],
        disk: FileSystem,
        /,
    ) -> ReplicaLog:
        """Open the log; the first write creates its first file."""


class Environment(NamedTuple):
    """The access of a process to its machine: files, threads, randomness and a steady clock."""

    disk: FileSystem = HOST
    open_database: OpenDatabase = SqliteStorage
    open_syncs: OpenSyncs = SyncThread
    steady: Callable[[], Nanoseconds] = time.monotonic_ns
    """A clock that is never set."""
    jitter: Jitter = random.SystemRandom().random
    """Source of randomness, which spreads elections."""
    open_replica_log: OpenReplicaLog = ReplicaLog


HOST_ENVIRONMENT = Environment()
"""The operating system's files, a thread for syncs, and the system's randomness."""
