"""The counters and the histogram of waits in one: messages of one kind and latency bucket, by one pass over the log.

`queues`, `delays`, `losses` and `intervals` are made from these few rows (`finishing/`). The fate of a message
and its bucket are part of the key, so that no sum needs a condition of its own and one hash table is enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql import DataFrame

from qsctl.eventlog.outcomes import Outcome
from qsctl.summary.observation import COARSE_BUCKET, DELIVERED, FINE_BUCKET, LEFT_NS, Observation, exact_sum, listed

QUEUED: Final = "queued"
"""Still in its queue, not sent."""
UNACKNOWLEDGED: Final = "unacknowledged"
"""Sent in the observed part, and held by G-1 until it is acknowledged."""
LONG_UNACKNOWLEDGED: Final = "long_unacknowledged"
"""The same, sent before the end of the warm-up."""
UNCOUNTED: Final = "uncounted"
"""Left before the end of the warm-up."""

NO_BUCKET: Final = -1
"""The bucket of messages that were not delivered."""


def cells(messages: DataFrame, observation: Observation, keys: Sequence[str], *, exact: bool) -> DataFrame:
    """Return one row a group, replication, fate and bucket: a table of `tables.CELLS`, with these keys.

    Args:
        messages: of `tables.MESSAGES`.
        observation: the observed part of the run.
        keys: the columns grouped by; `replication` is always one of the groups besides.
        exact: the buckets only narrow down where a percentile is (`COARSE_BUCKET`); else they are the histogram's.
    """
    each = listed(*keys, "replication")
    left = observation.left
    fate = (
        f"case when {left} then if(outcome = '{Outcome.HELD}', '{UNACKNOWLEDGED}', outcome) "
        f"when wait_ns is not null then if(outcome = '{Outcome.HELD}', '{LONG_UNACKNOWLEDGED}', '{UNCOUNTED}') "
        f"else if(outcome = '{Outcome.HELD}', '{QUEUED}', outcome) end"
    )
    bucket = COARSE_BUCKET if exact else FINE_BUCKET
    return messages.sparkSession.sql(
        f"""select {each}, {fate} as fate, {observation.counts("enqueued_ns")} as arrived,
            if({left} and {DELIVERED}, {bucket}, {NO_BUCKET}) as bucket,
            count(1) as messages, sum(bigint(greatest(attempts - 1, 0))) as again,
            sum(int(discard_indication)) as indications, sum(size_bytes) as bytes, sum(work_units) as work_units,
            {exact_sum("wait_ns", "wait_sum_ns")}, max(wait_ns) as wait_max_ns, min({LEFT_NS}) as first_left_ns
        from {{messages}} group by {each}, fate, arrived, bucket""",
        messages=messages,
    )
