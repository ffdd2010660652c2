"""`qsctl simulate`: run a scenario, and show the figures of every queue and the run folder."""

from __future__ import annotations

import dataclasses
import gc
import os
import time
from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from qsctl.cli.caller import program_caller
from qsctl.cli.command import Commands
from qsctl.cli.options import ScenarioChanges
from qsctl.cli.panels import SIMULATION_PANEL
from qsctl.cli.simulation.options.command_line import command_line
from qsctl.cli.simulation.options.profile_overlay import ClientProfileOption, with_client_profiles
from qsctl.cli.simulation.options.ready import ready_of_model
from qsctl.cli.simulation.options.spark import ClusterOptions
from qsctl.cli.simulation.progress.long_run import YesOption
from qsctl.cli.simulation.progress.task_progress import task_progress
from qsctl.cli.simulation.progress.watched_run import watched_run
from qsctl.cli.simulation.results.simulate import Simulated, SimulateResult

if TYPE_CHECKING:
    from qsctl.sim.run import RunReport
    from qsctl.sim.scenario.scenario import Scenario
    from qsctl.summary.run_summary import QueueFigures

COMMANDS: Final = Commands(panel=SIMULATION_PANEL)

_FROM_THE_RUN: Final = (
    "scenario", "model", "run_id", "seed", "replications", "log_level", "warm_up_ns", "horizon_ns", "fingerprint",
    "reproduce",
)  # fmt: skip
FEW_CLIENTS = 8
"""Up to this number of clients, each is shown by itself unless `--by` is given."""


class Level(StrEnum):
    """The values of `eventlog.schema.LogLevel`, repeated here to save its import."""

    COUNTERS = "counters"
    MESSAGES = "messages"
    EVENTS = "events"


class By(StrEnum):
    """The grouping of the table's lines, beside the queue."""

    CLIENT = "client"
    GROUP = "group"
    QUEUE = "queue"


