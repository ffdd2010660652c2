"""Rules across the elements of a scenario's integration engine [CLOVERLEAF]."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from typing import Final

from qsctl.core.integration.routes import DetailKind
from qsctl.sim.scenario.parts.engine import (
    Behaviour,
    Engine,
    EngineDetail,
    EngineInbound,
    EngineOutbound,
    EngineProcedure,
    EngineThread,
)
from qsctl.sim.scenario.places import Breach
from qsctl.sim.scenario.scenario import ConstantArrivals, PoissonArrivals

_OF_PROTOCOL_THREADS: Final = frozenset(Behaviour) - {Behaviour.REROUTE}
_OF_ROUTE_DETAILS: Final = frozenset(Behaviour) - {Behaviour.RETRY, Behaviour.KILLREPLY}
"""OVER and PROTO are allowed to be written there: that they end the process is what a scenario may want to show."""


def engine_breaches(engine: Engine) -> Iterator[Breach]:
    """Yield every violation of a rule by an engine."""
    threads = [thread for process in engine.processes for thread in process.threads]
    if not any(thread.inbound is not None for thread in threads):
        yield Breach(
            engine, "no thread has an inbound side: nothing would happen", "", "at least one <thread> with <inbound>"
        )
    names = [process.name for process in engine.processes]
    seen: set[str] = set()
    for thread in threads:
        if thread.name in seen or thread.name in {f"{name}_xlate" for name in names}:
            yield Breach(
                thread,
                f"a second thread named {thread.name!r}",
                thread.name,
                "a name of its own, that is not PROCESS_xlate either",
            )
        seen.add(thread.name)
        if thread.inbound is None and thread.outbound is None:
            yield Breach(thread, f"thread {thread.name!r} has no side", "", "an <inbound>, an <outbound>, or both")
    senders = [thread.name for thread in threads if thread.outbound is not None]
    for thread in threads:
        yield from _thread(thread, senders)


def _thread(thread: EngineThread, senders: Sequence[str]) -> Iterator[Breach]:
    inbound, outbound = thread.inbound, thread.outbound
    if inbound is not None:
        yield from _inbound(thread.name, inbound, senders)
    if outbound is not None:
        yield from _outbound(thread.name, outbound, senders)


def _inbound(name: str, inbound: EngineInbound, senders: Sequence[str]) -> Iterator[Breach]:
    if inbound.transactions and sum(each.weight for each in inbound.transactions) <= 0:
        yield Breach(inbound, f"the transaction ids of {name!r} have no weight", "0", "a weight above 0")
    if not inbound.routes:
        yield Breach(inbound, f"thread {name!r} has no route: every message would fail", "", "a <route>")
    for procedure in (*inbound.procedures, *inbound.reply_procedures):
        yield from _procedure(procedure, _OF_PROTOCOL_THREADS, senders)
    taken: set[str] = set()
    for route in inbound.routes:
        if route.transaction in taken:
            yield Breach(
                route, f"a second route for {route.transaction!r}", route.transaction, "one <route> a transaction id"
            )
        taken.add(route.transaction)
        for detail in route.details:
            yield from _detail(detail, senders)


def _detail(detail: EngineDetail, senders: Sequence[str]) -> Iterator[Breach]:
    if detail.kind is not DetailKind.TRANSLATE and (detail.translations or detail.post):
        yield Breach(
            detail,
            f"a {detail.kind} detail has translations or post-procedures",
            str(detail.kind),
            'kind="translate", or only <pre>',
        )
    if not detail.to.split() and not any(
        each.does in {Behaviour.SEND, Behaviour.REROUTE, Behaviour.DROP} for each in (*detail.pre, *detail.post)
    ):
        yield Breach(detail, "a route detail without a destination", "", 'to="THREAD …"')
    for destination in detail.to.split():
        yield from _destination(detail, destination, senders)
    for procedure in (*detail.pre, *detail.post):
        yield from _procedure(procedure, _OF_ROUTE_DETAILS, senders)


def _outbound(name: str, outbound: EngineOutbound, senders: Sequence[str]) -> Iterator[Breach]:
    service = outbound.service
    if not isinstance(service, PoissonArrivals | ConstantArrivals) or service.rate_per_second <= 0:
        yield Breach(outbound, f"the receiver of {name!r} takes nothing", "0", "a rate above 0")
    for procedure in outbound.procedures:
        yield from _procedure(procedure, _OF_PROTOCOL_THREADS - {Behaviour.KILLREPLY}, senders)


def _procedure(procedure: EngineProcedure, allowed: frozenset[Behaviour], senders: Sequence[str]) -> Iterator[Breach]:
    if procedure.does not in allowed:
        yield Breach(
            procedure,
            f"does is {procedure.does!s}, which is not allowed here",
            str(procedure.does),
            ", ".join(sorted(allowed)),
        )
    if procedure.does is Behaviour.SEND:
        yield from _destination(procedure, procedure.to, senders)
    if procedure.does is Behaviour.REROUTE and not procedure.transaction:
        yield Breach(procedure, "reroute without a transaction id", "", 'transaction="ID"')


def _destination(owner: object, name: str, senders: Sequence[str]) -> Iterator[Breach]:
    if name not in senders:
        near = difflib.get_close_matches(name, senders, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        known = ", ".join(senders) or "no thread has an outbound side"
        yield Breach(owner, f"there is no thread {name!r} with an outbound side{hint}", name, known)
