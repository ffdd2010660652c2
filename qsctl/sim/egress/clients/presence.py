"""The disconnection and reconnection of a client, and the messages still held when the run ends.

Our reading, as the sources do not state it: when a client disconnects, direct messages in its queues are discarded
("client not connected"), as are those that arrive until it reconnects; a message already in the TCP transmit queue
counts as delivered, as the broker's own table counts it. Guaranteed messages that the consumer has not acknowledged
return to the front of their endpoint. A new connection starts with the initial window, idle readers and no topics
remembered for eliding.
"""

from __future__ import annotations

from typing import Any

from qsctl.sim.egress.clients._application import forget_reading
from qsctl.sim.egress.clients.connection import drain, note_blocked
from qsctl.sim.egress.clients.durable_queue import bind, unbind
from qsctl.sim.egress.clients.traits import resume, serve
from qsctl.sim.egress.queues.eliding import forget_topics
from qsctl.sim.egress.queues.endpoint import want_next_due
from qsctl.sim.egress.queues.priority_queue import count_guaranteed, log_loss, unlink_head
from qsctl.sim.egress.transmission.tcp import forget_segments
from qsctl.sim.kernel.histogram import count_unfinished
from qsctl.sim.kernel.jit import kernel, part, row, wide
from qsctl.sim.kernel.records import (
    ABSENT,
    BACKLOG,
    CLIENT,
    DELIVERED,
    DISCONNECTED,
    DURABLE,
    ENDPOINT,
    FOREVER,
    HELD,
    HOLD,
    LATER,
    LIFE,
    LOSS,
    LOSSY,
    MORE,
    NODE,
    NONE,
    QUEUE,
    RECEIVER,
    SHARED,
    SIZE_BITS,
    SIZE_MASK,
    SPOOL,
    STATE,
    TOPIC,
    TRACKED,
    WAITING,
)
from qsctl.sim.kernel.rows import entered_after, log_delivered, log_sent, release, undelivered_row


@kernel
def disconnect(state: Any, c: int, t: int) -> int:
    """Disconnect a client; return the number of direct messages discarded from its queues.

    Acknowledgments and reads before `t` are processed first, since the next random draws follow them.
    """
    drain(state, c, t)
    broker = row(state, 0, STATE)
    client = row(broker.clients, c, CLIENT)
    more = row(broker.more, c, MORE)
    endpoint = row(broker.endpoints, more.endpoint, ENDPOINT)
    nodes = broker.nodes
    if client.blocked != 0:
        more.blocked_ns += t - more.blocked_since
    dropped = 0
    tracked = client.traits & TRACKED != 0
    lossy = client.traits & LOSSY != 0
    first = wide(endpoint.reading_head) if tracked else wide(NONE)
    last = wide(endpoint.reading_tail) if tracked else wide(NONE)
    node = wide(row(broker.receivers, c, RECEIVER).unread_head)
    while node != NONE:
        unread = row(nodes, node, NODE)
        after = wide(unread.next)
        if tracked and unread.tag >> SIZE_BITS == 0:
            if first == NONE:
                first = node
            else:
                row(nodes, last, NODE).next = node
            last = node
        else:
            release(state, node)
        node = after
    node = wide(client.head)
    unsent = False
    while node != NONE:
        sent = row(nodes, node, NODE)
        after = wide(sent.next)
        unsent = unsent or node == client.unsent
        if tracked and sent.tag >> SIZE_BITS == 0:
            if first == NONE:
                first = node
            else:
                row(nodes, last, NODE).next = node
            last = node
        else:
            life = row(broker.lives, node, LIFE)
            if (unsent or lossy) and broker.acknowledging != 0 and life.moved >= broker.counted_from:
                count_unfinished(state, c, wide(broker.horizon - life.born))
            if broker.logging != 0:
                if lossy:
                    log_delivered(state, c, node, wide(sent.time), wide(NONE))
                elif unsent:
                    log_delivered(state, c, node, wide(NONE), wide(NONE))
            release(state, node)
        node = after
    if first != NONE:  # not `last`: an empty list's tail is stale
        row(nodes, last, NODE).next = NONE
        node = first
        while node != NONE:
            row(nodes, node, NODE).time = row(broker.lives, node, LIFE).born
            node = wide(row(nodes, node, NODE).next)
    for q in range(4, -1, -1):
        queue = row(broker.queues, c * 5 + q, QUEUE)
        while queue.head != NONE:
            node = unlink_head(broker.clients, broker.queues, nodes, c, wide(q))
            left = row(nodes, node, NODE)
            if q == 0 and tracked:
                left.next = NONE
                if first == NONE:
                    first = node
                else:
                    row(nodes, last, NODE).next = node
                last = node
            else:
                dropped += 1
                topic = wide(row(broker.topics, node, TOPIC).topic)
                row(broker.losses, c * 5 + q, LOSS).disconnected += 1
                log_loss(
                    state, c, wide(q), t, wide(left.tag & SIZE_MASK), topic, wide(left.time), wide(DISCONNECTED)
                )  # fmt: skip
                release(state, node)
        queue.pending = 0
    if tracked:
        # What G-1 held is back at the endpoint, sent or not.
        row(broker.queues, c * 5, QUEUE).length = 0
        row(broker.queues, c * 5, QUEUE).work = 0
        broker.unacknowledged -= endpoint.unacknowledged
        if first != NONE and client.traits & SHARED == 0:
            row(nodes, last, NODE).next = endpoint.waiting_head
            if endpoint.waiting_head == NONE:
                endpoint.waiting_tail = last
            endpoint.waiting_head = first
    broker.egress_bytes -= more.buffered
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
    if lossy:
        forget_segments(state, c)
    forget_topics(state, c)
    forget_reading(state, c)
    if client.traits & SHARED:
        unbind(state, c, first, t)
    resume(state, t)
    return dropped


