"""The consumer's side of a queue: samples received and not yet acknowledged [QS 2.5 and 2.10.2].

Decides: which deliveries may be acknowledged and how acknowledgments are batched. Wires and blocking are left to the
callers.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from qsctl.core.messages import (
    EPOCH_SHIFT,
    FLAGS_MASK,
    QUESTION_NUMBER_MIN,
    Acknowledgment,
    AckResponse,
    ConsumerAvailability,
    Delivery,
    SampleFlag,
)
from qsctl.errors import UsageError
from qsctl.identity import NIL_GUID, Guid, SampleIdentity

UNLIMITED_THRESHOLD = -1

ANSWERED_TWINS_MAX: Final = 10_000
"""Maximum number of answered samples whose twins are remembered, for programs that never answer the twins."""


class QueueReader:
    """One reader of one queue, `<topic>@<subscriber>`.

    A sample that arrives again while it is held replaces the first. That happens if the queue wrongly considered the
    consumer gone, or if two services host the queue. Both deliveries, called twins, have one identity: the program's
    first answer to either of them is sent, and holds for both.

    A sample of a former master of a replicated queue that arrives after one of a later master is refused: the later
    master delivers the sample again, and an answer to the former one has no effect [QS 7.1.2].
    """

    def __init__(self, queue: str, consumer_guid: Guid, *, source_guid: Guid = NIL_GUID) -> None:
        self.queue = queue
        self.consumer_guid = consumer_guid
        self.source_guid = source_guid
        self._waiting: deque[Delivery] = deque()
        self._held: dict[SampleIdentity, Delivery] = {}
        self._delivered: dict[SampleIdentity, None] = {}
        """Samples that the program received and has not answered, in order; the waiting ones may be far more."""
        self._twins_delivered: dict[SampleIdentity, int] = {}
        """Number of twins that the program received before, for each held sample that arrived again."""
        self._answered_twins: dict[SampleIdentity, int] = {}
        """Number of twins that the program still has, and may answer too, for each answered sample."""
        self._answers: list[Acknowledgment] = []
        self.epoch = 0
        """The lower 16 bits of the latest epoch received; 0: none, or the queue is not replicated."""
        self.refused_count = 0
        """Number of refused samples of former masters."""
        self._question = QUESTION_NUMBER_MIN
        self.end_count = 0
        """Number of services that answered the latest question: each has sent all that it could to this consumer."""

    @property
    def waiting_count(self) -> int:
        """Return the number of samples that arrived and that the program has not received yet."""
        return len(self._waiting)

    @property
    def held_count(self) -> int:
        """Return the number of samples that arrived and are not answered yet."""
        return len(self._held)

    @property
    def touched_count(self) -> int:
        """Return the number of samples that the program received and has not answered: they may have had an effect."""
        return len(self._held) - len(self._waiting) + len(self._twins_delivered)

    def holds(self, identity: SampleIdentity) -> bool:
        """Return whether a sample arrived and is not answered yet."""
        return identity in self._held

    def receive(self, delivery: Delivery) -> bool:
        """Keep a sample that the queue sent; return False if a former master sent it, which refuses it."""
        if delivery.flags > FLAGS_MASK and not self._is_of_latest(delivery.flags >> EPOCH_SHIFT):
            self.refused_count += 1
            return False
        identity = delivery.identity
        if delivery.flags & SampleFlag.END_OF_QUEUE and identity.writer_guid == NIL_GUID:
            if identity.sequence_number == self._question:
                self.end_count += 1
            return True
        earlier = self._held.get(identity)
        self._held[identity] = delivery
        if earlier is not None and not self._remove_waiting(identity):
            self._twins_delivered[identity] = self._twins_delivered.get(identity, 0) + 1
        self._waiting.append(delivery)
        return True

    def ask(self) -> Acknowledgment:
        """Return a message that asks whether the queue has more for this consumer; send it after all answers."""
        self._question += 1
        self.end_count = 0
        return Acknowledgment(
            self.queue, self.consumer_guid, SampleIdentity(NIL_GUID, self._question), AckResponse.ACCEPTED
        )

    def forget_epoch(self) -> None:
        """Accept any epoch next: replicas without a disk may all have restarted with an earlier one."""
        self.epoch = 0

    def deliver(self, count: int) -> list[Delivery]:
        """Return up to `count` samples for the program, in order of arrival; they remain held until answered."""
        if count >= len(self._waiting):
            delivered = list(self._waiting)
            self._waiting.clear()
        else:
            delivered = [self._waiting.popleft() for _ in range(count)]
        self._delivered.update(dict.fromkeys([delivery.identity for delivery in delivered]))
        return delivered

    def acknowledge(self, identity: SampleIdentity, response: AckResponse = AckResponse.ACCEPTED) -> None:
        """Answer a held sample: accepted, or rejected, which counts as a failed delivery.

        Raises:
            UsageError: the sample is not held: never received, or answered before. The twin of an answered sample
                raises no error.
        """
        if self._held.pop(identity, None) is None:
            if self._forget_twin(identity):
                return
            raise UsageError(
                f"sample {identity} of {self.queue!r} is not held by this consumer",
                remedy="Acknowledge each received sample once.",
            )
        self._delivered.pop(identity, None)
        twins = self._twins_delivered.pop(identity, 0)
        if twins:
            # Less this one; the waiting twin is removed, so the program does not have it either.
            self._remember_twins(identity, twins - 1 if self._remove_waiting(identity) else twins)
        self._answers.append(Acknowledgment(self.queue, self.consumer_guid, identity, response))

    def acknowledge_all(self, response: AckResponse = AckResponse.ACCEPTED) -> int:
        """Answer every sample that the program received, and return their number; waiting samples remain held."""
        for identity in self._twins_delivered:
            self._remove_waiting(identity)
        self._twins_delivered.clear()
        held = self._held
        delivered = [identity for identity in self._delivered if held.pop(identity, None) is not None]
        self._delivered.clear()
        queue, guid = self.queue, self.consumer_guid
        self._answers += [Acknowledgment(queue, guid, identity, response) for identity in delivered]
        return len(delivered)

    def availability(
        self, reception_enabled: bool, unacked_threshold: int = UNLIMITED_THRESHOLD
    ) -> ConsumerAvailability:
        """Return the message by which the consumer reports its threshold and whether it receives [QS 2.10.2].

        Raises:
            UsageError: a threshold below -1.
        """
        if unacked_threshold < UNLIMITED_THRESHOLD:
            raise UsageError(
                f"an unacknowledged threshold of {unacked_threshold} means nothing", remedy="Give -1, 0 or more."
            )
        return ConsumerAvailability(self.queue, self.consumer_guid, reception_enabled, unacked_threshold)

    def pop_answers(self) -> list[Acknowledgment]:
        """Return the answers to send now, in order, and forget them."""
        answers = self._answers
        self._answers = []
        return answers

    def _is_of_latest(self, epoch: int) -> bool:
        if self.epoch and (epoch - self.epoch) & FLAGS_MASK > FLAGS_MASK // 2:
            return False
        self.epoch = epoch
        return True

    def _remove_waiting(self, identity: SampleIdentity) -> bool:
        """Remove a sample from the waiting ones; return False if it is not among them."""
        for at, delivery in enumerate(self._waiting):
            if delivery.identity == identity:
                del self._waiting[at]
                return True
        return False

    def _remember_twins(self, identity: SampleIdentity, count: int) -> None:
        if count:
            self._answered_twins[identity] = count
            if len(self._answered_twins) > ANSWERED_TWINS_MAX:
                del self._answered_twins[next(iter(self._answered_twins))]

    def _forget_twin(self, identity: SampleIdentity) -> bool:
        """Return whether a sample's answer was already sent for its twin, and count the twin as answered."""
        count = self._answered_twins.pop(identity, 0)
        if count > 1:
            self._answered_twins[identity] = count - 1
        return count > 0
