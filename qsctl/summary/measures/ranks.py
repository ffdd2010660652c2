"""Exact percentiles: the waits at given ranks, by a second scan of the log that reads only few buckets.

The cells determine the bucket that contains a percentile's rank and the number of messages in the buckets before. The
scan joins only the messages of those buckets (the table of buckets is small and broadcast), counts them by wait, and
accumulates the counts in order in each bucket. An exact `percentile` over the whole log was measured to be several
times slower.
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
    """Return the wait at each rank, in the schema `tables.RANKED`.

    Args:
        messages: rows of `tables.MESSAGES`.
        places: rows of `tables.PLACES`, with these keys: the buckets of groups that are searched, and the cells in
            which their messages are counted. Several groups and replications may share a cell.
        ranks: rows of `tables.WANTED_RANKS`: the ranks in each cell, from 1.
        observation: the observed part of the run.
        keys: the columns that identify a place, in addition to `replication`.
        spans: ranges of buckets, first and last, that include all places; a filter by them leaves few rows to join.
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
    """Return the SQL condition that a wait is in a span, which is several times cheaper than computing its bucket."""
    bounds = [(coarse_start_ns(first), coarse_start_ns(last + 1) - 1) for first, last in spans]
    return " or ".join(f"wait_ns between {start}L and {end}L" for start, end in bounds) or "false"
