"""The smallest settings that are shown to meet the targets, by simulating only where the answer is still open.

Each setting is searched by bisection with the others as they are, largest first: from settings that meet the targets
downwards, for a larger limit loses less. A candidate gets more replications until the tests of `sequential.py` decide,
or until they are spent, and then counts as not meeting. All candidates of a setting see the same arrivals. Where a
setting has listed values, every combination of them is tried instead: all of them together, so that every processor has
work. `statistics.py` has what is stated with which error.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Protocol

from qsctl.errors import UsageError
from qsctl.sim.figures import Figures
from qsctl.sim.scenario.randomness import is_deterministic
from qsctl.sim.scenario.scenario import Scenario
from qsctl.sim.sizing.memory import memory_bytes
from qsctl.sim.sizing.targets import ALWAYS_SHARE, Kind, Setting, Target
from qsctl.sim.sweep import Point, Task, scenario_at
from qsctl.summary.points import EVERY_MEASURE, reading_error
from qsctl.summary.sequential import (
    EARLIEST_REFUSAL,
    MOST_REPLICATIONS,
    Answer,
    below,
    fewer_than,
    never,
    rounds,
)
from qsctl.summary.session import SparkOptions
from qsctl.summary.statistics import Interval, interval_of, runs_without_violation, varied_enough
from qsctl.summary.sweep import TaskRunner
from qsctl.summary.sweep_folder import PointResult

MOST_COMBINATIONS: Final = 10_000
_ROOM_FOR_VIOLATIONS: Final = 2.2
"""Times the runs that show a proportion without one violation: so many leave room for a few."""


class Runner(Protocol):
    """What simulates tasks."""

    def run(self, tasks: Sequence[Task]) -> list[PointResult]:
        """Return the results of the tasks, in their order."""

    def batches(self, tasks: Sequence[Task]) -> Iterable[list[PointResult]]:
        """Return the results of the tasks in their order, batch by batch."""


class Basis(StrEnum):
    """What a target's answer rests on, and so what is stated."""

    MEAN = "mean"
    """The mean over runs, by its one-sided bound."""
    SHARE = "share"
    """The proportion of runs that violate the target, by their count."""
    EXACT = "exact"
    """One run, for nothing is random."""
    NOTHING = "nothing"
    """No run has the measure."""


@dataclass(frozen=True, slots=True)
class TargetEvidence:
    """What the replications of a candidate show of one target.

    `bound` is the one-sided bound of the mean that decides; NaN where a proportion of runs decides. `violating_runs` of
    `runs` are not as wanted; with the answer SHOWN on the basis SHARE, fewer than `share` of all runs are.
    """

    target: Target
    interval: Interval
    answer: Answer
    basis: Basis
    bound: float
    runs: int
    violating_runs: int
    share: float

    @property
    def met(self) -> bool:
        """Whether the target is shown to be met."""
        return self.answer is Answer.SHOWN

    @property
    def decided(self) -> bool:
        """Whether more replications change nothing."""
        return self.answer is not Answer.OPEN


@dataclass(frozen=True, slots=True)
class Candidate:
    """Settings that were simulated, and the evidence."""

    values: tuple[int, ...]
    replications: int
    evidence: tuple[TargetEvidence, ...]
    memory_bytes: int

    @property
    def met(self) -> bool:
        """Whether every target is met with the confidence asked for."""
        return all(each.met for each in self.evidence)


@dataclass(frozen=True, slots=True)
class Sizing:
    """The answer, or none, and everything that was tried, in order."""

    settings: tuple[Setting, ...]
    targets: tuple[Target, ...]
    confidence: float
    answer: Candidate | None
    candidates: tuple[Candidate, ...]
    monotone: bool
    """Whether what was seen fits the assumption of the search: larger settings never did worse."""
    most_replications: int = MOST_REPLICATIONS
    deterministic: bool = False
    """Whether nothing is random with the settings of any candidate, so that each had one replication."""


