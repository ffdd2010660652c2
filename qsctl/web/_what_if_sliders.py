"""The settings of a scenario as controls of the page; a slider has a list of positions in the scenario's own notation.

A position is a text that the type of the setting has written and can read, so that the page needs to know no unit and
no range. Where a range spans decades, the positions are spaced by a constant factor.

Decides which settings are shown first, and that names and references are not controls.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from qsctl.declared.values import Value
from qsctl.errors import QsctlError
from qsctl.instant import INFINITE_NS, MILLISECOND_NS, SECOND_NS
from qsctl.sim.scenario.overrides.set_values import settings_of
from qsctl.sim.scenario.parts.work_time import BackOff, WorkKind, WorkTime
from qsctl.sim.scenario.scenario import Model, Scenario

_PER_DECADE: Final = 12
"""Number of positions of a logarithmic slider for each power of ten."""
_REACH: Final = 200.0
"""A slider reaches from the scenario's value divided by this factor to the value multiplied by it, within its range."""
_IDENTITY: Final = frozenset(
    {
        "name",
        "model",
        "seed",
        "replications",
        "log-level",
        "to",
        "port",
        "profile",
        "class",
        "group",
        "file",
        "path",
        "at",
    }
)
"""Attributes that identify a part, or for which the page has a separate field."""
_OF_THE_RUN: Final = frozenset({"horizon", "warm-up"})
_FIRST: Final = frozenset(
    {
        "max-depth", "min-msg-burst", "rate", "count", "round-trip", "maximum-window", "window", "work", "prefetch",
        "timeout", "max-deliveries", "max-messages", "max-bytes", "max-unacknowledged", "unacknowledged-limit",
        "servers", "batch", "think", "sources", "unacked-threshold", "consumers", "service-factor", "max-count",
        "max-delivery-retries", "response-timeout", "delay", "back-off", "loss", "fails", "threads",
    }
)  # fmt: skip
_FIRST_ENDS: Final = (
    "service-time/duration",
    "service-time/mean",
    "service-time/median",
    "-size/median",
    "-size/mean",
    "size/bytes",
)
"""Suffixes of the paths of settings that are shown first."""
_NOT_FIRST: Final = ("broker/", "eliding/", "backlog/", "dead-letters/")
_REFERENCES: Final[Mapping[str, float]] = {"_ns": 10 * MILLISECOND_NS, "_bytes": 65_536, "_per_second": 1_000}
"""The value around which a slider's range is built for a setting that is zero or unlimited, by the field's unit."""


class ControlKind(StrEnum):
    """The kind of a control."""

    RANGE = "range"
    CHOICE = "choice"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class Control:
    """A setting as a control: its path, its value, and its possible values.

    `place` is the path of the setting's element. `base` is the value in the source, `text` the current value, both in
    the scenario's notation. `allowed` completes an error message "… is not". `positions` are the values of the slider
    or of the choice.
    """

    path: str
    place: str
    name: str
    kind: ControlKind
    text: str
    base: str
    allowed: str
    positions: tuple[str, ...]
    is_first: bool


def controls_of(base: Scenario, changed: Scenario) -> list[Control]:
    """Return the settings of a scenario as controls, the most important first, then the others in the order of the
    elements.

    Args:
        base: the scenario of the source.
        changed: the scenario with the current values.
    """
    now = {path: value for path, _, value, _ in settings_of(changed)}
    carried = _queues_with_traffic(base)
    found = []
    for path, kind, value, field in settings_of(base):
        place, _, name = path.rpartition("/")
        if name in _IDENTITY or (not place and name not in _OF_THE_RUN) or path not in now:
            continue
        first = not place or (_is_first(path, name) and _is_carried(base, path, carried))
        found.append(_control(path, kind, value, now[path], field, is_first=first))
    return sorted(found, key=lambda each: (not each.is_first, _rank(each, carried)))


def _control(path: str, kind: Value, base: Any, now: Any, field: str, *, is_first: bool) -> Control:
    place, _, name = path.rpartition("/")
    positions = tuple(_positions(kind, base, now, field))
    is_choice = isinstance(base, bool | StrEnum)
    shown = ControlKind.CHOICE if is_choice else ControlKind.RANGE if len(positions) > 1 else ControlKind.TEXT
    return Control(
        path, place, name, shown, _written(kind, now), _written(kind, base), kind.allowed,
        positions if shown is not ControlKind.TEXT else (), is_first,
    )  # fmt: skip


def _written(kind: Value, value: Any) -> str:
    return "" if value == "" else kind.write(value)


def _queues_with_traffic(scenario: Scenario) -> dict[str, float]:
    """Return the queues of a broker's clients that receive traffic, with their total rates."""
    from qsctl.sim.site.flows import mean_rate

    found: dict[str, float] = {}
    for each in scenario.traffic:
        found[each.queue] = found.get(each.queue, 0.0) + (mean_rate(each.arrivals) or 0.0)
    if scenario.endpoints or scenario.durable_queues:
        found.setdefault("G-1", 0.0)
    return found


def _is_first(path: str, name: str) -> bool:
    return (name in _FIRST or path.endswith(_FIRST_ENDS)) and not any(part in path for part in _NOT_FIRST)


