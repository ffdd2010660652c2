"""One client's connection: from its queues to the TCP transmit queue, from there to the port, and acknowledgments back.

[SOL-QUEUES]: a message passes from a priority queue to the TCP transmit queue and, when TCP may send, to the port; its
data stays on the TCP queue until acknowledged. [P7500]: it enters the TCP queue whole while that is below its maximum,
and may exceed it. Our reading: bytes in flight stay within the window, but one message may always be in flight; whole
messages move (TCP may split them; this is not modelled). For a client whose link loses segments, see
`transmission.tcp`.

Where a function has the argument `rare`, None means a client that is plain (no endpoint, eliding, loss, pauses,
absences, slower link or weights, as most are), or plain but for its guaranteed messages, which G-1 holds. The compiler
then omits the branches that such a client never takes: it compiles a separate function from the same text.
"""

from __future__ import annotations

from typing import Any, Final

from qsctl.sim.egress.clients._application import (
    begin_guaranteed,
    next_acknowledgment,
    next_of_client,
    reader_begins,
    take_own,
)
from qsctl.sim.egress.queues.eliding import take_ready
from qsctl.sim.egress.queues.priority_queue import (
    buffer_bytes,
    count_departure,
    detach_head,
    join_transmit_queue,
    unlink_head,
    weighted,
    work_units,
)
from qsctl.sim.egress.transmission.congestion import grow
from qsctl.sim.egress.transmission.lossless import acknowledged_before_leaving, send
from qsctl.sim.egress.transmission.port import leave_port
from qsctl.sim.egress.transmission.receiver import closed, next_report, receive
from qsctl.sim.egress.transmission.tcp import (
    acknowledge_before,
    acknowledge_in_turn,
    arrives_in_order,
    expects_no_loss,
    next_of_connection,
    release_segment,
    send_in_order,
    send_segments,
    start_timer_again,
    take_acknowledgment,
)
from qsctl.sim.kernel.heap import drop_top, push, replace_top
from qsctl.sim.kernel.histogram import count_done, count_unfinished
from qsctl.sim.kernel.jit import bit_length, inlined_part, kernel, part, prefetch, row, wide
from qsctl.sim.kernel.records import (
    CLIENT,
    EAGER,
    ELIDING,
    ENDPOINT,
    ENTRIES_AN_EVENT,
    FOREVER,
    HOLD,
    LATER,
    LIFE,
    LIFE_INDICATION,
    LOSSY,
    MORE,
    NODE,
    NONE,
    QUEUE,
    READS,
    RECEIVER,
    SEGMENT,
    SIZE_BITS,
    SIZE_MASK,
    STATE,
    TALLY,
    TCP,
    TOPIC,
    TRACKED,
    WEIGHTED,
)
from qsctl.sim.kernel.rows import allocate, delivered_row, log_delivered, next_row

HELD_ONLY: Final = HOLD | TRACKED
"""The traits of a client that is plain but for its guaranteed messages, which G-1 holds until it acknowledges them."""


@inlined_part
def goes_through(clients: Any, c: int, size: int) -> bool:
    """Return whether a message can be sent at once: no message is queued, and the window is open."""
    client = row(clients, c, CLIENT)
    return bool(
        client.mask == 0
        and client.unsent == NONE
        and client.tcp_bytes < client.tcp_limit
        and (client.inflight == 0 or client.inflight + size <= client.window)
    )


@inlined_part
def pass_through(
    state: Any,
    clients: Any,
    queues: Any,
    tallies: Any,
    ports: Any,
    nodes: Any,
    c: int,
    q: int,
    t: int,
    size: int,
    node: int,
) -> tuple[int, int, int]:
    """Enqueue a direct message, dequeue it and send it, all at `t`; `node` is the first free node.

    Returns:
        The time at which its last byte leaves the port; the time at which it is acknowledged; 1 when it has a discard
        indication, else 0.
    """
    broker = row(state, 0, STATE)
    client = row(clients, c, CLIENT)
    queue = row(queues, c * 5 + q, QUEUE)
    sent = row(nodes, node, NODE)
    broker.free = sent.next
    queue.arrived += 1
    queue.delivered += 1
    queue.delivered_bytes += size
    if work_units(size) > queue.high_water:
        queue.high_water = work_units(size)
    indication = wide(queue.pending)
    if indication != 0:
        queue.pending = 0
        row(tallies, c * 5 + q, TALLY).indications += 1
    depart = leave_port(ports, wide(client.port), t, size)
    time = depart + client.delay
    sent.time = time
    sent.tag = size | (q << SIZE_BITS)
    sent.next = NONE
    client.inflight += size
    client.tcp_bytes += size
    if client.head == NONE:
        client.head = node
        client.next_ack = min(wide(client.next_ack), wide(time))
    else:
        row(nodes, client.tail, NODE).next = node
    client.tail = node
    if broker.acknowledging != 0:
        count_done(state, c, wide(time - t))
    return depart, wide(time), indication


