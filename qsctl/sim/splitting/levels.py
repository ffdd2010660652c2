"""The thresholds at which a run is split: found by pilot runs, which cover a few thresholds further each time.

A pilot run is split at the thresholds that are known and counts how often it crosses each of some more. The count,
times the weight, is how often a plain run crosses them. A threshold is set where that has fallen to a `STEP`th of the
one before, and the factor is the ratio of the two, so that about as many trajectories cross the last threshold as the
first: nearly the best there is, and not sensitive (M. and J. Villén-Altamirano 2002, see `restart`). The thresholds
change the duration of an estimate, and never its expected value; pilot runs have random numbers of their own and are
not part of an estimate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from qsctl.sim.scenario.scenario import Scenario
from qsctl.sim.splitting.branchable import trajectory_of
from qsctl.sim.splitting.question import Question
from qsctl.sim.splitting.restart import Levels, SplitRun, split_run

STEP: Final = 2.5
"""By how much the crossings of a threshold are rarer than those of the one before: at least. Each that is crossed goes
on as `factor` - 1 more, the number of thresholds is the logarithm of how rare it is ÷ that of the factor: more than
about 3 cost more trajectories altogether, fewer than 2 more states to be kept."""
FACTOR_AT_THE_END: Final = 3
"""Into how many trajectories one goes on at most that is at the last importance."""
CROSSINGS: Final = 40
"""Number of crossings of a threshold in a pilot run that count as reliable."""
MESSAGES: Final = 10_000
"""Arrivals of the first pilot runs together; later ones have more while they go no further."""
MESSAGES_MAX: Final = 1_000_000
"""Arrivals of pilot runs after which it is given up."""
RUN_MESSAGES: Final = 1000
"""Arrivals that take as long as to begin a run."""
WINDOWS: Final = 8
"""Of a run with more arrivals than that, parts that begin at as many instants are looked at: load may come late."""
PILOT: Final = 1 << 20
"""The first replication's number of pilot runs: larger than any number of runs of an estimate."""


@dataclass(frozen=True, slots=True)
class LevelPlan:
    """The thresholds at which runs are split, and the cost of finding them."""

    levels: Levels
    reached: int
    """The largest importance that pilot runs reached, among the candidates for thresholds."""
    most: int
    messages: int
    """Arrivals of all pilot runs."""

    @property
    def is_whole(self) -> bool:
        """Return whether pilot runs reached the rare event."""
        return self.reached >= self.most


def plan_levels(
    scenario: Scenario, question: Question, most: int, stop: Callable[[], bool] = lambda: False
) -> LevelPlan | None:
    """Find the thresholds and factors by pilot runs.

    Args:
        scenario: the scenario to simulate.
        question: the question about the rare event.
        most: the importance `Trajectory.most`, above 0.
        stop: called often; True ends the search.

    Returns:
        The plan, not whole where no pilot run reached the rare event; None when stopped.
    """
    levels, usual, reached, number, budget = Levels(), 0, 0, PILOT, MESSAGES
    plain = split_run(trajectory_of(scenario, number, question), question, levels, stop=stop)
    if plain is None:
        return None
    spent = plain.messages
    while True:
        known = (usual, *levels.thresholds) if usual else ()
        ahead = _ahead(known[-1] if known else 0, most)
        looked = Levels(known + ahead, ((1, *levels.factors) if usual else ()) + (1,) * len(ahead))
        crossings, found = [0] * len(looked.thresholds), 0
        is_cut = plain.messages > budget
        while found < budget:
            number += 1
            begin_ns = scenario.horizon_ns * (number % WINDOWS) // WINDOWS if is_cut else 0
            part = budget // WINDOWS if is_cut else budget - found
            sample = split_run(
                trajectory_of(scenario, number, question), question, looked,
                begin_ns=begin_ns, messages_max=part, stop=stop,
            )  # fmt: skip
            if sample is None:
                return None
            crossings = [a + b for a, b in zip(crossings, sample.crossings, strict=True)]
            found += max(RUN_MESSAGES, sample.messages)
        spent += found
        seen = [threshold for threshold, count in zip(looked.thresholds, crossings, strict=True) if count]
        reached = max([reached, *seen])
        rates = _rates(looked, crossings)
        if not usual and crossings[0]:
            usual = looked.thresholds[max(range(len(rates)), key=rates.__getitem__)]
        before, levels = levels, _chosen(looked, crossings, rates)
        grew = len(levels.thresholds) > len(before.thresholds)
        if crossings[-1] >= CROSSINGS:
            return LevelPlan(_few_at_the_end(levels, most), most, most, spent)
        if not grew:
            budget *= 2
            if budget > MESSAGES_MAX:
                return LevelPlan(levels, reached, most, spent)


def _few_at_the_end(levels: Levels, most: int) -> Levels:
    """Return the levels with few trajectories at the rare event, since what follows it needs no more of them."""
    if not levels.thresholds or levels.thresholds[-1] < most:
        return levels
    return Levels(levels.thresholds, (*levels.factors[:-1], min(levels.factors[-1], FACTOR_AT_THE_END)))


def _ahead(last: int, most: int) -> tuple[int, ...]:
    """Return the candidates beyond the last threshold, at increasing distances, and the end."""
    steps: list[int] = []
    ahead = 1
    while last + ahead < most:
        steps.append(last + ahead)
        ahead += 1 + ahead // 6
    return (*steps, most) if last < most else ()


def _rates(looked: Levels, crossings: list[int]) -> list[float]:
    """Return the estimated number of crossings of each threshold in a plain run."""
    weight, rates = 1.0, []
    for count, factor in zip(crossings, looked.factors, strict=True):
        rates.append(count * weight)
        weight /= factor
    return rates


def _chosen(looked: Levels, crossings: list[int], rates: list[float]) -> Levels:
    """Return thresholds, each crossed less often by one step than the one before, with factors that compensate for it.

    All are above the threshold crossed most often: a queue may cross its lowest depths less often than its usual ones.
    """
    usual = max(rates)
    begin = rates.index(usual) + 1
    thresholds: list[int] = []
    factors: list[int] = []
    product, last = 1, usual
    for threshold, rate, count in zip(looked.thresholds[begin:], rates[begin:], crossings[begin:], strict=True):
        if count < CROSSINGS or rate * STEP > last:
            continue
        factor = round(usual / (rate * product))
        if factor > 1:
            thresholds.append(threshold)
            factors.append(factor)
            product *= factor
            last = rate
    return Levels(tuple(thresholds), tuple(factors))


def pilot_samples(
    scenario: Scenario,
    question: Question,
    plan: LevelPlan,
    first: int,
    count: int,
    stop: Callable[[], bool] = lambda: False,
) -> list[SplitRun] | None:
    """Return split runs for an estimate of their variance; None when stopped.

    Their numbers, from `first` on, are none of those of an estimate's samples.
    """
    samples: list[SplitRun] = []
    for number in range(2 * PILOT + first, 2 * PILOT + first + count):
        sample = split_run(trajectory_of(scenario, number, question), question, plan.levels, stop=stop)
        if sample is None:
            return None
        samples.append(sample)
    return samples
