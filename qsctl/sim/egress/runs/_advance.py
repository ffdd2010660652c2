"""The loop of the egress models: arrivals in time order, blocked clients' acknowledgments and timers between them.

There is no heap of all events. A client that can send needs none of its acknowledgments before its own next message,
so they are applied then; only blocked clients wait in a heap, keyed by their next acknowledgment. The port is a FIFO,
hence Lindley's recursion and no event for the end of a transmission. At equal times: acknowledgments (by client), then
timers (by client), then what the caller does at `until` (configured changes), then arrivals in stream order.
"""

from __future__ import annotations

from typing import Any, Final

from qsctl.sim.egress.clients.connection import (
    HELD_ONLY,
    acknowledge,
    acknowledge_oldest,
    goes_through,
    mark_blocked,
    pass_through,
    pump,
)
from qsctl.sim.egress.clients.traits import arrive, next_member, take_event
from qsctl.sim.egress.queues.priority_queue import enqueue
from qsctl.sim.egress.queues.watch import importance
from qsctl.sim.egress.transmission.receiver import requeue
from qsctl.sim.kernel.jit import inlined_part, kernel, prefetch, row, wide
from qsctl.sim.kernel.records import (
    ARRIVAL,
    ARRIVAL_SHARED,
    CLIENT,
    FOREVER,
    GROW,
    HEAP,
    LEVEL_CROSSED,
    LOAD_CHANGED,
    LOG_FULL,
    NONE,
    QUEUE,
    REACHED,
    STATE,
)
from qsctl.sim.kernel.rows import delivered_row

AHEAD: Final = 8
"""Number of arrivals for which client and queue are prefetched: with many clients they are in no cache."""


@inlined_part
def next_due(state: Any) -> int:
    """Return the time of the first acknowledgment in the heap or of the first timer, whichever is earlier."""
    broker = row(state, 0, STATE)
    due = wide(FOREVER)
    if broker.heap_count > 0:
        due = wide(row(broker.heap, 0, HEAP).time)
    if broker.timer_count > 0:
        due = min(due, wide(row(broker.timers, 0, HEAP).time))
    return due


@inlined_part
def first_not_before(arrivals: Any, first: int, end: int, time: int) -> int:
    """Return the index of the first of the arrivals `first` … `end` at `time` or later."""
    while first < end:
        middle = (first + end) >> 1
        if row(arrivals, middle, ARRIVAL).time < time:
            first = middle + 1
        else:
            end = middle
    return first


