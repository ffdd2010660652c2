"""A program with a producer: it writes samples, repeats unanswered ones, and decides whether to repeat refused ones.

Unanswered samples and outcomes are kept by a live client's `core.client.Producer`. A sample is sent to every service
or, where the producer relays, to one of them with the flag DDS_REPLICATE_SAMPLE. The first positive answer counts; a
sample is refused once every service has refused the last attempt that it was sent [QS 7.1.1.2].
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Final

from msgspec import structs

from qsctl.core.client.producer import Producer, QueueAnswers, SampleTraits
from qsctl.core.messages import AckResponse, SampleFlag, Write, WriteAcknowledgment
from qsctl.identity import Guid, SampleIdentity
from qsctl.instant import Nanoseconds
from qsctl.sim.service.peers import HostedQueue
from qsctl.sim.world.environment.agenda import WorldAgenda
from qsctl.sim.world.environment.session import Session

WINDOW_COUNT: Final = 64
"""Maximum of unanswered samples, where the scenario sets no window."""


@dataclass(slots=True)
class _OpenSample:
    """An unanswered sample: its latest attempt, when it was sent, and the refusals of that by queue."""

    write: Write
    sent_ns: Nanoseconds
    refused_by: dict[str, set[int]] = field(default_factory=dict)


class ProducerProgram:
    """One producer and the program around it.

    Args:
        node: the program's name in the world.
        guid: of its DataWriter; the same after a restart.
        queues: the queues of its topic.
        lifespan_ns: of its samples.
        window_count: maximum of unanswered samples.
        writes_again_ns: time after which an unanswered sample is sent again.
        persistence: the probability that a refused sample is written again under its identity.
        relays: whether it writes to one service only, with the flag to replicate.
        agenda: the clock.
        random: draws whether refused samples are repeated.
        on_write: called with the service and each sample that is sent to it.
        on_refused: called with a queue and an attempt that every service has refused for it.
        on_outcome: called with a sample's identity and whether it was accepted.
    """

    def __init__(
        self,
        node: str,
        guid: Guid,
        queues: Sequence[HostedQueue],
        *,
        lifespan_ns: Nanoseconds,
        window_count: int,
        writes_again_ns: Nanoseconds,
        persistence: float,
        relays: bool,
        agenda: WorldAgenda,
        random: Random,
        on_write: Callable[[int, Write], None],
        on_refused: Callable[[str, Write], None],
        on_outcome: Callable[[SampleIdentity, bool], None],
    ) -> None:
        self.node = node
        self.guid = guid
        self._queues = queues
        self._lifespan_ns = lifespan_ns
        self._window_count = window_count if window_count > 0 else WINDOW_COUNT
        self._writes_again_ns = writes_again_ns
        self._persistence = persistence
        self._relays = relays
        self._agenda = agenda
        self._random = random
        self._on_write = on_write
        self._on_refused = on_refused
        self._on_outcome = on_outcome
        self.sessions: dict[int, Session] = {}
        self._backlog: deque[tuple[bytes, SampleIdentity | None]] = deque()
        self._open: dict[SampleIdentity, _OpenSample] = {}
        self._attempts: dict[SampleIdentity, int] = {}
        """Number of attempts of each sample; a service answers each attempt."""
        self._holders: dict[SampleIdentity, set[int]] = {}
        """The services that may have each sample: they did not refuse the last attempt that they were sent."""
        self._relayed_count = 0
        self._state = self._new_producer()
        self.is_up = True
        self.is_held = False
        self._is_looking = False
        self.written_count = 0
        self.accepted: set[SampleIdentity] = set()
        self.refused_count = 0

    @property
    def participant(self) -> str:
        """Return the domain participant that the program writes in."""
        return self._queues[0].participant

    @property
    def topic_name(self) -> str:
        """Return the topic that the program writes to."""
        return self._queues[0].topic_name

    @property
    def queue_names(self) -> tuple[str, ...]:
        """Return the full names of the topic's queues."""
        return tuple(queue.full_name for queue in self._queues)

    @property
    def open_count(self) -> int:
        """Return the number of samples that are not yet written or not answered."""
        return len(self._open) + len(self._backlog)

    @property
    def is_waiting(self) -> bool:
        """Return whether samples are not yet written or not answered."""
        return bool(self._open or self._backlog)

    def offer(self, payload: bytes) -> None:
        """Give the program another sample to write."""
        self._backlog.append((payload, None))
        self._write()

    def matched(self) -> None:
        """Send all unanswered samples as a new attempt, when a service has discovered the producer.

        The service may have refused the previous attempt before a restart, and does not remember it.
        """
        if self.is_up and not self._relays:
            self._write_again(list(self._open.values()))
        self._write()

    def receive(self, service: int, answer: WriteAcknowledgment) -> None:
        """Process a service's acknowledgment for one queue."""
        each = self._open.get(answer.identity)
        if not self.is_up or each is None:
            return
        if answer.response == AckResponse.REJECTED:
            if answer.attempt != each.write.attempt:
                return
            refused_by = each.refused_by.setdefault(answer.queue, set())
            is_known = service in refused_by
            refused_by.add(service)
            if not (set(self.sessions) if self._relays else self._holders[answer.identity]) <= refused_by:
                return  # a negative acknowledgment is local [QS 7.1.1.2]
            if not is_known:
                self._on_refused(answer.queue, each.write)
        numbers = (answer.identity.sequence_number,)
        self._state.receive(QueueAnswers(answer.queue, numbers, answer.response == AckResponse.ACCEPTED))
        for identity, accepted in self._outcomes():
            ended = self._open.pop(identity)
            self._holders.pop(identity, None)
            self._on_outcome(identity, accepted)
            if accepted:
                self.accepted.add(identity)
                continue
            self.refused_count += 1
            if self._random.random() < self._persistence:
                again = (ended.write.payload, identity)
                self._agenda.after(self._writes_again_ns, partial(self._offer_again, again))
        self._write()

    def _outcomes(self) -> list[tuple[SampleIdentity, bool]]:
        return [
            (SampleIdentity(self.guid, number), each.accepted)
            for each in self._state.pop_outcomes()
            for number in each.numbers
        ]

    def end(self) -> None:
        """End as by a power failure; unanswered samples survive in the program's own storage."""
        self.is_up = False
        for session in self.sessions.values():
            session.program_ended()

    def start(self) -> None:
        """Start again with the same writer GUID, and write the unanswered samples again."""
        self.is_up = True
        self._state = self._new_producer()
        unanswered = [(each.write.payload, identity) for identity, each in self._open.items()]
        self._open.clear()
        self._backlog.extendleft(reversed(unanswered))
        self._write()

    def hold(self, *, holds: bool) -> None:
        """Suspend writing, or resume it."""
        self.is_held = holds
        self._write()

    def recover(self) -> None:
        """Write from now on whatever is to be written."""
        self.hold(holds=False)

    def _new_producer(self) -> Producer:
        state = Producer(self._queues[0].topic_name, self.guid, window_count=self._window_count)
        for queue in self._queues:
            state.queue_appeared(queue.full_name, queue.acknowledges)
        return state

    def _offer_again(self, again: tuple[bytes, SampleIdentity]) -> None:
        self._backlog.appendleft(again)
        self._write()

    def _write(self) -> None:
        if not self.is_up or self.is_held:
            return
        state, backlog = self._state, self._backlog
        while backlog and state.has_room:
            payload, identity = backlog.popleft()
            if identity is None:
                self.written_count += 1
                identity = SampleIdentity(self.guid, self.written_count)
            state.write(payload, identity, SampleTraits(self._lifespan_ns))
        writes = [structs.replace(write, participant=self.participant) for write in state.pop_writes()]
        opened = []
        for write in writes:
            attempt = self._attempts[write.identity] = self._attempts.get(write.identity, 0) + 1
            each = self._open[write.identity] = _OpenSample(structs.replace(write, attempt=attempt), self._agenda.now)
            opened.append(each)
        for identity, _ in self._outcomes():  # of queues that acknowledge nothing
            self._open.pop(identity, None)
        self._send(opened, self._targets())
        self._look_later()

    def _targets(self) -> list[int]:
        services = list(self.sessions)
        if not self._relays:
            return services
        known = [service for service in services if self.sessions[service].is_open] or services
        self._relayed_count += 1
        return [known[self._relayed_count % len(known)]]

    def _send(self, samples: Sequence[_OpenSample], services: Sequence[int]) -> None:
        for service in services:
            session = self.sessions[service]
            if not session.is_open:
                continue
            for each in samples:
                write = each.write
                if self._relays:
                    write = structs.replace(write, flags=write.flags | SampleFlag.REPLICATE)
                self._holders.setdefault(write.identity, set()).add(service)
                self._on_write(service, write)
                session.send_to_service([write])

    def _look_later(self) -> None:
        """Schedule the next check of unanswered samples, if there are any."""
        if self._open and not self._is_looking:
            self._is_looking = True
            self._agenda.after(self._writes_again_ns, self._look)

    def _look(self) -> None:
        self._is_looking = False
        if not self.is_up:
            return
        now = self._agenda.now
        self._write_again([each for each in self._open.values() if now - each.sent_ns >= self._writes_again_ns])
        self._look_later()

    def _write_again(self, samples: Sequence[_OpenSample]) -> None:
        """Send samples again as a new attempt, which every service answers."""
        if self.is_held:
            return
        for each in samples:
            attempt = self._attempts[each.write.identity] = self._attempts[each.write.identity] + 1
            each.write = structs.replace(each.write, attempt=attempt)
            each.sent_ns = self._agenda.now
            refused_by = (each.refused_by.get(queue.full_name, set()) for queue in self._queues)
            self._holders.setdefault(each.write.identity, set()).difference_update(
                next(refused_by).intersection(*refused_by)
            )
            each.refused_by.clear()
        if samples:
            self._send(samples, self._targets())
