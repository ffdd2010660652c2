"""Damage found in a store's files: each damaged place is reported once, and none stops the process by itself.

Decides: the kinds of damage, and which of them need the user's consent before the store is used. With it, the intact
records before and after a damaged place are restored.
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
    """A write that a crash interrupted: under synchronization FULL none of it had been acknowledged."""
    CHECKSUM = "checksum"
    """Bytes that no longer match their checksum."""
    UNREADABLE = "unreadable"
    """An intact record that this version cannot read, or a file that is not a store of qsctl."""
    PAYLOAD_MISSING = "payload_missing"
    """A sample whose user data is lost; the sample is left out."""
    MENDED = "mended"
    """Bytes that no longer match their checksum, but of which an intact copy exists: nothing is lost."""
    FOREIGN = "foreign"
    """An intact file of another owner: another queue, another incarnation of the queue, or another service."""


@dataclass(frozen=True, slots=True)
class DamageReport:
    """One damaged place: `size_bytes` from `offset` were left out; `kept_as` is the path of the saved original."""

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
        """Return whether durable records are missing, or would be hidden by continuing.

        A write that a crash interrupted is not a loss. Where nothing is ever synced, any damage is explained by a power
        failure and is not a loss either, except a file of another owner.
        """
        if self.kind is DamageKind.FOREIGN:
            return True
        is_harmless = self.kind in {DamageKind.TORN_TAIL, DamageKind.MENDED}
        return not is_harmless and synchronization is not Synchronization.OFF

    def __str__(self) -> str:
        place = f"{self.place} ({self.size_bytes} bytes left out)"
        return f"{place}; the damaged file is kept as {self.kept_as.name}" if self.kept_as else place


def refuse_loss(reports: Iterable[DamageReport], synchronization: Synchronization) -> None:
    """Raise an error where a report is of a loss, before any file changes: the user must accept the loss first.

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
    """Return a free name beside `file` to rename its damaged original to: `<file>.damaged`, `.damaged2` and so on."""
    number = 1
    while True:
        candidate = file.with_name(f"{file.name}.damaged{number if number > 1 else ''}")
        if disk.status_at(candidate) is None:
            return candidate
        number += 1
