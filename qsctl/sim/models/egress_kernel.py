"""The loop of the egress models: arrivals in time order, blocked clients' acknowledgments and timers between them.

There is no heap of all events. A client that can send needs none of its acknowledgments before its own next message,
so they are taken then; only blocked clients wait in a heap, keyed by their next acknowledgment. The port is a FIFO,
hence Lindley's recursion and no event for the end of a transmission. At equal times: acknowledgments (by client), then
timers (by client), then what the caller does at `until` (configured changes), then arrivals in stream order.
"""

from __future__ import annotations

from typing import Any

from qsctl.sim.kernel.heap import drop_top, replace_top
from qsctl.sim.kernel.jit import inlined, kernel
from qsctl.sim.kernel.records import (
    ARRIVAL_ELIGIBLE,
    BLOCKS_USED,
    BUFFERS,
    EAGER,
    EGRESS_BYTES,
    FOREVER,
    FREE,
    GROW,
    HEAP_COUNT,
    INDEX,
    LOAD_CHANGED,
    LOAD_FALL,
    LOAD_RISE,
    LOG_COUNT,
    LOG_FULL,
    LOG_LIMIT,
    LOGGING,
    MESSAGES,
    NONE,
    NOW,
    POSITION,
    REACHED,
    ROWS_AN_EVENT,
    SIZE_BITS,
    SIZE_MASK,
    TIMER_COUNT,
    TRACKED,
)
from qsctl.sim.kernel.rows import delivered_row, wide
from qsctl.sim.models.egress_serve import acknowledge, arrive, feed, pump, settle, wake


@inlined
def take_acknowledgment(
    clients: Any, queues: Any, ports: Any, nodes: Any, lives: Any, log: Any, control: Any, rare: Any
) -> None:
    """Serve the client at the top of the heap, whose next acknowledgment is here."""
    heap = rare.heap
    c = heap[0].client
    t = heap[0].time
    client = clients[c]
    if client.queued == 0 or client.next_ack != t:
        drop_top(heap, control[HEAP_COUNT])
        control[HEAP_COUNT] -= 1
        return
    acknowledge(c, clients, nodes, lives, log, control, rare)
    blocked = pump(c, t, clients, queues, ports, nodes, lives, log, control, rare)
    if client.traits & TRACKED:
        blocked = feed(c, t, blocked, clients, queues, ports, nodes, lives, log, control, rare)
    if blocked or (client.traits & EAGER and client.inflight > 0):
        replace_top(heap, control[HEAP_COUNT], client.next_ack, c)
    else:
        client.queued = 0
        drop_top(heap, control[HEAP_COUNT])
        control[HEAP_COUNT] -= 1
    settle(c, t, blocked, clients, control, rare)


@kernel
def take_timer(
    clients: Any, queues: Any, ports: Any, nodes: Any, lives: Any, log: Any, control: Any, rare: Any
) -> None:
    """Wake the client whose timer is due; an entry that was overtaken by an earlier one is skipped."""
    timers = rare.timers
    c = timers[0].client
    t = timers[0].time
    drop_top(timers, control[TIMER_COUNT])
    control[TIMER_COUNT] -= 1
    if rare.more[c].timer == t:
        wake(c, t, clients, queues, ports, nodes, lives, log, control, rare)


@inlined
def next_due_anywhere(control: Any, rare: Any) -> int:
    """When the first blocked client's acknowledgment or the first timer comes."""
    due = wide(FOREVER)
    if control[HEAP_COUNT] > 0:
        due = wide(rare.heap[0].time)
    if control[TIMER_COUNT] > 0:
        due = min(due, wide(rare.timers[0].time))
    return due


@inlined
def short_of_room(control: Any, rare: Any) -> bool:
    """Whether an array may be too small for the next event."""
    return bool(
        control[FREE] == NONE
        or control[HEAP_COUNT] + 2 >= len(rare.heap)
        or control[TIMER_COUNT] + 8 >= len(rare.timers)
        or control[BLOCKS_USED] + ROWS_AN_EVENT >= len(rare.blocks)
    )


