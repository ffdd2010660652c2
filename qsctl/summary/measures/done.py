"""Times to done out of the log: acknowledged messages by bucket, and unfinished ones by the bucket of their age.

Decides: which messages count. A message counts where the model acknowledges messages of its queue, according to the
counters (`acknowledged_in`): as done if it was delivered in the observed part and acknowledged, as unfinished if it was
delivered then and not acknowledged, or is still held. `finishing/done.py` makes percentiles of these few rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame

from qsctl.eventlog.outcomes import Outcome
from qsctl.summary.measures.observation import (
    DELIVERED,
    FINE_BUCKET,
    Observation,
    exact_sum,
    listed,
    listed_numbers,
    literal,
)

_THERE = f"outcome in ('{Outcome.HELD.value}', '{Outcome.WAITING.value}')"


@dataclass(frozen=True, slots=True)
class AcknowledgedRows:
    """The acknowledged messages, as a text of SQL; and whether one that was not acknowledged has another row later."""

    where: str = "false"
    comes_back: bool = False

    @property
    def anywhere(self) -> bool:
        """Return whether messages of any queue are."""
        return self.where != "false"

    @property
    def counts(self) -> str:
        """The condition that a message is done or will be: of the lost ones none is."""
        delivered = f"({DELIVERED} and acknowledge_ns is not null)" if self.comes_back else DELIVERED
        return f"({self.where}) and ({_THERE} or {delivered})"


def acknowledged_in(marks: pa.Table, *, comes_back: bool) -> AcknowledgedRows:
    """Return which messages of a run are acknowledged.

    Args:
        marks: of `recorded_run.marks_of`.
        comes_back: what was delivered and not acknowledged comes back as another row, as in an integration engine.
    """
    own: dict[str, set[int]] = {}
    others: set[str] = set()
    columns = (marks[name].to_pylist() for name in ("queue", "client_id", "done_messages"))
    for queue, client, done in zip(*columns, strict=True):
        if done is None:
            others.add(queue)
        else:
            own.setdefault(queue, set()).add(client)
    conditions = [
        f"queue = {literal(queue)}" + (f" and client_id in ({listed_numbers(clients)})" if queue in others else "")
        for queue, clients in sorted(own.items())
    ]
    return AcknowledgedRows(" or ".join(conditions) or "false", comes_back)


def done_cells(
    messages: DataFrame, observation: Observation, keys: Sequence[str], acknowledged: AcknowledgedRows
) -> DataFrame:
    """Return one row a group, replication, kind and bucket: a table of `tables.DONE_CELLS`, with these keys.

    Args:
        messages: of `tables.MESSAGES`.
        observation: the observed part of the run.
        keys: the columns grouped by; `replication` is always one of the groups besides.
        acknowledged: of `acknowledged_in`.
    """
    each = listed(*keys, "replication")
    return messages.sparkSession.sql(
        f"""with counted as (
            select {each}, acknowledge_ns is not null as is_done,
                greatest(0L, coalesce(acknowledge_ns, {observation.horizon_ns}L - enqueued_ns)) as wait_ns
            from {{messages}} where {acknowledged.counts} and ({_THERE} or ({observation.left}))
        )
        select {each}, is_done, {FINE_BUCKET} as bucket, count(1) as messages, {exact_sum("wait_ns", "time_sum_ns")},
            max(wait_ns) as time_max_ns
        from counted group by {each}, is_done, bucket""",
        messages=messages,
    )
