"""The path from the TCP transmit queue to the port and back without loss: times of departure and acknowledgment."""

from __future__ import annotations

from typing import Any

from qsctl.sim.egress.transmission.port import leave_port, serialization
from qsctl.sim.egress.transmission.receiver import expect, requeue
from qsctl.sim.kernel.jit import inlined_part, part, row, wide
from qsctl.sim.kernel.records import (
    ABSENCES,
    CLIENT,
    LINK,
    MORE,
    NODE,
    NONE,
    READS,
    RECEIVER,
    STATE,
)


@part
def leave_link(state: Any, c: int, depart: int, size: int) -> int:
    """Return the time at which a message that left the port at `depart` leaves the client's slower link, a FIFO."""
    more = row(row(state, 0, STATE).more, c, MORE)
    left = max(more.link_free, depart) + serialization(size, more.link_num, more.link_den)
    more.link_free = left
    return wide(left)


@inlined_part
def send(state: Any, clients: Any, nodes: Any, c: int, t: int, node: int, size: int, rare: Any) -> tuple[int, int]:
    """Send a message of the TCP transmit queue to the port.

    Returns:
        The time at which its last byte leaves the port, and the time at which it is acknowledged.
    """
    client = row(clients, c, CLIENT)
    depart = leave_port(row(state, 0, STATE).ports, wide(client.port), t, size)
    time = wide(depart + client.delay)
    if rare is not None and client.traits & LINK:
        time = leave_link(state, c, depart, size) + client.delay
    row(nodes, node, NODE).time = time
    client.inflight += size
    if rare is not None:
        if client.traits & READS:
            row(row(state, 0, STATE).receivers, c, RECEIVER).occupied += size
        expect(state, c, time)
    elif client.next_ack > time:
        client.next_ack = time
        if client.traits != 0 and client.queued != 0:
            requeue(state, c)
    return depart, time


@inlined_part
def acknowledged_before_leaving(state: Any, clients: Any, c: int, time: int, rare: Any) -> int:
    """Return `time`, that of an acknowledgment, or NONE where the client disconnects before."""
    if rare is not None and row(clients, c, CLIENT).traits & ABSENCES:
        return time if time < row(row(state, 0, STATE).more, c, MORE).next_absence else wide(NONE)
    return time
