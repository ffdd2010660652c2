"""Deliveries that end: acknowledged, rejected, timed out, given back; and messages that are delivered again."""

from __future__ import annotations

from typing import Any

from qsctl.sim.broker_queue._delivering import attempt_number, begin, buffer, poll, touch
from qsctl.sim.broker_queue._fate import leave_queue, make_ready, pull
from qsctl.sim.broker_queue._lists import (
    forget,
    free_if_done,
    free_message,
    push,
    refresh,
    unwatch_timeout,
    watch_timeout,
)
from qsctl.sim.broker_queue._records import (
    ACKNOWLEDGE,
    BACK,
    BACK_OFF_ENDS,
    BEAT,
    COMPLETED,
    CONSUMER,
    CREDIT,
    DEAD,
    DELAYED,
    DELIVERED,
    DELIVERY,
    FAILS,
    FLUSH,
    GONE,
    GROUP,
    HELD,
    KEY,
    LATE_ACCEPTED,
    LATE_IGNORED,
    LINE,
    MESSAGE,
    NONE,
    OUT,
    PUBLISHER,
    READY,
    REJECT,
    SENT,
    STATE,
    TIMEOUTS,
    VALID,
    VALUE,
    WORKED,
)
from qsctl.sim.kernel.jit import inlined_part, part, row, wide
from qsctl.sim.kernel.random import uniform


@part
def arrive(state: Any, d: int) -> None:
    """Have a delivery reach its consumer; one that is gone or ends does not begin it."""
    queue = row(state, 0, STATE)
    delivery = row(queue.deliveries, d, DELIVERY)
    delivery.pending -= 1
    c = delivery.consumer
    if c == NONE:
        free_if_done(state, d)
        return
    consumer = row(queue.consumers, c, CONSUMER)
    consumer.incoming -= 1
    if consumer.draining:
        give_back(state, d)
        return
    buffer(state, d)
    begin(state, c)


@part
def give_back(state: Any, d: int) -> None:
    """Have a consumer that ends return a delivery that it has not begun."""
    queue = row(state, 0, STATE)
    delivery = row(queue.deliveries, d, DELIVERY)
    delivery.marks &= ~HELD
    free_credit(state, d)
    if delivery.marks & VALID:
        come_back(state, d, wide(0))
    free_if_done(state, d)


@part
def free_credit(state: Any, d: int) -> None:
    """Remove a delivery from its consumer's prefetch count."""
    queue = row(state, 0, STATE)
    delivery = row(queue.deliveries, d, DELIVERY)
    if delivery.marks & CREDIT:
        delivery.marks &= ~CREDIT
        c = delivery.consumer
        if c != NONE:
            row(queue.consumers, c, CONSUMER).out -= 1
            refresh(state, c)
            poll(state, c)


@part
def free_pushed(state: Any, d: int) -> None:
    """Free the credit of a delivery where the broker counts credit: that is where it sends without a poll."""
    queue = row(state, 0, STATE)
    c = row(queue.deliveries, d, DELIVERY).consumer
    if c != NONE and not row(queue.consumers, c, CONSUMER).polls:
        free_credit(state, d)


@part
def invalidate(state: Any, d: int) -> None:
    """Invalidate a delivery, so that the broker stops waiting for its acknowledgment."""
    queue = row(state, 0, STATE)
    delivery = row(queue.deliveries, d, DELIVERY)
    delivery.marks &= ~VALID
    unwatch_timeout(state, d)
    queue.out -= 1
    row(queue.messages, delivery.message, MESSAGE).delivery = NONE


@part
def come_back(state: Any, d: int, rejected: int) -> None:
    """End a valid delivery without an acknowledgment: its message dies, backs off, or is ready again."""
    queue = row(state, 0, STATE)
    invalidate(state, d)
    free_pushed(state, d)
    m = row(queue.deliveries, d, DELIVERY).message
    message = row(queue.messages, m, MESSAGE)
    if queue.deliveries_max > 0 and message.deliveries >= queue.deliveries_max:
        leave_queue(state, m, wide(DEAD))
        return
    wait = 0
    if rejected:
        wait = int(row(queue.back_offs, min(message.deliveries, queue.back_off_count) - 1, VALUE).value)
        if wait and queue.jitter > 0.0:
            key = row(queue.publishers, message.publisher, PUBLISHER).key_jitter
            part_of = uniform(key, attempt_number(message.serial, message.deliveries))
            wait = int(float(wait) * (1.0 - queue.jitter * part_of))
    if wait:
        message.state = DELAYED
        message.traits |= BACK
        message.refs += 1
        push(state, queue.now + wait, wide(BACK_OFF_ENDS), m, wide(0))
    else:
        ready_again(state, m)


