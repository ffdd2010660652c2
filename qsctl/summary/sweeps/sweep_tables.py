"""A sweep's folder as tables: a column for each varied setting, and for each measure with its interval.

The folder is only read, and verified by its checksums as in `sweep_folder`. Settings are numbers if all their values
are plain numbers, else texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa

from qsctl.eventlog.described import column
from qsctl.eventlog.location import Location
from qsctl.sim.sweep import Point
from qsctl.summary.finishing.intervals import DEFAULT_CONFIDENCE
from qsctl.summary.sweeps.points import MEASURES, UNITS, PointMeasure, point_measures
from qsctl.summary.sweeps.sweep_folder import POINTS, PointResult, grid_order, read_results, read_sweep

SWEEP_TABLES: Final[dict[str, str]] = {
    "measures": "A row a point and queue: the mean of every measure over the repetitions, with its interval.",
    "points": "A row a point, repetition and queue: what each repetition counted.",
}
"""The tables of a sweep, each with a sentence about it."""

_POINT: Final = column("point", pa.string(), "Key of the point's values: the same in any grid.")
_QUEUE: Final = column("queue", pa.string(), "Queue, all of its clients together.")


def sweep_tables(folder: Location, confidence: float = DEFAULT_CONFIDENCE) -> dict[str, pa.Table]:
    """Return the tables of a sweep in its current state, by the names of `SWEEP_TABLES`.

    Args:
        folder: the sweep folder.
        confidence: confidence level of the intervals over the repetitions.

    Raises:
        NotFound: the folder is not a sweep folder.
        Damaged: a file of the sweep is missing, was changed, belongs to another sweep, or cannot be read.
    """
    document = read_sweep(folder)
    place = grid_order(document)
    results = sorted(read_results(folder), key=lambda result: (place(result.point), result.replication))
    paths = list(dict.fromkeys(path for result in results for path, _ in result.point.values))
    paths = paths or [axis["path"] for axis in document["axes"]]
    return {"measures": _measures(results, paths, confidence), "points": _points(results, paths)}


def _measures(results: Sequence[PointResult], paths: Sequence[str], confidence: float) -> pa.Table:
    rows: dict[tuple[str, str], list[PointMeasure]] = {}
    for each in point_measures(results, confidence):
        rows.setdefault((each.point.key, each.queue), []).append(each)
    found = [{each.measure: each for each in measures} for measures in rows.values()]
    first = [measures[0] for measures in rows.values()]
    columns = [
        (_POINT, [each.point.key for each in first]),
        *_settings([each.point for each in first], paths, {"point", "queue", "repetitions"}),
        (_QUEUE, [each.queue for each in first]),
        (
            column("repetitions", pa.int64(), "Repetitions of the point."),
            [max(each.interval.count for each in measures) for measures in rows.values()],
        ),
    ]
    for measure in MEASURES:
        of = [each.get(measure) for each in found]
        unit = UNITS.get(measure, "messages")
        columns += [
            (
                column(measure, pa.float64(), "Mean over the repetitions; null: no value.", unit=unit, nullable=True),
                [None if each is None else each.interval.mean for each in of],
            ),
            (
                column(
                    f"{measure}_half_width", pa.float64(),
                    f"The interval of `{measure}` is its value ± this, with a confidence of {confidence:g}; null: one "
                    "repetition.", unit=unit, nullable=True,
                ),
                [None if each is None or each.interval.count == 1 else each.interval.half_width for each in of],
            ),
        ]  # fmt: skip
    return _table(columns)


def _points(results: Sequence[PointResult], paths: Sequence[str]) -> pa.Table:
    rows = [(result, figures) for result in results for figures in result.figures]
    kept = [field for field in POINTS if field.name not in {"point", "values", "replication", "seed"}]
    fixed = {field.name for field in POINTS}
    return _table(
        [
            (_POINT, [result.point.key for result, _ in rows]),
            *_settings([result.point for result, _ in rows], paths, fixed),
            (
                column("replication", pa.int32(), "Repetition of the point, from 0."),
                [result.replication for result, _ in rows],
            ),
            (column("seed", pa.int64(), "Seed of the repetitions of the point."), [result.seed for result, _ in rows]),
            *((field, [getattr(figures, field.name) for _, figures in rows]) for field in kept),
        ]
    )


def _settings(points: Sequence[Point], paths: Sequence[str], taken: set[str]) -> list[tuple[pa.Field, list[Any]]]:
    """Return a column for each varied setting; a path that equals another column's name becomes `setting PATH`."""
    made = []
    for path in paths:
        values = [dict(point.values).get(path) for point in points]
        kind, converted = _converted(values)
        name = f"setting {path}" if path in taken else path
        made.append((column(name, kind, f"Varied setting `{path}`.", nullable=None in values), converted))
    return made


def _converted(values: Sequence[str | None]) -> tuple[pa.DataType, list[Any]]:
    """Return the values as numbers if all are plain numbers, else as texts, with their Arrow type."""
    for kind, read in ((pa.int64(), int), (pa.float64(), float)):
        try:
            converted = [None if each is None else read(each) for each in values]
            pa.array(converted, kind)
        except (ValueError, OverflowError, pa.ArrowInvalid):
            continue
        return kind, converted
    return pa.string(), list(values)


def _table(columns: Sequence[tuple[pa.Field, list[Any]]]) -> pa.Table:
    schema = pa.schema([field for field, _ in columns])
    return pa.Table.from_arrays([pa.array(values, field.type) for field, values in columns], schema=schema)
