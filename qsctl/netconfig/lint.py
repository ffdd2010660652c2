"""Checks of a site for faults and probable mistakes; a finding has its line, its thread and the remedy.

Decides the rules. Rules about load apply only to threads whose load is known. Disabled route details are ignored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from qsctl.declared.problems import Severity, did_you_mean
from qsctl.netconfig._text import printable
from qsctl.netconfig._work import process_shares
from qsctl.netconfig.graph import LinkKind, SiteLink, cycles_of, groups_of, links_of
from qsctl.netconfig.load import SiteLoad
from qsctl.netconfig.model import STATIC_ROUTE, NetConfig, NetDetail, NetRoute, NetThread
from qsctl.netconfig.procedures import ProcedureTable
from qsctl.netconfig.routing import pattern_of, representatives, routes_for

_OBSERVED_ENOUGH: Final = 1_000
"""Number of messages with known transaction ids from which a route that none of them matches is reported."""


class SiteRule(StrEnum):
    """The kind of a finding."""

    UNKNOWN_DESTINATION = "unknown-destination"
    UNROUTED_TRANSACTION = "unrouted-transaction"
    UNREACHED_ROUTE = "unreached-route"
    UNFED_THREAD = "unfed-thread"
    THREAD_TWICE = "thread-twice"
    UNKNOWN_PROCESS = "unknown-process"
    EMPTY_PROCESS = "empty-process"
    CYCLE = "cycle"
    PROCESS_LOAD = "process-load"
    UNLOGGED_DESTINATION = "unlogged-destination"
    NO_EXPRESSION = "no-expression"
    PORT_TWICE = "port-twice"
    UNUSED_ROUTE = "unused-route"


WEIGHTS: Final[Mapping[SiteRule, Severity]] = {
    SiteRule.UNKNOWN_DESTINATION: Severity.ERROR,
    SiteRule.UNROUTED_TRANSACTION: Severity.WARNING,
    SiteRule.UNREACHED_ROUTE: Severity.WARNING,
    SiteRule.UNFED_THREAD: Severity.WARNING,
    SiteRule.THREAD_TWICE: Severity.ERROR,
    SiteRule.UNKNOWN_PROCESS: Severity.ERROR,
    SiteRule.EMPTY_PROCESS: Severity.WARNING,
    SiteRule.CYCLE: Severity.ERROR,
    SiteRule.PROCESS_LOAD: Severity.WARNING,
    SiteRule.UNLOGGED_DESTINATION: Severity.WARNING,
    SiteRule.NO_EXPRESSION: Severity.ERROR,
    SiteRule.PORT_TWICE: Severity.ERROR,
    SiteRule.UNUSED_ROUTE: Severity.NOTE,
}


@dataclass(frozen=True, slots=True)
class SiteFinding:
    """A fault or probable mistake of a site."""

    rule: SiteRule
    line: int
    thread: str
    """The thread or process that the finding concerns."""
    message: str
    remedy: str

    @property
    def severity(self) -> Severity:
        """The severity; an error or a warning makes the check fail."""
        return WEIGHTS[self.rule]


def lint_site(
    config: NetConfig, load: SiteLoad | None = None, procedures: ProcedureTable | None = None
) -> list[SiteFinding]:
    """Return every finding about a site, in the order of its lines."""
    known = SiteLoad() if load is None else load
    table = ProcedureTable() if procedures is None else procedures
    found = [
        *_names(config),
        *_destinations(config, table),
        *_routes(config, known),
        *_feeding(config),
        *_logging(config),
        *_cycles(config),
        *_reroutes(config, table),
        *_load(config, known, table),
    ]
    shown = [replace(each, thread=printable(each.thread), message=printable(each.message)) for each in found]
    return sorted(dict.fromkeys(shown), key=lambda each: (each.line, each.rule, each.thread))


def _names(config: NetConfig) -> Iterator[SiteFinding]:
    processes = {each.name for each in config.processes}
    first: dict[str, NetThread] = {}
    ports: dict[str, NetThread] = {}
    for thread in config.threads:
        before = first.setdefault(thread.name, thread)
        if before is not thread:
            where = f"process {before.process}" + (
                " too" if before.process == thread.process else f" and {thread.process}"
            )
            yield SiteFinding(
                SiteRule.THREAD_TWICE, thread.line, thread.name,
                f"thread {thread.name} is defined twice: in line {before.line} and here, in {where}",
                "Rename one of them, or remove it: the engine starts one, and routes lead to either.",
            )  # fmt: skip
        if thread.process not in processes:
            hint = did_you_mean(thread.process, processes)
            yield SiteFinding(
                SiteRule.UNKNOWN_PROCESS, thread.line, thread.name,
                f"thread {thread.name} is in process {thread.process}, which does not exist",
                f"Add the process, or move the thread to another one. {hint}".rstrip(),
            )  # fmt: skip
        port = thread.protocol.port if thread.protocol.is_server else ""
        if port and before is thread:
            holder = ports.setdefault(port, thread)
            if holder is not thread:
                yield SiteFinding(
                    SiteRule.PORT_TWICE, thread.line, thread.name,
                    f"threads {holder.name} and {thread.name} are both servers of port {port}",
                    f"Give {thread.name} another port: the second one cannot open it.",
                )  # fmt: skip
    in_use = {each.process for each in config.threads}
    for process in config.processes:
        if process.name not in in_use:
            yield SiteFinding(
                SiteRule.EMPTY_PROCESS, process.line, process.name, f"process {process.name} has no thread",
                "Remove it, or move threads to it.",
            )  # fmt: skip


def _enabled(thread: NetThread) -> Iterator[tuple[NetRoute, NetDetail]]:
    for route in thread.routes:
        for detail in route.details:
            if detail.is_enabled:
                yield route, detail


def _destinations(config: NetConfig, table: ProcedureTable) -> Iterator[SiteFinding]:
    names = {each.name for each in config.threads} | {each.name for each in config.remotes}
    for thread in config.threads:
        for route, detail in _enabled(thread):
            for destination in detail.destinations:
                if destination.name not in names:
                    yield _unknown(thread, route, destination.name, destination.line, names)
            for procedure in (*detail.pre, *detail.post):
                row = table.row(procedure.name) if procedure.is_enabled else None
                if row is not None and row.does == "send" and row.to not in names:
                    yield _unknown(thread, route, row.to, procedure.line, names)


def _unknown(thread: NetThread, route: NetRoute, name: str, line: int, names: set[str]) -> SiteFinding:
    hint = did_you_mean(name, names)
    return SiteFinding(
        SiteRule.UNKNOWN_DESTINATION, line, thread.name,
        f"route {route.transaction_id} of {thread.name} leads to {name}, which is neither a thread nor a destination",
        f"Correct the name, or add the thread: until then each message fails. {hint}".rstrip(),
    )  # fmt: skip


def _routes(config: NetConfig, load: SiteLoad) -> Iterator[SiteFinding]:
    for thread in config.threads:
        if thread.is_outbound_only and thread.routes:
            yield SiteFinding(
                SiteRule.UNREACHED_ROUTE, thread.routes[0].line, thread.name,
                f"{thread.name} is outbound only, and has {len(thread.routes)} routes: nothing reaches them",
                "Remove the routes, or let messages come in by the thread.",
            )  # fmt: skip
            continue
        static = next((each for each in thread.routes if each.is_static), None)
        for route in thread.routes:
            if route.is_else and static is not None:
                yield SiteFinding(
                    SiteRule.UNREACHED_ROUTE, route.line, thread.name,
                    f"the route for all others of {thread.name} is beside {STATIC_ROUTE}: nothing reaches it",
                    "Remove one of the two: the engine ignores the one for all others.",
                )  # fmt: skip
            if route.is_wildcard and pattern_of(route.transaction_id) is None:
                yield SiteFinding(
                    SiteRule.NO_EXPRESSION, route.line, thread.name,
                    f"the wildcard {route.transaction_id} of {thread.name} is not a regular expression",
                    "Correct the expression, as in ADT.*; a whole transaction id must match it.",
                )  # fmt: skip
            enabled = [each for each in route.details if each.is_enabled]
            if not any(each.destinations for each in enabled) and not any(each.pre or each.post for each in enabled):
                why = "all its details are disabled" if route.details and not enabled else "no detail has a destination"
                yield SiteFinding(
                    SiteRule.UNROUTED_TRANSACTION, route.line, thread.name,
                    f"route {route.transaction_id} of {thread.name} leads nowhere: {why}",
                    "Add a destination, or remove the route and let such messages go by another one.",
                )  # fmt: skip
        yield from _observed(thread, load)


def _observed(thread: NetThread, load: SiteLoad) -> Iterator[SiteFinding]:
    known = load.threads.get(thread.name)
    if known is None or not known.types or not thread.is_inbound:
        return
    total = sum(known.types.values())
    for name, count in known.types.items():
        if not routes_for(thread.routes, name):
            yield SiteFinding(
                SiteRule.UNROUTED_TRANSACTION, thread.line, thread.name,
                f"{count / total:.2%} of what {thread.name} receives is {name}, and no route is for it: it fails",
                f"Add a route for {name}, or one for all others.",
            )  # fmt: skip
    if total >= _OBSERVED_ENOUGH:
        used = {route for name in known.types for route in routes_for(thread.routes, name)}
        for route in thread.routes:
            if route not in used and not (route.is_static or route.is_else):
                yield SiteFinding(
                    SiteRule.UNUSED_ROUTE, route.line, thread.name,
                    f"none of {total:,} saved messages of {thread.name} used route {route.transaction_id}",
                    "Nothing if such messages are rare; otherwise check the name.",
                )  # fmt: skip


def _feeding(config: NetConfig) -> Iterator[SiteFinding]:
    fed = {each.destination for each in links_of(config)}
    for thread in config.threads:
        fed.update(
            each.name for route in thread.reply_routes for detail in route.details for each in detail.destinations
        )
    for thread in config.threads:
        if not thread.routes and thread.name not in fed:
            yield SiteFinding(
                SiteRule.UNFED_THREAD, thread.line, thread.name,
                f"no route leads to {thread.name}, and it has none of its own",
                "Remove the thread, or route messages to it.",
            )  # fmt: skip


def _logging(config: NetConfig) -> Iterator[SiteFinding]:
    threads = {each.name: each for each in reversed(config.threads)}
    seen: set[str] = set()
    for link in links_of(config):
        source, destination = threads.get(link.source), threads.get(link.destination)
        if source is None or destination is None or destination.name in seen:
            continue
        if source.is_logged and destination.is_logged is False:
            seen.add(destination.name)
            yield SiteFinding(
                SiteRule.UNLOGGED_DESTINATION, destination.line, destination.name,
                f"{destination.name} has no database logging, and {source.name}, which feeds it, has: what it makes of "
                "a message is lost when its process ends",
                f"Turn on database logging of {destination.name}, or off that of {source.name}.",
            )  # fmt: skip


def _cycles(config: NetConfig) -> Iterator[SiteFinding]:
    for links in cycles_of(config):
        way = " → ".join([links[0].source, *(_step_text(each) for each in links)])
        yield SiteFinding(
            SiteRule.CYCLE, links[0].line, links[0].source, f"messages go in a circle: {way}",
            "Cut one of these ways, or let a procedure end such messages.",
        )  # fmt: skip


def _step_text(link: SiteLink) -> str:
    if link.kind is LinkKind.ROUTE:
        return f"{link.destination} (route {link.transaction_id})"
    return f"{link.destination} (by its {link.kind})"


def _reroutes(config: NetConfig, table: ProcedureTable) -> Iterator[SiteFinding]:
    """Yield a finding for each cycle and each dead end of procedures that route a message again."""
    for thread in config.threads:
        following: dict[str, list[str]] = {}
        lines: dict[str, int] = {}
        waiting = list(representatives(thread.routes))
        for name in waiting:
            if name in following:
                continue
            following[name] = []
            for target, line in _targets(routes_for(thread.routes, name), table):
                lines.setdefault(name, line)
                following[name].append(target)
                if not routes_for(thread.routes, target):
                    yield SiteFinding(
                        SiteRule.UNROUTED_TRANSACTION, line, thread.name,
                        f"messages {name} of {thread.name} are routed again as {target}, and no route is for that",
                        f"Add a route for {target}, or correct the procedure.",
                    )  # fmt: skip
                waiting.append(target)
        for group in groups_of(following):
            yield SiteFinding(
                SiteRule.CYCLE, lines[group[0]], thread.name,
                f"messages of {thread.name} go in a circle: {' → '.join([*group, group[0]])}, routed again each time",
                "Let one of the procedures continue instead: after 20 turns the message fails.",
            )  # fmt: skip


def _targets(routes: Sequence[NetRoute], table: ProcedureTable) -> Iterator[tuple[str, int]]:
    for route in routes:
        for detail in route.details:
            for procedure in (*detail.pre, *detail.post) if detail.is_enabled else ():
                row = table.row(procedure.name) if procedure.is_enabled else None
                if row is not None and row.does == "reroute":
                    yield row.transaction, procedure.line


def _load(config: NetConfig, load: SiteLoad, table: ProcedureTable) -> Iterator[SiteFinding]:
    shares = process_shares(config, load, table)
    if len(shares) < 2:
        return
    lines = Counter({each.name: each.line for each in config.processes})
    for name, share in shares.items():
        if share > max(0.5, 1.5 / len(shares)):
            yield SiteFinding(
                SiteRule.PROCESS_LOAD, lines[name], name,
                f"process {name} carries {share:.0%} of the translation of {len(shares)} processes",
                "Move threads to other processes; `qsctl engine balance` finds which.",
            )  # fmt: skip
