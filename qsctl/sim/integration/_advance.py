"""The kernel of an integration engine: from one instant to the next, and what happens around the engine at each.

At one instant senders send first; then what the scenario plans, receivers and replies, in the order in which it was
due; then the engine does what is due in it. All this is a sequence of stages, of which the kernel does one at a time,
so that it can return between any two. The rules are those of `sim.engine.world`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from qsctl.sim.integration._jobs import step
from qsctl.sim.integration._labels import filled, path_with
from qsctl.sim.integration._lists import around, drop_first, new_message, next_awake, wake
from qsctl.sim.integration._records import (
    AGENDA,
    ANSWERED,
    ARRIVES,
    CIRCLING,
    COMING,
    CONNECT,
    DATA,
    ENTRY,
    FINISH,
    FINISH_SENT,
    FOREVER,
    GOES_ON,
    GROW,
    LAST,
    LOG_FULL,
    LOSE_CONNECTION,
    MESSAGE,
    NEXT,
    NONE,
    PLANNED,
    POWER,
    POWER_FAILS,
    POWER_GONE,
    PROCESS,
    PROCESS_FAILS,
    REACHED,
    RECEIVE,
    RECEIVE_SENT,
    REFUSED,
    RELEASED,
    REPLIES,
    REPLY,
    REPLY_ARRIVED,
    REPLY_LATE,
    SEND_HELD,
    SERVED,
    START_PROCESS,
    START_THREAD,
    STARTED,
    STATE,
    STOP_PROCESS,
    STOP_THREAD,
    THREAD,
    THREAD_STOPS,
    VALUE,
    WITH_SENDER,
    WORKER,
)
from qsctl.sim.integration._threads import (
    acknowledge,
    arrive,
    boot,
    connect,
    receive,
    start_process,
    start_thread,
    stop_process,
    stop_thread,
    time_out,
    work,
)
from qsctl.sim.integration._visits import end_written, warm_up
from qsctl.sim.kernel.jit import inlined_part, kernel, part, row, wide
from qsctl.sim.kernel.random import logarithm, uniform
from qsctl.sim.kernel.records import ARRIVAL

ROWS_A_STEP = 3
"""Rows of the log that one step may write of each message."""


@inlined_part
def lacks_room(state: Any) -> bool:
    """Return whether the arrays have too few free rows for one more step."""
    engine = row(state, 0, STATE)
    return bool(
        engine.message_left < 8
        or engine.frame_left < engine.results_max + 8
        or engine.heap_limit - engine.heap_count < engine.message_limit + engine.thread_count + 8
        or engine.world_limit - engine.world_count < 2 * engine.thread_count + 8
        or engine.path_limit - engine.path_count < engine.results_max + 8
        or engine.link_limit - engine.link_count < engine.results_max + 8
        or engine.event_limit - engine.event_count < 4 * (engine.thread_count + engine.process_count) + 8
    )


@kernel
def advance(state: Any) -> int:
    """Simulate to `until` (exclusive), or until the caller must act first; return why it stopped."""
    engine = row(state, 0, STATE)
    while True:
        if engine.log_count >= engine.log_limit:
            return LOG_FULL
        if lacks_room(state):
            return GROW
        if engine.spent >= engine.spent_max:
            return CIRCLING
        engine.spent += 1
        if engine.running:
            if engine.stepping != NONE:
                needed = step(state, engine.stepping)
                if needed != 0:
                    return needed
            elif engine.panic_count:
                p = row(engine.panics, engine.panic_first, VALUE).value
                engine.panic_first = (engine.panic_first + 1) % engine.process_count
                engine.panic_count -= 1
                stop_process(state, p)
            elif engine.awake_count:
                engine.worked = next_awake(state)
                work(state, engine.worked)
            elif engine.heap_count and row(engine.heap, 0, ENTRY).time <= engine.now:
                do_due(state)
            else:
                engine.running = 0
            continue
        stage = engine.stage
        if stage == NEXT:
            time = next_instant(state)
            if time >= engine.until:
                return REACHED
            if time > engine.now:
                engine.now = time
                engine.spent = 0
            if not engine.warm and engine.now >= engine.warm_up:
                warm_up(state)
            engine.stage = COMING
        elif stage == COMING:
            come(state)
        elif stage == SEND_HELD:
            send_held(state)
        elif stage == RECEIVE_SENT:
            receive_sent(state)
        elif stage == FINISH_SENT:
            finish_turn(state)
            engine.stage = SEND_HELD
        elif stage == FINISH:
            finish_turn(state)
            engine.stage = STARTED
        elif stage == STARTED:
            if engine.powered and engine.started_first < engine.started_count:
                engine.sending = row(engine.started, engine.started_first, VALUE).value
                engine.started_first += 1
                engine.send_then = STARTED
                engine.stage = SEND_HELD
            else:
                engine.started_first = 0
                engine.started_count = 0
                engine.stage = engine.then
        elif stage == RECEIVE:
            receive_other(state)
        elif stage == AGENDA:
            next_of_agenda(state)
        elif stage == POWER_FAILS:
            fail_power(state)
        elif stage == POWER_GONE:
            engine.powered = 0
            engine.stage = AGENDA
        else:
            last_of_turn(state)


@part
def next_instant(state: Any) -> int:
    """Return the time of the next event."""
    engine = row(state, 0, STATE)
    time = wide(FOREVER)
    if engine.position < engine.count:
        time = min(time, row(engine.arrivals, engine.position, ARRIVAL).time)
    if engine.planned_position < engine.planned_count:
        time = min(time, row(engine.planned, engine.planned_position, PLANNED).time)
    if engine.world_count:
        time = min(time, row(engine.world, 0, ENTRY).time)
    if engine.powered and engine.heap_count:
        time = min(time, row(engine.heap, 0, ENTRY).time)
    return time


@part
def do_due(state: Any) -> None:
    """Do the first thing that is due in the engine."""
    engine = row(state, 0, STATE)
    entry = row(engine.heap, 0, ENTRY)
    what = entry.what
    subject = wide(entry.subject)
    mark = wide(entry.mark)
    drop_first(engine.heap, engine.heap_count)
    engine.heap_count -= 1
    if what == ARRIVES:
        if row(engine.messages, subject, MESSAGE).flight == mark:
            arrive(state, subject)
    elif what == GOES_ON:
        if row(engine.workers, subject, WORKER).job == mark:
            engine.stepping = subject
    elif what == REPLY_LATE:
        time_out(state, subject, mark)
    else:
        row(engine.threads, subject, THREAD).pauses -= 1
        wake(state, subject)


@part
def come(state: Any) -> None:
    """Pass the next message that arrives at this instant to its sender."""
    engine = row(state, 0, STATE)
    if engine.position == engine.count or row(engine.arrivals, engine.position, ARRIVAL).time > engine.now:
        engine.stage = AGENDA
        return
    arrival = row(engine.arrivals, engine.position, ARRIVAL)
    engine.position += 1
    engine.offered += 1
    t = wide(row(engine.senders, arrival.client, VALUE).value)
    thread = row(engine.threads, t, THREAD)
    m = new_message(state)
    message = row(engine.messages, m, MESSAGE)
    thread.number += 1
    message.state = WITH_SENDER
    message.number = thread.number
    message.path = t
    message.bytes = filled(state, t, thread.number, wide(arrival.bytes))
    message.next = NONE
    if thread.held_tail == NONE:
        thread.held_head = m
    else:
        row(engine.messages, thread.held_tail, MESSAGE).next = m
    thread.held_tail = m
    thread.held_count += 1
    if thread.held_count == 1:
        engine.sending = t
        engine.send_then = COMING
        engine.stage = SEND_HELD


@part
def send_held(state: Any) -> None:
    """Have a sender send the next message that it holds, if its thread runs."""
    engine = row(state, 0, STATE)
    t = engine.sending
    if engine.powered and row(engine.threads, t, THREAD).held_count and row(engine.workers, t, WORKER).running:
        engine.running = 1
        engine.stage = RECEIVE_SENT
    else:
        engine.stage = engine.send_then


@part
def receive_sent(state: Any) -> None:
    """Have the engine receive the message that a sender is sending."""
    engine = row(state, 0, STATE)
    t = engine.sending
    thread = row(engine.threads, t, THREAD)
    m = thread.held_head
    thread.held_head = row(engine.messages, m, MESSAGE).next
    if thread.held_head == NONE:
        thread.held_tail = NONE
    thread.held_count -= 1
    receive(state, t, m, wide(DATA))
    engine.running = 1
    engine.stage = FINISH_SENT


@part
def finish_turn(state: Any) -> None:
    """Start the service of messages that the engine released for connections, at their receivers."""
    engine = row(state, 0, STATE)
    if not engine.powered:
        return
    if engine.downs:
        engine.downs = 0
        for t in range(engine.thread_count):
            if not row(engine.workers, t, WORKER).running:
                row(engine.threads, t, THREAD).presence += 1
    for place in range(engine.released_count):
        released = row(engine.released, place, RELEASED)
        thread = row(engine.threads, released.thread, THREAD)
        length = wide(thread.service)
        if thread.exponential:
            drawn = -logarithm(uniform(thread.key_service, thread.processed)) * thread.mean_ns
            length = max(wide(1), int(np.rint(drawn)))
        around(
            state, length, wide(SERVED), released.thread, released.mid, thread.presence, released.path, released.number
        )
    engine.released_count = 0


@part
def next_of_agenda(state: Any) -> None:
    """Do the first thing that is due around the engine."""
    engine = row(state, 0, STATE)
    engine.then = AGENDA
    if (
        engine.planned_position < engine.planned_count
        and row(engine.planned, engine.planned_position, PLANNED).time <= engine.now
    ):
        carry_out(state)
        return
    if not engine.world_count or row(engine.world, 0, ENTRY).time > engine.now:
        engine.stage = LAST
        return
    entry = row(engine.world, 0, ENTRY)
    what = entry.what
    t = wide(entry.subject)
    mid = wide(entry.mark)
    presence = wide(entry.presence)
    path = wide(entry.path)
    number = wide(entry.number)
    drop_first(engine.world, engine.world_count)
    engine.world_count -= 1
    thread = row(engine.threads, t, THREAD)
    if thread.presence != presence:
        engine.stage = FINISH
        return
    engine.subject = t
    if what == REPLIES:
        engine.path = path
        engine.number = number
        deliver(state, wide(REPLY_ARRIVED))
        return
    is_refused = uniform(thread.key_answer, thread.processed) < thread.refuses
    is_silent = uniform(thread.key_reply, thread.processed) < thread.silent
    thread.processed += 1
    engine.mark = mid
    deliver(state, wide(REFUSED) if is_refused else wide(ANSWERED))
    if thread.awaits_reply and not is_refused and not is_silent:
        around(
            state, thread.reply_delay, wide(REPLIES), t, wide(0), presence, path_with(state, path, engine.step_reply),
            number,
        )  # fmt: skip


@part
def deliver(state: Any, what: int) -> None:
    """Pass an input to the engine; without power the input is lost."""
    engine = row(state, 0, STATE)
    engine.what = what
    if engine.powered:
        engine.running = 1
        engine.stage = RECEIVE
    else:
        engine.stage = FINISH


@part
def receive_other(state: Any) -> None:
    """Have the engine receive an input that is not a sender's message."""
    engine = row(state, 0, STATE)
    subject = engine.subject
    what = engine.what
    engine.running = 1
    engine.stage = FINISH
    if what == ANSWERED:
        acknowledge(state, subject, engine.mark, wide(1))
    elif what == REFUSED:
        acknowledge(state, subject, engine.mark, wide(0))
    elif what == REPLY_ARRIVED:
        m = new_message(state)
        message = row(engine.messages, m, MESSAGE)
        message.state = WITH_SENDER
        message.number = engine.number
        message.path = engine.path
        message.bytes = filled(state, engine.path, engine.number, wide(0))
        receive(state, subject, m, wide(REPLY))
    elif what == STOP_THREAD:
        stop_thread(state, subject)
    elif what == START_THREAD:
        if row(engine.processes, row(engine.threads, subject, THREAD).process, PROCESS).up:
            start_thread(state, subject)
    elif what == LOSE_CONNECTION:
        connect(state, subject, wide(0))
    elif what == CONNECT:
        connect(state, subject, wide(1))
    elif what == STOP_PROCESS:
        stop_process(state, subject)
    else:
        start_process(state, subject)


