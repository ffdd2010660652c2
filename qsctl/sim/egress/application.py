"""The application of a client: what its readers begin, and when it acknowledges guaranteed messages."""

from __future__ import annotations

from typing import Any

from qsctl.sim.egress.endpoint import read_not_acknowledged
from qsctl.sim.egress.queue import count_guaranteed, work_units
from qsctl.sim.egress.receiver import next_report
from qsctl.sim.kernel.jit import inlined, kernel, row, wide
from qsctl.sim.kernel.records import (
    CLIENT,
    ENDPOINT,
    FOREVER,
    HOLD,
    LATER,
    MORE,
    NODE,
    NONE,
    QUEUE,
    READS,
    RECEIVER,
    SIZE_BITS,
    SIZE_MASK,
    STATE,
    TRACKED,
)
from qsctl.sim.kernel.rows import log_delivered, release


@kernel
def retire(state: Any, c: int, node: int, acknowledged: int) -> None:
    """Remove a guaranteed message that the consumer acknowledged, from its endpoint and from G-1."""
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
def application_acknowledges(state: Any, c: int, node: int, t: int) -> None:
    """Have the application acknowledge a guaranteed message that a reader began at `t`, when it has done it."""
    broker = row(state, 0, STATE)
    endpoint = row(broker.endpoints, row(broker.more, c, MORE).endpoint, ENDPOINT)
    due = t
    if row(broker.clients, c, CLIENT).traits & READS:
        due = wide(row(broker.later, node, LATER).done)
    due = max(t, due + min(wide(endpoint.acknowledge_delay), FOREVER - due))
    if endpoint.reading_head != NONE:
        due = max(due, wide(row(broker.nodes, endpoint.reading_tail, NODE).time))
    if due == t:
        retire(state, c, node, t)
    else:
        read_not_acknowledged(state, c, node, due)


@inlined
def next_acknowledgment(state: Any, c: int) -> int:
    """Return when TCP acknowledges the oldest message sent; FOREVER when there is none."""
    broker = row(state, 0, STATE)
    client = row(broker.clients, c, CLIENT)
    if client.head == NONE or client.head == client.unsent:
        return wide(FOREVER)
    return wide(row(broker.nodes, client.head, NODE).time)


@kernel
def reader_begins(state: Any, c: int) -> None:
    """Learn that a reader has begun the oldest unread message: the window opens by its bytes."""
    broker = row(state, 0, STATE)
    client = row(broker.clients, c, CLIENT)
    receiver = row(broker.receivers, c, RECEIVER)
    node = wide(receiver.unread_head)
    oldest = row(broker.nodes, node, NODE)
    t = wide(oldest.time)
    receiver.unread_head = oldest.next
    client.next_ack = min(next_acknowledgment(state, c), next_report(state, c))
    if client.traits & TRACKED and oldest.tag >> SIZE_BITS == 0:
        application_acknowledges(state, c, node, t)
    else:
        receiver.occupied -= oldest.tag & SIZE_MASK
        release(state, node)