@kernel
def connect(state: Any, c: int, t: int) -> None:
    """Connect a client again; its endpoint sends the messages that it may."""
    broker = row(state, 0, STATE)
    client = row(broker.clients, c, CLIENT)
    client.traits &= ~ABSENT
    note_blocked(state, c, t, serve(state, c, t, client.traits & TRACKED != 0))
    want_next_due(state, c, t)
    if client.traits & SHARED:
        bind(state, c, t)
    resume(state, t)


@kernel
def count_rest(state: Any, first: int, count: int) -> int:
    """Count the messages of each client from `first` on that are in G-1 or at its endpoint when the run ends.

    Returns the client to continue with after the arrays have grown; `count` when all are done.
    """
    broker = row(state, 0, STATE)
    for c in range(first, count):
        if broker.short != 0:
            return wide(c)
        count_held(state, c)
        loss = row(broker.losses, c * 5, LOSS)
        endpoint = row(broker.endpoints, row(broker.more, c, MORE).endpoint, ENDPOINT)
        loss.waiting = list_length(state, wide(endpoint.waiting_head))
        loss.waiting += list_length(state, wide(endpoint.returned_head))
        client = row(broker.clients, c, CLIENT)
        if client.traits & SPOOL:
            loss.waiting += row(broker.durables, row(broker.more, c, MORE).durable, DURABLE).waiting
        elif client.traits & HOLD:
            queue = row(broker.queues, c * 5, QUEUE)
            loss.unacknowledged = queue.length - list_length(state, wide(queue.head))
            node = wide(endpoint.reading_head)
            while node != NONE and node != endpoint.batch_head:
                count_guaranteed(state, c, node, wide(row(broker.later, node, LATER).reached))
                node = wide(row(broker.nodes, node, NODE).next)
        elif client.traits & TRACKED:
            count_sent(state, c, wide(endpoint.reading_head))
            count_sent(state, c, wide(row(broker.receivers, c, RECEIVER).unread_head))
            count_sent(state, c, wide(client.head))
    return wide(count)


@part
def count_held(state: Any, c: int) -> None:
    """Count the unfinished messages in the queues and the endpoint of a client whose messages are acknowledged.

    Messages that left G-1 and are counted by their sending are excluded, see `count_sent`. A message that a durable
    queue lost (expired, or redelivered the maximum number of times) has no time to acknowledgment, like a discarded
    message; one moved to a dead message queue is unfinished in that queue, with its age since its arrival at the first
    one.
    """
    broker = row(state, 0, STATE)
    client = row(broker.clients, c, CLIENT)
    if broker.acknowledging != 0:
        for q in range(5):
            count_aged(state, c, wide(row(broker.queues, c * 5 + q, QUEUE).head))
        # Of a link that loses, what was sent is done once it is acknowledged; else that is known as it is sent.
        node = wide(client.head) if client.traits & LOSSY else wide(client.unsent)
        while node != NONE:
            life = row(broker.lives, node, LIFE)
            if life.moved >= broker.counted_from:
                count_unfinished(state, c, wide(broker.horizon - life.born))
            node = wide(row(broker.nodes, node, NODE).next)
    elif client.traits & SPOOL:
        durable = row(broker.durables, row(broker.more, c, MORE).durable, DURABLE)
        for line in range(durable.backlog, durable.backlog + durable.backlogs):
            count_aged(state, c, wide(row(broker.backlogs, line, BACKLOG).head))
        endpoint = row(broker.endpoints, row(broker.more, c, MORE).endpoint, ENDPOINT)
        count_aged(state, c, wide(endpoint.returned_head))
    elif client.traits & TRACKED:
        endpoint = row(broker.endpoints, row(broker.more, c, MORE).endpoint, ENDPOINT)
        count_aged(state, c, wide(row(broker.queues, c * 5, QUEUE).head))
        count_aged(state, c, wide(endpoint.waiting_head))
        count_aged(state, c, wide(endpoint.returned_head))
        if client.traits & HOLD:
            count_with_client(state, c, wide(endpoint.batch_head))
            count_with_client(state, c, wide(row(broker.receivers, c, RECEIVER).unread_head))
            count_with_client(state, c, wide(client.head))


