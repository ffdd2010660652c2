"""Options of the commands that start from a recording: `--from`, `--model`, `--config`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from qsctl.cli.option_groups import OptionGroup
from qsctl.errors import UsageError

if TYPE_CHECKING:
    from qsctl.core.settings import ServiceSettings
    from qsctl.sim.scenario.scenario import Scenario

ARRIVALS_PARENT: Final = Path("qsctl-runs")
"""Folder below which the arrivals of a broker's clients are written."""

FromOption = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="RUN",
        help="Recording of a service that is replayed, by path or URI, in place of a scenario; its paths are those of "
        "replay.",
        show_default="none, a scenario",
    ),
]


class ReplayModel(StrEnum):
    """The model that receives the load of a recording."""

    REPLAY = "replay"
    SOLACE = "solace"
    TIBCO = "tibco"


@dataclass(frozen=True)
class RecordedOptions(OptionGroup):
    """The options for the replay of a recording."""

    model: Annotated[
        ReplayModel,
        typer.Option(
            help="Receiver of the recorded load: the queuing service itself, or clients of a broker, one a consumer."
        ),
    ] = ReplayModel.REPLAY
    config: Annotated[
        list[str] | None,
        typer.Option(
            "--config",
            metavar="FILE",
            help="Configuration of the service in place of the recorded one; may be repeated.",
            show_default="the recorded one",
        ),
    ] = None
    config_name: Annotated[
        str | None,
        typer.Option(
            "--config-name",
            metavar="NAME",
            help="Name of the <queuing_service> in the files of --config; needed where there are several.",
            show_default="the only one",
        ),
    ] = None

    def service(self, variables: Mapping[str, str]) -> ServiceSettings | None:
        """Return the configuration of `--config`; None for the recorded one.

        Raises:
            InvalidFile: a file is not valid.
            UsageError: the load is that of a broker's clients.
        """
        if not self.config:
            if self.config_name is not None:
                raise UsageError("--config-name names a service of --config", remedy="Give --config FILE too.")
            return None
        if self.model is not ReplayModel.REPLAY:
            raise UsageError(
                f"--config is for the service itself, and --model is {self.model}",
                remedy="Give a client profile with --client-profile.",
            )
        from qsctl.config.load import load_configuration

        loaded = load_configuration(
            self.config,
            configuration_name=self.config_name,
            variables=variables,
            environment=dict(os.environ),
            working_directory=Path.cwd(),
            default_files=False,
        )
        return loaded.configuration.service

    def scenario(self, recording: str, variables: Mapping[str, str]) -> Scenario:
        """Return the scenario that replays a recording, before the changes of `--set`.

        Raises:
            NotFound: it is not a run.
            InvalidInput: the recording cannot be replayed.
        """
        from qsctl.eventlog.location import location
        from qsctl.sim.replay.egress import egress_scenario
        from qsctl.sim.replay.replay import recorded_scenario
        from qsctl.sim.scenario.scenario import Model

        folder = location(recording)
        if self.model is ReplayModel.REPLAY:
            return recorded_scenario(folder, self.service(variables))
        self.service(variables)
        return egress_scenario(folder, Model(self.model.value), ARRIVALS_PARENT)

    def given(self) -> list[tuple[str, object]]:
        """Return the given options with their values, for the command that repeats the run."""
        options: list[tuple[str, object]] = []
        if self.model is not ReplayModel.REPLAY:
            options.append(("--model", self.model))
        options += [("--config", file) for file in self.config or ()]
        return [*options, ("--config-name", self.config_name)]


def with_other_recordings(scenario: Scenario, recordings: Sequence[str]) -> Scenario:
    """Return the replay of one recording, extended to several recordings.

    Raises:
        UsageError: the load is that of a broker's clients.
        NotFound: a recording is not a run.
        InvalidInput: one cannot be replayed, or is of another service.
    """
    from qsctl.eventlog.location import location
    from qsctl.sim.replay.replay import with_recordings

    if scenario.replay is None:
        raise UsageError(
            "several recordings are for the model replay",
            remedy="Leave out --model, or name one recording.",
        )
    return with_recordings(scenario, [location(each) for each in recordings])


def scenario_or_recording(
    scenario: str | None,
    recording: str | None,
    recorded: RecordedOptions,
    variables: Mapping[str, str],
    seed: int | None,
) -> Scenario:
    """Return the scenario to simulate: one by file or name, or the replay of a recording by `--from`.

    Raises:
        UsageError: both are given, or neither, or an option of recordings with a scenario.
    """
    import dataclasses

    from qsctl.sim.simulate import open_scenario

    if (scenario is None) == (recording is None):
        raise UsageError(
            "SCENARIO is missing" if scenario is None else "SCENARIO and --from are both given",
            remedy="Name a scenario, or a recording with --from RUN.",
        )
    if recording is None:
        if recorded.given() != [("--config-name", None)]:
            raise UsageError(
                "--model, --config and --config-name are for a recording", remedy="Name one with --from RUN."
            )
        return open_scenario(scenario, variables, {}, seed)
    found = recorded.scenario(recording, variables)
    return found if seed is None else dataclasses.replace(found, seed=seed)