@kernel
def advance(state: Any, rare: Any) -> int:
    """Simulate the arrivals before `until` and all other events up to `until_acknowledged` (included).

    Args:
        state: a STATE record: arrivals ascending in time, from `position` to `count`; `until`, exclusive: the caller
            has supplied every arrival before it; `until_acknowledged`: `until`, or one nanosecond less at the
            horizon; a log with room for `log_limit` rows and all nodes; see `kernel.records`. Changed in place.
        rare: None when every client is plain and the broker's buffers are not counted: a kernel of its own is compiled
            then, in a third of the time. Else anything.

    Returns:
        REACHED, LOG_FULL, GROW (an array is short: enlarge it and call again), LOAD_CHANGED (the egress buffers
        crossed a bound that the caller set), LEVEL_CROSSED (the importance of what is watched left its bounds).

    Sources: [SOL-QUEUES], [P7500]; queue disciplines in `queues`, connections and traits in `clients`.
    """
    broker = row(state, 0, STATE)
    arrivals, clients, queues, tallies = broker.arrivals, broker.clients, broker.queues, broker.tallies
    ports, nodes, log, heap = broker.ports, broker.nodes, broker.log, broker.heap
    begin = wide(broker.position)
    position = begin
    stop = first_not_before(arrivals, begin, wide(broker.count), wide(broker.until))
    last = wide(broker.until_acknowledged)
    logging = broker.logging != 0
    acknowledging = broker.acknowledging != 0
    if logging and broker.log_count >= broker.log_limit:
        return LOG_FULL
    due = next_due(state)
    instant = wide(0)
    result = REACHED
    while True:
        if position < stop and row(arrivals, position, ARRIVAL).time < due:
            arrival = row(arrivals, position, ARRIVAL)
            t = wide(arrival.time)
            c = wide(arrival.client)
            size = wide(arrival.bytes)
            q = wide(arrival.tag & 7)
            if rare is not None:
                instant = t
                if arrival.tag & ARRIVAL_SHARED:
                    # It is that member's from now on: after a stop for a longer array no other one is chosen.
                    c = next_member(state, c, wide(arrival.tag))
                    arrival.client = c
                    arrival.tag &= ~ARRIVAL_SHARED
            client = row(clients, c, CLIENT)
            coming = row(arrivals, min(position + AHEAD, stop - 1), ARRIVAL)
            prefetch(clients, wide(coming.client), CLIENT)
            prefetch(queues, wide(coming.client) * 5 + (coming.tag & 7), QUEUE)
            held = bool(0)
            direct = bool(1)
            if rare is not None:
                # A direct message to a client whose only trait is that G-1 holds what it has not acknowledged passes
                # as one to a plain client does; only the acknowledgments before it may be of guaranteed messages.
                held = client.traits != 0
                direct = not held or (client.traits == HELD_ONLY and q != 0)
                if held and (broker.short != 0 or broker.free == NONE):
                    result = GROW
                    break
            if direct:
                if client.queued == 0:
                    while client.next_ack <= t:
                        if rare is not None and held:
                            acknowledge(state, c)
                            continue
                        acknowledge_oldest(state, clients, nodes, c, None, None)
                node = wide(broker.free)
                if node == NONE:
                    result = GROW
                    break
                if goes_through(clients, c, size):
                    if acknowledging and broker.short != 0:
                        result = GROW
                        break
                    depart, time, indication = pass_through(
                        state, clients, queues, tallies, ports, nodes, c, q, t, size, node
                    )
                    position += 1
                    if rare is not None and held and client.queued != 0 and client.next_ack == time:
                        requeue(state, c)
                        due = min(due, time)
                    if logging:
                        cursor = wide(broker.log_count)
                        broker.log_count = cursor + 1
                        delivered_row(
                            log, cursor, t, wide(0), wide(0), depart - t, time - t, c, wide(arrival.topic), size, q,
                            indication, wide(1),
                        )  # fmt: skip
                        if cursor + 1 >= broker.log_limit:
                            result = LOG_FULL
                            break
                    continue
                if broker.short != 0:
                    result = GROW
                    break
                position += 1
                row(queues, c * 5 + q, QUEUE).arrived += 1
                enqueue(state, clients, queues, nodes, c, q, t, size, wide(arrival.topic), None)
                if client.blocked == 0 or client.tcp_bytes < client.tcp_limit:
                    mark_blocked(state, clients, heap, c, t, pump(state, c, t, None, None), bool(0), rare)
                due = next_due(state)
            if rare is not None and not direct:
                position += 1
                broker.now = t
                arrive(state, c, q, t, size, wide(arrival.topic), wide(arrival.tag))
                due = next_due(state)
        elif due <= last:
            if broker.short != 0:
                result = GROW
                break
            c = wide(row(heap, 0, HEAP).client)
            client = row(clients, c, CLIENT)
            plain = bool(1)
            if rare is not None:
                instant = due
                plain = client.traits == 0 and broker.heap_count > 0 and row(heap, 0, HEAP).time == due
            if plain:
                acknowledge_oldest(state, clients, nodes, c, None, None)
                mark_blocked(state, clients, heap, c, due, pump(state, c, due, None, None), bool(1), None)
            if rare is not None and not plain:
                broker.now = due
                take_event(state, due)
            due = next_due(state)
        else:
            break
        if rare is not None:
            if broker.buffers != 0 and not broker.load_fall < broker.egress_bytes < broker.load_rise:
                result = LOAD_CHANGED  # before the full log, which the caller sees by itself: the load cannot wait
                break
            if broker.watched != 0 and not broker.watch_low <= importance(state) < broker.watch_high:
                broker.now = instant
                result = LEVEL_CROSSED
                break
        if logging and broker.log_count >= broker.log_limit:
            result = LOG_FULL
            break
    broker.arrived += position - begin
    broker.position = position
    return result
