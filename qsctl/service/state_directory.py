"""The directory an embedded service lives in between commands: one user at a time, and what it says of itself.

Decides: who may use the directory, which small files stand in it, and how they are replaced without ever being half
written. Queues and configuration are in `stores`.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import filelock
import msgspec

from qsctl.config.filesystem import FilesystemSettings, JournalMode, Synchronization, Vacuum
from qsctl.errors import Damaged, NoAnswer, Refused
from qsctl.instant import SECOND_NS, Nanoseconds
from qsctl.storage.names import DIRECTORY_MODE, FILE_MODE, open_private, sync_directory

FORMAT_VERSION: Final = 1
LOCK_POLL_S: Final = 0.02


class Holder(msgspec.Struct, frozen=True):
    """The process that uses a state directory, and since when."""

    pid: int
    since_ns: Nanoseconds

    def __str__(self) -> str:
        since = datetime.fromtimestamp(self.since_ns / SECOND_NS, tz=UTC)
        return f"process {self.pid} (since {since:%Y-%m-%d %H:%M:%S} UTC)"


class Instance(msgspec.Struct, frozen=True):
    """A service instance that lives in a state directory, from its first command to SHUTDOWN.

    `keeps_service_state`: whether the configuration outlives SHUTDOWN too (section 2.14.1).
    """

    application_name: str
    started_at_ns: Nanoseconds
    directory: str
    file_prefix: str
    file_max_size_kb: int
    journal_mode: JournalMode
    synchronization: Synchronization
    trace_file: str
    vacuum: Vacuum
    keeps_service_state: bool
    format: int = FORMAT_VERSION

    @property
    def filesystem(self) -> FilesystemSettings:
        """How its files are written."""
        return FilesystemSettings(
            Path(self.directory),
            self.file_prefix,
            self.file_max_size_kb,
            self.journal_mode,
            self.synchronization,
            Path(self.trace_file) if self.trace_file else None,
            self.vacuum,
        )


class StateDirectory:
    """Names and small files. Use it under `locked`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.volatile = path / "volatile"
        """Samples of volatile queues; they go with the instance."""
        self._instance_file = path / "instance.json"
        self._statistics_file = path / "statistics.bin"
        self._stopping_file = path / "stopping"

    def create(self) -> None:
        """Make the directory, for its owner alone.

        Raises:
            Damaged: the operating system refuses.
        """
        try:
            self.path.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
            self.volatile.mkdir(mode=DIRECTORY_MODE, exist_ok=True)
        except OSError as error:
            raise Damaged(
                f"the state directory {self.path}: {error.strerror}", remedy="Choose another with --state-dir."
            ) from error

    def read_instance(self) -> Instance | None:
        """The instance that lives here; None when there is none.

        Raises:
            Damaged: its file cannot be read.
            Refused: a later version wrote it.
        """
        try:
            found = msgspec.json.decode(self._instance_file.read_bytes(), type=Instance)
        except FileNotFoundError:
            return None
        except (msgspec.MsgspecError, OSError) as error:
            raise Damaged(
                f"{self._instance_file}: {error}",
                remedy="Move the file away: the next command starts a new instance and finds persistent queues again.",
            ) from error
        if found.format != FORMAT_VERSION:
            raise Refused(
                f"{self._instance_file} has format {found.format}; this version reads format {FORMAT_VERSION}",
                remedy="Use the version of qsctl that wrote it.",
            )
        return found

    def write_instance(self, instance: Instance) -> None:
        """Note the instance that lives here now."""
        _replace(self._instance_file, msgspec.json.encode(instance))

    def read_statistics(self) -> bytes | None:
        """The statistics as the last command left them."""
        try:
            return self._statistics_file.read_bytes()
        except FileNotFoundError:
            return None

    def write_statistics(self, statistics: bytes) -> None:
        """Note the statistics for the next command."""
        _replace(self._statistics_file, statistics)

    @property
    def is_stopping(self) -> bool:
        """Whether a shutdown was begun here and not finished."""
        return self._stopping_file.exists()

    def begin_stopping(self) -> None:
        """Note that the instance ends, so that a crash in between does not bring it back."""
        _replace(self._stopping_file, b"")

    def forget_instance(self) -> None:
        """Delete all that belongs to the instance alone: volatile samples, statistics, its name."""
        shutil.rmtree(self.volatile, ignore_errors=True)
        self._statistics_file.unlink(missing_ok=True)
        self._instance_file.unlink(missing_ok=True)
        self._stopping_file.unlink(missing_ok=True)

    def fingerprint(self, directory: Path) -> tuple[tuple[str, int, int], ...]:
        """Changes whenever another command has changed a store here or in `directory`."""
        seen = []
        for folder in {self.volatile, directory}:
            for entry in os.scandir(folder) if folder.is_dir() else ():
                if ".db" in entry.name and entry.is_file(follow_symlinks=False):
                    found = entry.stat()
                    seen.append((entry.path, found.st_size, found.st_mtime_ns))
        return tuple(sorted(seen))


@contextmanager
def locked(directory: StateDirectory, wait_s: float, now: Callable[[], Nanoseconds]) -> Iterator[None]:
    """Be the only process that uses the directory.

    Raises:
        NoAnswer: another process used it all the time that was allowed; says which one.
        Damaged: the operating system refuses.
    """
    directory.create()
    lock_file, holder_file = directory.path / "lock", directory.path / "lock.holder"
    lock = filelock.FileLock(lock_file, timeout=wait_s, mode=FILE_MODE)
    try:
        lock.acquire(poll_interval=LOCK_POLL_S)
    except filelock.Timeout:
        holder = _read_holder(holder_file)
        raise NoAnswer(
            f"{holder or 'another process'} is using the state directory {directory.path}; waited {wait_s:g} s",
            remedy="Wait for it to end, allow more time with --timeout, or use another --state-dir.",
        ) from None
    except OSError as error:
        raise Damaged(f"{lock_file}: {error.strerror}", remedy="Choose another directory with --state-dir.") from error
    try:
        _write(holder_file, msgspec.json.encode(Holder(os.getpid(), now())))
        yield
    finally:
        holder_file.unlink(missing_ok=True)
        lock.release()


def _read_holder(path: Path) -> Holder | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Holder)
    except (OSError, msgspec.MsgspecError):
        return None  # it is being written, or was just removed


def _replace(path: Path, data: bytes) -> None:
    """Write a file so that either the old or the new content is there, whatever happens."""
    temporary = path.with_name(path.name + ".tmp")
    _write(temporary, data, sync=True)
    temporary.rename(path)
    sync_directory(path.parent)


def _write(path: Path, data: bytes, *, sync: bool = False) -> None:
    with os.fdopen(open_private(path, os.O_WRONLY | os.O_TRUNC), "wb") as file:
        file.write(data)
        file.flush()
        if sync:
            os.fsync(file.fileno())
