"""The types on the wire: names, order and extensibility of [QS] where it states them, ours beside them.

Decides: what a peer that generated its own code sees. Types of the administration and monitoring topics follow the
manual [QS 2.10.2, 2.12, 3.3.4.3, 5.3 to 5.4.6]; a frame of many samples and a frame of many acknowledgments
are ours, final, and laid out so that `frames` packs each sample with one `struct` call.
"""

# The binding interprets these annotations; for a type checker they are not types.
# mypy: disable-error-code="type-arg,assignment,valid-type"

from dataclasses import dataclass, field
from typing import Final

from cyclonedds.idl import IdlEnum, IdlStruct
from cyclonedds.idl.annotations import appendable, final, key
from cyclonedds.idl.types import bounded_str, byte, int32, int64, sequence, uint32

from qsctl.transport.dds.wire.wire_identity import WireGuid, WireIdentity

COMMAND_REQUEST_TOPIC: Final = "rti/service/admin/command_request"
COMMAND_REPLY_TOPIC: Final = "rti/service/admin/command_reply"
LOGGER_TOPIC: Final = "rti/distlog"

ACTION_PREFIX: Final = "RTI_SERVICE_COMMAND_ACTION_"
"""Prefix of the names of actions; users write the rest."""

SERVICE_NAME_MAX_BYTES: Final = 255
RESOURCE_IDENTIFIER_MAX_BYTES: Final = 2048


class ServiceKind(IdlEnum, typename="RTI.Service.Admin.ServiceKind", default="RTI_SERVICE_OTHER_SERVICE"):
    """The kind of service that a command is for; a queuing service answers QUEUING and OTHER.

    Literals' names are part of a type: peers that know types compare them, and match nothing that is named otherwise.
    """

    RTI_SERVICE_OTHER_SERVICE = 0
    RTI_SERVICE_ROUTING_SERVICE = 1
    RTI_SERVICE_QUEUING_SERVICE = 2


class CommandActionKind(
    IdlEnum, typename="RTI.Service.Admin.CommandActionKind", default="RTI_SERVICE_COMMAND_ACTION_GET"
):
    """The action of a command: CREATE, DELETE, GET and SHUTDOWN of [QS 5.2], INSERT and UPDATE of ours.

    The numbers are ours, too.
    """

    RTI_SERVICE_COMMAND_ACTION_LOAD = 1
    RTI_SERVICE_COMMAND_ACTION_UNLOAD = 2
    RTI_SERVICE_COMMAND_ACTION_INSERT = 3
    RTI_SERVICE_COMMAND_ACTION_UPDATE = 4
    RTI_SERVICE_COMMAND_ACTION_PAUSE = 5
    RTI_SERVICE_COMMAND_ACTION_RESUME = 6
    RTI_SERVICE_COMMAND_ACTION_ENABLE = 7
    RTI_SERVICE_COMMAND_ACTION_DISABLE = 8
    RTI_SERVICE_COMMAND_ACTION_ANNOUNCE = 9
    RTI_SERVICE_COMMAND_ACTION_CREATE = 10
    RTI_SERVICE_COMMAND_ACTION_DELETE = 11
    RTI_SERVICE_COMMAND_ACTION_SAVE = 12
    RTI_SERVICE_COMMAND_ACTION_GET = 13
    RTI_SERVICE_COMMAND_ACTION_ADD_PEER = 14
    RTI_SERVICE_COMMAND_ACTION_SHUTDOWN = 15


class CommandReplyRetcode(
    IdlEnum, typename="RTI.Service.Admin.CommandReplyRetcode", default="RTI_SERVICE_COMMAND_REPLY_OK"
):
    """The result of a command [QS 5.4]."""

    RTI_SERVICE_COMMAND_REPLY_OK = 0
    RTI_SERVICE_COMMAND_REPLY_ANNOUNCEMENT = 1
    RTI_SERVICE_COMMAND_REPLY_ERROR = 2
    RTI_SERVICE_COMMAND_REPLY_UNSUPPORTED = 3
    RTI_SERVICE_COMMAND_REPLY_ALREADY_EXISTS = 4
    RTI_SERVICE_COMMAND_REPLY_DUPLICATED = 5


@dataclass
@final
class WireSampleBuffer(IdlStruct, typename="RTI.QueuingService.SampleBuffer_t"):
    """`SampleBuffer_t`: a sample's own CDR, encapsulation header included, or raw octets."""

    value: sequence[byte] = b""


