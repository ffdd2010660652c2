"""The event log of a world: a row for each sample as its programs saw it, and the events of the cluster.

A row is written at the end of the run, when it cannot change any more: the wait is measured from the first writing to
the first delivery, and the acknowledgment is the first positive one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from qsctl.core.messages import AckResponse, Delivery, Outbound, Write
from qsctl.core.records import RemovalCause
from qsctl.eventlog.outcomes import Outcome
from qsctl.eventlog.queue_counts import counter_columns
from qsctl.eventlog.run_folder import Happening
from qsctl.identity import Guid, SampleIdentity
from qsctl.instant import INFINITE_NS, Nanoseconds
from qsctl.sim.model import EVENT_ROW, NEVER, Event, Rows
from qsctl.sim.recording.happenings import Happenings
from qsctl.sim.recording.queue_log import QueueLog
from qsctl.sim.service.peers import HostedQueue, number_of
from qsctl.sim.world.invariants.base import Ledger, dead_letters, removals
from qsctl.sim.world.services.history import Observer


@dataclass(slots=True)
class _Sample:
    """The instants of one sample in one queue, and its size."""

    written_ns: Nanoseconds
    size_bytes: int
    received_ns: Nanoseconds = NEVER
    processed_ns: Nanoseconds = NEVER
    sent_at_ns: list[Nanoseconds] = field(default_factory=list)
    """The instant of each delivery sent."""


class WorldLog(Observer):
    """The event log of one world.

    Args:
        queues: in the order of the configuration; those without a producer's topic, as of dead letters, have no rows.
        clock: returns the present instant.
        ledger: the records that the services have stored.
        warm_up_ns: end of the warm-up; samples that leave their queue before are not counted.
        keeps_rows: whether rows are kept, or counters only.
        rows_max: number of rows at which the log is full.
    """

    def __init__(
        self,
        queues: list[HostedQueue],
        clock: Callable[[], Nanoseconds],
        ledger: Ledger,
        *,
        warm_up_ns: Nanoseconds,
        keeps_rows: bool,
        rows_max: int,
    ) -> None:
        self._warm_up_ns = warm_up_ns
        self._queues = queues
        self._clock = clock
        self._ledger = ledger
        self._log = QueueLog[str](warm_up_ns, keeps_rows=keeps_rows, rows_max=rows_max)
        self._index = {queue.full_name: index for index, queue in enumerate(queues)}
        self._by_topic: dict[tuple[str, str], list[str]] = {}
        for queue in queues:
            self._by_topic.setdefault((queue.participant, queue.topic_name), []).append(queue.full_name)
        self._samples: dict[tuple[str, SampleIdentity], _Sample] = {}
        self._events: list[tuple[int, ...]] = []
        self._happenings = Happenings()
        self._rest: Iterator[None] | None = None

    def written(self, service: int, write: Write) -> None:
        """Note the first writing of a sample."""
        for queue in self._by_topic.get((write.participant, write.topic_name), ()):
            if (queue, write.identity) not in self._samples:
                self._samples[queue, write.identity] = _Sample(self._clock(), len(write.payload))

    def released(self, service: int, message: Outbound) -> None:
        """Note the instant of a delivery that a service sends."""
        if isinstance(message, Delivery):
            sample = self._samples.get((message.queue, message.identity))
            if sample is not None:
                sample.sent_at_ns.append(self._clock())

    def delivered(self, service: int, delivery: Delivery) -> None:
        """Note the first receipt of a sample."""
        sample = self._samples.get((delivery.queue, delivery.identity))
        if sample is not None and sample.received_ns == NEVER:
            sample.received_ns = self._clock()

    def processed(self, consumer_guid: Guid, queue: str, identity: SampleIdentity, response: AckResponse) -> None:
        """Note the first positive acknowledgment of a consumer."""
        sample = self._samples.get((queue, identity))
        if sample is not None and sample.processed_ns == NEVER and response == AckResponse.ACCEPTED:
            sample.processed_ns = self._clock()

    def ended(self, service: int) -> None:
        """Log the end of a service."""
        self.note(Event.INSTANCE_ENDED, service, 0)

    def started(self, service: int) -> None:
        """Log the start of a service."""
        self.note(Event.INSTANCE_STARTED, service, 0)

    def note(self, event: Event, service: int, value: int) -> None:
        """Log an event of a service, by number; 0 for an event of the whole cluster."""
        client = service - 1
        self._events.append((self._clock(), value, client, -1, int(event)))
        self._happenings.note(self._clock(), client, value, int(event))

    @property
    def is_full(self) -> bool:
        """Return whether the rows have to be collected before more are written."""
        return self._log.is_full

    def collect(self) -> Rows:
        """Return and remove the rows that were written since the last call."""
        return self._log.collect()

    def collect_events(self) -> Rows:
        """Return and remove the events that were logged since the last call."""
        rows = np.array(self._events, EVENT_ROW)
        self._events = []
        return rows

    def happenings(self, names: list[str]) -> tuple[Happening, ...]:
        """Return the events summed by kind; `names` are the instances' names."""
        return self._happenings.summed(names)

    def finish(self, held: set[tuple[str, SampleIdentity]]) -> bool:
        """Write the samples' rows; return True if the log is full and has to be collected before the next call."""
        if self._rest is None:
            self._rest = self._end_all(held)
        return next(self._rest, "over") is None

    def counters(self, client: str, names: list[str], observed_ns: Nanoseconds) -> dict[str, Any]:
        """Return the columns of `eventlog.schema.COUNTERS` except the run's id, with one row per queue."""
        counts = [self._log.of(queue.full_name) for queue in self._queues]
        depths = [max(0, queue.max_count) for queue in self._queues]
        return counter_columns(counts, [0] * len(counts), [client] * len(counts), names, depths, observed_ns)

    def _end_all(self, held: set[tuple[str, SampleIdentity]]) -> Iterator[None]:
        removed = removals(self._ledger.records())
        dead = dead_letters(self._ledger.records())
        outcomes = {key: self._outcome(*key, sample, held, removed, dead) for key, sample in self._samples.items()}
        self._measure_depths(outcomes)
        for (queue, identity), sample in self._samples.items():
            outcome = outcomes[queue, identity]
            wait_ns = send_ns = ack_ns = NEVER
            if outcome is Outcome.DELIVERED:
                wait_ns = sample.sent_at_ns[0] - sample.written_ns
                send_ns = sample.received_ns - sample.written_ns
                ack_ns = sample.processed_ns - sample.written_ns
            elif outcome is not Outcome.HELD:
                wait_ns = 0
            attempts = self._attempts(sample)
            if wait_ns == NEVER or sample.written_ns + wait_ns >= self._warm_up_ns:
                self._log.of(queue).redelivered += max(0, attempts - 1)
            self._log.end(
                queue, self._index[queue], outcome, sample.written_ns, 0, wait_ns, send_ns, ack_ns, 0,
                number_of(identity.writer_guid), sample.size_bytes, attempts,
            )  # fmt: skip
            if self._log.is_full:
                yield None

    def _attempts(self, sample: _Sample) -> int:
        """Return the number of deliveries of a sample, counting all those before the end of the warm-up as one."""
        before = sum(at_ns < self._warm_up_ns for at_ns in sample.sent_at_ns)
        return len(sample.sent_at_ns) - before + min(before, 1)

    def _measure_depths(self, outcomes: dict[tuple[str, SampleIdentity], Outcome]) -> None:
        """Replay the arrivals and departures of samples in order of time, for the high-water marks of the queues."""
        moves: list[tuple[Nanoseconds, int, str, int]] = []
        for number, ((queue, identity), sample) in enumerate(self._samples.items()):
            outcome = outcomes[queue, identity]
            if outcome in {Outcome.DELIVERED, Outcome.HELD}:
                moves.append((sample.written_ns, number, queue, sample.size_bytes))
            if outcome is Outcome.DELIVERED:
                moves.append((sample.processed_ns, number, queue, -sample.size_bytes))
        for at_ns, _, queue, size_bytes in sorted(moves):
            self._log.reach(at_ns)
            counts = self._log.of(queue)
            if size_bytes > 0:
                counts.grow(size_bytes)
            else:
                counts.shrink(-size_bytes)
        self._log.reach(INFINITE_NS)

    @staticmethod
    def _outcome(
        queue: str,
        identity: SampleIdentity,
        sample: _Sample,
        held: set[tuple[str, SampleIdentity]],
        removed: dict[tuple[str, SampleIdentity], Any],
        dead: set[SampleIdentity],
    ) -> Outcome:
        if sample.processed_ns != NEVER and sample.sent_at_ns:
            return Outcome.DELIVERED
        if (queue, identity) in held:
            return Outcome.HELD
        if identity in dead:
            return Outcome.DEAD
        removal = removed.get((queue, identity))
        if removal is not None and removal.cause is RemovalCause.EXPIRED:
            return Outcome.EXPIRED
        if removal is not None and removal.cause is RemovalCause.FAILED_DELIVERY:
            return Outcome.DEAD
        return Outcome.DISCARDED
