"""One setting of a client profile: its kind, range and default, and its name in each format.

Decides: how a value is read from text, a number or a truth value, and how the allowed values are described. The table
of all settings is `ranges.py`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias

from qsctl.profiles.client_profile import Threshold

Value: TypeAlias = bool | int | str | Threshold | None


class ValueKind(StrEnum):
    """The kind of a setting's value."""

    INTEGER = "integer"
    BOOLEAN = "boolean"
    CHOICE = "choice"
    TEXT = "text"
    THRESHOLD = "threshold"


_TRUE: Final = frozenset({"true", "yes", "on", "1", "allow", "enabled", "enable"})
_FALSE: Final = frozenset({"false", "no", "off", "0", "deny", "disallow", "disabled", "disable"})
TEXT_CHARACTERS_MAX: Final = 200
"""Of an endpoint's name (the vendor's documentation, "Configuring Queues")."""
_NOT_IN_NAMES: Final = frozenset("<>*?&;'\"\\")
PERCENT_MAX: Final = 100
_LEVELS: Final = re.compile(r"(\d{1,12})\s*(%?)\s*/\s*(\d{1,12})\s*(%?)")


@dataclass(frozen=True, slots=True)
class ProfileSetting:
    """One row of the table.

    Args:
        field: of `ClientProfile`.
        kind: of its value.
        unit: of an integer; empty where it has none.
        default: None where the broker's platform decides.
        source: section that states it.
        semp_v2: attribute of SEMP v2; Terraform's and Ansible's names follow from it.
        summary: noun phrase for help.
        minimum, maximum: both included, of an integer or of a threshold's counts.
        semp_v1: path below `<profile>` in a SEMP v1 reply; empty where it has none that is known.
        cli: words below `client-profile NAME`, modes first; `cli_inverted`: `no` of it means true (`no shutdown`).
        listing: label in `show client-profile detail`; empty where the listing does not show it.
        scenario: path below a scenario's `<profile>`; empty where the simulator does not know it.
        choices: of a CHOICE.
        limit: field of the limit that a threshold's percentages are of; empty: percentages only.
        deprecated: why it has no effect any more.
    """

    field: str
    kind: ValueKind
    unit: str
    default: Value
    source: str
    semp_v2: str
    summary: str
    minimum: int = 0
    maximum: int = 0
    semp_v1: str = ""
    cli: tuple[str, ...] = ()
    cli_inverted: bool = False
    listing: str = ""
    scenario: str = ""
    choices: tuple[str, ...] = ()
    limit: str = ""
    deprecated: str = ""

    @property
    def terraform(self) -> str:
        """The argument of the Terraform resource: the SEMP v2 name with underscores."""
        return re.sub(r"(?<!^)([A-Z])", r"_\1", self.semp_v2).lower()

    @property
    def is_optional(self) -> bool:
        """Return whether the platform decides the value if none is stated."""
        return self.default is None

    @property
    def allowed(self) -> str:
        """The values allowed, for messages and help."""
        match self.kind:
            case ValueKind.INTEGER:
                unit = f" {self.unit}" if self.unit else ""
                return f"a whole number from {self.minimum:,} to {self.maximum:,}{unit}"
            case ValueKind.BOOLEAN:
                return "true or false"
            case ValueKind.CHOICE:
                return "one of " + ", ".join(self.choices)
            case ValueKind.TEXT:
                return f"a name of at most {TEXT_CHARACTERS_MAX} characters without {' '.join(sorted(_NOT_IN_NAMES))}"
            case ValueKind.THRESHOLD:
                percent = "set and clear in percent, 0 to 100"
                return percent if not self.limit else f"{percent}, or as counts, 0 to {self.maximum:,}"

    def read(self, raw: object) -> Value:
        """Return the value of a number, a truth value or a text.

        None, which SEMP v2 of the cloud gives for a setting that is off or not set, is false for a BOOLEAN and else the
        default.

        Raises:
            ValueError: it is of another kind or out of range. A THRESHOLD is read by `threshold`.
        """
        if raw is None:
            return False if self.kind is ValueKind.BOOLEAN else self.default
        match self.kind:
            case ValueKind.INTEGER:
                return bounded(integer_of(raw), self.minimum, self.maximum)
            case ValueKind.BOOLEAN:
                return _boolean_of(raw)
            case ValueKind.CHOICE if isinstance(raw, str) and raw.strip() in self.choices:
                return raw.strip()
            case ValueKind.TEXT if isinstance(raw, str):
                return _name_of(raw)
            case ValueKind.THRESHOLD if isinstance(raw, Threshold):
                return self.threshold(raw.set_at, raw.clear_at, is_percent=raw.is_percent)
            case _:
                raise ValueError(raw)

    def levels_of(self, text: str) -> Mapping[str, str] | None:
        """Return the two levels of a THRESHOLD in one text, such as `80%/60%` or `900/700`; None for another text."""
        found = _LEVELS.fullmatch(text.strip()) if self.kind is ValueKind.THRESHOLD else None
        if found is None:
            return None
        unit = "percent" if found[2] or found[4] or not self.limit else "value"
        return {f"set_{unit}": found[1], f"clear_{unit}": found[3]}

    def threshold(self, set_at: object, clear_at: object, *, is_percent: bool) -> Threshold:
        """Return a threshold of two levels.

        Raises:
            ValueError: a level is not a number or out of range, or counts where there are only percentages.
        """
        if not is_percent and not self.limit:
            raise ValueError(set_at)
        most = PERCENT_MAX if is_percent else self.maximum
        set_level, clear_level = (bounded(integer_of(each), 0, most) for each in (set_at, clear_at))
        return Threshold(set_level, clear_level, is_percent)


def integer_of(raw: object) -> int:
    """Return a whole number given as such or as text.

    Raises:
        ValueError: it is something else; a truth value is not a number.
    """
    if isinstance(raw, int) and not isinstance(raw, bool):
        return raw
    # No more digits than any range has: int() of a long text is quadratic.
    if isinstance(raw, str) and re.fullmatch(r"\s*[0-9]{1,12}\s*", raw):
        return int(raw)
    raise ValueError(raw)


def bounded(number: int, minimum: int, maximum: int) -> int:
    """Return the number if it is in the range, both ends included.

    Raises:
        ValueError: the number is out of range.
    """
    if not minimum <= number <= maximum:
        raise ValueError(number)
    return number


def _boolean_of(raw: object) -> bool:
    if isinstance(raw, bool):
        return raw
    if isinstance(raw, str):
        word = raw.strip().lower()
        if word in _TRUE or word in _FALSE:
            return word in _TRUE
    raise ValueError(raw)


def _name_of(raw: str) -> str:
    text = " ".join(raw.split())
    if len(text) > TEXT_CHARACTERS_MAX or not text.isprintable() or _NOT_IN_NAMES & set(text):
        raise ValueError(raw)
    return text