@dataclass(slots=True)
class _Search:
    """The candidates tried so far, and how one more is tried."""

    scenario: Scenario
    settings: tuple[Setting, ...]
    targets: tuple[Target, ...]
    confidence: float
    error: float
    """The error of what one setting's search finds."""
    most_replications: int
    runner: Runner
    report: Callable[[Candidate], None]
    tried: dict[tuple[int, ...], Candidate] = field(default_factory=dict)
    fixed: dict[tuple[int, ...], bool] = field(default_factory=dict)
    """Whether nothing is random with a candidate's settings: one replication is then enough."""

    def point(self, values: Sequence[int]) -> Point:
        return Point(tuple((setting.path, str(value)) for setting, value in zip(self.settings, values, strict=True)))

    def meets(self, values: Sequence[int], block: int = 0) -> bool:
        """Simulate a candidate until its targets are decided; each block has arrivals of its own."""
        place = tuple(values)
        if place not in self.tried:
            self.simulate([place], block)
        return self.tried[place].met

    def simulate(self, places: Sequence[tuple[int, ...]], block: int = 0) -> None:
        """Simulate candidates, each until its targets are decided; every round runs what all the open ones need."""
        points = {values: self.point(values) for values in places}
        changed = {values: scenario_at(self.scenario, point) for values, point in points.items()}
        memory = {values: memory_bytes(scenario) for values, scenario in changed.items()}
        self.fixed |= {values: is_deterministic(scenario) for values, scenario in changed.items()}
        figures: dict[tuple[int, ...], list[tuple[Figures, ...]]] = {values: [] for values in places}
        most = self.most_replications
        first = block * most
        left, had = list(places), 0
        for wanted in rounds(most, [runs_needed(target, self.error) for target in self.targets]):
            until = {values: 1 if self.fixed[values] else wanted for values in left}
            missing = [(values, number) for values in left for number in range(had, until[values])]
            tasks = [Task(points[values], first + number, self.scenario.seed) for values, number in missing]
            still: list[tuple[int, ...]] = []
            done = 0
            for results in self.runner.batches(tasks):
                for (values, number), result in zip(missing[done:], results, strict=False):
                    figures[values].append(result.figures)
                    last = self.fixed[values] or wanted == most
                    if number == until[values] - 1 and not self._decide(
                        values, figures[values], memory[values], last=last
                    ):
                        still.append(values)
                done += len(results)
            left, had = still, wanted
            if not left:
                return

    def _decide(
        self, values: tuple[int, ...], figures: Sequence[tuple[Figures, ...]], memory: int, *, last: bool
    ) -> bool:
        """Return whether a candidate's replications decide it, or are its last ones; then it counts as tried."""
        evidence = tuple(
            judge(target, figures, self.confidence, self.error, self.most_replications, exact=self.fixed[values])
            for target in self.targets
        )
        missed = any(each.decided and not each.met for each in evidence)
        if not (last or missed or all(each.decided for each in evidence)):
            return False
        self.tried[values] = Candidate(values, len(figures), evidence, memory)
        self.report(self.tried[values])
        return True


