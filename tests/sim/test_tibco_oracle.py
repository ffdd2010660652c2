"""The compiled TIBCO model against the plain one: equal to the message; and its difference from Solace (W9)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from qsctl.errors import InvalidInput
from qsctl.eventlog.schema import LogLevel
from qsctl.instant import SECOND_NS
from qsctl.sim.egress import tibco
from qsctl.sim.scenario.scenario import (
    ClientGroup,
    ConstantArrivals,
    ConstantSize,
    Interval,
    Model,
    Port,
    Profile,
    Queue,
    QueueLimits,
    Scenario,
    TcpSettings,
    Traffic,
)
from tests.example_counts import examples
from tests.sim.oracle_tibco import TibcoOracle
from tests.sim.random_scenarios import Ran, arrivals_of, tibco_scenarios


def compare(scenario: Scenario) -> None:
    oracle = TibcoOracle(scenario, arrivals_of(scenario))
    oracle.run()
    ran = Ran(scenario)
    topicless = [(*row[:2], 0, *row[3:]) for row in ran.rows]
    assert sorted(topicless) == sorted(oracle.rows)
    columns = ran.counters
    seen = set()
    for i, c in enumerate(columns["client_id"]):
        seen.add(c)
        counts = oracle.counts[c]
        for name in ("arrived", "delivered", "discarded", "not_connected", "disconnected"):
            assert columns[f"{name}_messages"][i] == counts[name], name
        assert columns["delivered_bytes"][i] == counts["bytes"]
        assert columns["high_water_mark_work_units"][i] == counts["high"]
        assert columns["first_discard_ns"][i] == counts["first"]
        assert columns["wait_sum_ns"][i] == sum(counts["waits"])
        assert columns["wait_max_ns"][i] == max(counts["waits"], default=0)
        assert columns["length_messages"][i] == len(oracle.clients[c].message_queue)
        assert columns["length_work_units"][i] == oracle.clients[c].depth
    assert not any(counts["arrived"] for c, counts in enumerate(oracle.counts) if c not in seen)
    told = [(at, c, value, name) for at, c, _, value, name in ran.events if name in {"connected", "disconnected"}]
    assert sorted(told) == sorted(oracle.events)
    again = {c: value for _, c, _, value, name in ran.events if name == "retransmissions"}
    assert again == {each.number: each.retransmissions for each in oracle.clients if each.retransmissions}
    over = {c: value for _, c, _, value, name in ran.events if name == "time-outs"}
    assert over == {each.number: each.time_outs for each in oracle.clients if each.time_outs}


@settings(max_examples=examples(40))
@given(tibco_scenarios())
def test_the_kernel_and_the_plain_model_agree_to_the_message(scenario: Scenario) -> None:
    compare(scenario)


def test_a_priority_queue_is_refused_because_the_broker_has_only_one() -> None:
    scenario = Scenario(
        "x",
        Model.TIBCO,
        ports=(Port("p"),),
        profiles=(Profile("d"),),
        groups=(ClientGroup("g", "p", "d"),),
        traffic=(Traffic("t", "g", ConstantArrivals(1.0), queue=Queue.D_3),),
    )
    with pytest.raises(InvalidInput, match="one message queue"):
        tibco.prepare(scenario, 0, LogLevel.COUNTERS)


def test_below_the_minimum_burst_a_message_enters_however_full_the_queue_is() -> None:
    """Five messages of two work units come to a stalled client with a depth of 2; two of them are on their way."""
    for burst, held, discarded in ((0, 1, 2), (2, 2, 1), (3, 3, 0)):
        scenario = Scenario(
            "burst",
            Model.TIBCO,
            horizon_ns=SECOND_NS,
            ports=(Port("p"),),
            profiles=(Profile("d", {Queue.D_1: QueueLimits(2, burst)}, TcpSettings(transmit_queue_bytes=1)),),
            groups=(ClientGroup("c", "p", "d", receive_buffer_bytes=1, pauses=(Interval(0, 2 * SECOND_NS),)),),
            traffic=(Traffic("t", "c", ConstantArrivals(10.0), ConstantSize(4096), stop_ns=SECOND_NS // 2),),
        )
        compare(scenario)
        columns = Ran(scenario).counters
        assert (columns["length_messages"][0], columns["discarded_messages"][0]) == (held, discarded)