@part
def ready_again(state: Any, m: int) -> None:
    """Make a message ready for redelivery."""
    queue = row(state, 0, STATE)
    message = row(queue.messages, m, MESSAGE)
    message.traits &= ~BACK
    if queue.order == KEY:
        row(queue.lines, message.line, LINE).busy = 0
    make_ready(state, m, wide(0) if queue.to_tail else wide(1))


@part
def end_back_off(state: Any, m: int) -> None:
    """Make a message ready after its back-off, unless a late acknowledgment arrived meanwhile."""
    queue = row(state, 0, STATE)
    message = row(queue.messages, m, MESSAGE)
    message.refs -= 1
    if message.state == GONE:
        if message.refs == 0:
            free_message(state, m)
    else:
        ready_again(state, m)


@part
def time_out(state: Any, d: int) -> None:
    """Time out a delivery at the broker; its consumer is not notified and continues to work on it."""
    come_back(state, d, wide(0))
    free_if_done(state, d)


@inlined_part
def end_work(state: Any, d: int) -> None:
    """Have a consumer's work on a message end, with an acknowledgment, a rejection or silence; it begins the next."""
    queue = row(state, 0, STATE)
    delivery = row(queue.deliveries, d, DELIVERY)
    delivery.pending -= 1
    c = delivery.consumer
    if c == NONE:
        free_if_done(state, d)
        return
    touch(state, c)
    consumer = row(queue.consumers, c, CONSUMER)
    consumer.idle += 1
    message = row(queue.messages, delivery.message, MESSAGE)
    message.working -= 1
    delivery.marks &= ~WORKED
    if delivery.marks & FAILS:
        consumer.failed += 1
        if queue.silent:
            delivery.marks &= ~HELD
            if consumer.polls:
                free_credit(state, d)
            free_if_done(state, d)
        else:
            queue.requests += 1
            send_end(state, d, wide(REJECT))
    else:
        consumer.succeeded += 1
        if message.traits & COMPLETED:
            queue.duplicates += 1
        message.traits |= COMPLETED
        acknowledge(state, d)
    if consumer.draining:
        end_draining(state, c)
    else:
        begin(state, c)


@inlined_part
def acknowledge(state: Any, d: int) -> None:
    """Acknowledge a delivery, at once or with others of its consumer."""
    queue = row(state, 0, STATE)
    delivery = row(queue.deliveries, d, DELIVERY)
    c = delivery.consumer
    consumer = row(queue.consumers, c, CONSUMER)
    group = row(queue.groups, consumer.group, GROUP)
    if group.ack_batch == 1:
        queue.requests += 1
        send_end(state, d, wide(ACKNOWLEDGE))
        return
    if consumer.ack_tail == NONE:
        consumer.ack_head = d
        consumer.ack_since = queue.now
        if not consumer.ack_armed:
            consumer.ack_armed = 1
            push(state, queue.now + group.ack_interval, wide(FLUSH), c, wide(0))
    else:
        row(queue.deliveries, consumer.ack_tail, DELIVERY).behind = d
    consumer.ack_tail = d
    consumer.ack_count += 1
    if consumer.ack_count >= group.ack_batch:
        flush(state, c)


@part
def flush(state: Any, c: int) -> None:
    """Send a consumer's gathered acknowledgments, in one request."""
    queue = row(state, 0, STATE)
    consumer = row(queue.consumers, c, CONSUMER)
    if consumer.ack_head == NONE:
        return
    queue.requests += 1
    d = consumer.ack_head
    consumer.ack_head = NONE
    consumer.ack_tail = NONE
    consumer.ack_count = 0
    while d != NONE:
        delivery = row(queue.deliveries, d, DELIVERY)
        behind = delivery.behind
        delivery.behind = NONE
        send_end(state, d, wide(ACKNOWLEDGE))
        d = behind


@part
def flush_due(state: Any, c: int) -> None:
    """Send a consumer's gathered acknowledgments if the first of them has waited for the maximum time."""
    queue = row(state, 0, STATE)
    consumer = row(queue.consumers, c, CONSUMER)
    consumer.ack_armed = 0
    if consumer.ack_head == NONE:
        return
    due = consumer.ack_since + row(queue.groups, consumer.group, GROUP).ack_interval
    if due > queue.now:
        consumer.ack_armed = 1
        push(state, due, wide(FLUSH), c, wide(0))
    else:
        flush(state, c)


