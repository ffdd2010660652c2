"""One client's turn: from its queues to the TCP transmit queue, from there to the port, and acknowledgments back.

Seed 004: a message passes from a priority queue to the TCP transmit queue and, when TCP may send, to the port; its
data stays on the TCP queue until acknowledged. Seed 003: it enters the TCP queue whole while that is below its
maximum, and may carry it past. Our reading: bytes in flight stay within the window, but one message may always be in
flight; whole messages move (that TCP may split them is left out).
"""

from __future__ import annotations

from typing import Any

from qsctl.sim.kernel.heap import push
from qsctl.sim.kernel.jit import inlined, kernel
from qsctl.sim.kernel.records import (
    ABSENT,
    BUFFERS,
    EAGER,
    EGRESS_BYTES,
    ELIDING,
    FIT,
    FOREVER,
    HEAP_COUNT,
    HOLD,
    LIFE_INDICATION,
    LIFE_LOST,
    LOGGING,
    LOSSY,
    NONE,
    SIZE_BITS,
    SIZE_MASK,
    TRACKED,
    WEIGHTED,
)
from qsctl.sim.kernel.rows import allocate, delivered_row, release, wide
from qsctl.sim.kernel.transmit import send
from qsctl.sim.models.egress_eliding import replace_queued, slot_of, take_ready
from qsctl.sim.models.egress_endpoint import (
    next_at_endpoint,
    next_due,
    read_not_acknowledged,
    take_from_endpoint,
    wait_at_endpoint,
    want_timer,
)
from qsctl.sim.models.egress_queue import (
    append,
    count_loss,
    enqueue,
    highest,
    leave_buffers,
    make_room,
    to_transmit_queue,
    unlink_head,
    weighted,
    work_units,
)


@inlined
def pump(
    c: int, t: int, clients: Any, queues: Any, ports: Any, nodes: Any, lives: Any, log: Any, control: Any, rare: Any
) -> bool:
    """Move and send what may go at `t`; True when the client is left blocked: it has data that it cannot send."""
    client = clients[c]
    while True:
        while client.unsent != NONE:
            node = wide(client.unsent)
            size = nodes[node].tag & SIZE_MASK
            if client.inflight > 0 and client.inflight + size > client.window:
                break
            client.unsent = nodes[node].next
            send(c, t, node, clients, ports, nodes, lives, log, control, rare)
        mask = client.mask
        if mask == 0:
            return bool(client.unsent != NONE)
        full = bool(client.tcp_bytes >= client.tcp_limit)
        if client.traits & ELIDING:
            node = take_ready(c, t, not full, clients, queues, nodes, lives, control, rare)
            if node == NONE:
                return bool(client.unsent != NONE)
            if full:
                return True
            q = wide(nodes[node].tag >> SIZE_BITS)
        else:
            if full:
                return True
            q = weighted(c, wide(mask), queues, rare.more) if client.traits & WEIGHTED else highest(wide(mask))
            node = unlink_head(c, q, clients, queues, nodes)
        to_transmit_queue(c, q, t, node, clients, queues, nodes, lives, control, rare)


@inlined
def settle(c: int, t: int, blocked: bool, clients: Any, control: Any, rare: Any) -> None:
    """Note when a client becomes blocked or free, and let it stand in the heap while it waits."""
    client = clients[c]
    if blocked:
        if client.blocked == 0:
            client.blocked = 1
            rare.more[c].blocked_since = t
    elif client.blocked != 0:
        client.blocked = 0
        rare.more[c].blocked_ns += t - rare.more[c].blocked_since
    if client.queued == 0 and (blocked or (client.traits & EAGER and client.inflight > 0)):
        client.queued = 1
        push(rare.heap, control[HEAP_COUNT], client.next_ack, c)
        control[HEAP_COUNT] += 1


