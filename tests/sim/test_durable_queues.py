"""Durable queues that several clients share: single rules, a worked example, and closed forms."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from qsctl.declared.problems import InvalidFile
from qsctl.errors import InvalidInput, UsageError
from qsctl.eventlog.outcomes import LOSS_COLUMNS
from qsctl.eventlog.reader import open_run
from qsctl.eventlog.schema import LogLevel
from qsctl.instant import INFINITE_NS, MILLISECOND_NS, SECOND_NS
from qsctl.sim.listings.discards import explain_run
from qsctl.sim.model import OUTCOMES, Event
from qsctl.sim.run import run as simulate
from qsctl.sim.scenario.forms.text import scenario_text
from qsctl.sim.scenario.overrides.set_values import apply_overrides
from qsctl.sim.scenario.parts.client import ConstantTime, ExponentialTime
from qsctl.sim.scenario.rules.scenario import check_rules
from qsctl.sim.scenario.scenario import (
    Access,
    Broker,
    ClientGroup,
    ClientInterval,
    ConstantArrivals,
    ConstantSize,
    DurableQueue,
    Eliding,
    Endpoint,
    Flow,
    PoissonArrivals,
    Port,
    Profile,
    Queue,
    Scenario,
    TimedChange,
    Traffic,
)
from qsctl.sim.scenario.xml import find_scenario, read_scenario
from tests.sim.brokers import BYTE_A_NS, limits, run

MEAN_NS = 1_000_000


def sharing(*groups: ClientGroup, rate: float = 2000.0, flow: dict[str, Any] | None = None, **changed: Any) -> Scenario:
    """A queue `orders` with a flow of each group, to which messages of one byte come at a rate."""
    traffic = changed.pop("traffic", (Traffic("t", "orders", PoissonArrivals(rate), ConstantSize(1), Queue.G_1),))
    queue = {name: changed.pop(name) for name in list(changed) if name in DurableQueue.__dataclass_fields__}
    flows = tuple(Flow(group.name, **{"library_threshold_percent": 0, **(flow or {})}) for group in groups)
    return Scenario(
        "test", ports=(Port("p", BYTE_A_NS),), profiles=(Profile("d", limits()),), groups=groups, traffic=traffic,
        durable_queues=(DurableQueue("orders", **{"access": Access.NON_EXCLUSIVE, "flows": flows, **queue}),),
        **{"horizon_ns": 10 * SECOND_NS, **changed},
    )  # fmt: skip


def client(name: str, **changed: Any) -> ClientGroup:
    return ClientGroup(name, "p", "d", **{"round_trip_ns": 0, **changed})


def by_client(scenario: Scenario) -> dict[str, dict[str, Any]]:
    columns = run(scenario)[0].counters()
    return {name: {key: values[i] for key, values in columns.items()} for i, name in enumerate(columns["client"])}


@pytest.mark.parametrize(("window", "held"), [(255, 255), (5, 5)])
def test_w14_a_client_ten_times_slower_holds_a_window_of_messages_while_the_others_are_idle(
    window: int, held: int
) -> None:
    scenario = read_scenario(find_scenario("competing-consumers"))
    found = by_client(apply_overrides(scenario, {"durable-queue[orders]/flow[*]/window": str(window)}))
    assert found["slow"]["length_messages"] == held
    assert [found[f"fast/{number}"]["length_messages"] for number in (1, 2, 3)] == [0, 0, 0]
    assert found["slow"]["delivered_messages"] == 200
    assert "orders" not in found  # nothing waits at the queue, and nothing was lost there
    assert sum(each["arrived_messages"] for each in found.values()) == 4000


def test_flows_are_served_in_turn() -> None:
    scenario = sharing(client("c", count=3), traffic=(
        Traffic("t", "orders", ConstantArrivals(1000.0), ConstantSize(1), Queue.G_1, stop_ns=9 * MILLISECOND_NS),
    ))  # fmt: skip
    _, rows, _ = run(scenario, LogLevel.MESSAGES)
    assert list(rows["client_id"][np.argsort(rows["enqueued_ns"])]) == [0, 1, 2] * 3


def test_a_message_that_no_flow_has_room_for_waits_at_the_queue_and_belongs_to_it() -> None:
    never = {"acknowledge_delay_ns": INFINITE_NS}
    scenario = sharing(client("c", count=2), flow=never, unacknowledged_limit_messages=3, max_messages=10)
    found = by_client(scenario)
    assert [found[f"c/{number}"]["delivered_messages"] for number in (1, 2)] == [3, 3]
    queue = found["orders"]
    assert queue["waiting_messages"] == 4  # of ten: six are with the clients, and not acknowledged
    assert queue["spool_refused_messages"] == queue["arrived_messages"] - 4 > 10_000


def test_the_standby_of_an_exclusive_queue_takes_over_and_the_first_one_returns_as_standby() -> None:
    away = client("a", absences=(ClientInterval(2 * SECOND_NS, SECOND_NS),))
    scenario = sharing(away, client("b"), access=Access.EXCLUSIVE)
    _, rows, _ = run(scenario, LogLevel.MESSAGES)
    times = [rows["enqueued_ns"][rows["client_id"] == c] for c in (0, 1)]
    assert times[0].max() < 2 * SECOND_NS <= times[1].min()
    assert times[1].max() > 9.9 * SECOND_NS


def test_a_paused_active_flow_keeps_the_exclusive_queue_to_itself() -> None:
    paused = client("a", pauses=(ClientInterval(0, 10 * SECOND_NS),))
    found = by_client(sharing(paused, client("b"), access=Access.EXCLUSIVE, rate=100.0, flow={"window_messages": 5}))
    assert found["a"]["length_messages"] == 5
    assert "b" not in found
    assert found["orders"]["waiting_messages"] > 900


def test_what_a_client_did_not_acknowledge_goes_to_another_one_at_once_as_redelivered() -> None:
    gone = client("a", service_time=ConstantTime(SECOND_NS), absences=(ClientInterval(2 * SECOND_NS, INFINITE_NS),))
    scenario = sharing(gone, client("b"), flow={"window_messages": 4}, rate=100.0)
    found = by_client(scenario)
    # After two seconds one is done, its reader works on the second, and its library has the four of its window.
    assert (found["a"]["delivered_messages"], found["b"]["redelivered_messages"]) == (1, 5)
    _, rows, _ = run(scenario, LogLevel.MESSAGES)
    again = rows[rows["attempts"] == 2]
    assert len(again) == 5
    assert set(again["client_id"]) == {1}
    assert (again["enqueued_ns"] + again["enter_ns"] - 2 * SECOND_NS < 10).all()


def erlang_c_wait(servers: int, load: float) -> float:
    """Return the mean wait of M/M/n in mean service times: Erlang's second formula over n (1 − ρ)."""
    offered = servers * load
    terms = [offered**k / math.factorial(k) for k in range(servers)]
    last = offered**servers / math.factorial(servers) / (1 - load)
    return last / (sum(terms) + last) / (servers * (1 - load))


