"""The state directory of an embedded service between commands: its lock and its small files.

Decides: which process may use the directory, which small files are in it, and how these are replaced atomically. Queues
and configuration are in `stores`.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from zlib import crc32

import filelock
import msgspec

from qsctl.config.filesystem import FilesystemSettings, JournalMode, Synchronization, Vacuum
from qsctl.errors import UNREADABLE, Damaged, InvalidInput, NoAnswer, Refused
from qsctl.instant import SECOND_NS, Nanoseconds
from qsctl.storage.damage import DamageKind, DamageReport
from qsctl.storage.names import (
    DIRECTORY_MODE,
    FILE_MODE,
    claim_file,
    open_private,
    register_file,
    service_file,
    sync_directory,
    volatile_register,
)
from qsctl.storage.room import refusal

FORMAT_VERSION: Final = 3
_FORMAT_1: Final = 1
_FORMAT_2: Final = 2
"""Of files that may have the path of the state directory itself."""
_STATISTICS_MAGIC: Final = b"QSST"
LOCK_POLL_S: Final = 0.02
STAMP_BYTES: Final = 16
_OF_NO_INSTANCE: Final = frozenset({"lock", "lock.holder", "index.bin", "index.bin.tmp"})
"""Files of a state directory that are not part of an instance."""
_ELSEWHERE: Final = 2
"""Among the folders of an instance: where its files are, if not in the state directory."""


class DirectoryHolder(msgspec.Struct, frozen=True):
    """The process that uses a state directory, and the time at which it locked it."""

    pid: int
    since_ns: Nanoseconds

    def __str__(self) -> str:
        since = datetime.fromtimestamp(self.since_ns / SECOND_NS, tz=UTC)
        return f"process {self.pid} (since {since:%Y-%m-%d %H:%M:%S} UTC)"


class Instance(msgspec.Struct, frozen=True):
    """A service instance in a state directory, from its first command to SHUTDOWN.

    `keeps_service_state`: whether the configuration outlives SHUTDOWN too [QS 2.14.1]. `configured_by` is the label of
    its first configuration in messages; the digests are of that configuration's octets and meaning
    (`named_configuration`), empty where they are unknown.
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
    configured_by: str = ""
    sources_digest: str = ""
    settings_digest: str = ""
    checksum: int | None = None
    """Checksum of all other fields; None in a file of version 0.1."""
    is_directory_relative: bool = False
    """Whether the directory is a relative path in the configuration; it is stored relative to the state directory."""

    @property
    def filesystem(self) -> FilesystemSettings:
        """Return the settings for its files."""
        return FilesystemSettings(
            Path(self.directory),
            self.file_prefix,
            self.file_max_size_kb,
            self.journal_mode,
            self.synchronization,
            Path(self.trace_file) if self.trace_file else None,
            self.vacuum,
        )


def new_instance(
    application_name: str,
    started_at_ns: Nanoseconds,
    filesystem: FilesystemSettings,
    state_directory: Path,
    **other: Any,
) -> Instance:
    """Return a new instance; `other` are the fields of `Instance` after those of its files."""
    return Instance(
        application_name,
        started_at_ns,
        str((filesystem.directory or state_directory).resolve()),
        filesystem.file_prefix,
        filesystem.file_max_size_kb,
        filesystem.journal_mode,
        filesystem.synchronization,
        str(filesystem.trace_file) if filesystem.trace_file else "",
        filesystem.vacuum,
        is_directory_relative=filesystem.directory is not None and not filesystem.directory.is_absolute(),
        **other,
    )


def checksum_of(text: bytes) -> int:
    """Return the checksum of an instance file's text, without its field `checksum`."""
    return crc32(msgspec.json.encode(msgspec.json.decode(text, type=dict[str, Any]) | {"checksum": None}))


