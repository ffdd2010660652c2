"""Replies packed by hand are those of the wire types, octet for octet."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qsctl.core.admin.command import GetMessages
from qsctl.core.admin.reply import MessageData, MessageStatus, Reply, ReturnCode
from qsctl.core.messages import CommandReply
from qsctl.identity import NIL_GUID, Guid, SampleIdentity, sequence_number_pair
from qsctl.instant import INFINITE_NS, SECOND_NS
from qsctl.resource import parse_resource
from qsctl.transport.dds.boundary import Malformed
from qsctl.transport.dds.wire import _packed_replies as packed_replies
from qsctl.transport.dds.wire.bodies import message_from_wire, octets_of, wire_identity
from qsctl.transport.dds.wire.replies import (
    INTERMEDIATE,
    NOT_FOUND,
    NOT_MASTER,
    RemoteReply,
    reply_octets,
    reply_of,
    reply_parts,
)
from qsctl.transport.dds.wire.wire_identity import WireGuid
from qsctl.transport.dds.wire.wire_types import (
    CommandReplyRetcode,
    WireCommandReply,
    WireMessage,
    WireMessageStatus,
    WireSampleBuffer,
)

COMMAND = GetMessages(parse_resource("/domain_participant/P/shared_subscriber/S/shared_reader_queue/Orders/message"))
TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)
GUIDS = st.binary(min_size=16, max_size=16).map(Guid)
IDENTITIES = st.builds(SampleIdentity, GUIDS, st.integers(0, 2**63 - 1))
MESSAGES = st.binary(max_size=40).flatmap(
    lambda payload: st.builds(
        MessageData,
        TEXT,
        st.integers(0, 2**63 - 1),
        st.sampled_from(MessageStatus),
        IDENTITIES,
        st.just(payload),
        st.just(len(payload)),
        st.integers(0, 2**60),
        st.integers(0, 2**32 - 1),
        st.booleans(),
        TEXT,
        TEXT,
        st.integers(0, 2**32 - 1),
        GUIDS,
        GUIDS,
        IDENTITIES,
        GUIDS,
        st.just(INFINITE_NS) | st.integers(0, INFINITE_NS - 1),
    )
)
REPLIES = st.builds(
    CommandReply,
    IDENTITIES,
    TEXT,
    st.builds(
        Reply,
        st.sampled_from(ReturnCode),
        TEXT,
        st.none() | MESSAGES,
        st.booleans(),
        st.integers(-5, 5),
        st.booleans(),
    ),
    st.booleans(),
)


def wire_message(message: MessageData) -> WireMessage:
    """A sample of a queue [QS 5.4.6]."""
    position_high, position_low = sequence_number_pair(message.position)
    sec, nanosec = divmod(message.enqueued_at_ns, SECOND_NS)
    until_high, until_low = (
        (-1, 0) if message.expires_at_ns == INFINITE_NS else sequence_number_pair(message.expires_at_ns)
    )
    return WireMessage(
        status=WireMessageStatus(int(message.status)),
        original_virtual_sample_identity=wire_identity(message.identity),
        sample_buffer=WireSampleBuffer(message.payload or b""),
        queue_name=message.queue_name,
        position_high=position_high,
        position_low=position_low,
        enqueued_at_sec=min(sec, 2**31 - 1),
        enqueued_at_nanosec=nanosec,
        attempts=message.attempts,
        redelivered=message.redelivered,
        dead_letter_from=message.dead_letter_from,
        dead_letter_reason=message.dead_letter_reason,
        flags=message.flags,
        source_guid=WireGuid(message.source_guid),
        related_source_guid=WireGuid(message.related_source_guid),
        related_identity=wire_identity(message.related_identity),
        related_reader_guid=WireGuid(message.related_reader_guid),
        expires_at_high=until_high,
        expires_at_low=until_low,
    )


@given(MESSAGES)
def test_a_sample_is_written_and_read_as_its_wire_type(message: MessageData) -> None:
    octets = packed_replies.message_octets(message)
    assert octets == octets_of(wire_message(message))
    assert packed_replies.parse_message(octets) == message == message_from_wire(WireMessage.deserialize(octets))


@given(MESSAGES)
def test_a_sample_of_an_earlier_version_is_read_without_what_that_does_not_write(message: MessageData) -> None:
    """It ends with the reason of a dead letter, without padding behind it."""
    octets = packed_replies.message_octets(message)
    reason_bytes = len(message.dead_letter_reason.encode()) + 1
    earlier = octets[: len(octets) - 84 - (-reason_bytes & 3)]
    read = packed_replies.parse_message(earlier)
    assert read.source_guid == NIL_GUID
    assert read.expires_at_ns == INFINITE_NS
    assert (read.identity, read.payload, read.dead_letter_reason) == (
        message.identity,
        message.payload,
        message.dead_letter_reason,
    )


@given(REPLIES)
def test_a_reply_is_written_and_read_as_its_wire_type(message: CommandReply) -> None:
    reply = message.reply
    assert reply.body is None or isinstance(reply.body, MessageData)
    octets = reply_octets(message, {})
    flags = INTERMEDIATE * message.intermediate | NOT_FOUND * reply.not_found | NOT_MASTER * reply.not_master
    assert octets == octets_of(
        WireCommandReply(
            CommandReplyRetcode(int(reply.retcode)),  # type: ignore[arg-type]
            reply.native_retcode,  # type: ignore[arg-type]
            reply.text,
            octets_of(wire_message(reply.body)) if reply.body else b"",  # type: ignore[arg-type]
            wire_identity(message.request),
            message.replying_service,  # type: ignore[arg-type]
            flags,  # type: ignore[arg-type]
        )
    )
    read = reply_of(reply_parts(octets), COMMAND)
    assert read.message == message


@given(REPLIES, st.integers(0, 400))
def test_a_reply_cut_short_is_never_taken_for_one_of_ours(message: CommandReply, size: int) -> None:
    octets = reply_octets(message, {})
    with pytest.raises(packed_replies.NotPlain):
        packed_replies.parse_reply(octets[: min(size, len(octets) - 1)])


@given(st.binary(max_size=80))
def test_any_octets_are_a_reply_or_malformed(octets: bytes) -> None:
    for data in (octets, b"\0\1\0\0" + octets):
        with contextlib.suppress(Malformed):
            assert isinstance(reply_of(reply_parts(data), COMMAND), RemoteReply)
