"""What is dead, and what a dead letter carries (manual, section 2.12).

Decides: which ends of a sample make it a dead letter, and how the letter is built. Moving it is the queues'.
"""

from __future__ import annotations

from typing import Final

from qsctl.core.queue.sample import Sample
from qsctl.core.records import DeadLetterReason, RemovalCause
from qsctl.instant import Nanoseconds

REASONS: Final[dict[RemovalCause, DeadLetterReason]] = {
    RemovalCause.EXPIRED: DeadLetterReason.LIFESPAN,
    RemovalCause.FAILED_DELIVERY: DeadLetterReason.MAX_RETRIES,
}
"""The two reasons of section 2.12. A delivered or flushed sample is nobody's dead letter."""


def letter(
    now: Nanoseconds, sample: Sample, position: int, source: str, reason: DeadLetterReason, expires_at_ns: Nanoseconds
) -> Sample:
    """The sample as the dead-letter queue holds it: same identity and payload, a new life.

    Args:
        now: when it is moved.
        sample: as the queue held it that could not deliver it.
        position: its place in the dead-letter queue.
        source: `<topic>@<subscriber>` of that queue.
        reason: why it is dead.
        expires_at_ns: by the dead-letter queue's own lifespan; the producer's is over, or was for another queue.
    """
    return Sample(
        position=position,
        identity=sample.identity,
        payload=sample.payload,
        size_bytes=sample.size_bytes,
        enqueued_at_ns=now,
        expires_at_ns=expires_at_ns,
        source_guid=sample.source_guid,
        related_source_guid=sample.related_source_guid,
        related_identity=sample.related_identity,
        related_reader_guid=sample.related_reader_guid,
        flags=sample.flags,
        dead_letter_from=source,
        dead_letter_reason=reason,
    )
