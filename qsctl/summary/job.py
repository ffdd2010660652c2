"""Summarize run folders: the only reads and writes of the pipeline; everything between is frame to frame.

`summarize_run` is what `qsctl simulate --spark` and `qsctl summarize` call. A run without a message log is summarized
from the simulator's counters: then percentiles come from its histograms, and there is nothing in windows of time.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as f

from qsctl.errors import UsageError
from qsctl.instant import SECOND_NS, Nanoseconds
from qsctl.summary import counters as counting
from qsctl.summary import delay, replications, tables
from qsctl.summary.depth import depth
from qsctl.summary.faults import spark_faults
from qsctl.summary.littles_law import littles_law
from qsctl.summary.loss import losses
from qsctl.summary.observation import Observation
from qsctl.summary.recorded_run import RecordedRun, read_run
from qsctl.summary.run_summary import RunSummary, queue_figures
from qsctl.summary.session import SparkOptions, spark_session, tune
from qsctl.summary.slow_subscriber import slow_subscribers
from qsctl.summary.throughput import windows

DEFAULT_BY: Final = ("client", "queue")

QUICK: Final = frozenset({"queues", "delays", "intervals"})
"""What one pass over the log and one over some of its buckets give."""

FIGURES: Final = frozenset({"queues", "delays", "losses", "intervals"})
"""What is rolled up from one tally: asking for one gives `queues` and `delays` too."""

ALL: Final = frozenset(tables.SCHEMAS)

PLANNING_THREADS: Final = 3
"""Small tables computed side by side."""

BRIEF_BYTES: Final = 16 << 20
"""A log below this size is read faster than Java's better compiler warms up."""

