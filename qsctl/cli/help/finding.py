"""The findings of `qsctl doctor` about one part, of the installation or of a service."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """One part that was looked at. `needed` parts make the answer no when they are missing."""

    part: str
    good: bool
    needed: bool
    found: str
    remedy: str = ""
