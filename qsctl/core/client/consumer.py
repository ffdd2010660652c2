"""The consumer's side of a queue: samples received and not yet acknowledged [QS 2.5 and 2.10.2].

Decides: which deliveries may be acknowledged and how acknowledgments are batched. Wires and blocking are left to the
callers; so is what a sample is, and its key, which identifies it: a whole frame is then received, delivered and
acknowledged in a few calls.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, Final, Generic, NamedTuple, TypeVar

from qsctl.core.messages import (
    FLAGS_MASK,
    QUESTION_NUMBER_MIN,
    Acknowledgment,
    AckResponse,
    ConsumerAvailability,
)
from qsctl.errors import UsageError
from qsctl.identity import NIL_GUID, Guid, SampleIdentity

UNLIMITED_THRESHOLD = -1

UNACKED_THRESHOLD_MAX: Final = 2**31 - 1
"""Maximum of `unacked_threshold` in `ConsumerAvailability_t`, and of what a consumer announces."""

ANSWERED_TWINS_MAX: Final = 10_000
"""Maximum number of answered samples whose twins are remembered, for programs that never answer the twins."""

Key = TypeVar("Key", bound=Hashable)
Sample = TypeVar("Sample")


class Arrivals(NamedTuple, Generic[Key, Sample]):
    """Samples that a queue sent together, by their keys, in order; `epoch`: the master's, see `EPOCH_SHIFT`."""

    samples: Mapping[Key, Sample]
    epoch: int


class QueueEnd(NamedTuple):
    """A service's answer to a consumer's question: it has sent all that it could."""

    question: int
    epoch: int


class SampleAnswers(NamedTuple, Generic[Key]):
    """Equal answers to samples, in order."""

    response: AckResponse
    keys: list[Key]


