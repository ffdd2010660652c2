"""Statistic variables: count, mean, minimum, maximum and deviation over windows [QS 3.3.4.3].

Values are gathered once a sampling period [QS 3.3.4.3.1]. A window is a ring of summaries of such periods; a summary
counts while any part of its time lies in the window, so a window is wrong by at most one sampling period, or by 1/360
of itself where 360 periods are fewer than it holds. Memory is bounded whatever the sampling period is.
"""

from __future__ import annotations

from collections import deque
from math import sqrt
from typing import Final

import msgspec

from qsctl.core.queue.settings import HistoricalStatistics
from qsctl.core.statistics.status import StatisticMetrics, StatisticVariable
from qsctl.instant import HOUR_NS, INFINITE_NS, MILLISECOND_NS, MINUTE_NS, SECOND_NS, Nanoseconds

BUCKETS_A_WINDOW: Final = 360
"""The most summaries that one window keeps."""


class Summary:
    """Integers reduced to what mean and deviation need. Exact: integers do not round."""

    __slots__ = ("count", "maximum", "minimum", "squares", "total")

    def __init__(self, count: int = 0, total: int = 0, squares: int = 0, minimum: int = 0, maximum: int = 0) -> None:
        self.count = count
        self.total = total
        self.squares = squares
        self.minimum = minimum
        self.maximum = maximum

    def add(self, value: int) -> None:
        """Take one more value in."""
        if not self.count:
            self.minimum = self.maximum = value
        elif value < self.minimum:
            self.minimum = value
        elif value > self.maximum:
            self.maximum = value
        self.count += 1
        self.total += value
        self.squares += value * value

    def merge(self, other: Summary) -> None:
        """Take all values of another summary in."""
        if not other.count:
            return
        if not self.count:
            self.minimum, self.maximum = other.minimum, other.maximum
        else:
            self.minimum = min(self.minimum, other.minimum)
            self.maximum = max(self.maximum, other.maximum)
        self.count += other.count
        self.total += other.total
        self.squares += other.squares

    def add_zeros(self, count: int) -> None:
        """Take `count` values of zero in: sampling periods in which nothing happened."""
        if count > 0:
            self.merge(Summary(count))

    def deviation(self) -> float:
        """Return the standard deviation of the values themselves, not an estimate for a larger population."""
        if self.count < 2:
            return 0.0
        return sqrt(max(0, self.count * self.squares - self.total * self.total)) / self.count

    def values(self) -> tuple[int, int, int, int, int]:
        """Return what the constructor takes."""
        return self.count, self.total, self.squares, self.minimum, self.maximum


class WindowState(msgspec.Struct, frozen=True, array_like=True):
    """A window's summaries, to be stored: (bucket index, summary) in ascending order."""

    period_ns: Nanoseconds
    buckets: tuple[tuple[int, tuple[int, int, int, int, int]], ...]


