"""Administration commands on the wire and back (manual, sections 5.2 to 5.4).

Decides: which request means which command, and the limits of what a stranger may send. A request that cannot be read
is answered with an ERROR that says why; a request for another kind of service is nobody's.
"""

# The wire types' annotations are the binding's, not a type checker's.
# mypy: disable-error-code="arg-type"

from __future__ import annotations

import struct
from typing import Any, Final, Protocol

from qsctl.core.admin.command import (
    Command,
    CreateQueue,
    CreateSubscriber,
    DeleteQueue,
    DeleteSubscriber,
    FlushQueue,
    GetData,
    GetMessages,
    GetStatus,
    Shutdown,
)
from qsctl.core.queue.settings import SharedReaderQueueSettings
from qsctl.core.settings import SharedSubscriberSettings
from qsctl.errors import Refused, UsageError
from qsctl.identity import SampleIdentity
from qsctl.resource import ResourceIdentifier, ResourceKind, parse_resource
from qsctl.transport.dds.bodies import wire_identity
from qsctl.transport.dds.create_body import queue_snippet, subscriber_snippet
from qsctl.transport.dds.wire_types import (
    RESOURCE_IDENTIFIER_MAX_BYTES,
    SERVICE_NAME_MAX_BYTES,
    CommandActionKind,
    OriginalCommandRequest,
    ServiceKind,
    WireCommandRequest,
)

STRING_BODY_MAX_BYTES: Final = 1024 * 1024
"""The limit of `config` for administration bodies, checked before anything is parsed."""

_COUNT: Final = struct.Struct("<Q")
"""How many samples a GET wants at most, in its octet body, which the manual leaves unused; empty: all."""

_STRING_SCHEME: Final = "str://"
_FILE_SCHEME: Final = "file://"


class SnippetReader(Protocol):
    """Reads the XML of a CREATE body; `config` has one."""

    def queue(self, xml: str, subscriber: ResourceIdentifier) -> SharedReaderQueueSettings:
        """Settings of a `<shared_reader_queue>` or `<dead_letter_shared_reader_queue>` for this shared subscriber.

        Raises:
            QsctlError: the snippet is wrong; the message says where.
        """

    def subscriber(self, xml: str, participant: ResourceIdentifier) -> SharedSubscriberSettings:
        """Settings of a `<shared_subscriber>` for this domain participant.

        Raises:
            QsctlError: the snippet is wrong; the message says where.
        """


def request_from_octets(data: bytes) -> Any | None:
    """A request, whether the peer knows our members or only the original's; None for what is neither."""
    for kind in (WireCommandRequest, OriginalCommandRequest):
        try:
            request: Any = kind.deserialize(data)
        except (struct.error, ValueError, IndexError, UnicodeDecodeError, AssertionError, KeyError, TypeError):
            continue
        return request
    return None


def command_from_wire(request: Any, snippets: SnippetReader) -> Command:
    """The command that a request means.

    Raises:
        QsctlError: it means none; the message is the reply's text.
    """
    if request.service is ServiceKind.ROUTING:
        raise Refused("the request is for a routing service; this is a queuing service")
    if len(request.string_body.encode()) > STRING_BODY_MAX_BYTES:
        raise Refused(f"the body has more than {STRING_BODY_MAX_BYTES} octets")
    if request.action is CommandActionKind.SHUTDOWN:
        return Shutdown()
    resource = parse_resource(request.resource_identifier)
    match request.action:
        case CommandActionKind.CREATE:
            return _create(resource, request.string_body, snippets)
        case CommandActionKind.DELETE:
            return _delete(resource, request.string_body)
        case CommandActionKind.GET:
            return _get(resource, request.string_body, request.octet_body)
        case _:
            raise Refused(
                f"{request.action.name} is no command of a queuing service",
                remedy="The commands are CREATE, DELETE, GET and SHUTDOWN.",
            )


def wire_request(command: Command, target: str, identity: SampleIdentity) -> WireCommandRequest:
    """A command as a request.

    Raises:
        UsageError: a text is longer than the type allows.
    """
    action, resource, body = _parts(command)
    count = command.count if isinstance(command, GetMessages) else 0
    for what, text, limit in (
        ("target", target, SERVICE_NAME_MAX_BYTES),
        ("resource identifier", resource, RESOURCE_IDENTIFIER_MAX_BYTES),
        ("body", body, STRING_BODY_MAX_BYTES),
    ):
        if len(text.encode()) > limit:
            raise UsageError(f"the {what} has {len(text.encode())} octets", remedy=f"The wire takes {limit}.")
    return WireCommandRequest(
        service_name=target,
        service=ServiceKind.QUEUING,
        action=action,
        resource_identifier=resource,
        string_body=body,
        octet_body=_COUNT.pack(count) if count else b"",
        request_identity=wire_identity(identity),
    )


