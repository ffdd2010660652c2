"""Two runs or two sweeps side by side: differences of every measure, paired where both saw the same random numbers.

Only counters are read, a few rows a replication, so that no Java is needed. Where the seeds of a pair of replications
agree, the difference is taken pair by pair, which removes what the arrivals have in common; else the means are compared
by Welch's interval.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import pyarrow.compute as pc

from qsctl.errors import InvalidInput, NotFound
from qsctl.eventlog.reader import counters_of
from qsctl.eventlog.run_folder import RUN_FILE, read_run_info
from qsctl.sim.figures import Figures, figures_of
from qsctl.sim.sweep import Point
from qsctl.summary.points import LARGER_IS_BETTER, MEASURES, Interval, interval_of
from qsctl.summary.student import t_quantile
from qsctl.summary.sweep_folder import SWEEP_FILE, PointResult, read_results


class Verdict(StrEnum):
    """Which of the two is better on a measure, as far as the interval tells."""

    A = "A"
    B = "B"
    SAME = "same"
    """Both give exactly the same in every replication."""
    UNDECIDED = "undecided"
    """The interval of the difference holds zero."""


@dataclass(frozen=True, slots=True)
class Difference:
    """B less A on one measure of one queue at one point."""

    point: Point
    queue: str
    measure: str
    mean_a: float
    mean_b: float
    difference: Interval
    paired: bool
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Comparison:
    """Every difference, and what of either side has no counterpart."""

    a: Path
    b: Path
    confidence: float
    differences: tuple[Difference, ...]
    only_in_a: tuple[str, ...]
    only_in_b: tuple[str, ...]


def compare(a: Path, b: Path, confidence: float) -> Comparison:
    """Compare two run folders or two sweep folders.

    Raises:
        NotFound: one is neither.
        InvalidInput: one is a run and the other a sweep, or nothing of them can be compared.
    """
    if (a / SWEEP_FILE).exists() != (b / SWEEP_FILE).exists():
        raise InvalidInput(f"{a} and {b} are not of one kind", remedy="Compare two runs, or two sweeps.")
    left, right = _grouped(read_figures(a)), _grouped(read_figures(b))
    differences = [
        difference
        for place in left
        if place in right
        for difference in _differences(left[place], right[place], confidence)
    ]
    if not differences:
        raise InvalidInput(f"{a} and {b} have no queue and point in common", remedy="Sweep the same values in both.")
    return Comparison(
        a,
        b,
        confidence,
        tuple(differences),
        tuple(_names(left, right)),
        tuple(_names(right, left)),
    )


def read_figures(folder: Path) -> list[PointResult]:
    """The figures of every replication of a run or of a sweep.

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
    results = []
    for number in sorted(set(counters["replication"].to_pylist())):
        mine = counters.filter(pc.equal(counters["replication"], number))
        results.append(PointResult(Point(()), number, info.seed, tuple(figures_of(mine))))
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


def _differences(a: _Group, b: _Group, confidence: float) -> list[Difference]:
    common = sorted(a.figures.keys() & b.figures.keys())
    paired = len(common) == len(a.figures) == len(b.figures)
    found = []
    for name, measure in MEASURES.items():
        if paired:
            pairs = [(measure(a.figures[place]), measure(b.figures[place])) for place in common]
            whole = [(left, right) for left, right in pairs if left is not None and right is not None]
            if not whole:
                continue
            interval = interval_of([right - left for left, right in whole], confidence)
            lefts, rights = [left for left, _ in whole], [right for _, right in whole]
        else:
            lefts = [value for each in a.figures.values() if (value := measure(each)) is not None]
            rights = [value for each in b.figures.values() if (value := measure(each)) is not None]
            if not lefts or not rights:
                continue
            interval = welch(lefts, rights, confidence)
        found.append(
            Difference(
                a.point,
                a.queue,
                name,
                math.fsum(lefts) / len(lefts),
                math.fsum(rights) / len(rights),
                interval,
                paired,
                _verdict(name, interval, same=sorted(lefts) == sorted(rights) and interval.mean == 0.0),
            )
        )
    return found


def welch(a: Sequence[float], b: Sequence[float], confidence: float) -> Interval:
    """The interval of mean(b) − mean(a) for samples with variances of their own; infinite for a single observation."""
    difference = math.fsum(b) / len(b) - math.fsum(a) / len(a)
    if len(a) < 2 or len(b) < 2:
        return Interval(difference, math.inf, min(len(a), len(b)))
    parts = []
    for values in (a, b):
        mean = math.fsum(values) / len(values)
        parts.append(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1) / len(values))
    error = sum(parts)
    if error == 0.0:
        return Interval(difference, 0.0, min(len(a), len(b)))
    # Welch and Satterthwaite; rounded down, which widens the interval a little.
    freedom = error**2 / sum(part**2 / (len(values) - 1) for part, values in zip(parts, (a, b), strict=True))
    half_width = t_quantile(confidence, max(1, math.floor(freedom))) * math.sqrt(error)
    return Interval(difference, half_width, min(len(a), len(b)))


def _verdict(measure: str, difference: Interval, *, same: bool) -> Verdict:
    if same and difference.half_width in (0.0, math.inf):
        return Verdict.SAME
    if difference.low <= 0.0 <= difference.high:
        return Verdict.UNDECIDED
    b_is_larger = difference.mean > 0.0
    return Verdict.B if b_is_larger == (measure in LARGER_IS_BETTER) else Verdict.A


def _names(of: dict[tuple[str, str], _Group], without: dict[tuple[str, str], _Group]) -> list[str]:
    return [f"{group.queue} at {group.point}" for place, group in of.items() if place not in without]


HEADLINES = ("loss_ratio", "discards", "latency_p99", "latency_mean", "throughput")
"""The measures that the sentence is about; on the rest nobody decides."""

_WORDS = {
    "loss_ratio": "losses",
    "discards": "discards",
    "latency_p99": "p99 latency",
    "latency_mean": "mean latency",
    "throughput": "throughput",
}


def sentence(comparison: Comparison) -> str:
    """Which is better on what, in words."""
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
        parts = [
            "the intervals do not tell A and B apart: simulate more replications"
            if undecided
            else "A and B give the same"
        ]
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
