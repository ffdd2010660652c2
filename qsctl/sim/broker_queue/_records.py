"""The records that the kernel of a broker's queue works on, and the state record that holds the address of each array.

All fields are 64 bits wide, so that each part of the kernel is compiled once. Lists are doubly linked by row numbers;
NONE ends them. A message is in at most one line (`next`, `before`) and one list of times to live; a delivery in at most
one list of time-outs, its consumer's list of deliveries, and one of the consumer's two queues (`behind`): what it has
not begun, and what it has not acknowledged yet.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from qsctl.sim.kernel.records import ARRIVAL as ARRIVAL
from qsctl.sim.kernel.records import FOREVER as FOREVER
from qsctl.sim.kernel.records import NONE as NONE


def _record(*names: str) -> np.dtype[np.void]:
    return np.dtype([(name, "i8") for name in names])


MESSAGE: Final = _record(
    "born", "entered", "due", "started", "next", "before", "line", "publisher", "serial", "bytes", "kind", "state",
    "deliveries", "attempts", "working", "refs", "traits", "delivery", "tries", "ttl", "ttl_next", "ttl_before",
)  # fmt: skip
"""A message. `entered`: when the queue accepted it; `due`: when its time to live is over; `started`: when work on it
began first, NONE before; `kind`: its class; `attempts`: deliveries since the statistics began; `working`: how many work
on it now; `refs`: deliveries and entries of the heap that know it; `delivery`: the one that the queue waits for, NONE
where it waits for none; `tries`: how often its publisher tried again; `ttl`: its list of times to live."""

# States of a message.
FREE: Final = -1
OUTSIDE: Final = 0
"""Refused so far: blocked, or to be tried again."""
DELAYED: Final = 1
READY: Final = 2
OUT: Final = 3
"""Delivered, and not acknowledged."""
GONE: Final = 4
"""Its fate is known; a consumer may still work on it."""
LETTER: Final = 5
"""A dead letter."""

POISON: Final = 1
COMPLETED: Final = 2
"""Work on it has succeeded."""
RETURNED: Final = 4
"""It is in the line of those that came back."""
BACK: Final = 8
"""Its delay is a back-off."""

DELIVERY: Final = _record(
    "message", "consumer", "owner", "number", "deadline", "until", "marks", "pending", "timeouts", "t_next", "t_before",
    "c_next", "c_before", "behind",
)  # fmt: skip
"""A delivery of a message to a consumer, NONE when that is gone; `owner` stays. `number`: which of the message's
deliveries; `until`: when work on it ends; `pending`: entries of the heap that know it; `timeouts`: its list of
time-outs."""

VALID: Final = 1
"""The queue waits for its acknowledgment."""
HELD: Final = 2
"""The consumer has it: it waits there, is worked on, or its acknowledgment is not sent."""
WORKED: Final = 4
"""It is worked on."""
FAILS: Final = 8
CREDIT: Final = 16
"""It counts against its consumer's prefetch."""
SENT: Final = 32
"""Its acknowledgment or rejection is on its way."""

CONSUMER: Final = _record(
    "present", "presence", "group", "out", "prefetch", "idle", "servers", "paused", "buffer_head", "buffer_tail",
    "incoming", "polls", "asking", "waiting", "wait_until", "armed", "half", "ack_head", "ack_tail", "ack_count",
    "ack_since", "ack_armed", "able", "able_next", "able_before", "d_head", "d_tail", "available_head",
    "available_tail", "draining", "starting", "mark", "paid", "busy_ns", "present_ns", "paid_ns", "succeeded",
    "failed", "joined",
)  # fmt: skip
"""A consumer. `presence` counts how often it came; `out`: what counts against its prefetch; `incoming`: deliveries on
their way to it; `asking`: from its poll to the answer; `waiting`: its poll is at the broker, until `wait_until`;
`armed`: an entry of the heap will look; `half`: of the round trip; `able`: it is in the list of those that a message
can be sent to; `available_…`: lines of its partitions that have a message for it; `mark`: up to when its times are
counted; `joined`: when it came."""

