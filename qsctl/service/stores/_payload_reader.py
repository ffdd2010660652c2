"""Access to payloads that the core does not keep, in a store or in a batch that is about to be stored."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from qsctl.core.messages import QueueName
from qsctl.core.payloads import ReadPayload
from qsctl.core.ready import Ready
from qsctl.core.records import Enqueued


def payload_reader(turns: Sequence[Ready], stored: Callable[[QueueName, int], bytes]) -> ReadPayload:
    """Return a function that reads a payload with `stored`, or, where that raises KeyError, from these turns."""
    fresh: dict[tuple[QueueName, int], bytes] = {}

    def read(queue: QueueName, position: int) -> bytes:
        try:
            return stored(queue, position)
        except KeyError:
            if not fresh:
                fresh.update(
                    ((record.queue, record.position), record.payload)
                    for ready in turns
                    for batch in ready.batches
                    for record in batch.records
                    if isinstance(record, Enqueued) and record.payload_from is None
                )
            return fresh[queue, position]

    return read