def _is_carried(scenario: Scenario, path: str, carried: Mapping[str, float]) -> bool:
    queue = path.partition("/queue[")[2].partition("]")[0]
    is_limit = path.startswith("profile[") and queue and scenario.model is Model.SOLACE
    return not is_limit or queue in carried


def _rank(control: Control, carried: Mapping[str, float]) -> tuple[int, float]:
    """Return the sort key of a control: settings of the queues with the highest rates come first."""
    queue = control.place.partition("/queue[")[2].partition("]")[0]
    if not control.place:
        return (9, 0.0)
    return (0, -carried.get(queue, 0.0)) if control.place.startswith("profile[") and queue else (1, 0.0)


def _positions(kind: Value, base: Any, now: Any, field: str) -> Iterator[str]:
    """Yield the positions of a slider or a choice as distinct texts, in rising order."""
    if isinstance(base, bool):
        yield from ("false", "true")
        return
    if isinstance(base, StrEnum):
        yield from (each.value for each in type(base) if _reads_back(kind, each))
        return
    seen: set[str] = set()
    for value in _values(kind, base, now, field):
        if _reads_back(kind, value):
            text = kind.write(value)
            if text not in seen:
                seen.add(text)
                yield text


def _reads_back(kind: Value, value: Any) -> bool:
    try:
        return bool(kind.parse(kind.write(value)) == value)
    except (QsctlError, ValueError, ArithmeticError, AssertionError):
        return False


def _values(kind: Value, base: Any, now: Any, field: str) -> Iterable[Any]:
    """Return candidate values around that of the scenario, in rising order; some may not be allowed."""
    if isinstance(base, WorkTime) and isinstance(now, WorkTime):
        return _scaled_works(base if base.times_ns and any(base.times_ns) else now, now)
    if isinstance(base, tuple) and len(base) == 1 and isinstance(base[0], int):
        return [(value,) for value in _numbers(kind, base[0], _first_of(now, base[0]), "_ns")]
    if isinstance(base, BackOff) and isinstance(now, BackOff):
        return _back_offs(kind, base, now)
    if isinstance(base, int | float) and isinstance(now, int | float):
        return _numbers(kind, base, now, field)
    return ()


def _back_offs(kind: Value, base: BackOff, now: BackOff) -> Iterable[BackOff]:
    """Return back-offs with other delays, for a back-off whose delay is the same before every delivery."""
    if len(base.delays_ns) != 1 or len(now.delays_ns) != 1:
        return ()
    delays = _numbers(kind, base.delays_ns[0], now.delays_ns[0], "_ns")
    return [replace(base, delays_ns=(round(each),)) for each in delays]


def _first_of(value: Any, otherwise: int) -> int:
    return value[0] if isinstance(value, tuple) and len(value) == 1 else otherwise


def _scaled_works(base: WorkTime, now: WorkTime) -> Iterable[WorkTime]:
    """Return a distribution of work times scaled by several factors, which keeps its shape."""
    if base.kind is WorkKind.EMPIRICAL or base.kind is not now.kind or not any(base.times_ns):
        return ()
    unit = max(base.times_ns)
    scaled = {
        max(each.times_ns): each
        for number in _spaced(unit / 100, unit * 100)
        for each in [replace(base, times_ns=tuple(_three_digits(time * number / unit) for time in base.times_ns))]
    }
    scaled |= {max(base.times_ns): base, max(now.times_ns): now}
    return [scaled[key] for key in sorted(scaled)]


def _three_digits(number: float) -> int:
    return round(float(f"{number:.2e}"))


def _numbers(kind: Value, base: float, now: float, field: str) -> Iterable[float]:
    """Return the numbers of a slider, including the scenario's value and the current one."""
    if kind.allowed.startswith("a probability"):
        chosen: set[float] = {0.0, *(round(number, 12) for number in _spaced(0.0001, 1.0))}
    elif field.endswith("_percent"):
        chosen = set(range(101))
    else:
        chosen = set(_around(base, field))
    chosen |= {base, now}
    return sorted(chosen, key=lambda value: float("inf") if value == -1 else value)


def _around(base: float, field: str) -> Iterator[float]:
    is_whole = isinstance(base, int)
    is_known = 0 < base < INFINITE_NS
    reference = next((each for unit, each in _REFERENCES.items() if field.endswith(unit)), 100)
    centre = base if is_known else float(reference)
    low = centre / _REACH
    yield 0 if is_whole else 0.0
    if is_whole:
        yield INFINITE_NS if field.endswith("_ns") else -1
        low = max(1.0, low)
    for number in _spaced(low, centre * _REACH):
        yield _rounded(number, field) if is_whole else number


def _rounded(number: float, field: str) -> int:
    """Round a number to an integer with a short notation in its unit."""
    whole = round(number)
    if field.endswith("_bytes") and whole >= 8 * 1024:
        return round(whole / 1024) * 1024
    if field.endswith("_ns") and whole >= 100 * SECOND_NS:
        return round(whole / SECOND_NS) * SECOND_NS
    return whole


def _spaced(low: float, high: float) -> Iterator[float]:
    """Yield numbers of two significant digits from `low` to `high`, evenly spaced on a logarithmic scale."""
    from math import ceil, floor, log10

    for step in range(floor(log10(low) * _PER_DECADE), ceil(log10(high) * _PER_DECADE) + 1):
        yield float(f"{10 ** (step / _PER_DECADE):.1e}")
