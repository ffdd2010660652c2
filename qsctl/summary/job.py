"""Summarize run folders: the only reads and writes of the pipeline, and the order of its steps.

`summarize` works on a session of the caller's; `summarize_runs`, which the commands call, starts one from options.
Spark goes through the log once for the counters and the histogram (`cells`), once for the waits at the percentiles'
ranks (`ranks`), and once for all tables over time that are asked for (`moves`). What it counted for the figures is
small and finished here (`finishing/`). What happened at the connections comes from the events, where a run has some. A
run without a message log is summarized from the simulator's counters: then percentiles come from its histograms, and
there is nothing in windows of time.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from qsctl.errors import UsageError
from qsctl.eventlog.explained import (
    merged_happenings,
    merged_replicated_queues,
    merged_verdicts,
    merged_worked_queues,
    merged_workers,
)
from qsctl.eventlog.location import Location, location
from qsctl.eventlog.reader import part_batches
from qsctl.instant import SECOND_NS, Nanoseconds
from qsctl.sim.scenario.scenario import Model
from qsctl.summary.finishing import counters as counting
from qsctl.summary.finishing import figures
from qsctl.summary.finishing.arrow import with_exact_sums
from qsctl.summary.finishing.done import cells_of_counters, times_to_done
from qsctl.summary.finishing.intervals import DEFAULT_CONFIDENCE
from qsctl.summary.log_frames import read_table
from qsctl.summary.measures import recorded_counters, tables
from qsctl.summary.measures.cells import cells
from qsctl.summary.measures.connections import connections
from qsctl.summary.measures.depth import depth
from qsctl.summary.measures.done import AcknowledgedRows, acknowledged_in, done_cells
from qsctl.summary.measures.littles_law import littles_law
from qsctl.summary.measures.moves import moves
from qsctl.summary.measures.observation import Observation, listed_numbers
from qsctl.summary.measures.ranks import waits_at_ranks
from qsctl.summary.measures.slow_subscriber import slow_subscribers, with_recorded_percentages
from qsctl.summary.measures.throughput import windows
from qsctl.summary.output import TablesOutput, output_folder
from qsctl.summary.read_rows import Passes, passes_over
from qsctl.summary.recorded_run import SummarizedRun, check_logs, holding_of, marks_of, read_run
from qsctl.summary.run_summary import RunFacts, RunSummary, in_order, queue_figures
from qsctl.summary.spark.faults import spark_faults
from qsctl.summary.spark.materialized import materialized
from qsctl.summary.spark.session import SparkOptions, spark_session, tune

DEFAULT_BY: Final = ("client", "queue")

QUICK: Final = frozenset({"queues", "delays", "times_to_done", "intervals"})
"""The measures from one pass over the log and one over some of its buckets; where messages are acknowledged, one
more.
"""

FIGURES: Final = frozenset({"queues", "delays", "times_to_done", "losses", "intervals"})
"""The measures finished from the cells: asking for one gives `queues` and `delays` too."""

SERIES: Final = frozenset({"windows", "depth"})
"""Tables in time, which grow with the run and not only with what is grouped by."""

OVER_TIME: Final = SERIES | {"littles_law", "slow_subscribers"}
"""The measures made from `moves`."""

ALL: Final = frozenset(tables.SCHEMAS)

BRIEF_BYTES: Final = 128 << 20
"""A log below this size (some five million messages) is read faster than Java's better compiler warms up."""

MOST_ROWS_SHOWN: Final = 20_000
"""Rows of a table in time that are brought to this process; more are only written to `out`."""


@dataclass(frozen=True, slots=True)
class _AskedMeasures:
    """The measures that the caller requested of each run."""

    by: tuple[str, ...]
    window_ns: Nanoseconds
    measures: frozenset[str]
    exact: bool
    confidence: float
    clients: tuple[str, ...]

    @property
    def made(self) -> frozenset[str]:
        """The tables to make: counters and delays come with whatever is finished with them."""
        return self.measures | ({"queues", "delays", "times_to_done"} if self.measures & FIGURES else frozenset())


