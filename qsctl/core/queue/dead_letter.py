"""Dead letters: which samples become one, and their identity and content [QS 2.12].

Decides: which causes of removal make a dead letter, its identity, and its members. `_undeliverable` moves it.
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
"""The two reasons of [QS 2.12]. A delivered or flushed sample never becomes a dead letter."""

CAUSES: Final[dict[DeadLetterReason, RemovalCause]] = {reason: cause for cause, reason in REASONS.items()}


_PLACE: Final = Struct(">qq")
"""Binary form of incarnation and position."""


class DeadLetterSource(Protocol):
    """A queue whose undeliverable samples become dead letters."""

    label: str
    incarnation: Incarnation


def origin_of(source: DeadLetterSource, sample: Sample, reason: DeadLetterReason) -> DeadLetterOrigin:
    """Return the origin of a dead letter: its queue, position and identity before, and the reason."""
    return DeadLetterOrigin(source.label, sample.position, sample.identity, reason, source.incarnation)


def dead_letter_identity(origin: DeadLetterOrigin) -> SampleIdentity:
    """Return the identity of a dead letter, a digest of the sample's identity and of its place in its queue.

    The sample's identity alone does not distinguish dead letters, neither in their queue nor in an acknowledgment:
    several queues receive a copy of a sample [QS 2.6], and each may fail to deliver its own. A queue that was deleted
    and created again, or that has forgotten the identity, may also receive the same sample again.
    """
    identity = origin.identity
    digest = blake2b(origin.queue.encode() + b"\0" + identity.writer_guid, digest_size=GUID_SIZE_BYTES)
    if origin.position or origin.incarnation:
        digest.update(_PLACE.pack(origin.incarnation, origin.position))
    return SampleIdentity(Guid(digest.digest()), identity.sequence_number)


def letter(
    now: Nanoseconds, sample: Sample, position: int, origin: DeadLetterOrigin, expires_at_ns: Nanoseconds
) -> Sample:
    """Return the dead letter of a sample, with its payload and redelivered flag and a lifespan of its own.

    Args:
        now: the instant of the move.
        sample: the undeliverable sample, as its queue holds it.
        position: the dead letter's position in the dead-letter queue.
        origin: identifies the undeliverable sample.
        expires_at_ns: by the dead-letter queue's own lifespan; the producer's does not apply here.
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
