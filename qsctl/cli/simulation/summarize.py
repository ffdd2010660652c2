"""`qsctl summarize`: compute the figures of one or more runs, on this machine or on Spark."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from qsctl.cli.command import Commands
from qsctl.cli.panels import SIMULATION_PANEL
from qsctl.cli.simulation.options.spark import TaskOptions
from qsctl.cli.simulation.progress.task_progress import task_progress
from qsctl.cli.simulation.results.summarize import SparkSummary
from qsctl.errors import UsageError
from qsctl.instant import parse_duration

COMMANDS: Final = Commands(panel=SIMULATION_PANEL)


@COMMANDS.command(
    "summarize",
    examples=(
        "qsctl summarize qsctl-runs/burst-1  # every measure, by client and queue",
        "qsctl summarize qsctl-runs/burst-1 --by queue --window 100ms --out tables",
        "qsctl summarize qsctl-runs/burst-1 qsctl-runs/burst-2 --by queue -o csv",
        "qsctl summarize recordings/* --by queue --out lake --append --skip-damaged",
    ),
)
def summarize(
    runs: Annotated[list[str], typer.Argument(metavar="RUN…", help="Run folders of `qsctl simulate`, by path or URI.")],
    by: Annotated[
        str, typer.Option(help="Grouping of the figures: some of run,replication,client,queue,topic.")
    ] = "client,queue",
    window: Annotated[
        str, typer.Option(help="Length of the windows of throughput and depth, a duration such as 100ms.")
    ] = "1s",
    percentiles: Annotated[
        str,
        typer.Option(help="Method of the percentiles: exact (a second pass over the log) or histogram (within 0.8 %)."),
    ] = "exact",
    confidence: Annotated[
        float, typer.Option(help="Confidence level of the intervals over replications, between 0 and 1.")
    ] = 0.95,
    out: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Folder, by path or URI, that every table is written to as Parquet."),
    ] = None,
    append: Annotated[
        bool,
        typer.Option(
            "--append",
            help="Add the runs to the tables in --out as partitions by date, scenario and run; a run that is there "
            "already is replaced.",
        ),
    ] = False,
    skip_damaged: Annotated[
        bool, typer.Option("--skip-damaged", help="Leave out damaged runs, with a note for each, instead of failing.")
    ] = False,
    *,
    cluster: TaskOptions,
) -> SparkSummary:
    """Summarize runs: counters, latency, losses, throughput, depth, slow subscribers, Little's law, intervals."""
    if percentiles not in {"exact", "histogram"}:
        raise UsageError(f"--percentiles {percentiles!r} is neither exact nor histogram")
    if append and out is None:
        raise UsageError("--append adds runs to the tables of a folder", remedy="Name the folder with --out.")
    window_ns = parse_duration(window)
    from qsctl.eventlog.location import location
    from qsctl.summary.asked_measures import ALL
    from qsctl.summary.job import summarize_runs
    from qsctl.summary.read_rows import reported_to

    words = tuple(word.strip() for word in by.split(",") if word.strip())
    with task_progress("rows read") as show_progress, reported_to(show_progress):
        summary = summarize_runs(
            [location(run) for run in runs],
            by=words,
            window_ns=window_ns,
            measures=ALL,
            exact=percentiles == "exact",
            confidence=confidence,
            options=cluster.spark_asked_for(),
            out=None if out is None else location(out),
            append=append,
            skip_damaged=skip_damaged,
        )
    return SparkSummary(summary)
