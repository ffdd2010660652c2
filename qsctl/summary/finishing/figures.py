"""The steps from Spark's results to the figures: counters, percentiles, losses and intervals.

`job.py` calls `search` for the waits that the second pass must find, and passes all results to `finished`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from qsctl.eventlog.outcomes import Outcome
from qsctl.summary.finishing import _percentiles as percentiles
from qsctl.summary.finishing import counters, intervals
from qsctl.summary.finishing._percentiles import BUCKET_ERROR, Level, Search
from qsctl.summary.finishing.arrow import grouped, with_columns

Values = Mapping[Level, pa.Table]
"""For each level a table of its keys, `percentile` and `value_ns`."""


def histogram(cells: pa.Table, keys: Sequence[str]) -> pa.Table:
    """Return the number of delivered messages by these keys, replication and bucket of their wait.

    Args:
        cells: table of the schema `tables.CELLS`, with these keys.
        keys: the grouping columns.
    """
    delivered = cells.filter(pc.equal(cells["fate"], Outcome.DELIVERED.value))
    return grouped(delivered, [*dict.fromkeys([*keys, "replication"]), "bucket"], messages="sum")


def search(waits: pa.Table, keys: Sequence[str], measures: Collection[str]) -> Search:
    """Return the waits that the second pass must find for exact percentiles.

    Args:
        waits: result of `histogram`.
        keys: the grouping columns.
        measures: the requested measures; intervals also need percentiles of each replication.
    """
    return percentiles.search_for(_ranked(waits, _levels(keys, measures)), waits)


def bucket_values(waits: pa.Table, keys: Sequence[str], measures: Collection[str]) -> Values:
    """Return percentiles from the histogram, at most `BUCKET_ERROR` too high.

    Args:
        waits: result of `histogram`, over the histogram's own buckets.
        keys: the grouping columns.
        measures: the requested measures; intervals also need percentiles of each replication.
    """
    ranked = _ranked(waits, _levels(keys, measures))
    return {level: percentiles.bucket_values(each, level) for level, each in ranked.items()}


def finished(
    counted: pa.Table,
    values: Values,
    keys: Sequence[str],
    measures: Collection[str],
    *,
    exact: bool,
    confidence: float,
) -> dict[str, pa.Table]:
    """Return the tables `queues`, `delays`, `losses` and, if requested, `intervals`.

    Args:
        counted: counters by these keys and replication.
        values: result of `Search.values` or `bucket_values`.
        keys: the grouping columns.
        measures: the requested measures.
        exact: whether the values are exact.
        confidence: confidence level of the intervals.
    """
    error = 0.0 if exact else BUCKET_ERROR
    figures = {
        level: percentiles.with_percentiles(counters.summed(counted, level), values[level], level, error)
        for level in values
    }
    figures = {level: with_columns(each, {"loss_ratio": counters.loss_ratios(each)}) for level, each in figures.items()}
    queues = figures[tuple(keys)]
    made = {"queues": queues, "losses": queues, "delays": queues.filter(pc.greater(queues["messages"], 0))}
    if "intervals" in measures:
        groups = [key for key in keys if key != "replication"]
        finest = figures[_levels(keys, measures)[-1]]
        made["intervals"] = intervals.intervals(intervals.measures(finest, groups), groups, confidence)
    return made


def _levels(keys: Sequence[str], measures: Collection[str]) -> list[Level]:
    """Return the groupings for which percentiles are needed: the groups, and for intervals their replications, finest
    last.
    """
    finest = (*keys, "replication") if "intervals" in measures and "replication" not in keys else tuple(keys)
    return list(dict.fromkeys([tuple(keys), finest]))


def _ranked(waits: pa.Table, levels: Sequence[Level]) -> dict[Level, pa.Table]:
    return {level: percentiles.ranks(grouped(waits, [*level, "bucket"], messages="sum"), level) for level in levels}