@part
def count_acknowledged(state: Any, c: int, born: int, moved: int, time: int, rare: Any) -> None:
    """Count a direct message with the time of TCP's acknowledgment, in models where that acknowledges the message.

    A message whose connection ends before is counted as unacknowledged.
    """
    broker = row(state, 0, STATE)
    if moved < broker.counted_from:
        return
    if acknowledged_before_leaving(state, broker.clients, c, time, rare) == NONE:
        count_unfinished(state, c, wide(broker.horizon - born))
    else:
        count_done(state, c, time - born)


@part
def pump(state: Any, c: int, t: int, rare: Any, lossy: Any) -> bool:
    """Move and send all messages that may be sent at `t`; return True when the client is blocked: data remain unsent.

    `lossy` is None except for a client whose link loses segments.

    A guaranteed message of an endpoint is counted and logged as delivered once it is acknowledged, since it may return
    to the endpoint before.
    """
    broker = row(state, 0, STATE)
    clients, queues, nodes = broker.clients, broker.queues, broker.nodes
    client = row(clients, c, CLIENT)
    logging = broker.logging != 0
    acknowledging = broker.acknowledging != 0
    tracked = client.traits & TRACKED != 0
    holds = tracked  # one condition where they cannot differ: two cost an overloaded broker an eighth of its rate
    if rare is not None:
        holds = client.traits & HOLD != 0
    if lossy is not None:
        send_segments(state, c, t)
    while client.unsent != NONE:
        if lossy is not None:
            break
        node = wide(client.unsent)
        first = row(nodes, node, NODE)
        size = wide(first.tag & SIZE_MASK)
        if client.inflight > 0 and client.inflight + size > client.window:
            break
        if rare is not None and client.traits & READS and closed(state, c, size):
            break
        client.unsent = first.next
        depart, time = send(state, clients, nodes, c, t, node, size, rare)
        if acknowledging:
            life = row(broker.lives, node, LIFE)
            count_acknowledged(state, c, wide(life.born), wide(life.moved), time, rare)
        if tracked and first.tag >> SIZE_BITS == 0:
            row(broker.later, node, LATER).sent = depart
        elif logging:
            log_delivered(state, c, node, depart, acknowledged_before_leaving(state, clients, c, time, rare))
    while client.mask != 0:
        full = bool(client.tcp_bytes >= client.tcp_limit)
        node = wide(NONE)
        q = wide(0)
        if rare is not None and client.traits & ELIDING:
            node = take_ready(state, c, t, not full)
            if node == NONE:
                break
            q = wide(row(nodes, node, NODE).tag >> SIZE_BITS)
        if full:
            return True
        if node == NONE:
            q = bit_length(wide(client.mask)) - 1
            if rare is not None and client.traits & WEIGHTED:
                q = weighted(state, c, wide(client.mask))
            if holds and q == 0:
                node = detach_head(clients, queues, nodes, c, q)
            else:
                node = unlink_head(clients, queues, nodes, c, q)
        moved = row(nodes, node, NODE)
        size = wide(moved.tag & SIZE_MASK)
        born = wide(moved.time)
        guaranteed = tracked and q == 0
        indication = wide(0)
        if not guaranteed:
            indication = count_departure(
                state, queues, broker.tallies, broker.octaves, broker.blocks, c * 5 + q, size, t - born
            )
        held_back = client.unsent != NONE or (client.inflight > 0 and client.inflight + size > client.window)
        if rare is not None and client.traits & READS:
            held_back = held_back or closed(state, c, size)
        join_transmit_queue(clients, nodes, c, node, size)
        if lossy is not None:
            held_back = bool(1)
            moved.time = NONE  # it is not sent
        if guaranteed or (held_back and (logging or acknowledging)):
            prefetch(broker.topics, wide(row(queues, c * 5 + q, QUEUE).head), TOPIC)
            prefetch(broker.lives, wide(row(queues, c * 5 + q, QUEUE).head), LIFE)
            life = row(broker.lives, node, LIFE)
            life.born = born
            life.moved = t
            life.traits = LIFE_INDICATION if indication != 0 else 0
        if held_back:
            if client.unsent == NONE:
                client.unsent = node
            if lossy is not None:
                row(broker.connections, row(broker.more, c, MORE).connection, TCP).unsent_bytes += size
                send_segments(state, c, t)
            continue
        depart, time = send(state, clients, nodes, c, t, node, size, rare)
        if acknowledging:
            count_acknowledged(state, c, born, t, time, rare)
        if guaranteed:
            row(broker.later, node, LATER).sent = depart
        elif logging:
            prefetch(broker.topics, wide(row(queues, c * 5 + q, QUEUE).head), TOPIC)
            topic = wide(row(broker.topics, node, TOPIC).topic)
            attempts = wide(row(broker.lives, node, LIFE).attempts) if q == 0 else wide(1)
            known = acknowledged_before_leaving(state, clients, c, time, rare)
            delivered_row(
                broker.log, next_row(state), born, wide(0), t - born, depart - born,
                known - born if known >= 0 else wide(NONE), c, topic, size, q, indication, attempts,
            )  # fmt: skip
    if lossy is not None:
        tcp = row(broker.connections, row(broker.more, c, MORE).connection, TCP)
        return bool(client.unsent != NONE or tcp.upcoming < tcp.newest)
    return bool(client.unsent != NONE)


