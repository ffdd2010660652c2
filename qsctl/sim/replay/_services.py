"""The service times and answers of recorded consumers, and the draws from them for other deliveries.

A service does not observe a consumer's work, only deliveries and answers. Our reading: a consumer serves one sample at
a time, in the order of its answers. So a service time lasts from the sending, or from the previous answer where that
was later, to the answer. For an idle consumer it includes the network's round trip; for a busy one, the next sample had
arrived already. The difference of the two is estimated and subtracted.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from qsctl.core.messages import AckResponse
from qsctl.eventlog.recording.schema import DeliveryAnswer
from qsctl.instant import MILLISECOND_NS, Nanoseconds
from qsctl.sim.kernel.random import stream_key, uniform
from qsctl.sim.replay.recording import Delivered, Recorded

SampleKey: TypeAlias = tuple[int, int]
"""Producer and sequence number."""

AttemptKey: TypeAlias = tuple[int, int, int]
"""Producer, sequence number, attempt."""

_ROUND_TRIP_SAMPLES_MIN: Final = 50
_ROUND_TRIP_MAX_NS: Final = 5 * MILLISECOND_NS
_DECILE: Final = 10
_SAME_SHARE_SIGMAS: Final = 3.0


class Served(NamedTuple):
    """A recorded consumer's handling of one delivery; `reply_ns` is None where no answer was recorded."""

    delivery: Delivered
    reply_ns: Nanoseconds | None
    reply_step: int
    response: AckResponse | None
    """The answer as the queue processed it."""
    meant: AckResponse | None
    """The intended answer, where known: the consumer's answer to this sample in any queue."""
    service_ns: Nanoseconds
    found_idle: bool
    is_cut_off: bool
    """Whether the outcome is unknown: the recording ended, the consumer left, or it held the sample already."""

    @property
    def is_foretold(self) -> bool:
        """Return whether it was answered in the turn that sent it.

        It was then an answer to an earlier delivery of the same sample.
        """
        return self.reply_ns is not None and self.reply_ns == self.delivery.sent_ns

    @property
    def is_answer(self) -> bool:
        """Return whether an answer and its service time are known."""
        return self.meant is not None and not self.is_cut_off


class Drawn(NamedTuple):
    """A drawn service: its duration and its answer, None for no answer."""

    service_ns: Nanoseconds
    response: AckResponse | None


@dataclass(frozen=True, slots=True)
class _Pool:
    """Recorded services to draw from, by the octave of the sample's size."""

    by_octave: dict[int, list[Drawn]]

    def draw(self, size_bytes: int, chance: float) -> Drawn:
        """Return the service at the quantile `chance` among those of the nearest octave."""
        octave = size_bytes.bit_length()
        nearest = min(self.by_octave, key=lambda each: (abs(each - octave), each))
        choices = self.by_octave[nearest]
        return choices[min(len(choices) - 1, int(chance * len(choices)))]


