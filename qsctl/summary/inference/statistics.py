"""The statistics of sweeps, sizing and comparisons: the statements, their error probabilities, and the methods.

One observation is the value of a measure of a queue in one replication, after the warm-up. Replications have their own
random numbers and are independent; messages within one are not, and are never counted as observations.

Intervals. The mean of n replications has Student's two-sided t interval ("The probable error of a mean", Biometrika 6,
1908); the difference of two sides with common random numbers is the mean of the differences pair by pair, with the same
interval; without them it is Welch's ("The generalization of Student's problem", Biometrika 34, 1947) with the degrees
of freedom of Satterthwaite (Biometrics Bulletin 2, 1946), rounded down. With one observation the width is infinite. A
mean of percentiles from a histogram also has the histogram's error (`READING_ERROR`).

Many differences at once (`compare`). Each has a two-sided p-value; Holm's step-down method ("A simple sequentially
rejective multiple test procedure", Scandinavian Journal of Statistics 6, 1979) adjusts them under any dependence: with
the stated confidence none of the reported winners is wrong. If all differences are equal and not zero, their zero
variance is no evidence: the sign test is used (p = 2^(1 − n)), unless both sides are deterministic, with the same
figures in every replication.

One-sided bounds of means (`size`): by betting, for any distribution below a bound that is known or assumed and stated
with the answer; `_bounded_means.py` has the method and its sources, `evidence.py` the bounds of a run's value.

Proportions of runs (`size`: targets of zero, `P(…)<5%`). If no run of n violated, and a part s or more of all runs did,
that had the probability (1 − s)^n at most, so n = ln(error) ÷ ln(1 − s) runs are needed: 59 for 5 % with 95 %
confidence (the rule of three: Hanley and Lippman-Hand, "If nothing goes wrong, is everything all right?", JAMA 249,
1983). A target of zero is refuted by the first run that violates it. A target `P(…)<s` allows some: after every run the
count is compared with an exact binomial boundary, which spends half of the error where no violation is enough and the
rest evenly up to the last run; how often it is crossed at s is computed exactly, run by run.

Several targets must all be shown; each is tested with the whole error (intersection-union: Berger, "Multiparameter
hypothesis testing and acceptance sampling", Technometrics 24, 1982).

Many candidates (`size`). All have the same arrivals, and each target changes in one direction with a setting
(`sim.sizing.directions`), run by run: so among ordered candidates, one that should not pass does so only if the nearest
such one would, and all together have one candidate's error. Where some targets require a larger setting and others a
smaller one, that may happen on either side, and each has half of the error. Several settings are searched one after the
other, each with arrivals of its own and its part of the error; a grid of listed values is covered by as few orders as
it needs (Dilworth, Annals of Mathematics 51, 1950), and the error is divided among these. Where a direction is unknown,
it is divided among all candidates (Bonferroni). Observations that contradict a direction are reported.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from qsctl.eventlog.schema import BUCKETS_PER_OCTAVE_BITS
from qsctl.summary.inference.student import t_quantile, two_sided_p

READING_ERROR: Final = 2.0**-BUCKETS_PER_OCTAVE_BITS
"""Largest relative error, upwards, of a percentile from a histogram (`eventlog.schema.bucket_of`)."""

STUDENT: Final = "Student's t"
PAIRED: Final = "Student's t of paired differences"
WELCH: Final = "Welch's t"
SIGNS: Final = "sign test"
EXACT: Final = "exact: nothing is random"


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean and the half width of its two-sided confidence interval, infinite with one observation.

    `count` is the number of observations (of the smaller side, if two are compared), `method` the method.
    """

    mean: float
    half_width: float
    count: int
    method: str = STUDENT

    @property
    def low(self) -> float:
        """The lower end of the interval."""
        return self.mean - self.half_width

    @property
    def high(self) -> float:
        """The upper end of the interval."""
        return self.mean + self.half_width


@dataclass(frozen=True, slots=True)
class TestedDifference:
    """The interval of a difference, and the two-sided p-value of no difference; 1 if it is unknown."""

    interval: Interval
    p_value: float


