"""A run of the kernel beside the plain model of a TIBCO appliance, message by message."""

from __future__ import annotations

from qsctl.sim.scenario.scenario import (
    Scenario,
)
from tests.sim.oracle_tibco import TibcoOracle
from tests.sim.random_scenarios import Ran, arrivals_of


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
