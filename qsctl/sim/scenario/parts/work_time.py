"""Durations of work, and delays before a message is delivered again: distributions written as one text.

`lognormal:45s,p99=280s` is one value of an attribute, so that a sweep varies it and a command line accepts it unquoted.
The draws are in `sim/broker_queue/_durations.py`.

- `250ms`: always the same;
- `exponential:2s`: of this mean;
- `lognormal:45s,p99=280s`: by its mean and 99th percentile;
- `gamma:45s,cv=0.5`: by its mean and coefficient of variation (standard deviation ÷ mean);
- `uniform:1s..3s`: anything between, both included;
- `histogram:1s=20,2s=50`: these times with these weights;
- `empirical:work.csv`: the times of a file, each as likely as it is frequent there.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from qsctl.declared.values import Value
from qsctl.instant import HOUR_NS, Nanoseconds, format_duration, parse_duration

Z_99: Final = 2.3263478740408408
"""The 99th percentile of the standard normal distribution."""
P99_OF_MEAN_MAX: Final = math.exp(Z_99 * Z_99 / 2)
"""A lognormal distribution's 99th percentile is at most 14.97 times its mean, whatever its spread."""
WORK_MAX_NS: Final = 1000 * 24 * HOUR_NS
"""No work takes longer; a draw beyond is cut."""
CV_MIN: Final = 0.01
CV_MAX: Final = 100.0


class WorkKind(StrEnum):
    """A distribution of durations."""

    CONSTANT = "constant"
    EXPONENTIAL = "exponential"
    LOGNORMAL = "lognormal"
    GAMMA = "gamma"
    UNIFORM = "uniform"
    HISTOGRAM = "histogram"
    EMPIRICAL = "empirical"


@dataclass(frozen=True, slots=True)
class WorkTime:
    """A distribution. `times_ns` contains, by its kind, the constant, mean, mean and percentile, bounds or values."""

    kind: WorkKind = WorkKind.CONSTANT
    times_ns: tuple[Nanoseconds, ...] = (0,)
    weights: tuple[float, ...] = ()
    """The weights of a histogram's values."""
    variation: float = 0.0
    """The coefficient of variation of a gamma distribution."""
    path: str = ""
    """The file of an empirical distribution."""

    @property
    def is_random(self) -> bool:
        """Return whether two draws may differ."""
        return self.kind is not WorkKind.CONSTANT

    def lognormal_parameters(self) -> tuple[float, float]:
        """Return mean and standard deviation of the logarithm, from the mean m and the 99th percentile q.

        q = exp(μ + zσ) and m = exp(μ + σ²/2): so σ is the smaller root of σ² − 2zσ + 2 ln(q/m).
        """
        mean, high = self.times_ns
        ratio = math.log(high / mean)
        sigma = Z_99 - math.sqrt(max(0.0, Z_99 * Z_99 - 2.0 * ratio))
        return math.log(mean) - sigma * sigma / 2.0, sigma


NO_WORK: Final = WorkTime()


class BackOffKind(StrEnum):
    """The sequence of delays before a message's deliveries."""

    LIST = "list"
    EXPONENTIAL = "exponential"


@dataclass(frozen=True, slots=True)
class BackOff:
    """Delays by the number of deliveries so far: as listed, the last one repeated; or each `factor` times the last."""

    kind: BackOffKind = BackOffKind.LIST
    delays_ns: tuple[Nanoseconds, ...] = (0,)
    """The listed delays; for an exponential back-off the first delay and the longest."""
    factor: float = 2.0

    def table(self) -> tuple[Nanoseconds, ...]:
        """Return the delay after delivery 1, 2, …; the last one applies to all later ones."""
        if self.kind is BackOffKind.LIST:
            return self.delays_ns
        first, longest = self.delays_ns
        found = [min(first, longest)]
        while found[-1] < longest and len(found) < BACK_OFF_ROWS_MAX and self.factor > 1:
            found.append(min(longest, math.floor(first * self.factor ** len(found))))
        return tuple(found)


BACK_OFF_ROWS_MAX: Final = 64
_PARTS_MAX: Final = 10_000

WORK_WORDS: Final = (
    "a duration as in 250ms, or exponential:MEAN, lognormal:MEAN,p99=TIME, gamma:MEAN,cv=NUMBER, uniform:LOW..HIGH, "
    "histogram:TIME=WEIGHT,… or empirical:FILE.csv"
)
_BACK_OFF_WORDS: Final = "durations as in 0s or 1s,5s,30s, or exponential:FIRST,factor=NUMBER,max=TIME"
_TIMEOUT_WORDS: Final = "a duration above zero, several as in 1s,5s,30s (one for each delivery), or infinite"
_NUMBER: Final = re.compile(r"[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")


def _number(text: str, low: float, high: float) -> float:
    if not _NUMBER.fullmatch(text.strip()) or not low <= float(text) <= high:
        raise ValueError(text)
    return float(text)


def _time(text: str, low: Nanoseconds = 1, high: Nanoseconds = WORK_MAX_NS) -> Nanoseconds:
    value = parse_duration(text)
    if not low <= value <= high:
        raise ValueError(text)
    return value


