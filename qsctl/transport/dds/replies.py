"""Command replies on the wire and back (manual, sections 5.3 and 5.4).

Decides: the bytes of a reply, and how its body is told apart: the request says what was asked for, so the reader knows.
"""

# The wire types' annotations are the binding's, not a type checker's.
# mypy: disable-error-code="arg-type"

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec

from qsctl.core.admin.command import Command, GetData, GetMessages, GetStatus
from qsctl.core.admin.reply import Body, MessageData, QueueData, Reply, ReturnCode, ServiceData
from qsctl.core.messages import CommandReply, SampleFlag
from qsctl.core.statistics.status import SharedReaderQueueStatus
from qsctl.identity import NIL_IDENTITY
from qsctl.transport.dds import sample_replies
from qsctl.transport.dds.bodies import (
    identity_from_wire,
    message_from_wire,
    octets_of,
    queue_data_from_wire,
    service_data_from_wire,
    status_from_wire,
    wire_identity,
    wire_queue_data,
    wire_service_data,
    wire_status,
)
from qsctl.transport.dds.wire_types import (
    CommandReplyRetcode,
    OriginalCommandReply,
    WireCommandReply,
    WireMessage,
    WireQueueData,
    WireQueueStatus,
    WireServiceData,
)

INTERMEDIATE: Final = int(SampleFlag.INTERMEDIATE_REPLY_SEQUENCE)
NOT_FOUND: Final = 0x1_0000
"""Narrows an ERROR for our clients, in a bit that the manual's flags do not use."""

_BROKEN: Final = (struct.error, ValueError, IndexError, UnicodeDecodeError, AssertionError, KeyError, TypeError)


class RemoteReply(NamedTuple):
    """A reply that came over the wire; `octets` is its body as it travelled.

    A service that knows only the original's members says neither its name nor what it answers: '' and the nil identity.
    """

    message: CommandReply
    octets: bytes


def reply_octets(message: CommandReply, domain_ids: Mapping[str, int]) -> bytes:
    """A reply as one sample of the reply topic, in XCDR1."""
    reply = message.reply
    flags = (INTERMEDIATE if message.intermediate else 0) | (NOT_FOUND if reply.not_found else 0)
    if isinstance(reply.body, MessageData):
        return sample_replies.reply_octets(message, sample_replies.message_octets(reply.body), flags)
    return octets_of(
        WireCommandReply(
            retcode=CommandReplyRetcode(int(reply.retcode)),
            native_retcode=reply.native_retcode,
            string_body=reply.text,
            octet_body=b"" if reply.body is None else body_octets(reply.body, domain_ids),
            related_request_identity=wire_identity(message.request),
            replying_service=message.replying_service,
            flags=flags,
        )
    )


def body_octets(body: Body, domain_ids: Mapping[str, int]) -> bytes:
    """What stands in `octet_body`."""
    match body:
        case SharedReaderQueueStatus():
            return octets_of(wire_status(body))
        case ServiceData():
            return octets_of(wire_service_data(body, domain_ids))
        case QueueData():
            return octets_of(wire_queue_data(body, domain_ids))
        case MessageData():
            return sample_replies.message_octets(body)


def reply_from_octets(data: bytes, command: Command) -> RemoteReply | None:
    """A reply to `command`, also from a service that knows only the original's members; None for what is none."""
    if isinstance(command, GetMessages) and (plain := _plain_reply(data)) is not None:
        return plain
    wire: Any = None
    for kind in (WireCommandReply, OriginalCommandReply):
        try:
            wire = kind.deserialize(data)
        except _BROKEN:
            continue
        break
    if wire is None:
        return None
    octets = bytes(wire.octet_body)
    ours = isinstance(wire, WireCommandReply)
    flags = wire.flags if ours else 0
    try:
        body = _body_from(octets, command) if octets else None
    except _BROKEN:
        return None
    reply = Reply(ReturnCode(wire.retcode.value), wire.string_body, body, bool(flags & NOT_FOUND), wire.native_retcode)
    request = identity_from_wire(wire.related_request_identity) if ours else NIL_IDENTITY
    service = wire.replying_service if ours else ""
    return RemoteReply(CommandReply(request, service, reply, bool(flags & INTERMEDIATE)), octets)


def _plain_reply(data: bytes) -> RemoteReply | None:
    """A reply to GET of samples as our services write it; None: it is to be read as any other."""
    try:
        message, octets, flags = sample_replies.parse_reply(data)
        body = sample_replies.parse_message(octets) if octets else None
    except sample_replies.NotPlain:
        return None
    reply = msgspec.structs.replace(message.reply, body=body, not_found=bool(flags & NOT_FOUND))
    return RemoteReply(msgspec.structs.replace(message, reply=reply, intermediate=bool(flags & INTERMEDIATE)), octets)


def queue_domains(octets: bytes) -> dict[str, int]:
    """The DDS domain of each queue, by its resource identifier, from the body of GET /data."""
    data: Any = WireServiceData.deserialize(octets)
    return {each.resource: each.domain_id for each in data.shared_reader_queue_data_list}


def _body_from(octets: bytes, command: Command) -> Body | None:
    match command:
        case GetStatus():
            return status_from_wire(WireQueueStatus.deserialize(octets))
        case GetMessages():
            return message_from_wire(WireMessage.deserialize(octets))
        case GetData(resource):
            if resource.kind is None:
                return service_data_from_wire(WireServiceData.deserialize(octets))
            return queue_data_from_wire(WireQueueData.deserialize(octets))
        case _:
            return None
