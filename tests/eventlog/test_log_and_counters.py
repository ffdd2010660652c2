"""What the message rows tell is what the models counted, to the message, on every scenario that comes with qsctl."""

from __future__ import annotations

import dataclasses
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import Phase, given, seed, settings

from qsctl.core.engine import ServiceEngine
from qsctl.core.queue.settings import SharedReaderQueueSettings
from qsctl.core.ready import Ready
from qsctl.core.statistics._counters import QueueStatistics
from qsctl.eventlog.outcomes import DISCARDS, Outcome, column_of
from qsctl.eventlog.reader import open_run
from qsctl.eventlog.schema import COUNTERS, SINCE_DONE, LogLevel, bucket_of
from qsctl.instant import SECOND_NS
from qsctl.sim.run import run, simulate_counters
from qsctl.sim.scenario.overrides.set_values import apply_overrides
from qsctl.sim.scenario.scenario import (
    ClientGroup,
    ClientInterval,
    ConstantArrivals,
    ConstantSize,
    GuaranteedOverflow,
    Model,
    Port,
    Profile,
    Queue,
    Scenario,
    TcpSettings,
    Traffic,
)
from qsctl.sim.scenario.xml import find_scenario, read_scenario, ready_scenarios
from qsctl.sim.service.peers import hosted_queues
from tests.sim.random_scenarios import solace_scenarios

SETTINGS = SharedReaderQueueSettings("Q", "T", type_name="X")
COLUMN_OF = {each: "length_messages" if each is Outcome.HELD else column_of(each) for each in Outcome}
SUMS = (
    *COLUMN_OF.values(), "arrived_messages", "redelivered_messages", "discard_indications", "delivered_bytes",
    "length_work_units", "unacknowledged_messages", "wait_sum_ns",
)  # fmt: skip
NOT_SUMS = {"first_discard_ns", "wait_max_ns", "histogram_bucket", "histogram_count", *SINCE_DONE}
NOT_IN_ROWS = {
    "run_id", "client_id", "client", "queue", "observed_ns", "evicted_messages", "high_water_mark_work_units",
    "max_depth_work_units",
}  # fmt: skip
REDELIVERING = "guaranteed, redelivering"
UNACKNOWLEDGED = {
    "burst", "election", "flow-control", "ingress", "neighbor", "slow-reader", "slow-subscriber", "steady",
    "trace-solace", "web-messaging",
}  # fmt: skip
"""Ready scenarios without messages that anything but TCP acknowledges, or too short for the first one."""
SMALLER = {"burst": {"group[desks]/count": "4", "port[p1]/rate": "100 Mbit/s"}}
"""What makes a scenario of very many messages one of fewer under the same load: each row is read one by one."""


def told_by_rows(folder: Path, warm_up_ns: int, by_queue: bool) -> dict[tuple[int, int, str], dict[str, Any]]:
    """The counters of each replication, client (0 if `by_queue`) and queue, read out of the rows as `MESSAGES` says."""
    found: dict[tuple[int, int, str], dict[str, Any]] = {}
    run = open_run(folder)
    for batch in run.messages():
        for row in batch.to_pylist():
            key = (row["replication"], 0 if by_queue else row["client_id"], row["queue"])
            counts = found.setdefault(
                key, {"counts": Counter(), "first": None, "max": 0, "histogram": Counter(), "done": [], "ages": []}
            )
            count_row(counts, row, warm_up_ns)
            count_done(counts, row, warm_up_ns, run.info.horizon_ns, tries=run.info.model == Model.INTEGRATION)
    return found


def count_row(counts: dict[str, Any], row: dict[str, Any], warm_up_ns: int) -> None:
    sums, outcome = counts["counts"], Outcome(row["outcome"])
    sums["arrived_messages"] += row["enqueued_ns"] >= warm_up_ns
    is_there = outcome in (Outcome.HELD, Outcome.WAITING)  # at the end, whenever it was sent
    assert (row["wait_ns"] is None) <= is_there
    left_ns = None if is_there else row["enqueued_ns"] + row["wait_ns"]
    if left_ns is not None and left_ns < warm_up_ns:
        return
    sums[COLUMN_OF[outcome]] += 1
    sums["redelivered_messages"] += max(0, row["attempts"] - 1)
    sums["discard_indications"] += row["discard_indication"]
    if outcome is Outcome.HELD:
        assert row["acknowledge_ns"] is None
        sums["length_work_units"] += row["work_units"]
        sums["unacknowledged_messages"] += row["wait_ns"] is not None
    if outcome in DISCARDS:
        counts["first"] = left_ns if counts["first"] is None else min(counts["first"], left_ns)
    if outcome is Outcome.DELIVERED:
        sums["delivered_bytes"] += row["size_bytes"]
        sums["wait_sum_ns"] += row["wait_ns"]
        counts["max"] = max(counts["max"], row["wait_ns"])
        counts["histogram"][bucket_of(row["wait_ns"])] += 1


