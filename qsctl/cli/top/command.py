"""`qsctl top`: the queues of a service, a run or an engine, or the clients of a broker, as they change."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import typer

from qsctl.cli.broker_options import BrokerOptions
from qsctl.cli.command import Commands
from qsctl.cli.engine.looks import FILES_HELP, LookOptions
from qsctl.cli.output.declared import DeclaredResult
from qsctl.cli.output.results import Block
from qsctl.cli.panels import SAMPLES_PANEL
from qsctl.cli.service_options import TargetOptions
from qsctl.errors import UsageError

COMMANDS: Final = Commands(panel=SAMPLES_PANEL)

_SHORTEST_S: Final = 0.1


@dataclass(frozen=True)
class Watched(DeclaredResult):
    """The empty result after the user has quit."""

    watched: Annotated[str, "service, run folder, engine or broker that was looked at"]

    def blocks(self) -> list[Block]:
        """Return nothing."""
        return []


@COMMANDS.command(
    "top",
    examples=(
        "qsctl top --service dds:57",
        "qsctl top --run qsctl-runs/slow-subscriber-1 --speed 10  # a run, ten times as fast",
        "qsctl top --interval 500ms  # of the embedded service",
        "qsctl top --engine hospital.recovery  # the queues of an integration engine; enter: the messages of one",
        "qsctl top --broker https://broker.example:943 --interval 5s  # the clients of a broker",
    ),
)
def top(
    interval: Annotated[
        str, typer.Option(metavar="TIME", help="Time between two readings, a duration such as 500ms or 2s.")
    ] = "2s",
    run: Annotated[
        str | None,
        typer.Option(
            metavar="RUN",
            rich_help_panel="Run",
            help="Run folder or recording that is replayed in place of a service, by path or URI.",
        ),
    ] = None,
    speed: Annotated[
        float, typer.Option(rich_help_panel="Run", help="Number of seconds of the run that pass in one second.")
    ] = 1.0,
    replication: Annotated[
        int, typer.Option(rich_help_panel="Run", min=0, help="Number of the replication of the run, from 0.")
    ] = 0,
    engine: Annotated[
        list[Path] | None,
        typer.Option(metavar="SOURCE", rich_help_panel="Engine", help=f"{FILES_HELP}; may be repeated."),
    ] = None,
    *,
    listings: LookOptions,
    broker: BrokerOptions,
    service: TargetOptions,
) -> Watched:
    """Show queues as they change, on the whole terminal: depth, rates, unacknowledged, dead, watermarks; h is help.

    Of an engine: its queues with rates, ages and errors, and the messages of the one that is chosen, in their order.
    Of a broker: its clients with rates and discards, and the priority queues of the one that is chosen.

    Reading starts the `change` counters again from zero, as `qsctl get status` does.
    """
    from qsctl.cli.location import seconds
    from qsctl.cli.top.look import LookSource

    interval_s = seconds(interval, "--interval")
    if interval_s < _SHORTEST_S:
        raise UsageError(f"--interval {interval} is too short", remedy="Give at least 100ms.")
    named = [option for option, value in (("--run", run), ("--engine", engine), ("--broker", broker.broker)) if value]
    if len(named) > 1:
        raise UsageError(f"{' and '.join(named)} are both given", remedy="Name one source.")
    if not (math.isfinite(speed) and speed > 0):
        raise UsageError(f"--speed {speed:g} is not a speed", remedy="Give a number above 0, such as 10.")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError(
            "top needs a terminal for its screen and its keys",
            remedy="Use `qsctl get status --watch` in a pipe: it prints one document a line.",
        )
    source: LookSource
    if run is not None:
        from qsctl.cli.top.recorded import RunSource
        from qsctl.eventlog.location import location

        source = RunSource(location(run), speed, replication)
        interval_s = min(interval_s, 0.2)  # a run, unlike a service, is not locked by its readers
    elif engine:
        from qsctl.cli.top.engine import EngineSource

        source = EngineSource(engine, listings)
    elif broker.broker:
        from qsctl.cli.top.broker import BrokerSource

        source = BrokerSource(broker.open)
    else:
        from qsctl.cli.top.live import LiveSource

        source = LiveSource(service.open, service.service, keeps_open=service.service.startswith("dds:"))
    from qsctl.cli.top._terminal import Looker, show

    show(Looker(source, interval_s), is_run=run is not None)
    watched = str(engine[0]) if engine else service.service if run is None else run
    return Watched(broker.broker or watched)
