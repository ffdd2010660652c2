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
    ClientInterval,
    ConstantArrivals,
    ConstantSize,
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
from tests.sim.compared_tibco import compare
from tests.sim.random_scenarios import Ran, tibco_scenarios


@settings(max_examples=examples(20))
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
            groups=(ClientGroup("c", "p", "d", receive_buffer_bytes=1, pauses=(ClientInterval(0, 2 * SECOND_NS),)),),
            traffic=(Traffic("t", "c", ConstantArrivals(10.0), ConstantSize(4096), stop_ns=SECOND_NS // 2),),
        )
        compare(scenario)
        columns = Ran(scenario).counters
        assert (columns["length_messages"][0], columns["discarded_messages"][0]) == (held, discarded)
