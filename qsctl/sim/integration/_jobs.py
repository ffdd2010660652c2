"""The jobs of an integration engine's threads: procedures over a message, and route details of a source.

Decides: in which order the steps of a job come. What is left of a job is a stack of frames; each call of `step` does
the one on top, so that the kernel can return between any two. A frame that takes time is left on the stack until it is
over. The rules are those of `core.integration`: `procedures`, `tps`, `translation` and `translation_thread`.
"""

from __future__ import annotations

from typing import Any

from qsctl.sim.integration._labels import duration, filled, path_with
from qsctl.sim.integration._lists import (
    after,
    drop_job,
    drop_verdicts,
    free_frame,
    free_message,
    head_of,
    new_frame,
    new_message,
    unlink,
    wake,
)
from qsctl.sim.integration._records import (
    ABANDONED,
    ACT,
    AFTER_POST,
    AFTER_PRE,
    AFTER_TPS,
    ALL_DETAILS,
    AT_WORK,
    BACKED,
    CHANGE,
    COLLECT,
    CONTINUE,
    DETAIL,
    DETAILS,
    DONE,
    ERROR,
    FAIL,
    FAILED,
    FOREVER,
    FRAME,
    GOES_ON,
    GROW,
    IDLE,
    INBOUND_POST,
    INBOUND_PRE,
    KEY_MISSING,
    KILL,
    KILLREPLY,
    LINE,
    LOOP,
    MESSAGE,
    NONE,
    OF_THREAD,
    OF_TRANSLATION,
    OTHER,
    OUTBOUND_POST,
    OUTBOUND_PRE,
    OVER,
    PARTIAL,
    PASS,
    PASSED,
    PAST_TRANSLATION,
    PRE_TRANSLATION,
    PROCEDURE,
    PROTO,
    REPLY,
    REROUTE,
    REROUTED,
    RETRY,
    ROUTE_DETAIL,
    RUN,
    SEND,
    SKIP,
    SPLIT,
    STATE,
    THREAD,
    TRANSLATE,
    TRANSLATION,
    VALUE,
    VERDICT,
    WORKER,
)
from qsctl.sim.integration._visits import end, enter_post, forget, leave, put, take, to_front
from qsctl.sim.kernel.jit import inlined_part, part, row, wide

STEPPED = 0
"""The job was stepped, or is over."""


@part
def push_frame(state: Any, w: int, what: int) -> int:
    """Return a new frame on top of a thread's stack."""
    engine = row(state, 0, STATE)
    worker = row(engine.workers, w, WORKER)
    f = new_frame(state)
    frame = row(engine.frames, f, FRAME)
    frame.next = worker.frame
    frame.what = what
    frame.at = 0
    frame.end = 0
    frame.recoverable = 0
    frame.disposition = CONTINUE
    frame.slept = 0
    worker.frame = f
    return f


@inlined_part
def content_of(state: Any, f: int, m: int) -> None:
    """Copy the content fields of a message to a frame."""
    engine = row(state, 0, STATE)
    frame = row(engine.frames, f, FRAME)
    message = row(engine.messages, m, MESSAGE)
    frame.path = message.path
    frame.bytes = message.bytes
    frame.transaction = message.transaction
    frame.destination = message.destination


@inlined_part
def same_content(state: Any, f: int, other: int) -> None:
    """Copy the content fields of another frame to a frame."""
    engine = row(state, 0, STATE)
    frame = row(engine.frames, f, FRAME)
    given = row(engine.frames, other, FRAME)
    frame.path = given.path
    frame.bytes = given.bytes
    frame.transaction = given.transaction
    frame.destination = given.destination
    frame.recoverable = given.recoverable


@part
def begin_tps(state: Any, t: int, m: int, first: int, last: int) -> None:
    """Start the procedures of a protocol thread on a message: those from `first` to `last` (exclusive)."""
    engine = row(state, 0, STATE)
    worker = row(engine.workers, t, WORKER)
    engine.next_job += 1
    worker.job = engine.next_job
    worker.message = m
    push_frame(state, t, wide(AFTER_TPS))
    f = push_frame(state, t, wide(RUN))
    content_of(state, f, m)
    frame = row(engine.frames, f, FRAME)
    frame.at = first
    frame.end = last
    engine.stepping = t


