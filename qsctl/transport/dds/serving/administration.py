"""The service's endpoints of administration, monitoring and logging [QS 5.3, 6.2 and 3.5].

Decides: which requests reach the engine, and when a reply is sent. A request that cannot be parsed is answered here;
one whose target pattern matches only other services is ignored before its body is parsed.
"""

# The wire types' annotations are the binding's, not a type checker's.
# mypy: disable-error-code="arg-type"

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

from cyclonedds.core import ReadCondition
from cyclonedds.pub import DataWriter
from cyclonedds.sub import DataReader

from qsctl.core.admin.reply import Reply, ReturnCode
from qsctl.core.admin.target import matches
from qsctl.core.messages import CommandReply, CommandRequest, StatusPublication
from qsctl.errors import QsctlError
from qsctl.identity import NIL_IDENTITY, SampleIdentity
from qsctl.transport.dds.channels import FrameWriter
from qsctl.transport.dds.diagnosis.peer_faults import UNKNOWN_PEER
from qsctl.transport.dds.participant import Participant
from qsctl.transport.dds.peers.announcements import writer_key
from qsctl.transport.dds.peers.discovery import QUEUING_SERVICE, participant_of
from qsctl.transport.dds.qos import last_value_qos, reader_qos
from qsctl.transport.dds.serving._administration_clients import AdministrationClients
from qsctl.transport.dds.serving._arrival_order import ArrivalOrder
from qsctl.transport.dds.wire.bodies import identity_from_wire, octets_of, wire_status
from qsctl.transport.dds.wire.commands import (
    SnippetReader,
    action_name,
    command_from_wire,
    is_for_queuing_services,
    request_from_octets,
)
from qsctl.transport.dds.wire.raw import RawReader, RawWriter
from qsctl.transport.dds.wire.replies import reply_octets
from qsctl.transport.dds.wire.representations import BothRepresentations, raw_of_frames
from qsctl.transport.dds.wire.signed_commands import RUN_TRAIT, CommandVerifier, UnauthorizedCommand
from qsctl.transport.dds.wire.wire_identity import NIL_OCTETS, WireGuid, WireIdentity
from qsctl.transport.dds.wire.wire_monitoring import MONITORING_TOPIC, monitoring_class
from qsctl.transport.dds.wire.wire_types import (
    COMMAND_REPLY_TOPIC,
    COMMAND_REQUEST_TOPIC,
    LOGGER_TOPIC,
    WireCommandReply,
    WireCommandRequest,
    WireLogMessage,
)

WAITING_MAX: Final = 256
"""Maximum number of waiting requests of one process. In [QS Table 3.4] a reader holds 32 of all processes."""

READER_REQUESTS_MAX: Final = 1024
"""Number of requests in the reader before they are moved to the processes' lines.

A full reader would block the library's thread that delivers samples to all readers of the domain.
"""

SENDERS_MAX: Final = 10_000
"""Number of remembered writers of requests."""

SHOWN_RESOURCE_CHARACTERS: Final = 100
"""Length to which the log shortens the resource identifier of a denied command."""

COMMANDS_AT_ONCE: Final = 4
"""Maximum number of commands per turn while no samples are moving: the first sample waits for no more of them."""


class _Waiting(NamedTuple):
    """A waiting request."""

    data: bytes
    peer: str
    arrival: int
    """Its arrival number among all requests."""


_NO_IDENTITY: Final = WireIdentity(WireGuid(NIL_OCTETS))


