"""Slow subscribers: the share of the last minute's seconds in which a client had data to send and could not.

Our reading of the log: a half second counts as blocked when one message waited in the client's queues all through it,
and a second when one of its halves is. The broker's own figure looks at the connection's window and adds a penalty for
retransmissions: a run at level `events` tells it, and then it is the one that is shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from qsctl.instant import SECOND_NS
from qsctl.sim.models.base import EVENT_NAMES, Event
from qsctl.summary.groups import joined, with_columns
from qsctl.summary.observation import LEFT_NS, Observation, listed

MINUTE_SECONDS: Final = 60
_HALF_NS: Final = SECOND_NS // 2


def slow_subscribers(messages: DataFrame, observation: Observation, keys: Sequence[str]) -> DataFrame:
    """One row a client (or other group) and replication: blocked seconds and percentages.

    Args:
        messages: the message log with the key columns.
        observation: the percentages are of the last minute before its end, or of all of it when it is shorter.
        keys: the columns grouped by; `replication` is always one of the groups besides.
    """
    each = listed(*keys, "replication")
    first = -(-observation.warm_up_ns // SECOND_NS)
    last = max(first, observation.horizon_ns // SECOND_NS)
    seconds = last - first
    minute = max(1, min(MINUTE_SECONDS, seconds))
    per_cent = 100.0 / minute
    end = f"coalesce({LEFT_NS}, {observation.horizon_ns}L)"
    # Ins and outs of half seconds, summed up; a message that never blocks still names its client.
    return messages.sparkSession.sql(
        f"""with spans as (
            select {each}, (enqueued_ns + {_HALF_NS - 1}L) div {_HALF_NS}L as start, {end} div {_HALF_NS}L as stop
            from {{messages}}
        ), counted as (
            select {each}, if(start < stop, start, null) as start, if(start < stop, stop, null) as stop,
                count(1) as messages
            from spans group by all
        ), steps as (
            select {each}, half, sum(step) as step
            from (
                select {each},
                    inline(array(struct(start as half, messages as step), struct(stop as half, -messages as step)))
                from counted where start is not null)
            group by {each}, half
        ), levels as (
            select {each}, half, sum(step) over (partition by {each} order by half rows unbounded preceding) as level,
                lead(half) over (partition by {each} order by half) as until
            from steps
        ), blocked as (
            select distinct {each}, half div 2 as second
            from (select {each}, explode(sequence(half, until - 1)) as half
                from levels where level > 0 and until is not null)
            where half div 2 >= {first} and half div 2 < {last}
        ), recent as (
            select *, count(1) over (partition by {each} order by second
                range between {minute - 1} preceding and current row) as recent
            from blocked
        ), counts as (
            select {each}, count(1) as blocked_seconds, count_if(second >= {last - minute}) as late,
                max(recent) as most
            from recent group by {each}
        )
        select {each}, coalesce(blocked_seconds, 0) as blocked_seconds, {seconds} as seconds,
            coalesce(late, 0) * {per_cent!r}d as slow_percent, coalesce(most, 0) * {per_cent!r}d as slow_percent_max
        from (select distinct {each} from counted) left join counts using ({each})""",
        messages=messages,
    )


def percentages_told(events: DataFrame, observation: Observation) -> DataFrame:
    """What the simulator said of each client and replication: its last percentage and its largest one.

    The largest is of those told: where the threshold was passed, and at the end.
    """
    last, passed = (EVENT_NAMES[event] for event in (Event.SLOW_PERCENT, Event.SLOW_SUBSCRIBER))
    return events.sparkSession.sql(
        f"""select client_id, replication, max(if(event = '{last}', value, 0)) / 100d as told_percent,
            max(value) / 100d as told_percent_max
        from {{events}} where event in ('{last}', '{passed}') and {observation.counts("at_ns")}
        group by client_id, replication""",
        events=events,
    )


def as_told(slow: pa.Table, told: pa.Table) -> pa.Table:
    """The clients with the simulator's percentages; one of which it said nothing was never slow.

    Args:
        slow: of `slow_subscribers`, with `client_id` among its keys; its blocked seconds stay.
        told: of `percentages_told`.
    """
    rows = joined(slow, told, ["client_id", "replication"], "left outer")
    return with_columns(
        rows.select(slow.column_names),
        {
            "slow_percent": pc.fill_null(rows["told_percent"], 0.0),
            "slow_percent_max": pc.fill_null(rows["told_percent_max"], 0.0),
        },
    )
