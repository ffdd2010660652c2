"""Nearest-rank percentiles of each group's delivered waits: the wanted ranks, and the values at them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from qsctl.eventlog.schema import BUCKETS_PER_OCTAVE_BITS
from qsctl.summary.finishing.arrow import Whole, columns, grouped, joined, ordered, starts_of, whole, with_columns

PERCENTILES: Final[dict[str, tuple[int, int]]] = {
    "p50_ns": (50, 100),
    "p90_ns": (90, 100),
    "p95_ns": (95, 100),
    "p99_ns": (99, 100),
    "p999_ns": (999, 1000),
}
"""Each percentile as an exact fraction, since a rank computed from 0.999 could be wrong by one."""

BUCKET_ERROR: Final = 2.0**-BUCKETS_PER_OCTAVE_BITS
"""Largest relative error of a figure read from a bucket, which is the bucket's last duration."""

MOST_SPANS: Final = 12
"""Largest number of spans of waits that the second pass compares with; more would cost more than they save."""

Level = tuple[str, ...]
"""The grouping of percentiles: the groups, and for intervals each group's replications."""


def ranks(histogram: pa.Table, keys: Sequence[str]) -> pa.Table:
    """Return for each group and percentile the bucket that holds its nearest rank, and the rank inside that bucket.

    Args:
        histogram: delivered messages by these keys and `bucket`.
        keys: the grouping columns, at least one.

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


@dataclass(frozen=True, slots=True)
class Search:
    """The search of the second pass: `places`, `wanted` and `spans` for `measures.ranks`, and the group that owns each
    cell.
    """

    places: pa.Table
    wanted: pa.Table
    spans: tuple[tuple[int, int], ...]
    owners: Mapping[Level, pa.Table]

    def values(self, found: pa.Table) -> dict[Level, pa.Table]:
        """Return for each level its keys, `percentile` and `value_ns`.

        Args:
            found: table of the schema `tables.RANKED`.
        """
        return {
            level: joined(owner, found, ["cell", "rank"], "inner").select([*level, "percentile", "value_ns"])
            for level, owner in self.owners.items()
        }


def search_for(ranked: Mapping[Level, pa.Table], histogram: pa.Table) -> Search:
    """Return the buckets that hold a rank, as cells numbered over all levels, and the ranks inside them.

    Args:
        ranked: results of `ranks`, by their keys.
        histogram: delivered messages by the finest level's keys, replication and bucket, which has the messages of a
            cell.
    """
    places, owners, before = [], {}, 0
    finest = [name for name in histogram.column_names if name not in {"bucket", "messages"}]
    for level, each in ranked.items():
        at = [*level, "bucket"]
        cells = each.select(at).group_by(at, use_threads=False).aggregate([])
        cells = with_columns(cells, {"cell": pa.array(np.arange(before, before + cells.num_rows), pa.int32())})
        before += cells.num_rows
        owners[level] = joined(each, cells, at, "inner")
        whole_place = histogram.select([*finest, "bucket"])
        places.append(joined(whole_place, cells, at, "inner").select([*finest, "bucket", "cell"]))
    wanted = pa.concat_tables([owner.select(["cell", "rank"]) for owner in owners.values()])
    return Search(
        pa.concat_tables(places),
        wanted.group_by(["cell", "rank"], use_threads=False).aggregate([]),
        tuple(_spans_of(ranked.values())),
        owners,
    )


def _spans_of(ranked: Iterable[pa.Table]) -> list[tuple[int, int]]:
    """Return ranges of buckets that together include every bucket with a rank; some ranges include a few others."""
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


def bucket_values(ranked: pa.Table, keys: Sequence[str]) -> pa.Table:
    """Return the last duration of the histogram's bucket at each rank: at most `BUCKET_ERROR` above the exact value."""
    ends = bucket_end_ns(whole(ranked, "bucket"))
    return with_columns(ranked.select([*keys, "percentile"]), {"value_ns": pa.array(ends)})


def bucket_end_ns(bucket: Whole) -> Whole:
    """Return the last duration of each bucket, as computed by `eventlog.schema.bucket_bounds_ns`."""
    shift = np.maximum(0, (bucket >> BUCKETS_PER_OCTAVE_BITS) - 1)
    return np.asarray(((bucket - (shift << BUCKETS_PER_OCTAVE_BITS) + 1) << shift) - 1, np.int64)


def with_percentiles(counters: pa.Table, values: pa.Table, keys: Sequence[str], relative_error: float) -> pa.Table:
    """Return the counters of each group with its mean wait and its percentiles, null if no message was delivered.

    Args:
        counters: result of `counters.summed`, with these keys.
        values: these keys, `percentile` and `value_ns`.
        keys: the grouping columns.
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
        },
    )
