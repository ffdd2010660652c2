"""The findings of `qsctl doctor` about one part of the installation or of a service."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated


@dataclass(frozen=True, slots=True)
class Finding:
    """The check of one part; a missing part that is `needed` makes the exit status 1."""

    part: Annotated[str, "what was looked at"]
    good: Annotated[bool, "whether it is there and usable"]
    needed: Annotated[bool, "whether a command cannot do without it"]
    found: Annotated[str, "what was found"]
    remedy: Annotated[str, "what to do where it is not good"] = ""
