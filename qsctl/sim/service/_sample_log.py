"""A queue's events folded into message rows and counters: one row for each sample and queue, at its outcome.

Arrivals, losses and deliveries are folds over the rows: arrivals count by the instant at which a sample entered its
queue, the others by the instant at which it left, if that was after the warm-up. Redeliveries count when they are sent;
`attempts` restarts with the statistics, so that the rows add up to them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from qsctl.core.events import (
    DuplicateDropped,
    Event,
    SampleBounced,
    SampleEnqueued,
    SampleReceived,
    SampleRemoved,
    SampleReturned,
    SampleSent,
)
from qsctl.core.messages import QueueName
from qsctl.core.records import RemovalCause
from qsctl.eventlog.outcomes import Outcome
from qsctl.eventlog.queue_counts import QueueCounts, counter_columns
from qsctl.identity import SampleIdentity
from qsctl.instant import INFINITE_NS, Nanoseconds
from qsctl.sim.model import NEVER, Rows
from qsctl.sim.recording.queue_log import QueueLog
from qsctl.sim.service.peers import HostedQueue, producer_of

_OUTCOME_OF: Final = {
    RemovalCause.DELIVERED: Outcome.DELIVERED,
    RemovalCause.EXPIRED: Outcome.EXPIRED,
    RemovalCause.FAILED_DELIVERY: Outcome.DEAD,
    RemovalCause.FLUSHED: Outcome.DISCARDED,
}


@dataclass(slots=True)
class _Held:
    """A sample in its queue: the instant it was enqueued, and that of its last delivery."""

    enqueued_ns: Nanoseconds
    size_bytes: int
    sent_ns: Nanoseconds = NEVER
    attempts: int = 0


class SampleLog:
    """The event log of a simulated service: rows until they are collected, counters until the end."""

    def __init__(
        self, queues: list[HostedQueue], warm_up_ns: Nanoseconds, delay_ns: Nanoseconds, keeps_rows: bool, rows_max: int
    ) -> None:
        self._log = QueueLog[QueueName](warm_up_ns, keeps_rows=keeps_rows, rows_max=rows_max)
        self._queues = queues
        self._index = {queue.full_name: index for index, queue in enumerate(queues)}
        self._delay_ns = delay_ns
        self._received: dict[tuple[str, SampleIdentity], tuple[Nanoseconds, int]] = {}
        self._held: dict[tuple[str, SampleIdentity], _Held] = {}

    @property
    def is_full(self) -> bool:
        """Return whether the log chunk is full, so that rows are to be collected."""
        return self._log.is_full

    @property
    def is_warm(self) -> bool:
        """Return whether the warm-up is over."""
        return self._log.is_warm

    def counts_of(self, queue: QueueName) -> QueueCounts:
        """Return the counts of a queue."""
        return self._log.of(queue)

    def length_of(self, queue: QueueName) -> int:
        """Return the number of samples in a queue."""
        return sum(name == queue for name, _ in self._held)

    def collect(self) -> Rows:
        """Return the rows since the last call."""
        return self._log.collect()

    def note(self, event: Event) -> None:
        """Fold one event into rows and counters."""
        self._reach(event.at_ns)
        match event:
            case SampleReceived(at_ns, queue, identity, size_bytes):
                assert isinstance(size_bytes, int)
                self._received[queue, identity] = (at_ns, size_bytes)
            case SampleEnqueued(at_ns, queue, identity, size_bytes, _):
                assert isinstance(size_bytes, int)
                self._received.pop((queue, identity), None)
                self._held[queue, identity] = _Held(at_ns, size_bytes)
                self._log.of(queue).grow(size_bytes)
            case SampleSent(at_ns, queue, identity, _, _, _):
                held = self._held[queue, identity]
                held.sent_ns = at_ns
                held.attempts += 1
                if held.attempts > 1:
                    self._log.of(queue).redelivered += 1
            case SampleRemoved(at_ns, queue, identity, cause, size_bytes, _, _):
                assert isinstance(size_bytes, int)
                held = self._held.pop((queue, identity))
                self._log.of(queue).shrink(size_bytes)
                self._removed(at_ns, queue, identity, held, _OUTCOME_OF[cause])
            case SampleBounced(at_ns, queue, identity, _):
                _, size_bytes = self._received.pop((queue, identity), (at_ns, 0))
                self._bounced(at_ns, queue, identity, size_bytes)
            case DuplicateDropped(_, queue, identity):
                self._received.pop((queue, identity), None)
            case SampleReturned(_, queue, _, _, _):
                self._log.of(queue).returned += 1
            case _:
                pass  # the other events add nothing to what is in the rows

    def _bounced(self, at_ns: Nanoseconds, queue: str, identity: SampleIdentity, size_bytes: int) -> None:
        """Log a sample that its queue refused, with a wait of zero."""
        self._end(queue, identity, _Held(at_ns, size_bytes), 0, NEVER, NEVER, Outcome.DISCARDED)

    def hold(self) -> None:
        """End the run: log samples in a queue as held, and those that wait for room in a full one as waiting."""
        for (queue, identity), (at_ns, size_bytes) in self._received.items():
            self._end(queue, identity, _Held(at_ns, size_bytes), NEVER, NEVER, NEVER, Outcome.WAITING)
        for (queue, identity), held in self._held.items():
            self._end(queue, identity, held, NEVER, NEVER, NEVER, Outcome.HELD)
        self._received.clear()
        self._held.clear()

    def returned_counts(self) -> list[int]:
        """Return the failed deliveries of each queue: rejected, timed out, or their consumer left."""
        return [self._log.of(queue.full_name).returned for queue in self._queues]

    def counters(self, client: str, names: list[str], observed_ns: Nanoseconds) -> dict[str, Any]:
        """Return the columns of `eventlog.schema.COUNTERS` except the run's id, one row for each queue.

        The maximum depth of these queues is a number of samples (`max_count`); 0 means unlimited.
        """
        if observed_ns > 0:
            self._reach(INFINITE_NS)
        counts = [self._log.of(queue.full_name) for queue in self._queues]
        max_depths = [max(0, queue.max_count) for queue in self._queues]
        return counter_columns(counts, [0] * len(counts), [client] * len(counts), names, max_depths, observed_ns)

    def _reach(self, now: Nanoseconds) -> None:
        if self._log.reach(now):
            for held in self._held.values():
                held.attempts = min(held.attempts, 1)

    def _removed(self, at_ns: Nanoseconds, queue: str, identity: SampleIdentity, held: _Held, outcome: Outcome) -> None:
        if outcome is not Outcome.DELIVERED or held.sent_ns == NEVER:
            self._end(queue, identity, held, at_ns - held.enqueued_ns, NEVER, NEVER, outcome)
            return
        wait_ns = held.sent_ns - held.enqueued_ns
        self._end(queue, identity, held, wait_ns, wait_ns + self._delay_ns, at_ns - held.enqueued_ns, outcome)

    def _end(
        self,
        queue: str,
        identity: SampleIdentity,
        held: _Held,
        wait_ns: int,
        send_ns: int,
        ack_ns: int,
        outcome: Outcome,
    ) -> None:
        producer = producer_of(identity.writer_guid)
        enter_ns = NEVER if outcome is Outcome.WAITING else 0
        self._log.end(
            queue, self._index[queue], outcome, held.enqueued_ns, enter_ns, wait_ns, send_ns, ack_ns, 0, producer,
            held.size_bytes, held.attempts,
        )  # fmt: skip
