"""The integration engine under virtual time: theory, Little's law in every queue, the queue where messages wait."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from qsctl.core.integration.events import Entered, Event, Left
from qsctl.core.integration.message import MessageId, State
from qsctl.core.integration.routes import DetailKind
from qsctl.eventlog.schema import LogLevel
from qsctl.instant import INFINITE_NS, MILLISECOND_NS, SECOND_NS
from qsctl.sim.engine.client_names import client_names
from qsctl.sim.engine.visit_log import QUEUE_NAMES, QUEUES
from qsctl.sim.engine.world import EngineWorld
from qsctl.sim.replication import simulate_counters
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
    EngineTranslation,
    Spread,
)
from qsctl.sim.scenario.scenario import ClientInterval, ConstantArrivals, ConstantSize, Model, PoissonArrivals, Scenario
from qsctl.sim.scenario.xml import find_scenario, read_scenario


def scenario_of(
    rate: float,
    service: Any,
    *,
    procedures: tuple[EngineProcedure, ...] = (),
    translations: tuple[EngineTranslation, ...] = (),
    horizon_s: int = 2_000,
    arrivals: Any = PoissonArrivals,
    stops: tuple[ClientInterval, ...] = (),
    **others: Any,
) -> Scenario:
    kind = DetailKind.TRANSLATE if translations else DetailKind.RAW
    inbound = EngineInbound(
        arrivals(rate),
        ConstantSize(50),
        procedures=procedures,
        routes=(EngineRoute(details=(EngineDetail("out", kind, translations=translations),)),),
    )
    threads = (EngineThread("in", inbound=inbound), EngineThread("out", outbound=EngineOutbound(service), stops=stops))
    engine = Engine(processes=(EngineProcess("p", threads),))
    return Scenario("s", model=Model.INTEGRATION, horizon_ns=horizon_s * SECOND_NS, engine=engine, seed=3, **others)


def waits(scenario: Scenario) -> dict[tuple[str, str], float]:
    """Mean wait in seconds of each queue."""
    table = simulate_counters(scenario)
    return {
        (row["client"], row["queue"]): row["wait_sum_ns"] / max(1, row["delivered_messages"]) / 1e9
        for row in table.to_pylist()
    }


@pytest.mark.statistics
def test_a_slow_receiver_is_an_m_m_1_queue() -> None:
    found = waits(scenario_of(8.0, PoissonArrivals(16.0), warm_up_ns=10 * SECOND_NS, horizon_s=900))
    # n = 7,200 at a load of 0.5: three standard deviations of the mean wait are 19 %.
    assert found["out", "outbound-post-TPS"] == pytest.approx(0.5 / 8.0, rel=0.19)


@pytest.mark.statistics
def test_a_constant_procedure_is_an_m_d_1_queue() -> None:
    procedure = EngineProcedure(takes_ns=40 * MILLISECOND_NS)
    found = waits(scenario_of(8.0, ConstantArrivals(1000.0), procedures=(procedure,), horizon_s=500))
    rho = 8 * 0.04
    assert found["in", "inbound-pre-TPS"] == pytest.approx(rho * 0.04 / (2 * (1 - rho)), rel=0.1)


@pytest.mark.statistics
def test_a_translation_is_an_m_m_1_queue() -> None:
    translation = EngineTranslation(takes_ns=50 * MILLISECOND_NS, spread=Spread.EXPONENTIAL)
    found = waits(scenario_of(8.0, ConstantArrivals(1000.0), translations=(translation,), horizon_s=500))
    rho = 8 * 0.05
    assert found["p_xlate", "pre-translation"] == pytest.approx(rho * 0.05 / (1 - rho), rel=0.22)


def test_a_result_waits_for_the_others_of_its_route_detail() -> None:
    translation = EngineTranslation(results=3, takes_ns=10 * MILLISECOND_NS)
    found = waits(
        scenario_of(
            1.0, ConstantArrivals(1000.0), translations=(translation,), arrivals=ConstantArrivals, horizon_s=100
        )
    )
    assert found["p_xlate", "route-detail"] == pytest.approx((0.020 + 0.010 + 0.0) / 3)
    assert found["p_xlate", "partial"] == 0


def test_the_icl_delay_is_paid_twice_and_is_no_wait() -> None:
    plain = scenario_of(1.0, ConstantArrivals(1000.0), arrivals=ConstantArrivals, horizon_s=10)
    assert plain.engine is not None
    slow = dataclasses.replace(plain, engine=dataclasses.replace(plain.engine, icl_delay_ns=MILLISECOND_NS))
    times: list[list[int]] = []
    for scenario in (plain, slow):
        received: list[int] = []
        EngineWorld(scenario, on_received=lambda each, into=received: into.append(each.at_ns)).run()  # type: ignore[misc]
        times.append(received)
    assert [b - a for a, b in zip(*times, strict=True)] == [2 * MILLISECOND_NS] * len(times[0])
    assert set(waits(slow).values()) == {0.0}


def test_littles_law_is_exact_in_every_queue_and_the_slow_destination_is_named(tmp_path: Path) -> None:
    """Depth integrated over time by the engine's events, against arrivals × wait of the log's rows."""
    from qsctl.eventlog.reader import open_run
    from qsctl.sim.run import run

    scenario = dataclasses.replace(read_scenario(find_scenario("clinic")), horizon_ns=40 * SECOND_NS)
    depth: dict[tuple[str, State], int] = defaultdict(int)
    area: dict[tuple[str, State], int] = defaultdict(int)
    changed: dict[tuple[str, State], int] = {}

    def note(event: Event) -> None:
        if isinstance(event, Entered | Left):
            key = (event.owner, event.queue)
            area[key] += depth[key] * (event.at_ns - changed.get(key, 0))
            depth[key] += 1 if isinstance(event, Entered) else -1
            changed[key] = event.at_ns

    world = EngineWorld(scenario, on_event=note)
    world.run(scenario.horizon_ns)
    for key, length in depth.items():
        area[key] += length * (scenario.horizon_ns - changed[key])

    report = run(scenario, tmp_path / "run", level=LogLevel.MESSAGES)
    rows = [row for batch in open_run(tmp_path / "run").messages() for row in batch.to_pylist()]
    by_queue: dict[tuple[str, str], int] = defaultdict(int)
    for row in rows:
        inside = row["wait_ns"] if row["wait_ns"] is not None else scenario.horizon_ns - row["enqueued_ns"]
        by_queue[str(row["client_id"]), row["queue"]] += inside
    names = client_names(scenario)
    expected = {
        (str(names.index(owner)), QUEUE_NAMES[list(QUEUES).index(state)]): value
        for (owner, state), value in area.items()
    }
    assert {key: value for key, value in by_queue.items() if value} == {k: v for k, v in expected.items() if v}
    counters = {(row["client"], row["queue"]): row for row in report.counters.to_pylist()}
    assert max(counters, key=lambda key: counters[key]["wait_sum_ns"]) == ("archive_out", "outbound-post-TPS")


def test_messages_for_a_stopped_thread_wait_in_its_post_translation_queue() -> None:
    scenario = scenario_of(
        5.0, ConstantArrivals(100.0), horizon_s=100, arrivals=ConstantArrivals,
        stops=(ClientInterval(20 * SECOND_NS, 40 * SECOND_NS),),
    )  # fmt: skip
    found = waits(scenario)
    assert found["out", "post-translation"] > 5
    assert found["out", "post-translation"] == max(found.values())
    world = EngineWorld(scenario)
    world.run(30 * SECOND_NS)
    waiting = [each for each in world.engine.messages() if each.state is State.POST_TRANSLATION]
    assert len(waiting) == pytest.approx(50, abs=2)
    assert [each.mid for each in waiting] == sorted(each.mid for each in waiting)


def test_every_message_that_was_sent_is_accounted_for_at_the_end() -> None:
    drop = EngineProcedure(Behaviour.DROP, every=4)
    world = EngineWorld(scenario_of(5.0, ConstantArrivals(100.0), procedures=(drop,), horizon_s=50))
    world.run()
    assert world.offered == world.delivered + world.offered // 4
    assert world.next_instant() == INFINITE_NS


def test_the_same_seed_gives_the_same_run_and_another_one_another() -> None:
    scenario = dataclasses.replace(read_scenario(find_scenario("clinic")), horizon_ns=20 * SECOND_NS)
    runs: list[list[tuple[int, MessageId]]] = []
    for seed in (1, 1, 2):
        events: list[tuple[int, MessageId]] = []

        def note(event: Event, into: list[tuple[int, MessageId]] = events) -> None:
            if isinstance(event, Left):
                into.append((event.at_ns, event.mid))

        EngineWorld(dataclasses.replace(scenario, seed=seed), on_event=note).run()
        runs.append(events)
    assert runs[0] == runs[1] != runs[2]


def test_a_power_failure_loses_nothing_that_is_logged() -> None:
    scenario = read_scenario(find_scenario("clinic"))
    assert scenario.engine is not None
    engine = dataclasses.replace(scenario.engine, failures=(ClientInterval(20 * SECOND_NS, SECOND_NS),))
    world = EngineWorld(dataclasses.replace(scenario, horizon_ns=30 * SECOND_NS, engine=engine))
    world.run()
    assert world.lost == 0
    assert world.delivered + world.failed > world.offered
    assert not world.engine.messages()
