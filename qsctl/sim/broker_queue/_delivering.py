"""Messages on their way to consumers, and what consumers do with them until they acknowledge or reject them."""

from __future__ import annotations

from typing import Any

import numpy as np

from qsctl.sim.broker_queue._durations import draw_time
from qsctl.sim.broker_queue._fate import pull
from qsctl.sim.broker_queue._lists import (
    head_of,
    push,
    refresh,
    unable,
    unlist_line,
    watch_timeout,
)
from qsctl.sim.broker_queue._publishing import next_line
from qsctl.sim.broker_queue._records import (
    ARRIVE,
    ASK,
    BEAT,
    CONSUMER,
    CREDIT,
    DELIVERY,
    EMPTY,
    FAILS,
    GROUP,
    HELD,
    KEY,
    KIND,
    LINE,
    MESSAGE,
    NONE,
    OUT,
    POISON,
    PUBLISHER,
    STATE,
    TIMEOUTS,
    VALID,
    WAIT_OVER,
    WORK_ENDS,
    WORKED,
)
from qsctl.sim.kernel.jit import inlined_part, part, row, wide
from qsctl.sim.kernel.random import uniform_bits

ATTEMPT_BITS = 10
"""Draws of a message's attempts: 1,024 numbers for each message, which later attempts use again."""


@inlined_part
def attempt_number(serial: int, number: int) -> int:
    """Return the number of the random draw for one delivery of a message."""
    return (serial << ATTEMPT_BITS) | (number & ((1 << ATTEMPT_BITS) - 1))


@inlined_part
def touch(state: Any, c: int) -> None:
    """Add the time since the last change to a consumer's busy, present and paid times."""
    queue = row(state, 0, STATE)
    consumer = row(queue.consumers, c, CONSUMER)
    passed = queue.now - consumer.mark
    if passed > 0:
        consumer.busy_ns += passed * (consumer.servers - consumer.idle)
        if consumer.present:
            consumer.present_ns += passed
        if consumer.paid:
            consumer.paid_ns += passed
        consumer.mark = queue.now


@inlined_part
def dispatch(state: Any) -> None:
    """Deliver as long as there are ready messages, able consumers, and free rows for deliveries."""
    queue = row(state, 0, STATE)
    if queue.rebalancing > queue.now:
        return
    while queue.able_head != NONE and queue.ready and queue.out < queue.out_max:
        if queue.order == KEY and queue.partitions == 0 and queue.available_head == NONE:
            return
        c = queue.able_head
        consumer = row(queue.consumers, c, CONSUMER)
        most = row(queue.groups, consumer.group, GROUP).batch if consumer.polls else 1
        if queue.delivery_left < most:
            queue.unstable = 1
            return
        sent = 0
        while sent < most and queue.ready and queue.out < queue.out_max:
            if consumer.prefetch >= 0 and consumer.out >= consumer.prefetch:
                break
            line = consumer.available_head if queue.partitions else next_line(state)
            if line == NONE:
                break
            deliver(state, c, line)
            sent += 1
        if consumer.polls:
            consumer.waiting = 0
            consumer.asking = 0
            refresh(state, c)
        else:
            if consumer.able:  # it moves to the back of those that a message can be sent to
                unable(state, c)
            refresh(state, c)
        if consumer.half == 0:
            begin(state, c)


@inlined_part
def deliver(state: Any, c: int, line: int) -> None:
    """Deliver the next ready message of a line to a consumer."""
    queue = row(state, 0, STATE)
    m = head_of(state, line)
    if queue.order == KEY:
        unlist_line(state, line)
        row(queue.lines, line, LINE).busy = 1
    pull(state, m)
    message = row(queue.messages, m, MESSAGE)
    message.state = OUT
    message.deliveries += 1
    message.attempts += 1
    message.refs += 1
    d = queue.delivery_free
    delivery = row(queue.deliveries, d, DELIVERY)
    queue.delivery_free = delivery.message
    queue.delivery_left -= 1
    message.delivery = d
    consumer = row(queue.consumers, c, CONSUMER)
    delivery.message = m
    delivery.consumer = c
    delivery.owner = c
    delivery.number = message.deliveries
    delivery.until = NONE
    delivery.marks = VALID | HELD | CREDIT
    delivery.pending = 0
    delivery.timeouts = NONE
    delivery.behind = NONE
    delivery.c_next = NONE
    delivery.c_before = consumer.d_tail
    if consumer.d_tail == NONE:
        consumer.d_head = d
    else:
        row(queue.deliveries, consumer.d_tail, DELIVERY).c_next = d
    consumer.d_tail = d
    consumer.out += 1
    queue.out += 1
    if queue.timeout_count:
        place = min(message.deliveries, queue.timeout_count) - 1
        length = row(queue.timeouts, place, TIMEOUTS).length
        if length != NONE:
            watch_timeout(state, d, place, queue.now + length)
    if consumer.half:
        consumer.incoming += 1
        delivery.pending = 1
        push(state, queue.now + consumer.half, wide(ARRIVE), d, wide(0))
    else:
        buffer(state, d)