def judge(
    target: Target,
    replications: Sequence[Sequence[Figures]],
    confidence: float,
    error: float,
    most: int,
    *,
    exact: bool = False,
) -> TargetEvidence:
    """Return what replications show of a target.

    Args:
        target: the condition.
        replications: the figures of each, one row a queue.
        confidence: of the interval that is shown.
        error: the probability that the target is found to be met although what is then stated is false.
        most: the replications that there may be.
        exact: nothing in the scenario is random: the one value that there is decides.

    A measure that no replication has (a latency where nothing was delivered) does not meet its target; a run without
    it, beside others that have it, violates.
    """
    measure, slack = EVERY_MEASURE[target.measure], 0.0 if target.at_most else reading_error(target.measure)
    of_runs = [
        next((measure(each) for each in figures if each.queue == target.queue), None) for figures in replications
    ]
    # A percentile may be read too high, which would flatter where a large one is wanted.
    values = [value / (1.0 + slack) for value in of_runs if value is not None]
    violations = [value is None or not target.met_by(value / (1.0 + slack)) for value in of_runs]
    runs, violating = len(violations), sum(violations)
    if not values:
        nothing = Interval(math.nan, math.inf, 0)
        return TargetEvidence(target, nothing, Answer.REFUSED, Basis.NOTHING, math.nan, runs, violating, target.share)

    def evidence(answer: Answer, basis: Basis, bound: float = math.nan) -> TargetEvidence:
        interval = Interval(values[0], 0.0, 1) if exact else interval_of(values, confidence)
        return TargetEvidence(target, interval, answer, basis, bound, runs, violating, target.share)

    if exact:
        return evidence(Answer.REFUSED if violating else Answer.SHOWN, Basis.EXACT, values[0])
    if target.kind is Kind.ALWAYS:
        return evidence(never(violations, target.share, error=error), Basis.SHARE)
    if target.kind is Kind.SHARE:
        return evidence(fewer_than(violations, target.share, error=error, most=most), Basis.SHARE)
    # Of a mean, one of two things may be stated: each has half of the error.
    if not varied_enough(values) and len(values) >= EARLIEST_REFUSAL:
        if violating == runs:
            return evidence(Answer.REFUSED, Basis.SHARE)
        answer = never(violations, ALWAYS_SHARE, error=error / 2.0)
        if answer is Answer.SHOWN or (answer is Answer.OPEN and runs < most):
            return evidence(answer, Basis.SHARE)
    sign = 1.0 if target.at_most else -1.0
    strictly = target.operator in {"<", ">"}
    found = below(
        [sign * value for value in values], sign * target.bound, strictly=strictly, error=error / 2.0, most=most
    )
    answer = found.answer if found.answer is not Answer.OPEN or runs < most else Answer.REFUSED
    return evidence(answer, Basis.MEAN, sign * found.bound)


def runs_needed(target: Target, error: float) -> int:
    """Return how many replications show a target at the earliest, where none violates it."""
    match target.kind:
        case Kind.MEAN:
            return runs_without_violation(ALWAYS_SHARE, error / 2.0)
        case Kind.ALWAYS:
            return runs_without_violation(target.share, error)
        case Kind.SHARE:
            return runs_without_violation(target.share, error / 2.0)


def size(
    scenario: Scenario,
    targets: Sequence[Target],
    settings: Sequence[Setting],
    *,
    confidence: float,
    most_replications: int | None = None,
    options: SparkOptions | None = None,
    runner: Runner | None = None,
    report: Callable[[Candidate], None] = lambda _: None,
) -> Sizing:
    """Find the smallest settings that are shown to meet every target.

    Args:
        scenario: what is simulated; its seed gives every candidate the same arrivals.
        targets: conditions that must all hold.
        settings: what may be varied.
        confidence: that what is stated of the answer is true.
        most_replications: a candidate's; one that is still open then counts as not meeting. By default as many as the
            targets need.
        options: where Spark runs.
        runner: what simulates instead of Spark.
        report: called with every candidate once it is simulated.

    Raises:
        UsageError: no target, nothing to vary, too many combinations, too few replications for a target, or a queue
            that carries no traffic.
        InvalidInput: a setting's value cannot be simulated.
    """
    if not targets or not settings:
        raise UsageError("there is nothing to size", remedy="Give at least one --target and one --vary.")
    highest = tuple(setting.high for setting in settings)
    largest = scenario_at(scenario, Point(tuple((each.path, str(each.high)) for each in settings)))
    listed = any(setting.choices for setting in settings)
    error = (1.0 - confidence) / (_orders(settings) if listed else len(settings))
    most = _enough(targets, error, most_replications, random=not is_deterministic(largest))
    runner = runner or TaskRunner(scenario, options)
    search = _Search(scenario, tuple(settings), tuple(targets), confidence, error, most, runner, report)
    _check_queues(search, highest)
    answer = _cheapest(search) if listed else _descend(search, highest)
    return Sizing(
        search.settings,
        search.targets,
        confidence,
        None if answer is None else search.tried[answer],
        tuple(search.tried.values()),
        _monotone(search),
        most,
        all(search.fixed[place] for place in search.tried),
    )


