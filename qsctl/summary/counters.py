"""The counters after warm-up, out of the message log: one pass that queues, losses, delays and Little's law come from.

`tally` reads the log once and keeps one row a group, replication, fate and latency bucket; the rest works on that small
frame. `replicated_from_counters` gives the same figures out of the simulator's own counters, for runs without a log.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql import DataFrame

from qsctl.eventlog.schema import Outcome
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

_MARKS: Final = ("high_water_mark_work_units", "max_depth_work_units", "wait_max_ns")


def tally(messages: DataFrame, observation: Observation, keys: Sequence[str], bucket: str) -> DataFrame:
    """One row a group, replication, fate, bucket of the wait (null for what was not delivered) and side of the warm-up.

    What became of a message is part of the key, so that no sum needs a condition of its own.

    Args:
        messages: the message log with the key columns.
        observation: the observed part of the run.
        keys: the columns grouped by; `replication` is always one of the groups besides.
        bucket: of `wait_ns`; it must not fall where the wait grows.
    """
    lost = " ".join(f"when outcome = '{outcome.value}' then {number}" for outcome, number in _FATES.items())
    fate = (
        f"case when wait_ns is null then if(outcome = '{Outcome.HELD.value}', {_QUEUED_FATE}, {_WAITING_FATE}) "
        f"when not ({observation.counts(LEFT_NS)}) then {_UNCOUNTED_FATE} "
        f"when {DELIVERED} then {DELIVERED_FATE} {lost} else {_UNCOUNTED_FATE} end"
    )
    warm_up, end = f"{observation.warm_up_ns}L", f"{observation.horizon_ns}L"
    # Time in the queue inside the observation.
    inside = f"greatest(0L, least(coalesce({LEFT_NS}, {end}), {end}) - greatest(enqueued_ns, {warm_up}))"
    return messages.sparkSession.sql(
        f"""select {listed(*keys, "replication")}, fate, since, if(fate = {DELIVERED_FATE}, {bucket}, null) as bucket,
            count(1) as messages, sum(greatest(attempts - 1, 0)) as again, sum(int(discard_indication)) as indications,
            sum(size_bytes) as bytes, sum(work_units) as work_units, sum(wait_ns) as wait_sum_ns,
            max(wait_ns) as wait_max_ns, min({LEFT_NS}) as first_left_ns, sum({inside}) as inside_ns
        from (select *, {fate} as fate, {observation.counts("enqueued_ns")} as since from {{messages}})
        group by all""",
        messages=messages,
    )


def replicated(tallied: DataFrame, counters: DataFrame, observation: Observation, keys: Sequence[str]) -> DataFrame:
    """The counters of each group and replication, with the marks and limits that the log cannot tell.

    Args:
        tallied: of `tally`, with these keys.
        counters: the simulator's; of them only high-water mark, limit and observed time are taken.
        observation: the observed part of the run.
        keys: the columns grouped by.
    """
    each = list(dict.fromkeys([*keys, "replication"]))
    shared = [name for name in each if name != "topic_id"]
    # A queue that no message met still has a row; a topic's row takes its queue's marks.
    how = "full outer" if shared == each else "right outer"
    left = f"between {DELIVERED_FATE} and {max(_FATES.values())}"
    counts = ", ".join(f"coalesce({name}, 0) as {name}" for name in [*COUNTS, "inside_ns", "left_messages"])
    lost = ", ".join(
        f"sum(if(fate = {number}, messages, 0)) as {outcome.value}_messages" for outcome, number in _FATES.items()
    )
    return tallied.sparkSession.sql(
        f"""with logged as (
            select {listed(*each)}, sum(if(since, messages, 0)) as arrived_messages,
                sum(if(fate = {DELIVERED_FATE}, messages, 0)) as delivered_messages, {lost},
                sum(if(fate {left}, messages, 0)) as left_messages,
                sum(if(fate != {_UNCOUNTED_FATE}, again, 0)) as redelivered_messages,
                sum(if(fate {left}, indications, 0)) as discard_indications,
                sum(if(fate = {DELIVERED_FATE}, bytes, 0)) as delivered_bytes,
                sum(if(fate = {_QUEUED_FATE}, messages, 0)) as length_messages,
                sum(if(fate = {_QUEUED_FATE}, work_units, 0)) as length_work_units,
                sum(if(fate = {DELIVERED_FATE}, wait_sum_ns, 0)) as wait_sum_ns,
                sum(if(fate {left}, wait_sum_ns, 0)) as all_wait_sum_ns,
                max(if(fate = {DELIVERED_FATE}, wait_max_ns, null)) as wait_max_ns,
                min(if(fate = {_FATES[Outcome.DISCARDED]}, first_left_ns, null)) as first_discard_ns,
                sum(inside_ns) as inside_ns
            from {{tallied}} group by {listed(*each)}
        ), limits as (
            select {listed(*shared)}, max(high_water_mark_work_units) as high_water_mark_work_units,
                max(max_depth_work_units) as max_depth_work_units, max(observed_ns) as observed_ns
            from {{counters}} group by {listed(*shared)}
        )
        select {listed(*each)}, {counts}, coalesce(all_wait_sum_ns, 0) as all_wait_sum_ns,
            coalesce(observed_ns, {observation.observed_ns}L) as observed_ns,
            high_water_mark_work_units, max_depth_work_units, wait_max_ns, first_discard_ns
        from limits {how} join logged using ({listed(*shared)})""",
        tallied=tallied,
        counters=counters,
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


def histogram(tallied: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Delivered messages by bucket of their wait, summed over the replications unless they are a key."""
    return tallied.sparkSession.sql(
        f"""select {listed(*keys)}, bucket, sum(messages) as messages from {{tallied}}
        where fate = {DELIVERED_FATE} group by {listed(*keys)}, bucket""",
        tallied=tallied,
    )


def histogram_from_counters(counters: DataFrame, keys: Sequence[str]) -> DataFrame:
    """The latency histogram of each group out of the simulator's sparse ones: they merge exactly."""
    return counters.sparkSession.sql(
        f"""select {listed(*keys)}, pair.histogram_bucket as bucket, sum(pair.histogram_count) as messages
        from (select {listed(*keys)}, explode(arrays_zip(histogram_bucket, histogram_count)) as pair from {{counters}})
        group by {listed(*keys)}, pair.histogram_bucket""",
        counters=counters,
    )


def queues(per_replication: DataFrame, keys: Sequence[str]) -> DataFrame:
    """The counters of each group: sums over its replications, the largest marks, the earliest discard.

    Args:
        per_replication: of `replicated` or `replicated_from_counters`, with these keys.
        keys: the columns grouped by.
    """
    sums = ", ".join(f"sum({name}) as {name}" for name in [*COUNTS, "observed_ns"])
    marks = ", ".join(f"max({name}) as {name}" for name in _MARKS)
    return per_replication.sparkSession.sql(
        f"""select {listed(*keys)}, count(1) as replications, {sums}, {marks},
            min(first_discard_ns) as first_discard_ns
        from {{rows}} group by {listed(*keys)}""",
        rows=per_replication,
    )
