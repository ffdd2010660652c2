"""The settings of a simulated integration engine, built from a scenario [CLOVERLEAF]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from qsctl.core.integration.message import Message
from qsctl.core.integration.routes import Route, RouteDetail
from qsctl.core.integration.settings import (
    EngineSettings,
    InboundSettings,
    OutboundSettings,
    ProcessSettings,
    ThreadSettings,
)
from qsctl.sim.engine.behaviours import DeclaredProcedure, DeclaredTranslation, Durations, label_of
from qsctl.sim.kernel.random import stream_key, uniform
from qsctl.sim.scenario.parts.engine import (
    Engine,
    EngineDetail,
    EngineInbound,
    EngineOutbound,
    EngineProcedure,
    EngineThread,
    EngineTransaction,
    EngineTranslation,
)


def engine_settings(engine: Engine, seed: int, replication: int) -> EngineSettings:
    """Return the settings of an engine; random durations and transaction ids are those of this seed and replication.

    Raises:
        InvalidInput: two threads or processes of one name, a route to a thread that cannot send.
    """
    builder = _Builder(seed, replication)
    processes = tuple(
        ProcessSettings(process.name, tuple(map(builder.thread, process.threads))) for process in engine.processes
    )
    return EngineSettings(processes, engine.icl_delay_ns, engine.turns_max)


@dataclass(frozen=True, slots=True)
class _Builder:
    seed: int
    replication: int

    def thread(self, declared: EngineThread) -> ThreadSettings:
        return ThreadSettings(
            declared.name,
            None if declared.inbound is None else self._inbound(declared.name, declared.inbound),
            None if declared.outbound is None else self._outbound(declared.name, declared.outbound),
            tps_retries=declared.tps_retries,
            tps_retry_interval_ns=declared.tps_retry_interval_ns,
        )

    def _inbound(self, name: str, declared: EngineInbound) -> InboundSettings:
        routes = tuple(
            Route(
                route.transaction,
                tuple(
                    self._detail(f"{name}/{route.transaction}/detail {number}", detail)
                    for number, detail in enumerate(route.details, 1)
                ),
            )
            for route in declared.routes
        )
        return InboundSettings(
            declared.logging,
            self._procedures(f"{name}/procedure", declared.procedures),
            self._procedures(f"{name}/reply-procedure", declared.reply_procedures),
            routes,
            _TransactionIds(declared.transactions, stream_key(self.seed, self.replication, name, "transaction")),
            declared.priority,
        )

    def _outbound(self, name: str, declared: EngineOutbound) -> OutboundSettings:
        return OutboundSettings(
            self._procedures(f"{name}/outbound procedure", declared.procedures),
            retries=declared.retries,
            retry_interval_ns=declared.retry_interval_ns,
            awaits_reply=declared.awaits_reply,
            reply_timeout_ns=declared.reply_timeout_ns,
        )

    def _detail(self, name: str, declared: EngineDetail) -> RouteDetail:
        return RouteDetail(
            tuple(declared.to.split()),
            declared.kind,
            self._procedures(f"{name}/pre", declared.pre),
            tuple(
                DeclaredTranslation(f"{name}/translation {number}", each, self._durations(f"{name}/{number}", each))
                for number, each in enumerate(declared.translations, 1)
            ),
            self._procedures(f"{name}/post", declared.post),
        )

    def _procedures(self, name: str, declared: Sequence[EngineProcedure]) -> tuple[DeclaredProcedure, ...]:
        return tuple(
            DeclaredProcedure(f"{name} {number}", each, self._durations(f"{name} {number}", each))
            for number, each in enumerate(declared, 1)
        )

    def _durations(self, name: str, declared: EngineProcedure | EngineTranslation) -> Durations:
        return Durations(declared.takes_ns, declared.spread, self.seed, self.replication, name)


@dataclass(frozen=True, slots=True)
class _TransactionIds:
    """The declared transaction ids, assigned to arriving messages by weight; a message always has the same one."""

    declared: tuple[EngineTransaction, ...]
    key: int

    def __call__(self, message: Message) -> str:
        if not self.declared:
            return "any"
        total = sum(each.weight for each in self.declared)
        drawn = float(uniform(np.uint64(self.key), label_of(message.payload).number)) * total
        for each in self.declared:
            drawn -= each.weight
            if drawn < 0:
                return each.id
        return self.declared[-1].id
