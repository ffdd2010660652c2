"""The keys that sign administration commands and replication messages, and the files that hold them.

Decides: what a key and a file of keys are, who may have access to such a file, and how a key is replaced. A file has
one key a line, newest first: a client signs with the first, a member of a cluster with each, and each is accepted. So
one file serves both ends, and two keys are valid while the new one reaches the others. A key is shown by its number
alone, which is a digest of it.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import stat
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Final

from qsctl.errors import InvalidInput, NotFound, Refused, UsageError
from qsctl.new_file import new_private_file

KEY_BYTES: Final = 32
"""Of a key: as many as SHA-256 gives, below which HMAC is weaker (RFC 2104, section 3)."""

NUMBER_BYTES: Final = 4
"""Of the number that a key is known by."""

KEYS_MAX: Final = 8
"""Keys of a file."""

FILE_BYTES_MAX: Final = 64 * 1024

_HEXADECIMAL: Final = re.compile(r"[0-9A-Fa-f]{64}")
_NUMBER_TEXT: Final = b"qsctl administration key number"
_OF_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
_OF_OTHERS_THAN_ROOTS: Final = stat.S_IWGRP | stat.S_IXGRP | stat.S_IRWXO
_HEAD: Final = "# Signing keys of qsctl, newest first. Keep this file as you keep a password.\n"
_MAKE_ONE: Final = "`qsctl key create FILE` makes one."


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A key. Neither `repr` nor `str` shows its octets."""

    octets: bytes = field(repr=False)

    @property
    def number(self) -> bytes:
        """The key's identifier in signatures: a digest, from which the key cannot be found."""
        return hashlib.sha256(_NUMBER_TEXT + self.octets).digest()[:NUMBER_BYTES]

    def __str__(self) -> str:
        return self.number.hex()


def read_keys(path: Path) -> tuple[SigningKey, ...]:
    """Return the keys of a file, newest first.

    Raises:
        NotFound: there is no such file.
        Refused: it cannot be opened, or others than its owner have access to it.
        InvalidInput: it holds something else than keys. The message contains nothing of what it holds.
    """
    try:
        with open(path, "rb", opener=_opened) as stream:
            _check_access(path, os.fstat(stream.fileno()))
            data = stream.read(FILE_BYTES_MAX + 1)
    except FileNotFoundError:
        raise NotFound(f"there is no key file {path}", remedy=_MAKE_ONE) from None
    except OSError as error:
        raise Refused(
            f"the key file {path} cannot be read: {error.strerror}", remedy="It must be readable for this user."
        ) from None
    if len(data) > FILE_BYTES_MAX:
        raise InvalidInput(f"the key file {path} has more than {FILE_BYTES_MAX} octets", remedy=_MAKE_ONE)
    keys: list[SigningKey] = []
    for number, line in enumerate(data.decode("ascii", "replace").splitlines(), 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        if not _HEXADECIMAL.fullmatch(text):
            raise InvalidInput(
                f"the key file {path}, line {number}: this is not a key",
                remedy=f"A key is {2 * KEY_BYTES} hexadecimal digits; a line of # is a comment. {_MAKE_ONE}",
            )
        keys.append(SigningKey(bytes.fromhex(text)))
    if not keys:
        raise InvalidInput(f"the key file {path} holds no key", remedy=_MAKE_ONE)
    if len(keys) > KEYS_MAX:
        raise InvalidInput(
            f"the key file {path} holds {len(keys)} keys",
            remedy=f"At most {KEYS_MAX} are allowed. `qsctl key retire {path}` leaves the newest.",
        )
    return tuple(keys)


def create_keys(path: Path) -> tuple[SigningKey, ...]:
    """Write a file with a new key, for its owner alone; return the keys.

    Raises:
        UsageError: it exists already, or cannot be written.
    """
    keys = (_drawn_key(),)
    with new_private_file(path, f"Choose another name; `qsctl key rotate {path}` gives it a new key.") as stream:
        _write(stream, keys)
    return keys


def rotate_keys(path: Path) -> tuple[SigningKey, ...]:
    """Put a new key before the newest one of a file, and drop those that were older; return what it holds then.

    Raises:
        NotFound, Refused, InvalidInput: see `read_keys`.
        UsageError: it cannot be written.
    """
    return _replaced(path, (_drawn_key(), read_keys(path)[0]))


def retire_keys(path: Path) -> tuple[SigningKey, ...]:
    """Leave the newest key of a file alone in it; return it.

    Raises:
        NotFound, Refused, InvalidInput: see `read_keys`.
        UsageError: it cannot be written.
    """
    return _replaced(path, read_keys(path)[:1])


def _opened(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)  # a pipe without a writer would never open


def _drawn_key() -> SigningKey:
    return SigningKey(secrets.token_bytes(KEY_BYTES))


def _check_access(path: Path, status: os.stat_result) -> None:
    """Refuse a file that others can read: the rule of PostgreSQL for private keys.

    A file of root's may be readable for its group: so a service's own group, a systemd credential and a Kubernetes
    secret work.
    """
    if not stat.S_ISREG(status.st_mode):
        raise Refused(f"the key file {path} is not a regular file", remedy=_MAKE_ONE)
    mode = stat.S_IMODE(status.st_mode)
    if status.st_uid not in (0, os.geteuid()):
        raise Refused(
            f"the key file {path} belongs to another user, of number {status.st_uid}",
            remedy="It must belong to the user who runs this, or to root.",
        )
    is_roots = status.st_uid == 0 and os.geteuid() != 0
    if mode & (_OF_OTHERS_THAN_ROOTS if is_roots else _OF_OTHERS):
        allowed = "0640" if is_roots else "0600"
        raise Refused(
            f"the key file {path} has mode {mode:04o}: others than its owner have access to it",
            remedy=f"chmod {allowed} {path}; if others may have read it, `qsctl key rotate {path}` makes a new one.",
        )


def _replaced(path: Path, keys: Sequence[SigningKey]) -> tuple[SigningKey, ...]:
    """Write keys in the place of a file at once, with its owner and mode."""
    target = path.resolve()
    status = target.stat()
    temporary = ""
    try:
        descriptor, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        with os.fdopen(descriptor, "wb") as stream:
            os.fchown(stream.fileno(), status.st_uid, status.st_gid)
            os.fchmod(stream.fileno(), stat.S_IMODE(status.st_mode))
            _write(stream, keys)
        Path(temporary).replace(target)
    except OSError as error:
        if temporary:
            Path(temporary).unlink(missing_ok=True)
        raise UsageError(f"{path} cannot be written: {error.strerror}") from None
    return tuple(keys)


def _write(stream: BinaryIO, keys: Sequence[SigningKey]) -> None:
    stream.write((_HEAD + "".join(f"{each.octets.hex()}\n" for each in keys)).encode())
    stream.flush()
    os.fsync(stream.fileno())