class AdminEndpoints:
    """The request reader and the reply writer of one service.

    Args:
        participant: for administration.
        application_name: the name that target patterns are matched against.
        snippets: parses the bodies of CREATE commands.
        verifier: checks the commands' signatures; None: they need none.
    """

    def __init__(
        self,
        participant: Participant,
        application_name: str,
        snippets: SnippetReader,
        verifier: CommandVerifier | None = None,
    ) -> None:
        assert participant.entity is not None
        self.participant = participant
        self._name = application_name
        self._snippets = snippets
        self._verifier = verifier
        self._identity = NIL_IDENTITY
        """The identity of the request being parsed, for its answer."""
        self._peer = UNKNOWN_PEER
        """The sender of the request being parsed."""
        traits = {"role": "administration", "service": QUEUING_SERVICE, "name": application_name}
        replies = participant.topic(COMMAND_REPLY_TOPIC, WireCommandReply)
        self._writers = BothRepresentations(
            lambda in_xcdr2: FrameWriter(participant, replies, traits=traits, in_xcdr2=in_xcdr2),
            raw_of_frames,
            WireCommandReply,
        )
        requests = participant.topic(COMMAND_REQUEST_TOPIC, WireCommandRequest)
        announced = traits if verifier is None else {**traits, RUN_TRAIT: verifier.run.hex()}
        reader = DataReader(
            participant.entity, requests, qos=reader_qos(traits=announced, samples_max=READER_REQUESTS_MAX)
        )
        self._requests = RawReader(reader)
        self._condition: ReadCondition | None = participant.waiter.watch(reader, self)
        self._senders: dict[int, bytes] = {}
        self._lines: dict[bytes, deque[_Waiting]] = {}
        """The waiting requests of each process; the processes take turns."""
        self._arrival_count = 0
        self._order = ArrivalOrder()
        self._overflowing: set[bytes] = set()
        """Processes whose line was full and is not half empty yet; their further requests are dropped."""
        self._clients = AdministrationClients(
            reader, lambda: [each.writer.writer for each in self._writers.writers() if each.writer.writer is not None]
        )
        self._replies: list[bytes] = []

    @property
    def is_waiting(self) -> bool:
        """Return whether requests are waiting."""
        return bool(self._lines)

    def receive(self, ready: Collection[object]) -> None:
        """Move received requests to the lines of their senders; answer the first surplus request of each."""
        if self not in ready:
            return
        for data, info in self._requests.take_with_info(READER_REQUESTS_MAX):
            key = self._sender_of(info.publication_handle)
            process = participant_of(key)
            line = self._lines.get(process, ())
            if len(line) < WAITING_MAX:
                self._arrival_count += 1
                waiting = _Waiting(data, key.hex() or UNKNOWN_PEER, self._arrival_count)
                self._lines.setdefault(process, deque()).append(waiting)
            else:
                self._refuse_surplus(process, data, key.hex())

    @property
    def most_waiting_count(self) -> int:
        """Return the number of requests in the longest line."""
        return max(map(len, self._lines.values()), default=0)

    def poll(self, *, one: bool = False) -> list[CommandRequest]:
        """Return the next commands for this service, from the processes in turn: a turn's share, or at most one."""
        commands: list[CommandRequest] = []
        while self._lines and len(commands) < (1 if one else COMMANDS_AT_ONCE):
            process, line = next(iter(self._lines.items()))
            del self._lines[process]
            waiting = line.popleft()
            if len(line) <= WAITING_MAX // 2:
                self._overflowing.discard(process)
            if line:
                self._lines[process] = line
            commands += [
                command
                for command in self._commands_of(waiting)
                if command is not None and self._may_begin(command, waiting.arrival)
            ]
        return commands

    def _may_begin(self, request: CommandRequest, arrival: int) -> bool:
        """Return whether a command may be carried out; if not, answer it."""
        first = min((line[0].arrival for line in self._lines.values()), default=self._arrival_count)
        self._order.forget_before(min(first, arrival))
        refusal = self._order.begin(request, arrival)
        if refusal:
            self._answer_error(request.request, refusal)
        return not refusal

    def _sender_of(self, handle: int) -> bytes:
        """Return the key of a request's writer; empty: it has left already, like all others that share this line."""
        key = self._senders.get(handle)
        if key is None:
            key = writer_key(self._requests.reference, handle) or b""
            if len(self._senders) >= SENDERS_MAX:
                del self._senders[next(iter(self._senders))]
            self._senders[handle] = key
        return key

    def _commands_of(self, waiting: _Waiting) -> list[CommandRequest | None]:
        """Return the command of a request, as a list that is empty if it cannot be parsed."""
        self._peer = waiting.peer
        return self.participant.boundary.each(
            COMMAND_REQUEST_TOPIC, (waiting.data,), self._read, lambda _: waiting.peer, self._refuse
        )

    def _refuse_surplus(self, process: bytes, data: bytes, peer: str) -> None:
        """Refuse a request of a process with a full line: the first one is answered, all are counted."""
        text = f"{WAITING_MAX} commands of this process wait already; send the next one when one of them is answered"
        self.participant.boundary.refuse(COMMAND_REQUEST_TOPIC, peer, text)
        if process not in self._overflowing:
            self._overflowing.add(process)
            for command in self._commands_of(_Waiting(data, peer, 0)):
                if command is not None:
                    self._answer_error(command.request, text)

    def reply(self, message: CommandReply, domain_ids: Mapping[str, int]) -> None:
        """Answer a command in this turn's flush, or send an error if the answer itself cannot be serialized."""
        self._order.end(message)
        self._replies += self.participant.boundary.each(
            COMMAND_REPLY_TOPIC,
            (message,),
            lambda each: reply_octets(each, domain_ids),
            lambda _: message.request.writer_guid.hex(),
            lambda each, reason: self._answer_error(each.request, f"the answer cannot be sent: {reason}"),
        )

    def flush(self) -> bool:
        """Send the turn's replies; return False if some wait for room, or for a reader."""
        writers = self._writers
        writers.open_second()
        if self._replies:
            if not self._clients.are_reached():
                return False
            for reply in self._replies:
                writers.first.put(reply)
            if writers.second is not None and writers.serves_second():
                for reply in self._replies:
                    writers.second.put(writers.in_xcdr2(reply))
            self._replies.clear()
        done = writers.first.flush()
        return writers.second.flush() and done if writers.second is not None else done

    def close(self) -> None:
        """Delete the endpoints; the owner deletes the participant."""
        if self._condition is not None:
            self.participant.waiter.unwatch(self._condition)
            self._condition = None
        self._requests.close()
        self._writers.close()

    def _read(self, data: bytes) -> CommandRequest | None:
        """Return the command of a request; None: it is for other services, or was answered here.

        Raises:
            Malformed: the octets are not a request.
        """
        self._identity = NIL_IDENTITY
        request = request_from_octets(data)
        if not is_for_queuing_services(request) or not matches(request.service_name, self._name):
            return None
        self._identity = identity_from_wire(getattr(request, "request_identity", _NO_IDENTITY))
        try:
            if self._verifier is not None:
                self._verifier.check(request)
            command = command_from_wire(request, self._snippets)
        except UnauthorizedCommand as error:
            what = f"{action_name(request.action)} {request.resource_identifier[:SHOWN_RESOURCE_CHARACTERS]}"
            self.participant.boundary.deny(COMMAND_REQUEST_TOPIC, self._peer, error.cause, f"{what}: {error.message}")
            self._answer_error(self._identity, f"{error.message}. {error.remedy}")
            return None
        except QsctlError as error:
            self._answer_error(self._identity, f"{error.message}. {error.remedy}" if error.remedy else error.message)
            return None
        return CommandRequest(self._identity, request.service_name, command)

    def _refuse(self, _data: bytes, reason: str) -> None:
        """Answer a request whose parser raised an undeclared error; one without an identity cannot be answered.

        A request for another service raises no error after it is decoded, and is not answered.
        """
        if self._identity != NIL_IDENTITY:
            self._answer_error(self._identity, f"the request cannot be read: {reason}")

    def _answer_error(self, request: SampleIdentity, text: str) -> None:
        self.reply(CommandReply(request, self._name, Reply(ReturnCode.ERROR, text)), {})


