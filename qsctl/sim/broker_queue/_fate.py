"""The fate of a message: its row of the log, its count, its dead letter, and the source that waits for it.

Decides: which messages count. As in all models one counts when its wait ended in the observed part (`summary.
observation`): the wait ends when work on it begins first, or with its loss.
"""

from __future__ import annotations

from typing import Any

from qsctl.eventlog.schema import BUCKET_COUNT
from qsctl.sim.broker_queue._durations import draw_time
from qsctl.sim.broker_queue._lists import free_message, head_of, link_ready, list_line, new_message, push, unlink_ready
from qsctl.sim.broker_queue._lists import unwatch_life as unwatch_life
from qsctl.sim.broker_queue._records import (
    BACK,
    BUCKET,
    COUNT,
    DEAD,
    DELAYED,
    DELIVERED,
    DISCARDED,
    EXPIRED,
    GONE,
    HELD_OUTCOME,
    HISTOGRAMS,
    KEY,
    LETTER,
    LINE,
    MESSAGE,
    NONE,
    OUT,
    PUBLISH,
    PUBLISHER,
    REFUSED_OUTCOME,
    STATE,
    WAITING_OUTCOME,
)
from qsctl.sim.kernel.histogram import bucket_of
from qsctl.sim.kernel.jit import inlined_part, part, row, wide
from qsctl.sim.kernel.records import FIRST_HALF, LOG_WORDS, OUTCOME_SHIFT, QUEUE_SHIFT, SECOND_HALF

MAIN = 0
LETTERS = 1


@inlined_part
def work_units(size: int) -> int:
    """Return the work units of a message of this length."""
    return max(1, (size + 2047) >> 11)


@inlined_part
def integrate(state: Any) -> None:
    """Add the time since the last change, weighted by the messages in the queue, to the time integrals."""
    queue = row(state, 0, STATE)
    passed = queue.now - queue.area_from
    if passed > 0:
        queue.area += float(passed) * float(queue.inside)
        queue.area_from = queue.now


@inlined_part
def count_time(state: Any, which: int, histogram: int, time: int) -> None:
    """Count a duration in one of the histograms of a queue."""
    queue = row(state, 0, STATE)
    place = (which * HISTOGRAMS + histogram) * BUCKET_COUNT + bucket_of(time)
    row(queue.buckets, place, BUCKET).messages += 1


@part
def record(state: Any, m: int, which: int, outcome: int, wait: int, enter: int, acknowledged: int) -> None:
    """Count and log the fate of a message; durations are since its arrival, NONE where the step did not occur."""
    queue = row(state, 0, STATE)
    message = row(queue.messages, m, MESSAGE)
    count = row(queue.counts, which, COUNT)
    born = message.born
    if born >= queue.warm_up:
        count.arrived += 1
    if outcome in (HELD_OUTCOME, WAITING_OUTCOME):
        age = queue.now - born
        if outcome == HELD_OUTCOME:
            count.held += 1
            if wait != NONE:
                count.unacknowledged += 1
        else:
            count.waiting += 1
        count.redelivered += max(0, message.attempts - 1)
        count.unfinished += 1
        if age > count.unfinished_max:
            count.unfinished_max = age
        count_time(state, which, wide(2), age)
        if age > queue.objective:
            count.overdue += 1
    elif born + wait >= queue.warm_up:
        count.redelivered += max(0, message.attempts - 1)
        if outcome == DELIVERED:
            count.delivered += 1
            count.bytes += message.bytes
            count.wait_sum += wait
            if wait > count.wait_max:
                count.wait_max = wait
            count_time(state, which, wide(0), wait)
            count.done += 1
            count.done_sum += acknowledged
            if acknowledged > count.done_max:
                count.done_max = acknowledged
            count_time(state, which, wide(1), acknowledged)
            if acknowledged <= queue.objective:
                count.within += 1
        elif outcome == DISCARDED:
            count.discarded += 1
        elif outcome == EXPIRED:
            count.expired += 1
        elif outcome == DEAD:
            count.dead += 1
        else:
            count.refused += 1
        if (outcome in (DISCARDED, REFUSED_OUTCOME)) and (
            count.first_discard == NONE or born + wait < count.first_discard
        ):
            count.first_discard = born + wait
    if queue.logging:
        place = queue.log_count
        queue.log_count = place + 1
        written = row(queue.log, place, LOG_WORDS)
        written.enqueued_ns = born
        written.enter_ns = enter
        written.wait_ns = wait
        written.send_ns = NONE
        written.acknowledge_ns = acknowledged
        written.client_topic = message.kind << SECOND_HALF
        written.size_attempts = (message.bytes << FIRST_HALF) | (message.attempts << SECOND_HALF)
        written.fate = (which << QUEUE_SHIFT) | (outcome << OUTCOME_SHIFT)


@part
def end(state: Any, m: int) -> None:
    """Note that a message's fate is decided: its source continues, and its row is free once no consumer works on it."""
    queue = row(state, 0, STATE)
    message = row(queue.messages, m, MESSAGE)
    publisher = row(queue.publishers, message.publisher, PUBLISHER)
    if publisher.sources:
        think = draw_time(queue.distributions, publisher.think, publisher.key_think, message.serial, queue.values)
        push(state, queue.now + think, wide(PUBLISH), message.publisher, wide(0))
    message.state = GONE
    if message.refs == 0:
        free_message(state, m)


