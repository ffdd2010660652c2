"""Latency percentiles of the wait: exact by two passes where that is affordable, else from the histogram.

The first pass tells in which bucket a percentile's rank falls and how many messages lie in the buckets before. The
second pass reads only those buckets' messages and counts down the rest of the rank: on the driver where they are few,
else on Spark. An exact `percentile` over the whole log was measured to take twice as long.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from qsctl.eventlog.schema import BUCKETS_PER_OCTAVE_BITS
from qsctl.summary.groups import Whole, columns, grouped, joined, ordered, starts_of, whole, with_columns
from qsctl.summary.loss import loss_ratio
from qsctl.summary.observation import COARSE_BUCKET, DELIVERED, LEFT_NS, Observation, coarse_start_ns, listed

PERCENTILES: Final[dict[str, tuple[int, int]]] = {
    "p50_ns": (50, 100),
    "p90_ns": (90, 100),
    "p95_ns": (95, 100),
    "p99_ns": (99, 100),
    "p999_ns": (999, 1000),
}
"""Each percentile as an exact fraction: a rank computed from 0.999 would be one off now and then."""

BUCKET_ERROR: Final = 2.0**-BUCKETS_PER_OCTAVE_BITS
"""A figure read from a bucket is its last duration: at most this share above the true one."""

MOST_SPANS: Final = 12
"""Spans of waits that the second pass tells apart before it looks a bucket up; more would cost more than they save."""


def ranks(histogram: pa.Table, keys: Sequence[str]) -> pa.Table:
    """For each group and percentile: the bucket that holds its nearest rank, and the rank inside that bucket.

    Args:
        histogram: of `counters.histogram`, with these keys.
        keys: the columns grouped by, at least one.

    Returns:
        The keys, `percentile` (the name), `bucket` and `rank` (from 1).
    """
    rows = ordered(histogram, [*keys, "bucket"])
    messages = whole(rows, "messages")
    up_to = np.cumsum(messages)
    first = starts_of(rows, keys)
    before = up_to[first] - messages[first]
    inside = np.append(up_to[first[1:] - 1], up_to[-1:]) - before
    names = rows.select(list(keys)).take(pa.array(first))
    parts = []
    for percentile, (part, of) in PERCENTILES.items():
        # ceil(n × part / of) in integers, counted from the first row.
        wanted = before + (inside * part + of - 1) // of
        at = np.searchsorted(up_to, wanted)
        made = {
            "percentile": pa.array([percentile] * len(first), pa.string()),
            "bucket": rows["bucket"].take(pa.array(at)).cast(pa.int32()),
            "rank": pa.array(wanted - up_to[at] + messages[at]),
        }
        parts.append(with_columns(names, made))
    return pa.concat_tables(parts)


def spans_of(ranked: Iterable[pa.Table]) -> list[tuple[int, int]]:
    """The coarse buckets that hold a rank, as a few spans from a first to a last one; some cover a little more."""
    buckets = sorted({bucket for table in ranked for bucket in table["bucket"].to_pylist()})
    spans: list[tuple[int, int]] = []
    for bucket in buckets:
        if spans and spans[-1][1] + 1 == bucket:
            spans[-1] = (spans[-1][0], bucket)
        else:
            spans.append((bucket, bucket))
    while len(spans) > MOST_SPANS:
        gaps = [after[0] - before[1] for before, after in pairwise(spans)]
        at = gaps.index(min(gaps))
        spans[at : at + 2] = [(spans[at][0], spans[at + 1][1])]
    return spans


def messages_in(histogram: pa.Table, spans: Sequence[tuple[int, int]]) -> int:
    """How many messages the second pass meets: those of the histogram's buckets in the spans."""
    bucket = whole(histogram, "bucket")
    inside = np.zeros(len(bucket), np.bool_)
    for first, last in spans:
        inside |= (first <= bucket) & (bucket <= last)
    return int(whole(histogram, "messages")[inside].sum())


def _waits_in(spans: Sequence[tuple[int, int]]) -> str:
    """The condition that a wait is in one of the spans: comparing is several times cheaper than finding the bucket."""
    bounds = [(coarse_start_ns(first), coarse_start_ns(last + 1) - 1) for first, last in spans]
    return " or ".join(f"wait_ns between {start}L and {end}L" for start, end in bounds) or "false"


def candidates(
    messages: DataFrame, spans: Sequence[tuple[int, int]], observation: Observation, keys: Sequence[str]
) -> DataFrame:
    """The waits among which the ranks are, each with how many messages had it (`alike`), for `values_among`."""
    return messages.sparkSession.sql(
        f"""select {listed(*keys)}, wait_ns, count(1) as alike from {{messages}}
        where ({_waits_in(spans)}) and {DELIVERED} and {observation.counts(LEFT_NS)}
        group by {listed(*keys)}, wait_ns""",
        messages=messages,
    )


