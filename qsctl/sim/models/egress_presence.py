"""A client that goes and comes back, and what is held when the run ends.

Our reading, for the sources are silent: when a client disconnects, direct messages in its queues are discarded ("client
not connected") and what arrives until it is back as well; a message already in the TCP transmit queue counts as
delivered, as the broker's own table counts it. Guaranteed messages that the consumer has not acknowledged go back to
the front of their endpoint. A new connection starts with the initial window and without topics to elide.
"""

from __future__ import annotations

from typing import Any

from qsctl.sim.kernel.jit import kernel
from qsctl.sim.kernel.records import (
    ABSENT,
    EGRESS_BYTES,
    FOREVER,
    HELD,
    LIFE_INDICATION,
    LOGGING,
    NONE,
    SIZE_BITS,
    SIZE_MASK,
    TRACKED,
    WAITING,
)
from qsctl.sim.kernel.rows import delivered_row, release, undelivered_row, wide
from qsctl.sim.models.egress_eliding import forget_topics
from qsctl.sim.models.egress_endpoint import next_due, want_timer
from qsctl.sim.models.egress_queue import count_loss, unlink_head
from qsctl.sim.models.egress_serve import serve


@kernel
def log_unfinished(c: int, node: int, sent: bool, nodes: Any, lives: Any, log: Any, control: Any) -> None:
    """A message that left its queue and whose acknowledgment, or sending, never came: delivered, with nulls."""
    life = lives[node]
    if control[LOGGING] != 0:
        tag = nodes[node].tag
        delivered_row(
            log, control, life.born, life.moved, life.sent if sent else NONE, wide(NONE), c, wide(life.topic),
            tag & SIZE_MASK, tag >> SIZE_BITS, 1 if life.traits & LIFE_INDICATION else 0, wide(life.attempts),
        )  # fmt: skip


@kernel
def disconnect(
    c: int, t: int, clients: Any, queues: Any, nodes: Any, lives: Any, log: Any, control: Any, rare: Any
) -> int:
    """Take a client off: the number of direct messages dropped from its queues."""
    client = clients[c]
    more = rare.more[c]
    if client.blocked != 0:
        more.blocked_ns += t - more.blocked_since
    dropped = 0
    first = NONE
    last = NONE
    tracked = client.traits & TRACKED != 0
    node = rare.endpoints[more.endpoint].reading_head if tracked else NONE
    if node != NONE:
        first = node
        last = rare.endpoints[more.endpoint].reading_tail
    node = client.head
    unsent = False
    while node != NONE:
        after = nodes[node].next
        unsent = unsent or node == client.unsent
        if tracked and nodes[node].tag >> SIZE_BITS == 0:
            if first == NONE:
                first = node
            else:
                nodes[last].next = node
            last = node
        else:
            if unsent:
                log_unfinished(c, wide(node), bool(0), nodes, lives, log, control)
            release(nodes, control, node)
        node = after
    if last != NONE:
        nodes[last].next = NONE
        node = first
        while node != NONE:
            nodes[node].time = lives[node].born
            node = nodes[node].next
    for q in range(4, -1, -1):
        while queues[c * 5 + q].length > 0:
            node = unlink_head(c, q, clients, queues, nodes)
            if q == 0 and tracked:
                nodes[node].next = NONE
                if first == NONE:
                    first = node
                else:
                    nodes[last].next = node
                last = node
            else:
                dropped += 1
                queues[c * 5 + q].not_connected += 1
                topic = wide(lives[node].topic) if control[LOGGING] != 0 else 0
                count_loss(
                    c, q, t, nodes[node].tag & SIZE_MASK, topic, nodes[node].time, queues, log, control
                )  # fmt: skip
                release(nodes, control, node)
        queues[c * 5 + q].pending = 0
    if tracked:
        endpoint = rare.endpoints[more.endpoint]
        endpoint.reading_head = NONE
        endpoint.reading_tail = NONE
        endpoint.outstanding = 0
        if first != NONE:
            nodes[last].next = endpoint.waiting_head
            if endpoint.waiting_head == NONE:
                endpoint.waiting_tail = last
            endpoint.waiting_head = first
    control[EGRESS_BYTES] -= more.buffered
    more.buffered = 0
    client.head = NONE
    client.tail = NONE
    client.unsent = NONE
    client.inflight = 0
    client.tcp_bytes = 0
    client.next_ack = FOREVER
    client.window = more.window_initial
    client.queued = 0
    client.blocked = 0
    client.traits |= ABSENT
    more.timer = FOREVER
    more.last_ack = 0
    forget_topics(c, rare)
    return dropped


@kernel
def connect(
    c: int, t: int, clients: Any, queues: Any, ports: Any, nodes: Any, lives: Any, log: Any, control: Any, rare: Any
) -> None:
    """The client is back: its endpoint sends again."""
    clients[c].traits &= ~ABSENT
    serve(c, t, clients, queues, ports, nodes, lives, log, control, rare)
    if rare.more[c].endpoint != NONE:
        want_timer(c, next_due(c, t, lives, nodes, rare), control, rare)


@kernel
def hold(c: int, clients: Any, queues: Any, nodes: Any, lives: Any, log: Any, control: Any, rare: Any) -> None:
    """Log what one client's queues and endpoint hold when the run ends; the state is spent by it."""
    client = clients[c]
    tracked = client.traits & TRACKED != 0
    endpoint_index = rare.more[c].endpoint
    if tracked:
        node = rare.endpoints[endpoint_index].reading_head
        while node != NONE:
            log_unfinished(c, wide(node), bool(1), nodes, lives, log, control)
            node = nodes[node].next
    node = client.head
    unsent = False
    while node != NONE:
        unsent = unsent or node == client.unsent
        if unsent or (tracked and nodes[node].tag >> SIZE_BITS == 0):
            log_unfinished(c, wide(node), not unsent, nodes, lives, log, control)
        node = nodes[node].next
    for q in range(4, -1, -1):
        node = queues[c * 5 + q].head if queues[c * 5 + q].length > 0 else NONE
        while node != NONE:
            log_held(c, q, wide(node), wide(HELD), nodes, lives, log, control)
            node = nodes[node].next
    if endpoint_index != NONE:
        for node in (rare.endpoints[endpoint_index].returned_head, rare.endpoints[endpoint_index].waiting_head):
            while node != NONE:
                log_held(c, wide(0), wide(node), wide(WAITING), nodes, lives, log, control)
                node = nodes[node].next


@kernel
def log_held(c: int, q: int, node: int, outcome: int, nodes: Any, lives: Any, log: Any, control: Any) -> None:
    """A message that never left: held in its queue, or waiting at its endpoint."""
    born = nodes[node].time
    if control[LOGGING] != 0:
        life = lives[node]
        size = nodes[node].tag & SIZE_MASK
        undelivered_row(
            log,
            control,
            born,
            wide(NONE),
            c,
            wide(life.topic),
            size,
            q,
            outcome,
            wide(life.attempts),
        )
