"""Summaries of run folders: from runs to the rows of a summary, and to tables in a folder.

`summarize` uses a session of the caller; `summarize_runs`, which the commands call, starts one from options. Runs with
a message log are one plan of Spark, and those without are another: `_batch_tables.py` has the order of its steps.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import pyarrow as pa
from pyspark.sql import SparkSession

from qsctl.errors import Damaged, UsageError
from qsctl.eventlog.explained import (
    merged_happenings,
    merged_replicated_queues,
    merged_verdicts,
    merged_worked_queues,
    merged_workers,
)
from qsctl.eventlog.location import Location, location
from qsctl.instant import SECOND_NS, Nanoseconds
from qsctl.summary._batch_tables import FramesOfBatch, figures_of
from qsctl.summary._engine import SummaryEngine
from qsctl.summary._output import TablesOutput, output_folder, partitions_of
from qsctl.summary._run_batch import RunBatch, batches_of, facts_of, labels_of
from qsctl.summary.asked_measures import (
    ALL,
    DEFAULT_BY,
    FIGURES,
    OVER_TIME,
    QUICK,
    SERIES,
    AskedMeasures,
    checked_measures,
)
from qsctl.summary.finishing.intervals import DEFAULT_CONFIDENCE
from qsctl.summary.local.engine import local_engine
from qsctl.summary.measures import tables
from qsctl.summary.read_rows import Passes, passes_over
from qsctl.summary.recorded_run import SummarizedRun, check_logs, read_these, without_damaged
from qsctl.summary.run_summary import RunFacts, RunSummary, in_order, queue_figures
from qsctl.summary.spark.engine import SparkEngine
from qsctl.summary.spark.faults import spark_faults
from qsctl.summary.spark.session import SparkOptions, spark_session, tune

BRIEF_BYTES: Final = 128 << 20
"""Size of logs (some five million messages) below which reading takes less time than warming up Java's better
compiler.
"""

LOCAL_BYTES: Final = 8 << 30
"""Largest size of logs that are summarized in this process: 10^8 messages (5.1 GB) in 99 s and 0.6 GB on two
processors.
"""

MOST_ROWS_SHOWN: Final = 20_000
"""Largest number of rows of a table over time that are collected; further rows are only written to `out`."""


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
    """Summarize one run; arguments as for `summarize_runs`."""
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
    append: bool = False,
    skip_damaged: bool = False,
) -> RunSummary:
    """Summarize runs as `summarize` does, on this process's session with these options.

    At most `most_rows` rows of each table over time are returned; `MOST_ROWS_SHOWN` if it is None.

    Without options, local files are summarized in this process, without Java, up to `LOCAL_BYTES` of logs; the figures
    are the same. Appended tables are written by Spark.

    Raises:
        Unavailable: Spark is needed, and no Java is installed. Other errors as for `summarize`.
    """
    _require_folder(out, append=append)
    asked = checked_measures(
        by, window_ns, measures, exact, confidence, tuple(clients), len(folders), names_runs=append
    )
    runs, skipped = read_these(folders, skip_damaged=skip_damaged)
    shown = MOST_ROWS_SHOWN if most_rows is None else most_rows
    summary = partial(_summary, asked=asked, out=out, most_rows=shown, append=append)
    if append:
        return _on_spark(_spark_engine(runs, options), runs, skipped, summary, skip_damaged=skip_damaged)
    return computed(runs, skipped, summary, options=options, skip_damaged=skip_damaged, out=out)


_Computed = TypeVar("_Computed")


def computed(
    runs: Sequence[SummarizedRun],
    skipped: tuple[str, ...],
    compute: Callable[[SummaryEngine, Sequence[SummarizedRun], tuple[str, ...]], _Computed],
    *,
    options: SparkOptions | None,
    skip_damaged: bool,
    out: Location | None = None,
) -> _Computed:
    """Return the result of `compute` for some runs, on the engine that `summarize_runs` would choose.

    Args:
        runs: all runs.
        skipped: a sentence for each run that was omitted before.
        compute: called with the engine, the undamaged runs, and the sentences for all others.
        options: settings of Spark; None: compute in this process, if possible.
        skip_damaged: omit damaged runs; else they are an error.
        out: folder to which `compute` writes tables.

    Raises:
        Unavailable: Spark is needed, and no Java is installed.
        Damaged: a run is damaged without `skip_damaged`, or all are.
    """
    if not _is_for_this_process(runs, options, out):
        return _on_spark(_spark_engine(runs, options), runs, skipped, compute, skip_damaged=skip_damaged)
    # DuckDB does not verify the checksums of pages.
    whole, damaged = without_damaged(runs) if skip_damaged else ([], ())
    if not whole:
        check_logs(runs)
        whole, damaged = list(runs), ()
    with local_engine() as engine:
        return compute(engine, whole, (*skipped, *damaged))


def _on_spark(
    engine: SparkEngine,
    runs: Sequence[SummarizedRun],
    skipped: tuple[str, ...],
    compute: Callable[[SummaryEngine, Sequence[SummarizedRun], tuple[str, ...]], _Computed],
    *,
    skip_damaged: bool,
) -> _Computed:
    """Return the result of `compute` on Spark; on a damaged page with `skip_damaged`, the result for the undamaged
    runs.
    """
    try:
        with spark_faults(lambda: check_logs(runs)):
            return compute(engine, runs, skipped)
    except Damaged:
        if not skip_damaged:
            raise
        whole, damaged = without_damaged(runs)
        if not damaged or not whole:
            raise
    with spark_faults(lambda: check_logs(whole)):
        return compute(engine, whole, (*skipped, *damaged))


def _is_for_this_process(runs: Sequence[SummarizedRun], options: SparkOptions | None, out: Location | None) -> bool:
    """Return whether DuckDB computes: Spark is not requested, and all inputs and outputs are local."""
    here = all(isinstance(place, Path) for place in (*(run.folder for run in runs), out or Path()))
    return options is None and here and sum(run.bytes for run in runs) <= LOCAL_BYTES


def _spark_engine(runs: Sequence[SummarizedRun], options: SparkOptions | None) -> SparkEngine:
    """Return an engine on this process's session with these options, tuned for the size of the logs."""
    brief = sum(run.bytes for run in runs) < BRIEF_BYTES
    spark = spark_session(options, brief=brief, runs_python=False)
    with spark_faults():
        tune(spark, brief=brief)
    return SparkEngine(spark)


