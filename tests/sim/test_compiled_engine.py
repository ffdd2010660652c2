"""The compiled integration engine against the engine itself, equal to the message.

`QSCTL_TEST_RANDOM_ENGINES` is how many random scenarios are tried.
"""

from __future__ import annotations

import dataclasses

import pytest

from qsctl.errors import InvalidInput
from qsctl.eventlog.schema import BUCKET_COUNT, LogLevel
from qsctl.instant import MILLISECOND_NS, SECOND_NS
from qsctl.sim.engine.visit_log import QUEUES
from qsctl.sim.integration import _records as records
from qsctl.sim.integration import _visits as visits
from qsctl.sim.integration import run as integration_run
from qsctl.sim.integration._layout import lay_out_engine
from qsctl.sim.integration.run import CompiledEngineRun
from qsctl.sim.model import OUTCOMES, Event, Stop
from qsctl.sim.scenario.parts import engine as e
from qsctl.sim.scenario.scenario import ClientInterval, ConstantArrivals, Model, PoissonArrivals, Scenario
from qsctl.sim.scenario.xml import find_scenario, read_scenario
from tests.campaigns import trials
from tests.sim.oracle_engine import OracleEngineRun
from tests.sim.random_engines import check, expected_mechanisms, mechanisms, random_engine

RANDOM_ENGINES = trials("QSCTL_TEST_RANDOM_ENGINES", 60, 1000)
_PARTS = 6
_ALL_HAPPENS_WITHIN = 60
"""Of the random scenarios so many, run by the engine itself alone, show every mechanism."""


@pytest.mark.slow(beyond=2)
@pytest.mark.campaign
@pytest.mark.parametrize("part", range(_PARTS))
def test_the_kernel_and_the_engine_agree_to_the_message(part: int) -> None:
    for number in range(part, RANDOM_ENGINES, _PARTS):
        check(random_engine(number), chunk_rows=50 if number % 2 else 1 << 14)


@pytest.mark.slow
def test_every_mechanism_happens_in_random_scenarios() -> None:
    wanted = expected_mechanisms()
    with mechanisms() as counted:
        for number in range(_ALL_HAPPENS_WITHIN):
            scenario = random_engine(number)
            run = OracleEngineRun(scenario, 0, LogLevel.COUNTERS)
            while run.step(scenario.horizon_ns) is Stop.LOG_FULL:
                pass
            if wanted <= set(counted):
                return
    raise AssertionError(f"never happened: {', '.join(sorted(wanted - set(counted)))}")


@pytest.mark.slow
def test_ready_scenarios_agree_to_the_message() -> None:
    for name in ("ward", "clinic"):
        scenario = read_scenario(find_scenario(name))
        horizon_ns = min(scenario.horizon_ns, 400 * SECOND_NS)  # of the clinic, its power failure too
        check(dataclasses.replace(scenario, horizon_ns=horizon_ns), replication=1)


def test_numbers_of_the_kernel_are_those_of_the_log() -> None:
    assert visits.BUCKETS == BUCKET_COUNT
    for name in ("DELIVERED", "DISCARDED", "ELIDED", "HELD"):
        assert OUTCOMES[getattr(records, name)].name == name
    for name in (
        "DISCONNECTED", "CONNECTED", "THREAD_STOPPED", "THREAD_STARTED", "PROCESS_STOPPED", "PROCESS_STARTED",
    ):  # fmt: skip
        assert Event[name] == getattr(records, name)
    assert len(QUEUES) == records.OF_THREAD + records.OF_TRANSLATION + 1


def _split_before_retry(retries: int) -> Scenario:
    procedures = (
        e.EngineProcedure(e.Behaviour.SPLIT, results=3),
        e.EngineProcedure(e.Behaviour.RETRY, times=2, takes_ns=MILLISECOND_NS),
    )
    inbound = e.EngineInbound(
        ConstantArrivals(1.0), procedures=procedures, routes=(e.EngineRoute(details=(e.EngineDetail("out"),)),)
    )
    threads = (
        e.EngineThread("in", retries, 10 * MILLISECOND_NS, inbound),
        e.EngineThread("out", outbound=e.EngineOutbound(ConstantArrivals(100.0))),
    )
    engine = e.Engine(processes=(e.EngineProcess("p", threads),))
    return Scenario("s", model=Model.INTEGRATION, horizon_ns=10 * SECOND_NS, engine=engine)


@pytest.mark.parametrize(("retries", "delivered", "failed"), [(2, 30, 0), (1, 0, 10)])
def test_results_that_ask_for_another_run_have_it_together(retries: int, delivered: int, failed: int) -> None:
    scenario = _split_before_retry(retries)
    check(scenario)
    run = CompiledEngineRun(scenario, 0, LogLevel.EVENTS)
    while run.step(scenario.horizon_ns) is Stop.LOG_FULL:
        run.take_log()
    while run.finish() is Stop.LOG_FULL:
        run.take_log()
    events = run.take_events()
    assert sum(events["value"][events["event"] == Event.FAILED_MESSAGES]) == failed
    found = dict(zip(run.counters()["queue"], run.counters()["delivered_messages"], strict=True))
    assert found.get("outbound-post-TPS", 0) == delivered