@inlined_part
def buffer(state: Any, d: int) -> None:
    """Append a delivery to its consumer's queue of messages received but not begun."""
    queue = row(state, 0, STATE)
    delivery = row(queue.deliveries, d, DELIVERY)
    consumer = row(queue.consumers, delivery.consumer, CONSUMER)
    if consumer.buffer_tail == NONE:
        consumer.buffer_head = d
    else:
        row(queue.deliveries, consumer.buffer_tail, DELIVERY).behind = d
    consumer.buffer_tail = d


@part
def begin(state: Any, c: int) -> None:
    """Have a consumer's idle servers begin work on received messages; if there are none, it polls."""
    queue = row(state, 0, STATE)
    consumer = row(queue.consumers, c, CONSUMER)
    while consumer.idle and consumer.buffer_head != NONE and not consumer.paused:
        d = consumer.buffer_head
        delivery = row(queue.deliveries, d, DELIVERY)
        consumer.buffer_head = delivery.behind
        if consumer.buffer_head == NONE:
            consumer.buffer_tail = NONE
        delivery.behind = NONE
        touch(state, c)
        consumer.idle -= 1
        message = row(queue.messages, delivery.message, MESSAGE)
        if message.working:
            queue.parallel += 1
        message.working += 1
        if message.started == NONE:
            message.started = queue.now
        delivery.marks |= WORKED
        kind = row(queue.kinds, message.kind, KIND)
        publisher = row(queue.publishers, message.publisher, PUBLISHER)
        number = attempt_number(message.serial, delivery.number)
        group = row(queue.groups, consumer.group, GROUP)
        place = group.works + message.kind
        if kind.outages:
            delivery.marks |= FAILS
            if kind.outage_work != NONE:
                place = kind.outage_work
        elif message.traits & POISON or (kind.fails and uniform_bits(publisher.key_fails, number) <= kind.fails):
            delivery.marks |= FAILS
        takes = draw_time(queue.distributions, place, publisher.key_work, number, queue.values)
        if group.speed != 1.0:
            takes = int(np.floor(float(takes) / group.speed + 0.5))
        delivery.until = queue.now + takes
        delivery.pending += 1
        push(state, delivery.until, wide(WORK_ENDS), d, wide(0))
        if queue.heartbeat and delivery.marks & VALID and queue.heartbeat < takes:
            delivery.pending += 1
            push(state, queue.now + queue.heartbeat + consumer.half, wide(BEAT), d, wide(0))
    poll(state, c)


@part
def poll(state: Any, c: int) -> None:
    """Have a consumer send a poll if it is free to work and has no message to begin."""
    queue = row(state, 0, STATE)
    consumer = row(queue.consumers, c, CONSUMER)
    if not consumer.polls or consumer.asking or consumer.draining or consumer.paused or not consumer.present:
        return
    if consumer.incoming or consumer.buffer_head != NONE or not consumer.idle:
        return
    if consumer.prefetch >= 0 and consumer.out >= consumer.prefetch:
        return
    if queue.exclusive and queue.active != c:
        return
    consumer.asking = 1
    queue.requests += 1
    if consumer.half:
        push(state, queue.now + consumer.half, wide(ASK), c, consumer.presence)
    else:
        asked(state, c)


@part
def asked(state: Any, c: int) -> None:
    """Register a consumer's poll at the broker, which answers it as soon as a message is ready."""
    queue = row(state, 0, STATE)
    consumer = row(queue.consumers, c, CONSUMER)
    consumer.waiting = 1
    consumer.wait_until = queue.now + row(queue.groups, consumer.group, GROUP).wait
    refresh(state, c)
    if not consumer.armed:
        consumer.armed = 1
        push(state, consumer.wait_until, wide(WAIT_OVER), c, wide(0))


@part
def end_wait(state: Any, c: int) -> None:
    """Answer a long poll whose wait is over with an empty response."""
    queue = row(state, 0, STATE)
    consumer = row(queue.consumers, c, CONSUMER)
    consumer.armed = 0
    if not consumer.waiting:
        return
    if consumer.wait_until > queue.now:
        consumer.armed = 1
        push(state, consumer.wait_until, wide(WAIT_OVER), c, wide(0))
        return
    consumer.waiting = 0
    refresh(state, c)
    interval = row(queue.groups, consumer.group, GROUP).interval
    push(state, queue.now + consumer.half + interval, wide(EMPTY), c, consumer.presence)
