"""Answers that do not come, and attempts that are left [QS 2.9, Table 2.1].

Decides: when a consumer's answer is overdue, and whether a failed delivery is followed by another.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from itertools import islice
from typing import Final

from qsctl.core.events import ReturnReason
from qsctl.core.queue.sample import Cause, Sample
from qsctl.core.queue.settings import RedeliverySettings
from qsctl.identity import NIL_GUID
from qsctl.instant import INFINITE_NS, Nanoseconds, later

FAILURES: Final[dict[ReturnReason, Cause]] = {
    ReturnReason.REJECTED: Cause.REJECT,
    ReturnReason.TIMED_OUT: Cause.TIME_OUT,
    ReturnReason.CONSUMER_LEFT: Cause.TIME_OUT,
}
"""Our reading: a vanished consumer is one that will not answer, so its samples take the way of the time-out."""

PAST_HOLDERS_MAX: Final = 16
"""Former holders whose late acknowledgment is recognized, the latest ones."""


class Redelivery:
    """Samples in flight, in the order in which their answers fall due.

    The time-out is the same for all samples of a queue and time does not run backwards, so the order of sending is the
    order of the deadlines: an ordered dictionary does the work of a heap, without dead entries.
    """

    __slots__ = ("_attempts_max", "_in_flight", "response_timeout_ns")

    def __init__(self, settings: RedeliverySettings) -> None:
        self._set(settings)
        self._in_flight: OrderedDict[int, Sample] = OrderedDict()

    def _set(self, settings: RedeliverySettings) -> None:
        retries = settings.max_delivery_retries
        self._attempts_max = retries + 1 if retries >= 0 else INFINITE_NS
        self.response_timeout_ns = settings.response_timeout_ns

    def change(self, settings: RedeliverySettings, outstanding: Iterable[Sample]) -> None:
        """Obey other settings, deliveries in progress included: each is due the new time-out after its sending.

        A sample that has spent the new number of attempts fails for good when its next delivery fails, not before.

        Args:
            settings: the new settings.
            outstanding: the samples that consumers hold; read where no answer was due before. Our reading: of samples
                sent at one instant, the one enqueued first is due first.
        """
        was_finite = self.response_timeout_ns < INFINITE_NS
        self._set(settings)
        if self.response_timeout_ns >= INFINITE_NS:
            self._in_flight.clear()
        elif not was_finite:
            for sample in sorted(outstanding, key=lambda each: (each.sent_at_ns, each.position)):
                self.start(sample)

    def start(self, sample: Sample) -> None:
        """Wait for an answer; only needed where `response_timeout_ns` is finite."""
        self._in_flight[sample.position] = sample

    def end(self, sample: Sample) -> None:
        """Forget a sample whose answer came, or is no longer awaited."""
        self._in_flight.pop(sample.position, None)

    def next_deadline(self) -> Nanoseconds:
        """Return when the first answer falls due; `INFINITE_NS` when none is awaited."""
        for sample in self._in_flight.values():
            return later(sample.sent_at_ns, self.response_timeout_ns)
        return INFINITE_NS

    def overdue(self, now: Nanoseconds, count_max: int = INFINITE_NS) -> list[Sample]:
        """Return the samples whose answer is due at `now` and has not come, longest waiting first; at most the given
        number.
        """
        late: list[Sample] = []
        for sample in islice(self._in_flight.values(), min(count_max, len(self._in_flight))):
            if later(sample.sent_at_ns, self.response_timeout_ns) > now:
                break
            late.append(sample)
        return late

    def are_attempts_spent(self, sample: Sample) -> bool:
        """Return whether MAX_ATTEMPTS = `max_delivery_retries` + 1 deliveries have failed: the first is not a retry."""
        return sample.attempts >= self._attempts_max


def note_failure(sample: Sample, reason: ReturnReason) -> None:
    """Mark a failed delivery on the sample: one attempt more, no consumer holds it now.

    A rejection means that the consumer did not process the sample. After a time-out that is unknown, so the sample may
    be a duplicate for the next consumer.
    """
    sample.move(FAILURES[reason])
    sample.attempts += 1
    if reason is not ReturnReason.REJECTED:
        sample.redelivered = True
    release(sample)


def release(sample: Sample) -> None:
    """Take a sample away from its holder, who may still acknowledge it late."""
    former = tuple(guid for guid in sample.past_holders if guid != sample.holder)[1 - PAST_HOLDERS_MAX :]
    sample.past_holders = (*former, sample.holder)
    sample.holder = NIL_GUID
    sample.sent_at_ns = 0
