"""Threads and processes of a compiled integration engine: how they receive, work, start, stop, end and recover.

The rules are those of `core.integration`: `protocol_thread`, `translation_thread`, `hop`, `recovery` and `engine`.
"""

from __future__ import annotations

from typing import Any

from qsctl.sim.integration._jobs import begin_tps, begin_translation, end_wait, fail
from qsctl.sim.integration._labels import transaction_of
from qsctl.sim.integration._lists import (
    after,
    depart,
    drop_job,
    free_message,
    head_of,
    land,
    list_dirty,
    unlink,
    wake,
)
from qsctl.sim.integration._records import (
    ABANDONED,
    ARRIVES,
    AT_WORK,
    BACKED,
    CHOICE,
    DIRTY,
    DONE,
    IN_FLIGHT,
    INBOUND_POST,
    INBOUND_PRE,
    INTERRUPTED,
    LOST,
    MESSAGE,
    NONE,
    OF_THREAD,
    OF_TRANSLATION,
    OUTBOUND_POST,
    OUTBOUND_PRE,
    PAST_TRANSLATION,
    PAUSE_OVER,
    PRE_TRANSLATION,
    PROCESS,
    PROCESS_STARTED,
    PROCESS_STOPPED,
    QUEUE,
    RELEASED,
    REPLY,
    REPLY_LATE,
    ROUTE,
    STATE,
    STORED,
    THREAD,
    THREAD_STARTED,
    THREAD_STOPPED,
    VALUE,
    WORKER,
)
from qsctl.sim.integration._visits import end, enter, enter_post, forget, leave, note, put, take
from qsctl.sim.kernel.jit import inlined_part, part, row, wide


@part
def receive(state: Any, t: int, m: int, kind: int) -> None:
    """Receive a message from a connection; the row has its label and its length."""
    engine = row(state, 0, STATE)
    thread = row(engine.threads, t, THREAD)
    if not row(engine.workers, t, WORKER).running or (not thread.inbound and kind != REPLY):
        free_message(state, m)
        return
    is_reply = kind == REPLY
    is_bare = thread.procedures_in == thread.procedures_in_end
    if is_reply:
        is_bare = thread.replies_in == thread.replies_in_end
    engine.next_mid += 1
    if is_reply and is_bare:
        end_wait(state, t)
        free_message(state, m)
    else:
        engine.next_held += 1
        message = row(engine.messages, m, MESSAGE)
        message.state = AT_WORK
        message.mid = engine.next_mid
        message.held = engine.next_held
        message.rank = thread.rank
        message.transaction = 0
        message.destination = NONE
        message.source = t
        message.kind = kind
        message.traits = BACKED if thread.logged else 0
        message.stored = 0
        message.derived = 0
        message.attempts = 0
        message.turns = 0
        message.written = 0
        message.flight = 0
        message.live = 0
        enter(state, m, t * OF_THREAD + (INBOUND_POST if is_bare else INBOUND_PRE))
    wake(state, t)


@part
def arrive(state: Any, m: int) -> None:
    """Have a message arrive at the thread that it was sent to."""
    engine = row(state, 0, STATE)
    message = row(engine.messages, m, MESSAGE)
    w = message.receiver
    land(state, sender_of(state, message.queue), m)
    message.state = AT_WORK
    if w >= engine.thread_count:
        p = w - engine.thread_count
        if message.traits & PAST_TRANSLATION:
            enter_post(state, m, p)
        else:
            enter(state, m, engine.translation_base + p * OF_TRANSLATION + PRE_TRANSLATION)
    else:
        thread = row(engine.threads, w, THREAD)
        is_bare = message.kind == REPLY or thread.procedures_out == thread.procedures_out_end
        enter(state, m, w * OF_THREAD + (OUTBOUND_POST if is_bare else OUTBOUND_PRE))
    wake(state, w)


@inlined_part
def sender_of(state: Any, q: int) -> int:
    """Return the thread that sends the messages of a queue to other threads."""
    engine = row(state, 0, STATE)
    w = q // OF_THREAD
    if q >= engine.post_base:
        w = engine.thread_count + (q - engine.post_base) // engine.thread_count
    return int(w)


