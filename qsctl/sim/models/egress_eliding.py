"""Message eliding: at most one message of a topic in a queue, and at most one a delay.

Seed 004: eliding delay and topic limit of the client profile, the one-shot event, and the advice to make a queue deep
enough for one message of each topic. Our reading: a message of a topic that was delivered less than `delay` ago waits
for the delay's end, others pass it; a newer message of the topic replaces the queued one in its place, which counts as
elided, not discarded; topics beyond the limit are not elided. Direct messages only.
"""

from __future__ import annotations

from typing import Any

from qsctl.sim.kernel.jit import kernel
from qsctl.sim.kernel.records import (
    BUFFERS,
    EGRESS_BYTES,
    EVENT_COUNT,
    FOREVER,
    LOGGING,
    NONE,
    OUTCOME_ELIDED,
    SIZE_BITS,
    SIZE_MASK,
    WEIGHTED,
)
from qsctl.sim.kernel.rows import undelivered_row, wide
from qsctl.sim.models.egress_endpoint import want_timer
from qsctl.sim.models.egress_queue import highest, weighted, work_units

MAX_ELIDING_TOPICS_EVENT = 11
"""`Event.MAX_ELIDING_TOPICS`; a test holds the two equal."""


@kernel
def slot_of(c: int, t: int, topic: int, control: Any, rare: Any) -> int:
    """The slot of a topic, or NONE beyond the limit; the first such topic raises the one-shot event."""
    more = rare.more[c]
    local = topic - more.topic_base
    if local < 0 or local >= more.elide_topics:
        return wide(NONE)
    slot = wide(more.elide + local)
    if rare.elided[slot].known != 0:
        return slot
    if more.elide_used >= more.elide_max:
        if more.one_shot == 0:
            more.one_shot = 1
            event = rare.events[control[EVENT_COUNT]]
            control[EVENT_COUNT] += 1
            event.at_ns = t
            event.value = more.elide_max
            event.client_id = c
            event.queue = NONE
            event.event = MAX_ELIDING_TOPICS_EVENT
        return wide(NONE)
    more.elide_used += 1
    rare.elided[slot].known = 1
    rare.elided[slot].last = -FOREVER
    rare.elided[slot].node = NONE
    return slot


@kernel
def replace_queued(
    c: int, q: int, t: int, size: int, topic: int, slot: int, queues: Any, nodes: Any, log: Any, control: Any,
    rare: Any,
) -> bool:  # fmt: skip
    """Put a newer message in the place of the queued one of its topic; False when none is queued there."""
    node = wide(rare.elided[slot].node)
    if node == NONE or nodes[node].tag >> SIZE_BITS != q:
        return False
    queue = queues[c * 5 + q]
    old = nodes[node].tag & SIZE_MASK
    born = nodes[node].time
    queue.elided += 1
    if control[LOGGING] != 0:
        undelivered_row(log, control, born, t - born, c, topic, old, q, wide(OUTCOME_ELIDED), wide(0))
    queue.work += work_units(size) - work_units(old)
    queue.high_water = max(queue.high_water, queue.work)
    nodes[node].tag = size | (q << SIZE_BITS)
    nodes[node].time = t
    if control[BUFFERS] != 0:
        control[EGRESS_BYTES] += size - old
        rare.more[c].buffered += size - old
    return True


@kernel
def ready_in(c: int, q: int, t: int, queues: Any, nodes: Any, lives: Any, rare: Any) -> tuple[int, int, int]:
    """The first message of one queue that no eliding delay holds.

    Returns:
        The message before it and the message, each NONE when there is none; when the first delay met ends.
    """
    delay = rare.more[c].elide_delay
    wake = wide(FOREVER)
    before = wide(NONE)
    queue = queues[c * 5 + q]
    node = wide(queue.head) if queue.length > 0 else wide(NONE)
    while node != NONE:
        slot = lives[node].slot
        due = t if slot < 0 else rare.elided[slot].last + delay
        if due <= t:
            break
        wake = min(wake, due)
        before = node
        node = wide(nodes[node].next)
    return before, node, wake


@kernel
def take_ready(
    c: int, t: int, take: bool, clients: Any, queues: Any, nodes: Any, lives: Any, control: Any, rare: Any
) -> int:
    """The next message that no eliding delay holds; NONE when there is none.

    By priority and then by place; under the weighted scheduler a queue of which nothing is ready is passed over as an
    empty one is. With `take` the message leaves its queue. Without one the client wakes when the first delay ends.
    """
    shared = clients[c].traits & WEIGHTED != 0
    wake = wide(FOREVER)
    before = wide(NONE)
    node = wide(NONE)
    ready = wide(0)
    for q in range(4, -1, -1):
        before, node, end = ready_in(c, wide(q), t, queues, nodes, lives, rare)
        wake = min(wake, end)
        if node != NONE:
            ready |= 1 << q
            if not (take and shared):
                break
    if ready == 0:
        if wake < FOREVER:
            want_timer(c, wake, control, rare)
        return wide(NONE)
    if not take:
        return node
    chosen = highest(ready)
    if shared:
        chosen = weighted(c, ready, queues, rare.more)
        before, node, end = ready_in(c, chosen, t, queues, nodes, lives, rare)
    queue = queues[c * 5 + chosen]
    after = nodes[node].next
    if before == NONE:
        queue.head = after
    else:
        nodes[before].next = after
    if after == NONE:
        queue.tail = before
    queue.length -= 1
    queue.work -= work_units(nodes[node].tag & SIZE_MASK)
    if queue.length == 0:
        clients[c].mask &= ~(1 << chosen)
    slot = lives[node].slot
    if slot >= 0:
        rare.elided[slot].last = t
        rare.elided[slot].node = NONE
    return node


@kernel
def forget_topics(c: int, rare: Any) -> None:
    """A new session of an eliding client starts without memory of topics."""
    more = rare.more[c]
    more.elide_used = 0
    for slot in range(more.elide, more.elide + more.elide_topics):
        rare.elided[slot].known = 0
        rare.elided[slot].node = NONE
