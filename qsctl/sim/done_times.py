"""Times from arrival to acknowledgment, censored for unfinished messages: their percentiles and mean.

A message that is unacknowledged when the run ends has waited for its age and will wait longer: its time is censored.
To leave it out, or to count its age as its time, underestimates the times of a queue with a slow consumer. The estimate
is the product limit (Kaplan and Meier, "Nonparametric estimation from incomplete observations", Journal of the American
Statistical Association 53, 1958): at each time t, the fraction unfinished is multiplied by the fraction of the messages
at risk that did not finish at t. Where all messages are finished, the estimate is the nearest rank and the plain mean.
A percentile that the estimate does not reach, since the longest times are censored, is the longest age: a lower bound.

Durations are upper bounds of the buckets of `eventlog.schema.bucket_of`: at most 0.8 % too high.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from qsctl.eventlog.schema import bucket_bounds_ns, bucket_of
from qsctl.instant import Nanoseconds

PERCENTILES: Final[Mapping[str, tuple[int, int]]] = {
    "p50": (50, 100), "p90": (90, 100), "p95": (95, 100), "p99": (99, 100), "p999": (999, 1000),
}  # fmt: skip
"""Each as an exact fraction: a rank computed from 0.999 would be one off now and then."""


@dataclass(slots=True)
class DoneTimes:
    """Mergeable histograms of a queue's times to acknowledgment and of the ages of its unfinished messages."""

    done: dict[int, int] = field(default_factory=dict)
    """Acknowledged messages by bucket."""
    unfinished: dict[int, int] = field(default_factory=dict)
    """Messages without an acknowledgment, by the bucket of their age."""
    sum_ns: int = 0
    longest_ns: Nanoseconds = 0
    """The longest time from arrival to acknowledgment."""
    oldest_ns: Nanoseconds = 0
    """The age of the oldest unfinished message."""

    @property
    def done_messages(self) -> int:
        """Return the number of acknowledged messages."""
        return sum(self.done.values())

    @property
    def unfinished_messages(self) -> int:
        """Return the number of messages without an acknowledgment."""
        return sum(self.unfinished.values())

    @property
    def max_ns(self) -> Nanoseconds | None:
        """The longest time to acknowledgment or age of an unfinished message; None where no message arrived."""
        return max(self.longest_ns, self.oldest_ns) if self.done or self.unfinished else None

    def add(self, row: Mapping[str, Any]) -> None:
        """Add the histograms of a row of `eventlog.schema.COUNTERS` of a queue whose messages are acknowledged."""
        for into, name in ((self.done, "done"), (self.unfinished, "unfinished")):
            for bucket, count in zip(row[f"{name}_bucket"], row[f"{name}_count"], strict=True):
                into[bucket] = into.get(bucket, 0) + count
        self.sum_ns += row["done_sum_ns"]
        self.longest_ns = max(self.longest_ns, row["done_max_ns"])
        self.oldest_ns = max(self.oldest_ns, row["unfinished_max_ns"])

    def note(self, time_ns: Nanoseconds | None, age_ns: Nanoseconds) -> None:
        """Add a message by its time to acknowledgment; where that is None, as an unfinished one by its age."""
        duration_ns = max(0, age_ns) if time_ns is None else time_ns
        into = self.unfinished if time_ns is None else self.done
        bucket = bucket_of(duration_ns)
        into[bucket] = into.get(bucket, 0) + 1
        if time_ns is None:
            self.oldest_ns = max(self.oldest_ns, duration_ns)
        else:
            self.sum_ns += duration_ns
            self.longest_ns = max(self.longest_ns, duration_ns)

    def figures(self) -> dict[str, Any]:
        """Return the `done_…` fields and the message counts by their names in `sim.figures.Figures`."""
        left = list(self._left())
        return {
            "done_messages": self.done_messages,
            "unfinished_messages": self.unfinished_messages,
            "done_mean_ns": self._mean_ns(left),
            **{f"done_{name}_ns": self._percentile(*PERCENTILES[name], left) for name in ("p50", "p90", "p99", "p999")},
            "done_max_ns": self.max_ns,
        }

    def percentile(self, part: int, whole: int) -> Nanoseconds | None:
        """Return the time by which a fraction `part` ÷ `whole` of the messages is acknowledged; None without a message.

        A lower bound where too many messages are unfinished to estimate it.
        """
        return self._percentile(part, whole, self._left())

    def _percentile(self, part: int, whole: int, left: Iterable[tuple[Nanoseconds, float]]) -> Nanoseconds | None:
        if not self.done and not self.unfinished:
            return None
        bound = max(self.longest_ns, self.oldest_ns)
        if not self.unfinished:
            rank, up_to = -(-self.done_messages * part // whole), 0
            for bucket, count in sorted(self.done.items()):
                up_to += count
                if up_to >= rank:
                    return min(bucket_bounds_ns(bucket)[1], bound)
        limit = 1.0 - part / whole
        for time_ns, not_done in left:
            if not_done <= limit * (1.0 + 1e-12):
                return min(time_ns, bound)
        return bound

    def mean_ns(self) -> float | None:
        """Return the mean time to acknowledgment; None without a message.

        A lower bound where messages are unfinished: their times end at the oldest age.
        """
        return self._mean_ns(self._left())

    def _mean_ns(self, times: Iterable[tuple[Nanoseconds, float]]) -> float | None:
        if not self.done and not self.unfinished:
            return None
        if not self.unfinished:
            return self.sum_ns / self.done_messages
        area, before_ns, left = 0.0, 0, 1.0
        for time_ns, after in times:
            area += left * (time_ns - before_ns)
            before_ns, left = time_ns, after
        return area + left * max(0, self.oldest_ns - before_ns)

    def _left(self) -> Iterable[tuple[Nanoseconds, float]]:
        """Yield each time of acknowledgment, ascending, with the estimated fraction that is unfinished after it."""
        there, left = self.done_messages + self.unfinished_messages, 1.0
        for bucket in sorted(self.done.keys() | self.unfinished.keys()):
            count = self.done.get(bucket, 0)
            if count:
                left *= 1.0 - count / there
                yield bucket_bounds_ns(bucket)[1], left
            there -= count + self.unfinished.get(bucket, 0)
