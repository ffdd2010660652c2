"""Reception of samples in batches, each acknowledged once the caller has processed it [QS 2.5]."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from qsctl.client.connection import AcknowledgesMany, Connection
from qsctl.core.messages import Delivery, QueueName
from qsctl.identity import NIL_GUID, Guid, SampleIdentity

BATCH_COUNT: Final = 1000

ALL: Final = 2**31 - 1
"""The largest unacknowledged threshold of a consumer."""


class SampleBatch(NamedTuple):
    """The received samples; `is_last`: the requested number was reached, so that no further batch follows."""

    deliveries: Sequence[Delivery]
    is_last: bool


def receive_batches(
    connection: Connection,
    queue: QueueName,
    max_samples: int | None,
    timeout_s: float,
    ok: bool | None,
    source_guid: Guid = NIL_GUID,
) -> Iterator[SampleBatch]:
    """Yield batches of samples; each is acknowledged when the next is requested, and not at all if the caller stops.

    A queue sends to a consumer below its unacknowledged threshold only, so each accepted batch is acknowledged before
    more are received. A rejected sample returns to the front of its queue, and would be received again at once, until
    its retries are exhausted. Rejections are therefore sent at the end: each sample is received at most once a call,
    and at most as many as the queue's threshold allows one consumer [QS 2.10.1].

    Args:
        connection: the connection to the queue's service.
        queue: its full name.
        max_samples: largest number to receive; None: all available ones.
        timeout_s: longest wait for the first.
        ok: accept (true) or reject (false) each sample; None: acknowledge nothing.
        source_guid: the requester whose replies are received; nil: samples without an addressee.
    """
    if not ok:
        received = connection.receive(queue, ALL if max_samples is None else max_samples, timeout_s, source_guid)
        first: dict[SampleIdentity, Delivery] = {}
        for delivery in received:  # after a time-out a sample may have come twice already
            first.setdefault(delivery.identity, delivery)
        if held := list(first.values()):
            yield SampleBatch(held, is_last=True)
            if ok is not None:
                _answer(connection, held, ok)
        return
    left_count = ALL if max_samples is None else max_samples
    wait_s = timeout_s
    while left_count and (batch := connection.receive(queue, min(BATCH_COUNT, left_count), wait_s, source_guid)):
        left_count -= len(batch)
        yield SampleBatch(batch, is_last=not left_count)
        _answer(connection, batch, ok)
        wait_s = 0.0


def _answer(connection: Connection, batch: Sequence[Delivery], ok: bool) -> None:
    if isinstance(connection, AcknowledgesMany):
        connection.acknowledge_all(batch, ok)
        return
    for delivery in batch:
        connection.acknowledge(delivery, ok)
