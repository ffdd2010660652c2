"""Windows of statistic variables, against sums that anyone can check."""

from __future__ import annotations

import statistics as textbook

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qsctl.core.events import SampleEnqueued
from qsctl.core.queue.settings import (
    HistoricalStatistics,
    MonitoringSettings,
    SharedReaderQueueSettings,
    StatisticsSettings,
)
from qsctl.core.statistics._counters import QueueStatistics
from qsctl.core.statistics._variable import BUCKETS_A_WINDOW, Summary, Window, WindowedVariable
from qsctl.core.statistics.status import CurrentCounts, StatisticMetrics
from qsctl.identity import NIL_IDENTITY
from qsctl.instant import HOUR_NS, INFINITE_NS, MILLISECOND_NS, MINUTE_NS, SECOND_NS

EVERY_WINDOW = HistoricalStatistics(True, True, True, True, True)


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=50), st.integers(0, 50))
def test_a_merged_summary_equals_one_over_all_values(values: list[int], split: int) -> None:
    left, right = Summary(), Summary()
    for value in values[:split]:
        left.add(value)
    for value in values[split:]:
        right.add(value)
    left.merge(right)
    assert (left.count, left.total, left.minimum, left.maximum) == (len(values), sum(values), min(values), max(values))
    assert left.deviation() == pytest.approx(textbook.pstdev(values), rel=1e-9, abs=1e-6)


def test_windows_are_those_that_are_on_shortest_first() -> None:
    variable = WindowedVariable(EVERY_WINDOW, SECOND_NS, 3 * SECOND_NS, 0)
    rates = variable.rates(2 * HOUR_NS, 0, 2 * HOUR_NS)
    assert rates.publication_period_metrics.period_ms == 3000
    assert [metrics.period_ms for metrics in rates.historical_metrics] == [5000, 60000, 300000, 3600000, 7200000]
    none_on = WindowedVariable(HistoricalStatistics(), SECOND_NS, 3 * SECOND_NS, 0)
    assert none_on.rates(SECOND_NS, 0, SECOND_NS).historical_metrics == ()


