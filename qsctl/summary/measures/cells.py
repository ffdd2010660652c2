"""The counters and the histogram of waits in one: messages of one kind and latency bucket, by one pass over the log.

`queues`, `delays`, `losses` and `intervals` are made from these few rows (`finishing/`). The fate of a message
and its bucket are part of the key, so that no sum needs a condition of its own and one hash table is enough. Both are
one number in that key: there are tens of thousands of cells, and a row of texts for each is more than a processor's
cache holds beside another executor's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql import DataFrame

from qsctl.eventlog.outcomes import Outcome
from qsctl.summary.measures.observation import (
    COARSE_BUCKET,
    DELIVERED,
    FINE_BUCKET,
    LEFT_NS,
    Observation,
    exact_sum,
    listed,
    literal,
)

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

_FATES: Final = (*(each.value for each in Outcome), QUEUED, UNACKNOWLEDGED, LONG_UNACKNOWLEDGED, UNCOUNTED)
_BUCKET_BITS: Final = 16
"""Enough for the buckets of any wait, coarse or fine."""


def cells(messages: DataFrame, observation: Observation, keys: Sequence[str], *, exact: bool) -> DataFrame:
    """Return one row a group, replication, fate and bucket: a table of `tables.CELLS`, with these keys.

    Args:
        messages: of `tables.MESSAGES`.
        observation: the observed part of the run.
        keys: the columns grouped by; `replication` is always one of the groups besides.
        exact: the buckets only narrow down where a percentile is (`COARSE_BUCKET`); else they are the histogram's.
    """
    each = listed(*keys, "replication")
    delivered = f"{observation.left} and {DELIVERED}"
    bucket = f"if({delivered}, {COARSE_BUCKET if exact else FINE_BUCKET}, {NO_BUCKET})"
    arrived = f"int(coalesce({observation.counts('enqueued_ns')}, false))"
    kind = f"shiftleft({_fate_number(observation)}, 1) + {arrived}"
    return messages.sparkSession.sql(
        f"""with counted as (
            select {each}, shiftleft({kind}, {_BUCKET_BITS}) + {bucket} - {NO_BUCKET} as code,
                count(1) as messages, sum(cast(greatest(attempts - 1, 0) as bigint)) as again,
                sum(int(discard_indication)) as indications, sum(size_bytes) as bytes, sum(work_units) as work_units,
                {exact_sum("wait_ns", "wait_sum_ns")}, max(wait_ns) as wait_max_ns, min({LEFT_NS}) as first_left_ns
            from {{messages}} group by {each}, code
        )
        select {each},
            element_at(array({", ".join(map(literal, _FATES))}), shiftright(code, {_BUCKET_BITS + 1}) + 1) as fate,
            (shiftright(code, {_BUCKET_BITS}) & 1) = 1 as arrived,
            (code & {(1 << _BUCKET_BITS) - 1}) + {NO_BUCKET} as bucket, * except ({each}, code)
        from counted""",
        messages=messages,
    )


def _fate_number(observation: Observation) -> str:
    """Return the place in `_FATES` of what became of a message, as a text of SQL; the most frequent comes first."""
    held = f"outcome = '{Outcome.HELD}'"
    number = {fate: at for at, fate in enumerate(_FATES)}
    outcome = " ".join(f"when '{each}' then {number[each]}" for each in Outcome)
    return (
        f"case when {held} then if({observation.left}, {number[UNACKNOWLEDGED]}, "
        f"if(wait_ns is null, {number[QUEUED]}, {number[LONG_UNACKNOWLEDGED]})) "
        f"when wait_ns is null or {observation.left} then case outcome {outcome} end else {number[UNCOUNTED]} end"
    )