@kernel
def advance(
    arrivals: Any,
    count: int,
    until: int,
    until_acknowledged: int,
    clients: Any,
    queues: Any,
    ports: Any,
    nodes: Any,
    lives: Any,
    log: Any,
    control: Any,
    rare: Any,
) -> int:
    """Simulate the arrivals before `until` and what else happens up to `until_acknowledged` (included).

    Arrays and numbers:
        arrivals: ARRIVAL rows ascending in time, from the control array's position to `count`.
        until: exclusive; the caller has supplied every arrival before it.
        until_acknowledged: `until`, or one nanosecond less at the horizon.
        clients: CLIENT[n]; queues: QUEUE[5 n]; ports: PORT; nodes: NODE and lives: LIFE of the same length;
            log: LOG_ROW with room for LOG_LIMIT rows and all nodes; control: int64, see `kernel.records`.
            All are changed in place.

    Returns:
        REACHED, LOG_FULL, GROW (an array is short: enlarge it and call again), LOAD_CHANGED (the egress buffers
        crossed a bound that the caller set).

    Source: seeds 000, 003 and 004; queue disciplines in `egress_queue`, service in `egress_serve`.
    """
    position = control[POSITION]
    if position < 0:
        return REACHED
    logging = control[LOGGING] != 0
    due = next_due_anywhere(control, rare)
    result = REACHED
    while True:
        if position < count and arrivals[position].time < until:
            t = arrivals[position].time
            bound = t
        else:
            t = FOREVER
            bound = until_acknowledged
        if logging and control[LOG_COUNT] >= control[LOG_LIMIT]:
            result = LOG_FULL
            break
        if due > bound:
            if t == FOREVER:
                break
            # A mask tells the compiler that an index is not negative: it would else count from the end.
            c = wide(arrivals[position].client) & INDEX
            size = wide(arrivals[position].bytes)
            client = clients[c]
            if client.queued == 0:
                while client.next_ack <= t:
                    node = client.head & INDEX
                    acknowledged = nodes[node].tag & SIZE_MASK
                    client.inflight -= acknowledged
                    client.tcp_bytes -= acknowledged
                    if client.window < client.window_max:
                        client.window = min(client.window + acknowledged, client.window_max)
                    after = nodes[node].next
                    nodes[node].next = control[FREE]
                    control[FREE] = node
                    client.head = after
                    client.next_ack = FOREVER if after == NONE else nodes[after & INDEX].time
            if control[FREE] == NONE:
                result = GROW
                break
            q = wide(arrivals[position].tag & 7)
            inflight = client.inflight
            if (
                client.traits == 0
                and client.mask == 0
                and client.unsent == NONE
                and client.tcp_bytes < client.tcp_limit
                and (inflight == 0 or inflight + size <= client.window)
            ):
                # Nothing queued, window open: straight through to the port.
                node = control[FREE] & INDEX
                control[FREE] = nodes[node].next
                queue = queues[c * 5 + q]
                queue.arrived += 1
                queue.delivered += 1
                queue.delivered_bytes += size
                queue.high_water = max(queue.high_water, 1, (size + 2047) >> 11)
                indication = queue.pending
                if indication != 0:
                    queue.pending = 0
                    queue.indications += 1
                port = ports[client.port & INDEX]
                depart = max(t, port.free)
                if port.den == 1:
                    depart += size * port.num
                else:
                    depart += (size * port.num + port.den - 1) // port.den
                port.free = depart
                time = depart + client.delay
                nodes[node].time = time
                nodes[node].tag = size | (q << SIZE_BITS)
                nodes[node].next = NONE
                client.inflight = inflight + size
                client.tcp_bytes += size
                if client.head == NONE:
                    client.head = node
                    client.next_ack = time
                else:
                    nodes[client.tail & INDEX].next = node
                client.tail = node
                if logging:
                    delivered_row(
                        log, control, t, t, depart, time, c, wide(arrivals[position].topic), size, q, wide(indication),
                        wide(1),
                    )  # fmt: skip
                position += 1
                continue
            if short_of_room(control, rare):
                result = GROW
                break
            eligible = arrivals[position].tag & ARRIVAL_ELIGIBLE != 0
            topic = wide(arrivals[position].topic)
            control[NOW] = t
            position += 1
            arrive(c, q, t, size, topic, eligible, clients, queues, ports, nodes, lives, log, control, rare)
        else:
            if short_of_room(control, rare):
                result = GROW
                break
            control[NOW] = due
            if control[HEAP_COUNT] > 0 and rare.heap[0].time == due:
                take_acknowledgment(clients, queues, ports, nodes, lives, log, control, rare)
            else:
                take_timer(clients, queues, ports, nodes, lives, log, control, rare)
        due = next_due_anywhere(control, rare)
        if control[BUFFERS] != 0 and not control[LOAD_FALL] < control[EGRESS_BYTES] < control[LOAD_RISE]:
            result = LOAD_CHANGED
            break
    control[MESSAGES] += position - control[POSITION]
    control[POSITION] = position
    return result
