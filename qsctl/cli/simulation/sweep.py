"""`qsctl sweep`: simulate a scenario at every point of a grid, distributed by Spark."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from qsctl.cli.command import Commands
from qsctl.cli.confirmation import agree_to_cost
from qsctl.cli.options import ScenarioChanges
from qsctl.cli.panels import SIMULATION_PANEL
from qsctl.cli.simulation.options.command_line import command_line
from qsctl.cli.simulation.options.recorded import FromOption, RecordedOptions, scenario_or_recording
from qsctl.cli.simulation.options.selection import BestOption, FrontOption, asked_criteria
from qsctl.cli.simulation.options.spark import TaskOptions
from qsctl.cli.simulation.progress.long_run import YesOption
from qsctl.cli.simulation.progress.task_progress import task_progress
from qsctl.cli.simulation.results.size_words import load_text
from qsctl.cli.simulation.results.sweep import BrokenRun, SweepTable

if TYPE_CHECKING:
    from qsctl.summary.sweeps.precision import Precision, Reached
    from qsctl.summary.sweeps.sweep_folder import PointResult

COMMANDS: Final = Commands(panel=SIMULATION_PANEL)

DEFAULT_REPLICATIONS = 5


@COMMANDS.command(
    "sweep",
    examples=(
        "qsctl sweep burst --grid 'profile[trading]/queue[D-1]/max-depth=500,1000,2000,4000' --replications 10",
        "qsctl sweep burst --grid 'group[desks]/count=20,40' --grid 'port[p1]/rate=1 Gbit/s,10 Gbit/s' --out s1",
        "qsctl sweep burst --grid 'profile[trading]/queue[D-1]/max-depth=500,2000' --best 'time_in_queue_p99(D-1)'",
        "qsctl sweep burst --grid 'group[desks]/count=20,40' --master spark://head:7077",
        "qsctl sweep --from yesterday --grid 'queue[OrderQueue]/consumers=2,4,8' --common-random-numbers",
    ),
)
def sweep(
    grid: Annotated[
        list[str],
        typer.Option(
            metavar="PATH=V1,V2,…",
            help="Path with the values it is varied over, or a short name as of size, such as 'max-depth(D-1)'; may be "
            "repeated, to make a grid.",
        ),
    ],
    scenario: Annotated[
        str | None,
        typer.Argument(metavar="[SCENARIO]", help="Scenario file, or the name of a ready one.", show_default=False),
    ] = None,
    recording: FromOption = None,
    replications: Annotated[int, typer.Option(help="Number of repetitions per grid point.")] = DEFAULT_REPLICATIONS,
    seed: Annotated[int | None, typer.Option(help="Seed of the random numbers.", show_default="the scenario's")] = None,
    common: Annotated[
        bool,
        typer.Option(
            "--common-random-numbers",
            help="Use the same arrivals at every point, so that points differ by settings alone.",
        ),
    ] = False,
    confidence: Annotated[float, typer.Option(help="Confidence level of the intervals, between 0 and 1.")] = 0.95,
    precision: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PRECISION",
            help="Half width of the intervals, relative to the mean, as in 5%: repetitions are added at every point "
            "until it is reached, of every queue's throughput and mean times, or of one measure, as in "
            "'time_to_done_p99(Orders)=5%'; may be repeated.",
            show_default="none: --replications at every point",
        ),
    ] = None,
    most: Annotated[
        int, typer.Option("--max-replications", min=2, help="Largest number of repetitions per point with --precision.")
    ] = 1_000,
    best: BestOption = None,
    front: FrontOption = None,
    out: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            help="Folder of the results, by path or URI; points that it contains are not simulated again.",
            show_default="qsctl-sweeps/SCENARIO",
        ),
    ] = None,
    yes: YesOption = False,
    *,
    recorded: RecordedOptions,
    changes: ScenarioChanges,
    cluster: TaskOptions,
) -> SweepTable:
    """Simulate every point of a grid several times; each measure with its confidence interval.

    Call it again with the same --out to go on after an interruption, or with more values to extend the grid.
    """
    from qsctl.cli.simulation.options.confidence import checked_confidence
    from qsctl.eventlog.location import location
    from qsctl.sim.scenario.overrides.set_values import apply_overrides
    from qsctl.sim.sweep import parse_axes, plan_sweep
    from qsctl.summary.sweeps.cost import Cost
    from qsctl.summary.sweeps.points import point_measures
    from qsctl.summary.sweeps.precision import expected, parse_precision, precision_text, rounds
    from qsctl.summary.sweeps.selection import select
    from qsctl.summary.sweeps.sweep import SweepProgress, run_sweep
    from qsctl.summary.sweeps.sweep_rounds import Rounds

    checked_confidence(confidence)
    asked = asked_criteria(best, front)
    plain = scenario_or_recording(scenario, recording, recorded, changes.variables, seed)
    read = apply_overrides(plain, changes.overrides)
    axes = parse_axes(grid)
    folder = location(out) if out is not None else Path("qsctl-sweeps") / read.name
    wanted = [parse_precision(text) for text in precision or ()]
    plan = plan_sweep(read, axes, replications, common_random_numbers=common)
    reused = 0
    with task_progress("replications") as show_progress, cluster.runner(read) as runner:
        began = time.monotonic()
        is_first = True

        def note(progress: SweepProgress) -> None:
            nonlocal reused
            reused = progress.reused
            if progress.done > progress.reused:
                show_progress(progress.done, progress.total)

        def agree(cost: Cost) -> None:
            show_progress.pause()
            agree_to_cost(cost, yes=yes)

        def is_enough(results: Sequence[PointResult]) -> bool:
            nonlocal is_first
            missing = precision_of(results, wanted, confidence)
            if all(each.is_enough for each in missing):
                return True
            points = plan.task_count // plan.replications
            count, simulated = len(results) // points, len(results) - reused
            left = (expected(missing, count, confidence, most) - count) * points
            was_first, is_first = is_first, False
            if was_first and left and simulated:
                agree(Cost(left, left * (time.monotonic() - began) / simulated))
            return False

        results = run_sweep(
            plan, folder, cluster.spark_options(), note, runner=runner, agree=agree,
            rounds=Rounds(tuple(rounds(most)), is_enough) if wanted else None,
        )  # fmt: skip
    replications = len(results) // (plan.task_count // plan.replications)
    reached = precision_text(precision_of(results, wanted, confidence), replications) if wanted else None
    return SweepTable(
        folder=folder,
        scenario=read.name,
        replications=replications,
        points=len({result.point.key for result in results}),
        reused_replications=reused,
        confidence=confidence,
        measures=tuple(point_measures(results, confidence)),
        broken=tuple(broken_runs(scenario, changes, results)),
        load=load_text(read),
        precision=reached,
        selections=tuple(select(results, criteria, confidence, paired=common) for criteria in asked),
    )


def precision_of(results: Sequence[PointResult], wanted: Sequence[Precision], confidence: float) -> list[Reached]:
    """Return, for each point, the precision reached for each requested one."""
    from qsctl.summary.sweeps.precision import reached

    by_point: dict[str, list[PointResult]] = {}
    for each in results:
        by_point.setdefault(each.point.key, []).append(each)
    return [one for rows in by_point.values() for one in reached(wanted, [row.figures for row in rows], confidence)]


def broken_runs(scenario: str | None, changes: ScenarioChanges, results: Sequence[PointResult]) -> Iterator[BrokenRun]:
    """Yield the repetitions of a cluster that broke a rule, each with the seed that makes it the first repetition."""
    for each in results:
        if any(figures.broken_rules for figures in each.figures):
            seed = each.seed + each.replication
            values = {**changes.overrides, **dict(each.point.values)}
            line = command_line("simulate", scenario, (("--seed", seed),), changes.variables, values)
            yield BrokenRun(str(each.point), seed, line)
