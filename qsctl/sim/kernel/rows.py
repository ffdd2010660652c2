"""Rows of the message log and the free list of nodes: the two things that every step of a kernel touches."""

from __future__ import annotations

from typing import Any

from qsctl.sim.kernel.jit import inlined_part, part, row, wide
from qsctl.sim.kernel.records import (
    CLIENT,
    DELIVERED,
    FIRST_HALF,
    INDICATION_SHIFT,
    LATER,
    LIFE,
    LIFE_INDICATION,
    LOG_WORDS,
    NODE,
    NONE,
    OUTCOME_SHIFT,
    QUEUE_SHIFT,
    SECOND_HALF,
    SIZE_BITS,
    SIZE_MASK,
    STATE,
    TOPIC,
    TRACKED,
)


@inlined_part
def allocate(state: Any) -> int:
    """Remove a node from the free list and return it; the caller has checked that the list is not empty."""
    broker = row(state, 0, STATE)
    node = wide(broker.free)
    broker.free = row(broker.nodes, node, NODE).next
    return node


@inlined_part
def release(state: Any, node: int) -> None:
    """Return a node to the free list."""
    broker = row(state, 0, STATE)
    row(broker.nodes, node, NODE).next = broker.free
    broker.free = node


@inlined_part
def delivered_row(
    log: Any, cursor: int, born: int, enter: int, wait: int, send: int, acknowledge: int, c: int, topic: int, size: int,
    queue: int, indication: int, attempts: int,
) -> None:  # fmt: skip
    """Write the `LOG_ROW` of a delivered message; a duration whose end did not happen is NONE."""
    written = row(log, cursor, LOG_WORDS)
    written.enqueued_ns = born
    written.enter_ns = enter
    written.wait_ns = wait
    written.send_ns = send
    written.acknowledge_ns = acknowledge
    written.client_topic = (c << FIRST_HALF) | (topic << SECOND_HALF)
    written.size_attempts = (size << FIRST_HALF) | (attempts << SECOND_HALF)
    written.fate = (queue << QUEUE_SHIFT) | (indication << INDICATION_SHIFT)  # and outcome 0, DELIVERED


@inlined_part
def next_row(state: Any) -> int:
    """Return the index of the next log row; the caller has checked that the log is not full."""
    broker = row(state, 0, STATE)
    cursor = wide(broker.log_count)
    broker.log_count = cursor + 1
    return cursor


@inlined_part
def entered_after(state: Any, c: int, node: int, queue: int, born: int) -> int:
    """Return the time in ns from a message's arrival to its entry into its queue.

    A guaranteed message may wait at its endpoint before.
    """
    broker = row(state, 0, STATE)
    if queue == 0 and row(broker.clients, c, CLIENT).traits & TRACKED:
        return wide(row(broker.later, node, LATER).entered - born)
    return wide(0)


@part
def log_delivered(state: Any, c: int, node: int, sent: int, acknowledged: int) -> None:
    """Append the row of a delivered message from its node; `sent` and `acknowledged` are NONE where missing."""
    log_sent(state, c, node, sent, acknowledged, wide(DELIVERED))


@part
def log_sent(state: Any, c: int, node: int, sent: int, acknowledged: int, outcome: int) -> None:
    """Append the row of a message sent to the TCP transmit queue: delivered, or held until its acknowledgment."""
    broker = row(state, 0, STATE)
    life = row(broker.lives, node, LIFE)
    tag = row(broker.nodes, node, NODE).tag
    queue = wide(tag >> SIZE_BITS)
    born = life.born
    cursor = next_row(state)
    delivered_row(
        broker.log, cursor, born, entered_after(state, c, node, queue, born), life.moved - born,
        sent - born if sent >= 0 else NONE, acknowledged - born if acknowledged >= 0 else NONE, c,
        wide(row(broker.topics, node, TOPIC).topic),
        wide(tag & SIZE_MASK), queue, wide(1) if life.traits & LIFE_INDICATION else wide(0),
        wide(life.attempts) if queue == 0 else wide(1),
    )  # fmt: skip
    if outcome != DELIVERED:
        row(broker.log, cursor, LOG_WORDS).fate |= outcome << OUTCOME_SHIFT


@part
def undelivered_row(
    state: Any, born: int, enter: int, wait: int, c: int, topic: int, size: int, queue: int, outcome: int, attempts: int
) -> None:
    """Append the `LOG_ROW` of a message that was lost or is held; `wait` is NONE for the latter.

    `enter` is 0 for a message that never waited outside its queue, and NONE for one that still waits there.
    """
    written = row(row(state, 0, STATE).log, next_row(state), LOG_WORDS)
    written.enqueued_ns = born
    written.enter_ns = enter
    written.wait_ns = wait
    written.send_ns = NONE
    written.acknowledge_ns = NONE
    written.client_topic = (c << FIRST_HALF) | (topic << SECOND_HALF)
    written.size_attempts = (size << FIRST_HALF) | (attempts << SECOND_HALF)
    written.fate = (queue << QUEUE_SHIFT) | (outcome << OUTCOME_SHIFT)  # and no indication
