"""Command requests as they come from the reader: read, answered by an engine, and each reply read by a client.

The first octet says whether the rest is a serialized request, or its parts: service, action, target, resource, body.
"""

from __future__ import annotations

import contextlib
from typing import Any

from qsctl.config.settings import ServiceConfiguration
from qsctl.config.signing_keys import SigningKey
from qsctl.core.engine import Journal, ServiceEngine
from qsctl.core.messages import CommandReply, CommandRequest, ConsumerJoined, Write
from qsctl.core.queue.settings import SessionSettings, SharedReaderQueueSettings
from qsctl.core.settings import DomainParticipantSettings, ServiceSettings, SharedSubscriberSettings
from qsctl.errors import QsctlError
from qsctl.identity import NIL_GUID, NIL_IDENTITY, Guid, SampleIdentity, counted_incarnations
from qsctl.instant import INFINITE_NS, SECOND_NS
from qsctl.service.run.config_snippets import ConfigSnippets
from qsctl.transport.dds.boundary import Malformed
from qsctl.transport.dds.wire.bodies import octets_of
from qsctl.transport.dds.wire.commands import command_from_wire, is_for_queuing_services, request_from_octets
from qsctl.transport.dds.wire.replies import reply_octets, reply_of, reply_parts
from qsctl.transport.dds.wire.signed_commands import CommandVerifier, UnauthorizedCommand, signature_of
from qsctl.transport.dds.wire.wire_types import WireCommandRequest

DICTIONARY = (
    b"/domain_participant/P/shared_subscriber/S",
    b"/shared_reader_queue/Orders",
    b"/dead_letter_shared_reader_queue/",
    b"/status",
    b"/data",
    b"/message",
    b'str://"',
    b"file://",
    b"<shared_reader_queue name=",
    b"@sample_queue_status = SENT_MESSAGE_STATUS",
    b"\x00\x01\x00\x00",
    b"\x00\x07\x00\x00",
    b"\x00\x09\x00\x00",
)

QUEUE = SharedReaderQueueSettings("Orders", "Orders", "DDS::Octets", session="s")
SETTINGS = ServiceSettings(
    "Test",
    participants=(
        DomainParticipantSettings("P", 0, (SharedSubscriberSettings("S", (SessionSettings("s"),), (QUEUE,)),)),
    ),
)
CONFIGURATION = ServiceConfiguration("Test", SETTINGS)
REPLIES_MAX = 64
WRITER = Guid(b"w" * 16)
KEY, RUN = SigningKey(b"k" * 32), b"run 0001"


def one_input(data: bytes) -> None:
    if not data:
        return
    octets = data[1:] if data[0] & 1 else octets_of(request_of_parts(data[1:]))
    engine = ServiceEngine(SETTINGS, started_at=0, draw=counted_incarnations(), journal=Journal.PERSISTENT_ONLY)
    engine.receive(1, ConsumerJoined("P/S/Orders", Guid(b"c" * 16), NIL_GUID))
    for number in range(3):
        identity = SampleIdentity(WRITER, number)
        engine.receive(
            2,
            Write("P", "Orders", identity, b"x", NIL_GUID, NIL_GUID, NIL_IDENTITY, NIL_GUID, 0, INFINITE_NS),
        )
    engine.take_ready()
    try:
        request = request_from_octets(octets)
    except Malformed:
        return
    if not is_for_queuing_services(request):
        return
    try:
        CommandVerifier([KEY], RUN, lambda: SECOND_NS).check(request)
    except UnauthorizedCommand as error:
        reply_octets_of_text(error.message + error.remedy)
    try:
        command = command_from_wire(request, ConfigSnippets(CONFIGURATION, engine.hosted))
    except QsctlError as error:
        reply_octets_of_text(error.message + error.remedy)
        return
    engine.receive(SECOND_NS, CommandRequest(SampleIdentity(WRITER, 7), request.service_name, command))
    engine.advance(SECOND_NS)
    replies = [each for each in engine.take_ready().messages if isinstance(each, CommandReply)]
    assert len(replies) <= REPLIES_MAX
    for reply in replies:
        read = reply_of(reply_parts(reply_octets(reply, {"P": 0})), command)
        assert read.message.reply.retcode is reply.reply.retcode


def request_of_parts(data: bytes) -> Any:
    """A request whose parts are text, so that what is within them is reached at once."""
    numbers, *texts = data.split(b"\x1f")
    target, resource, body = [*(each.decode(errors="replace") for each in texts[:3]), "*", "", ""][:3]
    service, action = (*numbers[:2], 0, 0)[:2]
    request: Any = WireCommandRequest
    made = request("*", string_body=body, octet_body=numbers[2:])
    made.service_name = target[:60]
    made.resource_identifier = resource[:600]
    made.service, made.action = service % 5, action % 18
    if len(numbers) > 2 and numbers[2] & 1:
        made.signature = signature_of(made, KEY, [RUN], now=SECOND_NS)
    return made


def reply_octets_of_text(text: str) -> None:
    """An error's text must fit a reply."""
    from qsctl.core.admin.reply import Reply, ReturnCode

    with contextlib.suppress(Malformed):
        reply_octets(CommandReply(NIL_IDENTITY, "Test", Reply(ReturnCode.ERROR, text)), {})