def test_latency_is_in_milliseconds_and_its_count_is_the_sum_of_the_values() -> None:
    variable = WindowedVariable(HistoricalStatistics(), SECOND_NS, 5 * SECOND_NS, 0)
    values = Summary()
    for latency_ms in (2, 4, 9):
        values.add(latency_ms * MILLISECOND_NS)
    metrics = variable.latencies(SECOND_NS // 2, values).publication_period_metrics
    assert metrics == StatisticMetrics(5000, 15, 5.0, 2.0, 9.0, pytest.approx(textbook.pstdev([2, 4, 9])))


def test_a_variable_without_values_is_all_zeros() -> None:
    variable = WindowedVariable(HistoricalStatistics(up_time=True), SECOND_NS, 5 * SECOND_NS, 0)
    assert variable.latencies(0, Summary()).publication_period_metrics == StatisticMetrics(5000)
    assert variable.rates(0, 0, 0).historical_metrics == (StatisticMetrics(0),)


def told(
    counts: list[int], *, sampling_period_ns: int = SECOND_NS, publication_ns: int = 5 * SECOND_NS
) -> QueueStatistics:
    """A queue that enqueued `counts[i]` samples in the i-th sampling period."""
    settings = SharedReaderQueueSettings(
        "Q",
        "Q",
        statistics=StatisticsSettings(sampling_period_ns, EVERY_WINDOW),
        monitoring=MonitoringSettings(False, publication_ns),
    )
    queue = QueueStatistics(settings, 0)
    for period, count in enumerate(counts):
        for _ in range(count):
            queue.count(SampleEnqueued(period * sampling_period_ns, "Q", NIL_IDENTITY, 1, 0))
    return queue


def enqueue_rates(queue: QueueStatistics, now: int) -> list[StatisticMetrics]:
    variable = queue.publication(now, "Q", CurrentCounts(0, 0, 0, 0)).enqueue_throughput
    return [variable.publication_period_metrics, *variable.historical_metrics]


def test_throughput_describes_whole_sampling_periods_the_idle_ones_too() -> None:
    queue = told([100, 4, 0, 6, 0, 2, 8])
    five_second = enqueue_rates(queue, 7 * SECOND_NS)[1]
    assert (five_second.count, five_second.mean) == (16, 3.2)
    assert (five_second.minimum, five_second.maximum) == (0.0, 8.0)
    assert five_second.std_dev == pytest.approx(textbook.pstdev([0, 6, 0, 2, 8]))


def test_before_the_first_sampling_period_is_over_the_rate_so_far_is_shown() -> None:
    for metrics in enqueue_rates(told([3]), SECOND_NS // 2):
        assert (metrics.count, metrics.mean, metrics.minimum, metrics.maximum) == (3, 6.0, 6.0, 6.0)


def test_a_long_silence_empties_the_short_windows_and_not_the_up_time() -> None:
    queue = told([50, 50])
    publication, five_second, one_minute, *_, up_time = enqueue_rates(queue, 30 * SECOND_NS)
    assert (publication.count, five_second.count, one_minute.count, up_time.count) == (0, 0, 100, 100)
    assert (up_time.period_ms, up_time.minimum, up_time.maximum) == (30_000, 0.0, 50.0)
    assert up_time.mean == pytest.approx(100 / 30)


def test_a_clock_that_steps_back_loses_no_count() -> None:
    queue = told([1, 1, 1])
    queue.count(SampleEnqueued(0, "Q", NIL_IDENTITY, 1, 0))
    assert enqueue_rates(queue, SECOND_NS)[-1].count == 4
    assert enqueue_rates(queue, 0)[-1].mean == 0.0


@given(
    st.lists(st.integers(0, 9), min_size=1, max_size=90),
    st.integers(0, 99),
    st.sampled_from([SECOND_NS, 500 * MILLISECOND_NS, 3 * SECOND_NS]),
)
def test_every_window_equals_the_plain_sum_of_its_sampling_periods(
    counts: list[int], percent_into: int, sampling_period_ns: int
) -> None:
    publication_ns = 7 * SECOND_NS
    queue = told(counts, sampling_period_ns=sampling_period_ns, publication_ns=publication_ns)
    open_period = len(counts) - 1
    now = open_period * sampling_period_ns + percent_into * sampling_period_ns // 100
    windows = [publication_ns, 5 * SECOND_NS, MINUTE_NS, 5 * MINUTE_NS]
    for period_ns, metrics in zip(windows, enqueue_rates(queue, now), strict=False):
        first = max(0, (now - period_ns) // sampling_period_ns)
        inside = counts[first:]
        assert metrics.count == sum(inside)
        whole = inside[:-1]
        if whole:
            per_second = SECOND_NS / sampling_period_ns
            assert metrics.minimum == pytest.approx(min(whole) * per_second)
            assert metrics.maximum == pytest.approx(max(whole) * per_second)
            assert metrics.std_dev == pytest.approx(textbook.pstdev(whole) * per_second, abs=1e-9)


def test_an_hour_of_millisecond_samples_takes_bounded_memory() -> None:
    window = Window(HOUR_NS, MILLISECOND_NS, 0)
    step = 5 * SECOND_NS
    for period in range(2 * 3600 // 5):
        window.add(period * step, Summary(1, 1, 1, 1, 1))
    assert len(window.state().buckets) <= BUCKETS_A_WINDOW + 1
    assert window.summary(2 * HOUR_NS).count == pytest.approx(3600 // 5, abs=2)


def test_up_time_is_one_summary_for_ever() -> None:
    window = Window(INFINITE_NS, SECOND_NS, 0)
    for period in range(1000):
        window.add(period * HOUR_NS, Summary(1, 2, 4, 2, 2))
    assert len(window.state().buckets) == 1
    assert window.summary(1000 * HOUR_NS).total == 2000
