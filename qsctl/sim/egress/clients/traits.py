"""The steps of a client with a trait: its endpoint, its arrivals, its timers, and its acknowledgments as events.

The connection, and the steps common to all clients, are in `connection`; the steps of a plain client in `runs.advance`.
"""

from __future__ import annotations

from typing import Any, Final

from qsctl.sim.egress.clients.connection import (
    HELD_ONLY,
    acknowledge,
    catch_up,
    drain,
    goes_through,
    mark_blocked,
    move,
    note_blocked,
    pass_at_once,
    passes_at_once,
)
from qsctl.sim.egress.clients.durable_queue import dispense, enter_queue, serve_queue, wake_queue
from qsctl.sim.egress.queues.eliding import replace_queued, slot_of
from qsctl.sim.egress.queues.endpoint import (
    is_full,
    next_at_endpoint,
    take_from_endpoint,
    wait_at_endpoint,
    want_next_due,
)
from qsctl.sim.egress.queues.priority_queue import (
    append,
    buffer_bytes,
    enqueue,
    fits,
    join_transmit_queue,
    log_loss,
    make_room,
    work_units,
)
from qsctl.sim.egress.transmission.lossless import send
from qsctl.sim.egress.transmission.tcp import expects_no_loss
from qsctl.sim.kernel.heap import drop_top
from qsctl.sim.kernel.jit import inlined_part, kernel, part, row, wide
from qsctl.sim.kernel.records import (
    ABSENT,
    ARRIVAL_ELIGIBLE,
    ARRIVAL_KEPT,
    ARRIVAL_TRAFFIC_SHIFT,
    CLIENT,
    ELIDED,
    ELIDING,
    ENDPOINT,
    FOREVER,
    HEAP,
    HOLD,
    LATER,
    LIFE,
    LOSS,
    LOSSY,
    MORE,
    NODE,
    NONE,
    NOT_CONNECTED,
    QUEUE,
    READS,
    SHARED,
    SIZE_MASK,
    SPOOL,
    SPOOL_REFUSED,
    SPOOLED,
    STATE,
    TOPIC,
    TRACKED,
    TRAFFIC,
)
from qsctl.sim.kernel.rows import allocate

DEFERRED: Final = 8
"""Messages that may be in the transmit queue of a client before what is acknowledged of them is processed."""


@part
def feed(state: Any, c: int, t: int, blocked: bool) -> bool:
    """Move messages from the endpoint into G-1, one at a time, while window, limit and G-1 allow it at this instant.

    Where a message evicts another one from G-1 instead of waiting, the evicted one frees no place in the window before
    the next event; otherwise one instant would cycle through the whole endpoint. Returns whether the client is blocked.
    """
    broker = row(state, 0, STATE)
    endpoint = row(broker.endpoints, row(broker.more, c, MORE).endpoint, ENDPOINT)
    holds = row(broker.clients, c, CLIENT).traits & HOLD != 0
    if holds and endpoint.waiting_head == NONE:
        return blocked
    budget = endpoint.limit - endpoint.unacknowledged
    if not holds:
        budget = min(budget, endpoint.window - endpoint.outstanding)
    while budget > 0:
        node = next_at_endpoint(state, c, t)
        if node == NONE:
            break
        size = wide(row(broker.nodes, node, NODE).tag & SIZE_MASK)
        if holds and not fits(state, c, size, wide(endpoint.window)):
            break
        if broker.unacknowledged >= broker.unacknowledged_max:
            broker.starved = 1
            break
        take_from_endpoint(state, c, node)
        if not holds:
            make_room(state, broker.clients, broker.queues, broker.nodes, c, wide(0), t, size, 1)
        append(broker.clients, broker.queues, broker.nodes, c, wide(0), node, size)
        row(broker.later, node, LATER).entered = t
        life = row(broker.lives, node, LIFE)
        life.attempts += 1
        if life.attempts > 1:
            endpoint.redelivered += 1
        buffer_bytes(state, c, size)
        budget -= 1
        blocked = move(state, c, t)
    want_next_due(state, c, t)
    return blocked


