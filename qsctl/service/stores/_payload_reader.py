"""Access to payloads that the core does not keep, in a store or in a batch that is about to be stored."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from qsctl.core.messages import QueueName
from qsctl.core.payloads import ReadPayloads
from qsctl.core.ready import Ready
from qsctl.core.records import Enqueued, EnqueuedRun


def payload_reader(turns: Sequence[Ready], stored: ReadPayloads) -> ReadPayloads:
    """Return a function that reads payloads with `stored`, or, where that raises KeyError, from these turns."""
    fresh: dict[tuple[QueueName, int], bytes] = {}

    def read(queue: QueueName, positions: Sequence[int]) -> Sequence[bytes]:
        try:
            return stored(queue, positions)
        except KeyError:
            if not fresh:
                fresh.update(_payloads_of(turns))
            return [fresh[queue, each] if (queue, each) in fresh else stored(queue, (each,))[0] for each in positions]

    return read


def _payloads_of(turns: Sequence[Ready]) -> Iterator[tuple[tuple[QueueName, int], bytes]]:
    """Yield the payloads in the records of turns, by queue and position."""
    for record in (record for ready in turns for batch in ready.batches for record in batch.records):
        if isinstance(record, EnqueuedRun):
            for position, payload in enumerate(record.payloads, record.position):
                yield (record.queue, position), payload
        elif isinstance(record, Enqueued) and record.payload_from is None:
            yield (record.queue, record.position), record.payload