MOST_ROWS_SHOWN: Final = 20_000
"""Rows of a table in time that are brought to this process; more are only written to `--out`."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """What the caller wants of each run."""

    by: tuple[str, ...]
    window_ns: Nanoseconds
    measures: frozenset[str]
    exact: bool
    confidence: float
    clients: tuple[str, ...]


def summarize_run(
    folder: Path,
    *,
    by: Sequence[str] = DEFAULT_BY,
    window_ns: Nanoseconds = SECOND_NS,
    measures: Collection[str] = QUICK,
    exact: bool = True,
    confidence: float = replications.DEFAULT_CONFIDENCE,
    clients: Sequence[str] = (),
    options: SparkOptions | None = None,
    out: Path | None = None,
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
    )


def summarize_runs(
    folders: Sequence[Path],
    *,
    by: Sequence[str] = DEFAULT_BY,
    window_ns: Nanoseconds = SECOND_NS,
    measures: Collection[str] = QUICK,
    exact: bool = True,
    confidence: float = replications.DEFAULT_CONFIDENCE,
    clients: Sequence[str] = (),
    options: SparkOptions | None = None,
    out: Path | None = None,
) -> RunSummary:
    """Summarize runs on Spark.

    Args:
        folders: run folders; several are told apart by their run, whatever `by` says.
        by: words of `tables.KEYS`: what the figures are of.
        window_ns: the length of the windows of throughput and depth.
        measures: names of `tables.SCHEMAS`, at least one.
        exact: percentiles by a second pass over the log; else from the histogram, with its stated error.
        confidence: of the intervals over replications.
        clients: names; only their messages count. All when empty.
        options: where Spark runs.
        out: a folder for the tables as Parquet, one subfolder each.

    Raises:
        NotFound: a folder is no run folder.
        UsageError: an unknown word in `by` or `measures`, or a window that is not positive.
        Damaged: a file of the run cannot be read.
        Unavailable: there is no Java for Spark.
    """
    asked = _checked(by, window_ns, measures, exact, confidence, tuple(clients), len(folders))
    facts = [read_run(folder) for folder in folders]
    brief = sum(run.bytes for run in facts) < BRIEF_BYTES
    spark = spark_session(options, brief=brief)
    with spark_faults():
        tune(spark, brief=brief)
        parts = [_tables_of_run(spark, run, asked) for run in facts]
        merged = {
            name: functools.reduce(DataFrame.unionByName, [part.frames[name] for part in parts if name in part.frames])
            for name in sorted({name for part in parts for name in part.frames})
        }
        if out is not None:
            for name, frame in merged.items():
                frame.write.mode("overwrite").parquet(str(out / name))
        collected, notes = _collected(merged, out)
        for part in parts:
            part.release()
    if any(not run.has_messages for run in facts):
        notes.append("There is no message log: percentiles are from histograms, and nothing is told over time.")
    if not all(run.info.complete for run in facts):
        notes.append("The run was interrupted: these are the figures of its finished part.")
    return RunSummary(
        runs=tuple(str(folder) for folder in folders),
        by=asked.by,
        complete=all(run.info.complete for run in facts),
        level=facts[0].level,
        warm_up_ns=facts[0].warm_up_ns,
        horizon_ns=facts[0].horizon_ns,
        replications=max(len(run.replications) for run in facts),
        window_ns=window_ns,
        queues=queue_figures(collected.pop("queues", []), collected.get("delays", [])),
        tables={name: rows for name, rows in collected.items() if name in asked.measures},
        notes=tuple(notes),
    )


@dataclass(frozen=True, slots=True)
class _Part:
    """The tables of one run, not yet computed, and how to let go of what they share."""

    frames: Mapping[str, DataFrame]
    release: Callable[[], object]


def _tables_of_run(spark: SparkSession, run: RecordedRun, asked: _Asked) -> _Part:
    observation = Observation(run.warm_up_ns, run.horizon_ns)
    counters = read_counters(spark, run)
    if asked.clients:
        counters = counters.where(f.col("client").isin(*asked.clients))
    keys = tables.key_columns(asked.by)
    if not run.has_messages:
        if "topic" in asked.by:
            raise UsageError(
                "--by topic needs a message log", remedy="Simulate with --log messages, or leave the topic out."
            )
        return _from_counters(counters, keys, run, asked)
    messages = with_client_names(read_messages(spark, run), counters)
    if asked.clients:
        messages = messages.where(f.col("client").isin(*asked.clients))
    frames: dict[str, DataFrame] = {}
    kept: list[DataFrame] = []
    if asked.measures & FIGURES:
        tallied = counting.tally(messages, observation, keys).persist()
        limits = counting.limits_of(counters, [key for key in keys if key != "topic_id"])
        queues = counting.queues(tallied, limits, observation, keys).persist()
        ranked = delay.ranks(counting.histogram(tallied, keys), keys).persist()
        kept = [tallied, queues, ranked]
        if asked.exact:
            values, error = delay.exact_values(messages, ranked, observation, keys), 0.0
        else:
            values, error = delay.bucket_values(ranked, keys), delay.BUCKET_ERROR
        frames |= {"queues": queues, "delays": delay.delays(queues, values, keys, error)}
        if "losses" in asked.measures:
            frames["losses"] = losses(queues)
        if "intervals" in asked.measures and len(run.replications) > 1:
            each = list(dict.fromkeys([*keys, "replication"]))
            per_run = counting.queues(tallied, limits, observation, each)
            bucketed = delay.bucket_values(delay.ranks(counting.histogram(tallied, each), each), each)
            frames["intervals"] = _intervals(
                per_run, delay.delays(per_run, bucketed, each, delay.BUCKET_ERROR), keys, run, asked
            )
    if asked.measures & {"windows", "depth"}:
        moved = windows(messages, keys, asked.window_ns)
        frames |= {
            name: frame for name, frame in (("windows", moved), ("depth", depth(moved, keys))) if name in asked.measures
        }
    if "slow_subscribers" in asked.measures:
        of_client = [key for key in keys if key in {"run_id", "client"}]
        frames["slow_subscribers"] = slow_subscribers(messages, observation, of_client)
    if "littles_law" in asked.measures:
        frames["littles_law"] = littles_law(messages, observation, keys)

    def release() -> None:
        for frame in kept:
            frame.unpersist()

    return _Part(frames, release)


def _from_counters(counters: DataFrame, keys: Sequence[str], run: RecordedRun, asked: _Asked) -> _Part:
    kept = counters.persist()
    queues = counting.queues_from_counters(kept, keys)
    values = delay.bucket_values(delay.ranks(counting.histogram_from_counters(kept, keys), keys), keys)
    frames = {"queues": queues, "delays": delay.delays(queues, values, keys, delay.BUCKET_ERROR)}
    if "losses" in asked.measures:
        frames["losses"] = losses(queues)
    if "intervals" in asked.measures and len(run.replications) > 1:
        each = list(dict.fromkeys([*keys, "replication"]))
        per_run = counting.queues_from_counters(kept, each)
        bucketed = delay.bucket_values(delay.ranks(counting.histogram_from_counters(kept, each), each), each)
        frames["intervals"] = _intervals(
            per_run, delay.delays(per_run, bucketed, each, delay.BUCKET_ERROR), keys, run, asked
        )
    return _Part(frames, kept.unpersist)


def _intervals(per_run: DataFrame, waits: DataFrame, keys: Sequence[str], run: RecordedRun, asked: _Asked) -> DataFrame:
    groups = [key for key in keys if key != "replication"]
    return replications.intervals(
        replications.measures(per_run, waits), groups, len(run.replications), asked.confidence
    )


def read_messages(spark: SparkSession, run: RecordedRun) -> DataFrame:
    """The message log of a run, with the replication that each folder's name tells."""
    folder = run.folder / "messages"
    messages = spark.read.schema(tables.MESSAGES).option("basePath", str(folder)).parquet(str(folder))
    return messages.where(f.col("replication").isin(*run.replications)).withColumn("run_id", f.lit(run.info.run_id))


