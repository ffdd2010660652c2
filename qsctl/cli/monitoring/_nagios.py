"""The conventions of monitoring plug-ins: statuses 0 to 3, ranges of thresholds, one line with performance data.

The format is that of the Monitoring Plugins Development Guidelines ("Threshold and Ranges", "Performance data").
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from qsctl.errors import UsageError


class CheckStatus(IntEnum):
    """The exit status of `qsctl check`."""

    OK = 0
    WARNING = 1
    CRITICAL = 2
    UNKNOWN = 3


_NUMBER: Final = r"[+-]?(?:[0-9]{1,18}(?:\.[0-9]{0,18})?|\.[0-9]{1,18})"
_RANGE: Final = re.compile(rf"(@)?(?:(~|{_NUMBER})?:)?({_NUMBER})?")


@dataclass(frozen=True, slots=True)
class Range:
    """A range of good values from `low` to `high`, both included; with `inside`, the good values are those outside."""

    text: str
    low: float
    high: float
    inside: bool = False

    def alerts(self, value: float) -> bool:
        """Return whether a value is outside the good ones."""
        return (self.low <= value <= self.high) is self.inside


def parse_range(text: str, option: str) -> Range:
    """Parse `10`, `10:`, `~:10`, `10:20` or `@10:20`.

    Raises:
        UsageError: it is not of these forms, or its low end exceeds its high end.
    """
    found = _RANGE.fullmatch(text.strip())
    if not found or text.strip() in {"", "@"} or (":" in text and not found[2] and not found[3]):
        raise UsageError(
            f"{option} {text!r} is not a range",
            remedy="Write 10 (0 to 10 is well), 10: (10 or more), ~:10 (10 or less), 10:20, or @10:20 (not inside).",
        )
    low = -math.inf if found[2] == "~" else float(found[2] or 0)
    high = math.inf if found[3] is None else float(found[3])
    if low > high:
        raise UsageError(f"{option} {text!r} begins above its end", remedy=f"Write {found[3]}:{found[2] or 0}.")
    return Range(text.strip(), low, high, inside=bool(found[1]))


def status_of(value: float, warning: Range | None, critical: Range | None) -> CheckStatus:
    """Return the status of one value; without a range its status is OK."""
    if critical is not None and critical.alerts(value):
        return CheckStatus.CRITICAL
    if warning is not None and warning.alerts(value):
        return CheckStatus.WARNING
    return CheckStatus.OK


def performance(
    label: str, value: float, unit: str, warning: Range | None, critical: Range | None, high: float | None = None
) -> str:
    """Return one item of performance data: `'label'=value[unit];warn;crit;min;max`."""
    name = "".join(character for character in label if character.isprintable()).replace("=", "_").replace("'", "''")
    limits = [
        "" if warning is None else warning.text,
        "" if critical is None else critical.text,
        "0",
        "" if high is None else number(high),
    ]
    return f"'{name}'={number(value)}{unit};{';'.join(limits)}".rstrip(";")


def number(value: float) -> str:
    """Return a figure without exponent and without trailing zeros."""
    return str(int(value)) if float(value).is_integer() else f"{value:.4f}".rstrip("0")


def one_line(text: str) -> str:
    """Return a text as one line, without the character that begins performance data."""
    line = " ".join(text.split()).replace("|", "/")
    return "".join(character if character.isprintable() else "?" for character in line)
