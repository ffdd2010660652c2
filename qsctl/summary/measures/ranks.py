"""Exact percentiles: the waits at given ranks, by a second pass over the log that looks at few buckets only.

The cells show in which bucket a percentile's rank falls and how many messages lie in the buckets before. Of this pass
only those buckets' messages are joined (the table of them is small and broadcast), counted by their wait and summed up
in order, each bucket by itself. An exact `percentile` over the whole log was measured to be several times slower.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from qsctl.summary.measures.observation import COARSE_BUCKET, DELIVERED, Observation, coarse_start_ns, listed

Spans = Sequence[tuple[int, int]]


def waits_at_ranks(
    messages: DataFrame,
    places: DataFrame,
    ranks: DataFrame,
    observation: Observation,
    keys: Sequence[str],
    spans: Spans,
) -> DataFrame:
    """Return the wait at each rank: a table of `tables.RANKED`.

    Args:
        messages: of `tables.MESSAGES`.
        places: of `tables.PLACES`, with these keys: which buckets of which groups are looked at, and the cells that
            their messages count in. Several groups and replications may count in one cell.
        ranks: of `tables.WANTED_RANKS`: ranks in each cell, from 1.
        observation: the observed part of the run.
        keys: the columns that identify a place, `replication` besides.
        spans: the first and last bucket of ranges that hold all places' buckets; comparing leaves few rows to join.
    """
    place = listed(*keys, "replication", "bucket")
    return messages.sparkSession.sql(
        f"""with near as (
            select {listed(*keys, "replication")}, wait_ns, {COARSE_BUCKET} as bucket from {{messages}}
            where ({_waits_in(spans)}) and {DELIVERED} and {observation.left}
        ), alike as (
            select /*+ broadcast(places) */ cell, wait_ns, count(1) as messages
            from near join {{places}} as places using ({place}) group by cell, wait_ns
        ), cumulated as (
            select cell, wait_ns, messages,
                sum(messages) over (partition by cell order by wait_ns rows unbounded preceding) as up_to
            from alike
        )
        select /*+ broadcast(wanted) */ cell, rank, wait_ns as value_ns
        from cumulated join {{ranks}} as wanted using (cell) where rank <= up_to and rank > up_to - messages""",
        messages=messages,
        places=places,
        ranks=ranks,
    )


def _waits_in(spans: Spans) -> str:
    """Return the condition that a wait is in one of the spans: comparing is several times cheaper than bucketing."""
    bounds = [(coarse_start_ns(first), coarse_start_ns(last + 1) - 1) for first, last in spans]
    return " or ".join(f"wait_ns between {start}L and {end}L" for start, end in bounds) or "false"
