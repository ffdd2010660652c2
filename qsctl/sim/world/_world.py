"""A cluster of service instances and the programs around it, on one virtual clock, with all simulated faults.

The services run the live driver (`services._process`), the programs have the state machines of live clients, and only
the transport between them is simulated here. A `Director` applies the faults; observers judge. The seed decides
everything: there is no other randomness, no real clock, and no dependence on the order of a set.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from functools import partial
from random import Random
from typing import Final

from qsctl.core.admin.command import ChangeMembers, Command, CreateQueue, DeleteQueue, FlushQueue, MemberAction
from qsctl.core.high_availability.cluster_configuration import CONFIGURATION_STREAM
from qsctl.core.messages import (
    AckResponse,
    CommandReply,
    CommandRequest,
    Delivery,
    Outbound,
    Write,
    WriteAcknowledgment,
)
from qsctl.core.queue.hosting import queue_identifier, subscriber_identifier
from qsctl.core.queue.settings import PersistenceKind
from qsctl.core.settings import queues_by_name, queues_of
from qsctl.errors import InvalidInput
from qsctl.identity import Guid, Incarnation, SampleIdentity
from qsctl.instant import MILLISECOND_NS, Nanoseconds
from qsctl.resource import ResourceIdentifier, ResourceKind
from qsctl.sim.arrivals.cursor import ArrivalCursor
from qsctl.sim.scenario.intervals import occurrences
from qsctl.sim.scenario.scenario import Scenario
from qsctl.sim.service.peers import arrivals_scenario, guid_of, hosted_queues
from qsctl.sim.world._connections import Connections, Program
from qsctl.sim.world.environment.agenda import Trace, WorldAgenda
from qsctl.sim.world.environment.disk import SimulatedDisk
from qsctl.sim.world.environment.links import CONFIGURATION, QUEUES, STRANGER_RUN
from qsctl.sim.world.environment.network import Conditions, Network
from qsctl.sim.world.faults.stranger import forged, letter_of
from qsctl.sim.world.faults.vocabulary import Forgery
from qsctl.sim.world.programs.administrator import WorldAdministrator
from qsctl.sim.world.programs.producing import ProducerProgram
from qsctl.sim.world.programs.workload import consumers_of, producers_of
from qsctl.sim.world.services.configuration import (
    configuration_settings,
    created_settings,
    instance_count,
    instance_name,
    instance_settings,
)
from qsctl.sim.world.services.discovery import SimulatedDiscovery
from qsctl.sim.world.services.history import Audience
from qsctl.sim.world.services.incarnations import Incarnations, best_left, held_in, is_log
from qsctl.sim.world.services.service import SimulatedService, Surroundings
from qsctl.transport.dds.replicas.letter_box import Seen

FILE_SIZES_KB: Final = (4, 16, 1000)
"""Sizes at which a store begins another file; one is drawn per world, and small ones make several files."""

LOOKS_AGAIN_NS: Final[Nanoseconds] = 300 * MILLISECOND_NS
"""Interval at which the operator checks what services need: see `World._look_after`."""

ADMINISTRATOR = 3
"""The kind that the administrator's GUID contains."""


