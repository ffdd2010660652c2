"""Events: facts for counters, statistics, monitoring and the event log. No decision depends on them.

Every counter of `SharedReaderQueueStatus` is computed from them.

The four usual steps, `SampleReceived`, `SampleEnqueued`, `SampleSent` and `SampleRemoved`, are each of `count` samples
of one writer, whose sequence numbers have a constant `step`; `identity` is that of the first. A sample by itself is a
range of one. Samples of one event differ in number and size only. `one_by_one` divides ranges.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Final, TypeAlias

import msgspec

from qsctl.core.records import DeadLetterReason, RemovalCause
from qsctl.identity import NIL_GUID, Guid, SampleIdentity, identities_from
from qsctl.instant import INFINITE_NS, Nanoseconds

SizeBytes: TypeAlias = int | tuple[int, ...]
"""The size of each sample of a range, in octets; a tuple, in the order of the numbers, where the sizes differ.

The size of a single sample is always a number.
"""


class BounceReason(StrEnum):
    """The reason for which a queue refused a sample."""

    QUEUE_FULL = "queue_full"
    TOO_LARGE = "too_large"
    EXPIRED = "expired"
    PRODUCER_GONE = "producer_gone"
    NOT_STORED = "not_stored"
    """The disk is full or fails, or memory is at its bound."""


class ReturnReason(StrEnum):
    """The reason for which a delivery ended without an acknowledgment."""

    REJECTED = "rejected"
    TIMED_OUT = "timed_out"
    CONSUMER_LEFT = "consumer_left"
    NOT_SENT = "not_sent"
    """The consumer was gone before the sample was sent; this is not a failed delivery."""


class SampleReceived(msgspec.Struct, frozen=True, array_like=True, tag="received", gc=False):
    """Samples arrived at the queue, before their acceptance is decided; several: they are enqueued next.

    `lifespan_ns` is their producer's; `address` is the requester to which a reply is addressed [QS 2.11.3], nil: none.
    """

    at_ns: Nanoseconds
    queue: str
    identity: SampleIdentity
    size_bytes: SizeBytes
    lifespan_ns: Nanoseconds = INFINITE_NS
    address: Guid = NIL_GUID
    is_dead_letter: bool = False
    count: int = 1
    step: int = 1


class SampleEnqueued(msgspec.Struct, frozen=True, array_like=True, tag="enqueued", gc=False):
    """Samples were accepted and are Enqueued; `received_at_ns` is earlier if one waited outside a full queue."""

    at_ns: Nanoseconds
    queue: str
    identity: SampleIdentity
    size_bytes: SizeBytes
    received_at_ns: Nanoseconds
    count: int = 1
    step: int = 1


class SampleBounced(msgspec.Struct, frozen=True, array_like=True, tag="bounced", gc=False):
    """A sample was refused and not stored."""

    at_ns: Nanoseconds
    queue: str
    identity: SampleIdentity
    reason: BounceReason


class DuplicateDropped(msgspec.Struct, frozen=True, array_like=True, tag="duplicate", gc=False):
    """A sample was dropped and acknowledged as accepted, since its identity is held or was recently retired."""

    at_ns: Nanoseconds
    queue: str
    identity: SampleIdentity


class SampleSent(msgspec.Struct, frozen=True, array_like=True, tag="sent", gc=False):
    """Samples were sent to a consumer and are Sent. `attempt` counts from 1.

    `redelivered` is the flag of the samples: a consumer may have received them before, even if a restart voided that
    delivery.
    """

    at_ns: Nanoseconds
    queue: str
    identity: SampleIdentity
    consumer_guid: Guid
    attempt: int
    enqueued_at_ns: Nanoseconds
    redelivered: bool = False
    count: int = 1
    step: int = 1


class SampleReturned(msgspec.Struct, frozen=True, array_like=True, tag="returned", gc=False):
    """A delivery failed or was handed back. The sample is Enqueued again, or a `SampleRemoved` follows."""

    at_ns: Nanoseconds
    queue: str
    identity: SampleIdentity
    consumer_guid: Guid
    reason: ReturnReason


class SampleRemoved(msgspec.Struct, frozen=True, array_like=True, tag="removed", gc=False):
    """Samples left the queue for good; several: their consumer acknowledged them. `sent_at_ns` 0: none held them."""

    at_ns: Nanoseconds
    queue: str
    identity: SampleIdentity
    cause: RemovalCause
    size_bytes: SizeBytes
    enqueued_at_ns: Nanoseconds
    sent_at_ns: Nanoseconds
    count: int = 1
    step: int = 1


class SampleDeadLettered(msgspec.Struct, frozen=True, array_like=True, tag="dead_lettered", gc=False):
    """A sample was moved to the dead-letter queue `to_queue`, where its identity is `dead_letter`."""

    at_ns: Nanoseconds
    queue: str
    identity: SampleIdentity
    to_queue: str
    reason: DeadLetterReason
    dead_letter: SampleIdentity


class DeadLetterDeferred(msgspec.Struct, frozen=True, array_like=True, tag="dead_letter_deferred", gc=False):
    """An undeliverable sample remains in its queue until the dead-letter queue `to_queue` accepts it [QS 2.12]."""

    at_ns: Nanoseconds
    queue: str
    identity: SampleIdentity
    to_queue: str
    reason: DeadLetterReason


class SamplesRestored(msgspec.Struct, frozen=True, array_like=True, tag="restored", gc=False):
    """The queue was restored with `count` samples from its store [QS 2.14.2.1]."""

    at_ns: Nanoseconds
    queue: str
    count: int


class LateAcknowledgment(msgspec.Struct, frozen=True, array_like=True, tag="late", gc=False):
    """An acknowledgment arrived after its delivery was over; `retired`: it still acknowledged the sample."""

    at_ns: Nanoseconds
    queue: str
    identity: SampleIdentity
    consumer_guid: Guid
    retired: bool


class SamplesPassed(msgspec.Struct, array_like=True, tag="passed", gc=False):
    """The numbers of single samples that took the usual steps at one instant, for services without an observer.

    It replaces `SampleReceived` and `SampleEnqueued` of samples that did not wait outside, `SampleSent` of first
    deliveries at the instant of enqueueing, and `SampleRemoved` of delivered samples. The counts grow until they are
    read, see `Outbox.end_counts`. Four events for each single sample take 8 to 15 % of the core's processor time; the
    steps of a run are always events, since an event a range takes nothing that can be measured.
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
    """The queue became full: another sample would not fit."""

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

