"""Response time-outs and delivery attempts [QS 2.9, Table 2.1].

Decides: when a consumer's answer is overdue, and whether a failed delivery is followed by another.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from itertools import islice
from typing import Final

from qsctl.core.events import ReturnReason
from qsctl.core.queue._run import SentRange
from qsctl.core.queue.consumer import SentSamples
from qsctl.core.queue.sample import Cause, Sample
from qsctl.core.queue.settings import RedeliverySettings
from qsctl.identity import NIL_GUID
from qsctl.instant import INFINITE_NS, Nanoseconds, later

FAILURES: Final[dict[ReturnReason, Cause]] = {
    ReturnReason.REJECTED: Cause.REJECT,
    ReturnReason.TIMED_OUT: Cause.TIME_OUT,
    ReturnReason.CONSUMER_LEFT: Cause.TIME_OUT,
}
"""Our reading: a vanished consumer will not answer, so its samples are treated as timed out."""

PAST_HOLDERS_MAX: Final = 16
"""Number of former holders of a sample whose late acknowledgment is recognized, the latest ones."""


class Redelivery:
    """The deliveries in progress, in the order in which their answers fall due.

    The time-out is the same for all samples of a queue and time does not run backwards, so the order of sending is the
    order of the deadlines: an ordered dictionary serves as a heap without stale entries.
    """

    __slots__ = ("_attempts_max", "_in_flight", "response_timeout_ns")

    def __init__(self, settings: RedeliverySettings) -> None:
        self._set(settings)
        self._in_flight: OrderedDict[int | SentRange, Sample | SentRange] = OrderedDict()
        """Samples by position, and sendings of runs. An ended sending stays until it is the first entry."""

    def _set(self, settings: RedeliverySettings) -> None:
        retries = settings.max_delivery_retries
        self._attempts_max = retries + 1 if retries >= 0 else INFINITE_NS
        self.response_timeout_ns = settings.response_timeout_ns

    def change(self, settings: RedeliverySettings, outstanding: Iterable[Sample]) -> None:
        """Apply changed settings, also to deliveries in progress: each is due the new time-out after its sending.

        A sample that has already spent the new number of attempts is given up when its next delivery fails, not before.

        Args:
            settings: the new settings.
            outstanding: the samples that consumers hold; read only if there was no time-out before. Our reading: of
                samples sent at one instant, the one enqueued first is due first.
        """
        was_finite = self.response_timeout_ns < INFINITE_NS
        self._set(settings)
        if self.response_timeout_ns >= INFINITE_NS:
            self._in_flight.clear()
        elif not was_finite:
            for sample in sorted(outstanding, key=lambda each: (each.sent_at_ns, each.position)):
                self.start(sample)

    def start(self, sample: Sample) -> None:
        """Start a sample's response time-out; call it only if `response_timeout_ns` is finite."""
        self._in_flight[sample.position] = sample

    def start_sending(self, sending: SentRange) -> None:
        """Start the response time-outs of samples of a run; call it only if `response_timeout_ns` is finite."""
        self._in_flight[sending] = sending

    def end_sending(self, sending: SentRange) -> None:
        """Stop the response time-outs of samples of a run, all of which were answered."""
        self._in_flight.pop(sending, None)

    def single_out(self, sendings: Iterable[SentSamples]) -> None:
        """Single out the samples that are being delivered in these sendings; they keep their order."""
        singled_out = {sending: sending.single_out() for sending in sendings}
        if not singled_out or self.response_timeout_ns >= INFINITE_NS:
            return
        in_flight = self._in_flight
        self._in_flight = OrderedDict()
        for key, entry in in_flight.items():
            if type(entry) is SentRange and entry in singled_out:
                self._in_flight.update((sample.position, sample) for sample in singled_out[entry])
            else:
                self._in_flight[key] = entry

    def end(self, sample: Sample) -> None:
        """Stop the response time-out of a sample that was answered, or whose answer is no longer awaited."""
        self._in_flight.pop(sample.position, None)

    def next_deadline(self) -> Nanoseconds:
        """Return the instant at which the first answer is overdue; `INFINITE_NS`: none is awaited."""
        in_flight = self._in_flight
        while in_flight:
            first = next(iter(in_flight.values()))
            if type(first) is SentRange and not first.left_count:
                in_flight.popitem(last=False)
            else:
                return later(first.sent_at_ns, self.response_timeout_ns)
        return INFINITE_NS

    def overdue(self, now: Nanoseconds, count_max: int = INFINITE_NS) -> list[Sample]:
        """Return at most `count_max` samples whose answer is overdue at `now`, longest waiting first."""
        late: list[Sample] = []
        sendings: list[SentRange] = []
        count = 0
        for entry in self._in_flight.values():
            if count >= count_max or later(entry.sent_at_ns, self.response_timeout_ns) > now:
                break
            if type(entry) is SentRange:
                sendings.append(entry)
                count += entry.left_count
            else:
                count += 1
        self.single_out(sendings)
        for entry in islice(self._in_flight.values(), min(count, count_max)):
            assert type(entry) is Sample
            late.append(entry)
        return late

    def are_attempts_spent(self, sample: Sample) -> bool:
        """Return whether MAX_ATTEMPTS = `max_delivery_retries` + 1 deliveries have failed; the first is not a retry."""
        return sample.attempts >= self._attempts_max


def note_failure(sample: Sample, reason: ReturnReason) -> None:
    """Update a sample after a failed delivery: count the attempt, and clear its holder.

    A rejection means that the consumer did not process the sample. After a time-out this is unknown, so the sample is
    flagged as redelivered: it may be a duplicate for the next consumer.
    """
    sample.move(FAILURES[reason])
    sample.attempts += 1
    if reason is not ReturnReason.REJECTED:
        sample.redelivered = True
    release(sample)


def release(sample: Sample) -> None:
    """Clear the holder of a sample and remember it as a past one, which may still acknowledge it late."""
    former = tuple(guid for guid in sample.past_holders if guid != sample.holder)[1 - PAST_HOLDERS_MAX :]
    sample.past_holders = (*former, sample.holder)
    sample.holder = NIL_GUID
    sample.sent_at_ns = 0
