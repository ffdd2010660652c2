"""Steady-state analysis of one run: the end of its start-up, and intervals of its means and percentiles.

The end of the start-up is determined by MSER-5: messages are averaged in groups of five, and of all possible truncation
points up to half of the run, the one is chosen whose rest has the least standard error (White, "An effective truncation
heuristic for bias reduction in simulation output", Simulation 69, 1997; White, Cobb and Spratt, Winter Simulation
Conference 2000). If more than `WARNED` of the run is truncated, or the minimum is at the end of the permitted part, a
warning states that the run is mostly start-up, or drifts.

Intervals are by overlapping batch means (Meketon and Schmeiser, "Overlapping batch means: something for nothing?",
Winter Simulation Conference 1984), with `BATCHES` less one degrees of freedom. That of a percentile is derived from the
fraction of messages below it: the interval of that fraction, by the same method, is converted to waits, and made
symmetric by its wider side. Messages depend on each other and are not counted as observations.

A run that is too short for a percentile has no interval of it. A run with fewer than `RELAXATIONS` times the number of
messages over which waits depend on each other (`relaxation`) has no interval at all: it had too few long queues, and if
it began empty, most of it is start-up. `tests/summary/test_steady.py` measures how often the intervals contain the
steady state of M/M/1, and how often they are withheld: for runs from empty at load 0.9, always with 2,000 messages,
whose intervals would be right in half of the cases, and never with 400,000.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from qsctl.summary.inference.statistics import Interval
from qsctl.summary.inference.student import t_quantile

GROUP: Final = 5
BATCHES: Final = 10
WARNED: Final = 0.1
"""Largest fraction of a run that may be its start-up without a warning."""
FEWEST: Final = 20 * BATCHES
"""Least number of messages for an interval from one run."""
_FEWEST_BEYOND: Final = 20
"""Least number of messages above a percentile for an interval of it."""
OVERLAPPING: Final = "overlapping batch means of one run"
RELAXATIONS: Final = 400
"""Least ratio of the number of values of a run to their relaxation, see the module."""
_LAGS: Final = 5
_MOST_LAGS: Final = 20_000


@dataclass(frozen=True, slots=True)
class StartUp:
    """The number of a run's values in its start-up, and whether the run drifts.

    `drifts`: the least standard error is at the end of the part that may be truncated.
    """

    left_out: int
    count: int
    drifts: bool

    @property
    def spoils(self) -> bool:
        """Return whether the start-up makes the run unreliable, so that a longer run or a warm-up is needed."""
        return self.drifts or self.left_out > WARNED * self.count


def start_up(values: np.ndarray) -> StartUp:
    """Determine the start-up of a run by MSER-5."""
    groups = len(values) // GROUP
    if groups < 2 * GROUP:
        return StartUp(0, len(values), drifts=False)
    means = values[: groups * GROUP].astype(np.float64).reshape(groups, GROUP).mean(axis=1)
    # For each rest of the run: the sum of squared deviations divided by the square of its length.
    rest = np.arange(groups, 0, -1, dtype=np.float64)
    sums, squares = np.cumsum(means[::-1])[::-1], np.cumsum((means**2)[::-1])[::-1]
    error = np.maximum(0.0, squares - sums**2 / rest) / rest**2
    half = groups // 2
    best = int(np.argmin(error[: half + 1]))
    return StartUp(best * GROUP, len(values), drifts=best >= half - 1 and bool(means.min() < means.max()))


def mean_of_run(values: np.ndarray, confidence: float) -> Interval:
    """Return the mean of one run's values with its interval, infinite if the values are too few."""
    mean = float(values.mean())
    if is_short(values):
        return Interval(mean, math.inf, 1, OVERLAPPING)
    return Interval(mean, _half_width(values, confidence), 1, OVERLAPPING)


def _half_width(values: np.ndarray, confidence: float) -> float:
    count, mean = len(values), float(values.mean())
    size = count // BATCHES
    sums = np.concatenate([[0.0], np.cumsum(values.astype(np.float64) - mean)])
    deviations = (sums[size:] - sums[:-size]) / size
    variance = count * size / ((count - size + 1) * (count - size)) * float((deviations**2).sum()) / count
    return t_quantile(confidence, BATCHES - 1) * math.sqrt(variance)


def relaxation(values: np.ndarray) -> float:
    """Return the number of values over which values of a run depend on each other: the sum of all autocorrelations.

    It is summed up to the first lag that is `_LAGS` times the sum so far (Sokal, "Monte Carlo methods in statistical
    mechanics", 1997), beyond which there is noise. 0 if all values are equal. Long runs are averaged in groups first.
    """
    group = max(1, len(values) // _MOST_LAGS)
    count = len(values) // group
    means = values[: count * group].astype(np.float64).reshape(count, group).mean(axis=1)
    means -= means.mean()
    variance = float((means**2).mean()) if count else 0.0
    if variance == 0.0:
        return 0.0
    spectrum = np.fft.rfft(means, 2 * count)
    correlations = np.fft.irfft(spectrum * np.conj(spectrum))[:count] / (count * variance)
    sums = 2.0 * np.cumsum(correlations) - 1.0
    enough = np.flatnonzero(np.arange(count) >= _LAGS * sums)
    found = max(1.0 / count, float(sums[enough[0] if len(enough) else -1]))
    # Group means vary less than the values if these depend little on each other.
    return found * group * variance / float(values.var())


def fewest_values(values: np.ndarray) -> int:
    """Return the least number of values of a run like this one for which intervals are computed."""
    return max(FEWEST, math.ceil(RELAXATIONS * relaxation(values)))


def is_short(values: np.ndarray) -> bool:
    """Return whether a run is too short for intervals, because its values depend on each other over too large a part of
    it.
    """
    return len(values) < fewest_values(values)


def percentile_of_run(values: np.ndarray, part: float, confidence: float) -> Interval:
    """Return a percentile (nearest rank) of one run's values with its interval, infinite if the values are too few."""
    ordered = np.sort(values)
    whole = float(ordered[_place(part, len(values))])
    if len(values) * (1.0 - part) < _FEWEST_BEYOND or is_short(values):
        return Interval(whole, math.inf, 1, OVERLAPPING)
    half = _half_width((values <= whole).astype(np.float64), confidence)
    if part + half >= 1.0:
        return Interval(whole, math.inf, 1, OVERLAPPING)
    low, high = (float(ordered[_place(max(0.0, each), len(values))]) for each in (part - half, part + half))
    return Interval(whole, max(high - whole, whole - low), 1, OVERLAPPING)


def _place(part: float, count: int) -> int:
    return min(count - 1, max(0, math.ceil(part * count) - 1))
