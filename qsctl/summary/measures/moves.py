"""Movements: numbers of messages by the windows in which they arrived, entered their queue and left it.

`windows`, `depth`, `littles_law` and `slow_subscribers` are computed from these few rows. Most messages arrive, enter
and leave within one window, and few wait longer than half a second: a group has some hundreds of rows, whatever the
length of the log.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql import DataFrame

from qsctl.instant import SECOND_NS, Nanoseconds
from qsctl.summary.measures.done import AcknowledgedRows
from qsctl.summary.measures.observation import ENTERED_NS, LEFT_NS, Holding, HoldingByRun, Observation, listed

NOTHING_ACKNOWLEDGED: Final = AcknowledgedRows()
HALF_SECOND_NS: Final = SECOND_NS // 2
"""Length of the spans that are examined for slow subscribers."""


def moves(
    messages: DataFrame,
    observation: Observation,
    keys: Sequence[str],
    window_ns: Nanoseconds,
    holding: Holding | HoldingByRun,
    acknowledged: AcknowledgedRows = NOTHING_ACKNOWLEDGED,
) -> DataFrame:
    """Return one row for each group, replication, outcome, windows and waited half seconds, in the schema
    `tables.MOVES`.

    Args:
        messages: rows of `tables.MESSAGES`.
        observation: the observed part of the run.
        keys: the grouping columns; `replication` is always an additional one.
        window_ns: length of a window; windows are counted from the start of the run.
        holding: the queues that hold messages until they are acknowledged.
        acknowledged: the messages that are acknowledged at all.
    """
    each = listed(*keys, "replication")
    warm_up_ns, horizon_ns = observation.warm_up, observation.horizon
    # Integers only: a quotient of doubles is inexact beyond 2^53. Comparisons that hold for all rows, and sums that are
    # 0, are omitted, since each sum enlarges every row of the largest table of groups.
    begun = f"greatest(entered_ns, {warm_up_ns})" if observation.has_warm_up else "entered_ns"
    stayed = "double(gone_ns - entered_ns)"
    if observation.has_warm_up:
        stayed = f"if({observation.counts('gone_ns')}, {stayed}, 0d)"
    return messages.sparkSession.sql(
        f"""with stays as (
            select {each}, outcome, work_units, size_bytes, enqueued_ns, {ENTERED_NS} as entered_ns,
                {holding.gone_ns} as gone_ns, {acknowledged.counts} as is_acknowledged,
                enqueued_ns + acknowledge_ns as done_at_ns,
                ({ENTERED_NS} + {HALF_SECOND_NS - 1}L) div {HALF_SECOND_NS}L as first_half,
                coalesce({LEFT_NS}, {horizon_ns}) div {HALF_SECOND_NS}L as end_half
            from {{messages}}
        )
        select {each}, outcome, enqueued_ns div {window_ns}L as arrived_window,
            entered_ns div {window_ns}L as entered_window, gone_ns div {window_ns}L as left_window,
            if(first_half < end_half, first_half, null) as waited_from_half,
            if(first_half < end_half, end_half, null) as waited_until_half,
            count(1) as messages, sum(work_units) as work_units, sum(size_bytes) as bytes,
            count_if({observation.counts("entered_ns")}) as counted_entries,
            count_if({observation.counts("gone_ns")}) as counted_exits, coalesce(sum({stayed}), 0d) as stayed_ns,
            sum(double(greatest(0L, least(coalesce(gone_ns, {horizon_ns}), {horizon_ns}) - {begun}))) as inside_ns,
            {_until_done(observation) if acknowledged.anywhere else _NEVER_DONE}
        from stays group by all""",
        messages=messages,
    )


_NEVER_DONE: Final = "0L as counted_arrivals, 0L as counted_done, 0d as done_ns, 0d as unfinished_ns"


def _until_done(observation: Observation) -> str:
    """Return the SQL columns of messages from their arrival to their acknowledgment."""
    warm_up_ns, horizon_ns = observation.warm_up, observation.horizon
    return f"""count_if(is_acknowledged and enqueued_ns >= {warm_up_ns}) as counted_arrivals,
            count_if(is_acknowledged and done_at_ns >= {warm_up_ns}) as counted_done,
            sum(if(is_acknowledged and done_at_ns >= {warm_up_ns}, double(done_at_ns - enqueued_ns), 0d)) as done_ns,
            sum(if(is_acknowledged, double(greatest(0L, least(coalesce(done_at_ns, {horizon_ns}), {horizon_ns})
                - greatest(enqueued_ns, {warm_up_ns}))), 0d)) as unfinished_ns"""
