"""Flows and work of an engine against its simulation; the search for the best process of each thread."""

from __future__ import annotations

import dataclasses
import itertools

import pytest

from qsctl.core.integration.routes import DetailKind
from qsctl.errors import InvalidInput, UsageError
from qsctl.instant import MILLISECOND_NS, SECOND_NS
from qsctl.sim.replication import simulate_counters
from qsctl.sim.scenario.overrides.engine_paths import moved
from qsctl.sim.scenario.overrides.set_values import apply_overrides, paths_of
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
from qsctl.sim.scenario.parts.traffic import Arrivals
from qsctl.sim.scenario.scenario import ClientInterval, MmppArrivals, Model, PoissonArrivals, Scenario
from qsctl.sim.scenario.xml import find_scenario, read_scenario
from qsctl.sim.site.balance import balance
from qsctl.sim.site.flows import busiest_hour, rate_at, site_flows, translation_work
from qsctl.sim.sweep import parse_axes, plan_sweep, scenario_at


def inbound(name: str, arrivals: Arrivals, takes_ms: int) -> EngineThread:
    translation = EngineTranslation(takes_ns=takes_ms * MILLISECOND_NS, spread=Spread.EXPONENTIAL, name=f"{name}.xlt")
    detail = EngineDetail("out", DetailKind.TRANSLATE, translations=(translation,))
    return EngineThread(name, inbound=EngineInbound(arrivals, routes=(EngineRoute("*", (detail,)),)))


OUT = EngineThread("out", outbound=EngineOutbound(PoissonArrivals(1000.0)))


def site(*processes: list[EngineThread], horizon_s: int = 3600) -> Scenario:
    made = tuple(EngineProcess(f"p{at}", tuple(threads)) for at, threads in enumerate(processes))
    engine = Engine(processes=(*made, EngineProcess("outside", (OUT,))))
    return Scenario("s", Model.INTEGRATION, engine=engine, horizon_ns=horizon_s * SECOND_NS)


def test_predicted_rates_are_those_of_the_simulation() -> None:
    procedures = (EngineProcedure(Behaviour.DROP, every=4),)
    detail = EngineDetail(
        "out", DetailKind.TRANSLATE, (EngineProcedure(Behaviour.SPLIT, every=2, results=3),), (EngineTranslation(2),)
    )
    again = EngineDetail("", DetailKind.RAW, (EngineProcedure(Behaviour.REROUTE, transaction="B", every=2),))
    routes = (EngineRoute("A", (detail, again)), EngineRoute("B", (EngineDetail("out"),)))
    thread = EngineThread(
        "a",
        inbound=EngineInbound(
            PoissonArrivals(20.0), procedures=procedures, routes=routes,
            transactions=(EngineTransaction("A", 3.0), EngineTransaction("B")),
        ),
    )  # fmt: skip
    scenario = dataclasses.replace(site([thread], horizon_s=60))
    assert scenario.engine is not None
    predicted = sum(each.per_s for each in site_flows(scenario.engine) if each.destination == "out")
    rows = simulate_counters(scenario).to_pylist()
    found = sum(row["arrived_messages"] for row in rows if row["queue"] == "post-translation") / 60
    # A message that neither goes on nor is routed again has no destination, and fails with all its results.
    assert predicted == pytest.approx(20 * 0.75 * (0.75 * 2 * 2 + 0.25 + 0.75 / 2), rel=1e-9)
    assert found < predicted


@pytest.mark.statistics
def test_the_formula_of_a_process_is_what_the_simulation_finds() -> None:
    scenario = site([inbound("a", PoissonArrivals(4.0), 100), inbound("b", PoissonArrivals(2.0), 150)], horizon_s=700)
    assert scenario.engine is not None
    work = translation_work(scenario.engine)
    load = sum(each.load for each in work)
    square = sum(each.per_s * each.service.square_s2 for each in work)
    rows = simulate_counters(scenario).to_pylist()
    waited = next(row["wait_sum_ns"] for row in rows if row["queue"] == "pre-translation") / scenario.horizon_ns
    assert load == pytest.approx(0.7)
    assert waited == pytest.approx(6.0 * square / (2 * (1 - load)), rel=0.35)


def test_threads_are_moved_out_of_a_process_that_has_too_much() -> None:
    crowded = [inbound(f"t{at}", PoissonArrivals(2.0), 100) for at in range(4)]
    found = balance(site(crowded, [inbound("u", PoissonArrivals(0.5), 100)]), check=False)
    loads = [each.load_after for each in found.processes[:2]]
    assert found.is_better
    assert max(loads) < 0.5
    assert {each.source for each in found.moves} == {"p0"}


def test_the_search_finds_what_trying_all_assignments_finds() -> None:
    threads = [inbound(f"t{at}", PoissonArrivals(1.0 + at), 30 + 20 * (at % 3)) for at in range(6)]
    scenario = site(threads, [])
    assert scenario.engine is not None
    found = balance(scenario, check=False, fixed=("t0",), moves_max=6)

    def largest(targets: tuple[str, ...]) -> float:
        engine = scenario.engine
        assert engine is not None
        for thread, target in zip(threads[1:], targets, strict=True):
            engine = moved(engine, thread.name, target)
        loads: dict[str, float] = {}
        for each in translation_work(engine):
            loads[each.process] = loads.get(each.process, 0.0) + each.load
        return max(loads.values())

    best = min(largest(targets) for targets in itertools.product(("p0", "p1", "outside"), repeat=5))
    assert max(each.load_after for each in found.processes) <= 1.05 * best
    assert "t0" not in {each.thread for each in found.moves}