@inlined_part
def passes_at_once(state: Any, c: int, size: int) -> bool:
    """Return whether a direct message of a client with loss or readers can be sent at once.

    True also where returned acknowledgments are still unprocessed: they could only make more room.
    """
    client = row(row(state, 0, STATE).clients, c, CLIENT)
    if client.mask != 0 or client.unsent != NONE or client.tcp_bytes >= client.tcp_limit:
        return False
    if client.traits & LOSSY:
        return arrives_in_order(state, c, size)
    return bool((client.inflight == 0 or client.inflight + size <= client.window) and not closed(state, c, size))


@inlined_part
def pass_at_once(state: Any, c: int, q: int, t: int, size: int, topic: int) -> None:
    """Enqueue, dequeue and send a direct message, all at `t`; a shortcut with the effect of `enqueue` and `pump`."""
    broker = row(state, 0, STATE)
    clients, nodes = broker.clients, broker.nodes
    client = row(clients, c, CLIENT)
    queue = row(broker.queues, c * 5 + q, QUEUE)
    if work_units(size) > queue.high_water:
        queue.high_water = work_units(size)
    indication = count_departure(
        state, broker.queues, broker.tallies, broker.octaves, broker.blocks, c * 5 + q, size, wide(0)
    )
    node = allocate(state)
    row(nodes, node, NODE).tag = size | (q << SIZE_BITS)
    join_transmit_queue(clients, nodes, c, node, size)
    if broker.logging != 0 or broker.acknowledging != 0:
        row(broker.topics, node, TOPIC).topic = topic
        life = row(broker.lives, node, LIFE)
        life.born = t
        life.moved = t
        life.attempts = 1
        life.traits = LIFE_INDICATION if indication != 0 else 0
    if client.traits & LOSSY:
        row(nodes, node, NODE).time = send_in_order(state, c, t, size)
        return
    depart, time = send(state, clients, nodes, c, t, node, size, 1)
    if broker.acknowledging != 0:
        count_acknowledged(state, c, t, t, time, 1)
    if broker.logging != 0:
        log_delivered(state, c, node, depart, time)


@inlined_part
def move(state: Any, c: int, t: int) -> bool:
    """Move and send all messages of a client with a trait that may be sent at `t`; return whether it is blocked."""
    broker = row(state, 0, STATE)
    client = row(broker.clients, c, CLIENT)
    traits = wide(client.traits)
    if traits == HELD_ONLY:
        return pump(state, c, t, None, None)
    if traits == LOSSY and client.mask == 0:
        send_segments(state, c, t)  # which is all that `pump` has to do then
        tcp = row(broker.connections, row(broker.more, c, MORE).connection, TCP)
        return bool(client.unsent != NONE or tcp.upcoming < tcp.newest)
    if traits & LOSSY:
        return pump(state, c, t, 1, 1)
    return pump(state, c, t, 1, None)