def _enough(targets: Sequence[Target], error: float, asked: int | None, *, random: bool) -> int:
    """Return the most replications of a candidate: what was asked for, if that can show the targets, else what can."""
    if asked is None:
        room = {Kind.MEAN: 1.0, Kind.ALWAYS: 1.0, Kind.SHARE: _ROOM_FOR_VIOLATIONS}
        return max(MOST_REPLICATIONS, *(math.ceil(room[each.kind] * runs_needed(each, error)) for each in targets))
    for target in targets:
        needed = runs_needed(target, error)
        if random and target.kind is not Kind.MEAN and asked < needed:
            raise UsageError(
                f"--max-replications {asked} cannot show {target.text}: that less than {100 * target.share:g} % of "
                f"runs violate it needs {needed} runs without one that does",
                remedy=f"Allow {needed} or more, or ask for a larger proportion, as in 'P(…)<20%'.",
            )
    return asked


def _orders(settings: Sequence[Setting]) -> int:
    """Return in how many orders, each from small to large, all combinations of the listed values stand."""
    counts = sorted(len(setting.choices or (setting.low, setting.high)) for setting in settings)
    return math.prod(counts[:-1])


def _check_queues(search: _Search, highest: tuple[int, ...]) -> None:
    first = search.runner.run([Task(search.point(highest), 0, search.scenario.seed)])[0]
    queues = [figures.queue for figures in first.figures]
    for target in search.targets:
        if target.queue not in queues:
            raise UsageError(
                f"--target {target.text!r}: no message comes to a queue {target.queue}",
                remedy=f"The scenario has traffic in {', '.join(queues)}.",
            )


def _descend(search: _Search, highest: tuple[int, ...]) -> tuple[int, ...] | None:
    """Bisect one setting after the other, each between its lowest value and one that is known to meet."""
    if not search.meets(highest):
        return None
    best = list(highest)
    for place, setting in enumerate(search.settings):

        def meets(value: int, place: int = place) -> bool:
            # Arrivals of its own: what is found of this setting must not rest on those that chose the others.
            return search.meets([*best[:place], value, *best[place + 1 :]], block=place)

        if meets(setting.low):
            best[place] = setting.low
            continue
        fails, holds = setting.low, best[place]
        while holds - fails > 1:
            # The geometric middle: limits are sought over several powers of ten.
            middle = max(fails + 1, min(holds - 1, math.isqrt(max(1, fails) * holds)))
            if holds - fails < max(2, holds // 8):
                middle = (fails + holds) // 2
            if meets(middle):
                holds = middle
            else:
                fails = middle
        best[place] = holds
    return tuple(best)


def _cheapest(search: _Search) -> tuple[int, ...] | None:
    """Try every combination and return the one with the least memory, then the smallest values."""
    lists = [setting.choices or (setting.low, setting.high) for setting in search.settings]
    if math.prod(len(values) for values in lists) > MOST_COMBINATIONS:
        raise UsageError(f"more than {MOST_COMBINATIONS} combinations", remedy="Give fewer values.")
    search.simulate(list(itertools.product(*lists)))
    met = [place for place, candidate in search.tried.items() if candidate.met]
    return min(met, key=lambda place: (search.tried[place].memory_bytes, place), default=None)


def _monotone(search: _Search) -> bool:
    """Return whether no candidate that meets the targets has a larger one that was seen to miss them."""
    met = [place for place, candidate in search.tried.items() if candidate.met]
    missed = [place for place, candidate in search.tried.items() if not candidate.met]
    return not any(
        all(small <= large for small, large in zip(good, bad, strict=True)) for good in met for bad in missed
    )
