"""The evidence on a target from a candidate's replications, with its basis and its assumptions.

A target on a mean concerns the mean alone: it is met, not met, or undecided with these runs (`_bounded_means.py`). This
needs an upper bound of a run's value, which is, in this order: the user's bound; a ratio is at most 1; a count of
messages is at most the arrivals (`sim.sizing.most_arrivals`); else an assumption, which is stated with the answer:
twice the largest observed value (for times: the longest of any message), and never less than `ASSUMED_LIMITS` times the
target's limit, since a bound near the limit would assume the conclusion.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from qsctl.sim.figures import SUMMED, Figures
from qsctl.sim.sizing.targets import Target, TargetKind, is_time
from qsctl.summary.inference._bounded_means import (
    can_be_shown_below,
    lower_bound,
    runs_to_show_below,
    shown_above,
    shown_below,
    upper_bound,
)
from qsctl.summary.inference.sequential import EARLIEST_REFUSAL, SequentialAnswer, fewer_than, never
from qsctl.summary.inference.statistics import Interval, interval_of, runs_without_violation
from qsctl.summary.sweeps.points import EVERY_MEASURE, reading_error

ASSUMED_LIMITS: Final = 5.0
"""Least assumed upper bound of a run's value, as a multiple of the target's limit."""

_NOT_OF_ARRIVALS: Final = frozenset({"delivered_bytes", "wait_sum_ns", "redelivered_messages", "evicted_messages"})
_OF_ARRIVALS: Final = frozenset(
    {*SUMMED, "lost_messages", "discards", "lost", "delivered", "expired", "dead", "rejected", "elided"}
    - _NOT_OF_ARRIVALS
)
_RATES: Final = frozenset({"throughput", "delivered_per_second"})


class Basis(StrEnum):
    """The basis of a target's result, which is reported with it."""

    MEAN = "mean"
    """The mean over runs, tested by its one-sided bound."""
    SHARE = "share"
    """The proportion of runs that violate the target, tested by their number."""
    EXACT = "exact"
    """A single run, since nothing is random."""
    NOTHING = "nothing"
    """None: no run has the measure."""


class BoundSource(StrEnum):
    """The reason for the assumed upper bound of a run's value."""

    STATED = "stated"
    RATIO = "ratio"
    ARRIVALS = "arrivals"
    ASSUMED = "assumed"


@dataclass(frozen=True, slots=True)
class Support:
    """The upper bound of a measure in one run, and the reason for it."""

    bound: float
    source: BoundSource


@dataclass(frozen=True, slots=True)
class TargetEvidence:
    """The evidence on one target from a candidate's replications.

    `bound` is the one-sided confidence bound of the mean that decides, `support` the upper bound of a run's value if
    one was used; NaN and None if a proportion of runs decides. `violating_runs` of `runs` violate the target; with the
    answer SHOWN on the basis SHARE, fewer than `share` of all runs are. `given_up`: more replications, up to the
    permitted number, are not expected to decide it. `runs_needed` is the number of runs that would show a mean if all
    were like those so far.
    """

    target: Target
    interval: Interval
    answer: SequentialAnswer
    basis: Basis
    bound: float
    runs: int
    violating_runs: int
    share: float
    support: Support | None = None
    given_up: bool = False
    runs_needed: float = math.nan

    @property
    def met(self) -> bool:
        """Return whether the target is shown to be met."""
        return self.answer is SequentialAnswer.SHOWN

    @property
    def decided(self) -> bool:
        """Return whether more replications cannot change the result."""
        return self.answer is not SequentialAnswer.OPEN or self.given_up


@dataclass(frozen=True, slots=True)
class Knowledge:
    """Facts about a candidate besides its replications.

    `exact`: its scenario is deterministic. `arrivals`: the largest number of arrivals in a run, by queue. `stated`: the
    user's bounds, by measure and queue.
    """

    exact: bool = False
    arrivals: dict[str, int | None] | None = None
    stated: dict[tuple[str, str], float] | None = None


