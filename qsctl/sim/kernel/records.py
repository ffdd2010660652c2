"""The records that the egress kernels work on, the one record that leads to them all, and the flags of a client.

State lives in record arrays (an array of structures): one or two cache lines hold all that a message needs.
Separate arrays were measured 1.3 to 2.2 times slower. No field has the name of an attribute of a NumPy record, such as
size or flags: kernels also run as plain Python.
"""

from __future__ import annotations

import sys
from typing import Final

import numpy as np

QUEUES: Final = 5
NONE: Final = -1
"""End of a list of nodes; also "not there" for a duration."""

FOREVER: Final = 2**62
"""Later than every event; halved from the largest integer so that sums stay inside 64 bits."""

SIZE_BITS: Final = 28
SIZE_MASK: Final = (1 << SIZE_BITS) - 1
"""A node's `tag` holds the message's bytes in its low 28 bits and the queue above them."""

ARRIVAL: Final = np.dtype(
    [("time", "i8"), ("client", "i4"), ("bytes", "i4"), ("topic", "i4"), ("tag", "i4")], align=True
)
"""One message at egress. `tag`: queue in bits 0–2, then the flags below, the traffic's number from bit 8 on."""

ARRIVAL_ELIGIBLE: Final = 8
"""Discard eligible: COS 1 or 2 of a guaranteed message [SOL-QUEUES]."""
ARRIVAL_FIRST: Final = 16
"""The first copy of a fanned-out message: it occupies ingress buffers once."""
ARRIVAL_SHARED: Final = 32
"""For one client of a group that shares a subscription."""
ARRIVAL_KEPT: Final = 64
"""Not eligible for eliding."""
ARRIVAL_TRAFFIC_SHIFT: Final = 8

NODE: Final = np.dtype([("time", "i8"), ("tag", "i4"), ("next", "i4")], align=True)
"""A message in the broker: its arrival while it waits, its acknowledgment once sent. In the transmit queue of a client
whose link loses segments: when its last byte left, NONE before."""

TOPIC: Final = np.dtype([("topic", "i4")])
"""A node's topic, which only the log and eliding ask for."""

LIFE: Final = np.dtype([("born", "i8"), ("moved", "i8"), ("attempts", "i4"), ("traits", "i4")], align=True)
"""The log's fields of a node: arrival, leaving its queue (or redelivery due), deliveries begun of a guaranteed message,
whether it carries an indication. Small, since an overloaded broker writes and reads one for nearly every message, each
in another cache line.
"""

LATER: Final = np.dtype([("sent", "i8"), ("entered", "i8"), ("reached", "i8"), ("slot", "i4")], align=True)
"""Fields of a node for rarer features, two in a cache line: when its last byte left, when G-1 admitted it, its eliding
slot. `reached`: when a client whose link loses segments has it whole; once a reader begins it, when the application has
done it; then when the client's library acknowledged it.
"""

SPOOLED: Final = np.dtype(
    [
        ("expires", "i8"),
        ("traffic", "i4"),
        ("durable", "i4"),
        ("line", "i4"),
        ("before", "i4"),
        ("waits", "i4"),
        ("deliveries", "i4"),
        ("rejected", "i4"),
    ],
    align=True,
)
"""Fields of a node that a durable queue uses: the end of its time to live, its traffic, its queue, its row of BACKLOG
and the message before it there, whether it `waits` there, the deliveries begun since it came to this queue, and whether
an application has `rejected` it.
"""

LIFE_INDICATION: Final = 1

CLIENT: Final = np.dtype(
    [
        ("next_ack", "i8"),
        ("delay", "i8"),
        ("tcp_bytes", "i8"),
        ("tcp_limit", "i8"),
        ("inflight", "i4"),
        ("window", "i4"),
        ("window_max", "i4"),
        ("unsent", "i4"),
        ("head", "i4"),
        ("tail", "i4"),
        ("port", "i2"),
        ("traits", "i2"),
        ("mask", "u1"),
        ("queued", "u1"),
        ("blocked", "u1"),
        ("admission", "u1"),
    ],
    align=True,
)
"""One connection, in one cache line. `unsent` starts the part of the TCP list (head … tail) that the window still holds
back; `mask` has a bit for each queue with a message; `queued` is 1 while the client is in the heap of acknowledgments;
`delay` is round trip plus acknowledgment latency; `next_ack` is also when the broker learns that a reader of the client
has begun a message, see `egress.transmission`.
"""

