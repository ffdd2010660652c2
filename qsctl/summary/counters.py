"""The counters after warm-up, out of the message log: one pass that queues, losses, delays and Little's law come from.

`Tally` reads the log once and keeps one row a group, replication, fate and latency bucket; the rest works on that small
table. `replicated_from_counters` gives the same figures out of the simulator's own counters, for runs without a log.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from qsctl.eventlog.outcomes import DISCARDS, LOSSES, Outcome, column_of
from qsctl.summary.groups import chosen, columns, grouped, joined, whole, with_columns
from qsctl.summary.log_pass import grouped_by_names
from qsctl.summary.observation import Observation, coarse_bucket, fine_bucket, listed, outcome_numbers, waits
from qsctl.summary.run_summary import COUNTS

DELIVERED_FATE: Final = 0
_GONE: Final = (*LOSSES, Outcome.ELIDED)
_FATES: Final = {outcome: number for number, outcome in enumerate(_GONE, 1)}
_QUEUED_FATE: Final = 10
_WAITING_FATE: Final = 11
"""Not in its queue, neither yet nor any more: at its endpoint, or outside a full queue."""
_UNACKNOWLEDGED_FATE: Final = 12
"""Sent, and held by G-1 until it is acknowledged."""
_LONG_UNACKNOWLEDGED_FATE: Final = 13
"""The same, sent before the end of the warm-up."""
_UNCOUNTED_FATE: Final = 15
"""Left before the end of the warm-up."""

_FATE_OF: Final = {Outcome.DELIVERED.value: DELIVERED_FATE, Outcome.HELD.value: _UNACKNOWLEDGED_FATE} | {
    outcome.value: number for outcome, number in _FATES.items()
}
"""Of a message that left its queue, or G-1's list of those to send."""

_FATE_BITS: Final = 4
_STATE_BITS: Final = _FATE_BITS + 1
"""Below the bucket: the fate, and the side of the warm-up on which the message came."""

_DISCARD_FATES: Final = [_FATES[outcome] for outcome in DISCARDS]

_TALLIED: Final = {
    **dict.fromkeys(("messages", "again", "indications", "bytes", "work_units", "wait_sum_ns", "inside_ns"), "sum"),
    "wait_max_ns": "max",
    "first_left_ns": "min",
}

_MARKS: Final = ("high_water_mark_work_units", "max_depth_work_units", "wait_max_ns")


@dataclass(frozen=True, slots=True)
class Tally:
    """One row a group, replication and `state`: the message's fate, side of the warm-up, and bucket if delivered.

    What became of a message is part of the key, so that no sum needs a condition of its own.

    `keys` are the columns grouped by, `replication` besides; `exact` tells the buckets: `observation.coarse_bucket`, or
    the histogram's; `with_law` also sums up the time in the queue, for Little's law.
    """

    observation: Observation
    keys: tuple[str, ...]
    exact: bool
    with_law: bool

    @property
    def columns(self) -> Sequence[str]:
        """All but those that tell of a connection."""
        return (
            *self.keys, "enqueued_ns", "wait_ns", "outcome", "discard_indication", "attempts", "size_bytes",
            "work_units",
        )  # fmt: skip

    def of(self, batch: pa.Table) -> pa.Table:
        """The tally of a part of the log."""
        warm_up_ns, horizon_ns = self.observation.warm_up_ns, self.observation.horizon_ns
        enqueued_ns = whole(batch, "enqueued_ns")
        gone, wait_ns, left_ns = waits(batch)
        fate = outcome_numbers(batch, _FATE_OF, _UNCOUNTED_FATE)
        early = left_ns < warm_up_ns
        fate[early] = np.where(fate[early] == _UNACKNOWLEDGED_FATE, _LONG_UNACKNOWLEDGED_FATE, _UNCOUNTED_FATE)
        if gone is not None:
            queued = outcome_numbers(batch, {Outcome.HELD.value: _QUEUED_FATE}, _WAITING_FATE)
            fate = np.where(gone, fate, queued)
        bucket = (coarse_bucket if self.exact else fine_bucket)(wait_ns)
        state = np.where(fate == DELIVERED_FATE, bucket << _STATE_BITS, 0) + fate
        state += (enqueued_ns >= warm_up_ns).astype(np.int64) << _FATE_BITS
        made: dict[str, Any] = {
            "state": pa.array(state.astype(np.int32)),
            "messages": pa.array(np.ones(len(state), np.int64)),
            "again": pa.array(np.maximum(batch["attempts"].to_numpy().astype(np.int64) - 1, 0)),
            "indications": batch["discard_indication"].cast(pa.int64()),
            "bytes": batch["size_bytes"],
            "work_units": batch["work_units"],
            "wait_sum_ns": pa.array(wait_ns),
            "wait_max_ns": pa.array(wait_ns),
            "first_left_ns": pa.array(left_ns),
        }
        if self.with_law:
            # Time in the queue inside the observation.
            end_ns = np.minimum(left_ns if gone is None else np.where(gone, left_ns, horizon_ns), horizon_ns)
            made["inside_ns"] = pa.array(np.maximum(end_ns - np.maximum(enqueued_ns, warm_up_ns), 0))
        else:
            made["inside_ns"] = pa.array(np.zeros(len(state), np.int64))
        return grouped_by_names(batch, list(dict.fromkeys([*self.keys, "replication"])), made, **_TALLIED)

    def merged(self, parts: pa.Table) -> pa.Table:
        """Sums of sums."""
        return grouped(parts, [*dict.fromkeys([*self.keys, "replication"]), "state"], **_TALLIED)