def summarize_run(
    folder: Location,
    *,
    by: Sequence[str] = DEFAULT_BY,
    window_ns: Nanoseconds = SECOND_NS,
    measures: Collection[str] = QUICK,
    exact: bool = True,
    confidence: float = DEFAULT_CONFIDENCE,
    clients: Sequence[str] = (),
    options: SparkOptions | None = None,
    out: Location | None = None,
    most_rows: int | None = None,
) -> RunSummary:
    """Summarize one run; see `summarize_runs`."""
    return summarize_runs(
        [folder],
        by=by,
        window_ns=window_ns,
        measures=measures,
        exact=exact,
        confidence=confidence,
        clients=clients,
        options=options,
        out=out,
        most_rows=most_rows,
    )


def summarize_runs(
    folders: Sequence[Location],
    *,
    by: Sequence[str] = DEFAULT_BY,
    window_ns: Nanoseconds = SECOND_NS,
    measures: Collection[str] = QUICK,
    exact: bool = True,
    confidence: float = DEFAULT_CONFIDENCE,
    clients: Sequence[str] = (),
    options: SparkOptions | None = None,
    out: Location | None = None,
    most_rows: int | None = None,
) -> RunSummary:
    """Summarize runs as `summarize` does, on the session of this process that `options` ask for.

    `most_rows` of a table in time are brought here, `MOST_ROWS_SHOWN` where it is None.

    Raises:
        Unavailable: there is no Java for Spark. And what `summarize` raises.
    """
    asked = _checked(by, window_ns, measures, exact, confidence, tuple(clients), len(folders))
    runs = [read_run(folder) for folder in folders]
    brief = sum(run.bytes for run in runs) < BRIEF_BYTES
    spark = spark_session(options, brief=brief, runs_python=False)
    with spark_faults(lambda: check_logs(runs)):
        tune(spark, brief=brief)
        return _summary(spark, runs, asked, out, MOST_ROWS_SHOWN if most_rows is None else most_rows)


def summarize(
    spark: SparkSession,
    runs: Sequence[Location | str],
    *,
    by: Sequence[str] = DEFAULT_BY,
    window_ns: Nanoseconds = SECOND_NS,
    measures: Collection[str] = ALL,
    exact: bool = True,
    confidence: float = DEFAULT_CONFIDENCE,
    clients: Sequence[str] = (),
    out: Location | str | None = None,
) -> RunSummary:
    """Summarize runs on a session of the caller's own: in a notebook, under `spark-submit`, on Spark Connect.

    The session's settings stay as they are, and the figures do not depend on them.

    Args:
        spark: any session of Spark 4.
        runs: run folders; several are grouped by run as well, whatever `by` is.
        by: words of `tables.KEYS`: the grouping of the figures.
        window_ns: the length of the windows of throughput and depth.
        measures: names of `tables.SCHEMAS`, at least one.
        exact: percentiles by a second pass over the log; else from the histogram, with its stated error.
        confidence: of the intervals over replications.
        clients: names; only their messages count. All when empty.
        out: a folder for the tables as Parquet, one subfolder each. They are written beside and renamed at the end:
            a reader sees the earlier tables or the new ones.

    Raises:
        NotFound: a folder is not a run folder.
        UsageError: an unknown word in `by` or `measures`, or a window that is not positive.
        Damaged: a file of the run cannot be read, or a sum does not fit in 64 bits.
        InvalidInput: `out` cannot be written, or another command is writing it.
    """
    asked = _checked(by, window_ns, measures, exact, confidence, tuple(clients), len(runs))
    found = [read_run(location(run)) for run in runs]
    with spark_faults(lambda: check_logs(found)):
        return _summary(spark, found, asked, None if out is None else location(out))


