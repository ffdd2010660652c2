"""A scenario built from a site's NetConfig and the known part of its load.

Decides: the values that are assumed where none is known, and their notes; the parts of a site that a simulation leaves
out. One transaction id represents all those with the same routes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from qsctl.core.integration.routes import DetailKind
from qsctl.instant import SECOND_NS, Nanoseconds
from qsctl.netconfig.load import KnownFigure, SiteLoad, ThreadLoad
from qsctl.netconfig.model import NetConfig, NetDetail, NetDetailKind, NetProcedure, NetRoute, NetThread, StackPlace
from qsctl.netconfig.procedures import ProcedureTable
from qsctl.netconfig.routing import OTHER, representatives
from qsctl.sim.captured.scenario import CapturedParameter, ValueOrigin
from qsctl.sim.scenario.parts.engine import (
    Behaviour,
    Engine,
    EngineDetail,
    EngineInbound,
    EngineOutbound,
    EngineProcedure,
    EngineProcess,
    EngineRoute,
    EngineThread,
    EngineTransaction,
    EngineTranslation,
    Spread,
)
from qsctl.sim.scenario.scenario import (
    Arrivals,
    ConstantSize,
    LognormalSize,
    MmppArrivals,
    Model,
    PoissonArrivals,
    Scenario,
    Size,
)
from qsctl.sim.site._weights import fitted_weights

RATE_PER_S: Final = 0.1
"""Of an inbound thread of which nothing is known."""
SERVICE_PER_S: Final = 10.0
"""Of a receiver of which nothing is known, or twice what it was sent."""
SIZE_BYTES: Final = 1024
HORIZON_NS: Final = 86_400 * SECOND_NS
OTHER_SITES: Final = "other_sites"
"""The process of destinations at other sites."""
_NAME: Final = re.compile(r"[^A-Za-z0-9_.:@/\-]+")
_LARGEST_BYTES: Final = 10_000_000
_KINDS: Final = {
    NetDetailKind.RAW: DetailKind.RAW,
    NetDetailKind.TRANSLATE: DetailKind.TRANSLATE,
    NetDetailKind.STYLESHEET: DetailKind.TRANSLATE,
    NetDetailKind.CHAIN: DetailKind.TRANSLATE,
    NetDetailKind.GENERATE: DetailKind.GENERATE,
}
_IN_THREADS: Final = frozenset({"pass", "drop", "split", "send", "over", "error"})
"""Actions that the procedures of a thread's stacks may be declared with."""


@dataclass(frozen=True, slots=True)
class ImportedSite:
    """A scenario of a site, its values that are not captured, and the parts that were left out."""

    scenario: Scenario
    notes: tuple[CapturedParameter, ...]
    left_out: tuple[str, ...]


def site_scenario(
    config: NetConfig,
    load: SiteLoad | None = None,
    procedures: ProcedureTable | None = None,
    *,
    name: str = "site",
    horizon_ns: Nanoseconds = HORIZON_NS,
) -> ImportedSite:
    """Return a scenario of a site's engine, with a note on each value that is derived or assumed."""
    builder = _SiteBuilder(config, SiteLoad() if load is None else load, procedures or ProcedureTable())
    engine = builder.engine()
    scenario = Scenario(
        _NAME.sub("_", name) or "site",
        Model.INTEGRATION,
        horizon_ns=horizon_ns,
        engine=engine,
        description=builder.description(),
    )
    return ImportedSite(scenario, tuple(builder.notes), tuple(dict.fromkeys(builder.left_out)))