def replicated(tallied: pa.Table, limits: pa.Table, observation: Observation, keys: Sequence[str]) -> pa.Table:
    """The counters of each group and replication, with the marks and limits that the log cannot tell.

    Args:
        tallied: of a `Tally` by these keys.
        limits: the simulator's counters; of them only high-water mark, limit, evictions and observed time are taken.
        observation: the observed part of the run.
        keys: the columns grouped by.
    """
    each = list(dict.fromkeys([*keys, "replication"]))
    shared = [name for name in each if name != "topic_id"]
    state = whole(tallied, "state")
    fate = state & ((1 << _FATE_BITS) - 1)
    delivered = fate == DELIVERED_FATE
    unacknowledged = (fate == _UNACKNOWLEDGED_FATE) | (fate == _LONG_UNACKNOWLEDGED_FATE)
    queued = (fate == _QUEUED_FATE) | unacknowledged
    left = (fate <= max(_FATES.values())) | (fate == _UNACKNOWLEDGED_FATE)
    sums = {
        "arrived_messages": ("messages", state >> _FATE_BITS & 1 == 1),
        "delivered_messages": ("messages", delivered),
        **{column_of(outcome): ("messages", fate == number) for outcome, number in _FATES.items()},
        "left_messages": ("messages", left),
        "redelivered_messages": ("again", fate != _UNCOUNTED_FATE),
        "discard_indications": ("indications", left),
        "delivered_bytes": ("bytes", delivered),
        "length_messages": ("messages", queued),
        "length_work_units": ("work_units", queued),
        "unacknowledged_messages": ("messages", unacknowledged),
        "waiting_messages": ("messages", fate == _WAITING_FATE),
        "wait_sum_ns": ("wait_sum_ns", delivered),
        "all_wait_sum_ns": ("wait_sum_ns", left),
        "inside_ns": ("inside_ns", np.ones(len(state), np.bool_)),
    }
    marked = {name: chosen(where, tallied[source], 0) for name, (source, where) in sums.items()} | {
        "wait_max_ns": chosen(delivered, tallied["wait_max_ns"], None),
        "first_discard_ns": chosen(np.isin(fate, _DISCARD_FATES), tallied["first_left_ns"], None),
    }
    logged = grouped(
        pa.table({**columns(tallied, each), **marked}),
        each, **dict.fromkeys(sums, "sum"), wait_max_ns="max", first_discard_ns="min",
    )  # fmt: skip
    marks = dict.fromkeys(("high_water_mark_work_units", "max_depth_work_units", "observed_ns"), "max")
    marks["evicted_messages"] = "sum"
    # A queue that no message met still has a row; a topic's row takes its queue's marks.
    how = "full outer" if shared == each else "left outer"
    rows = joined(logged, grouped(limits, shared, **marks), shared, how)
    return with_columns(
        rows,
        {name: pc.fill_null(rows[name], 0) for name in sums}
        | {"observed_ns": pc.fill_null(rows["observed_ns"], observation.observed_ns)}
        # Which topic's message G-1 evicted, no counter says.
        | {"evicted_messages": pc.fill_null(rows["evicted_messages"], 0) if shared == each else _zeros(rows.num_rows)},
    )


def _zeros(count: int) -> pa.Array:
    return pa.array(np.zeros(count, np.int64))


def replicated_from_counters(counters: DataFrame, keys: Sequence[str]) -> DataFrame:
    """The same figures out of the simulator's own counters, for a run without a message log."""
    sums = ", ".join(f"sum({name}) as {name}" for name in COUNTS)
    each = listed(*keys, "replication")
    return counters.sparkSession.sql(
        f"""select {each}, {sums}, max(high_water_mark_work_units) as high_water_mark_work_units,
            max(max_depth_work_units) as max_depth_work_units, min(first_discard_ns) as first_discard_ns,
            max(if(delivered_messages > 0, wait_max_ns, null)) as wait_max_ns, max(observed_ns) as observed_ns
        from {{counters}} group by {each}""",
        counters=counters,
    )


def histogram(tallied: pa.Table, keys: Sequence[str]) -> pa.Table:
    """Delivered messages by bucket of their wait, summed over the replications unless they are a key."""
    state = whole(tallied, "state")
    delivered = pa.array(state & ((1 << _FATE_BITS) - 1) == DELIVERED_FATE)
    made = with_columns(tallied.select([*keys, "messages"]), {"bucket": pa.array(state >> _STATE_BITS, pa.int32())})
    return grouped(made.filter(delivered), [*keys, "bucket"], messages="sum")


def histogram_from_counters(counters: DataFrame, keys: Sequence[str]) -> DataFrame:
    """The latency histogram of each group out of the simulator's sparse ones: they merge exactly."""
    return counters.sparkSession.sql(
        f"""select {listed(*keys)}, pair.histogram_bucket as bucket, sum(pair.histogram_count) as messages
        from (select {listed(*keys)}, explode(arrays_zip(histogram_bucket, histogram_count)) as pair from {{counters}})
        group by {listed(*keys)}, pair.histogram_bucket""",
        counters=counters,
    )


def queues(per_replication: pa.Table, keys: Sequence[str]) -> pa.Table:
    """The counters of each group: sums over its replications, the largest marks, the earliest discard.

    Args:
        per_replication: of `replicated` or `replicated_from_counters`, with these keys.
        keys: the columns grouped by.
    """
    return grouped(
        with_columns(per_replication, {"replications": pa.array(np.ones(per_replication.num_rows, np.int64))}),
        keys,
        **dict.fromkeys(("replications", *COUNTS, "observed_ns"), "sum"),
        **dict.fromkeys(_MARKS, "max"),
        first_discard_ns="min",
    )
