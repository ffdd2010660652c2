"""The connections between programs and services: a program connects to each service that hosts one of its queues.

Decides when a connection is lost and discovered again: deleting a queue ends the connection and drops its messages in
transit; a queue that is created has to be discovered, even under the name of a deleted one. How one connection behaves
is `environment/session.py`.
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
    """The sessions between all programs and all services of a world.

    Args:
        programs: by node name.
        services: by number.
        agenda: the clock.
        network: contains the pairs of nodes that are cut off.
        trace: receives each message that arrives.
        observers: notified of each write, delivery and answer that arrives, and of each discovered or lost consumer.
        lease_ns: after this much silence a service considers a program gone.
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
        """The queues through which a program is connected to a service, by service number and node."""

    def connect(self, program: Program) -> None:
        """Create the sessions of a program that starts with every service, and open those with services that are up."""
        program.sessions = {number: self._session(program, service) for number, service in self._services.items()}
        for service in self._services.values():
            if service.is_up:
                self._open(service, program)

    def service_started(self, number: int) -> None:
        """Let a service discover the programs of the queues that it hosts."""
        for program in self._programs.values():
            self._open(self._services[number], program)

    def service_ended(self, number: int) -> None:
        """Close the sessions with a service that ended, and drop their messages in transit."""
        for program in self._programs.values():
            program.sessions[number].service_ended()

    def hosting_changed(self, number: int) -> None:
        """Reopen the sessions of the programs whose queues a service created or deleted."""
        service = self._services[number]
        for node, program in self._programs.items():
            former, now = self._hosted.get((number, node), ()), _hosted(service, program)
            if len(former) != len(now) or any(a is not b for a, b in zip(former, now, strict=True)):
                program.sessions[number].service_ended()
                self._open(service, program)

    def network_changed(self) -> None:
        """Let every session react to links that were cut or joined."""
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
    """Return those of a program's queues that a service hosts."""
    by_name = service.hosted
    return tuple(by_name[name] for name in program.queue_names if name in by_name)