@inlined_part
def spool(state: Any, c: int, t: int, size: int, topic: int, tag: int) -> None:
    """Accept a guaranteed message at its endpoint; a full one refuses it, a congested one if it is discard eligible."""
    broker = row(state, 0, STATE)
    endpoint = row(broker.endpoints, row(broker.more, c, MORE).endpoint, ENDPOINT)
    full = is_full(endpoint, size)
    congested = tag & ARRIVAL_ELIGIBLE != 0 and 0 <= endpoint.low_max <= endpoint.held
    if full or congested:
        row(broker.losses, c * 5, LOSS).spool_refused += 1
        log_loss(state, c, wide(0), t, size, topic, t, wide(SPOOL_REFUSED))
        return
    endpoint.held += 1
    endpoint.held_bytes += size
    node = allocate(state)
    row(broker.nodes, node, NODE).time = t
    row(broker.nodes, node, NODE).tag = size
    life = row(broker.lives, node, LIFE)
    row(broker.topics, node, TOPIC).topic = topic
    row(broker.later, node, LATER).slot = NONE
    life.attempts = 0
    life.traits = 0
    if row(broker.clients, c, CLIENT).traits & SPOOL:
        traffic = wide(tag >> ARRIVAL_TRAFFIC_SHIFT)
        row(broker.spools, node, SPOOLED).traffic = traffic
        time_to_live = wide(row(broker.traffics, traffic, TRAFFIC).time_to_live)
        enter_queue(state, wide(row(broker.more, c, MORE).durable), node, t, time_to_live)
    else:
        wait_at_endpoint(state, c, node)


@inlined_part
def flows_through(state: Any, c: int, size: int) -> bool:
    """Return whether a guaranteed message can be sent at once: endpoint, G-1 and connection have room for it.

    For clients whose only trait is that G-1 holds messages (`HELD_ONLY`), where neither the buffers nor the
    unacknowledged deliveries of the whole broker are counted.
    """
    broker = row(state, 0, STATE)
    endpoint = row(broker.endpoints, row(broker.more, c, MORE).endpoint, ENDPOINT)
    return bool(
        endpoint.waiting_head == NONE
        and endpoint.held_max < 0
        and endpoint.bytes_max < 0
        and endpoint.low_max < 0
        and endpoint.unacknowledged < endpoint.limit
        and goes_through(broker.clients, c, size)
        and fits(state, c, size, wide(endpoint.window))
    )


@inlined_part
def flow_through(state: Any, c: int, t: int, size: int, topic: int) -> None:
    """Spool a guaranteed message, admit it to G-1 and send it, all at `t`: the combined effect of `spool` and
    `feed`.
    """
    broker = row(state, 0, STATE)
    nodes = broker.nodes
    endpoint = row(broker.endpoints, row(broker.more, c, MORE).endpoint, ENDPOINT)
    queue = row(broker.queues, c * 5, QUEUE)
    endpoint.held += 1
    endpoint.held_bytes += size
    endpoint.unacknowledged += 1
    broker.unacknowledged += 1
    queue.length += 1
    queue.work += work_units(size)
    if queue.work > queue.high_water:
        queue.high_water = queue.work
    node = allocate(state)
    row(nodes, node, NODE).tag = size
    row(broker.topics, node, TOPIC).topic = topic
    life = row(broker.lives, node, LIFE)
    life.born = t
    life.moved = t
    life.attempts = 1
    life.traits = 0
    join_transmit_queue(broker.clients, nodes, c, node, size)
    depart, _ = send(state, broker.clients, nodes, c, t, node, size, None)
    later = row(broker.later, node, LATER)
    later.entered = t
    later.sent = depart


