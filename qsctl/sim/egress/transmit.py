"""From the TCP transmit queue to the port: when a message leaves the port, and when it is acknowledged."""

from __future__ import annotations

from typing import Any

from qsctl.sim.egress.receiver import expect, requeue
from qsctl.sim.kernel.jit import inlined, kernel, quotient, row, wide
from qsctl.sim.kernel.random import uniform_bits
from qsctl.sim.kernel.records import (
    ABSENCES,
    CLIENT,
    LIFE,
    LIFE_LOST,
    LINK,
    LOSSY,
    MORE,
    NODE,
    NONE,
    PORT,
    READS,
    RECEIVER,
    STATE,
)


@inlined
def serialization(size: int, numerator: int, denominator: int) -> int:
    """Return nanoseconds on the wire, rounded up."""
    if denominator == 1:
        return size * numerator
    return quotient(size * numerator + denominator - 1, denominator)


@inlined
def leave_port(ports: Any, number: int, t: int, size: int) -> int:
    """Return when the last byte of a message given to a port at `t` leaves it: a FIFO, Lindley's recursion."""
    port = row(ports, number, PORT)
    depart = max(t, port.free) + serialization(size, port.num, port.den)
    port.free = depart
    return wide(depart)


@kernel
def acknowledgment_time(state: Any, c: int, node: int, depart: int, size: int) -> int:
    """Return when a message that left the port at `depart` is acknowledged, on a connection that is not a plain one.

    A slower link behind the port is a FIFO of its own. A lost message is sent again: its acknowledgment comes one
    round trip later (our reading: the second copy is not charged to the port). Acknowledgments never overtake one
    another.
    """
    broker = row(state, 0, STATE)
    client = row(broker.clients, c, CLIENT)
    more = row(broker.more, c, MORE)
    flags = client.traits
    if flags & LINK:
        depart = max(more.link_free, depart) + serialization(size, more.link_num, more.link_den)
        more.link_free = depart
    time = wide(depart + client.delay)
    if flags & LOSSY:
        life = row(broker.lives, node, LIFE)
        life.traits &= ~LIFE_LOST
        if uniform_bits(more.key, more.sent) < more.loss:
            life.traits |= LIFE_LOST
            time += more.round_trip
            more.retransmissions += 1
        more.sent += 1
    time = max(time, more.last_ack)
    more.last_ack = time
    return wide(time)


@inlined
def send(state: Any, clients: Any, nodes: Any, c: int, t: int, node: int, size: int, rare: Any) -> tuple[int, int]:
    """Copy a message of the TCP transmit queue to the port's queue.

    Returns:
        When its last byte leaves the port, and when it is acknowledged.
    """
    client = row(clients, c, CLIENT)
    depart = leave_port(row(state, 0, STATE).ports, wide(client.port), t, size)
    time = wide(depart + client.delay)
    if rare is not None and client.traits & (LOSSY | LINK):
        time = acknowledgment_time(state, c, node, depart, size)
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


@inlined
def acknowledged_before_leaving(state: Any, clients: Any, c: int, time: int, rare: Any) -> int:
    """Return `time`, or NONE where the client disconnects before the acknowledgment of that time."""
    if rare is not None and row(clients, c, CLIENT).traits & ABSENCES:
        return time if time < row(row(state, 0, STATE).more, c, MORE).next_absence else wide(NONE)
    return time
