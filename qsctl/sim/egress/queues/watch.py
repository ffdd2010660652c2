"""The importance function of multilevel splitting (`sim.splitting`): the closeness of a queue to a rare event.

It concerns the queue `watched_queue` of every client in `watches`. Where `watched_depth` is 1, it is the depth in work
units; else the closeness to a discard, on a scale up to `watched_most`, the importance of a queue that discards its
next message. A queue discards when its depth is at its maximum and its length at its minimum burst [SOL-QUEUES]
[P7500]; G-1 never discards, but its endpoint refuses messages above its maximum number. The importance of the state is
the largest of all clients.

Depth alone is insufficient where sizes vary: a message's size, and thus its transmission time, is known from its
arrival on. On the path to an overflow both the number of arrivals and the sizes of the messages sent are larger than
usual. For an M/M/1 queue with load r, the logarithm of the probability of overflow increases along that path by
(ln 1/r - 1 + r) ÷ (1 - r) for each message, and by the rest of ln 1/r for each mean size that waits (Cramér's theorem
for the two sums; Dembo and Zeitouni, *Large Deviations Techniques and Applications*, chapter 2): by about one half each
for any load. So the importance is the mean of the depth and of the waiting bytes, the latter in mean bytes of a work
unit (`watched_bytes`; 0 counts the depth alone). By depth alone, runs with few large messages are split as often as
runs with many, which lead to nearly all of the losses: with 29 places and load 0.5, one state in a hundred at
half the depth.
"""

from __future__ import annotations

from typing import Any

from qsctl.sim.kernel.jit import kernel, part, row, wide
from qsctl.sim.kernel.random import uniform_bits
from qsctl.sim.kernel.records import (
    ENDPOINT,
    LOSS,
    MORE,
    NODE,
    NONE,
    QUEUE,
    QUEUES,
    RECEIVER,
    SIZE_MASK,
    STATE,
    TALLY,
    WATCH,
)


@kernel
def importance(state: Any) -> int:
    """Return the importance of the state; 0 without a watched queue."""
    broker = row(state, 0, STATE)
    queues, most, q = broker.queues, wide(broker.watched_most), wide(broker.watched_queue)
    unit = wide(broker.watched_bytes)
    largest = wide(0)
    for i in range(broker.watched):
        watch = row(broker.watches, i, WATCH)
        c = wide(watch.client)
        queue = row(queues, c * QUEUES + q, QUEUE)
        found = wide(queue.work)
        if broker.watched_depth == 0 and q == 0:
            found = wide(0)
            place = wide(row(broker.more, c, MORE).endpoint)
            if place != NONE:
                endpoint = row(broker.endpoints, place, ENDPOINT)
                if endpoint.held_max > 0:
                    found = most - (endpoint.held_max - endpoint.held)
        elif broker.watched_depth == 0:
            found = most - max(queue.max_depth - queue.work, queue.burst - queue.length)
        if unit > 0:
            waiting = waiting_bytes(broker, watch, queue)
            found = most if found >= most else min(most - 1, (found * unit + waiting) // (2 * unit))
        largest = max(largest, found)
    return largest


@part
def waiting_bytes(broker: Any, watch: Any, queue: Any) -> int:
    """Return the bytes in a queue.

    They are updated from the last call where at most one message arrived since and none was lost; else summed anew.
    """
    came = queue.arrived - watch.arrived
    entered = queue.length - watch.length + queue.delivered - watch.delivered
    if queue.length == 0:
        watch.bytes = 0
    elif watch.length > 0 and entered == came <= 1:
        watch.bytes -= queue.delivered_bytes - watch.delivered_bytes
        if came == 1:
            watch.bytes += row(broker.nodes, queue.tail, NODE).tag & SIZE_MASK
    else:
        watch.bytes = 0
        node = wide(queue.head)
        while node != NONE:
            watch.bytes += row(broker.nodes, node, NODE).tag & SIZE_MASK
            node = wide(row(broker.nodes, node, NODE).next)
    watch.length, watch.arrived = queue.length, queue.arrived
    watch.delivered, watch.delivered_bytes = queue.delivered, queue.delivered_bytes
    return wide(watch.bytes)


@kernel
def counted(state: Any) -> tuple[int, int, int]:
    """Return the watched queues' lost messages, delivered or elided messages, and largest high-water mark.

    All since the warm-up; the mark in work units; losses as `eventlog.outcomes` defines them.
    """
    broker = row(state, 0, STATE)
    lost, passed, mark = wide(0), wide(0), wide(0)
    for i in range(broker.watched):
        place = wide(row(broker.watches, i, WATCH).client) * QUEUES + broker.watched_queue
        queue = row(broker.queues, place, QUEUE)
        tally = row(broker.tallies, place, TALLY)
        loss = row(broker.losses, place, LOSS)
        lost += tally.discarded + loss.not_connected + loss.disconnected + loss.spool_refused
        lost += loss.ingress_refused + loss.too_big + loss.expired + loss.dead + loss.rejected
        passed += queue.delivered + tally.elided
        mark = max(mark, wide(queue.high_water))
    return lost, passed, mark


@kernel
def begin_anew(state: Any, branch: int) -> None:
    """Draw lost segments, service times and failures from the random streams of a branch from now on."""
    broker = row(state, 0, STATE)
    for c in range(broker.client_count + broker.durable_count):
        more = row(broker.more, c, MORE)
        more.key = uniform_bits(more.key, branch)
        if c < broker.client_count:
            receiver = row(broker.receivers, c, RECEIVER)
            receiver.key_size = uniform_bits(receiver.key_size, branch)
        if more.endpoint != NONE:
            endpoint = row(broker.endpoints, more.endpoint, ENDPOINT)
            endpoint.fail_key = uniform_bits(endpoint.fail_key, branch)