@inlined_part
def acknowledge_oldest(state: Any, clients: Any, nodes: Any, c: int, rare: Any, lossy: Any) -> None:
    """Remove the oldest sent message, which is acknowledged, from the TCP transmit queue.

    The congestion window grows by the bytes acknowledged (slow start) up to its maximum; for a connection that loses
    segments `transmission.tcp` has enlarged it already.
    """
    broker = row(state, 0, STATE)
    client = row(clients, c, CLIENT)
    node = wide(client.head)
    oldest = row(nodes, node, NODE)
    size = wide(oldest.tag & SIZE_MASK)
    client.tcp_bytes -= size
    guaranteed = bool(0)
    reads = bool(0)
    if rare is not None:
        buffer_bytes(state, c, -size)
        guaranteed = client.traits & TRACKED != 0 and oldest.tag >> SIZE_BITS == 0
        reads = client.traits & READS != 0
    if lossy is None:
        client.inflight -= size
        if client.window < client.window_max:
            client.window = min(client.window + size, wide(client.window_max))
    time = wide(oldest.time)
    after = wide(oldest.next)
    if lossy is not None:
        time = wide(client.next_ack)
        life = row(broker.lives, node, LIFE)
        if broker.acknowledging != 0 and life.moved >= broker.counted_from:
            count_done(state, c, wide(time - life.born))
        if guaranteed:
            row(broker.later, node, LATER).sent = oldest.time
        elif broker.logging != 0:
            prefetch(broker.lives, after, LIFE)
            prefetch(broker.topics, after, TOPIC)
            log_delivered(state, c, node, wide(oldest.time), time)
    if not guaranteed and not reads:
        oldest.next = broker.free
        broker.free = node
    client.head = after
    if lossy is None:
        client.next_ack = FOREVER
        if after != NONE and after != client.unsent:
            next_oldest = row(nodes, after, NODE)
            client.next_ack = next_oldest.time
            prefetch(nodes, wide(next_oldest.next), NODE)
    if rare is not None and reads:
        receiver = row(broker.receivers, c, RECEIVER)
        arrived = wide(time - receiver.latency - receiver.back)
        if lossy is not None:
            arrived = wide(row(broker.later, node, LATER).reached)
        receive(state, c, node, time, arrived, guaranteed)
    elif rare is not None and guaranteed:
        begin_guaranteed(state, c, node, time)


@inlined_part
def remove_acknowledged(state: Any, c: int) -> None:
    """Remove the messages from the transmit queue whose last byte a client with a lossy link has acknowledged."""
    broker = row(state, 0, STATE)
    client = row(broker.clients, c, CLIENT)
    tcp = row(broker.connections, row(broker.more, c, MORE).connection, TCP)
    while client.head != NONE:
        size = wide(row(broker.nodes, client.head, NODE).tag & SIZE_MASK)
        if tcp.bytes_acknowledged < size:
            break
        tcp.bytes_acknowledged -= size
        acknowledge_oldest(state, broker.clients, broker.nodes, c, 1, 1)


@part
def acknowledge_segments(state: Any, c: int) -> None:
    """Process the next event of a client whose link loses segments; of several at one instant, TCP's first.

    Messages whose last byte it acknowledges leave the transmit queue.
    """
    broker = row(state, 0, STATE)
    client = row(broker.clients, c, CLIENT)
    t = wide(client.next_ack)
    if next_of_connection(state, c) != t:
        take_own(state, c, t)
    elif take_acknowledgment(state, c, t):
        remove_acknowledged(state, c)
    client.next_ack = next_of_client(state, c, next_of_connection(state, c))


@part
def acknowledge(state: Any, c: int) -> None:
    """Process the next event of a client with a trait; of several at one instant, TCP's acknowledgments first."""
    broker = row(state, 0, STATE)
    client = row(broker.clients, c, CLIENT)
    if client.traits & LOSSY:
        acknowledge_segments(state, c)
    elif client.traits & (READS | TRACKED):
        t = wide(client.next_ack)
        if next_acknowledgment(state, c) == t:
            acknowledge_oldest(state, broker.clients, broker.nodes, c, 1, None)
        else:
            take_own(state, c, t)
            client.next_ack = next_acknowledgment(state, c)
        client.next_ack = next_of_client(state, c, wide(client.next_ack))
    else:
        acknowledge_oldest(state, broker.clients, broker.nodes, c, 1, None)


