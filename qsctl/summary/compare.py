"""Two runs or two sweeps side by side: differences of every measure, paired where both saw the same random numbers.

Only counters are read, a few rows a replication, so that no Java is needed. Where the seeds of a pair of replications
agree, differences are those of the pairs, which removes what the arrivals have in common; else the means are compared
by Welch's interval. Many differences are looked at together: a winner is named only where that stands after Holm's
adjustment (`statistics.py`), of the measures of the sentence among themselves, and of all others among all.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import pyarrow.compute as pc

from qsctl.errors import InvalidInput, NotFound, QsctlError
from qsctl.eventlog.location import Location
from qsctl.eventlog.reader import counters_of
from qsctl.eventlog.run_folder import RUN_FILE, SCENARIO_FILE, SERVICE_FILE, read_run_info
from qsctl.sim.figures import Figures, figures_of
from qsctl.sim.scenario.randomness import is_deterministic
from qsctl.sim.scenario.xml import read_scenario
from qsctl.sim.sweep import Point, scenario_at
from qsctl.summary.points import LARGER_IS_BETTER, MEASURES
from qsctl.summary.statistics import Interval, TestedDifference, difference_of_means, holm, paired_difference
from qsctl.summary.sweep_folder import SWEEP_FILE, PointResult, read_results


class Verdict(StrEnum):
    """Which of the two is better on a measure, as far as is known with the confidence asked for."""

    A = "A"
    B = "B"
    SAME = "same"
    """Both give exactly the same in every replication."""
    UNDECIDED = "undecided"
    """The difference may be chance: among so many differences, one as large is to be expected."""


@dataclass(frozen=True, slots=True)
class Difference:
    """B less A on one measure of one queue at one point.

    `interval` is of this difference alone; `adjusted_p_value` is adjusted for all that are looked at together, and
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
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Comparison:
    """Every difference, and what of either side has no counterpart."""

    a: Location
    b: Location
    confidence: float
    differences: tuple[Difference, ...]
    only_in_a: tuple[str, ...]
    only_in_b: tuple[str, ...]


def compare(a: Location, b: Location, confidence: float) -> Comparison:
    """Compare two run folders or two sweep folders.

    Raises:
        NotFound: one is neither.
        InvalidInput: one is a run and the other a sweep, or nothing of them can be compared.
    """
    if (a / SWEEP_FILE).exists() != (b / SWEEP_FILE).exists():
        raise InvalidInput(f"{a} and {b} are not of one kind", remedy="Compare two runs, or two sweeps.")
    left, right = _grouped(read_figures(a)), _grouped(read_figures(b))
    fixed = _without_chance(a, left) & _without_chance(b, right)
    found = [
        difference
        for place in left
        if place in right
        for difference in _differences(left[place], right[place], confidence, exact=left[place].point.key in fixed)
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
    )