@COMMANDS.command(
    "simulate",
    examples=(
        "qsctl simulate  # the built-in scenario: bursts of market data beyond what a port carries",
        "qsctl simulate --list",
        "qsctl simulate web-messaging --by group --set 'profile[web]/queue[D-1]/max-depth=400'",
        "qsctl simulate my-scenario.xml --var CLIENTS=500 --seed 7 --replications 10 --out run-7",
        "qsctl simulate guaranteed --client-profile covered=fixtures/profiles/guaranteed.json",
        "qsctl simulate burst --rare 'P(high_water_mark(D-1)>=5000)'",
        "qsctl simulate --spark -o json  # the same figures, computed by Spark from the event log",
    ),
)
def simulate(
    scenario: Annotated[
        str | None,
        typer.Argument(
            metavar="[SCENARIO]",
            help="Scenario file, or the name of a ready one; left out: the ready one burst.",
            show_default=False,
        ),
    ] = None,
    spark: Annotated[
        bool,
        typer.Option("--spark", help="Compute the figures with Spark, from the event log.", rich_help_panel="Spark"),
    ] = False,
    out: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Run folder, by path or URI.", show_default="a new one in qsctl-runs"),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Seed of the random numbers.", show_default="the scenario's")
    ] = None,
    replications: Annotated[
        int | None, typer.Option(min=1, help="Number of replications.", show_default="the scenario's")
    ] = None,
    level: Annotated[Level | None, typer.Option(help="Detail of the event log.", show_default="the scenario's")] = None,
    by: Annotated[
        By | None,
        typer.Option(
            help="Grouping of the table's lines: client, group or queue.",
            show_default="client; group, with --spark queue, where clients are many",
        ),
    ] = None,
    client_profile: ClientProfileOption = None,
    confidence: Annotated[
        float | None,
        typer.Option(
            help="Confidence level of intervals of the waits, over replications or within one run, between 0 and 1.",
            show_default="no intervals",
        ),
    ] = None,
    precision: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PRECISION",
            help="Half width of the intervals of means, relative to the mean, as in 5%: replications are added until "
            "it is reached, of every queue's throughput and mean times, or of one measure, as in "
            "'time_to_done_p99(Orders)=5%'; may be repeated.",
            show_default="none: as many replications as are asked for",
        ),
    ] = None,
    rare: Annotated[
        str | None,
        typer.Option(
            metavar="FIGURE",
            help="Rare figure to be estimated, instead of the runs, by runs that are split wherever the queue comes "
            "nearer to it: 'loss_ratio(D-1)', or the probability, between 0 and 1, that a run loses a message or is "
            "filled to a depth, 'P(lost(D-1)>0)', 'P(high_water_mark(D-1)>=400)'; --precision is its half width "
            "relative to it, 20% unless given.",
            show_default="none",
        ),
    ] = None,
    *,
    changes: ScenarioChanges,
    workers: Annotated[
        int,
        typer.Option(
            min=0,
            help="Number of processors to use: by processes for replications, and by threads for the "
            "independent ports of a broker; 0: all.",
        ),
    ] = 0,
    yes: YesOption = False,
    list_ready: Annotated[bool, typer.Option("--list", help="List the ready scenarios and exit.")] = False,
    cluster: ClusterOptions,
) -> SimulateResult:
    """Simulate a scenario: a queue of any broker, Solace or TIBCO egress queues, or shared reader queues.

    Ctrl-C stops it; the results up to then stay readable and are shown.
    """
    if program_caller() is None:  # a program's garbage collector and environment are its own
        _start_light()
    if list_ready:
        return ready_of_model(None, "qsctl simulate NAME")
    if confidence is not None:
        from qsctl.cli.simulation.options.confidence import checked_confidence

        checked_confidence(confidence)
    from qsctl.eventlog.location import location
    from qsctl.eventlog.run_folder import new_folder
    from qsctl.eventlog.schema import LogLevel
    from qsctl.sim.run import run
    from qsctl.sim.scenario.overrides.set_values import apply_overrides
    from qsctl.sim.scenario.rules.scenario import check_rules
    from qsctl.sim.simulate import open_scenario

    variables, overrides = changes.variables, changes.overrides
    plain, of_profiles = with_client_profiles(open_scenario(scenario, variables, {}), client_profile)
    read = apply_overrides(plain, overrides)
    overrides = {**of_profiles, **overrides}
    check_rules(read)
    if rare is not None:
        from qsctl.cli.simulation._rare import simulate_rare

        _refuse_with_rare({"--spark": spark, "--out": out, "--level": level, "--by": by})
        return simulate_rare(
            read if seed is None else dataclasses.replace(read, seed=seed), rare,
            replications=replications, precision=precision, confidence=confidence or USUAL_CONFIDENCE,
            workers=workers or os.cpu_count() or 1, yes=yes,
            reproduce=command_line(
                "simulate", scenario,
                (
                    ("--rare", rare), ("--seed", seed), ("--replications", replications),
                    ("--precision", precision[0] if precision else None), ("--confidence", confidence),
                ),
                variables, overrides,
            ),
        )  # fmt: skip
    if spark:
        from qsctl.summary.spark.session import start_early

        start_early(cluster.spark_options(), brief=True)
    reached: tuple[str, ...] = ()
    if precision:
        replications, text = _enough(read, precision, seed, replications, confidence, yes)
        confidence = confidence or USUAL_CONFIDENCE
        reached = (text,)
    folder = location(out) if out is not None else new_folder(read.name)
    began = time.perf_counter()
    count = replications or read.replications
    processes = min(workers, count) if workers else workers_for(count)
    with watched_run(read.name, folder, count, processes, yes=yes) as watched:
        report = run(
            read, folder, seed=seed, replications=replications, level=None if level is None else LogLevel(level),
            progress=watched.progress, stop=watched.stop, workers=processes, threads=threads_for(workers, processes),
            reproduce=command_line(
                "simulate", scenario, (("--seed", seed), ("--replications", replications), ("--level", level)),
                variables, overrides,
            ), overrides=overrides,
        )  # fmt: skip
    elapsed = max(0.0, time.perf_counter() - began - report.compile_s - watched.asked_s)
    figures, shown_by, notes = figures_shown(report, read, by, spark, cluster)
    result = simulated_result(report, read, elapsed, figures, shown_by, (*notes, *reached), spark)
    if confidence is None:
        return result
    from qsctl.summary.inference.run_intervals import run_intervals

    found = run_intervals(report.folder, report.counters, confidence)
    return dataclasses.replace(result, intervals=found, confidence=confidence)


USUAL_CONFIDENCE: Final = 0.95


def _refuse_with_rare(given: Mapping[str, object]) -> None:
    """Refuse options of a run folder with `--rare`, which writes none.

    Raises:
        UsageError: one is given.
    """
    from qsctl.errors import UsageError

    for option, value in given.items():
        if value:
            raise UsageError(f"{option} is of a run folder, and --rare writes none", remedy=f"Leave {option} out.")


