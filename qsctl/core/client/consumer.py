"""The consumer's side of a queue: what it holds and has not answered (manual, sections 2.5 and 2.10.2).

Decides: which deliveries may be acknowledged and how answers are gathered. Leaves to others: wires and blocking.
"""

from __future__ import annotations

from collections import deque

from qsctl.core.messages import Acknowledgment, AckResponse, ConsumerAvailability, Delivery
from qsctl.errors import UsageError
from qsctl.identity import NIL_GUID, Guid, SampleIdentity

UNLIMITED_THRESHOLD = -1


class Consumer:
    """One reader of one queue, `<topic>@<subscriber>`.

    A sample that comes a second time while it is held replaces the first: only the last attempt is answered.
    """

    def __init__(self, queue: str, consumer_guid: Guid, *, source_guid: Guid = NIL_GUID) -> None:
        self.queue = queue
        self.consumer_guid = consumer_guid
        self.source_guid = source_guid
        self._waiting: deque[Delivery] = deque()
        self._held: dict[SampleIdentity, Delivery] = {}
        self._answers: list[Acknowledgment] = []

    @property
    def waiting_count(self) -> int:
        """Samples received and not taken yet."""
        return len(self._waiting)

    @property
    def held_count(self) -> int:
        """Samples received and not answered yet, taken or not."""
        return len(self._held)

    @property
    def touched_count(self) -> int:
        """Samples taken and not answered yet: they may have had an effect."""
        return len(self._held) - len(self._waiting)

    def receive(self, delivery: Delivery) -> None:
        """Keep a sample that the queue sent."""
        earlier = self._held.get(delivery.identity)
        self._held[delivery.identity] = delivery
        if earlier is not None and earlier in self._waiting:
            self._waiting.remove(earlier)
        self._waiting.append(delivery)

    def take(self, count: int) -> list[Delivery]:
        """Up to `count` samples in the order of arrival; they stay held until they are answered."""
        return [self._waiting.popleft() for _ in range(min(count, len(self._waiting)))]

    def acknowledge(self, identity: SampleIdentity, response: AckResponse = AckResponse.ACCEPTED) -> None:
        """Answer one held sample: accepted, or rejected, which counts as a failed delivery.

        Raises:
            UsageError: the sample is not held: never received, or answered before.
        """
        if self._held.pop(identity, None) is None:
            raise UsageError(
                f"sample {identity} of {self.queue!r} is not held by this consumer",
                remedy="Acknowledge each received sample once.",
            )
        self._answers.append(Acknowledgment(self.queue, self.consumer_guid, identity, response))

    def acknowledge_all(self, response: AckResponse = AckResponse.ACCEPTED) -> int:
        """Answer every sample that was taken; those still waiting stay. Gives their number."""
        waiting = {delivery.identity: delivery for delivery in self._waiting}
        taken = [identity for identity in self._held if identity not in waiting]
        queue, guid = self.queue, self.consumer_guid
        self._answers += [Acknowledgment(queue, guid, identity, response) for identity in taken]
        self._held = waiting
        return len(taken)

    def availability(
        self, reception_enabled: bool, unacked_threshold: int = UNLIMITED_THRESHOLD
    ) -> ConsumerAvailability:
        """What to tell the queue about this consumer (section 2.10.2).

        Raises:
            UsageError: a threshold below -1.
        """
        if unacked_threshold < UNLIMITED_THRESHOLD:
            raise UsageError(
                f"an unacknowledged threshold of {unacked_threshold} means nothing", remedy="Give -1, 0 or more."
            )
        return ConsumerAvailability(self.queue, self.consumer_guid, reception_enabled, unacked_threshold)

    def take_answers(self) -> list[Acknowledgment]:
        """The answers to send now, in order."""
        answers = self._answers
        self._answers = []
        return answers
