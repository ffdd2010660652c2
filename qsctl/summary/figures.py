"""The figures of one run: two passes of Spark over its log, and what is computed of them here.

The first pass counts by fate and latency bucket, the second one looks at the waits of the buckets that hold a
percentile.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from qsctl.summary import counters as counting
from qsctl.summary import delay, replications
from qsctl.summary.counters import Tally
from qsctl.summary.delay import Level
from qsctl.summary.groups import grouped
from qsctl.summary.littles_law import littles_law
from qsctl.summary.log_pass import Log, go_through
from qsctl.summary.observation import Observation

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import DataFrame

FEW_CANDIDATES: Final = 20_000_000
"""So many different waits fit here, in half a gibibyte; among more, the ranks are counted down on Spark."""


@dataclass(frozen=True, slots=True)
class SecondPass:
    """How the log is read once more: as pieces, and, if there is too much to look at here, as a frame of Spark."""

    context: SparkContext
    log: Log
    frame: Callable[[], DataFrame]


def first_pass(observation: Observation, keys: Sequence[str], *, measures: Collection[str], exact: bool) -> Tally:
    """What `figures_of_messages` wants counted."""
    return Tally(observation, tuple(keys), exact, with_law="littles_law" in measures)


def figures_of_messages(
    tallied: pa.Table,
    limits: pa.Table,
    observation: Observation,
    keys: Sequence[str],
    second: SecondPass,
    *,
    measures: Collection[str],
    exact: bool,
    confidence: float,
) -> dict[str, pa.Table]:
    """The figures out of the message log.

    Args:
        tallied: of `first_pass`.
        limits: the simulator's counters, of which the marks and limits are taken.
        observation: the observed part of the run.
        keys: the columns grouped by.
        second: how the log is read for exact percentiles.
        measures: `littles_law` and `intervals` are made only if they are among them.
        exact: percentiles by a second pass.
        confidence: of the intervals.

    Returns:
        `figures` (the columns of `queues`, `losses` and `delays`), and the other two.
    """
    rows = counting.replicated(tallied, limits, observation, keys)
    levels = _levels(keys, measures)
    histograms = {level: counting.histogram(tallied, level) for level in levels}
    ranked = {level: delay.ranks(histograms[level], level) for level in levels}
    if not exact:
        values = {level: delay.bucket_values(ranked[level], level) for level in levels}
    else:
        values = _exact_values(second, histograms, ranked, observation)
    made = _finished(rows, values, keys, measures, 0.0 if exact else delay.BUCKET_ERROR, confidence)
    if "littles_law" in measures:
        made["littles_law"] = littles_law(rows, observation, keys)
    return made


def figures_of_counters(
    counters: DataFrame, keys: Sequence[str], *, measures: Collection[str], confidence: float
) -> dict[str, pa.Table]:
    """The figures out of the simulator's own counters and histograms, for a run without a message log."""
    levels = _levels(keys, measures)
    rows = counting.replicated_from_counters(counters, keys).toArrow()
    histogram = counting.histogram_from_counters(counters, levels[-1]).toArrow()
    values = {}
    for level in levels:
        merged = grouped(histogram, [*level, "bucket"], messages="sum")
        values[level] = delay.bucket_values(delay.ranks(merged, level), level)
    return _finished(rows, values, keys, measures, delay.BUCKET_ERROR, confidence)


def _levels(keys: Sequence[str], measures: Collection[str]) -> list[Level]:
    """What percentiles are of: the groups, and for intervals their replications, the finest last."""
    finest = (*keys, "replication") if "intervals" in measures and "replication" not in keys else tuple(keys)
    return list(dict.fromkeys([tuple(keys), finest]))


def _exact_values(
    second: SecondPass, histograms: Mapping[Level, pa.Table], ranked: Mapping[Level, pa.Table], seen: Observation
) -> dict[Level, pa.Table]:
    spans = delay.spans_of(ranked.values())
    cells = delay.cells_of(ranked)
    if not spans:
        return {level: delay.bucket_values(ranked[level], level) for level in ranked}
    if sum(delay.most_candidates(histograms[level], cells[level], level) for level in ranked) > FEW_CANDIDATES:
        messages = second.frame()
        return {level: delay.exact_values(messages, ranked[level], spans, seen, level).toArrow() for level in ranked}
    found = go_through(second.context, second.log, {"waits": delay.Candidates(seen, cells, tuple(spans))})["waits"]
    return {level: delay.values_among(found, ranked[level], cells[level], level) for level in ranked}


def _finished(
    rows: pa.Table,
    values: Mapping[Level, pa.Table],
    keys: Sequence[str],
    measures: Collection[str],
    error: float,
    confidence: float,
) -> dict[str, pa.Table]:
    figures = {level: delay.figures(counting.queues(rows, level), values[level], level, error) for level in values}
    made = {"figures": figures[tuple(keys)]}
    if "intervals" in measures:
        groups = [key for key in keys if key != "replication"]
        made["intervals"] = replications.intervals(
            replications.measures(list(figures.values())[-1], groups), groups, confidence
        )
    return made
