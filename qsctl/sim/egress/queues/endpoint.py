"""Guaranteed messages behind G-1: those that wait for the flows of a client, and those that return from G-1.

[SOL-QUEUES]: a minimum burst below the flow window means that guaranteed messages "will be transmitted at a very
reduced rate": they are not lost. The vendor's public tuning guide gives the reason: G-1 holds a message until the
client's library has acknowledged it (`clients.application`). So an endpoint hands over a message when the windows of
its flows and G-1 have room for it in addition to all held messages; otherwise it waits at the endpoint: it is neither
discarded nor sent twice. By option (`GuaranteedOverflow.REDELIVER`) G-1 releases a message that enters the TCP transmit
queue, and a message discarded from G-1 returns to its endpoint and is redelivered after a delay.
"""

from __future__ import annotations

from typing import Any

from qsctl.sim.kernel.heap import push
from qsctl.sim.kernel.jit import inlined_part, part, row, wide
from qsctl.sim.kernel.records import ENDPOINT, LIFE, MORE, NODE, NONE, QUEUE, STATE, TIMERS_AN_EVENT


@inlined_part
def is_full(endpoint: Any, size: int) -> bool:
    """Return whether an endpoint has no room for a message of `size` bytes, by its limits of messages or bytes."""
    if 0 <= endpoint.held_max <= endpoint.held:
        return True
    return bool(0 <= endpoint.bytes_max < endpoint.held_bytes + size)


@part
def want_timer(state: Any, c: int, time: int) -> None:
    """Set a client's timer to `time` unless it is earlier; the heap's entry of the replaced time is skipped."""
    broker = row(state, 0, STATE)
    more = row(broker.more, c, MORE)
    if time < more.timer:
        more.timer = time
        push(broker.timers, broker.timer_count, time, c)
        broker.timer_count += 1
        if broker.timer_count + TIMERS_AN_EVENT >= broker.timer_limit:
            broker.short = 1


@part
def return_to_endpoint(state: Any, c: int, t: int, node: int) -> None:
    """Return a guaranteed message that left G-1 unsent; it is sent again after the redelivery delay, oldest first."""
    broker = row(state, 0, STATE)
    more = row(broker.more, c, MORE)
    endpoint = row(broker.endpoints, more.endpoint, ENDPOINT)
    due = t + more.redelivery_delay
    row(broker.lives, node, LIFE).moved = due
    row(broker.nodes, node, NODE).next = NONE
    if endpoint.returned_head == NONE:
        endpoint.returned_head = node
    else:
        row(broker.nodes, endpoint.returned_tail, NODE).next = node
    endpoint.returned_tail = node
    endpoint.outstanding -= endpoint.tracked
    endpoint.unacknowledged -= endpoint.tracked
    broker.unacknowledged -= endpoint.tracked
    want_timer(state, c, due)


@inlined_part
def wait_at_endpoint(state: Any, c: int, node: int) -> None:
    """Append a message to those that wait at the endpoint."""
    broker = row(state, 0, STATE)
    endpoint = row(broker.endpoints, row(broker.more, c, MORE).endpoint, ENDPOINT)
    row(broker.nodes, node, NODE).next = NONE
    if endpoint.waiting_head == NONE:
        endpoint.waiting_head = node
    else:
        row(broker.nodes, endpoint.waiting_tail, NODE).next = node
    endpoint.waiting_tail = node


@inlined_part
def move_arrival(state: Any, node: int, source: int, destination: int) -> None:
    """Move the counts of a waiting message, its arrival and its redeliveries, from client `source` to `destination`.

    An arrival during the warm-up is not counted, and so not moved.
    """
    broker = row(state, 0, STATE)
    again = max(0, row(broker.lives, node, LIFE).attempts - 1)
    row(broker.endpoints, source, ENDPOINT).redelivered -= again
    row(broker.endpoints, destination, ENDPOINT).redelivered += again
    if row(broker.nodes, node, NODE).time >= broker.counted_from:
        row(broker.queues, source * 5, QUEUE).arrived -= 1
        row(broker.queues, destination * 5, QUEUE).arrived += 1


@inlined_part
def next_at_endpoint(state: Any, c: int, t: int) -> int:
    """Return the message that the endpoint would send next, or NONE.

    A returned message whose redelivery is due precedes the oldest waiting one.
    """
    broker = row(state, 0, STATE)
    endpoint = row(broker.endpoints, row(broker.more, c, MORE).endpoint, ENDPOINT)
    returned = endpoint.returned_head
    if returned != NONE and row(broker.lives, returned, LIFE).moved <= t:
        return wide(returned)
    return wide(endpoint.waiting_head)


@inlined_part
def take_from_endpoint(state: Any, c: int, node: int) -> None:
    """Remove the message that `next_at_endpoint` returned, and count it as outstanding."""
    broker = row(state, 0, STATE)
    endpoint = row(broker.endpoints, row(broker.more, c, MORE).endpoint, ENDPOINT)
    after = row(broker.nodes, node, NODE).next
    if node == endpoint.returned_head:
        endpoint.returned_head = after
        if after == NONE:
            endpoint.returned_tail = NONE
    else:
        endpoint.waiting_head = after
        if after == NONE:
            endpoint.waiting_tail = NONE
    endpoint.outstanding += endpoint.tracked
    endpoint.unacknowledged += endpoint.tracked
    broker.unacknowledged += endpoint.tracked


@part
def want_next_due(state: Any, c: int, t: int) -> None:
    """Set the client's timer to the redelivery of the first returned message, if that is after `t`."""
    broker = row(state, 0, STATE)
    endpoint = row(broker.endpoints, row(broker.more, c, MORE).endpoint, ENDPOINT)
    if endpoint.returned_head != NONE and row(broker.lives, endpoint.returned_head, LIFE).moved > t:
        want_timer(state, c, wide(row(broker.lives, endpoint.returned_head, LIFE).moved))
