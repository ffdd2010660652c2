"""The report page of a sweep: heat maps over two varied settings, curves over one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from qsctl.errors import QsctlError
from qsctl.eventlog.location import Location
from qsctl.report._charts import Picture, front_chart, heat_chart, line_chart, picture, ranking_chart
from qsctl.report._words import MEASURE_WORDS, listed, measure_text, replications_text
from qsctl.report.page import Page, PageTable
from qsctl.report.selection_words import is_separated, selection_lines
from qsctl.sim.figures import Figures
from qsctl.sim.scenario.scenario import Scenario
from qsctl.sim.sizing.memory import memory_bytes
from qsctl.sim.sizing.targets import is_time
from qsctl.sim.sweep import Point, scenario_at
from qsctl.summary.comparison.compared_settings import scenario_in
from qsctl.summary.sweeps.points import UNITS, PointMeasure, point_measures
from qsctl.summary.sweeps.selection import Criterion, Selection, select
from qsctl.summary.sweeps.sweep_folder import (
    SCENARIO_FILE,
    PointResult,
    grid_order,
    read_results,
    read_sweep,
    sweep_scenario,
)

SHOWN: Final = ("loss_ratio", "time_in_queue_p99", "time_to_done_p99", "throughput", "time_without_master")
CONFIDENCE: Final = 0.95
_NANOSECONDS_A_MILLISECOND: Final = 1e6


def sweep_page(folder: Location, asked: Sequence[Sequence[Criterion]] = ()) -> Page:
    """Return the report page of a sweep.

    Args:
        folder: the sweep folder.
        asked: for each selection its criteria: one for the best points, two for a Pareto front.

    Raises:
        NotFound: the folder is not a sweep.
        Damaged: a file of the sweep cannot be read.
        UsageError: no point has these measures.
    """
    document = read_sweep(folder)
    axes = [axis["path"] for axis in document["axes"]]
    place = grid_order(document)
    results = sorted(read_results(folder), key=lambda each: place(each.point))
    is_paired = bool(document["common_random_numbers"])
    selections = [select(results, criteria, CONFIDENCE, paired=is_paired) for criteria in asked]
    measures = sorted(point_measures(results, CONFIDENCE, SHOWN), key=lambda each: place(each.point))
    points = {result.point.key for result in results}
    seen = {result.point for result in results if any(_has_messages(each) for each in result.figures)}
    losing = {each.point for each in measures if each.measure == "loss_ratio" and each.largest > 0}
    lossless = [point for point in dict.fromkeys(each.point for each in measures) if point in seen - losing]
    return Page(
        title=f"Sweep {folder.name}: {document['scenario']}",
        subtitle=f"{len(points)} points, {len(results)} replications, seed {document['seed']}",
        good=bool(lossless),
        verdict=[
            *(selection_lines(each)[0] for each in selections),
            *_verdict(measures, len(points), len(seen), [str(point) for point in lossless]),
        ],
        pictures=[
            *(_selected(each, results) for each in selections),
            *_pictures(measures, axes),
            *_fronts(points_of(results), scenario_in(folder)),
        ],
        tables=[*(_ranking(each) for each in selections), _table(measures, axes)],
        facts={
            "Scenario": str(document["scenario"]),
            "Seed": str(document["seed"]),
            "Replications a point": str(document["replications"]),
            **{f"Varied {axis['path']}": ", ".join(axis["values"]) for axis in document["axes"]},
        },
        reproduce=_command(folder, document),
        configuration=sweep_scenario(folder, document),
    )


def _has_messages(figures: Figures) -> bool:
    """Return whether a message was observed after the warm-up."""
    return any((figures.arrived_messages, figures.delivered_messages, figures.lost_messages, figures.elided_messages))


def _verdict(measures: list[PointMeasure], points: int, seen: int, lossless: list[str]) -> list[str]:
    """Return the main findings on a sweep as sentences.

    Args:
        measures: the measures of all points.
        points: number of points.
        seen: number of points at which a message was observed.
        lossless: texts of the points that lost no message.
    """
    sentences = []
    if seen < points:
        where = "any point" if not seen else f"{points - seen} of {points} points"
        sentences.append(f"No message was observed after the warm-up at {where}.")
    if not seen:
        return sentences
    runs = min((each.interval.count for each in measures if each.measure == "loss_ratio"), default=0)
    if len(lossless) == points:
        sentences.append(f"No message was lost at any point{_shown(runs)}.")
    elif lossless:
        sentences.append(f"{len(lossless)} of {points} points lost nothing{_shown(runs)}: {listed(lossless)}.")
    else:
        sentences.append("Every point lost messages." if seen == points else "Every other point lost messages.")
    for measure, what in (("loss_ratio", "loss"), ("time_in_queue_p99", "p99 of the time in the queue")):
        each = [one for one in measures if one.measure == measure]
        if each:
            worst = max(each, key=lambda one: one.interval.mean)
            if worst.interval.mean > 0:
                sentences.append(
                    f"The largest {what} is {measure_text(measure, worst.interval.mean)}, "
                    f"of {worst.queue} at {worst.point}."
                )
    return sentences


def _shown(runs: int) -> str:
    """Return the conclusion from a number of runs without loss: an upper bound on the share of lossy runs (rule of
    three).
    """
    if runs < 1:
        return ""
    part = 1.0 - (1.0 - CONFIDENCE) ** (1.0 / runs)
    return f" in {replications_text(runs)}, which shows that less than {100 * part:.3g} % of runs lose any there"


def _selected(selection: Selection, results: Sequence[PointResult]) -> Picture:
    """Return the picture of a selection: the points that may be best, or on the front, among all points."""
    titles = [_axis_title(each) for each in selection.criteria]
    names = " and ".join(map(str, selection.criteria))
    if len(selection.criteria) > 1:
        dots = [
            {
                **dict(zip(("x", "y"), _shown_means(selection, each.means), strict=True)),
                "label": _label(each.point),
                "front": each.beaten_by is None,
            }
            for each in selection.ranked
        ]
        return picture(
            f"Pareto front of {names}",
            "Each dot is a point of the sweep, at its means; joined are those that none is shown to beat on both.",
            lambda: front_chart(dots, *titles),
        )
    criterion = selection.criteria[0]
    intervals = {
        each.point: each.interval
        for each in point_measures(results, selection.confidence, (criterion.measure,))
        if each.queue == criterion.queue
    }
    rows = []
    for each in selection.ranked:
        interval = intervals[each.point]
        low, mean, high = (_scaled(criterion.measure, value) for value in (interval.low, interval.mean, interval.high))
        rows.append(
            {"label": _label(each.point), "low": low, "mean": mean, "high": high, "stays": each.beaten_by is None}
        )
    stays = "the best" if is_separated(selection) else "those that may be the best"
    return picture(
        f"Best by {names}",
        f"Mean of each point with its 95 % interval, the best first; coloured: {stays}.",
        lambda: ranking_chart(rows, titles[0]),
    )


def _axis_title(criterion: Criterion) -> str:
    unit = "ms" if is_time(criterion.measure) else UNITS.get(criterion.measure, "messages")
    return f"{criterion} ({'share' if unit == 'ratio' else unit})"


def _shown_means(selection: Selection, means: Sequence[float]) -> list[float]:
    return [_scaled(each.measure, mean) for each, mean in zip(selection.criteria, means, strict=True)]


def _ranking(selection: Selection) -> PageTable:
    """Return the table of all points; each eliminated point has the point that is shown to be better."""
    what = "On the front" if len(selection.criteria) > 1 else "The best"
    rows = [
        [
            str(each.point),
            *(measure_text(one.measure, mean) for one, mean in zip(selection.criteria, each.means, strict=True)),
            ("yes" if is_separated(selection) else "may be") if each.beaten_by is None else f"no: {each.beaten_by}",
        ]
        for each in selection.ranked
    ]
    names = ", ".join(map(str, selection.criteria))
    return PageTable(
        f"Pareto front of {names}" if len(selection.criteria) > 1 else f"Best by {names}",
        ["Point", *map(str, selection.criteria), what],
        rows,
        frozenset(range(1, 1 + len(selection.criteria))),
        "After “no” stands the point that is shown to be better.",
    )


def points_of(results: Sequence[PointResult]) -> dict[str, list[PointResult]]:
    """Return the results by point, in their order."""
    found: dict[str, list[PointResult]] = {}
    for each in results:
        found.setdefault(each.point.key, []).append(each)
    return found


def _fronts(points: Mapping[str, Sequence[PointResult]], scenario: Scenario | None) -> list[Picture]:
    """Return the picture of memory against loss; an empty list if the points differ in one of them only."""
    found = [] if scenario is None else memory_and_loss(points, scenario)
    if len({each["x"] for each in found}) < 2 or len({each["y"] for each in found}) < 2:
        return []
    return [
        picture(
            "Memory against loss",
            "Each dot is a point of the sweep; joined are those that no other one beats on both, by their means.",
            lambda: front_chart(found, "memory of all queues at most (MiB)", "share of messages lost"),
        )
    ]


def memory_and_loss(points: Mapping[str, Sequence[PointResult]], scenario: Scenario) -> list[dict[str, Any]]:
    """Return each point with its memory and its loss, and whether it is on the Pareto front of the two.

    `x` is the memory that its queues may use, in MiB; `y` is its mean fraction of lost messages; `front` is True if no
    other point is at least as good in both and better in one. Empty if the memory of a point cannot be determined.
    """
    rows: list[dict[str, Any]] = []
    for results in points.values():
        try:
            memory = memory_bytes(scenario_at(scenario, results[0].point)) / 2**20
        except QsctlError:
            return []
        losses = []
        for result in results:
            lost = sum(each.lost_messages for each in result.figures)
            ended = sum(each.delivered_messages + each.elided_messages for each in result.figures) + lost
            losses.append(lost / ended if ended else 0.0)
        rows.append({"x": memory, "y": sum(losses) / len(losses), "label": _label(results[0].point)})
    for row in rows:
        row["front"] = not any(
            other["x"] <= row["x"] and other["y"] <= row["y"] and (other["x"], other["y"]) != (row["x"], row["y"])
            for other in rows
        )
    return rows


def _label(point: Point) -> str:
    """Return the values of a point, without the names of the settings."""
    return ", ".join(value for _, value in point.values)


def _pictures(measures: list[PointMeasure], axes: list[str]) -> list[Picture]:
    pictures = []
    for name in SHOWN:
        mine = [each for each in measures if each.measure == name]
        if not any(each.interval.mean for each in mine):
            continue
        if len(axes) == 1:
            pictures.append(_curve(name, mine, axes[0]))
        elif len(axes) >= 2:
            pictures += _heat_maps(name, mine, axes)
    return pictures


def _scaled(measure: str, value: float) -> float:
    return value / _NANOSECONDS_A_MILLISECOND if is_time(measure) else value


def _curve(name: str, mine: list[PointMeasure], axis: str) -> Picture:
    values = [
        {
            "x": dict(each.point.values)[axis],
            "queue": each.queue,
            "mean": _scaled(name, each.interval.mean),
            "low": _scaled(name, max(0.0, each.interval.low) if each.interval.count > 1 else each.interval.mean),
            "high": _scaled(name, each.interval.high if each.interval.count > 1 else each.interval.mean),
        }
        for each in mine
    ]
    unit = "ms" if name.startswith("time_") else "messages/s" if name == "throughput" else "share"
    return picture(
        MEASURE_WORDS[name],
        "Mean over the replications, with 95 % intervals.",
        lambda: line_chart(values, axis, unit),
    )


def _heat_maps(name: str, mine: list[PointMeasure], axes: list[str]) -> list[Picture]:
    """Return a heat map for each queue over the first two settings, with the worst value over any further settings."""
    pictures = []
    for queue in dict.fromkeys(each.queue for each in mine):
        cells: dict[tuple[str, str], dict[str, Any]] = {}
        for each in mine:
            values = dict(each.point.values)
            place = (values[axes[0]], values[axes[1]])
            if each.queue == queue and (place not in cells or cells[place]["value"] < each.interval.mean):
                cells[place] = {
                    "x": place[0], "y": place[1], "value": each.interval.mean,
                    "label": measure_text(name, each.interval.mean),
                }  # fmt: skip
        if any(cell["value"] for cell in cells.values()):
            more = " The worst over the other varied values." if len(axes) > 2 else ""
            pictures.append(
                picture(
                    f"{MEASURE_WORDS[name]}: {queue}",
                    f"Mean over the replications.{more}",
                    lambda cells=cells: heat_chart([*cells.values()], axes[0], axes[1], name),  # type: ignore[misc]
                )
            )
    return pictures


def _table(measures: list[PointMeasure], axes: list[str]) -> PageTable:
    lines: dict[tuple[str, str], dict[str, str]] = {}
    for each in measures:
        line = lines.setdefault((each.point.key, each.queue), {**dict(each.point.values), "queue": each.queue})
        line[each.measure] = _with_interval(each)
    shown = [name for name in SHOWN if any(each.measure == name for each in measures)]
    columns = [*axes, "queue", *shown]
    return PageTable(
        "Every point",
        [*axes, "Queue", *(MEASURE_WORDS[name] for name in shown)],
        [[line.get(column, "–") for column in columns] for line in lines.values()],
        frozenset(range(len(axes) + 1, len(columns))),
    )


def _with_interval(each: PointMeasure) -> str:
    """Return a measure's mean with the half width of its confidence interval, as text."""
    mean = measure_text(each.measure, each.interval.mean)
    if not math.isfinite(each.interval.half_width):
        return mean
    return f"{mean} ± {measure_text(each.measure, each.interval.half_width)}"


def _command(folder: Location, document: Any) -> str:
    grid = " ".join(f"--grid '{axis['path']}={','.join(axis['values'])}'" for axis in document["axes"])
    common = " --common-random-numbers" if document["common_random_numbers"] else ""
    return (
        f"qsctl sweep {folder / SCENARIO_FILE} {grid} --replications {document['replications']} "
        f"--seed {document['seed']}{common}"
    )