MORE: Final = np.dtype(
    [
        ("blocked_since", "i8"),
        ("blocked_ns", "i8"),
        ("window_initial", "i8"),
        ("mss", "i8"),
        ("link_free", "i8"),
        ("link_num", "i8"),
        ("link_den", "i8"),
        ("loss", "u8"),
        ("key", "u8"),
        ("sent", "i8"),
        ("retransmissions", "i8"),
        ("timer", "i8"),
        ("next_absence", "i8"),
        ("pause", "i4"),
        ("pause_end", "i4"),
        ("turn", "i4"),
        ("credit", "i8"),
        ("endpoint", "i4"),
        ("durable", "i4"),
        ("connection", "i4"),
        ("elide", "i4"),
        ("elide_topics", "i4"),
        ("elide_used", "i4"),
        ("elide_max", "i4"),
        ("elide_delay", "i8"),
        ("topic_base", "i4"),
        ("one_shot", "i4"),
        ("buffered", "i8"),
        ("redelivery_delay", "i8"),
    ],
    align=True,
)
"""Fields that only the rarer features use, and the time when a client was blocked. `durable`: of a client with a flow
of a durable queue, and of the client that represents that queue: the row of DURABLE. Of a lossy client: `loss` in
2^-64, `key` of its draws and `sent`, their number: one for each segment, sent again or not; `connection`: the row of
TCP.
"""

TCP: Final = np.dtype(
    [
        ("oldest", "i8"),
        ("newest", "i8"),
        ("upcoming", "i8"),
        ("received", "i8"),
        ("window", "i8"),
        ("threshold", "i8"),
        ("credit", "i8"),
        ("unsent_bytes", "i8"),
        ("due", "i8"),
        ("time_out", "i8"),
        ("smoothed", "i8"),
        ("variation", "i8"),
        ("delayed_until", "i8"),
        ("answered", "i8"),
        ("repeated", "i8"),
        ("bytes_acknowledged", "i8"),
        ("first", "i4"),
        ("last", "i4"),
        ("answer_first", "i4"),
        ("answer_last", "i4"),
        ("again", "i4"),
        ("arriving", "i4"),
        ("delay", "i8"),
        ("forth", "i8"),
        ("back", "i8"),
        ("least_time_out", "i8"),
        ("most", "i8"),
        ("duplicates", "i8"),
        ("recovering", "i8"),
        ("backed_off", "i8"),
        ("recover", "i8"),
        ("beyond", "i8"),
        ("cubic", "i8"),
        ("bytes_sent", "i8"),
        ("bytes_arrived", "i8"),
        ("initial", "i8"),
        ("time_outs", "i8"),
        ("peak", "i8"),
        ("prior", "i8"),
        ("epoch", "i8"),
        ("root", "i8"),
        ("estimate", "i8"),
    ],
    align=True,
)
"""The connection of a client whose link loses segments, which are numbered from 0.

At the broker: the oldest in flight, the next to be sent and the first that was never sent (`upcoming` is below
`newest` while a time-out has segments sent again; `again` is then its record); all up to `recover` were sent when the
last loss was noticed; the congestion window, its maximum and the threshold in segments, the parts of a segment that it
has grown by; the timer: when it is `due`, its length, the smoothed round trip and its variation. At the client: the
first segment that has not arrived, how many did beyond it, until when the last acknowledgment in the list is delayed,
what it has `answered` last, and when the last acknowledgment is back that acknowledges nothing new. Bytes of the first
message that is not sent, acknowledged, arrived whole (`unsent` and `head` of the client, `arriving`), and of all that
are not sent. `first` to `last` are the segments in flight, `answer_first` to `answer_last` the acknowledgments on
their way. `forth`, `back`: the round trip, its second half with the acknowledgment latency. The last five are CUBIC's:
W_max, the window at the last loss, when it began to grow again, K in milliseconds, W_est. What every message moves is
in the first three cache lines."""

SEGMENT: Final = np.dtype(
    [("time", "i8"), ("number", "i8"), ("bytes", "i4"), ("marks", "i4"), ("next", "i4"), ("count", "i4")], align=True
)
"""`count` segments in flight that follow one another, alike: when they were sent first, the number of the first of
them, the bytes of each, their marks. Or `count` acknowledgments: when the first is back, of all segments before its
number, and how much later (`bytes`, in ns) and higher (`marks`) each next one is."""
ARRIVED: Final = 1
SENT_AGAIN: Final = 2

