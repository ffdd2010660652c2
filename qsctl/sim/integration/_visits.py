"""Visits of messages to the queues of a compiled integration engine, counted and logged.

The rules are those of `sim.engine.visit_log`, which folds the events of the engine in Python into the same rows.
"""

from __future__ import annotations

from typing import Any

from qsctl.eventlog.columns import WORK_UNIT_SHIFT
from qsctl.sim.integration._lists import free_message, head_of, link, list_dirty, unlink
from qsctl.sim.integration._records import (
    AT_WORK,
    BACKED,
    BUCKET,
    COUNT,
    DELIVERED,
    DISCARDED,
    DONE,
    ELIDED,
    FAILED,
    INTERRUPTED,
    LOST,
    MESSAGE,
    NONE,
    PASSED,
    QUEUE,
    STATE,
    VALUE,
)
from qsctl.sim.kernel.histogram import bucket_of
from qsctl.sim.kernel.jit import inlined_part, part, row, wide
from qsctl.sim.kernel.records import (
    EVENT_ROW,
    FIRST_HALF,
    LOG_WORDS,
    OUTCOME_SHIFT,
    QUEUE_SHIFT,
    SECOND_HALF,
)

BUCKETS = 7296
"""`eventlog.schema.BUCKET_COUNT`; a test holds them equal."""


@inlined_part
def units(size: int) -> int:
    """Return the work units of a message of this length."""
    return max(wide(1), (size + (1 << WORK_UNIT_SHIFT) - 1) >> WORK_UNIT_SHIFT)


@part
def end_visit(state: Any, m: int, wait: int, outcome: int, acknowledge: int) -> None:
    """Count and log a visit of a message: to the queue where it is, or to the last one that it was in."""
    engine = row(state, 0, STATE)
    message = row(engine.messages, m, MESSAGE)
    key = row(engine.queues, message.queue, QUEUE).key
    count = row(engine.counts, key, COUNT)
    entered = message.entered
    size = message.bytes
    if entered >= engine.warm_up:
        count.arrived += 1
    left = entered + wait
    if left >= engine.warm_up:
        if outcome == DELIVERED:
            count.delivered += 1
            count.bytes += size
            count.wait_sum += wait
            if wait > count.wait_max:
                count.wait_max = wait
            row(engine.buckets, key * BUCKETS + bucket_of(wait), BUCKET).messages += 1
            if acknowledge != NONE:
                count.done += 1
                count.done_sum += acknowledge
                if acknowledge > count.done_max:
                    count.done_max = acknowledge
                row(engine.done, count.last * BUCKETS + bucket_of(acknowledge), BUCKET).messages += 1
        elif outcome == DISCARDED:
            count.discarded += 1
            if count.first_discard == NONE or left < count.first_discard:
                count.first_discard = left
        else:
            count.elided += 1
    if engine.logging:
        written = row(engine.log, engine.log_count, LOG_WORDS)
        engine.log_count += 1
        written.enqueued_ns = entered
        written.enter_ns = 0
        written.wait_ns = wait
        written.send_ns = NONE
        written.acknowledge_ns = acknowledge
        written.client_topic = count.client << FIRST_HALF
        attempts = wide(1) if outcome == DELIVERED else wide(0)
        written.size_attempts = (size << FIRST_HALF) | (attempts << SECOND_HALF)
        written.fate = (count.stage << QUEUE_SHIFT) | (outcome << OUTCOME_SHIFT)


@inlined_part
def end_written(state: Any, m: int, acknowledged: int) -> None:
    """Log a visit to the last queue, if the message was written to a connection and is not acknowledged yet."""
    engine = row(state, 0, STATE)
    message = row(engine.messages, m, MESSAGE)
    if message.written:
        message.written = 0
        end_visit(
            state, m, message.wait, wide(DELIVERED), acknowledged - message.entered if acknowledged != NONE else NONE
        )