class Window:
    """The summaries of the last `period_ns`; an infinite period is the up time.

    `origin_ns` is when the queue was created; sampling periods and buckets are counted from it.
    """

    __slots__ = ("_buckets", "_origin_ns", "_step_ns", "period_ns")

    def __init__(self, period_ns: Nanoseconds, sampling_period_ns: Nanoseconds, origin_ns: Nanoseconds) -> None:
        self.period_ns = period_ns
        self._origin_ns = origin_ns
        if period_ns == INFINITE_NS:
            self._step_ns = INFINITE_NS
        else:
            periods = -(-period_ns // sampling_period_ns)
            self._step_ns = sampling_period_ns * -(-periods // BUCKETS_A_WINDOW)
        self._buckets: deque[tuple[int, Summary]] = deque()

    def add(self, at_ns: Nanoseconds, summary: Summary) -> None:
        """Keep the summary of the sampling period that began at `at_ns`; drop what left the window."""
        if not summary.count:
            return
        index = (at_ns - self._origin_ns) // self._step_ns
        if self._buckets and self._buckets[-1][0] >= index:
            self._buckets[-1][1].merge(summary)
            return
        self._buckets.append((index, Summary(*summary.values())))
        first = self._first_bucket(at_ns)
        while self._buckets[0][0] < first:
            self._buckets.popleft()

    def starts_at_ns(self, now: Nanoseconds) -> Nanoseconds:
        """Return where the oldest bucket that counts at `now` begins."""
        return self._origin_ns + self._first_bucket(now) * self._step_ns

    def summary(self, now: Nanoseconds) -> Summary:
        """Everything that counts at `now`."""
        first = self._first_bucket(now)
        whole = Summary()
        for index, summary in self._buckets:
            if index >= first:
                whole.merge(summary)
        return whole

    def state(self) -> WindowState:
        """Return what `restore` takes."""
        return WindowState(self.period_ns, tuple((index, summary.values()) for index, summary in self._buckets))

    def restore(self, state: WindowState) -> None:
        """Take the buckets of an earlier run of the same window."""
        self._buckets = deque((index, Summary(*values)) for index, values in state.buckets)

    def _first_bucket(self, now: Nanoseconds) -> int:
        return max(0, (now - self._origin_ns - self.period_ns) // self._step_ns)


class WindowedVariable:
    """One statistic variable of a queue with its windows.

    The publication period is always there; the others where `historical` turns them on, shortest first.
    """

    __slots__ = ("_origin_ns", "_publication_period_ns", "_sampling_period_ns", "_windows")

    def __init__(
        self,
        historical: HistoricalStatistics,
        sampling_period_ns: Nanoseconds,
        publication_period_ns: Nanoseconds,
        origin_ns: Nanoseconds,
    ) -> None:
        self._sampling_period_ns = sampling_period_ns
        self._origin_ns = origin_ns
        self._windows = [
            Window(period_ns, sampling_period_ns, origin_ns)
            for on, period_ns in (
                (True, publication_period_ns),
                (historical.five_second, 5 * SECOND_NS),
                (historical.one_minute, MINUTE_NS),
                (historical.five_minute, 5 * MINUTE_NS),
                (historical.one_hour, HOUR_NS),
                (historical.up_time, INFINITE_NS),
            )
            if on
        ]

    def close_period(self, began_at_ns: Nanoseconds, summary: Summary) -> None:
        """Keep what one sampling period saw."""
        for window in self._windows:
            window.add(began_at_ns, summary)

    def latencies(self, now: Nanoseconds, current: Summary) -> StatisticVariable:
        """Metrics of values in nanoseconds, shown in milliseconds.

        Args:
            now: the instant of reading.
            current: the values of the sampling period that is still open.
        """
        return self._variable([self._latency(window, now, current) for window in self._windows])

    def rates(self, now: Nanoseconds, current: int, current_since_ns: Nanoseconds) -> StatisticVariable:
        """Metrics of samples a second.

        `count` is the number of samples and `mean` their number by the time that the window covers. `minimum`,
        `maximum` and `std_dev` describe whole sampling periods; before the first is over, the rate so far.

        Args:
            now: the instant of reading.
            current: the samples of the sampling period that is still open.
            current_since_ns: when that period began.
        """
        return self._variable([self._rate(window, now, current, current_since_ns) for window in self._windows])

    def states(self) -> tuple[WindowState, ...]:
        """Return the windows, to be stored."""
        return tuple(window.state() for window in self._windows)

    def restore(self, states: tuple[WindowState, ...]) -> None:
        """Take stored windows back; one that is no longer on is dropped, a new one starts empty."""
        stored = {state.period_ns: state for state in states}
        for window in self._windows:
            if window.period_ns in stored:
                window.restore(stored[window.period_ns])

    def _latency(self, window: Window, now: Nanoseconds, current: Summary) -> StatisticMetrics:
        whole = window.summary(now)
        whole.merge(current)
        if not whole.count:
            return StatisticMetrics(self._period_ms(window, now))
        return StatisticMetrics(
            self._period_ms(window, now),
            round(whole.total / MILLISECOND_NS),
            whole.total / whole.count / MILLISECOND_NS,
            whole.minimum / MILLISECOND_NS,
            whole.maximum / MILLISECOND_NS,
            whole.deviation() / MILLISECOND_NS,
        )

    def _rate(self, window: Window, now: Nanoseconds, current: int, current_since_ns: Nanoseconds) -> StatisticMetrics:
        since_ns = window.starts_at_ns(now)
        whole = window.summary(now)
        whole.add_zeros((current_since_ns - since_ns) // self._sampling_period_ns - whole.count)
        sample_count = whole.total + current
        mean = sample_count * SECOND_NS / (now - since_ns) if now > since_ns else 0.0
        if not whole.count:
            return StatisticMetrics(self._period_ms(window, now), sample_count, mean, mean, mean)
        to_rate = SECOND_NS / self._sampling_period_ns
        return StatisticMetrics(
            self._period_ms(window, now),
            sample_count,
            mean,
            whole.minimum * to_rate,
            whole.maximum * to_rate,
            whole.deviation() * to_rate,
        )

    def _period_ms(self, window: Window, now: Nanoseconds) -> int:
        if window.period_ns == INFINITE_NS:
            return max(0, now - self._origin_ns) // MILLISECOND_NS
        return window.period_ns // MILLISECOND_NS

    @staticmethod
    def _variable(metrics: list[StatisticMetrics]) -> StatisticVariable:
        return StatisticVariable(metrics[0], tuple(metrics[1:]))