@inlined_part
def send_all(state: Any, w: int, q: int, receiver: int) -> None:
    """Send every message of a queue, while the receiver runs."""
    engine = row(state, 0, STATE)
    if row(engine.workers, receiver, WORKER).running:
        while True:
            m = take(state, q)
            if m == NONE:
                break
            message = row(engine.messages, m, MESSAGE)
            message.state = IN_FLIGHT
            if message.traits & BACKED:
                message.stored = 1
            depart(state, w, m, receiver)
            after(state, engine.icl_delay, wide(ARRIVES), m, message.flight)


@part
def take_back(state: Any, w: int, receiver: int) -> None:
    """Return the messages between a thread and one that stops to the queue that they left, in their places."""
    engine = row(state, 0, STATE)
    m = row(engine.workers, w, WORKER).flight_head
    while m != NONE:
        message = row(engine.messages, m, MESSAGE)
        following = message.next
        if message.receiver == receiver:
            land(state, w, m)
            put(state, m, message.queue)
        m = following


@part
def work(state: Any, w: int) -> None:
    """Have a thread begin all the work that it can."""
    engine = row(state, 0, STATE)
    worker = row(engine.workers, w, WORKER)
    if not worker.running:
        return
    if w >= engine.thread_count:
        work_of_translation(state, w)
        return
    thread = row(engine.threads, w, THREAD)
    base = w * OF_THREAD
    send_all(state, w, base + INBOUND_POST, engine.thread_count + thread.process)
    write(state, w)
    if worker.job:
        return
    first = base + (OUTBOUND_PRE if thread.was_inbound else INBOUND_PRE)
    q = wide(first)
    m = take(state, q)
    if m == NONE:
        q = wide(2 * base + INBOUND_PRE + OUTBOUND_PRE - first)
        m = take(state, q)
    if m == NONE:
        return
    thread.was_inbound = 1 if q == base + INBOUND_PRE else 0
    worker.queue = q
    is_reply = row(engine.messages, m, MESSAGE).kind == REPLY
    if q == base + OUTBOUND_PRE:
        # There are no procedures for replies that go out.
        begin_tps(
            state, w, m, thread.procedures_out_end if is_reply else thread.procedures_out, thread.procedures_out_end
        )
    elif is_reply:
        begin_tps(state, w, m, thread.replies_in, thread.replies_in_end)
    else:
        begin_tps(state, w, m, thread.procedures_in, thread.procedures_in_end)


@part
def work_of_translation(state: Any, w: int) -> None:
    """Have a translation thread send all that it can, and begin the next translation."""
    engine = row(state, 0, STATE)
    worker = row(engine.workers, w, WORKER)
    p = w - engine.thread_count
    while worker.dirty_head != NONE:
        d = wide(worker.dirty_head)
        place = row(engine.dirty, p * engine.thread_count + d, DIRTY)
        worker.dirty_head = place.next
        place.listed = 0
        send_all(state, w, engine.post_base + p * engine.thread_count + d, d)
    if worker.job:
        return
    m = take(state, engine.translation_base + p * OF_TRANSLATION + PRE_TRANSLATION)
    if m == NONE:
        return
    message = row(engine.messages, m, MESSAGE)
    if message.traits & BACKED:
        message.stored = 1
    first = wide(NONE)
    last = wide(NONE)
    if row(engine.threads, message.source, THREAD).inbound:
        if message.transaction == 0:
            message.transaction = transaction_of(state, message.source, message.number)
        if message.transaction != 0:
            route = row(engine.choices, message.source * engine.transaction_count + message.transaction, CHOICE).route
            if route != NONE:
                first = wide(row(engine.routes, route, ROUTE).detail)
                last = wide(row(engine.routes, route, ROUTE).detail_end)
    begin_translation(state, w, m, first, last)


@part
def write(state: Any, t: int) -> None:
    """Hand the next message to the connection, if it may be."""
    engine = row(state, 0, STATE)
    thread = row(engine.threads, t, THREAD)
    if thread.writing != NONE or thread.reserved != NONE or thread.pauses or not thread.connected:
        return
    m = take(state, t * OF_THREAD + OUTBOUND_POST)
    if m == NONE:
        return
    message = row(engine.messages, m, MESSAGE)
    if message.traits & BACKED:
        message.stored = 1
    thread.writing = m
    released = row(engine.released, engine.released_count, RELEASED)
    engine.released_count += 1
    released.thread = t
    released.mid = message.mid
    released.path = message.path
    released.number = message.number


