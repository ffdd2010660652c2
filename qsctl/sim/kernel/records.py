"""The records that the egress kernels work on, the slots of their control array, and the flags of a client.

State lives in record arrays (an array of structures): one or two cache lines hold all that a message needs.
Separate arrays were measured 1.3 to 2.2 times slower. No field has the name of an attribute of a NumPy record, such as
size or flags: kernels also run as plain Python.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

QUEUES: Final = 5
NONE: Final = -1
"""End of a list of nodes; also "not there" for a duration."""

FOREVER: Final = 2**62
"""Later than every event; halved from the largest integer so that sums stay inside 64 bits."""

INDEX: Final = (1 << 31) - 1
"""What an index is masked with on the fast path."""

SIZE_BITS: Final = 28
SIZE_MASK: Final = (1 << SIZE_BITS) - 1
"""A node's `tag` holds the message's bytes in its low 28 bits and the queue above them."""

ARRIVAL: Final = np.dtype(
    [("time", "i8"), ("client", "i4"), ("bytes", "i4"), ("topic", "i4"), ("tag", "i4")], align=True
)
"""One message at egress. `tag`: queue in bits 0–2, then the two flags below, the traffic's number from bit 8 on."""

ARRIVAL_ELIGIBLE: Final = 8
"""Discard eligible: COS 1 or 2 of a guaranteed message (seed 000)."""
ARRIVAL_FIRST: Final = 16
"""The first copy of a fanned-out message: it occupies ingress buffers once."""
ARRIVAL_TRAFFIC_SHIFT: Final = 8

NODE: Final = np.dtype([("time", "i8"), ("tag", "i4"), ("next", "i4")], align=True)
"""A message in the broker: its arrival while it waits, its acknowledgment once sent."""

LIFE: Final = np.dtype(
    [("born", "i8"), ("moved", "i8"), ("sent", "i8"), ("topic", "i4"), ("slot", "i4"), ("attempts", "i4"),
     ("traits", "i4")],
    align=True,
)  # fmt: skip
"""What the log and the rarer features remember of a node: arrival, leaving its queue (or redelivery due), last byte
out, topic, eliding slot, deliveries begun, whether it was lost on the link or carries a discard indication."""

LIFE_LOST: Final = 1
LIFE_INDICATION: Final = 2

CLIENT: Final = np.dtype(
    [
        ("next_ack", "i8"),
        ("traits", "i4"),
        ("mask", "i4"),
        ("unsent", "i4"),
        ("head", "i4"),
        ("tail", "i4"),
        ("port", "i4"),
        ("inflight", "i8"),
        ("window", "i8"),
        ("window_max", "i8"),
        ("tcp_bytes", "i8"),
        ("tcp_limit", "i8"),
        ("delay", "i8"),
        ("admission", "i4"),
        ("queued", "i4"),
        ("blocked", "i4"),
        ("spare", "i4"),
    ],
    align=True,
)
"""One connection. `unsent` starts the part of the TCP list (head … tail) that the window still holds back; `queued`
is 1 while the client stands in the heap of acknowledgments; `delay` is round trip plus reading delay."""

