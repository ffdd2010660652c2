"""The consumer's side of a queue: what it holds and has not answered [QS 2.5 and 2.10.2].

Decides: which deliveries may be acknowledged and how answers are gathered. Leaves to others: wires and blocking.
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
"""Twins of answered samples that are remembered: a program that leaves them aside must not grow."""


class QueueReader:
    """One reader of one queue, `<topic>@<subscriber>`.

    A sample that comes a second time while it is held replaces the first. The queue gives a sample twice to one that it
    had taken for gone, and two services that host the queue give it each. Whichever of the twins the program answers
    first, the answer is sent once and holds for both: the queue knows the sample by its identity.

    What a former master of a replicated queue sent, and comes after something of a later one, is refused: that one
    delivers the sample again, and what the former one is answered has no effect [QS 7.1.2].
    """

    def __init__(self, queue: str, consumer_guid: Guid, *, source_guid: Guid = NIL_GUID) -> None:
        self.queue = queue
        self.consumer_guid = consumer_guid
        self.source_guid = source_guid
        self._waiting: deque[Delivery] = deque()
        self._held: dict[SampleIdentity, Delivery] = {}
        self._delivered: dict[SampleIdentity, None] = {}
        """Samples that the program received and has not answered, in order; those that wait may be a hundred times as
        many.
        """
        self._twins_delivered: dict[SampleIdentity, int] = {}
        """Of held samples that came again: how many twins the program had received before."""
        self._answered_twins: dict[SampleIdentity, int] = {}
        """Of answered samples: how many twins are with the program, which may answer them too."""
        self._answers: list[Acknowledgment] = []
        self.epoch = 0
        """The lower 16 bits of the latest epoch in which something came; 0: none, or the queue is not replicated."""
        self.refused_count = 0
        """Samples of former masters."""
        self._question = QUESTION_NUMBER_MIN
        self.end_count = 0
        """Services that answered the latest question: what each could send to this consumer has come."""

    @property
    def waiting_count(self) -> int:
        """Samples that came and that the program has not received yet."""
        return len(self._waiting)

    @property
    def held_count(self) -> int:
        """Samples that came and are not answered yet."""
        return len(self._held)

    @property
    def touched_count(self) -> int:
        """Samples that the program received and has not answered: they may have had an effect."""
        return len(self._held) - len(self._waiting) + len(self._twins_delivered)

    def holds(self, identity: SampleIdentity) -> bool:
        """Return whether a sample came and is not answered yet."""
        return identity in self._held

    def receive(self, delivery: Delivery) -> bool:
        """Keep a sample that the queue sent; false: it is one of a former master."""
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
        """Return the question whether the queue has more for this consumer; send it behind all answers."""
        self._question += 1
        self.end_count = 0
        return Acknowledgment(
            self.queue, self.consumer_guid, SampleIdentity(NIL_GUID, self._question), AckResponse.ACCEPTED
        )

    def forget_epoch(self) -> None:
        """Take what comes next for that of the present master: of replicas without a disk all may have begun again."""
        self.epoch = 0

    def deliver(self, count: int) -> list[Delivery]:
        """Return up to `count` samples for the program, in order of arrival; they stay held until they are answered."""
        if count >= len(self._waiting):
            delivered = list(self._waiting)
            self._waiting.clear()
        else:
            delivered = [self._waiting.popleft() for _ in range(count)]
        self._delivered.update(dict.fromkeys([delivery.identity for delivery in delivered]))
        return delivered

    def acknowledge(self, identity: SampleIdentity, response: AckResponse = AckResponse.ACCEPTED) -> None:
        """Answer one held sample: accepted, or rejected, which counts as a failed delivery.

        Raises:
            UsageError: the sample is not held: never received, or answered before. A twin of an answered one is no
                mistake.
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
            # Without this one, which may be the waiting one: then it is not with the program any more.
            self._remember_twins(identity, twins - 1 if self._remove_waiting(identity) else twins)
        self._answers.append(Acknowledgment(self.queue, self.consumer_guid, identity, response))

    def acknowledge_all(self, response: AckResponse = AckResponse.ACCEPTED) -> int:
        """Answer every sample that the program received, and return their number; those still waiting stay."""
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
        """Return what the queue is to know about this consumer [QS 2.10.2].

        Raises:
            UsageError: a threshold below -1.
        """
        if unacked_threshold < UNLIMITED_THRESHOLD:
            raise UsageError(
                f"an unacknowledged threshold of {unacked_threshold} means nothing", remedy="Give -1, 0 or more."
            )
        return ConsumerAvailability(self.queue, self.consumer_guid, reception_enabled, unacked_threshold)

    def pop_answers(self) -> list[Acknowledgment]:
        """Return the answers to send now, in order."""
        answers = self._answers
        self._answers = []
        return answers

    def _is_of_latest(self, epoch: int) -> bool:
        if self.epoch and (epoch - self.epoch) & FLAGS_MASK > FLAGS_MASK // 2:
            return False
        self.epoch = epoch
        return True

    def _remove_waiting(self, identity: SampleIdentity) -> bool:
        """Let a sample wait no more. False: it does not wait."""
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
        """Return whether the answer for a sample was given for its twin."""
        count = self._answered_twins.pop(identity, 0)
        if count > 1:
            self._answered_twins[identity] = count - 1
        return count > 0
