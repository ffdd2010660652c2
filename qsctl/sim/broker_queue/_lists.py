"""The lists of a broker's queue: heap, slabs, lines of ready messages, able consumers, time-outs, times to live."""

from __future__ import annotations

from typing import Any

from qsctl.sim.broker_queue._records import (
    CONSUMER,
    CREDIT,
    DELIVERY,
    ENTRY,
    FREE,
    GONE,
    HELD,
    KEY,
    KIND_SHIFT,
    LINE,
    LIVES,
    MESSAGE,
    NONE,
    PRIORITY,
    READY,
    RETURNED,
    STATE,
    TIMEOUTS,
    VALID,
)
from qsctl.sim.kernel.jit import inlined_part, part, row


@part
def push(state: Any, time: int, kind: int, subject: int, mark: int) -> None:
    """Schedule an event; events of one instant and kind are processed in the order in which they were scheduled."""
    queue = row(state, 0, STATE)
    order = (kind << KIND_SHIFT) | queue.sequence
    queue.sequence += 1
    i = queue.heap_count
    queue.heap_count = i + 1
    heap = queue.heap
    while i > 0:
        parent = (i - 1) >> 1
        above = row(heap, parent, ENTRY)
        if above.time < time or (above.time == time and above.order < order):
            break
        place = row(heap, i, ENTRY)
        place.time = above.time
        place.order = above.order
        place.subject = above.subject
        place.mark = above.mark
        i = parent
    place = row(heap, i, ENTRY)
    place.time = time
    place.order = order
    place.subject = subject
    place.mark = mark


@inlined_part
def pop(state: Any) -> None:
    """Remove the earliest entry of the event heap."""
    queue = row(state, 0, STATE)
    count = queue.heap_count - 1
    queue.heap_count = count
    heap = queue.heap
    last = row(heap, count, ENTRY)
    time = last.time
    order = last.order
    i = 0
    while True:
        child = 2 * i + 1
        if child >= count:
            break
        below = row(heap, child, ENTRY)
        if child + 1 < count:
            right = row(heap, child + 1, ENTRY)
            if right.time < below.time or (right.time == below.time and right.order < below.order):
                child += 1
                below = right
        if time < below.time or (time == below.time and order < below.order):
            break
        place = row(heap, i, ENTRY)
        place.time = below.time
        place.order = below.order
        place.subject = below.subject
        place.mark = below.mark
        i = child
    place = row(heap, i, ENTRY)
    place.time = time
    place.order = order
    place.subject = last.subject
    place.mark = last.mark


@inlined_part
def new_message(state: Any) -> int:
    """Return a row for a message; the caller made sure that there is one."""
    queue = row(state, 0, STATE)
    m = queue.message_free
    queue.message_free = row(queue.messages, m, MESSAGE).next
    queue.message_left -= 1
    return int(m)


@inlined_part
def free_message(state: Any, m: int) -> None:
    """Return the row of a message to the list of free rows."""
    queue = row(state, 0, STATE)
    message = row(queue.messages, m, MESSAGE)
    message.state = FREE
    message.next = queue.message_free
    queue.message_free = m
    queue.message_left += 1


@part
def free_if_done(state: Any, d: int) -> None:
    """Free the row of a delivery that nothing refers to any more, and that of its message where that is gone."""
    queue = row(state, 0, STATE)
    delivery = row(queue.deliveries, d, DELIVERY)
    if delivery.pending or delivery.marks & (VALID | HELD):
        return
    if delivery.consumer != NONE:
        forget(state, d)
    m = delivery.message
    message = row(queue.messages, m, MESSAGE)
    message.refs -= 1
    if message.refs == 0 and message.state == GONE:
        free_message(state, m)
    delivery.message = queue.delivery_free
    queue.delivery_free = d
    queue.delivery_left += 1


@part
def forget(state: Any, d: int) -> None:
    """Unlink a delivery from its consumer's list of deliveries."""
    queue = row(state, 0, STATE)
    delivery = row(queue.deliveries, d, DELIVERY)
    consumer = row(queue.consumers, delivery.consumer, CONSUMER)
    if delivery.c_before == NONE:
        consumer.d_head = delivery.c_next
    else:
        row(queue.deliveries, delivery.c_before, DELIVERY).c_next = delivery.c_next
    if delivery.c_next == NONE:
        consumer.d_tail = delivery.c_before
    else:
        row(queue.deliveries, delivery.c_next, DELIVERY).c_before = delivery.c_before
    if delivery.marks & CREDIT:
        consumer.out -= 1
        delivery.marks &= ~CREDIT
    delivery.consumer = NONE


