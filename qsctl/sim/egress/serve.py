"""One client's turn: from its queues to the TCP transmit queue, from there to the port, and acknowledgments back.

Seed 004: a message passes from a priority queue to the TCP transmit queue and, when TCP may send, to the port; its
data stays on the TCP queue until acknowledged. Seed 003: it enters the TCP queue whole while that is below its
maximum, and may carry it past. Our reading: bytes in flight stay within the window, but one message may always be in
flight; whole messages move (that TCP may split them is left out).

These are the kernels of clients with a trait: endpoints, eliding, loss, pauses, absences, a slower link, weights. A
plain client's turn is inside `advance`.
"""

from __future__ import annotations

from typing import Any, Final

from qsctl.sim.egress.eliding import replace_queued, slot_of, take_ready
from qsctl.sim.egress.endpoint import (
    next_at_endpoint,
    read_not_acknowledged,
    take_from_endpoint,
    wait_at_endpoint,
    want_next_due,
)
from qsctl.sim.egress.plain import enter_queue, pump_plain
from qsctl.sim.egress.queue import (
    append,
    buffer_bytes,
    count_guaranteed,
    detach_head,
    enqueue,
    log_loss,
    make_room,
    to_transmit_queue,
    unlink_head,
    weighted,
    work_units,
)
from qsctl.sim.egress.transmit import send
from qsctl.sim.kernel.heap import drop_top, push, replace_top
from qsctl.sim.kernel.jit import bit_length, inlined, kernel, row, wide
from qsctl.sim.kernel.records import (
    ABSENT,
    CLIENT,
    EAGER,
    ELIDED,
    ELIDING,
    ENDPOINT,
    ENTRIES_AN_EVENT,
    FOREVER,
    HEAP,
    HOLD,
    LATER,
    LIFE,
    LIFE_LOST,
    LOSS,
    LOSSY,
    MORE,
    NODE,
    NONE,
    NOT_CONNECTED,
    QUEUE,
    SIZE_BITS,
    SIZE_MASK,
    SPOOL_REFUSED,
    STATE,
    TOPIC,
    TRACKED,
    WEIGHTED,
)
from qsctl.sim.kernel.rows import allocate, log_delivered, release

HELD_ONLY: Final = HOLD | TRACKED
"""The traits of a client that is plain but for its guaranteed messages, which G-1 holds until it acknowledges them."""


@kernel
def pump(state: Any, c: int, t: int) -> bool:
    """Move and send what may go at `t`; True when the client is left blocked: it has data that it cannot send."""
    broker = row(state, 0, STATE)
    client = row(broker.clients, c, CLIENT)
    while True:
        while client.unsent != NONE:
            node = wide(client.unsent)
            first = row(broker.nodes, node, NODE)
            if client.inflight > 0 and client.inflight + (first.tag & SIZE_MASK) > client.window:
                break
            client.unsent = first.next
            send(state, c, t, node)
        mask = client.mask
        if mask == 0:
            return bool(client.unsent != NONE)
        full = bool(client.tcp_bytes >= client.tcp_limit)
        if client.traits & ELIDING:
            node = take_ready(state, c, t, not full)
            if node == NONE:
                return bool(client.unsent != NONE)
            if full:
                return True
            q = wide(row(broker.nodes, node, NODE).tag >> SIZE_BITS)
        else:
            if full:
                return True
            q = weighted(state, c, wide(mask)) if client.traits & WEIGHTED else bit_length(wide(mask)) - 1
            if q == 0 and client.traits & HOLD:
                node = detach_head(broker.clients, broker.queues, broker.nodes, c, q)
            else:
                node = unlink_head(broker.clients, broker.queues, broker.nodes, c, q)
        to_transmit_queue(state, c, q, t, node)


@inlined
def move(state: Any, c: int, t: int) -> bool:
    """`pump`, or the shorter one for a client whose only trait is that G-1 holds what it has not acknowledged."""
    if row(row(state, 0, STATE).clients, c, CLIENT).traits == HELD_ONLY:
        return pump_plain(state, c, t)
    return pump(state, c, t)


