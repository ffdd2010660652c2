"""The records of a compiled integration engine: rows of its arrays, and the state that addresses them."""

from __future__ import annotations

from typing import Final

import numpy as np

from qsctl.sim.kernel.records import FOREVER as FOREVER
from qsctl.sim.kernel.records import NONE as NONE


def _record(*names: str) -> np.dtype[np.void]:
    return np.dtype([(name, "i8") for name in names])


MESSAGE: Final = _record(
    "next", "before", "state", "queue", "rank", "position", "mid", "held", "path", "number", "bytes", "transaction",
    "destination", "source", "kind", "traits", "stored", "derived", "attempts", "turns", "entered",
    "visit", "written", "wait", "flight", "receiver", "live",
)  # fmt: skip
"""A message; while its sender holds it, `number`, `bytes` and `next` alone.

queue: where it is, or was last; rank: of its priority, 0 is the highest; mid: its id; held: another number each time
that a process finds it in the database; path: of its label; stored:
it has a copy in the recovery database; derived: it counts once the copy of its source is gone; entered, visit: when its
last visit to a queue began, and the number of the visit; written, wait: 1 while a visit to the last queue has no
acknowledgment, and how long that took; flight: the number of its way to another thread, 0 for none; receiver: where to;
live: the number of its entry into memory.
"""

# States of a message.
FREE: Final = -1
WITH_SENDER: Final = 0
QUEUED: Final = 1
AT_WORK: Final = 2
"""In memory, and in no queue."""
IN_FLIGHT: Final = 3
STORED: Final = 4
"""In the recovery database alone: its process is down."""

DATA: Final = 1
REPLY: Final = 2

BACKED: Final = 1
PAST_TRANSLATION: Final = 2
REROUTED: Final = 4

LINE: Final = _record("head", "tail")
"""Messages of one rank of a queue, by position: row queue × ranks + rank."""

QUEUE: Final = _record("count", "key", "order", "process")
"""A queue. key: where its visits are counted; order: of a post-translation queue, the number of its making; 0: not yet
made."""

# The queues of a protocol thread.
INBOUND_PRE: Final = 0
INBOUND_POST: Final = 1
OUTBOUND_PRE: Final = 2
OUTBOUND_POST: Final = 3
OF_THREAD: Final = 4
# The queues of a translation thread.
PRE_TRANSLATION: Final = 0
ROUTE_DETAIL: Final = 1
PARTIAL: Final = 2
OF_TRANSLATION: Final = 3

WORKER: Final = _record(
    "running", "awake", "job", "message", "queue", "frame", "verdict_head", "verdict_tail", "verdicts", "failures",
    "flight_head", "flight_tail", "detail", "detail_end", "given", "dirty_head", "dirty_tail",
)  # fmt: skip
"""What a protocol thread and a translation thread have in common; those of processes come behind the threads.

job: the number of its job, 0 for none; message: that it works on, NONE for none; queue: where that came from; frame:
the top of the stack of what is left of the job; verdict_…: results of the procedures that run; failures: route details
that failed; flight_…: messages on their way from it; detail, detail_end: route details that are left; given: 1
while a detail has begun; dirty_…: post-translation queues that may be sent from, in the order of their making.
"""

DIRTY: Final = _record("next", "listed")
"""By post-translation queue: its place in the list of its process."""

THREAD: Final = np.dtype(
    [
        (name, "i8")
        for name in (
            "process", "client", "inbound", "outbound", "logged", "rank", "connected", "was_inbound", "writing",
            "reserved", "pauses", "presence", "down", "cut", "tps_retries", "tps_retry_interval",
            "procedures_in", "procedures_in_end", "replies_in", "replies_in_end", "procedures_out",
            "procedures_out_end", "transaction", "transaction_end", "retries", "retry_interval", "awaits_reply",
            "reply_timeout", "reply_delay", "exponential", "service", "processed", "number", "held_head", "held_tail",
            "held_count",
        )
    ]
    + [(name, "u8") for name in ("key_service", "key_answer", "key_reply", "key_transaction")]
    + [(name, "f8") for name in ("mean_ns", "refuses", "silent", "weight")]
)  # fmt: skip
"""A protocol thread with the sender and the receiver at its other ends.

rank: of the priority of what comes in; pauses: waits that have to end before the next delivery; presence: of the
receiver, another number after each outage or restart; down: 1 while the scenario stops it; processed: by the receiver;
number: of the sender's newest message; held_…: what the sender holds.
"""