def count_done(counts: dict[str, Any], row: dict[str, Any], warm_up_ns: int, end_ns: int, *, tries: bool) -> None:
    """Times to done as `COUNTERS` says; `tries`: what was delivered and not acknowledged comes back."""
    outcome = Outcome(row["outcome"])
    if outcome in (Outcome.HELD, Outcome.WAITING):
        counts["ages"].append(end_ns - row["enqueued_ns"])
    elif outcome is Outcome.DELIVERED and row["enqueued_ns"] + row["wait_ns"] >= warm_up_ns:
        if row["acknowledge_ns"] is not None:
            assert row["acknowledge_ns"] >= row["wait_ns"]
            counts["done"].append(row["acknowledge_ns"])
        elif not tries:
            counts["ages"].append(end_ns - row["enqueued_ns"])


def check_done(row: dict[str, Any], counts: dict[str, Any]) -> bool:
    """Compare times to done; answers whether the queue's messages are acknowledged."""
    found = {name: row[name] for name in SINCE_DONE}
    if row["done_messages"] is None:
        assert found == {name: [] if name.endswith(("bucket", "count")) else None for name in SINCE_DONE}
        return False
    for part, times in (("done", counts["done"]), ("unfinished", counts["ages"])):
        assert found[f"{part}_messages"] == len(times)
        assert found[f"{part}_max_ns"] == max(times, default=0)
        histogram = dict(zip(found[f"{part}_bucket"], found[f"{part}_count"], strict=True))
        assert histogram == Counter(map(bucket_of, times))
    assert found["done_sum_ns"] == sum(counts["done"])
    return True