@part
def put(state: Any, m: int, q: int) -> None:
    """Put a message into a queue: its visit begins."""
    engine = row(state, 0, STATE)
    message = row(engine.messages, m, MESSAGE)
    end_written(state, m, wide(NONE))
    if message.live == 0:
        engine.next_live += 1
        message.live = engine.next_live
    link(state, m, q)
    engine.next_visit += 1
    message.visit = engine.next_visit
    message.entered = engine.now
    count = row(engine.counts, row(engine.queues, q, QUEUE).key, COUNT)
    count.touched = 1
    count.work += units(message.bytes)
    if count.work > count.mark:
        count.mark = count.work


@part
def leave(state: Any, m: int, fate: int) -> None:
    """End a message's visit to its queue."""
    engine = row(state, 0, STATE)
    message = row(engine.messages, m, MESSAGE)
    message.state = AT_WORK
    count = row(engine.counts, row(engine.queues, message.queue, QUEUE).key, COUNT)
    count.work -= units(message.bytes)
    wait = engine.now - message.entered
    if fate == PASSED and count.last != NONE:
        message.written = 1
        message.wait = wait
        engine.next_visit += 1
        message.visit = engine.next_visit
    elif fate == PASSED:
        end_visit(state, m, wait, wide(DELIVERED), wide(NONE))
    elif fate == INTERRUPTED:
        end_visit(state, m, wait, wide(ELIDED), wide(NONE))
    else:
        end_visit(state, m, wait, wide(DISCARDED), wide(NONE))


@part
def take(state: Any, q: int) -> int:
    """Remove the next message of a queue, and return it; NONE if the queue is empty."""
    m = head_of(state, q)
    if m != NONE:
        unlink(state, m)
        leave(state, m, wide(PASSED))
    return m


@part
def forget(state: Any, m: int, fate: int) -> None:
    """Note that a message is no longer in memory; its row is not freed."""
    engine = row(state, 0, STATE)
    message = row(engine.messages, m, MESSAGE)
    end_written(state, m, engine.now if fate == DONE else wide(NONE))
    if fate == FAILED:
        client = row(engine.counts, row(engine.queues, message.queue, QUEUE).key, COUNT).client
        row(engine.failed, client, VALUE).value += 1
    elif fate == LOST:
        engine.lost += 1
    message.live = 0


@part
def end(state: Any, m: int, fate: int) -> None:
    """Remove a message from memory and from the recovery database."""
    forget(state, m, fate)
    free_message(state, m)


@part
def note(state: Any, kind: int, client: int, value: int) -> None:
    """Append a row to the events of the engine."""
    engine = row(state, 0, STATE)
    event = row(engine.events, engine.event_count, EVENT_ROW)
    engine.event_count += 1
    event.at_ns = engine.now
    event.value = value
    event.client_id = client
    event.queue = -1
    event.event = kind


@part
def warm_up(state: Any) -> None:
    """Restart the statistics after the warm-up; the state of the engine is kept."""
    engine = row(state, 0, STATE)
    engine.warm = 1
    for key in range(engine.key_count):
        count = row(engine.counts, key, COUNT)
        count.mark = count.work


@part
def enter(state: Any, m: int, q: int) -> None:
    """Put a message at the end of a queue; if the queue is backed, store its new version in the database."""
    engine = row(state, 0, STATE)
    message = row(engine.messages, m, MESSAGE)
    engine.next_place += 1
    message.position = engine.next_place
    if message.traits & BACKED:
        message.stored = 1
    put(state, m, q)


@inlined_part
def to_front(state: Any, m: int, q: int) -> None:
    """Give a message a place before the first one of a queue, with that one's priority unless its own is higher."""
    engine = row(state, 0, STATE)
    message = row(engine.messages, m, MESSAGE)
    first = head_of(state, q)
    if first != NONE:
        message.rank = min(message.rank, row(engine.messages, first, MESSAGE).rank)
    engine.next_front -= 1
    message.position = engine.next_front


@part
def enter_post(state: Any, m: int, p: int) -> None:
    """Put a message into the post-translation queue of its destination."""
    engine = row(state, 0, STATE)
    d = row(engine.messages, m, MESSAGE).destination
    q = engine.post_base + p * engine.thread_count + d
    queue = row(engine.queues, q, QUEUE)
    if queue.order == 0:
        engine.next_order += 1
        queue.order = engine.next_order
    enter(state, m, q)
    list_dirty(state, p, d)
