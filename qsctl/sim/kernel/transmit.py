"""From the TCP transmit queue to the port: what one message sent does to window, port, link and acknowledgment."""

from __future__ import annotations

from typing import Any

from qsctl.sim.kernel.jit import inlined, kernel
from qsctl.sim.kernel.random import uniform_bits
from qsctl.sim.kernel.records import (
    ABSENCES,
    FOREVER,
    LIFE_INDICATION,
    LIFE_LOST,
    LINK,
    LOGGING,
    LOSSY,
    NONE,
    PAUSES,
    SIZE_BITS,
    SIZE_MASK,
    TRACKED,
)
from qsctl.sim.kernel.rows import delivered_row, wide


@inlined
def serialization(size: int, numerator: int, denominator: int) -> int:
    """Nanoseconds on the wire, rounded up."""
    if denominator == 1:
        return size * numerator
    return (size * numerator + denominator - 1) // denominator


@kernel
def acknowledgment_time(c: int, node: int, depart: int, size: int, clients: Any, lives: Any, rare: Any) -> int:
    """When a message that left the port at `depart` is acknowledged, on a connection that is not a plain one.

    A slower link behind the port is a FIFO of its own. A lost message is sent again: its acknowledgment comes one
    round trip later (our reading: the second copy is not charged to the port). A client that pauses acknowledges
    when the pause ends. Acknowledgments never overtake one another.
    """
    client = clients[c]
    more = rare.more[c]
    flags = client.traits
    if flags & LINK:
        depart = max(more.link_free, depart) + serialization(size, more.link_num, more.link_den)
        more.link_free = depart
    plain = depart + client.delay
    time = plain
    if flags & LOSSY:
        lives[node].traits &= ~LIFE_LOST
        if uniform_bits(more.key, more.sent) < more.loss:
            lives[node].traits |= LIFE_LOST
            time += more.round_trip
            more.retransmissions += 1
        more.sent += 1
    time = max(time, more.last_ack)
    if flags & PAUSES:
        # Only departures never go back: a new connection forgets what the old one waited for.
        while more.pause < more.pause_end and rare.pauses[more.pause, 1] <= plain:
            more.pause += 1
        pause = more.pause
        while pause < more.pause_end and rare.pauses[pause, 1] <= time:
            pause += 1
        if pause < more.pause_end and rare.pauses[pause, 0] <= time:
            time = rare.pauses[pause, 1]
    more.last_ack = time
    return wide(time)


@inlined
def send(
    c: int, t: int, node: int, clients: Any, ports: Any, nodes: Any, lives: Any, log: Any, control: Any, rare: Any
) -> None:
    """Copy one message to its port's queue (a FIFO: Lindley's recursion) and settle its acknowledgment."""
    client = clients[c]
    port = ports[client.port]
    tag = nodes[node].tag
    size = tag & SIZE_MASK
    depart = max(t, port.free) + serialization(size, port.num, port.den)
    port.free = depart
    time = depart + client.delay
    if client.traits & (LOSSY | PAUSES | LINK):
        time = acknowledgment_time(c, node, depart, size, clients, lives, rare)
    nodes[node].time = time
    client.inflight += size
    if client.next_ack == FOREVER:
        client.next_ack = time
    queue = tag >> SIZE_BITS
    if queue == 0 and client.traits & TRACKED:
        lives[node].sent = depart
    elif control[LOGGING] != 0:
        life = lives[node]
        acknowledged = time
        if client.traits & ABSENCES and time >= rare.more[c].next_absence:
            acknowledged = wide(NONE)
        delivered_row(
            log, control, life.born, life.moved, depart, acknowledged, c, wide(life.topic), size, queue,
            1 if life.traits & LIFE_INDICATION else 0, wide(life.attempts),
        )  # fmt: skip