@part
def begin_translation(state: Any, w: int, m: int, first: int, last: int) -> None:
    """Start the route details of a translation thread on a message; `first` is NONE for a message without route."""
    engine = row(state, 0, STATE)
    worker = row(engine.workers, w, WORKER)
    engine.next_job += 1
    worker.job = engine.next_job
    worker.message = m
    worker.failures = 0
    worker.given = 0
    worker.detail = first
    worker.detail_end = last
    engine.stepping = w
    if first == NONE:
        fail_all(state, w)
    else:
        push_frame(state, w, wide(DETAILS))


@inlined_part
def fail(state: Any, m: int) -> None:
    """Move a message to the error database."""
    end(state, m, wide(FAILED))


@part
def throw_away(state: Any, q: int) -> None:
    """Abandon all messages of a queue of results."""
    while True:
        m = head_of(state, q)
        if m == NONE:
            break
        unlink(state, m)
        leave(state, m, wide(ABANDONED))
        end(state, m, wide(ABANDONED))


@part
def fail_all(state: Any, w: int) -> None:
    """Fail a message, with all its route details."""
    engine = row(state, 0, STATE)
    worker = row(engine.workers, w, WORKER)
    drop_job(state, w)
    base = engine.translation_base + (w - engine.thread_count) * OF_TRANSLATION
    throw_away(state, base + ROUTE_DETAIL)
    throw_away(state, base + PARTIAL)
    fail(state, worker.message)
    worker.message = NONE


@part
def fail_detail(state: Any, w: int) -> None:
    """Fail the route detail in progress; the other details continue."""
    engine = row(state, 0, STATE)
    worker = row(engine.workers, w, WORKER)
    while row(engine.frames, worker.frame, FRAME).what != DETAILS:
        f = worker.frame
        worker.frame = row(engine.frames, f, FRAME).next
        free_frame(state, f)
    drop_verdicts(state, w)
    throw_away(state, engine.translation_base + (w - engine.thread_count) * OF_TRANSLATION + ROUTE_DETAIL)
    worker.failures += 1
    worker.given = 0
    worker.detail += 1


@part
def sleep(state: Any, w: int, f: int, length: int) -> None:
    """Suspend the job of a thread for a duration; it continues with this frame."""
    engine = row(state, 0, STATE)
    row(engine.frames, f, FRAME).slept = 1
    after(state, length, wide(GOES_ON), w, row(engine.workers, w, WORKER).job)
    engine.stepping = NONE


@part
def step(state: Any, w: int) -> int:
    """Do the next step of a thread's job; return STEPPED, or why the kernel must stop."""
    engine = row(state, 0, STATE)
    worker = row(engine.workers, w, WORKER)
    f = worker.frame
    if f == NONE:
        worker.job = 0
        engine.stepping = NONE
        wake(state, w)
        return STEPPED
    frame = row(engine.frames, f, FRAME)
    what = frame.what
    if what == RUN:
        return run(state, w, f)
    if what == TRANSLATE:
        return translate(state, w, f)
    if what == AFTER_TPS:
        if engine.message_left < worker.verdicts + 2:
            return GROW
        pop_frame(state, w)
        end_tps(state, w)
    elif what in (AFTER_PRE, AFTER_POST):
        pop_frame(state, w)
        act_on_verdicts(state, w, what)
    elif what == ACT:
        act(state, w, f)
    elif what == COLLECT:
        if engine.message_left < engine.destinations_max + 2:
            return GROW
        collect(state, w, f)
    elif what == DETAILS:
        next_detail(state, w)
    elif frame.slept:
        pop_frame(state, w)
    else:
        length = row(engine.threads, w, THREAD).tps_retry_interval
        if length > 0:
            sleep(state, w, f, length)
        else:
            pop_frame(state, w)
    return STEPPED


@inlined_part
def pop_frame(state: Any, w: int) -> None:
    """Remove the top frame of a thread's stack."""
    engine = row(state, 0, STATE)
    worker = row(engine.workers, w, WORKER)
    f = worker.frame
    worker.frame = row(engine.frames, f, FRAME).next
    free_frame(state, f)


