"""The points of a sweep that may be the best on a measure, and those that may be on the Pareto front of two.

A point is excluded only if another one is shown to be better, by the one-sided test of the difference of their means
(`statistics`: of pairs where the replications have common random numbers, else Welch's). With k points each test has a
(k − 1)th of the error, so that the best one stays with at least the stated probability, however many others are as good
(subset selection: Gupta, "On some multiple decision (selection and ranking) rules", Technometrics 7, 1965; with unequal
variances and by Bonferroni's inequality: Nelson, Swann, Goldsman and Song, "Simple procedures for selecting the best
simulated system when the number of alternatives is large", Operations Research 49, 2001). If more than one remains,
they are not separated. No indifference zone is assumed; instead, the difference between the best point and the one with
the best mean is bounded, with a (k · (k − 1))th of the error for each pair, since that point was chosen by the data
(Hsu, *Multiple Comparisons*, 1996, "with the best").

A point is off the front if another one is shown to be better on one measure, and better on the other or equal in every
replication; each of the k · (k − 1) ordered pairs has its part of the error, and both tests must agree, so that one of
them being right is enough (Berger, "Multiparameter hypothesis testing and acceptance sampling", Technometrics 24,
1982). With the stated probability no point of the true front is missing from the result. No test shows that a point is
*on* the front: it was only not refuted.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from qsctl.errors import UsageError
from qsctl.sim.sweep import Point
from qsctl.summary.inference.statistics import TestedDifference, difference_of_means, paired_difference
from qsctl.summary.sweeps.points import EVERY_MEASURE, LARGER_IS_BETTER
from qsctl.summary.sweeps.sweep_folder import PointResult

FEWEST: Final = 3
"""Least number of replications of a point for a statement."""
LARGER: Final = LARGER_IS_BETTER | {"delivered_messages", "delivered_per_second"}
_FORM: Final = re.compile(r"\s*(?P<measure>[a-z][a-z0-9_]*)\((?P<queue>[^()]+)\)\s*")


@dataclass(frozen=True, slots=True)
class Criterion:
    """A measure of a queue, by which points are ranked."""

    measure: str
    queue: str

    @property
    def larger_is_better(self) -> bool:
        """Return whether larger values are better."""
        return self.measure in LARGER

    def __str__(self) -> str:
        return f"{self.measure}({self.queue})"


@dataclass(frozen=True, slots=True)
class Ranked:
    """A point with its mean of each criterion, and the point that is shown to be better, if any."""

    point: Point
    means: tuple[float, ...]
    beaten_by: Point | None = None


@dataclass(frozen=True, slots=True)
class Selection:
    """The result of a selection: for one criterion the best points, for two the front."""

    criteria: tuple[Criterion, ...]
    confidence: float
    replications: int
    """The number of replications of the point that has the fewest."""
    ranked: tuple[Ranked, ...]
    """All points, by decreasing quality of the first criterion's mean."""
    left_out: tuple[Point, ...] = ()
    """Points with too few replications that have the measure."""
    worse_at_most: float | None = None
    """For the best: the largest difference between the best point and the first; None if no bound is shown."""
    is_tie: bool = False
    """Whether the remaining points had the same value in every replication, so that more replications separate none."""

    @property
    def staying(self) -> tuple[Ranked, ...]:
        """The points for which no other point is shown to be better."""
        return tuple(each for each in self.ranked if each.beaten_by is None)


def parse_criteria(text: str, count: int, option: str) -> tuple[Criterion, ...]:
    """Parse the value of `--best` or `--front`: measures of queues, separated by commas.

    Raises:
        UsageError: it has another form, or a measure does not exist.
    """
    example = "'time_in_queue_p99(D-1)'" if count == 1 else "'high_water_mark(D-1),loss_ratio(D-1)'"
    parts = [_FORM.fullmatch(part) for part in re.split(r",(?![^()]*\))", text)]
    if len(parts) != count or not all(parts):
        raise UsageError(f"{option} {text!r} is not {count} MEASURE(QUEUE)", remedy=f"Write it as in {example}.")
    criteria = tuple(Criterion(part["measure"], part["queue"].strip()) for part in parts if part)
    for each in criteria:
        if each.measure not in EVERY_MEASURE:
            raise UsageError(
                f"{option} {text!r}: there is no measure {each.measure!r}", remedy=f"Use {', '.join(EVERY_MEASURE)}."
            )
    if len(set(criteria)) < count:
        raise UsageError(f"{option} {text!r} names one measure twice", remedy=f"Write it as in {example}.")
    return criteria


