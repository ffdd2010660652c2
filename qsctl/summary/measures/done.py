"""Times to done from the log: acknowledged messages by bucket, and unfinished ones by the bucket of their age.

Decides which messages count. A message counts if the model acknowledges messages of its queue, according to the
counters (`acknowledged_in`): as done if it was delivered in the observed part and acknowledged, as unfinished if it was
delivered then and not acknowledged, or is still held. `finishing/done.py` computes percentiles from these few rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame

from qsctl.eventlog.outcomes import Outcome
from qsctl.summary.measures.by_run import RUN_NUMBER, expression_by_run
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
    """The SQL condition for rows of queues whose messages are acknowledged.

    `comes_back` is, for each run, whether an unacknowledged message has another row later.
    """

    where: str = "false"
    comes_back: tuple[bool, ...] = (False,)
    """Value for each run."""

    @property
    def anywhere(self) -> bool:
        """Return whether any queue's messages are acknowledged."""
        return self.where != "false"

    @property
    def counts(self) -> str:
        """The SQL condition that a message is done or will be, which excludes lost messages."""
        each = [f"({DELIVERED} and acknowledge_ns is not null)" if back else DELIVERED for back in self.comes_back]
        delivered = expression_by_run(each)
        return f"({self.where}) and ({_THERE} or {delivered})"


def acknowledged_in(marks: pa.Table, *, comes_back: Sequence[bool]) -> AcknowledgedRows:
    """Return which messages of the runs of a frame are acknowledged.

    Args:
        marks: result of `recorded_run.marks_of`, with `run_number`.
        comes_back: for each run, whether a message that was delivered and not acknowledged has another row later, as in
            an integration engine.
    """
    own: dict[str, dict[int, set[int]]] = {}
    others: set[str] = set()
    columns = (marks[name].to_pylist() for name in (RUN_NUMBER, "queue", "client_id", "done_messages"))
    for run, queue, client, done in zip(*columns, strict=True):
        if done is None:
            others.add(queue)
        else:
            own.setdefault(queue, {}).setdefault(run, set()).add(client)

    def condition(queue: str) -> str:
        of_queue = f"queue = {literal(queue)}"
        if queue not in others:
            return of_queue
        clients = [own[queue].get(run) for run in range(len(comes_back))]
        return f"{of_queue} and " + expression_by_run(
            [f"client_id in ({listed_numbers(each)})" if each else "false" for each in clients]
        )

    return AcknowledgedRows(" or ".join(map(condition, sorted(own))) or "false", tuple(comes_back))


def done_cells(
    messages: DataFrame, observation: Observation, keys: Sequence[str], acknowledged: AcknowledgedRows
) -> DataFrame:
    """Return one row for each group, replication, kind and bucket, in the schema `tables.DONE_CELLS`.

    Args:
        messages: rows of `tables.MESSAGES`.
        observation: the observed part of the run.
        keys: the grouping columns; `replication` is always an additional one.
        acknowledged: result of `acknowledged_in`.
    """
    each = listed(*keys, "replication")
    return messages.sparkSession.sql(
        f"""with counted as (
            select {each}, acknowledge_ns is not null as is_done,
                greatest(0L, coalesce(acknowledge_ns, {observation.horizon} - enqueued_ns)) as wait_ns
            from {{messages}} where {acknowledged.counts} and ({_THERE} or ({observation.left}))
        )
        select {each}, is_done, {FINE_BUCKET} as bucket, count(1) as messages, {exact_sum("wait_ns", "time_sum_ns")},
            max(wait_ns) as time_max_ns
        from counted group by {each}, is_done, bucket""",
        messages=messages,
    )