def _summary(
    spark: SparkSession,
    runs: Sequence[SummarizedRun],
    asked: _AskedMeasures,
    out: Location | None,
    most_rows: int = MOST_ROWS_SHOWN,
) -> RunSummary:
    collected: dict[str, list[pa.Table]] = {}
    labels = _labels(runs)
    rows_to_read = sum(run.message_rows * _passes_of(run, asked) for run in runs)
    with output_folder(out) as output, passes_over(spark, rows_to_read) as passes:
        for run, label in zip(runs, labels, strict=True):
            for name, table in _tables_of_run(spark, run, label, asked, output, most_rows, passes):
                collected.setdefault(name, []).append(table)
    rows, notes = {}, []
    for name, parts in sorted(collected.items()):
        if name in SERIES and sum(part.num_rows for part in parts) > most_rows:
            where = f"it is whole in {out / name}" if out is not None else "write it to files with --out"
            notes.append(f"The table {name} has more than {most_rows} rows: {where}.")
            continue
        rows[name] = [row for part in parts for row in in_order(part.to_pylist())]
    if any(not run.has_messages for run in runs):
        notes.append("There is no message log: percentiles are from histograms, and there are no tables in time.")
    if not all(run.info.complete for run in runs):
        notes.append("The run was interrupted: these are the figures of its finished part.")
    notes += [
        f"{run.folder.name} has rows of {run.info.recording.sample_share:.4g} of the samples, by a hash of their "
        "identity: counts, rates and lengths are of these, ratios and percentiles are estimates. The counters of the "
        "run are of all samples."
        for run in runs
        if run.info.recording and run.info.recording.sample_share < 1 and run.has_messages
    ]
    first = runs[0]
    replications = [each for run in runs for each in run.info.done]
    return RunSummary(
        runs=tuple(str(run.folder) for run in runs),
        facts=tuple(_facts(run, label) for run, label in zip(runs, labels, strict=True)),
        by=asked.by,
        complete=all(run.info.complete for run in runs),
        level=first.level,
        warm_up_ns=first.warm_up_ns,
        horizon_ns=first.horizon_ns,
        replications=max(len(run.replications) for run in runs),
        window_ns=asked.window_ns,
        queues=queue_figures(rows.pop("queues", []), rows.get("delays", []), rows.get("times_to_done", [])),
        tables={name: table for name, table in rows.items() if name in asked.measures},
        notes=tuple(notes),
        happenings=merged_happenings(replications),
        replicated_queues=merged_replicated_queues(replications),
        verdicts=merged_verdicts(replications),
        worked_queues=merged_worked_queues(replications),
        workers=merged_workers(replications),
    )


def _passes_of(run: SummarizedRun, asked: _AskedMeasures) -> int:
    """Return how often Spark goes through the log of a run, as `_tables_of_run` begins passes."""
    if not run.has_messages:
        return 0
    figures_of = (1 + asked.exact) if asked.measures & FIGURES else 0
    return figures_of + bool(asked.measures & OVER_TIME)


def _labels(runs: Sequence[SummarizedRun]) -> list[str]:
    """Return each run's name in the column `run_id`: its id, and its folder's name where several have the same id."""
    ids = [run.info.run_id for run in runs]
    labels: list[str] = []
    for run in runs:
        label = run.info.run_id if ids.count(run.info.run_id) == 1 else f"{run.info.run_id} {run.folder.name}"
        labels.append(f"{label} {len(labels) + 1}" if label in labels else label)
    return labels


def _facts(run: SummarizedRun, label: str) -> RunFacts:
    return RunFacts(
        run_id=label,
        folder=str(run.folder),
        scenario=run.info.scenario,
        seed=run.info.seed,
        complete=run.info.complete,
        level=run.level,
        warm_up_ns=run.warm_up_ns,
        horizon_ns=run.horizon_ns,
        replications=len(run.replications),
    )