def select(
    results: Sequence[PointResult], criteria: Sequence[Criterion], confidence: float, *, paired: bool
) -> Selection:
    """Select the points of a sweep that may be the best, or on the front.

    Args:
        results: results of the sweep.
        criteria: one for the best, two for the front.
        confidence: probability that the best point, or every point of the front, is among the remaining ones.
        paired: whether replications of one number have the same arrivals at every point.

    Raises:
        UsageError: no point has such a queue, or enough replications with the measures.
    """
    values, left_out = _values_of(results, criteria)
    if not values:
        names = ", ".join(dict.fromkeys(figures.queue for result in results for figures in result.figures))
        raise UsageError(
            f"no point has {FEWEST} replications with {' and '.join(map(str, criteria))}",
            remedy=f"Give more --replications, or name one of the queues {names}.",
        )
    points = sorted(values, key=lambda point: _score(criteria[0], _mean(values[point][0])))
    pairs = len(points) * (len(points) - 1) if len(criteria) > 1 else len(points) - 1
    error = (1.0 - confidence) / max(1, pairs)
    ranked = tuple(
        Ranked(
            point,
            tuple(_mean(each) for each in values[point]),
            next(
                (other for other in points if other != point and _beats(values, other, point, criteria, error, paired)),
                None,
            ),
        )
        for point in points
    )
    worse = None
    if len(criteria) == 1:
        worse = _worse_at_most(points[0], points[1:], values, criteria[0], confidence, paired)
    fewest = min(len(each) for rows in values.values() for each in rows)
    seen = {value for each in ranked if each.beaten_by is None for row in values[each.point] for value in row.values()}
    return Selection(tuple(criteria), confidence, fewest, ranked, left_out, worse, len(criteria) == 1 == len(seen))


_Values = Mapping[Point, Sequence[Mapping[int, float]]]
"""The value of each replication, by its number, for each point and criterion."""


def _values_of(
    results: Sequence[PointResult], criteria: Sequence[Criterion]
) -> tuple[dict[Point, list[dict[int, float]]], tuple[Point, ...]]:
    found: dict[Point, list[dict[int, float]]] = {}
    for result in results:
        rows = found.setdefault(result.point, [{} for _ in criteria])
        for row, criterion in zip(rows, criteria, strict=True):
            for figures in result.figures:
                value = EVERY_MEASURE[criterion.measure](figures) if figures.queue == criterion.queue else None
                if value is not None:
                    row[result.replication] = value
    whole = {point: rows for point, rows in found.items() if min(map(len, rows)) >= FEWEST}
    return whole, tuple(point for point in found if point not in whole)


def _beats(
    values: _Values, other: Point, point: Point, criteria: Sequence[Criterion], error: float, paired: bool
) -> bool:
    """Return whether `other` is shown to be better than `point` on one criterion, and better or equal on all."""
    is_better = False
    for place, criterion in enumerate(criteria):
        a, b = values[point][place], values[other][place]
        if set(a.values()) == set(b.values()) and len(set(a.values())) == 1:
            continue
        tested = _tested(a, b, 0.5, paired)
        worse = _score(criterion, tested.interval.mean) >= 0.0
        if worse or tested.p_value / 2.0 > error:
            return False
        is_better = True
    return is_better


def _worse_at_most(
    first: Point, others: Sequence[Point], values: _Values, criterion: Criterion, confidence: float, paired: bool
) -> float | None:
    count = len(others) + 1
    error = (1.0 - confidence) / max(1, count * (count - 1))
    most = 0.0
    for other in others:
        a, b = values[first][0], values[other][0]
        if set(a.values()) == set(b.values()) and len(set(a.values())) == 1:
            continue
        interval = _tested(a, b, 1.0 - 2.0 * error, paired).interval
        if not interval.half_width or not math.isfinite(interval.half_width):
            return None  # each side has one constant value, so that the width is unknown
        most = max(most, interval.half_width - _score(criterion, interval.mean))
    return most


def _tested(a: Mapping[int, float], b: Mapping[int, float], confidence: float, paired: bool) -> TestedDifference:
    """Return the test of mean(b) − mean(a)."""
    both = sorted(set(a) & set(b))
    if paired and len(both) >= FEWEST:
        return paired_difference([b[number] - a[number] for number in both], confidence)
    return difference_of_means(list(a.values()), list(b.values()), confidence)


def _score(criterion: Criterion, value: float) -> float:
    """Return a value of a criterion with its sign chosen so that smaller is better."""
    return -value if criterion.larger_is_better else value


def _mean(values: Mapping[int, float]) -> float:
    return math.fsum(values.values()) / len(values)
