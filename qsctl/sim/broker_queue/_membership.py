"""The consumers of a queue and their partitions: joining, leaving, assignment, scaling, outages."""

from __future__ import annotations

from typing import Any

from qsctl.sim.broker_queue._delivering import begin, poll, touch
from qsctl.sim.broker_queue._durations import draw_time
from qsctl.sim.broker_queue._lists import list_line, push, refresh, unlist_line
from qsctl.sim.broker_queue._records import (
    CONSUMER,
    DELIVERY,
    GROUP,
    LINE,
    NONE,
    REBALANCED,
    RULE,
    STARTED,
    STATE,
    TICK,
)
from qsctl.sim.broker_queue._returning import end_draining, give_back, leave
from qsctl.sim.kernel.jit import part, row, wide


@part
def join(state: Any, c: int) -> None:
    """Add a consumer to the queue."""
    queue = row(state, 0, STATE)
    touch(state, c)
    consumer = row(queue.consumers, c, CONSUMER)
    consumer.present = 1
    consumer.paid = 1
    consumer.starting = 0
    consumer.presence += 1
    consumer.joined = queue.joins
    queue.joins += 1
    refresh(state, c)
    if queue.partitions or (queue.exclusive and queue.active == NONE):
        members_changed(state)
    begin(state, c)


@part
def part_with(state: Any, c: int) -> None:
    """Remove a consumer at once, and assign its partitions, or the exclusive queue, to others."""
    queue = row(state, 0, STATE)
    leave(state, c)
    if queue.partitions or (queue.exclusive and queue.active == c):
        if queue.exclusive:
            queue.active = NONE
            refresh(state, c)
        members_changed(state)


@part
def members_changed(state: Any) -> None:
    """Schedule a new assignment after the pause of a rebalance; assign at once without a pause, or at time 0."""
    queue = row(state, 0, STATE)
    if queue.rebalance == 0 or queue.now == 0:
        assign(state)
        return
    queue.rebalancing = queue.now + queue.rebalance
    if not queue.rebalance_armed:
        queue.rebalance_armed = 1
        push(state, queue.rebalancing, wide(REBALANCED), wide(0), wide(0))


@part
def end_rebalance(state: Any) -> None:
    """Assign partitions anew if no consumer has joined or left for the length of the pause; else wait further."""
    queue = row(state, 0, STATE)
    queue.rebalance_armed = 0
    if queue.rebalancing > queue.now:
        queue.rebalance_armed = 1
        push(state, queue.rebalancing, wide(REBALANCED), wide(0), wide(0))
        return
    assign(state)


@part
def assign(state: Any) -> None:
    """Assign each partition to the next consumer in turn, or an exclusive queue to the consumer that joined first."""
    queue = row(state, 0, STATE)
    if queue.exclusive:
        chosen = queue.active
        if chosen == NONE:
            for c in range(queue.consumer_count):
                consumer = row(queue.consumers, c, CONSUMER)
                if (
                    consumer.present
                    and not consumer.draining
                    and (chosen == NONE or consumer.joined < row(queue.consumers, chosen, CONSUMER).joined)
                ):
                    chosen = c
        queue.active = chosen
        if chosen != NONE:
            refresh(state, chosen)
            poll(state, chosen)
        return
    c = wide(NONE)
    for line in range(queue.line_count):
        c = next_member(state, c)
        unlist_line(state, line)
        row(queue.lines, line, LINE).owner = c
        list_line(state, line)


@part
def next_member(state: Any, c: int) -> int:
    """Return the next present consumer after `c` in cyclic order; NONE where none is present."""
    queue = row(state, 0, STATE)
    count = queue.consumer_count
    for step in range(1, count + 1):
        each = (c + step) % count
        consumer = row(queue.consumers, each, CONSUMER)
        if consumer.present and not consumer.draining:
            return wide(each)
    return wide(NONE)


@part
def set_paused(state: Any, c: int, paused: int) -> None:
    """Pause or resume a consumer; while paused it begins no work."""
    consumer = row(row(state, 0, STATE).consumers, c, CONSUMER)
    consumer.paused += 1 if paused else -1
    if not consumer.paused:
        begin(state, c)


@part
def disturb(state: Any, begins: int) -> None:
    """Note that an outage or an absence begins or ends.

    At the end of the last one a drain time begins: it lasts until the queue holds no more messages than when the first
    one began.
    """
    queue = row(state, 0, STATE)
    if begins:
        if queue.disturbed == 0 and queue.draining_since == NONE:
            queue.level = queue.inside
        queue.disturbed += 1
        queue.draining_since = NONE
    else:
        queue.disturbed -= 1
        if queue.disturbed == 0:
            queue.draining_since = queue.now


@part
def tick(state: Any, which: int) -> None:
    """Apply an autoscaling rule: start or end consumers by the number of messages in the queue."""
    queue = row(state, 0, STATE)
    rule = row(queue.rules, which, RULE)
    push(state, queue.now + rule.every, wide(TICK), which, wide(0))
    wanted = min(rule.most, max(rule.least, (queue.inside + rule.per - 1) // rule.per))
    group = row(queue.groups, rule.group, GROUP)
    first = group.first
    running = 0
    for c in range(first, first + group.count):
        consumer = row(queue.consumers, c, CONSUMER)
        if (consumer.present and not consumer.draining) or consumer.starting:
            running += 1
    if wanted >= running:
        rule.low_since = NONE
    elif rule.low_since == NONE:
        rule.low_since = queue.now
    if wanted > running:
        for c in range(first, first + group.count):
            consumer = row(queue.consumers, c, CONSUMER)
            if running < wanted and not consumer.present and not consumer.starting:
                running += 1
                touch(state, c)
                consumer.paid = 1
                consumer.starting = 1
                takes = draw_time(queue.distributions, rule.start_up, rule.key, rule.drawn, queue.values)
                rule.drawn += 1
                push(state, queue.now + takes, wide(STARTED), c, wide(0))
    elif wanted < running and queue.now - rule.low_since >= rule.delay:
        for back in range(group.count):
            c = first + group.count - 1 - back
            consumer = row(queue.consumers, c, CONSUMER)
            if running > wanted and consumer.present and not consumer.draining:
                running -= 1
                drain(state, c)


@part
def drain(state: Any, c: int) -> None:
    """Have a consumer end: it returns the messages that it has not begun, and leaves when it has finished the rest."""
    queue = row(state, 0, STATE)
    consumer = row(queue.consumers, c, CONSUMER)
    consumer.draining = 1
    consumer.waiting = 0
    refresh(state, c)
    while consumer.buffer_head != NONE:
        d = consumer.buffer_head
        delivery = row(queue.deliveries, d, DELIVERY)
        consumer.buffer_head = delivery.behind
        delivery.behind = NONE
        give_back(state, d)
    consumer.buffer_tail = NONE
    if queue.partitions or (queue.exclusive and queue.active == c):
        if queue.exclusive:
            queue.active = NONE
        members_changed(state)
    end_draining(state, c)