def _tables_of_run(
    spark: SparkSession,
    run: SummarizedRun,
    label: str,
    asked: _AskedMeasures,
    output: TablesOutput | None,
    most_rows: int,
    passes: Passes,
) -> Iterator[tuple[str, pa.Table]]:
    """Return the tables of one run by name, each written as it is made; of a long one in time, the beginning."""
    if not run.has_messages and "topic" in asked.by:
        raise UsageError(
            "--by topic needs a message log", remedy="Simulate with --level messages, or leave the topic out."
        )
    keys = tables.key_columns(asked.by)
    measures = asked.measures if len(run.replications) > 1 else asked.measures - {"intervals"}
    marks = marks_of(run, label)
    names = dict(zip(marks["client_id"].to_pylist(), marks["client"].to_pylist(), strict=True))
    numbers = [number for number, name in names.items() if name in asked.clients]
    chosen = f"client_id in ({listed_numbers(numbers)})" if numbers else "false" if asked.clients else "true"
    if asked.clients:
        marks = marks.filter(pc.is_in(marks["client_id"], pa.array(numbers, marks["client_id"].type)))
    acknowledged = acknowledged_in(marks, comes_back=run.info.model == Model.INTEGRATION)
    if measures & FIGURES:
        if run.has_messages:
            messages = read_table(spark, run, label, "messages").where(chosen)
            made = _figures_of_messages(messages, run, marks, keys, measures, asked, passes)
            observation = Observation(run.warm_up_ns, run.horizon_ns)
            if acknowledged.anywhere:
                done = with_exact_sums(done_cells(messages, observation, keys, acknowledged).toArrow())
                made["times_to_done"] = times_to_done(done, keys)
            passes.end()
        else:
            counters = read_table(spark, run, label, "counters").where(chosen)
            made = _figures_of_counters(counters, keys, measures, asked)
            made["times_to_done"] = times_to_done(cells_of_counters(_counters_here(run, label, asked, numbers)), keys)
        for name in sorted(made.keys() & asked.made):
            table = tables.arranged(made[name], tables.SCHEMAS[name], asked.by, names, label)
            if output is not None:
                output.write(name, spark.createDataFrame(table).coalesce(1), tables.SCHEMAS[name])
            yield name, table
    if run.has_messages:
        messages = read_table(spark, run, label, "messages").where(chosen)
        clients = pa.table({"client_id": pa.array(names, pa.int32()), "client": pa.array(names.values(), pa.string())})
        if measures & OVER_TIME:
            passes.begin(run.message_rows)
        frames = _frames_of_messages(spark, messages, run, label, keys, measures, asked, acknowledged)
        if "connections" in measures and run.has_slow_percentages:
            events = read_table(spark, run, label, "events").where(chosen)
            of_client = [key for key in keys if key == "client_id"]
            made_of_events = connections(events, Observation(run.warm_up_ns, run.horizon_ns), of_client)
            frames = itertools.chain(frames, [("connections", made_of_events)])
        for name, frame in frames:
            shaped = tables.shaped(frame, tables.SCHEMAS[name], asked.by, spark.createDataFrame(clients), label)
            if output is not None:
                shaped = output.write(name, shaped, tables.SCHEMAS[name])
            yield name, shaped.limit(most_rows + 1).toArrow() if name in SERIES else shaped.toArrow()
        passes.end()


def _counters_here(run: SummarizedRun, label: str, asked: _AskedMeasures, numbers: Sequence[int]) -> pa.Table:
    """Return the counters of the chosen clients: their files are small, and read in this process."""
    batches = [
        batch for part in run.parts["counters"] for batch in part_batches(part.path, part.replication, "counters")
    ]
    rows = pa.Table.from_batches(batches)
    if asked.clients:
        rows = rows.filter(pc.is_in(rows["client_id"], pa.array(numbers, pa.int32())))
    at = rows.column_names.index("run_id")
    return rows.set_column(at, "run_id", pa.array([label] * rows.num_rows, pa.string()))