def judge(
    target: Target,
    replications: Sequence[Sequence[Figures]],
    confidence: float,
    error: float,
    most: int,
    known: Knowledge | None = None,
) -> TargetEvidence:
    """Return the evidence on a target from replications.

    Args:
        target: the condition.
        replications: the figures of each replication, one row for each queue.
        confidence: confidence level of the reported interval.
        error: probability of reporting a false target as met.
        most: largest number of replications.
        known: further facts about the candidate.

    If no replication has the measure (a latency without deliveries), the target is not met; if only some replications
    lack it, these violate the target, and count with the worst possible value.
    """
    known = known or Knowledge()
    measure, slack = EVERY_MEASURE[target.measure], 0.0 if target.at_most else reading_error(target.measure)
    rows = [next((each for each in figures if each.queue == target.queue), None) for figures in replications]
    of_runs = [None if row is None else measure(row) for row in rows]
    # A percentile may be read too high, which must not help a target that requires a large value.
    values = [value / (1.0 + slack) for value in of_runs if value is not None]
    violations = [value is None or not target.met_by(value / (1.0 + slack)) for value in of_runs]
    runs, violating = len(violations), sum(violations)
    if not values:
        nothing = Interval(math.nan, math.inf, 0)
        return TargetEvidence(
            target, nothing, SequentialAnswer.REFUSED, Basis.NOTHING, math.nan, runs, violating, target.share
        )
    interval = Interval(values[0], 0.0, 1) if known.exact else interval_of(values, confidence)

    def counted(answer: SequentialAnswer, basis: Basis, bound: float = math.nan) -> TargetEvidence:
        return TargetEvidence(target, interval, answer, basis, bound, runs, violating, target.share)

    if known.exact:
        return counted(SequentialAnswer.REFUSED if violating else SequentialAnswer.SHOWN, Basis.EXACT, values[0])
    if target.kind is TargetKind.ALWAYS:
        return counted(never(violations, target.share, error=error), Basis.SHARE)
    if target.kind is TargetKind.SHARE:
        return counted(fewer_than(violations, target.share, error=error, most=most), Basis.SHARE)
    support = support_of(target, [row for row in rows if row is not None], known)
    worst = support.bound if target.at_most else 0.0
    every = [worst if value is None else value / (1.0 + slack) for value in of_runs]
    return _of_mean(target, every, interval, support, error, most, violating)


def _of_mean(
    target: Target,
    values: Sequence[float],
    interval: Interval,
    support: Support,
    error: float,
    most: int,
    violating: int,
) -> TargetEvidence:
    """Return the evidence on a mean, tested on both sides of the limit."""
    limit, runs, answer = target.bound, len(values), SequentialAnswer.OPEN
    above = shown_above(values, limit, error)
    below = shown_below(values, limit, support.bound, error)
    if above != below:
        answer = SequentialAnswer.SHOWN if below == target.at_most else SequentialAnswer.REFUSED
    given_up, needed = False, math.nan
    if answer is SequentialAnswer.OPEN:
        seen = interval_of(values, 1.0 - error)
        wrong = runs >= EARLIEST_REFUSAL and (seen.low > limit if target.at_most else seen.high < limit)
        given_up = wrong or runs >= most
        if target.at_most:
            needed = runs_to_show_below(min(seen.mean, support.bound), limit, support.bound, error)
            given_up = given_up or not can_be_shown_below(values, most - runs, limit, support.bound, error)
    from_above = target.at_most != (answer is SequentialAnswer.REFUSED)
    bound = upper_bound(values, support.bound, error) if from_above else lower_bound(values, error)
    used = support if from_above else None
    return TargetEvidence(
        target, interval, answer, Basis.MEAN, bound, runs, violating, target.share, used, given_up, needed
    )


def support_of(target: Target, rows: Sequence[Figures], known: Knowledge) -> Support:
    """Return the upper bound of a target's measure in one run, and its reason; a bound that a run exceeds is not
    used.
    """
    measure, of = EVERY_MEASURE[target.measure], (target.measure, target.queue)
    seen = [value for row in rows if (value := measure(row)) is not None]
    largest = max(seen, default=0.0)
    if known.stated and largest <= known.stated.get(of, -math.inf):
        return Support(known.stated[of], BoundSource.STATED)
    if target.measure == "loss_ratio":
        return Support(1.0, BoundSource.RATIO)
    arrivals = (known.arrivals or {}).get(target.queue)
    if arrivals is not None and target.measure in _OF_ARRIVALS:
        return Support(max(float(arrivals), largest), BoundSource.ARRIVALS)
    if arrivals is not None and target.measure in _RATES:
        observed_s = min(row.observed_ns for row in rows) / 1e9
        return Support(max(arrivals / observed_s, largest), BoundSource.ARRIVALS)
    if is_time(target.measure):
        largest = max(largest, *(float(max(row.wait_max_ns, row.done_max_ns or 0)) for row in rows))
    return Support(max(2.0 * largest, ASSUMED_LIMITS * target.bound), BoundSource.ASSUMED)


def runs_needed(target: Target, error: float, support: Support | None = None) -> int:
    """Return the least number of replications that can show a target, if none violates it.

    For a mean it assumes that every run has half of the limit, with a range up to its support; 1 if that is unknown.
    """
    match target.kind:
        case TargetKind.MEAN:
            if support is None or not target.at_most:
                return 1
            return int(runs_to_show_below(target.bound / 2.0, target.bound, support.bound, error))
        case TargetKind.ALWAYS:
            return runs_without_violation(target.share, error)
        case TargetKind.SHARE:
            return runs_without_violation(target.share, error / 2.0)
