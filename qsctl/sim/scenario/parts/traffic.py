"""Traffic: the distributions of messages' intervals and sizes.

The draws themselves are in `sim/arrivals`, the elements of a scenario in `forms`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from qsctl.instant import HOUR_NS, Nanoseconds


@dataclass(frozen=True, slots=True)
class ConstantSize:
    """Every message has the same length."""

    size_bytes: int = 1024


@dataclass(frozen=True, slots=True)
class UniformSize:
    """Any length from minimum to maximum, both included."""

    minimum_bytes: int
    maximum_bytes: int


@dataclass(frozen=True, slots=True)
class LognormalSize:
    """Lognormal lengths with a median and a standard deviation of the logarithm; cut at the maximum, never below 1."""

    median_bytes: int
    sigma: float
    maximum_bytes: int = 10_000_000


@dataclass(frozen=True, slots=True)
class ExponentialSize:
    """Exponential lengths around a mean; cut at the maximum, never below 1."""

    mean_bytes: int
    maximum_bytes: int = 10_000_000


@dataclass(frozen=True, slots=True)
class ParetoSize:
    """Many small and few very large: P(length > x) = (minimum ÷ x)^shape; cut at the maximum."""

    minimum_bytes: int
    shape: float
    maximum_bytes: int = 10_000_000


@dataclass(frozen=True, slots=True)
class MixedSize:
    """Lengths drawn from a list with weights."""

    sizes_bytes: tuple[int, ...]
    weights: tuple[float, ...]


Size: TypeAlias = ConstantSize | UniformSize | LognormalSize | ExponentialSize | ParetoSize | MixedSize


@dataclass(frozen=True, slots=True)
class PoissonArrivals:
    """Independent exponential gaps."""

    rate_per_second: float


@dataclass(frozen=True, slots=True)
class ConstantArrivals:
    """Equal gaps; a group's clients are spread evenly over the first one."""

    rate_per_second: float


@dataclass(frozen=True, slots=True)
class OnOffArrivals:
    """Poisson arrivals at `rate_per_second` during on periods; on and off periods are exponential or fixed."""

    rate_per_second: float
    on_ns: Nanoseconds
    off_ns: Nanoseconds
    fixed: bool = False


@dataclass(frozen=True, slots=True)
class MmppArrivals:
    """A Markov-modulated Poisson process: each state has a rate and a mean stay; the next state is drawn uniformly.

    With `cycle` the states follow each other in their written order, cyclically, each for exactly its stay, as rates
    by the hour of a day.
    """

    rates_per_second: tuple[float, ...]
    mean_stays_ns: tuple[Nanoseconds, ...]
    cycle: bool = False


@dataclass(frozen=True, slots=True)
class TraceArrivals:
    """Recorded arrivals: CSV or Parquet with `time_ns`, `size_bytes` and optionally `topic_id`, `client`, `queue`."""

    path: str


@dataclass(frozen=True, slots=True)
class ScheduleArrivals:
    """Poisson arrivals whose rate follows a timetable, which begins with the stream and again after each period.

    Each rate holds from its instant to the next one; the last one to the end of the period.
    """

    instants_ns: tuple[Nanoseconds, ...]
    rates_per_second: tuple[float, ...]
    period_ns: Nanoseconds = 24 * HOUR_NS


Arrivals: TypeAlias = (
    PoissonArrivals | ConstantArrivals | OnOffArrivals | MmppArrivals | TraceArrivals | ScheduleArrivals
)
