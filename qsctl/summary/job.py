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
from pyspark.sql.types import StructType

from qsctl.errors import UsageError
from qsctl.instant import SECOND_NS, Nanoseconds
from qsctl.summary import counters as counting
from qsctl.summary import delay, replications, tables
from qsctl.summary.depth import depth
from qsctl.summary.faults import spark_faults
from qsctl.summary.littles_law import littles_law
from qsctl.summary.observation import COARSE_BUCKET, Observation, bucket_of, literal
from qsctl.summary.recorded_run import RecordedRun, read_run
from qsctl.summary.run_summary import RunSummary, queue_figures
from qsctl.summary.session import SparkOptions, spark_session, tune
from qsctl.summary.slow_subscriber import slow_subscribers
from qsctl.summary.throughput import windows

DEFAULT_BY: Final = ("client", "queue")

QUICK: Final = frozenset({"queues", "delays", "intervals"})
"""What one pass over the log and one over some of its buckets give."""

FIGURES: Final = frozenset({"queues", "delays", "losses", "intervals", "littles_law"})
"""What is rolled up from one tally: asking for one gives `queues` and `delays` too."""

_OF_FIGURES: Final = ("queues", "delays", "losses")
"""Tables that are columns of `tables.FIGURES`."""

SHAPES: Final = {**tables.SCHEMAS, "figures": tables.FIGURES}

ALL: Final = frozenset(tables.SCHEMAS)

PLANNING_THREADS: Final = 3
"""Small tables computed side by side."""

BRIEF_BYTES: Final = 4 << 20
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
            if "figures" in merged:
                merged["figures"] = merged["figures"].persist()
            for name, frame in _written(merged, asked).items():
                frame.write.mode("overwrite").parquet(str(out / name))
        collected, notes = _collected(merged, out)
        for part in parts:
            part.release()
        if out is not None and "figures" in merged:
            merged["figures"].unpersist()
    if "figures" in collected:
        collected |= _split(collected.pop("figures"))
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
    if not run.has_messages and "topic" in asked.by:
        raise UsageError(
            "--by topic needs a message log", remedy="Simulate with --log messages, or leave the topic out."
        )
    counters = read_counters(spark, run)
    names = counters.selectExpr("client_id", "client").distinct()
    if asked.clients:
        counters = counters.where(f"client in ({', '.join(map(literal, asked.clients))})")
    messages = read_messages(spark, run) if run.has_messages else None
    if messages is not None and asked.clients:
        messages = spark.sql(
            "select * from {messages} left semi join {counters} using (client_id)",
            messages=messages,
            counters=counters.selectExpr("client_id").distinct(),
        )
    observation = Observation(run.warm_up_ns, run.horizon_ns)
    keys = tables.key_columns(asked.by)
    kept: list[DataFrame] = []
    made: dict[str, DataFrame] = {}
    if asked.measures & FIGURES:
        made |= _figures(messages, counters, observation, keys, len(run.replications), asked, kept)
    if messages is not None:
        if asked.measures & {"windows", "depth"}:
            moved = windows(messages, keys, asked.window_ns)
            if asked.measures >= {"windows", "depth"}:
                kept.append(moved.persist())
            made |= {"windows": moved, "depth": depth(moved, keys)}
        if "slow_subscribers" in asked.measures:
            of_client = [key for key in keys if key in {"run_id", "client_id"}]
            made["slow_subscribers"] = slow_subscribers(messages, observation, of_client)
    wanted = asked.measures | ({"figures"} if asked.measures & FIGURES else frozenset())
    frames = {
        name: tables.shaped(frame, SHAPES[name], asked.by, names) for name, frame in made.items() if name in wanted
    }

    def release() -> None:
        for frame in kept:
            frame.unpersist()

    return _Part(frames, release)


