"""Times to done of each group, from cells of the log or of the counters, by the product-limit estimate
(`sim.done_times`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from qsctl.eventlog.schema import bucket_bounds_ns
from qsctl.sim.done_times import PERCENTILES, DoneTimes
from qsctl.summary.finishing._percentiles import BUCKET_ERROR
from qsctl.summary.finishing.arrow import Whole, group_numbers
from qsctl.summary.measures.by_run import RUN_NUMBER

COLUMNS: Final = {
    "done_messages": pa.int64(), "unfinished_messages": pa.int64(), "mean_ns": pa.float64(),
    **{f"{name}_ns": pa.int64() for name in PERCENTILES}, "max_ns": pa.int64(), "relative_error": pa.float64(),
}  # fmt: skip


def times_to_done(cells: pa.Table, keys: Sequence[str]) -> pa.Table:
    """Return one row for each group whose messages are acknowledged: its keys and `COLUMNS`.

    Args:
        cells: table of the schema `tables.DONE_CELLS`, with its sums combined, and with these keys.
        keys: the grouping columns.
    """
    groups, first_rows = group_numbers(cells, keys)
    rows = _Cells.of(cells, groups)
    made: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    in_their_order = np.argsort(first_rows)
    for group in in_their_order:
        for name, value in rows.figures(int(group)).items():
            made[name].append(value)
    of_keys = {name: cells[name].take(pa.array(first_rows[in_their_order])) for name in keys}
    return pa.table({**of_keys, **{name: pa.array(column, COLUMNS[name]) for name, column in made.items()}})


@dataclass(frozen=True, slots=True)
class _Cells:
    """The cells by group and bucket, as arrays, since a group may have thousands."""

    starts: Whole
    """The first row of each group, and the number of rows."""
    bucket: Whole
    is_done: npt.NDArray[np.bool_]
    messages: Whole
    time_sum_ns: Whole
    time_max_ns: Whole

    @classmethod
    def of(cls, cells: pa.Table, groups: Whole) -> _Cells:
        bucket = cells["bucket"].to_numpy().astype(np.int64)
        order = np.lexsort((bucket, groups))
        count = int(groups.max()) + 1 if len(groups) else 0
        starts = np.searchsorted(groups[order], np.arange(count + 1))
        numbers = (cells[name].to_numpy()[order] for name in ("is_done", "messages", "time_sum_ns", "time_max_ns"))
        return cls(starts, bucket[order], *numbers)

    def figures(self, group: int) -> dict[str, Any]:
        """Return the `COLUMNS` of a group."""
        rows = slice(self.starts[group], self.starts[group + 1])
        bucket, is_done, messages = self.bucket[rows], self.is_done[rows], self.messages[rows]
        longest_ns = int(self.time_max_ns[rows].max())
        if not is_done.all():
            return self._with_unfinished(rows)
        done = int(messages.sum())
        up_to = np.cumsum(messages)
        places = np.searchsorted(up_to, [-(-done * part // whole) for part, whole in PERCENTILES.values()])
        waits_ns = (min(bucket_bounds_ns(int(bucket[place]))[1], longest_ns) for place in places)
        return {
            "done_messages": done, "unfinished_messages": 0, "mean_ns": _exact_sum(self.time_sum_ns[rows]) / done,
            **{f"{name}_ns": wait_ns for name, wait_ns in zip(PERCENTILES, waits_ns, strict=True)},
            "max_ns": longest_ns, "relative_error": BUCKET_ERROR,
        }  # fmt: skip

    def _with_unfinished(self, rows: slice) -> dict[str, Any]:
        times = DoneTimes()
        is_done, time_max_ns = self.is_done[rows], self.time_max_ns[rows]
        for of_kind, into in ((is_done, times.done), (~is_done, times.unfinished)):
            pairs = zip(self.bucket[rows][of_kind].tolist(), self.messages[rows][of_kind].tolist(), strict=True)
            for bucket, messages in pairs:
                into[bucket] = into.get(bucket, 0) + messages
        times.sum_ns = _exact_sum(self.time_sum_ns[rows][is_done])
        times.longest_ns = int(time_max_ns[is_done].max(initial=0))
        times.oldest_ns = int(time_max_ns[~is_done].max(initial=0))
        return {
            "done_messages": times.done_messages,
            "unfinished_messages": times.unfinished_messages,
            "mean_ns": times.mean_ns(),
            **{f"{name}_ns": times.percentile(*part) for name, part in PERCENTILES.items()},
            "max_ns": times.max_ns,
            "relative_error": BUCKET_ERROR,
        }


def _exact_sum(values: Whole) -> int:
    """Return a sum of 64-bit values, which may exceed 64 bits."""
    return (int((values >> 32).sum()) << 32) + int((values & 0xFFFFFFFF).sum())


def cells_of_counters(counters: pa.Table) -> pa.Table:
    """Return the cells of a run's own counters, from rows of `eventlog.schema.COUNTERS` with `replication` and
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
                # The sum is for all cells of a row; the first cell has it.
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