@inlined_part
def take_acknowledgments(state: Any, c: int, until: int) -> None:
    """Process all acknowledgments up to `until` of a client that expects no loss.

    Each of them acknowledges new segments. The states between them are not observed, and the retransmission timer is
    restarted once after the last one: by then it began with that acknowledgment, or with a segment sent after it.
    """
    broker = row(state, 0, STATE)
    client = row(broker.clients, c, CLIENT)
    tcp = row(broker.connections, row(broker.more, c, MORE).connection, TCP)
    t = wide(NONE)
    place = wide(tcp.answer_first)
    while place != NONE:
        answer = row(broker.segments, place, SEGMENT)
        if answer.time > until:
            break
        if answer.count > 1:
            t = max(t, acknowledge_in_turn(state, c, place, until))
            if answer.time > until:
                break
        left = wide(answer.count)
        upto = wide(answer.number)
        t = wide(answer.time)
        while True:
            acknowledged = wide(upto - tcp.oldest)
            acknowledge_before(state, c, t, upto)
            grow(state, c, t, acknowledged)
            client.next_ack = t
            remove_acknowledged(state, c)
            left -= 1
            if left == 0 or t + answer.bytes > until:
                break
            upto += answer.marks
            t += answer.bytes
        if left > 0:
            answer.count = left
            answer.time = t + answer.bytes
            answer.number = upto + answer.marks
            break
        tcp.answer_first = answer.next
        release_segment(state, place)
        place = wide(tcp.answer_first)
    if t != NONE:
        if tcp.newest > tcp.oldest:
            t = max(t, wide(row(broker.segments, tcp.first, SEGMENT).time))
        start_timer_again(state, c, t)


@part
def catch_up(state: Any, c: int, until: int) -> None:
    """Process the events up to `until` (included) of a client that is not in the heap and sends nothing.

    Without guaranteed messages, TCP's acknowledgments can be processed first and the readers' events afterwards.
    """
    broker = row(state, 0, STATE)
    client = row(broker.clients, c, CLIENT)
    traits = wide(client.traits)
    if traits & TRACKED or traits & (LOSSY | READS) == 0:
        while client.next_ack <= until:
            acknowledge(state, c)
        return
    due = wide(FOREVER)
    if traits & LOSSY:
        take_acknowledgments(state, c, until)
        due = next_of_connection(state, c)
    else:
        due = next_acknowledgment(state, c)
        while due <= until:
            acknowledge_oldest(state, broker.clients, broker.nodes, c, 1, None)
            due = wide(client.next_ack)
    if traits & READS:
        while next_report(state, c) <= until:
            reader_begins(state, c)
        due = min(due, next_report(state, c))
    client.next_ack = due


@kernel
def drain(state: Any, c: int, until: int) -> None:
    """Process the pending acknowledgments up to `until` (included) of a client that is not in the heap."""
    client = row(row(state, 0, STATE).clients, c, CLIENT)
    if client.queued == 0 and client.next_ack <= until:
        catch_up(state, c, until)


@inlined_part
def waits_for_acknowledgment(state: Any, c: int) -> bool:
    """Return whether a client that is not blocked still has to be in the heap for its next acknowledgment.

    A client without a trait that needs each event at its time (EAGER) is only while a guaranteed message waits for room
    in
    G-1, or while its link may lose a segment.
    """
    broker = row(state, 0, STATE)
    client = row(broker.clients, c, CLIENT)
    if client.next_ack == FOREVER:
        return False
    if client.traits & EAGER:
        return True
    if client.traits & LOSSY and not expects_no_loss(state, c):
        return True
    if client.traits & HOLD == 0:
        return False
    return bool(row(broker.endpoints, row(broker.more, c, MORE).endpoint, ENDPOINT).waiting_head != NONE)


@inlined_part
def mark_blocked(state: Any, clients: Any, heap: Any, c: int, t: int, blocked: bool, on_top: bool, rare: Any) -> None:
    """Record whether a client is blocked from `t` on, and keep it in the heap while it waits for an acknowledgment.

    `on_top`: the client is the first of the heap, and the acknowledgment that it waited for was processed.
    """
    broker = row(state, 0, STATE)
    client = row(clients, c, CLIENT)
    if blocked:
        if client.blocked == 0:
            client.blocked = 1
            row(broker.more, c, MORE).blocked_since = t
    elif client.blocked != 0:
        client.blocked = 0
        more = row(broker.more, c, MORE)
        more.blocked_ns += t - more.blocked_since
    waits = blocked
    if rare is not None:
        waits = blocked or waits_for_acknowledgment(state, c)
    if on_top:
        if waits:
            replace_top(heap, broker.heap_count, client.next_ack, c)
        else:
            client.queued = 0
            drop_top(heap, broker.heap_count)
            broker.heap_count -= 1
    elif waits and client.queued == 0:
        client.queued = 1
        push(heap, broker.heap_count, client.next_ack, c)
        broker.heap_count += 1
        if broker.heap_count + ENTRIES_AN_EVENT >= broker.heap_limit:
            broker.short = 1


@part
def note_blocked(state: Any, c: int, t: int, blocked: bool) -> None:
    """Record whether a client with a trait is blocked from `t` on; see `mark_blocked`."""
    broker = row(state, 0, STATE)
    mark_blocked(state, broker.clients, broker.heap, c, t, blocked, bool(0), 1)
