"""Command replies on the wire and back [QS 5.3 and 5.4].

Decides: the bytes of a reply, and how its body is read: by the command that the reply answers.
"""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Mapping
from typing import Final, NamedTuple, TypeVar

import msgspec

from qsctl.core.admin.command import (
    Command,
    FlagSamples,
    GetConfiguration,
    GetData,
    GetMessages,
    GetRecording,
    GetStatus,
    InsertSamples,
    MoveSamples,
    RemoveSamples,
    StartRecording,
    StopRecording,
)
from qsctl.core.admin.reply import (
    Body,
    ConfigurationText,
    MessageData,
    QueueData,
    RecordingStatus,
    Reply,
    ReturnCode,
    SamplesChanged,
    ServiceData,
)
from qsctl.core.messages import CommandReply, SampleFlag
from qsctl.core.statistics.status import SharedReaderQueueStatus
from qsctl.errors import UNREADABLE
from qsctl.identity import NIL_IDENTITY
from qsctl.transport.dds.boundary import Malformed
from qsctl.transport.dds.wire import _packed_replies as packed_replies
from qsctl.transport.dds.wire._packed_replies import NotPlain, ReplyParts
from qsctl.transport.dds.wire.bodies import (
    identity_from_wire,
    message_from_wire,
    octets_of,
    queue_data_from_wire,
    read_wire,
    service_data_from_wire,
    status_from_wire,
    wire_queue_data,
    wire_service_data,
    wire_status,
)
from qsctl.transport.dds.wire.commands import RawBody
from qsctl.transport.dds.wire.wire_monitoring import monitoring_class
from qsctl.transport.dds.wire.wire_types import (
    OriginalCommandReply,
    WireCommandReply,
    WireMessage,
)

_Json = TypeVar("_Json", RecordingStatus, SamplesChanged)

INTERMEDIATE: Final = int(SampleFlag.INTERMEDIATE_REPLY_SEQUENCE)
NOT_FOUND: Final = 0x1_0000
"""Narrows an ERROR for our clients, in a bit that the flags of [QS 5.3] do not use."""

NOT_MASTER: Final = 0x2_0000
"""Narrows an ERROR as well: a replica that is not the master refuses what the master alone carries out."""


CONFIGURATION_MAX_BYTES: Final = 64 * 1024 * 1024
"""The largest text of a configuration that a client reads."""

_DEFLATED: Final = b"\x78"
"""The first octet of the text of a configuration; that of any other body is 0."""


class RemoteReply(NamedTuple):
    """A reply that was received; `octets` is its body as it was sent.

    A service that knows only the members of [QS 5.3] gives neither its name nor the request: '' and the nil identity.
    """

    message: CommandReply
    octets: bytes


def reply_octets(message: CommandReply, domain_ids: Mapping[str, int]) -> bytes:
    """Return a reply as one sample of the reply topic, in XCDR1."""
    reply = message.reply
    flags = (
        (INTERMEDIATE if message.intermediate else 0)
        | (NOT_FOUND if reply.not_found else 0)
        | (NOT_MASTER if reply.not_master else 0)
    )
    body = b"" if reply.body is None else body_octets(reply.body, domain_ids)
    return packed_replies.reply_octets(message, body, flags)


def body_octets(body: Body, domain_ids: Mapping[str, int]) -> bytes:
    """Encode a body for `octet_body`."""
    match body:
        case SharedReaderQueueStatus():
            return octets_of(wire_status(body))
        case ServiceData():
            return octets_of(wire_service_data(body, domain_ids))
        case QueueData():
            return octets_of(wire_queue_data(body, domain_ids))
        case MessageData():
            return packed_replies.message_octets(body)
        case RecordingStatus() | SamplesChanged():
            return msgspec.json.encode(body)
        case ConfigurationText(xml):
            return zlib.compress(xml.encode())


def reply_of(parts: ReplyParts, command: Command | RawBody) -> RemoteReply:
    """Read the body of a reply as the answer to `command`.

    Raises:
        Malformed: it is not what the command asks for.
    """
    body = _body_from(parts.octets, command) if parts.octets else None
    flags = parts.flags
    reply = Reply(
        parts.retcode, parts.text, body, bool(flags & NOT_FOUND), parts.native_retcode, bool(flags & NOT_MASTER)
    )
    message = CommandReply(parts.request, parts.service, reply, bool(parts.flags & INTERMEDIATE))
    return RemoteReply(message, parts.octets)


def reply_parts(data: bytes) -> ReplyParts:
    """Decode the members of a reply, without its body: in our layout, in another one, or without our members.

    Raises:
        Malformed: the octets are not a reply.
    """
    with contextlib.suppress(NotPlain):
        return packed_replies.parse_reply(data)
    try:
        wire = read_wire(WireCommandReply, data)
    except Malformed:
        wire = read_wire(OriginalCommandReply, data)
    known = (ReturnCode(wire.retcode.value), wire.native_retcode, wire.string_body, bytes(wire.octet_body))
    if isinstance(wire, OriginalCommandReply):
        return ReplyParts(*known, NIL_IDENTITY, "", 0)
    return ReplyParts(*known, identity_from_wire(wire.related_request_identity), wire.replying_service, wire.flags)


def queue_domains(octets: bytes) -> dict[str, int]:
    """Return the DDS domain of each queue, by its resource identifier, from the body of GET /data.

    Raises:
        Malformed: the octets are not a `ServiceData`.
    """
    data = read_wire(monitoring_class("Monitoring::ServiceData"), octets)
    return {each.resource: each.domain_id for each in data.shared_reader_queue_data_list}


def _body_from(octets: bytes, command: Command | RawBody) -> Body | None:
    match command:
        case GetStatus(None) if octets.startswith(_DEFLATED):
            return _configuration_from(octets)  # of an earlier version, which does not read the body of this GET
        case GetStatus():
            return status_from_wire(read_wire(monitoring_class("Monitoring::SharedReaderQueueStatus"), octets))
        case StartRecording() | StopRecording() | GetRecording():
            return _from_json(octets, RecordingStatus)
        case InsertSamples() | FlagSamples() | RemoveSamples() | MoveSamples():
            return _from_json(octets, SamplesChanged)
        case GetConfiguration():
            return _configuration_from(octets)
        case GetMessages():
            try:
                return packed_replies.parse_message(octets)
            except NotPlain:
                return message_from_wire(read_wire(WireMessage, octets))
        case GetData(resource):
            if resource.kind is None:
                return service_data_from_wire(read_wire(monitoring_class("Monitoring::ServiceData"), octets))
            return queue_data_from_wire(read_wire(monitoring_class("Monitoring::SharedReaderQueueData"), octets))
        case _:
            return None


def _from_json(octets: bytes, kind: type[_Json]) -> _Json:
    try:
        return msgspec.json.decode(octets, type=kind)
    except UNREADABLE as error:
        raise Malformed(f"{kind.__name__}: {error}") from None


def _configuration_from(octets: bytes) -> ConfigurationText:
    """Read a configuration, which is UTF-8 text and deflated: that of a thousand queues has megabytes of XML.

    Raises:
        Malformed: the octets are not such a text, or more than a configuration may have.
    """
    inflating = zlib.decompressobj()
    try:
        text = inflating.decompress(octets, CONFIGURATION_MAX_BYTES).decode()
    except (zlib.error, UnicodeDecodeError) as error:
        raise Malformed(f"the text of a configuration: {error}") from None
    if not inflating.eof:
        raise Malformed(f"the text of a configuration is cut off, or has more than {CONFIGURATION_MAX_BYTES} octets")
    return ConfigurationText(text)
