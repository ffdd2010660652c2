"""The producers of a replay: their samples, the instants of the writes, and the effect of answers on these.

A sample is written at its recorded instant, unless the producer's window is full of writes that a queue has not
answered. A producer whose recorded writes followed answers, with a window that was full again and again, writes the
next sample with the recorded delay after an answer. A sample that was written again after a refusal is written again
only if it is refused again; one that is refused only in the replay is written again as often as the recorded refused
ones were.
"""

from __future__ import annotations

import statistics
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np

from qsctl.eventlog.recording.schema import ArrivalAnswer
from qsctl.instant import INFINITE_NS, Nanoseconds
from qsctl.sim.kernel.random import stream_key, uniform
from qsctl.sim.replay._consumers import UNRECORDED_STEP
from qsctl.sim.replay.recording import RecordedArrival

_WAITING_SHARE: Final = 0.8
"""Fraction of its writes after which a producer with a full window counts as one that waits for answers."""

_WAITING_SAMPLES_MIN: Final = 20

_ACCEPTED: Final = frozenset({ArrivalAnswer.ENQUEUED.value, ArrivalAnswer.DUPLICATE.value})


class Offer(NamedTuple):
    """A write that reaches a queue."""

    at_ns: Nanoseconds
    step: int
    row: RecordedArrival


@dataclass(slots=True)
class _ReplayedSample:
    """A sample with the rows of its first writes, one for each queue that accepted it."""

    rows: list[RecordedArrival]
    at_ns: Nanoseconds
    after_completion: int | None = None
    """Number of answered samples after which it was written, with `lag_ns`; None: at the time of the program's
    choice.
    """
    lag_ns: Nanoseconds = 0

    def answered_ns(self, acknowledging: Callable[[str], bool]) -> Nanoseconds | None:
        """Return the instant at which the last of its queues answered; None where none of them answers producers.

        INFINITE_NS where one of them did not answer.
        """
        awaited = [row.answered_ns for row in self.rows if acknowledging(row.queue)]
        return max((INFINITE_NS if each is None else each for each in awaited), default=None)


@dataclass(frozen=True, slots=True)
class Persistence:
    """The frequency and the delays of repeated writes after refusals."""

    refused: int
    delays_ns: tuple[Nanoseconds, ...]

    @property
    def share(self) -> float:
        """The fraction of refusals after which the sample was written again."""
        return min(1.0, len(self.delays_ns) / self.refused) if self.refused else 0.0


@dataclass(slots=True)
class Writer:
    """One producer of a replay.

    `acknowledging` returns whether a queue answers producers: only such answers are awaited.
    """

    number: int
    acknowledging: Callable[[str], bool]
    window_count: int
    persistence: Persistence
    random_key: Any
    samples: list[_ReplayedSample]
    repeats: list[RecordedArrival]
    """Recorded repetitions of a sample's write to a queue."""
    is_waiting_kind: bool = False
    """Whether the recording shows that it waits for answers before it writes."""
    presence: int = 0
    """Number of departures; writes scheduled before the latest one are void."""
    _next: int = 0
    _is_scheduled: bool = False
    _earliest_ns: Nanoseconds = 0
    _open: dict[int, set[str]] = field(default_factory=dict)
    _completions: list[Nanoseconds] = field(default_factory=list)
    _drawn: int = 0
    _firsts: dict[tuple[str, int], RecordedArrival] = field(init=False)

    def __post_init__(self) -> None:
        self._firsts = {(row.queue, row.sequence_number): row for sample in self.samples for row in sample.rows}

    def schedule(self, now: Nanoseconds) -> tuple[Nanoseconds, int] | None:
        """Return the instant and the step of the next write; None where it waits for an answer, or no sample is left.

        To be called at the beginning, after `write`, and when `answered` returned True.
        """
        if self._is_scheduled or self._next >= len(self.samples):
            return None
        sample = self.samples[self._next]
        due_ns = sample.at_ns
        if sample.after_completion is not None:
            if len(self._completions) < sample.after_completion:
                return None
            due_ns = self._completions[sample.after_completion - 1] + sample.lag_ns
        elif 0 <= self.window_count <= len(self._open):
            return None
        self._is_scheduled = True
        self._earliest_ns = max(now, due_ns, self._earliest_ns)
        step = sample.rows[0].step if self._earliest_ns == sample.at_ns else UNRECORDED_STEP
        return self._earliest_ns, step

    def write(self, now: Nanoseconds) -> list[Offer]:
        """Write the next sample; return its write to each queue, at `now` or as much later as was recorded."""
        sample = self.samples[self._next]
        self._next += 1
        self._is_scheduled = False
        awaited = {row.queue for row in sample.rows if self.acknowledging(row.queue)}
        if awaited:
            self._open[sample.rows[0].sequence_number] = awaited
        late_ns = now - sample.at_ns
        return [Offer(row.at_ns + late_ns, UNRECORDED_STEP if late_ns else row.step, row) for row in sample.rows]

    def answered(self, now: Nanoseconds, queue: str, sequence_number: int) -> bool:
        """Record a queue's answer to a sample; return whether it was the last one awaited."""
        awaited = self._open.get(sequence_number)
        if awaited is None:
            return False
        awaited.discard(queue)
        if awaited:
            return False
        del self._open[sequence_number]
        self._completions.append(now)
        return True

    def leave(self, now: Nanoseconds) -> None:
        """Skip the samples that were to be written up to `now`, and stop waiting for answers."""
        while self._next < len(self.samples) and self.samples[self._next].at_ns <= now:
            self._next += 1
        self._open.clear()
        self._is_scheduled = False
        self.presence += 1

    def first_write(self, queue: str, sequence_number: int) -> RecordedArrival | None:
        """Return the recorded write of a sample to a queue."""
        return self._firsts.get((queue, sequence_number))

    def writes_again_after(self) -> Nanoseconds | None:
        """Return the delay after which a sample is written again that only the replay refused; None if it is not.

        Both are drawn from the producer's recorded refusals.
        """
        if not self.persistence.delays_ns:
            return None
        chances = [float(uniform(self.random_key, 2 * self._drawn + place)) for place in (0, 1)]
        self._drawn += 1
        if chances[0] >= self.persistence.share:
            return None
        delays = self.persistence.delays_ns
        return delays[min(len(delays) - 1, int(chances[1] * len(delays)))]