def _figures_of_messages(
    messages: DataFrame,
    run: SummarizedRun,
    marks: pa.Table,
    keys: Sequence[str],
    measures: Collection[str],
    asked: _AskedMeasures,
    passes: Passes,
) -> dict[str, pa.Table]:
    observation = Observation(run.warm_up_ns, run.horizon_ns)
    passes.begin(run.message_rows)
    found = with_exact_sums(cells(messages, observation, keys, exact=asked.exact).toArrow())
    counted = counting.counted(found, marks, keys, run.replications, observation.observed_ns)
    waits = figures.histogram(found, keys)
    if asked.exact:
        passes.begin(run.message_rows)
        search = figures.search(waits, keys, measures)
        spark = messages.sparkSession
        places, wanted = spark.createDataFrame(search.places), spark.createDataFrame(search.wanted)
        ranked = waits_at_ranks(messages, places, wanted, observation, keys, search.spans)
        values: figures.Values = search.values(ranked.toArrow())
    else:
        values = figures.bucket_values(waits, keys, measures)
    return figures.finished(counted, values, keys, measures, exact=asked.exact, confidence=asked.confidence)


def _figures_of_counters(
    counters: DataFrame, keys: Sequence[str], measures: Collection[str], asked: _AskedMeasures
) -> dict[str, pa.Table]:
    counted = with_exact_sums(recorded_counters.recorded(counters, keys).toArrow())
    waits = recorded_counters.histogram(counters, keys).toArrow()
    values = figures.bucket_values(waits, keys, measures)
    return figures.finished(counted, values, keys, measures, exact=False, confidence=asked.confidence)


def _frames_of_messages(
    spark: SparkSession, messages: DataFrame, run: SummarizedRun, label: str, keys: Sequence[str],
    measures: frozenset[str], asked: _AskedMeasures, acknowledged: AcknowledgedRows,
) -> Iterator[tuple[str, DataFrame]]:  # fmt: skip
    """Return the tables that Spark finishes by itself: one row a window or client."""
    over_time = measures & OVER_TIME
    if not over_time:
        return
    observation = Observation(run.warm_up_ns, run.horizon_ns)
    moved = moves(messages, observation, keys, asked.window_ns, holding_of(run), acknowledged)
    if len(over_time) > 1:
        moved = materialized(moved)
    if "littles_law" in over_time:
        yield "littles_law", littles_law(moved, observation, keys)
    if "slow_subscribers" in over_time:
        of_client = [key for key in keys if key == "client_id"]
        slow = slow_subscribers(moved, observation, of_client)
        if run.has_slow_percentages and "client_id" in of_client:
            slow = with_recorded_percentages(slow, read_table(spark, run, label, "events"), observation)
        yield "slow_subscribers", slow
    if over_time & SERIES:
        in_windows = windows(moved, keys, asked.window_ns)
        if "windows" in over_time:
            yield "windows", in_windows
        if "depth" in over_time:
            yield "depth", depth(in_windows, keys)


def _checked(
    by: Sequence[str],
    window_ns: Nanoseconds,
    measures: Collection[str],
    exact: bool,
    confidence: float,
    clients: tuple[str, ...],
    run_count: int,
) -> _AskedMeasures:
    if run_count == 0:
        raise UsageError("no run is named", remedy="Name a run folder, as `qsctl simulate` prints it.")
    unknown = [word for word in by if word not in tables.KEYS]
    if unknown or not by:
        raise UsageError(
            f"--by {','.join(by)!r}: {unknown[0] if unknown else 'nothing'!r} cannot be grouped by",
            remedy=f"Use some of {', '.join(tables.KEYS)}, separated by commas.",
        )
    strange = sorted(set(measures) - ALL)
    if strange or not measures:
        raise UsageError(
            f"there is no measure {(strange or [''])[0]!r}", remedy=f"Use some of {', '.join(sorted(ALL))}."
        )
    if window_ns <= 0:
        raise UsageError("a window must be longer than nothing", remedy="Write it as in --window 1s.")
    if not 0.0 < confidence < 1.0:
        raise UsageError(f"a confidence of {confidence} is not inside 0 and 1", remedy="Write it as in 0.95.")
    words = tuple(dict.fromkeys([*(["run"] if run_count > 1 else []), *by]))
    return _AskedMeasures(words, window_ns, frozenset(measures), exact, confidence, clients)