class World(Surroundings):
    """One repetition of a scenario of model `world`.

    Args:
        scenario: has a workload and a world; its seed determines all random numbers.

    Raises:
        InvalidInput: the scenario cannot be simulated.
    """

    def __init__(self, scenario: Scenario) -> None:
        workload, declared = scenario.workload, scenario.world
        if workload is None or declared is None:
            raise InvalidInput(
                f"{scenario.name}: a scenario of model world needs a <workload> and a <world>",
                remedy="Add what is missing.",
            )
        self.scenario = scenario
        self.declared = declared
        self._seed = scenario.seed
        self.agenda = WorldAgenda()
        self.trace = Trace(self.agenda)
        conditions = Conditions(
            workload.delay_ns, workload.delay_ns + declared.delay_variation_ns, declared.loss, declared.duplication
        )
        self.network = Network(self.agenda, self.random("network"), conditions, declared.bandwidth_bits_per_second)
        self.observers = Audience()
        count = instance_count(scenario)
        settings = [instance_settings(scenario, number) for number in range(1, count + 1)]
        self.queues = hosted_queues(settings[0])
        self.consumed_queues: set[str] = set()
        """Full names of the queues that have a consumer, which must be empty at the end."""
        self._incarnations = self.random("incarnations")
        names = [instance_name(number) for number in range(1, count + 1)]
        self._numbers = {name: number for number, name in enumerate(names, 1)}
        self.services = {
            number: SimulatedService(
                number,
                settings[number - 1],
                names,
                agenda=self.agenda,
                trace=self.trace,
                disk=SimulatedDisk(self.random(f"disk-{number}"), workload.sync_ns),
                random=self.random(f"jitter-{number}"),
                draw=lambda: Incarnation(self._incarnations.getrandbits(63) or 1),
                surroundings=self,
                observers=self.observers,
                compact_records=declared.compact_records,
                file_max_size_kb=self.random("files").choice(FILE_SIZES_KB),
                configuration=configuration_settings(scenario),
                master_priority=int(number == declared.preferred_instance),
            )
            for number in range(1, count + 1)
        }
        self.producers = producers_of(
            scenario, self.queues, self.agenda, self.random, self._written, self._refused, self._outcome_known
        )
        self.consumers = consumers_of(scenario, self.queues, self.agenda, self.random, self._processed)
        self.consumed_queues = {consumer.queue.full_name for consumer in self.consumers}
        programs: list[Program] = [*self.producers, *self.consumers]
        self.programs = {each.node: each for each in programs}
        self._by_guid: dict[Guid, Program] = {each.guid: each for each in self.programs.values()}
        self.connections = Connections(
            self.programs, self.services, self.agenda, self.network, self.trace, self.observers, declared.lease_ns
        )
        self._discovery = SimulatedDiscovery(self.services, self.agenda, self.network, declared.lease_ns)
        self.network.on_change += [self.connections.network_changed, self._discovery.changed]
        self.load_until_ns = max(0, scenario.horizon_ns - declared.recovery_ns)
        """Instant at which the load and the faults end, and the recovery time begins."""
        self._arrivals = ArrivalCursor(arrivals_scenario(scenario), 0, self.load_until_ns)
        self._command_count = 0
        self.administrator = WorldAdministrator(
            settings[0],
            count,
            self.agenda,
            orders=declared.replicates_configuration,
            members=self.members_of_configuration,
            new_request=self._new_request,
            send=self._send_command,
        )
        self.incarnations = Incarnations(self.services, self.administrator)
        self._strangers = self.random("strangers")
        self.stored_streams: dict[str, str] = {}
        """The replicated streams of persistent queues, by the queues' full names."""
        self.changes: set[SampleIdentity] = set()
        """Identities of the commands that change the configuration."""
        self.was_flushed = False
        """Whether a queue was flushed, so that accepted samples may have been removed."""
        self.offered_count = 0

    def random(self, purpose: str) -> Random:
        """Return a random number generator for one purpose, independent of those for others."""
        return Random(f"{self._seed}/{purpose}")

    @property
    def now(self) -> Nanoseconds:
        """Return the present instant."""
        return self.agenda.now

    def begin(self) -> None:
        """Start every service and program, and schedule the load."""
        for program in self.programs.values():
            self.connections.connect(program)
        for service in self.services.values():
            service.start()
        persistent = queues_by_name(self.services[1].settings)
        self.stored_streams = {
            queue: stream
            for queue, stream in self.replicated_streams().items()
            if persistent[queue].persistence.kind is PersistenceKind.PERSISTENT
        }
        if self.services[1].replicas:
            self.agenda.after(LOOKS_AGAIN_NS, self._look_after)
        if self.declared.witness_instance:
            self.agenda.after(LOOKS_AGAIN_NS, self._make_witness)
        self._plan_arrival()
        assert self.scenario.workload is not None
        number = 0
        for declared in self.scenario.workload.consumers:
            for _ in range(declared.count):
                number += 1
                for start_ns, end_ns in occurrences(declared.absences, self.load_until_ns):
                    self.agenda.at(start_ns, partial(self.end_program, f"consumer-{number}"))
                    self.agenda.at(min(end_ns, self.load_until_ns), partial(self.start_program, f"consumer-{number}"))

    def conclude(self) -> None:
        """Notify the observers of the end of the world."""
        for note_concluded in self.observers.concluded:
            note_concluded()

    # Actions on the world.

    def end_program(self, node: str) -> None:
        """End a program as by a power failure."""
        program = self.programs[node]
        if program.is_up:
            self.trace.note("end", node)
            program.end()

    def start_program(self, node: str) -> None:
        """Start a program that has ended; services have to discover it again."""
        program = self.programs[node]
        if not program.is_up:
            self.trace.note("start", node)
            program.start()
            self._by_guid[program.guid] = program
            self.connections.connect(program)

    def write(self, node: str, count: int = 1) -> None:
        """Let a producer write samples in addition to its arrivals."""
        for _ in range(count):
            self._offer(next(each for each in self.producers if each.node == node), 16)

    def flush(self, queue: ResourceIdentifier) -> None:
        """Send the command that flushes a queue to every service [QS 5.4.3]."""
        self.was_flushed = True
        self._command(FlushQueue(queue))

    def create(self, name: str) -> None:
        """Send the command that creates a queue to every service [QS 5.4.1]."""
        settings = created_settings(self.scenario, name, 1 + self._command_count % 2)
        self.changes.add(self._command(CreateQueue(self._subscriber, settings)))

    def delete(self, name: str) -> None:
        """Send the command that deletes a queue to every service [QS 5.4.2]."""
        queue = self._subscriber.child(ResourceKind.SHARED_READER_QUEUE, name)
        self.changes.add(self._command(DeleteQueue(queue)))

    def replace(self, name: str) -> None:
        """Let the administrator delete a queue and create it again."""
        self.administrator.replace(name)

    def change_members(self, action: MemberAction, service: SimulatedService) -> None:
        """Send the commands that change one member of each replication group to every service."""
        member = instance_name(service.number)
        self._change_queues(action, member)
        if self.declared.replicates_configuration:
            self._command(ChangeMembers(None, action, member))

    def _change_queues(self, action: MemberAction, member: str) -> None:
        for participant, subscriber, queue in queues_of(self.services[1].settings):
            if queue.replication.enabled and not queue.is_dead_letter:
                self._command(ChangeMembers(queue_identifier(participant.name, subscriber.name, queue), action, member))

    def voters(self, service: SimulatedService, queue: str) -> set[int]:
        """Return the services that a service's log lists as voters of a queue; none while it is down."""
        replica = service.replica(queue)
        return set() if replica is None else self.numbers(replica.members.voters)

    def members_of_configuration(self) -> set[int]:
        """Return the services that the latest master of the configuration lists as members; all, if there is none."""
        masters = [each for each in self.services.values() if each.is_master_of_configuration]
        replicas = [each.replicas[CONFIGURATION_STREAM] for each in masters]
        if not replicas:
            return set(self.services)
        latest = max(replicas, key=lambda each: each.epoch).members.latest
        return self.numbers((*latest.voters, *latest.learners))

    def numbers(self, names: Iterable[str]) -> set[int]:
        """Return the numbers of the services of these names."""
        return {self._numbers[name] for name in names}

    def destroy(self, service: SimulatedService) -> None:
        """Destroy a service: its disk is lost, and it never starts again."""
        service.is_gone = True
        self.lose_disk(service)

    def lose_disk(self, service: SimulatedService, *, is_known: bool = True) -> None:
        """End a service and delete the content of its disk.

        Args:
            service: the service.
            is_known: whether the register of its files survives, so that a restart notices their loss.
        """
        service.end()
        register = [name for name in service.disk.names if name.endswith(".json")]
        service.disk.lose(but=register if is_known else ())
        service.stored.lose()
        for note_lost_disk in self.observers.lost_disk:
            note_lost_disk(service.number)
        self._note_lost_majorities(self.stored_streams.values())

    def is_held_without(self, service: SimulatedService) -> bool:
        """Return whether of each stream that any service has a log of, a quorum of the others has one.

        Otherwise these and an empty disk may be taken for a new cluster.
        """
        counts: Counter[str] = Counter()
        for each in self.services.values():
            counts.update({stream: each is not service for stream, log in each.stored.streams.items() if is_log(log)})
        return all(count > len(self.services) // 2 for count in counts.values())

    def _note_lost_majorities(self, streams: Collection[str]) -> None:
        """Report the queues of these streams whose log is left at fewer than a quorum, and may have lost samples."""
        for queue, stream in self.stored_streams.items():
            if stream not in streams:
                continue
            logs = [each.stored.streams.get(stream) for each in self.services.values()]
            best = best_left(logs, len(self.services) // 2 + 1)
            if best is not None:
                for note_lost_majority in self.observers.lost_majority:
                    note_lost_majority(queue, held_in(best))

    def forge(self, kind: Forgery, service: SimulatedService) -> None:
        """Send forged frames of a stranger to a service, for each of its replicas."""
        process = service.process
        if process is None:
            return
        own = instance_name(service.number)
        others = [name for name in self._numbers if name != own]
        for stream, replica in process.replicas.items():
            self._strangers.shuffle(others)
            other = self.services[self._numbers[others[0]]] if others else service
            now = self.agenda.now
            link = CONFIGURATION if stream == CONFIGURATION_STREAM else QUEUES
            frames = forged(kind, stream, own, others[0] if others else own, replica.epoch, now, replica.incarnation)
            # The stranger announces itself, or sends in the name of a running process, whose run is public.
            takes_run = self._strangers.random() < 0.7 and other.process is not None
            for frame in frames:
                run = other.process.links.own.run if takes_run and other.process is not None else STRANGER_RUN
                seen = Seen(frame.sender, run, now)
                self._discovery.introduce(service, seen)
                pieces = letter_of(seen, frame, self._strangers, is_garbled=kind is Forgery.GARBAGE)
                service.arrive(service.life_count, link, pieces)

    @property
    def _subscriber(self) -> ResourceIdentifier:
        participant, subscriber, _ = next(queues_of(self.services[1].settings))
        return subscriber_identifier(participant.name, subscriber.name)

    def _new_request(self) -> SampleIdentity:
        self._command_count += 1
        return SampleIdentity(guid_of(ADMINISTRATOR, 0), self._command_count)

    def _look_after(self) -> None:
        """Do, like an operator, what services need once all that remain are up; repeat.

        A group may need a forced quorum; a service may have deleted a queue, and lack the new one.
        """
        if self._is_calm:
            hosting_counts = Counter(stream for each in self.services.values() for stream in each.replicas)
            for service in self.services.values():
                # Logs are lost with disks, and by a deletion that has reached only some of the services.
                self._note_lost_majorities(service.force_quorum(hosting_counts))
                if service.is_up:
                    self.administrator.note_hosted(service.number, service.hosted)
        self.agenda.after(LOOKS_AGAIN_NS, self._look_after)

    def _make_witness(self) -> None:
        """Send the next of the commands that make an instance a witness of every queue, like an operator; repeat."""
        name = instance_name(self.declared.witness_instance)
        steps = [self._step_to_witness(queue.full_name, name) for queue in self.queues if queue.replicated]
        if (action := next(filter(None, steps), None)) is not None:
            self._change_queues(action, name)
        self.agenda.after(LOOKS_AGAIN_NS, self._make_witness)

    def _step_to_witness(self, queue: str, name: str) -> MemberAction | None:
        """Return the next change of a queue's members by which one is a witness; None: it is, or no master is there."""
        for service in self.services.values():
            if service.is_master(queue) and (replica := service.replica(queue)) is not None:
                members = replica.members.latest
                if name not in (*members.voters, *members.learners):
                    return MemberAction.ADD_WITNESS
                if name not in members.witnesses:
                    return MemberAction.REMOVE
                return MemberAction.PROMOTE if name in members.learners else None
        return None

    @property
    def _is_calm(self) -> bool:
        """Return whether all services that are not destroyed run, and no message between them is lost."""
        is_calm = self.network.is_whole and self.network.conditions.loss == 0.0
        return is_calm and all(
            each.is_gone or (each.is_up and not each.is_paused and not each.is_stuck) for each in self.services.values()
        )

    def _command(self, command: Command) -> SampleIdentity:
        request = self._new_request()
        for service in self.services.values():
            message = CommandRequest(request, "*", command)
            self.agenda.after(self.network.delay_ns(), partial(service.receive, [message]))
        return request

    def _send_command(self, service: int, request: SampleIdentity, command: Command) -> None:
        """Send a command of the administrator, whose node is that of the first program."""
        if self.network.is_blocked(self._desk, str(service)) or self.network.is_lost():
            return
        message = CommandRequest(request, "*", command)
        self.agenda.after(self.network.delay_ns(), lambda: self._command_arrives(service, message))

    def _command_arrives(self, service: int, message: CommandRequest) -> None:
        if self.administrator.is_current(service, message.request):
            self.trace.note("command", service, message.request)
            self.services[service].receive([message])

    @property
    def _desk(self) -> str:
        return next(iter(self.programs))

    # The environment of services and programs.

    def send(self, service: int, message: Outbound) -> None:
        """Send a message to the program that it is addressed to, unless that has restarted since."""
        if isinstance(message, Delivery):
            guid = message.consumer_guid
        elif isinstance(message, WriteAcknowledgment):
            guid = message.identity.writer_guid
        elif isinstance(message, CommandReply):
            self._send_reply(service, message)
            return
        else:
            return
        program = self._by_guid.get(guid)
        if program is not None and program.guid == guid:  # else it is for the program before its restart
            program.sessions[service].send_to_program(message)

    def _send_reply(self, service: int, message: CommandReply) -> None:
        if not self.network.is_blocked(str(service), self._desk):
            receive = self.administrator.receive
            self.agenda.after(self.network.delay_ns(), lambda: receive(service, message.request, message.reply))

    def carry(self, service: int, kind: str, recipient: str, pieces: Sequence[bytes], *, passes: bool) -> None:
        """Send the fragments of a message to another service; they are lost if it restarts meanwhile.

        Fragments are lost one by one, and keep their order, as those of a DataWriter do; messages may overtake each
        other.
        """
        number = self._numbers.get(recipient)
        if number is not None:  # else it is for a stranger, which reads nothing
            receiver = self.services[number]
            life_count = receiver.life_count
            left = [*pieces[:1], *(each for each in pieces[1:] if not self.network.is_lost())]
            self.network.send_message(
                str(service), str(number), lambda: receiver.arrive(life_count, kind, left), list(map(len, left)),
                passes=passes,
            )  # fmt: skip

    def service_started(self, service: int) -> None:
        """Let a service discover its programs, and the services each other."""
        self.connections.service_started(service)
        self._discovery.changed()

    def service_ended(self, service: int) -> None:
        """Drop the messages in transit between a service that ended and its programs."""
        self.connections.service_ended(service)
        self._discovery.changed()

    def service_left(self, service: int) -> None:
        """Let the other services notice at once that one stopped in order."""
        self._discovery.left(service)

    def hosting_changed(self, service: int) -> None:
        """Let programs discover the queues that a service created, and lose those that it deleted."""
        self.connections.hosting_changed(service)

    def held(self) -> set[tuple[str, SampleIdentity]]:
        """Return the samples, with their queues, that are held by the queues' masters."""
        found: set[tuple[str, SampleIdentity]] = set()
        for service in self.services.values():
            found |= service.held()
        return found

    def replicated_streams(self) -> dict[str, str]:
        """Return the replicated streams, by the full names of their queues; from service 1, which must be up."""
        first = self.services[1]
        streams = {each.full_name: first.hosted[each.full_name].stream.name for each in self.queues if first.is_up}
        return {queue: stream for queue, stream in streams.items() if stream in first.replicas}

    def has_master(self, queue: str) -> bool:
        """Return whether some service is master of a queue, or hosts it without replication."""
        return any(service.is_master(queue) for service in self.services.values())

    def _plan_arrival(self) -> None:
        if self._arrivals.next_ns < self.load_until_ns:
            self.agenda.at(self._arrivals.next_ns, self._arrive)

    def _arrive(self) -> None:
        number, size_bytes = self._arrivals.pop()
        self._offer(self.producers[number], size_bytes)
        self._plan_arrival()

    def _offer(self, producer: ProducerProgram, size_bytes: int) -> None:
        self.offered_count += 1
        producer.offer(f"{self.offered_count:08d}".encode().ljust(size_bytes, b"."))

    def _written(self, service: int, write: Write) -> None:
        for note_written in self.observers.written:
            note_written(service, write)

    def _refused(self, queue: str, write: Write) -> None:
        for note_refused in self.observers.refused:
            note_refused(queue, write)

    def _outcome_known(self, identity: SampleIdentity, accepted: bool) -> None:
        self.trace.note("outcome", identity, accepted)

    def _processed(self, guid: Guid, queue: str, identity: SampleIdentity, response: AckResponse) -> None:
        for note_processed in self.observers.processed:
            note_processed(guid, queue, identity, response)