class Services:
    """The recorded services of one queue's consumers.

    Args:
        recorded: the recording.
        queue: the queue's full name.
        seed, replication: keys of the random draws.
    """

    def __init__(self, recorded: Recorded, queue: str, seed: int, replication: int) -> None:
        rows = [row for row in recorded.deliveries if row.queue == queue]
        sizes = {(row.producer, row.sequence_number): row.size_bytes for row in recorded.arrivals if row.queue == queue}
        leaving = {(row.peer, row.at_ns) for row in recorded.peers if row.queue == queue}
        by_consumer: dict[int, list[Delivered]] = {}
        for row in rows:
            by_consumer.setdefault(row.consumer, []).append(row)
        self._queue = queue
        self._seed = seed
        self._replication = replication
        self._keys: dict[object, Any] = {}
        last_seen: dict[SampleKey, Nanoseconds] = {}
        for row in rows:
            key = (row.producer, row.sequence_number)
            last_seen[key] = max(last_seen.get(key, 0), row.sent_ns, row.answered_ns or 0)
        self.served: dict[int, list[Served]] = {
            consumer: _served(each, leaving, last_seen) for consumer, each in by_consumer.items()
        }
        every = [each for consumer in self.served.values() for each in consumer]
        self.round_trip_ns = _round_trip(every)
        self._pools = {consumer: self._pool(each, sizes) for consumer, each in self.served.items()}
        self._pool_of_all = self._pool(every, sizes)
        self.services_follow_samples = not _take_differently_long(self.served.values())
        """Whether the consumers take alike: then another consumer takes as long for a sample as the recorded one."""
        self._own: dict[AttemptKey, Drawn] = {}
        """The service time of each recorded delivery, less the round trip, and its answer."""
        self.answers_follow_samples = not _differ(self.served.values())
        """Whether the consumers refuse alike: then another consumer answers a sample as the recorded one did."""
        for each in every:
            row = each.delivery
            if not each.is_cut_off:
                drawn = Drawn(self._alone_ns(each), each.meant)
                self._own.setdefault((row.producer, row.sequence_number, row.attempt), drawn)

    def recorded(self, each: Served, *, finds_idle: bool) -> Drawn:
        """Return a recorded service, converted to that of a consumer that is idle, or busy, when the sample is sent."""
        if each.found_idle == finds_idle or not self.round_trip_ns:
            return Drawn(each.service_ns, each.meant)
        change = self.round_trip_ns if finds_idle else -self.round_trip_ns
        return Drawn(max(0, each.service_ns + change), each.meant)

    def draw(
        self,
        consumer: int,
        copy: int,
        key: AttemptKey,
        size_bytes: int,
        *,
        finds_idle: bool,
        origin: AttemptKey | None = None,
    ) -> Drawn:
        """Return the service of a delivery that was not recorded of this consumer; its copies draw independently.

        The draw depends on the consumer and the delivery alone: an additional delivery elsewhere changes nothing.
        `origin` is the recorded delivery of the same sample, where the load is resampled.
        """
        pool = self._pools.get(consumer) or self._pool_of_all
        if pool is None:
            return Drawn(0, AckResponse.ACCEPTED)  # there was no answer: the least service time, with a note
        name = (consumer, copy, key[0])
        stream = self._keys.get(name)
        if stream is None:
            stream = self._keys[name] = np.uint64(
                stream_key(self._seed, self._replication, "replay", self._queue, *name)
            )
        drawn = pool.draw(size_bytes, float(uniform(stream, key[1] * 64 + min(key[2], 63))))
        own = self._own.get(key if origin is None else origin, drawn)
        response = own.response if self.answers_follow_samples else drawn.response
        service_ns = own.service_ns if self.services_follow_samples else drawn.service_ns
        if finds_idle and response is not None:
            service_ns += self.round_trip_ns
        return Drawn(service_ns, response)

    def _alone_ns(self, each: Served) -> Nanoseconds:
        """Return a recorded service time without the network's round trip."""
        return max(0, each.service_ns - (self.round_trip_ns if each.found_idle else 0))

    def _pool(self, served: Iterable[Served], sizes: dict[SampleKey, int]) -> _Pool | None:
        """Return the services without the round trip, sorted, so that a draw increases with the chance."""
        by_octave: dict[int, list[Drawn]] = {}
        for each in served:
            if each.is_cut_off:
                continue
            row = each.delivery
            octave = sizes.get((row.producer, row.sequence_number), 0).bit_length()
            by_octave.setdefault(octave, []).append(Drawn(self._alone_ns(each), each.meant))
        for choices in by_octave.values():
            choices.sort(key=lambda drawn: (drawn.service_ns, -1 if drawn.response is None else int(drawn.response)))
        return _Pool(by_octave) if by_octave else None


