"""The kernel of a broker's queue: from one event to the next, until an instant.

At one instant planned controls happen first, in their order; then the events of the heap, by kinds; then delays end,
deliveries time out, times to live are over, messages arrive. After each event the queue reaches a stable state: it
delivers as long as there are messages and consumers for them, drops messages beyond its limits, and accepts messages of
blocked publishers while there is room.
"""

from __future__ import annotations

from typing import Any

from qsctl.sim.broker_queue._delivering import asked, dispatch, end_wait, poll, touch
from qsctl.sim.broker_queue._durations import draw_time
from qsctl.sim.broker_queue._fate import MAIN, expire_heads, expire_letters, integrate, leave_queue, record
from qsctl.sim.broker_queue._lists import head_of, pop, push, unlink_ready, unwatch_life
from qsctl.sim.broker_queue._membership import (
    disturb,
    end_rebalance,
    join,
    part_with,
    set_paused,
    tick,
)
from qsctl.sim.broker_queue._publishing import admit, drop_heads, end_delay, offer, publish
from qsctl.sim.broker_queue._records import (
    ACKNOWLEDGE,
    ARRIVE,
    ASK,
    BACK_OFF_ENDS,
    BEAT,
    CONSUMER,
    CONTROL,
    COUNT,
    DELIVERY,
    EMPTY,
    ENTRY,
    EXPIRED,
    FLUSH,
    FOREVER,
    FREE,
    GONE,
    GROW,
    HELD_OUTCOME,
    JOIN,
    KIND,
    KIND_SHIFT,
    LEAVE,
    LETTER,
    LIVES,
    LOG_FULL,
    MESSAGE,
    NONE,
    OUTAGE_BEGINS,
    OUTAGE_ENDS,
    OUTSIDE,
    PAUSE_BEGINS,
    PAUSE_ENDS,
    PUBLISH,
    PUBLISHER,
    REACHED,
    READY,
    REBALANCED,
    REJECT,
    RULE,
    STARTED,
    STATE,
    TICK,
    TIMEOUTS,
    TRY_AGAIN,
    WAIT_OVER,
    WAITING_OUTCOME,
    WARM_UP,
    WORK_ENDS,
)
from qsctl.sim.broker_queue._returning import (
    acknowledged,
    arrive,
    beat,
    end_back_off,
    end_work,
    flush_due,
    rejected,
    time_out,
)
from qsctl.sim.kernel.jit import inlined_part, kernel, part, row, wide
from qsctl.sim.kernel.random import uniform
from qsctl.sim.kernel.records import ARRIVAL, ARRIVAL_TRAFFIC_SHIFT

HEAP_ROOM = 64
"""Entries that one event may make beside those of its messages and deliveries."""
LETTERS_HELD = 1


@kernel
def advance(state: Any) -> int:
    """Simulate to `until` (exclusive), or until the log or the tables of rows are full; return which of these."""
    queue = row(state, 0, STATE)
    while True:
        if queue.log_count >= queue.log_limit:
            return LOG_FULL
        if queue.message_left < 4 + queue.delivery_limit - queue.delivery_left or queue.delivery_left == 0:
            return GROW
        if queue.heap_limit - queue.heap_count < HEAP_ROOM + 3 * queue.delivery_left + queue.message_left:
            return GROW
        if queue.unstable:
            if queue.delivery_left < queue.most_at_once:
                return GROW
            queue.unstable = 0
            stabilize(state)
            continue
        time = FOREVER
        if queue.position < queue.count:
            time = row(queue.arrivals, queue.position, ARRIVAL).time
        which = 5
        for place in range(queue.life_count):
            m = row(queue.lives, place, LIVES).head
            if m != NONE:
                due = row(queue.messages, m, MESSAGE).due
                if due < time or (due == time and which == 5):
                    time = due
                    which = 4 + 16 * place
        place = queue.timeout_count
        while place > 0:
            place -= 1
            d = row(queue.timeouts, place, TIMEOUTS).head
            if d != NONE and row(queue.deliveries, d, DELIVERY).deadline <= time:
                time = row(queue.deliveries, d, DELIVERY).deadline
                which = 3 + 16 * place
        if queue.delay_head != NONE:
            due = row(queue.messages, queue.delay_head, MESSAGE).entered + queue.delay
            if due <= time:
                time = due
                which = 2
        if queue.heap_count and row(queue.heap, 0, ENTRY).time <= time:
            time = row(queue.heap, 0, ENTRY).time
            which = 1
        if queue.control_position < queue.control_count:
            due = row(queue.controls, queue.control_position, CONTROL).time
            if due <= time:
                time = due
                which = 0
        if time >= queue.until:
            return REACHED
        queue.now = time
        if which == 1:
            entry = row(queue.heap, 0, ENTRY)
            kind = entry.order >> KIND_SHIFT
            subject = entry.subject
            mark = entry.mark
            pop(state)
            if kind == WORK_ENDS:
                end_work(state, subject)
            else:
                happen(state, kind, subject, mark)
        elif which == 5:
            come(state)
        elif which == 0:
            control(state)
        elif which == 2:
            end_delay(state)
        elif which & 15 == 3:
            time_out(state, row(queue.timeouts, which >> 4, TIMEOUTS).head)
        else:
            expire(state, row(queue.lives, which >> 4, LIVES).head)
        stabilize(state)


