"""Replies to administration commands [QS 5.4]: a return code, a text, and the requested data."""

from __future__ import annotations

from enum import IntEnum
from typing import TypeAlias

import msgspec

from qsctl.core.statistics.status import SharedReaderQueueStatus
from qsctl.errors import NotFound, NotMaster, QsctlError
from qsctl.identity import NIL_GUID, NIL_IDENTITY, NIL_INCARNATION, Guid, Incarnation, SampleIdentity
from qsctl.instant import INFINITE_NS, Nanoseconds


class ReturnCode(IntEnum):
    """The return codes `RTI_SERVICE_COMMAND_REPLY_…` [QS 5.4]."""

    OK = 0
    ANNOUNCEMENT = 1
    ERROR = 2
    UNSUPPORTED = 3
    ALREADY_EXISTS = 4
    DUPLICATED = 5


class MessageStatus(IntEnum):
    """The delivery status of a sample in selectors and in `Message` replies [QS 5.2.2 and 5.4.6]."""

    UNDELIVERED = 0
    SENT = 1
    DELIVERED = 2


class QueueData(msgspec.Struct, frozen=True, tag="queue_data"):
    """`SharedReaderQueueData` [QS 5.4.5].

    `resource` is the queue's resource identifier; the members after it are an extension.
    """

    queue_name: str
    topic_name: str
    resource: str
    type_name: str = ""
    is_dead_letter: bool = False
    acknowledges_producers: bool = True


class ServiceData(msgspec.Struct, frozen=True, tag="service_data"):
    """`ServiceData` [QS 5.4.5], extended by the containers of queues, including empty ones.

    `participants` and `subscribers` are resource identifiers. `is_daemon`: SHUTDOWN does not stop it [QS 5.4.9].
    """

    queues: tuple[QueueData, ...]
    participants: tuple[str, ...] = ()
    subscribers: tuple[str, ...] = ()
    is_daemon: bool = False


class MessageData(msgspec.Struct, frozen=True, tag="message"):
    """`Message` [QS 5.4.6], extended by the sample's metadata.

    `payload` is None if the payload is on disk only: the driver loads it by `position`. `incarnation` is the queue's.
    `dead_letter_position` and `dead_letter_incarnation` locate a dead letter in the queue from which it came.
    """

    queue_name: str
    position: int
    status: MessageStatus
    identity: SampleIdentity
    payload: bytes | None
    size_bytes: int
    enqueued_at_ns: Nanoseconds
    attempts: int
    redelivered: bool
    dead_letter_from: str = ""
    dead_letter_reason: str = ""
    flags: int = 0
    source_guid: Guid = NIL_GUID
    related_source_guid: Guid = NIL_GUID
    related_identity: SampleIdentity = NIL_IDENTITY
    related_reader_guid: Guid = NIL_GUID
    expires_at_ns: Nanoseconds = INFINITE_NS
    incarnation: Incarnation = NIL_INCARNATION
    dead_letter_position: int = 0
    dead_letter_incarnation: Incarnation = NIL_INCARNATION


class SamplesChanged(msgspec.Struct, frozen=True, tag="samples_changed"):
    """The outcome of a command that lists samples individually (an extension).

    `refused`, `absent` and `without_payload` are indexes, from 0, into the command's samples. `reason` explains the
    first of `refused`. For an insertion, `duplicate_count` is the number of samples that the queue held already; they
    count as done. For a move, `absent` lists samples that have left the source or that a consumer has, and
    `without_payload` lists samples whose payload the client must send.
    """

    done_count: int
    duplicate_count: int = 0
    refused: tuple[int, ...] = ()
    reason: str = ""
    absent: tuple[int, ...] = ()
    without_payload: tuple[int, ...] = ()


class RecordingStatus(msgspec.Struct, frozen=True, tag="recording"):
    """The state of a service's recording, in progress or ended (an extension).

    `folder` is empty if nothing was ever recorded. `end` is the cause of the end, as in `run.json`, and empty while the
    recording continues; `text` is the error message. The counts and `bytes` are about a second old.
    """

    folder: str = ""
    end: str = ""
    text: str = ""
    level: str = ""
    sample_share: float = 1.0
    max_bytes: int = 0
    started_at_ns: Nanoseconds = 0
    duration_ns: int = 0
    message_rows: int = 0
    bytes: int = 0
    is_complete: bool = False
    """Whether the folder is finished: nothing will be added to it."""

    @property
    def is_on(self) -> bool:
        """Return whether the recording is in progress."""
        return bool(self.folder) and not self.end


class ConfigurationText(msgspec.Struct, frozen=True, tag="configuration"):
    """The current configuration of a service as canonical XML, which `qsctl validate` accepts (an extension)."""

    xml: str


Body: TypeAlias = (
    SharedReaderQueueStatus
    | QueueData
    | ServiceData
    | MessageData
    | SamplesChanged
    | RecordingStatus
    | ConfigurationText
)


class Reply(msgspec.Struct, frozen=True):
    """`CommandReply` [QS 5.3].

    `text` describes the result; `native_retcode` is reserved. `not_found` distinguishes a missing resource from other
    errors for qsctl's own clients, and `not_master` the refusal of a replica that is not the master; for others the
    reply is an ERROR with the same text.
    """

    retcode: ReturnCode
    text: str = ""
    body: Body | None = None
    not_found: bool = False
    native_retcode: int = 0
    not_master: bool = False


def refusal(error: QsctlError, retcode: ReturnCode = ReturnCode.ERROR) -> Reply:
    """Return the reply for a command that failed: the error's message and its remedy."""
    text = f"{error.message}. {error.remedy}" if error.remedy else error.message
    return Reply(retcode, text, not_found=isinstance(error, NotFound), not_master=isinstance(error, NotMaster))