@part
def carry_out(state: Any) -> None:
    """Begin or end an interruption that the scenario plans."""
    engine = row(state, 0, STATE)
    planned = row(engine.planned, engine.planned_position, PLANNED)
    engine.planned_position += 1
    what = planned.what
    ends = wide(planned.end)
    engine.subject = planned.subject
    if what == POWER:
        if ends:
            get_power(state)
        else:
            engine.subject = 0
            engine.running = engine.powered
            engine.stage = POWER_FAILS if engine.powered else FINISH
    elif what == PROCESS_FAILS:
        row(engine.processes, planned.subject, PROCESS).down = 1 - ends
        deliver(state, wide(START_PROCESS) if ends else wide(STOP_PROCESS))
    elif what == THREAD_STOPS:
        row(engine.threads, planned.subject, THREAD).down = 1 - ends
        deliver(state, wide(START_THREAD) if ends else wide(STOP_THREAD))
    else:
        thread = row(engine.threads, planned.subject, THREAD)
        thread.cut = 1 - ends
        thread.presence += 1
        deliver(state, wide(CONNECT) if ends else wide(LOSE_CONNECTION))


@part
def get_power(state: Any) -> None:
    """Start the engine after its power returns."""
    engine = row(state, 0, STATE)
    engine.stage = FINISH
    if not engine.powered:
        engine.powered = 1
        for t in range(engine.thread_count):
            row(engine.threads, t, THREAD).presence += 1
        boot(state)
        engine.running = 1