RECEIVER: Final = np.dtype(
    [
        ("buffer", "i8"),
        ("occupied", "i8"),
        ("back", "i8"),
        ("latency", "i8"),
        ("drawn", "i8"),
        ("key_size", "u8"),
        ("size_a", "f8"),
        ("size_b", "f8"),
        ("size_max", "i8"),
        ("size_kind", "i4"),
        ("size_table", "i4"),
        ("size_entries", "i4"),
        ("reader", "i4"),
        ("readers", "i4"),
        ("unread_head", "i4"),
        ("unread_tail", "i4"),
    ],
    align=True,
)
"""A client's end of its connection: the bytes of its receive buffer, and those that were sent and whose reading the
broker has not learned of; half the round trip and the acknowledgment latency; the distribution of the service time,
named as `arrivals.draw` has it, and its draws; the rows of READER; messages that TCP acknowledged and no reader began,
as far as the broker knows, each with when it will learn that as its `time`."""

READER: Final = np.dtype([("free", "i8")])
"""A reader of a client's application: when it has done what it began."""
SHARE: Final = np.dtype([("value", "f8")])
"""Of mixed service times: cumulative shares, then as many times."""

QUEUE: Final = np.dtype(
    [
        ("head", "i4"),
        ("tail", "i4"),
        ("length", "i4"),
        ("pending", "i4"),
        ("max_depth", "i4"),
        ("burst", "i4"),
        ("work", "i8"),
        ("high_water", "i8"),
        ("arrived", "i8"),
        ("delivered", "i8"),
        ("delivered_bytes", "i8"),
    ],
    align=True,
)
"""One priority queue of one client, at index client × 5 + queue, in one cache line: a list of nodes, its limits, and
the counters that every message moves."""

TALLY: Final = np.dtype(
    [
        ("wait_sum", "i8"),
        ("wait_max", "i8"),
        ("discarded", "i8"),
        ("first_discard", "i8"),
        ("indications", "i8"),
        ("elided", "i8"),
        ("evicted", "i8"),
        ("weight", "i8"),
    ],
    align=True,
)
"""The same queue's counters of waits and losses, and its weight where it is served by weights: one cache line more.
`first_discard`: a nanosecond after the first loss, 0 for never. `evicted`: guaranteed messages
discarded from G-1 that come again, see `scenario.GuaranteedOverflow`."""

LOSS: Final = np.dtype(
    [
        ("not_connected", "i8"),
        ("disconnected", "i8"),
        ("spool_refused", "i8"),
        ("ingress_refused", "i8"),
        ("too_big", "i8"),
        ("expired", "i8"),
        ("dead", "i8"),
        ("rejected", "i8"),
        ("unacknowledged", "i8"),
        ("waiting", "i8"),
        ("first_refused", "i8"),
    ],
    align=True,
)
"""The same queue's rarer losses, one counter a cause, and what the end of the run counts: sent but not acknowledged,
and waiting at the endpoint. `first_refused`: a nanosecond after ingress refused the first one,
0 for never."""

DONE: Final = np.dtype([("messages", "i8"), ("total", "i8"), ("longest", "i8"), ("unfinished", "i8"), ("oldest", "i8")])
"""Of a client's acknowledged queue (G-1 behind an endpoint, the one queue of TIBCO): messages that were acknowledged,
the sum and the largest of their times from arrival to acknowledgment; those without one when the run ends, and how long
the oldest of them is there."""

COUNTERS: Final = (
    ("arrived", "delivered", "delivered_bytes"),
    ("wait_sum", "wait_max", "discarded", "first_discard", "indications", "elided", "evicted"),
    ("redelivered",),
    ("not_connected", "disconnected", "spool_refused", "expired", "dead", "rejected"),
    ("expired_moved", "dead_moved", "rejected_moved"),
)
"""The fields of QUEUE, TALLY, ENDPOINT, LOSS and DURABLE that the end of the warm-up resets to zero. What ingress
refuses is counted ahead of the time, and so only from the end of the warm-up on."""

PORT: Final = np.dtype([("free", "i8"), ("num", "i8"), ("den", "i8"), ("rate", "i8")], align=True)
"""A port: when its last byte leaves, and nanoseconds a byte as a reduced fraction."""

