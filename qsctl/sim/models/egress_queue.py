"""Entering and leaving a priority queue: admission, discard of the oldest, discard indication, the three schedulers.

Sources: seed 004, "Configuring Max Egress Queue Depths", "Configuring Egress Queue Minimum Message Bursts",
"Priority Queue Min Burst"; seed 000; seed 003 for TIBCO's arriving message that is discarded.
"""

from __future__ import annotations

from typing import Any

from qsctl.sim.kernel.histogram import count_wait
from qsctl.sim.kernel.jit import inlined, kernel
from qsctl.sim.kernel.records import (
    BUFFERS,
    DISCARDED,
    EGRESS_BYTES,
    ELIDING,
    FIT,
    LIFE_INDICATION,
    LOGGING,
    NONE,
    SIZE_BITS,
    SIZE_MASK,
    TAIL,
    TRACKED,
)
from qsctl.sim.kernel.rows import allocate, release, undelivered_row, wide
from qsctl.sim.models.egress_endpoint import return_to_endpoint


@inlined
def work_units(size: int) -> int:
    """max(1, ceil(size / 2048)): seed 004, "Queue Max Depths"."""
    return max(1, (size + 2047) >> 11)


@inlined
def leave_buffers(c: int, size: int, control: Any, rare: Any) -> None:
    """Free the egress buffers of one message, where they are counted."""
    if control[BUFFERS] != 0:
        control[EGRESS_BYTES] -= size
        rare.more[c].buffered -= size


@inlined
def count_loss(c: int, q: int, t: int, size: int, topic: int, born: int, queues: Any, log: Any, control: Any) -> None:
    """Count and log a message that is lost at `t`: the queue's first loss is remembered."""
    queue = queues[c * 5 + q]
    queue.discarded += 1
    if queue.first_discard < 0:
        queue.first_discard = t
    if control[LOGGING] != 0:
        undelivered_row(log, control, born, t - born, c, topic, size, q, wide(DISCARDED), wide(0))


@inlined
def unlink_head(c: int, q: int, clients: Any, queues: Any, nodes: Any) -> int:
    """Take the oldest message off a queue."""
    queue = queues[c * 5 + q]
    node = wide(queue.head)
    queue.head = nodes[node].next
    queue.length -= 1
    queue.work -= work_units(nodes[node].tag & SIZE_MASK)
    if queue.length == 0:
        queue.tail = NONE
        clients[c].mask &= ~(1 << q)
    return node


@inlined
def discard_oldest(
    c: int, q: int, t: int, clients: Any, queues: Any, nodes: Any, lives: Any, log: Any, control: Any, rare: Any
) -> None:
    """Discard the message at the head; the queue's next message delivered will carry the indication.

    A guaranteed message is not lost: it goes back to its endpoint and comes again.
    """
    node = unlink_head(c, q, clients, queues, nodes)
    size = nodes[node].tag & SIZE_MASK
    leave_buffers(c, size, control, rare)
    if q == 0:
        queues[c * 5].returned += 1
        return_to_endpoint(c, t, node, nodes, lives, control, rare)
        return
    queues[c * 5 + q].pending = 1
    if clients[c].traits & ELIDING and lives[node].slot >= 0:
        rare.elided[lives[node].slot].node = NONE
    topic = wide(lives[node].topic) if control[LOGGING] != 0 else 0
    count_loss(c, q, t, size, topic, nodes[node].time, queues, log, control)
    release(nodes, control, node)


@inlined
def make_room(
    c: int, q: int, t: int, size: int, clients: Any, queues: Any, nodes: Any, lives: Any, log: Any, control: Any,
    rare: Any,
) -> bool:  # fmt: skip
    """Admit a message of `size` bytes to a queue: True when it enters, after discarding what must go.

    Below the minimum burst it always enters. Otherwise Solace discards the oldest while the queue's depth is at its
    maximum ("depth"), or while the new message would carry it past ("fit"); TIBCO refuses the arriving message.
    """
    queue = queues[c * 5 + q]
    if queue.length < queue.burst:
        return True
    least = max(1, queue.burst)
    admission = clients[c].admission
    if admission == TAIL:
        return bool(queue.work < queue.max_depth)
    if admission == FIT:
        work = work_units(size)
        while queue.length >= least and queue.work + work > queue.max_depth:
            discard_oldest(c, q, t, clients, queues, nodes, lives, log, control, rare)
    else:
        while queue.length >= least and queue.work >= queue.max_depth:
            discard_oldest(c, q, t, clients, queues, nodes, lives, log, control, rare)
    return True