@part
def count_aged(state: Any, c: int, node: int) -> None:
    """Count the messages of a list, which were never sent or have returned, as unfinished with their age."""
    broker = row(state, 0, STATE)
    while node != NONE:
        here = row(broker.nodes, node, NODE)
        count_unfinished(state, c, wide(broker.horizon - here.time))
        node = wide(here.next)


@part
def count_with_client(state: Any, c: int, node: int) -> None:
    """Count the guaranteed messages of a list, which were sent and are held by G-1, as unfinished with their age."""
    broker = row(state, 0, STATE)
    while node != NONE:
        here = row(broker.nodes, node, NODE)
        if here.tag >> SIZE_BITS == 0:
            count_unfinished(state, c, wide(broker.horizon - row(broker.lives, node, LIFE).born))
        node = wide(here.next)


@part
def count_sent(state: Any, c: int, node: int) -> None:
    """Count the guaranteed messages of a list, which left G-1, as unacknowledged at the end of the run."""
    nodes = row(state, 0, STATE).nodes
    while node != NONE:
        if row(nodes, node, NODE).tag >> SIZE_BITS == 0:
            count_guaranteed(state, c, node, wide(NONE))
        node = wide(row(nodes, node, NODE).next)


@part
def list_length(state: Any, node: int) -> int:
    """Return the number of messages in a list of nodes."""
    nodes = row(state, 0, STATE).nodes
    length = 0
    while node != NONE:
        length += 1
        node = wide(row(nodes, node, NODE).next)
    return length


@kernel
def hold(state: Any, c: int) -> None:
    """Log the messages that one client's queues and endpoint hold when the run ends; the state is unusable afterwards.

    A guaranteed message that was sent and not acknowledged is logged as held by G-1, with the times of its sending.
    """
    broker = row(state, 0, STATE)
    client = row(broker.clients, c, CLIENT)
    endpoint = row(broker.endpoints, row(broker.more, c, MORE).endpoint, ENDPOINT)
    nodes = broker.nodes
    tracked = client.traits & TRACKED != 0
    lossy = client.traits & LOSSY != 0
    outcome = wide(HELD) if client.traits & HOLD else wide(DELIVERED)
    if tracked:
        node = wide(endpoint.reading_head)
        while node != NONE and node != endpoint.batch_head:
            later = row(broker.later, node, LATER)
            log_delivered(state, c, node, wide(later.sent), wide(later.reached))
            node = wide(row(nodes, node, NODE).next)
        log_unacknowledged(state, c, node, outcome)
        log_unacknowledged(state, c, wide(row(broker.receivers, c, RECEIVER).unread_head), outcome)
    node = wide(client.head)
    unsent = False
    while node != NONE:
        unsent = unsent or node == client.unsent
        guaranteed = tracked and row(nodes, node, NODE).tag >> SIZE_BITS == 0
        sent = wide(row(broker.later, node, LATER).sent) if guaranteed and not unsent else wide(NONE)
        if lossy:
            sent = wide(row(nodes, node, NODE).time)
        if guaranteed:
            log_sent(state, c, node, sent, wide(NONE), outcome)
        elif lossy:
            log_delivered(state, c, node, wide(row(nodes, node, NODE).time), wide(NONE))
        elif unsent:
            log_delivered(state, c, node, wide(NONE), wide(NONE))
        node = wide(row(nodes, node, NODE).next)
    for q in range(4, -1, -1):
        log_list(state, c, wide(q), wide(row(broker.queues, c * 5 + q, QUEUE).head), wide(HELD))
    log_list(state, c, wide(0), wide(endpoint.returned_head), wide(WAITING))
    log_list(state, c, wide(0), wide(endpoint.waiting_head), wide(WAITING))
    if client.traits & SPOOL:
        durable = row(broker.durables, row(broker.more, c, MORE).durable, DURABLE)
        for line in range(durable.backlog, durable.backlog + durable.backlogs):
            log_list(state, c, wide(0), wide(row(broker.backlogs, line, BACKLOG).head), wide(WAITING))


@part
def log_unacknowledged(state: Any, c: int, node: int, outcome: int) -> None:
    """Log the guaranteed messages of a list that the client has received and not acknowledged."""
    broker = row(state, 0, STATE)
    while node != NONE:
        here = row(broker.nodes, node, NODE)
        if here.tag >> SIZE_BITS == 0:
            log_sent(state, c, node, wide(row(broker.later, node, LATER).sent), wide(NONE), outcome)
        node = wide(here.next)


@part
def log_list(state: Any, c: int, q: int, node: int, outcome: int) -> None:
    """Log the messages of a list that never left: held in their queue, or waiting at their endpoint."""
    broker = row(state, 0, STATE)
    while node != NONE:
        here = row(broker.nodes, node, NODE)
        topic = wide(row(broker.topics, node, TOPIC).topic)
        attempts = wide(row(broker.lives, node, LIFE).attempts) if q == 0 else wide(1)
        enter = wide(NONE) if outcome == WAITING else entered_after(state, c, node, q, wide(here.time))
        undelivered_row(
            state, wide(here.time), enter, wide(NONE), c, topic, wide(here.tag & SIZE_MASK), q, outcome, attempts
        )
        node = wide(here.next)
