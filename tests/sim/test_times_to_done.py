"""Time in the queue and time to done: two measures of one message, and what a target must name."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qsctl.core.queue.settings import DistributionSettings
from qsctl.errors import UsageError
from qsctl.eventlog.location import location
from qsctl.eventlog.reader import counters_of, open_run
from qsctl.eventlog.run_folder import read_run_info
from qsctl.eventlog.schema import LogLevel, bucket_of
from qsctl.instant import SECOND_NS
from qsctl.sim.done_times import DoneTimes
from qsctl.sim.figures import Figures, figures_of, nearest_ranks
from qsctl.sim.run import run, simulate_counters
from qsctl.sim.scenario.scenario import (
    PoissonArrivals,
    Scenario,
    WorkloadConsumer,
    WorkloadProducer,
)
from qsctl.sim.sizing.directions import Change, change_of
from qsctl.sim.sizing.targets import parse_target
from qsctl.summary.sweeps.points import EVERY_MEASURE
from tests.sim.simulated_service import nine_fast_and_a_slow_one, queue_settings, scenario_of

MONDAY = Path(__file__).parents[2] / "fixtures" / "recordings" / "monday"


def figures(scenario: Scenario) -> Figures:
    return figures_of(simulate_counters(scenario))[0]


@pytest.mark.slow
@pytest.mark.statistics
def test_more_prefetch_empties_the_queue_and_takes_longer_where_one_consumer_is_slow() -> None:
    ahead = [figures(nine_fast_and_a_slow_one(threshold)) for threshold in (1, 5, 50)]
    in_queue = [each.wait_p99_ns or 0 for each in ahead]
    assert in_queue[0] > 100_000_000
    assert in_queue[1:] == [0, 0]
    to_done = [each.done_mean_ns or 0.0 for each in ahead]
    assert to_done[0] < 0.75 * to_done[1] < 0.75 * 0.75 * to_done[2]
    slowest = [each.done_max_ns or 0 for each in ahead]
    assert slowest[0] < slowest[1] < 30 * SECOND_NS < slowest[2]
    assert ahead[2].unfinished_messages > 2 * ahead[0].unfinished_messages  # type: ignore[operator]


@pytest.mark.slow
def test_what_is_unfinished_counts_in_the_time_to_done() -> None:
    found = figures(nine_fast_and_a_slow_one(50))
    assert found.done_messages is not None
    assert found.unfinished_messages is not None
    assert found.done_messages + found.unfinished_messages == found.arrived_messages
    row = simulate_counters(nine_fast_and_a_slow_one(50)).to_pylist()[0]
    without = row["done_sum_ns"] / row["done_messages"]
    assert found.done_mean_ns is not None
    assert found.done_mean_ns > 1.2 * without


@pytest.mark.slow
@pytest.mark.statistics
@pytest.mark.parametrize("rho", [0.5, 0.8])
def test_littles_law_holds_for_both_times_of_an_m_m_1_queue(rho: float, tmp_path: Path) -> None:
    """L = λW: of what waits to be sent and of what is not acknowledged, each by its own time [Little 1961]."""
    rate = 1000.0
    scenario = scenario_of(
        queue_settings(distribution=DistributionSettings(unacked_threshold=0)),
        producers=(WorkloadProducer("T", PoissonArrivals(rho * rate)),),
        consumers=(WorkloadConsumer("Q", PoissonArrivals(rate)),), delay_ns=0, horizon_ns=30 * SECOND_NS,
        warm_up_ns=0,
    )  # fmt: skip
    report = run(scenario, tmp_path / "run", level=LogLevel.MESSAGES)
    found = figures_of(report.counters)[0]
    arrived = found.arrived_messages / 30
    assert found.wait_mean_ns is not None
    assert found.done_mean_ns is not None
    waits, finishes = [], []
    for batch in open_run(tmp_path / "run").messages():
        for row in batch.to_pylist():
            born = row["enqueued_ns"]
            sent = scenario.horizon_ns if row["wait_ns"] is None else born + row["wait_ns"]
            waits.append((born, sent))
            acknowledged = row["acknowledge_ns"]
            finishes.append((born, scenario.horizon_ns if acknowledged is None else born + acknowledged))
    assert mean_number(waits, scenario.horizon_ns) == pytest.approx(arrived * found.wait_mean_ns / 1e9, rel=0.01)
    assert mean_number(finishes, scenario.horizon_ns) == pytest.approx(arrived * found.done_mean_ns / 1e9, rel=0.01)
    assert arrived * found.done_mean_ns / 1e9 == pytest.approx(rho / (1 - rho), rel=0.15)
    assert arrived * found.wait_mean_ns / 1e9 == pytest.approx(rho * rho / (1 - rho), rel=0.2)


def mean_number(spans: list[tuple[int, int]], horizon_ns: int) -> float:
    """How many of these are open on average, by what changes it: no duration is looked at."""
    changes: Counter[int] = Counter()
    for begin, end in spans:
        changes[begin] += 1
        changes[end] -= 1
    area, number, before = 0, 0, 0
    for at in sorted(changes):
        area += number * (at - before)
        number, before = number + changes[at], at
    return area / horizon_ns


def product_limit(done: list[int], unfinished: list[int]) -> list[tuple[int, float]]:
    """The part that is not done after each time, straight from the definition."""
    found, left = [], 1.0
    for time in sorted(set(done)):
        there = sum(each >= time for each in done) + sum(each >= time for each in unfinished)
        left *= 1.0 - done.count(time) / there
        found.append((time, left))
    return found


def times_of(done: list[int], unfinished: list[int]) -> DoneTimes:
    return DoneTimes(
        Counter(map(bucket_of, done)), Counter(map(bucket_of, unfinished)), sum(done), max(done, default=0),
        max(unfinished, default=0),
    )  # fmt: skip


durations = st.lists(st.integers(0, 200), max_size=30)  # so short that each has a bucket of its own


@given(durations, durations, st.sampled_from([(50, 100), (90, 100), (99, 100)]))
def test_times_to_done_are_product_limit_estimates(
    done: list[int], unfinished: list[int], part: tuple[int, int]
) -> None:
    times = times_of(done, unfinished)
    if not done and not unfinished:
        assert times.percentile(*part) is None
        assert times.mean_ns() is None
        return
    longest = max([*done, *unfinished])
    steps = product_limit(done, unfinished)
    limit = 1.0 - part[0] / part[1]
    reached = [time for time, left in steps if left <= limit + 1e-9]
    assert times.percentile(*part) == (reached[0] if reached else longest)
    edges = [(0, 1.0), *steps, (longest, 0.0)]
    area = sum(before[1] * (after[0] - before[0]) for before, after in pairwise(edges))
    assert times.mean_ns() == pytest.approx(area)


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=50))
def test_without_anything_unfinished_they_are_nearest_ranks_and_the_mean(done: list[int]) -> None:
    times = times_of(done, [])
    ranks = nearest_ranks(dict(times.done), [(50, 100), (99, 100)], max(done))
    assert [times.percentile(50, 100), times.percentile(99, 100)] == ranks
    assert times.mean_ns() == sum(done) / len(done)


def test_an_endless_queue_s_percentile_is_at_least_the_oldest_age() -> None:
    assert times_of([10], [100, 150, 200]).percentile(99, 100) == 200
    assert times_of([], [100]).mean_ns() == 100


def test_a_target_must_name_the_time() -> None:
    for name in ("latency_p99", "latency_mean", "latency_max"):
        with pytest.raises(UsageError, match=f"{name} does not name which time is meant") as caught:
            parse_target(f"{name}(G-1)<50ms", tuple(EVERY_MEASURE))
        part = name.removeprefix("latency_")
        assert f"time_in_queue_{part}" in (caught.value.remedy or "")
        assert f"time_to_done_{part}" in (caught.value.remedy or "")
    with pytest.raises(UsageError, match="latency_p99 does not name"):
        parse_target("P(latency_p99(G-1)>50ms)<5%", tuple(EVERY_MEASURE))
    target = parse_target("time_to_done_p99(Orders)<50ms", tuple(EVERY_MEASURE))
    assert target.bound == 50_000_000


def test_prefetch_has_a_direction_for_the_time_in_the_queue_alone() -> None:
    path = "queue[Orders]/unacked-threshold"
    assert change_of(path, "time_in_queue_p99", "Orders")[0] is Change.FALLS
    change, reason = change_of(path, "time_to_done_p99", "Orders")
    assert change is Change.UNKNOWN
    assert "ahead" in reason
    assert change_of("queue[Orders]/consumers", "time_to_done_p99", "Orders")[0] is Change.FALLS


def test_counters_of_an_earlier_version_are_read_without_times_to_done() -> None:
    folder = location(str(MONDAY))
    rows = counters_of(folder, read_run_info(folder)).to_pylist()
    assert rows
    assert all(row["done_messages"] is None and row["done_bucket"] == [] for row in rows)
    assert all(each.done_mean_ns is None and each.unfinished_messages is None for each in figures_of_rows(rows))


def figures_of_rows(rows: list[dict[str, object]]) -> list[Figures]:
    import pyarrow as pa

    return figures_of(pa.Table.from_pylist(rows))