@part
def acknowledge(state: Any, t: int, mid: int, is_accepted: int) -> None:
    """Process the answer of a connection to the message being written; ignore one to another message, which is late."""
    engine = row(state, 0, STATE)
    thread = row(engine.threads, t, THREAD)
    m = thread.writing
    if m == NONE or not thread.outbound or row(engine.messages, m, MESSAGE).mid != mid:
        return
    thread.writing = NONE
    message = row(engine.messages, m, MESSAGE)
    if not is_accepted:
        try_again(state, t, m)
    elif thread.awaits_reply and message.kind != REPLY:
        thread.reserved = m
        after(state, thread.reply_timeout, wide(REPLY_LATE), t, message.held)
    else:
        end(state, m, wide(DONE))
    wake(state, t)


@part
def try_again(state: Any, t: int, m: int) -> None:
    """Put a message back for another attempt after the retry interval; fail it if it has had all its attempts."""
    engine = row(state, 0, STATE)
    thread = row(engine.threads, t, THREAD)
    message = row(engine.messages, m, MESSAGE)
    if 0 <= thread.retries < message.attempts + 1:
        fail(state, m)
        return
    message.attempts += 1
    put(state, m, t * OF_THREAD + OUTBOUND_POST)
    thread.pauses += 1
    after(state, thread.retry_interval, wide(PAUSE_OVER), t, wide(0))


@part
def time_out(state: Any, t: int, held: int) -> None:
    """End the wait for a reply that did not arrive, and try the delivery again."""
    engine = row(state, 0, STATE)
    thread = row(engine.threads, t, THREAD)
    m = thread.reserved
    if m != NONE and row(engine.messages, m, MESSAGE).held == held:
        thread.reserved = NONE
        try_again(state, t, m)
        wake(state, t)


@part
def interrupt_delivery(state: Any, t: int) -> None:
    """Put a message that waits for its acknowledgment or its reply back into its queue."""
    thread = row(row(state, 0, STATE).threads, t, THREAD)
    if thread.writing != NONE:
        put(state, thread.writing, t * OF_THREAD + OUTBOUND_POST)
    if thread.reserved != NONE:
        put(state, thread.reserved, t * OF_THREAD + OUTBOUND_POST)
    thread.writing = NONE
    thread.reserved = NONE


@part
def connect(state: Any, t: int, is_connected: int) -> None:
    """Note that a connection is up or down; whether a message being written arrived is then unknown."""
    engine = row(state, 0, STATE)
    thread = row(engine.threads, t, THREAD)
    if thread.connected == is_connected:
        return
    thread.connected = is_connected
    note(state, wide(6) if is_connected else wide(4), thread.client, wide(0))
    if not is_connected:
        interrupt_delivery(state, t)
    wake(state, t)


@part
def start_thread(state: Any, t: int) -> None:
    """Start a protocol thread."""
    engine = row(state, 0, STATE)
    worker = row(engine.workers, t, WORKER)
    if worker.running:
        return
    worker.running = 1
    note(state, wide(THREAD_STARTED), row(engine.threads, t, THREAD).client, wide(0))
    row(engine.started, engine.started_count, VALUE).value = t
    engine.started_count += 1
    wake(state, t)
    for p in range(engine.process_count):
        if row(engine.queues, engine.post_base + p * engine.thread_count + t, QUEUE).count:
            list_dirty(state, p, t)
        wake(state, engine.thread_count + p)


@part
def stop_thread(state: Any, t: int) -> None:
    """Stop a protocol thread; messages in work return to where they were before."""
    engine = row(state, 0, STATE)
    worker = row(engine.workers, t, WORKER)
    if not worker.running:
        return
    worker.running = 0
    worker.job = 0
    drop_job(state, t)
    if worker.message != NONE:
        put(state, worker.message, worker.queue)
        worker.message = NONE
    interrupt_delivery(state, t)
    for p in range(engine.process_count):
        take_back(state, engine.thread_count + p, t)
    note(state, wide(THREAD_STOPPED), row(engine.threads, t, THREAD).client, wide(0))
    engine.downs += 1