def _figures(
    messages: DataFrame | None,
    counters: DataFrame,
    observation: Observation,
    keys: Sequence[str],
    replication_count: int,
    asked: _Asked,
    kept: list[DataFrame],
) -> dict[str, DataFrame]:
    """What one pass over the log gives, and for exact percentiles a second one over some of its buckets."""
    exact = asked.exact and messages is not None
    bucket = COARSE_BUCKET if exact else bucket_of("wait_ns")
    if messages is not None:
        tallied = counting.tally(messages, observation, keys, bucket).persist()
        kept.append(tallied)
        rows = counting.replicated(tallied, counters, observation, keys)
    else:
        kept.append(counters.persist())
        rows = counting.replicated_from_counters(counters, keys)

    def with_percentiles(groups: Sequence[str]) -> DataFrame:
        if messages is None:
            ranked = delay.ranks(counting.histogram_from_counters(counters, groups), groups)
        else:
            ranked = delay.ranks(counting.histogram(tallied, groups), groups)
        if exact:
            assert messages is not None
            values, error = delay.exact_values(messages, ranked, observation, groups, bucket), 0.0
        else:
            values, error = delay.bucket_values(ranked, groups), delay.BUCKET_ERROR
        return delay.figures(counting.queues(rows, groups), values, groups, error)

    made = {"figures": with_percentiles(keys)}
    if "littles_law" in asked.measures and messages is not None:
        made["littles_law"] = littles_law(rows, observation, keys)
    if "intervals" in asked.measures and replication_count > 1:
        groups = [key for key in keys if key != "replication"]
        measured = replications.measures(with_percentiles(list(dict.fromkeys([*keys, "replication"]))), groups)
        made["intervals"] = replications.intervals(measured, groups, replication_count, asked.confidence)
    return made


def read_messages(spark: SparkSession, run: RecordedRun) -> DataFrame:
    """The message log of a run, with the replication that each folder's name tells."""
    folder = run.folder / "messages"
    numbers = ", ".join(map(str, run.replications))
    messages = spark.read.schema(MESSAGES_DDL).option("basePath", str(folder)).parquet(str(folder))
    return messages.where(f"replication in ({numbers})").selectExpr("*", f"{literal(run.info.run_id)} as run_id")


def read_counters(spark: SparkSession, run: RecordedRun) -> DataFrame:
    """The simulator's counters of a run."""
    folder = run.folder / "counters"
    counters = spark.read.schema(COUNTERS_DDL).option("basePath", str(folder)).parquet(str(folder))
    return counters.selectExpr("*", f"{literal(run.info.run_id)} as run_id")


def _ddl(table: StructType) -> str:
    """A schema as one text; the run's name is not read from the files, for `run.json` has it."""
    return ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in table if field.name != "run_id")


MESSAGES_DDL: Final = _ddl(tables.MESSAGES)
COUNTERS_DDL: Final = _ddl(tables.COUNTERS)


def _written(frames: Mapping[str, DataFrame], asked: _Asked) -> dict[str, DataFrame]:
    """The frames as the tables that they hold."""
    written = {name: frame for name, frame in frames.items() if name != "figures"}
    for name in _OF_FIGURES if "figures" in frames else ():
        if name != "losses" or name in asked.measures:
            rows = frames["figures"].where("messages > 0") if name == "delays" else frames["figures"]
            written[name] = rows.selectExpr(*tables.SCHEMAS[name].names)
    return written


def _split(figures: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """The collected rows as the tables that they hold: one job of Spark instead of three."""
    return {
        name: [
            {column: row[column] for column in tables.SCHEMAS[name].names}
            for row in figures
            if name != "delays" or row["messages"]
        ]
        for name in _OF_FIGURES
    }


def _collected(frames: Mapping[str, DataFrame], out: Path | None) -> tuple[dict[str, list[dict[str, Any]]], list[str]]:
    """Bring the results here; a table that grows with time only up to `MOST_ROWS_SHOWN`."""
    collected: dict[str, list[dict[str, Any]]] = {}
    notes: list[str] = []
    growing = {"windows", "depth"}

    def collect(name: str) -> list[Row]:
        with spark_faults():
            return (frames[name].limit(MOST_ROWS_SHOWN + 1) if name in growing else frames[name]).collect()

    # First the table that computes what the others share; then all at once, for each is mostly planning.
    first = "figures" if "figures" in frames else min(frames)
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
