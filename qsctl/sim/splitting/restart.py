"""RESTART: a run that is split whenever it comes closer to the rare event, with smaller weights of the parts.

At each upward crossing of a threshold a trajectory continues as `factor` trajectories from the same state, each with
random numbers of its own. All but one of them end where they fall below that threshold again. Events above thresholds
1 … i have the weight 1 ÷ (factor 1 · … · factor i). The weighted sum over all trajectories has the same expectation as
the count of one plain run, whatever the thresholds, the factors, the importance and the scenario's changes in time are
(M. and J. Villén-Altamirano, "RESTART: a method for accelerating rare event simulations", 13th International
Teletraffic Congress 1991; "Analysis of RESTART simulation: theoretical basis and sensitivity study", European
Transactions on Telecommunications 13, 2002). So no stationary state and no cycles are assumed: a run begins as the
scenario does, and ends at its horizon.

Trajectories are simulated depth first, those closest to the rare event first, so that at most one state is kept for
each threshold.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from qsctl.instant import Nanoseconds
from qsctl.sim.splitting.question import Asked, Question
from qsctl.sim.splitting.trajectory import QueueTally, Trajectory

NEVER_BELOW: Final = -(2**62)
NEVER_ABOVE: Final = 2**62
TURNS_A_LOOK: Final = 256
"""Crossings from one look at whether to stop to the next."""


@dataclass(frozen=True, slots=True)
class Levels:
    """Thresholds of the importance, ascending, and the number of trajectories that continue at each.

    A factor of 1 splits nothing: crossings of such a threshold are only counted.
    """

    thresholds: tuple[int, ...] = ()
    factors: tuple[int, ...] = ()


@dataclass(slots=True)
class SplitRun:
    """The result of one split run: an unbiased estimate of a plain run's counts, and its cost."""

    value: float
    """The weighted number of lost messages; or the estimated probability that the event occurs in a run."""
    base: float
    """The weighted number of lost, delivered and elided messages; or 1, the run."""
    messages: int
    """Arrivals simulated in all trajectories."""
    trajectories: int
    crossings: list[int] = field(default_factory=list)
    """Number of upward crossings of each threshold, by all trajectories."""
    plain_messages: float = 0.0
    """An estimate of the arrivals of one plain run."""
    squares: list[float] = field(default_factory=list)
    """For each threshold, the sum of the squares of what `value` grew by from one crossing from below to the next.

    What was counted until the next crossing are the contributions of one state at that threshold, for all that comes
    from it is gone through before. Where few states contribute most, `value` rests on few, however many crossings
    there were: see `summary.rare`."""


@dataclass(slots=True)
class _WaitingTrajectories:
    """Trajectories that still have to continue from a state; each ends below level `born`."""

    saved: Any
    level: int
    tally: tuple[int, int]
    messages: int
    born: list[int]


def split_run(
    run: Trajectory,
    question: Question,
    levels: Levels,
    *,
    begin_ns: Nanoseconds = 0,
    messages_max: int | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> SplitRun | None:
    """Simulate one run of a scenario and all trajectories split off it.

    Args:
        run: a run in its initial state.
        question: the question, which defines the counts.
        levels: the thresholds and factors.
        begin_ns: the instant before which nothing is split or counted.
        messages_max: the number of arrivals after which the simulation ends; only the counts of crossings are valid
            then.
        stop: called often; True ends the run.

    Returns:
        The counts; None when stopped.
    """
    thresholds, factors = levels.thresholds, levels.factors
    count = len(thresholds)
    weights = [1.0]
    for factor in factors:
        weights.append(weights[-1] / factor)
    counts = _counts_of(question)
    is_probability = question.is_probability
    lows = (NEVER_BELOW, *thresholds)
    highs = (*thresholds, NEVER_ABOVE)
    sample = SplitRun(0.0, 0.0, 0, 1, [0] * count, squares=[0.0] * count)
    begun = [0.0] * count
    waiting: list[_WaitingTrajectories] = []
    born = level = branch = turns = 0
    if begin_ns > 0:
        run.skip(begin_ns)
    before, messages = counts(run.tally()), run.messages
    while True:
        goes_on = run.advance(lows[level], highs[level])
        turns += 1
        if turns % TURNS_A_LOOK == 1 and stop():
            return None
        after, arrived = counts(run.tally()), run.messages
        sample.value += weights[level] * (after[0] - before[0])
        sample.base += weights[level] * (after[1] - before[1])
        sample.plain_messages += weights[level] * (arrived - messages)
        sample.messages += arrived - messages
        before, messages = after, arrived
        if messages_max is not None and sample.messages >= messages_max:
            break
        if goes_on:
            importance, reached = run.importance(), level
            while reached < count and importance >= thresholds[reached]:
                sample.crossings[reached] += 1
                sample.squares[reached] += (sample.value - begun[reached]) ** 2
                begun[reached] = sample.value
                reached += 1
            while importance < lows[reached]:
                reached -= 1
            # What is asked of a run happens to it once, a depth at the last crossing: such a run is not split.
            has_happened = is_probability and after[0] > 0
            births = [born] if has_happened else _births(born, level, reached, factors)
            if len(births) > 1:
                born = births.pop()
                waiting.append(_WaitingTrajectories(run.save(), reached, before, messages, births))
                sample.trajectories += len(births)
            level = reached
            if level >= born and not has_happened:
                continue
        if not waiting:
            break
        here = waiting[-1]
        branch += 1
        run.resume(here.saved, branch)
        born, level, before, messages = here.born.pop(), here.level, here.tally, here.messages
        if not here.born:
            waiting.pop()
    for place, value in enumerate(begun):
        sample.squares[place] += (sample.value - value) ** 2
    if is_probability:
        sample.base = 1.0
    return sample


def _births(born: int, level: int, reached: int, factors: tuple[int, ...]) -> list[int]:
    """Return, for each trajectory that one continues as, the level below which it ends; the original one is first."""
    births = [born]
    for crossed in range(level, reached):
        births += [crossed + 1] * (len(births) * (factors[crossed] - 1))
    return births


def _counts_of(question: Question) -> Callable[[QueueTally], tuple[int, int]]:
    """Return the counting function: lost messages and all messages; or whether the event occurred in the run, and 0."""
    if question.asked is Asked.LOSS_RATIO:
        return lambda tally: (tally.lost, tally.ended)
    if question.asked is Asked.LOSS:
        return lambda tally: (int(tally.lost > 0), 0)
    return lambda tally: (int(tally.high_water_mark >= question.level), 0)