@inlined
def waits_for_acknowledgment(state: Any, c: int) -> bool:
    """Whether a client that is not blocked must learn of its next acknowledgment when it comes.

    A client that no trait makes eager needs it only while a guaranteed message waits for room in G-1.
    """
    broker = row(state, 0, STATE)
    client = row(broker.clients, c, CLIENT)
    if client.inflight == 0:
        return False
    if client.traits & EAGER:
        return True
    if client.traits & HOLD == 0:
        return False
    return bool(row(broker.endpoints, row(broker.more, c, MORE).endpoint, ENDPOINT).waiting_head != NONE)


@kernel
def drain(state: Any, c: int, until: int) -> None:
    """Learn of the acknowledgments up to `until` (included) that nothing has asked for yet."""
    client = row(row(state, 0, STATE).clients, c, CLIENT)
    while client.queued == 0 and client.next_ack <= until:
        acknowledge(state, c)


@kernel
def settle(state: Any, c: int, t: int, blocked: bool) -> None:
    """Note when a client becomes blocked or free, and let it stand in the heap while it waits."""
    broker = row(state, 0, STATE)
    client = row(broker.clients, c, CLIENT)
    if blocked:
        if client.blocked == 0:
            client.blocked = 1
            row(broker.more, c, MORE).blocked_since = t
    elif client.blocked != 0:
        client.blocked = 0
        more = row(broker.more, c, MORE)
        more.blocked_ns += t - more.blocked_since
    if client.queued == 0 and (blocked or waits_for_acknowledgment(state, c)):
        client.queued = 1
        push(broker.heap, broker.heap_count, client.next_ack, c)
        broker.heap_count += 1
        if broker.heap_count + ENTRIES_AN_EVENT >= broker.heap_limit:
            broker.short = 1


@kernel
def retire(state: Any, c: int, node: int, acknowledged: int) -> None:
    """The consumer acknowledged a guaranteed message: its endpoint forgets it, and G-1 no longer holds it."""
    broker = row(state, 0, STATE)
    endpoint = row(broker.endpoints, row(broker.more, c, MORE).endpoint, ENDPOINT)
    endpoint.held -= 1
    if row(broker.clients, c, CLIENT).traits & HOLD:
        size = wide(row(broker.nodes, node, NODE).tag & SIZE_MASK)
        queue = row(broker.queues, c * 5, QUEUE)
        queue.length -= 1
        queue.work -= work_units(size)
    else:
        endpoint.outstanding -= 1
    count_guaranteed(state, c, node)
    if broker.logging != 0:
        log_delivered(state, c, node, wide(row(broker.later, node, LATER).sent), acknowledged)
    release(state, node)


@kernel
def acknowledge(state: Any, c: int) -> None:
    """Take the oldest sent message off the TCP transmit queue: its acknowledgment is here.

    The congestion window grows by the bytes acknowledged (slow start) up to its maximum; a message that was lost
    halves it instead, never below one segment.
    """
    broker = row(state, 0, STATE)
    client = row(broker.clients, c, CLIENT)
    node = wide(client.head)
    oldest = row(broker.nodes, node, NODE)
    size = wide(oldest.tag & SIZE_MASK)
    client.inflight -= size
    client.tcp_bytes -= size
    buffer_bytes(state, c, -size)
    if client.traits & LOSSY and row(broker.lives, node, LIFE).traits & LIFE_LOST:
        client.window = max(client.window >> 1, row(broker.more, c, MORE).mss)
    elif client.window < client.window_max:
        client.window = min(client.window + size, wide(client.window_max))
    after = wide(oldest.next)
    client.head = after
    time = wide(oldest.time)
    client.next_ack = FOREVER if after == NONE or after == client.unsent else row(broker.nodes, after, NODE).time
    if oldest.tag >> SIZE_BITS == 0 and client.traits & TRACKED:
        delay = wide(row(broker.endpoints, row(broker.more, c, MORE).endpoint, ENDPOINT).acknowledge_delay)
        if delay == 0:
            retire(state, c, node, time)
        else:
            read_not_acknowledged(state, c, node, time + min(delay, FOREVER - time))
    else:
        release(state, node)