@part
def conclude(state: Any, w: int, disposition: int) -> None:
    """Make the top frame a result of the procedures in progress, with this disposition."""
    engine = row(state, 0, STATE)
    worker = row(engine.workers, w, WORKER)
    f = worker.frame
    frame = row(engine.frames, f, FRAME)
    worker.frame = frame.next
    frame.next = NONE
    frame.what = VERDICT
    frame.disposition = disposition
    if worker.verdict_tail == NONE:
        worker.verdict_head = f
    else:
        row(engine.frames, worker.verdict_tail, FRAME).next = f
    worker.verdict_tail = f
    worker.verdicts += 1


@part
def run(state: Any, w: int, f: int) -> int:
    """Run the next procedure of a frame's list."""
    engine = row(state, 0, STATE)
    worker = row(engine.workers, w, WORKER)
    frame = row(engine.frames, f, FRAME)
    if frame.at == frame.end:
        conclude(state, w, wide(CONTINUE))
        return STEPPED
    message = row(engine.messages, worker.message, MESSAGE)
    number = message.number
    procedure = row(engine.procedures, frame.at, PROCEDURE)
    does = wide(procedure.does)
    if number % procedure.every != 0:
        does = wide(PASS)
    if not frame.slept:
        length = wide(FOREVER)
        if does != LOOP:
            length = duration(state, procedure.draws, procedure.takes, frame.path, number, wide(0))
        if length == NONE:
            return KEY_MISSING
        if length > 0:
            sleep(state, w, f, length)
            return STEPPED
    frame.slept = 0
    if does == FAIL:
        if w >= engine.thread_count:
            fail_all(state, w)
        else:
            m = worker.message
            worker.message = NONE
            drop_job(state, w)
            fail(state, m)
        return STEPPED
    if does == RETRY and message.attempts < procedure.times:
        conclude(state, w, wide(RETRY))
        return STEPPED
    frame.recoverable |= procedure.recoverable
    if does in (PASS, RETRY, LOOP):
        frame.at += 1
    elif does == CHANGE:
        frame.path = path_with(state, frame.path, procedure.step)
        frame.bytes = filled(state, frame.path, number, frame.bytes)
        frame.at += 1
    elif does == SPLIT:
        split(state, w, f, procedure.results, number)
    else:
        if procedure.destination != NONE:
            frame.destination = procedure.destination
        if procedure.transaction != 0:
            frame.transaction = procedure.transaction
        if does == REROUTE:
            frame.path = path_with(state, frame.path, procedure.step)
            frame.bytes = filled(state, frame.path, number, frame.bytes)
        conclude(state, w, does)
    return STEPPED


@part
def split(state: Any, w: int, f: int, results: int, number: int) -> None:
    """Make several messages of the one that a procedure received; each continues with the next procedure."""
    engine = row(state, 0, STATE)
    worker = row(engine.workers, w, WORKER)
    frame = row(engine.frames, f, FRAME)
    worker.frame = frame.next
    at = frame.at
    last = frame.end
    for place in range(results):
        each = push_frame(state, w, wide(RUN))
        same_content(state, each, f)
        made = row(engine.frames, each, FRAME)
        made.at = at + 1
        made.end = last
        made.path = path_with(state, frame.path, results - 1 - place)
        made.bytes = filled(state, made.path, number, frame.bytes)
    free_frame(state, f)


@part
def translate(state: Any, w: int, f: int) -> int:
    """Do the next step of a translation."""
    engine = row(state, 0, STATE)
    worker = row(engine.workers, w, WORKER)
    frame = row(engine.frames, f, FRAME)
    number = row(engine.messages, worker.message, MESSAGE).number
    translation = row(engine.translations, frame.at, TRANSLATION)
    place = frame.end
    fails = wide(1) if translation.error_every > 0 and number % translation.error_every == 0 else wide(0)
    if place >= translation.results + fails:
        pop_frame(state, w)
        return STEPPED
    if not frame.slept:
        length = duration(state, translation.draws, translation.takes, frame.path, number, place)
        if length == NONE:
            return KEY_MISSING
        if length > 0:
            sleep(state, w, f, length)
            return STEPPED
    frame.slept = 0
    frame.end = place + 1
    if fails and place == min(translation.error_after, translation.results):
        if translation.reach == ALL_DETAILS:
            fail_all(state, w)
        elif translation.reach != SKIP:
            fail_detail(state, w)
        return STEPPED
    made = place - 1 if fails and place > translation.error_after else place
    detail = row(engine.details, worker.detail, DETAIL)
    if frame.at + 1 == detail.translation_end:
        push_frame(state, w, wide(AFTER_POST))
    each = push_frame(state, w, wide(RUN))
    same_content(state, each, f)
    child = row(engine.frames, each, FRAME)
    child.path = path_with(state, frame.path, made)
    child.bytes = filled(state, child.path, number, frame.bytes)
    if frame.at + 1 == detail.translation_end:
        child.at = detail.post
        child.end = detail.post_end
    else:
        child.what = TRANSLATE
        child.at = frame.at + 1
        child.end = 0
    return STEPPED


