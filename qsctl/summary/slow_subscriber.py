"""Slow subscribers: the share of the last minute's seconds in which a client had data to send and could not.

Our reading of the log: a half second counts as blocked when one message waited in the client's queues all through it,
and a second when one of its halves is. The broker's own figure looks at the connection's window and adds a penalty for
retransmissions: a run at level `events` tells it, and then it is the one that is shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from qsctl.instant import SECOND_NS
from qsctl.sim.models.base import EVENT_NAMES, Event
from qsctl.summary.groups import Whole, grouped, joined, ordered, starts_of, whole, with_columns
from qsctl.summary.log_pass import grouped_by_names
from qsctl.summary.observation import LEFT_NS, Observation, listed, waits

MINUTE_SECONDS: Final = 60
_HALF_NS: Final = SECOND_NS // 2
_NO_HALF: Final = -1
"""Where a message is counted that waited through no half second: it still names its client."""


@dataclass(frozen=True, slots=True)
class HalfSeconds:
    """One row a group, replication and half second at which messages began (+) or ended (-) to wait all through it.

    `keys` are the columns grouped by, `replication` besides.
    """

    observation: Observation
    keys: tuple[str, ...]

    @property
    def columns(self) -> Sequence[str]:
        """What tells when a message came and went."""
        return (*self.keys, "enqueued_ns", "wait_ns")

    @property
    def _each(self) -> list[str]:
        return list(dict.fromkeys([*self.keys, "replication"]))

    def of(self, batch: pa.Table) -> pa.Table:
        """The steps of a part of the log."""
        gone, _, left_ns = waits(batch)
        start = (whole(batch, "enqueued_ns") + _HALF_NS - 1) // _HALF_NS
        stop = (left_ns if gone is None else np.where(gone, left_ns, self.observation.horizon_ns)) // _HALF_NS
        blocks = start < stop
        spans = grouped_by_names(
            batch,
            self._each,
            {
                "start": pa.array(np.where(blocks, start, _NO_HALF)),
                "stop": pa.array(np.where(blocks, stop, _NO_HALF)),
                "messages": pa.array(np.ones(batch.num_rows, np.int64)),
            },
            messages="sum",
        )
        messages = whole(spans, "messages")
        place = spans.select(self._each)
        begun = with_columns(place, {"half": spans["start"], "step": pa.array(messages)})
        ended = with_columns(place, {"half": spans["stop"], "step": pa.array(-messages)})
        return self.merged(pa.concat_tables([begun, ended]))

    def merged(self, parts: pa.Table) -> pa.Table:
        """Sums of sums."""
        return grouped(parts, [*self._each, "half"], step="sum")


def slow_of_halves(halves: pa.Table, observation: Observation, keys: Sequence[str]) -> pa.Table:
    """What `slow_subscribers` gives, of the rows of `HalfSeconds`."""
    each = list(dict.fromkeys([*keys, "replication"]))
    rows = ordered(halves, [*each, "half"])
    first, last, minute = _seconds(observation)
    firsts = starts_of(rows, each)
    group = np.repeat(np.arange(len(firsts)), np.diff(np.append(firsts, rows.num_rows)))
    half = whole(rows, "half")
    # A group's steps add up to nothing, so that the sum may run on over the groups; blocked lasts to the next row.
    blocked = np.flatnonzero(np.cumsum(whole(rows, "step")) > 0)
    start = np.clip(half[blocked] // 2, first, last)
    end = np.clip((half[blocked + 1] - 1) // 2 + 1, first, last)
    of = group[blocked]
    # Two stretches may share the second in which one ends and the next begins: it counts for the former.
    start[1:] = np.where(of[1:] == of[:-1], np.maximum(start[1:], end[:-1]), start[1:])
    some = start < end
    start, end, of = start[some], end[some], of[some]
    count = len(firsts)

    def total(seconds: Whole) -> Whole:
        made = np.zeros(count, np.int64)
        np.add.at(made, of, seconds)
        return made

    late = np.maximum(end - np.maximum(start, last - minute), 0)
    most = np.zeros(count, np.int64)
    np.maximum.at(most, of, _blocked_before(end, start, end, of) - _blocked_before(end - minute, start, end, of))
    per_cent = 100.0 / minute
    return with_columns(
        rows.select(each).take(pa.array(firsts)),
        {
            "blocked_seconds": pa.array(total(end - start)),
            "seconds": pa.array(np.full(count, last - first, np.int64)),
            "slow_percent": pa.array(total(late) * per_cent),
            "slow_percent_max": pa.array(most * per_cent),
        },
    )


def _blocked_before(second: Whole, start: Whole, end: Whole, of: Whole) -> Whole:
    """How many seconds of all groups up to each one's own were blocked before a second of this group's time.

    Differences between two such figures of one group are what counts. Stretches are in order and do not touch.
    """
    if not len(of):
        return np.zeros(0, np.int64)
    # One axis for all groups, each with room for a minute before its first second and after its last.
    low, span = int(start.min()) - MINUTE_SECONDS, int(end.max() - start.min()) + 2 * MINUTE_SECONDS + 1
    at = of * span + np.maximum(second - low, 0)
    begins, ends = of * span + start - low, of * span + end - low
    whole_ones = np.append(0, np.cumsum(end - start))
    number = np.searchsorted(begins, at)  # stretches that began before
    within = np.where(number > 0, np.maximum(ends[number - 1] - at, 0), 0)
    return np.asarray(whole_ones[number] - within, np.int64)


def _seconds(observation: Observation) -> tuple[int, int, int]:
    """The first whole second observed, the one after the last, and how many the percentages are of."""
    first = -(-observation.warm_up_ns // SECOND_NS)
    last = max(first, observation.horizon_ns // SECOND_NS)
    return first, last, max(1, min(MINUTE_SECONDS, last - first))


def slow_subscribers(messages: DataFrame, observation: Observation, keys: Sequence[str]) -> DataFrame:
    """One row a client (or other group) and replication: blocked seconds and percentages, on frames of Spark.

    `HalfSeconds` and `slow_of_halves` give the same in one pass over the log where there is room for the half seconds.

    Args:
        messages: the message log with the key columns.
        observation: the percentages are of the last minute before its end, or of all of it when it is shorter.
        keys: the columns grouped by; `replication` is always one of the groups besides.
    """
    each = listed(*keys, "replication")
    first, last, minute = _seconds(observation)
    seconds = last - first
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
