"""One part of a replayed service: its engine, and the instants at which it is stepped.

A live service processes a timer in the next turn of its loop, a little after the timer is due, or long after on a busy
machine. That influences which consumer receives a sample, so a timer fires here at the next recorded action of the
service. Where queues or consumers were changed, the recording may contain no action near that time: a timer whose next
recorded instant is much later fires when it is due.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Final

from qsctl.core.engine import Journal, ServiceEngine
from qsctl.core.events import BounceReason
from qsctl.core.messages import Inbound, Write
from qsctl.core.records import Enqueued, Returned
from qsctl.core.settings import ServiceSettings
from qsctl.core.turn import Released, Turn
from qsctl.identity import Guid, SampleIdentity, counted_incarnations
from qsctl.instant import INFINITE_NS, MILLISECOND_NS, Nanoseconds
from qsctl.sim.replay.recording import RecordedArrival

LATENESS_MAX_NS: Final = 100 * MILLISECOND_NS
"""Within this a loop comes round; of a part that was changed, later instants of the recording are of something else."""


class EnginePart:
    """An engine with interdependent queues, stepped by a turn as a live one is.

    Args:
        service: the settings, reduced to these queues.
        started_at_ns: the instant of its start, before all messages.
        payload_size_bytes_max: larger payloads are refused; -1 means unlimited.
    """

    def __init__(
        self,
        service: ServiceSettings,
        started_at_ns: Nanoseconds,
        payload_size_bytes_max: int,
    ) -> None:
        self._engine = ServiceEngine(
            service,
            started_at=started_at_ns,
            draw=counted_incarnations(),
            journal=Journal.PERSISTENT_ONLY,
            payload_size_bytes_max=payload_size_bytes_max,
        )
        self._engine.hosted.reports_inputs = True
        self._turn = Turn(self._engine)
        self.instants: Sequence[Nanoseconds] = ()
        """When the live service did something to these queues, sorted."""
        self.lateness_max_ns: Nanoseconds = LATENESS_MAX_NS
        """Largest delay of a timer after its deadline."""
        self._inbox: list[Inbound] = []
        self._now: Nanoseconds = started_at_ns
        self.fires_at_ns: Nanoseconds = INFINITE_NS
        """When it is stepped next without a message."""

    @property
    def has_messages(self) -> bool:
        """Return whether a message waits for a step."""
        return bool(self._inbox)

    @property
    def queue_names(self) -> list[str]:
        """The full names of its queues, implicit reply queues included."""
        return list(self._engine.hosted.by_name)

    def max_count(self, queue: str) -> int:
        """Return the maximum number of samples of a queue; -1 means unlimited."""
        return self._engine.hosted.by_name[queue].settings.limits.max_count

    def acknowledges(self, queue: str) -> bool:
        """Return whether a queue acknowledges writes to producers; False for a queue that was deleted."""
        found = self._engine.hosted.by_name.get(queue)
        return found is not None and found.settings.app_ack_sample_to_producer

    def hosts(self, queue: str) -> bool:
        """Return whether this part has a queue of this full name now."""
        return queue in self._engine.hosted.by_name

    def has_topic(self, participant: str, topic: str) -> bool:
        """Return whether a write to this topic reaches one of its queues."""
        return (participant, topic) in self._engine.hosted.by_topic

    def address_of(self, queue: str) -> tuple[str, str]:
        """Return the participant and the topic whose writes reach a queue."""
        return queue.partition("/")[0], self._engine.hosted.by_name[queue].settings.topic_name

    def hold(self, queue: str, rows: Iterable[tuple[RecordedArrival, Guid, int]]) -> None:
        """Enqueue the samples that a queue held when the recording began.

        Args:
            queue: the queue's full name.
            rows: each sample with its writer and the number of its failed deliveries.
        """
        self._engine.rollback(queue)
        for position, (row, writer, attempts) in enumerate(rows, start=1):
            expires_at_ns = INFINITE_NS if row.lifespan_ns is None else row.at_ns + row.lifespan_ns
            self._engine.replay(
                Enqueued(
                    queue,
                    position,
                    SampleIdentity(writer, row.sequence_number),
                    row.at_ns,
                    expires_at_ns,
                    writer,
                    Guid(bytes.fromhex(row.address)) if row.address else Guid(bytes(16)),
                    payload=bytes(row.size_bytes),
                )
            )
            if attempts or row.redelivered:
                self._engine.replay(Returned(queue, position, attempts, row.redelivered))

    def begin(self, now: Nanoseconds) -> None:
        """Start the engine at `now` with the samples enqueued by `hold`."""
        self._engine.finish_restore(now)
        self._note_deadline()

    def receive(self, message: Inbound) -> None:
        """Add a message to the input of the next step."""
        self._inbox.append(message)

    def refuse(self, now: Nanoseconds, queue: str, write: Write, reason: BounceReason) -> None:
        """Refuse a write for a reason that the queue did not decide, such as a full disk."""
        self._engine.hosted.by_name[queue].refuse(now, write, reason)

    def step(self, now: Nanoseconds) -> list[Released]:
        """Step the engine with the messages received and the timers due; all records are durable at once."""
        turn = self._turn
        turn.receive(self._inbox)
        self._inbox = []
        self._now = max(now, self._now)
        while turn.step(self._now):
            while (group := turn.to_write()) is not None:
                for ready in group.turns:
                    for batch in ready.batches:
                        turn.durable(batch.stream, batch.last_index)
        released = turn.to_send()
        self._note_deadline()
        return released

    def _note_deadline(self) -> None:
        deadline = self._turn.next_deadline()
        if deadline is None:
            self.fires_at_ns = INFINITE_NS
            return
        due_ns = max(deadline, self._now + 1)
        at = bisect_left(self.instants, due_ns)
        if at < len(self.instants) and self.instants[at] - due_ns <= self.lateness_max_ns:
            due_ns = self.instants[at]
        self.fires_at_ns = due_ns