class _SiteBuilder:
    """The builder of one site's engine."""

    def __init__(self, config: NetConfig, load: SiteLoad, table: ProcedureTable) -> None:
        self._config, self._load, self._table = config, load, table
        self.notes: list[CapturedParameter] = []
        self.left_out: list[str] = list(load.notes)
        self._threads: dict[str, NetThread] = {}
        for thread in config.threads:
            if thread.name in self._threads:
                self.left_out.append(f"line {thread.line}: the second thread {thread.name}")
            else:
                self._threads[thread.name] = thread
        self._names = self._safe_names()
        self._classes = {
            each.name: representatives(each.routes, load.of(each.name).types)
            for each in self._threads.values()
            if each.is_inbound
        }
        self._weights = self._weights_of_all()
        self._unknown_procedures: dict[str, int] = {}

    def engine(self) -> Engine:
        """Return the engine of the scenario; notes on its values are collected meanwhile."""
        processes: dict[str, list[EngineThread]] = {each.name: [] for each in self._config.processes}
        for thread in self._threads.values():
            if thread.process not in processes:
                self.left_out.append(f"line {thread.line}: process {thread.process} is not in the file: it is added")
            processes.setdefault(thread.process, []).append(self._thread(thread))
        remotes = [self._remote(each.name) for each in self._config.remotes if each.name not in self._threads]
        if remotes:
            processes.setdefault(OTHER_SITES, []).extend(remotes)
        self._note_procedures()
        return Engine(processes=tuple(EngineProcess(_safe(name), tuple(those)) for name, those in processes.items()))

    def description(self) -> str:
        """Return the description of the scenario: its source, and its values that are not known."""
        assumed = [each for each in self.notes if each.origin is ValueOrigin.ASSUMED]
        lines = [
            f"{len(self._threads)} threads in {len(self._config.processes)} processes, from {self._config.file}.",
            f"{len(assumed)} values are assumed, and {len(self.notes) - len(assumed)} derived: each has a comment.",
        ]
        if self.left_out:
            lines.append(f"Left out: {'; '.join(dict.fromkeys(self.left_out[:20]))}.")
        return "\n    ".join(lines)

    # Threads.

    def _thread(self, thread: NetThread) -> EngineThread:
        name, known = self._names[thread.name], self._load.of(thread.name)
        path = f"engine/process[{_safe(thread.process)}]/thread[{name}]"
        inbound = self._inbound(thread, known, path) if thread.is_inbound and self._classes[thread.name] else None
        is_fed = self._is_fed(thread.name)
        outbound = None if inbound is not None and not is_fed else self._outbound(thread, known, path)
        return EngineThread(name, inbound=inbound, outbound=outbound)

    def _remote(self, name: str) -> EngineThread:
        safe = self._names[name]
        path = f"engine/process[{OTHER_SITES}]/thread[{safe}]"
        service = self._service(self._load.of(name), f"{path}/outbound")
        return EngineThread(safe, outbound=EngineOutbound(service))

    def _inbound(self, thread: NetThread, known: ThreadLoad, path: str) -> EngineInbound:
        path = f"{path}/inbound"
        if thread.is_logged is None:
            self._note(f"{path}/logging", "true", ValueOrigin.ASSUMED, "the NetConfig does not state database logging")
        classes, weights = self._classes[thread.name], self._weights[thread.name]
        routes = tuple(
            EngineRoute("*" if name == OTHER else _safe(name), self._details(those, thread.name))
            for name, those in classes.items()
        )
        transactions = [EngineTransaction(_safe(name), float(f"{weights[name]:.6g}")) for name in classes]
        total = sum(known.types.values())
        for name, count in known.types.items():
            if name not in classes:
                self.left_out.append(f"{thread.name}: no route is for {count:,} saved messages {name}: they fail")
                transactions.append(EngineTransaction(_safe(name), float(f"{count / total:.6g}")))
        if len(classes) > 1 and not known.types:
            self._note_weights(path, thread)
        return EngineInbound(
            self._arrivals(known, path),
            self._size(known, path),
            logging=thread.is_logged is not False,
            transactions=tuple(transactions) if len(transactions) > 1 or not _is_for_all(routes) else (),
            procedures=self._stack(thread.stack(StackPlace.IN_DATA), in_thread=True),
            routes=tuple(each for each in routes if each.details),
        )

    def _outbound(self, thread: NetThread, known: ThreadLoad, path: str) -> EngineOutbound:
        service = self._service(known, f"{path}/outbound")
        procedures = self._stack(thread.stack(StackPlace.OUT_DATA), in_thread=True)
        return EngineOutbound(service, procedures=procedures)

    def _is_fed(self, name: str) -> bool:
        return any(
            destination.name == name
            for those in self._classes.values()
            for routes in those.values()
            for route in routes
            for detail in route.details
            for destination in (detail.destinations if detail.is_enabled else ())
        )

    # Values.

    def _arrivals(self, known: ThreadLoad, path: str) -> Arrivals:
        if known.steps and any(rate > 0 for rate, _ in known.steps):
            rates = tuple(float(f"{rate:.6g}") for rate, _ in known.steps)
            stays = tuple(round(seconds * SECOND_NS) for _, seconds in known.steps)
            return MmppArrivals(rates, stays, cycle=True)
        found = known.arrived_per_s
        if found is None or found.value <= 0:
            why = "its rate is not known: give statistics, two listings or an archive"
            self._note(f"{path}/poisson/rate", f"{RATE_PER_S:g}/s", ValueOrigin.ASSUMED, why)
            return PoissonArrivals(RATE_PER_S)
        if "at least" in found.why:
            self._note(f"{path}/poisson/rate", f"{found.value:.4g}/s", ValueOrigin.DERIVED, found.why)
        return PoissonArrivals(_rate(found))

    def _size(self, known: ThreadLoad, path: str) -> Size:
        found = known.median_bytes
        if found is None:
            self._note(
                f"{path}/size/bytes", str(SIZE_BYTES), ValueOrigin.ASSUMED, "the lengths of its messages are not known"
            )
            return ConstantSize(SIZE_BYTES)
        size_bytes = min(_LARGEST_BYTES, max(1, round(found.value)))
        if known.sigma < 0.01:
            return ConstantSize(size_bytes)
        return LognormalSize(size_bytes, float(f"{known.sigma:.4g}"), _LARGEST_BYTES)

    def _service(self, known: ThreadLoad, path: str) -> PoissonArrivals:
        found = known.served_per_s
        if found is not None and found.value > 0:
            self._note(f"{path}/poisson/rate", f"{found.value:.4g}/s", ValueOrigin.DERIVED, found.why)
            return PoissonArrivals(_rate(found))
        sent = 0.0 if known.sent_per_s is None else known.sent_per_s.value
        assumed = max(SERVICE_PER_S, float(f"{2 * sent:.4g}"))
        why = (
            "nothing is known of its receiver" if found is None and not sent
            else "messages never waited for it: it is not known how much more its receiver takes"
        )  # fmt: skip
        self._note(f"{path}/poisson/rate", f"{assumed:g}/s", ValueOrigin.ASSUMED, why)
        return PoissonArrivals(assumed)

    def _weights_of_all(self) -> dict[str, dict[str, float]]:
        """Return the weights of transaction ids by thread: as observed, else fitted to the counts of destinations."""
        observed: dict[str, dict[str, float]] = {}
        unknown: dict[str, dict[str, dict[str, float]]] = {}
        rates: dict[str, float] = {}
        sent = {name: each.sent_per_s.value for name, each in self._load.threads.items() if each.sent_per_s is not None}
        for name, classes in self._classes.items():
            known = self._load.of(name)
            if known.arrived_per_s is not None:
                rates[name] = known.arrived_per_s.value
            total = sum(known.types.values())
            if total:
                observed[name] = {each: known.types.get(each, 0) / total for each in classes}
                for each, routes in classes.items():
                    for destination, count in _destinations(routes).items():
                        if destination in sent and name in rates:
                            sent[destination] -= rates[name] * observed[name][each] * count
            else:
                unknown[name] = {each: _destinations(routes) for each, routes in classes.items()}
        fitted = fitted_weights(unknown, rates, sent)
        return {**fitted, **observed}

    def _note_weights(self, path: str, thread: NetThread) -> None:
        known, classes = self._load.of(thread.name), self._classes[thread.name]
        counted = {
            each
            for routes in classes.values()
            for each in _destinations(routes)
            if self._load.of(each).sent_per_s is not None
        }
        is_fitted = known.arrived_per_s is not None and bool(counted)
        origin = ValueOrigin.DERIVED if is_fitted else ValueOrigin.ASSUMED
        why = (
            f"fitted to what {len(counted)} destinations sent" if is_fitted
            else "it is not known how often each transaction id comes: they are alike"
        )  # fmt: skip
        for name in classes:
            weight = f"{self._weights[thread.name][name]:.4g}"
            self._note(f"{path}/transaction[{_safe(name)}]/weight", weight, origin, why)

    # Routes and procedures.

    def _details(self, routes: Sequence[NetRoute], source: str) -> tuple[EngineDetail, ...]:
        found = []
        for route in routes:
            for detail in route.details:
                made = self._detail(detail, source) if detail.is_enabled else None
                if made is not None:
                    found.append(made)
        return tuple(found)

    def _detail(self, detail: NetDetail, source: str) -> EngineDetail | None:
        known = [each.name for each in detail.destinations if each.name in self._names]
        for each in detail.destinations:
            if each.name not in self._names:
                self.left_out.append(f"line {each.line}: {source} routes to {each.name}, which does not exist")
        kind = _KINDS[detail.kind] if detail.kind is not None else DetailKind.RAW
        is_translation = kind is DetailKind.TRANSLATE
        pre = self._stack(detail.pre)
        post = self._stack(detail.post) if is_translation else ()
        leads = {Behaviour.SEND, Behaviour.REROUTE, Behaviour.DROP}
        if not known and not any(each.does in leads for each in (*pre, *post)):
            return None
        return EngineDetail(
            " ".join(self._names[each] for each in known),
            kind,
            pre,
            tuple(self._translation(each) for each in detail.translations) if is_translation else (),
            post,
        )

    def _stack(self, given: Sequence[NetProcedure], *, in_thread: bool = False) -> tuple[EngineProcedure, ...]:
        return tuple(self._procedure(each, in_thread=in_thread) for each in given if each.is_enabled)

    def _procedure(self, given: NetProcedure, *, in_thread: bool) -> EngineProcedure:
        row = self._table.row(given.name)
        if row is None:
            self._unknown_procedures[given.name] = self._unknown_procedures.get(given.name, 0) + 1
            return EngineProcedure(name=given.name)
        does = row.does
        if (in_thread and does not in _IN_THREADS) or (does == "send" and row.to not in self._names):
            self.left_out.append(f"line {given.line}: {given.name} cannot {does} there: it passes messages on")
            does = "pass"
        return EngineProcedure(
            Behaviour(does),
            row.every,
            row.results,
            self._names.get(row.to, "") if does == "send" else "",
            _safe(row.transaction) if does == "reroute" else "",
            takes_ns=row.takes_ns,
            spread=Spread(row.spread),
            name=given.name,
        )

    def _translation(self, name: str) -> EngineTranslation:
        row = self._table.row(name)
        if row is None:
            self._unknown_procedures[name] = self._unknown_procedures.get(name, 0) + 1
            return EngineTranslation(name=name)
        return EngineTranslation(takes_ns=row.takes_ns, spread=Spread(row.spread), name=name)

    def _note_procedures(self) -> None:
        for name, count in self._unknown_procedures.items():
            why = f"used {count} times, and no row of the durations is for it"
            self._note(f"procedure[{name}]/takes", "0s", ValueOrigin.ASSUMED, why)

    # Names.

    def _safe_names(self) -> dict[str, str]:
        names: dict[str, str] = {}
        taken: set[str] = set()
        reserved = {f"{_safe(each.name)}_xlate" for each in self._config.processes}
        for name in [*self._threads, *(each.name for each in self._config.remotes)]:
            if name in names:
                continue
            made, number = _safe(name), 1
            while made in taken | reserved:
                number += 1
                made = f"{_safe(name)}_{number}"
            if made != name:
                self.left_out.append(f"thread {name} is called {made}")
            taken.add(made)
            names[name] = made
        return names

    def _note(self, path: str, value: str, origin: ValueOrigin, why: str) -> None:
        self.notes.append(CapturedParameter(path, value, origin, why))


def _safe(name: str) -> str:
    """Return a name in which characters that a scenario does not allow are replaced by `_`."""
    return _NAME.sub("_", name) or "_"


def _rate(found: KnownFigure) -> float:
    return float(f"{found.value:.6g}")


def _is_for_all(routes: Sequence[EngineRoute]) -> bool:
    return len(routes) == 1 and routes[0].transaction == "*"


def _destinations(routes: Sequence[NetRoute]) -> dict[str, float]:
    """Return the number of messages to each destination for one message with these routes."""
    found: dict[str, float] = {}
    for route in routes:
        for detail in route.details:
            for each in detail.destinations if detail.is_enabled else ():
                found[each.name] = found.get(each.name, 0.0) + 1.0
    return found