@kernel
def retire(c: int, node: int, acknowledged: int, nodes: Any, lives: Any, log: Any, control: Any, rare: Any) -> None:
    """The consumer acknowledged a guaranteed message: its endpoint forgets it."""
    endpoint = rare.endpoints[rare.more[c].endpoint]
    endpoint.outstanding -= 1
    endpoint.held -= 1
    life = lives[node]
    if control[LOGGING] != 0:
        delivered_row(
            log, control, life.born, life.moved, life.sent, acknowledged, c, wide(life.topic),
            nodes[node].tag & SIZE_MASK, wide(0), 1 if life.traits & LIFE_INDICATION else 0, wide(life.attempts),
        )  # fmt: skip
    release(nodes, control, node)


@inlined
def acknowledge(c: int, clients: Any, nodes: Any, lives: Any, log: Any, control: Any, rare: Any) -> None:
    """Take the oldest sent message off the TCP transmit queue: its acknowledgment is here.

    The congestion window grows by the bytes acknowledged (slow start) up to its maximum; a message that was lost
    halves it instead, never below one segment.
    """
    client = clients[c]
    node = wide(client.head)
    tag = nodes[node].tag
    size = tag & SIZE_MASK
    client.inflight -= size
    client.tcp_bytes -= size
    leave_buffers(c, size, control, rare)
    if client.traits & LOSSY and lives[node].traits & LIFE_LOST:
        client.window = max(client.window >> 1, rare.more[c].mss)
    elif client.window < client.window_max:
        client.window = min(client.window + size, client.window_max)
    after = nodes[node].next
    client.head = after
    time = nodes[node].time
    client.next_ack = FOREVER if after == NONE or after == client.unsent else nodes[after].time
    if tag >> SIZE_BITS == 0 and client.traits & TRACKED:
        delay = rare.endpoints[rare.more[c].endpoint].acknowledge_delay
        if delay == 0:
            retire(c, node, time, nodes, lives, log, control, rare)
        else:
            due = time + min(wide(delay), FOREVER - time)
            read_not_acknowledged(c, node, due, nodes, control, rare)
    else:
        release(nodes, control, node)


@kernel
def fits(c: int, size: int, clients: Any, queues: Any) -> bool:
    """Whether G-1 takes a message without discarding another."""
    queue = queues[c * 5]
    if queue.length < max(1, queue.burst):
        return True
    if clients[c].admission == FIT:
        return bool(queue.work + work_units(size) <= queue.max_depth)
    return bool(queue.work < queue.max_depth)


@kernel
def feed(
    c: int, t: int, blocked: bool, clients: Any, queues: Any, ports: Any, nodes: Any, lives: Any, log: Any,
    control: Any, rare: Any,
) -> bool:  # fmt: skip
    """Let the endpoint send into G-1, one message at a time, what its flows' windows allow at this instant.

    A message that pushes another out of G-1 does not free a place in the window before the next event: else one
    instant would turn the whole endpoint over. Returns whether the client is left blocked.
    """
    endpoint = rare.endpoints[rare.more[c].endpoint]
    g1 = wide(0)
    budget = endpoint.window - endpoint.outstanding
    while budget > 0:
        node = next_at_endpoint(c, t, lives, rare)
        if node == NONE:
            break
        size = nodes[node].tag & SIZE_MASK
        if clients[c].traits & HOLD and not fits(c, size, clients, queues):
            break
        take_from_endpoint(c, node, nodes, rare)
        make_room(c, g1, t, size, clients, queues, nodes, lives, log, control, rare)
        append(c, g1, node, size, clients, queues, nodes)
        lives[node].attempts += 1
        if lives[node].attempts > 1:
            queues[c * 5].redelivered += 1
        if control[BUFFERS] != 0:
            control[EGRESS_BYTES] += size
            rare.more[c].buffered += size
        budget -= 1
        blocked = pump(c, t, clients, queues, ports, nodes, lives, log, control, rare)
    want_timer(c, next_due(c, t, lives, nodes, rare), control, rare)
    return blocked


