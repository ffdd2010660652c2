"""The names of the files [QS 2.14.1, 2.14.2], and what may stand in them.

Decides: that a name never leaves the configured directory, through whatever topic, subscriber or application name,
nor through a symbolic link, and that only the owner may read what is stored.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from pathlib import Path
from typing import Final

from qsctl.errors import InvalidInput

FILE_MODE: Final = 0o600
DIRECTORY_MODE: Final = 0o700
FILE_NAME_SIZE_BYTES_MAX: Final = 255
"""What common file systems allow; 24 are left for an index and a suffix."""

_ALLOWED: Final = re.compile(r"[A-Za-z0-9_.-]+")
_RESERVED_BYTES: Final = 24
_SHARED_COUNT: Final = 2
"""A file with this many names has another one."""


def allowed_part(what: str, text: str, *, may_be_empty: bool = False) -> str:
    """The text, if it may be a part of a file name.

    Raises:
        InvalidInput: it is empty or holds another character than letters, digits, `_`, `.` and `-`.
    """
    if _ALLOWED.fullmatch(text) or (may_be_empty and not text):
        return text
    raise InvalidInput(
        f"{what} {text!r} cannot be part of a file name",
        remedy="Use letters, digits, '_', '.' and '-' in the names of what is persistent.",
    )


def service_file(directory: Path, prefix: str, application_name: str) -> Path:
    """`[directory]/[prefix]service@[appName].db` [QS 2.14.1].

    Raises:
        InvalidInput: a part is not allowed, or the directory is not one.
    """
    parts = (_prefix(prefix) + "service", allowed_part("the application name", application_name))
    return inside(directory, "@".join(parts) + ".db")


def claim_file(directory: Path, prefix: str, application_name: str) -> Path:
    """`[directory]/[prefix]stores@[appName].lock`: held by the service that uses the stores.

    Raises:
        InvalidInput: a part is not allowed, or the directory is not one.
    """
    return _stores_file(directory, prefix, application_name, ".lock")


def register_file(directory: Path, prefix: str, application_name: str) -> Path:
    """`[directory]/[prefix]stores@[appName].json`: which stores should be there.

    Raises:
        InvalidInput: a part is not allowed, or the directory is not one.
    """
    return _stores_file(directory, prefix, application_name, ".json")


def volatile_register(directory: Path) -> Path:
    """The register of the stores in a directory of volatile queues: beside it, to outlive it."""
    return directory.with_name(directory.name + ".json")


def log_stem(directory: Path, prefix: str, application_name: str, label: str = "") -> Path:
    """`[directory]/[prefix]log@[appName]`: the write-ahead log of a process; `@[label]` behind it where there are more.

    Raises:
        InvalidInput: a part is not allowed, or the directory is not one.
    """
    parts = (_prefix(prefix) + "log", allowed_part("the application name", application_name))
    return inside(directory, "@".join((*parts, label) if label else parts))


def replicas_stem(directory: Path, prefix: str, application_name: str) -> Path:
    """`[directory]/[prefix]replicas@[appName]`: the log of a process's replicas.

    Raises:
        InvalidInput: a part is not allowed, or the directory is not one.
    """
    return inside(
        directory, "@".join((_prefix(prefix) + "replicas", allowed_part("the application name", application_name)))
    )


def reserve_file(directory: Path, prefix: str, application_name: str) -> Path:
    """`[directory]/[prefix]stores@[appName].reserve`: room that is given up when the disk is full.

    Raises:
        InvalidInput: a part is not allowed, or the directory is not one.
    """
    return _stores_file(directory, prefix, application_name, ".reserve")


def queue_stem(
    directory: Path, prefix: str, topic_name: str, subscriber: str, domain_id: int, application_name: str
) -> Path:
    """`[directory]/[prefix][topicName]@[sharedSubscriberName]@[domainId]@[appName]` [QS 2.14.2].

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
    return inside(directory, "@".join(parts))


