"""Times to done of each group, out of cells of the log or of the counters: the product limit of `sim.done_times`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa

from qsctl.sim.done_times import PERCENTILES, DoneTimes
from qsctl.summary.finishing.percentiles import BUCKET_ERROR
from qsctl.summary.measures.by_run import RUN_NUMBER

COLUMNS: Final = {
    "done_messages": pa.int64(), "unfinished_messages": pa.int64(), "mean_ns": pa.float64(),
    **{f"{name}_ns": pa.int64() for name in PERCENTILES}, "max_ns": pa.int64(), "relative_error": pa.float64(),
}  # fmt: skip


def times_to_done(cells: pa.Table, keys: Sequence[str]) -> pa.Table:
    """Return one row a group whose messages are acknowledged: its keys and `COLUMNS`.

    Args:
        cells: of `tables.DONE_CELLS`, sums put together, with these keys.
        keys: the columns grouped by.
    """
    groups: dict[tuple[Any, ...], DoneTimes] = {}
    names = (*keys, "is_done", "bucket", "messages", "time_sum_ns", "time_max_ns")
    for row in zip(*(cells[name].to_pylist() for name in names), strict=True):
        *place, is_done, bucket, messages, time_sum_ns, time_max_ns = row
        times = groups.setdefault(tuple(place), DoneTimes())
        into = times.done if is_done else times.unfinished
        into[bucket] = into.get(bucket, 0) + messages
        if is_done:
            times.sum_ns += time_sum_ns
            times.longest_ns = max(times.longest_ns, time_max_ns)
        else:
            times.oldest_ns = max(times.oldest_ns, time_max_ns)
    columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    for times in groups.values():
        values = {
            "done_messages": times.done_messages,
            "unfinished_messages": times.unfinished_messages,
            "mean_ns": times.mean_ns(),
            **{f"{name}_ns": times.percentile(*part) for name, part in PERCENTILES.items()},
            "max_ns": times.max_ns,
            "relative_error": BUCKET_ERROR,
        }
        for name, column in columns.items():
            column.append(values[name])
    made = {name: pa.array(column, COLUMNS[name]) for name, column in columns.items()}
    of_keys = {name: pa.array([place[at] for place in groups], cells[name].type) for at, name in enumerate(keys)}
    return pa.table({**of_keys, **made})


def cells_of_counters(counters: pa.Table) -> pa.Table:
    """Return the cells of a run's own counters: rows of `eventlog.schema.COUNTERS` with their `replication` and
    `run_number`.
    """
    rows: dict[str, list[Any]] = {
        name: [] for name in (RUN_NUMBER, "client_id", "queue", "replication", "is_done", "bucket", "messages",
                              "time_sum_ns", "time_max_ns")
    }  # fmt: skip
    for row in counters.to_pylist():
        if row["done_messages"] is None:
            continue
        for part, total_ns, longest_ns in (
            ("done", row["done_sum_ns"], row["done_max_ns"]), ("unfinished", 0, row["unfinished_max_ns"]),
        ):  # fmt: skip
            pairs = zip(row[f"{part}_bucket"], row[f"{part}_count"], strict=True)
            for place, (bucket, messages) in enumerate(pairs):
                # The sum belongs to all of a row's cells: the first one has it.
                cell = (
                    row[RUN_NUMBER], row["client_id"], row["queue"], row["replication"], part == "done", bucket,
                    messages, total_ns if place == 0 else 0, longest_ns,
                )  # fmt: skip
                for column, value in zip(rows.values(), cell, strict=True):
                    column.append(value)
    kinds = (
        pa.int32(), pa.int32(), pa.string(), pa.int32(), pa.bool_(), pa.int32(), pa.int64(), pa.int64(), pa.int64(),
    )  # fmt: skip
    return pa.table({name: pa.array(column, kind) for (name, column), kind in zip(rows.items(), kinds, strict=True)})
