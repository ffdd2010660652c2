"""Throughput and discards in windows of time: the messages that arrived, entered and left in each."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from qsctl.eventlog.outcomes import LOSSES, Outcome
from qsctl.instant import Nanoseconds
from qsctl.summary.measures.observation import listed


def windows(moves: DataFrame, keys: Sequence[str], window_ns: Nanoseconds) -> DataFrame:
    """Return one row for each group, replication and window with any movement, in the schema `tables.WINDOWS`.

    Args:
        moves: result of `moves.moves`, with these keys and windows of this length.
        keys: the grouping columns; `replication` is always an additional one.
        window_ns: length of a window; windows are counted from the start of the run.
    """
    each = listed(*keys, "replication")

    def gone(*outcomes: Outcome, of: str = "messages") -> str:
        names = ", ".join(f"'{outcome.value}'" for outcome in outcomes)
        return f"sum(if(step = 'left' and outcome in ({names}), {of}, 0))"

    def moved(step: str, of: str = "messages") -> str:
        return f"sum(if(step = '{step}', {of}, 0))"

    others = [outcome for outcome in LOSSES if outcome is not Outcome.DISCARDED]
    return moves.sparkSession.sql(
        f"""with steps as (
            select {each}, outcome, messages, work_units, bytes, moved.step, moved.number
            from (select *, explode(array(
                struct('arrived' as step, arrived_window as number),
                struct('entered' as step, entered_window as number), struct('left' as step, left_window as number)
            )) as moved from {{moves}})
        )
        select {each}, number * {window_ns}L as window_start_ns, {window_ns}L as window_ns,
            {moved("arrived")} as arrived_messages, {gone(Outcome.DELIVERED)} as delivered_messages,
            {gone(Outcome.DISCARDED)} as discarded_messages, {gone(Outcome.ELIDED)} as elided_messages,
            {gone(*others)} as lost_messages, {gone(Outcome.DELIVERED, of="bytes")} as delivered_bytes,
            {moved("entered")} as entered_messages, {moved("entered", "work_units")} as entered_work_units,
            {moved("left")} as left_messages, {moved("left", "work_units")} as left_work_units
        from steps where number is not null group by {each}, number""",
        moves=moves,
    )
