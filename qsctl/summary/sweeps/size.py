"""The search for the smallest settings that are shown to meet targets, with as few simulations as possible.

`sim.sizing.directions` states for each target whether a larger setting makes it better or worse. With one setting, both
ends are tried first. Targets that improve with larger values are met from some value on, which is found by bisection,
and the others up to some value; the values between the two meet all targets. Several settings are searched one after
the other, from the corner of the range that is best by the directions. If a direction is unknown, or that corner does
not meet the targets, settings all over the range are tried, without use of directions. If a setting has listed values,
every combination of them is tried.

The answer that no value meets a target is given only after the ends and the middle of the range were tried. A candidate
gets more replications until its targets are decided (`candidates.py`), or until they are used up, and then counts as
not shown to meet. `inference/statistics.py` has the statements and their error probabilities.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from qsctl.errors import UsageError
from qsctl.sim.figures import Figures
from qsctl.sim.scenario.randomness import is_deterministic
from qsctl.sim.scenario.scenario import Scenario
from qsctl.sim.sizing.directions import Direction, Effect, effect_of
from qsctl.sim.sizing.most_arrivals import most_arrivals
from qsctl.sim.sizing.targets import Target, TargetKind, VariedSetting
from qsctl.sim.sweep import Point, Task, scenario_at
from qsctl.summary.inference.evidence import Knowledge, runs_needed, support_of
from qsctl.summary.inference.sequential import MOST_REPLICATIONS, SequentialAnswer
from qsctl.summary.spark.session import SparkOptions
from qsctl.summary.sweeps._candidate_stream import Values
from qsctl.summary.sweeps._known_results import DepthsOfSearch
from qsctl.summary.sweeps._spark_runner import SparkRunner
from qsctl.summary.sweeps.candidates import Candidate, Candidates
from qsctl.summary.sweeps.cost import Cost, candidates_of, cost_of_search, seconds_of
from qsctl.summary.sweeps.runner import Runner

MOST_COMBINATIONS: Final = 10_000
MOST_RUNS_OF_A_MEAN: Final = 1_000
"""Default of the largest number of replications for targets on means."""
_ROOM_FOR_VIOLATIONS: Final = 2.2
"""Factor by which replications exceed the number that suffices without a violation, to allow a few violations."""
_SCANNED: Final = {1: 17, 2: 6}
"""Number of values of each setting in a scan, by the number of settings; three for more than two settings."""


class Method(StrEnum):
    """The method of the search through the range."""

    BISECTION = "bisection"
    ONE_BY_ONE = "one setting after the other"
    SCAN = "scan"
    LIST = "list"


@dataclass(frozen=True, slots=True)
class Sizing:
    """The answer of a sizing, or None, and all tried candidates in order.

    `largest`: for one setting, the largest value up to which all values meet the targets, if it was searched for.
    `contradicted`: observations that contradict a direction on which the search relies.
    """

    settings: tuple[VariedSetting, ...]
    targets: tuple[Target, ...]
    confidence: float
    answer: Candidate | None
    candidates: tuple[Candidate, ...]
    effects: tuple[Effect, ...]
    method: Method
    contradicted: tuple[Effect, ...] = ()
    largest: int | None = None
    most_replications: int = MOST_REPLICATIONS
    deterministic: bool = False
    """Whether the scenario is deterministic at every candidate, so that each had one replication."""
    cost: Cost | None = None
    """The estimated cost before the search began, if it was requested."""

    @property
    def monotone(self) -> bool:
        """Return whether the observations agree with the directions on which the search relies."""
        return not self.contradicted

    def tried(self, place: int) -> list[int]:
        """Return the simulated values of a setting, in ascending order."""
        return sorted({each.values[place] for each in self.candidates})


@dataclass(frozen=True, slots=True)
class _Found:
    method: Method
    answer: Values | None
    largest: int | None = None


def size(
    scenario: Scenario,
    targets: Sequence[Target],
    settings: Sequence[VariedSetting],
    *,
    confidence: float,
    most_replications: int | None = None,
    stated: Mapping[tuple[str, str], float] | None = None,
    options: SparkOptions | None = None,
    runner: Runner | None = None,
    report: Callable[[Candidate], None] = lambda _: None,
    agree: Callable[[Cost], None] | None = None,
) -> Sizing:
    """Find the smallest settings that are shown to meet every target.

    Args:
        scenario: the scenario; its seed gives every candidate the same arrivals.
        targets: conditions that must all hold.
        settings: the settings to vary.
        confidence: probability that the statements about the answer are true.
        most_replications: largest number of replications of a candidate, after which an undecided one counts as not
            meeting. None: as many as the targets need; with several recordings, one for each.
        stated: upper bounds of measures of queues in every run, for targets on means.
        options: master and settings of Spark.
        runner: simulates the tasks instead of Spark.
        report: called with every simulated candidate.
        agree: called with the estimated cost before the search begins; an exception that it raises ends the search.

    Raises:
        UsageError: no target, nothing to vary, too many combinations, too few replications for a target, or a queue
            that carries no traffic.
        InvalidInput: a setting's value cannot be simulated.
    """
    if not targets or not settings:
        raise UsageError("there is nothing to size", remedy="Give at least one --target and one --vary.")
    kept = dict(stated or {})
    effects = tuple(effect_of(setting, target) for setting in settings for target in targets)
    highest = Point(tuple((each.path, each.value_text(each.high)) for each in settings))
    changed = scenario_at(scenario, highest)
    error = (1.0 - confidence) / _divided_among(settings, effects)
    recordings = 1 if scenario.replay is None else len(scenario.replay.recordings)
    if most_replications is None and recordings > 1:
        _check_runs(targets, error, recordings, f"{recordings} recordings", _MORE_RECORDINGS)
        most_replications = recordings
    elif most_replications is not None and not is_deterministic(changed):
        named = f"--max-replications {most_replications}"
        _check_runs(targets, error, most_replications, named, _MORE_REPLICATIONS)
    runner = runner or SparkRunner(scenario, options)
    first = runner.run([Task(highest, 0, scenario.seed)])[0].figures
    _check_queues(targets, [figures.queue for figures in first])
    most = most_replications or _enough(targets, error, first, changed, kept)
    cost = None
    if agree is not None:
        cost = _cost(scenario, settings, targets, effects, error, most, is_deterministic(changed), highest, runner)
        agree(cost)
    search = Candidates(scenario, tuple(settings), tuple(targets), confidence, error, most, kept, runner, report)
    found = _search(search, effects)
    return Sizing(
        search.settings,
        search.targets,
        confidence,
        None if found.answer is None else search.tried[found.answer],
        tuple(search.tried.values()),
        effects,
        found.method,
        tuple(_contradicted(search, effects)),
        found.largest,
        most,
        all(search.is_fixed(place) for place in search.tried),
        cost,
    )


def _cost(
    scenario: Scenario,
    settings: Sequence[VariedSetting],
    targets: Sequence[Target],
    effects: Sequence[Effect],
    error: float,
    most: int,
    fixed: bool,
    highest: Point,
    runner: Runner,
) -> Cost:
    """Return the estimated cost of the search, by timing as many replications as run at once, at the highest
    settings.
    """
    slots = runner.slots
    seconds = seconds_of([Task(highest, number, scenario.seed) for number in range(slots)], runner)
    listed = any(setting.choices for setting in settings)
    scanned = listed or any(effect.direction is Direction.UNKNOWN for effect in effects)
    candidates = candidates_of(settings, _lists(settings, listed=listed) if scanned else None)
    needed = max(
        min(most, runs_needed(target, error)) if target.kind is not TargetKind.MEAN else most for target in targets
    )
    # If all targets improve with the depth, results at the highest depth hold for all depths that were not reached.
    shown = len(DepthsOfSearch.of(scenario, settings).queues) == len(settings) == 1
    shown = shown and all(effect.direction is Direction.BETTER for effect in effects)
    return cost_of_search(candidates, 1 if fixed else needed, seconds, shown_by_highest=shown and not listed)


def _divided_among(settings: Sequence[VariedSetting], effects: Sequence[Effect]) -> int:
    """Return the number of events that could make the answer false, among which the error is divided."""
    directions = {effect.direction for effect in effects}
    listed = any(setting.choices for setting in settings)
    if Direction.UNKNOWN in directions:
        return math.prod(len(values) for values in _lists(settings, listed=listed))
    sides = 2 if {Direction.BETTER, Direction.WORSE} <= directions else 1
    if listed:
        counts = sorted(len(values) for values in _lists(settings, listed=True))
        return sides * math.prod(counts[:-1])
    if len(settings) == 1:
        return sides
    # One search for each setting; if a corner may fail and a scan may follow, each of the two has half of the error.
    return len(settings) if Direction.WORSE not in directions else 2 * (len(settings) + 1)


_MORE_REPLICATIONS: Final = "Allow {needed} or more, or ask for a larger proportion, as in 'P(…)<20%'."
_MORE_RECORDINGS: Final = (
    "Name {needed} or more, ask for a larger proportion, as in 'P(…)<20%', or allow loads that are drawn from these "
    "recordings with --max-replications {needed}."
)


def _check_runs(targets: Sequence[Target], error: float, runs: int, named: str, remedy: str) -> None:
    """Raise an error if a number of runs cannot show a target.

    Args:
        targets: all targets.
        error: the largest probability of a false answer.
        runs: largest number of runs of a candidate.
        named: text that names these runs, as they were requested.
        remedy: remedy of the error, with `{needed}` in place of the needed number.
    """
    for target in targets:
        needed = runs_needed(target, error)
        if target.kind is not TargetKind.MEAN and runs < needed:
            raise UsageError(
                f"{named} cannot show {target.text}: that less than {100 * target.share:g} % of runs violate it needs "
                f"{needed} runs without one that does",
                remedy=remedy.format(needed=needed),
            )


def _enough(
    targets: Sequence[Target],
    error: float,
    first: Sequence[Figures],
    scenario: Scenario,
    stated: dict[tuple[str, str], float],
) -> int:
    """Return the largest number of replications of a candidate: enough to show the targets, limited for targets on
    means.
    """
    wanted = [MOST_REPLICATIONS]
    for target in targets:
        if target.kind is TargetKind.MEAN:
            rows = [figures for figures in first if figures.queue == target.queue]
            known = Knowledge(False, {target.queue: most_arrivals(scenario, target.queue)}, stated)
            wanted.append(min(MOST_RUNS_OF_A_MEAN, runs_needed(target, error, support_of(target, rows, known))))
        else:
            room = _ROOM_FOR_VIOLATIONS if target.kind is TargetKind.SHARE else 1.0
            wanted.append(math.ceil(room * runs_needed(target, error)))
    return max(wanted)


def _check_queues(targets: Sequence[Target], queues: Sequence[str]) -> None:
    for target in targets:
        if target.queue not in queues:
            raise UsageError(
                f"--target {target.text!r}: no message reaches a queue {target.queue}",
                remedy=f"The scenario has traffic in {', '.join(queues)}.",
            )


def _search(search: Candidates, effects: Sequence[Effect]) -> _Found:
    """Search by the method that the directions allow."""
    settings = search.settings
    if any(setting.choices for setting in settings):
        return _Found(Method.LIST, _cheapest(search, _lists(settings, listed=True)))
    if any(effect.direction is Direction.UNKNOWN for effect in effects):
        return _Found(Method.SCAN, _cheapest(search, _lists(settings, listed=False)))
    if len(settings) == 1:
        return _between(search, settings[0], effects)
    found = _descend(search, effects)
    if found is not None:
        return _Found(Method.ONE_BY_ONE, found)
    if any(effect.direction is Direction.WORSE for effect in effects):
        lists = _lists(settings, listed=False)
        search.restate((1.0 - search.confidence) / 2.0 / math.prod(len(values) for values in lists))
        return _Found(Method.SCAN, _cheapest(search, lists))
    return _Found(Method.ONE_BY_ONE, _ends_and_middle(search))


def _between(search: Candidates, setting: VariedSetting, effects: Sequence[Effect]) -> _Found:
    """Search one setting: find the least value for targets that improve with larger values, and the largest for the
    others.
    """
    larger = [effect.target for effect in effects if effect.direction is Direction.BETTER]
    smaller = [effect.target for effect in effects if effect.direction is Direction.WORSE]
    low, high = setting.low, setting.high
    for about in (larger, smaller):
        if about:
            search.simulate([(low,), (high,)], about)
    least = _boundary(lambda value: search.meets((value,), larger), high, low) if larger else low
    most = _boundary(lambda value: search.meets((value,), smaller), low, high) if smaller else high
    if least is not None and most is not None and least <= most and search.meets((least,)):
        return _Found(Method.BISECTION, (least,), most if smaller else None)
    return _Found(Method.BISECTION, _ends_and_middle(search))


def _boundary(meets: Callable[[int], bool], holds: int, fails: int) -> int | None:
    """Return the last value that meets the targets between `holds`, which should meet them, and `fails`; by
    bisection.
    """
    if meets(fails):
        return fails
    if not meets(holds):
        return None
    while abs(holds - fails) > 1:
        middle = _middle(min(holds, fails), max(holds, fails))
        if meets(middle):
            holds = middle
        else:
            fails = middle
    return holds


def _middle(low: int, high: int) -> int:
    """Return a value between two: the geometric mean while they are far apart, since limits span powers of ten."""
    if high - low < max(2, high // 8):
        return (low + high) // 2
    return max(low + 1, min(high - 1, math.isqrt(max(1, low) * high)))


def _ends_and_middle(search: Candidates) -> Values | None:
    """Try the ends and the middle of the range if they were not tried; return the smallest candidate that meets, if
    any.

    Only a candidate that contradicts a direction can meet.
    """
    lows, highs = (tuple(getattr(each, end) for each in search.settings) for end in ("low", "high"))
    middle = tuple(_middle(low, high) if high - low > 1 else low for low, high in zip(lows, highs, strict=True))
    search.simulate([place for place in dict.fromkeys((lows, middle, highs)) if place not in search.tried])
    return min((place for place, candidate in search.tried.items() if candidate.met), default=None)


def _descend(search: Candidates, effects: Sequence[Effect]) -> Values | None:
    """Bisect one setting after the other, each between its lowest value and one that is known to meet the targets.

    The first candidate is the corner that is best by the directions: high for a setting that any target needs to be
    larger.
    """
    raised = {effect.setting for effect in effects if effect.direction is Direction.BETTER}
    best = [setting.high if setting in raised else setting.low for setting in search.settings]
    if not search.meets(best):
        return None
    for place, setting in enumerate(search.settings):

        def meets(value: int, place: int = place) -> bool:
            # A block with its own arrivals: the result must not depend on those that determined the other settings.
            return search.meets([*best[:place], value, *best[place + 1 :]], block=place)

        found = _boundary(meets, best[place], setting.low)
        assert found is not None, "the candidate that it begins with meets"
        best[place] = found
    return tuple(best)


def _lists(settings: Sequence[VariedSetting], *, listed: bool) -> list[Sequence[int]]:
    """Return the values of each setting that are combined: those that are listed, or values spread over its range."""
    if listed:
        return [setting.choices or tuple(dict.fromkeys((setting.low, setting.high))) for setting in settings]
    count = _SCANNED.get(len(settings), 3)
    return [_spread(setting.low, setting.high, count) for setting in settings]


def _spread(low: int, high: int, count: int) -> tuple[int, ...]:
    """Return `count` values from `low` to `high`, each larger by about the same factor; all values if there are no
    more.
    """
    if high - low < count:
        return tuple(range(low, high + 1))
    first = max(1, low)
    steps = {round(first * (high / first) ** (step / (count - 1))) for step in range(count)}
    return tuple(sorted({low, high, *steps}))[-count:] if low else tuple(sorted({0, high, *steps}))


def _cheapest(search: Candidates, lists: Sequence[Sequence[int]]) -> Values | None:
    """Try every combination; return the one that meets with the least memory, then the smallest values."""
    if math.prod(len(values) for values in lists) > MOST_COMBINATIONS:
        raise UsageError(f"more than {MOST_COMBINATIONS} combinations", remedy="Give fewer values.")
    search.simulate(list(itertools.product(*lists)))
    met = [place for place, candidate in search.tried.items() if candidate.met]
    return min(met, key=lambda place: (search.tried[place].memory_bytes, place), default=None)


def _contradicted(search: Candidates, effects: Sequence[Effect]) -> list[Effect]:
    """Return the directions that are contradicted by two candidates that differ in one setting."""
    found = []
    for number, effect in enumerate(effects):
        place, wanted = search.settings.index(effect.setting), number % len(search.targets)
        rows: dict[Values, list[tuple[int, SequentialAnswer]]] = {}
        for values, candidate in search.tried.items():
            others = (*values[:place], *values[place + 1 :])
            rows.setdefault(others, []).append((values[place], candidate.evidence[wanted].answer))
        for row in rows.values():
            met = [value for value, answer in row if answer is SequentialAnswer.SHOWN]
            missed = [value for value, answer in row if answer is SequentialAnswer.REFUSED]
            if effect.direction is Direction.WORSE:
                met, missed = [-value for value in met], [-value for value in missed]
            if effect.direction is not Direction.UNKNOWN and met and missed and min(met) < max(missed):
                found.append(effect)
                break
    return found