@inlined_part
def come(state: Any) -> None:
    """Publish the next message of the arrival stream."""
    queue = row(state, 0, STATE)
    arrival = row(queue.arrivals, queue.position, ARRIVAL)
    queue.position += 1
    p = wide(arrival.tag >> ARRIVAL_TRAFFIC_SHIFT)
    keys = row(queue.publishers, p, PUBLISHER).keys
    publish(state, p, wide(arrival.bytes), wide(arrival.topic), keys)


@inlined_part
def stabilize(state: Any) -> None:
    """Deliver, drop and admit messages until none of these is possible, then update the high-water marks."""
    queue = row(state, 0, STATE)
    while True:
        dispatch(state)
        if queue.unstable:  # it goes on once there are more rows
            return
        if queue.to_drop:
            drop_heads(state)
        if queue.blocked_head == NONE or not admit(state):
            break
    if queue.inside > queue.inside_max:
        queue.inside_max = queue.inside
    if queue.ready > queue.ready_max:
        queue.ready_max = queue.ready
    count = row(queue.counts, MAIN, COUNT)
    if count.work > count.mark:
        count.mark = count.work
    if queue.draining_since != NONE and queue.inside <= queue.level:
        queue.drain_max = max(queue.drain_max, queue.now - queue.draining_since)
        queue.draining_since = NONE


@part
def happen(state: Any, kind: int, subject: int, mark: int) -> None:
    """Process one event of the heap, by its kind."""
    queue = row(state, 0, STATE)
    if kind == ARRIVE:
        arrive(state, subject)
    elif kind == ACKNOWLEDGE:
        acknowledged(state, subject)
    elif kind == REJECT:
        rejected(state, subject)
    elif kind == BEAT:
        beat(state, subject)
    elif kind == BACK_OFF_ENDS:
        end_back_off(state, subject)
    elif kind == WAIT_OVER:
        end_wait(state, subject)
    elif kind in (ASK, EMPTY):
        consumer = row(queue.consumers, subject, CONSUMER)
        if consumer.present and not consumer.draining and consumer.presence == mark:
            if kind == ASK:
                asked(state, subject)
            else:
                consumer.asking = 0
                poll(state, subject)
    elif kind == FLUSH:
        flush_due(state, subject)
    elif kind == TRY_AGAIN:
        offer(state, subject)
    elif kind == PUBLISH:
        source(state, subject)
    elif kind == TICK:
        tick(state, subject)
    elif kind == STARTED:
        join(state, subject)
    elif kind == REBALANCED:
        end_rebalance(state)


FIRST_THOUGHT = 1 << 40
"""The number of the draw of a source's first thinking time; later ones have the numbers of messages."""


@kernel
def start(state: Any) -> None:
    """Schedule the first events: thinking times of sources, and the first decision of each autoscaling rule."""
    queue = row(state, 0, STATE)
    for p in range(queue.publisher_count):
        publisher = row(queue.publishers, p, PUBLISHER)
        for each in range(publisher.sources):
            think = draw_time(
                queue.distributions, publisher.think, publisher.key_think, FIRST_THOUGHT + each, queue.values
            )
            push(state, publisher.start + think, wide(PUBLISH), p, wide(0))
    for rule in range(queue.rule_count):
        push(state, row(queue.rules, rule, RULE).every, wide(TICK), rule, wide(0))


