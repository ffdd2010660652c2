"""Samples received from a queue a batch at a time, each answered once the caller is done with it (section 2.5)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from qsctl.client.connection import Connection, SettlesMany
from qsctl.core.messages import Delivery, QueueName
from qsctl.identity import NIL_GUID, Guid, SampleIdentity

TAKEN_AT_ONCE: Final = 1000

ALL: Final = 2**31 - 1
"""As many as a consumer can say that it takes."""


class Batch(NamedTuple):
    """Samples to be shown; `is_last`: as many came as were asked for, so that no more are received."""

    deliveries: Sequence[Delivery]
    is_last: bool


def take(
    connection: Connection,
    queue: QueueName,
    max_samples: int | None,
    timeout_s: float,
    ok: bool | None,
    source_guid: Guid = NIL_GUID,
) -> Iterator[Batch]:
    """Receive samples; each batch is answered when the next is asked for, and not at all where the caller stops.

    A consumer below its unacknowledged threshold is sent more, so each accepted batch is answered before more is
    received. A rejected sample returns to the front of its queue, where it would come again at once, unseen, until its
    retries are spent. What is rejected is therefore held to the end: each sample comes at most once a call, and no more
    come than the queue lets one consumer hold (section 2.10.1).

    Args:
        connection: where the queue is.
        queue: its full name.
        max_samples: the most to receive; None: all that are there.
        timeout_s: how long to wait for the first.
        ok: accept (true) or reject (false) each sample; None: answer nothing.
        source_guid: only samples that are addressed to it; nil: those that are not addressed.
    """
    if not ok:
        received = connection.receive(queue, ALL if max_samples is None else max_samples, timeout_s, source_guid)
        first: dict[SampleIdentity, Delivery] = {}
        for delivery in received:  # after a time-out a sample may have come twice already
            first.setdefault(delivery.identity, delivery)
        if held := list(first.values()):
            yield Batch(held, is_last=True)
            if ok is not None:
                _answer(connection, held, ok)
        return
    left_count = ALL if max_samples is None else max_samples
    wait_s = timeout_s
    while left_count and (batch := connection.receive(queue, min(TAKEN_AT_ONCE, left_count), wait_s, source_guid)):
        left_count -= len(batch)
        yield Batch(batch, is_last=not left_count)
        _answer(connection, batch, ok)
        wait_s = 0.0


def _answer(connection: Connection, batch: Sequence[Delivery], ok: bool) -> None:
    if isinstance(connection, SettlesMany):
        connection.acknowledge_all(batch, ok)
        return
    for delivery in batch:
        connection.acknowledge(delivery, ok)