def queue_files(directory: Path, prefix: str, application_name: str) -> list[Path]:
    """The files of an application's queues that are there, of either kind of store; see `queue_stem`."""
    of_queues = re.compile(rf"{re.escape(prefix)}.+@.+@[0-9]+@{re.escape(application_name)}(_[dm][0-9]+)?\.db")
    return sorted(path for path in directory.iterdir() if of_queues.fullmatch(path.name))


def private_stem(directory: Path, queue: str) -> Path:
    """A file name for any queue name, for state of one process alone: other characters become `%XX`.

    Raises:
        InvalidInput: the directory is not one.
    """
    name = "".join(each if _ALLOWED.fullmatch(each) else _escaped(each) for each in queue)
    if len(name) > FILE_NAME_SIZE_BYTES_MAX - _RESERVED_BYTES:
        name = f"{name[:100]}%{hashlib.sha256(queue.encode()).hexdigest()}"
    return inside(directory, name)


def inside(directory: Path, name: str) -> Path:
    """`name` in the directory, once it is sure that it is in no other.

    Raises:
        InvalidInput: the directory does not exist, the name is too long or leads elsewhere.
    """
    if not directory.is_dir():
        raise InvalidInput(
            f"the storage directory {str(directory)!r} does not exist", remedy="Create it, or name another one."
        )
    size_bytes_max = FILE_NAME_SIZE_BYTES_MAX - _RESERVED_BYTES
    if len(name.encode()) > size_bytes_max:
        raise InvalidInput(
            f"the file name {name!r} is longer than {size_bytes_max} bytes",
            remedy="Shorten the topic, shared subscriber or application name, or the file prefix.",
        )
    resolved = directory.resolve()
    path = resolved / name
    if path.parent != resolved or name in {"", ".", ".."}:
        raise InvalidInput(f"the file name {name!r} leads out of {str(directory)!r}", remedy="Use plain names.")
    return path


def refuse_link(path: Path) -> None:
    """Refuse what would redirect a store.

    Raises:
        InvalidInput: a symbolic link, or something that is no plain file, stands at `path`.
    """
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise InvalidInput(f"{path} is not a plain file", remedy="Remove the link or device; qsctl makes its own file.")


def open_private(path: Path, flags: int) -> int:
    """A descriptor of a plain file that only its owner may read; it is made when it is not there.

    Raises:
        InvalidInput: a link or a device stands there.
        OSError: the operating system refuses.
    """
    refuse_link(path)
    return os.open(path, flags | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, FILE_MODE)


def unshare(path: Path) -> None:
    """Give a file under several names, as `cp -al` makes them, a content of its own under this one.

    What is written here must not appear in a copy of the directory, nor in its original.

    Raises:
        InvalidInput: a link or a device stands there.
        OSError: the disk refuses; the file is as before.
    """
    refuse_link(path)
    try:
        if path.stat().st_nlink < _SHARED_COUNT:
            return
    except FileNotFoundError:
        return
    temporary = path.with_name(path.name + ".own")
    try:
        with path.open("rb") as source, os.fdopen(open_private(temporary, os.O_WRONLY | os.O_TRUNC), "wb") as copy:
            shutil.copyfileobj(source, copy)
            copy.flush()
            os.fsync(copy.fileno())
        temporary.rename(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


def sync_directory(directory: Path) -> None:
    """Make the names in a directory as durable as its files."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _stores_file(directory: Path, prefix: str, application_name: str, suffix: str) -> Path:
    parts = (_prefix(prefix) + "stores", allowed_part("the application name", application_name))
    return inside(directory, "@".join(parts) + suffix)


def _prefix(prefix: str) -> str:
    return allowed_part("the file prefix", prefix, may_be_empty=True)


def _escaped(character: str) -> str:
    return "".join(f"%{octet:02X}" for octet in character.encode(errors="surrogatepass"))
