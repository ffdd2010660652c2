"""The names of the store's files [QS 2.14.1, 2.14.2], the characters allowed in them, and safe ways to open them.

Decides: that no topic, subscriber or application name and no symbolic link leads out of the configured directory, and
that only the owner may read the files.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from qsctl.errors import InvalidInput
from qsctl.storage.file_system import HOST, FileSystem

FILE_MODE: Final = 0o600
DIRECTORY_MODE: Final = 0o700
FILE_NAME_SIZE_BYTES_MAX: Final = 255
"""Longest name on common file systems, less 24 octets for an index and a suffix."""

_ALLOWED: Final = re.compile(r"[A-Za-z0-9_.-]+")
_RESERVED_BYTES: Final = 24
_SHARED_COUNT: Final = 2
"""A file with this many names has another one."""


def allowed_part(what: str, text: str, *, may_be_empty: bool = False) -> str:
    """Return the text if it may be part of a file name.

    Raises:
        InvalidInput: it is empty, or has a character other than letters, digits, `_`, `.` and `-`.
    """
    if _ALLOWED.fullmatch(text) or (may_be_empty and not text):
        return text
    raise InvalidInput(
        f"{what} {text!r} cannot be part of a file name",
        remedy="Use letters, digits, '_', '.' and '-' in the names of what is persistent.",
    )


def service_file(directory: Path, prefix: str, application_name: str, disk: FileSystem = HOST) -> Path:
    """Return the file of the service's state, `[directory]/[prefix]service@[appName].db` [QS 2.14.1].

    Raises:
        InvalidInput: a part is not allowed, or the directory is not one.
    """
    parts = (_prefix(prefix) + "service", allowed_part("the application name", application_name))
    return inside(directory, "@".join(parts) + ".db", disk)


def claim_file(directory: Path, prefix: str, application_name: str, disk: FileSystem = HOST) -> Path:
    """Return the lock file `[directory]/[prefix]stores@[appName].lock` of the service that uses the stores.

    Raises:
        InvalidInput: a part is not allowed, or the directory is not one.
    """
    return _stores_file(directory, prefix, application_name, ".lock", disk)


def register_file(directory: Path, prefix: str, application_name: str, disk: FileSystem = HOST) -> Path:
    """Return the file `[directory]/[prefix]stores@[appName].json`, which lists the stores that should exist.

    Raises:
        InvalidInput: a part is not allowed, or the directory is not one.
    """
    return _stores_file(directory, prefix, application_name, ".json", disk)


def volatile_register(directory: Path) -> Path:
    """Return the register of the stores in a directory of volatile queues: outside of it, to outlive it."""
    return directory.with_name(directory.name + ".json")


def log_stem(directory: Path, prefix: str, application_name: str, label: str = "", disk: FileSystem = HOST) -> Path:
    """Return `[directory]/[prefix]log@[appName]`, the stem of a process's write-ahead log; `@[label]` names further
    ones.

    Raises:
        InvalidInput: a part is not allowed, or the directory is not one.
    """
    parts = (_prefix(prefix) + "log", allowed_part("the application name", application_name))
    return inside(directory, "@".join((*parts, label) if label else parts), disk)


def replicas_stem(directory: Path, prefix: str, application_name: str, disk: FileSystem = HOST) -> Path:
    """Return `[directory]/[prefix]replicas@[appName]`, the stem of the log of a process's replicas.

    Raises:
        InvalidInput: a part is not allowed, or the directory is not one.
    """
    parts = (_prefix(prefix) + "replicas", allowed_part("the application name", application_name))
    return inside(directory, "@".join(parts), disk)


def reserve_file(directory: Path, prefix: str, application_name: str, disk: FileSystem = HOST) -> Path:
    """Return `[directory]/[prefix]stores@[appName].reserve`, the file that reserves space for a full disk.

    Raises:
        InvalidInput: a part is not allowed, or the directory is not one.
    """
    return _stores_file(directory, prefix, application_name, ".reserve", disk)


def queue_stem(
    directory: Path,
    prefix: str,
    topic_name: str,
    subscriber: str,
    domain_id: int,
    application_name: str,
    disk: FileSystem = HOST,
) -> Path:
    """Return `[directory]/[prefix][topicName]@[sharedSubscriberName]@[domainId]@[appName]` [QS 2.14.2].

    A queue without in-memory state adds `.db`; one with it adds `_d[fileIndex].db` for data and `_m[fileIndex].db`
    for metadata.

    Raises:
        InvalidInput: a part is not allowed, or the directory is not one.
    """
    parts = (
        _prefix(prefix) + allowed_part("the topic name", topic_name),
        allowed_part("the shared subscriber's name", subscriber),
        str(domain_id),
        allowed_part("the application name", application_name),
    )
    return inside(directory, "@".join(parts), disk)


def queue_files(directory: Path, prefix: str, application_name: str, disk: FileSystem = HOST) -> list[Path]:
    """Return the existing files of an application's queues, of either kind of store; see `queue_stem`."""
    return sorted(directory / name for name, _ in _files_with_stems(directory, prefix, application_name, disk))


def stored_queue_stems(directory: Path, prefix: str, application_name: str, disk: FileSystem = HOST) -> set[str]:
    """Return the names of the stems of an application's queues that have files; see `queue_stem`."""
    return {stem for _, stem in _files_with_stems(directory, prefix, application_name, disk)}


def _files_with_stems(
    directory: Path, prefix: str, application_name: str, disk: FileSystem
) -> Iterator[tuple[str, str]]:
    of_queues = re.compile(rf"({re.escape(prefix)}.+@.+@[0-9]+@{re.escape(application_name)})(?:_[dm][0-9]+)?\.db")
    return ((found[0], found[1]) for found in map(of_queues.fullmatch, disk.names(directory)) if found)


