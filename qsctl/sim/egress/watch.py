"""How near a queue is to what is rare: the importance function of multilevel splitting (`sim.splitting`).

Of the queue `watched_queue` of every client in `watches`: its depth in work units, where `watched_most` is 0; else how
near it is to discarding, counted up to `watched_most`, which is the importance of a queue that discards its next
message. A queue discards when its depth is at its maximum and its length at its minimum burst [SOL-QUEUES] [P7500];
G-1 never does, but its endpoint refuses what would be above its maximum of messages. The largest of all clients
counts.
"""

from __future__ import annotations

from typing import Any

from qsctl.sim.kernel.jit import kernel, row, wide
from qsctl.sim.kernel.random import uniform_bits
from qsctl.sim.kernel.records import ENDPOINT, LOSS, MORE, NONE, QUEUE, QUEUES, RECEIVER, STATE, TALLY, WATCH


@kernel
def importance(state: Any) -> int:
    """Return the importance of the state; 0 where nothing is watched."""
    broker = row(state, 0, STATE)
    queues, most, q = broker.queues, wide(broker.watched_most), wide(broker.watched_queue)
    largest = wide(0)
    for i in range(broker.watched):
        c = wide(row(broker.watches, i, WATCH).client)
        queue = row(queues, c * QUEUES + q, QUEUE)
        found = wide(queue.work)
        if most > 0 and q == 0:
            found = wide(0)
            place = wide(row(broker.more, c, MORE).endpoint)
            if place != NONE:
                endpoint = row(broker.endpoints, place, ENDPOINT)
                if endpoint.held_max > 0:
                    found = most - (endpoint.held_max - endpoint.held)
        elif most > 0:
            found = most - max(queue.max_depth - queue.work, queue.burst - queue.length)
        largest = max(largest, found)
    return largest


@kernel
def counted(state: Any) -> tuple[int, int, int]:
    """Return what the watched queues lost, what they delivered or elided, and their largest high-water mark.

    All since the warm-up, the mark in work units; a loss is what `eventlog.outcomes` counts as one.
    """
    broker = row(state, 0, STATE)
    lost, passed, mark = wide(0), wide(0), wide(0)
    for i in range(broker.watched):
        place = wide(row(broker.watches, i, WATCH).client) * QUEUES + broker.watched_queue
        queue = row(broker.queues, place, QUEUE)
        tally = row(broker.tallies, place, TALLY)
        loss = row(broker.losses, place, LOSS)
        lost += tally.discarded + loss.not_connected + loss.disconnected + loss.spool_refused
        lost += loss.ingress_refused + loss.too_big + loss.expired + loss.dead
        passed += queue.delivered + tally.elided
        mark = max(mark, wide(queue.high_water))
    return lost, passed, mark


@kernel
def begin_anew(state: Any, branch: int) -> None:
    """Have clients draw segments that are lost, times of service and failures from streams of a branch from now on."""
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
