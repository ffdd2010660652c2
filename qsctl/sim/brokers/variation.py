"""A setting varied: `visibility=30s..600s` or `prefetch=1,10,100`, in the broker's words, as scenarios of each value.

Decides: which values a range has (each about the same multiple of the one before, in round numbers), and that the value
in force (the user's, the listed one or the default) is one of them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from qsctl.errors import UsageError
from qsctl.instant import INFINITE_NS, format_duration, parse_duration
from qsctl.sim.brokers.draft import find_setting
from qsctl.sim.brokers.kinds import BrokerKind
from qsctl.sim.brokers.settings import BrokerSetting

RANGE_VALUES: Final = 6
VALUES_MAX: Final = 50
_ROUND: Final = (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
_NUMBER: Final = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,9})?)(.*)")


@dataclass(frozen=True, slots=True)
class Variation:
    """A setting with the values to try, as texts in the broker's notation, in order."""

    setting: BrokerSetting
    values: tuple[str, ...]


def parse_variation(broker: BrokerKind, text: str) -> Variation:
    """Return the variation that `SETTING=V1,V2,…` or `SETTING=LOW..HIGH` describes.

    Raises:
        UsageError: it is not of that form, there is no such setting, or a value occurs twice.
        InvalidInput: a value is not of the setting's kind.
    """
    name, equals, given = text.partition("=")
    if not equals or not given.strip():
        raise UsageError(
            f"--vary {text[:80]!r} is not SETTING=VALUES",
            remedy="Write it as in visibility=30s..600s or prefetch=1,10.",
        )
    setting = find_setting(broker, name)
    low, dots, high = given.partition("..")
    values = _between(text, low.strip(), high.strip()) if dots else _listed(given)
    if len(values) > VALUES_MAX:
        raise UsageError(f"--vary {setting.word} has {len(values)} values", remedy=f"Give at most {VALUES_MAX}.")
    read = [setting.scenario_text(each) for each in values]
    twice = next((value for at, value in enumerate(values) if read[at] in read[:at]), None)
    if twice is not None:
        raise UsageError(f"--vary {setting.word} has {twice!r} twice", remedy="Give each value once.")
    return Variation(setting, tuple(values))


def with_value(variation: Variation, text: str) -> Variation:
    """Return a variation that has one more value, inserted at its place among the others."""
    setting = variation.setting
    if setting.scenario_text(text) in {setting.scenario_text(each) for each in variation.values}:
        return variation
    return Variation(setting, tuple(sorted((*variation.values, text), key=lambda each: _amount(setting, each))))


def is_ordered(variation: Variation) -> bool:
    """Return whether the values have an order, so that there is a smallest one."""
    return all(math.isfinite(_amount(variation.setting, each)) for each in variation.values[:-1])


def longest_ns(variation: Variation) -> int:
    """Return the longest of the values that are durations; 0 where none is."""
    found = [_duration_ns(variation.setting.scenario_text(each)) for each in variation.values]
    return max((each for each in found if each is not None and each < INFINITE_NS), default=0)


def _listed(text: str) -> list[str]:
    """Split a list of values at semicolons if a value has a colon, as a distribution has, else at commas."""
    return [each.strip() for each in text.split(";" if ";" in text or ":" in text else ",")]


def _amount(setting: BrokerSetting, text: str) -> float:
    """Return the number that values are sorted by; infinite for a text without a number, as `unlimited`."""
    made = setting.scenario_text(text)
    if made in {"unlimited", "infinite"}:
        return math.inf
    found = _duration_ns(made)
    if found is not None:
        return float(found)
    number = _NUMBER.match(made)
    return math.inf if number is None else float(number[1])


def _duration_ns(text: str) -> int | None:
    try:
        return parse_duration(text)
    except UsageError:
        return None


def _between(given: str, low: str, high: str) -> list[str]:
    """Return values from one to another in round numbers, each about the same multiple of the one before."""
    ends_ns = [_duration_ns(each) for each in (low, high)]
    if all(
        each is not None and each > 0 and not text.isdigit() for each, text in zip(ends_ns, (low, high), strict=True)
    ):
        numbers = _steps(given, [float(each) for each in ends_ns if each is not None])
        return list(dict.fromkeys([low, *(format_duration(round(_round(each))) for each in numbers[1:-1]), high]))
    parts = [_NUMBER.fullmatch(each) for each in (low, high)]
    if any(each is None for each in parts):
        raise UsageError(
            f"--vary {given[:80]!r} is not a range", remedy="Write it as in 30s..600s, 1..250 or 1/s..20/s."
        )
    (first, first_unit), (last, last_unit) = (each.groups() for each in parts if each is not None)
    if first_unit.strip() and first_unit.strip() != last_unit.strip():
        raise UsageError(f"--vary {given[:80]!r} has two units", remedy="Write both ends in one unit.")
    is_whole = "." not in first + last and not last_unit
    ends = [float(first), float(last)]
    offset = 1.0 if ends[0] == 0 else 0.0  # 0 has no multiples: 0, 1, …
    numbers = [each - offset for each in _steps(given, [ends[0] + offset, ends[1] + offset])[1:-1]]
    made = [max(1, round(_round(each))) if is_whole else _round(each) for each in numbers]
    texts = [low, *(f"{each:g}" + last_unit for each in made), high]
    return list(dict.fromkeys(texts))


def _steps(given: str, ends: Sequence[float]) -> list[float]:
    low, high = ends
    if not low < high:
        raise UsageError(f"--vary {given[:80]!r} is not a range", remedy="Write the smaller end first.")
    ratio = (high / low) ** (1 / (RANGE_VALUES - 1))
    return [low * ratio**place for place in range(RANGE_VALUES)]


def _round(value: float) -> float:
    """Return the nearest round number by ratio: 1, 1.5, 2, 3, … times a power of ten."""
    scale = 10.0 ** math.floor(math.log10(value))
    nearest = min(_ROUND, key=lambda each: abs(math.log(value / (each * scale))))
    return float(f"{nearest * scale:.2g}")
