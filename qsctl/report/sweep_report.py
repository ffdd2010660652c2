"""The report of a sweep: heat maps over two varied values, curves over one."""

from __future__ import annotations

from typing import Any, Final

from qsctl.eventlog.location import Location
from qsctl.report.charts import Picture, heat_chart, line_chart, picture
from qsctl.report.page import Page, Table
from qsctl.report.words import MEASURE_WORDS, listed, measure_text
from qsctl.summary.points import PointMeasure, point_measures
from qsctl.summary.sweep_folder import SCENARIO_FILE, read_results, read_sweep, sweep_scenario

SHOWN: Final = ("loss_ratio", "time_in_queue_p99", "throughput", "time_without_master")
CONFIDENCE: Final = 0.95
_NANOSECONDS_A_MILLISECOND: Final = 1e6


def sweep_page(folder: Location) -> Page:
    """Return the page of a sweep's folder.

    Raises:
        NotFound: the folder is no sweep.
        Damaged: it cannot be read.
    """
    document = read_sweep(folder)
    results = read_results(folder)
    axes = [axis["path"] for axis in document["axes"]]
    places = {axis["path"]: {value: place for place, value in enumerate(axis["values"])} for axis in document["axes"]}
    measures = point_measures(results, CONFIDENCE, SHOWN)
    measures.sort(key=lambda each: tuple(places.get(path, {}).get(value, 0) for path, value in each.point.values))
    points = {result.point.key for result in results}
    lossless = sorted(
        {each.point for each in measures}
        - {each.point for each in measures if each.measure == "loss_ratio" and each.largest > 0},
        key=str,
    )
    return Page(
        title=f"Sweep {folder.name}: {document['scenario']}",
        subtitle=f"{len(points)} points, {len(results)} replications, seed {document['seed']}",
        good=bool(lossless),
        verdict=_verdict(measures, len(points), [str(point) for point in lossless]),
        pictures=_pictures(measures, axes),
        tables=[_table(measures, axes)],
        facts={
            "Scenario": str(document["scenario"]),
            "Seed": str(document["seed"]),
            "Replications a point": str(document["replications"]),
            **{f"Varied {axis['path']}": ", ".join(axis["values"]) for axis in document["axes"]},
        },
        reproduce=_command(folder, document),
        configuration=sweep_scenario(folder, document),
    )


def _verdict(measures: list[PointMeasure], points: int, lossless: list[str]) -> list[str]:
    sentences = []
    if len(lossless) == points:
        sentences.append("No message was lost at any point.")
    elif lossless:
        sentences.append(f"{len(lossless)} of {points} points lose nothing: {listed(lossless)}.")
    else:
        sentences.append("Every point loses messages.")
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
    return value / _NANOSECONDS_A_MILLISECOND if measure.startswith("time_") else value


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
        "Mean over the replications; the bars are 95 % intervals.",
        lambda: line_chart(values, axis, unit),
    )


def _heat_maps(name: str, mine: list[PointMeasure], axes: list[str]) -> list[Picture]:
    """Return one map a queue over the first two axes; over further axes the worst is shown."""
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


def _table(measures: list[PointMeasure], axes: list[str]) -> Table:
    lines: dict[tuple[str, str], dict[str, str]] = {}
    for each in measures:
        line = lines.setdefault((each.point.key, each.queue), {**dict(each.point.values), "queue": each.queue})
        line[each.measure] = measure_text(each.measure, each.interval.mean)
    shown = [name for name in SHOWN if any(each.measure == name for each in measures)]
    columns = [*axes, "queue", *shown]
    return Table(
        "Every point",
        [*axes, "Queue", *(MEASURE_WORDS[name] for name in shown)],
        [[line.get(column, "–") for column in columns] for line in lines.values()],
        frozenset(range(len(axes) + 1, len(columns))),
    )


def _command(folder: Location, document: Any) -> str:
    grid = " ".join(f"--grid '{axis['path']}={','.join(axis['values'])}'" for axis in document["axes"])
    common = " --common-random-numbers" if document["common_random_numbers"] else ""
    return (
        f"qsctl sweep {folder / SCENARIO_FILE} {grid} --replications {document['replications']} "
        f"--seed {document['seed']}{common}"
    )
