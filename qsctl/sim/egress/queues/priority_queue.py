"""Entering and leaving a priority queue: admission, discard of the oldest, discard indication, the three schedulers.

Sources: [SOL-QUEUES], "Configuring Max Egress Queue Depths", "Configuring Egress Queue Minimum Message Bursts",
"Priority Queue Min Burst"; [P7500] for TIBCO's arriving message that is discarded.
"""

from __future__ import annotations

from typing import Any

from qsctl.sim.egress.queues.endpoint import return_to_endpoint
from qsctl.sim.kernel.histogram import count_done, count_unfinished, count_wait
from qsctl.sim.kernel.jit import inlined_part, part, prefetch, row, wide
from qsctl.sim.kernel.records import (
    CLIENT,
    DISCARDED,
    ELIDED,
    ELIDING,
    FIT,
    LATER,
    LIFE,
    MORE,
    NODE,
    NONE,
    QUEUE,
    SIZE_BITS,
    SIZE_MASK,
    STATE,
    TAIL,
    TALLY,
    TOPIC,
)
from qsctl.sim.kernel.rows import allocate, release, undelivered_row


@inlined_part
def work_units(size: int) -> int:
    """Return ceil(size / 2048), at least 1 since a message has at least one byte [SOL-QUEUES, "Queue Max Depths"]."""
    return (size + 2047) >> 11


@inlined_part
def buffer_bytes(state: Any, c: int, size: int) -> None:
    """Add bytes to the egress buffers in use, or remove them (negative `size`), where the broker counts these."""
    broker = row(state, 0, STATE)
    if broker.buffers != 0:
        broker.egress_bytes += size
        row(broker.more, c, MORE).buffered += size


@part
def log_loss(state: Any, c: int, q: int, t: int, size: int, topic: int, born: int, outcome: int) -> None:
    """Log a lost message, and record the time of the queue's first loss; the caller counts the loss by its cause."""
    broker = row(state, 0, STATE)
    tally = row(broker.tallies, c * 5 + q, TALLY)
    if tally.first_discard == 0:
        tally.first_discard = t + 1
    if broker.logging != 0:
        undelivered_row(state, born, wide(0), t - born, c, topic, size, q, outcome, wide(0))


@part
def count_discard(state: Any, c: int, q: int, t: int, size: int, topic: int, born: int) -> None:
    """Count and log a message that is discarded because its queue is full: an Egress Congestion Discard."""
    row(row(state, 0, STATE).tallies, c * 5 + q, TALLY).discarded += 1
    log_loss(state, c, q, t, size, topic, born, wide(DISCARDED))


@inlined_part
def detach_head(clients: Any, queues: Any, nodes: Any, c: int, q: int) -> int:
    """Detach the oldest message from a queue's list, without a change of the queue's length and depth."""
    queue = row(queues, c * 5 + q, QUEUE)
    node = wide(queue.head)
    after = wide(row(nodes, node, NODE).next)
    queue.head = after
    prefetch(nodes, after, NODE)
    if after == NONE:
        client = row(clients, c, CLIENT)
        client.mask = client.mask & (31 - (1 << q))
    return node


@inlined_part
def unlink_head(clients: Any, queues: Any, nodes: Any, c: int, q: int) -> int:
    """Remove the oldest message from a queue, and from its length and depth."""
    node = detach_head(clients, queues, nodes, c, q)
    queue = row(queues, c * 5 + q, QUEUE)
    queue.work -= work_units(wide(row(nodes, node, NODE).tag & SIZE_MASK))
    queue.length -= 1
    return node


@part
def evict(state: Any, c: int, t: int) -> None:
    """Return the oldest message of G-1 to its endpoint, for redelivery (`GuaranteedOverflow.REDELIVER`)."""
    broker = row(state, 0, STATE)
    node = unlink_head(broker.clients, broker.queues, broker.nodes, c, wide(0))
    buffer_bytes(state, c, -wide(row(broker.nodes, node, NODE).tag & SIZE_MASK))
    row(broker.tallies, c * 5, TALLY).evicted += 1
    return_to_endpoint(state, c, t, node)


