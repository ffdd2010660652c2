"""What a replay makes of a change: against a fresh simulation of the changed scenario, with common random numbers."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

import pytest

from qsctl.core.queue.settings import DistributionSettings, ResourceLimitSettings
from qsctl.errors import InvalidInput, NotFound, UsageError
from qsctl.eventlog.schema import LogLevel
from qsctl.instant import MILLISECOND_NS, SECOND_NS
from qsctl.sim.figures import Figures, figures_of
from qsctl.sim.replay._services import Services
from qsctl.sim.replay.egress import egress_scenario
from qsctl.sim.replay.recording import read_recording
from qsctl.sim.replay.replay import difference_in, recorded_scenario, replay
from qsctl.sim.replay.settings import changed_service, replayed_queues
from qsctl.sim.replay.then_and_now import then_and_now
from qsctl.sim.run import run, simulate_counters
from qsctl.sim.scenario.overrides.set_values import apply_overrides
from qsctl.sim.scenario.parts.replay import Replay
from qsctl.sim.scenario.scenario import Model, PoissonArrivals, Scenario, WorkloadConsumer, WorkloadProducer
from qsctl.sim.sizing.memory import memory_bytes
from tests.sim.recordings import DEAD, JOBS, ORDERS, mixed, recorded, service_of

pytestmark = pytest.mark.statistics

SECONDS = 5.0
JOBS_QUEUE = dataclasses.replace(JOBS, limits=ResourceLimitSettings())
BASE = dataclasses.replace(mixed(3, SECONDS, service_of(DEAD, ORDERS, JOBS_QUEUE)))


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recorded(BASE, tmp_path_factory.mktemp("replay") / "recording")


def fresh(changes: Mapping[str, str], consumers: int | None = None) -> dict[str, Figures]:
    """Simulate the changed scenario anew: the same seeds, so that the same samples are written."""
    workload = BASE.workload
    assert workload is not None
    plain = Replay("", workload.service, replayed_queues(workload.service))
    changed = apply_overrides(Scenario("changed", model=Model.REPLAY, replay=plain), changes).replay
    assert changed is not None
    declared = workload.consumers
    if consumers is not None:
        declared = tuple(
            dataclasses.replace(each, count=consumers) if each.queue == "Jobs" else each for each in declared
        )
    scenario = dataclasses.replace(
        BASE, workload=dataclasses.replace(workload, service=changed_service(changed), consumers=declared)
    )
    return {each.queue: each for each in figures_of(simulate_counters(scenario))}


def replayed(recording: Path, changes: Mapping[str, str]) -> dict[str, Figures]:
    return {each.queue: each for each in figures_of(simulate_counters(recorded_scenario(recording, None, changes)))}


def near(now: float | None, expected: float | None, ratio: float, slack: float) -> bool:
    assert now is not None
    assert expected is not None
    return abs(now - expected) <= ratio * expected + slack


@pytest.mark.slow(beyond=1)
@pytest.mark.parametrize(
    ("queue", "changes"),
    [
        ("Orders", {"queue[Orders]/unacked-threshold": "0"}),
        ("Orders", {"queue[Orders]/unacked-threshold": "10"}),
        ("Orders", {"queue[Orders]/max-count": "8"}),
        ("Orders", {"queue[Orders]/max-count": "200"}),
        ("Orders", {"queue[Orders]/max-delivery-retries": "0"}),
        ("Orders", {"queue[Orders]/max-delivery-retries": "5"}),
        ("Orders", {"queue[Orders]/response-timeout": "150ms"}),
        ("Jobs", {"queue[Jobs]/max-count": "3", "queue[Jobs]/replacement": "REJECT_WITHOUT_REPLACEMENT"}),
        ("Jobs", {"queue[Jobs]/unacked-threshold": "4"}),
    ],
    ids=lambda value: " ".join(value.values()) if isinstance(value, dict) else value,
)
def test_replay_of_a_change_is_near_a_fresh_simulation(recording: Path, queue: str, changes: dict[str, str]) -> None:
    now, expected = replayed(recording, changes)[queue], fresh(changes)[queue]
    assert now.arrived_messages == expected.arrived_messages
    arrived = now.arrived_messages
    for measure in ("delivered_messages", "discarded_messages", "expired_messages", "dead_messages"):
        assert near(getattr(now, measure), getattr(expected, measure), 0.08, 0.03 * arrived), measure
    assert near(now.redelivered_messages, expected.redelivered_messages, 0.2, 30)
    assert near(now.wait_p99_ns, expected.wait_p99_ns, 0.5, 20 * MILLISECOND_NS)


@pytest.mark.slow(beyond=1)
@pytest.mark.parametrize("count", [1, 3, 6])
def test_another_number_of_consumers_is_near_a_fresh_simulation(recording: Path, count: int) -> None:
    now = replayed(recording, {"queue[Jobs]/consumers": str(count)})["Jobs"]
    expected = fresh({}, count)["Jobs"]
    assert near(now.delivered_messages, expected.delivered_messages, 0.1, 10)
    assert near(now.wait_mean_ns, expected.wait_mean_ns, 0.35, 2 * MILLISECOND_NS)


def test_slower_consumers_halve_what_one_delivers(recording: Path) -> None:
    one = replayed(recording, {"queue[Jobs]/consumers": "1"})["Jobs"].delivered_messages
    slow = replayed(recording, {"queue[Jobs]/consumers": "1", "queue[Jobs]/service-factor": "2"})["Jobs"]
    assert near(slow.delivered_messages, one / 2, 0.05, 5)


def test_no_consumers_deliver_nothing(recording: Path) -> None:
    assert replayed(recording, {"queue[Jobs]/consumers": "0"})["Jobs"].delivered_messages == 0


def test_queue_without_a_change_is_copied_beside_one_with(recording: Path, tmp_path: Path) -> None:
    difference = replay(recording, tmp_path / "now", overrides={"queue[Jobs]/consumers": "5"}).difference
    by_queue = {each.queue: each for each in difference.queues}
    orders, jobs = by_queue["P/S/Orders"], by_queue["P/S/Jobs"]
    assert orders.deliveries_equal == orders.deliveries_then == orders.deliveries_now
    assert jobs.deliveries_equal < jobs.deliveries_then
    assert {line.why for line in difference.lines} == {"what was changed"}


@pytest.mark.slow
def test_draws_depend_on_the_seed_and_on_nothing_else(recording: Path) -> None:
    """Deliveries that there were not are drawn; what was recorded of a sample holds for whoever has it."""
    scenario = recorded_scenario(recording, None, {"queue[Orders]/max-delivery-retries": "5"})
    one, same, other = (figures_of(simulate_counters(dataclasses.replace(scenario, seed=seed))) for seed in (5, 5, 6))
    assert one == same
    assert one != other


@pytest.mark.slow
def test_producer_that_waits_for_answers_writes_less_where_they_come_later(tmp_path: Path) -> None:
    """A program with a window of 1 over a queue of one place: the answers set its pace."""
    jobs = dataclasses.replace(JOBS, limits=dataclasses.replace(JOBS.limits, max_count=1))
    scenario = mixed(1, 4.0, service_of(DEAD, ORDERS, jobs), jobs_window=1)
    workload = scenario.workload
    assert workload is not None
    busy = tuple(
        dataclasses.replace(each, arrivals=PoissonArrivals(2000.0)) if each.topic_name == "Jobs" else each
        for each in workload.producers
    )
    folder = recorded(
        dataclasses.replace(scenario, workload=dataclasses.replace(workload, producers=busy)), tmp_path / "recording"
    )
    then = replayed(folder, {})["Jobs"].delivered_messages
    slow = replayed(folder, {"queue[Jobs]/service-factor": "2"})["Jobs"]
    assert near(slow.delivered_messages, then / 2, 0.1, 10)
    assert near(slow.arrived_messages, then / 2, 0.1, 10)


def test_full_window_holds_a_producer_back(recording: Path) -> None:
    """With a queue that lets nobody in any more, producers stop at their window."""
    changes = {
        "queue[Jobs]/consumers": "0",
        "queue[Jobs]/max-count": "5",
        "queue[Jobs]/replacement": "WAIT_WITHOUT_REPLACEMENT",
        "replay/window": "20",
    }
    assert replayed(recording, changes)["Jobs"].waiting_messages == 20


@pytest.mark.slow
def test_then_and_now_are_the_counters_of_both(recording: Path, tmp_path: Path) -> None:
    report = replay(recording, tmp_path / "now", overrides={"queue[Orders]/max-count": "8"}, replications=2)
    rows = {(each.queue, each.measure): each for each in then_and_now(recording, tmp_path / "now")}
    discarded = rows["Orders", "discarded"]
    counters = [row for row in report.run.counters.to_pylist() if row["queue"] == "Orders"]
    first, drawn = (row["discarded_messages"] for row in sorted(counters, key=lambda row: row["replication"]))
    assert (discarded.now, discarded.low, discarded.high) == (first, drawn, drawn)
    assert discarded.then is not None
    assert discarded.now > discarded.then
    assert difference_in(tmp_path / "now", report.run.info) == report.difference


def test_service_times_of_consumers_are_found(recording: Path) -> None:
    """They were drawn with a mean of 1/70 s, and the network takes 0.1 ms for both ways."""
    services = Services(read_recording(recording), "P/S/Jobs", 1, 0)
    found = [each.service_ns for served in services.served.values() for each in served if each.is_answer]
    assert len(found) > 500
    assert near(sum(found) / len(found), SECOND_NS / 70, 0.1, 0)


@pytest.mark.slow
def test_consumers_that_take_alike_let_services_follow_samples(recording: Path) -> None:
    """Three instead of two: each sample takes as long as it did, whoever has it, and no draw is needed."""
    scenario = recorded_scenario(recording, None, {"queue[Jobs]/consumers": "3"})
    one, other = (
        {each.queue: each for each in figures_of(simulate_counters(dataclasses.replace(scenario, seed=seed)))}["Jobs"]
        for seed in (5, 6)
    )
    assert abs(one.delivered_messages - other.delivered_messages) <= 4  # those that the end of the recording cut off
    assert near(one.wait_sum_ns, other.wait_sum_ns, 0.05, 0)


def test_consumers_that_refuse_alike_let_answers_follow_samples(recording: Path, tmp_path: Path) -> None:
    assert Services(read_recording(recording), "P/S/Orders", 1, 0).answers_follow_samples
    workload = BASE.workload
    assert workload is not None
    differing = tuple(WorkloadConsumer("Orders", PoissonArrivals(150.0), rejects=share) for share in (0.5, 0.0))
    producers = (WorkloadProducer("Orders", PoissonArrivals(100.0)),)
    scenario = dataclasses.replace(
        mixed(1, 2.0), workload=dataclasses.replace(workload, producers=producers, consumers=differing)
    )
    folder = recorded(scenario, tmp_path / "recording")
    assert not Services(read_recording(folder), "P/S/Orders", 1, 0).answers_follow_samples


def test_samples_of_consumers_come_to_the_clients_of_a_broker(recording: Path, tmp_path: Path) -> None:
    for model in (Model.SOLACE, Model.TIBCO):
        scenario = egress_scenario(recording, model, tmp_path)
        assert [(group.name, group.count) for group in scenario.groups] == [("Orders", 4), ("Jobs", 2)]
        counters = simulate_counters(scenario).to_pylist()
        rows = read_recording(recording)
        sent = {(row.queue, row.producer, row.sequence_number) for row in rows.deliveries}
        assert sum(row["arrived_messages"] for row in counters) == len(sent)


def test_memory_of_a_replay_is_what_its_queues_may_hold(recording: Path) -> None:
    sizes = sorted(row.size_bytes for row in read_recording(recording).arrivals if row.queue == "P/S/Jobs")
    one, two = (
        memory_bytes(recorded_scenario(recording, None, {"queue[Jobs]/max-count": count})) for count in ("1", "2")
    )
    assert two - one == sizes[-2]


def test_what_is_no_recording_is_refused(recording: Path, tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    run(dataclasses.replace(mixed(1, 0.1), log_level=LogLevel.MESSAGES), plain)
    with pytest.raises(InvalidInput, match="holds no arrivals"):
        recorded_scenario(plain)
    with pytest.raises(NotFound, match="is not a folder"):
        recorded_scenario(tmp_path / "nothing")
    with pytest.raises(UsageError, match="has no queue"):
        recorded_scenario(recording, None, {"queue[Nothing]/consumers": "1"})
    with pytest.raises(InvalidInput, match="'recorded'"):
        recorded_scenario(recording, None, {"queue[Jobs]/consumers": "many"})


def test_another_service_is_replayed_with_what_it_has(recording: Path, tmp_path: Path) -> None:
    wide = dataclasses.replace(ORDERS, distribution=DistributionSettings(unacked_threshold=5))
    report = replay(recording, tmp_path / "now", service=service_of(DEAD, wide), config="wide.xml")
    assert report.difference.changes == {"config": "wide.xml"}
    assert {row["queue"] for row in report.run.counters.to_pylist()} == {"Dead", "Orders"}
