"""Throughput and discards in windows of time: what entered and what left each window, by one pass over the log.

Messages are first counted by the windows in which they came and went, for most go in the window in which they came;
only those few rows are then told apart.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from qsctl.eventlog.schema import Outcome
from qsctl.instant import Nanoseconds
from qsctl.summary.observation import LEFT_NS, listed


def windows(messages: DataFrame, keys: Sequence[str], window_ns: Nanoseconds) -> DataFrame:
    """One row a group, replication and window in which anything entered or left a queue.

    Args:
        messages: the message log with the key columns.
        keys: the columns grouped by; `replication` is always one of the groups besides.
        window_ns: the windows' length; they count from the start of the run.
    """
    each = listed(*keys, "replication")

    def left(*outcomes: Outcome, of: str = "messages") -> str:
        names = ", ".join(f"'{outcome.value}'" for outcome in outcomes)
        return f"sum(if(not entered and outcome in ({names}), {of}, 0))"

    sent = (Outcome.DELIVERED, Outcome.HELD)
    # Whole numbers only: a quotient of doubles is inexact beyond 2^53.
    return messages.sparkSession.sql(
        f"""with moved as (
            select {each}, outcome, enqueued_ns div {window_ns}L as came, {LEFT_NS} div {window_ns}L as went,
                count(1) as messages, sum(work_units) as work_units, sum(size_bytes) as bytes
            from {{messages}} group by all
        ), steps as (
            select {each}, outcome, messages, work_units, bytes,
                inline(array(struct(true as entered, came as number), struct(false as entered, went as number)))
            from moved
        )
        select {each}, number * {window_ns}L as window_start_ns, {window_ns}L as window_ns,
            sum(if(entered, messages, 0)) as arrived_messages, sum(if(entered, work_units, 0)) as entered_work_units,
            sum(if(entered, 0, messages)) as left_messages, sum(if(entered, 0, work_units)) as left_work_units,
            {left(*sent)} as delivered_messages, {left(Outcome.DISCARDED)} as discarded_messages,
            {left(Outcome.ELIDED)} as elided_messages, {left(Outcome.EXPIRED, Outcome.DEAD)} as lost_messages,
            {left(*sent, of="bytes")} as delivered_bytes
        from steps where number is not null group by {each}, number""",
        messages=messages,
    )
