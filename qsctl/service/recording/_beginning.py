"""The contents of a service when its recording begins, as the first parts of the event history."""

from __future__ import annotations

from collections.abc import Iterator

from qsctl.core.engine import ServiceEngine
from qsctl.core.queue.sample import Sample
from qsctl.core.queue.shared_reader_queue import SharedReaderQueue
from qsctl.eventlog.recording.story import (
    HELD_AT_ONCE,
    Begun,
    HeldAtBeginning,
    Part,
    RecordedConsumer,
    RecordedHeldSample,
    RecordedQueue,
)
from qsctl.instant import Nanoseconds


def beginning(engine: ServiceEngine, now: Nanoseconds) -> Iterator[Part]:
    """Yield the first parts of an engine's event history between two turns: queues and consumers, then samples.

    It takes about 0.3 µs a sample, encoding included: 0.3 s for a million, during which the service does nothing else.
    """
    queues = list(engine.hosted.by_name.values())
    yield Begun(
        now,
        [RecordedQueue(each.name, each.settings.limits.max_count) for each in queues],
        [
            RecordedConsumer(
                queue.name,
                consumer.guid,
                consumer.source_guid,
                consumer.unacked_threshold,
                consumer.reception_enabled,
            )
            for queue in queues
            for consumer in queue.deliveries.consumers.values()
        ],
    )
    samples: list[RecordedHeldSample] = []
    for queue in queues:
        for sample in _samples(queue):
            samples.append(sample)
            if len(samples) == HELD_AT_ONCE:
                yield HeldAtBeginning(samples)
                samples = []
    if samples:
        yield HeldAtBeginning(samples)


def _samples(queue: SharedReaderQueue) -> Iterator[RecordedHeldSample]:
    for sample in queue.held:
        yield _held(queue.name, sample)
    for write, received_at_ns, expires_at_ns in queue.reader_cache.arrivals.values():
        yield RecordedHeldSample(
            queue.name,
            write.identity,
            len(write.payload),
            received_at_ns,
            expires_at_ns,
            write.related_source_guid,
            is_outside=True,
        )


def _held(queue: str, sample: Sample) -> RecordedHeldSample:
    return RecordedHeldSample(
        queue,
        sample.identity,
        sample.size_bytes,
        sample.enqueued_at_ns,
        sample.expires_at_ns,
        sample.related_source_guid,
        sample.attempts,
        sample.redelivered,
        sample.holder,
        sample.sent_at_ns,
    )
