"""Administration commands on the wire and back [QS 5.2 to 5.4].

Decides: which request means which command, and the limits of what an unknown peer may send. A request that cannot be
read is answered with an ERROR and the reason; a request for another kind of service gets no reply.
"""

# The wire types' annotations are the binding's, not a type checker's.
# mypy: disable-error-code="arg-type"

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar

import msgspec

from qsctl.config.writer import queue_snippet, queue_text, subscriber_snippet
from qsctl.core.admin.command import (
    ChangeMembers,
    Command,
    CommandAction,
    CreateQueue,
    CreateSubscriber,
    DeleteQueue,
    DeleteSubscriber,
    Drain,
    FlagSamples,
    FlushQueue,
    ForceQuorum,
    GetConfiguration,
    GetData,
    GetMessages,
    GetRecording,
    GetStatus,
    HeldSample,
    InsertSamples,
    MemberAction,
    MoveSamples,
    RemoveSamples,
    Shutdown,
    StartRecording,
    StepDown,
    StopRecording,
    UpdateQueue,
)
from qsctl.core.admin.request import ONLY_IF_EMPTY, STATUS, body_of_xml, only_if_empty, xml_of_body
from qsctl.core.inserted_sample import InsertedSample
from qsctl.core.queue.settings import SharedReaderQueueSettings
from qsctl.core.settings import SharedSubscriberSettings
from qsctl.errors import UNREADABLE, Refused, UsageError
from qsctl.identity import NIL_INCARNATION, Incarnation, SampleIdentity, WholeIncarnation
from qsctl.resource import ResourceIdentifier, ResourceKind, parse_resource
from qsctl.transport.dds.boundary import Malformed
from qsctl.transport.dds.wire.bodies import read_wire, wire_identity
from qsctl.transport.dds.wire.wire_types import (
    ACTION_PREFIX,
    RESOURCE_IDENTIFIER_MAX_BYTES,
    SERVICE_NAME_MAX_BYTES,
    CommandActionKind,
    OriginalCommandRequest,
    ServiceKind,
    UnsignedCommandRequest,
    WireCommandRequest,
)

STRING_BODY_MAX_BYTES: Final = 1024 * 1024
"""The limit of `config` for administration bodies, checked before anything is parsed."""

OCTET_BODY_MAX_BYTES: Final = 80 * 1024 * 1024
"""Of a command that names samples: the largest sample, and room for others."""

_COUNT: Final = struct.Struct("<Q")
"""Largest number of samples that a GET requests, in its octet body, which [QS 5.4.6] leaves unused; empty: all."""

_COUNT_AFTER: Final = struct.Struct("<QQ")
_INCARNATION: Final = struct.Struct("<Q")
_ALLOWS_STALE: Final = b"\1"
_ALL_OF_READING: Final = _COUNT_AFTER.size + _INCARNATION.size + len(_ALLOWS_STALE)
"""Octets of a body of GET …/message that allows an answer which may be behind."""
"""The same, and the position behind which they are."""

_INSERTED: Final = msgspec.msgpack.Decoder(tuple[InsertedSample, ...])
_HELD: Final = msgspec.msgpack.Decoder(tuple[HeldSample, ...])
_SAMPLES: Final = msgspec.msgpack.Encoder()

RECORDING: Final = ResourceIdentifier(leaf=ResourceKind.RECORDING)
CONFIGURATION: Final = ResourceIdentifier(leaf=ResourceKind.CONFIGURATION)


@dataclass(frozen=True, slots=True)
class RawBody:
    """A CREATE or UPDATE whose body is sent unchanged: the service reads it, with its own profiles and types."""

    resource: ResourceIdentifier
    body: str
    is_update: bool = False


