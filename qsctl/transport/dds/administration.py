"""The service's end of the administration topics, and of monitoring and logging (manual, sections 5.3, 6.2 and 3.5).

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
from qsctl.transport.dds.askers import Askers
from qsctl.transport.dds.bodies import identity_from_wire, octets_of, wire_status
from qsctl.transport.dds.commands import SnippetReader, command_from_wire, request_from_octets
from qsctl.transport.dds.endpoints import Inlet
from qsctl.transport.dds.lanes import FrameWriter
from qsctl.transport.dds.participant import Participant
from qsctl.transport.dds.presence import QUEUING_SERVICE
from qsctl.transport.dds.qos import last_value_qos, reader_qos
from qsctl.transport.dds.raw import RawWriter
from qsctl.transport.dds.replies import reply_octets
from qsctl.transport.dds.wire_types import (
    COMMAND_REPLY_TOPIC,
    COMMAND_REQUEST_TOPIC,
    LOGGER_TOPIC,
    MONITORING_TOPIC,
    NIL_OCTETS,
    WireCommandReply,
    WireCommandRequest,
    WireGuid,
    WireIdentity,
    WireLogMessage,
    WireQueueStatus,
)

REQUESTS_MAX: Final = 32
"""Requests that wait to be read (Table 3.4)."""

_NO_IDENTITY: Final = WireIdentity(WireGuid(NIL_OCTETS))


class AdminEndpoints:
    """The request reader and the reply writer of one service."""

    def __init__(self, participant: Participant, application_name: str, snippets: SnippetReader) -> None:
        assert participant.entity is not None
        self.participant = participant
        self._name = application_name
        self._snippets = snippets
        self.malformed_count = 0
        traits = {"role": "administration", "service": QUEUING_SERVICE, "name": application_name}
        replies = participant.topic(COMMAND_REPLY_TOPIC, WireCommandReply)
        self._writer = FrameWriter(participant, replies, traits=traits)
        requests = participant.topic(COMMAND_REQUEST_TOPIC, WireCommandRequest)
        reader = DataReader(participant.entity, requests, qos=reader_qos(traits=traits, samples_max=REQUESTS_MAX))
        self._requests = Inlet(participant, reader)
        assert self._writer.writer.writer is not None
        self._askers = Askers(reader, self._writer.writer.writer)
        self._replies: list[bytes] = []

    def poll(self) -> list[CommandRequest]:
        """The commands that have come for this service."""
        commands: list[CommandRequest] = []
        while taken := self._requests.take():
            for data in taken:
                command = self._read(data)
                if command is not None:
                    commands.append(command)
        return commands

    def reply(self, message: CommandReply, domain_ids: Mapping[str, int]) -> None:
        """Answer a command, with this turn's flush."""
        self._replies.append(reply_octets(message, domain_ids))

    def flush(self) -> bool:
        """Send the turn's replies. False: some wait for room, or for a reader."""
        if self._replies:
            if not self._askers.are_reached():
                return False
            for reply in self._replies:
                self._writer.put(reply)
            self._replies.clear()
        return self._writer.flush()

    def close(self) -> None:
        """Delete the endpoints; the participant is the owner's."""
        self._requests.close()
        self._writer.close()

    def _read(self, data: bytes) -> CommandRequest | None:
        request = request_from_octets(data)
        if request is None:
            self.malformed_count += 1
            return None
        if not matches(request.service_name, self._name):
            return None
        identity = identity_from_wire(getattr(request, "request_identity", _NO_IDENTITY))
        try:
            command = command_from_wire(request, self._snippets)
        except QsctlError as error:
            text = f"{error.message}. {error.remedy}" if error.remedy else error.message
            self.reply(CommandReply(identity, self._name, Reply(ReturnCode.ERROR, text)), {})
            return None
        return CommandRequest(identity, request.service_name, command)


class MonitoringEndpoint:
    """The writer of the queues' status; a late reader gets each queue's last one (Table 3.5)."""

    def __init__(self, participant: Participant) -> None:
        assert participant.entity is not None
        self.participant = participant
        topic = participant.topic(MONITORING_TOPIC, WireQueueStatus)
        self._writer = RawWriter(DataWriter(participant.entity, topic, qos=last_value_qos()))

    def publish(self, publication: StatusPublication) -> bool:
        """Write a status. False: the cache is full; the next period brings a newer one."""
        return self._writer.write(octets_of(wire_status(publication.status)))

    def flush(self) -> None:
        """Send what was published."""
        self._writer.flush()

    def close(self) -> None:
        """Delete the writer."""
        self._writer.close()


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