@inlined_part
def discard_oldest(state: Any, clients: Any, queues: Any, nodes: Any, c: int, q: int, t: int, rare: Any) -> None:
    """Discard the message at the head; the next message delivered from the queue has the discard indication."""
    if q == 0:
        evict(state, c, t)
        return
    broker = row(state, 0, STATE)
    node = unlink_head(clients, queues, nodes, c, q)
    oldest = row(nodes, node, NODE)
    queue = row(queues, c * 5 + q, QUEUE)
    queue.pending = 1
    if rare is not None:
        buffer_bytes(state, c, -wide(oldest.tag & SIZE_MASK))
        if row(clients, c, CLIENT).traits & ELIDING:
            slot = row(broker.later, node, LATER).slot
            if slot >= 0:
                row(broker.elided, slot, ELIDED).node = NONE
    if broker.logging != 0:
        prefetch(broker.topics, wide(queue.head), TOPIC)
        topic = wide(row(broker.topics, node, TOPIC).topic)
        count_discard(state, c, q, t, wide(oldest.tag & SIZE_MASK), topic, wide(oldest.time))
    else:
        tally = row(broker.tallies, c * 5 + q, TALLY)
        tally.discarded += 1
        if tally.first_discard == 0:
            tally.first_discard = t + 1
    release(state, node)


@inlined_part
def make_room(
    state: Any, clients: Any, queues: Any, nodes: Any, c: int, q: int, t: int, size: int, rare: Any
) -> bool:  # fmt: skip
    """Admit a message of `size` bytes to a queue, discarding older ones as needed; return whether it enters.

    Below the minimum burst it always enters. Otherwise Solace discards the oldest while the queue's depth is at its
    maximum ("depth"), or while the new message would exceed it ("fit"); TIBCO refuses the arriving message.
    """
    queue = row(queues, c * 5 + q, QUEUE)
    if queue.length >= queue.burst and queue.work + work_units(size) > queue.max_depth:
        admission = row(clients, c, CLIENT).admission
        if admission == TAIL:
            return bool(queue.work < queue.max_depth)
        beyond = work_units(size) - 1 if admission == FIT else 0
        while queue.length >= max(1, queue.burst) and queue.work + beyond >= queue.max_depth:
            discard_oldest(state, clients, queues, nodes, c, q, t, rare)
    return True


@inlined_part
def fits(state: Any, c: int, size: int, window: int) -> bool:
    """Return whether G-1 admits a message, given those that it holds until they are acknowledged.

    All of them count against the flows' windows. Below the minimum burst a message of any size is admitted, else one
    whose work units fit; an empty queue admits any.
    """
    queue = row(row(state, 0, STATE).queues, c * 5, QUEUE)
    if queue.length >= window:
        return False
    return bool(queue.length < max(1, queue.burst) or queue.work + work_units(size) <= queue.max_depth)


@inlined_part
def append(clients: Any, queues: Any, nodes: Any, c: int, q: int, node: int, size: int) -> None:
    """Append an admitted message to its queue."""
    queue = row(queues, c * 5 + q, QUEUE)
    entered = row(nodes, node, NODE)
    entered.tag = size | (q << SIZE_BITS)
    entered.next = NONE
    if queue.head == NONE:
        queue.head = node
        client = row(clients, c, CLIENT)
        client.mask = client.mask | (1 << q)
    else:
        row(nodes, queue.tail, NODE).next = node
    queue.tail = node
    queue.length += 1
    queue.work += work_units(size)
    if queue.work > queue.high_water:
        queue.high_water = queue.work