class _RecordingBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of CREATE /recording, as JSON."""

    folder: str
    level: str = "messages"
    max_bytes: int = 0
    sample_share: float = 1.0

    def command(self) -> StartRecording:
        return StartRecording(self.folder, self.level, self.max_bytes, self.sample_share)


class _MovedBody(msgspec.Struct, frozen=True, array_like=True, tag="move"):
    """The octet body of INSERT …/message where the string body names the queue that holds the samples.

    It begins with a text, and no list of samples does: a service that reads no such body refuses it.
    """

    samples: tuple[HeldSample, ...]
    incarnation: WholeIncarnation
    begins_anew: bool
    payloads: tuple[bytes, ...]


_MOVED: Final = msgspec.msgpack.Decoder(_MovedBody)


class SnippetReader(Protocol):
    """A reader of the XML in a CREATE body; `config` has one."""

    def queue(self, xml: str, subscriber: ResourceIdentifier) -> SharedReaderQueueSettings:
        """Return the settings of a `<[dead_letter_]shared_reader_queue>` for this shared subscriber.

        Raises:
            QsctlError: the snippet is wrong; the message names the place.
        """

    def subscriber(self, xml: str, participant: ResourceIdentifier) -> SharedSubscriberSettings:
        """Return settings of a `<shared_subscriber>` for this domain participant.

        Raises:
            QsctlError: the snippet is wrong; the message names the place.
        """


def request_from_octets(data: bytes) -> Any:
    """Read a request of any version: with all of our members, with the first of them, or with those of [QS 5.3] alone.

    Raises:
        Malformed: the octets are none of these.
    """
    for kind in (WireCommandRequest, UnsignedCommandRequest):
        try:
            return read_wire(kind, data, any_numbers=True)
        except Malformed:
            continue
    return read_wire(OriginalCommandRequest, data, any_numbers=True)


def is_for_queuing_services(request: Any) -> bool:
    """Return whether a request is for a queuing service; one for another kind of service gets no reply [QS 5.3]."""
    return request.service in (ServiceKind.RTI_SERVICE_QUEUING_SERVICE, ServiceKind.RTI_SERVICE_OTHER_SERVICE)


def command_from_wire(request: Any, snippets: SnippetReader) -> Command:
    """Return the command that a request means.

    Raises:
        QsctlError: it means none; the reply has the message as its text.
    """
    if len(request.string_body.encode()) > STRING_BODY_MAX_BYTES:
        raise Refused(f"the body has more than {STRING_BODY_MAX_BYTES} octets")
    if len(request.octet_body) > OCTET_BODY_MAX_BYTES:
        raise Refused(f"the octets of the body are more than {OCTET_BODY_MAX_BYTES}")
    if request.action is CommandActionKind.RTI_SERVICE_COMMAND_ACTION_SHUTDOWN:
        return Shutdown()
    resource = parse_resource(request.resource_identifier)
    if resource == RECORDING:
        return _recording(request.action, request.string_body)
    match request.action:
        case CommandActionKind.RTI_SERVICE_COMMAND_ACTION_ENABLE:
            return _enable(resource, request.string_body)
        case CommandActionKind.RTI_SERVICE_COMMAND_ACTION_CREATE:
            return _create(resource, request.string_body, snippets)
        case CommandActionKind.RTI_SERVICE_COMMAND_ACTION_UPDATE:
            return _update(resource, request.string_body, request.octet_body, snippets)
        case CommandActionKind.RTI_SERVICE_COMMAND_ACTION_DELETE:
            return _delete(resource, request.string_body, request.octet_body)
        case CommandActionKind.RTI_SERVICE_COMMAND_ACTION_INSERT:
            return _insert(resource, request.string_body, request.octet_body)
        case CommandActionKind.RTI_SERVICE_COMMAND_ACTION_GET:
            return _get(resource, request.string_body, request.octet_body)
        case _:
            raise Refused(
                f"{action_name(request.action)} is not a command of a queuing service",
                remedy="The commands are CREATE, DELETE, GET, INSERT, UPDATE and SHUTDOWN.",
            )


def action_name(action: CommandActionKind | int) -> str:
    """Return the action's short name; the number that the peer sent, if that has no name."""
    return f"action {action}" if isinstance(action, int) else action.name.removeprefix(ACTION_PREFIX)


