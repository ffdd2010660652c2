"""The lists of a compiled integration engine: heaps, slabs, queues by priority and place, threads that are awake."""

from __future__ import annotations

from typing import Any

from qsctl.sim.integration._records import (
    DIRTY,
    ENTRY,
    FOREVER,
    FRAME,
    FREE,
    LINE,
    MESSAGE,
    NONE,
    QUEUE,
    QUEUED,
    STATE,
    VALUE,
    WORKER,
)
from qsctl.sim.kernel.jit import inlined_part, part, row, wide


@inlined_part
def write_entry(
    heap: Any, i: int, time: int, order: int, what: int, subject: int, mark: int, presence: int, path: int, number: int
) -> None:
    """Write an entry of a heap."""
    place = row(heap, i, ENTRY)
    place.time = time
    place.order = order
    place.what = what
    place.subject = subject
    place.mark = mark
    place.presence = presence
    place.path = path
    place.number = number


@part
def sift_up(
    heap: Any, count: int, time: int, order: int, what: int, subject: int, mark: int, presence: int, path: int,
    number: int,
) -> None:  # fmt: skip
    """Add an entry to the `count` there are; of one instant the entry that was made first is first."""
    i = count
    while i > 0:
        parent = (i - 1) >> 1
        above = row(heap, parent, ENTRY)
        if above.time < time or (above.time == time and above.order < order):
            break
        write_entry(
            heap, i, above.time, above.order, above.what, above.subject, above.mark, above.presence, above.path,
            above.number,
        )  # fmt: skip
        i = parent
    write_entry(heap, i, time, order, what, subject, mark, presence, path, number)


@part
def drop_first(heap: Any, count: int) -> None:
    """Remove the earliest of `count` entries."""
    last = row(heap, count - 1, ENTRY)
    time = last.time
    order = last.order
    what = last.what
    subject = last.subject
    mark = last.mark
    presence = last.presence
    path = last.path
    number = last.number
    i = 0
    while True:
        child = 2 * i + 1
        if child >= count - 1:
            break
        below = row(heap, child, ENTRY)
        if child + 1 < count - 1:
            right = row(heap, child + 1, ENTRY)
            if right.time < below.time or (right.time == below.time and right.order < below.order):
                child += 1
                below = right
        if time < below.time or (time == below.time and order < below.order):
            break
        write_entry(
            heap, i, below.time, below.order, below.what, below.subject, below.mark, below.presence, below.path,
            below.number,
        )  # fmt: skip
        i = child
    write_entry(heap, i, time, order, what, subject, mark, presence, path, number)


@part
def after(state: Any, duration: int, what: int, subject: int, mark: int) -> None:
    """Schedule work in the engine after a duration; after an infinite one, never."""
    engine = row(state, 0, STATE)
    if duration >= FOREVER:
        return
    engine.sequence += 1
    sift_up(engine.heap, engine.heap_count, engine.now + duration, engine.sequence, what, subject, mark, 0, 0, 0)
    engine.heap_count += 1


@part
def around(state: Any, duration: int, what: int, thread: int, mid: int, presence: int, path: int, number: int) -> None:
    """Schedule an event outside of the engine after a duration."""
    engine = row(state, 0, STATE)
    engine.world_sequence += 1
    sift_up(
        engine.world, engine.world_count, engine.now + duration, engine.world_sequence, what, thread, mid, presence,
        path, number,
    )  # fmt: skip
    engine.world_count += 1


@inlined_part
def new_message(state: Any) -> int:
    """Return a row for a message; the caller made sure that there is one."""
    engine = row(state, 0, STATE)
    m = engine.message_free
    engine.message_free = row(engine.messages, m, MESSAGE).next
    engine.message_left -= 1
    return int(m)


@inlined_part
def free_message(state: Any, m: int) -> None:
    """Return the row of a message to the list of free rows."""
    engine = row(state, 0, STATE)
    message = row(engine.messages, m, MESSAGE)
    message.state = FREE
    message.flight = 0
    message.written = 0
    message.mid = NONE
    message.held = NONE
    message.next = engine.message_free
    engine.message_free = m
    engine.message_left += 1


@inlined_part
def new_frame(state: Any) -> int:
    """Return a row for a frame; the caller made sure that there is one."""
    engine = row(state, 0, STATE)
    f = engine.frame_free
    engine.frame_free = row(engine.frames, f, FRAME).next
    engine.frame_left -= 1
    return int(f)


@inlined_part
def free_frame(state: Any, f: int) -> None:
    """Return the row of a frame to the list of free rows."""
    engine = row(state, 0, STATE)
    row(engine.frames, f, FRAME).next = engine.frame_free
    engine.frame_free = f
    engine.frame_left += 1


@part
def link(state: Any, m: int, q: int) -> None:
    """Put a message into a queue, at its place among those of its priority."""
    engine = row(state, 0, STATE)
    messages = engine.messages
    message = row(messages, m, MESSAGE)
    line = row(engine.lines, q * engine.rank_count + message.rank, LINE)
    message.state = QUEUED
    message.queue = q
    after_it = NONE
    if line.tail != NONE and row(messages, line.tail, MESSAGE).position > message.position:
        after_it = line.head
        while row(messages, after_it, MESSAGE).position < message.position:
            after_it = row(messages, after_it, MESSAGE).next
    message.next = after_it
    if after_it == NONE:
        message.before = line.tail
        line.tail = m
    else:
        following = row(messages, after_it, MESSAGE)
        message.before = following.before
        following.before = m
    if message.before == NONE:
        line.head = m
    else:
        row(messages, message.before, MESSAGE).next = m
    row(engine.queues, q, QUEUE).count += 1


