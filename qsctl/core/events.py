"""Events: facts for counters, statistics, monitoring and the event log. No decision depends on them.

Every counter of `SharedReaderQueueStatus` is a fold over these.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TypeAlias

import msgspec

from qsctl.core.records import DeadLetterReason, RemovalCause
from qsctl.identity import NIL_GUID, Guid, SampleIdentity
from qsctl.instant import INFINITE_NS, Nanoseconds


class BounceReason(StrEnum):
    """Why a queue did not take a sample."""

    QUEUE_FULL = "queue_full"
    TOO_LARGE = "too_large"
    EXPIRED = "expired"
    PRODUCER_GONE = "producer_gone"
    NOT_STORED = "not_stored"
    """The disk has no room, or refuses, or memory is at its bound."""


class ReturnReason(StrEnum):
    """Why a delivery failed."""

    REJECTED = "rejected"
    TIMED_OUT = "timed_out"
    CONSUMER_LEFT = "consumer_left"
    NOT_SENT = "not_sent"
    """The consumer was gone before the sample left: nothing failed."""


class SampleReceived(msgspec.Struct, frozen=True, array_like=True, tag="received", gc=False):
    """A sample reached the queue, whatever becomes of it.

    `lifespan_ns` is what its producer gave it, `address` the requester that a reply is for [QS 2.11.3], nil for none.
    """

    at_ns: Nanoseconds
    queue: str
    identity: SampleIdentity
    size_bytes: int
    lifespan_ns: Nanoseconds = INFINITE_NS
    address: Guid = NIL_GUID
    is_dead_letter: bool = False


class SampleEnqueued(msgspec.Struct, frozen=True, array_like=True, tag="enqueued", gc=False):
    """It was accepted: state Enqueued. `received_at_ns` is earlier when it waited outside a full queue."""

    at_ns: Nanoseconds
    queue: str
    identity: SampleIdentity
    size_bytes: int
    received_at_ns: Nanoseconds


class SampleBounced(msgspec.Struct, frozen=True, array_like=True, tag="bounced", gc=False):
    """It was refused, not stored."""

    at_ns: Nanoseconds
    queue: str
    identity: SampleIdentity
    reason: BounceReason


class DuplicateDropped(msgspec.Struct, frozen=True, array_like=True, tag="duplicate", gc=False):
    """Its identity is held or lately retired: acknowledged positively and dropped."""

    at_ns: Nanoseconds
    queue: str
    identity: SampleIdentity


class SampleSent(msgspec.Struct, frozen=True, array_like=True, tag="sent", gc=False):
    """It went to a consumer: state Sent. `attempt` counts from 1.

    `redelivered` is the sample's flag: it may have been with a consumer before, also when a restart cut that short.
    """

    at_ns: Nanoseconds
    queue: str
    identity: SampleIdentity
    consumer_guid: Guid
    attempt: int
    enqueued_at_ns: Nanoseconds
    redelivered: bool = False


class SampleReturned(msgspec.Struct, frozen=True, array_like=True, tag="returned", gc=False):
    """A delivery failed. The sample is Enqueued again, or a `SampleRemoved` follows."""

    at_ns: Nanoseconds
    queue: str
    identity: SampleIdentity
    consumer_guid: Guid
    reason: ReturnReason


class SampleRemoved(msgspec.Struct, frozen=True, array_like=True, tag="removed", gc=False):
    """It left the queue for good. `sent_at_ns` is 0 when no consumer holds it."""

    at_ns: Nanoseconds
    queue: str
    identity: SampleIdentity
    cause: RemovalCause
    size_bytes: int
    enqueued_at_ns: Nanoseconds
    sent_at_ns: Nanoseconds


class SampleDeadLettered(msgspec.Struct, frozen=True, array_like=True, tag="dead_lettered", gc=False):
    """It was moved to the dead-letter queue `to_queue`, where it has the identity `dead_letter`."""

    at_ns: Nanoseconds
    queue: str
    identity: SampleIdentity
    to_queue: str
    reason: DeadLetterReason
    dead_letter: SampleIdentity


class DeadLetterDeferred(msgspec.Struct, frozen=True, array_like=True, tag="dead_letter_deferred", gc=False):
    """It is dead, and stays in its queue until the dead-letter queue `to_queue` has room [QS 2.12]."""

    at_ns: Nanoseconds
    queue: str
    identity: SampleIdentity
    to_queue: str
    reason: DeadLetterReason


class SamplesRestored(msgspec.Struct, frozen=True, array_like=True, tag="restored", gc=False):
    """The queue was restored with a number of samples that were found in its store [QS 2.14.2.1]."""

    at_ns: Nanoseconds
    queue: str
    count: int


class LateAcknowledgment(msgspec.Struct, frozen=True, array_like=True, tag="late", gc=False):
    """An acknowledgment came after its delivery was over; `retired`: it still acknowledged the sample."""

    at_ns: Nanoseconds
    queue: str
    identity: SampleIdentity
    consumer_guid: Guid
    retired: bool


class SamplesPassed(msgspec.Struct, array_like=True, tag="passed", gc=False):
    """The number of samples that took the usual steps at one instant, where only their number is needed.

    It replaces pairs of `SampleReceived` and `SampleEnqueued` of samples that did not wait outside, and `SampleSent`
    (for the first time, at the instant at which they were enqueued) and `SampleRemoved` (delivered). It grows until it
    is read, see `Outbox.end_counts`.
    """

    at_ns: Nanoseconds
    queue: str
    enqueued_count: int = 0
    sent_count: int = 0
    delivered_count: int = 0


class HighWatermarkPassed(msgspec.Struct, frozen=True, array_like=True, tag="high_watermark", gc=False):
    """The queue rose above its high watermark [QS 2.15.3]."""

    at_ns: Nanoseconds
    queue: str


class LowWatermarkPassed(msgspec.Struct, frozen=True, array_like=True, tag="low_watermark", gc=False):
    """The queue fell below its low watermark."""

    at_ns: Nanoseconds
    queue: str


class QueueFilled(msgspec.Struct, frozen=True, array_like=True, tag="queue_full", gc=False):
    """The queue became full: the next sample would not fit."""

    at_ns: Nanoseconds
    queue: str


Event: TypeAlias = (
    SampleReceived
    | SampleEnqueued
    | SampleBounced
    | DuplicateDropped
    | SampleSent
    | SampleReturned
    | SampleRemoved
    | SampleDeadLettered
    | DeadLetterDeferred
    | SamplesRestored
    | LateAcknowledgment
    | SamplesPassed
    | HighWatermarkPassed
    | LowWatermarkPassed
    | QueueFilled
)
