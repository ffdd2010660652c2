"""Throughput and discards in windows of time: what arrived, entered and left in each, by one pass over the log.

Messages are first counted by the windows in which they arrived, entered their queue and left it, for most do all of it
in one; only those few rows are then split by window.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from qsctl.eventlog.outcomes import LOSSES, Outcome
from qsctl.instant import Nanoseconds
from qsctl.summary.observation import ENTERED_NS, Holding, listed


def windows(messages: DataFrame, keys: Sequence[str], window_ns: Nanoseconds, holding: Holding) -> DataFrame:
    """Return one row a group, replication and window with any movement: a table of `tables.WINDOWS`, with these keys.

    Args:
        messages: of `tables.MESSAGES`.
        keys: the columns grouped by; `replication` is always one of the groups besides.
        window_ns: the windows' length; they count from the start of the run.
        holding: which queues hold messages until they are acknowledged.
    """
    each = listed(*keys, "replication")

    def gone(*outcomes: Outcome, of: str = "messages") -> str:
        names = ", ".join(f"'{outcome.value}'" for outcome in outcomes)
        return f"sum(if(step = 'left' and outcome in ({names}), {of}, 0))"

    def moved(step: str, of: str = "messages") -> str:
        return f"sum(if(step = '{step}', {of}, 0))"

    others = [outcome for outcome in LOSSES if outcome is not Outcome.DISCARDED]
    # Whole numbers only: a quotient of doubles is inexact beyond 2^53.
    return messages.sparkSession.sql(
        f"""with moves as (
            select {each}, outcome, enqueued_ns div {window_ns}L as came, {ENTERED_NS} div {window_ns}L as entered,
                {holding.gone_ns} div {window_ns}L as went,
                count(1) as messages, sum(work_units) as work_units, sum(size_bytes) as bytes
            from {{messages}} group by all
        ), steps as (
            select {each}, outcome, messages, work_units, bytes, inline(array(
                struct('arrived' as step, came as number), struct('entered' as step, entered as number),
                struct('left' as step, went as number)))
            from moves
        )
        select {each}, number * {window_ns}L as window_start_ns, {window_ns}L as window_ns,
            {moved("arrived")} as arrived_messages, {gone(Outcome.DELIVERED)} as delivered_messages,
            {gone(Outcome.DISCARDED)} as discarded_messages, {gone(Outcome.ELIDED)} as elided_messages,
            {gone(*others)} as lost_messages, {gone(Outcome.DELIVERED, of="bytes")} as delivered_bytes,
            {moved("entered")} as entered_messages, {moved("entered", "work_units")} as entered_work_units,
            {moved("left")} as left_messages, {moved("left", "work_units")} as left_work_units
        from steps where number is not null group by {each}, number""",
        messages=messages,
    )
