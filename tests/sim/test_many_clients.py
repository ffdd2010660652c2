"""Set-up of runs with many clients: keys and names are those of one client at a time, whatever is not used is zero."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from qsctl.eventlog.schema import LogLevel
from qsctl.instant import SECOND_NS
from qsctl.sim.arrivals.streams import ArrivalStreams
from qsctl.sim.egress.layout.client_names import ClientNames
from qsctl.sim.egress.runs._run import EgressRun
from qsctl.sim.kernel.lines import is_in_lines, longer, zeros_in_lines
from qsctl.sim.kernel.random import stream_key, stream_keys
from qsctl.sim.kernel.records import CLIENT
from qsctl.sim.replication import simulate_counters
from qsctl.sim.scenario.scenario import (
    Broker,
    ClientGroup,
    ConstantArrivals,
    ConstantSize,
    DurableQueue,
    ExponentialSize,
    MmppArrivals,
    OnOffArrivals,
    PoissonArrivals,
    Port,
    Profile,
    Queue,
    QueueLimits,
    Scenario,
    Traffic,
)

SHORT = "g"
LONG = "group-" * 40
"""Longer than a block of the hash."""


def made(*traffic: Traffic, clients: int = 3) -> Scenario:
    return Scenario(
        "many",
        horizon_ns=SECOND_NS,
        ports=(Port("p", 10**9),),
        profiles=(Profile("d", queues={queue: QueueLimits(100, 4) for queue in Queue}),),
        groups=(ClientGroup("g", "p", "d", count=clients),),
        traffic=traffic,
    )


@pytest.mark.parametrize("name", [SHORT, LONG])
@pytest.mark.parametrize("purpose", ["", "gap"])
def test_keys_of_a_group_are_those_of_each_client(name: str, purpose: str) -> None:
    words = (purpose,) if purpose else ()
    keys = stream_keys(7, 2, ("t", name), 1200, purpose)
    assert keys.dtype == np.uint64
    assert keys.tolist() == [stream_key(7, 2, "t", name, i, *words) for i in range(1200)]
    assert len(stream_keys(7, 2, ("t", name), 0, purpose)) == 0


@pytest.mark.parametrize(
    ("traffic", "drawn"),
    [
        (Traffic("t", "g", ConstantArrivals(10.0), ConstantSize(1)), set()),
        (Traffic("t", "g", PoissonArrivals(10.0), ConstantSize(1)), {"gap"}),
        (Traffic("t", "g", PoissonArrivals(10.0), ExponentialSize(100, 1000), topics=3), {"gap", "size", "topic"}),
        (Traffic("t", "g", OnOffArrivals(10.0, 10**8, 10**8), ConstantSize(1)), {"gap", "stay"}),
        (Traffic("t", "g", OnOffArrivals(10.0, 10**8, 10**8, fixed=True), ConstantSize(1)), {"gap", "stay"}),
        (Traffic("t", "g", MmppArrivals((10.0, 1.0), (10**8, 10**8), cycle=True), ConstantSize(1)), {"gap"}),
    ],
)
def test_a_stream_has_keys_of_what_it_draws(traffic: Traffic, drawn: set[str]) -> None:
    streams = ArrivalStreams(made(traffic), 0).streams
    for purpose in ("gap", "stay", "size", "topic"):
        keys = [stream_key(1, 0, "t", "g", i, purpose) if purpose in drawn else 0 for i in range(3)]
        assert streams[f"key_{purpose}"].tolist() == keys, purpose


def test_names_are_those_of_groups_and_durable_queues() -> None:
    groups = (ClientGroup("one", "p", "d"), ClientGroup("many", "p", "d", count=11), ClientGroup("last", "p", "d"))
    names = ClientNames(replace(made(), groups=groups, durable_queues=(DurableQueue("spool"),)))
    expected = ["one", *(f"many/{i}" for i in range(1, 12)), "last", "spool"]
    assert list(names) == expected
    assert [names[i] for i in range(len(names))] == expected
    assert names[np.int32(11)] == "many/11"
    assert (names[-1], names[2:4], names[::-1]) == ("spool", expected[2:4], expected[::-1])
    assert names.index("many/11") == 11
    for number in (len(expected), -len(expected) - 1):
        with pytest.raises(IndexError, match=str(number)):
            names[number]


def test_an_array_begins_at_a_cache_line_and_keeps_that_when_it_grows() -> None:
    for count in range(1, 8):
        rows = zeros_in_lines(count, CLIENT)
        assert (len(rows), rows.dtype) == (count, CLIENT)
        assert is_in_lines(rows)
        rows["delay"] = 5
        more = longer(rows, count + 3)
        assert is_in_lines(more)
        assert more["delay"].tolist() == [5] * count + [0] * 3


def test_a_loss_at_the_first_instant_has_its_time() -> None:
    scenario = replace(
        made(Traffic("t", "g", ConstantArrivals(10.0), ConstantSize(5000)), clients=1),
        broker=Broker(max_message_bytes=4000),
    )
    (row,) = simulate_counters(scenario).to_pylist()
    assert (row["too_big_messages"], row["first_discard_ns"]) == (10, 0)
    kept = replace(scenario, broker=Broker(max_message_bytes=5000))
    (row,) = simulate_counters(kept).to_pylist()
    assert (row["too_big_messages"], row["first_discard_ns"]) == (0, None)


def test_the_end_of_the_warm_up_forgets_waits_and_losses() -> None:
    traffic = Traffic("t", "g", OnOffArrivals(5_000.0, 10**8, 9 * 10**8, fixed=True), ConstantSize(2000))
    slow = (Port("p", 10**7),)
    scenario = replace(made(traffic, clients=1), ports=slow, warm_up_ns=SECOND_NS // 2)
    run = EgressRun(scenario, 0, LogLevel.COUNTERS)
    run.step(SECOND_NS // 4)
    assert run.arrays.octaves["block"].any()
    assert run.arrays.tallies["first_discard"].any()
    run.step(SECOND_NS)
    run.finish()
    assert not run.arrays.tallies["first_discard"].any()
    assert run.counters()["histogram_bucket"] == [] or not any(len(each) for each in run.counters()["histogram_bucket"])