def wire_request(command: Command | RawBody, target: str, identity: SampleIdentity) -> WireCommandRequest:
    """Return the request that carries a command.

    Raises:
        UsageError: a text is longer than the type allows.
    """
    action, resource, body = _parts(command)
    for what, text, limit in (
        ("target", target, SERVICE_NAME_MAX_BYTES),
        ("resource identifier", resource, RESOURCE_IDENTIFIER_MAX_BYTES),
        ("body", body, STRING_BODY_MAX_BYTES),
    ):
        if len(text.encode()) > limit:
            raise UsageError(f"the {what} has {len(text.encode())} octets", remedy=f"At most {limit} are allowed.")
    return WireCommandRequest(
        service_name=target,
        service=ServiceKind.RTI_SERVICE_QUEUING_SERVICE,
        action=action,
        resource_identifier=resource,
        string_body=body,
        octet_body=_octets(command),
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


def _update(resource: ResourceIdentifier, body: str, octets: Any, snippets: SnippetReader) -> Command:
    if resource.leaf is None and resource.is_queue():
        return UpdateQueue(resource, snippets.queue(xml_of_body(body, CommandAction.UPDATE), resource.parent))
    return FlagSamples(_of_samples(resource), _samples(_HELD, octets))


def _delete(resource: ResourceIdentifier, body: str, octets: Any) -> Command:
    if resource.leaf is ResourceKind.MESSAGE and len(octets):
        return RemoveSamples(resource, _samples(_HELD, octets))
    if resource.leaf is ResourceKind.MESSAGE:
        return FlushQueue(resource, body)
    if resource.leaf is None and resource.is_queue():
        return DeleteQueue(resource, only_if_empty(body))
    if resource.leaf is None and resource.kind is ResourceKind.SHARED_SUBSCRIBER:
        return DeleteSubscriber(resource, only_if_empty(body))
    raise UsageError(
        f"{resource} cannot be deleted", remedy="Name a queue, the messages of a queue, or a shared subscriber."
    )


def _insert(resource: ResourceIdentifier, body: str, octets: Any) -> Command:
    if not body:
        return InsertSamples(_of_samples(resource), _samples(_INSERTED, octets))
    moved = _samples(_MOVED, octets)
    return MoveSamples(
        _of_samples(parse_resource(body)),
        _of_samples(resource),
        moved.samples,
        moved.incarnation,
        moved.begins_anew,
        moved.payloads,
    )


FORCE_QUORUM: Final = "force_quorum"
FORCE_QUORUM_TRIAL: Final = "force_quorum_trial"
"""The body of an ENABLE of a queue: what is to be enabled is a quorum; a trial only answers what would become of it."""


_MEMBER_BODY: Final = re.compile(rf"({'|'.join(MemberAction)})_member(_trial)? (\S.{{0,254}})")
"""The body of an ENABLE that changes the members of a replication group: action, perhaps a trial, and the member."""


_STEP_DOWN_BODY: Final = re.compile(r"step_down(_trial)?(?: (\S.{0,254}))?")
"""The body of an ENABLE of another master: perhaps a trial, and the member."""

DRAIN: Final = "drain"
DRAIN_TRIAL: Final = "drain_trial"
"""The body of an ENABLE of a service: it hands over all that it is the master of."""


def _enable(resource: ResourceIdentifier, body: str) -> Command:
    if resource == ResourceIdentifier() and body in (DRAIN, DRAIN_TRIAL):
        return Drain(body == DRAIN_TRIAL)
    changed = _MEMBER_BODY.fullmatch(body)
    is_queue = resource.leaf is None and resource.is_queue()
    if changed is not None and (is_queue or resource == CONFIGURATION):
        action, trial, member = changed.groups()
        return ChangeMembers(resource if is_queue else None, MemberAction(action), member, trial is not None)
    if (stepping := _STEP_DOWN_BODY.fullmatch(body)) is not None and (is_queue or resource == CONFIGURATION):
        return StepDown(resource if is_queue else None, stepping[2] or "", stepping[1] is not None)
    if resource == CONFIGURATION and body in (FORCE_QUORUM, FORCE_QUORUM_TRIAL):
        return ForceQuorum(None, body == FORCE_QUORUM_TRIAL)
    if not is_queue or body not in (FORCE_QUORUM, FORCE_QUORUM_TRIAL):
        raise UsageError(
            f"{resource} cannot be enabled with {body[:80]!r}",
            remedy=f"Name a replicated queue or {CONFIGURATION}, with the body {FORCE_QUORUM} or {FORCE_QUORUM_TRIAL}.",
        )
    return ForceQuorum(resource, body == FORCE_QUORUM_TRIAL)


def _of_samples(resource: ResourceIdentifier) -> ResourceIdentifier:
    if resource.leaf is not ResourceKind.MESSAGE:
        raise UsageError(f"{resource} names no samples", remedy="End it with a queue's /message.")
    return resource


_Named = TypeVar("_Named", tuple[InsertedSample, ...], tuple[HeldSample, ...], _MovedBody)


def _samples(decoder: msgspec.msgpack.Decoder[_Named], octets: Any) -> _Named:
    try:
        return decoder.decode(bytes(octets))
    except UNREADABLE as error:
        raise UsageError(f"the samples of the body cannot be read: {error}", remedy="See transport/dds.") from None


def _octets(command: Command | RawBody) -> bytes:
    """Return the octet body of a command's request; empty where it needs none."""
    match command:
        case GetMessages(_, _, count, after_position, incarnation, True):
            return _COUNT_AFTER.pack(count, after_position) + _INCARNATION.pack(incarnation) + _ALLOWS_STALE
        case GetMessages(_, _, count, 0):
            return _COUNT.pack(count) if count else b""
        case GetMessages(_, _, count, after_position, incarnation):
            after = _COUNT_AFTER.pack(count, after_position)
            return after + _INCARNATION.pack(incarnation) if incarnation else after
        case InsertSamples(_, samples):
            return _SAMPLES.encode(samples)
        case RemoveSamples(_, held) | FlagSamples(_, held):
            return _SAMPLES.encode(held)
        case MoveSamples(_, _, held, incarnation, begins_anew, payloads):
            return _SAMPLES.encode(_MovedBody(held, incarnation, begins_anew, payloads))
        case _:
            return b""


def _recording(action: CommandActionKind, body: str) -> Command:
    match action:
        case CommandActionKind.RTI_SERVICE_COMMAND_ACTION_CREATE:
            try:
                return msgspec.json.decode(body, type=_RecordingBody).command()
            except UNREADABLE as error:
                raise UsageError(
                    f"the body of CREATE {RECORDING} cannot be read: {error}",
                    remedy='Write JSON: {"folder": "…", "level": "messages", "max_bytes": 0, "sample_share": 1.0}.',
                ) from None
        case CommandActionKind.RTI_SERVICE_COMMAND_ACTION_DELETE:
            return StopRecording()
        case CommandActionKind.RTI_SERVICE_COMMAND_ACTION_GET:
            return GetRecording()
        case _:
            raise UsageError(
                f"{action_name(action)} is not a command of {RECORDING}", remedy="CREATE, DELETE, GET are."
            )


def _get(resource: ResourceIdentifier, body: str, octets: Any) -> Command:
    match resource.leaf:
        case ResourceKind.STATUS:
            return GetStatus(resource)
        case ResourceKind.DATA:
            return GetData(resource)
        case ResourceKind.CONFIGURATION:
            return GetStatus(None) if body == STATUS else GetConfiguration()
        case ResourceKind.MESSAGE:
            count, after_position, incarnation = 0, 0, NIL_INCARNATION
            whole = bytes(octets)
            allows_stale = len(whole) == _ALL_OF_READING and whole.endswith(_ALLOWS_STALE)
            if len(octets) == _COUNT.size:
                (count,) = _COUNT.unpack(bytes(octets))
            elif len(octets) == _COUNT_AFTER.size:
                count, after_position = _COUNT_AFTER.unpack(bytes(octets))
            elif len(octets) == _COUNT_AFTER.size + _INCARNATION.size or allows_stale:
                count, after_position = _COUNT_AFTER.unpack_from(bytes(octets))
                incarnation = Incarnation(*_INCARNATION.unpack_from(bytes(octets), _COUNT_AFTER.size))
            return GetMessages(resource, body, count, after_position, incarnation, allows_stale)
        case _:
            raise UsageError(
                f"{resource} cannot be read", remedy="End it with /status, /data, /message or /configuration."
            )


def _parts(command: Command | RawBody) -> tuple[CommandActionKind, str, str]:
    match command:
        case RawBody(resource, body, True):
            return CommandActionKind.RTI_SERVICE_COMMAND_ACTION_UPDATE, str(resource), body
        case RawBody(resource, body):
            return CommandActionKind.RTI_SERVICE_COMMAND_ACTION_CREATE, str(resource.bare), body
        case CreateQueue(subscriber, settings):
            return (
                CommandActionKind.RTI_SERVICE_COMMAND_ACTION_CREATE,
                str(subscriber.bare),
                body_of_xml(queue_snippet(settings)),
            )
        case CreateSubscriber(participant, subscriber_settings):
            snippet = subscriber_snippet(subscriber_settings)
            return (
                CommandActionKind.RTI_SERVICE_COMMAND_ACTION_CREATE,
                str(participant.bare),
                body_of_xml(snippet),
            )
        case UpdateQueue(queue, settings):
            return (
                CommandActionKind.RTI_SERVICE_COMMAND_ACTION_UPDATE,
                str(queue.bare),
                body_of_xml(queue_text(settings)),
            )
        case DeleteQueue(resource, only_empty) | DeleteSubscriber(resource, only_empty):
            body = ONLY_IF_EMPTY if only_empty else ""
            return CommandActionKind.RTI_SERVICE_COMMAND_ACTION_DELETE, str(resource.bare), body
        case FlushQueue(queue, selector):
            return CommandActionKind.RTI_SERVICE_COMMAND_ACTION_DELETE, str(queue.at(ResourceKind.MESSAGE)), selector
        case GetStatus(queue):
            if queue is None:
                return CommandActionKind.RTI_SERVICE_COMMAND_ACTION_GET, str(CONFIGURATION), STATUS
            return CommandActionKind.RTI_SERVICE_COMMAND_ACTION_GET, str(queue.at(ResourceKind.STATUS)), ""
        case GetData(resource):
            return CommandActionKind.RTI_SERVICE_COMMAND_ACTION_GET, str(resource.at(ResourceKind.DATA)), ""
        case InsertSamples(queue, _):
            return CommandActionKind.RTI_SERVICE_COMMAND_ACTION_INSERT, str(queue.at(ResourceKind.MESSAGE)), ""
        case FlagSamples(queue, _):
            return CommandActionKind.RTI_SERVICE_COMMAND_ACTION_UPDATE, str(queue.at(ResourceKind.MESSAGE)), ""
        case RemoveSamples(queue, _):
            return CommandActionKind.RTI_SERVICE_COMMAND_ACTION_DELETE, str(queue.at(ResourceKind.MESSAGE)), ""
        case MoveSamples(queue, target):
            source = str(queue.at(ResourceKind.MESSAGE))
            return CommandActionKind.RTI_SERVICE_COMMAND_ACTION_INSERT, str(target.at(ResourceKind.MESSAGE)), source
        case GetMessages(queue, selector):
            return CommandActionKind.RTI_SERVICE_COMMAND_ACTION_GET, str(queue.at(ResourceKind.MESSAGE)), selector
        case StartRecording(folder, level, max_bytes, sample_share):
            text = msgspec.json.encode(_RecordingBody(folder, level, max_bytes, sample_share)).decode()
            return CommandActionKind.RTI_SERVICE_COMMAND_ACTION_CREATE, str(RECORDING), text
        case StopRecording():
            return CommandActionKind.RTI_SERVICE_COMMAND_ACTION_DELETE, str(RECORDING), ""
        case GetRecording():
            return CommandActionKind.RTI_SERVICE_COMMAND_ACTION_GET, str(RECORDING), ""
        case GetConfiguration():
            return CommandActionKind.RTI_SERVICE_COMMAND_ACTION_GET, str(CONFIGURATION), ""
        case ForceQuorum(queue, is_trial):
            resource = CONFIGURATION if queue is None else queue.bare
            body = FORCE_QUORUM_TRIAL if is_trial else FORCE_QUORUM
            return CommandActionKind.RTI_SERVICE_COMMAND_ACTION_ENABLE, str(resource), body
        case ChangeMembers(queue, action, member, is_trial):
            resource = CONFIGURATION if queue is None else queue.bare
            body = f"{action}_member{'_trial' if is_trial else ''} {member}"
            return CommandActionKind.RTI_SERVICE_COMMAND_ACTION_ENABLE, str(resource), body
        case StepDown(queue, successor, is_trial):
            resource = CONFIGURATION if queue is None else queue.bare
            body = f"step_down{'_trial' if is_trial else ''}{' ' if successor else ''}{successor}"
            return CommandActionKind.RTI_SERVICE_COMMAND_ACTION_ENABLE, str(resource), body
        case Drain(is_trial):
            return CommandActionKind.RTI_SERVICE_COMMAND_ACTION_ENABLE, "/", DRAIN_TRIAL if is_trial else DRAIN
        case Shutdown():
            return CommandActionKind.RTI_SERVICE_COMMAND_ACTION_SHUTDOWN, "/", ""