@inlined_part
def fate_of(state: Any, m: int) -> int:
    """Return what becomes of a message whose process ends."""
    message = row(row(state, 0, STATE).messages, m, MESSAGE)
    if message.stored:
        return INTERRUPTED
    return ABANDONED if message.derived else LOST


@part
def end_queue(state: Any, q: int) -> None:
    """End the visits of all messages of a queue, whose process ends."""
    while True:
        m = head_of(state, q)
        if m == NONE:
            break
        unlink(state, m)
        leave(state, m, fate_of(state, m))


@part
def sift_down(state: Any, place: int, count: int) -> None:
    """Restore the heap order of the first `count` rows of `sorted` below `place`; the greatest key is first."""
    engine = row(state, 0, STATE)
    while True:
        child = 2 * place + 2
        if child > count:
            break
        if child == count or sort_key(state, child - 1) > sort_key(state, child):
            child -= 1
        if sort_key(state, place) >= sort_key(state, child):
            break
        mine = row(engine.sorted, place, VALUE)
        other = row(engine.sorted, child, VALUE)
        kept = wide(mine.value)
        mine.value = other.value
        other.value = kept
        place = child


@inlined_part
def sort_key(state: Any, place: int) -> int:
    """Return the key that messages are sorted by: their position if the database alone has them, else their entry."""
    engine = row(state, 0, STATE)
    message = row(engine.messages, row(engine.sorted, place, VALUE).value, MESSAGE)
    return int(message.position if message.state == STORED else message.live)


@part
def sort_messages(state: Any, count: int) -> None:
    """Sort the first `count` messages of `sorted`."""
    engine = row(state, 0, STATE)
    place = count // 2
    while place > 0:
        place -= 1
        sift_down(state, place, count)
    while count > 1:
        count -= 1
        first = row(engine.sorted, 0, VALUE)
        last = row(engine.sorted, count, VALUE)
        kept = wide(first.value)
        first.value = last.value
        last.value = kept
        sift_down(state, wide(0), count)


@part
def stop_process(state: Any, p: int) -> None:
    """End a process: what is in no database is lost."""
    engine = row(state, 0, STATE)
    process = row(engine.processes, p, PROCESS)
    if not process.up:
        return
    process.up = 0
    xlate = engine.thread_count + p
    for q in range(process.first * OF_THREAD, process.end * OF_THREAD):
        end_queue(state, q)
    base = engine.translation_base + p * OF_TRANSLATION
    for q in range(base, base + OF_TRANSLATION):
        end_queue(state, q)
    end_post_queues(state, p)
    end_memory(state, p, base)
    for t in range(process.first, process.end):
        thread = row(engine.threads, t, THREAD)
        stop_worker(state, t)
        thread.writing = NONE
        thread.reserved = NONE
        for other in range(engine.process_count):
            if other != p:
                take_back(state, engine.thread_count + other, t)
    stop_worker(state, xlate)
    worker = row(engine.workers, xlate, WORKER)
    while worker.dirty_head != NONE:
        place = row(engine.dirty, p * engine.thread_count + worker.dirty_head, DIRTY)
        place.listed = 0
        worker.dirty_head = place.next
    note(state, wide(PROCESS_STOPPED), process.client, engine.lost)
    engine.lost = 0
    engine.recovered = 0
    engine.downs += 1


@part
def end_post_queues(state: Any, p: int) -> None:
    """End the visits of all messages of a process's post-translation queues, oldest queue first."""
    engine = row(state, 0, STATE)
    latest = wide(0)
    while True:
        found = wide(NONE)
        order = wide(engine.next_order + 1)
        for d in range(engine.thread_count):
            q = engine.post_base + p * engine.thread_count + d
            queue = row(engine.queues, q, QUEUE)
            if queue.count and latest < queue.order < order:
                found = wide(q)
                order = wide(queue.order)
        if found == NONE:
            break
        latest = order
        end_queue(state, found)


