"""Samples that a command enqueues: moved from another queue, requeued, or imported (an extension).

Decides: which members of such a sample are kept, and the outcome. Its identity, its related identities and its flags
are kept, it is flagged INSERTED, and its attempts restart from zero. A sample that the command carries is flagged
REDELIVERED unless the command forbids it: a copy may exist elsewhere and may have been processed. A sample that moves
inside the service is in one queue at any time, and keeps that flag as it is.
"""

from __future__ import annotations

from enum import Enum, unique
from typing import Final

from qsctl.core.events import BounceReason
from qsctl.core.inserted_sample import InsertedSample
from qsctl.core.messages import SampleFlag
from qsctl.core.queue._lifespan import QueueLifespan
from qsctl.core.queue.dead_letter import dead_letter_identity
from qsctl.core.queue.sample import DeadLetterOrigin, Sample
from qsctl.core.records import DeadLetterReason
from qsctl.instant import INFINITE_NS, Nanoseconds

_INSERTED: Final = int(SampleFlag.INSERTED)
_OF_THE_SERVICE: Final = int(SampleFlag.REDELIVERED | SampleFlag.LAST_SHARED_READER_QUEUE | SampleFlag.END_OF_QUEUE)


@unique
class Insertion(Enum):
    """The outcome for a sample that a command inserts; the value is the reason of a refusal."""

    ENQUEUED = ""
    HELD_ALREADY = "the queue holds it"
    HELD_ANOTHER = "the queue holds another sample of this identity"
    NO_ROOM = "the queue is full"
    TOO_LARGE = "it is larger than the queue accepts"
    HELD_BACK = "the service enqueues nothing new, for its memory is at its limit"
    NOT_STORED = "the service has suspended the queue: its disk is full or fails"
    EXPIRED = "its lifespan is over"
    NO_DEAD_LETTER = "a dead-letter queue accepts only dead letters, with the queue that they come from and a reason"
    NOT_WAITING = "its queue does not hold it any more, or a consumer has it"
    NO_PAYLOAD = "its payload is on disk only, and the queue keeps payloads in memory"

    @property
    def is_done(self) -> bool:
        """Return whether the queue holds the sample now."""
        return self in (Insertion.ENQUEUED, Insertion.HELD_ALREADY)


OF_ONE_SAMPLE: Final = frozenset({Insertion.EXPIRED.value, Insertion.HELD_ANOTHER.value, Insertion.TOO_LARGE.value})
"""Reasons that depend on the sample alone: another sample may still be enqueued."""

_REFUSED: Final = {
    BounceReason.EXPIRED: Insertion.EXPIRED,
    BounceReason.NOT_STORED: Insertion.NOT_STORED,
    BounceReason.QUEUE_FULL: Insertion.NO_ROOM,
    BounceReason.TOO_LARGE: Insertion.TOO_LARGE,
}


def refused_insertion(reason: BounceReason, *, holds_back: bool) -> Insertion:
    """Return the outcome for a sample that a queue refused.

    Args:
        reason: the queue's reason.
        holds_back: whether the memory of the service is at its bound.
    """
    if holds_back and reason is BounceReason.NOT_STORED:
        return Insertion.HELD_BACK
    return _REFUSED[reason]


def sample_of(
    now: Nanoseconds, inserted: InsertedSample, position: int, lifespan: QueueLifespan, *, is_dead_letter: bool
) -> Sample | None:
    """Return the sample to enqueue; None: it is not a dead letter, and the queue holds only dead letters.

    Args:
        now: the instant.
        inserted: the sample in the command.
        position: its position in the queue.
        lifespan: of the queue; it begins now, unless the sample has its own expiry.
        is_dead_letter: whether the queue holds dead letters; any other queue drops the origin of a dead letter.
    """
    origin = None
    identity = inserted.identity
    if is_dead_letter:
        reason = DeadLetterReason.__members__.get(inserted.dead_letter_reason)
        if reason is None or not inserted.dead_letter_from:
            return None
        origin = DeadLetterOrigin(
            inserted.dead_letter_from,
            inserted.dead_letter_position,
            identity,
            reason,
            inserted.dead_letter_incarnation,
        )
        identity = dead_letter_identity(origin)
    has_end = inserted.expires_at_ns < INFINITE_NS
    return Sample(
        position=position,
        identity=identity,
        payload=inserted.payload,
        size_bytes=len(inserted.payload),
        enqueued_at_ns=now,
        expires_at_ns=inserted.expires_at_ns if has_end else lifespan.expiry(now, INFINITE_NS, now),
        source_guid=inserted.source_guid,
        related_source_guid=inserted.related_source_guid,
        related_identity=inserted.related_identity,
        related_reader_guid=inserted.related_reader_guid,
        flags=(inserted.flags & ~_OF_THE_SERVICE) | _INSERTED,
        dead_letter=origin,
        redelivered=inserted.redelivered,
    )


def moved_sample(
    now: Nanoseconds,
    sample: Sample,
    position: int,
    lifespan: QueueLifespan,
    *,
    is_dead_letter: bool,
    begins_anew: bool,
    payload: bytes | None,
) -> Sample | None:
    """Return the sample of another queue as this one will hold it.

    None: the sample is not a dead letter, and this queue holds only dead letters.

    Args:
        now: the instant.
        sample: the sample in the other queue.
        position: its position in this queue.
        lifespan: of this queue; it begins now, unless the sample has its own expiry and keeps it.
        is_dead_letter: whether this queue holds dead letters; any other queue drops the origin of a dead letter.
        begins_anew: whether the lifespan begins now in any case.
        payload: the payload to hold in memory; None: it is on disk.
    """
    if is_dead_letter and sample.dead_letter is None:
        return None
    has_end = sample.expires_at_ns < INFINITE_NS and not begins_anew
    return Sample(
        position=position,
        identity=sample.identity if is_dead_letter else sample.original_identity,
        payload=payload,
        size_bytes=sample.size_bytes,
        enqueued_at_ns=now,
        expires_at_ns=sample.expires_at_ns if has_end else lifespan.expiry(now, INFINITE_NS, now),
        source_guid=sample.source_guid,
        related_source_guid=sample.related_source_guid,
        related_identity=sample.related_identity,
        related_reader_guid=sample.related_reader_guid,
        flags=(sample.flags & ~_OF_THE_SERVICE) | _INSERTED,
        dead_letter=sample.dead_letter if is_dead_letter else None,
        redelivered=sample.redelivered,
    )
