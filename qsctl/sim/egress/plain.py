"""A plain client: no endpoint, eliding, loss, pauses, absences, slower link or weights, as most are.

The same rules as in `queue` and `serve`, less what such a client cannot meet; these are the pieces of
the main loop that every message passes.
"""

from __future__ import annotations

from typing import Any

from qsctl.sim.egress.queue import (
    append,
    count_departure,
    count_discard,
    detach_head,
    discard_oldest,
    join_transmit_queue,
    unlink_head,
    work_units,
)
from qsctl.sim.egress.transmit import leave_port
from qsctl.sim.kernel.heap import drop_top, push, replace_top
from qsctl.sim.kernel.jit import bit_length, inlined, kernel, prefetch, row, wide
from qsctl.sim.kernel.records import (
    CLIENT,
    ENTRIES_AN_EVENT,
    FIT,
    FOREVER,
    HOLD,
    LATER,
    LIFE,
    LIFE_INDICATION,
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
from qsctl.sim.kernel.rows import allocate, delivered_row, log_delivered, next_row, release


@inlined
def acknowledge_plain(state: Any, clients: Any, nodes: Any, c: int) -> None:
    """The oldest sent message is acknowledged: slow start, and the node goes back to the free list."""
    broker = row(state, 0, STATE)
    client = row(clients, c, CLIENT)
    node = wide(client.head)
    oldest = row(nodes, node, NODE)
    acknowledged = wide(oldest.tag & SIZE_MASK)
    client.inflight -= acknowledged
    client.tcp_bytes -= acknowledged
    if client.window < client.window_max:
        client.window = min(client.window + acknowledged, wide(client.window_max))
    after = wide(oldest.next)
    oldest.next = broker.free
    broker.free = node
    client.head = after
    client.next_ack = FOREVER
    if after != NONE and after != client.unsent:
        oldest = row(nodes, after, NODE)
        client.next_ack = oldest.time
        prefetch(nodes, wide(oldest.next), NODE)


@inlined
def goes_through(clients: Any, c: int, size: int) -> bool:
    """Whether nothing is queued and the window is open: the message is not held up anywhere before the port."""
    client = row(clients, c, CLIENT)
    return bool(
        client.mask == 0
        and client.unsent == NONE
        and client.tcp_bytes < client.tcp_limit
        and (client.inflight == 0 or client.inflight + size <= client.window)
    )


@inlined
def pass_through(
    state: Any,
    clients: Any,
    queues: Any,
    tallies: Any,
    ports: Any,
    nodes: Any,
    c: int,
    q: int,
    t: int,
    size: int,
    node: int,
) -> tuple[int, int, int]:
    """A message enters its queue, leaves it and is sent, all at `t`, as the first of the free nodes.

    Returns:
        When its last byte leaves the port, when it is acknowledged, 1 when it carries a discard indication.
    """
    broker = row(state, 0, STATE)
    client = row(clients, c, CLIENT)
    queue = row(queues, c * 5 + q, QUEUE)
    sent = row(nodes, node, NODE)
    broker.free = sent.next
    queue.arrived += 1
    queue.delivered += 1
    queue.delivered_bytes += size
    if work_units(size) > queue.high_water:
        queue.high_water = work_units(size)
    indication = wide(queue.pending)
    if indication != 0:
        queue.pending = 0
        row(tallies, c * 5 + q, TALLY).indications += 1
    depart = leave_port(ports, wide(client.port), t, size)
    time = depart + client.delay
    sent.time = time
    sent.tag = size | (q << SIZE_BITS)
    sent.next = NONE
    client.inflight += size
    client.tcp_bytes += size
    if client.head == NONE:
        client.head = node
        client.next_ack = time
    else:
        row(nodes, client.tail, NODE).next = node
    client.tail = node
    return depart, wide(time), indication


@inlined
def enter_queue(
    state: Any, clients: Any, queues: Any, nodes: Any, c: int, q: int, t: int, size: int, topic: int
) -> None:  # fmt: skip
    """A message is admitted to its queue, after discards where it is full, and waits there; or it is refused."""
    broker = row(state, 0, STATE)
    queue = row(queues, c * 5 + q, QUEUE)
    queue.arrived += 1
    if queue.length >= queue.burst and queue.work + work_units(size) > queue.max_depth:
        admission = row(clients, c, CLIENT).admission
        if admission == TAIL and queue.work >= queue.max_depth:
            count_discard(state, c, q, t, size, topic, t)
            return
        if admission != TAIL:
            beyond = work_units(size) - 1 if admission == FIT else 0
            while queue.length >= max(1, queue.burst) and queue.work + beyond >= queue.max_depth:
                discard_plain(state, clients, queues, nodes, c, q, t)
    node = allocate(state)
    row(nodes, node, NODE).time = t
    append(clients, queues, nodes, c, q, node, size)
    if broker.logging != 0:
        row(broker.topics, node, TOPIC).topic = topic
    if q == 0:
        row(broker.lives, node, LIFE).attempts = 1


@inlined
def discard_plain(state: Any, clients: Any, queues: Any, nodes: Any, c: int, q: int, t: int) -> None:
    """`queue.discard_oldest` for a plain client: a direct message is gone at once."""
    if q == 0:
        discard_oldest(state, c, q, t)
        return
    broker = row(state, 0, STATE)
    node = unlink_head(clients, queues, nodes, c, q)
    row(queues, c * 5 + q, QUEUE).pending = 1
    if broker.logging != 0:
        prefetch(broker.topics, wide(row(queues, c * 5 + q, QUEUE).head), TOPIC)
        oldest = row(nodes, node, NODE)
        topic = wide(row(broker.topics, node, TOPIC).topic)
        count_discard(state, c, q, t, wide(oldest.tag & SIZE_MASK), topic, wide(oldest.time))
    else:
        tally = row(broker.tallies, c * 5 + q, TALLY)
        tally.discarded += 1
        if tally.first_discard < 0:
            tally.first_discard = t
    release(state, node)


@inlined
def settle_plain(state: Any, clients: Any, heap: Any, c: int, t: int, blocked: bool, waited: bool) -> None:
    """Note when the client becomes blocked or free, and keep it in the heap while it waits; `waited`: on its top."""
    broker = row(state, 0, STATE)
    client = row(clients, c, CLIENT)
    if blocked:
        if client.blocked == 0:
            client.blocked = 1
            row(broker.more, c, MORE).blocked_since = t
        if waited:
            replace_top(heap, broker.heap_count, client.next_ack, c)
        elif client.queued == 0:
            client.queued = 1
            push(heap, broker.heap_count, client.next_ack, c)
            broker.heap_count += 1
            if broker.heap_count + ENTRIES_AN_EVENT >= broker.heap_limit:
                broker.short = 1
        return
    if client.blocked != 0:
        client.blocked = 0
        more = row(broker.more, c, MORE)
        more.blocked_ns += t - more.blocked_since
    if waited:
        client.queued = 0
        drop_top(heap, broker.heap_count)
        broker.heap_count -= 1


@inlined
def send_plain(state: Any, clients: Any, nodes: Any, c: int, t: int, node: int, size: int) -> tuple[int, int]:
    """Copy a message of the TCP transmit queue to the port: when it has left, and when it is acknowledged."""
    client = row(clients, c, CLIENT)
    depart = leave_port(row(state, 0, STATE).ports, wide(client.port), t, size)
    time = wide(depart + client.delay)
    row(nodes, node, NODE).time = time
    client.inflight += size
    if client.next_ack == FOREVER:
        client.next_ack = time
    return depart, time


@kernel
def pump_plain(state: Any, c: int, t: int) -> bool:
    """Move and send what may go at `t`; True when the client is left blocked: it has data that it cannot send.

    Also of a client whose only trait is that G-1 holds what it has not acknowledged: its guaranteed messages are
    counted and logged when they are acknowledged.
    """
    broker = row(state, 0, STATE)
    clients, queues, nodes = broker.clients, broker.queues, broker.nodes
    client = row(clients, c, CLIENT)
    logging = broker.logging != 0
    holds = client.traits & HOLD != 0
    while client.unsent != NONE:
        node = wide(client.unsent)
        first = row(nodes, node, NODE)
        size = wide(first.tag & SIZE_MASK)
        if client.inflight > 0 and client.inflight + size > client.window:
            break
        client.unsent = first.next
        depart, time = send_plain(state, clients, nodes, c, t, node, size)
        if holds and first.tag >> SIZE_BITS == 0:
            row(broker.later, node, LATER).sent = depart
        elif logging:
            log_delivered(state, c, node, depart, time)
    while client.mask != 0:
        if client.tcp_bytes >= client.tcp_limit:
            return True
        q = bit_length(wide(client.mask)) - 1
        kept = holds and q == 0
        node = detach_head(clients, queues, nodes, c, q) if kept else unlink_head(clients, queues, nodes, c, q)
        moved = row(nodes, node, NODE)
        size = wide(moved.tag & SIZE_MASK)
        born = wide(moved.time)
        indication = wide(0)
        if not kept:
            indication = count_departure(
                state, queues, broker.tallies, broker.octaves, broker.blocks, c * 5 + q, size, t - born
            )
        held_back = client.unsent != NONE or (client.inflight > 0 and client.inflight + size > client.window)
        join_transmit_queue(clients, nodes, c, node, size)
        if kept or (held_back and logging):
            prefetch(broker.topics, wide(row(queues, c * 5 + q, QUEUE).head), TOPIC)
            prefetch(broker.lives, wide(row(queues, c * 5 + q, QUEUE).head), LIFE)
            life = row(broker.lives, node, LIFE)
            life.born = born
            life.moved = t
            life.traits = LIFE_INDICATION if indication != 0 else 0
        if held_back:
            if client.unsent == NONE:
                client.unsent = node
            continue
        depart, time = send_plain(state, clients, nodes, c, t, node, size)
        if kept:
            row(broker.later, node, LATER).sent = depart
        elif logging:
            prefetch(broker.topics, wide(row(queues, c * 5 + q, QUEUE).head), TOPIC)
            topic = wide(row(broker.topics, node, TOPIC).topic)
            attempts = wide(row(broker.lives, node, LIFE).attempts) if q == 0 else wide(1)
            delivered_row(
                broker.log, next_row(state), born, wide(0), t - born, depart - born, time - born, c, topic, size, q,
                indication, attempts,
            )  # fmt: skip
    return bool(client.unsent != NONE)