def read_figures(folder: Location) -> list[PointResult]:
    """Return the figures of every replication of a run or of a sweep.

    Raises:
        NotFound: the folder is neither.
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
        figures = figures_of(mine, found[number].replicated_queues, found[number].verdicts)
        results.append(PointResult(Point(()), number, info.seed, tuple(figures)))
    return results


@dataclass(frozen=True, slots=True)
class _Group:
    """One queue at one point: the figures of each replication, with the seed it had."""

    point: Point
    queue: str
    figures: dict[tuple[int, int], Figures]


def _grouped(results: Sequence[PointResult]) -> dict[tuple[str, str], _Group]:
    groups: dict[tuple[str, str], _Group] = {}
    for result in results:
        for figures in result.figures:
            group = groups.setdefault((result.point.key, figures.queue), _Group(result.point, figures.queue, {}))
            group.figures[result.seed, result.replication] = figures
    return groups


def _without_chance(folder: Location, groups: dict[tuple[str, str], _Group]) -> set[str]:
    """Return the keys of the points at which nothing is random, so that one replication is enough."""
    try:
        with tempfile.TemporaryDirectory(prefix="qsctl-") as here:
            for name in (SCENARIO_FILE, SERVICE_FILE):
                if (folder / name).is_file():
                    (Path(here) / name).write_bytes((folder / name).read_bytes())
            # Neither variables nor the environment: the text is canonical.
            scenario = read_scenario(Path(here) / SCENARIO_FILE, {}, {})
        points = {group.point.key: group.point for group in groups.values()}
        return {key for key, point in points.items() if is_deterministic(scenario_at(scenario, point))}
    except (QsctlError, OSError):
        # Written by hand, or its trace is elsewhere: its replications are compared as any others.
        return set()


@dataclass(frozen=True, slots=True)
class _Found:
    """A difference before it is known how many others are looked at."""

    point: Point
    queue: str
    measure: str
    mean_a: float
    mean_b: float
    tested: TestedDifference
    paired: bool
    same: bool


def _differences(a: _Group, b: _Group, confidence: float, *, exact: bool) -> list[_Found]:
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
        tested = (
            paired_difference(
                [right - left for left, right in zip(lefts, rights, strict=True)], confidence, exact=exact
            )
            if paired
            else difference_of_means(lefts, rights, confidence, exact=exact)
        )
        same = lefts == rights if paired else min(lefts) == max(lefts) == min(rights) == max(rights)
        mean_a, mean_b = math.fsum(lefts) / len(lefts), math.fsum(rights) / len(rights)
        found.append(_Found(a.point, a.queue, name, mean_a, mean_b, tested, paired, same))
    return found


def _judged(found: Sequence[_Found], confidence: float) -> list[Difference]:
    """Return every difference with its verdict: the headlines adjusted among themselves, the rest among all."""
    of_all = holm([each.tested.p_value for each in found])
    headlines = [each for each in found if each.measure in HEADLINES]
    of_headlines = iter(holm([each.tested.p_value for each in headlines]))
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
            )
        )
    return judged


def _verdict(found: _Found, *, stands: bool) -> Verdict:
    if found.same:
        return Verdict.SAME
    difference = found.tested.interval.mean
    if not stands or difference == 0.0:
        return Verdict.UNDECIDED
    return Verdict.B if (difference > 0.0) == (found.measure in LARGER_IS_BETTER) else Verdict.A


def _names(of: dict[tuple[str, str], _Group], without: dict[tuple[str, str], _Group]) -> list[str]:
    return [f"{group.queue} at {group.point}" for place, group in of.items() if place not in without]


HEADLINES = ("loss_ratio", "discards", "latency_p99", "latency_mean", "throughput")
"""The measures that the sentence is about; a comparison is not decided on the others."""

_WORDS = {
    "loss_ratio": "losses",
    "discards": "discards",
    "latency_p99": "p99 latency",
    "latency_mean": "mean latency",
    "throughput": "throughput",
}


def sentence(comparison: Comparison) -> str:
    """Return which is better on what, in words."""
    wins: dict[Verdict, list[str]] = {Verdict.A: [], Verdict.B: []}
    shown = [each for each in comparison.differences if each.measure in HEADLINES]
    points = len({each.point.key for each in shown})
    for measure, queue in dict.fromkeys(
        (measure, each.queue) for measure in HEADLINES for each in shown if each.measure == measure
    ):
        mine = [each for each in shown if (each.measure, each.queue) == (measure, queue)]
        for verdict, what in wins.items():
            better = [each for each in mine if each.verdict is verdict]
            if better:
                place = f" at {len(better)} of {points} points" if points > 1 else _share(better[0])
                what.append(f"{_WORDS[measure]} of {queue}{place}")
    undecided = sum(each.verdict is Verdict.UNDECIDED for each in shown)
    parts = [f"{verdict.value} is better on {_listed(what)}" for verdict, what in wins.items() if what]
    if not parts:
        unknown = "no difference between A and B is shown: simulate more replications"
        parts = [unknown if undecided else "A and B give the same"]
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}."


def _share(difference: Difference) -> str:
    if difference.mean_a == 0.0:
        return ""
    return f" ({100 * difference.difference.mean / difference.mean_a:+.3g} %)"


def _listed(what: Sequence[str], most: int = 6) -> str:
    shown = list(what[:most])
    if len(what) > most:
        return f"{', '.join(shown)} and {len(what) - most} more"
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"
