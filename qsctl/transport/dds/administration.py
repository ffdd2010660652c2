"""The service's end of the administration topics, and of monitoring and logging [QS 5.3, 6.2 and 3.5].

Decides: which requests reach the engine, and when a reply leaves. A request that cannot be read is answered here; one
whose target pattern means other services is left alone before its body is parsed.
"""

# The wire types' annotations are the binding's, not a type checker's.
# mypy: disable-error-code="arg-type"

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from cyclonedds.pub import DataWriter
from cyclonedds.sub import DataReader

from qsctl.core.admin.reply import Reply, ReturnCode
from qsctl.core.admin.target import matches
from qsctl.core.messages import CommandReply, CommandRequest, StatusPublication
from qsctl.errors import QsctlError
from qsctl.identity import NIL_IDENTITY, SampleIdentity
from qsctl.transport.dds.administration_clients import AdministrationClients
from qsctl.transport.dds.bodies import identity_from_wire, octets_of, wire_status
from qsctl.transport.dds.channels import FrameWriter
from qsctl.transport.dds.commands import (
    SnippetReader,
    command_from_wire,
    is_for_queuing_services,
    request_from_octets,
)
from qsctl.transport.dds.discovery import QUEUING_SERVICE
from qsctl.transport.dds.participant import Participant
from qsctl.transport.dds.qos import last_value_qos, reader_qos
from qsctl.transport.dds.raw import RawWriter
from qsctl.transport.dds.replies import reply_octets
from qsctl.transport.dds.representations import BothRepresentations, raw_of_frames
from qsctl.transport.dds.serialized_reader import SerializedReader
from qsctl.transport.dds.wire_identity import NIL_OCTETS, WireGuid, WireIdentity
from qsctl.transport.dds.wire_monitoring import WireQueueStatus
from qsctl.transport.dds.wire_types import (
    COMMAND_REPLY_TOPIC,
    COMMAND_REQUEST_TOPIC,
    LOGGER_TOPIC,
    MONITORING_TOPIC,
    WireCommandReply,
    WireCommandRequest,
    WireLogMessage,
)

REQUESTS_MAX: Final = 32
"""Requests that wait to be read [QS Table 3.4]."""

_NO_IDENTITY: Final = WireIdentity(WireGuid(NIL_OCTETS))


class AdminEndpoints:
    """The request reader and the reply writer of one service."""

    def __init__(self, participant: Participant, application_name: str, snippets: SnippetReader) -> None:
        assert participant.entity is not None
        self.participant = participant
        self._name = application_name
        self._snippets = snippets
        self._identity = NIL_IDENTITY
        """That of the request being read, for the answer to it."""
        traits = {"role": "administration", "service": QUEUING_SERVICE, "name": application_name}
        replies = participant.topic(COMMAND_REPLY_TOPIC, WireCommandReply)
        self._writers = BothRepresentations(
            lambda in_xcdr2: FrameWriter(participant, replies, traits=traits, in_xcdr2=in_xcdr2),
            raw_of_frames,
            WireCommandReply,
        )
        requests = participant.topic(COMMAND_REQUEST_TOPIC, WireCommandRequest)
        reader = DataReader(participant.entity, requests, qos=reader_qos(traits=traits, samples_max=REQUESTS_MAX))
        self._requests = SerializedReader(participant, reader, self._read, self._refuse)
        self._clients = AdministrationClients(
            reader, lambda: [each.writer.writer for each in self._writers.writers() if each.writer.writer is not None]
        )
        self._replies: list[bytes] = []

    def poll(self) -> list[CommandRequest]:
        """The commands that have come for this service."""
        return [command for command in self._requests.take() or () if command is not None]

    def reply(self, message: CommandReply, domain_ids: Mapping[str, int]) -> None:
        """Answer a command, with this turn's flush; with an error, where the answer itself cannot be sent."""
        self._replies += self.participant.boundary.each(
            COMMAND_REPLY_TOPIC,
            (message,),
            lambda each: reply_octets(each, domain_ids),
            lambda _: message.request.writer_guid.hex(),
            lambda each, reason: self._answer_error(each.request, f"the answer cannot be sent: {reason}"),
        )

    def flush(self) -> bool:
        """Send the turn's replies. False: some wait for room, or for a reader."""
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
        """Delete the endpoints; the participant is the owner's."""
        self._requests.close()
        self._writers.close()

    def _read(self, data: bytes) -> CommandRequest | None:
        """The command of a request; None where there is none for the engine: it is for others, or answered here.

        Raises:
            Malformed: the octets are no request.
        """
        self._identity = NIL_IDENTITY
        request = request_from_octets(data)
        if not is_for_queuing_services(request) or not matches(request.service_name, self._name):
            return None
        self._identity = identity_from_wire(getattr(request, "request_identity", _NO_IDENTITY))
        try:
            command = command_from_wire(request, self._snippets)
        except QsctlError as error:
            self._answer_error(self._identity, f"{error.message}. {error.remedy}" if error.remedy else error.message)
            return None
        return CommandRequest(self._identity, request.service_name, command)

    def _refuse(self, _data: bytes, reason: str) -> None:
        """Answer a request that raised what no reader of it declares; one without an identity has no sender to answer.

        A request that is not for this service raises nothing after it is read, and is not answered.
        """
        if self._identity != NIL_IDENTITY:
            self._answer_error(self._identity, f"the request cannot be read: {reason}")

    def _answer_error(self, request: SampleIdentity, text: str) -> None:
        self.reply(CommandReply(request, self._name, Reply(ReturnCode.ERROR, text)), {})


class MonitoringEndpoint:
    """The writer of the queues' status; a late reader gets each queue's last one [QS Table 3.5]."""

    def __init__(self, participant: Participant) -> None:
        assert participant.entity is not None
        self.participant = participant
        entity, topic = participant.entity, participant.topic(MONITORING_TOPIC, WireQueueStatus)
        self._writers = BothRepresentations(
            lambda in_xcdr2: RawWriter(DataWriter(entity, topic, qos=last_value_qos(in_xcdr2=in_xcdr2))),
            lambda writer: writer,
            WireQueueStatus,
        )
        self._latest: dict[str, bytes] = {}
        """Each queue's status, for readers that match a writer opened later."""

    def publish(self, publication: StatusPublication) -> bool:
        """Write a status. False: the cache is full; the next period brings a newer one."""
        octets = octets_of(wire_status(publication.status))
        self._latest[publication.status.queue_name] = octets
        if (second := self._writers.second) is not None:
            second.write(self._writers.in_xcdr2(octets))
        return self._writers.first.write(octets)

    def flush(self) -> None:
        """Send what was published."""
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
        """Write one line."""
        self._writer.put(octets_of(WireLogMessage(service_name, process_id, level, timestamp_ns, event, fields_json)))

    def flush(self) -> bool:
        """Send what was written."""
        return self._writer.flush()

    def close(self) -> None:
        """Delete the writer."""
        self._writer.close()