@pytest.mark.parametrize(("servers", "load"), [(1, 0.8), (3, 0.8), (8, 0.9)])
def test_consumers_of_one_message_at_a_time_are_a_queue_with_as_many_servers(servers: int, load: float) -> None:
    """A limit of one unacknowledged delivery: a window of one would have each library hold another message."""
    messages = 200_000
    rate = servers * load / MEAN_NS * SECOND_NS
    scenario = sharing(
        client("c", count=servers, service_time=ExponentialTime(MEAN_NS)), rate=rate, seed=5,
        unacknowledged_limit_messages=1, horizon_ns=int(messages / rate * SECOND_NS),
    )  # fmt: skip
    _, rows, _ = run(scenario, LogLevel.MESSAGES)
    waits = rows["enter_ns"][rows["outcome"] == OUTCOMES.index("delivered")]
    assert waits.mean() / MEAN_NS == pytest.approx(erlang_c_wait(servers, load), rel=0.05)


def test_each_consumer_of_a_saturated_queue_has_its_share_by_its_rate() -> None:
    means = {"a": MEAN_NS, "b": 2 * MEAN_NS, "c": 4 * MEAN_NS}
    groups = [client(name, service_time=ExponentialTime(mean)) for name, mean in means.items()]
    found = by_client(sharing(*groups, rate=4000.0, horizon_ns=60 * SECOND_NS, flow={"window_messages": 2}))
    total = sum(found[name]["delivered_messages"] for name in means)
    for name, part in (("a", 4 / 7), ("b", 2 / 7), ("c", 1 / 7)):
        assert found[name]["delivered_messages"] / total == pytest.approx(part, rel=0.03)
    assert total == pytest.approx(60 * 1750, rel=0.02)


