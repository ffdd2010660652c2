"""The table of deviating runs among many: outliers of their group, and runs at which a change begins.

It is computed in this process from the figures of each run, which are few rows (`comparison.run_differences`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from qsctl.errors import UsageError
from qsctl.eventlog.location import Location
from qsctl.instant import SECOND_NS
from qsctl.summary._engine import SummaryEngine
from qsctl.summary._table_frames import RUNS, SummaryFrames
from qsctl.summary.asked_measures import AskedMeasures, checked_measures
from qsctl.summary.comparison.run_differences import LEAST_FALSE_ALARM, LEAST_RUNS, change_points, outlying_values
from qsctl.summary.finishing.intervals import DEFAULT_CONFIDENCE
from qsctl.summary.job import computed
from qsctl.summary.recorded_run import SummarizedRun, read_these
from qsctl.summary.spark.session import SparkOptions

COMPARED: Final = {
    "loss_ratio": ("losses", "loss_ratio"),
    "p99_wait_ns": ("delays", "p99_ns"),
    "delivered_per_second": ("queues", f"delivered_messages * {float(SECOND_NS)}d / observed_ns"),
    "high_water_mark_work_units": ("queues", "high_water_mark_work_units"),
}
"""The compared measures: for each its table, and the SQL expression of its value."""

DEFAULT_FALSE_ALARM: Final = 0.01
LARGEST_FALSE_ALARM: Final = 0.5

GROUPS: Final = {
    "scenario": "scenario",
    # Of the day in UTC, from the days since 1970, which began on a Thursday.
    "weekday": "concat(scenario, ' on ', element_at(array('Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', "
    "'Saturday', 'Sunday'), int(pmod(unix_micros(started_at) div 86400000000L + 3, 7)) + 1))",
    "all": "'all'",
}
"""The groupings of runs that commands offer, as SQL expressions over the table `runs`."""

_MEASURES: Final = frozenset({"queues", "delays", "losses"})

_SHAPE: Final = pa.schema(
    [
        ("run_group", pa.string()), ("client", pa.string()), ("queue", pa.string()), ("measure", pa.string()),
        ("kind", pa.string()), ("run_id", pa.string()), ("value", pa.float64()), ("typical", pa.float64()),
        ("score", pa.float64()), ("limit", pa.float64()), ("runs", pa.int64()),
    ]
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ComparedRuns:
    """The deviating runs among many, with the numbers of runs and series that were compared."""

    findings: pa.Table
    """The table that `differing_runs` returns."""
    runs: int
    groups: Mapping[str, int]
    """The number of runs of each group."""
    series: int
    """The number of compared series: a measure of a client and queue in one group with enough runs."""
    skipped: tuple[str, ...]
    """A sentence for each run that was left out."""


def compare_runs(
    folders: Sequence[Location],
    *,
    by: Sequence[str] = ("queue",),
    group: str = "scenario",
    false_alarm: float = DEFAULT_FALSE_ALARM,
    skip_damaged: bool = False,
    options: SparkOptions | None = None,
) -> ComparedRuns:
    """Return which of many runs deviate, without a Spark session of the caller.

    Args:
        folders: run folders.
        by: grouping of the figures: client, queue or both.
        group: a name of `GROUPS`.
        false_alarm: as for `differing_runs`.
        skip_damaged: omit damaged runs instead of raising an error.
        options: settings of Spark; None: compute in this process if `summarize_runs` would.

    Raises:
        UsageError: an unknown word or group, too few runs, or a probability out of range.
        NotFound: a folder is not a run folder.
        Damaged: a file of a run cannot be read.
    """
    if group not in GROUPS:
        raise UsageError(f"--group {group!r} is not a group", remedy=f"Use one of {', '.join(GROUPS)}.")
    if not by or set(by) - {"client", "queue"}:
        raise UsageError(f"--by {','.join(by)!r}: runs are compared by client and queue", remedy="Use client,queue.")
    _require_probability(false_alarm)
    if len(folders) < LEAST_RUNS:
        raise UsageError(
            f"{len(folders)} runs are too few to find which of them differ",
            remedy=f"Name at least {LEAST_RUNS}, or compare two of them with qsctl compare A B.",
        )
    asked = checked_measures(
        by, SECOND_NS, _MEASURES, True, DEFAULT_CONFIDENCE, (), len(folders), names_runs=True
    )  # fmt: skip
    found, skipped = read_these(folders, skip_damaged=skip_damaged)
    compared = partial(_compared, asked=asked, group=group, false_alarm=false_alarm)
    return computed(found, skipped, compared, options=options, skip_damaged=skip_damaged)


def _compared(
    engine: SummaryEngine,
    runs: Sequence[SummarizedRun],
    skipped: tuple[str, ...],
    *,
    asked: AskedMeasures,
    group: str,
    false_alarm: float,
) -> ComparedRuns:
    frames = SummaryFrames(engine, runs, asked, skipped, share_moves=False)
    rows = _values(frames, GROUPS[group]).to_pylist()
    of_group: dict[str, set[str]] = {}
    for row in rows:
        of_group.setdefault(str(row["run_group"]), set()).add(row["run_id"])
    series = Counter((row["run_group"], row["client"], row["queue"], row["measure"]) for row in rows)
    compared = sum(count >= LEAST_RUNS for count in series.values())
    sizes = {name: len(members) for name, members in sorted(of_group.items())}
    return ComparedRuns(_findings(rows, false_alarm), len(runs), sizes, compared, skipped)


def differing_runs(
    frames: Mapping[str, DataFrame], *, group: str = "scenario", false_alarm: float = DEFAULT_FALSE_ALARM
) -> pa.Table:
    """Return the runs that deviate from others of their group: a row for each measure, client, queue and finding.

    `kind` is `outlier` for a single run, or `change` for the first of the runs that differ from the runs before.
    `typical` is the median of the group, or the median before the change; `score` is the distance in median absolute
    deviations and `limit` its threshold, or the p-value of the change and its threshold. Both are null for an outlier
    where more than half of the runs have the same value. Changes are searched for in the order of the recordings'
    start; a simulation has none.

    Args:
        frames: result of `summary_frames`, with `queues`, `delays` and `losses`, not grouped by replication or topic.
        group: an SQL expression over the table `runs`, which groups the runs that should be alike, such as
            `scenario`, or `dayofweek(started_at)`.
        false_alarm: the probability of any finding of a kind where the runs of a group are alike, for each measure of
            each client and queue by itself: of a thousand such series, ten have one at 0.01. From 0.001 to 0.5;
            `run_differences` states the assumptions.

    Raises:
        UsageError: a table is missing in `frames`, or the probability is out of range.
    """
    _require_probability(false_alarm)
    missing = [table for table in (RUNS, *sorted(_MEASURES)) if table not in frames]
    if missing:
        raise UsageError(
            f"runs are compared by their {missing[0]}, which the frames lack",
            remedy="Ask summary_frames for the measures queues, delays and losses.",
        )
    return _findings(_values(frames, group).to_pylist(), false_alarm)


def _require_probability(false_alarm: float) -> None:
    if not LEAST_FALSE_ALARM <= false_alarm <= LARGEST_FALSE_ALARM:
        raise UsageError(
            f"a probability of false alarms of {false_alarm} is out of range",
            remedy=f"Use a number from {LEAST_FALSE_ALARM} to {LARGEST_FALSE_ALARM}.",
        )


def _values(frames: Mapping[str, DataFrame], group: str) -> pa.Table:
    """Return a row for each run, client, queue and measure, with the run's group and start."""
    parts = " union all ".join(
        f"select run_id, client, queue, '{measure}' as measure, cast({value} as double) as value from {{{table}}}"
        for measure, (table, value) in COMPARED.items()
    )
    named: dict[str, Any] = {table: frames[table] for table in (RUNS, *_MEASURES)}
    return (
        frames[RUNS]
        .sparkSession.sql(
            f"""with compared as ({parts})
        select cast({group} as string) as run_group, client, queue, measure, run_id, value,
            unix_micros(started_at) as at
        from compared join {{runs}} as runs using (run_id) where value is not null""",
            **named,
        )
        .toArrow()
    )


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