def _options(text: str, *names: str) -> tuple[str, list[str]]:
    """Return the text before the first comma, and the values of these options, in this order."""
    first, *rest = text.split(",")
    found = dict(each.strip().split("=", 1) for each in rest if "=" in each)
    if len(found) != len(rest) or set(found) != set(names):
        raise ValueError(text)
    return first, [found[name] for name in names]


def read_work(text: str) -> WorkTime:
    """Read a distribution.

    Raises:
        ValueError: the text is not a distribution.
        UsageError: a duration in it is invalid.
    """
    word, colon, rest = text.strip().partition(":")
    if not colon:
        return WorkTime(times_ns=(_time(word, 0),))
    match word.strip():
        case WorkKind.EXPONENTIAL:
            return WorkTime(WorkKind.EXPONENTIAL, (_time(rest),))
        case WorkKind.LOGNORMAL:
            mean_text, (high_text,) = _options(rest, "p99")
            mean, high = _time(mean_text), _time(high_text)
            if not mean <= high <= mean * P99_OF_MEAN_MAX:
                raise ValueError(text)
            return WorkTime(WorkKind.LOGNORMAL, (mean, high))
        case WorkKind.GAMMA:
            mean_text, (variation,) = _options(rest, "cv")
            return WorkTime(WorkKind.GAMMA, (_time(mean_text),), variation=_number(variation, CV_MIN, CV_MAX))
        case WorkKind.UNIFORM:
            low_text, _, high_text = rest.partition("..")
            low, high = _time(low_text, 0), _time(high_text, 0)
            if low > high:
                raise ValueError(text)
            return WorkTime(WorkKind.UNIFORM, (low, high))
        case WorkKind.HISTOGRAM:
            parts = [each.partition("=") for each in rest.split(",")]
            times = tuple(_time(time, 0) for time, _, _ in parts)
            weights = tuple(_number(weight, 0.0, 1e15) for _, _, weight in parts)
            if len(parts) > _PARTS_MAX or sum(weights) <= 0:
                raise ValueError(text)
            return WorkTime(WorkKind.HISTOGRAM, times, weights)
        case WorkKind.EMPIRICAL:
            if not rest.strip():
                raise ValueError(text)
            return WorkTime(WorkKind.EMPIRICAL, (), path=rest.strip())
        case _:
            raise ValueError(text)


def write_number(value: float) -> str:
    """Return the shortest text of a number that reads back."""
    return str(int(value)) if value == int(value) else repr(float(value))


def write_work(value: object) -> str:
    """Return the text that `read_work` reads back."""
    assert isinstance(value, WorkTime)
    times = [format_duration(each) for each in value.times_ns]
    match value.kind:
        case WorkKind.CONSTANT:
            return times[0]
        case WorkKind.EXPONENTIAL:
            return f"exponential:{times[0]}"
        case WorkKind.LOGNORMAL:
            return f"lognormal:{times[0]},p99={times[1]}"
        case WorkKind.GAMMA:
            return f"gamma:{times[0]},cv={write_number(value.variation)}"
        case WorkKind.UNIFORM:
            return f"uniform:{times[0]}..{times[1]}"
        case WorkKind.HISTOGRAM:
            pairs = zip(times, value.weights, strict=True)
            return "histogram:" + ",".join(f"{time}={write_number(weight)}" for time, weight in pairs)
        case WorkKind.EMPIRICAL:
            return f"empirical:{value.path}"


def _read_back_off(text: str) -> BackOff:
    word, colon, rest = text.strip().partition(":")
    if not colon:
        delays = tuple(_time(each, 0) for each in text.split(","))
        if len(delays) > BACK_OFF_ROWS_MAX:
            raise ValueError(text)
        return BackOff(delays_ns=delays)
    if word.strip() != BackOffKind.EXPONENTIAL:
        raise ValueError(text)
    first_text, (factor, longest_text) = _options(rest, "factor", "max")
    first, longest = _time(first_text), _time(longest_text)
    if first > longest:
        raise ValueError(text)
    return BackOff(BackOffKind.EXPONENTIAL, (first, longest), _number(factor, 1.0, 1000.0))


def _write_back_off(value: object) -> str:
    assert isinstance(value, BackOff)
    times = [format_duration(each) for each in value.delays_ns]
    if value.kind is BackOffKind.LIST:
        return ",".join(times)
    return f"exponential:{times[0]},factor={write_number(value.factor)},max={times[1]}"


def _read_timeouts(text: str) -> tuple[Nanoseconds, ...]:
    found = tuple(parse_duration(each) for each in text.split(","))
    if len(found) > TIMEOUTS_MAX or min(found) <= 0:
        raise ValueError(text)
    return found


def _write_timeouts(value: object) -> str:
    assert isinstance(value, tuple)
    return ",".join(format_duration(each) for each in value)


TIMEOUTS_MAX: Final = 32
WORK: Final = Value(WORK_WORDS, read_work, write_work)
OPTIONAL_WORK: Final = Value(
    f"{WORK_WORDS}, or usual",
    lambda text: None if text.strip() == "usual" else read_work(text),
    lambda value: "usual" if value is None else write_work(value),
)
BACK_OFF: Final = Value(_BACK_OFF_WORDS, _read_back_off, _write_back_off)
TIMEOUTS: Final = Value(_TIMEOUT_WORDS, _read_timeouts, _write_timeouts)
