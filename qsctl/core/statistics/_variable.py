"""Statistic variables: count, mean, minimum, maximum and deviation over windows [QS 3.3.4.3].

Values are summarized once a sampling period [QS 3.3.4.3.1]. A window is a sequence of buckets, each the summary of one
sampling period, or of as many as are needed for 360 buckets to cover the window, which bounds memory. A bucket counts
while any part of its time is in the window, so a window may be too long by at most one bucket.
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
"""Number of buckets that cover a window, at most."""


class Summary:
    """Count, sum, sum of squares, minimum and maximum of integers; exact, since nothing is rounded."""

    __slots__ = ("count", "maximum", "minimum", "squares", "total")

    def __init__(self, count: int = 0, total: int = 0, squares: int = 0, minimum: int = 0, maximum: int = 0) -> None:
        self.count = count
        self.total = total
        self.squares = squares
        self.minimum = minimum
        self.maximum = maximum

    def add(self, value: int, count: int = 1) -> None:
        """Add one value, as often as `count`, at least once."""
        if not self.count:
            self.minimum = self.maximum = value
        elif value < self.minimum:
            self.minimum = value
        elif value > self.maximum:
            self.maximum = value
        total = value * count
        self.count += count
        self.total += total
        self.squares += value * total

    def merge(self, other: Summary) -> None:
        """Add all values of another summary."""
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
        """Add `count` values of zero, in constant time; add none for a negative `count`."""
        if count > 0:
            self.merge(Summary(count))

    def deviation(self) -> float:
        """Return the population standard deviation of the values; 0 for fewer than two."""
        if self.count < 2:
            return 0.0
        return sqrt(max(0, self.count * self.squares - self.total * self.total)) / self.count

    def values(self) -> tuple[int, int, int, int, int]:
        """Return count, sum, sum of squares, minimum and maximum: the arguments of the constructor."""
        return self.count, self.total, self.squares, self.minimum, self.maximum


class WindowState(msgspec.Struct, frozen=True, array_like=True):
    """The stored form of a `Window`: pairs of bucket index and `Summary.values`, in ascending order."""

    period_ns: Nanoseconds
    buckets: tuple[tuple[int, tuple[int, int, int, int, int]], ...]


class Window:
    """The values of the last `period_ns` in buckets; an infinite period is the time since the queue was created.

    `origin_ns` is the time of the queue's creation, at which the first sampling period and bucket begin.
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
        """Add the summary of the sampling period that began at `at_ns`; drop the buckets that left the window."""
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
        """Return the begin of the oldest bucket that is at least partly in the window at `now`."""
        return self._origin_ns + self._first_bucket(now) * self._step_ns

    def summary(self, now: Nanoseconds) -> Summary:
        """Return the summary of all buckets that are at least partly in the window at `now`."""
        first = self._first_bucket(now)
        whole = Summary()
        for index, summary in self._buckets:
            if index >= first:
                whole.merge(summary)
        return whole

    def state(self) -> WindowState:
        """Return the buckets for `restore`."""
        return WindowState(self.period_ns, tuple((index, summary.values()) for index, summary in self._buckets))

    def restore(self, state: WindowState) -> None:
        """Replace the buckets by stored ones of the same window."""
        self._buckets = deque((index, Summary(*values)) for index, values in state.buckets)

    def _first_bucket(self, now: Nanoseconds) -> int:
        return max(0, (now - self._origin_ns - self.period_ns) // self._step_ns)


class WindowedVariable:
    """One statistic variable of a queue, such as its sending latency, with its windows.

    The first window is the publication period; those that `historical` enables follow, shortest first.
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
        """Add the summary of a finished sampling period to all windows."""
        for window in self._windows:
            window.add(began_at_ns, summary)

    def latencies(self, now: Nanoseconds, current: Summary) -> StatisticVariable:
        """Return the metrics of a latency in milliseconds, from values in nanoseconds.

        Args:
            now: the instant of reading.
            current: the values of the sampling period that is still open.
        """
        return self._variable([self._latency(window, now, current) for window in self._windows])

    def rates(self, now: Nanoseconds, current: int, current_since_ns: Nanoseconds) -> StatisticVariable:
        """Return the metrics of a throughput in samples a second.

        `count` is the number of samples, and `mean` that number divided by the time that the window covers. `minimum`,
        `maximum` and `std_dev` are those of the rates of whole sampling periods; before the first one is over,
        `minimum` and `maximum` are the mean, and `std_dev` is 0.

        Args:
            now: the instant of reading.
            current: the number of samples in the sampling period that is still open.
            current_since_ns: when that period began.
        """
        return self._variable([self._rate(window, now, current, current_since_ns) for window in self._windows])

    def states(self) -> tuple[WindowState, ...]:
        """Return the stored form of the windows, for `restore`."""
        return tuple(window.state() for window in self._windows)

    def restore(self, states: tuple[WindowState, ...]) -> None:
        """Resume stored windows; drop those that are no longer enabled, and start newly enabled ones empty."""
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