@inlined_part
def enqueue(
    state: Any, clients: Any, queues: Any, nodes: Any, c: int, q: int, t: int, size: int, topic: int, rare: Any
) -> int:  # fmt: skip
    """Enqueue a message that arrives at `t`; return its node, or NONE when it was refused (TIBCO)."""
    if not make_room(state, clients, queues, nodes, c, q, t, size, rare):
        count_discard(state, c, q, t, size, topic, t)
        return wide(NONE)
    broker = row(state, 0, STATE)
    node = allocate(state)
    row(nodes, node, NODE).time = t
    append(clients, queues, nodes, c, q, node, size)
    if broker.logging != 0:
        row(broker.topics, node, TOPIC).topic = topic
    if q == 0:
        row(broker.lives, node, LIFE).attempts = 1
    if rare is not None:
        if row(clients, c, CLIENT).traits & ELIDING:
            row(broker.later, node, LATER).slot = NONE
        buffer_bytes(state, c, size)
    return node


@inlined_part
def join_transmit_queue(clients: Any, nodes: Any, c: int, node: int, size: int) -> None:
    """Append a message to the TCP transmit queue."""
    client = row(clients, c, CLIENT)
    client.tcp_bytes += size
    row(nodes, node, NODE).next = NONE
    if client.head == NONE:
        client.head = node
    else:
        row(nodes, client.tail, NODE).next = node
    client.tail = node


@inlined_part
def count_delivery(
    state: Any, queues: Any, tallies: Any, octaves: Any, blocks: Any, index: int, size: int, wait: int
) -> None:
    """Count a message that left its queue as delivered, with its wait for the TCP transmit queue."""
    queue = row(queues, index, QUEUE)
    queue.delivered += 1
    queue.delivered_bytes += size
    if wait > 0:
        tally = row(tallies, index, TALLY)
        tally.wait_sum += wait
        if wait > tally.wait_max:
            tally.wait_max = wait
        count_wait(state, octaves, blocks, index, wait)


@inlined_part
def count_guaranteed(state: Any, c: int, node: int, acknowledged: int) -> None:
    """Count a guaranteed message at its last sending as delivered, and the time to its acknowledgment.

    `acknowledged` is NONE where the run ended before; the message then counts as unfinished.
    """
    broker = row(state, 0, STATE)
    life = row(broker.lives, node, LIFE)
    if life.moved >= broker.counted_from:
        size = wide(row(broker.nodes, node, NODE).tag & SIZE_MASK)
        count_delivery(
            state, broker.queues, broker.tallies, broker.octaves, broker.blocks, c * 5, size,
            wide(life.moved - life.born),
        )  # fmt: skip
        if acknowledged != NONE:
            count_done(state, c, wide(acknowledged - life.born))
        else:
            count_unfinished(state, c, wide(broker.horizon - life.born))


@inlined_part
def count_departure(
    state: Any, queues: Any, tallies: Any, octaves: Any, blocks: Any, index: int, size: int, wait: int
) -> int:
    """Count a message that moves to the TCP queue as delivered; return 1 when it has a discard indication, else 0.

    It has one when messages of its queue were discarded since the previous one left.
    """
    count_delivery(state, queues, tallies, octaves, blocks, index, size, wait)
    queue = row(queues, index, QUEUE)
    indication = wide(queue.pending)
    if indication != 0:
        queue.pending = 0
        row(tallies, index, TALLY).indications += 1
    return indication


@part
def weighted(state: Any, c: int, mask: int) -> int:
    """Return the next queue of a weighted round robin among those of `mask`.

    A queue's turn is at most `weight` messages; then the next lower queue has its turn.
    """
    broker = row(state, 0, STATE)
    more = row(broker.more, c, MORE)
    while more.credit <= 0 or mask & (1 << more.turn) == 0:
        more.turn = (more.turn + 4) % 5
        more.credit = row(broker.tallies, c * 5 + more.turn, TALLY).weight
    more.credit -= 1
    return wide(more.turn)