def _require_folder(out: Location | str | None, *, append: bool) -> None:
    """Raise an error for `append` without a folder, before anything is read or started."""
    if append and out is None:
        raise UsageError("runs are added to the tables of a folder, and none is named", remedy="Name it with --out.")


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
    append: bool = False,
    skip_damaged: bool = False,
) -> RunSummary:
    """Summarize runs on a session of the caller: in a notebook, under `spark-submit`, on Spark Connect.

    The session's settings stay as they are, and the figures do not depend on them.

    Args:
        spark: any session of Spark 4.
        runs: run folders; several are always also grouped by run.
        by: grouping of the figures, by words of `tables.KEYS`.
        window_ns: the length of the windows of throughput and depth.
        measures: names of `tables.SCHEMAS`, at least one.
        exact: compute percentiles by a second pass over the log; else from the histogram, with its stated error.
        confidence: confidence level of the intervals over replications.
        clients: names of the clients whose messages count; empty: all.
        out: a folder for the tables as Parquet, with a subfolder for each. They are written under temporary names and
            renamed at the end, so that a reader sees either the earlier tables or the new ones.
        append: add the runs to the tables in `out`, each as a partition by date, scenario and run; the same run again
            replaces its own partitions and nothing else.
        skip_damaged: omit damaged runs, which `notes` lists; else they are an error.

    Raises:
        NotFound: a folder is not a run folder.
        UsageError: an unknown word in `by` or `measures`, a window that is not positive, or `append` with no folder, or
            with two folders of one run.
        Damaged: a file of the run cannot be read, or a sum does not fit in 64 bits.
        InvalidInput: `out` cannot be written, another command is writing it, or it has tables of the other kind, which
            are replaced or appended to.
    """
    _require_folder(out, append=append)
    asked = checked_measures(by, window_ns, measures, exact, confidence, tuple(clients), len(runs), names_runs=append)
    found, skipped = read_these([location(run) for run in runs], skip_damaged=skip_damaged)
    place = None if out is None else location(out)
    summary = partial(_summary, asked=asked, out=place, most_rows=MOST_ROWS_SHOWN, append=append)
    return _on_spark(SparkEngine(spark), found, skipped, summary, skip_damaged=skip_damaged)


def _summary(
    engine: SummaryEngine,
    runs: Sequence[SummarizedRun],
    skipped: tuple[str, ...],
    *,
    asked: AskedMeasures,
    out: Location | None,
    most_rows: int,
    append: bool,
) -> RunSummary:
    labels = labels_of(runs)
    facts = facts_of(runs, labels)
    batches = batches_of(runs, labels, asked.clients)
    rows_to_read = sum(batch.message_rows * _passes_of(batch, asked) for batch in batches)
    collected: dict[str, list[pa.Table]] = {}
    with (
        output_folder(out, engine, partitions_of(engine, facts) if append else None) as output,
        passes_over(engine.fraction, rows_to_read) as passes,
    ):
        if output is not None:
            output.write("runs", engine.frame(facts), tables.RUNS)
        for batch in batches:
            for name, table in _tables_of_batch(engine, batch, asked, output, most_rows, passes):
                collected.setdefault(name, []).append(table)
    places = {label: place for place, label in enumerate(labels)}
    rows: dict[str, list[dict[str, Any]]] = {}
    notes = list(skipped)
    for name, parts in sorted(collected.items()):
        if name in SERIES and sum(part.num_rows for part in parts) > most_rows:
            where = f"it is whole in {out / name}" if out is not None else "write it to files with --out"
            notes.append(f"The table {name} has more than {most_rows} rows: {where}.")
            continue
        found = in_order([row for part in parts for row in part.to_pylist()])
        rows[name] = sorted(found, key=lambda row: places.get(row["run_id"], 0))
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


def _passes_of(batch: RunBatch, asked: AskedMeasures) -> int:
    """Return the number of passes over the logs of a batch; must agree with `_tables_of_batch`."""
    if not batch.has_messages:
        return 0
    figures_of = (1 + asked.exact) if asked.measures & FIGURES else 0
    return figures_of + bool(asked.measures & OVER_TIME)


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


def _tables_of_batch(
    engine: SummaryEngine,
    batch: RunBatch,
    asked: AskedMeasures,
    output: TablesOutput | None,
    most_rows: int,
    passes: Passes,
) -> Iterator[tuple[str, pa.Table]]:
    """Yield the tables of a batch by name, each after it is written; of a table over time only the first rows."""
    for name, table in figures_of(engine, batch, asked, passes).items():
        if output is not None:
            output.write(name, engine.frame(table), tables.SCHEMAS[name])
        yield name, table
    if not batch.has_messages:
        return
    if asked.measures & OVER_TIME:
        passes.begin(batch.message_rows)
    for name, frame in FramesOfBatch(engine, batch, asked, share_moves=True):
        shaped = frame if output is None else output.write(name, frame, tables.SCHEMAS[name])
        yield name, shaped.limit(most_rows + 1).toArrow() if name in SERIES else shaped.toArrow()
    passes.end()