@kernel
def spool(
    c: int, t: int, size: int, topic: int, eligible: bool, queues: Any, nodes: Any, lives: Any, log: Any,
    control: Any, rare: Any,
) -> None:  # fmt: skip
    """A guaranteed message reaches its endpoint; a full one refuses it, a congested one if it is discard eligible."""
    endpoint = rare.endpoints[rare.more[c].endpoint]
    full = 0 <= endpoint.held_max <= endpoint.held
    congested = eligible and 0 <= endpoint.low_max <= endpoint.held
    if full or congested:
        queues[c * 5].refused += 1
        count_loss(c, wide(0), t, size, topic, t, queues, log, control)
        return
    endpoint.held += 1
    node = allocate(nodes, control)
    nodes[node].time = t
    nodes[node].tag = size
    life = lives[node]
    life.topic = topic
    life.slot = NONE
    life.attempts = 0
    life.traits = 0
    wait_at_endpoint(c, node, nodes, rare)


@inlined
def serve(
    c: int, t: int, clients: Any, queues: Any, ports: Any, nodes: Any, lives: Any, log: Any, control: Any, rare: Any
) -> None:
    """Everything a client can do at `t`."""
    blocked = pump(c, t, clients, queues, ports, nodes, lives, log, control, rare)
    if clients[c].traits & TRACKED:
        blocked = feed(c, t, blocked, clients, queues, ports, nodes, lives, log, control, rare)
    settle(c, t, blocked, clients, control, rare)


@inlined
def arrive(
    c: int, q: int, t: int, size: int, topic: int, eligible: bool, clients: Any, queues: Any, ports: Any, nodes: Any,
    lives: Any, log: Any, control: Any, rare: Any,
) -> None:  # fmt: skip
    """A message arrives for a client that is not plain, open and empty."""
    flags = clients[c].traits
    queues[c * 5 + q].arrived += 1
    if q == 0 and flags & TRACKED:
        spool(c, t, size, topic, eligible, queues, nodes, lives, log, control, rare)
        if flags & ABSENT:
            return
    elif flags & ABSENT:
        queues[c * 5 + q].not_connected += 1
        count_loss(c, q, t, size, topic, t, queues, log, control)
        return
    elif flags & ELIDING and 1 <= q <= 3:
        slot = slot_of(c, t, topic, control, rare)
        if slot == NONE or not replace_queued(c, q, t, size, topic, slot, queues, nodes, log, control, rare):
            node = enqueue(c, q, t, size, topic, clients, queues, nodes, lives, log, control, rare)
            if slot != NONE and rare.elided[slot].node == NONE:
                lives[node].slot = slot
                rare.elided[slot].node = node
    else:
        enqueue(c, q, t, size, topic, clients, queues, nodes, lives, log, control, rare)
    serve(c, t, clients, queues, ports, nodes, lives, log, control, rare)


@kernel
def wake(
    c: int, t: int, clients: Any, queues: Any, ports: Any, nodes: Any, lives: Any, log: Any, control: Any, rare: Any
) -> None:
    """A client's timer: consumers' acknowledgments, redeliveries and ends of eliding delays that are due."""
    client = clients[c]
    more = rare.more[c]
    more.timer = FOREVER
    if client.traits & ABSENT:
        return
    while client.next_ack <= t and client.queued == 0:
        acknowledge(c, clients, nodes, lives, log, control, rare)
    if more.endpoint == NONE:
        serve(c, t, clients, queues, ports, nodes, lives, log, control, rare)
        return
    endpoint = rare.endpoints[more.endpoint]
    head = endpoint.returned_head
    stirred = head != NONE and lives[head].moved == t
    while endpoint.reading_head != NONE and nodes[endpoint.reading_head].time <= t:
        node = wide(endpoint.reading_head)
        endpoint.reading_head = nodes[node].next
        retire(c, node, wide(nodes[node].time), nodes, lives, log, control, rare)
        stirred = True
    blocked = pump(c, t, clients, queues, ports, nodes, lives, log, control, rare)
    if stirred:
        blocked = feed(c, t, blocked, clients, queues, ports, nodes, lives, log, control, rare)
    settle(c, t, blocked, clients, control, rare)
    want_timer(c, next_due(c, t, lives, nodes, rare), control, rare)
