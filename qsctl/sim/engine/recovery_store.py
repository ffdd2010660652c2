"""The recovery database on disk: a database file with the records of the integration engine [CLOVERLEAF].

Decides: the exclusive use of the file, and the handling of a damaged one. The error database is in the same file: a
single record moves a message from one to the other. Recognition and reading of the file are in `_recovery_file`, for
readers and writers alike.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

import filelock

from qsctl.config.filesystem import FilesystemSettings, JournalMode, Synchronization
from qsctl.core.integration.database import Database
from qsctl.core.integration.records import STREAM
from qsctl.endings import TemporaryFile, TemporaryFolder
from qsctl.errors import Damaged, NotFound, Refused
from qsctl.identity import DrawIncarnation, Incarnation
from qsctl.sim.engine._peers import DatabaseMade, Peers, PeersChanged, StoredRecord
from qsctl.sim.engine._recovery_codec import RECOVERY_CODEC
from qsctl.sim.engine._recovery_file import FORMAT, KIND, LOG, RecoveryContent, content_of, make_database
from qsctl.storage.damage import DamageKind, DamageReport, set_aside_name
from qsctl.storage.names import refuse_link, sync_directory, unshare
from qsctl.storage.sqlite.store import SqliteStorage

_SETTINGS: Final = FilesystemSettings(journal_mode=JournalMode.WAL, synchronization=Synchronization.FULL)
LOCK_SUFFIX: Final = ".lock"
_RUN: Final = "Name the file that `qsctl engine run` made"


def draw_incarnation() -> Incarnation:
    """Return a random incarnation for a new database."""
    return Incarnation(secrets.randbits(63) or 1)


class RecoveryStore:
    """A recovery database that is open for writing; a missing file is created.

    `database` and `peers` are its content, and follow appended records. The readable records of a damaged file are
    copied to a new one in its place, and the damaged one is kept beside it.

    Args:
        path: path of the file.
        settings: the storage settings, such as the synchronization.
        scenario: the scenario that the database must belong to; empty: any.
        discards_damaged: whether to create a new database where the file is unreadable, and to continue without a
            missing log; the old file is kept beside the new one.
        draw: function that draws the incarnation of a new database.

    Raises:
        NotFound: the directory does not exist.
        InvalidInput: a link or a device is in the file's place.
        Damaged: the file is of another kind or scenario, nothing of it is readable, or the disk reports an error.
        Refused: an engine or another command uses the file.
    """

    def __init__(
        self,
        path: Path,
        settings: FilesystemSettings = _SETTINGS,
        *,
        scenario: str = "",
        discards_damaged: bool = False,
        draw: DrawIncarnation = draw_incarnation,
    ) -> None:
        self.path = path
        if not path.parent.is_dir():
            raise NotFound(f"{path}: there is no such directory", remedy="Make it first, or name another one.")
        refuse_link(path)
        self._lock = filelock.FileLock(path.with_name(path.name + LOCK_SUFFIX), mode=0o600, timeout=0)
        self._descriptor = -1
        try:
            self._lock.acquire()
        except filelock.Timeout as error:
            raise _in_use(path) from error
        try:
            content = self._prepared(scenario, discards_damaged, draw)
            unshare(path)  # another name of the file is a copy from here on
            self._descriptor = _locked(path)
            self.database, self.peers, self.damage = content.database, content.peers, content.damage
            assert content.made is not None
            self.made = content.made
            self.peers.incarnation = self.made.incarnation
            self._storage = SqliteStorage(path, settings, RECOVERY_CODEC, stream=KIND)
            sync_directory(path.parent)  # the log is beside the file from here on
        except BaseException:
            self._release()
            raise

    def append(self, records: Sequence[StoredRecord], *, is_applied: bool = False) -> None:
        """Append the records atomically; they are durable when this returns.

        `is_applied`: `database` contains them already, since it is the database of the engine that created them.

        Raises:
            Damaged: the disk reported an error; none of the records will be loaded.
        """
        if not records:
            return
        self._storage.append(records)
        for record in records:
            if isinstance(record, PeersChanged):
                self.peers.apply(record)
            elif not (is_applied or isinstance(record, DatabaseMade)):
                self.database.apply(record)

    def compact(self) -> None:
        """Rewrite the file if obsolete records occupy more space than current ones.

        Raises:
            Damaged: the disk reported an error; the old content remains.
        """
        if self._storage.worth_compacting():
            self._storage.compact(_snapshot(self.made, self.database, self.peers))

    def abandon(self) -> None:
        """Close the file without further writes, after a write failed."""
        self._storage.abandon()
        self._release()

    def close(self) -> None:
        """Close the file, and release it for other processes."""
        try:
            self._storage.close()
        finally:
            self._release()

    def _release(self) -> None:
        """Close the file with the log merged into it, so that the next user needs no log beside it."""
        if self._descriptor >= 0:
            with suppress(sqlite3.Error):
                _put_into_one_file(self.path)
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        self._lock.release()

    def _prepared(self, scenario: str, discards_damaged: bool, draw: DrawIncarnation) -> RecoveryContent:
        """Create, convert or salvage the file so that it can be written; return its content."""
        path = self.path
        if not path.exists():
            if path.with_name(path.name + LOG).exists():
                raise Damaged(
                    f"{path} is missing, and its log {path.name}{LOG} is there",
                    remedy="Put back the file that belongs to it; or remove the log, and lose what is in it.",
                )
            return self._begun(scenario, draw, ())
        os.close(_locked(path))
        content = _judged(path)
        if content is None:
            if not discards_damaged:
                raise _unreadable(path, "Put back a copy of it; or lose what was in it with --discard-damaged.")
            report = DamageReport(path, 0, path.stat().st_size, DamageKind.UNREADABLE, "nothing of it can be read")
            return self._begun(scenario, draw, (report,))
        _check_scenario(path, content, scenario)
        if content.lacks_log and not discards_damaged:
            raise Damaged(
                f"{content.damage[0].file}: {content.damage[0].what}",
                remedy=f"Put {path.name}{LOG} beside it; or lose what is in that with --discard-damaged.",
            )
        if content.is_current:
            return content
        made = content.made or DatabaseMade(STREAM, 0, FORMAT, content.peers.incarnation or draw(), scenario)
        kept = _replace(path, _snapshot(made, content.database, content.peers), keep=bool(content.damage))
        damage = tuple(DamageReport(e.file, e.offset, e.size_bytes, e.kind, e.what, kept) for e in content.damage)
        return content._replace(made=made, damage=damage)

    def _begun(self, scenario: str, draw: DrawIncarnation, damage: Sequence[DamageReport]) -> RecoveryContent:
        """Create a new database and return its content; an existing file is kept beside it."""
        made = DatabaseMade(STREAM, 0, FORMAT, draw(), scenario)
        kept = _replace(self.path, [made], keep=self.path.exists())
        reports = tuple(DamageReport(e.file, e.offset, e.size_bytes, e.kind, e.what, kept) for e in damage)
        return RecoveryContent(Database(), Peers(), made, reports, True)


def is_in_use(path: Path) -> bool:
    """Return whether an engine or a command has a recovery database open for writing, by this name or another."""
    try:
        if path.exists():
            os.close(_locked(path))
        lock = path.with_name(path.name + LOCK_SUFFIX)
        if lock.exists():
            with filelock.FileLock(lock, mode=0o600, timeout=0):
                pass
    except (Refused, filelock.Timeout):
        return True
    return False


def read_recovery_database(path: Path) -> RecoveryContent:
    """Read a recovery database without changing it, also while an engine uses it.

    Raises:
        NotFound: there is no such file.
        InvalidInput: a link or a device is in the file's place.
        Damaged: the file is of another kind, or nothing of it is readable.
    """
    if not path.exists() and not path.is_symlink():
        raise NotFound(f"{path}: there is no recovery database", remedy=f"{_RUN}.")
    refuse_link(path)
    content = _judged(path)
    if content is None:
        raise _unreadable(path, f"{_RUN}; a listing is read by qsctl engine dump --file {path}.")
    return content


def _judged(path: Path) -> RecoveryContent | None:
    """Return the readable content of a file; None: it is empty, or an unreadable recovery database.

    Raises:
        Damaged: the file is of another kind.
        Refused: a later version wrote it.
    """
    with TemporaryFolder("qsctl-recovery-") as folder:
        content = content_of(path, folder)
    if content is None:
        with path.open("rb") as file:
            header = file.read(72)
        if header and header[68:72] != KIND.to_bytes(4):
            raise Damaged(f"{path} is not a recovery database", remedy=f"{_RUN}; a listing is read by --file of dump.")
    elif content.made is not None and content.made.format > FORMAT:
        raise Refused(
            f"{path} has format {content.made.format}; this version reads format {FORMAT}",
            remedy="Use the version of qsctl that wrote it.",
        )
    return content


def _unreadable(path: Path, remedy: str) -> Damaged:
    what = "is damaged: nothing of it can be read" if path.stat().st_size else "is empty: it is not a recovery database"
    return Damaged(f"{path} {what}", remedy=remedy)


def _check_scenario(path: Path, content: RecoveryContent, scenario: str) -> None:
    if content.made is not None and scenario and content.made.scenario not in {"", scenario}:
        raise Damaged(
            f"{path} is the recovery database of scenario {content.made.scenario!r}, not of {scenario!r}",
            remedy="Name the scenario that it belongs to, or another file.",
        )


def _snapshot(made: DatabaseMade, database: Database, peers: Peers) -> list[StoredRecord]:
    """Return the smallest list of records from which the state can be restored."""
    return [made, *database.snapshot(), *([peers.snapshot()] if peers.is_known else [])]


def _replace(path: Path, records: Iterable[StoredRecord], *, keep: bool) -> Path | None:
    """Replace a file atomically by a new one; return the path at which the old one is kept, or None."""
    with TemporaryFile(path) as temporary:
        temporary.unlink()
        make_database(temporary, records)
        kept = None
        if keep:
            kept = set_aside_name(path)
            os.link(path, kept)
            log = path.with_name(path.name + LOG)
            if log.exists():
                log.rename(kept.with_name(kept.name + LOG))
        elif path.exists():  # everything into the file: a log that is left would be taken for that of the new one
            _put_into_one_file(path)
        temporary.rename(path)
        sync_directory(path.parent)
    return kept


def _put_into_one_file(path: Path) -> None:
    """Merge the log of a database into its file, and record in the file that it needs no log.

    Raises:
        sqlite3.Error: the disk reports an error.
    """
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")


def _locked(path: Path) -> int:
    """Lock the file itself, whatever its name, for this process; return the descriptor that holds the lock.

    Raises:
        Refused: another process has locked it.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        raise _in_use(path) from error
    return descriptor


def _in_use(path: Path) -> Refused:
    return Refused(
        f"{path} is in use by another process", remedy="Stop the engine that uses it, or let the other command end."
    )
