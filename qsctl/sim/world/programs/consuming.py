"""A program with a consumer: it processes one sample at a time, then accepts it, rejects it, or does not answer.

Duplicates, buffered samples and acknowledgments are handled by a live client's `core.client.Consumer`. A program that
restarts has a new DataReader, and so a new GUID.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from qsctl.core.client.consumer import Arrivals, QueueReader, acknowledgments_of
from qsctl.core.messages import EPOCH_SHIFT, Acknowledgment, AckResponse, ConsumerJoined, ConsumerLeft, Delivery
from qsctl.identity import Guid, SampleIdentity
from qsctl.instant import Nanoseconds
from qsctl.sim.service.peers import HostedQueue
from qsctl.sim.world.environment.agenda import WorldAgenda
from qsctl.sim.world.environment.session import Session


class ConsumerProgram:
    """One consumer and the program around it.

    Args:
        node: the program's name in the world.
        queue: the queue that it consumes from.
        guids: returns the GUID of the reader for the program's n-th start, from 0.
        mean_service_ns: mean of the exponentially distributed time that processing a sample takes.
        rejects: the probability that a sample is rejected.
        silent: the probability that a sample is never answered, until `recover`.
        agenda: the clock.
        random: draws processing times and answers.
        on_answer: called with each acknowledgment of the program.
    """

    def __init__(
        self,
        node: str,
        queue: HostedQueue,
        guids: Callable[[int], Guid],
        *,
        mean_service_ns: float,
        rejects: float,
        silent: float,
        agenda: WorldAgenda,
        random: Random,
        on_answer: Callable[[Guid, str, SampleIdentity, AckResponse], None],
    ) -> None:
        self.node = node
        self.queue = queue
        self._guids = guids
        self._mean_service_ns = mean_service_ns
        self._rejects = rejects
        self._silent = silent
        self._agenda = agenda
        self._random = random
        self._on_answer = on_answer
        self.sessions: dict[int, Session] = {}
        self._life = 0
        self._state: QueueReader[SampleIdentity, Delivery] = QueueReader(queue.full_name, guids(0))
        self._senders: dict[SampleIdentity, list[int]] = {}
        """The services that sent each buffered sample; each of them receives the acknowledgment."""
        self._serving: Delivery | None = None
        self.is_up = True
        self.is_held = False

    @property
    def guid(self) -> Guid:
        """Return the GUID of the present reader."""
        return self._state.consumer_guid

    @property
    def joining(self) -> ConsumerJoined:
        """Return the message that a service receives when it discovers the consumer."""
        return ConsumerJoined(self.queue.full_name, self.guid)

    @property
    def leaving(self) -> ConsumerLeft:
        """Return the message that a service receives when it considers the consumer gone."""
        return ConsumerLeft(self.queue.full_name, self.guid)

    @property
    def queue_names(self) -> tuple[str, ...]:
        """Return the full name of the queue that the program consumes from."""
        return (self.queue.full_name,)

    def matched(self) -> None:
        """Forget the queue's epoch, as a live client does, when a service has discovered the consumer."""
        self._state.forget_epoch()

    def receive(self, service: int, delivery: Delivery) -> None:
        """Buffer a sample that a service delivered, unless it is a duplicate."""
        if not self.is_up:
            return
        if not self._state.receive(Arrivals({delivery.identity: delivery}, delivery.flags >> EPOCH_SHIFT)):
            return
        senders = self._senders.setdefault(delivery.identity, [])
        if service not in senders:
            senders.append(service)
        self._serve()

    def end(self) -> None:
        """End as by a power failure, and lose everything that was received."""
        self.is_up = False
        self._life += 1
        self._serving = None
        for session in self.sessions.values():
            session.program_ended()

    def start(self) -> None:
        """Start again, with a new reader."""
        self.is_up = True
        self._state = QueueReader(self.queue.full_name, self._guids(self._life))
        self._senders.clear()

    def hold(self, *, holds: bool) -> None:
        """Suspend processing and answers, or resume them."""
        self.is_held = holds
        self._serve()

    def recover(self) -> None:
        """Answer every sample from now on."""
        self._silent = 0.0
        self.hold(holds=False)

    def _serve(self) -> None:
        if self._serving is not None or not self._state.waiting_count or self.is_held or not self.is_up:
            return
        self._serving = self._state.deliver(1)[0]
        life = self._life
        service_ns: Nanoseconds = max(1, int(self._random.expovariate(1.0) * self._mean_service_ns))
        self._agenda.after(service_ns, lambda: self._served(life))

    def _served(self, life: int) -> None:
        if life != self._life or self._serving is None:
            return
        if self.is_held:
            self._agenda.after(int(self._mean_service_ns), lambda: self._served(life))
            return
        identity, self._serving = self._serving.identity, None
        draw = self._random.random()
        if draw >= self._rejects + self._silent:
            self._state.acknowledge((identity,))
        elif draw < self._rejects:
            self._state.acknowledge((identity,), AckResponse.REJECTED)
        for answer in acknowledgments_of(self._state):
            self._answer(answer)
        self._serve()

    def _answer(self, answer: Acknowledgment) -> None:
        self._on_answer(self.guid, answer.queue, answer.identity, answer.response)
        for service in self._senders.pop(answer.identity, ()):
            self.sessions[service].send_to_service([answer])