def _served(
    rows: list[Delivered],
    leaving: set[tuple[int, Nanoseconds]],
    last_seen: Mapping[SampleKey, Nanoseconds],
) -> list[Served]:
    """Return the deliveries of one consumer, in the order of its answers, then the unanswered ones.

    A consumer that receives a sample that it still holds has held it since the first delivery: service time and final
    answer belong to that delivery, and those of the others are unknown.
    """
    replies = []
    holds: dict[SampleKey, Delivered] = {}
    for row in sorted(rows, key=lambda each: each.step):
        reply_ns, reply_step, response = _reply(row, leaving)
        first = holds.pop((row.producer, row.sequence_number), row)
        if reply_ns is None and row.answer == DeliveryAnswer.TIMED_OUT:
            holds[row.producer, row.sequence_number] = first
        replies.append((reply_ns, reply_step, response, row, first))
    answered_later = {first.step for reply_ns, _, _, row, first in replies if reply_ns is not None and first is not row}
    replies.sort(key=lambda each: (each[0] is None, each[0] or 0, each[1]))
    found: list[Served] = []
    before_ns: Nanoseconds | None = None
    for reply_ns, reply_step, response, row, first in replies:
        if reply_ns is None:
            if row.step not in answered_later:
                is_silence = row.answer == DeliveryAnswer.TIMED_OUT and first is row
                found.append(Served(row, None, reply_step, None, None, 0, True, not is_silence))
            continue
        found_idle = before_ns is None or before_ns <= first.sent_ns
        begun_ns = first.sent_ns if found_idle or before_ns is None else before_ns
        service_ns, before_ns = reply_ns - begun_ns, reply_ns
        meant = response
        if row.late_ns == reply_ns and last_seen[row.producer, row.sequence_number] <= reply_ns:
            meant = AckResponse.ACCEPTED  # the sample was gone: no row has its refusal, and few are refused
        found.append(Served(row, reply_ns, reply_step, response, meant, service_ns, found_idle, first is not row))
        if first is not row:
            found.append(Served(first, None, first.step, None, meant, service_ns, found_idle, False))
    return found


def _reply(row: Delivered, leaving: set[tuple[int, Nanoseconds]]) -> tuple[Nanoseconds | None, int, AckResponse | None]:
    """Return the instant of the consumer's own answer, its step, and the answer; None where it sent none."""
    step = row.answered_step or 0
    match row.answer:
        case DeliveryAnswer.ACKNOWLEDGED:
            return row.answered_ns, step, AckResponse.ACCEPTED
        case DeliveryAnswer.REJECTED:
            return row.answered_ns, step, AckResponse.REJECTED
        case DeliveryAnswer.HANDED_BACK if (row.consumer, row.answered_ns) not in leaving:
            return row.answered_ns, step, AckResponse.RETURNED
    if row.late_ns is not None:
        # One that is too late to change anything is taken like a rejection.
        response = AckResponse.ACCEPTED if row.late_retired else AckResponse.REJECTED
        return row.late_ns, row.late_step or 0, response
    return None, step, None


def _round_trip(served: Iterable[Served]) -> Nanoseconds:
    """Return the extra time of a service that begins with a sending, in nanoseconds; 0 where too few are known."""
    idle: list[Nanoseconds] = []
    busy: list[Nanoseconds] = []
    for each in served:
        if each.is_answer:
            (idle if each.found_idle else busy).append(each.service_ns)
    if min(len(idle), len(busy)) < _ROUND_TRIP_SAMPLES_MIN:
        return 0
    low_idle, low_busy = (sorted(values)[len(values) // _DECILE] for values in (idle, busy))
    return max(0, min(_ROUND_TRIP_MAX_NS, low_idle - low_busy))


def _differ(consumers: Iterable[list[Served]]) -> bool:
    """Return whether the fractions of samples not accepted differ significantly between consumers."""
    counts = []
    for served in consumers:
        known = [each for each in served if not each.is_cut_off]
        if known:
            counts.append((sum(each.meant is not AckResponse.ACCEPTED for each in known), len(known)))
    total, failed = sum(count for _, count in counts), sum(bad for bad, _ in counts)
    if len(counts) < 2 or failed in {0, total}:
        return False
    share = failed / total
    chi_square = sum((bad - count * share) ** 2 / (count * share * (1 - share)) for bad, count in counts)
    freedom = len(counts) - 1
    return chi_square > freedom + _SAME_SHARE_SIGMAS * math.sqrt(2 * freedom)


def _take_differently_long(consumers: Iterable[list[Served]]) -> bool:
    """Return whether the mean service times of consumers differ significantly."""
    times = [[each.service_ns for each in served if each.is_answer] for served in consumers]
    every = [service_ns for each in times for service_ns in each]
    if len(every) < 2:
        return False
    mean, spread = statistics.fmean(every), statistics.pstdev(every)
    bounds = [_SAME_SHARE_SIGMAS * spread / math.sqrt(len(each)) if each else math.inf for each in times]
    means = [statistics.fmean(each) if each else mean for each in times]
    return any(abs(one - mean) > bound for one, bound in zip(means, bounds, strict=True))
