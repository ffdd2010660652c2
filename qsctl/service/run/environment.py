"""The environment of a service process: the interface between the driver and its machine.

Decides: the defaults. The driver (`loop`, `stores`, `replication` and what they are made of) reaches files, threads and
randomness through an `Environment` alone, and time through that and a clock: so a simulated world steps the same
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
from qsctl.storage.base import Extent, Storage, Sync
from qsctl.storage.codec import RecordCodec
from qsctl.storage.file_system import HOST, FileSystem
from qsctl.storage.replicas.replica_log import RecordsCodec, ReplicaLog
from qsctl.storage.sqlite.store import SqliteStorage


class Syncs(Protocol):
    """One sync in progress at a time, while the service works; see `SyncThread`."""

    def begin(self, sync: Sync) -> bool:
        """Do a sync, or begin it; whether it is done. None may be in progress."""

    @property
    def is_done(self) -> bool:
        """Return whether the sync that was begun is over; `end` gives how."""

    def end(self) -> None:
        """Wait for the sync that was begun; raises what it raised."""

    def close(self) -> None:
        """Begin none any more."""


class OpenSyncs(Protocol):
    """Makes what does syncs: `on_synced` is called once one that was begun is over."""

    def __call__(self, on_synced: Callable[[], object], /, *, quick_sync_s: float) -> Syncs:
        """Return the runner of syncs; a disk that syncs in less than `quick_sync_s` is waited for, 0: none is."""


class OpenDatabase(Protocol):
    """Opens a database file as a store; see `SqliteStorage`."""

    def __call__(
        self,
        path: Path,
        settings: FilesystemSettings,
        codec: RecordCodec,
        known: Extent | None,
        /,
        *,
        discards_damaged: bool,
    ) -> Storage:
        """Open the database, which is made where it is not there."""


class OpenReplicaLog(Protocol):
    """Opens the log of a process's replicas; see `ReplicaLog`."""

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
        """No file is made before it is written."""


class Environment(NamedTuple):
    """The machine of a process."""

    disk: FileSystem = HOST
    open_database: OpenDatabase = SqliteStorage
    open_syncs: OpenSyncs = SyncThread
    steady: Callable[[], Nanoseconds] = time.monotonic_ns
    """A clock that is never set."""
    jitter: Jitter = random.SystemRandom().random
    """Spreads elections."""
    open_replica_log: OpenReplicaLog = ReplicaLog


HOST_ENVIRONMENT = Environment()
"""The operating system's files, a thread for syncs, and the system's randomness."""
