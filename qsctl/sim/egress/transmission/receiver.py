"""A client's end of its connection: a receive buffer, which readers of the application empty in order.

TCP acknowledges the bytes that arrive, and advertises the free bytes of the buffer as its window; the broker never
sends more than that, except that an empty buffer admits any message. A free reader begins the next message, which then
leaves the buffer, processes it for a service time, and begins the next. The broker learns of the begin half a round
trip later. So a client with one reader and a service time of 1 ms receives 1,000 messages a second at any window. Our
readings: each begin is reported (TCP would omit reports of less than two segments); in a pause no reader begins; a
guaranteed message leaves the buffer on arrival, since the client's library queues it and the flow's window limits that;
a new connection finds its readers idle.

These events are among a client's own: `next_ack` of its record is the time of the earliest of them, see
`clients.application.next_of_client`.
"""

from __future__ import annotations

from typing import Any

from qsctl.sim.arrivals.draw import SIZE_MIXED, draw_quantity
from qsctl.sim.kernel.heap import push
from qsctl.sim.kernel.jit import inlined_part, part, row, wide
from qsctl.sim.kernel.random import uniform
from qsctl.sim.kernel.records import (
    CLIENT,
    ENTRIES_AN_EVENT,
    FOREVER,
    LATER,
    MORE,
    NODE,
    NONE,
    PAUSE,
    READER,
    RECEIVER,
    SHARE,
    SIZE_MASK,
    STATE,
)


@part
def service_time(state: Any, c: int) -> int:
    """Draw a reader's service time for the client's next message, in nanoseconds."""
    broker = row(state, 0, STATE)
    receiver = row(broker.receivers, c, RECEIVER)
    n = wide(receiver.drawn)
    receiver.drawn += 1
    if receiver.size_kind != SIZE_MIXED:
        return draw_quantity(receiver, n)
    u = uniform(receiver.key_size, n)
    first = wide(receiver.size_table)
    low = wide(0)
    high = wide(receiver.size_entries - 1)
    while low < high:
        middle = (low + high) >> 1
        if row(broker.shares, first + middle, SHARE).value > u:
            high = middle
        else:
            low = middle + 1
    return int(row(broker.shares, first + receiver.size_entries + low, SHARE).value)


@part
def after_pauses(state: Any, c: int, arrived: int, time: int) -> int:
    """Return the first instant at or after `time` outside all pauses; `arrived` must not decrease from call to call."""
    broker = row(state, 0, STATE)
    more = row(broker.more, c, MORE)
    while more.pause < more.pause_end and row(broker.pauses, more.pause, PAUSE).end <= arrived:
        more.pause += 1
    pause = wide(more.pause)
    while pause < more.pause_end and row(broker.pauses, pause, PAUSE).end <= time:
        pause += 1
    if pause < more.pause_end and row(broker.pauses, pause, PAUSE).start <= time:
        return wide(row(broker.pauses, pause, PAUSE).end)
    return time


@part
def closed(state: Any, c: int, size: int) -> bool:
    """Return whether the receive buffer has no room for a message in addition to those in it and in flight."""
    receiver = row(row(state, 0, STATE).receivers, c, RECEIVER)
    return bool(receiver.occupied > 0 and receiver.occupied + size > receiver.buffer)


@part
def receive(state: Any, c: int, node: int, acknowledged: int, arrived: int, library: bool) -> None:
    """Append a message that arrived at `arrived` to the unread ones, and schedule its reader.

    The broker learns of the arrival at `acknowledged`. `library`: it is a guaranteed message, which the client's
    library has removed from the buffer.
    """
    broker = row(state, 0, STATE)
    receiver = row(broker.receivers, c, RECEIVER)
    chosen = wide(receiver.reader)
    for reader in range(receiver.reader + 1, receiver.reader + receiver.readers):
        if row(broker.readers, reader, READER).free < row(broker.readers, chosen, READER).free:
            chosen = wide(reader)
    free = wide(row(broker.readers, chosen, READER).free)
    begins = after_pauses(state, c, arrived, max(arrived, free))
    done = min(begins + service_time(state, c), FOREVER)
    row(broker.readers, chosen, READER).free = done
    unread = row(broker.nodes, node, NODE)
    if library:
        row(broker.later, node, LATER).reached = min(done + receiver.back, FOREVER)
        receiver.occupied -= unread.tag & SIZE_MASK
    unread.time = max(acknowledged, min(begins + receiver.back, FOREVER))
    unread.next = NONE
    if receiver.unread_head == NONE:
        receiver.unread_head = node
    else:
        row(broker.nodes, receiver.unread_tail, NODE).next = node
    receiver.unread_tail = node


@inlined_part
def next_report(state: Any, c: int) -> int:
    """Return when the broker learns that the oldest unread message was begun; FOREVER without one."""
    broker = row(state, 0, STATE)
    head = wide(row(broker.receivers, c, RECEIVER).unread_head)
    return wide(row(broker.nodes, head, NODE).time) if head != NONE else wide(FOREVER)


@part
def requeue(state: Any, c: int) -> None:
    """Enter a client that is in the heap again, at its next event, which is now earlier."""
    broker = row(state, 0, STATE)
    push(broker.heap, broker.heap_count, wide(row(broker.clients, c, CLIENT).next_ack), c)
    broker.heap_count += 1
    if broker.heap_count + ENTRIES_AN_EVENT >= broker.heap_limit:
        broker.short = 1


@part
def expect(state: Any, c: int, time: int) -> None:
    """Set the client's next event to `time` if that is earlier, also in the heap where the client is in it.

    The heap's entry for the later time is skipped when it is due, since it no longer matches the client's next event.
    """
    client = row(row(state, 0, STATE).clients, c, CLIENT)
    if time < client.next_ack:
        client.next_ack = time
        if client.queued != 0:
            requeue(state, c)