@part
def act_on_verdicts(state: Any, w: int, what: int) -> None:
    """Check the results of a route detail's procedures, and schedule the next step of each in their order."""
    engine = row(state, 0, STATE)
    worker = row(engine.workers, w, WORKER)
    f = worker.verdict_head
    while f != NONE:
        frame = row(engine.frames, f, FRAME)
        disposition = frame.disposition
        if disposition in (OVER, PROTO):
            drop_job(state, w)
            place = (engine.panic_first + engine.panic_count) % engine.process_count
            row(engine.panics, place, VALUE).value = w - engine.thread_count
            engine.panic_count += 1
            return
        if disposition in (ERROR, RETRY, KILLREPLY):
            fail_all(state, w)
            return
        frame.what = ACT if what == AFTER_PRE else COLLECT
        f = frame.next
    row(engine.frames, worker.verdict_tail, FRAME).next = worker.frame
    worker.frame = worker.verdict_head
    worker.verdict_head = NONE
    worker.verdict_tail = NONE
    worker.verdicts = 0


@part
def act(state: Any, w: int, f: int) -> None:
    """Choose what follows for a result of pre-procedures: translation, post-procedures, or its collection."""
    engine = row(state, 0, STATE)
    worker = row(engine.workers, w, WORKER)
    frame = row(engine.frames, f, FRAME)
    detail = row(engine.details, worker.detail, DETAIL)
    if frame.disposition != CONTINUE:
        frame.what = COLLECT
    elif detail.translation < detail.translation_end:
        frame.what = TRANSLATE
        frame.at = detail.translation
        frame.end = 0
        frame.slept = 0
    else:
        worker.frame = frame.next
        push_frame(state, w, wide(AFTER_POST))
        frame.next = worker.frame
        worker.frame = f
        frame.what = RUN
        frame.at = detail.post
        frame.end = detail.post_end
        frame.slept = 0


@part
def collect(state: Any, w: int, f: int) -> None:
    """Put a result of a route detail into the route-detail queue, once for each destination."""
    engine = row(state, 0, STATE)
    worker = row(engine.workers, w, WORKER)
    frame = row(engine.frames, f, FRAME)
    source = row(engine.messages, worker.message, MESSAGE)
    detail = row(engine.details, worker.detail, DETAIL)
    disposition = frame.disposition
    if disposition == KILL:
        pop_frame(state, w)
        return
    first = wide(detail.destination)
    last = wide(detail.destination_end)
    if disposition != CONTINUE:
        first = wide(0)
        last = wide(1)
    is_lost = first == last
    if disposition == REROUTE:
        is_lost = source.turns >= engine.turns_max
    elif disposition == SEND:
        is_lost = frame.destination == NONE
    if is_lost:
        fail_all(state, w)
        return
    q = engine.translation_base + (w - engine.thread_count) * OF_TRANSLATION + ROUTE_DETAIL
    for place in range(first, last):
        d = wide(NONE)
        if disposition == SEND:
            d = wide(frame.destination)
        elif disposition == CONTINUE:
            d = wide(row(engine.values, place, VALUE).value)
        m = copied(state, worker.message)
        message = row(engine.messages, m, MESSAGE)
        message.path = frame.path
        message.bytes = frame.bytes
        message.transaction = frame.transaction
        message.destination = d
        message.derived = source.stored
        if frame.recoverable:
            message.traits |= BACKED
        if disposition == REROUTE:
            message.traits |= REROUTED
        engine.next_place += 1
        message.position = engine.next_place
        put(state, m, q)
    pop_frame(state, w)