@inlined
def fits(state: Any, c: int, size: int, window: int) -> bool:
    """Whether G-1 admits a message beside those that it holds until they are acknowledged.

    All of them count against the flows' windows; below the minimum burst one enters whatever its size, else when its
    work units fit; an empty queue admits any.
    """
    queue = row(row(state, 0, STATE).queues, c * 5, QUEUE)
    if queue.length >= window:
        return False
    return bool(queue.length < max(1, queue.burst) or queue.work + work_units(size) <= queue.max_depth)


@kernel
def feed(state: Any, c: int, t: int, blocked: bool) -> bool:
    """Let the endpoint send into G-1, one message at a time, what its flows' windows and G-1 allow at this instant.

    Where a message pushes another out of G-1 instead of waiting, that does not free a place in the window before the
    next event: else one instant would turn the whole endpoint over. Returns whether the client is left blocked.
    """
    broker = row(state, 0, STATE)
    endpoint = row(broker.endpoints, row(broker.more, c, MORE).endpoint, ENDPOINT)
    holds = row(broker.clients, c, CLIENT).traits & HOLD != 0
    if holds and endpoint.waiting_head == NONE and endpoint.reading_head == NONE:
        return blocked
    budget = endpoint.window if holds else endpoint.window - endpoint.outstanding
    while budget > 0:
        node = next_at_endpoint(state, c, t)
        if node == NONE:
            break
        size = wide(row(broker.nodes, node, NODE).tag & SIZE_MASK)
        if holds and not fits(state, c, size, wide(endpoint.window)):
            break
        take_from_endpoint(state, c, node)
        if not holds:
            make_room(state, c, wide(0), t, size)
        append(broker.clients, broker.queues, broker.nodes, c, wide(0), node, size)
        row(broker.later, node, LATER).entered = t
        life = row(broker.lives, node, LIFE)
        life.attempts += 1
        if life.attempts > 1:
            endpoint.redelivered += 1
        buffer_bytes(state, c, size)
        budget -= 1
        blocked = move(state, c, t)
    want_next_due(state, c, t)
    return blocked


@inlined
def spool(state: Any, c: int, t: int, size: int, topic: int, eligible: bool) -> None:
    """A guaranteed message reaches its endpoint; a full one refuses it, a congested one if it is discard eligible."""
    broker = row(state, 0, STATE)
    endpoint = row(broker.endpoints, row(broker.more, c, MORE).endpoint, ENDPOINT)
    full = 0 <= endpoint.held_max <= endpoint.held
    congested = eligible and 0 <= endpoint.low_max <= endpoint.held
    if full or congested:
        row(broker.losses, c * 5, LOSS).spool_refused += 1
        log_loss(state, c, wide(0), t, size, topic, t, wide(SPOOL_REFUSED))
        return
    endpoint.held += 1
    node = allocate(state)
    row(broker.nodes, node, NODE).time = t
    row(broker.nodes, node, NODE).tag = size
    life = row(broker.lives, node, LIFE)
    row(broker.topics, node, TOPIC).topic = topic
    row(broker.later, node, LATER).slot = NONE
    life.attempts = 0
    life.traits = 0
    wait_at_endpoint(state, c, node)


@kernel
def serve(state: Any, c: int, t: int, feeds: bool) -> bool:
    """Everything a client can do at `t`, with `feeds` its endpoint too; whether it is left blocked."""
    blocked = move(state, c, t)
    if feeds:
        blocked = feed(state, c, t, blocked)
    return blocked


