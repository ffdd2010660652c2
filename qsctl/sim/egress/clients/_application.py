"""The end of a flow: what a client's readers begin, and how library and application acknowledge guaranteed messages.

The vendor's public pages on flow control keep two things apart. The *window* is transport: messages on their way or
in the queue of the client's library, which refills it as the application reads, when what was read is 60 % of the
window or a timer is over. The *limit of delivered unacknowledged messages* counts until the application acknowledges.
A flow delivers while both allow it. G-1 holds by the window. Our readings: the flows of a client are alike and
acknowledged together, so that their windows and limits add up; the application's acknowledgment of a message does not
come before the library's, and neither do its negative ones: that it failed, or that it rejects the message.
`acknowledge_ns` of the event log is the library's, for it is when G-1 lets go of a message.
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
    """Draw what the application answers to the message that it has done: ACCEPTS, FAILS or REJECTS."""
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
    """List a message that the application did not accept with those that go back to the durable queue."""
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
    """Remove a guaranteed message from its endpoint: the application has acknowledged it, and the library before.

    The application may have failed on one of a durable queue instead, or rejected it, so that it goes back.
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
    """Open the window by a message that the client's library acknowledged at `t`: G-1 lets go of it."""
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
    """Have the client's library acknowledge all that was read: the window opens by it."""
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
    """Retire what the application has acknowledged up to `t`, of all that its library has acknowledged."""
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
    """Note that a reader began a guaranteed message, as the broker may learn of it at `t`.

    The library acknowledges it with those read before, the application when it has done it and waited for its delay.
    Acknowledgments of the application never overtake one another.
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
    """Return when TCP acknowledges the oldest message sent; FOREVER when there is none."""
    broker = row(state, 0, STATE)
    client = row(broker.clients, c, CLIENT)
    if client.head == NONE or client.head == client.unsent:
        return wide(FOREVER)
    return wide(row(broker.nodes, client.head, NODE).time)


@inlined_part
def next_of_application(state: Any, c: int) -> int:
    """Return when the application acknowledges the oldest message that the library has acknowledged; else FOREVER."""
    broker = row(state, 0, STATE)
    endpoint = row(broker.endpoints, row(broker.more, c, MORE).endpoint, ENDPOINT)
    head = wide(endpoint.reading_head)
    if head == NONE or head == endpoint.batch_head:
        return wide(FOREVER)
    return wide(row(broker.nodes, head, NODE).time)


@part
def next_of_client(state: Any, c: int, acknowledgment: int) -> int:
    """Return when the next event of a client is due: of its connection, its readers, its library, its application.

    That of its connection is given.
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
    """Process what is due at `t` of a client's end, and not of TCP: first its readers, its library, its application."""
    broker = row(state, 0, STATE)
    if row(broker.clients, c, CLIENT).traits & READS and next_report(state, c) == t:
        reader_begins(state, c)
    elif row(broker.endpoints, row(broker.more, c, MORE).endpoint, ENDPOINT).library_due == t:
        library_acknowledges(state, c, t)
    else:
        application_acknowledges(state, c, t)


@part
def forget_reading(state: Any, c: int) -> None:
    """Begin a new connection with idle readers and an empty buffer; the caller has dealt with what was unread."""
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
    """Learn that a reader has begun the oldest unread message: the window opens by its bytes."""
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
