"""The comparison of two runs or two sweeps: differences of every measure, paired if both used the same random numbers.

Differing settings are reported first (`compared_settings.py`). If the loads differ, counts of messages and throughput
have no winner, since they follow the load. If the durations or the numbers of clients differ, counts are compared per
second and client, and a measure that grows with the duration of a run has no winner.

Only counters are read, a few rows for each replication, so that Java is not needed. Where the seeds of a pair of
replications agree, differences are those of the pairs, which removes the common part of the arrivals; else the means
are compared by Welch's interval. With one replication on each side the messages are read: `one_run.py` compares them
sample by sample, or by blocks. Many differences are tested together: a winner is named only where it is significant
after Holm's adjustment (`inference/statistics.py`), of the measures of the sentence among themselves, and of all others
among all.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np
import pyarrow.compute as pc

from qsctl.errors import InvalidInput, NotFound, UsageError
from qsctl.eventlog.location import Location
from qsctl.eventlog.reader import counters_of
from qsctl.eventlog.run_folder import RUN_FILE, read_run_info
from qsctl.instant import SECOND_NS
from qsctl.sim.figures import Figures, figures_of
from qsctl.sim.scenario.randomness import is_deterministic
from qsctl.sim.scenario.scenario import Scenario
from qsctl.sim.sweep import Point, scenario_at
from qsctl.summary.comparison.compared_settings import SettingDifference, scenario_in, setting_differences
from qsctl.summary.comparison.one_run import (
    FEWEST_MESSAGES,
    SAMPLES,
    STATISTICS,
    QueueMessages,
    blocks_of,
    by_blocks,
    messages_of,
    paired_by_samples,
    same_arrivals,
)
from qsctl.summary.inference.statistics import Interval, TestedDifference, difference_of_means, holm, paired_difference
from qsctl.summary.sweeps.points import LARGER_IS_BETTER, MEASURES, UNITS
from qsctl.summary.sweeps.sweep_folder import SWEEP_FILE, PointResult, read_results


class MeasureVerdict(StrEnum):
    """The verdict on a measure: which side is better, at the given confidence."""

    A = "A"
    B = "B"
    SAME = "same"
    """Both sides have exactly the same value in every replication."""
    UNDECIDED = "undecided"
    """Not significant: among this number of differences, one as large is expected by chance."""
    NOT_COMPARED = "not compared"
    """The loads or the durations differ, on which the measure depends."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference B − A of one measure of one queue at one point.

    `interval` is for this difference alone; `adjusted_p_value` is adjusted for all differences tested together, and
    decides the verdict.
    """

    point: Point
    queue: str
    measure: str
    mean_a: float
    mean_b: float
    difference: Interval
    paired: bool
    adjusted_p_value: float
    verdict: MeasureVerdict
    unit: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """All differences of two sides, and the points and queues that only one side has.

    `settings` are the differing settings; None if a folder has no readable scenario.
    """

    a: Location
    b: Location
    confidence: float
    differences: tuple[Difference, ...]
    only_in_a: tuple[str, ...]
    only_in_b: tuple[str, ...]
    settings: tuple[SettingDifference, ...] | None = ()

    @property
    def load_differs(self) -> bool:
        """Return whether the arrivals or the duration differ."""
        return any(each.is_load for each in self.settings or ())


def compare(a: Location, b: Location, confidence: float) -> Comparison:
    """Compare two run folders or two sweep folders.

    Raises:
        NotFound: a folder is neither a run nor a sweep.
        InvalidInput: one is a run and the other a sweep, or they have nothing in common to compare.
    """
    if (a / SWEEP_FILE).exists() != (b / SWEEP_FILE).exists():
        raise InvalidInput(f"{a} and {b} are not of one kind", remedy="Compare two runs, or two sweeps.")
    left, right = _grouped(read_figures(a)), _grouped(read_figures(b))
    given_a, given_b = scenario_in(a), scenario_in(b)
    settings = None if given_a is None or given_b is None else setting_differences(given_a, given_b)
    fixed = _without_chance(given_a, left) & _without_chance(given_b, right)
    within = _Within(a, b) if _one_run(left) and _one_run(right) else None
    traffic = any(each.is_load and each.path.startswith(_TRAFFIC) for each in settings or ())
    found = [
        difference
        for place in left
        if place in right
        for difference in _differences(
            left[place],
            right[place],
            confidence,
            exact=left[place].point.key in fixed,
            within=within,
            other_load=traffic or (settings is None and _other_rate(left[place], right[place])),
        )
    ]
    if not found:
        raise InvalidInput(f"{a} and {b} have no queue and point in common", remedy="Sweep the same values in both.")
    return Comparison(
        a,
        b,
        confidence,
        tuple(_judged(found, confidence)),
        tuple(_names(left, right)),
        tuple(_names(right, left)),
        settings,
    )


def read_figures(folder: Location) -> list[PointResult]:
    """Return the figures of every replication of a run or of a sweep.

    Raises:
        NotFound: the folder is neither a run nor a sweep.
    """
    if (folder / SWEEP_FILE).exists():
        return read_results(folder)
    if not (folder / RUN_FILE).exists():
        raise NotFound(
            f"{folder} is neither a run nor a sweep", remedy="Name a folder that `qsctl simulate` or `sweep` printed."
        )
    info = read_run_info(folder)
    counters = counters_of(folder, info)
    found = {each.replication: each for each in info.done}
    results = []
    for number in sorted(set(counters["replication"].to_pylist())):
        mine = counters.filter(pc.equal(counters["replication"], number))
        figures = figures_of(mine, found[number].replicated_queues, found[number].verdicts, found[number].worked_queues)
        results.append(PointResult(Point(()), number, info.seed, tuple(figures)))
    return results


@dataclass(frozen=True, slots=True)
class _PointGroup:
    """One queue at one point: the figures of each replication, by its seed and number."""

    point: Point
    queue: str
    figures: dict[tuple[int, int], Figures]


def _grouped(results: Sequence[PointResult]) -> dict[tuple[str, str], _PointGroup]:
    groups: dict[tuple[str, str], _PointGroup] = {}
    for result in results:
        for figures in result.figures:
            group = groups.setdefault((result.point.key, figures.queue), _PointGroup(result.point, figures.queue, {}))
            group.figures[result.seed, result.replication] = figures
    return groups


def _without_chance(scenario: Scenario | None, groups: dict[tuple[str, str], _PointGroup]) -> set[str]:
    """Return the keys of the deterministic points, for which one replication is enough."""
    if scenario is None:
        # Without a scenario, replications are compared as random ones.
        return set()
    points = {group.point.key: group.point for group in groups.values()}
    try:
        return {key for key, point in points.items() if is_deterministic(scenario_at(scenario, point))}
    except (InvalidInput, UsageError):
        return set()


def _one_run(groups: dict[tuple[str, str], _PointGroup]) -> bool:
    """Return whether the side is a single replication of a run, and not a sweep."""
    return all(len(group.figures) == 1 and not group.point.values for group in groups.values())


_TRAFFIC: Final = ("traffic", "workload", "trace", "engine")
_ALIKE: Final = 0.02
"""Largest relative difference of arrivals per second and client at which loads without a scenario count as equal."""


def _other_rate(a: _PointGroup, b: _PointGroup) -> bool:
    """Return whether the arrival rates per client of two sides differ clearly."""
    rates = []
    for group in (a, b):
        rows = list(group.figures.values())
        amount = sum(row.observed_ns * row.clients for row in rows)
        rates.append(sum(row.arrived_messages for row in rows) / amount if amount else 0.0)
    return abs(rates[0] - rates[1]) > _ALIKE * max(rates)


class _Within:
    """The messages of two runs of one replication each, read on demand."""

    def __init__(self, a: Location, b: Location) -> None:
        self._folders = (a, b)
        self._messages: tuple[Mapping[str, QueueMessages], Mapping[str, QueueMessages]] | None = None
        self._draws = np.random.default_rng(1)

    def of(self, queue: str) -> tuple[QueueMessages, QueueMessages] | None:
        """Return the messages of a queue on both sides; None if they are missing or too few."""
        if self._messages is None:
            self._messages = (messages_of(self._folders[0]), messages_of(self._folders[1]))
        a, b = (side.get(queue) for side in self._messages)
        if a is None or b is None or min(len(a.wait_ns), len(b.wait_ns)) < FEWEST_MESSAGES:
            return None
        return a, b

    def tested(
        self, sides: tuple[QueueMessages, QueueMessages], measure: str, difference: float, confidence: float
    ) -> TestedDifference:
        """Test a difference by pairs of samples if both sides had the same arrivals, else by blocks."""
        a, b = blocks_of(*sides)
        test = paired_by_samples if same_arrivals(*sides) else by_blocks
        return test(a, b, measure, difference, confidence, self._draws)


@dataclass(frozen=True, slots=True)
class _FoundDifference:
    """A difference before the adjustment for the number of differences."""

    point: Point
    queue: str
    measure: str
    mean_a: float
    mean_b: float
    tested: TestedDifference
    paired: bool
    same: bool
    unit: str
    comparable: bool


def _differences(
    a: _PointGroup, b: _PointGroup, confidence: float, *, exact: bool, within: _Within | None, other_load: bool
) -> list[_FoundDifference]:
    """Return the unadjusted differences of all measures of one queue at one point."""
    first_a, first_b = (next(iter(group.figures.values())) for group in (a, b))
    other_time = first_a.observed_ns != first_b.observed_ns
    other_clients = first_a.clients != first_b.clients
    common = sorted(a.figures.keys() & b.figures.keys())
    paired = len(common) == len(a.figures) == len(b.figures)
    found = []
    for name, measure in MEASURES.items():
        if paired:
            pairs = [(measure(a.figures[place]), measure(b.figures[place])) for place in common]
            whole = [(left, right) for left, right in pairs if left is not None and right is not None]
            lefts, rights = [left for left, _ in whole], [right for _, right in whole]
        else:
            lefts = [value for each in a.figures.values() if (value := measure(each)) is not None]
            rights = [value for each in b.figures.values() if (value := measure(each)) is not None]
        if not lefts or not rights:
            continue
        unit = UNITS.get(name, "messages")
        if name in _COUNTS and (other_time or other_clients):
            scale_a, scale_b = (_scale(each, other_time, other_clients, name) for each in (first_a, first_b))
            lefts, rights = [scale_a * value for value in lefts], [scale_b * value for value in rights]
            unit = "messages/s" + (" and client" if other_clients else "")
        tested = (
            paired_difference(
                [right - left for left, right in zip(lefts, rights, strict=True)], confidence, exact=exact
            )
            if paired
            else difference_of_means(lefts, rights, confidence, exact=exact)
        )
        sides = within.of(a.queue) if within is not None and not exact and name in STATISTICS else None
        if within is not None and sides is not None and lefts != rights:
            tested = within.tested(sides, name, rights[0] - lefts[0], confidence)
        same = lefts == rights if paired else min(lefts) == max(lefts) == min(rights) == max(rights)
        mean_a, mean_b = math.fsum(lefts) / len(lefts), math.fsum(rights) / len(rights)
        comparable = not (other_load and name in _COUNTS) and not (other_time and name in _GROWING)
        pairs_of = paired or tested.interval.method == SAMPLES
        found.append(_FoundDifference(a.point, a.queue, name, mean_a, mean_b, tested, pairs_of, same, unit, comparable))
    return found


_COUNTS: Final = frozenset(
    {
        "discards",
        "lost",
        "delivered",
        "throughput",
        "redelivered",
        "duplicates",
        "parallel_duplicates",
        "requests",
        "worker_hours",
        "cost",
        "expired",
        "dead",
        "rejected",
        "elided",
        "unfinished",
    }
)
"""Measures that depend on the number of arrivals."""
_GROWING: Final = frozenset(
    {
        "time_in_queue_max", "time_to_done_max", "high_water_mark", "backlog_max", "ready_max", "time_of_oldest_max",
        "time_to_drain",
    }
)  # fmt: skip
"""Largest values, which increase with the observed time."""


def _scale(figures: Figures, per_second: bool, per_client: bool, measure: str) -> float:
    """Return the factor that converts a count to a rate per second, per client, or both; throughput is already per
    second.
    """
    seconds = figures.observed_ns / SECOND_NS if per_second and measure != "throughput" else 1.0
    return 1.0 / (seconds or 1.0) / (figures.clients if per_client else 1)


def _judged(found: Sequence[_FoundDifference], confidence: float) -> list[Difference]:
    """Return every difference with its verdict; p-values of headline measures are adjusted among themselves, others
    among all.
    """
    of_all = holm([each.tested.p_value if each.comparable else 1.0 for each in found])
    headlines = [each for each in found if each.measure in HEADLINES]
    of_headlines = iter(holm([each.tested.p_value if each.comparable else 1.0 for each in headlines]))
    judged = []
    for each, among_all in zip(found, of_all, strict=True):
        p_value = next(of_headlines) if each.measure in HEADLINES else among_all
        judged.append(
            Difference(
                each.point,
                each.queue,
                each.measure,
                each.mean_a,
                each.mean_b,
                each.tested.interval,
                each.paired,
                p_value,
                _verdict(each, stands=p_value <= 1.0 - confidence),
                each.unit,
            )
        )
    return judged


def _verdict(found: _FoundDifference, *, stands: bool) -> MeasureVerdict:
    if not found.comparable:
        return MeasureVerdict.NOT_COMPARED
    if found.same:
        return MeasureVerdict.SAME
    difference = found.tested.interval.mean
    if not stands or difference == 0.0:
        return MeasureVerdict.UNDECIDED
    return MeasureVerdict.B if (difference > 0.0) == (found.measure in LARGER_IS_BETTER) else MeasureVerdict.A


def _names(of: dict[tuple[str, str], _PointGroup], without: dict[tuple[str, str], _PointGroup]) -> list[str]:
    return [f"{group.queue} at {group.point}" for place, group in of.items() if place not in without]


HEADLINES: Final = (
    "loss_ratio", "discards", "time_in_queue_p99", "time_in_queue_mean", "time_to_done_p99", "time_to_done_mean",
    "throughput",
)  # fmt: skip
"""The measures in the summary sentence, which alone decide a comparison."""
