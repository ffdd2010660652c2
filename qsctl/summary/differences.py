"""The table of differences between many runs: which are outliers of their group, and from which on others follow.

It is finished in this process from the figures of each run, which are few rows (`comparison.run_differences`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from qsctl.errors import UsageError
from qsctl.instant import SECOND_NS
from qsctl.summary.comparison.run_differences import LEAST_FALSE_ALARM, change_points, outlying_values

COMPARED: Final = {
    "loss_ratio": ("losses", "loss_ratio"),
    "p99_wait_ns": ("delays", "p99_ns"),
    "delivered_per_second": ("queues", f"delivered_messages * {float(SECOND_NS)}d / observed_ns"),
    "high_water_mark_work_units": ("queues", "high_water_mark_work_units"),
}
"""The compared measures: a table, and the value of its row as a text of SQL."""

DEFAULT_FALSE_ALARM: Final = 0.01
LARGEST_FALSE_ALARM: Final = 0.5

_SHAPE: Final = pa.schema(
    [
        ("run_group", pa.string()), ("client", pa.string()), ("queue", pa.string()), ("measure", pa.string()),
        ("kind", pa.string()), ("run_id", pa.string()), ("value", pa.float64()), ("typical", pa.float64()),
        ("score", pa.float64()), ("limit", pa.float64()), ("runs", pa.int64()),
    ]
)  # fmt: skip


def differing_runs(
    frames: Mapping[str, DataFrame], *, group: str = "scenario", false_alarm: float = DEFAULT_FALSE_ALARM
) -> pa.Table:
    """Return the runs that differ from others of their group: a row a measure, client, queue and finding.

    `kind` is `outlier`, of a run by itself, or `change`, of the first run of those that differ from the runs before.
    `typical` is the median of the group, or that before the change; `score` the distance in median absolute
    deviations with its `limit`, or the probability of such a change by chance with the largest one that counts. Both
    are null where more than half of the runs have one and the same value, and another has not. Changes are
    searched for in the order of the recordings' start; a simulation has none.

    Args:
        frames: of `summary_frames`, with `queues`, `delays` and `losses`, not grouped by replication or topic.
        group: a text of SQL over the table `runs`: runs with the same value should be alike, as
            `scenario`, or `dayofweek(started_at)`.
        false_alarm: the probability of any finding of a kind where the runs of a group are alike, for each measure of
            each client and queue by itself: of a thousand such series, ten have one at 0.01. From 0.001 to 0.5;
            `run_differences` has what it assumes.

    Raises:
        UsageError: a table was not asked for, or the probability is out of range.
    """
    if not LEAST_FALSE_ALARM <= false_alarm <= LARGEST_FALSE_ALARM:
        raise UsageError(
            f"a probability of false alarms of {false_alarm} is out of range",
            remedy=f"Use a number from {LEAST_FALSE_ALARM} to {LARGEST_FALSE_ALARM}.",
        )
    missing = [table for table in ("runs", "queues", "delays", "losses") if table not in frames]
    if missing:
        raise UsageError(
            f"runs are compared by their {missing[0]}, which the frames lack",
            remedy="Ask summary_frames for the measures queues, delays and losses.",
        )
    parts = " union all ".join(
        f"select run_id, client, queue, '{measure}' as measure, cast({value} as double) as value from {{{table}}}"
        for measure, (table, value) in COMPARED.items()
    )
    named: dict[str, Any] = {table: frames[table] for table in ("runs", "queues", "delays", "losses")}
    found = frames["runs"].sparkSession.sql(
        f"""with compared as ({parts})
        select cast({group} as string) as run_group, client, queue, measure, run_id, value,
            unix_micros(started_at) as at
        from compared join {{runs}} as runs using (run_id) where value is not null""",
        **named,
    )
    return _findings(found.toArrow().to_pylist(), false_alarm)


def _findings(rows: list[dict[str, Any]], false_alarm: float) -> pa.Table:
    series: dict[str, dict[tuple[Any, ...], list[dict[str, Any]]]] = {}
    for row in sorted(rows, key=lambda row: (row["at"] is None, row["at"] or 0, row["run_id"])):
        key = tuple(row[name] for name in ("client", "queue", "measure"))
        series.setdefault(str(row["run_group"]), {}).setdefault(key, []).append(row)
    made = []
    for _, of_group in sorted(series.items()):
        for _, members in sorted(of_group.items(), key=lambda each: tuple(map(str, each[0]))):
            values = np.array([row["value"] for row in members])
            named: list[tuple[int, str, float, float | None, float | None]] = [
                (each.place, "outlier", each.typical, each.distance, each.limit)
                for each in outlying_values(values, false_alarm)
            ]
            if all(row["at"] is not None for row in members):
                named += [
                    (each.place, "change", each.before, each.probability, false_alarm)
                    for each in change_points(values, false_alarm)
                ]
            for place, kind, typical, score, limit in named:
                row = members[place]
                finding = {"kind": kind, "typical": typical, "score": score, "limit": limit, "runs": len(members)}
                made.append({**row, **finding})
    return pa.Table.from_pylist(made, schema=_SHAPE)
