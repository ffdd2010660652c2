"""On every ready scenario, a summary's figures of the log are the simulator's own counters, to the message."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from qsctl.eventlog.schema import LogLevel, bucket_of
from qsctl.instant import SECOND_NS
from qsctl.sim.done_times import DoneTimes
from qsctl.sim.run import run
from qsctl.sim.scenario.overrides.set_values import apply_overrides
from qsctl.sim.scenario.scenario import Scenario
from qsctl.sim.scenario.xml import find_scenario, read_scenario, ready_scenarios
from qsctl.summary import job
from qsctl.summary.run_summary import COUNTS, QueueFigures
from qsctl.summary.spark.session import SparkOptions
from tests.eventlog.parts import parts_of

SUMS = COUNTS
PERCENTILES = {"wait_p50_ns": (50, 100), "wait_p99_ns": (99, 100), "wait_p999_ns": (999, 1000)}
HORIZONS_NS = {
    "shared-reader-queue": 3 * SECOND_NS,
    "world": 3 * SECOND_NS,
    "guaranteed": 6 * SECOND_NS,
    "work-queue": 6 * 3600 * SECOND_NS,
    "fan-out-10000": SECOND_NS // 20,
}


def short(name: str) -> Scenario:
    """A ready scenario that ends soon, with two replications, a third of each before the end of the warm-up."""
    scenario = read_scenario(find_scenario(name))
    horizon_ns = min(scenario.horizon_ns, HORIZONS_NS.get(name, SECOND_NS // 4))
    if scenario.world is not None:
        scenario = dataclasses.replace(
            scenario, world=dataclasses.replace(scenario.world, recovery_ns=horizon_ns // 8, faults=None)
        )
    return dataclasses.replace(scenario, horizon_ns=horizon_ns, warm_up_ns=horizon_ns // 3, replications=2)


def bucket_at(histogram: dict[int, int], part: int, whole: int) -> int:
    """The bucket in which the nearest rank is."""
    rank = -(-sum(histogram.values()) * part // whole)
    for bucket in sorted(histogram):
        rank -= histogram[bucket]
        if rank <= 0:
            return bucket
    raise AssertionError("an empty histogram has no ranks")


def same(figures: QueueFigures, counted: list[dict[str, Any]]) -> None:
    """One queue's figures against its counters, of all its clients where they were told together."""
    for name in SUMS:
        assert getattr(figures, name) == sum(row[name] for row in counted), name
    discards = [row["first_discard_ns"] for row in counted if row["first_discard_ns"] is not None]
    assert figures.first_discard_ns == min(discards, default=None)
    assert figures.high_water_mark_work_units == max(row["high_water_mark_work_units"] for row in counted)
    times = DoneTimes()
    for row in counted:
        if row["done_messages"] is not None:
            times.add(row)
    if not times.done_messages + times.unfinished_messages:
        assert not figures.done_messages
        assert not figures.unfinished_messages
    else:
        assert figures.done_messages == times.done_messages
        assert figures.unfinished_messages == times.unfinished_messages
        assert figures.done_max_ns == times.max_ns
        assert figures.done_p99_ns == times.percentile(99, 100)
        assert figures.done_mean_ns == times.mean_ns()
    histogram: dict[int, int] = {}
    for row in counted:
        for bucket, count in zip(row["histogram_bucket"], row["histogram_count"], strict=True):
            histogram[bucket] = histogram.get(bucket, 0) + count
    if not histogram:
        assert figures.wait_max_ns is None
        assert figures.wait_p50_ns is None
        return
    assert figures.wait_max_ns == max(row["wait_max_ns"] for row in counted)
    for name, rank in PERCENTILES.items():
        assert bucket_of(getattr(figures, name)) == bucket_at(histogram, *rank), name