GROUP: Final = np.dtype(
    [(name, "i8") for name in ("first", "count", "batch", "wait", "interval", "ack_batch", "ack_interval", "works")]
    + [("speed", "f8")]
)
"""Consumers alike: `works` is the first row of their distributions by class."""

LINE: Final = _record(
    "head", "tail", "back_head", "back_tail", "busy", "available", "available_next", "available_before", "owner",
)  # fmt: skip
"""Messages in order: all, those of a priority, a key or a partition. `back_…`: those that came back, which are first.
`busy`: of a key, a message is out or waits for its back-off; `available`: it is in a list of lines with a message that
may be delivered; `owner`: the consumer of a partition, NONE: any."""

TIMEOUTS: Final = _record("head", "tail", "length")
"""Deliveries with one time-out, in the order of their deadlines."""
LIVES: Final = _record("head", "tail", "length")
"""Messages with one time to live, in the order in which they are due."""

PUBLISHER: Final = np.dtype(
    [
        (name, "i8")
        for name in (
            "kind", "count", "sources", "think", "size_bytes", "on_refusal", "retry_after", "retries", "start", "stop",
            "first_key", "keys",
        )
    ]
    + [
        (name, "u8")
        for name in ("key_kind", "key_poison", "key_work", "key_fails", "key_think", "key_jitter", "key_key")
    ]
)  # fmt: skip
"""A publisher: `kind` is the class of its messages, NONE: drawn; `count` numbers them, `think` is the row of its
sources' distribution."""

LIFE: Final = _record("list")
"""Of a publisher and a class, row publisher × classes + class: the list of its messages' times to live, or NONE."""

KIND: Final = np.dtype(
    [(name, "i8") for name in ("priority", "outages", "outage_work", "work")]
    + [(name, "u8") for name in ("fails", "poison")]
    + [("share", "f8")]
)
"""A class. `outages`: how many are in progress; `outage_work`: the distribution of the last that began, NONE: as usual;
probabilities in 2^-64; `share`: cumulative weight."""

DISTRIBUTION: Final = np.dtype(
    [("kind", "i8"), ("most", "i8"), ("table", "i8"), ("entries", "i8"), ("a", "f8"), ("b", "f8")]
)
"""A distribution of durations, see `durations`."""

VALUE: Final = np.dtype([("value", "f8")])

RULE: Final = np.dtype(
    [(name, "i8") for name in (
        "group", "per", "least", "most", "every", "start_up", "delay", "low_since", "drawn", "starting",
    )]
    + [("key", "u8")]
)  # fmt: skip
"""An autoscaling rule: `low_since`: since when fewer are wanted, NONE: they are not."""

CONTROL: Final = _record("time", "what", "subject", "value")
"""An event that a scenario plans for an instant."""

# What happens at one instant, in this order: what is planned, the heap by its kinds, delays, time-outs, times to live,
# arrivals.
WARM_UP: Final = 0
OUTAGE_ENDS: Final = 1
OUTAGE_BEGINS: Final = 2
PAUSE_ENDS: Final = 3
PAUSE_BEGINS: Final = 4
LEAVE: Final = 5
JOIN: Final = 6

TICK: Final = 0
STARTED: Final = 1
ARRIVE: Final = 2
ASK: Final = 3
EMPTY: Final = 4
WAIT_OVER: Final = 5
WORK_ENDS: Final = 6
BEAT: Final = 7
ACKNOWLEDGE: Final = 8
REJECT: Final = 9
FLUSH: Final = 10
BACK_OFF_ENDS: Final = 11
TRY_AGAIN: Final = 12
PUBLISH: Final = 13
REBALANCED: Final = 14
KIND_SHIFT: Final = 48

ENTRY: Final = _record("time", "order", "subject", "mark")
"""An entry of the heap: `order` is its kind, then the number in which it was made."""

