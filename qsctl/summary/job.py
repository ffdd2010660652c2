"""Summarize run folders: the only reads and writes of the pipeline.

`summarize_run` is what `qsctl simulate --spark` and `qsctl summarize` call. Spark goes through the log: once for the
counters and the windows of time, once for the waits among which the percentiles are (`log_pass.py`). What it counts
has a row a group and bucket; the rest is computed from that here (`groups.py`). A run without a message log is
summarized from the simulator's counters: then percentiles come from its histograms, and there is nothing in windows of
time.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from qsctl.errors import InvalidInput, UsageError
from qsctl.eventlog.explained import merged_happenings
from qsctl.instant import SECOND_NS, Nanoseconds
from qsctl.summary import replications, tables
from qsctl.summary.depth import depths, with_depth
from qsctl.summary.faults import spark_faults
from qsctl.summary.figures import SecondPass, figures_of_counters, figures_of_messages, first_pass
from qsctl.summary.holders import holders_of
from qsctl.summary.log_pass import Count, go_through, log_of
from qsctl.summary.observation import Observation, literal
from qsctl.summary.reading import names_of, read_counters, read_events, read_limits, read_messages
from qsctl.summary.recorded_run import RecordedRun, read_run
from qsctl.summary.run_summary import RunSummary, queue_figures
from qsctl.summary.session import SparkOptions, spark_session, tune
from qsctl.summary.settled import settled
from qsctl.summary.slow_subscriber import HalfSeconds, as_told, percentages_told, slow_of_halves, slow_subscribers
from qsctl.summary.throughput import Windows, windows

DEFAULT_BY: Final = ("client", "queue")

QUICK: Final = frozenset({"queues", "delays", "intervals"})
"""What one pass over the log and one over some of its buckets give."""

FIGURES: Final = frozenset({"queues", "delays", "losses", "intervals", "littles_law"})
"""What is rolled up from one tally: asking for one gives `queues` and `delays` too."""

SERIES: Final = frozenset({"windows", "depth"})
"""Tables in time, which grow with the run and not only with what is grouped by."""

ALL: Final = frozenset(tables.SCHEMAS)

BRIEF_BYTES: Final = 128 << 20
"""A log below this size (some five million messages) is read faster than Java's better compiler warms up."""

FEW_ROWS: Final = 2_000_000
"""A table in time of at most so many rows is brought to this process whole; of more, only what is shown."""

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

    @property
    def made(self) -> frozenset[str]:
        """The tables to make: counters and delays come with whatever is rolled up with them."""
        return self.measures | ({"queues", "delays"} if self.measures & FIGURES else frozenset())


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
    if out is not None:
        for name in asked.made:
            _clear(out / name)
    with spark_faults():
        tune(spark, brief=brief)
        parts = [_tables_of_run(spark, run, asked, out) for run in facts]
    collected: dict[str, list[dict[str, Any]]] = {}
    notes: list[str] = []
    for name in sorted({name for part in parts for name in part}):
        table = pa.concat_tables([part[name] for part in parts if name in part])
        if out is not None and name not in SERIES:
            _write(table, out / name)
        if name in SERIES and table.num_rows > MOST_ROWS_SHOWN:
            where = f"it is whole in {out / name}" if out is not None else "write it to files with --out"
            notes.append(f"The table {name} has more than {MOST_ROWS_SHOWN} rows: {where}.")
            continue
        collected[name] = table.to_pylist()
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
        happenings=merged_happenings(each for run in facts for each in run.info.done),
    )


