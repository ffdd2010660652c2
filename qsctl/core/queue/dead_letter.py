"""Dead letters: when a sample becomes one, and its content [QS 2.12].

Decides: which ends of a sample make it a dead letter, its identity, and how it is built. The queues move it, see
`undeliverable`.
"""

from __future__ import annotations

from hashlib import blake2b
from struct import Struct
from typing import Final, Protocol

from qsctl.core.queue.sample import DeadLetterOrigin, Sample
from qsctl.core.records import DeadLetterReason, RemovalCause
from qsctl.identity import GUID_SIZE_BYTES, Guid, Incarnation, SampleIdentity
from qsctl.instant import Nanoseconds

REASONS: Final[dict[RemovalCause, DeadLetterReason]] = {
    RemovalCause.EXPIRED: DeadLetterReason.LIFESPAN,
    RemovalCause.FAILED_DELIVERY: DeadLetterReason.MAX_RETRIES,
}
"""The two reasons of section 2.12. A delivered or flushed sample never becomes a dead letter."""

CAUSES: Final[dict[DeadLetterReason, RemovalCause]] = {reason: cause for cause, reason in REASONS.items()}


_PLACE: Final = Struct(">qq")
"""Incarnation and position."""


class DeadLetterSource(Protocol):
    """A queue whose samples die."""

    label: str
    incarnation: Incarnation


def origin_of(source: DeadLetterSource, sample: Sample, reason: DeadLetterReason) -> DeadLetterOrigin:
    """Return what a dead letter was before."""
    return DeadLetterOrigin(source.label, sample.position, sample.identity, reason, source.incarnation)


def dead_letter_identity(origin: DeadLetterOrigin) -> SampleIdentity:
    """Return the identity of a dead letter: that of the undelivered sample and of its place in its queue, in one.

    Several queues take a copy of a sample [QS 2.6], and each may fail to deliver its own; a queue that was deleted and
    created again may get the sample anew, and so may one that has forgotten its identity. The sample's identity alone
    does not distinguish the dead letters, neither in their queue nor in an acknowledgment.
    """
    identity = origin.identity
    digest = blake2b(origin.queue.encode() + b"\0" + identity.writer_guid, digest_size=GUID_SIZE_BYTES)
    if origin.position or origin.incarnation:
        digest.update(_PLACE.pack(origin.incarnation, origin.position))
    return SampleIdentity(Guid(digest.digest()), identity.sequence_number)


def letter(
    now: Nanoseconds, sample: Sample, position: int, origin: DeadLetterOrigin, expires_at_ns: Nanoseconds
) -> Sample:
    """Return the sample as the dead-letter queue holds it: its payload and redelivered flag, a new life.

    Args:
        now: when it is moved.
        sample: as the queue held it that could not deliver it.
        position: its place in the dead-letter queue.
        origin: which sample it is.
        expires_at_ns: by the dead-letter queue's own lifespan; the producer's is over, or was for another queue.
    """
    return Sample(
        position=position,
        identity=dead_letter_identity(origin),
        payload=sample.payload,
        size_bytes=sample.size_bytes,
        enqueued_at_ns=now,
        expires_at_ns=expires_at_ns,
        source_guid=sample.source_guid,
        related_source_guid=sample.related_source_guid,
        related_identity=sample.related_identity,
        related_reader_guid=sample.related_reader_guid,
        flags=sample.flags,
        dead_letter=origin,
        redelivered=sample.redelivered,
    )
