"""Messages on their way into the queue: accepted, refused, tried again, blocked."""

from __future__ import annotations

from typing import Any

import numpy as np

from qsctl.sim.broker_queue._fate import (
    MAIN,
    bury,
    integrate,
    leave_queue,
    lose_outside,
    make_ready,
    pull,
    work_units,
)
from qsctl.sim.broker_queue._lists import head_of, new_message, push, watch_life
from qsctl.sim.broker_queue._records import (
    COUNT,
    DELAYED,
    DISCARDED,
    FIFO,
    FOREVER,
    KEY,
    KIND,
    LIFE,
    MESSAGE,
    NONE,
    OUTSIDE,
    OVERFLOW_BLOCK,
    OVERFLOW_DROP_HEAD,
    OVERFLOW_DROP_TAIL,
    OVERFLOW_REJECT,
    OVERFLOW_REJECT_DEAD_LETTER,
    POISON,
    PRIORITY,
    PUBLISHER,
    REFUSED_BLOCK,
    REFUSED_OUTCOME,
    REFUSED_RETRY,
    STATE,
    TRY_AGAIN,
)
from qsctl.sim.kernel.jit import bit_length, inlined_part, part, row, wide
from qsctl.sim.kernel.random import uniform, uniform_bits

PARTITIONER = np.uint64(0x51ED270B9F652D43)
"""The key of the hash that gives a message's key its partition."""


@part
def publish(state: Any, p: int, size: int, key: int, keys: int) -> None:
    """Have a publisher publish a message of one of its keys."""
    queue = row(state, 0, STATE)
    publisher = row(queue.publishers, p, PUBLISHER)
    serial = publisher.count
    publisher.count = serial + 1
    queue.published += 1
    m = new_message(state)
    message = row(queue.messages, m, MESSAGE)
    message.born = queue.now
    message.started = NONE
    message.publisher = p
    message.serial = serial
    message.bytes = size
    message.deliveries = 0
    message.attempts = 0
    message.working = 0
    message.refs = 0
    message.delivery = NONE
    message.tries = 0
    message.ttl = NONE
    message.due = FOREVER
    message.state = OUTSIDE
    kind = publisher.kind
    if kind == NONE:
        kind = 0
        u = uniform(publisher.key_kind, serial)
        while kind < queue.kind_count - 1 and row(queue.kinds, kind, KIND).share <= u:
            kind += 1
    message.kind = kind
    poison = row(queue.kinds, kind, KIND).poison
    message.traits = POISON if poison and uniform_bits(publisher.key_poison, serial) <= poison else 0
    if queue.order == FIFO:
        message.line = 0
    elif queue.order == PRIORITY:
        message.line = row(queue.kinds, kind, KIND).priority
    elif queue.partitions == 0:
        message.line = key
    elif keys == 1:
        message.line = serial % queue.partitions
    else:
        message.line = int(uniform_bits(PARTITIONER, key) % np.uint64(queue.partitions))
    offer(state, m)


@inlined_part
def has_room(state: Any, size: int) -> bool:
    """Return whether the limits have room for a message of this length."""
    queue = row(state, 0, STATE)
    if queue.counts_ready:
        return bool(queue.ready < queue.messages_max and queue.ready_bytes + size <= queue.bytes_max)
    return bool(queue.inside < queue.messages_max and queue.inside_bytes + size <= queue.bytes_max)


@part
def offer(state: Any, m: int) -> None:
    """Accept a message into the queue; if a limit is exceeded, block, refuse or drop by the queue's rule."""
    queue = row(state, 0, STATE)
    message = row(queue.messages, m, MESSAGE)
    publisher = row(queue.publishers, message.publisher, PUBLISHER)
    queue.requests += 1
    blocks = queue.overflow == OVERFLOW_BLOCK or (
        publisher.on_refusal == REFUSED_BLOCK and queue.overflow == OVERFLOW_REJECT
    )
    roomy = has_room(state, message.bytes)
    if roomy and not (blocks and queue.blocked_head != NONE):
        enter(state, m)
    elif blocks:
        message.next = NONE
        if queue.blocked_tail == NONE:
            queue.blocked_head = m
        else:
            row(queue.messages, queue.blocked_tail, MESSAGE).next = m
        queue.blocked_tail = m
        queue.blocked += 1
    elif queue.overflow == OVERFLOW_DROP_HEAD:
        queue.to_drop = 1
        enter(state, m)
    elif queue.overflow == OVERFLOW_DROP_TAIL:
        lose_outside(state, m, wide(DISCARDED))
    elif queue.overflow == OVERFLOW_REJECT_DEAD_LETTER:
        bury(state, message.bytes, message.kind)
        lose_outside(state, m, wide(REFUSED_OUTCOME))
    elif publisher.on_refusal == REFUSED_RETRY and (publisher.retries < 0 or message.tries < publisher.retries):
        message.tries += 1
        push(state, queue.now + publisher.retry_after, wide(TRY_AGAIN), m, wide(0))
    else:
        lose_outside(state, m, wide(REFUSED_OUTCOME))


@part
def enter(state: Any, m: int) -> None:
    """Accept a message into the queue."""
    queue = row(state, 0, STATE)
    integrate(state)
    message = row(queue.messages, m, MESSAGE)
    message.entered = queue.now
    queue.inside += 1
    queue.inside_bytes += message.bytes
    row(queue.counts, MAIN, COUNT).work += work_units(message.bytes)
    if queue.life_count:
        place = row(queue.lifetimes, message.publisher * queue.kind_count + message.kind, LIFE).list
        if place != NONE:
            watch_life(state, m, place)
    if queue.delay:
        message.state = DELAYED
        message.next = NONE
        message.before = queue.delay_tail
        if queue.delay_tail == NONE:
            queue.delay_head = m
        else:
            row(queue.messages, queue.delay_tail, MESSAGE).next = m
        queue.delay_tail = m
    else:
        make_ready(state, m, wide(0))


@part
def end_delay(state: Any) -> None:
    """Make the message ready whose delivery delay is over."""
    queue = row(state, 0, STATE)
    m = queue.delay_head
    queue.delay_head = row(queue.messages, m, MESSAGE).next
    if queue.delay_head == NONE:
        queue.delay_tail = NONE
    make_ready(state, m, wide(0))


@part
def drop_heads(state: Any) -> None:
    """Drop the next messages to be delivered until the limits are kept, or no message is ready."""
    queue = row(state, 0, STATE)
    queue.to_drop = 0
    while queue.ready:
        if queue.counts_ready:
            if queue.ready <= queue.messages_max and queue.ready_bytes <= queue.bytes_max:
                return
        elif queue.inside <= queue.messages_max and queue.inside_bytes <= queue.bytes_max:
            return
        m = head_of(state, next_line(state))
        pull(state, m)
        leave_queue(state, m, wide(DISCARDED))


@part
def next_line(state: Any) -> int:
    """Return the line of the message to be delivered next, of a queue with ready messages and without partitions."""
    queue = row(state, 0, STATE)
    if queue.order == FIFO:
        return 0
    if queue.order == KEY:
        return int(queue.available_head)
    return bit_length(queue.priority_mask) - 1


@part
def admit(state: Any) -> bool:
    """Accept the first message of blocked publishers if there is room; return whether it was accepted."""
    queue = row(state, 0, STATE)
    m = queue.blocked_head
    if m == NONE or not has_room(state, row(queue.messages, m, MESSAGE).bytes):
        return False
    queue.blocked_head = row(queue.messages, m, MESSAGE).next
    if queue.blocked_head == NONE:
        queue.blocked_tail = NONE
    queue.blocked -= 1
    enter(state, m)
    return True