@part
def copied(state: Any, m: int) -> int:
    """Return a new message that is a copy of another one."""
    engine = row(state, 0, STATE)
    made = new_message(state)
    message = row(engine.messages, m, MESSAGE)
    new = row(engine.messages, made, MESSAGE)
    engine.next_mid += 1
    engine.next_held += 1
    new.mid = engine.next_mid
    new.held = engine.next_held
    new.state = AT_WORK
    new.queue = message.queue
    new.rank = message.rank
    new.position = message.position
    new.path = message.path
    new.number = message.number
    new.bytes = message.bytes
    new.transaction = message.transaction
    new.destination = message.destination
    new.source = message.source
    new.kind = message.kind
    new.traits = message.traits
    new.stored = 0
    new.derived = 0
    new.attempts = 0
    new.turns = message.turns
    new.written = 0
    new.flight = 0
    new.live = 0
    return made


@part
def next_detail(state: Any, w: int) -> None:
    """Move the results of the finished route detail to the partial queue, and begin the next detail, or commit."""
    engine = row(state, 0, STATE)
    worker = row(engine.workers, w, WORKER)
    base = engine.translation_base + (w - engine.thread_count) * OF_TRANSLATION
    if worker.given:
        while True:
            m = take(state, base + ROUTE_DETAIL)
            if m == NONE:
                break
            message = row(engine.messages, m, MESSAGE)
            engine.next_place += 1
            message.position = engine.next_place
            if message.derived and message.traits & BACKED:
                message.stored = 1
            put(state, m, base + PARTIAL)
        worker.given = 0
        worker.detail += 1
    if worker.detail == worker.detail_end:
        pop_frame(state, w)
        commit(state, w)
        return
    worker.given = 1
    detail = row(engine.details, worker.detail, DETAIL)
    push_frame(state, w, wide(AFTER_PRE))
    f = push_frame(state, w, wide(RUN))
    content_of(state, f, worker.message)
    frame = row(engine.frames, f, FRAME)
    frame.at = detail.pre
    frame.end = detail.pre_end


@part
def commit(state: Any, w: int) -> None:
    """Remove a source from the recovery database, then distribute its results."""
    engine = row(state, 0, STATE)
    worker = row(engine.workers, w, WORKER)
    p = w - engine.thread_count
    base = engine.translation_base + p * OF_TRANSLATION
    if worker.failures:
        fail(state, worker.message)
    else:
        end(state, worker.message, wide(OTHER))
    worker.message = NONE
    m = head_of(state, base + PARTIAL)
    if m != NONE:
        line = row(engine.lines, (base + PARTIAL) * engine.rank_count + row(engine.messages, m, MESSAGE).rank, LINE)
        while m != NONE:
            message = row(engine.messages, m, MESSAGE)
            following = message.next
            if not message.traits & REROUTED:
                unlink(state, m)
                leave(state, m, wide(PASSED))
                enter_post(state, m, p)
            m = following
        m = wide(line.tail)
        while m != NONE:
            message = row(engine.messages, m, MESSAGE)
            following = message.before
            unlink(state, m)
            leave(state, m, wide(PASSED))
            to_front(state, m, base + PRE_TRANSLATION)
            message.traits &= ~REROUTED
            message.turns += 1
            if message.traits & BACKED:
                message.stored = 1
            put(state, m, base + PRE_TRANSLATION)
            m = wide(following)
    wake(state, w)


@part
def end_wait(state: Any, t: int) -> None:
    """End a thread's wait for a reply: the message that the reply answers is delivered."""
    engine = row(state, 0, STATE)
    thread = row(engine.threads, t, THREAD)
    m = thread.reserved
    thread.reserved = NONE
    if m != NONE:
        end(state, m, wide(DONE))
        wake(state, t)


@part
def end_tps(state: Any, t: int) -> None:
    """Carry out the dispositions of a message after the procedures of a protocol thread."""
    engine = row(state, 0, STATE)
    worker = row(engine.workers, t, WORKER)
    thread = row(engine.threads, t, THREAD)
    m = worker.message
    worker.message = NONE
    message = row(engine.messages, m, MESSAGE)
    is_inbound = worker.queue == t * OF_THREAD + INBOUND_PRE
    is_reply = is_inbound and message.kind == REPLY
    f = worker.verdict_head
    is_retried = False
    while f != NONE:
        frame = row(engine.frames, f, FRAME)
        is_retried = is_retried or frame.disposition == RETRY
        f = frame.next
    if is_retried:
        drop_verdicts(state, t)
        if 0 <= thread.tps_retries <= message.attempts:
            fail(state, m)
            return
        message.attempts += 1
        put(state, m, worker.queue)
        push_frame(state, t, wide(IDLE))
        return
    if is_reply:
        answer(state, t)
    kept = wide(0)
    f = worker.verdict_head
    while f != NONE:
        frame = row(engine.frames, f, FRAME)
        if frame.disposition == KILL or (is_reply and frame.disposition == KILLREPLY):
            frame.disposition = KILL
        else:
            kept += 1
        f = frame.next
    if kept == 0:
        end(state, m, wide(OTHER))
    else:
        dispose(state, t, m, is_inbound)
    drop_verdicts(state, t)
    wake(state, t)