@dataclass
@appendable
class WireCommandRequest(IdlStruct, typename="RTI.Service.Admin.CommandRequest"):
    """`CommandRequest` [QS 5.3]; the last two members are ours and may be missing, see `signed_commands`."""

    service_name: bounded_str[255] = ""
    service: ServiceKind = ServiceKind.RTI_SERVICE_OTHER_SERVICE
    action: CommandActionKind = CommandActionKind.RTI_SERVICE_COMMAND_ACTION_GET
    resource_identifier: bounded_str[2048] = ""
    string_body: str = ""
    octet_body: sequence[byte] = b""
    request_identity: WireIdentity = field(default_factory=WireIdentity)
    signature: sequence[byte] = b""


@dataclass
@appendable
class UnsignedCommandRequest(IdlStruct, typename="RTI.Service.Admin.CommandRequest"):
    """`CommandRequest` without the signature, as earlier versions of qsctl have it."""

    service_name: bounded_str[255] = ""
    service: ServiceKind = ServiceKind.RTI_SERVICE_OTHER_SERVICE
    action: CommandActionKind = CommandActionKind.RTI_SERVICE_COMMAND_ACTION_GET
    resource_identifier: bounded_str[2048] = ""
    string_body: str = ""
    octet_body: sequence[byte] = b""
    request_identity: WireIdentity = field(default_factory=WireIdentity)


@dataclass
@appendable
class OriginalCommandRequest(IdlStruct, typename="RTI.Service.Admin.CommandRequest"):
    """`CommandRequest` with the members of [QS 5.3] only."""

    service_name: bounded_str[255] = ""
    service: ServiceKind = ServiceKind.RTI_SERVICE_OTHER_SERVICE
    action: CommandActionKind = CommandActionKind.RTI_SERVICE_COMMAND_ACTION_GET
    resource_identifier: bounded_str[2048] = ""
    string_body: str = ""
    octet_body: sequence[byte] = b""


@dataclass
@appendable
class WireCommandReply(IdlStruct, typename="RTI.Service.Admin.CommandReply"):
    """`CommandReply` [QS 5.3]; the last three members are ours. Bit 8 of `flags`: more replies follow."""

    retcode: CommandReplyRetcode = CommandReplyRetcode.RTI_SERVICE_COMMAND_REPLY_OK
    native_retcode: int32 = 0
    string_body: str = ""
    octet_body: sequence[byte] = b""
    related_request_identity: WireIdentity = field(default_factory=WireIdentity)
    replying_service: bounded_str[255] = ""
    flags: uint32 = 0


@dataclass
@appendable
class OriginalCommandReply(IdlStruct, typename="RTI.Service.Admin.CommandReply"):
    """`CommandReply` with the members of [QS 5.3] only."""

    retcode: CommandReplyRetcode = CommandReplyRetcode.RTI_SERVICE_COMMAND_REPLY_OK
    native_retcode: int32 = 0
    string_body: str = ""
    octet_body: sequence[byte] = b""


class UndeliveredReasonKind(IdlEnum, typename="RTI.QueuingService.UndeliveredReasonKind", default="LIFESPAN"):
    """Why a sample was not delivered [QS 2.12]."""

    LIFESPAN = 0
    MAX_RETRIES = 1


@dataclass
@appendable
class WireDeadLetter(IdlStruct, typename="RTI.QueuingService.DeadLetter_t"):
    """`DeadLetter_t` [QS 2.12]: what the consumers of a dead-letter queue receive."""

    queue_name: bounded_str[255] = ""
    sample_identity: WireIdentity = field(default_factory=WireIdentity)
    undelivered_reason: UndeliveredReasonKind = UndeliveredReasonKind.LIFESPAN
    sample_buffer: WireSampleBuffer = field(default_factory=WireSampleBuffer)


@dataclass
@appendable
class WireConsumerAvailability(IdlStruct, typename="RTI.QueuingService.ConsumerAvailability_t"):
    """`ConsumerAvailability_t` [QS 2.10.2]."""

    consumer_guid: WireGuid = field(default_factory=WireGuid)
    key("consumer_guid")
    reception_enabled: bool = True
    unacked_threshold: int32 = -1


class WireMessageStatus(IdlEnum, typename="RTI.QueuingService.MessageStatusKind", default="UNDELIVERED"):
    """A sample's status in a queue [QS 5.4.6]."""

    UNDELIVERED = 0
    SENT = 1
    DELIVERED = 2


