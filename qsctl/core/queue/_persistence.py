"""The record of a held sample, and the split of payloads between memory and disk [QS 2.14.2]."""

from __future__ import annotations

from qsctl.core.messages import SampleFlag
from qsctl.core.queue.sample import Sample
from qsctl.core.queue.settings import PersistenceKind, SharedReaderQueueSettings
from qsctl.core.records import Enqueued, MovedFrom
from qsctl.instant import INFINITE_NS

_REDELIVERED = int(SampleFlag.REDELIVERED)


def enqueued_record(
    queue: str, sample: Sample, payload_from: tuple[str, int] | None, moved_from: MovedFrom | None = None
) -> Enqueued:
    """Return the record of a held sample.

    Args:
        queue: its full name.
        sample: the sample.
        payload_from: queue and position under which a payload is stored that is not in memory.
        moved_from: the place in another queue that the sample leaves by this record.
    """
    dead_letter = sample.dead_letter
    if dead_letter is not None:
        return Enqueued(
            queue,
            sample.position,
            dead_letter.identity,
            sample.enqueued_at_ns,
            sample.expires_at_ns,
            sample.source_guid,
            sample.related_source_guid,
            sample.related_identity,
            sample.related_reader_guid,
            # In this record and no later one: a crash between the two would lose the flag.
            sample.flags | _REDELIVERED if sample.redelivered else sample.flags,
            dead_letter.queue,
            dead_letter.reason,
            dead_letter.position,
            sample.payload or b"",
            payload_from,
            dead_letter.incarnation,
            moved_from,
        )
    return Enqueued(
        queue,
        sample.position,
        sample.identity,
        sample.enqueued_at_ns,
        sample.expires_at_ns,
        sample.source_guid,
        sample.related_source_guid,
        sample.related_identity,
        sample.related_reader_guid,
        sample.flags | _REDELIVERED if sample.redelivered else sample.flags,
        "",
        None,
        0,
        sample.payload or b"",
        payload_from,
        moved_from=moved_from,
    )


def on_disk_over_bytes(settings: SharedReaderQueueSettings) -> int:
    """Return the size in octets above which payloads are kept on disk only [QS 2.14.2]; -1: all of them are.

    Without in-memory state every payload is on disk only. With it, a payload no larger than `sample_buffer_min_size`
    stays in memory too, and all do if buffers are not trimmed or their size is the type's maximum (-1).
    """
    persistence, buffer = settings.persistence, settings.sample_buffer
    if persistence.kind is not PersistenceKind.PERSISTENT:
        return INFINITE_NS
    if not persistence.in_memory_state:
        return -1
    if not buffer.trim_to_size or buffer.min_size_bytes < 0:
        return INFINITE_NS
    return buffer.min_size_bytes