def written(tmp_path: Path, inner: str, to: str) -> Path:
    file = tmp_path / "scenario.xml"
    file.write_text(
        f"""<scenario name="s"><port name="p"/><profile name="d"/>
        <profile name="again" guaranteed-overflow="redeliver"/>
        <group name="a" port="p" profile="d"/><group name="b" port="p" profile="again"/>
        <traffic name="t" to="{to}" delivery="guaranteed" cos="3"><poisson rate="9/s"/></traffic>{inner}
        </scenario>"""
    )
    return file


@pytest.mark.parametrize(
    ("inner", "to", "message"),
    [
        ('<durable-queue name="a"/>', "a", "there is another group or durable queue 'a'"),
        ('<durable-queue name="q"/><durable-queue name="q"/>', "q", "there is another group or durable queue 'q'"),
        ('<durable-queue name="q"><flow group="x"/></durable-queue>', "q", "there is no group 'x'"),
        ('<durable-queue name="q"><flow group="a"/></durable-queue><endpoint to="a"/>', "q", "have an <endpoint>"),
        ('<durable-queue name="q"><flow group="a"/><flow group="a"/></durable-queue>', "q", "have durable queue 'q'"),
        ('<durable-queue name="q"><flow group="b"/></durable-queue>', "q", "whose G-1 pushes messages out again"),
        ('<durable-queue name="q"><flow group="a"/></durable-queue>', "a", "whose flows are of the durable queue 'q'"),
        ('<durable-queue name="q" access="shared"/>', "q", "shared"),
        ('<durable-queue name="q" dead-message-queue="x"/>', "q", "there is no durable queue 'x'"),
        ('<durable-queue name="q" dead-message-queue="q"/>', "q", "'q' is its own dead message queue"),
        ('<durable-queue name="q" max-ttl="1s"/>', "q", "has a max-ttl, and respects no time to live"),
        ('<durable-queue name="q" partitions="2"/>', "q", "has partitions"),
        ('<durable-queue name="q" max-redelivery="256"/>', "q", "256"),
        (
            '<durable-queue name="q"/><traffic name="u" to="q" shared="true"><poisson rate="1/s"/></traffic>',
            "q",
            "traffic 'u' is shared",
        ),
        ('<durable-queue name="q"/>', "r", "there is no group or durable queue 'r'"),
    ],
)
def test_a_durable_queue_that_cannot_be_is_refused(tmp_path: Path, inner: str, to: str, message: str) -> None:
    with pytest.raises(InvalidFile) as caught:
        read_scenario(written(tmp_path, inner, to))
    assert message in str(caught.value)


@pytest.mark.parametrize(("name", "value"), [("max-ttl", "1s"), ("max-redelivery", "3"), ("fails", "0.5")])
def test_an_endpoint_names_the_durable_queue_that_has_what_it_has_not(tmp_path: Path, name: str, value: str) -> None:
    hint = "give the group a <flow> of a <durable-queue> instead of an <endpoint>"
    with pytest.raises(InvalidFile) as caught:
        read_scenario(written(tmp_path, f'<endpoint to="a" {name}="{value}"/>', "a"))
    assert f"unknown attribute '{name}': {hint}" in str(caught.value)
    with pytest.raises(UsageError, match="instead of an <endpoint>"):
        apply_overrides(read_scenario(find_scenario("guaranteed")), {f"endpoint[covered]/{name}": value})


@pytest.mark.parametrize(
    "path", ["durable-queue[orders]/max-ttl", "durable-queue[orders]", "durable-queue[orders]/flow[c]/window"]
)
def test_a_durable_queue_neither_changes_nor_goes_during_a_run(path: str) -> None:
    scenario = replace(sharing(client("c")), changes=(TimedChange(SECOND_NS, path, "1s"),))
    with pytest.raises(InvalidInput, match="which cannot change during a run"):
        run(scenario)


