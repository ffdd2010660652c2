"""`--client-profile` of the commands that simulate: files whose values replace those of a scenario's profiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from qsctl.cli.output.render import note
from qsctl.cli.profiles.options import file_and_name, open_file
from qsctl.cli.simulation.options.command_line import command_line
from qsctl.cli.simulation.progress.watched_run import watched_run
from qsctl.errors import Interrupted

if TYPE_CHECKING:
    from qsctl.eventlog.location import Location
    from qsctl.sim.scenario.scenario import Scenario

ClientProfileOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="[PROFILE=]FILE[#NAME]",
        help="Client profile of a broker, in any format, in place of the scenario's profile PROFILE, of the one of the "
        "same name, or of its only one; NAME where the file has several; may be repeated.",
    ),
]


def with_client_profiles(scenario: Scenario, options: Sequence[str] | None) -> tuple[Scenario, Mapping[str, str]]:
    """Return the scenario with the values of client profiles, and the changed values by the paths of `--set`.

    The replacements are noted on standard error.

    Raises:
        InvalidFile: a file is not valid.
        UsageError: it is ambiguous which profile of the scenario is replaced.
    """
    overrides: dict[str, str] = {}
    for option in options or ():
        scenario, changed = with_client_profile(scenario, option)
        overrides |= changed
    return scenario, overrides


def with_client_profile(scenario: Scenario, option: str) -> tuple[Scenario, Mapping[str, str]]:
    """Return the scenario with the values of one client profile; otherwise as `with_client_profiles`."""
    from qsctl.profiles.formats.file import choose
    from qsctl.sim.scenario.overrides.overlay import overlay

    target, equals, name = option.partition("=")
    if not equals or target not in {profile.name for profile in scenario.profiles}:
        target, name = "", option
    path, wanted = file_and_name(name)
    file = open_file(path, None)
    there = {each.profile.name for each in file.profiles}
    named = wanted or (target if len(file.profiles) > 1 and target in there else None)
    chosen = choose(file, named, how="Behind the file with #")
    file.require_every_value([chosen])
    overlaid = overlay(scenario, chosen.profile, target or None)
    changed = ", ".join(f"{path.partition('/')[2]}={text}" for path, text in overlaid.overrides.items())
    note(f"{name} in place of profile {overlaid.profile!r}: {changed or 'the same values'}")
    return overlaid.scenario, overlaid.overrides


def compared_runs(
    name: str, options: Sequence[str], replications: int, seed: int | None, variables: Mapping[str, str],
    assignments: Mapping[str, str], out: Location | None, yes: bool,
) -> tuple[Location, ...]:  # fmt: skip
    """Simulate a scenario once with each client profile, with the same seed; return the run folders.

    Both sides take about as long: if the first turns out to be long, it shows its cost and asks, unless `yes`.

    Raises:
        UsageError: it is ambiguous which profile of the scenario is replaced.
        Interrupted: the user or the calling program ended it.
        Declined: the user answered no.
    """
    from qsctl.eventlog.run_folder import RunStatus, new_folder
    from qsctl.eventlog.schema import LogLevel
    from qsctl.sim.run import run
    from qsctl.sim.scenario.overrides.set_values import apply_overrides
    from qsctl.sim.scenario.rules.scenario import check_rules
    from qsctl.sim.simulate import open_scenario

    scenario = open_scenario(name, variables, {}, seed)
    sides = []
    for option in options:
        changed, overrides = with_client_profile(scenario, option)
        read = apply_overrides(changed, assignments)
        check_rules(read)
        sides.append((read, {**overrides, **assignments}))
    folders: list[Location] = []
    for side, (read, every) in zip("ab", sides, strict=True):
        folder = new_folder(f"{scenario.name}-{side}") if out is None else out / side
        given = (("--seed", seed), ("--replications", replications), ("--level", LogLevel.COUNTERS))
        line = command_line("simulate", name, given, variables, every)
        title = f"{scenario.name}, {side.upper()}"
        with watched_run(title, folder, replications, 1, yes=yes or bool(folders)) as watched:
            report = run(
                read, folder, replications=replications, level=LogLevel.COUNTERS, reproduce=line, overrides=every,
                progress=watched.progress, stop=watched.stop,
            )  # fmt: skip
        if report.info.status is not RunStatus.COMPLETE:
            raise Interrupted(
                f"{side.upper()} was ended before it was complete: {folder} has the part that was simulated"
            )
        note(f"{side.upper()} is {folder}")
        folders.append(folder)
    return tuple(folders)