class QueueReader(Generic[Key, Sample]):
    """One reader of one queue, `<topic>@<subscriber>`.

    A sample that arrives again while it is held replaces the first. That happens if the queue wrongly considered the
    consumer gone, or if two services host the queue. Both deliveries, called twins, have one identity: the program's
    first answer to either of them is sent, and holds for both.

    A sample of a former master of a replicated queue that arrives after one of a later master is refused: the later
    master delivers the sample again, and an answer to the former one has no effect [QS 7.1.2].

    Args:
        queue, consumer_guid: the queue and its consumer.
        name_of: returns the text for a sample in messages, by its key.
    """

    def __init__(self, queue: str, consumer_guid: Guid, name_of: Callable[[Key], object] = str) -> None:
        self.queue = queue
        self.consumer_guid = consumer_guid
        self._name_of = name_of
        self._waiting: dict[Key, Sample] = {}
        self._order: deque[Key] = deque()
        """The keys of the waiting samples: a dictionary finds its first key slowly once many before were deleted."""
        self._delivered: dict[Key, int] = {}
        """Number of twins that the program has of each sample that it received and has not answered, in order."""
        self._answered_twins: dict[Key, int] = {}
        """Number of twins that the program still has, and may answer too, for each answered sample."""
        self._answers: list[SampleAnswers[Key]] = []
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
    def touched_count(self) -> int:
        """Return the number of samples that the program received and has not answered: they may have had an effect."""
        return len(self._delivered)

    def holds(self, key: Key) -> bool:
        """Return whether a sample arrived and is not answered yet."""
        return key in self._delivered or key in self._waiting

    def receive(self, arrivals: Arrivals[Key, Sample]) -> bool:
        """Keep samples that the queue sent; return False if a former master sent them, which refuses them."""
        samples, epoch = arrivals
        if epoch and not self._is_of_latest(epoch):
            self.refused_count += len(samples)
            return False
        if not self._waiting.keys().isdisjoint(samples):
            for key in self._waiting.keys() & samples.keys():
                self._remove_waiting(key)
        self._waiting.update(samples)
        self._order.extend(samples)
        return True

    def receive_end(self, end: QueueEnd) -> None:
        """Count a service's answer, unless a former master sent it or it answers an earlier question."""
        if end.epoch and not self._is_of_latest(end.epoch):
            self.refused_count += 1
        elif end.question == self._question:
            self.end_count += 1

    def ask(self) -> SampleIdentity:
        """Return the identity whose acknowledgment asks whether the queue has more; send that after all answers."""
        self._question += 1
        self.end_count = 0
        return SampleIdentity(NIL_GUID, self._question)

    def forget_epoch(self) -> None:
        """Accept any epoch next: replicas without a disk may all have restarted with an earlier one."""
        self.epoch = 0

    def deliver(self, count: int) -> list[Sample]:
        """Return up to `count` samples for the program, in order of arrival; they remain held until answered."""
        waiting, delivered = self._waiting, self._delivered
        if count >= len(waiting) and delivered.keys().isdisjoint(waiting):
            self._waiting = {}
            self._order.clear()
            delivered.update(dict.fromkeys(waiting, 1))
            return list(waiting.values())
        samples: list[Sample] = []
        while len(samples) < count and waiting:
            key = self._order.popleft()
            samples.append(waiting.pop(key))
            delivered[key] = delivered.get(key, 0) + 1
        return samples

    def acknowledge(self, keys: Iterable[Key], response: AckResponse = AckResponse.ACCEPTED) -> None:
        """Answer held samples: accepted, or rejected, which counts as a failed delivery.

        Raises:
            UsageError: a sample is not held: never received, or answered before; those in front of it are answered. The
                twin of an answered sample raises no error.
        """
        waiting, delivered, answered = self._waiting, self._delivered, self._answers_of(response)
        for key in keys:
            twins = delivered.pop(key, 0)
            if key in waiting:
                self._remove_waiting(key)
            elif not twins:
                if self._forget_twin(key):
                    continue
                raise UsageError(
                    f"sample {self._name_of(key)} of {self.queue!r} is not held by this consumer",
                    remedy="Acknowledge each received sample once.",
                )
            if twins > 1:
                self._remember_twins(key, twins - 1)
            answered.append(key)

    def acknowledge_all(self, response: AckResponse = AckResponse.ACCEPTED) -> int:
        """Answer every sample that the program received, and return their number; waiting samples remain held."""
        for key in self._waiting.keys() & self._delivered.keys():
            self._remove_waiting(key)
        count = len(self._delivered)
        self._answers_of(response).extend(self._delivered)
        self._delivered.clear()
        return count

    def availability(
        self, reception_enabled: bool, unacked_threshold: int = UNLIMITED_THRESHOLD
    ) -> ConsumerAvailability:
        """Return the message by which the consumer reports its threshold and whether it receives [QS 2.10.2].

        Raises:
            UsageError: the threshold is out of range.
        """
        require_threshold(unacked_threshold)
        return ConsumerAvailability(self.queue, self.consumer_guid, reception_enabled, unacked_threshold)

    def pop_answers(self) -> list[SampleAnswers[Key]]:
        """Return the answers to send now, in order, and forget them."""
        answers, self._answers = self._answers, []
        return [each for each in answers if each.keys]

    def _answers_of(self, response: AckResponse) -> list[Key]:
        """Return the list to which samples with this answer are to be added."""
        if not self._answers or self._answers[-1].response != response:
            self._answers.append(SampleAnswers(response, []))
        return self._answers[-1].keys

    def _is_of_latest(self, epoch: int) -> bool:
        if self.epoch and (epoch - self.epoch) & FLAGS_MASK > FLAGS_MASK // 2:
            return False
        self.epoch = epoch
        return True

    def _remove_waiting(self, key: Key) -> None:
        del self._waiting[key]
        self._order.remove(key)

    def _remember_twins(self, key: Key, count: int) -> None:
        self._answered_twins[key] = count
        if len(self._answered_twins) > ANSWERED_TWINS_MAX:
            del self._answered_twins[next(iter(self._answered_twins))]

    def _forget_twin(self, key: Key) -> bool:
        """Return whether a sample's answer was already sent for its twin, and count the twin as answered."""
        count = self._answered_twins.pop(key, 0)
        if count > 1:
            self._answered_twins[key] = count - 1
        return count > 0


def require_threshold(unacked_threshold: int) -> None:
    """Raise an error for a threshold that no service reads.

    Raises:
        UsageError: the threshold is out of range.
    """
    if not UNLIMITED_THRESHOLD <= unacked_threshold <= UNACKED_THRESHOLD_MAX:
        raise UsageError(
            f"an unacknowledged threshold of {unacked_threshold} means nothing",
            remedy=f"Give -1, or a number from 0 to {UNACKED_THRESHOLD_MAX}.",
        )


def acknowledgments_of(reader: QueueReader[SampleIdentity, Any]) -> list[Acknowledgment]:
    """Pop the answers of a reader whose keys are identities, as a message each."""
    return [
        Acknowledgment(reader.queue, reader.consumer_guid, identity, answers.response)
        for answers in reader.pop_answers()
        for identity in answers.keys
    ]
