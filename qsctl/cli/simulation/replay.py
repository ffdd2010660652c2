"""`qsctl replay`: run the load of a recording through the same engine again, with changed settings or in a broker."""

from __future__ import annotations

import time
from typing import Annotated, Final

import typer

from qsctl.cli.command import Commands
from qsctl.cli.options import ScenarioChanges
from qsctl.cli.panels import SIMULATION_PANEL
from qsctl.cli.simulation.options.command_line import command_line
from qsctl.cli.simulation.options.profile_overlay import ClientProfileOption, with_client_profiles
from qsctl.cli.simulation.options.recorded import RecordedOptions, ReplayModel
from qsctl.cli.simulation.progress.long_run import YesOption
from qsctl.cli.simulation.progress.watched_run import watched_run
from qsctl.cli.simulation.results.replay import BrokerReplay, Replayed, ReplayResult
from qsctl.cli.simulation.simulate import workers_for

COMMANDS: Final = Commands(panel=SIMULATION_PANEL)


@COMMANDS.command(
    "replay",
    examples=(
        "qsctl replay yesterday  # without a change: is it what was recorded?",
        "qsctl replay yesterday --set 'queue[OrderQueue]/unacked-threshold=1' --set 'queue[OrderQueue]/consumers=8'",
        "qsctl replay yesterday --config new.xml --out with-new",
        "qsctl replay yesterday --model solace --client-profile trading.json",
    ),
)
def replay(
    recording: Annotated[str, typer.Argument(metavar="RUN", help="Run folder of a recording, by path or URI.")],
    out: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Run folder, by path or URI.", show_default="a new one in qsctl-runs"),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            min=0, help="Seed of what is drawn where the replay leaves the recording.", show_default="the scenario's, 1"
        ),
    ] = None,
    replications: Annotated[int, typer.Option(min=1, help="Number of replications, each with draws of its own.")] = 1,
    client_profile: ClientProfileOption = None,
    *,
    recorded: RecordedOptions,
    changes: ScenarioChanges,
    workers: Annotated[int, typer.Option(min=0, help="Number of processes for replications; 0: one a processor.")] = 0,
    yes: YesOption = False,
) -> ReplayResult:
    """Replay a recording: what would have become of this load with other settings, or in a broker?

    Without a change the replay is equal to the recording: deliveries, their order, attempts and dead letters; else each
    difference is a line, and the exit status is 1. With one, what does not depend on it is copied, and the rest is
    modelled: consumers take as long as they took for samples of that size. Each queue of the service has paths:
    queue[NAME]/max-count, unacked-threshold, consumers (how many), service-factor (how slow), and one for each other
    setting that decides what becomes of samples; a path that does not exist is answered with those that do.
    """
    variables, overrides = changes.variables, changes.overrides
    given = [("--seed", seed), ("--replications", replications if replications > 1 else None), *recorded.given()]
    given += [("--client-profile", option) for option in client_profile or ()]
    line = command_line("replay", recording, given, variables, overrides)
    if recorded.model is not ReplayModel.REPLAY:
        return _to_brokers(recording, recorded, client_profile, changes, out, seed, replications, workers, yes, line)
    from qsctl.errors import UsageError
    from qsctl.eventlog.location import location
    from qsctl.eventlog.run_folder import new_folder
    from qsctl.sim.replay.replay import recorded_scenario
    from qsctl.sim.replay.replay import replay as replay_recording
    from qsctl.sim.replay.then_and_now import then_and_now

    if client_profile:
        raise UsageError("--client-profile is a broker's", remedy="Add --model solace or --model tibco.")
    folder, service = location(recording), recorded.service(variables)
    name = recorded_scenario(folder, service, overrides).name
    place = location(out) if out is not None else new_folder(name)
    processes = workers or workers_for(replications)
    with watched_run(name, place, replications, processes, yes=yes) as watched:
        report = replay_recording(
            folder, place, service=service, config=" ".join(recorded.config or ()), overrides=overrides, seed=seed,
            replications=replications, progress=watched.progress, stop=watched.stop, workers=processes, reproduce=line,
        )  # fmt: skip
    info = report.run.info
    return Replayed(
        recording=str(folder),
        folder=str(place),
        status=str(info.status),
        seed=info.seed,
        replications=len(info.done),
        reproduce=info.reproduce,
        difference=report.difference,
        measured=tuple(then_and_now(folder, place)),
    )


def _to_brokers(
    recording: str, recorded: RecordedOptions, client_profile: list[str] | None, changes: ScenarioChanges,
    out: str | None, seed: int | None, replications: int, workers: int, yes: bool, line: str,
) -> BrokerReplay:  # fmt: skip
    """Simulate a broker's clients under the recorded load."""
    from qsctl.cli.simulation.options.spark import ClusterOptions
    from qsctl.cli.simulation.simulate import figures_shown, simulated_result
    from qsctl.eventlog.location import location
    from qsctl.eventlog.run_folder import new_folder
    from qsctl.sim.run import run
    from qsctl.sim.scenario.overrides.set_values import apply_overrides
    from qsctl.sim.scenario.rules.scenario import check_rules

    plain = recorded.scenario(recording, changes.variables)
    profiled, of_profiles = with_client_profiles(plain, client_profile)
    read = apply_overrides(profiled, changes.overrides)
    check_rules(read)
    folder = location(out) if out is not None else new_folder(read.name)
    began = time.perf_counter()
    processes = workers or workers_for(replications)
    with watched_run(read.name, folder, replications, processes, yes=yes) as watched:
        report = run(
            read, folder, seed=seed, replications=replications, progress=watched.progress, stop=watched.stop,
            workers=processes, reproduce=line, overrides={**of_profiles, **changes.overrides},
        )  # fmt: skip
    elapsed = max(0.0, time.perf_counter() - began - report.compile_s - watched.asked_s)
    figures, by, notes = figures_shown(report, read, None, False, ClusterOptions())
    return BrokerReplay(simulated_result(report, read, elapsed, figures, by, notes, False))