@dataclass
@appendable
class WireMessage(IdlStruct, typename="RTI.QueuingService.Message"):
    """`Message` [QS 5.4.6]; the members after `sample_buffer` are ours.

    `expires_at` is in nanoseconds since 1970, in two halves; the upper one -1: never.
    """

    status: WireMessageStatus = WireMessageStatus.UNDELIVERED
    original_virtual_sample_identity: WireIdentity = field(default_factory=WireIdentity)
    sample_buffer: WireSampleBuffer = field(default_factory=WireSampleBuffer)
    queue_name: str = ""
    position_high: int32 = 0
    position_low: uint32 = 0
    enqueued_at_sec: int32 = 0
    enqueued_at_nanosec: uint32 = 0
    attempts: uint32 = 0
    redelivered: bool = False
    dead_letter_from: str = ""
    dead_letter_reason: str = ""
    flags: uint32 = 0
    source_guid: WireGuid = field(default_factory=WireGuid)
    related_source_guid: WireGuid = field(default_factory=WireGuid)
    related_identity: WireIdentity = field(default_factory=WireIdentity)
    related_reader_guid: WireGuid = field(default_factory=WireGuid)
    expires_at_high: int32 = -1
    expires_at_low: uint32 = 0
    incarnation_high: int32 = 0
    incarnation_low: uint32 = 0
    dead_letter_position_high: int32 = 0
    dead_letter_position_low: uint32 = 0
    dead_letter_incarnation_high: int32 = 0
    dead_letter_incarnation_low: uint32 = 0


@dataclass
@final
class WireSample(IdlStruct, typename="RTI.QueuingService.Sample"):
    """One sample in a frame. An infinite lifespan is sec 0x7fffffff, nanosec 0x7fffffff, as everywhere in DDS.

    The first member is aligned to four octets, so that the next sample always begins there.
    """

    flags: uint32 = 0
    lifespan_sec: int32 = 0x7FFF_FFFF
    lifespan_nanosec: uint32 = 0x7FFF_FFFF
    identity: WireIdentity = field(default_factory=WireIdentity)
    source_guid: WireGuid = field(default_factory=WireGuid)
    related_source_guid: WireGuid = field(default_factory=WireGuid)
    related_identity: WireIdentity = field(default_factory=WireIdentity)
    related_reader_guid: WireGuid = field(default_factory=WireGuid)
    payload: sequence[byte] = b""


@dataclass
@final
class WireFrame(IdlStruct, typename="RTI.QueuingService.SampleFrame"):
    """Samples that travel together: on `<Topic>` and on `<Topic>@<SharedSubscriber>`."""

    samples: sequence[WireSample] = field(default_factory=list)


@dataclass
@final
class WireAcknowledgment(IdlStruct, typename="RTI.QueuingService.Acknowledgment"):
    """The answer to one sample: 1 accepted, 0 rejected [QS 2.4 and 2.5], 2 returned (ours); see `wire` for the other
    bits.
    """

    identity: WireIdentity = field(default_factory=WireIdentity)
    response: uint32 = 1


@dataclass
@final
class WireAcknowledgmentFrame(IdlStruct, typename="RTI.QueuingService.AcknowledgmentFrame"):
    """Answers that travel together. `sender` is the consumer's GUID, or nil from a service.

    `queue_name` is `<Topic>@<SharedSubscriber>`; a topic may feed several queues, each of which answers. A consumer
    that leaves sends a frame without answers: it has not processed the samples that it still holds.
    """

    sender: WireGuid = field(default_factory=WireGuid)
    acknowledgments: sequence[WireAcknowledgment] = field(default_factory=list)
    queue_name: bounded_str[255] = ""


@dataclass
@appendable
class WireLogMessage(IdlStruct, typename="RTI.QueuingService.LogMessage"):
    """A line of the service's log on `rti/distlog` [QS 3.5]. `level` is the lowest verbosity that shows it."""

    service_name: bounded_str[255] = ""
    process_id: int64 = 0
    level: int32 = 0
    timestamp_ns: int64 = 0
    event: str = ""
    fields_json: str = ""


def producer_acknowledgment_topic(topic_name: str) -> str:
    """Return the topic on which the service answers the producers of a topic."""
    return f"ProducerAcknowledgment@{topic_name}"


def consumer_topic(topic_name: str, subscriber: str) -> str:
    """Return the topic on which the service sends a queue's samples: `<Topic>@<SharedSubscriber>` [QS 2.6]."""
    return f"{topic_name}@{subscriber}"


def consumer_acknowledgment_topic(topic_name: str, subscriber: str) -> str:
    """Return the topic on which the consumers of a queue answer the service."""
    return f"ConsumerAcknowledgment@{topic_name}@{subscriber}"


def availability_topic(topic_name: str, subscriber: str) -> str:
    """Return the topic of a queue's availability messages: `ConsumerAvailability@<queue>` [QS 2.10.2]."""
    return f"ConsumerAvailability@{topic_name}@{subscriber}"