@part
def send_end(state: Any, d: int, kind: int) -> None:
    """Send an acknowledgment or a rejection to the broker."""
    queue = row(state, 0, STATE)
    delivery = row(queue.deliveries, d, DELIVERY)
    delivery.marks = (delivery.marks & ~HELD) | SENT
    consumer = row(queue.consumers, delivery.consumer, CONSUMER)
    half = consumer.half
    delivery.pending += 1
    if consumer.polls:
        free_credit(state, d)
    if half:
        push(state, queue.now + half, kind, d, wide(0))
    elif kind == ACKNOWLEDGE:
        acknowledged(state, d)
    else:
        rejected(state, d)


@part
def acknowledged(state: Any, d: int) -> None:
    """Process an acknowledgment at the broker, in time or late."""
    queue = row(state, 0, STATE)
    delivery = row(queue.deliveries, d, DELIVERY)
    delivery.pending -= 1
    delivery.marks &= ~SENT
    free_pushed(state, d)
    m = delivery.message
    message = row(queue.messages, m, MESSAGE)
    if delivery.marks & VALID:
        invalidate(state, d)
        leave_queue(state, m, wide(DELIVERED))
    elif (
        message.state != GONE
        and queue.late != LATE_IGNORED
        and (queue.late == LATE_ACCEPTED or delivery.number == message.deliveries)
    ):
        if message.state == READY:
            pull(state, m)
        elif message.state == OUT:
            invalidate(state, message.delivery)
        leave_queue(state, m, wide(DELIVERED))
    free_if_done(state, d)


@part
def rejected(state: Any, d: int) -> None:
    """Process a rejection at the broker; a late one does not return the message to the queue."""
    queue = row(state, 0, STATE)
    delivery = row(queue.deliveries, d, DELIVERY)
    delivery.pending -= 1
    delivery.marks &= ~SENT
    if delivery.marks & VALID:
        come_back(state, d, wide(1))
    else:
        free_pushed(state, d)
    free_if_done(state, d)


@part
def beat(state: Any, d: int) -> None:
    """Have a heartbeat reach the broker: the time-out begins anew, and the next one is sent while work goes on."""
    queue = row(state, 0, STATE)
    delivery = row(queue.deliveries, d, DELIVERY)
    delivery.pending -= 1
    c = delivery.consumer
    if c != NONE:
        queue.requests += 1
        if delivery.marks & VALID and delivery.timeouts != NONE:
            place = delivery.timeouts
            unwatch_timeout(state, d)
            watch_timeout(state, d, place, queue.now + row(queue.timeouts, place, TIMEOUTS).length)
        half = row(queue.consumers, c, CONSUMER).half
        if queue.now - half + queue.heartbeat < delivery.until:
            delivery.pending += 1
            push(state, queue.now + queue.heartbeat, wide(BEAT), d, wide(0))
    free_if_done(state, d)


@part
def end_draining(state: Any, c: int) -> None:
    """Remove a draining consumer once it has no work in progress."""
    queue = row(state, 0, STATE)
    consumer = row(queue.consumers, c, CONSUMER)
    if consumer.idle == consumer.servers:
        flush(state, c)
        leave(state, c)


@part
def leave(state: Any, c: int) -> None:
    """Remove a consumer from the queue, with the deliveries that it holds."""
    queue = row(state, 0, STATE)
    touch(state, c)
    consumer = row(queue.consumers, c, CONSUMER)
    consumer.present = 0
    consumer.paid = 0
    consumer.draining = 0
    consumer.asking = 0
    consumer.waiting = 0
    consumer.incoming = 0
    consumer.idle = consumer.servers
    consumer.buffer_head = NONE
    consumer.buffer_tail = NONE
    consumer.ack_head = NONE
    consumer.ack_tail = NONE
    consumer.ack_count = 0
    refresh(state, c)
    while consumer.d_head != NONE:
        lose(state, consumer.d_head)


@part
def lose(state: Any, d: int) -> None:
    """Lose a delivery with its consumer: its message returns at once, or when it times out."""
    queue = row(state, 0, STATE)
    delivery = row(queue.deliveries, d, DELIVERY)
    forget(state, d)
    if delivery.marks & WORKED:
        row(queue.messages, delivery.message, MESSAGE).working -= 1
    delivery.marks &= ~(WORKED | HELD)
    if delivery.marks & VALID and not delivery.marks & SENT and queue.loss_returns:
        come_back(state, d, wide(0))
    free_if_done(state, d)
