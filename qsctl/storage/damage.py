"""Damage found in a store's files: each is reported once, none is ignored, none ends the process.

Decides: the kinds of damage and their texts, and which of them a service must not skip by itself. Whole records before
and after a damaged place are restored where the user accepts the loss of the rest.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from qsctl.config.filesystem import Synchronization
from qsctl.errors import Damaged
from qsctl.storage.file_system import HOST, FileSystem

_SHOWN_MAX: Final = 5
"""More places than these are counted, not listed."""


class DamageKind(StrEnum):
    """A kind of damage to a place in a file."""

    TORN_TAIL = "torn_tail"
    """A write that a crash cut short: nothing of it was acknowledged under synchronization FULL."""
    CHECKSUM = "checksum"
    """Bytes that no longer match their checksum."""
    UNREADABLE = "unreadable"
    """A whole record that this version cannot read, or a file that is not a store of qsctl."""
    PAYLOAD_MISSING = "payload_missing"
    """A sample whose user data is gone; the sample is left out."""
    MENDED = "mended"
    """Bytes that no longer match their checksum, of which there is a copy: nothing is lost."""
    FOREIGN = "foreign"
    """A whole file that is another's: of another queue, of another creation of it, of another service."""


@dataclass(frozen=True, slots=True)
class DamageReport:
    """One damaged place: `size_bytes` from `offset` were left out; `kept_as` is where the original was set aside."""

    file: Path
    offset: int
    size_bytes: int
    kind: DamageKind
    what: str
    kept_as: Path | None = None

    @property
    def place(self) -> str:
        """The damaged place and its damage, as text."""
        return f"{self.file}: offset {self.offset}: {self.what}"

    def is_loss(self, synchronization: Synchronization) -> bool:
        """Return whether something is missing that was durable, or would be hidden.

        What a crash cut short is none. Where nothing is ever synced, a power failure may leave anything: that is no
        damage; a file that is another's is, all the same.
        """
        if self.kind is DamageKind.FOREIGN:
            return True
        is_harmless = self.kind in {DamageKind.TORN_TAIL, DamageKind.MENDED}
        return not is_harmless and synchronization is not Synchronization.OFF

    def __str__(self) -> str:
        place = f"{self.place} ({self.size_bytes} bytes left out)"
        return f"{place}; the damaged file is kept as {self.kept_as.name}" if self.kept_as else place


def refuse_loss(reports: Iterable[DamageReport], synchronization: Synchronization) -> None:
    """Raise where a report is of a loss, before anything is changed: damaged files stay until the user accepts the
    loss.

    Raises:
        Damaged: a report is of a loss.
    """
    losses = [each.place for each in reports if each.is_loss(synchronization)]
    if losses:
        more = [f"and {len(losses) - _SHOWN_MAX} more damaged places"] if len(losses) > _SHOWN_MAX else []
        raise Damaged(
            "\n".join(["stored samples are damaged; nothing was changed", *losses[:_SHOWN_MAX], *more]),
            remedy="Put back the file that belongs there, or a copy of the directory; or lose what cannot be read: "
            "--discard-damaged keeps the damaged files under another name and goes on with what is whole.",
        )


def set_aside_name(file: Path, disk: FileSystem = HOST) -> Path:
    """Return a free name beside `file` for its damaged original: `<file>.damaged`, then `.damaged2` and so on."""
    number = 1
    while True:
        candidate = file.with_name(f"{file.name}.damaged{number if number > 1 else ''}")
        if disk.status_at(candidate) is None:
            return candidate
        number += 1
