"""Cells: numbers of messages by group, fate and latency bucket, from one scan of the log.

`queues`, `delays`, `losses` and `intervals` are computed from these few rows (`finishing/`). The fate of a message and
its bucket are part of the key, so that no sum needs a condition of its own and one hash table is enough. Both are
encoded as one number: there are tens of thousands of cells, and rows with texts would exceed a processor's cache if
another executor shares it.
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
"""Fate: the message is still in its queue and was not sent."""
UNACKNOWLEDGED: Final = "unacknowledged"
"""Fate: the message was sent in the observed part, and G-1 holds it until it is acknowledged."""
LONG_UNACKNOWLEDGED: Final = "long_unacknowledged"
"""Fate: as UNACKNOWLEDGED, but sent before the end of the warm-up."""
UNCOUNTED: Final = "uncounted"
"""Fate: the message left before the end of the warm-up."""

NO_BUCKET: Final = -1
"""The bucket of messages that were not delivered."""

_FATES: Final = (*(each.value for each in Outcome), QUEUED, UNACKNOWLEDGED, LONG_UNACKNOWLEDGED, UNCOUNTED)
_BUCKET_BITS: Final = 16
"""Number of bits that suffice for the buckets of any wait, coarse or fine."""


def cells(messages: DataFrame, observation: Observation, keys: Sequence[str], *, exact: bool) -> DataFrame:
    """Return one row for each group, replication, fate and bucket, in the schema `tables.CELLS`.

    Args:
        messages: rows of `tables.MESSAGES`.
        observation: the observed part of the run.
        keys: the grouping columns; `replication` is always an additional one.
        exact: use coarse buckets, which only locate a percentile (`COARSE_BUCKET`); else the histogram's buckets.
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
    """Return the SQL expression of the index in `_FATES` of a message's outcome, which tests frequent ones first."""
    held = f"outcome = '{Outcome.HELD}'"
    number = {fate: at for at, fate in enumerate(_FATES)}
    outcome = " ".join(f"when '{each}' then {number[each]}" for each in Outcome)
    return (
        f"case when {held} then if({observation.left}, {number[UNACKNOWLEDGED]}, "
        f"if(wait_ns is null, {number[QUEUED]}, {number[LONG_UNACKNOWLEDGED]})) "
        f"when wait_ns is null or {observation.left} then case outcome {outcome} end else {number[UNCOUNTED]} end"
    )