ENDPOINT: Final = np.dtype(
    [
        ("tracked", "i8"),
        ("outstanding", "i8"),
        ("window", "i8"),
        ("unacknowledged", "i8"),
        ("limit", "i8"),
        ("held", "i8"),
        ("held_max", "i8"),
        ("held_bytes", "i8"),
        ("bytes_max", "i8"),
        ("low_max", "i8"),
        ("acknowledge_delay", "i8"),
        ("threshold", "i8"),
        ("timer", "i8"),
        ("batch", "i8"),
        ("library_due", "i8"),
        ("redelivered", "i8"),
        ("fails", "u8"),
        ("refuses", "u8"),
        ("fail_key", "u8"),
        ("answered", "i8"),
        ("waiting_head", "i4"),
        ("waiting_tail", "i4"),
        ("returned_head", "i4"),
        ("returned_tail", "i4"),
        ("reading_head", "i4"),
        ("reading_tail", "i4"),
        ("batch_head", "i4"),
    ],
    align=True,
)
"""A client's durable endpoint: messages waiting for its flows, returned from G-1, and read but not acknowledged; how
many it sent again. `held` and `held_bytes`: all that it has not lost or retired, and
their bytes. `window`: deliveries on their way or unread, over all its flows; `outstanding` counts them where G-1
does not hold them itself. `limit`: deliveries that the application has not acknowledged, which `unacknowledged` counts.
From `batch_head` on, `batch` messages of those read are not acknowledged by the client's library: it does so when they
are `threshold`, or at `library_due`, `timer` after the first of them was read. `time` of a read message is when the
application acknowledges it, or fails on it with the probability `fails` in 2^64, drawn by `answered`; with that of
`refuses` it fails on it or rejects it."""

DURABLE: Final = np.dtype(
    [
        ("number", "i4"),
        ("flow", "i4"),
        ("flows", "i4"),
        ("turn", "i4"),
        ("access", "i4"),
        ("backlog", "i4"),
        ("backlogs", "i4"),
        ("dead_queue", "i4"),
        ("respects_time_to_live", "i4"),
        ("binds", "i8"),
        ("waiting", "i8"),
        ("max_time_to_live", "i8"),
        ("max_redelivery", "i8"),
        ("rebalance_delay", "i8"),
        ("rebalances", "i8"),
        ("handoff_max", "i8"),
        ("handoff", "i8"),
        ("handing", "i8"),
        ("expired_moved", "i8"),
        ("dead_moved", "i8"),
        ("rejected_moved", "i8"),
    ],
    align=True,
)
"""A durable queue with flows of several clients: its `number` among the clients, where what it refused and holds is
counted as of a client; the rows of FLOW; which of them, or which partition, is served next; the rows of BACKLOG, one a
partition or a priority, and what waits in all of them; its dead message queue; how often a client bound to it; limits,
0 for none; when its partitions are dealt out again; how many of them are being handed over, how long that may take and
when the first of them has taken so long; what it moved to its dead message queue, and why. `held` and its
limits are in its row of ENDPOINT, and so is the list of what applications failed on: `returned`."""

TRAFFIC: Final = np.dtype(
    [
        ("time_to_live", "i8"),
        ("priority", "i4"),
        ("dead_eligible", "i4"),
        ("first", "i4"),
        ("members", "i4"),
        ("turn", "i8"),
    ],
    align=True,
)
"""Common fields of a traffic's messages: the publisher's time to live (0: none), priority and eligibility for a dead
message queue; of a shared subscription its clients, and the next one.
"""

FLOW: Final = np.dtype([("client", "i8"), ("bound", "i8"), ("partitions", "i8")])
"""A flow of a durable queue: its client, and the queue's `binds` when it bound, which is the order of standby; while
partitions are dealt out, how many it has."""

BACKLOG: Final = np.dtype(
    [
        ("until", "i8"),
        ("head", "i4"),
        ("tail", "i4"),
        ("client", "i4"),
        ("upcoming", "i4"),
        ("dealt", "i4"),
        ("out", "i4"),
    ],
    align=True,
)
"""Messages that wait at a durable queue, in the order in which they are delivered: of a partition, to `client`. `out`:
the number delivered and not acknowledged. A partition that is being handed over has an `upcoming` client, and waits
`until` then at the latest; `dealt`: the receiver, while partitions are dealt out.
"""

