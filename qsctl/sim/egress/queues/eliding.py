"""Message eliding: a queue contains at most one message of a topic, and sends at most one per eliding delay.

[SOL-QUEUES]: eliding delay and topic limit of the client profile, the one-shot event, and the advice to make a queue
deep enough for one message of each topic. Our reading: after a delivery, the next message of the topic waits until
`delay` is over, while messages of other topics pass it; a newer message of the topic replaces the queued one in its
position, which counts as elided, not discarded; topics beyond the limit are not elided. Direct messages only.
"""

from __future__ import annotations

from typing import Any

from qsctl.sim.egress.queues.endpoint import want_timer
from qsctl.sim.egress.queues.priority_queue import buffer_bytes, weighted, work_units
from qsctl.sim.kernel.jit import bit_length, part, row, wide
from qsctl.sim.kernel.records import (
    CLIENT,
    ELIDED,
    EVENT_ROW,
    FOREVER,
    HOLD,
    LATER,
    MORE,
    NODE,
    NONE,
    OUTCOME_ELIDED,
    QUEUE,
    SIZE_BITS,
    SIZE_MASK,
    STATE,
    TALLY,
    WEIGHTED,
)
from qsctl.sim.kernel.rows import undelivered_row

MAX_ELIDING_TOPICS_EVENT = 11
"""`Event.MAX_ELIDING_TOPICS`; a test holds the two equal."""


@part
def slot_of(state: Any, c: int, t: int, topic: int) -> int:
    """Return the slot of a topic, or NONE beyond the limit; the first topic beyond it raises the one-shot event."""
    broker = row(state, 0, STATE)
    more = row(broker.more, c, MORE)
    local = topic - more.topic_base
    if local < 0 or local >= more.elide_topics:
        return wide(NONE)
    slot = wide(more.elide + local)
    elided = row(broker.elided, slot, ELIDED)
    if elided.known != 0:
        return slot
    if more.elide_used >= more.elide_max:
        if more.one_shot == 0:
            more.one_shot = 1
            event = row(broker.events, broker.event_count, EVENT_ROW)
            broker.event_count += 1
            event.at_ns = t
            event.value = more.elide_max
            event.client_id = c
            event.queue = NONE
            event.event = MAX_ELIDING_TOPICS_EVENT
        return wide(NONE)
    more.elide_used += 1
    elided.known = 1
    elided.last = -FOREVER
    elided.node = NONE
    return slot


@part
def replace_queued(state: Any, c: int, q: int, t: int, size: int, topic: int, slot: int) -> bool:
    """Replace the queued message of a topic by a newer one, in its position.

    Return False when none is in this queue.
    """
    broker = row(state, 0, STATE)
    node = wide(row(broker.elided, slot, ELIDED).node)
    if node == NONE or row(broker.nodes, node, NODE).tag >> SIZE_BITS != q:
        return False
    queued = row(broker.nodes, node, NODE)
    queue = row(broker.queues, c * 5 + q, QUEUE)
    old = wide(queued.tag & SIZE_MASK)
    born = wide(queued.time)
    row(broker.tallies, c * 5 + q, TALLY).elided += 1
    if broker.logging != 0:
        undelivered_row(state, born, wide(0), t - born, c, topic, old, q, wide(OUTCOME_ELIDED), wide(0))
    queue.work += work_units(size) - work_units(old)
    queue.high_water = max(queue.high_water, queue.work)
    queued.tag = size | (q << SIZE_BITS)
    queued.time = t
    buffer_bytes(state, c, size - old)
    return True


@part
def ready_in(state: Any, c: int, q: int, t: int) -> tuple[int, int, int]:
    """Return the first message of one queue that no eliding delay holds.

    Returns:
        The node before it and its own node, each NONE if none exists; the earliest end of the delays of messages before
        it.
    """
    broker = row(state, 0, STATE)
    delay = row(broker.more, c, MORE).elide_delay
    wake = wide(FOREVER)
    before = wide(NONE)
    queue = row(broker.queues, c * 5 + q, QUEUE)
    node = wide(queue.head)
    while node != NONE:
        slot = row(broker.later, node, LATER).slot
        due = t if slot < 0 else row(broker.elided, slot, ELIDED).last + delay
        if due <= t:
            break
        wake = min(wake, due)
        before = node
        node = wide(row(broker.nodes, node, NODE).next)
    return before, node, wake


@part
def take_ready(state: Any, c: int, t: int, dequeues: bool) -> int:
    """Return the next message that no eliding delay holds, or NONE.

    The order is by priority and then by position; the weighted scheduler skips a queue without such a message like an
    empty one. With `dequeues` the message is removed from its queue. Where none is found, a timer is set for the end of
    the first delay.
    """
    broker = row(state, 0, STATE)
    client = row(broker.clients, c, CLIENT)
    shared = client.traits & WEIGHTED != 0
    wake = wide(FOREVER)
    before = wide(NONE)
    node = wide(NONE)
    ready = wide(0)
    for q in range(4, -1, -1):
        before, node, end = ready_in(state, c, wide(q), t)
        wake = min(wake, end)
        if node != NONE:
            ready |= 1 << q
            if not (dequeues and shared):
                break
    if ready == 0:
        if wake < FOREVER:
            want_timer(state, c, wake)
        return wide(NONE)
    if not dequeues:
        return node
    chosen = bit_length(ready) - 1
    if shared:
        chosen = weighted(state, c, ready)
        before, node, end = ready_in(state, c, chosen, t)
    queue = row(broker.queues, c * 5 + chosen, QUEUE)
    taken = row(broker.nodes, node, NODE)
    after = taken.next
    if before == NONE:
        queue.head = after
    else:
        row(broker.nodes, before, NODE).next = after
    if after == NONE:
        queue.tail = before
    if chosen != 0 or client.traits & HOLD == 0:
        queue.length -= 1
        queue.work -= work_units(wide(taken.tag & SIZE_MASK))
    if queue.head == NONE:
        client.mask = client.mask & (31 - (1 << chosen))
    slot = row(broker.later, node, LATER).slot
    if slot >= 0:
        elided = row(broker.elided, slot, ELIDED)
        elided.last = t
        elided.node = NONE
    return node


@part
def forget_topics(state: Any, c: int) -> None:
    """Forget the topics of an eliding client, for its new session."""
    broker = row(state, 0, STATE)
    more = row(broker.more, c, MORE)
    more.elide_used = 0
    for slot in range(more.elide, more.elide + more.elide_topics):
        elided = row(broker.elided, slot, ELIDED)
        elided.known = 0
        elided.node = NONE