PROCESS: Final = _record("up", "down", "first", "end", "client")
"""A process: its threads are `first` … `end`."""

PROCEDURE: Final = _record(
    "does", "every", "results", "destination", "transaction", "times", "takes", "draws", "recoverable", "step",
)  # fmt: skip
"""A procedure. draws: the number of its durations, NONE where they are constant; step: of what it changes."""

PASS: Final = 0
CHANGE: Final = 1
DROP: Final = 2
SPLIT: Final = 3
FAIL: Final = 4
LOOP: Final = 5
SEND: Final = 6
OVER: Final = 7
PROTO: Final = 8
ERROR: Final = 9
KILLREPLY: Final = 10
REROUTE: Final = 11
RETRY: Final = 12
KILL: Final = DROP
CONTINUE: Final = PASS
"""Behaviours; as dispositions those that are one."""

DETAIL: Final = _record(
    "destination", "destination_end", "pre", "pre_end", "translation", "translation_end", "post", "post_end"
)
"""A route detail: ranges of the rows of VALUE, PROCEDURE and TRANSLATION. Without translations its post-procedures
follow at once."""

TRANSLATION: Final = _record("results", "takes", "draws", "error_every", "error_after", "reach")
SKIP: Final = 0
CURRENT_DETAIL: Final = 1
ALL_DETAILS: Final = 2

ROUTE: Final = _record("detail", "detail_end")
CHOICE: Final = _record("route")
"""By thread and transaction id: the row of ROUTE, NONE for none."""
TRANSACTION: Final = np.dtype([("id", "i8"), ("weight", "f8")])
VALUE: Final = _record("value")

FRAME: Final = _record(
    "next", "what", "at", "end", "path", "bytes", "transaction", "destination", "recoverable", "disposition", "slept",
)  # fmt: skip
"""A step that is left of a job, on a stack; or a result of procedures, in a list. at, end: procedures that are left;
of a translation, its row and the number of the step."""

# What a frame is.
RUN: Final = 0
"""Procedures over a message."""
AFTER_TPS: Final = 1
AFTER_PRE: Final = 2
AFTER_POST: Final = 3
"""The stack of procedures above it is done."""
ACT: Final = 4
"""A result of pre-procedures."""
COLLECT: Final = 5
"""A result of a route detail."""
TRANSLATE: Final = 6
DETAILS: Final = 7
"""The route details that are left."""
IDLE: Final = 8
"""Waits before the thread looks for work again."""
VERDICT: Final = 9

ENTRY: Final = _record("time", "order", "what", "subject", "mark", "presence", "path", "number")
"""An entry of a heap."""

# What an entry of the engine's heap is.
ARRIVES: Final = 0
GOES_ON: Final = 1
REPLY_LATE: Final = 2
PAUSE_OVER: Final = 3
# And of the heap of what is around it.
SERVED: Final = 4
REPLIES: Final = 5

RELEASED: Final = _record("thread", "mid", "path", "number")
"""A message for a connection, until its turn is over."""

PLANNED: Final = _record("time", "what", "subject", "end")
POWER: Final = 0
PROCESS_FAILS: Final = 1
THREAD_STOPS: Final = 2
CONNECTION_LOST: Final = 3

PATH: Final = _record("parent", "step", "bytes", "thread")
"""A path of results: `step` ≥ 0 is a number, else the text -1 - step; bytes: of the text of the whole path."""
LINK: Final = np.dtype([("a", "i8"), ("b", "i8"), ("c", "i8"), ("used", "i8"), ("value", "u8")])
"""A slot of the hash table: paths by parent and step (c is NONE), keys of durations by their number, path and step."""
STEP: Final = _record("bytes")
"""By text: its length."""

COUNT: Final = _record(
    "arrived", "delivered", "discarded", "elided", "bytes", "work", "mark", "first_discard", "wait_sum", "wait_max",
    "done", "done_sum", "done_max", "touched", "client", "stage", "last",
)  # fmt: skip
"""Counters of the queues of one stage at one thread. work: work units there, mark: the most; stage: which of the eight
queues; last: the number of its histogram of times to done, NONE for none."""
BUCKET: Final = _record("messages")

