"""The receiving end of a flow: readers, and the acknowledgment of guaranteed messages by library and application.

The vendor's public pages on flow control distinguish two limits. The *window* belongs to the transport: it counts
messages that are sent or in the queue of the client's library; the library acknowledges, and opens it, as the
application reads, when 60 % of the window has been read or a timer expires. The *limit of delivered unacknowledged
messages* counts until the application acknowledges. A flow delivers while both allow it. G-1 holds messages by the
window. Our readings: the flows of a client are alike and acknowledged together, so that their windows and limits add
up; the application's acknowledgment of a message, and its negative ones (failed, rejected), never precede the
library's. `acknowledge_ns` of the event log is the library's acknowledgment, at which G-1 releases the message.
"""

from __future__ import annotations

from typing import Any, Final

from qsctl.sim.egress.queues.endpoint import move_arrival
from qsctl.sim.egress.queues.priority_queue import count_guaranteed, work_units
from qsctl.sim.egress.transmission.receiver import next_report
from qsctl.sim.kernel.jit import inlined_part, part, row, wide
from qsctl.sim.kernel.random import uniform_bits
from qsctl.sim.kernel.records import (
    BACKLOG,
    CLIENT,
    DURABLE,
    ENDPOINT,
    FOREVER,
    HOLD,
    LATER,
    LIFE,
    MORE,
    NODE,
    NONE,
    QUEUE,
    READER,
    READS,
    RECEIVER,
    SHARED,
    SIZE_BITS,
    SIZE_MASK,
    SPOOLED,
    STATE,
    TRACKED,
)
from qsctl.sim.kernel.rows import log_delivered, release

ACCEPTS: Final = 0
FAILS: Final = 1
REJECTS: Final = 2


@inlined_part
def answer(state: Any, c: int) -> int:
    """Draw the application's answer to the message that it has processed: ACCEPTS, FAILS or REJECTS."""
    broker = row(state, 0, STATE)
    flow = row(broker.endpoints, row(broker.more, c, MORE).endpoint, ENDPOINT)
    if flow.refuses == 0:
        return ACCEPTS
    drawn = uniform_bits(flow.fail_key, flow.answered)
    flow.answered += 1
    if drawn < flow.fails:
        return FAILS
    return REJECTS if drawn < flow.refuses else ACCEPTS


@inlined_part
def give_back_later(state: Any, c: int, number: int, node: int, rejected: bool) -> None:
    """Append a message that the application did not accept to the list of those that return to the durable queue."""
    broker = row(state, 0, STATE)
    row(broker.spools, node, SPOOLED).rejected = 1 if rejected else 0
    failed = row(broker.nodes, node, NODE)
    failed.time = row(broker.lives, node, LIFE).born
    failed.next = NONE
    move_arrival(state, node, c, number)
    queue = row(broker.endpoints, number, ENDPOINT)
    if queue.returned_head == NONE:
        queue.returned_head = node
    else:
        row(broker.nodes, queue.returned_tail, NODE).next = node
    queue.returned_tail = node


@part
def retire(state: Any, c: int, node: int) -> None:
    """Remove a guaranteed message that library and application have acknowledged from its endpoint.

    A message of a durable queue returns to the queue instead where the application failed on it or rejected it.
    """
    broker = row(state, 0, STATE)
    endpoint = row(broker.endpoints, row(broker.more, c, MORE).endpoint, ENDPOINT)
    endpoint.unacknowledged -= 1
    broker.unacknowledged -= 1
    if row(broker.clients, c, CLIENT).traits & SHARED:
        queue = row(broker.durables, row(broker.more, c, MORE).durable, DURABLE)
        row(broker.backlogs, row(broker.spools, node, SPOOLED).line, BACKLOG).out -= 1
        answered = answer(state, c)
        if answered != ACCEPTS:
            give_back_later(state, c, wide(queue.number), node, answered == REJECTS)
            return
        endpoint = row(broker.endpoints, queue.number, ENDPOINT)
    endpoint.held -= 1
    endpoint.held_bytes -= row(broker.nodes, node, NODE).tag & SIZE_MASK
    later = row(broker.later, node, LATER)
    count_guaranteed(state, c, node, wide(later.reached))
    if broker.logging != 0:
        log_delivered(state, c, node, wide(later.sent), wide(later.reached))
    release(state, node)


@inlined_part
def refill(state: Any, c: int, node: int, t: int) -> None:
    """Record the library's acknowledgment of a message at `t`: it leaves G-1 and frees a place of the flow's window."""
    broker = row(state, 0, STATE)
    row(broker.later, node, LATER).reached = t
    if row(broker.clients, c, CLIENT).traits & HOLD:
        queue = row(broker.queues, c * 5, QUEUE)
        queue.length -= 1
        queue.work -= work_units(wide(row(broker.nodes, node, NODE).tag & SIZE_MASK))
    else:
        row(broker.endpoints, row(broker.more, c, MORE).endpoint, ENDPOINT).outstanding -= 1


@part
def library_acknowledges(state: Any, c: int, t: int) -> None:
    """Have the client's library acknowledge all messages read since its last acknowledgment, which opens the window."""
    broker = row(state, 0, STATE)
    endpoint = row(broker.endpoints, row(broker.more, c, MORE).endpoint, ENDPOINT)
    node = wide(endpoint.batch_head)
    while node != NONE:
        refill(state, c, node, t)
        node = wide(row(broker.nodes, node, NODE).next)
    endpoint.batch_head = NONE
    endpoint.batch = 0
    endpoint.library_due = FOREVER
    application_acknowledges(state, c, t)


