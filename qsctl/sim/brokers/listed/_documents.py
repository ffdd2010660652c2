"""Values of a JSON document, checked one by one: what is of another type or out of range is a finding, and left out."""

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
    """An object of JSON, the line of the file that it begins in, and where what is wrong with it is collected."""

    line: int
    values: Mapping[str, Any]
    findings: ProblemList
    path: str = ""

    def inner(self, key: str) -> ListedObject:
        """Return an object inside; an empty one where there is none."""
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
        """Return a whole number, quoted or not."""
        found = self.values.get(key)
        if found is None or found == "":
            return None
        number = whole(found)
        if number is None or not low <= number <= COUNT_MAX:
            self._wrong(key, found, f"a whole number of at least {low}")
            return None
        return number

    def rate(self, key: str) -> float | None:
        """Return a number of at least 0."""
        found = self.values.get(key)
        if found is None:
            return None
        if isinstance(found, bool) or not isinstance(found, int | float) or not 0 <= found <= 1e12:
            self._wrong(key, found, "a number of at least 0")
            return None
        return float(found)

    def truth(self, key: str) -> bool | None:
        """Return a truth value, quoted or not."""
        found = self.values.get(key)
        if found is None:
            return None
        words = {"true": True, "false": False}
        made = words.get(str(found).lower())
        if made is None:
            self._wrong(key, found, "true or false")
        return made

    def duration(self, key: str, unit_ns: int, *, unlimited_at: int | None = None) -> str | None:
        """Return a duration as a scenario writes it, of a whole number of units; `unlimited` at `unlimited_at`."""
        found = self.count(key, low=-1 if unlimited_at == -1 else 0)
        return None if found is None else duration_text(found, unit_ns, unlimited_at)

    def limit(self, key: str, *, unlimited_at: int) -> str | None:
        """Return a limit, or `unlimited`."""
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
    """Return a whole number of JSON, quoted or not; None where it is none."""
    if isinstance(found, bool):
        return None
    if isinstance(found, int):
        return found
    if isinstance(found, float) and math.isfinite(found) and found == int(found):
        return int(found)
    if isinstance(found, str) and 0 < len(found) <= 20 and found.removeprefix("-").isascii():
        return int(found) if found.removeprefix("-").isdecimal() else None
    return None
