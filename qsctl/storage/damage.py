"""What a store found broken in its files: reported once, never swallowed, never a crash.

Decides: the kinds of damage and their words. Whole records before and after a damaged place are restored.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


class DamageKind(StrEnum):
    """What is wrong with a place in a file."""

    TORN_TAIL = "torn_tail"
    """A write that a crash cut short: nothing of it was acknowledged under synchronization FULL."""
    CHECKSUM = "checksum"
    """Bytes that no longer match their checksum."""
    UNREADABLE = "unreadable"
    """A whole record that this version cannot read, or a file that is no store of ours."""
    PAYLOAD_MISSING = "payload_missing"
    """A sample whose user data is gone; the sample is left out."""


@dataclass(frozen=True, slots=True)
class DamageReport:
    """One damaged place: `size_bytes` from `offset` were left out; `kept_as` is where the original was set aside."""

    file: Path
    offset: int
    size_bytes: int
    kind: DamageKind
    what: str
    kept_as: Path | None = None

    def __str__(self) -> str:
        place = f"{self.file}: offset {self.offset}: {self.what} ({self.size_bytes} bytes left out)"
        return f"{place}; the damaged file is kept as {self.kept_as.name}" if self.kept_as else place


def set_aside_name(file: Path) -> Path:
    """A free name beside `file` for its damaged original: `<file>.damaged`, then `.damaged2` and so on."""
    number = 1
    while True:
        candidate = file.with_name(f"{file.name}.damaged{number if number > 1 else ''}")
        if not candidate.exists():
            return candidate
        number += 1