class StateDirectory:
    """The paths and small files of a state directory. Use it under `locked`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.volatile = path / "volatile"
        """Samples of volatile queues; they go with the instance."""
        self._instance_file = path / "instance.json"
        self._statistics_file = path / "statistics.bin"
        self._stopping_file = path / "stopping"
        self._configuration_file = path / "configuration.xml"
        self._index_file = path / "index.bin"

    def create(self) -> None:
        """Create the directory, accessible to its owner only.

        Raises:
            InvalidInput: the operating system refuses.
        """
        try:
            self.path.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
            self.volatile.mkdir(mode=DIRECTORY_MODE, exist_ok=True)
        except OSError as error:
            raise InvalidInput(
                f"the state directory {self.path} cannot be used: {error.strerror}",
                remedy="Choose another with --state-dir.",
            ) from error

    def read_instance(self) -> Instance | None:
        """Return the instance in this directory, or None.

        Raises:
            Damaged: its file cannot be read.
            Refused: a later version wrote it.
        """
        try:
            text = self._instance_file.read_bytes()
            found = msgspec.json.decode(text, type=Instance)
            checksum = checksum_of(text)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise refusal(self._instance_file, error, is_clean=True) from error
        except UNREADABLE as error:
            raise self._damaged_instance(str(error)) from error
        if found.checksum not in (None, checksum):
            raise self._damaged_instance("its checksum does not match")
        if found.format > FORMAT_VERSION:
            raise Refused(
                f"{self._instance_file} has format {found.format}; this version reads format {FORMAT_VERSION}",
                remedy="Use the version of qsctl that wrote it.",
            )
        if found.checksum is None and found.format != _FORMAT_1:
            raise self._damaged_instance("it has no checksum")
        return msgspec.structs.replace(found, directory=str(self._directory_of(found)))

    def _directory_of(self, instance: Instance) -> Path:
        """Return the directory of an instance's files, as its own file has it.

        Up to format 2 that file may have the absolute path that the state directory had when the instance began. This
        is ignored if the files exist here: the state directory was moved, or is a copy of the directory at that path.
        """
        here = self.path.resolve()
        if instance.format <= _FORMAT_2 and self._has_files_of(instance):
            return here
        return (here / instance.directory).resolve()  # an absolute one replaces what is before it

    def _has_files_of(self, instance: Instance) -> bool:
        """Return whether the files that every instance has exist in this state directory."""
        of_instance = (instance.file_prefix, instance.application_name)
        return any(name(self.path, *of_instance).is_file() for name in (service_file, register_file, claim_file))

    def _damaged_instance(self, why: str) -> Damaged:
        return Damaged(
            f"{self._instance_file}: {why}",
            remedy="Put back the file that belongs there. Or move the file away and add --discard-damaged to the next "
            "command: it starts a new instance and finds persistent queues again.",
        )

    def write_instance(self, instance: Instance) -> None:
        """Write the instance's file, with the directory of its files relative to this one, unless it is absolute.

        So a state directory, or a folder that holds both, can be moved, and a copy has files of its own.
        """
        here, directory = self.path.resolve(), Path(instance.directory)
        if instance.is_directory_relative or directory.is_relative_to(here):
            directory = Path(os.path.relpath(directory, here))
        noted = msgspec.structs.replace(instance, directory=str(directory), format=FORMAT_VERSION, checksum=None)
        checksum = checksum_of(msgspec.json.encode(noted))
        _replace(self._instance_file, msgspec.json.encode(msgspec.structs.replace(noted, checksum=checksum)))

    def read_configuration(self) -> str:
        """Return the text of the instance's first configuration; empty: it had none."""
        try:
            return self._configuration_file.read_text(encoding="utf-8")
        except FileNotFoundError:
            return ""

    def write_configuration(self, text: str) -> None:
        """Write the first configuration of an instance, before the instance's file."""
        _replace(self._configuration_file, text.encode())

    def read_statistics(self) -> bytes | None:
        """Return the statistics written by the last command, or None.

        Raises:
            Damaged: they are damaged. They are optional for the service.
            DiskFailed: an I/O error occurs.
        """
        try:
            found = self._statistics_file.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise refusal(self._statistics_file, error, is_clean=True) from error
        if found.startswith(_STATISTICS_MAGIC):
            body = found[len(_STATISTICS_MAGIC) + 4 :]
            if found[len(_STATISTICS_MAGIC) :][:4] != crc32(body).to_bytes(4):
                raise Damaged(f"{self._statistics_file}: its checksum does not match")
            return body
        return found  # of version 0.1

    def write_statistics(self, statistics: bytes) -> None:
        """Write the statistics for the next command."""
        _replace(self._statistics_file, _STATISTICS_MAGIC + crc32(statistics).to_bytes(4) + statistics)

    def read_index(self) -> bytes:
        """Return the last command's summary of the instance at rest, see `at_rest`.

        Raises:
            OSError: it does not exist, or an I/O error occurs.
        """
        return self._index_file.read_bytes()

    def write_index(self, octets: bytes) -> None:
        """Write the summary of the instance at rest; an earlier one is deleted even if this fails.

        Raises:
            OSError, InvalidInput: an I/O error occurs, or the path is not a plain file.
        """
        temporary = self._index_file.with_name(self._index_file.name + ".tmp")
        try:
            self._index_file.unlink(missing_ok=True)
            _write(temporary, octets)
            temporary.rename(self._index_file)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise

    def forget_index(self) -> None:
        """Delete the summary, before the instance changes.

        Raises:
            DiskFailed: an I/O error occurs.
        """
        try:
            self._index_file.unlink(missing_ok=True)
        except OSError as error:
            raise refusal(self._index_file, error, is_clean=True) from error

    def stamp(self, instance: Instance) -> bytes:
        """Return a digest that changes when a file of the service is written, replaced, copied, added or removed.

        Raises:
            OSError: a folder cannot be read.
        """
        here, files = self.path.resolve(), Path(instance.directory)
        folders = [here, self.volatile, *([] if files == here else [files])]
        seen = []
        for label, folder in enumerate(folders):
            for entry in os.scandir(folder):
                is_meant = entry.name not in _OF_NO_INSTANCE if label != _ELSEWHERE else _is_of(entry.name, instance)
                if is_meant and entry.is_file(follow_symlinks=False):
                    found = entry.stat(follow_symlinks=False)
                    times = (found.st_mtime_ns, found.st_ctime_ns)
                    seen.append((label, entry.name, found.st_dev, found.st_ino, found.st_size, *times))
        return hashlib.blake2b(msgspec.msgpack.encode(sorted(seen)), digest_size=STAMP_BYTES).digest()

    def lost_instance(self) -> list[DamageReport]:
        """Return a report if files of an instance exist, but its own file is missing and it was not shut down."""
        left = self._statistics_file.exists() or volatile_register(self.volatile).exists()
        if self.is_stopping or not (left or any(self.volatile.iterdir())):
            return []
        what = "the file is missing: what the instance was called, and where its queues are, is not known any more"
        return [DamageReport(self._instance_file, 0, 0, DamageKind.UNREADABLE, what)]

    @property
    def is_stopping(self) -> bool:
        """Return whether a shutdown was begun here and not finished."""
        return self._stopping_file.exists()

    def begin_stopping(self) -> None:
        """Record that the instance is being shut down, so that it does not continue after a crash."""
        _replace(self._stopping_file, b"")

    def forget_instance(self) -> None:
        """Delete the instance's volatile samples, statistics and file."""
        volatile_register(self.volatile).unlink(missing_ok=True)
        shutil.rmtree(self.volatile, ignore_errors=True)
        self._statistics_file.unlink(missing_ok=True)
        self._configuration_file.unlink(missing_ok=True)
        self._index_file.unlink(missing_ok=True)
        self._instance_file.unlink(missing_ok=True)
        self._stopping_file.unlink(missing_ok=True)

    def fingerprint(self, directory: Path) -> tuple[tuple[str, int, int], ...]:
        """Return a value that changes when another command changes a store here or in `directory`."""
        seen = []
        for folder in {self.volatile, directory}:
            for entry in os.scandir(folder) if folder.is_dir() else ():
                if ".db" in entry.name and entry.is_file(follow_symlinks=False):
                    found = entry.stat()
                    seen.append((entry.path, found.st_size, found.st_mtime_ns))
        return tuple(sorted(seen))


@contextmanager
def locked(directory: StateDirectory, wait_s: float, now: Callable[[], Nanoseconds]) -> Iterator[None]:
    """Lock the directory against other processes during the context.

    Raises:
        NoAnswer: another process used it until the wait was over; the message names it.
        InvalidInput: the operating system refuses.
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
        raise InvalidInput(
            f"the state directory {directory.path} cannot be used: {error.strerror}",
            remedy="Choose another with --state-dir.",
        ) from error
    try:
        with contextlib.suppress(OSError):  # on a full disk the holder stays unnamed
            _write(holder_file, msgspec.json.encode(DirectoryHolder(os.getpid(), now())))
        yield
    finally:
        holder_file.unlink(missing_ok=True)
        lock.release()


def _read_holder(path: Path) -> DirectoryHolder | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=DirectoryHolder)
    except (OSError, *UNREADABLE):
        return None  # it is being written, or was just removed


def _is_of(name: str, instance: Instance) -> bool:
    """Return whether a file, in a directory that may have several users, belongs to an instance."""
    return name.startswith(instance.file_prefix) and f"@{instance.application_name}" in name


def _replace(path: Path, data: bytes) -> None:
    """Replace a file atomically: after a crash either the old or the new content remains."""
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
