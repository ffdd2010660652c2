"""Rows of the message log and the free list of nodes: the two things that every step of a kernel touches."""

from __future__ import annotations

from typing import Any

import numpy as np

from qsctl.sim.kernel.jit import inlined, kernel
from qsctl.sim.kernel.records import DELIVERED, FREE, LOG_COUNT, NONE


@inlined
def wide(value: Any) -> int:
    """As a 64-bit integer: a narrower one would have each function that it reaches compiled once more."""
    return np.int64(value)  # type: ignore[return-value]


@inlined
def allocate(nodes: Any, control: Any) -> int:
    """Take a node from the free list; the caller made sure that there is one."""
    node = wide(control[FREE])
    control[FREE] = nodes[node].next
    return node


@inlined
def release(nodes: Any, control: Any, node: int) -> None:
    """Give a node back."""
    nodes[node].next = control[FREE]
    control[FREE] = node


@inlined
def delivered_row(
    log: Any, control: Any, born: int, moved: int, sent: int, acknowledged: int, c: int, topic: int, size: int,
    queue: int, indication: int, attempts: int,
) -> None:  # fmt: skip
    """Append the `LOG_ROW` of a delivered message from its instants; NONE where one did not come.

    The cursor lives in the control array: threaded through arguments it cost a third.
    """
    cursor = control[LOG_COUNT]
    control[LOG_COUNT] = cursor + 1
    row = log[cursor]
    row.enqueued_ns = born
    row.wait_ns = moved - born
    row.send_ns = sent - born if sent >= 0 else NONE
    row.acknowledge_ns = acknowledged - born if acknowledged >= 0 else NONE
    row.client_id = c
    row.topic_id = topic
    row.size_bytes = size
    row.queue = queue
    row.outcome = DELIVERED
    row.discard_indication = indication
    row.attempts = attempts


@kernel
def undelivered_row(
    log: Any, control: Any, born: int, wait: int, c: int, topic: int, size: int, queue: int, outcome: int,
    attempts: int,
) -> None:  # fmt: skip
    """Append the `LOG_ROW` of a message that was lost or is held; `wait` is NONE for the latter."""
    cursor = control[LOG_COUNT]
    control[LOG_COUNT] = cursor + 1
    row = log[cursor]
    row.enqueued_ns = born
    row.wait_ns = wait
    row.send_ns = NONE
    row.acknowledge_ns = NONE
    row.client_id = c
    row.topic_id = topic
    row.size_bytes = size
    row.queue = queue
    row.outcome = outcome
    row.discard_indication = 0
    row.attempts = attempts