@inlined
def append(c: int, q: int, node: int, size: int, clients: Any, queues: Any, nodes: Any) -> None:
    """Put an admitted message at the end of its queue."""
    queue = queues[c * 5 + q]
    nodes[node].tag = size | (q << SIZE_BITS)
    nodes[node].next = NONE
    if queue.length == 0:
        queue.head = node
        clients[c].mask |= 1 << q
    else:
        nodes[queue.tail].next = node
    queue.tail = node
    queue.length += 1
    queue.work += work_units(size)
    queue.high_water = max(queue.high_water, queue.work)


@inlined
def enqueue(
    c: int, q: int, t: int, size: int, topic: int, clients: Any, queues: Any, nodes: Any, lives: Any, log: Any,
    control: Any, rare: Any,
) -> int:  # fmt: skip
    """A message arrives at a queue at `t`: its node, or NONE when it was refused (TIBCO)."""
    if not make_room(c, q, t, size, clients, queues, nodes, lives, log, control, rare):
        count_loss(c, q, t, size, topic, t, queues, log, control)
        return wide(NONE)
    node = allocate(nodes, control)
    nodes[node].time = t
    append(c, q, node, size, clients, queues, nodes)
    if q == 0 or clients[c].traits & ELIDING or control[LOGGING] != 0:
        life = lives[node]
        life.topic = topic
        life.slot = NONE
        life.attempts = 1
        life.traits = 0
    if control[BUFFERS] != 0:
        control[EGRESS_BYTES] += size
        rare.more[c].buffered += size
    return node


@inlined
def to_transmit_queue(
    c: int, q: int, t: int, node: int, clients: Any, queues: Any, nodes: Any, lives: Any, control: Any, rare: Any
) -> None:
    """Move a message that left its queue to the end of the TCP transmit queue: it counts as delivered.

    It carries the pending discard indication of its queue, if there is one.
    """
    client = clients[c]
    queue = queues[c * 5 + q]
    size = nodes[node].tag & SIZE_MASK
    wait = t - nodes[node].time
    queue.delivered += 1
    queue.delivered_bytes += size
    if wait > 0:
        queue.wait_sum += wait
        queue.wait_max = max(queue.wait_max, wait)
        count_wait(rare.octaves, rare.blocks, control, c * 5 + q, wait)
    indication = queue.pending
    if indication != 0:
        queue.pending = 0
        queue.indications += 1
    if control[LOGGING] != 0 or client.traits & TRACKED:
        life = lives[node]
        life.born = nodes[node].time
        life.moved = t
        life.traits = LIFE_INDICATION if indication != 0 else 0
    client.tcp_bytes += size
    nodes[node].next = NONE
    if client.head == NONE:
        client.head = node
    else:
        nodes[client.tail].next = node
    client.tail = node
    if client.unsent == NONE:
        client.unsent = node


@inlined
def highest(mask: int) -> int:
    """The highest priority with a message: strict priority, C-1 first."""
    if mask >= 16:
        return 4
    if mask >= 8:
        return 3
    if mask >= 4:
        return 2
    if mask >= 2:
        return 1
    return 0


@kernel
def weighted(c: int, mask: int, queues: Any, more: Any) -> int:
    """The next queue of a weighted round robin: up to `weight` messages of one, then the next lower one in turn."""
    record = more[c]
    while record.credit <= 0 or mask & (1 << record.turn) == 0:
        record.turn = (record.turn + 4) % 5
        record.credit = queues[c * 5 + record.turn].weight
    record.credit -= 1
    return wide(record.turn)
