"""Ports that share nothing are simulated for themselves: the same results as together, to the bit, by any threads."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qsctl.errors import InvalidInput
from qsctl.eventlog.columns import counter_table
from qsctl.eventlog.schema import LogLevel, Outcome
from qsctl.instant import SECOND_NS
from qsctl.sim.egress import solace
from qsctl.sim.egress.runs import parallel_run
from qsctl.sim.egress.runs._independent_ports import independent_parts
from qsctl.sim.egress.runs._run import EgressRun
from qsctl.sim.egress.runs.parallel_run import ParallelRun
from qsctl.sim.figures import figures_of
from qsctl.sim.model import OUTCOMES, Stop
from qsctl.sim.replication import simulate_figures
from qsctl.sim.run import run
from qsctl.sim.scenario.scenario import (
    Broker,
    ClientGroup,
    ClientInterval,
    ConstantArrivals,
    ConstantSize,
    DurableQueue,
    Flow,
    PoissonArrivals,
    Port,
    Profile,
    Queue,
    Scenario,
    TimedChange,
    TraceArrivals,
    Traffic,
)
from tests.example_counts import examples
from tests.sim.random_scenarios import HORIZON_NS, solace_scenarios, tibco_scenarios

AT_INGRESS = {OUTCOMES.index(Outcome.INGRESS_REFUSED), OUTCOMES.index(Outcome.TOO_BIG)}
"""Logged as they are drawn, ahead of the time."""


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    """Groups on ports of their own, or two on one, without limits of the whole broker; many things at one instant."""
    scenario = draw(st.one_of(solace_scenarios(), tibco_scenarios()))
    groups = tuple(
        replace(each, port=draw(st.sampled_from([f"p{number}", f"p{number}", "p0"])))
        for number, each in enumerate(scenario.groups)
    )
    extra = ClientGroup("alone", "p3", scenario.profiles[0].name, count=2, round_trip_ns=0)
    same = draw(st.sampled_from([200.0, 1000.0, 5000.0]))
    queue = draw(st.sampled_from([Queue.D_1, Queue.G_1])) if scenario.model.value == "solace" else Queue.D_1
    traffic = tuple(
        replace(each, arrivals=ConstantArrivals(same), size=ConstantSize(1000)) if draw(st.booleans()) else each
        for each in scenario.traffic
    )
    return replace(
        scenario,
        ports=(*scenario.ports, Port("p2", 80_000_000), Port("p3", 50_000_000)),
        groups=(groups[0], extra, *groups[1:]),
        traffic=(*traffic, Traffic("more", "alone", ConstantArrivals(same), ConstantSize(1000), queue, topics=2)),
        broker=Broker(
            max_message_bytes=draw(st.sampled_from([30_000_000, 4000])),
            large_message_bytes=draw(st.sampled_from([1_048_576, 3000])),
            slow_threshold_percent=draw(st.sampled_from([50.0, 0.0])),
        ),
    )


def logged(made: Any, until_ns: int, slice_ns: int = 0, stop_ns: int = 0) -> tuple[Any, Any]:
    """The rows and the events of a run, in their order, to its end or an earlier instant."""
    rows: list[Any] = []
    events: list[Any] = []

    def take() -> None:
        rows.append(made.take_log().copy())
        events.append(made.take_events())

    end = stop_ns or until_ns
    at = 0
    while at < end:
        at = min(end, at + slice_ns) if slice_ns else end
        while made.step(at) is Stop.LOG_FULL:
            take()
    take()
    while made.finish() is Stop.LOG_FULL:
        take()
    take()
    return np.concatenate(rows), np.concatenate(events)


def in_parts(scenario: Scenario, level: LogLevel = LogLevel.EVENTS, chunk_rows: int = 64) -> ParallelRun:
    parts = independent_parts(scenario)
    assert len(parts) > 1
    return ParallelRun(scenario, parts, 0, level, chunk_rows, HORIZON_NS // 7)


def of_each_client(rows: Any) -> dict[int, list[bytes]]:
    """Return the rows of each client, in order; first what ingress refused, in any."""
    found: dict[int, list[bytes]] = defaultdict(list)
    early = np.isin(rows["outcome"], list(AT_INGRESS))
    for row in sorted(row.tobytes() for row in rows[early]):
        found[-1].append(row)
    for row in rows[~early]:
        found[int(row["client_id"])].append(row.tobytes())
    return found


def plain(columns: dict[str, Any]) -> dict[str, Any]:
    return {
        name: [each.tolist() if isinstance(each, np.ndarray) else each for each in values]
        for name, values in columns.items()
    }


@pytest.mark.slow
@settings(max_examples=examples(40))
@given(scenarios(), st.integers(0, HORIZON_NS))
def test_parts_give_what_the_whole_gives(scenario: Scenario, stop_ns: int) -> None:
    whole = EgressRun(scenario, 0, LogLevel.EVENTS, 64)
    together = logged(whole, scenario.horizon_ns, stop_ns=stop_ns)
    apart = in_parts(scenario)
    beside = logged(apart, scenario.horizon_ns, stop_ns=stop_ns)
    assert of_each_client(beside[0]) == of_each_client(together[0])
    # Of one instant those that a kernel raised come as the log is taken.
    assert sorted(map(bytes, beside[1])) == sorted(map(bytes, together[1]))
    assert plain(apart.counters()) == plain(whole.counters())
    assert figures_of(counter_table(apart.counters(), "")) == figures_of(counter_table(whole.counters(), ""))
    assert apart.happenings == whole.happenings
    assert apart.messages == whole.messages
    assert apart.now_ns == whole.now_ns


@pytest.mark.slow
@settings(max_examples=examples(20))
@given(scenarios(), st.integers(2, 4), st.integers(HORIZON_NS // 30, HORIZON_NS), st.integers(1, 100))
def test_threads_slices_and_chunks_change_no_byte_of_the_log(
    scenario: Scenario, threads: int, slice_ns: int, chunk_rows: int
) -> None:
    alone = logged(in_parts(scenario), scenario.horizon_ns)
    made = in_parts(scenario, chunk_rows=chunk_rows)
    made.use_cores(threads)
    beside = logged(made, scenario.horizon_ns, slice_ns)
    assert beside[0].tobytes() == alone[0].tobytes()
    assert beside[1].tobytes() == alone[1].tobytes()


def two_ports(**changed: Any) -> Scenario:
    return Scenario(
        "two",
        **{
            "horizon_ns": SECOND_NS // 4,
            "ports": (Port("a", 40_000_000), Port("b", 30_000_000)),
            "profiles": (Profile("d"),),
            "groups": (
                ClientGroup("x", "a", "d", count=3),
                ClientGroup("y", "b", "d", absences=(ClientInterval(10**8, 10**7),)),
            ),
            "traffic": (
                Traffic("t", "x", PoissonArrivals(2000.0), ConstantSize(1000)),
                Traffic("u", "y", PoissonArrivals(3000.0), ConstantSize(1000), topics=3),
            ),
            "log_level": "events",
            **changed,
        },
    )


def names_of(parts: tuple[Scenario, ...]) -> list[list[str]]:
    return [[each.name for each in part.groups] for part in parts]


def test_each_port_is_a_part() -> None:
    scenario = two_ports(changes=(TimedChange(5, "port[b]/rate", "10"), TimedChange(6, "client[x]/pause", "1ms")))
    parts = independent_parts(scenario)
    assert names_of(parts) == [["x"], ["y"]]
    assert [[each.path for each in part.changes] for part in parts] == [["client[x]/pause"], ["port[b]/rate"]]


@pytest.mark.parametrize(
    "broker",
    [
        Broker(egress_buffer_bytes=10**6),
        Broker(ingress_rate_bits_per_second=10**9),
        Broker(unacknowledged_limit_messages=0),
    ],
)
def test_a_limit_of_the_whole_broker_joins_all_ports(broker: Broker) -> None:
    scenario = two_ports(broker=broker)
    assert independent_parts(scenario) == (scenario,)


def test_flows_and_dead_messages_join_ports() -> None:
    queues = (
        DurableQueue("q", flows=(Flow("x"), Flow("y"))),
        DurableQueue("r", flows=(Flow("z"),), dead_message_queue="s"),
        DurableQueue("s"),
    )
    made = two_ports(durable_queues=queues)
    made = replace(
        made,
        ports=(*made.ports, Port("c")),
        groups=(*made.groups, ClientGroup("z", "c", "d")),
        traffic=(*made.traffic, Traffic("v", "s", PoissonArrivals(1.0), queue=Queue.G_1)),
    )
    parts = independent_parts(made)
    assert names_of(parts) == [["x", "y"], ["z"]]
    assert [[each.name for each in part.durable_queues] for part in parts] == [["q"], ["r", "s"]]


def test_many_ports_become_few_parts_of_about_equal_load() -> None:
    numbers = range(20)
    made = Scenario(
        "many",
        ports=tuple(Port(f"p{i}") for i in numbers),
        profiles=(Profile("d"),),
        groups=tuple(ClientGroup(f"g{i}", f"p{i}", "d") for i in numbers),
        traffic=tuple(Traffic(f"t{i}", f"g{i}", PoissonArrivals(1000.0 * (1 + i))) for i in numbers),
    )
    parts = independent_parts(made)
    loads = [sum(each.arrivals.rate_per_second for each in part.traffic) for part in parts]
    assert Counter(name for names in names_of(parts) for name in names) == Counter(f"g{i}" for i in numbers)
    assert len(parts) == 8
    assert max(loads) < 1.2 * min(loads)


def test_what_has_no_traffic_is_in_one_part() -> None:
    made = two_ports()
    idle = replace(made, ports=(*made.ports, Port("c"), Port("d")), groups=(*made.groups, ClientGroup("z", "c", "d")))
    parts = independent_parts(idle)
    assert names_of(parts) == [["x", "z"], ["y"]]
    assert sorted(port.name for part in parts for port in part.ports) == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    "changed",
    [
        {"groups": (ClientGroup("x", "a", "d"), ClientGroup("x", "b", "d"), ClientGroup("y", "b", "d"))},
        {"groups": (ClientGroup("x", "a", "d"), ClientGroup("y", "nowhere", "d"))},
        {"groups": (ClientGroup("x", "a", "d"), ClientGroup("y", "b", "d"), ClientGroup("z", "b", "d", count=0))},
        {"traffic": (Traffic("t", "nobody", PoissonArrivals(1e6)), Traffic("u", "y", PoissonArrivals(1e6)))},
        {"changes": (TimedChange(5, "port[none]/rate", "10"),)},
    ],
)
def test_a_wrong_scenario_raises_the_same_error(changed: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel_run, "FEWEST_MESSAGES", 0)
    scenario = two_ports(**changed)
    with pytest.raises(InvalidInput) as expected:
        EgressRun(scenario, 0, LogLevel.COUNTERS)
    with pytest.raises(InvalidInput) as raised:
        solace.prepare(scenario, 0, LogLevel.COUNTERS)
    assert str(raised.value) == str(expected.value)


def test_a_trace_keeps_its_topics(tmp_path: Path) -> None:
    trace = tmp_path / "t.csv"
    trace.write_text("time_ns,size_bytes,topic_id\n" + "".join(f"{i * 1000},500,{i % 5}\n" for i in range(100)))
    made = two_ports()
    scenario = replace(
        made,
        traffic=(replace(made.traffic[1], name="w"), Traffic("v", "x", TraceArrivals(str(trace))), made.traffic[1]),
    )
    whole = logged(EgressRun(scenario, 0, LogLevel.MESSAGES), scenario.horizon_ns)
    assert of_each_client(logged(in_parts(scenario), scenario.horizon_ns)[0]) == of_each_client(whole[0])


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_any_number_of_threads_writes_the_same_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel_run, "FEWEST_MESSAGES", 0)
    scenario = two_ports()
    for threads in (1, 2, 5):
        run(scenario, tmp_path / str(threads), reproduce="qsctl simulate", threads=threads)
    one = contents(tmp_path / "1")
    assert sum("replication=" in name for name in one) == 3
    assert contents(tmp_path / "2") == contents(tmp_path / "5") == one


def test_figures_do_not_depend_on_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = two_ports()
    whole = simulate_figures(scenario)
    monkeypatch.setattr(parallel_run, "FEWEST_MESSAGES", 0)
    assert isinstance(solace.prepare(scenario, 0, LogLevel.COUNTERS), ParallelRun)
    assert simulate_figures(scenario) == whole


def test_a_stop_ends_a_run_in_parts_early_and_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel_run, "FEWEST_MESSAGES", 0)
    asked = iter([False, False, True])
    report = run(two_ports(), tmp_path / "run", threads=2, stop=lambda: next(asked, True))
    done = report.info.done[0]
    assert not done.complete
    assert 0 < done.simulated_ns < SECOND_NS // 4
    assert sum(report.counters["arrived_messages"].to_pylist()) == done.messages == done.message_rows


class _Broken(Exception):
    pass


def test_an_error_in_one_part_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    made = in_parts(two_ports())
    made.use_cores(2)

    def fail(_until_ns: int) -> Stop:
        raise _Broken

    monkeypatch.setattr(made._parts[1].run, "step", fail)
    with pytest.raises(_Broken):
        made.step(SECOND_NS // 4)
