"""The consumer's side of a queue: what it holds and has not answered [QS 2.5 and 2.10.2].

Decides: which deliveries may be acknowledged and how answers are gathered. Leaves to others: wires and blocking.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from qsctl.core.messages import Acknowledgment, AckResponse, ConsumerAvailability, Delivery
from qsctl.errors import UsageError
from qsctl.identity import NIL_GUID, Guid, SampleIdentity

UNLIMITED_THRESHOLD = -1

SETTLED_TWINS_MAX: Final = 10_000
"""Twins of answered samples that are remembered: a program that leaves them aside must not grow."""


class Consumer:
    """One reader of one queue, `<topic>@<subscriber>`.

    A sample that comes a second time while it is held replaces the first. The queue gives a sample twice to one that it
    had taken for gone, and two services that host the queue give it each. Whichever of the twins the program answers
    first, the answer is sent once and holds for both: the queue knows the sample by its identity.
    """

    def __init__(self, queue: str, consumer_guid: Guid, *, source_guid: Guid = NIL_GUID) -> None:
        self.queue = queue
        self.consumer_guid = consumer_guid
        self.source_guid = source_guid
        self._waiting: deque[Delivery] = deque()
        self._held: dict[SampleIdentity, Delivery] = {}
        self._taken: dict[SampleIdentity, None] = {}
        """What the program took and has not answered, in order; what waits may be a hundred times as much."""
        self._taken_before: dict[SampleIdentity, int] = {}
        """Of held samples that came again: how many twins the program had taken before."""
        self._settled_twins: dict[SampleIdentity, int] = {}
        """Of answered samples: how many twins are with the program, which may answer them too."""
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
        return len(self._held) - len(self._waiting) + len(self._taken_before)

    def receive(self, delivery: Delivery) -> None:
        """Keep a sample that the queue sent."""
        identity = delivery.identity
        earlier = self._held.get(identity)
        self._held[identity] = delivery
        if earlier is not None and not self._take_back(identity):
            self._taken_before[identity] = self._taken_before.get(identity, 0) + 1
        self._waiting.append(delivery)

    def take(self, count: int) -> list[Delivery]:
        """Up to `count` samples in the order of arrival; they stay held until they are answered."""
        if count >= len(self._waiting):
            taken = list(self._waiting)
            self._waiting.clear()
        else:
            taken = [self._waiting.popleft() for _ in range(count)]
        self._taken.update(dict.fromkeys([delivery.identity for delivery in taken]))
        return taken

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
        self._taken.pop(identity, None)
        twins = self._taken_before.pop(identity, 0)
        if twins:
            # Without this one, which may be the waiting one: then it is not taken any more.
            self._remember_twins(identity, twins - 1 if self._take_back(identity) else twins)
        self._answers.append(Acknowledgment(self.queue, self.consumer_guid, identity, response))

    def acknowledge_all(self, response: AckResponse = AckResponse.ACCEPTED) -> int:
        """Answer every sample that was taken; those still waiting stay. Gives their number."""
        for identity in self._taken_before:
            self._take_back(identity)
        self._taken_before.clear()
        held = self._held
        taken = [identity for identity in self._taken if held.pop(identity, None) is not None]
        self._taken.clear()
        queue, guid = self.queue, self.consumer_guid
        self._answers += [Acknowledgment(queue, guid, identity, response) for identity in taken]
        return len(taken)

    def availability(
        self, reception_enabled: bool, unacked_threshold: int = UNLIMITED_THRESHOLD
    ) -> ConsumerAvailability:
        """What to tell the queue about this consumer [QS 2.10.2].

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

    def _take_back(self, identity: SampleIdentity) -> bool:
        """Let a sample wait no more. False: it does not wait."""
        for at, delivery in enumerate(self._waiting):
            if delivery.identity == identity:
                del self._waiting[at]
                return True
        return False

    def _remember_twins(self, identity: SampleIdentity, count: int) -> None:
        if count:
            self._settled_twins[identity] = count
            if len(self._settled_twins) > SETTLED_TWINS_MAX:
                del self._settled_twins[next(iter(self._settled_twins))]

    def _forget_twin(self, identity: SampleIdentity) -> bool:
        """Whether the answer for a sample was given for its twin."""
        count = self._settled_twins.pop(identity, 0)
        if count > 1:
            self._settled_twins[identity] = count - 1
        return count > 0
