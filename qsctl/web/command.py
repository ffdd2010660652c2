"""The command `qsctl web`, which serves a page with queues to browsers on this machine."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from qsctl.cli.broker_options import BrokerOptions
from qsctl.cli.command import Commands
from qsctl.cli.engine.looks import FILES_HELP, LookOptions
from qsctl.cli.output.declared import DeclaredResult
from qsctl.cli.output.payloads import TypesOption
from qsctl.cli.output.results import Block, TextBlock
from qsctl.cli.panels import SAMPLES_PANEL
from qsctl.cli.service_options import TargetOptions
from qsctl.errors import UsageError
from qsctl.web._what_if_options import WhatIfOptions

if TYPE_CHECKING:
    from qsctl.cli.top.recorded import RunSource
    from qsctl.web._desk import ServiceDesk
    from qsctl.web._feed import PolledSource

COMMANDS: Final = Commands(panel=SAMPLES_PANEL)

_SHORTEST_S: Final = 0.2


@dataclass(frozen=True)
class ServedPage(DeclaredResult):
    """The address of the page."""

    address: Annotated[str, "address of the page, with the token that opens it"]
    allow_changes: Annotated[bool, "whether commands that change queues may be run from the page"]

    def blocks(self) -> list[Block]:
        """Return the address, whether the page may change queues, and the key that ends the command."""
        rule = "It may change queues." if self.allow_changes else "It may not change queues (--allow-changes)."
        return [
            TextBlock(f"The page is at {self.address}"),
            TextBlock(f"{rule} Keep the address to yourself: it opens the page. Ctrl-C ends it.", "faint"),
        ]


@COMMANDS.command(
    "web",
    examples=(
        "qsctl web  # the embedded service of this directory",
        "qsctl web --service dds:57 --open",
        "qsctl web --service dds:57 --allow-changes  # requeue, move and flush from the page",
        "qsctl web --run qsctl-runs/slow-subscriber-1  # at any instant of a run or a recording",
        "qsctl web --broker https://broker.example:943",
        "qsctl web --engine hospital.recovery",
        "qsctl web --scenario my-scenario.xml  # move its settings in the view What if",
    ),
)
def web(
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port of 127.0.0.1 to listen on; 0: a free one.")] = 0,
    open_: Annotated[bool, typer.Option("--open/--no-open", help="Start the browser with the page.")] = False,
    allow_changes: Annotated[
        bool, typer.Option("--allow-changes", help="Let the page requeue, move and flush samples.")
    ] = False,
    interval: Annotated[
        str, typer.Option(metavar="TIME", help="Time between two readings, a duration such as 500ms or 2s.")
    ] = "1s",
    run: Annotated[
        str | None,
        typer.Option(metavar="RUN", rich_help_panel="Run", help="Run folder or recording to show, by path or URI."),
    ] = None,
    engine: Annotated[
        list[Path] | None,
        typer.Option(metavar="SOURCE", rich_help_panel="Engine", help=f"{FILES_HELP}; may be repeated."),
    ] = None,
    netconfig: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            rich_help_panel="Engine",
            help="NetConfig of a site, whose threads are drawn with what waits at them.",
        ),
    ] = None,
    types: TypesOption = None,
    *,
    what_if: WhatIfOptions,
    listings: LookOptions,
    broker: BrokerOptions,
    service: TargetOptions,
) -> Iterator[ServedPage]:
    """Show queues in a browser on this machine, as they change: depth, rates, unacknowledged, dead, watermarks.

    The page is served on loopback alone, and its address has a token that opens it. Ctrl-C ends it, with status 0.
    A service is shown where one is named, or where nothing else is.

    Reading starts the `change` counters again from zero, as `qsctl get status` does.
    """
    from qsctl.cli.context.use import DEFAULT_SERVICE, source_of_service
    from qsctl.cli.location import check_location, seconds
    from qsctl.cli.samples.json_form import read_type_file
    from qsctl.netconfig.read import read_netconfig
    from qsctl.web._context import WebContext
    from qsctl.web._desk import ServiceDesk
    from qsctl.web._security import PageAccess
    from qsctl.web._server import PageServer, bind, create_app

    interval_s = seconds(interval, "--interval")
    if interval_s < _SHORTEST_S:
        raise UsageError(f"--interval {interval} is too short", remedy="Give at least 200ms.")
    feeds: list[PolledSource] = []
    desk: ServiceDesk | None = None
    check_location(service.service)
    has_other = bool(run or engine or netconfig or broker.broker)
    if not has_other or source_of_service() != DEFAULT_SERVICE:
        desk = ServiceDesk(service)
        feeds.append(_service_feed(desk, interval_s))
    if broker.broker:
        feeds.append(_broker_feed(broker, max(interval_s, 5.0)))
    if engine:
        feeds.append(_engine_feed(engine, listings, max(interval_s, 2.0)))
    asked = what_if.sources()
    if netconfig is not None:
        read_netconfig(netconfig)  # so that its faults are reported here, not in a browser
    recorded = None if run is None else _run_source(run)
    library = read_type_file(types)
    sockets = bind(port)
    access = PageAccess(sockets[0].getsockname()[1])
    context = WebContext(
        feeds=tuple(feeds),
        desk=desk,
        run=recorded,
        netconfig=netconfig,
        what_if=asked,
        types=library,
        allow_changes=allow_changes,
    )
    app = create_app(context, access)
    yield ServedPage(access.address, allow_changes)
    if open_:
        _open_browser(access.ticket_address)
    PageServer(app, context).run(sockets=sockets)


def _service_feed(desk: ServiceDesk, interval_s: float) -> PolledSource:
    from qsctl.cli.top.live import LiveSource
    from qsctl.web._feed import PolledSource

    # The desk keeps the connection, which the source returns after each poll.
    source = LiveSource(desk.open, desk.options.service, keeps_open=False)
    return PolledSource("service", desk.title, source, interval_s)


def _run_source(run: str) -> RunSource:
    from qsctl.cli.top.recorded import RunSource
    from qsctl.eventlog.location import location

    return RunSource(location(run), 1.0)


def _broker_feed(broker: BrokerOptions, interval_s: float) -> PolledSource:
    from qsctl.cli.top.broker import BrokerSource
    from qsctl.web._feed import PolledSource

    return PolledSource("broker", broker.broker, BrokerSource(broker.open), interval_s)


def _engine_feed(engine: list[Path], listings: LookOptions, interval_s: float) -> PolledSource:
    from qsctl.cli.top.engine import EngineSource
    from qsctl.web._feed import PolledSource

    return PolledSource("engine", ", ".join(map(str, engine)), EngineSource(engine, listings), interval_s)


def _open_browser(address: str) -> None:
    import webbrowser

    if not webbrowser.open(address):
        sys.stderr.write("No browser was found: open the address yourself.\n")