class MonitoringEndpoint:
    """The writer of the queues' status; a late reader receives each queue's last one [QS Table 3.5]."""

    def __init__(self, participant: Participant) -> None:
        assert participant.entity is not None
        self.participant = participant
        kind = monitoring_class("Monitoring::SharedReaderQueueStatus")
        entity, topic = participant.entity, participant.topic(MONITORING_TOPIC, kind)
        self._writers = BothRepresentations(
            lambda in_xcdr2: RawWriter(DataWriter(entity, topic, qos=last_value_qos(in_xcdr2=in_xcdr2))),
            lambda writer: writer,
            kind,
        )
        self._latest: dict[str, bytes] = {}
        """Each queue's latest status, for readers that match a writer opened later."""

    def publish(self, publication: StatusPublication) -> bool:
        """Write a status; return False if the cache is full, in which case the next period writes a newer one."""
        octets = octets_of(wire_status(publication.status))
        self._latest[publication.status.queue_name] = octets
        if (second := self._writers.second) is not None:
            second.write(self._writers.in_xcdr2(octets))
        return self._writers.first.write(octets)

    def flush(self) -> None:
        """Send the published statuses."""
        writers = self._writers
        if writers.open_second() and writers.second is not None:
            for octets in self._latest.values():
                writers.second.write(writers.in_xcdr2(octets))
        for writer in writers.writers():
            writer.flush()

    def close(self) -> None:
        """Delete the writers."""
        self._writers.close()


class LoggerEndpoint:
    """The writer of the distributed log."""

    def __init__(self, participant: Participant) -> None:
        assert participant.entity is not None
        self.participant = participant
        self._writer = FrameWriter(participant, participant.topic(LOGGER_TOPIC, WireLogMessage))

    def write(
        self, service_name: str, process_id: int, level: int, timestamp_ns: int, event: str, fields_json: str
    ) -> None:
        """Write one line of the log."""
        self._writer.put(octets_of(WireLogMessage(service_name, process_id, level, timestamp_ns, event, fields_json)))

    def flush(self) -> bool:
        """Send the written lines; return False if some wait for room."""
        return self._writer.flush()

    def close(self) -> None:
        """Delete the writer."""
        self._writer.close()
