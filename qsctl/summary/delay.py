"""Latency percentiles of the wait: exact by two passes where that is affordable, else from the histogram.

The first pass tells in which bucket a percentile's rank falls and how many messages lie in the buckets before. The
second pass looks only at those buckets' messages, and the rest of the rank is counted down among them: on the driver
where they are few, else on Spark. An exact `percentile` over the whole log was measured to take several times as long.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from qsctl.eventlog.schema import BUCKETS_PER_OCTAVE_BITS, Outcome
from qsctl.summary.groups import Whole, columns, grouped, joined, ordered, starts_of, whole, with_columns
from qsctl.summary.log_pass import grouped_by_names
from qsctl.summary.loss import loss_ratio
from qsctl.summary.observation import (
    COARSE_BUCKET,
    DELIVERED,
    LEFT_NS,
    Observation,
    coarse_bucket,
    coarse_start_ns,
    listed,
    outcome_numbers,
    waits,
)

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

_DELIVERED_OUTCOMES: Final = {Outcome.DELIVERED.value: 1}

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


Level = tuple[str, ...]


def cells_of(ranked: Mapping[Level, pa.Table]) -> dict[Level, pa.Table]:
    """The cells, each a group and a coarse bucket, that hold a rank, with a number over all levels in `cell`.

    Args:
        ranked: of `ranks`, by the keys that they are of.
    """
    cells, before = {}, 0
    for level, each in ranked.items():
        place = [*level, "bucket"]
        made = each.select(place).group_by(place, use_threads=False).aggregate([])
        cells[level] = with_columns(made, {"cell": pa.array(np.arange(before, before + made.num_rows), pa.int32())})
        before += made.num_rows
    return cells


def most_candidates(histogram: pa.Table, cells: pa.Table, keys: Sequence[str]) -> int:
    """How many different waits the cells can have: each as many as it has messages, or nanoseconds."""
    inside = joined(cells, histogram, [*keys, "bucket"], "inner")
    buckets, place = np.unique(whole(inside, "bucket"), return_inverse=True)
    widths = [coarse_start_ns(bucket + 1) - coarse_start_ns(bucket) for bucket in buckets.tolist()]
    return int(np.minimum(whole(inside, "messages"), np.array(widths, np.int64)[place]).sum())


@dataclass(frozen=True, slots=True)
class Candidates:
    """The waits among which the ranks are: of each cell its different waits, and how many messages had each (`alike`).

    `cells` are of `cells_of`, the finest level last; `spans` of `spans_of`: comparing leaves few rows to be looked up.
    """

    observation: Observation
    cells: Mapping[Level, pa.Table]
    spans: tuple[tuple[int, int], ...]

    @property
    def _finest(self) -> Level:
        return list(self.cells)[-1]

    @property
    def columns(self) -> Sequence[str]:
        """The keys, and what tells the wait."""
        return (*self._finest, "enqueued_ns", "wait_ns", "outcome")

    def of(self, batch: pa.Table) -> pa.Table:
        """The candidates of a part of the log."""
        gone, wait_ns, left_ns = waits(batch)
        inside = np.zeros(len(wait_ns), np.bool_)
        for first, last in self.spans:
            inside |= (coarse_start_ns(first) <= wait_ns) & (wait_ns < coarse_start_ns(last + 1))
        inside &= outcome_numbers(batch, _DELIVERED_OUTCOMES, 0) == 1
        inside &= left_ns >= self.observation.warm_up_ns
        if gone is not None:
            inside &= gone
        rows = batch.select([*self._finest, "wait_ns"]).filter(pa.array(inside))
        made = {"wait_ns": rows["wait_ns"], "alike": pa.array(np.ones(rows.num_rows, np.int64))}
        found = grouped_by_names(rows, self._finest, made, alike="sum")
        found = with_columns(found, {"bucket": pa.array(coarse_bucket(whole(found, "wait_ns")), pa.int32())})
        parts = [joined(found, cells, [*level, "bucket"], "inner") for level, cells in self.cells.items()]
        return self.merged(pa.concat_tables([part.select(["cell", "wait_ns", "alike"]) for part in parts]))

    def merged(self, parts: pa.Table) -> pa.Table:
        """Sums of sums."""
        return grouped(parts, ["cell", "wait_ns"], alike="sum")


def _waits_in(spans: Sequence[tuple[int, int]]) -> str:
    """The condition that a wait is in one of the spans: comparing is several times cheaper than finding the bucket."""
    bounds = [(coarse_start_ns(first), coarse_start_ns(last + 1) - 1) for first, last in spans]
    return " or ".join(f"wait_ns between {start}L and {end}L" for start, end in bounds) or "false"


def values_among(found: pa.Table, ranked: pa.Table, cells: pa.Table, keys: Sequence[str]) -> pa.Table:
    """The duration at each rank, counted down among the candidates of its cell.

    Args:
        found: of `Candidates`.
        ranked: of `ranks`, with these keys, over coarse buckets.
        cells: of `cells_of`, of this level.
        keys: the columns grouped by.

    Returns:
        The keys, `percentile` and `value_ns`.
    """
    rows = ordered(found, ["cell", "wait_ns"])
    alike = whole(rows, "alike")
    up_to = np.cumsum(alike)
    first = starts_of(rows, ["cell"])
    before = pa.table({"cell": rows["cell"].take(pa.array(first)), "before": pa.array(up_to[first] - alike[first])})
    wanted = joined(joined(ranked, cells, [*keys, "bucket"], "inner"), before, ["cell"], "inner")
    at = np.searchsorted(up_to, whole(wanted, "before") + whole(wanted, "rank"))
    values = pa.array(whole(rows, "wait_ns")[at])
    return with_columns(wanted.select([*keys, "percentile"]), {"value_ns": values})


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
        values: of `values_among`, `exact_values` or `bucket_values`.
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