@part
def application_acknowledges(state: Any, c: int, t: int) -> None:
    """Retire the messages that both the library and, up to `t`, the application have acknowledged."""
    broker = row(state, 0, STATE)
    endpoint = row(broker.endpoints, row(broker.more, c, MORE).endpoint, ENDPOINT)
    while endpoint.reading_head != NONE and endpoint.reading_head != endpoint.batch_head:
        node = wide(endpoint.reading_head)
        read = row(broker.nodes, node, NODE)
        if read.time > t:
            break
        endpoint.reading_head = read.next
        retire(state, c, node)


@part
def begin_guaranteed(state: Any, c: int, node: int, t: int) -> None:
    """Record at `t`, when the broker can learn of it, that a reader has begun a guaranteed message.

    The library acknowledges it together with those read before; the application acknowledges it after its service time
    and its delay. Acknowledgments of the application never overtake one another.
    """
    broker = row(state, 0, STATE)
    endpoint = row(broker.endpoints, row(broker.more, c, MORE).endpoint, ENDPOINT)
    due = t
    if row(broker.clients, c, CLIENT).traits & READS:
        due = wide(row(broker.later, node, LATER).reached)
    due = max(t, due + min(wide(endpoint.acknowledge_delay), FOREVER - due))
    if endpoint.reading_head == NONE and due == t and endpoint.threshold <= 1:
        refill(state, c, node, t)
        retire(state, c, node)
        return
    read = row(broker.nodes, node, NODE)
    read.next = NONE
    if endpoint.reading_head == NONE:
        endpoint.reading_head = node
    else:
        tail = row(broker.nodes, endpoint.reading_tail, NODE)
        due = max(due, wide(tail.time))
        tail.next = node
    read.time = due
    endpoint.reading_tail = node
    if endpoint.batch_head == NONE:
        endpoint.batch_head = node
        endpoint.library_due = t + min(wide(endpoint.timer), FOREVER - t)
    endpoint.batch += 1
    if endpoint.batch >= endpoint.threshold:
        library_acknowledges(state, c, t)


@inlined_part
def next_acknowledgment(state: Any, c: int) -> int:
    """Return the time at which TCP acknowledges the oldest sent message; FOREVER when there is none."""
    broker = row(state, 0, STATE)
    client = row(broker.clients, c, CLIENT)
    if client.head == NONE or client.head == client.unsent:
        return wide(FOREVER)
    return wide(row(broker.nodes, client.head, NODE).time)


@inlined_part
def next_of_application(state: Any, c: int) -> int:
    """Return when the application acknowledges the oldest message that the library acknowledged; FOREVER for none."""
    broker = row(state, 0, STATE)
    endpoint = row(broker.endpoints, row(broker.more, c, MORE).endpoint, ENDPOINT)
    head = wide(endpoint.reading_head)
    if head == NONE or head == endpoint.batch_head:
        return wide(FOREVER)
    return wide(row(broker.nodes, head, NODE).time)


@part
def next_of_client(state: Any, c: int, acknowledgment: int) -> int:
    """Return the time of a client's next event: of its connection, its readers, its library or its application.

    `acknowledgment` is the time of the connection's next event.
    """
    broker = row(state, 0, STATE)
    traits = row(broker.clients, c, CLIENT).traits
    due = acknowledgment
    if traits & READS:
        due = min(due, next_report(state, c))
    if traits & TRACKED:
        library = wide(row(broker.endpoints, row(broker.more, c, MORE).endpoint, ENDPOINT).library_due)
        due = min(due, library)
        due = min(due, next_of_application(state, c))
    return due


@part
def take_own(state: Any, c: int, t: int) -> None:
    """Process one event of a client at `t` other than TCP's: of its readers, else its library, else its application."""
    broker = row(state, 0, STATE)
    if row(broker.clients, c, CLIENT).traits & READS and next_report(state, c) == t:
        reader_begins(state, c)
    elif row(broker.endpoints, row(broker.more, c, MORE).endpoint, ENDPOINT).library_due == t:
        library_acknowledges(state, c, t)
    else:
        application_acknowledges(state, c, t)


@part
def forget_reading(state: Any, c: int) -> None:
    """Reset readers and receive buffer for a new connection; the caller has moved the unread messages before."""
    broker = row(state, 0, STATE)
    receiver = row(broker.receivers, c, RECEIVER)
    receiver.occupied = 0
    receiver.unread_head = NONE
    receiver.unread_tail = NONE
    endpoint = row(broker.endpoints, row(broker.more, c, MORE).endpoint, ENDPOINT)
    endpoint.reading_head = NONE
    endpoint.reading_tail = NONE
    endpoint.batch_head = NONE
    endpoint.batch = 0
    endpoint.library_due = FOREVER
    endpoint.outstanding = 0
    endpoint.unacknowledged = 0
    if row(broker.clients, c, CLIENT).traits & READS:
        for reader in range(receiver.reader, receiver.reader + receiver.readers):
            row(broker.readers, reader, READER).free = 0


@part
def reader_begins(state: Any, c: int) -> None:
    """Process the report that a reader has begun the oldest unread message: the window opens by its bytes."""
    broker = row(state, 0, STATE)
    client = row(broker.clients, c, CLIENT)
    receiver = row(broker.receivers, c, RECEIVER)
    node = wide(receiver.unread_head)
    oldest = row(broker.nodes, node, NODE)
    t = wide(oldest.time)
    receiver.unread_head = oldest.next
    if client.traits & TRACKED and oldest.tag >> SIZE_BITS == 0:
        begin_guaranteed(state, c, node, t)
    else:
        receiver.occupied -= oldest.tag & SIZE_MASK
        release(state, node)