@part
def serve(state: Any, c: int, t: int, feeds: bool) -> bool:
    """Move and send all messages of a client that may leave at `t`, with `feeds` from its endpoint too; see `feed`."""
    blocked = move(state, c, t)
    if feeds:
        blocked = feed(state, c, t, blocked)
    return blocked


@part
def resume(state: Any, t: int) -> None:
    """Serve the endpoints that wait for the broker's limit of unacknowledged deliveries, starting with each in turn."""
    broker = row(state, 0, STATE)
    if broker.starved == 0 or broker.unacknowledged >= broker.unacknowledged_max:
        return
    broker.starved = 0
    numbers = broker.client_count + broker.durable_count
    first = wide(broker.resumed)
    broker.resumed = first + 1 if first + 1 < numbers else 0
    for step in range(numbers):
        c = wide(first + step)
        if c >= numbers:
            c -= numbers
        traits = row(broker.clients, c, CLIENT).traits
        if traits & SPOOL:
            dispense(state, wide(row(broker.more, c, MORE).durable), t)
        elif traits & TRACKED and traits & (SHARED | ABSENT) == 0:
            note_blocked(state, c, t, serve(state, c, t, bool(1)))


@inlined_part
def next_member(state: Any, c: int, tag: int) -> int:
    """Return the next connected client, in turn, of a group that shares a subscription; `c` where none is connected."""
    broker = row(state, 0, STATE)
    traffic = row(broker.traffics, tag >> ARRIVAL_TRAFFIC_SHIFT, TRAFFIC)
    for _ in range(traffic.members):
        member = wide(traffic.first + traffic.turn)
        traffic.turn = traffic.turn + 1 if traffic.turn + 1 < traffic.members else 0
        if row(broker.clients, member, CLIENT).traits & ABSENT == 0:
            return member
    return c


@part
def arrive(state: Any, c: int, q: int, t: int, size: int, topic: int, tag: int) -> None:
    """Receive a message for a client with a trait, or for a durable queue, which spools every message."""
    broker = row(state, 0, STATE)
    client = row(broker.clients, c, CLIENT)
    if client.traits & SPOOL:
        row(broker.queues, c * 5, QUEUE).arrived += 1
        spool(state, c, t, size, topic, tag)
        dispense(state, wide(row(broker.more, c, MORE).durable), t)
        return
    flags = wide(client.traits)
    row(broker.queues, c * 5 + q, QUEUE).arrived += 1
    behind_time = client.queued == 0 and client.next_ack <= t
    if flags in (LOSSY, READS):
        # What is back waits until it matters, or there is some of it: processed together it costs less.
        passes = client.tcp_bytes < DEFERRED * size and passes_at_once(state, c, size)
        if behind_time and not passes:
            catch_up(state, c, t)
            behind_time = bool(0)
        if passes or passes_at_once(state, c, size):
            pass_at_once(state, c, q, t, size, topic)
            if flags == LOSSY and client.queued == 0 and not expects_no_loss(state, c):
                if behind_time:
                    catch_up(state, c, t)
                note_blocked(state, c, t, bool(0))
            return
    elif behind_time:
        catch_up(state, c, t)
    if q == 0 and flags & TRACKED:
        behind = bool(0)
        if flags == HELD_ONLY:
            if flows_through(state, c, size):
                flow_through(state, c, t, size, topic)
                return
            # What waits before it waits for an acknowledgment, which an arrival does not bring.
            behind = row(broker.endpoints, row(broker.more, c, MORE).endpoint, ENDPOINT).waiting_head != NONE
        spool(state, c, t, size, topic, tag)
        if behind or flags & ABSENT:
            return
    elif flags & ABSENT:
        row(broker.losses, c * 5 + q, LOSS).not_connected += 1
        log_loss(state, c, q, t, size, topic, t, wide(NOT_CONNECTED))
        return
    elif flags & ELIDING and 1 <= q <= 3 and tag & ARRIVAL_KEPT == 0:
        slot = slot_of(state, c, t, topic)
        if slot == NONE or not replace_queued(state, c, q, t, size, topic, slot):
            node = enqueue(state, broker.clients, broker.queues, broker.nodes, c, q, t, size, topic, 1)
            if slot != NONE and row(broker.elided, slot, ELIDED).node == NONE:
                row(broker.later, node, LATER).slot = slot
                row(broker.elided, slot, ELIDED).node = node
    else:
        enqueue(state, broker.clients, broker.queues, broker.nodes, c, q, t, size, topic, 1)
        if client.blocked != 0 and client.tcp_bytes >= client.tcp_limit and flags & (ELIDING | TRACKED) == 0:
            return  # it waits for room in the transmit queue, which an arrival does not make
    note_blocked(state, c, t, serve(state, c, t, flags & TRACKED != 0))
    resume(state, t)


