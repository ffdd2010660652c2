"""`qsctl engine import`, `export`, `lint`, `balance`: commands on a site (a configured engine)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeVar

import typer

from qsctl.cli._output_files import written
from qsctl.cli.command import Commands
from qsctl.cli.engine._site_results import (
    Balanced,
    ExportedRoutes,
    ImportedEngine,
    LintedSite,
    SiteThreads,
    SiteUses,
)
from qsctl.cli.engine._site_sources import SiteSources
from qsctl.cli.options import ScenarioChanges
from qsctl.errors import NotFound, UsageError

if TYPE_CHECKING:
    from qsctl.netconfig.load import SiteLoad
    from qsctl.netconfig.model import NetConfig
    from qsctl.netconfig.procedures import ProcedureTable
    from qsctl.sim.scenario.scenario import Scenario

COMMANDS: Final = Commands()

_START_CHARACTERS: Final = 400

_Row = TypeVar("_Row")


class SiteTable(StrEnum):
    """The values of `engine export --table`."""

    ROUTES = "routes"
    THREADS = "threads"
    USES = "uses"


NetConfigArgument = Annotated[
    Path, typer.Argument(metavar="NETCONFIG", help="NetConfig of a site.", show_default=False)
]
SiteArgument = Annotated[
    str,
    typer.Argument(
        metavar="NETCONFIG|SCENARIO",
        help='NetConfig of a site, or a scenario file or ready scenario, of model="integration".',
        show_default=False,
    ),
]
ForceOption = Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")]


@COMMANDS.command(
    "import",
    examples=(
        "qsctl engine import NetConfig --statistics morning.txt --statistics evening.txt --durations procedures.csv",
        "qsctl engine import NetConfig --archive saved --out site.xml --name lakeside",
        "qsctl engine import NetConfig --listing before.txt --listing after.txt --interval 10min",
    ),
)
def import_site(
    netconfig: NetConfigArgument,
    *,
    sources: SiteSources,
    name: Annotated[
        str, typer.Option(metavar="NAME", help="Name of the scenario.", show_default="that of the file's folder")
    ] = "",
    horizon: Annotated[str, typer.Option(metavar="DURATION", help="Virtual time that the scenario lasts.")] = "24h",
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Scenario file to write.", show_default="NAME.xml")
    ] = None,
    force: ForceOption = False,
) -> ImportedEngine:
    """Write a scenario of a site: its threads and routes from its NetConfig, its load from what it counted or saved.

    What is not known is assumed: it has a comment in the file, and a row here.
    """
    from qsctl.instant import INFINITE_NS, parse_duration
    from qsctl.netconfig.read import read_netconfig
    from qsctl.sim.scenario.rules.scenario import check_rules
    from qsctl.sim.site.marks import marked_text
    from qsctl.sim.site.scenario import site_scenario

    horizon_ns = parse_duration(horizon)
    if not 0 < horizon_ns < INFINITE_NS:
        raise UsageError(f"--horizon {horizon} is not a finite duration above 0", remedy="Write it as in 24h.")
    reading = read_netconfig(netconfig, sources.encoding)
    made = site_scenario(
        reading.config,
        sources.load(),
        sources.procedures(),
        name=name or netconfig.absolute().parent.name or "site",
        horizon_ns=horizon_ns,
    )
    check_rules(made.scenario)
    file = out or Path(f"{made.scenario.name}.xml")
    text = marked_text(made.scenario, made.notes)
    return ImportedEngine(
        written(text, file, force=force),
        made.scenario.name,
        len(reading.config.processes),
        len(reading.config.threads),
        made.notes,
        (*(str(each) for each in reading.warnings), *made.left_out),
        text,
    )


@COMMANDS.command(
    "export",
    examples=(
        "qsctl engine export clinic  # routes and their rates",
        "qsctl engine export site.xml --hour 10 --destination 'lab*' -o csv  # what feeds the laboratory",
        "qsctl engine export site.xml --graph routes.svg",
        "qsctl engine export NetConfig --table threads  # processes, hosts and ports",
        "qsctl engine export NetConfig --table uses --name 'adt_*.xlt'  # where a translation is used",
    ),
)
def export_site(
    site: SiteArgument,
    *,
    table: Annotated[
        SiteTable,
        typer.Option(
            help="Table to show: routes with their rates, threads with their connections, or uses of procedures and "
            "translations; the last two of a NetConfig."
        ),
    ] = SiteTable.ROUTES,
    source: Annotated[
        str,
        typer.Option("--source", "-f", metavar="THREAD", help="Source thread; ? is one character, * any text."),
    ] = "*",
    destination: Annotated[
        str,
        typer.Option(
            "--destination",
            "-d",
            metavar="THREAD",
            help="Destination thread; ? is one character, * any text.",
        ),
    ] = "*",
    name: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Name of the thread, procedure or translation; ? is one character, * any text.",
        ),
    ] = "*",
    hour: Annotated[
        int | None,
        typer.Option(min=0, max=23, help="Hour of the day whose rates are shown.", show_default="the mean of the day"),
    ] = None,
    graph: Annotated[
        Path | None, typer.Option(metavar="FILE.svg", help="Drawing of the routes to write.", show_default="none")
    ] = None,
    force: ForceOption = False,
    sources: SiteSources,
    changes: ScenarioChanges,
) -> ExportedRoutes | SiteThreads | SiteUses:
    """Show which thread feeds which: a row for each thread, transaction id and destination, with its rate.

    Of a NetConfig, what is not known is assumed, as `engine import` does.
    """
    from qsctl.sim.site.flows import site_flows

    if graph is not None and graph.suffix.lower() != ".svg":
        raise UsageError(f"--graph {graph} is not an SVG file", remedy="Name a file that ends in .svg.")
    if table is not SiteTable.ROUTES:
        return _table_of(site, sources, table, source, destination, name)
    scenario = _scenario_of(site, sources, changes)
    assert scenario.engine is not None
    flows = tuple(
        each
        for each in site_flows(scenario.engine, hour)
        if fnmatchcase(each.source, source)
        and fnmatchcase(each.destination, destination)
        and (fnmatchcase(each.source, name) or fnmatchcase(each.destination, name))
    )
    file = ""
    if graph is not None:
        from qsctl.report.route_graph import route_picture
        from qsctl.report.standalone import picture_svg

        file = written(picture_svg(route_picture(flows)), graph, force=force)
    return ExportedRoutes(scenario.name, flows, file)


def _table_of(
    site: str, sources: SiteSources, table: SiteTable, source: str, destination: str, name: str
) -> SiteThreads | SiteUses:
    """Return the table of threads or uses of a NetConfig."""
    from qsctl.netconfig.inventory import thread_rows, use_rows
    from qsctl.netconfig.read import read_netconfig

    if not _is_netconfig(site):
        raise UsageError(f"--table {table} needs a NetConfig, and {site} is a scenario", remedy="Name a NetConfig.")
    config = read_netconfig(Path(site), sources.encoding).config
    if table is SiteTable.THREADS:
        return SiteThreads(tuple(_chosen(thread_rows(config), lambda each: fnmatchcase(each.thread, name))))
    uses = _chosen(
        use_rows(config),
        lambda each: (
            fnmatchcase(each.name, name)
            and fnmatchcase(each.thread, source)
            and any(fnmatchcase(one, destination) for one in each.destination.split() or [""])
        ),
    )
    return SiteUses(tuple(uses))


def _chosen(rows: Iterable[_Row], is_meant: Callable[[_Row], bool]) -> list[_Row]:
    return [each for each in rows if is_meant(each)]


@COMMANDS.command(
    "lint",
    examples=(
        "qsctl engine lint NetConfig",
        "qsctl engine lint NetConfig --archive saved -o json  # transaction ids that came and have no route, too",
        "qsctl engine lint NetConfig --statistics morning.txt --statistics evening.txt --durations procedures.csv",
    ),
)
def lint(site: SiteArgument, *, sources: SiteSources) -> LintedSite:
    """Find faults of a site: missing destinations, ids without a route, cycles, uneven load.

    Exits with 1 where there is an error or a warning.
    """
    from qsctl.netconfig.lint import lint_site

    config, load, procedures = _site_of(site, sources)
    return LintedSite(config.file, tuple(lint_site(config, load, procedures)))


@COMMANDS.command(
    "balance",
    examples=(
        "qsctl engine balance site.xml",
        "qsctl engine balance site.xml --max-moves 3 --fixed adt_in --fixed orders_in",
        "qsctl engine balance site.xml --add-process spare -o json",
    ),
)
def balance_site(
    scenario: Annotated[
        str,
        typer.Argument(metavar="SCENARIO", help='Scenario file or name of a ready one, of model="integration".'),
    ],
    moves: Annotated[int, typer.Option("--max-moves", min=1, max=1000, help="Most threads to move.")] = 10,
    fixed: Annotated[
        list[str] | None, typer.Option(metavar="THREAD", help="Thread that stays where it is; may be repeated.")
    ] = None,
    added: Annotated[
        list[str] | None,
        typer.Option("--add-process", metavar="NAME", help="New process that threads may move to; may be repeated."),
    ] = None,
    check: Annotated[
        bool,
        typer.Option("--check/--no-check", help="Run a simulation of the busiest hour with and without the moves."),
    ] = True,
    messages: Annotated[
        int, typer.Option("--check-messages", min=100, max=10_000_000, help="Messages that a check simulates, about.")
    ] = 20_000,
    *,
    changes: ScenarioChanges,
) -> Balanced:
    """Find the best process for each thread by the waits for translation, computed and then simulated.

    Exits with 1 where no move helps.
    """
    from qsctl.sim.site.balance import balance

    read = _read_scenario(scenario, changes)
    found = balance(read, moves_max=moves, fixed=fixed or (), added=added or (), check=check, messages_max=messages)
    return Balanced(read.name, found)


def _site_of(site: str, sources: SiteSources) -> tuple[NetConfig, SiteLoad, ProcedureTable]:
    """Return the NetConfig, load and procedures of a site that is given by its NetConfig or by a scenario."""
    from qsctl.netconfig.read import read_netconfig

    if _is_netconfig(site):
        return read_netconfig(Path(site), sources.encoding).config, sources.load(), sources.procedures()
    from qsctl.sim.scenario.xml import find_scenario, read_scenario
    from qsctl.sim.site.described import described

    if sources.has_load or sources.durations is not None:
        raise UsageError(
            "a scenario states its load and durations itself",
            remedy="Leave --statistics, --listing, --archive and --durations out, or name a NetConfig.",
        )
    path = find_scenario(site)
    return described(_engine_of(read_scenario(path)), str(path))


def _scenario_of(site: str, sources: SiteSources, changes: ScenarioChanges) -> Scenario:
    """Return a scenario by its name or file, or that of a NetConfig, with the given changes."""
    if not _is_netconfig(site):
        return _read_scenario(site, changes)
    from qsctl.netconfig.read import read_netconfig
    from qsctl.sim.scenario.overrides.set_values import apply_overrides
    from qsctl.sim.site.scenario import site_scenario

    config = read_netconfig(Path(site), sources.encoding).config
    name = Path(site).absolute().parent.name or "site"
    made = site_scenario(config, sources.load(), sources.procedures(), name=name)
    return apply_overrides(made.scenario, changes.overrides)


def _read_scenario(name: str, changes: ScenarioChanges) -> Scenario:
    from qsctl.sim.scenario.rules.scenario import check_rules
    from qsctl.sim.simulate import open_scenario

    read = _engine_of(open_scenario(name, changes.variables, changes.overrides, None))
    check_rules(read)
    return read


def _engine_of(scenario: Scenario) -> Scenario:
    if scenario.engine is None:
        raise UsageError(
            f"scenario {scenario.name!r} is of model {scenario.model}, not integration",
            remedy="Name a scenario with an <engine>, as clinic, or a NetConfig.",
        )
    return scenario


def _is_netconfig(site: str) -> bool:
    """Return whether a path is a NetConfig: a file that is not XML. A name without a file is that of a ready scenario.

    Raises:
        NotFound: a path to a file that does not exist.
    """
    path = Path(site)
    try:
        with path.open("rb") as stream:
            start = stream.read(_START_CHARACTERS)
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        if len(path.parts) > 1 or path.name == "NetConfig":
            raise NotFound(f"{site}: there is no such file", remedy="Name a NetConfig or a scenario.") from None
        return False
    except OSError as error:
        raise UsageError(f"{site}: cannot be read: {error.strerror}") from None
    return b"<" not in start.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