@inlined_part
def head_of(state: Any, q: int) -> int:
    """Return the first message of a queue; NONE where the queue is empty."""
    engine = row(state, 0, STATE)
    found = NONE
    if row(engine.queues, q, QUEUE).count:
        place = q * engine.rank_count
        while row(engine.lines, place, LINE).head == NONE:
            place += 1
        found = row(engine.lines, place, LINE).head
    return int(found)


@part
def unlink(state: Any, m: int) -> None:
    """Unlink a message from its queue."""
    engine = row(state, 0, STATE)
    message = row(engine.messages, m, MESSAGE)
    line = row(engine.lines, message.queue * engine.rank_count + message.rank, LINE)
    if message.before == NONE:
        line.head = message.next
    else:
        row(engine.messages, message.before, MESSAGE).next = message.next
    if message.next == NONE:
        line.tail = message.before
    else:
        row(engine.messages, message.next, MESSAGE).before = message.before
    row(engine.queues, message.queue, QUEUE).count -= 1


@inlined_part
def wake(state: Any, w: int) -> None:
    """List a thread among those that look for work at this instant."""
    engine = row(state, 0, STATE)
    worker = row(engine.workers, w, WORKER)
    if not worker.awake:
        worker.awake = 1
        size = engine.thread_count + engine.process_count
        place = engine.awake_first + engine.awake_count
        if place >= size:
            place -= size
        row(engine.awake, place, VALUE).value = w
        engine.awake_count += 1


@inlined_part
def next_awake(state: Any) -> int:
    """Return the next thread that is to look for work; the caller made sure that there is one."""
    engine = row(state, 0, STATE)
    w = row(engine.awake, engine.awake_first, VALUE).value
    engine.awake_first += 1
    if engine.awake_first == engine.thread_count + engine.process_count:
        engine.awake_first = 0
    engine.awake_count -= 1
    row(engine.workers, w, WORKER).awake = 0
    return int(w)


@part
def depart(state: Any, w: int, m: int, receiver: int) -> None:
    """Note that a message is on its way from a thread to another."""
    engine = row(state, 0, STATE)
    worker = row(engine.workers, w, WORKER)
    message = row(engine.messages, m, MESSAGE)
    engine.next_flight += 1
    message.flight = engine.next_flight
    message.receiver = receiver
    message.next = NONE
    message.before = worker.flight_tail
    if worker.flight_tail == NONE:
        worker.flight_head = m
    else:
        row(engine.messages, worker.flight_tail, MESSAGE).next = m
    worker.flight_tail = m


@part
def land(state: Any, w: int, m: int) -> None:
    """Note that a message is no longer on its way."""
    engine = row(state, 0, STATE)
    worker = row(engine.workers, w, WORKER)
    message = row(engine.messages, m, MESSAGE)
    message.flight = 0
    if message.before == NONE:
        worker.flight_head = message.next
    else:
        row(engine.messages, message.before, MESSAGE).next = message.next
    if message.next == NONE:
        worker.flight_tail = message.before
    else:
        row(engine.messages, message.next, MESSAGE).before = message.before


@part
def list_dirty(state: Any, p: int, d: int) -> None:
    """List a queue to a destination among those that the process's translation thread checks when it works next."""
    engine = row(state, 0, STATE)
    worker = row(engine.workers, engine.thread_count + p, WORKER)
    base = p * engine.thread_count
    place = row(engine.dirty, base + d, DIRTY)
    if place.listed:
        return
    place.listed = 1
    order = row(engine.queues, engine.post_base + base + d, QUEUE).order
    before = wide(NONE)
    following = wide(worker.dirty_head)
    while following != NONE and row(engine.queues, engine.post_base + base + following, QUEUE).order < order:
        before = following
        following = wide(row(engine.dirty, base + following, DIRTY).next)
    place.next = following
    if before == NONE:
        worker.dirty_head = d
    else:
        row(engine.dirty, base + before, DIRTY).next = d


@part
def drop_verdicts(state: Any, w: int) -> None:
    """Discard the results of the procedures that a thread runs."""
    worker = row(row(state, 0, STATE).workers, w, WORKER)
    while worker.verdict_head != NONE:
        f = worker.verdict_head
        worker.verdict_head = row(row(state, 0, STATE).frames, f, FRAME).next
        free_frame(state, f)
    worker.verdict_tail = NONE
    worker.verdicts = 0


@part
def drop_job(state: Any, w: int) -> None:
    """Free the frames of a thread's job and discard the results of its procedures."""
    worker = row(row(state, 0, STATE).workers, w, WORKER)
    while worker.frame != NONE:
        f = worker.frame
        worker.frame = row(row(state, 0, STATE).frames, f, FRAME).next
        free_frame(state, f)
    drop_verdicts(state, w)