@pytest.mark.slow
@pytest.mark.parametrize("served", [False, True], ids=["egress-queues", "shared-reader-queues"])
def test_figures_are_the_counters_on_every_ready_scenario(
    served: bool, tmp_path: Path, computed: SparkOptions | None
) -> None:
    scenarios = [scenario for name in ready_scenarios() if ((scenario := short(name)).workload is not None) is served]
    reports = [run(each, tmp_path / each.name, level=LogLevel.MESSAGES) for each in scenarios]
    # In the log of shared reader queues a row's client is the producer, whom no queue's counters know.
    by = ("queue", "replication") if served else ("client", "queue", "replication")
    summary = job.summarize_runs([report.folder for report in reports], by=("run", *by), options=computed)
    expected: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for report in reports:
        for row in report.counters.to_pylist():
            key = (report.info.run_id, *(row[name] for name in by))
            expected.setdefault(key, []).append(row)
    found = {(each.run_id, *(getattr(each, name) for name in by)): each for each in summary.queues}
    assert len(reports) >= 1
    assert expected.keys() <= found.keys()
    for key, figures in found.items():
        if key in expected:
            same(figures, expected[key])
        else:  # all its messages came and went before the end of the warm-up: it has no counters
            assert not any(getattr(figures, name) for name in SUMS), key
    assert sum(each.delivered_messages for each in found.values()) > 0


def test_slow_subscribers_are_those_of_the_broker_s_events(tmp_path: Path, computed: SparkOptions | None) -> None:
    scenario = dataclasses.replace(read_scenario(find_scenario("slow-subscriber")), horizon_ns=75 * SECOND_NS)
    report = run(scenario, tmp_path / "run", level=LogLevel.EVENTS)
    told: dict[str, dict[str, int]] = {}
    names = {row["client_id"]: row["client"] for row in report.counters.to_pylist()}
    for part in parts_of(report.folder, "events"):
        for row in pq.ParquetFile(part).read().to_pylist():
            if row["event"] in {"slow-percent", "slow-subscriber"}:
                told.setdefault(names[row["client_id"]], {})[row["event"]] = row["value"]
    assert 0 < len(told) < len(names)
    summary = job.summarize_run(report.folder, by=("client",), measures={"slow_subscribers"}, options=computed)
    found = {row["client"]: row for row in summary.tables["slow_subscribers"]}
    assert found.keys() == set(names.values())
    for name, row in found.items():
        values = told.get(name, {})
        assert row["slow_percent"] == pytest.approx(values.get("slow-percent", 0) / 100)
        assert row["slow_percent_max"] == pytest.approx(max(values.values(), default=0) / 100)
    assert max(row["slow_percent_max"] for row in found.values()) >= 50


@pytest.mark.parametrize("overflow", ["hold", "redeliver"])
def test_the_last_depth_agrees_with_the_counters(overflow: str, tmp_path: Path, computed: SparkOptions | None) -> None:
    """What G-1 holds: sent messages too while they are not acknowledged, and nothing that waits at its endpoint.

    A run that ends earlier is the beginning of one that ends later: its counters tell the depth in between.
    """
    settings = {
        "profile[*]/guaranteed-overflow": overflow, "group[*]/count": "2",
        "endpoint[*]/acknowledge-delay": "30ms",
    }  # fmt: skip
    scenario = apply_overrides(read_scenario(find_scenario("guaranteed")), settings)
    ends = [dataclasses.replace(scenario, horizon_ns=seconds * SECOND_NS) for seconds in (1, 2, 3)]
    reports = [run(each, tmp_path / f"run-{each.horizon_ns}", level=LogLevel.MESSAGES) for each in ends]
    summary = job.summarize_run(reports[-1].folder, measures=["depth"], options=computed)
    depths = sorted(summary.tables["depth"], key=lambda row: row["at_ns"])
    waiting = 0
    for report in reports:
        at = {(row["client"], row["queue"]): row for row in depths if row["at_ns"] <= report.info.horizon_ns}
        for row in report.counters.to_pylist():
            found = at[row["client"], row["queue"]]
            assert found["depth_messages"] == row["length_messages"], row
            assert found["depth_work_units"] == row["length_work_units"], row
            assert (row["unacknowledged_messages"] > 0) is (overflow == "hold")
            waiting += row["waiting_messages"]
    assert waiting > 0 or overflow == "redeliver"
