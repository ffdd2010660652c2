"""The recovery database on disk: a database file with the records of the integration engine [CLOVERLEAF].

Decides: who may use the file, and how it is read by those who only look. The error database is in the same file: a
message leaves the one for the other in one record.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final, NamedTuple

import filelock

from qsctl.config.filesystem import FilesystemSettings, JournalMode, Synchronization
from qsctl.core.integration.database import Database
from qsctl.errors import InvalidInput, NotFound, Refused
from qsctl.sim.engine.peers import Peers, PeersChanged, StoredRecord, peers_of_earlier
from qsctl.sim.engine.recovery_codec import RECOVERY_CODEC
from qsctl.storage.damage import DamageReport
from qsctl.storage.names import refuse_link
from qsctl.storage.sqlite import SqliteStorage
from qsctl.storage.sqlite_file import MAGIC

_SETTINGS: Final = FilesystemSettings(journal_mode=JournalMode.WAL, synchronization=Synchronization.FULL)
LOCK_SUFFIX: Final = ".lock"
_WAL: Final = "-wal"
_SIDE_FILES: Final = (_WAL, "-journal")
"""What a copy needs; the index of the log is made anew."""
_LOG_HEADER_BYTES: Final = 32
_MOST_COPIES: Final = 20


class RecoveryContent(NamedTuple):
    """What is in a recovery database, and what of it was found damaged."""

    database: Database
    peers: Peers
    damage: Sequence[DamageReport]


class RecoveryStore:
    """A recovery database that is open for writing; the file is made when it is not there.

    `database` and `peers` are what it says, and follow what is appended.

    Raises:
        NotFound: the directory does not exist.
        InvalidInput: a link, a device or some other file stands in the file's place.
        Damaged: the disk refuses.
        Refused: an engine or another command uses it.
    """

    def __init__(self, path: Path, settings: FilesystemSettings = _SETTINGS) -> None:
        self.path = path
        _check_place(path)
        self._lock = filelock.FileLock(path.with_name(path.name + LOCK_SUFFIX), mode=0o600, timeout=0)
        try:
            self._lock.acquire()
        except filelock.Timeout as error:
            raise Refused(
                f"{path} is in use by another process",
                remedy="Stop the engine that uses it, or let the other command end.",
            ) from error
        try:
            self._storage = SqliteStorage(path, settings, RECOVERY_CODEC)
            self.database, self.peers = _described(self._storage.load())
        except BaseException:
            self._lock.release()
            raise

    @property
    def damage(self) -> Sequence[DamageReport]:
        """What was found broken when it was opened."""
        return self._storage.damage

    def append(self, records: Sequence[StoredRecord]) -> None:
        """Keep the records, all or none; durable when it returns.

        Raises:
            Damaged: the disk refused; nothing of them will be loaded.
        """
        if not records:
            return
        self._storage.append(records)
        for record in records:
            if isinstance(record, PeersChanged):
                self.peers.apply(record)
            else:
                self.database.apply(record)

    def compact(self) -> None:
        """Write it anew where records that no longer matter take more room than those that do.

        Raises:
            Damaged: the disk refused; the old content stays.
        """
        if self._storage.worth_compacting():
            peers = [self.peers.snapshot()] if self.peers.is_known else []
            self._storage.compact([*self.database.snapshot(), *peers])

    def abandon(self) -> None:
        """Let go of the file as it is, after a write failed."""
        self._storage.abandon()
        self._lock.release()

    def close(self) -> None:
        """Let go of the file."""
        try:
            self._storage.close()
        finally:
            self._lock.release()


def is_in_use(path: Path) -> bool:
    """Whether an engine or a command has a recovery database open for writing; nothing is changed."""
    lock = path.with_name(path.name + LOCK_SUFFIX)
    if not lock.exists():
        return False
    try:
        with filelock.FileLock(lock, mode=0o600, timeout=0):
            return False
    except filelock.Timeout:
        return True


def _check_place(path: Path) -> None:
    """Let no other file be taken for a damaged database, and set aside."""
    if not path.parent.is_dir():
        raise NotFound(f"{path}: there is no such directory", remedy="Make it first, or name another one.")
    refuse_link(path)
    if path.exists() and path.stat().st_size and not _is_database(path):
        raise InvalidInput(
            f"{path} is no recovery database", remedy="Name a new file, or one that `qsctl engine run` made."
        )


def _is_database(path: Path) -> bool:
    with path.open("rb") as file:
        start = file.read(len(MAGIC))
    # What is not in the file yet is in its log, or an engine is about to write it.
    return start == MAGIC or (not start and (path.with_name(f"{path.name}{_WAL}").exists() or is_in_use(path)))


def read_recovery_database(path: Path) -> RecoveryContent:
    """Read a recovery database, also while an engine uses it; nothing of it is changed.

    Raises:
        NotFound: there is no such file.
        InvalidInput: it is something else; an empty file is no database in which everything was delivered.
        Damaged: it cannot be read.
    """
    if not path.is_file():
        raise NotFound(f"{path}: there is no recovery database", remedy="Name the file that `qsctl engine run` made.")
    if not _is_database(path):
        raise InvalidInput(
            f"{path} is no recovery database",
            remedy=f"Name the file that `qsctl engine run` made; a listing is read by qsctl engine dump --file {path}.",
        )
    with tempfile.TemporaryDirectory(prefix="qsctl-recovery-") as name:
        copy = Path(name) / path.name
        _copy(path, copy)
        with closing(SqliteStorage(copy, _SETTINGS, RECOVERY_CODEC)) as storage:
            database, peers = _described(storage.load())
            return RecoveryContent(database, peers, tuple(storage.damage))


def _described(records: Iterable[StoredRecord]) -> tuple[Database, Peers]:
    """Return what records describe together; where none is of the peers, what can be concluded of them."""
    database, peers = Database(), Peers()
    for record in records:
        if isinstance(record, PeersChanged):
            peers.apply(record)
        else:
            database.apply(record)
    return database, peers if peers.is_known or not database.start else peers_of_earlier(database)


def _copy(path: Path, copy: Path) -> None:
    """Copy a database and its log as they belong together: a log that began anew in between is not that of the copy."""
    for _ in range(_MOST_COPIES):
        before = _log_generation(path)
        for suffix in ("", *_SIDE_FILES):
            side = path.with_name(path.name + suffix)
            copied = copy.with_name(copy.name + suffix)
            copied.unlink(missing_ok=True)
            with contextlib.suppress(FileNotFoundError):  # side files come and go
                shutil.copyfile(side, copied)
        if _log_generation(path) == before:
            return
    raise Refused(f"{path} changes too fast to be read", remedy="Try again, or stop the engine that uses it.")


def _log_generation(path: Path) -> bytes:
    """The salts in the header of the log, which are new whenever it begins anew."""
    try:
        with path.with_name(f"{path.name}{_WAL}").open("rb") as log:
            return log.read(_LOG_HEADER_BYTES)
    except FileNotFoundError:
        return b""
