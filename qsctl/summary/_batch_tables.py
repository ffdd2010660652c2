"""The tables of a batch of runs: the order of the steps, from frames of logs to tables with declared schemas.

Spark scans the logs once for the counters and the histogram (`cells`), once for the waits at the percentiles' ranks
(`ranks`), and once for all requested tables over time (`moves`), for all runs of the batch together. The results for
the figures are small and completed in this process (`finishing/`). Connection events come from the event table, of runs
that have one. Runs without a message log are summarized from the simulator's counters: percentiles then come from its
histograms, and tables over time are empty.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from qsctl.errors import UsageError
from qsctl.summary._engine import SummaryEngine
from qsctl.summary._run_batch import RunBatch
from qsctl.summary.asked_measures import FIGURES, OVER_TIME, AskedMeasures
from qsctl.summary.finishing import counters as counting
from qsctl.summary.finishing import figures
from qsctl.summary.finishing.arrow import with_exact_sums
from qsctl.summary.finishing.changes import changes
from qsctl.summary.finishing.done import cells_of_counters, times_to_done
from qsctl.summary.measures import recorded_counters, tables
from qsctl.summary.measures.blocks import blocks, blocks_of
from qsctl.summary.measures.by_run import RUN_NUMBER, by_run
from qsctl.summary.measures.cells import cells
from qsctl.summary.measures.connections import connections
from qsctl.summary.measures.depth import depth
from qsctl.summary.measures.done import done_cells
from qsctl.summary.measures.littles_law import littles_law
from qsctl.summary.measures.moves import moves
from qsctl.summary.measures.ranks import waits_at_ranks
from qsctl.summary.measures.slow_subscriber import slow_subscribers, with_recorded_percentages
from qsctl.summary.measures.throughput import windows
from qsctl.summary.read_rows import Passes

MADE_BY_SPARK: Final = ("littles_law", "slow_subscribers", "windows", "depth", "changes", "connections")
"""The tables returned as frames, in the order of their computation; Spark computes all but `changes` completely."""


def figures_of(engine: SummaryEngine, batch: RunBatch, asked: AskedMeasures, passes: Passes) -> dict[str, pa.Table]:
    """Return the requested tables of figures by name, in their declared schemas; empty if none is requested.

    Raises:
        UsageError: figures by topic are requested for runs without message logs.
        Damaged: a file of counters cannot be read, or a sum does not fit in 64 bits.
    """
    if not batch.has_messages and "topic" in asked.by:
        raise UsageError(
            "--by topic needs a message log", remedy="Simulate with --level messages, or leave the topic out."
        )
    if not asked.measures & FIGURES:
        return {}
    has_intervals = any(len(run.replications) > 1 for run in batch.runs)
    if not has_intervals:
        asked = dataclasses.replace(asked, measures=asked.measures - {"intervals"})
    keys = tables.key_columns(asked.by, several=batch.several)
    made = (_of_messages if batch.has_messages else _of_counters)(engine, batch, keys, asked, passes)
    if "intervals" in made and batch.several:
        alone = [number for number, run in enumerate(batch.runs) if len(run.replications) == 1]
        of_one = pc.is_in(made["intervals"][RUN_NUMBER], pa.array(alone, pa.int32()))
        made["intervals"] = made["intervals"].filter(pc.invert(of_one))
    return {
        name: tables.arranged(made[name], tables.SCHEMAS[name], asked.by, batch.names)
        for name in sorted(made.keys() & asked.made)
    }


def _of_messages(
    engine: SummaryEngine, batch: RunBatch, keys: Sequence[str], asked: AskedMeasures, passes: Passes
) -> dict[str, pa.Table]:
    messages = engine.read(batch.runs, "messages").where(batch.chosen)
    observation = batch.observation
    passes.begin(batch.message_rows)
    found = with_exact_sums(cells(messages, observation, keys, exact=asked.exact).toArrow())
    counted = counting.counted(found, batch.marks, keys, batch.replications)
    waits = figures.histogram(found, keys)
    if asked.exact:
        passes.begin(batch.message_rows)
        search = figures.search(waits, keys, asked.measures)
        places, wanted = engine.frame(search.places), engine.frame(search.wanted)
        ranked = waits_at_ranks(messages, places, wanted, observation, keys, search.spans)
        values: figures.Values = search.values(ranked.toArrow())
    else:
        values = figures.bucket_values(waits, keys, asked.measures)
    made = figures.finished(counted, values, keys, asked.measures, exact=asked.exact, confidence=asked.confidence)
    acknowledged = batch.acknowledged
    if acknowledged.anywhere:
        done = with_exact_sums(done_cells(messages, observation, keys, acknowledged).toArrow())
        made["times_to_done"] = times_to_done(done, keys)
    passes.end()
    return made


def _of_counters(
    engine: SummaryEngine, batch: RunBatch, keys: Sequence[str], asked: AskedMeasures, _: Passes
) -> dict[str, pa.Table]:
    counters = engine.read(batch.runs, "counters").where(batch.chosen)
    counted = with_exact_sums(recorded_counters.recorded(counters, keys).toArrow())
    waits = recorded_counters.histogram(counters, keys).toArrow()
    values = figures.bucket_values(waits, keys, asked.measures)
    made = figures.finished(counted, values, keys, asked.measures, exact=False, confidence=asked.confidence)
    made["times_to_done"] = times_to_done(cells_of_counters(batch.counters()), keys)
    return made


class FramesOfBatch:
    """The tables that Spark computes completely, as lazily computed frames.

    Args:
        engine: computes the frames.
        batch: runs with message logs.
        asked: the requested measures.
        share_moves: compute the movements once for all tables over time, when the first is requested; else each table
            scans the logs when it is computed.
    """

    def __init__(self, engine: SummaryEngine, batch: RunBatch, asked: AskedMeasures, *, share_moves: bool) -> None:
        self._engine = engine
        self._batch = batch
        self._asked = asked
        self._share_moves = share_moves and len(asked.measures & OVER_TIME) > 1
        self._keys = tables.key_columns(asked.by, several=batch.several)
        of_client = {RUN_NUMBER, "client_id"} if batch.several else {"client_id"}
        self._of_client = [key for key in self._keys if key in of_client]
        # Grouped by neither clients nor topics: the blocks of 100,000 clients would not fit in this process.
        self._of_queue = [key for key in self._keys if key in {RUN_NUMBER, "replication", "queue"}]

    def __iter__(self) -> Iterator[tuple[str, DataFrame]]:
        """Yield the name and the frame of each requested table that these runs have."""
        for name in self.names:
            yield name, self.frame(name)

    @property
    def names(self) -> list[str]:
        """The names of the requested tables that these runs have."""
        made: list[str] = [name for name in MADE_BY_SPARK if name in self._asked.measures]
        return made if self._with_events else [name for name in made if name != "connections"]

    def frame(self, name: str) -> DataFrame:
        """Return a table of `MADE_BY_SPARK` as a frame in its declared schema; `connections` needs a run with
        events.
        """
        return tables.shaped(self._made(name), tables.SCHEMAS[name], self._asked.by, self._batch.names)

    def _made(self, name: str) -> DataFrame:
        match name:
            case "littles_law":
                return littles_law(self._moves, self._batch.observation, self._keys)
            case "slow_subscribers":
                return self._slow_subscribers()
            case "windows":
                return self._windows
            case "depth":
                return depth(self._windows, self._keys)
            case "changes":
                return self._changes()
            case _:
                return connections(self._events, self._batch.observation, self._of_client)

    @cached_property
    def _moves(self) -> DataFrame:
        batch = self._batch
        messages = self._engine.read(batch.runs, "messages").where(batch.chosen)
        moved = moves(messages, batch.observation, self._keys, self._asked.window_ns, batch.holding, batch.acknowledged)
        return self._engine.materialized(moved) if self._share_moves else moved

    @property
    def _windows(self) -> DataFrame:
        return windows(self._moves, self._keys, self._asked.window_ns)

    def _changes(self) -> DataFrame:
        # A series is some dozens of numbers, whatever the run's length: they are compared in this process.
        of_runs = blocks_of(self._batch.observation, self._asked.window_ns)
        found = blocks(self._windows, self._of_queue, of_runs).toArrow()
        return self._engine.frame(changes(found, self._of_queue, of_runs))

    def _slow_subscribers(self) -> DataFrame:
        slow = slow_subscribers(self._moves, self._batch.observation, self._of_client)
        if not self._with_events or "client_id" not in self._of_client:
            return slow
        has_recorded = by_run([str(run.has_slow_percentages).lower() for run in self._batch.runs])
        return with_recorded_percentages(slow, self._events, self._batch.observation, self._of_client, has_recorded)

    @property
    def _with_events(self) -> bool:
        return any(run.has_slow_percentages for run in self._batch.runs)

    @property
    def _events(self) -> DataFrame:
        """The events of the chosen clients, from the runs that record slow-subscriber percentages; other models have
        other events.
        """
        has_recorded = by_run([str(run.has_slow_percentages).lower() for run in self._batch.runs])
        events = self._engine.read(self._batch.runs, "events")
        return events.where(f"{has_recorded} and {self._batch.chosen}")
