"""The tables of many runs as DataFrames for programs, with any number of rows, none of which is collected."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from qsctl.eventlog.location import Location, location
from qsctl.instant import SECOND_NS, Nanoseconds
from qsctl.summary._batch_tables import FramesOfBatch, figures_of
from qsctl.summary._engine import SummaryEngine
from qsctl.summary._run_batch import batches_of, facts_of, labels_of
from qsctl.summary.asked_measures import ALL, DEFAULT_BY, FIGURES, AskedMeasures, checked_measures
from qsctl.summary.finishing.intervals import DEFAULT_CONFIDENCE
from qsctl.summary.measures import tables
from qsctl.summary.read_rows import Passes
from qsctl.summary.recorded_run import SummarizedRun, check_logs, read_these
from qsctl.summary.spark.engine import SparkEngine
from qsctl.summary.spark.faults import spark_faults

RUNS: Final = "runs"
"""The table of the runs' facts."""


class SummaryFrames(Mapping[str, DataFrame]):
    """The tables of a summary of all runs by name, each a DataFrame with a column `run_id`.

    `runs` has the facts of each run, for joins. The tables over time, `littles_law`, `slow_subscribers` and
    `connections` are computed when their frame is used, in one plan from the logs. The figures (`queues`, `delays`,
    `times_to_done`, `losses`, `intervals`) are computed together when the first of their frames is requested, since
    percentiles need two passes over the logs, of which the first locates the ranks for the second. They are few rows.

    Attributes:
        skipped: a sentence for each damaged run that was omitted.
    """

    def __init__(
        self,
        engine: SummaryEngine,
        runs: Sequence[SummarizedRun],
        asked: AskedMeasures,
        skipped: tuple[str, ...],
        *,
        share_moves: bool,
    ) -> None:
        self.skipped = skipped
        self._engine = engine
        self._runs = runs
        self._asked = asked
        labels = labels_of(runs)
        self._facts = facts_of(runs, labels)
        self._batches = batches_of(runs, labels, asked.clients)
        self._of_spark = {
            name: frames
            for batch in self._batches
            if batch.has_messages
            for frames in [FramesOfBatch(self._engine, batch, asked, share_moves=share_moves)]
            for name in frames.names
        }
        has_intervals = any(len(run.replications) > 1 for run in runs)
        figures = (asked.measures & FIGURES) - (frozenset() if has_intervals else {"intervals"})
        self._names = (RUNS, *(name for name in tables.SCHEMAS if name in figures or name in self._of_spark))

    def __getitem__(self, name: str) -> DataFrame:
        """Return a table by name.

        Raises:
            KeyError: the table was not requested, or no run has it.
            Damaged: a file of a run cannot be read, or a sum of the figures does not fit in 64 bits.
            UsageError: figures by topic are requested for runs without message logs.
        """
        if name not in self._names:
            raise KeyError(name)
        if name in self._of_spark:
            return self._of_spark[name].frame(name)
        table = self._facts if name == RUNS else self._figures[name]
        return self._engine.frame(table)

    def __iter__(self) -> Iterator[str]:
        """Return the names of the tables."""
        return iter(self._names)

    def __len__(self) -> int:
        """Return the number of tables."""
        return len(self._names)

    @cached_property
    def _figures(self) -> dict[str, pa.Table]:
        parts: dict[str, list[pa.Table]] = {}
        with spark_faults(lambda: check_logs(self._runs)):
            for batch in self._batches:
                for name, table in figures_of(self._engine, batch, self._asked, Passes(None)).items():
                    parts.setdefault(name, []).append(table)
        return {name: pa.concat_tables(tables_of) for name, tables_of in parts.items()}


def summary_frames(
    spark: SparkSession,
    runs: Sequence[Location | str],
    *,
    by: Sequence[str] = DEFAULT_BY,
    window_ns: Nanoseconds = SECOND_NS,
    measures: Collection[str] = ALL,
    exact: bool = True,
    confidence: float = DEFAULT_CONFIDENCE,
    clients: Sequence[str] = (),
    skip_damaged: bool = False,
    share_moves: bool = False,
) -> SummaryFrames:
    """Return the tables of `summarize` as DataFrames, for a program that joins them or writes them elsewhere.

    It works on any session, including Spark Connect, and changes none of its settings.

    Args:
        spark: any session of Spark 4.
        runs: run folders, by path or URI; each is a group of its own.
        by: grouping of the figures, by words of `tables.KEYS`.
        window_ns: the length of the windows of throughput and depth.
        measures: names of `tables.SCHEMAS`, at least one.
        exact: compute percentiles by a second pass over the log; else from the histogram, with its stated error.
        confidence: confidence level of the intervals over replications.
        clients: names of the clients whose messages count; empty: all.
        skip_damaged: omit runs whose damage is found before Spark reads the logs: in `run.json`, counters, sizes and
            footers. A changed page is an error of the frame that reads it.
        share_moves: scan the logs once for all tables over time, when the first of their frames is requested, and keep
            the movements in Spark while a frame refers to them. Else each of these frames scans the logs when it is
            used.

    Raises:
        NotFound: a folder is not a run folder.
        UsageError: an unknown word in `by` or `measures`, no run, or a window that is not positive.
        Damaged: a file of a run cannot be read.
    """
    asked = checked_measures(by, window_ns, measures, exact, confidence, tuple(clients), len(runs), names_runs=True)
    found, skipped = read_these([location(run) for run in runs], skip_damaged=skip_damaged)
    return SummaryFrames(SparkEngine(spark), found, asked, skipped, share_moves=share_moves)