@part
def answer(state: Any, t: int) -> None:
    """Send a reply whose disposition is CONTINUE to the thread that sent the message it answers; else it fails."""
    engine = row(state, 0, STATE)
    worker = row(engine.workers, t, WORKER)
    reserved = row(engine.threads, t, THREAD).reserved
    target = wide(NONE)
    if reserved != NONE:
        target = wide(row(engine.messages, reserved, MESSAGE).source)
        if not row(engine.threads, target, THREAD).outbound:
            target = wide(NONE)
    ends = False
    f = worker.verdict_head
    while f != NONE:
        frame = row(engine.frames, f, FRAME)
        if frame.disposition == CONTINUE:
            if target == NONE:
                frame.disposition = ERROR
            else:
                frame.disposition = SEND
                frame.destination = target
        ends = ends or frame.disposition == SEND or frame.disposition == KILLREPLY
        f = frame.next
    if ends:
        end_wait(state, t)


@part
def dispose(state: Any, t: int, m: int, is_inbound: bool) -> None:
    """Send each result of a message to its destination; a result without one fails."""
    engine = row(state, 0, STATE)
    worker = row(engine.workers, t, WORKER)
    thread = row(engine.threads, t, THREAD)
    source = row(engine.messages, m, MESSAGE)
    base = t * OF_THREAD
    is_same = worker.verdicts == 1
    first = wide(NONE)
    latest = wide(NONE)
    f = worker.verdict_head
    while f != NONE:
        frame = row(engine.frames, f, FRAME)
        f = frame.next
        disposition = frame.disposition
        if disposition == KILL:
            continue
        made = m if is_same else copied(state, m)
        message = row(engine.messages, made, MESSAGE)
        if is_same and (
            frame.path != source.path or frame.bytes != source.bytes or frame.transaction != source.transaction
        ):
            message.stored = 0
        message.path = frame.path
        message.bytes = frame.bytes
        message.transaction = frame.transaction
        message.destination = frame.destination
        if frame.recoverable:
            message.traits |= BACKED
        q = wide(NONE)
        if disposition == CONTINUE:
            q = base + (INBOUND_POST if is_inbound else OUTBOUND_POST)
        elif disposition == SEND:
            if frame.destination != NONE and row(engine.threads, frame.destination, THREAD).outbound:
                q = wide(base + INBOUND_POST)
        elif disposition == OVER:
            if message.turns < engine.turns_max:
                if is_inbound and thread.outbound:
                    is_bare = thread.procedures_out == thread.procedures_out_end
                    q = wide(base + (OUTBOUND_POST if is_bare else OUTBOUND_PRE))
                elif not is_inbound and thread.inbound:
                    is_bare = thread.procedures_in == thread.procedures_in_end
                    q = wide(base + (INBOUND_POST if is_bare else INBOUND_PRE))
        elif disposition == PROTO and thread.outbound:
            q = wide(base + OUTBOUND_POST)
        if q == NONE:
            fail(state, made)
            continue
        if disposition == PROTO:
            to_front(state, made, q)
        else:
            engine.next_place += 1
            message.position = engine.next_place
        if disposition == OVER:
            message.turns += 1
        if disposition == SEND:
            message.traits |= PAST_TRANSLATION
        if message.traits & BACKED:
            message.stored = 1
        message.receiver = q
        message.next = NONE
        if latest == NONE:
            first = made
        else:
            row(engine.messages, latest, MESSAGE).next = made
        latest = made
    if not is_same:
        forget(state, m, wide(OTHER))
        free_message(state, m)
    while first != NONE:
        following = wide(row(engine.messages, first, MESSAGE).next)
        put(state, first, row(engine.messages, first, MESSAGE).receiver)
        first = following
