"""Single rules of the Solace model, one sentence each; and that a run is the same however it is cut and repeated."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from qsctl.errors import InvalidInput
from qsctl.eventlog.outcomes import Outcome
from qsctl.eventlog.schema import LogLevel
from qsctl.instant import MILLISECOND_NS, SECOND_NS
from qsctl.sim.egress.queues.eliding import MAX_ELIDING_TOPICS_EVENT
from qsctl.sim.egress.runs._run import EgressRun
from qsctl.sim.kernel import records
from qsctl.sim.model import EVENT_NAMES, OUTCOMES, Event, Stop
from qsctl.sim.scenario.scenario import (
    Broker,
    ClientInterval,
    ConstantArrivals,
    ConstantSize,
    Eliding,
    Model,
    PoissonArrivals,
    Queue,
    QueueLimits,
    Scheduler,
    TimedChange,
    Traffic,
)
from tests import processes
from tests.sim.brokers import ONE_AT_A_TIME, broker, limits, run

ROOT = Path(__file__).parent.parent.parent


def stalled(*traffic: Traffic, **changed: Any) -> Any:
    """A client that reads nothing for the whole run: what arrives queues up behind two messages.

    One is in its receive buffer, one in the TCP transmit queue.
    """
    pauses = (ClientInterval(0, 100 * SECOND_NS),)
    given = {"tcp": ONE_AT_A_TIME, "receive_buffer_bytes": 1, "pauses": pauses, "horizon_ns": SECOND_NS, **changed}
    return broker(*traffic, **given)


def every_ms(count: int, size: int = 100, **others: Any) -> Traffic:
    name = others.pop("name", "t")
    stop = count * MILLISECOND_NS
    return Traffic(name, "c", ConstantArrivals(1000.0), ConstantSize(size), stop_ns=stop, **others)


def test_the_codes_of_kernels_and_of_the_log_are_the_same() -> None:
    words = [OUTCOMES[i] for i in (records.DELIVERED, records.DISCARDED, records.OUTCOME_ELIDED)]
    assert words == ["delivered", "discarded", "elided"]
    assert [OUTCOMES[i] for i in (records.HELD, records.WAITING)] == ["held", "waiting"]
    assert Event.MAX_ELIDING_TOPICS == MAX_ELIDING_TOPICS_EVENT
    assert len(EVENT_NAMES) == len(Event)


def test_the_message_after_a_discard_carries_the_indication_once() -> None:
    scenario = broker(
        every_ms(20), queues=limits(5), tcp=ONE_AT_A_TIME, receive_buffer_bytes=1,
        pauses=(ClientInterval(0, 30 * MILLISECOND_NS),), horizon_ns=SECOND_NS,
    )  # fmt: skip
    made, rows, _ = run(scenario, LogLevel.MESSAGES)
    delivered = rows[rows["outcome"] == 0]
    assert list(delivered["discard_indication"]) == [0, 0, 1, 0, 0, 0, 0]
    assert made.counters()["discard_indications"][0] == 1


def test_lowering_a_depth_leaves_what_is_queued() -> None:
    change = TimedChange(50 * MILLISECOND_NS, "profile[d]/queue[D-1]/max-depth", "2")
    scenario = stalled(every_ms(40), queues=limits(1000), changes=(change,))
    assert run(scenario)[0].counters()["length_messages"][0] == 38
    later = replace(scenario, traffic=(*scenario.traffic, replace(every_ms(61, name="u"), start_ns=60_000_000)))
    columns = run(later)[0].counters()
    assert (columns["length_messages"][0], columns["max_depth_work_units"][0]) == (2, 2)


def test_a_newer_message_of_a_topic_replaces_the_queued_one() -> None:
    eliding = Eliding(enabled=True, max_topics=10)
    made, rows, _ = run(stalled(every_ms(50, topics=5), eliding=eliding), LogLevel.MESSAGES)
    columns = made.counters()
    assert columns["length_messages"][0] <= 5
    assert columns["elided_messages"][0] + columns["length_messages"][0] + 2 == 50
    assert columns["discarded_messages"][0] == 0
    assert (rows["outcome"] == 2).sum() == columns["elided_messages"][0]


def test_a_delay_spaces_the_deliveries_of_a_topic() -> None:
    eliding = Eliding(enabled=True, delay_ns=10 * MILLISECOND_NS)
    _, rows, _ = run(broker(every_ms(100), eliding=eliding, horizon_ns=SECOND_NS), LogLevel.MESSAGES)
    delivered = rows[rows["outcome"] == 0]
    left = np.sort(delivered["enqueued_ns"] + delivered["wait_ns"])
    assert (np.diff(left) >= 10 * MILLISECOND_NS).all()
    assert len(delivered) == 11


def test_topics_beyond_the_limit_are_not_elided_and_reported_once() -> None:
    eliding = Eliding(enabled=True, max_topics=1)
    made, _, events = run(stalled(every_ms(50, topics=5), eliding=eliding), LogLevel.EVENTS)
    assert (events["event"] == Event.MAX_ELIDING_TOPICS).sum() == 1
    assert made.counters()["length_messages"][0] > 5


def test_buffer_load_is_reported_at_its_thresholds_and_the_slowest_goes_above_100_percent() -> None:
    scenario = broker(
        every_ms(200, size=1000), count=2, tcp=ONE_AT_A_TIME, receive_buffer_bytes=1,
        pauses=(ClientInterval(0, SECOND_NS),),
        horizon_ns=SECOND_NS // 2, broker=Broker(egress_buffer_bytes=100_000, slow_reconnect_ns=300 * MILLISECOND_NS),
    )  # fmt: skip
    made, _, events = run(scenario, LogLevel.EVENTS)
    events = events[events["event"] != Event.PAUSED]
    order = [EVENT_NAMES[event] for event in events["event"]]
    assert order[:3] == ["buffer-load-set", "disconnected-slow", "buffer-load-cleared"]
    assert "connected" in order
    assert list(events["value"][:1]) == [80]
    columns = made.counters()
    assert columns["disconnected_messages"].sum() > 50
    assert columns["discarded_messages"].sum() == 0
    kept, _, events = run(replace(scenario, broker=replace(scenario.broker, slow_disconnect=False)), LogLevel.EVENTS)
    assert {EVENT_NAMES[each.item()] for each in np.unique(events["event"])} <= {
        "buffer-load-set", "paused", "slow-percent", "retransmissions", "blocked-time"
    }  # fmt: skip
    assert kept.counters()["length_messages"].sum() > 390


def test_a_message_too_big_is_refused_at_ingress_with_an_event() -> None:
    scenario = broker(every_ms(3, size=5000), horizon_ns=SECOND_NS, broker=Broker(max_message_bytes=4999))
    made, rows, events = run(scenario, LogLevel.EVENTS)
    assert [OUTCOMES[outcome] for outcome in rows["outcome"]] == ["too_big"] * 3
    columns = made.counters()
    assert list(columns["too_big_messages"]) == list(columns["arrived_messages"]) == [3]
    assert list(columns["first_discard_ns"]) == [0]
    assert list(events["event"]) == [Event.MESSAGE_TOO_BIG] * 3
    assert list(events["value"]) == [5000] * 3


def test_a_publisher_cannot_take_the_ingress_buffers_of_another() -> None:
    greedy = Traffic("greedy", "c", ConstantArrivals(10_000.0), ConstantSize(1000))
    modest = Traffic("modest", "c", ConstantArrivals(100.0), ConstantSize(1000), Queue.D_3)
    scenario = broker(
        greedy, modest, horizon_ns=SECOND_NS,
        broker=Broker(ingress_buffer_bytes=20_000, ingress_rate_bits_per_second=8_000_000),
    )  # fmt: skip
    made, rows, events = run(scenario, LogLevel.EVENTS)
    refused = rows["outcome"] == OUTCOMES.index(Outcome.INGRESS_REFUSED)
    assert refused.sum() == (events["event"] == Event.INGRESS_DISCARD).sum() > 8000
    columns = made.counters()
    assert columns["ingress_refused_messages"].sum() == refused.sum()
    assert columns["arrived_messages"].sum() == 10_100 == len(rows)
    taken = rows[rows["outcome"] == 0]
    assert (taken["queue"] == 3).sum() >= 95
    assert len(taken) == pytest.approx(1000, rel=0.03)
    assert (np.diff(np.sort(taken["enqueued_ns"])) > 0).all()


def test_a_large_message_is_raised_once_of_each_client() -> None:
    scenario = broker(every_ms(5, size=5000), count=2, horizon_ns=SECOND_NS, broker=Broker(large_message_bytes=4999))
    made, _, events = run(scenario, LogLevel.EVENTS)
    assert sorted(events["client_id"][events["event"] == Event.LARGE_MESSAGE]) == [0, 1]
    (large,) = (each for each in made.happenings if each.event == "large-message")
    assert (large.count, large.clients, large.peak, large.first_client) == (2, 2, 5000, "c/1")


@pytest.mark.parametrize("quota", [{"max_messages": 100}, {"max_spool_usage_bytes": 100_000}])
def test_an_endpoints_usage_is_raised_and_cleared_at_its_thresholds(quota: dict[str, int]) -> None:
    scenario = broker(
        every_ms(100, size=1000, queue=Queue.G_1), endpoint={**quota, "library_threshold_percent": 0},
        pauses=(ClientInterval(0, 2 * SECOND_NS),), horizon_ns=4 * SECOND_NS,
    )  # fmt: skip
    _, _, events = run(scenario, LogLevel.EVENTS)
    usage = events[np.isin(events["event"], [Event.SPOOL_USAGE_SET, Event.SPOOL_USAGE_CLEARED])]
    assert [(int(row["at_ns"]), int(row["value"])) for row in usage] == [(SECOND_NS, 100), (3 * SECOND_NS, 0)]


def test_the_links_of_an_aggregated_port_are_shared_in_turn() -> None:
    scenario = broker(every_ms(100, size=1000), count=4, rate_bits_per_second=8_000_000, horizon_ns=SECOND_NS)
    two = replace(scenario, ports=(replace(scenario.ports[0], links=2),))
    waits = [run(each, LogLevel.MESSAGES)[1]["send_ns"].max() for each in (scenario, two)]
    assert waits[1] < waits[0] / 1.5


def test_a_ports_rate_changes_and_changes_again() -> None:
    """1,000 bytes take 1 ms at 8 Mbit/s, 100 µs at ten times that, and 200 µs at half of that again."""
    rates = {300: "80000000", 600: "40000000"}
    changes = tuple(TimedChange(at * MILLISECOND_NS, "port[p]/rate", rate) for at, rate in rates.items())
    traffic = Traffic("t", "c", ConstantArrivals(100.0), ConstantSize(1000))
    for links in (1, 2):
        scenario = broker(traffic, rate_bits_per_second=8_000_000, changes=changes, horizon_ns=SECOND_NS)
        port = replace(scenario.ports[0], links=links)
        _, rows, _ = run(replace(scenario, ports=(port,)), LogLevel.MESSAGES)
        sent = rows[np.argsort(rows["enqueued_ns"])]["send_ns"]
        assert list(sent) == [1_000_000] * 30 + [100_000] * 30 + [200_000] * 40


def test_an_absent_clients_direct_messages_are_lost_and_its_guaranteed_ones_come_again() -> None:
    scenario = broker(
        every_ms(30), every_ms(30, name="g", queue=Queue.G_1), horizon_ns=SECOND_NS,
        absences=(ClientInterval(10 * MILLISECOND_NS, 10 * MILLISECOND_NS),),
    )  # fmt: skip
    _made, rows, events = run(scenario, LogLevel.EVENTS)
    direct, guaranteed = rows[rows["queue"] == 1], rows[rows["queue"] == 0]
    assert (direct["outcome"] == OUTCOMES.index(Outcome.NOT_CONNECTED)).sum() == 10
    assert (guaranteed["outcome"] == 0).sum() == 30
    assert [EVENT_NAMES[e] for e in events["event"]][:2] == ["disconnected", "connected"]


@pytest.mark.slow
def test_weights_hold_for_an_eliding_client_too() -> None:
    queues = {**limits(), Queue.D_3: QueueLimits(1000, 0, weight=3), Queue.D_1: QueueLimits(1000, 0, weight=1)}
    both = [every_ms(100, name=queue.value, queue=queue, topics=10**6) for queue in (Queue.D_3, Queue.D_1)]
    scenario = broker(
        *both, queues=queues, tcp=ONE_AT_A_TIME, scheduler=Scheduler.WEIGHTED, eliding=Eliding(True, max_topics=1000),
        pauses=(ClientInterval(0, SECOND_NS),), horizon_ns=2 * SECOND_NS,
    )  # fmt: skip
    _, rows, _ = run(scenario, LogLevel.MESSAGES)
    after = [int(row["queue"]) for row in rows[np.argsort(rows["send_ns"] + rows["enqueued_ns"])]][1:41]
    assert (after.count(3), after.count(1)) == (30, 10)


def test_a_pause_outlasts_a_new_connection() -> None:
    scenario = broker(
        every_ms(3, queue=Queue.G_1), pauses=(ClientInterval(0, 50 * MILLISECOND_NS),),
        absences=(ClientInterval(20 * MILLISECOND_NS, MILLISECOND_NS),), horizon_ns=SECOND_NS,
    )  # fmt: skip
    _, rows, _ = run(scenario, LogLevel.MESSAGES)
    reported = 50 * MILLISECOND_NS + scenario.groups[0].round_trip_ns // 2
    assert [int(row["enqueued_ns"] + row["acknowledge_ns"]) for row in rows] == [reported] * len(rows)
    assert len(rows) == 3


def test_a_lossy_idle_connection_misses_keepalives_and_is_slower_for_it() -> None:
    scenario = broker(every_ms(5), loss_probability=0.5, horizon_ns=60 * SECOND_NS)
    made, _, _ = run(scenario)
    assert 10 < made.slow_percent[0] < 50
    assert run(replace(scenario, broker=Broker(slow_penalty_percent=0.0)))[0].slow_percent[0] == 0


def test_warm_up_resets_counters_and_never_state() -> None:
    scenario = stalled(every_ms(50), warm_up_ns=30 * MILLISECOND_NS)
    made, rows, _ = run(scenario, LogLevel.MESSAGES)
    columns = made.counters()
    assert columns["arrived_messages"][0] == 20
    assert columns["length_messages"][0] == 48
    assert columns["high_water_mark_work_units"][0] == 48
    assert len(rows) == 50
    assert sum(rows["enqueued_ns"] >= scenario.warm_up_ns) == 20
    quiet = replace(scenario, traffic=(every_ms(10),))
    assert run(quiet)[0].counters()["high_water_mark_work_units"][0] == 8


def digest(step_ns: int, chunk_rows: int) -> bytes:
    scenario = broker(
        Traffic("t", "c", PoissonArrivals(3000.0)), Traffic("u", "c", PoissonArrivals(2000.0), queue=Queue.G_1),
        count=3, rate_bits_per_second=50_000_000, queues=limits(50), loss_probability=0.01, horizon_ns=SECOND_NS,
    )  # fmt: skip
    made = EgressRun(scenario, 0, LogLevel.MESSAGES, chunk_rows)
    parts, until = [], 0
    while made.now_ns < scenario.horizon_ns:
        until = min(until + step_ns, scenario.horizon_ns)
        while made.step(until) is Stop.LOG_FULL:
            parts.append(made.take_log().tobytes())
    while made.finish() is Stop.LOG_FULL:
        parts.append(made.take_log().tobytes())
    return b"".join([*parts, made.take_log().tobytes()])


def test_a_run_is_the_same_however_it_is_stepped_and_drained() -> None:
    whole = digest(SECOND_NS, 1 << 20)
    assert len(whole) > 100_000
    assert digest(1_234_567, 100) == whole
    assert digest(100 * MILLISECOND_NS, 7) == whole


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"groups": ()}, "no clients"),
        ({"changes": (TimedChange(1, "profile[d]/queue[D-1]/colour", "1"),)}, "cannot change during a run"),
        ({"changes": (TimedChange(1, "profile[x]/queue[D-1]/max-depth", "1"),)}, "no profile 'x', but d"),
        (
            {"changes": (TimedChange(1, "profile[d]/queue[D-1]/max-depth", "1"),)},
            "not a whole number from 2 to 262,144",
        ),
        ({"changes": (TimedChange(1, "client[c]/pause", "soon"),)}, "'soon' is not a duration"),
    ],
)
def test_a_scenario_that_cannot_be_simulated_is_refused_with_what_is_allowed(changed: Any, message: str) -> None:
    scenario = replace(broker(), **changed)
    with pytest.raises(InvalidInput, match=message) as caught:
        EgressRun(scenario, 0, LogLevel.COUNTERS)
    assert caught.value.remedy


def test_an_unknown_port_or_profile_is_refused_by_name() -> None:
    scenario = broker()
    group = scenario.groups[0]
    for broken in (replace(group, port="q"), replace(group, profile="q")):
        with pytest.raises(InvalidInput, match="'q'; there is"):
            EgressRun(replace(scenario, groups=(broken,)), 0, LogLevel.COUNTERS)


def test_the_models_are_distinguished() -> None:
    from qsctl.sim.egress import solace, tibco

    with pytest.raises(InvalidInput, match="not solace"):
        solace.prepare(replace(broker(), model=Model.TIBCO), 0, LogLevel.COUNTERS)
    with pytest.raises(InvalidInput, match="not tibco"):
        tibco.prepare(broker(), 0, LogLevel.COUNTERS)


@pytest.mark.slow
def test_without_the_compiler_the_kernels_are_plain_python_with_the_same_result() -> None:
    program = (
        "import hashlib, warnings\nwarnings.simplefilter('error')\n"
        "from tests.sim.test_solace_rules import small\nprint(small())\n"
    )
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(ROOT)}
    done = processes.run([sys.executable, "-c", program], env=environment, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == small()


def small() -> str:
    scenario = broker(
        Traffic("t", "c", PoissonArrivals(2000.0), topics=3),
        Traffic("u", "c", PoissonArrivals(1000.0), queue=Queue.G_1),
        count=2, rate_bits_per_second=20_000_000, queues=limits(20), loss_probability=0.02, eliding=Eliding(True),
        horizon_ns=SECOND_NS // 4,
    )  # fmt: skip
    _, rows, _ = run(scenario, LogLevel.MESSAGES)
    import hashlib

    return f"{len(rows)} {hashlib.blake2b(rows.tobytes(), digest_size=8).hexdigest()}"
