"""What the message rows tell is what the models counted, to the message, on every scenario that comes with qsctl."""

from __future__ import annotations

import dataclasses
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from qsctl.core.engine import ServiceEngine
from qsctl.core.queue.settings import SharedReaderQueueSettings
from qsctl.core.ready import Ready
from qsctl.core.statistics.counters import QueueStatistics
from qsctl.eventlog.reader import open_run
from qsctl.eventlog.schema import LogLevel, bucket_of
from qsctl.instant import SECOND_NS
from qsctl.sim.models.queue_peers import hosted_queues
from qsctl.sim.run import run, simulate_counters
from qsctl.sim.scenario import Scenario
from qsctl.sim.scenario_xml import find_scenario, read_scenario, ready_scenarios

SETTINGS = SharedReaderQueueSettings("Q", "T", type_name="X")
LOST = ("discarded", "elided", "expired", "dead")


def told_by_rows(folder: Path, warm_up_ns: int) -> dict[tuple[int, int, str], dict[str, Any]]:
    """The counters of each replication, client and queue out of the rows, as `MESSAGES` says to read them."""
    found: dict[tuple[int, int, str], dict[str, Any]] = {}
    for batch in open_run(folder).messages():
        for row in batch.to_pylist():
            key = (row["replication"], row["client_id"], row["queue"])
            counts = found.setdefault(key, {"counts": Counter(), "first": None, "max": 0, "histogram": Counter()})
            count_row(counts, row, warm_up_ns)
    return found


def count_row(counts: dict[str, Any], row: dict[str, Any], warm_up_ns: int) -> None:
    sums = counts["counts"]
    sums["arrived_messages"] += row["enqueued_ns"] >= warm_up_ns
    left_ns = None if row["wait_ns"] is None else row["enqueued_ns"] + row["wait_ns"]
    if left_ns is not None and left_ns < warm_up_ns:
        return
    sums["redelivered_messages"] += max(0, row["attempts"] - 1)
    if left_ns is None:
        if row["outcome"] == "held":
            sums["length_messages"] += 1
            sums["length_work_units"] += row["work_units"]
        return
    sums[f"{row['outcome']}_messages"] += 1
    sums["discard_indications"] += row["discard_indication"]
    if row["outcome"] == "discarded":
        counts["first"] = left_ns if counts["first"] is None else min(counts["first"], left_ns)
    if row["outcome"] == "delivered":
        sums["delivered_bytes"] += row["size_bytes"]
        sums["wait_sum_ns"] += row["wait_ns"]
        counts["max"] = max(counts["max"], row["wait_ns"])
        counts["histogram"][bucket_of(row["wait_ns"])] += 1


SUMS = (
    "arrived_messages", "delivered_messages", *(f"{outcome}_messages" for outcome in LOST), "redelivered_messages",
    "discard_indications", "delivered_bytes", "length_messages", "length_work_units", "wait_sum_ns",
)  # fmt: skip


def shortened(name: str) -> Scenario:
    """A ready scenario that ends soon, three quarters of it before the end of the warm-up."""
    scenario = read_scenario(find_scenario(name))
    horizon_ns = {"shared-reader-queue": 4 * SECOND_NS, "guaranteed": 8 * SECOND_NS}.get(name, SECOND_NS // 2)
    horizon_ns = min(horizon_ns, scenario.horizon_ns)
    return dataclasses.replace(scenario, horizon_ns=horizon_ns, warm_up_ns=3 * horizon_ns // 4, replications=1)


@pytest.mark.parametrize("name", sorted(set(ready_scenarios()) - {"fan-out-10000"}))
def test_the_rows_of_a_ready_scenario_add_up_to_its_counters(name: str, tmp_path: Path) -> None:
    scenario = shortened(name)
    report = run(scenario, tmp_path / "run", level=LogLevel.MESSAGES)
    told = told_by_rows(report.folder, scenario.warm_up_ns)
    by_queue = scenario.workload is not None  # there, a row's client is the producer
    merged: dict[Any, dict[str, Any]] = {}
    for (replication, client, queue), counts in told.items():
        key = (replication, 0 if by_queue else client, queue)
        if key in merged:
            merged[key]["counts"].update(counts["counts"])
            merged[key]["histogram"].update(counts["histogram"])
            merged[key]["max"] = max(merged[key]["max"], counts["max"])
        else:
            merged[key] = counts
    rows = report.counters.to_pylist()
    assert rows
    for row in rows:
        counts = merged[row["replication"], row["client_id"], row["queue"]]
        assert {name: row[name] for name in SUMS} == {name: counts["counts"][name] for name in SUMS}
        assert row["first_discard_ns"] == counts["first"]
        assert row["wait_max_ns"] == counts["max"]
        histogram = dict(zip(row["histogram_bucket"], row["histogram_count"], strict=True))
        assert histogram == dict(counts["histogram"])


def test_some_ready_scenario_redelivers_before_and_after_the_warm_up(tmp_path: Path) -> None:
    for name in ("guaranteed", "shared-reader-queue"):
        scenario = shortened(name)
        observed = run(scenario, tmp_path / name)
        whole = run(dataclasses.replace(scenario, warm_up_ns=0), tmp_path / f"{name}-whole")
        again = [sum(each.counters["redelivered_messages"].to_pylist()) for each in (observed, whole)]
        assert 0 < again[0] < again[1]


def test_the_simulator_counts_redeliveries_as_the_engine_s_own_status_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sent again after a time-out, a lost consumer or a rejection: the status of the queue counts each time too."""
    scenario = dataclasses.replace(shortened("shared-reader-queue"), warm_up_ns=0)
    assert scenario.workload is not None
    statuses = {queue.full_name: QueueStatistics(SETTINGS, 0) for queue in hosted_queues(scenario.workload.service)}
    take_ready = ServiceEngine.take_ready

    def take_and_tell(engine: ServiceEngine) -> Ready:
        ready = take_ready(engine)
        for event in ready.events:
            statuses[event.queue].tell(event)
        return ready

    monkeypatch.setattr(ServiceEngine, "take_ready", take_and_tell)
    counted = simulate_counters(scenario)["redelivered_messages"].to_pylist()
    assert sum(counted) > 100
    assert counted == [status.counters().redelivered_message_count for status in statuses.values()]