def test_a_durable_queue_outlives_all_its_consumers() -> None:
    """What arrives while no client is there waits, and so does what the clients had; both go to them later."""
    away = client("c", count=2, absences=(ClientInterval(2 * SECOND_NS, 3 * SECOND_NS),))
    scenario = sharing(away, traffic=(spooled("t", 100.0),), flow={"acknowledge_delay_ns": SECOND_NS // 10})
    _, rows, _ = run(scenario, LogLevel.MESSAGES)
    entered = rows["enqueued_ns"] + rows["enter_ns"]
    missed = rows[(rows["enqueued_ns"] >= 2 * SECOND_NS) & (rows["enqueued_ns"] < 5 * SECOND_NS)]
    assert len(missed) == 300
    assert set(missed["enqueued_ns"] + missed["enter_ns"]) == {5 * SECOND_NS}
    again = rows["attempts"] > 1  # a tenth of a second's, which no application had acknowledged
    assert sorted(rows["attempts"][again]) == [2] * 5 + [3] * 5  # the second one had the first one's
    assert set(entered[again]) == {5 * SECOND_NS}


def test_direct_traffic_to_a_durable_queue_is_refused() -> None:
    scenario = sharing(client("c"))
    direct = replace(scenario, traffic=(replace(scenario.traffic[0], queue=Queue.D_1),))
    with pytest.raises(Exception, match="a durable queue has guaranteed messages"):
        check_rules(direct)


@pytest.mark.parametrize("name", ["competing-consumers", "dead-messages"])
def test_a_scenario_with_a_durable_queue_reads_back_as_it_was_written(name: str, tmp_path: Path) -> None:
    scenario = read_scenario(find_scenario(name))
    file = tmp_path / "again.xml"
    file.write_text(scenario_text(scenario))
    assert read_scenario(file) == scenario


def spooled(name: str, rate: float, **changed: Any) -> Traffic:
    return Traffic(name, "orders", ConstantArrivals(rate), ConstantSize(1), Queue.G_1, **changed)


def with_dead_queue(scenario: Scenario, **changed: Any) -> Scenario:
    """The queue `orders` with a dead message queue of no consumers."""
    orders = replace(scenario.durable_queues[0], dead_message_queue="dead")
    return replace(scenario, durable_queues=(orders, DurableQueue("dead", **changed)))


def test_a_message_expires_after_the_least_time_to_live_while_it_waits_and_not_while_it_is_out() -> None:
    never = {"acknowledge_delay_ns": INFINITE_NS}
    scenario = sharing(
        client("c"), flow=never, unacknowledged_limit_messages=1, respects_time_to_live=True,
        max_time_to_live_ns=3 * SECOND_NS, traffic=(
            spooled("short", 10.0, time_to_live_ns=SECOND_NS), spooled("long", 10.0, start_ns=1, stop_ns=SECOND_NS),
        ),
    )  # fmt: skip
    made, rows, _ = run(scenario, LogLevel.MESSAGES)
    expired = rows[rows["outcome"] == OUTCOMES.index("expired")]
    assert set(expired["wait_ns"]) == {SECOND_NS, 3 * SECOND_NS}
    assert len(expired) == 90 - 1 + 10  # those of the last second, and the one that the client has, are not over
    columns = made.counters()
    assert list(columns["expired_messages"][columns["client"].index("orders") :]) == [99]


def test_a_queue_that_respects_no_time_to_live_keeps_everything() -> None:
    scenario = sharing(client("c"), traffic=(spooled("t", 10.0, time_to_live_ns=1),), flow={"acknowledge_delay_ns": 5})
    found = by_client(scenario)
    assert found["c"]["delivered_messages"] >= 99


@pytest.mark.parametrize(("eligible", "moved"), [(True, 90), (False, 0)])
def test_what_is_over_is_moved_to_the_dead_message_queue_if_it_is_eligible(eligible: bool, moved: int) -> None:
    scenario = sharing(
        client("c", absences=(ClientInterval(0, INFINITE_NS),)), respects_time_to_live=True, horizon_ns=10 * SECOND_NS,
        traffic=(spooled("t", 10.0, time_to_live_ns=SECOND_NS, dead_message_eligible=eligible),),
    )  # fmt: skip
    found = by_client(with_dead_queue(scenario))
    assert found["orders"]["expired_messages"] == 90 - moved
    assert found["orders"]["waiting_messages"] == 10
    assert ("dead" in found) == eligible
    if eligible:
        assert (found["dead"]["waiting_messages"], found["dead"]["arrived_messages"]) == (moved, moved)
    for quota in ({"max_messages": 7}, {"max_spool_usage_bytes": 7}):
        full = by_client(with_dead_queue(scenario, **quota))
        assert full["orders"]["expired_messages"] == 90 - min(moved, 7)


@pytest.mark.parametrize("fails", [0.0, 0.5])
@pytest.mark.parametrize("access", Access)
def test_a_quota_in_bytes_refuses_what_would_exceed_it_until_the_application_acknowledges(
    access: Access, fails: float
) -> None:
    """Messages of 300 and 1 bytes, 1,000 bytes of quota: small ones come in where no large one has room."""
    scenario = sharing(
        client("c", pauses=(ClientInterval(0, SECOND_NS),)), access=access, max_spool_usage_bytes=1000,
        flow={"fails": fails},
        horizon_ns=SECOND_NS, traffic=tuple(
            replace(spooled(name, 10.0), size=ConstantSize(size), start_ns=start * MILLISECOND_NS)
            for name, size, start in (("large", 300, 0), ("small", 1, 50))
        ),
    )  # fmt: skip
    _, rows, _ = run(scenario, LogLevel.MESSAGES)
    refused = rows[rows["outcome"] == OUTCOMES.index("spool_refused")]
    assert set(refused["size_bytes"]) == {300}
    assert len(refused) == 10 - 3
    later = replace(scenario, horizon_ns=10 * SECOND_NS, traffic=tuple(replace(each, stop_ns=9 * SECOND_NS)
                                                                       for each in scenario.traffic))  # fmt: skip
    made, rows, _ = run(later, LogLevel.MESSAGES)
    assert (rows["outcome"] == OUTCOMES.index("spool_refused")).sum() == 7
    assert (made.arrays.endpoints["held_bytes"] == 0).all()
    assert (made.arrays.endpoints["held"] == 0).all()


@pytest.mark.parametrize("limit", [1, 3])
def test_a_message_is_dead_after_as_many_redeliveries_as_the_queue_allows(limit: int) -> None:
    scenario = sharing(client("c", count=2), traffic=(spooled("t", 10.0),), flow={"fails": 1.0}, max_redelivery=limit)
    _, rows, _ = run(scenario, LogLevel.MESSAGES)
    found = by_client(scenario)
    assert found["orders"]["dead_messages"] >= 99
    assert set(rows["attempts"][rows["outcome"] == OUTCOMES.index("dead")]) == {1 + limit}
    assert found["orders"]["redelivered_messages"] == limit * found["orders"]["dead_messages"]
    again = by_client(replace(scenario, durable_queues=(replace(scenario.durable_queues[0], max_redelivery=-1),),
                              horizon_ns=MILLISECOND_NS // 10))  # fmt: skip
    assert sum(each["dead_messages"] for each in again.values()) == 0


@pytest.mark.parametrize("respects", [True, False])
def test_messages_of_a_higher_priority_are_delivered_first_where_the_queue_respects_it(respects: bool) -> None:
    scenario = sharing(
        client("c", service_time=ConstantTime(MILLISECOND_NS)), unacknowledged_limit_messages=1,
        respects_priority=respects, traffic=(spooled("low", 900.0, priority=0), spooled("high", 300.0, priority=7)),
    )  # fmt: skip
    _, rows, _ = run(scenario, LogLevel.MESSAGES)
    high = rows["enter_ns"][(rows["topic_id"] == 1) & (rows["enter_ns"] >= 0)]
    assert (high.max() < 2 * MILLISECOND_NS) == respects


@pytest.mark.parametrize(("eligible", "limit"), [(True, -1), (False, -1), (True, 2), (False, 2)])
def test_a_rejected_message_is_removed_at_its_first_delivery_whatever_the_redelivery_limit(
    eligible: bool, limit: int
) -> None:
    scenario = with_dead_queue(
        sharing(client("c"), traffic=(spooled("t", 10.0, dead_message_eligible=eligible),),
                flow={"rejects": 1.0}, max_redelivery=limit)
    )  # fmt: skip
    made, rows, events = run(scenario, LogLevel.EVENTS)
    found = by_client(scenario)
    rejected = rows[rows["outcome"] == OUTCOMES.index("rejected")]
    moved = [int(row["value"]) for row in events if row["event"] == Event.REJECTED_TO_DMQ]
    if eligible:
        assert (len(rejected), found["dead"]["waiting_messages"], moved) == (0, 100, [100])
        assert found["orders"]["arrived_messages"] == 0  # a row of its own, for what happened at it has its name there
    else:
        assert (len(rejected), found["orders"]["rejected_messages"], moved) == (100, 100, [])
        assert set(rejected["attempts"]) == {1}
        assert "dead" not in found
    assert sum(each["delivered_messages"] + each["dead_messages"] for each in found.values()) == 0
    assert (made.arrays.endpoints["held"][:2] == 0).all()
    assert (made.arrays.endpoints["held_bytes"][:2] == 0).all()


def test_an_application_fails_or_rejects_as_often_as_it_is_asked_to() -> None:
    scenario = sharing(client("c", count=2), rate=1000.0, flow={"fails": 0.2, "rejects": 0.3})
    found = by_client(scenario)
    arrived = sum(each["arrived_messages"] for each in found.values())
    share = found["orders"]["rejected_messages"] / arrived
    assert share == pytest.approx(0.3 / 0.8, abs=4 * math.sqrt(0.375 * 0.625 / arrived))
    again = sum(each["redelivered_messages"] for each in found.values())
    assert again / arrived == pytest.approx(0.2 / 0.8, abs=4 * math.sqrt(0.2 / 0.64 / arrived))
    assert sum(each["dead_messages"] for each in found.values()) == 0


def test_failures_and_rejections_are_no_more_than_all_messages_together() -> None:
    with pytest.raises(InvalidInput, match="fails and rejects are more than 1 together"):
        check_rules(sharing(client("c"), flow={"fails": 0.6, "rejects": 0.5}))


@pytest.mark.parametrize("eligible", [True, False])
def test_explain_names_what_applications_rejected_and_its_command_has_none(eligible: bool, tmp_path: Path) -> None:
    scenario = with_dead_queue(
        sharing(client("c"), traffic=(spooled("t", 100.0, dead_message_eligible=eligible),), flow={"rejects": 0.5})
    )
    simulate(scenario, tmp_path / "run")
    (found,) = explain_run(tmp_path / "run")
    assert found.cause.key == ("rejected_to_dmq" if eligible else "rejected")
    assert 400 < found.messages < 600
    assert found.cause.is_loss is not eligible
    if not eligible:
        assert found.command.endswith("--set 'durable-queue[orders]/flow[*]/rejects=0'")
        again = apply_overrides(scenario, {"durable-queue[orders]/flow[*]/rejects": "0"})
        assert sum(each["rejected_messages"] for each in by_client(again).values()) == 0


def joining(scenario: dict[str, Any], *groups: ClientGroup) -> tuple[Any, dict[int, set[int]]]:
    """Message rows of a partitioned queue whose groups come and go, and each topic's clients."""
    made = sharing(*groups, traffic=(spooled("t", 1000.0, topics=50),), **scenario)
    _, rows, _ = run(made, LogLevel.MESSAGES)
    return rows, {topic: set(rows["client_id"][rows["topic_id"] == topic]) for topic in range(50)}


def entered(rows: Any) -> Any:
    return rows["enqueued_ns"] + rows["enter_ns"]


JOINS = client("b", absences=(ClientInterval(0, 2 * SECOND_NS),))


@pytest.mark.parametrize(("delay_ns", "most_ns", "handed_ns"), [
    (SECOND_NS // 4, 3 * SECOND_NS, 3 * SECOND_NS + SECOND_NS // 4),  # what is out is acknowledged
    (INFINITE_NS, 2 * SECOND_NS, 5 * SECOND_NS),  # the time is over
    (INFINITE_NS, 0, 3 * SECOND_NS),
])  # fmt: skip
def test_a_partition_is_handed_over_once_what_is_out_of_it_is_acknowledged_or_its_time_is_over(
    delay_ns: int, most_ns: int, handed_ns: int
) -> None:
    rows, clients = joining(
        {"partitions": 8, "rebalance_delay_ns": SECOND_NS, "max_handoff_ns": most_ns,
         "flow": {"acknowledge_delay_ns": delay_ns}},
        client("a"), JOINS,
    )  # fmt: skip
    handed = [topic for topic, one in clients.items() if 1 in one]
    assert 15 <= len(handed) <= 35
    new = rows[(rows["client_id"] == 1) & (rows["enter_ns"] >= 0)]
    assert entered(new).min() == pytest.approx(handed_ns, abs=30 * MILLISECOND_NS)
    old = rows[(rows["client_id"] == 0) & (rows["enter_ns"] >= 0) & np.isin(rows["topic_id"], handed)]
    assert entered(old).max() < 3 * SECOND_NS  # nothing of such a partition is sent while it is handed over


@pytest.mark.parametrize("away_ns", [SECOND_NS // 2, 2 * SECOND_NS])
def test_a_flow_that_is_back_before_the_rebalance_delay_is_over_has_its_partitions_as_before(away_ns: int) -> None:
    rows, clients = joining(
        {"partitions": 8, "rebalance_delay_ns": SECOND_NS}, client("a", absences=(ClientInterval(SECOND_NS, away_ns),)),
        client("b"),
    )  # fmt: skip
    assert all(len(one) == 1 for one in clients.values()) == (away_ns < SECOND_NS)
    assert set(rows["client_id"]) == {0, 1}


def test_a_flow_without_a_partition_takes_over_at_once_from_one_that_went() -> None:
    rows, _ = joining(
        {"partitions": 2, "rebalance_delay_ns": 5 * SECOND_NS},
        client("a", absences=(ClientInterval(SECOND_NS, 2 * SECOND_NS),)), client("b"), client("c"),
    )  # fmt: skip
    assert entered(rows[rows["client_id"] == 2]).min() == pytest.approx(SECOND_NS, abs=5 * MILLISECOND_NS)
    later = rows[(rows["enter_ns"] >= 0) & (entered(rows) > SECOND_NS)]
    assert set(later["client_id"]) == {1, 2}  # the first one is back, and without a partition


def test_as_few_partitions_as_possible_change_their_flow() -> None:
    _, clients = joining(
        {"partitions": 9, "rebalance_delay_ns": 0, "max_handoff_ns": 0},
        client("a"), client("b"), client("c", absences=(ClientInterval(0, 2 * SECOND_NS),)),
    )  # fmt: skip
    moved = {topic for topic, one in clients.items() if len(one) > 1}
    assert all(one <= {0, 2} or one <= {1, 2} for one in clients.values())
    assert all(2 in clients[topic] for topic in moved)
    assert 8 <= len(moved) <= 26  # of 9 partitions 3


def test_a_partitioned_queue_keeps_a_key_with_one_client_in_order_until_it_has_gone() -> None:
    away = client("b", absences=(ClientInterval(5 * SECOND_NS, INFINITE_NS),))
    scenario = sharing(
        client("a"), away, partitions=8, rebalance_delay_ns=2 * SECOND_NS,
        traffic=(spooled("t", 1000.0, topics=50),),
    )  # fmt: skip
    _, rows, _ = run(scenario, LogLevel.MESSAGES)
    before = rows[rows["enqueued_ns"] < 5 * SECOND_NS]
    clients = {topic: set(before["client_id"][before["topic_id"] == topic]) for topic in range(50)}
    assert {len(each) for each in clients.values()} == {1}
    assert {each for one in clients.values() for each in one} == {0, 1}
    orphaned = [topic for topic, one in clients.items() if one == {1}]
    waited = rows[np.isin(rows["topic_id"], orphaned) & (rows["enqueued_ns"] >= 5 * SECOND_NS)]
    assert set(waited["client_id"]) == {0}
    assert (waited["enqueued_ns"] + waited["enter_ns"]).min() == 7 * SECOND_NS
    for topic in range(50):
        one = rows[rows["topic_id"] == topic]
        order = np.argsort(one["enqueued_ns"], kind="stable")
        assert (np.diff((one["enqueued_ns"] + one["enter_ns"])[order]) >= 0).all()


def test_the_broker_s_limit_of_unacknowledged_deliveries_is_shared_by_all_flows() -> None:
    def delivered(limit: int) -> list[int]:
        group = ClientGroup("own", "p", "d", round_trip_ns=0)
        plain = Traffic("own", "own", ConstantArrivals(1000.0), ConstantSize(1), Queue.G_1)
        scenario = sharing(client("c", count=2), rate=1000.0, flow={"acknowledge_delay_ns": SECOND_NS // 10})
        scenario = replace(
            scenario, groups=(*scenario.groups, group), traffic=(*scenario.traffic, plain),
            endpoints=(Endpoint("own", acknowledge_delay_ns=SECOND_NS // 10, library_threshold_percent=0),),
            broker=Broker(unacknowledged_limit_messages=limit),
        )  # fmt: skip
        found = by_client(scenario)
        return [found[name]["delivered_messages"] for name in ("c/1", "c/2", "own")]

    assert sum(delivered(-1)) == pytest.approx(20_000, rel=0.02)
    shared = delivered(10)
    assert sum(shared) == pytest.approx(10 * 100, abs=15)  # ten out, each for a tenth of a second, ten seconds long
    assert min(shared) > 100


def test_a_shared_subscription_goes_to_one_client_in_turn_and_skips_absent_ones() -> None:
    groups = (client("c", count=2), client("d"))
    traffic = Traffic("t", "c", ConstantArrivals(1000.0), ConstantSize(1), shared=True)
    scenario = replace(sharing(*groups, traffic=(traffic,)), durable_queues=())
    _, rows, _ = run(scenario, LogLevel.MESSAGES)
    assert list(rows["client_id"][np.argsort(rows["enqueued_ns"])][:6]) == [0, 1, 0, 1, 0, 1]
    away = replace(groups[0], absences=(ClientInterval(SECOND_NS, SECOND_NS),))
    both = replace(scenario, groups=(away, groups[1]))
    lost = run(both)[0].counters()
    assert lost["not_connected_messages"].sum() == 1000  # both clients of the group are away
    assert lost["arrived_messages"].sum() == 10_000


@pytest.mark.parametrize(("eligible", "elided"), [(True, True), (False, False)])
def test_only_eligible_messages_are_elided(eligible: bool, elided: bool) -> None:
    traffic = Traffic("t", "c", ConstantArrivals(1000.0), ConstantSize(1000), eliding_eligible=eligible)
    scenario = replace(sharing(client("c"), traffic=(traffic,)), durable_queues=())
    eliding = Profile("d", limits(), eliding=Eliding(enabled=True, delay_ns=100 * MILLISECOND_NS))
    columns = run(replace(scenario, profiles=(eliding,)))[0].counters()
    assert (columns["elided_messages"][0] > 9000) == elided
    assert (columns["delivered_messages"][0] == 10_000) != elided


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("competing-consumers", {}),
        ("dead-messages", {}),
        ("dead-messages", {"durable-queue[work]/flow[*]/rejects": "0.2", "group[*]/loss": "0.02"}),
    ],
)
def test_the_counters_of_a_ready_scenario_add_up_over_the_queue_and_its_clients(
    name: str, changes: dict[str, str]
) -> None:
    scenario = apply_overrides(read_scenario(find_scenario(name)), changes)
    made, rows, _ = run(scenario, LogLevel.MESSAGES)
    columns = made.counters()
    lost = sum(columns[column] for column in LOSS_COLUMNS)
    there = columns["length_messages"] + columns["waiting_messages"]
    assert (columns["arrived_messages"] == columns["delivered_messages"] + lost + there).all()
    assert columns["arrived_messages"].sum() == len(rows) == made.messages


def test_what_a_durable_queue_removed_is_explained_by_the_causes_of_the_spool(tmp_path: Path) -> None:
    scenario = sharing(
        client("c", service_time=ConstantTime(10 * MILLISECOND_NS)), flow={"window_messages": 2, "fails": 0.5},
        respects_time_to_live=True, max_redelivery=1, horizon_ns=3 * SECOND_NS, traffic=tuple(
            spooled(f"t{ttl}{eligible}", 30.0, time_to_live_ns=ttl, dead_message_eligible=eligible)
            for ttl in (MILLISECOND_NS, INFINITE_NS) for eligible in (False, True)
        ),
    )  # fmt: skip
    simulate(with_dead_queue(scenario), tmp_path / "run", level=LogLevel.EVENTS)
    found = {each.cause.key: each for each in explain_run(tmp_path / "run")}
    columns = open_run(tmp_path / "run").counters().to_pydict()
    moved = columns["arrived_messages"][columns["client"].index("dead")]
    assert found["ttl_expired"].messages == sum(columns["expired_messages"]) > 0
    assert found["redelivery_exceeded"].messages == sum(columns["dead_messages"]) > 0
    assert found["ttl_expired_to_dmq"].messages + found["redelivery_exceeded_to_dmq"].messages == moved > 0
    assert "durable-queue[orders]/" in found["ttl_expired"].command