def values_among(found: pa.Table, ranked: pa.Table, keys: Sequence[str]) -> pa.Table:
    """The duration at each rank, counted down among the candidates of its bucket.

    Args:
        found: of `candidates`, by at least these keys.
        ranked: of `ranks`, with these keys, over coarse buckets.
        keys: the columns grouped by.

    Returns:
        The keys, `percentile` and `value_ns`.
    """
    rows = ordered(grouped(found, [*keys, "wait_ns"], alike="sum"), [*keys, "wait_ns"])
    wait_ns, alike = whole(rows, "wait_ns"), whole(rows, "alike")
    rows = with_columns(rows, {"bucket": pa.array(_coarse_bucket(wait_ns), pa.int32())})
    up_to = np.cumsum(alike)
    place = [*keys, "bucket"]
    first = starts_of(rows, place)
    before = with_columns(
        rows.select(place).take(pa.array(first)), {"before": pa.array(up_to[first] - alike[first], pa.int64())}
    )
    wanted = joined(ranked, before, place, "inner")
    at = np.searchsorted(up_to, whole(wanted, "before") + whole(wanted, "rank"))
    return with_columns(wanted.select([*keys, "percentile"]), {"value_ns": pa.array(wait_ns[at])})


def _coarse_bucket(wait_ns: Whole) -> Whole:
    """`observation.COARSE_BUCKET` in numpy: the same operations of the same doubles."""
    return np.asarray(16 * np.sqrt(np.sqrt(np.sqrt(wait_ns.astype(np.float64)))), np.int64)


def exact_values(
    messages: DataFrame,
    ranked: pa.Table,
    spans: Sequence[tuple[int, int]],
    observation: Observation,
    keys: Sequence[str],
) -> DataFrame:
    """The second pass wholly on Spark: the duration at each rank, reading only the buckets that hold one.

    Args:
        messages: the message log with the key columns.
        ranked: of `ranks`, over coarse buckets.
        spans: of `spans_of`, from these ranks and perhaps others.
        observation: the observed part of the run.
        keys: the columns grouped by.

    Returns:
        The keys, `percentile` and `value_ns`.
    """
    place = listed(*keys, "bucket")
    return messages.sparkSession.sql(
        f"""with sent as (
            select {listed(*keys)}, wait_ns, {COARSE_BUCKET} as bucket from {{messages}}
            where ({_waits_in(spans)}) and {DELIVERED} and {observation.counts(LEFT_NS)}
        ), needed as (select distinct {place} from {{ranked}}
        ), alike as (
            select /*+ broadcast(needed) */ {place}, wait_ns, count(1) as alike
            from sent left semi join needed using ({place}) group by {place}, wait_ns
        ), cumulated as (
            select *, sum(alike) over (partition by {place} order by wait_ns rows unbounded preceding) as up_to
            from alike
        )
        select /*+ broadcast(wanted) */ {listed(*keys)}, percentile, wait_ns as value_ns
        from cumulated join {{ranked}} as wanted using ({place}) where rank <= up_to and rank > up_to - alike""",
        messages=messages,
        ranked=messages.sparkSession.createDataFrame(ranked),
    )


def bucket_values(ranked: pa.Table, keys: Sequence[str]) -> pa.Table:
    """The last duration of the histogram's bucket at each rank: within `BUCKET_ERROR` above the exact one."""
    ends = bucket_end_ns(whole(ranked, "bucket"))
    return with_columns(ranked.select([*keys, "percentile"]), {"value_ns": pa.array(ends)})


def bucket_end_ns(bucket: Whole) -> Whole:
    """The last duration of each bucket, as `eventlog.schema.bucket_bounds_ns` computes it."""
    shift = np.maximum(0, (bucket >> BUCKETS_PER_OCTAVE_BITS) - 1)
    return np.asarray(((bucket - (shift << BUCKETS_PER_OCTAVE_BITS) + 1) << shift) - 1, np.int64)


def figures(counters: pa.Table, values: pa.Table, keys: Sequence[str], relative_error: float) -> pa.Table:
    """The counters of each group with its mean wait and its percentiles, null where nothing was delivered.

    Args:
        counters: of `counters.queues`, with these keys.
        values: of `exact_values`, `values_among` or `bucket_values`.
        keys: the columns grouped by.
        relative_error: 0 for exact values, else `BUCKET_ERROR`.
    """
    value_ns = values["value_ns"]
    wide = {name: pc.if_else(pc.equal(values["percentile"], name), value_ns, None) for name in PERCENTILES}
    spread = grouped(pa.table({**columns(values, keys), **wide}), keys, **dict.fromkeys(PERCENTILES, "max"))
    rows = joined(counters, spread, keys, "left outer")
    delivered = rows["delivered_messages"].cast(pa.float64())
    mean_ns = pc.divide(rows["wait_sum_ns"].cast(pa.float64(), safe=False), delivered)
    return with_columns(
        rows,
        {
            # The end of the last bucket may lie above the largest duration, which is known exactly.
            **{name: pc.min_element_wise(rows[name], rows["wait_max_ns"], skip_nulls=False) for name in PERCENTILES},
            "messages": rows["delivered_messages"],
            "max_ns": rows["wait_max_ns"],
            "mean_ns": pc.if_else(pc.greater(delivered, 0), mean_ns, None),
            "relative_error": pa.array(np.full(rows.num_rows, relative_error)),
            "loss_ratio": loss_ratio(rows),
        },
    )
