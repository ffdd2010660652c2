"""A program with a consumer: it processes one sample at a time, then acknowledges, rejects, or stays silent.

The consumer is that of a live client (`core.client.Consumer`): twins, what is held, answers. A program that starts
again has a new reader, and so a new GUID.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from qsctl.core.client.consumer import QueueReader
from qsctl.core.messages import Acknowledgment, AckResponse, ConsumerJoined, ConsumerLeft, Delivery
from qsctl.identity import Guid, SampleIdentity
from qsctl.instant import Nanoseconds
from qsctl.sim.service.peers import HostedQueue
from qsctl.sim.world.environment.agenda import WorldAgenda
from qsctl.sim.world.environment.session import Session


class ConsumerProgram:
    """One consumer and the program around it.

    Args:
        node: its name in the world.
        queue: that it consumes.
        guids: gives the GUID of the reader of each of its lives.
        mean_service_ns: how long a sample takes; exponential.
        rejects: the probability that a sample is rejected.
        silent: the probability that one is never answered.
        agenda: the clock.
        random: draws what the program does.
        on_answer: called with each answer of the program.
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
        self._state = QueueReader(queue.full_name, guids(0))
        self._senders: dict[SampleIdentity, list[int]] = {}
        """Senders of a sample that is held: each is answered."""
        self._serving: Delivery | None = None
        self.is_up = True
        self.is_held = False

    @property
    def guid(self) -> Guid:
        """That of the present reader."""
        return self._state.consumer_guid

    @property
    def joining(self) -> ConsumerJoined:
        """The messages that a service receives when it discovers the consumer."""
        return ConsumerJoined(self.queue.full_name, self.guid)

    @property
    def leaving(self) -> ConsumerLeft:
        """The messages that a service receives when it considers the consumer gone."""
        return ConsumerLeft(self.queue.full_name, self.guid)

    @property
    def queue_names(self) -> tuple[str, ...]:
        """The queue that it consumes, by its full name."""
        return (self.queue.full_name,)

    def matched(self) -> None:
        """Note that a service found the consumer: what comes next is the present master's, as for a live client."""
        self._state.forget_epoch()

    def receive(self, service: int, delivery: Delivery) -> None:
        """Keep a sample that a service sent."""
        if not self.is_up:
            return
        if not self._state.receive(delivery):
            return
        senders = self._senders.setdefault(delivery.identity, [])
        if service not in senders:
            senders.append(service)
        self._serve()

    def end(self) -> None:
        """Lose the power, with everything received."""
        self.is_up = False
        self._life += 1
        self._serving = None
        for session in self.sessions.values():
            session.program_ended()

    def start(self) -> None:
        """Run again, with a new reader."""
        self.is_up = True
        self._state = QueueReader(self.queue.full_name, self._guids(self._life))
        self._senders.clear()

    def hold(self, *, holds: bool) -> None:
        """Let the program answer nothing more, or go on."""
        self.is_held = holds
        self._serve()

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
            self._state.acknowledge(identity)
        elif draw < self._rejects:
            self._state.acknowledge(identity, AckResponse.REJECTED)
        for answer in self._state.pop_answers():
            self._answer(answer)
        self._serve()

    def _answer(self, answer: Acknowledgment) -> None:
        self._on_answer(self.guid, answer.queue, answer.identity, answer.response)
        for service in self._senders.pop(answer.identity, ()):
            self.sessions[service].send_to_service([answer])