def interval_of(values: Sequence[float], confidence: float) -> Interval:
    """Return the mean of independent observations with its two-sided t interval."""
    mean, error = _mean_and_error(values)
    if len(values) == 1:
        return Interval(mean, math.inf, 1)
    return Interval(mean, t_quantile(confidence, len(values) - 1) * error, len(values))


def paired_difference(differences: Sequence[float], confidence: float, *, exact: bool = False) -> TestedDifference:
    """Test the mean of the differences of pairs.

    Args:
        differences: B − A for each pair.
        confidence: confidence level of the interval.
        exact: whether both sides are deterministic, so that one pair is enough.
    """
    mean, error = _mean_and_error(differences)
    count = len(differences)
    if exact:
        return TestedDifference(Interval(mean, 0.0, count, EXACT), 0.0 if mean else 1.0)
    if count == 1:
        return TestedDifference(Interval(mean, math.inf, 1, PAIRED), 1.0)
    if error == 0.0:
        p_value = 2.0 ** (1 - count) if mean else 1.0
        return TestedDifference(Interval(mean, 0.0, count, SIGNS if mean else PAIRED), p_value)
    half_width = t_quantile(confidence, count - 1) * error
    return TestedDifference(Interval(mean, half_width, count, PAIRED), two_sided_p(abs(mean) / error, count - 1))


def difference_of_means(
    a: Sequence[float], b: Sequence[float], confidence: float, *, exact: bool = False
) -> TestedDifference:
    """Test mean(b) − mean(a) of samples with different variances.

    Args:
        a: observations of one side.
        b: observations of the other side.
        confidence: confidence level of the interval.
        exact: whether both sides are deterministic.
    """
    (mean_a, error_a), (mean_b, error_b) = _mean_and_error(a), _mean_and_error(b)
    difference, count = mean_b - mean_a, min(len(a), len(b))
    if exact:
        return TestedDifference(Interval(difference, 0.0, count, EXACT), 0.0 if difference else 1.0)
    if count == 1:
        return TestedDifference(Interval(difference, math.inf, 1, WELCH), 1.0)
    error = math.hypot(error_a, error_b)
    if error == 0.0:
        # Each side has one constant value: the number of signs is that of the smaller side's observations.
        p_value = 2.0 ** (1 - count) if difference else 1.0
        return TestedDifference(Interval(difference, 0.0, count, SIGNS if difference else WELCH), p_value)
    freedom = error**4 / (error_a**4 / (len(a) - 1) + error_b**4 / (len(b) - 1))
    degrees = max(1, math.floor(freedom))
    half_width = t_quantile(confidence, degrees) * error
    return TestedDifference(
        Interval(difference, half_width, count, WELCH), two_sided_p(abs(difference) / error, degrees)
    )


def holm(p_values: Sequence[float]) -> list[float]:
    """Return the p-values adjusted by Holm's method, in their order.

    A difference whose adjusted value is at most 1 − confidence is significant.
    """
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    adjusted = [1.0] * len(p_values)
    largest = 0.0
    for rank, place in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[place]))
        adjusted[place] = largest
    return adjusted


def runs_without_violation(proportion: float, error: float) -> int:
    """Return the number of runs without a violation that shows, with this error, that less than this proportion
    violates.

    Raises:
        ValueError: the proportion or the error is not inside (0, 1).
    """
    if not (0.0 < proportion < 1.0 and 0.0 < error < 1.0):
        raise ValueError(f"no number of runs for a proportion of {proportion} and an error of {error}")
    runs = math.ceil(math.log(error) / math.log1p(-proportion))
    # By rounding, the quotient may be slightly above an integer.
    return runs - 1 if runs > 1 and (1.0 - proportion) ** (runs - 1) <= error else runs


def _mean_and_error(values: Sequence[float]) -> tuple[float, float]:
    """Return the mean and its standard error, which is 0 for one value."""
    mean = math.fsum(values) / len(values)
    if len(values) == 1 or min(values) == max(values):
        # Equal values may have a mean that differs from them by rounding.
        return (values[0] if min(values) == max(values) else mean), 0.0
    variance = math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)
    return mean, math.sqrt(variance / len(values))