@inlined_part
def head_of(state: Any, line: int) -> int:
    """Return the message of a line that is delivered next, NONE where it has none."""
    each = row(row(state, 0, STATE).lines, line, LINE)
    return int(each.back_head) if each.back_head != NONE else int(each.head)


@part
def refresh(state: Any, c: int) -> None:
    """Add a consumer to the list of consumers that can receive, or remove it, by its present state."""
    queue = row(state, 0, STATE)
    consumer = row(queue.consumers, c, CONSUMER)
    able = (
        consumer.present != 0
        and consumer.draining == 0
        and (consumer.prefetch < 0 or consumer.out < consumer.prefetch)
        and (consumer.waiting != 0 or consumer.polls == 0)
        and (queue.exclusive == 0 or queue.active == c)
        and (queue.partitions == 0 or consumer.available_head != NONE)
    )
    if able and consumer.able == 0:
        consumer.able = 1
        consumer.able_next = NONE
        consumer.able_before = queue.able_tail
        if queue.able_tail == NONE:
            queue.able_head = c
        else:
            row(queue.consumers, queue.able_tail, CONSUMER).able_next = c
        queue.able_tail = c
    elif consumer.able != 0 and not able:
        unable(state, c)


@part
def unable(state: Any, c: int) -> None:
    """Remove a consumer from the list of consumers that can receive a message."""
    queue = row(state, 0, STATE)
    consumer = row(queue.consumers, c, CONSUMER)
    consumer.able = 0
    if consumer.able_before == NONE:
        queue.able_head = consumer.able_next
    else:
        row(queue.consumers, consumer.able_before, CONSUMER).able_next = consumer.able_next
    if consumer.able_next == NONE:
        queue.able_tail = consumer.able_before
    else:
        row(queue.consumers, consumer.able_next, CONSUMER).able_before = consumer.able_before


@part
def list_line(state: Any, line: int) -> None:
    """List a key's or partition's line among those to deliver from, if it has a message that may be delivered."""
    queue = row(state, 0, STATE)
    each = row(queue.lines, line, LINE)
    if each.available or each.busy or (each.head == NONE and each.back_head == NONE):
        return
    if queue.partitions and each.owner == NONE:
        return
    each.available = 1
    each.available_next = NONE
    if queue.partitions:
        owner = row(queue.consumers, each.owner, CONSUMER)
        each.available_before = owner.available_tail
        if owner.available_tail == NONE:
            owner.available_head = line
        else:
            row(queue.lines, owner.available_tail, LINE).available_next = line
        owner.available_tail = line
        refresh(state, each.owner)
    else:
        each.available_before = queue.available_tail
        if queue.available_tail == NONE:
            queue.available_head = line
        else:
            row(queue.lines, queue.available_tail, LINE).available_next = line
        queue.available_tail = line


@part
def unlist_line(state: Any, line: int) -> None:
    """Remove a line from the list of those to deliver from."""
    queue = row(state, 0, STATE)
    each = row(queue.lines, line, LINE)
    if not each.available:
        return
    each.available = 0
    before = each.available_before
    after = each.available_next
    if before != NONE:
        row(queue.lines, before, LINE).available_next = after
    if after != NONE:
        row(queue.lines, after, LINE).available_before = before
    if queue.partitions:
        owner = row(queue.consumers, each.owner, CONSUMER)
        if before == NONE:
            owner.available_head = after
        if after == NONE:
            owner.available_tail = before
        refresh(state, each.owner)
    else:
        if before == NONE:
            queue.available_head = after
        if after == NONE:
            queue.available_tail = before


