"""Writing samples to the queues of a topic over DDS, until every queue has acknowledged.

Decides: which acknowledgment counts. Services that host the same queue, such as replicas, each acknowledge: the first
acknowledgment is the queue's. A queue that was matched too late to receive a sample is not waited for.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from qsctl.client.session import TURN_NS, ClientSession
from qsctl.core.client.producer import QueueAnswers
from qsctl.core.messages import AckResponse, QueueName, Write, WriteAcknowledgment
from qsctl.errors import NoAnswer
from qsctl.identity import Guid, SampleIdentity
from qsctl.instant import SECOND_NS
from qsctl.transport.dds.clients.client_ports import ProducerPort
from qsctl.transport.dds.peers.matches import DeletedByCommand, QueueAppeared, QueueVanished

WINDOW_COUNT: Final = 2000

SILENCE_S: Final = 1.0
"""After so long without an answer the caller learns that it waits."""


class SampleWriter:
    """A producer on one topic for occasional samples.

    A sample not acknowledged in time stays pending: an acknowledgment during a later call still counts.
    """

    def __init__(self, session: ClientSession, topic_name: str, guid: Guid) -> None:
        self._session = session
        self._port = ProducerPort(session.domain.participant, topic_name, guid)
        session.domain.add(self._port)
        self._acknowledging: dict[str, bool] = {}
        self._deleted: set[str] = set()
        """Queues that announced that they were deleted; what is written for them is refused."""
        self._open: dict[SampleIdentity, set[str]] = {}
        self._waited_for: set[SampleIdentity] = set()
        self._answers: list[WriteAcknowledgment] = []
        self._names: Mapping[str, QueueName] = {}
        self.on_silence: Callable[[int], None] | None = None
        """Called once in a wait, with the number of samples that no queue has answered for a while."""

    def write(
        self, samples: Sequence[Write], queues: Mapping[str, QueueName], timeout_s: float
    ) -> list[WriteAcknowledgment]:
        """Write samples and wait for the acknowledgments.

        Args:
            samples: samples of this writer's GUID and topic.
            queues: the queues that must enqueue them, `<topic>@<subscriber>`, each with its name in the result.
            timeout_s: longest wait for the queues, and for each next acknowledgment.

        Raises:
            NoAnswer: no queue is reached in time.
            UsageError: a sample is too large.
        """
        self._names = queues
        self._answers = []
        self._waited_for = set()
        self._find(timeout_s)
        sent_count = 0
        deadline = time.monotonic() + timeout_s
        silent_from = time.monotonic() + SILENCE_S
        while sent_count < len(samples) or self._waited_for:
            sent_count += self._send(samples[sent_count : sent_count + WINDOW_COUNT - len(self._waited_for)])
            before = len(self._answers)
            self._session.domain.turn(TURN_NS)
            self._turn()
            if len(self._answers) > before:
                deadline = time.monotonic() + timeout_s
                silent_from = time.monotonic() + SILENCE_S
            elif time.monotonic() >= deadline:
                break
            elif self.on_silence is not None and time.monotonic() >= silent_from:
                silent_from = deadline
                self.on_silence(len(samples) - sent_count + len(self._waited_for))
        if self._waited_for:
            for refusal in self._port.give_up():
                self._receive(refusal)
        while not self._port.flush() and time.monotonic() < deadline:
            self._session.domain.turn(SECOND_NS // 1000)
        return self._answers

    def _find(self, timeout_s: float) -> None:
        self._acknowledging = dict(self._port.matched_queues())
        wanted = self._names.keys()
        self._session.run_until(lambda: wanted <= self._acknowledging.keys() | self._deleted, timeout_s, self._turn)
        if not self._acknowledging and not wanted & self._deleted:
            raise NoAnswer(
                f"no queue of topic {self._port.topic_name!r} was reached in {timeout_s:g} s",
                remedy="Check that the queue's domain can be reached from here.",
            )

    def _send(self, samples: Sequence[Write]) -> int:
        if not samples or self._port.backlog_count:
            return 0
        for queue in self._deleted & self._names.keys():
            for each in samples:
                self._refuse(queue, each.identity)
        if not self._acknowledging and self._deleted:
            return len(samples)
        self._port.send(samples)
        self._port.flush()
        answering = {queue for queue, acknowledges in self._acknowledging.items() if acknowledges}
        if answering:
            self._open.update((each.identity, set(answering)) for each in samples)
            self._waited_for.update(each.identity for each in samples)
        return len(samples)

    def _turn(self) -> None:
        for change in self._port.poll():
            if type(change) is QueueAppeared:
                self._acknowledging[change.queue] = change.acknowledges
                self._deleted.discard(change.queue)
            elif type(change) is DeletedByCommand:
                self._acknowledging.pop(change.queue, None)
                self._deleted.add(change.queue)
                for identity in [each for each in self._open if change.queue in self._open[each]]:
                    self._answered(change.queue, identity)
                    self._refuse(change.queue, identity)
            elif type(change) is QueueVanished:
                self._acknowledging.pop(change.queue, None)
                for identity in list(self._open):
                    self._answered(change.queue, identity)
            elif type(change) is QueueAnswers:
                self._receive(change)

    def _receive(self, answers: QueueAnswers) -> None:
        name = self._names.get(answers.queue, answers.queue)
        response = AckResponse.ACCEPTED if answers.accepted else AckResponse.REJECTED
        for number in answers.numbers:
            identity = SampleIdentity(self._port.guid, number)
            if self._answered(answers.queue, identity):
                self._answers.append(WriteAcknowledgment(name, identity, response))

    def _refuse(self, queue: str, identity: SampleIdentity) -> None:
        self._answers.append(WriteAcknowledgment(self._names.get(queue, queue), identity, AckResponse.REJECTED))

    def _answered(self, queue: str, identity: SampleIdentity) -> bool:
        """Stop waiting for a queue's acknowledgment of a sample; return whether it was awaited."""
        waiting = self._open.get(identity)
        if waiting is None or queue not in waiting:
            return False
        waiting.discard(queue)
        if not waiting:
            del self._open[identity]
            self._waited_for.discard(identity)
        return True