def _sent_back(takes_ns: int, rate: float = 10.0) -> Scenario:
    procedures = (e.EngineProcedure(e.Behaviour.SEND, to="out", takes_ns=takes_ns, every=3),)
    threads = (
        e.EngineThread("in", inbound=e.EngineInbound(
            ConstantArrivals(rate), routes=(e.EngineRoute(details=(e.EngineDetail("out"),)),)
        )),
        e.EngineThread("out", outbound=e.EngineOutbound(ConstantArrivals(1e6), procedures=procedures)),
    )  # fmt: skip
    engine = e.Engine(processes=(e.EngineProcess("p", threads),))
    return Scenario("back", model=Model.INTEGRATION, horizon_ns=SECOND_NS, engine=engine)


def test_a_circle_that_takes_no_time_is_refused() -> None:
    """Refuse it: time never goes on, and a kernel that does not return hears no Ctrl-C."""
    endless = _sent_back(0)
    with pytest.raises(InvalidInput, match="back: a message goes in a circle that takes no time: at 200ms") as told:
        CompiledEngineRun(endless, 0, LogLevel.COUNTERS).step(endless.horizon_ns)
    assert "thread out works on" in str(told.value)
    timed = _sent_back(MILLISECOND_NS)
    assert CompiledEngineRun(timed, 0, LogLevel.COUNTERS).step(timed.horizon_ns) is Stop.UNTIL


def test_many_messages_at_one_instant_are_no_circle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(integration_run, "STEPS_MIN", 50)
    monkeypatch.setattr(integration_run, "STEPS_A_MESSAGE", 40)
    scenario = _sent_back(MILLISECOND_NS)
    assert scenario.engine is not None
    stopped = (ClientInterval(0, 900 * MILLISECOND_NS),)
    first, last = scenario.engine.processes[0].threads
    threads = (dataclasses.replace(first, stops=stopped), last)
    engine = dataclasses.replace(scenario.engine, processes=(e.EngineProcess("p", threads),))
    run = CompiledEngineRun(dataclasses.replace(scenario, engine=engine), 0, LogLevel.COUNTERS)
    assert run.step(scenario.horizon_ns) is Stop.UNTIL
    assert run.messages == 10
    monkeypatch.setattr(integration_run, "STEPS_A_MESSAGE", 0)
    with pytest.raises(InvalidInput, match="at 900ms"):  # it is the messages that give it so many steps
        CompiledEngineRun(dataclasses.replace(scenario, engine=engine), 0, LogLevel.COUNTERS).step(scenario.horizon_ns)


def test_rows_are_reused_however_long_the_run() -> None:
    lengths = []
    for seconds in (20, 400):
        scenario = dataclasses.replace(read_scenario(find_scenario("clinic")), horizon_ns=seconds * SECOND_NS)
        run = CompiledEngineRun(scenario, 0, LogLevel.COUNTERS)
        run.step(scenario.horizon_ns // 2)
        lengths.append({name: len(getattr(run.arrays, name)) for name in ("messages", "frames", "heap", "world")})
        run.step(scenario.horizon_ns)
        assert run.messages > 10 * seconds
    assert lengths[0] == lengths[1]


def test_a_layout_numbers_streams_by_the_names_that_the_engine_has() -> None:
    scenario = read_scenario(find_scenario("clinic"))
    layout = lay_out_engine(scenario, 0, ["adt_in", "orders_in", "lab_out", "rad_out", "clinical_xlate", "archive_out",
                                          "storage_xlate"])  # fmt: skip
    assert layout.draws == [
        "adt_in/procedure 1", "adt_in/A01/detail 1/1", "adt_in/A08/detail 1/1", "orders_in/*/detail 1/1",
        "orders_in/*/detail 2/1",
    ]  # fmt: skip


def test_thousands_of_results_find_room() -> None:
    detail = e.EngineDetail("out", e.DetailKind.TRANSLATE, translations=(e.EngineTranslation(40),))
    inbound = e.EngineInbound(PoissonArrivals(2.0), routes=(e.EngineRoute(details=(detail,)),), procedures=(
        e.EngineProcedure(e.Behaviour.SPLIT, results=60),
    ))  # fmt: skip
    threads = (
        e.EngineThread("in", inbound=inbound),
        e.EngineThread("out", outbound=e.EngineOutbound(ConstantArrivals(10_000.0))),
    )
    engine = e.Engine(processes=(e.EngineProcess("p", threads),), icl_delay_ns=MILLISECOND_NS)
    scenario = Scenario("s", model=Model.INTEGRATION, horizon_ns=SECOND_NS, engine=engine, seed=2)
    run = CompiledEngineRun(scenario, 0, LogLevel.COUNTERS)
    run.step(scenario.horizon_ns)
    run.finish()
    translated = run.messages * 60 * 40
    counters = run.counters()
    partial = counters["queue"].index("partial")
    assert counters["delivered_messages"][partial] == translated
