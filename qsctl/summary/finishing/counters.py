"""The counters of each group after the warm-up, from the cells, and those that only the simulator's counters have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from qsctl.eventlog.outcomes import DISCARDS, LOSS_COLUMNS, LOSSES, Outcome, column_of, loss_ratio
from qsctl.summary.finishing.arrow import chosen, columns, grouped, joined, whole, with_columns
from qsctl.summary.measures.by_run import RUN_NUMBER
from qsctl.summary.measures.cells import LONG_UNACKNOWLEDGED, QUEUED, UNACKNOWLEDGED, UNCOUNTED
from qsctl.summary.run_summary import COUNTS

MARKS: Final = ("high_water_mark_work_units", "max_depth_work_units", "wait_max_ns")
_LEFT: Final = [Outcome.DELIVERED, *LOSSES, Outcome.ELIDED, UNACKNOWLEDGED]
_THERE: Final = [QUEUED, UNACKNOWLEDGED, LONG_UNACKNOWLEDGED]


def counted(cells: pa.Table, marks: pa.Table, keys: Sequence[str], replications: pa.Table) -> pa.Table:
    """Return the counters of each group and replication, with the marks and limits, which the log does not have.

    Each group has a row for every completed replication, with zeros if it had no message, since a mean over
    replications must include these; replications that were lost have none.

    Args:
        cells: table of the schema `tables.CELLS`, with these keys.
        marks: result of `recorded_run.marks_of`.
        keys: the grouping columns.
        replications: a row for each completed replication, with `run_number`, `replication` and `observed_ns`, the
            observed time for groups without counters. Of several runs only if `run_number` is one of the keys.
    """
    each = list(dict.fromkeys([*keys, "replication"]))
    shared = [name for name in each if name != "topic_id"]

    def of(*fates: str) -> np.ndarray:
        return np.asarray(pc.is_in(cells["fate"], pa.array(list(map(str, fates)), pa.string())).to_numpy(), np.bool_)

    delivered, left, there = of(Outcome.DELIVERED), of(*_LEFT), of(*_THERE)
    sums = {
        "arrived_messages": ("messages", np.asarray(cells["arrived"].to_numpy(), np.bool_)),
        "delivered_messages": ("messages", delivered),
        **{column_of(outcome): ("messages", of(outcome)) for outcome in (*LOSSES, Outcome.ELIDED)},
        "redelivered_messages": ("again", ~of(UNCOUNTED)),
        "discard_indications": ("indications", left),
        "delivered_bytes": ("bytes", delivered),
        "length_messages": ("messages", there),
        "length_work_units": ("work_units", there),
        "unacknowledged_messages": ("messages", of(UNACKNOWLEDGED, LONG_UNACKNOWLEDGED)),
        "waiting_messages": ("messages", of(Outcome.WAITING)),
        "wait_sum_ns": ("wait_sum_ns", delivered),
    }
    marked = {name: chosen(where, cells[source], 0) for name, (source, where) in sums.items()} | {
        "wait_max_ns": chosen(delivered, cells["wait_max_ns"], None),
        "first_discard_ns": chosen(of(*DISCARDS), cells["first_left_ns"], None),
    }
    logged = grouped(
        pa.table({**columns(cells, each), **marked}),
        each, **dict.fromkeys(sums, "sum"), wait_max_ns="max", first_discard_ns="min",
    )  # fmt: skip
    limits = dict.fromkeys(("high_water_mark_work_units", "max_depth_work_units", "observed_ns"), "max")
    # A queue without messages still has a row; the row of a topic has the marks of its queue.
    how = "full outer" if shared == each else "left outer"
    met = joined(logged, grouped(marks, shared, **limits, evicted_messages="sum"), shared, how)
    rows = met if "replication" in keys else joined(_grid(met, keys, replications), met, each, "left outer")
    of_run = [name for name in (RUN_NUMBER, "replication") if name in each]
    rest = replications.select([*of_run, "observed_ns"]).rename_columns([*of_run, "observed_run_ns"])
    rows = joined(rows, rest, of_run, "left outer")
    evicted = pc.fill_null(rows["evicted_messages"], 0)
    return with_columns(
        rows,
        {name: pc.fill_null(rows[name], 0) for name in sums}
        | {"observed_ns": pc.coalesce(rows["observed_ns"], rows["observed_run_ns"])}
        # Counters do not have the topics of messages that G-1 evicted.
        | {"evicted_messages": evicted if shared == each else pc.multiply(evicted, 0)},
    )


def _grid(rows: pa.Table, keys: Sequence[str], replications: pa.Table) -> pa.Table:
    """Return the combinations of every group with every replication of its run."""
    groups = rows.group_by(list(keys), use_threads=False).aggregate([])
    if RUN_NUMBER in keys:
        return joined(groups, replications.select([RUN_NUMBER, "replication"]), [RUN_NUMBER], "inner")
    return pa.concat_tables(
        [
            with_columns(groups, {"replication": pa.array(np.full(groups.num_rows, number, np.int32))})
            for number in replications["replication"].to_pylist()
        ]
    )


def summed(per_replication: pa.Table, keys: Sequence[str]) -> pa.Table:
    """Return the counters of each group over its replications: sums, the largest marks, the earliest discard.

    Args:
        per_replication: result of `counted`, or such counters of the simulator itself, with these keys.
        keys: the grouping columns.
    """
    return grouped(
        with_columns(per_replication, {"replications": pa.array(np.ones(per_replication.num_rows, np.int64))}),
        keys,
        **dict.fromkeys(("replications", *COUNTS, "observed_ns"), "sum"),
        **dict.fromkeys(MARKS, "max"),
        first_discard_ns="min",
    )


def loss_ratios(counters: pa.Table) -> pa.Array:
    """Return the loss ratio of each row (`eventlog.outcomes.loss_ratio`)."""
    lost = sum(whole(counters, name) for name in LOSS_COLUMNS)
    return pa.array(loss_ratio(lost, whole(counters, "delivered_messages"), whole(counters, "elided_messages")))