@kernel
def stir(state: Any, c: int, t: int) -> None:
    """Serve a client's endpoint again at `t`, after a timed change of a limit of G-1."""
    broker = row(state, 0, STATE)
    client = row(broker.clients, c, CLIENT)
    if client.traits & ABSENT == 0:
        drain(state, c, t)
        note_blocked(state, c, t, serve(state, c, t, client.traits & TRACKED != 0))
        if client.traits & SHARED:
            dispense(state, wide(row(broker.more, c, MORE).durable), t)
        resume(state, t)


@part
def wake(state: Any, c: int, t: int) -> None:
    """Process a client's timer: due redeliveries and ends of eliding delays."""
    broker = row(state, 0, STATE)
    client = row(broker.clients, c, CLIENT)
    if client.traits & SPOOL:
        wake_queue(state, c, t)
        resume(state, t)
        return
    more = row(broker.more, c, MORE)
    more.timer = FOREVER
    if client.traits & ABSENT:
        return
    if client.queued == 0 and client.next_ack <= t:
        catch_up(state, c, t)
    endpoint = row(broker.endpoints, more.endpoint, ENDPOINT)
    head = endpoint.returned_head
    stirred = head != NONE and row(broker.lives, head, LIFE).moved == t
    note_blocked(state, c, t, serve(state, c, t, stirred))
    want_next_due(state, c, t)
    resume(state, t)


@part
def take_event(state: Any, due: int) -> None:
    """Process the event at `due` of a client with a trait: the acknowledgment at the top of the heap, else a timer.

    A timer that an earlier one has replaced is skipped, as is the acknowledgment of a connection that has ended.
    """
    broker = row(state, 0, STATE)
    if broker.heap_count == 0 or row(broker.heap, 0, HEAP).time != due:
        c = wide(row(broker.timers, 0, HEAP).client)
        drop_top(broker.timers, broker.timer_count)
        broker.timer_count -= 1
        if row(broker.more, c, MORE).timer == due:
            wake(state, c, due)
        return
    c = wide(row(broker.heap, 0, HEAP).client)
    client = row(broker.clients, c, CLIENT)
    if client.queued == 0 or client.next_ack != due:
        drop_top(broker.heap, broker.heap_count)
        broker.heap_count -= 1
        return
    client.queued = 0  # its entry is at hand: what it sends now needs no other
    if client.traits & SHARED:
        # Its queue may send to other clients, which then enter the heap: its own entry cannot wait on top.
        drop_top(broker.heap, broker.heap_count)
        broker.heap_count -= 1
        acknowledge(state, c)
        note_blocked(state, c, due, move(state, c, due))
        serve_queue(state, wide(row(broker.more, c, MORE).durable), due)
        resume(state, due)
        return
    acknowledge(state, c)
    blocked = serve(state, c, due, client.traits & TRACKED != 0)
    client.queued = 1
    mark_blocked(state, broker.clients, broker.heap, c, due, blocked, bool(1), 1)
    resume(state, due)
