"""Answers to administration commands [QS 5.4]: a return code, a text, and what was asked for."""

from __future__ import annotations

from enum import IntEnum
from typing import TypeAlias

import msgspec

from qsctl.core.statistics.status import SharedReaderQueueStatus
from qsctl.errors import NotFound, QsctlError
from qsctl.identity import NIL_GUID, NIL_IDENTITY, NIL_INCARNATION, Guid, Incarnation, SampleIdentity
from qsctl.instant import INFINITE_NS, Nanoseconds


class ReturnCode(IntEnum):
    """`RTI_SERVICE_COMMAND_REPLY_…` [QS 5.4]."""

    OK = 0
    ANNOUNCEMENT = 1
    ERROR = 2
    UNSUPPORTED = 3
    ALREADY_EXISTS = 4
    DUPLICATED = 5


class MessageStatus(IntEnum):
    """A sample's status as a selector and `Message` name it [QS 5.2.2 and 5.4.6]."""

    UNDELIVERED = 0
    SENT = 1
    DELIVERED = 2


class QueueData(msgspec.Struct, frozen=True, tag="queue_data"):
    """`SharedReaderQueueData` (5.4.5); `resource` is the queue's identifier, the rest what people ask next."""

    queue_name: str
    topic_name: str
    resource: str
    type_name: str = ""
    is_dead_letter: bool = False
    acknowledges_producers: bool = True


class ServiceData(msgspec.Struct, frozen=True, tag="service_data"):
    """`ServiceData` (5.4.5), with the containers that hold no queue yet.

    `participants` and `subscribers` are resource identifiers.
    """

    queues: tuple[QueueData, ...]
    participants: tuple[str, ...] = ()
    subscribers: tuple[str, ...] = ()


class MessageData(msgspec.Struct, frozen=True, tag="message"):
    """`Message` (5.4.6) and what a person wants to see beside it.

    `payload` is None where it is on disk only: the driver fills it in by `position`. `incarnation` is the queue's;
    the last two are where a dead letter was in the queue that it comes from.
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
    """The outcome for samples that a command names one by one (an extension).

    `refused` are the places, from 0, of those that were not done, and `reason` is that of the first. An insertion
    counts in `duplicate_count` those that the queue held already; they are done. A move lists by number, beside what
    the target refused, in `absent` the samples that are not in the source any more or that a consumer has, and in
    `without_payload` those whose payload the target needs.
    """

    done_count: int
    duplicate_count: int = 0
    refused: tuple[int, ...] = ()
    reason: str = ""
    absent: tuple[int, ...] = ()
    without_payload: tuple[int, ...] = ()


class RecordingStatus(msgspec.Struct, frozen=True, tag="recording"):
    """The recording of a service, in progress or over (an extension).

    `folder` is empty where there was none. `end` is the cause of its end, as in `run.json`, and is empty while it
    continues; `text` is the error. Counts and `bytes` are as of about a second ago.
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
    """The folder is finished, with all that there will be."""

    @property
    def is_on(self) -> bool:
        """Return whether it goes on."""
        return bool(self.folder) and not self.end


class ConfigurationText(msgspec.Struct, frozen=True, tag="configuration"):
    """The configuration of a service as it is now: canonical XML, which `qsctl validate` accepts (an extension)."""

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
    """`CommandReply` [QS 5.3]: `native_retcode` is reserved; `text` describes the result.

    `not_found` narrows ERROR for callers on this machine; on the wire it is an ERROR with the same text.
    """

    retcode: ReturnCode
    text: str = ""
    body: Body | None = None
    not_found: bool = False
    native_retcode: int = 0


def refusal(error: QsctlError, retcode: ReturnCode = ReturnCode.ERROR) -> Reply:
    """Return the answer to a command that cannot be carried out: what is wrong, and what to do."""
    text = f"{error.message}. {error.remedy}" if error.remedy else error.message
    return Reply(retcode, text, not_found=isinstance(error, NotFound))