ARRAYS: Final = (
    "messages", "lines", "queues", "workers", "threads", "processes", "procedures", "details", "translations", "routes",
    "choices", "transactions", "values", "frames", "heap", "world", "released", "planned", "paths", "links", "steps",
    "counts", "buckets", "done", "failed", "log", "events", "arrivals", "awake", "panics", "started", "sorted", "dirty",
    "senders",
)  # fmt: skip

SCALARS: Final = (
    "now", "until", "position", "count", "sequence", "world_sequence", "heap_count", "heap_limit", "world_count",
    "world_limit", "planned_position", "planned_count", "message_free", "message_left", "message_limit", "frame_free",
    "frame_left", "path_count", "path_limit", "link_count", "link_limit", "log_count", "log_limit", "logging",
    "event_count", "event_limit", "warm_up", "warm", "offered", "thread_count", "process_count", "rank_count",
    "key_count", "translation_base", "post_base", "queue_count",
    "transaction_count", "step_reply", "icl_delay", "turns_max", "results_max", "destinations_max",
    "next_place", "next_front", "next_mid", "next_held", "next_visit", "next_flight", "next_job", "next_live",
    "next_order", "powered", "running", "stepping", "stage", "then", "sending", "send_then", "subject", "mark", "path",
    "number", "what", "awake_first", "awake_count", "panic_first", "panic_count", "released_count", "started_first",
    "started_count", "downs", "lost", "recovered", "missing_draws", "missing_path", "missing_step",
    "spent", "spent_max", "worked",
)  # fmt: skip

STATE: Final = np.dtype([(name, "i8") for name in (*ARRAYS, *SCALARS)])
"""The state of a run for the kernel.

until: simulate up to here, exclusive; position, count: of the arrivals; next_place, next_front: the latest places at
    the end and at the head of queues; next_…: numbers given last
powered: 0 after power failed; running: 1 while threads may have work at this instant; stepping: the worker whose job
    goes on, NONE for none
stage: what happens next around the engine, see `advance`; then: the stage after the turn; sending, send_then: the
    thread whose sender sends, and the stage after that; subject, mark, path, number, what: of the message that the
    engine receives
downs: threads and processes that ended in this turn; lost, recovered: messages since a process last started or stopped
missing_…: the key of a duration that is to be made
spent, spent_max: steps since time went on, and how many there may be; worked: the thread that worked last
"""

# Stages of what happens around the engine.
NEXT: Final = 0
COMING: Final = 1
AGENDA: Final = 2
SEND_HELD: Final = 3
RECEIVE_SENT: Final = 4
RECEIVE: Final = 5
FINISH: Final = 6
FINISH_SENT: Final = 7
STARTED: Final = 8

LAST: Final = 10
POWER_FAILS: Final = 11
POWER_GONE: Final = 12

# What the engine receives.
ARRIVED: Final = 0
ANSWERED: Final = 1
REFUSED: Final = 2
STOP_THREAD: Final = 3
START_THREAD: Final = 4
LOSE_CONNECTION: Final = 5
CONNECT: Final = 6
STOP_PROCESS: Final = 7
START_PROCESS: Final = 8
REPLY_ARRIVED: Final = 9

# Why the kernel returned.
REACHED: Final = 0
LOG_FULL: Final = 2
GROW: Final = 3
KEY_MISSING: Final = 4
CIRCLING: Final = 5
"""An instant does not end."""

# Indices of `sim.model.OUTCOMES`.
DELIVERED: Final = 0
DISCARDED: Final = 1
ELIDED: Final = 2
HELD: Final = 5

# Why a message leaves a queue, or memory.
PASSED: Final = 0
INTERRUPTED: Final = 1
LOST: Final = 2
ABANDONED: Final = 3
DONE: Final = 4
"""Delivered."""
FAILED: Final = 5
OTHER: Final = 6

# Numbers of `sim.model.Event`.
DISCONNECTED: Final = 4
CONNECTED: Final = 6
THREAD_STOPPED: Final = 27
THREAD_STARTED: Final = 28
PROCESS_STOPPED: Final = 29
PROCESS_STARTED: Final = 30