@part
def fail_power(state: Any) -> None:
    """End the next process, or note that all have ended."""
    engine = row(state, 0, STATE)
    if engine.subject == engine.process_count:
        finish_turn(state)
        engine.started_count = 0
        engine.stage = POWER_GONE
        return
    stop_process(state, engine.subject)
    engine.subject += 1
    engine.running = 1


@part
def last_of_turn(state: Any) -> None:
    """Have the engine do what is due at this instant, as the last stage of it."""
    engine = row(state, 0, STATE)
    engine.then = NEXT
    if engine.powered and engine.heap_count and row(engine.heap, 0, ENTRY).time <= engine.now:
        engine.running = 1
        engine.stage = FINISH
    else:
        engine.stage = NEXT


@kernel
def start(state: Any) -> None:
    """Start the engine at the beginning of the run."""
    engine = row(state, 0, STATE)
    if engine.warm_up == 0:
        engine.warm = 1
    boot(state)
    engine.running = 1
    engine.then = NEXT
    engine.stage = FINISH


@kernel
def warm(state: Any) -> None:
    """End the warm-up, if it has not ended."""
    if not row(state, 0, STATE).warm:
        warm_up(state)


@kernel
def end_all_written(state: Any, count: int) -> None:
    """Log the visits of messages still on their way at the end: the first `count` of `sorted`."""
    engine = row(state, 0, STATE)
    for place in range(count):
        end_written(state, row(engine.sorted, place, VALUE).value, wide(NONE))
