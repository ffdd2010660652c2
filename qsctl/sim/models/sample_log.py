"""A queue's events folded into message rows and counters: one row a sample and queue, when its fate is settled.

Arrivals, losses and deliveries are folds over the rows: arrivals count from when a sample entered its queue, the others
from when it left, if that was after the warm-up. Redeliveries count when they are sent; `attempts` restarts with the
statistics, so that the rows add up to them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

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
from qsctl.core.records import RemovalCause
from qsctl.eventlog.outcomes import LOSSES, Outcome, column_of
from qsctl.eventlog.schema import bucket_of
from qsctl.identity import SampleIdentity
from qsctl.instant import Nanoseconds
from qsctl.sim.models.base import LOG_ROW, NEVER, OUTCOMES, Rows
from qsctl.sim.models.queue_peers import PRODUCER, HostedQueue, number_of
from qsctl.sim.scenario import WORK_UNIT_BYTES

_OUTCOME_OF: Final = {
    RemovalCause.DELIVERED: Outcome.DELIVERED,
    RemovalCause.EXPIRED: Outcome.EXPIRED,
    RemovalCause.FAILED_DELIVERY: Outcome.DEAD,
    RemovalCause.FLUSHED: Outcome.DISCARDED,
}


@dataclass(slots=True)
class _Held:
    """A sample in its queue: how long it is there, and its last delivery."""

    enqueued_ns: Nanoseconds
    size_bytes: int
    sent_ns: Nanoseconds = NEVER
    attempts: int = 0


@dataclass(slots=True)
class _Counts:
    """What is counted of one queue."""

    arrived: int = 0
    by_outcome: dict[Outcome, int] = field(default_factory=lambda: dict.fromkeys(Outcome, 0))
    redelivered: int = 0
    returned: int = 0
    delivered_bytes: int = 0
    work_units: int = 0
    high_water_mark: int = 0
    first_discard_ns: Nanoseconds = NEVER
    wait_sum_ns: int = 0
    wait_max_ns: int = 0
    histogram: dict[int, int] = field(default_factory=dict)


def _work_units(size_bytes: int) -> int:
    return max(1, -(-size_bytes // WORK_UNIT_BYTES))


class SampleLog:
    """The event log of a simulated service: rows until they are taken, counters until the end."""

    def __init__(
        self, queues: list[HostedQueue], warm_up_ns: Nanoseconds, delay_ns: Nanoseconds, keeps_rows: bool, limit: int
    ) -> None:
        self._queues = queues
        self._index = {queue.full_name: index for index, queue in enumerate(queues)}
        self._warm_up_ns = warm_up_ns
        self._is_warm = warm_up_ns == 0
        self._delay_ns = delay_ns
        self._keeps_rows = keeps_rows
        self._limit = limit
        self._rows: list[tuple[int, ...]] = []
        self._received: dict[tuple[str, SampleIdentity], tuple[Nanoseconds, int]] = {}
        self._held: dict[tuple[str, SampleIdentity], _Held] = {}
        self._counts = {queue.full_name: _Counts() for queue in queues}

    @property
    def is_full(self) -> bool:
        """Whether the rows should be taken."""
        return len(self._rows) >= self._limit

    def take(self) -> Rows:
        """The rows since the last call."""
        rows = np.array(self._rows, LOG_ROW)
        self._rows = []
        return rows

    def tell(self, event: Event) -> None:
        """Note one event."""
        if not self._is_warm and event.at_ns >= self._warm_up_ns:
            self._warm_up()
        match event:
            case SampleReceived(at_ns, queue, identity, size_bytes):
                self._received[queue, identity] = (at_ns, size_bytes)
            case SampleEnqueued(at_ns, queue, identity, size_bytes, _):
                self._received.pop((queue, identity), None)
                self._held[queue, identity] = _Held(at_ns, size_bytes)
                counts = self._counts[queue]
                counts.work_units += _work_units(size_bytes)
                counts.high_water_mark = max(counts.high_water_mark, counts.work_units)
            case SampleSent(at_ns, queue, identity, _, _, _):
                held = self._held[queue, identity]
                held.sent_ns = at_ns
                held.attempts += 1
                if held.attempts > 1:
                    self._counts[queue].redelivered += 1
            case SampleRemoved(at_ns, queue, identity, cause, size_bytes, _, _):
                held = self._held.pop((queue, identity))
                self._counts[queue].work_units -= _work_units(size_bytes)
                self._removed(at_ns, queue, identity, held, _OUTCOME_OF[cause])
            case SampleBounced(at_ns, queue, identity, _):
                _, size_bytes = self._received.pop((queue, identity), (at_ns, 0))
                self.bounced(at_ns, queue, identity, size_bytes)
            case DuplicateDropped(_, queue, identity):
                self._received.pop((queue, identity), None)
            case SampleReturned(_, queue, _, _, _):
                self._counts[queue].returned += 1
            case _:
                pass  # what the other events say is in the rows already

    def bounced(self, at_ns: Nanoseconds, queue: str, identity: SampleIdentity, size_bytes: int) -> None:
        """A sample that its queue refused: it left as it came."""
        self._settle(queue, identity, _Held(at_ns, size_bytes), 0, NEVER, NEVER, Outcome.DISCARDED)

    def hold(self) -> None:
        """The run is over: what is still in a queue is held, what waits outside a full one is waiting."""
        for (queue, identity), (at_ns, size_bytes) in self._received.items():
            self._settle(queue, identity, _Held(at_ns, size_bytes), NEVER, NEVER, NEVER, Outcome.WAITING)
        for (queue, identity), held in self._held.items():
            self._settle(queue, identity, held, NEVER, NEVER, NEVER, Outcome.HELD)
        self._received.clear()
        self._held.clear()

    def returned_counts(self) -> list[int]:
        """Failed deliveries of each queue: rejected, timed out, or their consumer left."""
        return [self._counts[queue.full_name].returned for queue in self._queues]

    def counters(self, client: str, names: list[str], observed_ns: Nanoseconds) -> dict[str, Any]:
        """The columns of `eventlog.schema.COUNTERS` less the run's id, one row a queue.

        The maximum depth of these queues is a number of samples (`max_count`); 0 stands for unlimited.
        """
        if not self._is_warm and observed_ns > 0:
            self._warm_up()
        counts = [self._counts[queue.full_name] for queue in self._queues]

        def column(values: list[int]) -> Any:
            return np.array(values, np.int64)

        def outcome(kind: Outcome) -> Any:
            return column([each.by_outcome[kind] for each in counts])

        buckets = [sorted(each.histogram) for each in counts]
        return {
            "client_id": np.zeros(len(counts), np.int32),
            "client": [client] * len(counts),
            "queue": names,
            "arrived_messages": column([each.arrived for each in counts]),
            "delivered_messages": outcome(Outcome.DELIVERED),
            **{column_of(each): outcome(each) for each in LOSSES},
            "elided_messages": outcome(Outcome.ELIDED),
            "evicted_messages": column([0] * len(counts)),
            "redelivered_messages": column([each.redelivered for each in counts]),
            "discard_indications": column([0] * len(counts)),
            "delivered_bytes": column([each.delivered_bytes for each in counts]),
            "length_messages": outcome(Outcome.HELD),
            "length_work_units": column([each.work_units for each in counts]),
            "unacknowledged_messages": column([0] * len(counts)),
            "waiting_messages": outcome(Outcome.WAITING),
            "high_water_mark_work_units": column([each.high_water_mark for each in counts]),
            "max_depth_work_units": column([max(0, queue.max_count) for queue in self._queues]),
            "first_discard_ns": column([each.first_discard_ns for each in counts]),
            "wait_sum_ns": column([each.wait_sum_ns for each in counts]),
            "wait_max_ns": column([each.wait_max_ns for each in counts]),
            "observed_ns": column([observed_ns] * len(counts)),
            "histogram_bucket": [np.array(keys, np.int32) for keys in buckets],
            "histogram_count": [
                column([each.histogram[key] for key in keys]) for each, keys in zip(counts, buckets, strict=True)
            ],
        }

    def _warm_up(self) -> None:
        """Statistics restart, state does not: the high-water mark restarts at the present depth."""
        self._is_warm = True
        for counts in self._counts.values():
            counts.high_water_mark = counts.work_units
            counts.returned = 0
            counts.redelivered = 0
        for held in self._held.values():
            held.attempts = min(held.attempts, 1)

    def _removed(self, at_ns: Nanoseconds, queue: str, identity: SampleIdentity, held: _Held, outcome: Outcome) -> None:
        if outcome is not Outcome.DELIVERED or held.sent_ns == NEVER:
            self._settle(queue, identity, held, at_ns - held.enqueued_ns, NEVER, NEVER, outcome)
            return
        wait_ns = held.sent_ns - held.enqueued_ns
        self._settle(queue, identity, held, wait_ns, wait_ns + self._delay_ns, at_ns - held.enqueued_ns, outcome)

    def _settle(
        self,
        queue: str,
        identity: SampleIdentity,
        held: _Held,
        wait_ns: int,
        send_ns: int,
        ack_ns: int,
        outcome: Outcome,
    ) -> None:
        self._count(self._counts[queue], held, wait_ns, outcome)
        if not self._keeps_rows:
            return
        producer = number_of(identity.writer_guid) if identity.writer_guid[0] == PRODUCER else 0
        enter_ns = NEVER if outcome is Outcome.WAITING else 0
        self._rows.append(
            (
                held.enqueued_ns, enter_ns, wait_ns, send_ns, ack_ns, 0, producer, held.size_bytes, held.attempts,
                self._index[queue], OUTCOMES.index(outcome), 0,
            )
        )  # fmt: skip

    def _count(self, counts: _Counts, held: _Held, wait_ns: int, outcome: Outcome) -> None:
        if held.enqueued_ns >= self._warm_up_ns:
            counts.arrived += 1
        if wait_ns == NEVER:
            counts.by_outcome[outcome] += 1
            return
        left_ns = held.enqueued_ns + wait_ns
        if left_ns < self._warm_up_ns:
            return
        counts.by_outcome[outcome] += 1
        if outcome is Outcome.DELIVERED:
            counts.delivered_bytes += held.size_bytes
            counts.wait_sum_ns += wait_ns
            counts.wait_max_ns = max(counts.wait_max_ns, wait_ns)
            bucket = bucket_of(wait_ns)
            counts.histogram[bucket] = counts.histogram.get(bucket, 0) + 1
        elif outcome is Outcome.DISCARDED and (counts.first_discard_ns == NEVER or left_ns < counts.first_discard_ns):
            counts.first_discard_ns = left_ns