@part
def link_ready(state: Any, m: int, back: int) -> None:
    """Put a message at the end of its line; a returned one behind the returned ones, before the rest."""
    queue = row(state, 0, STATE)
    message = row(queue.messages, m, MESSAGE)
    message.state = READY
    message.next = NONE
    each = row(queue.lines, message.line, LINE)
    if back:
        message.traits |= RETURNED
        message.before = each.back_tail
        if each.back_tail == NONE:
            each.back_head = m
        else:
            row(queue.messages, each.back_tail, MESSAGE).next = m
        each.back_tail = m
    else:
        message.traits &= ~RETURNED
        message.before = each.tail
        if each.tail == NONE:
            each.head = m
        else:
            row(queue.messages, each.tail, MESSAGE).next = m
        each.tail = m
    queue.ready += 1
    queue.ready_bytes += message.bytes
    if queue.order == KEY:
        list_line(state, message.line)
    elif queue.order == PRIORITY:
        queue.priority_mask |= 1 << message.line


@part
def unlink_ready(state: Any, m: int) -> None:
    """Remove a ready message from its line, and update the greatest age of a ready message."""
    queue = row(state, 0, STATE)
    message = row(queue.messages, m, MESSAGE)
    each = row(queue.lines, message.line, LINE)
    before = message.before
    after = message.next
    if before != NONE:
        row(queue.messages, before, MESSAGE).next = after
    if after != NONE:
        row(queue.messages, after, MESSAGE).before = before
    if message.traits & RETURNED:
        if before == NONE:
            each.back_head = after
        if after == NONE:
            each.back_tail = before
    else:
        if before == NONE:
            each.head = after
        if after == NONE:
            each.tail = before
    queue.ready -= 1
    queue.ready_bytes -= message.bytes
    age = queue.now - message.entered
    if age > queue.oldest:
        queue.oldest = age
    if each.head == NONE and each.back_head == NONE:
        if queue.order == KEY:
            unlist_line(state, message.line)
        elif queue.order == PRIORITY:
            queue.priority_mask &= ~(1 << message.line)


@part
def watch_timeout(state: Any, d: int, place: int, deadline: int) -> None:
    """Append a delivery to a list of time-outs; its deadline is not before those in the list."""
    queue = row(state, 0, STATE)
    delivery = row(queue.deliveries, d, DELIVERY)
    each = row(queue.timeouts, place, TIMEOUTS)
    delivery.timeouts = place
    delivery.deadline = deadline
    delivery.t_next = NONE
    delivery.t_before = each.tail
    if each.tail == NONE:
        each.head = d
    else:
        row(queue.deliveries, each.tail, DELIVERY).t_next = d
    each.tail = d


@part
def unwatch_timeout(state: Any, d: int) -> None:
    """Unlink a delivery from its time-out list, if it is in one."""
    queue = row(state, 0, STATE)
    delivery = row(queue.deliveries, d, DELIVERY)
    if delivery.timeouts == NONE:
        return
    each = row(queue.timeouts, delivery.timeouts, TIMEOUTS)
    if delivery.t_before == NONE:
        each.head = delivery.t_next
    else:
        row(queue.deliveries, delivery.t_before, DELIVERY).t_next = delivery.t_next
    if delivery.t_next == NONE:
        each.tail = delivery.t_before
    else:
        row(queue.deliveries, delivery.t_next, DELIVERY).t_before = delivery.t_before
    delivery.timeouts = NONE


@part
def watch_life(state: Any, m: int, place: int) -> None:
    """Append a message that enters now to a list of times to live."""
    queue = row(state, 0, STATE)
    message = row(queue.messages, m, MESSAGE)
    each = row(queue.lives, place, LIVES)
    message.ttl = place
    message.due = queue.now + each.length
    message.ttl_next = NONE
    message.ttl_before = each.tail
    if each.tail == NONE:
        each.head = m
    else:
        row(queue.messages, each.tail, MESSAGE).ttl_next = m
    each.tail = m


@part
def unwatch_life(state: Any, m: int) -> None:
    """Unlink a message from its time-to-live list, if it is in one."""
    queue = row(state, 0, STATE)
    message = row(queue.messages, m, MESSAGE)
    if message.ttl == NONE:
        return
    each = row(queue.lives, message.ttl, LIVES)
    if message.ttl_before == NONE:
        each.head = message.ttl_next
    else:
        row(queue.messages, message.ttl_before, MESSAGE).ttl_next = message.ttl_next
    if message.ttl_next == NONE:
        each.tail = message.ttl_before
    else:
        row(queue.messages, message.ttl_next, MESSAGE).ttl_before = message.ttl_before
    message.ttl = NONE
