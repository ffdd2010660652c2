"""Random scenarios of an integration engine, by number, and the comparison of the kernel with the engine itself."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from qsctl.core.integration import _protocol_thread as protocol_thread
from qsctl.core.integration import _translation as translation
from qsctl.core.integration import dispositions, routes
from qsctl.core.integration._lifecycle import HeldMessage, MessageCause
from qsctl.core.integration.routes import DetailKind, ErrorControl, ErrorSeverity
from qsctl.eventlog.schema import LogLevel
from qsctl.instant import INFINITE_NS, MILLISECOND_NS, SECOND_NS
from qsctl.sim.engine.behaviours import DeclaredProcedure, DeclaredTranslation
from qsctl.sim.integration.run import CompiledEngineRun
from qsctl.sim.model import Rows, Stop
from qsctl.sim.scenario.parts import engine as e
from qsctl.sim.scenario.parts.engine import Behaviour, Spread
from qsctl.sim.scenario.rules.scenario import breaches_of
from qsctl.sim.scenario.scenario import (
    ClientInterval,
    ConstantArrivals,
    ConstantSize,
    Model,
    PoissonArrivals,
    Scenario,
    UniformSize,
)
from tests.sim.oracle_engine import OracleEngineRun

MS = MILLISECOND_NS
_IDS = ("A", "B", "C")
_INBOUND = (
    Behaviour.PASS, Behaviour.CHANGE, Behaviour.DROP, Behaviour.SPLIT, Behaviour.FAIL, Behaviour.LOOP, Behaviour.SEND,
    Behaviour.OVER, Behaviour.PROTO, Behaviour.ERROR, Behaviour.KILLREPLY, Behaviour.RETRY, Behaviour.RETRY,
)  # fmt: skip
_REPLY = (
    Behaviour.PASS, Behaviour.DROP, Behaviour.SPLIT, Behaviour.FAIL, Behaviour.SEND, Behaviour.OVER, Behaviour.PROTO,
    Behaviour.ERROR, Behaviour.KILLREPLY, Behaviour.RETRY,
)  # fmt: skip
_OUTBOUND = tuple(each for each in _INBOUND if each is not Behaviour.KILLREPLY)
_ROUTING = (
    Behaviour.PASS, Behaviour.CHANGE, Behaviour.DROP, Behaviour.SPLIT, Behaviour.FAIL, Behaviour.LOOP, Behaviour.SEND,
    Behaviour.OVER, Behaviour.PROTO, Behaviour.ERROR, Behaviour.REROUTE, Behaviour.REROUTE,
)  # fmt: skip


def random_engine(number: int, messages: int = 120) -> Scenario:
    """Return the scenario of this number: valid, and of about so many messages."""
    r = random.Random(number)
    while True:
        scenario = _Maker(r, number, messages).scenario()
        if next(breaches_of(scenario), None) is None:
            return scenario


class _Maker:
    def __init__(self, r: random.Random, number: int, messages: int) -> None:
        self.r = r
        self.number = number
        self.horizon = 4 * SECOND_NS
        self.per_second = messages / 4
        names = [f"t{place}" for place in range(r.randint(2, 6))]
        self.sides = {name: r.choice(["in", "out", "both", "both", "both"]) for name in names}
        self.sides["t0"], self.sides["t1"] = r.choice(["in", "both"]), r.choice(["out", "both"])
        self.senders = [name for name, side in self.sides.items() if side != "in"]
        self.inbound = sum(side != "out" for side in self.sides.values())
        self.is_harsh = r.random() < 0.7

    def sometimes(self, probability: float, value: Any, other: Any) -> Any:
        return value if self.r.random() < probability else other

    def length(self, most_ms: int) -> int:
        return self.r.choice([0, 0, 1, most_ms, most_ms, self.r.randint(0, most_ms)]) * MS

    def spread(self) -> Spread:
        return self.r.choice([Spread.CONSTANT, Spread.EXPONENTIAL])

    def intervals(self, probability: float) -> tuple[ClientInterval, ...]:
        made = []
        while self.r.random() < probability:
            start = self.r.choice([0, 1, 5, 10, 20, 30]) * 100 * MS
            every = self.r.choice([INFINITE_NS, INFINITE_NS, 1500 * MS])
            made.append(ClientInterval(start, self.r.choice([1, 100, 400, 1000]) * MS, every))
        return tuple(made)

    def procedures(self, allowed: tuple[Behaviour, ...], probability: float) -> tuple[e.EngineProcedure, ...]:
        r, made = self.r, []
        while r.random() < probability:
            does = r.choice(allowed)
            if not self.is_harsh and does in {Behaviour.LOOP, Behaviour.PROTO}:
                does = Behaviour.CHANGE
            rare = does is Behaviour.LOOP or (allowed is _ROUTING and does in {Behaviour.OVER, Behaviour.PROTO})
            # No rule ends a message that its outbound thread sends back for ever: where that takes no time, time ends.
            sends_back = does is Behaviour.SEND and allowed is _OUTBOUND
            made.append(
                e.EngineProcedure(
                    does, r.choice([17, 23]) if rare else r.choice([1, 2, 2, 3, 5]), r.choice([1, 2, 3]),
                    r.choice(self.senders) if does is Behaviour.SEND else "",
                    r.choice(_IDS) if does is Behaviour.REROUTE else "",
                    r.choice([1, 2, 4]), max(self.length(8), MS if sends_back else 0), self.spread(), r.random() < 0.15,
                    r.choice(["", "x", "longer"]) if does is Behaviour.CHANGE else "",
                )
            )  # fmt: skip
        return tuple(made)

    def translation(self) -> e.EngineTranslation:
        r = self.r
        return e.EngineTranslation(
            r.choice([0, 1, 1, 1, 2, 3]), self.length(6), self.spread(), r.choice([0, 0, 1, 3, 7]),
            r.choice([0, 1, 2, 5]), r.choice(list(ErrorSeverity)), r.choice(list(ErrorControl)),
        )  # fmt: skip

    def detail(self) -> e.EngineDetail:
        r = self.r
        kind = r.choice(list(DetailKind))
        to = " ".join(r.choice(self.senders) for _ in range(r.choice([0, 1, 1, 1, 2])))
        is_full = kind is DetailKind.TRANSLATE
        return e.EngineDetail(
            to, kind, self.procedures(_ROUTING, 0.35),
            tuple(self.translation() for _ in range(r.choice([0, 1, 1, 2]))) if is_full else (),
            self.procedures(_ROUTING, 0.25) if is_full else (),
        )  # fmt: skip

    def of_inbound(self) -> e.EngineInbound:
        r = self.r
        rate = self.per_second / self.inbound
        known = r.sample([*_IDS, "*"], r.randint(1, 4))
        return e.EngineInbound(
            r.choice([PoissonArrivals(rate), ConstantArrivals(rate)]),
            r.choice([None, ConstantSize(1), ConstantSize(3000), UniformSize(1, 9000)]),
            r.random() < 0.7,
            r.choice([5120, 5120, 5200, 4000]),
            tuple(e.EngineTransaction(each, r.choice([1.0, 0.3])) for each in r.sample(_IDS, r.randint(0, 3))),
            self.procedures(_INBOUND, 0.4),
            self.procedures(_REPLY, 0.7),
            tuple(
                e.EngineRoute(each, tuple(self.detail() for _ in range(r.choice([1, 1, 2, 3])))) for each in known
            ),
        )  # fmt: skip

    def of_outbound(self) -> e.EngineOutbound:
        r = self.r
        rate = self.per_second * r.choice([0.5, 1.0, 3.0, 20.0])
        awaits = r.random() < 0.6
        return e.EngineOutbound(
            r.choice([PoissonArrivals(rate), ConstantArrivals(rate)]),
            r.choice([0.0, 0.0, 0.2, 0.6]), r.choice([-1, 0, 1, 3]), r.choice([0, 5, 50]) * MS, awaits,
            r.choice([INFINITE_NS, 30 * MS, 200 * MS]), self.length(20), r.choice([0.0, 0.3, 1.0]),
            self.procedures(_OUTBOUND, 0.35), self.intervals(0.25),
        )  # fmt: skip

    def scenario(self) -> Scenario:
        r = self.r
        threads = [
            e.EngineThread(
                name, r.choice([3, 0, 1, -1]), self.length(10), None if side == "out" else self.of_inbound(),
                None if side == "in" else self.of_outbound(), self.intervals(0.25),
            )
            for name, side in self.sides.items()
        ]  # fmt: skip
        processes = r.randint(1, min(3, len(threads)))
        engine = e.Engine(
            r.choice([0, 1, 7, 300]) * MS,
            r.choice([0, 1, 2, 20]),
            tuple(
                e.EngineProcess(f"p{place}", tuple(threads[place::processes]), self.intervals(0.3))
                for place in range(processes)
            ),
            self.intervals(0.3),
        )
        return Scenario(
            f"engine-{self.number}", model=Model.INTEGRATION, seed=self.number, horizon_ns=self.horizon,
            warm_up_ns=r.choice([0, 0, SECOND_NS]), engine=engine,
        )  # fmt: skip


def collect(run: Any, horizon_ns: int, slices: int = 3) -> tuple[Rows, Rows, dict[str, Any]]:
    """Run to the horizon in some steps; return rows, events and counters."""
    rows, events = [], []
    for place in range(1, slices + 1):
        while True:
            stop = run.step(horizon_ns * place // slices)
            rows.append(run.take_log().copy())
            events.append(run.take_events())
            if stop is Stop.UNTIL:
                break
    while True:
        stop = run.finish()
        rows.append(run.take_log().copy())
        events.append(run.take_events())
        if stop is Stop.UNTIL:
            break
    return np.concatenate(rows), np.concatenate(events), run.counters()


def check(scenario: Scenario, replication: int = 0, chunk_rows: int = 1 << 14) -> int:
    """Compare the kernel with the engine itself, to the message; return the number of rows."""
    rows, events, counters = collect(
        OracleEngineRun(scenario, replication, LogLevel.EVENTS, chunk_rows), scenario.horizon_ns
    )
    run = CompiledEngineRun(scenario, replication, LogLevel.EVENTS, chunk_rows)
    found_rows, found_events, found = collect(run, scenario.horizon_ns)
    differing = np.flatnonzero(found_rows[: len(rows)] != rows[: len(found_rows)])
    if len(differing):
        at = differing[0]
        raise AssertionError(f"row {at}: {found_rows[at]}, not {rows[at]}")
    assert len(found_rows) == len(rows)
    np.testing.assert_array_equal(found_events, events)
    assert found.keys() == counters.keys()
    for name, column in counters.items():
        if name.endswith(("_bucket", "_count")):
            assert [each.tolist() for each in found[name]] == [each.tolist() for each in column], name
        else:
            assert list(found[name]) == list(column), name
    return len(rows)


@contextmanager
def mechanisms() -> Iterator[Counter[str]]:
    """Within the `with` statement, count what happens in the engine itself, by its words."""
    counted: Counter[str] = Counter()
    with pytest.MonkeyPatch.context() as patch:
        move, run, raised = HeldMessage.move, DeclaredProcedure.run, translation._raise
        timed_out = protocol_thread.ProtocolThread._time_out
        translate = DeclaredTranslation.run

        def counting_move(self: Any, cause: Any, **changes: Any) -> None:
            counted[f"moved by {cause.name}"] += 1
            move(self, cause, **changes)

        def counting_run(self: Any, mode: Any, context: Any, message: Any) -> Any:
            try:
                outputs = run(self, mode, context, message)
            except Exception:
                counted[f"broke off in {context.value}"] += 1
                raise
            for each in outputs:
                counted[f"{each.disposition} in {context.value}"] += 1
            if len(outputs) > 1:
                counted[f"several in {context.value}"] += 1
            return outputs

        def counting_raise(of: Any, severity: Any, text: str) -> None:
            own = f" ({of.error_control})" if severity is routes.ErrorSeverity.ACTION else ""
            counted[f"error {severity}{own}"] += 1
            raised(of, severity, text)

        def counting_time_out(self: Any, held: Any) -> None:
            counted["reply late"] += self._reserved is held
            timed_out(self, held)

        def counting_translate(self: Any, message: Any) -> Any:
            counted["chained"] += b"." in message.payload.split()[2]
            return translate(self, message)

        patch.setattr(HeldMessage, "move", counting_move)
        patch.setattr(DeclaredProcedure, "run", counting_run)
        patch.setattr(DeclaredTranslation, "run", counting_translate)
        patch.setattr(translation, "_raise", counting_raise)
        patch.setattr(protocol_thread.ProtocolThread, "_time_out", counting_time_out)
        yield counted


def expected_mechanisms() -> set[str]:
    """Return what has to happen in many scenarios: every disposition, severity, and way of a message."""
    contexts = dispositions.ProcedureContext
    wanted = {
        f"{each} in {context.value}"
        for context in contexts
        for each in dispositions.ALLOWED[context]
        if context is not contexts.OUTBOUND_REPLY  # a scenario has no procedures for replies that go out
    }
    wanted |= {f"{each} in {contexts.ROUTE_DETAIL.value}" for each in dispositions.FATAL}
    wanted |= {
        f"{word} in {context.value}"
        for word in ("broke off", "several")
        for context in contexts
        if context is not contexts.OUTBOUND_REPLY
    }
    wanted |= {f"error {each}" for each in ("curdetail", "alldetail")}
    wanted |= {f"error action ({each})" for each in ErrorControl}
    wanted |= {f"moved by {each.name}" for each in MessageCause}
    return wanted | {"reply late", "chained"}