@part
def end_memory(state: Any, p: int, base: int) -> None:
    """Remove all messages in the memory of a process, in the order in which they entered it."""
    engine = row(state, 0, STATE)
    count = wide(0)
    for m in range(engine.message_limit):
        message = row(engine.messages, m, MESSAGE)
        if message.state in (AT_WORK, IN_FLIGHT) and row(engine.queues, message.queue, QUEUE).process == p:
            row(engine.sorted, count, VALUE).value = m
            count += 1
    sort_messages(state, count)
    for place in range(count):
        m = row(engine.sorted, place, VALUE).value
        message = row(engine.messages, m, MESSAGE)
        message.flight = 0
        forget(state, m, fate_of(state, m))
        is_result = base < message.queue < base + OF_TRANSLATION
        if message.stored and not is_result:
            message.state = STORED
        else:  # results whose source begins again are thrown away by the recovery
            free_message(state, m)


@part
def stop_worker(state: Any, w: int) -> None:
    """Discard the state of a thread's work."""
    worker = row(row(state, 0, STATE).workers, w, WORKER)
    worker.running = 0
    worker.job = 0
    worker.message = NONE
    worker.flight_head = NONE
    worker.flight_tail = NONE
    drop_job(state, w)


@part
def start_process(state: Any, p: int) -> None:
    """Start a process: it continues from the recovery database."""
    engine = row(state, 0, STATE)
    process = row(engine.processes, p, PROCESS)
    if process.up:
        return
    process.up = 1
    xlate = engine.thread_count + p
    note(state, wide(PROCESS_STARTED), process.client, engine.recovered)
    engine.lost = 0
    engine.recovered = 0
    count = wide(0)
    for m in range(engine.message_limit):
        message = row(engine.messages, m, MESSAGE)
        if message.state == STORED and row(engine.queues, message.queue, QUEUE).process == p:
            row(engine.sorted, count, VALUE).value = m
            count += 1
    sort_messages(state, count)
    for place in range(count):
        recover(state, row(engine.sorted, place, VALUE).value, p)
    wake(state, xlate)
    row(engine.workers, xlate, WORKER).running = 1
    note(state, wide(THREAD_STARTED), process.client, wide(0))
    for t in range(process.first, process.end):
        if row(engine.threads, t, THREAD).down:
            note(state, wide(THREAD_STOPPED), row(engine.threads, t, THREAD).client, wide(0))
            engine.downs += 1
        else:
            start_thread(state, t)


@part
def recover(state: Any, m: int, p: int) -> None:
    """Put a message of a process from the recovery database into the queue where it was."""
    engine = row(state, 0, STATE)
    message = row(engine.messages, m, MESSAGE)
    engine.next_held += 1
    engine.recovered += 1
    message.held = engine.next_held
    message.state = AT_WORK
    q = message.queue
    if q >= engine.post_base:
        queue = row(engine.queues, q, QUEUE)
        if queue.order == 0:
            engine.next_order += 1
            queue.order = engine.next_order
        list_dirty(state, p, q - engine.post_base - p * engine.thread_count)
    put(state, m, q)


@part
def boot(state: Any) -> None:
    """Start an engine with the database that it left; what the scenario keeps down stays down."""
    engine = row(state, 0, STATE)
    size = engine.thread_count + engine.process_count
    for w in range(size):
        row(engine.workers, w, WORKER).awake = 0
    engine.awake_first = 0
    engine.awake_count = 0
    engine.heap_count = 0
    engine.panic_count = 0
    engine.released_count = 0
    for q in range(engine.post_base, engine.queue_count):
        row(engine.queues, q, QUEUE).order = 0
    for t in range(engine.thread_count):
        thread = row(engine.threads, t, THREAD)
        thread.connected = 1
        thread.pauses = 0
        thread.was_inbound = 0
    for t in range(engine.thread_count):
        if row(engine.threads, t, THREAD).cut:
            connect(state, t, wide(0))
    for p in range(engine.process_count):
        process = row(engine.processes, p, PROCESS)
        if process.down:
            note(state, wide(PROCESS_STOPPED), process.client, engine.lost)
            engine.lost = 0
            engine.recovered = 0
            engine.downs += 1
        else:
            start_process(state, p)
