"""Our own queue under virtual time: theory, lost consumers, dead letters, conservation."""

from __future__ import annotations

import dataclasses
import itertools
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qsctl.core.queue.settings import (
    RedeliverySettings,
    ReplicationSettings,
    ResourceLimitSettings,
    SharedReaderQueueSettings,
)
from qsctl.errors import InvalidInput
from qsctl.eventlog.schema import LogLevel
from qsctl.identity import Guid
from qsctl.instant import SECOND_NS
from qsctl.sim.model import EVENT_NAMES, OUTCOMES, Stop
from qsctl.sim.scenario.rules.scenario import check_rules
from qsctl.sim.scenario.scenario import (
    ClientInterval,
    ConstantArrivals,
    ConstantSize,
    Model,
    PoissonArrivals,
    Scenario,
    UniformSize,
    WorkloadConsumer,
    WorkloadProducer,
)
from qsctl.sim.service import run as shared_reader_queue
from qsctl.sim.service.peers import PRODUCER, guid_of, producer_of
from tests.sim.simulated_service import DELAY, queue_settings, scenario_of

DEAD = SharedReaderQueueSettings("Dead", "DeadT", is_dead_letter=True)


def simulate(
    scenario: Scenario, level: LogLevel = LogLevel.MESSAGES, chunk_rows: int = 1 << 20, slices: int = 1
) -> tuple[list[dict[str, Any]], dict[str, dict[str, Any]], list[str]]:
    """All rows, the counters by queue, and the events' names."""
    run = shared_reader_queue.prepare(scenario, 0, level, chunk_rows)
    names = getattr(run, "queue_names")  # noqa: B009 - only this model has them
    rows: list[dict[str, Any]] = []
    events: list[str] = []

    def take() -> None:
        taken = run.take_log()
        rows.extend({name: int(row[name]) for name in taken.dtype.names or ()} for row in taken)
        events.extend(EVENT_NAMES[row["event"]] for row in run.take_events())

    for number in range(1, slices + 1):
        while run.step(scenario.horizon_ns * number // slices) is Stop.LOG_FULL:
            take()
    while run.finish() is Stop.LOG_FULL:
        take()
    take()
    for row in rows:
        row["queue"], row["outcome"] = names[row["queue"]], str(OUTCOMES[row["outcome"]])
    columns = run.counters()
    by_queue = {name: {key: values[i] for key, values in columns.items()} for i, name in enumerate(columns["queue"])}
    return rows, by_queue, events


def count(rows: list[dict[str, Any]], outcome: str, queue: str = "Q") -> int:
    return sum(row["outcome"] == outcome and row["queue"] == queue for row in rows)


@pytest.mark.statistics
def test_one_consumer_with_exponential_service_is_an_m_m_1_queue() -> None:
    rho, rate = 0.5, 1000.0
    scenario = scenario_of(
        queue_settings(), producers=(WorkloadProducer("T", PoissonArrivals(rho * rate)),), delay_ns=0,
        horizon_ns=32 * SECOND_NS, warm_up_ns=2 * SECOND_NS,
    )  # fmt: skip
    _, counters, _ = simulate(scenario, LogLevel.COUNTERS)
    delivered = int(counters["Q"]["delivered_messages"])
    mean_wait = counters["Q"]["wait_sum_ns"] / delivered / SECOND_NS * rate
    half_width = 3 * math.sqrt(rho * (2 + 5 * rho - 4 * rho**2 + rho**3) / (delivered * (1 - rho) ** 4))
    assert mean_wait == pytest.approx(rho / (1 - rho), abs=half_width)
    assert delivered == pytest.approx(rho * rate * 30, rel=0.03)


def test_equal_gaps_and_a_faster_consumer_leave_no_wait() -> None:
    scenario = scenario_of(
        queue_settings(), producers=(WorkloadProducer("T", ConstantArrivals(100.0)),),
        consumers=(WorkloadConsumer("Q", ConstantArrivals(1000.0)),),
    )  # fmt: skip
    rows, counters, _ = simulate(scenario)
    assert {row["wait_ns"] for row in rows} == {0}
    assert {row["send_ns"] for row in rows} == {DELAY}
    assert {row["acknowledge_ns"] for row in rows} == {2 * DELAY + 1_000_000}
    assert counters["Q"]["delivered_messages"] == len(rows) == 200


def test_what_a_lost_consumer_held_goes_to_another_one() -> None:
    away = WorkloadConsumer("Q", ConstantArrivals(2.0), absences=(ClientInterval(SECOND_NS // 10, 10 * SECOND_NS),))
    scenario = scenario_of(
        queue_settings(redelivery=RedeliverySettings(max_delivery_retries=3)),
        producers=(WorkloadProducer("T", ConstantArrivals(100.0)),),
        consumers=(away, WorkloadConsumer("Q", ConstantArrivals(1000.0))),
    )
    rows, counters, events = simulate(scenario, LogLevel.EVENTS)
    assert counters["Q"]["redelivered_messages"] == 1
    assert [row["attempts"] for row in rows].count(2) == 1
    assert count(rows, "delivered") == 200
    assert events == ["connected", "connected", "disconnected", "returned"]


def test_without_retries_what_a_lost_consumer_held_is_dead() -> None:
    away = WorkloadConsumer("Q", ConstantArrivals(2.0), absences=(ClientInterval(SECOND_NS // 10, 10 * SECOND_NS),))
    scenario = scenario_of(
        queue_settings(), producers=(WorkloadProducer("T", ConstantArrivals(100.0)),),
        consumers=(away, WorkloadConsumer("Q", ConstantArrivals(1000.0))),
    )  # fmt: skip
    rows, _, _ = simulate(scenario)
    assert (count(rows, "dead"), count(rows, "delivered")) == (1, 199)


def test_a_consumer_that_comes_back_is_served_again() -> None:
    away = ClientInterval(SECOND_NS // 2 + SECOND_NS // 200, SECOND_NS // 2)
    consumer = WorkloadConsumer("Q", ConstantArrivals(1000.0), absences=(away,))
    scenario = scenario_of(
        queue_settings(), producers=(WorkloadProducer("T", ConstantArrivals(100.0)),), consumers=(consumer,)
    )
    rows, counters, _ = simulate(scenario)
    assert counters["Q"]["high_water_mark_work_units"] == 50
    assert count(rows, "delivered") == 200
    assert max(row["wait_ns"] for row in rows) == pytest.approx(SECOND_NS / 2, rel=0.01)


def test_samples_that_no_consumer_accepts_are_dead_lettered() -> None:
    scenario = scenario_of(
        queue_settings(dead_letter_queue="Dead", redelivery=RedeliverySettings(max_delivery_retries=2)), DEAD,
        producers=(WorkloadProducer("T", ConstantArrivals(100.0)),),
        consumers=(WorkloadConsumer("Q", ConstantArrivals(1000.0), count=2, rejects=1.0),),
    )  # fmt: skip
    rows, counters, _ = simulate(scenario)
    dead = [row for row in rows if row["queue"] == "Q"]
    assert {(row["outcome"], row["attempts"]) for row in dead} == {("dead", 3)}
    assert counters["Dead"]["arrived_messages"] == counters["Q"]["dead_messages"] == 200
    assert counters["Dead"]["length_messages"] == 200


def test_a_silent_consumer_costs_the_response_timeout() -> None:
    timeout = SECOND_NS // 10
    scenario = scenario_of(
        queue_settings(redelivery=RedeliverySettings(max_delivery_retries=0, response_timeout_ns=timeout)),
        producers=(WorkloadProducer("T", ConstantArrivals(1.0)),),
        consumers=(WorkloadConsumer("Q", ConstantArrivals(1000.0), silent=1.0),),
    )
    rows, _, _ = simulate(scenario)
    assert [(row["outcome"], row["wait_ns"]) for row in rows] == [("dead", timeout)] * 2


def test_lifespan_expires_what_waits_too_long() -> None:
    scenario = scenario_of(
        queue_settings(),
        producers=(WorkloadProducer("T", ConstantArrivals(100.0), lifespan_ns=SECOND_NS // 4),),
        consumers=(WorkloadConsumer("Q", ConstantArrivals(50.0)),),
    )
    rows, _, _ = simulate(scenario)
    expired = [row for row in rows if row["outcome"] == "expired"]
    assert expired
    assert {row["wait_ns"] for row in expired} <= set(range(SECOND_NS // 4 - 2 * DELAY, SECOND_NS // 4 + 1))


def test_a_full_queue_bounces_samples() -> None:
    scenario = scenario_of(
        queue_settings(limits=ResourceLimitSettings(max_count=10)),
        producers=(WorkloadProducer("T", ConstantArrivals(100.0)),),
        consumers=(WorkloadConsumer("Q", ConstantArrivals(10.0)),),
    )
    rows, counters, _ = simulate(scenario)
    assert count(rows, "held") == 10
    assert count(rows, "discarded") == counters["Q"]["discarded_messages"] == 200 - 10 - count(rows, "delivered")
    assert counters["Q"]["max_depth_work_units"] == counters["Q"]["high_water_mark_work_units"] == 10
    assert counters["Q"]["first_discard_ns"] == min(row["enqueued_ns"] for row in rows if row["outcome"] == "discarded")


def test_a_producer_with_a_window_waits_for_its_acknowledgments() -> None:
    scenario = scenario_of(
        queue_settings(), producers=(WorkloadProducer("T", ConstantArrivals(1000.0), window_samples=1),),
        consumers=(WorkloadConsumer("Q", ConstantArrivals(10_000.0)),), delay_ns=SECOND_NS // 200,
    )  # fmt: skip
    rows, _, _ = simulate(scenario)
    entered = [row["enqueued_ns"] for row in rows]
    assert min(b - a for a, b in itertools.pairwise(entered)) == 2 * SECOND_NS // 200


def test_a_replicated_queue_is_left_to_the_model_of_clusters() -> None:
    scenario = scenario_of(queue_settings(replication=ReplicationSettings(enabled=True)))
    with pytest.raises(InvalidInput, match="queue P/S/Q is replicated") as caught:
        check_rules(scenario)
    assert 'model="world"' in str(caught.value)
    check_rules(scenario_of(queue_settings(replication=ReplicationSettings(enabled=False))))


@given(
    st.integers(1, 3), st.floats(0, 0.4), st.floats(0, 0.4), st.integers(0, 3), st.sampled_from([-1, 3]),
    st.sampled_from([SECOND_NS // 20, 2**63 - 1]), st.booleans(), st.integers(0, 1000),
)  # fmt: skip
def test_every_sample_is_delivered_lost_or_held_and_the_counters_agree(
    consumers: int, rejects: float, silent: float, retries: int, limit: int, lifespan: int, dead: bool, seed: int
) -> None:
    settings = queue_settings(
        dead_letter_queue="Dead" if dead else "",
        redelivery=RedeliverySettings(retries, SECOND_NS // 50),
        limits=ResourceLimitSettings(max_count=limit),
    )
    absences = (ClientInterval(SECOND_NS // 20, SECOND_NS // 20, SECOND_NS // 5),)
    scenario = scenario_of(
        settings, *((DEAD,) if dead else ()), seed=seed, horizon_ns=SECOND_NS // 2, warm_up_ns=SECOND_NS // 7,
        producers=(WorkloadProducer("T", PoissonArrivals(300.0), UniformSize(1, 9000), 2, lifespan_ns=lifespan),),
        consumers=(
            WorkloadConsumer("Q", PoissonArrivals(200.0), consumers, rejects, silent, absences),
            WorkloadConsumer("Q", ConstantArrivals(100.0)),
        ),
    )  # fmt: skip
    rows, counters, _ = simulate(scenario)
    mine = [row for row in rows if row["queue"] == "Q"]
    settled = {outcome: count(rows, outcome) for outcome in ("delivered", "discarded", "expired", "dead", "held")}
    assert sum(settled.values()) + count(mine, "waiting") == len(mine)
    late = [row for row in mine if row["wait_ns"] >= 0 and row["enqueued_ns"] + row["wait_ns"] >= scenario.warm_up_ns]
    for outcome in ("delivered", "discarded", "expired", "dead"):
        assert counters["Q"][f"{outcome}_messages"] == sum(row["outcome"] == outcome for row in late)
    assert counters["Q"]["length_messages"] == settled["held"]
    assert counters["Q"]["arrived_messages"] == sum(row["enqueued_ns"] >= scenario.warm_up_ns for row in mine)
    delivered = [row for row in late if row["outcome"] == "delivered"]
    assert counters["Q"]["wait_sum_ns"] == sum(row["wait_ns"] for row in delivered)
    assert counters["Q"]["histogram_count"].sum() == len(delivered)
    observed = [*late, *(row for row in mine if row["wait_ns"] < 0)]
    assert counters["Q"]["redelivered_messages"] == sum(max(0, row["attempts"] - 1) for row in observed)
    if limit > 0:
        assert counters["Q"]["high_water_mark_work_units"] <= limit * 5
    if dead:
        lost = sum(row["outcome"] in {"dead", "expired"} for row in mine)
        assert sum(row["queue"] == "Dead" for row in rows) == lost


def test_slices_and_chunks_change_no_row() -> None:
    scenario = scenario_of(queue_settings(), horizon_ns=SECOND_NS // 2)
    whole = simulate(scenario)
    assert simulate(scenario, chunk_rows=7, slices=13)[0] == whole[0]
    assert simulate(dataclasses.replace(scenario, seed=2))[0] != whole[0]


def test_a_variant_of_the_queue_sees_the_same_writes() -> None:
    size = UniformSize(1, 4000)
    producers = (WorkloadProducer("T", PoissonArrivals(500.0), size),)
    plain = simulate(scenario_of(queue_settings(), producers=producers))[0]
    bounded = simulate(scenario_of(queue_settings(limits=ResourceLimitSettings(max_count=2)), producers=producers))[0]

    def writes(rows: list[dict[str, Any]]) -> list[tuple[int, int]]:
        return sorted((row["enqueued_ns"], row["size_bytes"]) for row in rows)

    assert writes(plain) == writes(bounded)


def test_what_the_service_does_not_have_is_refused() -> None:
    with pytest.raises(InvalidInput, match="'Elsewhere' is not a queue of the service; the queues are: P/S/Q"):
        simulate(scenario_of(queue_settings(), consumers=(WorkloadConsumer("Elsewhere", PoissonArrivals(1.0)),)))
    with pytest.raises(InvalidInput, match="no queue is for the topic 'Other'; the topics are: T"):
        simulate(scenario_of(queue_settings(), producers=(WorkloadProducer("Other", PoissonArrivals(1.0)),)))
    with pytest.raises(InvalidInput, match="no rate of service above 0"):
        simulate(scenario_of(queue_settings(), consumers=(WorkloadConsumer("Q", PoissonArrivals(0.0)),)))
    with pytest.raises(InvalidInput, match="there is no workload"):
        simulate(Scenario("none", Model.SHARED_READER_QUEUE))


def test_payloads_have_the_sizes_that_the_workload_draws() -> None:
    producers = (WorkloadProducer("T", ConstantArrivals(100.0), ConstantSize(5000)),)
    rows, counters, _ = simulate(scenario_of(queue_settings(), producers=producers))
    assert {row["size_bytes"] for row in rows} == {5000}
    assert counters["Q"]["delivered_bytes"] == 5000 * count(rows, "delivered")


def test_a_dead_letter_whose_guid_begins_as_a_producer_s_has_no_producer() -> None:
    assert producer_of(guid_of(PRODUCER, 7)) == 7
    assert producer_of(Guid(bytes([PRODUCER]) + b"\x9c" * 15)) == 0
    assert producer_of(Guid(b"\x9c" * 16)) == 0