def xml_of_body(body: str) -> str:
    """The XML in a CREATE body: `str://"…"`, or the bare element.

    Raises:
        Refused: it names a file: that would be one of the service's machine.
        UsageError: it is empty.
    """
    text = body.strip()
    if text.startswith(_FILE_SCHEME):
        raise Refused(
            "a file:// body is not read for a remote client",
            remedy='Send the text itself as str://"…"; `qsctl create-queue --xml FILE` does that.',
        )
    if text.startswith(_STRING_SCHEME):
        text = text.removeprefix(_STRING_SCHEME).strip()
        if len(text) > 1 and text[0] == text[-1] == '"':
            text = text[1:-1].strip()
        # The manual prints the text as a C string; senders copy its backslashes.
        if '=\\"' in text:
            text = text.replace('\\"', '"').replace("\\n", "\n")
    if not text:
        raise UsageError("CREATE has an empty body", remedy='Send the queue as str://"<shared_reader_queue …>".')
    return text


def _create(resource: ResourceIdentifier, body: str, snippets: SnippetReader) -> Command:
    if resource.leaf is None and resource.kind is ResourceKind.SHARED_SUBSCRIBER:
        return CreateQueue(resource, snippets.queue(xml_of_body(body), resource))
    if resource.leaf is None and resource.kind is ResourceKind.DOMAIN_PARTICIPANT:
        return CreateSubscriber(resource, snippets.subscriber(xml_of_body(body), resource))
    raise UsageError(
        f"nothing can be created in {resource}",
        remedy="Queues are created in a shared subscriber, shared subscribers in a domain participant.",
    )


def _delete(resource: ResourceIdentifier, body: str) -> Command:
    if resource.leaf is ResourceKind.MESSAGE:
        return FlushQueue(resource, body)
    if resource.leaf is None and resource.is_queue():
        return DeleteQueue(resource)
    if resource.leaf is None and resource.kind is ResourceKind.SHARED_SUBSCRIBER:
        return DeleteSubscriber(resource)
    raise UsageError(
        f"{resource} cannot be deleted", remedy="Name a queue, the messages of a queue, or a shared subscriber."
    )


def _get(resource: ResourceIdentifier, body: str, octets: Any) -> Command:
    match resource.leaf:
        case ResourceKind.STATUS:
            return GetStatus(resource)
        case ResourceKind.DATA:
            return GetData(resource)
        case ResourceKind.MESSAGE:
            return GetMessages(resource, body, _COUNT.unpack(bytes(octets))[0] if len(octets) == _COUNT.size else 0)
        case _:
            raise UsageError(f"{resource} cannot be read", remedy="End it with /status, /data or /message.")


def _parts(command: Command) -> tuple[CommandActionKind, str, str]:
    match command:
        case CreateQueue(subscriber, settings):
            return CommandActionKind.CREATE, str(subscriber.bare), f'{_STRING_SCHEME}"{queue_snippet(settings)}"'
        case CreateSubscriber(participant, subscriber_settings):
            snippet = subscriber_snippet(subscriber_settings)
            return CommandActionKind.CREATE, str(participant.bare), f'{_STRING_SCHEME}"{snippet}"'
        case DeleteQueue(queue):
            return CommandActionKind.DELETE, str(queue.bare), ""
        case DeleteSubscriber(subscriber):
            return CommandActionKind.DELETE, str(subscriber.bare), ""
        case FlushQueue(queue, selector):
            return CommandActionKind.DELETE, str(queue.at(ResourceKind.MESSAGE)), selector
        case GetStatus(queue):
            return CommandActionKind.GET, str(queue.at(ResourceKind.STATUS)), ""
        case GetData(resource):
            return CommandActionKind.GET, str(resource.at(ResourceKind.DATA)), ""
        case GetMessages(queue, selector, _):
            return CommandActionKind.GET, str(queue.at(ResourceKind.MESSAGE)), selector
        case Shutdown():
            return CommandActionKind.SHUTDOWN, "/", ""