@part
def source(state: Any, p: int) -> None:
    """Have a source publish at the end of its thinking time, if it still may."""
    queue = row(state, 0, STATE)
    publisher = row(queue.publishers, p, PUBLISHER)
    if queue.now >= publisher.stop:
        return
    key = publisher.first_key
    if publisher.keys > 1:
        key += int(uniform(publisher.key_key, publisher.count) * float(publisher.keys))
    publish(state, p, publisher.size_bytes, key, publisher.keys)


@part
def expire(state: Any, m: int) -> None:
    """Expire a ready message whose time to live has passed."""
    queue = row(state, 0, STATE)
    unwatch_life(state, m)
    message = row(queue.messages, m, MESSAGE)
    if message.state != READY:
        return
    if not queue.at_head:
        unlink_ready(state, m)
        leave_queue(state, m, wide(EXPIRED))
    elif head_of(state, message.line) == m:
        expire_heads(state, message.line)


@part
def control(state: Any) -> None:
    """Carry out the planned controls that are due at this instant."""
    queue = row(state, 0, STATE)
    planned = row(queue.controls, queue.control_position, CONTROL)
    queue.control_position += 1
    what = planned.what
    subject = planned.subject
    if what == WARM_UP:
        restart_statistics(state)
    elif what in (OUTAGE_BEGINS, OUTAGE_ENDS):
        begins = wide(1) if what == OUTAGE_BEGINS else wide(0)
        for k in range(queue.kind_count):
            if subject in (NONE, k):
                kind = row(queue.kinds, k, KIND)
                kind.outages += 1 if begins else -1
                if begins:
                    kind.outage_work = planned.value
                elif kind.outages == 0:
                    kind.outage_work = NONE
        disturb(state, begins)
    elif what in (PAUSE_BEGINS, PAUSE_ENDS):
        set_paused(state, subject, wide(1) if what == PAUSE_BEGINS else wide(0))
    elif what == LEAVE:
        disturb(state, wide(1))
        part_with(state, subject)
    elif what == JOIN:
        if planned.value:
            disturb(state, wide(0))
        join(state, subject)


@part
def restart_statistics(state: Any) -> None:
    """Restart the statistics after the warm-up; the messages in the queue stay."""
    queue = row(state, 0, STATE)
    for which in range(2):
        count = row(queue.counts, which, COUNT)
        count.mark = count.work
    for c in range(queue.consumer_count):
        touch(state, c)
        consumer = row(queue.consumers, c, CONSUMER)
        consumer.busy_ns = 0
        consumer.present_ns = 0
        consumer.paid_ns = 0
        consumer.succeeded = 0
        consumer.failed = 0
    for m in range(queue.message_limit):
        message = row(queue.messages, m, MESSAGE)
        if message.state != FREE:
            message.attempts = min(message.attempts, 1)
    queue.area = 0.0
    queue.area_from = queue.now
    queue.duplicates = 0
    queue.parallel = 0
    queue.requests = 0
    queue.oldest = 0
    queue.drain_max = NONE
    queue.inside_max = queue.inside
    queue.ready_max = queue.ready


@kernel
def finish(state: Any) -> None:
    """Bring times, dead letters and the drain time up to date at the end of the run."""
    queue = row(state, 0, STATE)
    integrate(state)
    expire_letters(state)
    for c in range(queue.consumer_count):
        touch(state, c)
    if queue.draining_since != NONE:
        queue.drain_max = max(queue.drain_max, queue.now - queue.draining_since)


@kernel
def hold(state: Any, first: int) -> int:
    """Log messages that are still there, from a row on; return the row to continue with, or the number of rows."""
    queue = row(state, 0, STATE)
    for m in range(first, queue.message_limit):
        if queue.log_count >= queue.log_limit:
            return m
        message = row(queue.messages, m, MESSAGE)
        if message.state == OUTSIDE:
            record(state, m, wide(MAIN), wide(WAITING_OUTCOME), wide(NONE), wide(NONE), wide(NONE))
        elif message.state == LETTER:
            record(state, m, wide(LETTERS_HELD), wide(HELD_OUTCOME), wide(NONE), wide(0), wide(NONE))
        elif message.state != FREE and message.state != GONE:
            started = message.started - message.born if message.started != NONE else NONE
            record(state, m, wide(MAIN), wide(HELD_OUTCOME), started, message.entered - message.born, wide(NONE))
            if message.state == READY:
                age = queue.now - message.entered
                if age > queue.oldest:
                    queue.oldest = age
    return int(queue.message_limit)
