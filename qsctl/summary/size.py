"""The smallest settings that meet the targets, found by simulating only where the answer is still open.

Each setting is searched by bisection with the others as they are, largest first: from settings that meet the targets
downwards, for a larger limit loses less. A candidate gets more replications until its interval leaves no doubt, or
until they are spent, and then counts as not meeting. All candidates see the same arrivals. Where a setting has listed
values, every combination of them is tried instead: all of them together, so that every processor has work.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from qsctl.errors import UsageError
from qsctl.sim.figures import Figures
from qsctl.sim.memory import memory_bytes
from qsctl.sim.randomness import is_deterministic
from qsctl.sim.scenario import Scenario
from qsctl.sim.sweep import Point, Task, scenario_at
from qsctl.sim.targets import Setting, Target
from qsctl.summary.points import EVERY_MEASURE, Interval, interval_of
from qsctl.summary.session import SparkOptions
from qsctl.summary.student import t_quantile
from qsctl.summary.sweep import TaskRunner

FIRST_REPLICATIONS: Final = 5
MOST_COMBINATIONS: Final = 10_000


@dataclass(frozen=True, slots=True)
class TargetEvidence:
    """What the replications of a candidate say of one target. `confidence_bound` is the one-sided one that decides."""

    target: Target
    interval: Interval
    confidence_bound: float
    met: bool
    decided: bool


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
    """Whether what was seen fits the assumption of the bisection: larger settings never did worse."""
    deterministic: bool = False
    """Whether nothing is random with the settings of any candidate, so that each had one replication."""


@dataclass(slots=True)
class _Search:
    """The candidates tried so far, and how one more is tried."""

    scenario: Scenario
    settings: tuple[Setting, ...]
    targets: tuple[Target, ...]
    confidence: float
    most_replications: int
    runner: TaskRunner
    told: Callable[[Candidate], None]
    tried: dict[tuple[int, ...], Candidate] = field(default_factory=dict)
    fixed: dict[tuple[int, ...], bool] = field(default_factory=dict)
    """Whether nothing is random with a candidate's settings: one replication then says everything of it."""

    def point(self, values: Sequence[int]) -> Point:
        return Point(tuple((setting.path, str(value)) for setting, value in zip(self.settings, values, strict=True)))

    def meets(self, values: Sequence[int]) -> bool:
        """Simulate a candidate until its targets are decided."""
        place = tuple(values)
        if place not in self.tried:
            self.simulate([place])
        return self.tried[place].met

    def simulate(self, places: Sequence[tuple[int, ...]]) -> None:
        """Simulate candidates, each until its targets are decided; every round runs what all the open ones need."""
        points = {values: self.point(values) for values in places}
        changed = {values: scenario_at(self.scenario, point) for values, point in points.items()}
        memory = {values: memory_bytes(scenario) for values, scenario in changed.items()}
        self.fixed |= {values: is_deterministic(scenario) for values, scenario in changed.items()}
        figures: dict[tuple[int, ...], list[tuple[Figures, ...]]] = {values: [] for values in places}
        most = self.most_replications
        had, wanted = 0, min(FIRST_REPLICATIONS, most)
        left = list(places)
        while left:
            until = {values: 1 if self.fixed[values] else wanted for values in left}
            missing = [(values, number) for values in left for number in range(had, until[values])]
            tasks = [Task(points[values], number, self.scenario.seed) for values, number in missing]
            still: list[tuple[int, ...]] = []
            done = 0
            for results in self.runner.batches(tasks):
                for (values, number), result in zip(missing[done:], results, strict=False):
                    figures[values].append(result.figures)
                    last = self.fixed[values] or wanted == most
                    if number == until[values] - 1 and not self._settle(
                        values, figures[values], memory[values], last=last
                    ):
                        still.append(values)
                done += len(results)
            left, had, wanted = still, wanted, min(2 * wanted, most)

    def _settle(
        self, values: tuple[int, ...], figures: Sequence[tuple[Figures, ...]], memory: int, *, last: bool
    ) -> bool:
        """Whether a candidate's replications decide it, or are the last that it gets; then it counts as tried."""
        evidence = tuple(judge(target, figures, self.confidence, exact=self.fixed[values]) for target in self.targets)
        missed = any(each.decided and not each.met for each in evidence)
        if not (last or missed or all(each.decided for each in evidence)):
            return False
        self.tried[values] = Candidate(values, len(figures), evidence, memory)
        self.told(self.tried[values])
        return True


