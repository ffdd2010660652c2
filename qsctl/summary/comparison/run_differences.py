"""Detection of deviating runs among many: outliers of runs that should be alike, and changes that persist from a run
on.

Outliers: the distance of a run from the median of its group, in median absolute deviations. The limit is the quantile
of the largest such distance among as many runs with normal figures, from a fixed sample of random numbers: the distance
does not depend on their mean and deviation, so that the probability of reporting any of them is the one that the caller
states (F. R. Hampel, "The Influence Curve and Its Role in Robust Estimation", Journal of the American Statistical
Association 69 (1974), has the median absolute deviation). Figures with longer tails are reported more often.

Changes: Pettitt's statistic of the ranks, whose largest value is where the figures before and after differ most (A. N.
Pettitt, "A Non-Parametric Approach to the Change-Point Problem", Applied Statistics 28 (1979)). Its probability comes
from permutations, so that no distribution is assumed: among exchangeable figures a change is found with at most the
stated probability. After a change is found, both sides are searched for more. The method is for runs: neighbouring
windows of one queue are not exchangeable.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.float64]

LEAST_RUNS: Final = 5
"""Least number of runs for a statement: of four runs, two outliers would be as many as the others."""

LEAST_FALSE_ALARM: Final = 0.001
"""Least probability of a false alarm that the number of random samples supports."""

_TRIALS: Final = 20_000
_PERMUTATIONS: Final = 1_999
_SEED: Final = 52


@dataclass(frozen=True, slots=True)
class OutlyingValue:
    """A value that is far from the others; `limit` is None if more than half of the values are equal.

    In that case any other value is reported, without a probability.
    """

    place: int
    typical: float
    distance: float | None
    limit: float | None


@dataclass(frozen=True, slots=True)
class ChangePoint:
    """The first place of a sequence from which values differ, with the medians before it and after it, up to the next
    change.
    """

    place: int
    before: float
    after: float
    probability: float


def outlying_values(values: Values, false_alarm: float) -> list[OutlyingValue]:
    """Return the values that are far from the others, in their order.

    Args:
        values: finite values of runs that should be alike.
        false_alarm: probability that any value is returned if the values are normally distributed; at least
            `LEAST_FALSE_ALARM`.
    """
    if len(values) < LEAST_RUNS:
        return []
    typical = float(np.median(values))
    distances = np.abs(values - typical)
    spread = float(np.median(distances))
    if spread == 0:
        return [OutlyingValue(int(at), typical, None, None) for at in np.flatnonzero(distances > 0)]
    limit = _limit(len(values), false_alarm)
    return [
        OutlyingValue(int(at), typical, float(distances[at]) / spread, limit)
        for at in np.flatnonzero(distances > limit * spread)
    ]


@lru_cache(maxsize=256)
def _limit(count: int, false_alarm: float) -> float:
    """Return the quantile of the largest distance among normally distributed values, in median absolute deviations."""
    draw = np.random.default_rng((_SEED, count))
    largest = []
    rows = max(1, 2_000_000 // count)
    for begin in range(0, _TRIALS, rows):
        sample = draw.standard_normal((min(rows, _TRIALS - begin), count))
        distances = np.abs(sample - np.median(sample, axis=1, keepdims=True))
        largest.append(distances.max(axis=1) / np.median(distances, axis=1))
    return float(np.quantile(np.concatenate(largest), 1 - false_alarm, method="higher"))


def change_points(values: Values, false_alarm: float) -> list[ChangePoint]:
    """Return the places from which values differ, in their order.

    Args:
        values: finite values of runs, in the order of time.
        false_alarm: probability that any change is found in exchangeable values; at least `LEAST_FALSE_ALARM`.
    """
    places = sorted(_changes(values, 0, false_alarm))
    bounds = [0, *(place for place, _ in places), len(values)]
    return [
        ChangePoint(
            place,
            float(np.median(values[bounds[number] : place])),
            float(np.median(values[place : bounds[number + 2]])),
            probability,
        )
        for number, (place, probability) in enumerate(places)
    ]


def _changes(values: Values, first: int, false_alarm: float) -> list[tuple[int, float]]:
    if len(values) < 2 * LEAST_RUNS:
        return []
    ranks = _ranks(values)
    place, largest = _pettitt(ranks)
    draw = np.random.default_rng((_SEED, len(values)))
    permuted = draw.permuted(np.tile(ranks, (_PERMUTATIONS, 1)), axis=1)
    others = np.abs(np.cumsum(permuted, axis=1)[:, :-1]).max(axis=1)
    # Sums of centred ranks are multiples of one half, so that equal sums are exactly equal.
    probability = (1 + int(np.count_nonzero(others >= largest))) / (1 + _PERMUTATIONS)
    if probability > false_alarm:
        return []
    before, after = values[:place], values[place:]
    return [
        (first + place, probability), *_changes(before, first, false_alarm),
        *_changes(after, first + place, false_alarm),
    ]  # fmt: skip


def _ranks(values: Values) -> Values:
    """Return the rank of each value minus the mean rank; equal values have the mean of their ranks."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    means = ends - (counts - 1) / 2
    return np.asarray(means[inverse] - (len(values) + 1) / 2, np.float64)


def _pettitt(ranks: Values) -> tuple[int, float]:
    """Return the place where the sums of ranks before and after it differ most, and half of Pettitt's statistic
    there.
    """
    sums = np.abs(np.cumsum(ranks)[:-1])
    place = int(np.argmax(sums))
    return place + 1, float(sums[place])
