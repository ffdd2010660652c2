"""A setting of a broker in its own words: the texts it accepts, and the scenario's text for each.

A number without a unit is in the broker's own unit (SQS counts seconds, RabbitMQ milliseconds); with a unit it is a
duration as everywhere. The broker's own ways to write "no limit" are kept (0 of a prefetch count, -1 of JetStream).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from qsctl.errors import InvalidInput, UsageError
from qsctl.instant import (
    HOUR_NS,
    INFINITE_NS,
    MILLISECOND_NS,
    MINUTE_NS,
    SECOND_NS,
    Nanoseconds,
    format_duration,
    parse_duration,
)

UNLIMITED: Final = "unlimited"
_COUNT: Final = re.compile(r"[0-9]{1,18}")
_ENDLESS: Final = frozenset({UNLIMITED, "infinite"})
_SHOWN: Final = 80


@dataclass(frozen=True, slots=True)
class SettingKind:
    """The kind of a setting's texts: `read` returns the scenario's text, and raises ValueError where it is not
    valid.
    """

    allowed: str
    read: Callable[[str], str]


@dataclass(frozen=True, slots=True)
class BrokerSetting:
    """One setting of a preset; `path` is what it sets in a scenario, see `draft`."""

    word: str
    """Name of the setting, as the broker spells it."""
    path: str
    default: str
    """Default value, in the broker's own notation."""
    kind: SettingKind
    source: str
    """Address of the public document that states the default, or its meaning where it has none."""
    meaning: str
    aliases: tuple[str, ...] = ()
    """Other words that people write for it."""
    is_direct: bool = True
    """Whether its text is the value at `path`; else the preset makes that value, and others, of several settings."""

    def scenario_text(self, text: str) -> str:
        """Return the scenario's text for a text in the broker's notation.

        Raises:
            InvalidInput: it is not of the setting's kind.
        """
        try:
            return self.kind.read(text.strip())
        except (ValueError, UsageError):
            raise InvalidInput(
                f"{self.word}: {text.strip()[:_SHOWN]!r} is not {self.kind.allowed}", remedy="Write another value."
            ) from None

    def is_called(self, name: str) -> bool:
        """Return whether this is one of its names; case, `x-`, `_`, `-` and `.` do not matter."""
        return plain_word(name) in {plain_word(each) for each in (self.word, *self.aliases)}


def _or(unlimited: tuple[str, ...]) -> str:
    words = " or ".join((*unlimited, UNLIMITED)) if unlimited else UNLIMITED
    return f" ({words}: no limit)"


def plain_word(name: str) -> str:
    """Return a name as names are compared: in lower case, without a leading `x-` and without separators."""
    return re.sub(r"[-_. ]", "", name.strip().lower().removeprefix("x-"))


def duration(unit_ns: int, unit: str, unlimited: tuple[str, ...] = ()) -> SettingKind:
    """Return the kind of a duration; a number without a unit counts units of `unit_ns`."""

    def read(text: str) -> str:
        if text in unlimited or text in _ENDLESS:
            return "infinite"
        if _COUNT.fullmatch(text):
            return format_duration(min(int(text) * unit_ns, INFINITE_NS - 1))
        return format_duration(parse_duration(text))

    return SettingKind(f"a duration as in 30s, or a number of {unit}{_or(unlimited)}", read)


def round_duration(duration_ns: Nanoseconds) -> str:
    """Return a duration in the largest unit, from days to seconds, of which it is a whole number, as `7d`."""
    units = {"d": 24 * HOUR_NS, "h": HOUR_NS, "min": MINUTE_NS}
    for unit, scale in units.items():
        if duration_ns and duration_ns % scale == 0:
            return f"{duration_ns // scale}{unit}"
    return format_duration(duration_ns)


def durations(unit_ns: int) -> SettingKind:
    """Return the kind of a list of durations, separated by commas."""
    one = duration(unit_ns, "")

    def read(text: str) -> str:
        made = [one.read(each.strip()) for each in text.split(",")] if text else []
        return ",".join(made)

    return SettingKind("durations separated by commas, as in 1s,5s,30s", read)


def count(low: int = 0, unlimited: tuple[str, ...] = (), shift: int = 0) -> SettingKind:
    """Return the kind of a whole number; the scenario's number is greater by `shift`."""

    def read(text: str) -> str:
        if text in unlimited or text == UNLIMITED:
            return UNLIMITED
        if not _COUNT.fullmatch(text) or int(text) < low:
            raise ValueError(text)
        return str(int(text) + shift)

    return SettingKind(f"a whole number of at least {low}{_or(unlimited)}", read)


def choice(words: Mapping[str, str]) -> SettingKind:
    """Return the kind of a word out of `words`, which maps each to the scenario's word for it."""

    def read(text: str) -> str:
        if text not in words:
            raise ValueError(text)
        return words[text]

    return SettingKind(f"one of {', '.join(words)}", read)


SECONDS: Final = duration(SECOND_NS, "seconds")
MILLISECONDS: Final = duration(MILLISECOND_NS, "milliseconds")
SWITCH: Final = SettingKind(
    "true or false", choice({"true": "true", "false": "false", "True": "true", "False": "false"}).read
)
TEXT: Final = SettingKind("a text", str)
"""Read by the scenario itself, which knows what is allowed."""


@dataclass(frozen=True, slots=True)
class FixedValue:
    """A value of a preset's scenario that follows from the broker's behaviour; no setting changes it."""

    path: str
    text: str
    why: str
    source: str


@dataclass(frozen=True, slots=True)
class Preset:
    """A broker's queue: its settings, its fixed behaviour, and which parts of it are modelled."""

    title: str
    settings: tuple[BrokerSetting, ...]
    ways: tuple[FixedValue, ...]
    modelled: tuple[str, ...]
    not_modelled: tuple[str, ...]
    derived: Callable[[Mapping[str, str]], Mapping[str, str]] = field(default=lambda _: {})
    """Values of the scenario by path that follow from several settings, of the settings' scenario texts by word."""

    def setting(self, name: str) -> BrokerSetting | None:
        """Return the setting of a name; None where there is none."""
        return next((each for each in self.settings if each.is_called(name)), None)