def _tables_of_run(spark: SparkSession, run: RecordedRun, asked: _Asked, out: Path | None) -> dict[str, pa.Table]:
    """The tables of one run by name; those in time are written here, for they may be larger than what is returned."""
    if not run.has_messages and "topic" in asked.by:
        raise UsageError(
            "--by topic needs a message log", remedy="Simulate with --log messages, or leave the topic out."
        )
    limits = read_limits(run)
    names = names_of(limits)
    observation = Observation(run.warm_up_ns, run.horizon_ns)
    keys = tables.key_columns(asked.by)
    measures = asked.measures if len(run.replications) > 1 else asked.measures - {"intervals"}
    made: dict[str, pa.Table] = {}
    if not run.has_messages:
        counters = read_counters(spark, run)
        if asked.clients:
            counters = counters.where(f"client in ({', '.join(map(literal, asked.clients))})")
        made |= figures_of_counters(counters, keys, measures=measures, confidence=asked.confidence)
    else:
        numbers = frozenset(number for number, name in names.items() if name in asked.clients)
        log = log_of(run, numbers if asked.clients else None)
        if asked.clients:
            limits = limits.filter(pc.is_in(limits["client"], pa.array(asked.clients, pa.string())))

        def frame() -> DataFrame:
            messages = read_messages(spark, run)
            if asked.clients:
                messages = messages.where(f"client_id in ({', '.join(map(str, numbers))})" if numbers else "false")
            return messages

        few_windows = _most_windows(run, asked) <= FEW_ROWS
        holders = holders_of(run) if asked.measures & SERIES else frozenset()
        counts: dict[str, Count] = {}
        if asked.measures & FIGURES:
            counts["tally"] = first_pass(observation, keys, measures=measures, exact=asked.exact)
        if asked.measures & SERIES and few_windows:
            counts["windows"] = Windows(tuple(keys), asked.window_ns, holders)
        of_client = tuple(key for key in keys if key in {"run_id", "client_id"})
        few_halves = run.counter_rows * (run.horizon_ns // (SECOND_NS // 2) + 2) <= FEW_ROWS
        if "slow_subscribers" in asked.measures and few_halves:
            counts["half seconds"] = HalfSeconds(observation, of_client)
        counted = go_through(spark.sparkContext, log, counts) if counts else {}
        if "tally" in counted:
            made |= figures_of_messages(
                counted["tally"], limits, observation, keys, SecondPass(spark.sparkContext, log, frame),
                measures=measures, exact=asked.exact, confidence=asked.confidence,
            )  # fmt: skip
        if "windows" in counted:
            made |= _few_windows(depths(counted["windows"], keys), asked, names, out)
        elif asked.measures & SERIES:
            made |= _many_windows(frame(), keys, asked, names, out, holders)
        if "slow_subscribers" in asked.measures:
            slow = (
                slow_of_halves(counted["half seconds"], observation, of_client)
                if few_halves
                else slow_subscribers(frame(), observation, of_client).toArrow()
            )
            if run.tells_slowness and "client_id" in of_client:
                slow = as_told(slow, percentages_told(read_events(spark, run), observation).toArrow())
            made["slow_subscribers"] = slow
    figures = made.pop("figures", None)
    if figures is not None:
        made |= {"queues": figures, "losses": figures}
        made["delays"] = figures.filter(pc.greater(figures["messages"], 0))
    return {
        name: tables.arranged(table, tables.SCHEMAS[name], asked.by, names)
        for name, table in made.items()
        if name in asked.made
    }


def _most_windows(run: RecordedRun, asked: _Asked) -> int:
    """How many rows a table in time can have."""
    if "topic" in asked.by:
        return 2 * run.message_rows
    return min(2 * run.message_rows, run.counter_rows * (run.horizon_ns // asked.window_ns + 2))


def _few_windows(series: pa.Table, asked: _Asked, names: Mapping[int, str], out: Path | None) -> dict[str, pa.Table]:
    """The tables in time, which are here whole."""
    wanted = sorted(asked.measures & SERIES)
    if out is not None:
        for name in wanted:
            _write(tables.arranged(series, tables.SCHEMAS[name], asked.by, names), out / name)
    return dict.fromkeys(wanted, series)


def _many_windows(
    messages: DataFrame, keys: Sequence[str], asked: _Asked, names: Mapping[int, str], out: Path | None,
    holders: Collection[int],
) -> dict[str, pa.Table]:  # fmt: skip
    """The tables in time where they do not fit here: Spark makes and writes them."""
    wanted = sorted(asked.measures & SERIES)
    series = with_depth(windows(messages, keys, asked.window_ns, holders), keys)
    if out is not None:
        series = settled(series)
        clients = messages.sparkSession.createDataFrame(list(names.items()), "client_id int, client string")
        for name in wanted:
            shaped = tables.shaped(series, tables.SCHEMAS[name], asked.by, clients)
            shaped.write.mode("append").parquet(str(out / name))
    return dict.fromkeys(wanted, series.limit(MOST_ROWS_SHOWN + 1).toArrow())


def _clear(folder: Path) -> None:
    """Make room for a table: an earlier one of its name goes."""
    try:
        if folder.exists():
            shutil.rmtree(folder)
        folder.mkdir(parents=True)
    except OSError as error:
        raise InvalidInput(
            f"{folder} cannot be written: {error.strerror}", remedy="Name another folder with --out."
        ) from None


def _write(table: pa.Table, folder: Path) -> None:
    """Add a file to a table's folder."""
    number = sum(1 for _ in folder.glob("part-*.parquet"))
    try:
        pq.write_table(table, folder / f"part-{number:05}.parquet")
    except OSError as error:
        raise InvalidInput(
            f"{folder} cannot be written: {error}", remedy="Free some space, or choose another."
        ) from None


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