def judge(
    target: Target, replications: Sequence[Sequence[Figures]], confidence: float, *, exact: bool = False
) -> TargetEvidence:
    """Whether the mean of a measure meets its target, by the one-sided interval on the side that hurts.

    With `exact`, nothing in the scenario is random: the one value that there is decides.

    A measure that no replication has (a latency where nothing was delivered) does not meet its target. A target of
    zero is met only when every replication gives zero.
    """
    values = [
        value
        for figures in replications
        for each in figures
        if each.queue == target.queue and (value := EVERY_MEASURE[target.measure](each)) is not None
    ]
    if not values:
        return TargetEvidence(target, Interval(math.nan, math.inf, 0), math.nan, met=False, decided=True)
    if exact:
        met = values[0] == 0.0 if target.operator == "=" else target.met_by(values[0])
        return TargetEvidence(target, Interval(values[0], 0.0, 1), values[0], met=met, decided=True)
    interval = interval_of(values, confidence)
    # Two-sided at 2c − 1 leaves 1 − c outside on the one side that matters.
    reach = interval.half_width
    if len(values) > 1 and confidence > 0.5:
        both = interval_of(values, confidence)
        scale = t_quantile(2 * confidence - 1, len(values) - 1) / t_quantile(confidence, len(values) - 1)
        reach = both.half_width * scale
    worst = interval.mean + reach if target.at_most else interval.mean - reach
    best = interval.mean - reach if target.at_most else interval.mean + reach
    if target.operator == "=":
        met = max(values) == 0.0
        return TargetEvidence(target, interval, max(values), met=met, decided=True)
    met = target.met_by(worst)
    return TargetEvidence(target, interval, worst, met=met, decided=met or not target.met_by(best))


def size(
    scenario: Scenario,
    targets: Sequence[Target],
    settings: Sequence[Setting],
    *,
    confidence: float,
    most_replications: int,
    options: SparkOptions | None = None,
    told: Callable[[Candidate], None] = lambda _: None,
) -> Sizing:
    """Find the smallest settings that meet every target.

    Args:
        scenario: what is simulated; its seed gives every candidate the same arrivals.
        targets: conditions that must all hold.
        settings: what may be varied.
        confidence: that the mean of each measure meets its target.
        most_replications: a candidate's; one that is still open then counts as not meeting.
        options: where Spark runs.
        told: called with every candidate once it is simulated.

    Raises:
        UsageError: no target, nothing to vary, too many combinations, or a queue that carries no traffic.
        InvalidInput: a setting's value cannot be simulated.
    """
    if not targets or not settings:
        raise UsageError("there is nothing to size", remedy="Give at least one --target and one --vary.")
    highest = tuple(setting.high for setting in settings)
    scenario_at(scenario, Point(tuple((each.path, str(each.high)) for each in settings)))
    search = _Search(
        scenario, tuple(settings), tuple(targets), confidence, most_replications, TaskRunner(scenario, options), told,
    )  # fmt: skip
    _check_queues(search, highest)
    answer = _cheapest(search) if any(setting.choices for setting in settings) else _descend(search, highest)
    return Sizing(
        search.settings,
        search.targets,
        confidence,
        None if answer is None else search.tried[answer],
        tuple(search.tried.values()),
        _monotone(search),
        all(search.fixed[place] for place in search.tried),
    )


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
            return search.meets([*best[:place], value, *best[place + 1 :]])

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
    """Try every combination and take the one with the least memory, then the smallest values."""
    lists = [setting.choices or (setting.low, setting.high) for setting in search.settings]
    if math.prod(len(values) for values in lists) > MOST_COMBINATIONS:
        raise UsageError(f"more than {MOST_COMBINATIONS} combinations", remedy="Give fewer values.")
    search.simulate(list(itertools.product(*lists)))
    met = [place for place, candidate in search.tried.items() if candidate.met]
    return min(met, key=lambda place: (search.tried[place].memory_bytes, place), default=None)


def _monotone(search: _Search) -> bool:
    """No candidate that meets the targets has a larger one that was seen to miss them."""
    met = [place for place, candidate in search.tried.items() if candidate.met]
    missed = [place for place, candidate in search.tried.items() if not candidate.met]
    return not any(
        all(small <= large for small, large in zip(good, bad, strict=True)) for good in met for bad in missed
    )
