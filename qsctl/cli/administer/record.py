"""`qsctl record start`, `record stop` and `record status`: an event log of a running service."""

from __future__ import annotations

import time
from typing import Annotated, Final

import typer

from qsctl.cli.administer.record_results import RecordingStates
from qsctl.cli.administer.recording_options import (
    LEVEL_HELP,
    MAX_DEFAULT,
    MAX_HELP,
    SAMPLE_DEFAULT,
    SAMPLE_HELP,
    RecordLevel,
    start_command,
)
from qsctl.cli.command import Commands
from qsctl.cli.panels import SERVICE_PANEL
from qsctl.cli.service_options import TargetOptions

COMMANDS: Final = Commands(
    panel=SERVICE_PANEL,
    group="record",
    help="Record the events of a service for summarize, report, compare and replay.",
)

_LOOK_EVERY_S: Final = 0.2


@COMMANDS.command(
    "start",
    examples=(
        "qsctl record start monday --service dds:55",
        "qsctl record start busy --level messages --sample 10% --max 2GB --service dds:55",
        "qsctl record start here  # of the embedded service: what its commands do from now on",
    ),
)
def record_start(
    folder: Annotated[
        str,
        typer.Argument(
            metavar="DIR",
            help="Folder on the service's own machine, new or empty; a relative one is below the service's working "
            "directory.",
        ),
    ],
    level: Annotated[RecordLevel, typer.Option(help=LEVEL_HELP)] = RecordLevel.MESSAGES,
    max_size: Annotated[str, typer.Option("--max", metavar="SIZE", help=MAX_HELP)] = MAX_DEFAULT,
    sample: Annotated[str, typer.Option(metavar="SHARE", help=SAMPLE_HELP)] = SAMPLE_DEFAULT,
    *,
    service: TargetOptions,
) -> RecordingStates:
    """Begin to record the events of a service into a run folder.

    Payloads are never written. The service works on whatever becomes of the recording.
    """
    command = start_command(folder, level, max_size, sample)
    with service.open() as administration:
        return RecordingStates(tuple(administration.start_recording(command)))


@COMMANDS.command("stop", examples=("qsctl record stop --service dds:55",))
def record_stop(
    *,
    service: TargetOptions,
) -> RecordingStates:
    """End the recording of a service, and wait until its folder is finished."""
    from qsctl.errors import NoAnswer
    from qsctl.instant import SECOND_NS, parse_duration

    deadline = time.monotonic() + parse_duration(service.timeout) / SECOND_NS
    with service.open() as administration:
        states = administration.stop_recording()
        while not all(each.body.is_complete for each in states):
            if time.monotonic() > deadline:
                raise NoAnswer(
                    "the recording is not finished yet", remedy="Ask with `qsctl record status` until it is."
                )
            time.sleep(_LOOK_EVERY_S)
            states = administration.recordings()
        return RecordingStates(tuple(states))


@COMMANDS.command("status", examples=("qsctl record status --service dds:55", "qsctl record status -o json"))
def record_status(
    *,
    service: TargetOptions,
) -> RecordingStates:
    """Show the current recording of a service, or its last one."""
    with service.open() as administration:
        return RecordingStates(tuple(administration.recordings()))