def shortened(name: str) -> Scenario:
    """A ready scenario that ends soon, three quarters of it before the end of the warm-up."""
    scenario = read_scenario(find_scenario("guaranteed" if name == REDELIVERING else name))
    scenario = apply_overrides(scenario, SMALLER.get(name, {}))
    if name == REDELIVERING:
        overflow = GuaranteedOverflow.REDELIVER
        profiles = tuple(dataclasses.replace(each, guaranteed_overflow=overflow) for each in scenario.profiles)
        scenario = dataclasses.replace(scenario, profiles=profiles)
    horizons_ns = {
        "shared-reader-queue": 4 * SECOND_NS, "guaranteed": 8 * SECOND_NS, "ward": 28 * SECOND_NS,
        "work-queue": 6 * 3600 * SECOND_NS,
    }  # fmt: skip
    horizon_ns = min(horizons_ns.get(scenario.name, SECOND_NS // 2), scenario.horizon_ns)
    if scenario.world is not None:
        horizon_ns = 4 * SECOND_NS
        scenario = dataclasses.replace(
            scenario, world=dataclasses.replace(scenario.world, recovery_ns=horizon_ns // 8, faults=None)
        )
    return dataclasses.replace(scenario, horizon_ns=horizon_ns, warm_up_ns=3 * horizon_ns // 4, replications=1)


def test_every_counter_is_checked_against_the_rows_or_in_none_of_them() -> None:
    assert {*SUMS, *NOT_SUMS} == set(COUNTERS.names) - NOT_IN_ROWS


def rows_add_up_to_counters(scenario: Scenario, folder: Path) -> Counter[str]:
    """Run it, compare every counter with its rows; answers the sums over all queues."""
    report = run(scenario, folder, level=LogLevel.MESSAGES)
    by_queue = scenario.workload is not None  # there, a row's client is the producer
    told = told_by_rows(report.folder, scenario.warm_up_ns, by_queue)
    total: Counter[str] = Counter()
    for row in report.counters.to_pylist():
        counts = told.pop((row["replication"], row["client_id"], row["queue"]))
        assert {name: row[name] for name in SUMS} == {name: counts["counts"][name] for name in SUMS}
        assert row["first_discard_ns"] == counts["first"]
        assert row["wait_max_ns"] == counts["max"]
        histogram = dict(zip(row["histogram_bucket"], row["histogram_count"], strict=True))
        assert histogram == dict(counts["histogram"])
        if check_done(row, counts):
            total.update(acknowledged=len(counts["done"]), unfinished=len(counts["ages"]))
        total.update(counts["counts"])
    assert not any(counts["counts"].total() for counts in told.values()), "rows of a queue without counters"
    return total


@pytest.mark.slow(beyond=1)
@pytest.mark.parametrize("name", [*sorted(set(ready_scenarios()) - {"fan-out-10000"}), REDELIVERING])
def test_the_rows_of_a_ready_scenario_add_up_to_its_counters(name: str, tmp_path: Path) -> None:
    total = rows_add_up_to_counters(shortened(name), tmp_path / "run")
    assert total["arrived_messages"] > 0
    assert total["acknowledged"] > 0 or name in UNACKNOWLEDGED


@pytest.mark.slow
def test_the_rows_of_random_scenarios_add_up_to_their_counters_for_every_loss(tmp_path: Path) -> None:
    total: Counter[str] = Counter()
    of_the_service = {Outcome.EXPIRED, Outcome.DEAD}

    @settings(max_examples=30, database=None, phases=[Phase.generate])
    @given(solace_scenarios())
    def add_up(scenario: Scenario) -> None:
        holding = tuple(
            dataclasses.replace(each, guaranteed_overflow=GuaranteedOverflow.HOLD) for each in scenario.profiles
        )
        broker = dataclasses.replace(
            scenario.broker,
            max_message_bytes=9000,
            ingress_rate_bits_per_second=40_000_000,
            ingress_buffer_bytes=40_000,
        )
        scenario = dataclasses.replace(
            scenario, profiles=holding, broker=broker, warm_up_ns=scenario.horizon_ns // 3, replications=1
        )
        with TemporaryDirectory(dir=tmp_path) as folder:
            total.update(rows_add_up_to_counters(scenario, Path(folder) / "run"))

    for drawn in range(10):  # what a seed draws differs with the version of hypothesis: as many as it takes
        seed(drawn)(add_up)()
        missing = [each for each in Outcome if not total[COLUMN_OF[each]] and each not in of_the_service]
        if not missing:
            break
    assert missing == []


def test_a_queue_whose_only_count_is_a_loss_after_the_warm_up_has_a_row(tmp_path: Path) -> None:
    """What arrived before is not counted as arrived: the client leaves, and its queued messages are lost."""
    scenario = Scenario(
        name="late-loss", model=Model.SOLACE, horizon_ns=SECOND_NS, warm_up_ns=SECOND_NS // 2,
        ports=(Port("p", rate_bits_per_second=8_000),),
        profiles=(Profile("default", tcp=TcpSettings(transmit_queue_bytes=1)),),
        groups=(
            ClientGroup(
                "c", port="p", profile="default", absences=(ClientInterval(6 * SECOND_NS // 10, SECOND_NS // 10),)
            ),
        ),
        traffic=(
            Traffic("t", to="c", arrivals=ConstantArrivals(100.0), size=ConstantSize(2048), queue=Queue.D_2,
                    stop_ns=SECOND_NS // 4),
        ),
    )  # fmt: skip
    total = rows_add_up_to_counters(scenario, tmp_path / "run")
    assert total["disconnected_messages"] > 0
    assert total["arrived_messages"] == 0


@pytest.mark.parametrize("overflow", GuaranteedOverflow)
def test_a_message_sent_again_after_an_absence_is_delivered_once(overflow: GuaranteedOverflow, tmp_path: Path) -> None:
    scenario = read_scenario(find_scenario("guaranteed"))
    profiles = tuple(dataclasses.replace(each, guaranteed_overflow=overflow) for each in scenario.profiles)
    away = (ClientInterval(SECOND_NS, SECOND_NS // 2), ClientInterval(2 * SECOND_NS, SECOND_NS // 10))
    groups = tuple(dataclasses.replace(each, absences=away) for each in scenario.groups)
    scenario = dataclasses.replace(
        scenario, profiles=profiles, groups=groups, horizon_ns=3 * SECOND_NS, warm_up_ns=SECOND_NS // 2, replications=1
    )
    total = rows_add_up_to_counters(scenario, tmp_path / "run")
    assert total["redelivered_messages"] > 0
    assert total["delivered_messages"] > 0


@pytest.mark.slow
def test_scenarios_redeliver_before_and_after_the_warm_up(tmp_path: Path) -> None:
    for name in (REDELIVERING, "shared-reader-queue"):
        scenario = shortened(name)
        observed = run(scenario, tmp_path / name)
        whole = run(dataclasses.replace(scenario, warm_up_ns=0), tmp_path / f"{name}-whole")
        again = [sum(each.counters["redelivered_messages"].to_pylist()) for each in (observed, whole)]
        assert 0 < again[0] < again[1]


def test_what_g_1_holds_until_it_is_acknowledged_is_never_redelivered() -> None:
    counters = simulate_counters(dataclasses.replace(shortened("guaranteed"), warm_up_ns=0))
    assert sum(counters["unacknowledged_messages"].to_pylist()) > 0
    assert sum(counters["waiting_messages"].to_pylist()) > 0
    assert sum(counters["redelivered_messages"].to_pylist()) == 0


def test_the_simulator_counts_redeliveries_as_the_engine_s_own_status_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sent again after a time-out, a lost consumer or a rejection: the status of the queue counts each time too."""
    scenario = dataclasses.replace(shortened("shared-reader-queue"), warm_up_ns=0)
    assert scenario.workload is not None
    statuses = {queue.full_name: QueueStatistics(SETTINGS, 0) for queue in hosted_queues(scenario.workload.service)}
    take_ready = ServiceEngine.take_ready

    def take_and_tell(engine: ServiceEngine) -> Ready:
        ready = take_ready(engine)
        for event in ready.events:
            statuses[event.queue].count(event)
        return ready

    monkeypatch.setattr(ServiceEngine, "take_ready", take_and_tell)
    counted = simulate_counters(scenario)["redelivered_messages"].to_pylist()
    assert sum(counted) > 100
    assert counted == [status.counters().redelivered_message_count for status in statuses.values()]
