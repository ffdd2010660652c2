"""A durable queue whose messages several clients share, each by a flow of its own.

[SOL-ENDPOINTS], access types: a non-exclusive queue serves its flows in turn, each as far as its window, its limit
of unacknowledged deliveries and its client's G-1 have room, so that a slow client with a large window holds as many
messages as that; an exclusive one sends to the flow that bound first, and to the next one once that flow's client has
disconnected. Our readings: the turn goes on from the flow that was served last; a client that comes back binds behind
those that are there; a paused client keeps its flow, and an active flow that is full does not hand over to a standby;
what a client that disconnects has not acknowledged goes back to the front of the queue, and to other flows at once.

A message counts in one row of the counters, its arrival and how often it was sent again too: in that of the client that
has it or had it last, else in that of the queue.
"""

from __future__ import annotations

from typing import Any

from qsctl.sim.egress.connection import move, note_blocked
from qsctl.sim.egress.queue import append, buffer_bytes, fits
from qsctl.sim.kernel.jit import inlined, kernel, row, wide
from qsctl.sim.kernel.records import (
    ABSENT,
    BACKLOG,
    CLIENT,
    DURABLE,
    ENDPOINT,
    EXCLUSIVE,
    FLOW,
    LATER,
    LIFE,
    MORE,
    NODE,
    NONE,
    QUEUE,
    SIZE_MASK,
    STATE,
)


@kernel
def wait_at_queue(state: Any, d: int, node: int) -> None:
    """Keep a message at the queue, behind those that wait already."""
    broker = row(state, 0, STATE)
    backlog = row(broker.backlogs, row(broker.durables, d, DURABLE).backlog, BACKLOG)
    row(broker.nodes, node, NODE).next = NONE
    if backlog.head == NONE:
        backlog.head = node
    else:
        row(broker.nodes, backlog.tail, NODE).next = node
    backlog.tail = node


@inlined
def move_arrival(state: Any, node: int, source: int, destination: int) -> None:
    """Count a waiting message, and how often it was sent again, for another number among the clients.

    Its arrival only where that is counted at all, not that of one of the warm-up.
    """
    broker = row(state, 0, STATE)
    again = max(0, row(broker.lives, node, LIFE).attempts - 1)
    row(broker.endpoints, source, ENDPOINT).redelivered -= again
    row(broker.endpoints, destination, ENDPOINT).redelivered += again
    if row(broker.nodes, node, NODE).time >= broker.counted_from:
        row(broker.queues, source * 5, QUEUE).arrived -= 1
        row(broker.queues, destination * 5, QUEUE).arrived += 1


@inlined
def has_room(state: Any, c: int, size: int) -> bool:
    """Return whether a client is there, and its flow and its G-1 have room for a message."""
    broker = row(state, 0, STATE)
    if row(broker.clients, c, CLIENT).traits & ABSENT:
        return False
    flow = row(broker.endpoints, row(broker.more, c, MORE).endpoint, ENDPOINT)
    return bool(flow.unacknowledged < flow.limit and fits(state, c, size, wide(flow.window)))


@kernel
def active_flow(state: Any, d: int) -> int:
    """Return the client of the flow that bound first of those that are there; NONE when no client is."""
    broker = row(state, 0, STATE)
    durable = row(broker.durables, d, DURABLE)
    active = wide(NONE)
    first = wide(0)
    for place in range(durable.flow, durable.flow + durable.flows):
        flow = row(broker.flows, place, FLOW)
        present = row(broker.clients, flow.client, CLIENT).traits & ABSENT == 0
        if present and (active == NONE or flow.bound < first):
            active = wide(flow.client)
            first = wide(flow.bound)
    return active


@kernel
def next_flow(state: Any, d: int, size: int) -> int:
    """Return the client that the queue's next message goes to; NONE while no flow has room."""
    broker = row(state, 0, STATE)
    durable = row(broker.durables, d, DURABLE)
    if durable.access == EXCLUSIVE:
        active = active_flow(state, d)
        return active if active != NONE and has_room(state, active, size) else wide(NONE)
    for step in range(durable.flows):
        turn = wide(durable.turn + step)
        if turn >= durable.flows:
            turn -= durable.flows
        c = wide(row(broker.flows, durable.flow + turn, FLOW).client)
        if has_room(state, c, size):
            durable.turn = turn + 1 if turn + 1 < durable.flows else 0
            return c
    return wide(NONE)


@kernel
def hand_over(state: Any, number: int, c: int, node: int, t: int) -> None:
    """Put a message, which the caller took off the queue, into a client's G-1, and send what may go."""
    broker = row(state, 0, STATE)
    flow = row(broker.endpoints, row(broker.more, c, MORE).endpoint, ENDPOINT)
    size = wide(row(broker.nodes, node, NODE).tag & SIZE_MASK)
    flow.unacknowledged += 1
    move_arrival(state, node, number, c)
    append(broker.clients, broker.queues, broker.nodes, c, wide(0), node, size)
    row(broker.later, node, LATER).entered = t
    life = row(broker.lives, node, LIFE)
    life.attempts += 1
    if life.attempts > 1:
        flow.redelivered += 1
    buffer_bytes(state, c, size)
    note_blocked(state, c, t, move(state, c, t))


@kernel
def dispense(state: Any, d: int, t: int) -> None:
    """Send what waits at the queue to the flows that have room for it."""
    broker = row(state, 0, STATE)
    durable = row(broker.durables, d, DURABLE)
    backlog = row(broker.backlogs, durable.backlog, BACKLOG)
    while backlog.head != NONE:
        node = wide(backlog.head)
        waiting = row(broker.nodes, node, NODE)
        c = next_flow(state, d, wide(waiting.tag & SIZE_MASK))
        if c == NONE:
            break
        backlog.head = waiting.next
        hand_over(state, wide(durable.number), c, node, t)


@kernel
def put_back(state: Any, c: int, first: int, last: int) -> None:
    """Return a list of messages, which a client did not acknowledge, to the front of its queue."""
    broker = row(state, 0, STATE)
    durable = row(broker.durables, row(broker.more, c, MORE).durable, DURABLE)
    backlog = row(broker.backlogs, durable.backlog, BACKLOG)
    row(broker.nodes, last, NODE).next = backlog.head
    if backlog.head == NONE:
        backlog.tail = last
    backlog.head = first
    node = first
    while True:
        move_arrival(state, node, c, wide(durable.number))
        if node == last:
            break
        node = wide(row(broker.nodes, node, NODE).next)


@kernel
def bind(state: Any, c: int) -> None:
    """Bind the flow of a client that is back, behind all that are bound."""
    broker = row(state, 0, STATE)
    durable = row(broker.durables, row(broker.more, c, MORE).durable, DURABLE)
    for place in range(durable.flow, durable.flow + durable.flows):
        flow = row(broker.flows, place, FLOW)
        if flow.client == c:
            flow.bound = durable.binds
            durable.binds += 1
