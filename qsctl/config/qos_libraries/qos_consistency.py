"""The policies of one QoS element that contradict each other, or have values that no entity can have (DDS 1.4, 2.2.3).

DDS creates no entity with such policies. An entity with consistent ones can be created; a fuzz target tests that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from lxml import etree
from lxml.etree import _Element

from qsctl.declared.values import INT32_MAX, UNLIMITED_WORDS, ValueForm, duration, nanoseconds, seconds, whole_number
from qsctl.instant import INFINITE_NS, Nanoseconds, format_duration

_UNLIMITED: Final = -1
_DURATION_PARTS: Final = frozenset({"sec", "nanosec"})
_INT32_MIN: Final = -(2**31)


@dataclass(frozen=True, slots=True)
class Inconsistency:
    """An inconsistency at `step`, a path inside the QoS element."""

    step: str
    message: str
    found: str
    allowed: str


def inconsistencies(text: str) -> Iterator[Inconsistency]:
    """Yield what is wrong with a QoS element, given as canonical XML text."""
    root = etree.fromstring(text.encode())
    wrong = [*_wrong_durations(root), *_wrong_numbers(root)]
    yield from wrong
    if wrong:
        return  # the combined values would only repeat it
    for check in _RELATIONS:
        yield from check(root)


def _wrong_durations(root: _Element) -> Iterator[Inconsistency]:
    for element in root.iter():
        parts = {str(child.tag): _text(child) for child in element}
        if not parts or not parts.keys() <= _DURATION_PARTS:
            continue
        try:
            _duration(element)
        except ValueForm as form:
            step = "/".join(_steps(root, element))
            found = " ".join(f"<{tag}> {value}" for tag, value in parts.items())
            yield Inconsistency(step, f"<{element.tag}> is not a length of time", found, form.allowed)


_LIMITS: Final = ("max_samples", "max_instances", "max_samples_per_instance")
_WHOLE_NUMBERS: Final = {
    "history/depth": (1, INT32_MAX),
    "durability_service/history_depth": (1, INT32_MAX),
    "transport_priority/value": (_INT32_MIN, INT32_MAX),
    "ownership_strength/value": (_INT32_MIN, INT32_MAX),
}


def _wrong_numbers(root: _Element) -> Iterator[Inconsistency]:
    for step, (low, high) in _WHOLE_NUMBERS.items():
        text = _text(root.find(step))
        if text and not _is_within(_number(text), low, high):
            yield Inconsistency(step, f"<{step}> is out of range", text, f"a whole number from {low} to {high}")
    for policy in ("resource_limits", "durability_service"):
        for tag in (*_LIMITS, "initial_samples", "initial_instances"):
            text = _text(root.find(f"{policy}/{tag}"))
            if text and _limit(text) != _UNLIMITED and not _is_within(_limit(text), 1, INT32_MAX):
                step = f"{policy}/{tag}"
                allowed = f"LENGTH_UNLIMITED, or a whole number from 1 to {INT32_MAX}"
                yield Inconsistency(step, f"<{step}> is out of range", text, allowed)


def _deadline_covers_the_filter(root: _Element) -> Iterator[Inconsistency]:
    """Check that a time-based filter passes at least one sample in each deadline period (DDS 1.4, 2.2.3.12)."""
    period = _length(root, "deadline/period", INFINITE_NS)
    separation = _length(root, "time_based_filter/minimum_separation", 0)
    if period < separation:
        yield Inconsistency(
            "deadline",
            "the deadline is shorter than the separation of the time-based filter",
            f"deadline {format_duration(period)}, minimum separation {format_duration(separation)}",
            f"a deadline of {format_duration(separation)} or more",
        )


def _history_fits_the_limits(root: _Element) -> Iterator[Inconsistency]:
    """Check that history depth ≤ samples per instance ≤ samples of the entity (DDS 1.4, 2.2.3.19)."""
    for policy, kind, depth in (
        ("resource_limits", "history/kind", "history/depth"),
        ("durability_service", "durability_service/history_kind", "durability_service/history_depth"),
    ):
        most, each = (_given(root, f"{policy}/{tag}") for tag in ("max_samples", "max_samples_per_instance"))
        if most is not None and each is not None and each > most:
            yield Inconsistency(
                policy,
                "max_samples_per_instance is greater than max_samples",
                f"{each} > {most}",
                f"at most {most}",
            )
        keeps_last = "KEEP_ALL" not in _text(root.find(kind))
        kept = _given(root, depth)
        least = min(limit for limit in (most, each, INT32_MAX) if limit is not None)
        if keeps_last and kept is not None and kept > least:
            yield Inconsistency(
                depth.rpartition("/")[0],
                "the history of an instance is deeper than the resource limits",
                f"depth {kept} > {least}",
                f"a depth of at most {least}",
            )


def _initial_is_within_the_limits(root: _Element) -> Iterator[Inconsistency]:
    for what in ("samples", "instances"):
        first = _given(root, f"resource_limits/initial_{what}")
        most = _given(root, f"resource_limits/max_{what}")
        if first is not None and most is not None and first > most:
            yield Inconsistency(
                f"resource_limits/initial_{what}",
                f"initial_{what} is greater than max_{what}",
                f"{first} > {most}",
                f"at most {most}",
            )


_RELATIONS: Final[tuple[Callable[[_Element], Iterator[Inconsistency]], ...]] = (
    _deadline_covers_the_filter,
    _history_fits_the_limits,
    _initial_is_within_the_limits,
)


def _length(root: _Element, path: str, absent: Nanoseconds) -> Nanoseconds:
    element = root.find(path)
    return absent if element is None or not len(element) else _duration(element)


def _duration(element: _Element) -> Nanoseconds:
    sec, nanosec = _text(element.find("sec")) or "0", _text(element.find("nanosec")) or "0"
    return duration(seconds(sec), nanoseconds(nanosec))


def _given(root: _Element, path: str) -> int | None:
    """Return the number at a path if it is a limit; None where it is missing or unlimited."""
    limit = _limit(_text(root.find(path)))
    return None if limit is None or limit == _UNLIMITED else limit


def _limit(text: str) -> int | None:
    if text in UNLIMITED_WORDS:
        return _UNLIMITED
    return _number(text)


def _is_within(number: int | None, low: int, high: int) -> bool:
    return number is not None and low <= number <= high


def _number(text: str) -> int | None:
    try:
        return whole_number(text)
    except ValueForm:
        return None


def _text(element: _Element | None) -> str:
    return " ".join((element.text or "").split()) if element is not None else ""


def _steps(root: _Element, element: _Element) -> list[str]:
    steps: list[str] = []
    at: _Element | None = element
    while at is not None and at is not root:
        steps.append(str(at.tag))
        at = at.getparent()
    return steps[::-1]
