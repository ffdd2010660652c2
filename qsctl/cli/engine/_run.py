"""`qsctl engine run`, `qsctl engine crash-points`: run a scenario's integration engine, or interrupt it everywhere."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from qsctl.cli.command import Commands
from qsctl.cli.engine._run_results import InterruptedRun, Ran
from qsctl.cli.options import ScenarioChanges
from qsctl.cli.simulation.options.ready import ready_of_model
from qsctl.cli.simulation.progress.run_progress import stop_on_interrupt
from qsctl.cli.simulation.results.simulate import ReadyScenarios
from qsctl.errors import UsageError

if TYPE_CHECKING:
    from qsctl.sim.scenario.scenario import Scenario

COMMANDS: Final = Commands()

_SCENARIO_HELP: Final = 'Scenario file or name of a ready one, of model="integration".'
ScenarioArgument = Annotated[str, typer.Argument(metavar="SCENARIO", help=_SCENARIO_HELP)]
SeedOption = Annotated[
    int | None, typer.Option(min=0, help="Seed of the random numbers.", show_default="the scenario's")
]


class SynchronizationChoice(StrEnum):
    """The values of `config.filesystem.Synchronization`, repeated here to save its import."""

    FULL = "full"
    NORMAL = "normal"
    OFF = "off"


@COMMANDS.command(
    "run",
    examples=(
        "qsctl engine run --list",
        "qsctl engine run clinic --until 5min --database recovery.db # what a killed engine leaves behind",
        "qsctl engine run clinic --until 7min --database recovery.db # it recovers, and goes on",
        "qsctl engine run clinic --database recovery.db --speed 10 # ten times as fast as the clock",
    ),
)
def run(
    scenario: Annotated[
        str | None, typer.Argument(metavar="[SCENARIO]", help=_SCENARIO_HELP, show_default=False)
    ] = None,
    database: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Recovery database: created where there is none, continued where there is one.",
            show_default="none: nothing is stored",
        ),
    ] = None,
    begin: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="DURATION",
            help="Virtual time of the beginning, such as 5min.",
            show_default="where the database ends",
        ),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="Virtual time of the end, such as 5min.", show_default="the horizon"),
    ] = None,
    drain: Annotated[
        bool, typer.Option("--drain", help="Go on after the end without new messages, until nothing happens.")
    ] = False,
    speed: Annotated[
        float, typer.Option(min=0.0, help="Virtual seconds for each second of the wall clock; 0: as fast as possible.")
    ] = 0.0,
    synchronization: Annotated[
        SynchronizationChoice,
        typer.Option(help="Durability of what is written: full survives a loss of power, normal a killed process."),
    ] = SynchronizationChoice.NORMAL,
    seed: SeedOption = None,
    discard_damaged: Annotated[
        bool,
        typer.Option(
            "--discard-damaged",
            help="Start without the messages of a database of which nothing can be read, or whose log is missing; keep "
            "the file under another name.",
        ),
    ] = False,
    list_ready: Annotated[bool, typer.Option("--list", help="List the ready scenarios of engines and exit.")] = False,
    *,
    changes: ScenarioChanges,
) -> Ran | ReadyScenarios:
    """Run an integration engine; its end is that of an engine which is killed.

    What was in memory only is gone then; the next run with the same database recovers the rest. Of a damaged database
    it recovers what can be read, and exits with 9 at its end; so it does, without a run, where nothing can be read, or
    where the file is another scenario's or something else.
    """
    if list_ready:
        from qsctl.sim.scenario.scenario import Model

        return ready_of_model(Model.INTEGRATION, "qsctl engine run NAME")
    if scenario is None:
        raise UsageError(
            "no scenario is named", remedy="Name a file or a ready scenario; qsctl engine run --list has those."
        )
    from qsctl.config.filesystem import Synchronization as Durability
    from qsctl.instant import parse_duration
    from qsctl.sim.engine.run_on_disk import run_engine

    read = _read(scenario, seed, changes)
    with stop_on_interrupt() as stopped:
        made = run_engine(
            read,
            database,
            from_ns=None if begin is None else parse_duration(begin),
            until_ns=None if until is None else parse_duration(until),
            drain=drain,
            speed=speed,
            synchronization=Durability[synchronization.name],
            discards_damaged=discard_damaged,
            stop=stopped,
        )
    return Ran(read.name, "" if database is None else str(database), made)


@COMMANDS.command(
    "crash-points",
    examples=(
        "qsctl engine crash-points engine-crash-points --every 20 # a table of interruptions",
        "qsctl engine crash-points my-engine.xml -o json # every wrong outcome",
    ),
)
def crash_points(
    scenario: ScenarioArgument,
    every: Annotated[int, typer.Option(min=1, help="Distance between the points that are tried; 1: every point.")] = 1,
    nested: Annotated[bool, typer.Option("--nested/--no-nested", help="Interrupt the recovery, too.")] = True,
    seed: SeedOption = None,
    *,
    changes: ScenarioChanges,
) -> InterruptedRun:
    """Interrupt an integration engine at every point, and show what its recovery did there.

    Exits with 1 when a message was lost, delivered in part, or delivered twice although it must not be.
    """
    from qsctl.sim.engine.crash_points import explore

    return InterruptedRun(explore(_read(scenario, seed, changes), every=every, nested=nested))


def _read(scenario: str, seed: int | None, changes: ScenarioChanges) -> Scenario:
    from qsctl.sim.scenario.rules.scenario import check_rules
    from qsctl.sim.scenario.scenario import Model
    from qsctl.sim.simulate import open_scenario

    read = open_scenario(scenario, changes.variables, changes.overrides, seed)
    if read.model is not Model.INTEGRATION:
        raise UsageError(
            f"scenario {read.name!r} is of model {read.model}, not integration",
            remedy="Name a scenario with an <engine>, as clinic; qsctl simulate runs the others.",
        )
    check_rules(read)
    return read
