"""Values of a JSON document, checked one by one: one of another type or out of range is left out, with a finding."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from qsctl.declared.problems import ProblemList
from qsctl.instant import INFINITE_NS, format_duration

COUNT_MAX: Final = 2**63 - 1
_SHOWN: Final = 80


@dataclass(frozen=True, slots=True)
class ListedObject:
    """An object of JSON, the line of the file where it begins, and the list that its findings are added to."""

    line: int
    values: Mapping[str, Any]
    findings: ProblemList
    path: str = ""

    def inner(self, key: str) -> ListedObject:
        """Return the object under a key; an empty one where there is none."""
        found = self.values.get(key)
        if found is not None and not isinstance(found, dict):
            self._wrong(key, found, "an object")
        path = f"{self.path}/{key}" if self.path else key
        return ListedObject(self.line, found if isinstance(found, dict) else {}, self.findings, path)

    def text(self, key: str) -> str | None:
        """Return the text under a key; None where it is missing, empty or not a text."""
        found = self.values.get(key)
        if found is None or found == "":
            return None
        if not isinstance(found, str):
            self._wrong(key, found, "a text")
            return None
        return found

    def count(self, key: str, low: int = 0) -> int | None:
        """Return the whole number under a key, quoted or not; None where it is missing or below `low`."""
        found = self.values.get(key)
        if found is None or found == "":
            return None
        number = whole(found)
        if number is None or not low <= number <= COUNT_MAX:
            self._wrong(key, found, f"a whole number of at least {low}")
            return None
        return number

    def rate(self, key: str) -> float | None:
        """Return the number under a key; None where it is missing or negative."""
        found = self.values.get(key)
        if found is None:
            return None
        if isinstance(found, bool) or not isinstance(found, int | float) or not 0 <= found <= 1e12:
            self._wrong(key, found, "a number of at least 0")
            return None
        return float(found)

    def truth(self, key: str) -> bool | None:
        """Return the truth value under a key, quoted or not; None where it is missing."""
        found = self.values.get(key)
        if found is None:
            return None
        words = {"true": True, "false": False}
        made = words.get(str(found).lower())
        if made is None:
            self._wrong(key, found, "true or false")
        return made

    def duration(self, key: str, unit_ns: int, *, unlimited_at: int | None = None) -> str | None:
        """Return a number of units as a scenario writes a duration; `unlimited` for `unlimited_at`, None where it is
        missing.
        """
        found = self.count(key, low=-1 if unlimited_at == -1 else 0)
        return None if found is None else duration_text(found, unit_ns, unlimited_at)

    def limit(self, key: str, *, unlimited_at: int) -> str | None:
        """Return a limit as text; `unlimited` for `unlimited_at`, None where it is missing."""
        found = self.count(key, low=min(0, unlimited_at))
        if found is None:
            return None
        return "unlimited" if found == unlimited_at else str(found)

    def _wrong(self, key: str, found: object, allowed: str) -> None:
        path = f"{self.path}/{key}" if self.path else key
        self.findings.add(self.line, "the value is passed over", path=path, found=repr(found)[:_SHOWN], allowed=allowed)


def duration_text(number: int, unit_ns: int, unlimited_at: int | None = None) -> str:
    """Return a number of units as a duration with its unit."""
    if unlimited_at is not None and number == unlimited_at:
        return "unlimited"
    return format_duration(min(number * unit_ns, INFINITE_NS - 1))


def whole(found: object) -> int | None:
    """Return a JSON value as a whole number, quoted or not; None where it is not one."""
    if isinstance(found, bool):
        return None
    if isinstance(found, int):
        return found
    if isinstance(found, float) and math.isfinite(found) and found == int(found):
        return int(found)
    if isinstance(found, str) and 0 < len(found) <= 20 and found.removeprefix("-").isascii():
        return int(found) if found.removeprefix("-").isdecimal() else None
    return None
