"""The counters after warm-up, out of the message log: one pass that queues, losses, delays and Little's law come from.

`tally` reads the log once and keeps one row a group, replication, fate and latency bucket; the rest works on that small
table. `replicated_from_counters` gives the same figures out of the simulator's own counters, for runs without a log.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from qsctl.eventlog.schema import Outcome
from qsctl.summary.groups import chosen, columns, grouped, joined, whole, with_columns
from qsctl.summary.observation import DELIVERED, LEFT_NS, Observation, listed
from qsctl.summary.tables import COUNTS

DELIVERED_FATE: Final = 0
_LOST: Final = (Outcome.DISCARDED, Outcome.ELIDED, Outcome.EXPIRED, Outcome.DEAD)
_FATES: Final = {outcome: number for number, outcome in enumerate(_LOST, 1)}
_QUEUED_FATE: Final = 5
_WAITING_FATE: Final = 6
"""Not in its queue, neither yet nor any more: at its endpoint, or outside a full queue."""
_UNCOUNTED_FATE: Final = 7
"""Left before the end of the warm-up."""

_FATE_BITS: Final = 3
_STATE_BITS: Final = _FATE_BITS + 1
"""Below the bucket: the fate, and the side of the warm-up on which the message came."""

_MARKS: Final = ("high_water_mark_work_units", "max_depth_work_units", "wait_max_ns")


def tally(
    messages: DataFrame, observation: Observation, keys: Sequence[str], bucket: str, *, with_law: bool = True
) -> DataFrame:
    """One row a group, replication and `state`: the message's fate, side of the warm-up, and bucket if delivered.

    What became of a message is part of the key, so that no sum needs a condition of its own, and the key has one number
    for it all: Spark was measured to take a quarter less time than with three columns.

    Args:
        messages: the message log with the key columns.
        observation: the observed part of the run.
        keys: the columns grouped by; `replication` is always one of the groups besides.
        bucket: of `wait_ns`; it must not fall where the wait grows.
        with_law: also sum up the time in the queue, for Little's law.
    """
    lost = " ".join(f"when outcome = '{outcome.value}' then {number}" for outcome, number in _FATES.items())
    fate = (
        f"case when wait_ns is null then if(outcome = '{Outcome.HELD.value}', {_QUEUED_FATE}, {_WAITING_FATE}) "
        f"when not ({observation.counts(LEFT_NS)}) then {_UNCOUNTED_FATE} "
        f"when {DELIVERED} then {DELIVERED_FATE} {lost} else {_UNCOUNTED_FATE} end"
    )
    since = 1 << _FATE_BITS
    came = f"if({observation.counts('enqueued_ns')}, {since}, 0)" if observation.warm_up_ns else f"{since}"
    warm_up, end = f"{observation.warm_up_ns}L", f"{observation.horizon_ns}L"
    # Time in the queue inside the observation.
    inside = f"greatest(0L, least(coalesce({LEFT_NS}, {end}), {end}) - greatest(enqueued_ns, {warm_up}))"
    return messages.sparkSession.sql(
        f"""select {listed(*keys, "replication")},
            if(fate = {DELIVERED_FATE}, {bucket} * {1 << _STATE_BITS}, 0) + fate + {came} as state,
            count(1) as messages, sum(greatest(attempts - 1, 0)) as again, sum(int(discard_indication)) as indications,
            sum(size_bytes) as bytes, sum(work_units) as work_units, coalesce(sum(wait_ns), 0L) as wait_sum_ns,
            max(wait_ns) as wait_max_ns, min({LEFT_NS}) as first_left_ns,
            {f"sum({inside})" if with_law else "0L"} as inside_ns
        from (select *, {fate} as fate from {{messages}})
        group by all""",
        messages=messages,
    )


def replicated(tallied: pa.Table, limits: pa.Table, observation: Observation, keys: Sequence[str]) -> pa.Table:
    """The counters of each group and replication, with the marks and limits that the log cannot tell.

    Args:
        tallied: of `tally`, with these keys.
        limits: the simulator's counters; of them only high-water mark, limit and observed time are taken.
        observation: the observed part of the run.
        keys: the columns grouped by.
    """
    each = list(dict.fromkeys([*keys, "replication"]))
    shared = [name for name in each if name != "topic_id"]
    state = whole(tallied, "state")
    fate = state & ((1 << _FATE_BITS) - 1)
    delivered, queued = fate == DELIVERED_FATE, fate == _QUEUED_FATE
    left = fate <= max(_FATES.values())
    sums = {
        "arrived_messages": ("messages", state >> _FATE_BITS & 1 == 1),
        "delivered_messages": ("messages", delivered),
        **{f"{outcome.value}_messages": ("messages", fate == number) for outcome, number in _FATES.items()},
        "left_messages": ("messages", left),
        "redelivered_messages": ("again", fate != _UNCOUNTED_FATE),
        "discard_indications": ("indications", left),
        "delivered_bytes": ("bytes", delivered),
        "length_messages": ("messages", queued),
        "length_work_units": ("work_units", queued),
        "wait_sum_ns": ("wait_sum_ns", delivered),
        "all_wait_sum_ns": ("wait_sum_ns", left),
        "inside_ns": ("inside_ns", np.ones(len(state), np.bool_)),
    }
    marked = {name: chosen(where, tallied[source], 0) for name, (source, where) in sums.items()} | {
        "wait_max_ns": chosen(delivered, tallied["wait_max_ns"], None),
        "first_discard_ns": chosen(fate == _FATES[Outcome.DISCARDED], tallied["first_left_ns"], None),
    }
    logged = grouped(
        pa.table({**columns(tallied, each), **marked}),
        each, **dict.fromkeys(sums, "sum"), wait_max_ns="max", first_discard_ns="min",
    )  # fmt: skip
    marks = dict.fromkeys(("high_water_mark_work_units", "max_depth_work_units", "observed_ns"), "max")
    # A queue that no message met still has a row; a topic's row takes its queue's marks.
    how = "full outer" if shared == each else "left outer"
    rows = joined(logged, grouped(limits, shared, **marks), shared, how)
    return with_columns(
        rows,
        {name: pc.fill_null(rows[name], 0) for name in sums}
        | {"observed_ns": pc.fill_null(rows["observed_ns"], observation.observed_ns)},
    )


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
    made = with_columns(tallied.select([*keys, "messages"]), {"bucket": pa.array(state >> _STATE_BITS)})
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
