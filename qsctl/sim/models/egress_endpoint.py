"""Guaranteed messages behind G-1: flows and their window, messages that come back, acknowledgments of the consumer.

Seed 004: a minimum burst below the flow window means that guaranteed messages "will be transmitted at a very reduced
rate": they are not lost. Our reading: a message discarded from G-1 goes back to its endpoint and is redelivered after
a delay (or, by option, waits at the endpoint until it fits).
"""

from __future__ import annotations

from typing import Any

from qsctl.sim.kernel.heap import push
from qsctl.sim.kernel.jit import kernel
from qsctl.sim.kernel.records import FOREVER, NONE, TIMER_COUNT
from qsctl.sim.kernel.rows import wide


@kernel
def want_timer(c: int, time: int, control: Any, rare: Any) -> None:
    """Wake a client at `time` unless it wakes earlier; entries that it no longer means are skipped."""
    more = rare.more[c]
    if time < more.timer:
        more.timer = time
        push(rare.timers, control[TIMER_COUNT], time, c)
        control[TIMER_COUNT] += 1


@kernel
def return_to_endpoint(c: int, t: int, node: int, nodes: Any, lives: Any, control: Any, rare: Any) -> None:
    """A guaranteed message left G-1 unsent: it comes again after the redelivery delay, oldest first."""
    more = rare.more[c]
    endpoint = rare.endpoints[more.endpoint]
    due = t + more.redelivery_delay
    lives[node].moved = due
    nodes[node].next = NONE
    if endpoint.returned_head == NONE:
        endpoint.returned_head = node
    else:
        nodes[endpoint.returned_tail].next = node
    endpoint.returned_tail = node
    endpoint.outstanding -= endpoint.tracked
    want_timer(c, due, control, rare)


@kernel
def wait_at_endpoint(c: int, node: int, nodes: Any, rare: Any) -> None:
    """Keep a message at the endpoint, behind those that wait already."""
    endpoint = rare.endpoints[rare.more[c].endpoint]
    nodes[node].next = NONE
    if endpoint.waiting_head == NONE:
        endpoint.waiting_head = node
    else:
        nodes[endpoint.waiting_tail].next = node
    endpoint.waiting_tail = node


@kernel
def next_at_endpoint(c: int, t: int, lives: Any, rare: Any) -> int:
    """The message that the endpoint would send next: a returned one that is due, else the oldest waiting; or NONE."""
    endpoint = rare.endpoints[rare.more[c].endpoint]
    returned = endpoint.returned_head
    if returned != NONE and lives[returned].moved <= t:
        return wide(returned)
    return wide(endpoint.waiting_head)


@kernel
def take_from_endpoint(c: int, node: int, nodes: Any, rare: Any) -> None:
    """Remove what `next_at_endpoint` named."""
    endpoint = rare.endpoints[rare.more[c].endpoint]
    if node == endpoint.returned_head:
        endpoint.returned_head = nodes[node].next
        if endpoint.returned_head == NONE:
            endpoint.returned_tail = NONE
    else:
        endpoint.waiting_head = nodes[node].next
        if endpoint.waiting_head == NONE:
            endpoint.waiting_tail = NONE
    endpoint.outstanding += endpoint.tracked


@kernel
def read_not_acknowledged(c: int, node: int, due: int, nodes: Any, control: Any, rare: Any) -> None:
    """The client's TCP has the message; its application acknowledges it at `due` (FOREVER: never)."""
    endpoint = rare.endpoints[rare.more[c].endpoint]
    nodes[node].time = due
    nodes[node].next = NONE
    if endpoint.reading_head == NONE:
        endpoint.reading_head = node
    else:
        nodes[endpoint.reading_tail].next = node
    endpoint.reading_tail = node
    if due < FOREVER:
        want_timer(c, due, control, rare)


@kernel
def next_due(c: int, t: int, lives: Any, nodes: Any, rare: Any) -> int:
    """When, after `t`, the endpoint next does something by itself: its first returned message, or first one read."""
    endpoint = rare.endpoints[rare.more[c].endpoint]
    due = wide(FOREVER)
    if endpoint.returned_head != NONE and lives[endpoint.returned_head].moved > t:
        due = wide(lives[endpoint.returned_head].moved)
    if endpoint.reading_head != NONE:
        due = min(due, nodes[endpoint.reading_head].time)
    return due