def private_stem(directory: Path, queue: str, disk: FileSystem = HOST) -> Path:
    """Return a file name for any queue name, for the state of one process; disallowed characters become `%XX`.

    Raises:
        InvalidInput: the directory is not one.
    """
    name = "".join(each if _ALLOWED.fullmatch(each) else _escaped(each) for each in queue)
    if len(name) > FILE_NAME_SIZE_BYTES_MAX - _RESERVED_BYTES:
        name = f"{name[:100]}%{hashlib.sha256(queue.encode()).hexdigest()}"
    return inside(directory, name, disk)


def inside(directory: Path, name: str, disk: FileSystem = HOST) -> Path:
    """Return the path of `name` in the directory, after a check that it is in no other.

    Raises:
        InvalidInput: the directory does not exist, the name is too long or leads elsewhere.
    """
    resolved = disk.resolved(directory)
    if resolved is None:
        raise InvalidInput(
            f"the storage directory {str(directory)!r} does not exist", remedy="Create it, or name another one."
        )
    size_bytes_max = FILE_NAME_SIZE_BYTES_MAX - _RESERVED_BYTES
    if len(name.encode()) > size_bytes_max:
        raise InvalidInput(
            f"the file name {name!r} is longer than {size_bytes_max} bytes",
            remedy="Shorten the topic, shared subscriber or application name, or the file prefix.",
        )
    path = resolved / name
    if path.parent != resolved or name in {"", ".", ".."}:
        raise InvalidInput(f"the file name {name!r} leads out of {str(directory)!r}", remedy="Use plain names.")
    return path


def refuse_link(path: Path, disk: FileSystem = HOST) -> None:
    """Raise an error where a path is not a plain file, since a link would redirect the store.

    Raises:
        InvalidInput: a symbolic link, or something that is not a plain file, is at `path`.
    """
    found = disk.status_at(path)
    if found is not None and not found.is_plain:
        raise InvalidInput(f"{path} is not a plain file", remedy="Remove the link or device; qsctl makes its own file.")


def open_private(path: Path, flags: int, disk: FileSystem = HOST) -> int:
    """Open a plain file that only its owner may read, creating it where it is missing; return its descriptor.

    Raises:
        InvalidInput: a symbolic link or a device is at the path.
        OSError: the operating system refuses.
    """
    refuse_link(path, disk)
    return disk.open(path, flags | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, FILE_MODE)


def unshare(path: Path, disk: FileSystem = HOST) -> None:
    """Replace a file that has several hard links, as `cp -al` makes them, by a copy under this name.

    Writes to the file must not appear in a copy of the directory, nor in its original.

    Raises:
        InvalidInput: a symbolic link or a device is at the path.
        OSError: an I/O error occurs; the file is as before.
    """
    found = disk.status_at(path)
    if found is None or (found.is_plain and found.name_count < _SHARED_COUNT):
        return
    write_whole(path, ".own", read_whole(path, disk), disk)


def read_whole(path: Path, disk: FileSystem = HOST, size_bytes: int = -1) -> bytes:
    """Return the first `size_bytes` octets of a file; by default all.

    Raises:
        InvalidInput: a symbolic link or a device is at the path.
        OSError: the file does not exist, or an I/O error occurs.
    """
    refuse_link(path, disk)
    descriptor = disk.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        if size_bytes < 0:
            size_bytes = disk.status(descriptor).size_bytes
        found = disk.read_at(descriptor, size_bytes, 0)
        while 0 < len(found) < size_bytes and (more := disk.read_at(descriptor, size_bytes - len(found), len(found))):
            found += more
        return found
    finally:
        disk.close(descriptor)


def write_whole(path: Path, suffix: str, data: bytes, disk: FileSystem = HOST) -> None:
    """Replace a file by one with this content, atomically and durably, through a temporary file with the given suffix.

    Raises:
        InvalidInput: a symbolic link or a device is at the path.
        OSError: an I/O error occurs; the file is as before.
    """
    temporary = path.with_name(path.name + suffix)
    descriptor = open_private(temporary, os.O_WRONLY | os.O_TRUNC, disk)
    try:
        try:
            write_all(descriptor, data, 0, disk=disk)
            disk.sync_all(descriptor)
        finally:
            disk.close(descriptor)
        disk.rename(temporary, path)
    except BaseException:
        disk.unlink(temporary)
        raise
    disk.sync_directory(path.parent)


def write_all(
    descriptor: int, data: bytes | memoryview, offset: int, unit_bytes: int = 1, *, disk: FileSystem = HOST
) -> None:
    """Write all octets at `offset`, with repeated calls where the operating system accepts fewer, in multiples of
    `unit_bytes`.

    Raises:
        OSError: an I/O error occurs, or nothing is written.
    """
    view = memoryview(data)
    while view:
        written = disk.write_at(descriptor, view, offset) // unit_bytes * unit_bytes
        if not written:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        offset += written
        view = view[written:]


def sync_directory(directory: Path) -> None:
    """Sync the entries of a directory."""
    HOST.sync_directory(directory)


def _stores_file(directory: Path, prefix: str, application_name: str, suffix: str, disk: FileSystem) -> Path:
    parts = (_prefix(prefix) + "stores", allowed_part("the application name", application_name))
    return inside(directory, "@".join(parts) + suffix, disk)


def _prefix(prefix: str) -> str:
    return allowed_part("the file prefix", prefix, may_be_empty=True)


def _escaped(character: str) -> str:
    return "".join(f"%{octet:02X}" for octet in character.encode(errors="surrogatepass"))
