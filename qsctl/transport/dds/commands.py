"""Administration commands on the wire and back [QS 5.2 to 5.4].

Decides: which request means which command, and the limits of what a stranger may send. A request that cannot be read
is answered with an ERROR and the reason; a request for another kind of service gets no reply.
"""

# The wire types' annotations are the binding's, not a type checker's.
# mypy: disable-error-code="arg-type"

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, Final, Protocol

import msgspec

from qsctl.config.writer import queue_snippet, subscriber_snippet
from qsctl.core.admin.command import (
    Command,
    CreateQueue,
    CreateSubscriber,
    DeleteQueue,
    DeleteSubscriber,
    FlushQueue,
    GetData,
    GetMessages,
    GetRecording,
    GetStatus,
    Shutdown,
    StartRecording,
    StopRecording,
)
from qsctl.core.admin.request import xml_of_body
from qsctl.core.queue.settings import SharedReaderQueueSettings
from qsctl.core.settings import SharedSubscriberSettings
from qsctl.errors import Refused, UsageError
from qsctl.identity import SampleIdentity
from qsctl.resource import ResourceIdentifier, ResourceKind, parse_resource
from qsctl.transport.dds.bodies import read_wire, wire_identity
from qsctl.transport.dds.boundary import Malformed
from qsctl.transport.dds.wire_types import (
    ACTION_PREFIX,
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
"""How many samples a GET wants at most, in its octet body, which [QS 5.4.6] leaves unused; empty: all."""

_STRING_SCHEME: Final = "str://"

RECORDING: Final = ResourceIdentifier(leaf=ResourceKind.RECORDING)


@dataclass(frozen=True, slots=True)
class RawCreate:
    """A CREATE whose body is sent as it stands: the service reads it, with its own profiles and types."""

    container: ResourceIdentifier
    body: str


class _RecordingBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of CREATE /recording, as JSON."""

    folder: str
    level: str = "messages"
    max_bytes: int = 0
    sample_share: float = 1.0

    def command(self) -> StartRecording:
        return StartRecording(self.folder, self.level, self.max_bytes, self.sample_share)


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


def request_from_octets(data: bytes) -> Any:
    """Read a request, whether the peer knows our members or only those of section 5.3.

    Raises:
        Malformed: the octets are neither.
    """
    try:
        return read_wire(WireCommandRequest, data, any_numbers=True)
    except Malformed:
        return read_wire(OriginalCommandRequest, data, any_numbers=True)


def is_for_queuing_services(request: Any) -> bool:
    """Whether a queuing service answers: to a request for another kind of service, it gives no reply [QS 5.3]."""
    return request.service in (ServiceKind.RTI_SERVICE_QUEUING_SERVICE, ServiceKind.RTI_SERVICE_OTHER_SERVICE)


def command_from_wire(request: Any, snippets: SnippetReader) -> Command:
    """The command that a request means.

    Raises:
        QsctlError: it means none; the message is the reply's text.
    """
    if len(request.string_body.encode()) > STRING_BODY_MAX_BYTES:
        raise Refused(f"the body has more than {STRING_BODY_MAX_BYTES} octets")
    if request.action is CommandActionKind.RTI_SERVICE_COMMAND_ACTION_SHUTDOWN:
        return Shutdown()
    resource = parse_resource(request.resource_identifier)
    if resource == RECORDING:
        return _recording(request.action, request.string_body)
    match request.action:
        case CommandActionKind.RTI_SERVICE_COMMAND_ACTION_CREATE:
            return _create(resource, request.string_body, snippets)
        case CommandActionKind.RTI_SERVICE_COMMAND_ACTION_DELETE:
            return _delete(resource, request.string_body)
        case CommandActionKind.RTI_SERVICE_COMMAND_ACTION_GET:
            return _get(resource, request.string_body, request.octet_body)
        case _:
            raise Refused(
                f"{_action_name(request.action)} is no command of a queuing service",
                remedy="The commands are CREATE, DELETE, GET and SHUTDOWN.",
            )


def _action_name(action: CommandActionKind | int) -> str:
    """The action's short name; its number, where the peer sent one without a name."""
    return f"action {action}" if isinstance(action, int) else action.name.removeprefix(ACTION_PREFIX)


def wire_request(command: Command | RawCreate, target: str, identity: SampleIdentity) -> WireCommandRequest:
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
        service=ServiceKind.RTI_SERVICE_QUEUING_SERVICE,
        action=action,
        resource_identifier=resource,
        string_body=body,
        octet_body=_COUNT.pack(count) if count else b"",
        request_identity=wire_identity(identity),
    )


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


