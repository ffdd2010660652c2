"""The connections between programs and services: a program is connected where a service hosts its queues, see
`environment/session.py`.

Decides: a queue that a service deletes is gone for its programs, with messages in transit, and one that it creates has
to be discovered, also where it has the name of one that was deleted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from qsctl.core.messages import Delivery, Inbound, Outbound, ProducerLeft, Write, WriteAcknowledgment
from qsctl.core.queue.shared_reader_queue import SharedReaderQueue
from qsctl.instant import Nanoseconds
from qsctl.sim.world.environment.agenda import Trace, WorldAgenda
from qsctl.sim.world.environment.network import Network
from qsctl.sim.world.environment.session import Session
from qsctl.sim.world.programs.consuming import ConsumerProgram
from qsctl.sim.world.programs.producing import ProducerProgram
from qsctl.sim.world.services.history import Audience
from qsctl.sim.world.services.service import SimulatedService

Program: TypeAlias = ProducerProgram | ConsumerProgram
_Hosted: TypeAlias = tuple[SharedReaderQueue, ...]


class Connections:
    """All sessions of a world.

    Args:
        programs: by node.
        services: by number.
        agenda: the clock.
        network: which pairs are cut off.
        trace: where everything is noted.
        observers: who see what arrives.
        lease_ns: after this much silence a service takes a program for gone.
    """

    def __init__(
        self,
        programs: Mapping[str, Program],
        services: Mapping[int, SimulatedService],
        agenda: WorldAgenda,
        network: Network,
        trace: Trace,
        observers: Audience,
        lease_ns: Nanoseconds,
    ) -> None:
        self._programs = programs
        self._services = services
        self._agenda = agenda
        self._network = network
        self._trace = trace
        self._observers = observers
        self._lease_ns = lease_ns
        self._hosted: dict[tuple[int, str], _Hosted] = {}
        """The queues of a program that it was connected to at a service."""

    def connect(self, program: Program) -> None:
        """Give a program's new life a session with each service."""
        program.sessions = {number: self._session(program, service) for number, service in self._services.items()}
        for service in self._services.values():
            if service.is_up:
                self._open(service, program)

    def service_started(self, number: int) -> None:
        """Let a service discover the programs of the queues that it hosts."""
        for program in self._programs.values():
            self._open(self._services[number], program)

    def service_ended(self, number: int) -> None:
        """Lose what is on its way between a service and its programs."""
        for program in self._programs.values():
            program.sessions[number].service_ended()

    def hosting_changed(self, number: int) -> None:
        """Let programs discover queues that a service has created, and lose those that it has deleted."""
        service = self._services[number]
        for node, program in self._programs.items():
            former, now = self._hosted.get((number, node), ()), _hosted(service, program)
            if len(former) != len(now) or any(a is not b for a, b in zip(former, now, strict=True)):
                program.sessions[number].service_ended()
                self._open(service, program)

    def network_changed(self) -> None:
        """Look at all links again."""
        for program in self._programs.values():
            for session in program.sessions.values():
                session.network_changed()

    def _open(self, service: SimulatedService, program: Program) -> None:
        hosted = self._hosted[service.number, program.node] = _hosted(service, program)
        if hosted:
            program.sessions[service.number].service_started()

    def _session(self, program: Program, service: SimulatedService) -> Session:
        number = service.number

        def at_service(message: Inbound) -> None:
            self._trace.note("at", number, message)
            if type(message) is Write:
                for note_arrived in self._observers.arrived:
                    note_arrived(number, message)
            service.receive([message])

        if isinstance(program, ConsumerProgram):
            consumer = program
            joining, leaving = program.joining, program.leaving

            def opened() -> None:
                consumer.matched()
                for note_joined in self._observers.joined:
                    note_joined(number, joining.consumer_guid)
                service.receive([joining])

            def lapsed() -> None:
                for note_left in self._observers.left:
                    note_left(number, leaving.consumer_guid)
                service.receive([leaving])

        else:
            producer = program
            left = ProducerLeft(producer.participant, producer.topic_name, producer.guid)

            def opened() -> None:
                producer.matched()

            def lapsed() -> None:
                service.receive([left])

        return Session(
            self._agenda,
            self._network,
            program.node,
            str(number),
            self._lease_ns,
            at_service=at_service,
            at_program=lambda message: self._at_program(program, number, message),
            opened=opened,
            lapsed=lapsed,
        )

    def _at_program(self, program: Program, service: int, message: Outbound) -> None:
        self._trace.note("to", program.node, message)
        if isinstance(program, ConsumerProgram):
            assert isinstance(message, Delivery)
            for note_delivered in self._observers.delivered:
                note_delivered(service, message)
            program.receive(service, message)
        else:
            assert isinstance(message, WriteAcknowledgment)
            for note_answered in self._observers.answered:
                note_answered(service, message)
            program.receive(service, message)


def _hosted(service: SimulatedService, program: Program) -> _Hosted:
    """Return the queues of a program that a service hosts."""
    by_name = service.hosted
    return tuple(by_name[name] for name in program.queue_names if name in by_name)