COUNT: Final = _record(
    "arrived", "delivered", "discarded", "elided", "expired", "dead", "held", "waiting", "not_connected",
    "disconnected", "refused", "ingress", "too_big", "rejected", "redelivered", "bytes", "wait_sum", "wait_max",
    "first_discard", "done", "done_sum", "done_max", "unfinished", "unfinished_max", "mark", "work", "unacknowledged",
    "within", "overdue",
)  # fmt: skip
"""Counters of the queue, and of its dead letters: from `delivered` on by the numbers of outcomes. `work`: work units
there, `mark`: the most. `within`: done within the objective; `overdue`: not done in it when the run ends.
"""
BUCKET: Final = _record("messages")
HISTOGRAMS: Final = 3
"""Of each queue: waits, times to done, ages of what is unfinished."""

ARRAYS: Final = (
    "messages", "deliveries", "consumers", "groups", "lines", "timeouts", "lives", "publishers", "lifetimes", "kinds",
    "distributions", "values", "rules", "controls", "heap", "counts", "buckets", "log", "arrivals", "back_offs",
)  # fmt: skip
"""The arrays that the state record addresses."""

SCALARS: Final = (
    "now", "until", "position", "count", "sequence", "heap_count", "control_position", "control_count",
    "message_free", "message_left", "message_limit", "delivery_free", "delivery_left", "delivery_limit", "heap_limit",
    "most_at_once",
    "log_count", "log_limit", "logging", "warm_up", "published",
    "line_count", "group_count", "kind_count", "consumer_count", "timeout_count", "life_count", "publisher_count",
    "rule_count",
    "order", "partitions", "exclusive", "active", "rebalance", "rebalancing", "rebalance_armed", "joins", "out_max",
    "delay", "at_head",
    "loss_returns", "heartbeat", "late", "deliveries_max", "to_tail", "back_off_count", "silent",
    "messages_max", "bytes_max", "counts_ready", "overflow",
    "dead_letters", "dead_messages_max", "dead_bytes_max", "dead_life", "dead_drops_tail",
    "objective", "priority_mask", "jitter_drawn",
    "ready", "ready_bytes", "inside", "inside_bytes", "out", "to_drop",
    "able_head", "able_tail", "available_head", "available_tail",
    "delay_head", "delay_tail", "blocked_head", "blocked_tail", "blocked",
    "dead_head", "dead_tail", "dead_count", "dead_bytes",
    "duplicates", "parallel", "requests", "area_from", "inside_max", "ready_max", "oldest",
    "unstable", "disturbed", "level", "draining_since", "drain_max", "drains", "outside_max",
)  # fmt: skip

STATE: Final = np.dtype([(name, "i8") for name in (*ARRAYS, *SCALARS)] + [("jitter", "f8"), ("area", "f8")])
"""The state of a run for the kernel.

until: step up to here, exclusive; position, count: of the arrivals; published: messages so far
area: the sum over time of the messages inside, up to `area_from`; level, disturbed, draining_since: see
    `consumers.disturb`
to_drop: 1 when a message entered beyond the limits; rebalancing: until when nothing is delivered
"""

FIFO: Final = 0
PRIORITY: Final = 1
KEY: Final = 2

LATE_ACCEPTED: Final = 0
LATE_UNTIL_REDELIVERED: Final = 1
LATE_IGNORED: Final = 2

OVERFLOW_REJECT: Final = 0
OVERFLOW_REJECT_DEAD_LETTER: Final = 1
OVERFLOW_DROP_HEAD: Final = 2
OVERFLOW_DROP_TAIL: Final = 3
OVERFLOW_BLOCK: Final = 4

REFUSED_LOSE: Final = 0
REFUSED_RETRY: Final = 1
REFUSED_BLOCK: Final = 2

# Why the kernel returned.
REACHED: Final = 0
LOG_FULL: Final = 2
GROW: Final = 3

# Indices of `sim.model.OUTCOMES`.
DELIVERED: Final = 0
DISCARDED: Final = 1
EXPIRED: Final = 3
DEAD: Final = 4
HELD_OUTCOME: Final = 5
WAITING_OUTCOME: Final = 6
REFUSED_OUTCOME: Final = 9