def read_counters(spark: SparkSession, run: RecordedRun) -> DataFrame:
    """The simulator's counters of a run."""
    folder = run.folder / "counters"
    counters = spark.read.schema(tables.COUNTERS).option("basePath", str(folder)).parquet(str(folder))
    return counters.withColumn("run_id", f.lit(run.info.run_id))


def with_client_names(messages: DataFrame, counters: DataFrame) -> DataFrame:
    """The message log with each client's name; a client that the counters do not name keeps its number."""
    names = counters.select("client_id", "client").distinct()
    return messages.join(f.broadcast(names), on=["client_id"], how="left").withColumn(
        "client", f.coalesce(f.col("client"), f.col("client_id").cast("string"))
    )


def _collected(frames: Mapping[str, DataFrame], out: Path | None) -> tuple[dict[str, list[dict[str, Any]]], list[str]]:
    """Bring the results here; a table that grows with time only up to `MOST_ROWS_SHOWN`."""
    collected: dict[str, list[dict[str, Any]]] = {}
    notes: list[str] = []
    growing = {"windows", "depth"}

    def collect(name: str) -> list[Row]:
        with spark_faults():
            return (frames[name].limit(MOST_ROWS_SHOWN + 1) if name in growing else frames[name]).collect()

    # First the table that computes what the others share; then all at once, for each is mostly planning.
    first = "delays" if "delays" in frames else min(frames)
    found = {first: collect(first)}
    with ThreadPoolExecutor(max_workers=PLANNING_THREADS) as pool:
        rest = [name for name in frames if name != first]
        found |= dict(zip(rest, pool.map(collect, rest), strict=True))
    for name in frames:
        rows = found[name]
        if name in growing and len(rows) > MOST_ROWS_SHOWN:
            where = f"it is whole in {out / name}" if out is not None else "write it to files with --out"
            notes.append(f"The table {name} has more than {MOST_ROWS_SHOWN} rows: {where}.")
            continue
        collected[name] = [row.asDict() for row in rows]
    return collected, notes


def _checked(
    by: Sequence[str],
    window_ns: Nanoseconds,
    measures: Collection[str],
    exact: bool,
    confidence: float,
    clients: tuple[str, ...],
    run_count: int,
) -> _Asked:
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
    return _Asked(words, window_ns, frozenset(measures), exact, confidence, clients)