ELIDED: Final = np.dtype([("last", "i8"), ("node", "i4"), ("known", "i4")], align=True)
"""A topic of an eliding client: its last delivery, its queued message, whether it is within the topic limit."""

HEAP: Final = np.dtype([("time", "i8"), ("client", "i8")], align=True)


OCTAVE: Final = np.dtype([("block", "i4")])
"""At queue × 64 + octave: the block of the octave's counters, 0 where no wait of it occurred."""

BUCKET: Final = np.dtype([("messages", "i8")])
"""At block × 128 + bucket."""

RECENT: Final = np.dtype([("place", "i8")])
"""The place at which a wait is counted, see `kernel.histogram`."""
RECENT_WAITS: Final = 16
"""Number of recent waits: a power of two."""

WATCH: Final = np.dtype(
    [(name, "i8") for name in ("client", "bytes", "length", "arrived", "delivered", "delivered_bytes")]
)
"""A client, or durable queue, one of whose queues is watched, see `egress.queues`: the `bytes` that waited there when
its counters were the others."""

PAUSE: Final = np.dtype([("start", "i8"), ("end", "i8")])
"""A client's own range of pauses is `pause` … `pause_end` of MORE."""

LOG_ROW: Final = np.dtype(
    [
        ("enqueued_ns", "i8"),
        ("enter_ns", "i8"),
        ("wait_ns", "i8"),
        ("send_ns", "i8"),
        ("acknowledge_ns", "i8"),
        ("client_id", "i4"),
        ("topic_id", "i4"),
        ("size_bytes", "i4"),
        ("attempts", "i4"),
        ("queue", "u1"),
        ("outcome", "u1"),
        ("discard_indication", "u2"),
    ],
    align=False,
)
"""One message, 60 bytes without padding: the same rows are the same bytes. `queue` indexes `scenario.QUEUE_ORDER`,
`outcome` indexes `sim.model.OUTCOMES`; the four durations count from `enqueued_ns` and are `sim.model.NEVER` where
it did not happen; work units are max(1, ceil(size / 2048)). `attempts` restarts with the statistics, see
`eventlog.schema.MESSAGES`."""

LOG_WORDS: Final = np.dtype(
    [
        ("enqueued_ns", "i8"),
        ("enter_ns", "i8"),
        ("wait_ns", "i8"),
        ("send_ns", "i8"),
        ("acknowledge_ns", "i8"),
        ("client_topic", "i8"),
        ("size_attempts", "i8"),
        ("fate", "i4"),
    ]
)
"""The same 60 bytes in eight pieces instead of twelve: half the stores of a row, which the log costs most by."""
SECOND_HALF: Final = 32 if sys.byteorder == "little" else 0
"""Shift of the second of two packed fields."""
FIRST_HALF: Final = 32 - SECOND_HALF
INDICATION_SHIFT: Final = 16 if sys.byteorder == "little" else 0
QUEUE_SHIFT: Final = 0 if sys.byteorder == "little" else 24
OUTCOME_SHIFT: Final = 8 if sys.byteorder == "little" else 16

EVENT_ROW: Final = np.dtype([("at_ns", "i8"), ("value", "i8"), ("client_id", "i4"), ("queue", "i1"), ("event", "u1")])
"""One event; `queue` is -1 where none is meant, `client_id` is -1 for the whole broker, `event` is a
`sim.model.Event`."""

ARRAYS: Final = (
    "arrivals", "clients", "queues", "tallies", "more", "ports", "nodes", "topics", "lives", "later", "log", "heap",
    "timers", "octaves", "blocks", "recent", "endpoints", "pauses", "elided", "events", "losses", "receivers",
    "readers", "shares", "durables", "flows", "backlogs", "connections", "segments", "traffics", "expiries", "spools",
    "dones", "watches",
)  # fmt: skip
"""The arrays that the state record addresses. `heap`: acknowledgments of clients that wait for one; `timers`:
redeliveries, consumers' acknowledgments, ends of eliding delays; `events`: rows of `sim.model.EVENT_ROW` that kernels
write.
"""