UsualStep: TypeAlias = SampleReceived | SampleEnqueued | SampleSent | SampleRemoved
"""An event of a range of samples."""
_USUAL_STEPS: Final = (SampleReceived, SampleEnqueued, SampleSent, SampleRemoved)


def numbers_of(step: UsualStep) -> range:
    """Return the sequence numbers of the samples of an event."""
    first = step.identity.sequence_number
    return range(first, first + step.count * step.step, step.step)


def identities_of(step: UsualStep) -> list[SampleIdentity]:
    """Return the identities of the samples of an event."""
    return identities_from(step.identity, step.count, step.step)


def sizes_of(step: SampleReceived | SampleEnqueued | SampleRemoved) -> Sequence[int]:
    """Return the size of each sample of an event, in octets."""
    size_bytes = step.size_bytes
    return (size_bytes,) * step.count if isinstance(size_bytes, int) else size_bytes


def one_by_one(events: Iterable[Event]) -> Iterator[Event]:
    """Yield events, those of a range sample by sample."""
    for event in events:
        if not isinstance(event, _USUAL_STEPS) or event.count == 1:
            yield event
        elif isinstance(event, SampleSent):
            for identity in identities_of(event):
                yield msgspec.structs.replace(event, identity=identity, count=1, step=1)
        else:
            for identity, size_bytes in zip(identities_of(event), sizes_of(event), strict=True):
                yield msgspec.structs.replace(event, identity=identity, size_bytes=size_bytes, count=1, step=1)