MORE: Final = np.dtype(
    [
        ("blocked_since", "i8"),
        ("blocked_ns", "i8"),
        ("window_initial", "i8"),
        ("mss", "i8"),
        ("last_ack", "i8"),
        ("link_free", "i8"),
        ("link_num", "i8"),
        ("link_den", "i8"),
        ("loss", "u8"),
        ("key", "u8"),
        ("sent", "i8"),
        ("round_trip", "i8"),
        ("retransmissions", "i8"),
        ("timer", "i8"),
        ("next_absence", "i8"),
        ("pause", "i4"),
        ("pause_end", "i4"),
        ("turn", "i4"),
        ("credit", "i8"),
        ("endpoint", "i4"),
        ("overflow", "i4"),
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
"""What only the rarer features touch."""

QUEUE: Final = np.dtype(
    [
        ("head", "i4"),
        ("tail", "i4"),
        ("length", "i4"),
        ("pending", "i4"),
        ("work", "i8"),
        ("max_depth", "i8"),
        ("burst", "i8"),
        ("high_water", "i8"),
        ("arrived", "i8"),
        ("delivered", "i8"),
        ("delivered_bytes", "i8"),
        ("discarded", "i8"),
        ("indications", "i8"),
        ("wait_sum", "i8"),
        ("wait_max", "i8"),
        ("elided", "i8"),
        ("redelivered", "i8"),
        ("not_connected", "i8"),
        ("refused", "i8"),
        ("returned", "i8"),
        ("first_discard", "i8"),
        ("weight", "i8"),
    ],
    align=True,
)
"""One priority queue of one client, at index client × 5 + queue: a list of nodes, its limits and its counters."""

COUNTERS: Final = (
    "arrived", "delivered", "delivered_bytes", "discarded", "indications", "wait_sum", "wait_max", "elided",
    "redelivered", "not_connected", "refused", "returned",
)  # fmt: skip
"""The fields of QUEUE that the end of the warm-up resets to zero."""

PORT: Final = np.dtype([("free", "i8"), ("num", "i8"), ("den", "i8"), ("rate", "i8")], align=True)
"""A port: when its last byte leaves, and nanoseconds a byte as a reduced fraction."""

ENDPOINT: Final = np.dtype(
    [
        ("tracked", "i8"),
        ("outstanding", "i8"),
        ("window", "i8"),
        ("held", "i8"),
        ("held_max", "i8"),
        ("low_max", "i8"),
        ("acknowledge_delay", "i8"),
        ("waiting_head", "i4"),
        ("waiting_tail", "i4"),
        ("returned_head", "i4"),
        ("returned_tail", "i4"),
        ("reading_head", "i4"),
        ("reading_tail", "i4"),
    ],
    align=True,
)
"""A client's durable endpoint: messages waiting for its flows, returned from G-1, and read but not acknowledged."""

ELIDED: Final = np.dtype([("last", "i8"), ("node", "i4"), ("known", "i4")], align=True)
"""A topic of an eliding client: its last delivery, its queued message, whether it is within the topic limit."""

HEAP: Final = np.dtype([("time", "i8"), ("client", "i8")], align=True)


class Rare(NamedTuple):
    """The arrays that a message which goes straight through does not touch."""

    more: Any
    heap: Any
    """Acknowledgments of clients that wait for one (HEAP)."""
    timers: Any
    """Redeliveries, consumers' acknowledgments, ends of eliding delays (HEAP)."""
    octaves: Any
    """int32[queues, 64]: the block of each octave's counters, NONE where it did not occur."""
    blocks: Any
    """int64[blocks, 128]."""
    endpoints: Any
    pauses: Any
    """int64[n, 2]: start and end; a client's own range is `pause` … `pause_end` of MORE."""
    elided: Any
    events: Any
    """Rows of `models.base.EVENT_ROW` that kernels write."""


# Admission: how a full queue makes room.
DEPTH: Final = 0
FIT: Final = 1
TAIL: Final = 2

# Flags of a client; with none of them a message that finds nothing queued goes straight through.
LOSSY: Final = 1
PAUSES: Final = 2
LINK: Final = 4
ELIDING: Final = 8
ABSENT: Final = 16
TRACKED: Final = 32
EAGER: Final = 64
WEIGHTED: Final = 128
ABSENCES: Final = 256
HOLD: Final = 512

# Slots of the control array.
POSITION: Final = 0
LOG_COUNT: Final = 1
LOG_LIMIT: Final = 2
LOGGING: Final = 3
"""1 while messages are logged, those of the warm-up too; 0 at level counters."""
FREE: Final = 4
HEAP_COUNT: Final = 5
TIMER_COUNT: Final = 6
BLOCKS_USED: Final = 7
EGRESS_BYTES: Final = 8
LOAD_RISE: Final = 9
"""Stop when the egress bytes reach this."""
LOAD_FALL: Final = 10
"""Stop when the egress bytes sink to this or below."""
BUFFERS: Final = 11
"""1 while the broker's egress buffers are counted."""
EVENT_COUNT: Final = 12
MESSAGES: Final = 13
NOW: Final = 14
TOP: Final = 15
"""The earliest of the two heaps' times, so that the fast path compares once."""
CONTROL_SLOTS: Final = 16

# Why the kernel returned.
REACHED: Final = 0
ARRIVALS_USED: Final = 1
LOG_FULL: Final = 2
GROW: Final = 3
LOAD_CHANGED: Final = 4

# Indices of `models.base.OUTCOMES`; a test holds them equal.
DELIVERED: Final = 0
DISCARDED: Final = 1
OUTCOME_ELIDED: Final = 2
HELD: Final = 5
WAITING: Final = 6

ROWS_AN_EVENT: Final = 5 * 64
"""Histogram blocks that one event may need at most: one client's five queues, every octave."""
