"""Slow subscribers: the fraction of the last minute's seconds in which a client had data to send and could not.

Our reading of the log: a half second counts as blocked if a message waited in the client's queues throughout it, and a
second if one of its halves does. The broker's own figure is based on the connection's window and adds a penalty for
retransmissions; a run at level `events` records it, and it then replaces this one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql import DataFrame

from qsctl.instant import SECOND_NS
from qsctl.sim.model import EVENT_NAMES, Event
from qsctl.summary.measures.by_run import by_run
from qsctl.summary.measures.observation import Observation, listed

MINUTE_SECONDS: Final = 60


def slow_subscribers(moves: DataFrame, observation: Observation, keys: Sequence[str]) -> DataFrame:
    """Return one row for each client (or other group) and replication, in the schema `tables.SLOW_SUBSCRIBERS`.

    Args:
        moves: result of `moves.moves`, with at least these keys; messages that never entered a queue contribute
            clients.
        observation: the percentages are of the last minute before its end, or of all of it if it is shorter.
        keys: the grouping columns; `replication` is always an additional one.
    """
    each = listed(*keys, "replication")
    firsts = [-(-each // SECOND_NS) for each in observation.warm_ups_ns]
    lasts = [max(begin, each // SECOND_NS) for begin, each in zip(firsts, observation.horizons_ns, strict=True)]
    spans = [end - begin for begin, end in zip(firsts, lasts, strict=True)]
    minutes = [max(1, min(MINUTE_SECONDS, span)) for span in spans]
    first, last, seconds = (by_run([f"{each}L" for each in values]) for values in (firsts, lasts, spans))
    minute_start = by_run([f"{end - minute}L" for end, minute in zip(lasts, minutes, strict=True)])
    per_cent = by_run([f"{100.0 / minute!r}d" for minute in minutes])
    # In an observation shorter than a minute, all its seconds count.
    # Ins and outs of half seconds, summed up. A message that never blocks has no half: it still names its client.
    return moves.sparkSession.sql(
        f"""with counted as (
            select {each}, waited_from_half as start, waited_until_half as stop, sum(messages) as messages
            from {{moves}} group by all
        ), steps as (
            select {each}, half, sum(step) as step
            from (select {each}, ends.half, ends.step
                from (select {each}, explode(array(
                    struct(start as half, messages as step), struct(stop as half, -messages as step)
                )) as ends from counted))
            group by {each}, half
        ), levels as (
            select {each}, half, sum(step) over (partition by {each} order by half rows unbounded preceding) as level,
                lead(half) over (partition by {each} order by half) as until
            from steps
        ), blocked as (
            select distinct {each}, if(half div 2 >= {first} and half div 2 < {last}, half div 2, null) as second
            from (select {each},
                explode(if(level > 0, sequence(half, until - 1), array(cast(null as bigint)))) as half
                from levels)
        ), recent as (
            select *, count(second) over (partition by {each} order by second
                range between {MINUTE_SECONDS - 1} preceding and current row) as recent
            from blocked
        )
        select {each}, count(second) as blocked_seconds, {seconds} as seconds,
            count_if(second >= {minute_start}) * {per_cent} as slow_percent,
            coalesce(max(if(second is null, 0, recent)), 0) * {per_cent} as slow_percent_max
        from recent group by {each}""",
        moves=moves,
    )


def with_recorded_percentages(
    slow: DataFrame,
    events: DataFrame,
    observation: Observation,
    keys: Sequence[str] = ("client_id",),
    has_recorded: str = "true",
) -> DataFrame:
    """Return the clients with the percentages that the simulator recorded; a client without a record was never slow.

    The largest percentage is that of the recorded ones, which are recorded when the threshold is passed, and at the
    end.

    Args:
        slow: result of `slow_subscribers`, with `client_id` among its keys; its blocked seconds are kept.
        events: rows of `tables.EVENTS`.
        observation: the observed part of the run.
        keys: the columns that identify a client, in addition to `replication`.
        has_recorded: SQL condition that a client's run records percentages; other runs keep the computed ones.
    """
    each = listed(*keys, "replication")
    last, passed = (EVENT_NAMES[event] for event in (Event.SLOW_PERCENT, Event.SLOW_SUBSCRIBER))
    return slow.sparkSession.sql(
        f"""with recorded as (
            select {each}, max(if(event = '{last}', value, 0)) / 100d as percent,
                max(value) / 100d as percent_max
            from {{events}} where event in ('{last}', '{passed}') and {observation.counts("at_ns")}
            group by {each}
        )
        select slow.* except (slow_percent, slow_percent_max),
            if({has_recorded}, coalesce(percent, 0d), slow_percent) as slow_percent,
            if({has_recorded}, coalesce(percent_max, 0d), slow_percent_max) as slow_percent_max
        from {{slow}} as slow left join recorded using ({each})""",
        slow=slow,
        events=events,
    )
