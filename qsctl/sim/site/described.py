"""A scenario of an engine as a NetConfig with its load, for the rules of `netconfig.lint`."""

from __future__ import annotations

from qsctl.netconfig.load import KnownFigure, SiteLoad
from qsctl.netconfig.model import (
    STATIC_ELSE_ROUTE,
    NetConfig,
    NetDestination,
    NetDetail,
    NetDetailKind,
    NetProcedure,
    NetProcess,
    NetRoute,
    NetThread,
    StackPlace,
)
from qsctl.netconfig.procedures import ProcedureRow, ProcedureTable
from qsctl.sim.scenario.parts.engine import Behaviour, EngineProcedure, EngineRoute
from qsctl.sim.scenario.places import Places, Way
from qsctl.sim.scenario.scenario import Scenario
from qsctl.sim.site.flows import mean_rate

_ANY = "*"


def described(scenario: Scenario, file: str) -> tuple[NetConfig, SiteLoad, ProcedureTable]:
    """Return a scenario's engine as a NetConfig, its load, and the behaviour of its procedures."""
    assert scenario.engine is not None
    places = scenario.places
    load, rows = SiteLoad(), dict[str, ProcedureRow]()
    processes, threads = [], []
    for at, process in enumerate(scenario.engine.processes):
        way: Way = ("engine", "processes", at)
        processes.append(NetProcess(process.name, _line(places, way)))
        for number, thread in enumerate(process.threads):
            inner: Way = (*way, "threads", number)
            routes: tuple[NetRoute, ...] = ()
            if thread.inbound is not None:
                rate = mean_rate(thread.inbound.arrivals)
                if rate:
                    load.of(thread.name).arrived_per_s = KnownFigure(rate, "the scenario")
                load.of(thread.name).types = {
                    each.id: max(1, round(each.weight * 100)) for each in thread.inbound.transactions if each.weight > 0
                }
                routes = tuple(
                    _route(each, places, (*inner, "inbound", "routes", index), rows)
                    for index, each in enumerate(thread.inbound.routes)
                )
            stacks = {} if thread.inbound is None else {
                StackPlace.IN_DATA: _stack(thread.inbound.procedures, _line(places, inner), rows)
            }  # fmt: skip
            threads.append(
                NetThread(
                    thread.name,
                    process.name,
                    _line(places, inner),
                    is_logged=None if thread.inbound is None else thread.inbound.logging,
                    stacks=stacks,
                    routes=routes,
                )
            )
    return NetConfig(file, tuple(processes), tuple(threads)), load, ProcedureTable(tuple(rows.values()))


def _line(places: Places | None, way: Way) -> int:
    found = None if places is None else places.of(way)
    return 0 if found is None else found.line


def _route(route: EngineRoute, places: Places | None, way: Way, rows: dict[str, ProcedureRow]) -> NetRoute:
    details = []
    for number, detail in enumerate(route.details):
        line = _line(places, (*way, "details", number))
        translations = [each.name or f"translation of line {line}.{at}" for at, each in enumerate(detail.translations)]
        for name, each in zip(translations, detail.translations, strict=True):
            rows.setdefault(name, ProcedureRow(name, each.takes_ns, str(each.spread), line=line))
        details.append(
            NetDetail(
                NetDetailKind.TRANSLATE if detail.translations else NetDetailKind.RAW,
                tuple(NetDestination(name, line) for name in detail.to.split()),
                _stack(detail.pre, line, rows, "pre"),
                tuple(translations),
                _stack(detail.post, line, rows, "post"),
                line=line,
            )
        )
    name = STATIC_ELSE_ROUTE if route.transaction == _ANY else route.transaction
    return NetRoute(name, tuple(details), line=_line(places, way))


def _stack(
    given: tuple[EngineProcedure, ...], line: int, rows: dict[str, ProcedureRow], place: str = "in"
) -> tuple[NetProcedure, ...]:
    made = []
    for number, each in enumerate(given):
        does = each.does.value if each.does is not Behaviour.PASS else "pass"
        # What it does is that of this place: a name alone may be used for others, too.
        name = f"{each.name or 'procedure'} of line {line}, {place} {number + 1}"
        rows[name] = ProcedureRow(
            name, each.takes_ns, str(each.spread), does, each.every, each.results, each.to, each.transaction, line
        )
        made.append(NetProcedure(name, line))
    return tuple(made)