@part
def lose_outside(state: Any, m: int, outcome: int) -> None:
    """Record the loss of a message that the queue did not accept."""
    queue = row(state, 0, STATE)
    record(state, m, wide(MAIN), outcome, queue.now - row(queue.messages, m, MESSAGE).born, wide(NONE), wide(NONE))
    end(state, m)


@part
def leave_queue(state: Any, m: int, outcome: int) -> None:
    """Remove a message from the queue, acknowledged or lost; it is in no line, and none of its deliveries is valid."""
    queue = row(state, 0, STATE)
    integrate(state)
    message = row(queue.messages, m, MESSAGE)
    queue.inside -= 1
    queue.inside_bytes -= message.bytes
    row(queue.counts, MAIN, COUNT).work -= work_units(message.bytes)
    unwatch_life(state, m)
    if queue.order == KEY and (message.state == OUT or (message.state == DELAYED and message.traits & BACK)):
        row(queue.lines, message.line, LINE).busy = 0
        list_line(state, message.line)
    passed = queue.now - message.born
    enter = wide(message.entered - message.born)
    if outcome == DELIVERED:
        record(state, m, wide(MAIN), outcome, message.started - message.born, enter, passed)
    else:
        record(state, m, wide(MAIN), outcome, passed, enter, wide(NONE))
        if queue.dead_letters:
            bury(state, message.bytes, message.kind)
    end(state, m)


@part
def bury(state: Any, size: int, kind: int) -> None:
    """Add a dead letter to the dead letters, within their limits."""
    queue = row(state, 0, STATE)
    expire_letters(state)
    count = row(queue.counts, LETTERS, COUNT)
    m = new_message(state)
    letter = row(queue.messages, m, MESSAGE)
    letter.state = LETTER
    letter.born = queue.now
    letter.bytes = size
    letter.kind = kind
    letter.attempts = 0
    letter.next = NONE
    if queue.dead_drops_tail and (
        queue.dead_count + 1 > queue.dead_messages_max or queue.dead_bytes + size > queue.dead_bytes_max
    ):
        record(state, m, wide(LETTERS), wide(DISCARDED), wide(0), wide(NONE), wide(NONE))
        free_message(state, m)
        return
    if queue.dead_tail == NONE:
        queue.dead_head = m
    else:
        row(queue.messages, queue.dead_tail, MESSAGE).next = m
    queue.dead_tail = m
    queue.dead_count += 1
    queue.dead_bytes += size
    count.work += work_units(size)
    while queue.dead_count > queue.dead_messages_max or queue.dead_bytes > queue.dead_bytes_max:
        drop_letter(state, queue.now, wide(DISCARDED))
    if count.work > count.mark:
        count.mark = count.work


@part
def drop_letter(state: Any, at: int, outcome: int) -> None:
    """Remove the oldest dead letter, as lost at instant `at` with this outcome."""
    queue = row(state, 0, STATE)
    m = queue.dead_head
    letter = row(queue.messages, m, MESSAGE)
    queue.dead_head = letter.next
    if queue.dead_head == NONE:
        queue.dead_tail = NONE
    queue.dead_count -= 1
    queue.dead_bytes -= letter.bytes
    row(queue.counts, LETTERS, COUNT).work -= work_units(letter.bytes)
    record(state, m, wide(LETTERS), outcome, at - letter.born, wide(0), wide(NONE))
    free_message(state, m)


@part
def expire_letters(state: Any) -> None:
    """Expire dead letters whose time to live has passed; each counts at the instant it passed."""
    queue = row(state, 0, STATE)
    while queue.dead_head != NONE:
        due = row(queue.messages, queue.dead_head, MESSAGE).born + queue.dead_life
        if due > queue.now:
            return
        drop_letter(state, due, wide(EXPIRED))


@part
def expire_heads(state: Any, line: int) -> None:
    """Expire messages at the head of a line until the first one's time to live has not passed."""
    queue = row(state, 0, STATE)
    while True:
        m = head_of(state, line)
        if m == NONE or row(queue.messages, m, MESSAGE).due > queue.now:
            return
        unlink_ready(state, m)
        leave_queue(state, m, wide(EXPIRED))


@part
def pull(state: Any, m: int) -> None:
    """Remove a ready message from its line; where messages expire at the head, the next one may do so now."""
    queue = row(state, 0, STATE)
    unlink_ready(state, m)
    if queue.at_head:
        expire_heads(state, row(queue.messages, m, MESSAGE).line)


@part
def make_ready(state: Any, m: int, back: int) -> None:
    """Put a message into its line; if its time to live has passed meanwhile, it expires."""
    queue = row(state, 0, STATE)
    message = row(queue.messages, m, MESSAGE)
    link_ready(state, m, back)
    if message.due <= queue.now:
        if queue.at_head:
            expire_heads(state, message.line)
        else:
            unlink_ready(state, m)
            leave_queue(state, m, wide(EXPIRED))