SCALARS: Final = (
    "position", "count", "until", "until_acknowledged", "log_count", "log_limit", "logging", "free", "heap_count",
    "heap_limit", "timer_count", "timer_limit", "blocks_used", "blocks_limit", "recent_turn", "short", "egress_bytes",
    "load_rise", "load_fall", "buffers", "event_count", "arrived", "now", "counted_from", "expiry_count",
    "expiry_limit", "spooled", "unacknowledged", "unacknowledged_max", "starved", "resumed", "client_count",
    "durable_count",
    "segment_free", "segments_left", "segments_room",
    "acknowledging", "done_place", "unfinished_place", "horizon",
    "watched", "watched_queue", "watched_most", "watched_depth", "watched_bytes", "watch_low", "watch_high",
)  # fmt: skip

STATE: Final = np.dtype([(name, "i8") for name in (*ARRAYS, *SCALARS)])
"""The state of a run for the kernels, in one record whose address they pass to one another.

position, count: the index of the next arrival and the number of arrivals; until, until_acknowledged: see
`egress.runs` log_count, log_limit: rows in the log, and the number at which to stop; logging: 1 while messages are
logged, those of the
    warm-up too, 0 at level counters
free: the first node of the free list …_limit: the number at which the array has no room for another event; short: 1
when one of them is reached egress_bytes: in the broker's buffers, counted while `buffers` is 1; load_rise, load_fall:
stop when they reach the one
    or sink to the other or below
arrived: messages of all strides; now: the instant of the last event that was not plain segment_free, segments_left,
segments_room: the free list of segments, its length, and the most that one event may use unacknowledged,
unacknowledged_max: deliveries of all flows that no application has acknowledged, and their limit;
    starved: 1 when a message waits for that; resumed: the client that is asked first once there is room again
expiry_count, spooled: entries of the expiries, and the number ever made watched, watched_queue, watched_most,
watched_depth, watched_bytes, watch_low, watch_high: see `egress.queues` counted_from: the end of the warm-up once it is
over: a delivery begun before it is not counted acknowledging: 1 where the connection's acknowledgment is the message's
(TIBCO); done_place, unfinished_place: of the
    first client's histograms of times to done and of ages, among the histograms of queues; horizon: the run's
"""

# Admission: how a full queue makes room.
DEPTH: Final = 0
FIT: Final = 1
TAIL: Final = 2

# Flags of a client; with none of them a message that finds nothing queued goes straight through.
LOSSY: Final = 1
READS: Final = 2
"""Reading takes its client time or room: a service time, pauses, a buffer smaller than the maximum window."""
LINK: Final = 4
ELIDING: Final = 8
ABSENT: Final = 16
TRACKED: Final = 32
EAGER: Final = 64
WEIGHTED: Final = 128
ABSENCES: Final = 256
HOLD: Final = 512
SHARED: Final = 8192
"""The client has a flow of a durable queue, which other clients may have flows of."""
SPOOL: Final = 16384
"""It is a durable queue, with a number among the clients, and no client."""

# Access to a durable queue.
EXCLUSIVE: Final = 0
NON_EXCLUSIVE: Final = 1
PARTITIONED: Final = 2

# Why the kernel returned.
REACHED: Final = 0
ARRIVALS_USED: Final = 1
LOG_FULL: Final = 2
GROW: Final = 3
LOAD_CHANGED: Final = 4
LEVEL_CROSSED: Final = 5

# Indices of `sim.model.OUTCOMES`; a test holds them equal.
DELIVERED: Final = 0
DISCARDED: Final = 1
OUTCOME_ELIDED: Final = 2
EXPIRED: Final = 3
DEAD: Final = 4
HELD: Final = 5
WAITING: Final = 6
NOT_CONNECTED: Final = 7
DISCONNECTED: Final = 8
SPOOL_REFUSED: Final = 9
INGRESS_REFUSED: Final = 10
TOO_BIG: Final = 11
REJECTED: Final = 12

BLOCKS_AN_EVENT: Final = 7 * 64
"""Histogram blocks that one event may need at most: one client's five queues, times to done and ages, every octave."""
TIMERS_AN_EVENT: Final = 8
TIMERS_AN_CLIENT: Final = 2
"""That one event may want beside those, of each client that it reaches."""
ENTRIES_AN_EVENT: Final = 2
"""Places in the heap of acknowledgments."""
SEGMENT_RECORDS_MAX: Final = 16
"""Records of segments and acknowledgments that one event of a connection takes beyond two for each of its window."""
ROOM_AN_EVENT: Final = {"heap": ENTRIES_AN_EVENT, "timers": TIMERS_AN_EVENT, "blocks": BLOCKS_AN_EVENT}