def test_a_check_by_simulation_confirms_the_moves_and_quantifies_them() -> None:
    crowded = [inbound(f"t{at}", PoissonArrivals(2.0), 110) for at in range(4)]
    found = balance(site(crowded, []), messages_max=2_000)
    before, after = found.processes[0].waiting_before, found.processes[0].waiting_after
    assert (found.is_checked, found.is_better) == (True, True)
    assert before is not None
    assert after is not None
    assert after < before / 2


def test_nothing_is_moved_where_nothing_helps() -> None:
    even = site([inbound("a", PoissonArrivals(1.0), 100)], [inbound("b", PoissonArrivals(1.0), 100)])
    found = balance(even, added=(), fixed=("a", "b"))
    assert (found.moves, found.is_better, found.is_checked) == ((), False, False)
    with pytest.raises(InvalidInput, match="nothing to balance"):
        balance(site([inbound("a", PoissonArrivals(1.0), 0)]))
    with pytest.raises(UsageError, match="no thread 'x'"):
        balance(even, fixed=("x",))
    with pytest.raises(UsageError, match="a process 'p0' already"):
        balance(even, added=("p0",))


def test_the_busiest_hour_is_that_with_most_arrivals() -> None:
    hours = [1.0] * 24
    hours[14] = 9.0
    arrivals = MmppArrivals(tuple(hours), (3600 * SECOND_NS,) * 24, cycle=True)
    scenario = site([inbound("a", arrivals, 10)])
    assert scenario.engine is not None
    assert busiest_hour(scenario.engine) == 14
    assert rate_at(arrivals, (14 * 3600 + 1) * SECOND_NS) == 9.0
    assert site_flows(scenario.engine, 14)[0].per_s == 9.0


def test_short_paths_move_threads_set_outages_and_durations() -> None:
    clinic = read_scenario(find_scenario("clinic"))
    changed = apply_overrides(
        clinic,
        {
            "thread[lab_out]/process": "storage",
            "thread[lab_out]/outage": "10s+2min",
            "thread[rad_out]/stop": "none",
            "thread[adt_in]/inbound/priority": "6000",
            "thread[lab_out]/outbound/poisson/rate": "7/s",
        },
    )
    assert changed.engine is not None
    clinical, storage = changed.engine.processes
    assert [each.name for each in storage.threads] == ["archive_out", "lab_out"]
    assert storage.threads[1].outbound is not None
    assert storage.threads[1].outbound.outages == (ClientInterval(10 * SECOND_NS, 120 * SECOND_NS),)
    assert storage.threads[1].outbound.service == PoissonArrivals(7.0)
    assert next(each for each in clinical.threads if each.name == "rad_out").stops == ()
    assert clinical.threads[0].inbound is not None
    assert clinical.threads[0].inbound.priority == 6000
    named = site([inbound("a", PoissonArrivals(1.0), 5), inbound("b", PoissonArrivals(1.0), 5)])
    slower = apply_overrides(named, {"procedure[a.xlt]/takes": "80ms"})
    assert slower.engine is not None
    assert [each.service.mean_s for each in translation_work(slower.engine)] == [0.08, 0.005]
    assert {"procedure[a.xlt]/takes", "thread[a]/process", "thread[out]/outage"} <= set(paths_of(named))


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("thread[nix]/process", "storage", "no thread 'nix'"),
        ("thread[lab_out]/process", "nix", "not a process"),
        ("thread[adt_in]/outage", "1s+1s", "no outbound side"),
        ("thread[lab_out]/outage", "1s", "not an interval"),
        ("thread[lab_out]/stop", "1s+x", "not an interval"),
        ("procedure[nix]/takes", "1s", "no procedure or translation 'nix'"),
        ("procedure[nix]/takes", "x", "takes"),
        ("thread[nix]/inbound/priority", "1", "no thread 'nix'"),
    ],
)
def test_short_paths_that_lead_nowhere_name_what_is_there(path: str, value: str, message: str) -> None:
    with pytest.raises((UsageError, InvalidInput), match=message):
        apply_overrides(read_scenario(find_scenario("clinic")), {path: value})


def test_a_sweep_varies_outages_processes_and_durations_by_their_short_paths() -> None:
    named = site([inbound("a", PoissonArrivals(1.0), 5)], [inbound("b", PoissonArrivals(1.0), 5)])
    grid = ("thread[out]/outage=none,1min+2min", "thread[a]/process=p0,p1", "procedure[b.xlt]/takes=5ms,50ms")
    plan = plan_sweep(named, parse_axes(grid), 1)
    points = [scenario_at(named, point) for point in plan.points()]
    assert len(points) == 8
    last = points[-1].engine
    assert last is not None
    assert [len(process.threads) for process in last.processes] == [0, 2, 1]
    assert last.processes[2].threads[0].outbound is not None
    assert last.processes[2].threads[0].outbound.outages == (ClientInterval(60 * SECOND_NS, 120 * SECOND_NS),)
    with pytest.raises(InvalidInput, match="not a process"):
        plan_sweep(named, parse_axes(["thread[a]/process=p0,p9"]), 1)
