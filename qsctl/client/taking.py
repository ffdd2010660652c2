"""Samples taken out of a queue and settled as they come (manual, section 2.5)."""

from __future__ import annotations

from typing import Final

from qsctl.client.connection import Connection, SettlesMany
from qsctl.core.messages import Delivery, QueueName

TAKEN_AT_ONCE: Final = 1000

ALL: Final = 2**31 - 1
"""As many as a consumer can say that it takes."""


def take(
    connection: Connection, queue: QueueName, max_samples: int | None, timeout_s: float, ok: bool | None
) -> list[Delivery]:
    """Receive samples and settle each.

    A consumer below its unacknowledged threshold is sent more, so each batch is settled before the next is asked for.
    A rejected sample may come again: it is taken once a call, and the call ends when only such samples are left.

    Args:
        connection: where the queue is.
        queue: its full name.
        max_samples: the most to take; None: all that are there.
        timeout_s: how long to wait for the first.
        ok: accept (true) or reject (false) each sample; None: settle nothing.
    """
    if ok is None:
        # What is held counts against the threshold until the end: there is no second batch.
        return connection.receive(queue, ALL if max_samples is None else max_samples, timeout_s)
    taken: list[Delivery] = []
    seen: set[int] = set()
    while max_samples is None or len(taken) < max_samples:
        wanted = TAKEN_AT_ONCE if max_samples is None else min(TAKEN_AT_ONCE, max_samples - len(taken))
        batch = connection.receive(queue, wanted, 0.0 if taken else timeout_s)
        fresh = [delivery for delivery in batch if delivery.position not in seen]
        if batch:
            _settle(connection, batch, ok)
        taken += fresh
        seen.update(delivery.position for delivery in fresh)
        if not fresh:
            break
    return taken


def _settle(connection: Connection, batch: list[Delivery], ok: bool) -> None:
    if isinstance(connection, SettlesMany):
        connection.acknowledge_all(batch, ok)
        return
    for delivery in batch:
        connection.acknowledge(delivery, ok)