@kernel
def arrive(state: Any, c: int, q: int, t: int, size: int, topic: int, eligible: bool) -> None:
    """A message arrives for a client that is not a plain one."""
    broker = row(state, 0, STATE)
    client = row(broker.clients, c, CLIENT)
    while client.queued == 0 and client.next_ack <= t:
        acknowledge(state, c)
    flags = client.traits
    if flags == HELD_ONLY and q != 0:
        enter_queue(state, broker.clients, broker.queues, broker.nodes, c, q, t, size, topic)
        if client.queued == 0 or client.tcp_bytes < client.tcp_limit:
            settle(state, c, t, pump_plain(state, c, t))
        return
    row(broker.queues, c * 5 + q, QUEUE).arrived += 1
    if q == 0 and flags & TRACKED:
        spool(state, c, t, size, topic, eligible)
        if flags & ABSENT:
            return
    elif flags & ABSENT:
        row(broker.losses, c * 5 + q, LOSS).not_connected += 1
        log_loss(state, c, q, t, size, topic, t, wide(NOT_CONNECTED))
        return
    elif flags & ELIDING and 1 <= q <= 3:
        slot = slot_of(state, c, t, topic)
        if slot == NONE or not replace_queued(state, c, q, t, size, topic, slot):
            node = enqueue(state, c, q, t, size, topic)
            if slot != NONE and row(broker.elided, slot, ELIDED).node == NONE:
                row(broker.later, node, LATER).slot = slot
                row(broker.elided, slot, ELIDED).node = node
    else:
        enqueue(state, c, q, t, size, topic)
    settle(state, c, t, serve(state, c, t, flags & TRACKED != 0))


@kernel
def stir(state: Any, c: int, t: int) -> None:
    """A limit of G-1 changed at `t`: its endpoint may send more at once."""
    client = row(row(state, 0, STATE).clients, c, CLIENT)
    if client.traits & ABSENT == 0:
        drain(state, c, t)
        settle(state, c, t, serve(state, c, t, client.traits & TRACKED != 0))


@kernel
def wake(state: Any, c: int, t: int) -> None:
    """A client's timer: consumers' acknowledgments, redeliveries and ends of eliding delays that are due."""
    broker = row(state, 0, STATE)
    client = row(broker.clients, c, CLIENT)
    more = row(broker.more, c, MORE)
    more.timer = FOREVER
    if client.traits & ABSENT:
        return
    while client.queued == 0 and client.next_ack <= t:
        acknowledge(state, c)
    endpoint = row(broker.endpoints, more.endpoint, ENDPOINT)
    head = endpoint.returned_head
    stirred = head != NONE and row(broker.lives, head, LIFE).moved == t
    while endpoint.reading_head != NONE and row(broker.nodes, endpoint.reading_head, NODE).time <= t:
        node = wide(endpoint.reading_head)
        read = row(broker.nodes, node, NODE)
        endpoint.reading_head = read.next
        retire(state, c, node, wide(read.time))
        stirred = True
    settle(state, c, t, serve(state, c, t, stirred))
    want_next_due(state, c, t)


@kernel
def take_event(state: Any, due: int) -> None:
    """What is due first and not of a plain client: the acknowledgment at the top of the heap, else a timer.

    A timer that was overtaken by an earlier one is skipped, and so is the acknowledgment of a connection that is gone.
    """
    broker = row(state, 0, STATE)
    if broker.heap_count == 0 or row(broker.heap, 0, HEAP).time != due:
        c = wide(row(broker.timers, 0, HEAP).client)
        drop_top(broker.timers, broker.timer_count)
        broker.timer_count -= 1
        if row(broker.more, c, MORE).timer == due:
            wake(state, c, due)
        return
    c = wide(row(broker.heap, 0, HEAP).client)
    client = row(broker.clients, c, CLIENT)
    if client.queued == 0 or client.next_ack != due:
        drop_top(broker.heap, broker.heap_count)
        broker.heap_count -= 1
        return
    acknowledge(state, c)
    blocked = serve(state, c, due, client.traits & TRACKED != 0)
    if blocked or waits_for_acknowledgment(state, c):
        replace_top(broker.heap, broker.heap_count, client.next_ack, c)
    else:
        client.queued = 0
        drop_top(broker.heap, broker.heap_count)
        broker.heap_count -= 1
    settle(state, c, due, blocked)