def _recording(action: CommandActionKind, body: str) -> Command:
    match action:
        case CommandActionKind.RTI_SERVICE_COMMAND_ACTION_CREATE:
            try:
                return msgspec.json.decode(body, type=_RecordingBody).command()
            except msgspec.DecodeError as error:
                raise UsageError(
                    f"the body of CREATE {RECORDING} cannot be read: {error}",
                    remedy='Write JSON: {"folder": "…", "level": "messages", "max_bytes": 0, "sample_share": 1.0}.',
                ) from None
        case CommandActionKind.RTI_SERVICE_COMMAND_ACTION_DELETE:
            return StopRecording()
        case CommandActionKind.RTI_SERVICE_COMMAND_ACTION_GET:
            return GetRecording()
        case _:
            raise UsageError(f"{_action_name(action)} is no command of {RECORDING}", remedy="CREATE, DELETE, GET are.")


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


def _parts(command: Command | RawCreate) -> tuple[CommandActionKind, str, str]:
    match command:
        case RawCreate(container, body):
            return CommandActionKind.RTI_SERVICE_COMMAND_ACTION_CREATE, str(container.bare), body
        case CreateQueue(subscriber, settings):
            return (
                CommandActionKind.RTI_SERVICE_COMMAND_ACTION_CREATE,
                str(subscriber.bare),
                f'{_STRING_SCHEME}"{queue_snippet(settings)}"',
            )
        case CreateSubscriber(participant, subscriber_settings):
            snippet = subscriber_snippet(subscriber_settings)
            return (
                CommandActionKind.RTI_SERVICE_COMMAND_ACTION_CREATE,
                str(participant.bare),
                f'{_STRING_SCHEME}"{snippet}"',
            )
        case DeleteQueue(queue):
            return CommandActionKind.RTI_SERVICE_COMMAND_ACTION_DELETE, str(queue.bare), ""
        case DeleteSubscriber(subscriber):
            return CommandActionKind.RTI_SERVICE_COMMAND_ACTION_DELETE, str(subscriber.bare), ""
        case FlushQueue(queue, selector):
            return CommandActionKind.RTI_SERVICE_COMMAND_ACTION_DELETE, str(queue.at(ResourceKind.MESSAGE)), selector
        case GetStatus(queue):
            return CommandActionKind.RTI_SERVICE_COMMAND_ACTION_GET, str(queue.at(ResourceKind.STATUS)), ""
        case GetData(resource):
            return CommandActionKind.RTI_SERVICE_COMMAND_ACTION_GET, str(resource.at(ResourceKind.DATA)), ""
        case GetMessages(queue, selector, _):
            return CommandActionKind.RTI_SERVICE_COMMAND_ACTION_GET, str(queue.at(ResourceKind.MESSAGE)), selector
        case StartRecording(folder, level, max_bytes, sample_share):
            text = msgspec.json.encode(_RecordingBody(folder, level, max_bytes, sample_share)).decode()
            return CommandActionKind.RTI_SERVICE_COMMAND_ACTION_CREATE, str(RECORDING), text
        case StopRecording():
            return CommandActionKind.RTI_SERVICE_COMMAND_ACTION_DELETE, str(RECORDING), ""
        case GetRecording():
            return CommandActionKind.RTI_SERVICE_COMMAND_ACTION_GET, str(RECORDING), ""
        case Shutdown():
            return CommandActionKind.RTI_SERVICE_COMMAND_ACTION_SHUTDOWN, "/", ""