def _enough(
    scenario: Scenario, texts: list[str], seed: int | None, most: int | None, confidence: float | None, yes: bool
) -> tuple[int, str]:  # fmt: skip
    """Return the number of replications that reaches the precision, and that precision as text.

    The replications are simulated without a log to determine the number; the run then repeats them with a log.

    Raises:
        Declined: the run would take over a minute, and the user answered no.
    """
    from qsctl.cli.confirmation import agree_to_cost
    from qsctl.cli.simulation.options.confidence import checked_confidence
    from qsctl.sim.replication import simulate_figures
    from qsctl.summary.sweeps.cost import Cost
    from qsctl.summary.sweeps.precision import FEWEST, MOST, enough, parse_precision, precision_text

    checked_confidence(USUAL_CONFIDENCE if confidence is None else confidence)
    wanted = [parse_precision(text) for text in texts]
    seeded = scenario if seed is None else dataclasses.replace(scenario, seed=seed)
    with task_progress("replications for the precision") as show_progress:

        def agree(total: int, seconds: float) -> None:
            show_progress.pause()
            left = total - FEWEST + total  # of these, and of the run
            agree_to_cost(Cost(left, left * seconds), yes=yes)

        count, found = enough(
            wanted,
            lambda number: simulate_figures(seeded, number),
            confidence or USUAL_CONFIDENCE,
            most or MOST,
            show_progress,
            agree,
        )
    return count, precision_text(found, count)


def _start_light() -> None:
    """Reduce the overhead of a short simulation, before numpy is imported.

    This limits linear algebra to one thread, as idle ones spin, and makes garbage collection of the many imported
    objects less frequent.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    gc.set_threshold(50_000, 20, 50)


def figures_shown(
    report: RunReport, scenario: Scenario, by: By | None, spark: bool, cluster: ClusterOptions
) -> tuple[tuple[QueueFigures, ...], By, tuple[str, ...]]:
    """Return the table's figures, computed by Spark from the event log or summed from the simulator's counters.

    Returns:
        The figures, the grouping that was used, and notes.
    """
    from qsctl.cli.simulation.results.figures import client_count, figures_of_counters, group_of
    from qsctl.errors import UsageError

    few = client_count(scenario) <= FEW_CLIENTS or scenario.engine is not None  # its threads have no groups
    if spark:
        if by is By.GROUP:
            raise UsageError("--by group is not among what Spark groups by", remedy="Use --by client or --by queue.")
        from qsctl.summary.job import summarize_run
        from qsctl.summary.read_rows import reported_to

        each_client = few if by is None else by is By.CLIENT
        keys = ("client", "queue") if each_client else ("queue",)
        with task_progress("rows read") as show_progress, reported_to(show_progress):
            summary = summarize_run(report.folder, by=keys, options=cluster.spark_options())
        return summary.queues, By.CLIENT if each_client else By.QUEUE, summary.notes
    chosen: By = by or (By.CLIENT if few else By.GROUP)
    if chosen is By.CLIENT:
        return figures_of_counters(report.counters, lambda _, client: client), chosen, ()
    if chosen is By.GROUP:
        return figures_of_counters(report.counters, group_of(scenario)), chosen, ()
    return figures_of_counters(report.counters, lambda _number, _client: None), chosen, ()


def simulated_result(
    report: RunReport, scenario: Scenario, elapsed: float, figures: tuple[QueueFigures, ...], by: By,
    notes: tuple[str, ...], spark: bool,
) -> Simulated:  # fmt: skip
    """Return the result of a finished run."""
    from qsctl.cli.simulation.results.figures import client_count
    from qsctl.eventlog.explained import (
        merged_happenings,
        merged_replicated_queues,
        merged_verdicts,
        merged_worked_queues,
        merged_workers,
    )

    info = report.info
    copied: dict[str, Any] = {name: getattr(info, name) for name in _FROM_THE_RUN}
    return Simulated(
        **copied,
        description=scenario.description,
        folder=str(report.folder),
        status=str(info.status),
        done_replications=len(info.done),
        simulated_ns=sum(each.simulated_ns for each in info.done),
        simulated_messages=sum(each.messages for each in info.done),
        elapsed_s=elapsed,
        compile_s=report.compile_s,
        computed_by="spark" if spark else "simulator",
        by=str(by),
        clients=client_count(scenario),
        queues=figures,
        notes=notes,
        happenings=merged_happenings(info.done),
        verdicts=merged_verdicts(info.done),
        replicated_queues=merged_replicated_queues(info.done),
        worked_queues=merged_worked_queues(info.done),
        workers=merged_workers(info.done),
        report=report,
    )


def threads_for(workers: int, processes: int) -> int:
    """Return the number of threads of each process; `workers` is the number of processors to use, 0 for all."""
    return max(1, (workers or os.cpu_count() or 1) // processes)


def workers_for(replications: int) -> int:
    """Return the number of processes: 1 for fewer than four replications, since a start costs a second."""
    return min(os.cpu_count() or 1, replications) if replications >= 4 else 1