def writers_of(
    rows: Sequence[RecordedArrival],
    acknowledging: Callable[[str], bool],
    window_count: int,
    seed: int,
    replication: int,
) -> dict[int, Writer]:
    """Return the producers of these arrivals by number; `rows` must be in the order of their steps."""
    by_producer: dict[int, list[RecordedArrival]] = {}
    for row in rows:
        by_producer.setdefault(row.producer, []).append(row)
    seen = {number: _persistence(each) for number, each in by_producer.items()}
    everybody = Persistence(
        sum(each.refused for each in seen.values()), tuple(sorted(d for each in seen.values() for d in each.delays_ns))
    )
    return {
        number: _writer(
            number,
            each,
            acknowledging,
            window_count,
            seen[number] if seen[number].refused else everybody,
            np.uint64(stream_key(seed, replication, "replay", "producer", number)),
        )
        for number, each in by_producer.items()
    }


def was_accepted(row: RecordedArrival) -> bool:
    """Return whether the queue accepted a recorded write."""
    return row.answer in _ACCEPTED


def _writer(
    number: int,
    rows: Sequence[RecordedArrival],
    acknowledging: Callable[[str], bool],
    window_count: int,
    persistence: Persistence,
    random_key: Any,
) -> Writer:
    firsts: dict[int, list[RecordedArrival]] = {}
    repeats: list[RecordedArrival] = []
    for row in rows:
        first = firsts.setdefault(row.sequence_number, [])
        if any(each.queue == row.queue for each in first):
            repeats.append(row)
        else:
            first.append(row)
    samples = [_ReplayedSample(each, each[0].at_ns) for each in firsts.values()]
    samples.sort(key=lambda sample: (sample.at_ns, sample.rows[0].step))
    completions, most = _completions(samples, acknowledging)
    waits = _waits(samples, completions, most, acknowledging)
    if waits:
        for place, sample in enumerate(samples):
            if place >= most and completions[place - most] <= sample.at_ns:
                sample.after_completion = place - most + 1
                sample.lag_ns = sample.at_ns - completions[place - most]
        window_count = most
    elif 0 <= window_count < most:
        window_count = most
    return Writer(number, acknowledging, window_count, persistence, random_key, samples, repeats, waits)


def _completions(
    samples: Sequence[_ReplayedSample], acknowledging: Callable[[str], bool]
) -> tuple[list[Nanoseconds], int]:
    """Return the sorted instants at which samples were answered, and the maximum number of unanswered samples."""
    changes: list[tuple[Nanoseconds, int, int]] = []
    for sample in samples:
        answered_ns = sample.answered_ns(acknowledging)
        if answered_ns is None:
            continue
        # At one instant answers to earlier writes come first, then writes, then the answers to these.
        changes.append((sample.at_ns, 1, 1))
        if answered_ns < INFINITE_NS:
            changes.append((answered_ns, 2 if answered_ns == sample.at_ns else 0, -1))
    unanswered = most = 0
    for _, _, change in sorted(changes):
        unanswered += change
        most = max(most, unanswered)
    return sorted(at_ns for at_ns, _, change in changes if change < 0), most


def _waits(
    samples: Sequence[_ReplayedSample],
    completions: Sequence[Nanoseconds],
    most: int,
    acknowledging: Callable[[str], bool],
) -> bool:
    """Return whether the answers set a producer's pace.

    Its window is full after most of its writes, and the time from an answer to the next write varies less than the
    time from write to write: it does where a program waits for the answer, and does not where it goes by a clock.
    """
    if most < 1 or len(samples) < _WAITING_SAMPLES_MIN + most:
        return False
    lags, gaps = [], []
    for place in range(max(1, most), len(samples)):
        sample = samples[place]
        answered = bisect_right(completions, sample.at_ns) - (sample.answered_ns(acknowledging) == sample.at_ns)
        if place - answered == most - 1:
            lags.append(sample.at_ns - completions[place - most])
            gaps.append(sample.at_ns - samples[place - 1].at_ns)
    if len(lags) < max(_WAITING_SAMPLES_MIN, round(_WAITING_SHARE * (len(samples) - most))):
        return False
    return statistics.pstdev(lags) < statistics.pstdev(gaps)


def _persistence(rows: Sequence[RecordedArrival]) -> Persistence:
    """Return the frequency and the delays with which a producer wrote refused samples again."""
    refused, delays = 0, []
    latest: Mapping[tuple[str, int], RecordedArrival]
    latest = {}
    for row in rows:
        place = (row.queue, row.sequence_number)
        before = latest.get(place)
        if before is not None and before.answer == ArrivalAnswer.BOUNCED and before.answered_ns is not None:
            delays.append(max(0, row.at_ns - before.answered_ns))
        refused += row.answer == ArrivalAnswer.BOUNCED
        latest[place] = row
    return Persistence(refused, tuple(sorted(delays)))
