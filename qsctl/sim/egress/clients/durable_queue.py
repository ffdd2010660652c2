"""A durable queue whose messages several clients share, each by a flow of its own.

[SOL-ENDPOINTS], access types: a non-exclusive queue serves its flows in turn, each as far as its window, its limit of
unacknowledged deliveries and its client's G-1 have room, so that a slow client with a large window holds that number of
messages; an exclusive one sends to the flow that bound first, and to the next one once that flow's client has
disconnected; a partitioned one keeps the messages of a key in one partition, which is served to one flow. Messages of a
higher priority are sent first where the queue respects it. Our readings: the turn continues from the flow that was
served last; a client that reconnects binds behind those that are bound; a paused client keeps its flow, and an active
flow that is full does not hand over to a standby; the messages that a disconnecting client has not acknowledged return
to the front of the queue and are sent to other flows at once.

"Partition Rebalancing", "Partition Handoff": partitions are distributed to the flows, and again after the rebalance
delay when a flow binds or unbinds, so that the numbers of partitions differ by at most one; a flow without a partition
takes over at once from one that unbinds. A partition whose flow changes is handed over: no message of it is sent until
all sent ones are acknowledged, or the maximum hand-off time is over. Our readings: a message's key is its topic; as few
partitions as possible change their flow, to the flow with the fewest, among equals the first that bound; each is handed
over separately; messages that the old flow has not acknowledged after that time remain with it, and it may acknowledge
them.

A message leaves without being delivered in three cases: its time to live expires while it waits (the lesser of the
publisher's and the queue's, from its arrival at the queue); it returns, after the maximum number of redeliveries, from
a client that disconnected or whose application failed on it; or an application rejects it, at any number of deliveries
("Configuring Dead Message Queues"; `MessageOutcome` of the API reference). It is moved to the dead message queue if its
publisher made it eligible and that queue has room, else deleted; in the dead message queue its publisher's time to live
no longer counts, and its deliveries count from zero.

A message, its arrival and its redeliveries are counted in one row of the counters: that of the client that has it or
had it last, else that of the queue.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from qsctl.sim.egress.clients.connection import move, note_blocked
from qsctl.sim.egress.queues.endpoint import is_full, move_arrival, want_timer
from qsctl.sim.egress.queues.priority_queue import append, buffer_bytes, fits
from qsctl.sim.kernel.heap import drop_top, push
from qsctl.sim.kernel.jit import inlined_part, part, quotient, row, wide
from qsctl.sim.kernel.random import uniform_bits
from qsctl.sim.kernel.records import (
    ABSENT,
    BACKLOG,
    CLIENT,
    DEAD,
    DURABLE,
    ENDPOINT,
    EXCLUSIVE,
    EXPIRED,
    FLOW,
    FOREVER,
    HEAP,
    LATER,
    LIFE,
    LOSS,
    MORE,
    NODE,
    NONE,
    PARTITIONED,
    REJECTED,
    SIZE_MASK,
    SPOOLED,
    STATE,
    TOPIC,
    TRAFFIC,
)
from qsctl.sim.kernel.rows import release, undelivered_row

PRIORITIES: Final = 10
"""From 9, which goes first, to 0."""
NODE_BITS: Final = 31
"""An entry of the expiries is the message's number in the order of arrival and, in this number of bits, its node."""


@inlined_part
def partition_of(key: int, partitions: int) -> int:
    """Return the partition of a key: its hash modulo the number of partitions."""
    return wide(uniform_bits(np.uint64(0), key) % np.uint64(partitions))


@part
def line_of(state: Any, d: int, node: int) -> int:
    """Return the row of BACKLOG in which a message waits: that of its partition or its priority, or the only one."""
    broker = row(state, 0, STATE)
    durable = row(broker.durables, d, DURABLE)
    if durable.access == PARTITIONED:
        topic = wide(row(broker.topics, node, TOPIC).topic)
        return wide(durable.backlog + partition_of(topic, wide(durable.backlogs)))
    if durable.backlogs == PRIORITIES:
        priority = row(broker.traffics, row(broker.spools, node, SPOOLED).traffic, TRAFFIC).priority
        return wide(durable.backlog + PRIORITIES - 1 - priority)
    return wide(durable.backlog)


@part
def wait_at_queue(state: Any, d: int, node: int) -> None:
    """Append a message to the end of its line at the queue."""
    broker = row(state, 0, STATE)
    spooled = row(broker.spools, node, SPOOLED)
    backlog = row(broker.backlogs, spooled.line, BACKLOG)
    row(broker.nodes, node, NODE).next = NONE
    spooled.before = NONE
    if backlog.head == NONE:
        backlog.head = node
    else:
        spooled.before = backlog.tail
        row(broker.nodes, backlog.tail, NODE).next = node
    backlog.tail = node
    spooled.waits = 1
    row(broker.durables, d, DURABLE).waiting += 1


@part
def wait_in_front(state: Any, d: int, node: int) -> None:
    """Insert a message at the front of its line at the queue."""
    broker = row(state, 0, STATE)
    spooled = row(broker.spools, node, SPOOLED)
    backlog = row(broker.backlogs, spooled.line, BACKLOG)
    row(broker.nodes, node, NODE).next = backlog.head
    spooled.before = NONE
    if backlog.head == NONE:
        backlog.tail = node
    else:
        row(broker.spools, backlog.head, SPOOLED).before = node
    backlog.head = node
    spooled.waits = 1
    row(broker.durables, d, DURABLE).waiting += 1


@part
def leave_line(state: Any, d: int, node: int) -> None:
    """Remove a message from its line, at any position."""
    broker = row(state, 0, STATE)
    spooled = row(broker.spools, node, SPOOLED)
    backlog = row(broker.backlogs, spooled.line, BACKLOG)
    after = row(broker.nodes, node, NODE).next
    if spooled.before == NONE:
        backlog.head = after
    else:
        row(broker.nodes, spooled.before, NODE).next = after
    if after == NONE:
        backlog.tail = spooled.before
    else:
        row(broker.spools, after, SPOOLED).before = spooled.before
    spooled.waits = 0
    row(broker.durables, d, DURABLE).waiting -= 1


@part
def enter_queue(state: Any, d: int, node: int, t: int, time_to_live: int) -> None:
    """Accept a message that arrived at the queue at `t`; a time to live of 0 means unlimited."""
    broker = row(state, 0, STATE)
    durable = row(broker.durables, d, DURABLE)
    spooled = row(broker.spools, node, SPOOLED)
    spooled.durable = d
    spooled.line = line_of(state, d, node)
    spooled.deliveries = 0
    spooled.rejected = 0
    spooled.expires = FOREVER
    if durable.respects_time_to_live:
        if time_to_live > 0:
            spooled.expires = min(wide(spooled.expires), t + time_to_live)
        if durable.max_time_to_live > 0:
            spooled.expires = min(wide(spooled.expires), t + durable.max_time_to_live)
    if spooled.expires < FOREVER:
        push(broker.expiries, broker.expiry_count, wide(spooled.expires), (broker.spooled << NODE_BITS) | node)
        broker.expiry_count += 1
        broker.spooled += 1
        if broker.expiry_count >= broker.expiry_limit:
            broker.short = 1
        want_timer(state, wide(row(broker.durables, 0, DURABLE).number), wide(spooled.expires))
    wait_at_queue(state, d, node)


@inlined_part
def has_room(state: Any, c: int, size: int) -> bool:
    """Return whether a message may be sent to a client: it is connected; its flow, its G-1 and the broker have room."""
    broker = row(state, 0, STATE)
    if row(broker.clients, c, CLIENT).traits & ABSENT:
        return False
    flow = row(broker.endpoints, row(broker.more, c, MORE).endpoint, ENDPOINT)
    if flow.unacknowledged >= flow.limit or not fits(state, c, size, wide(flow.window)):
        return False
    if broker.unacknowledged >= broker.unacknowledged_max:
        broker.starved = 1
        return False
    return True


@part
def flow_of_rank(state: Any, d: int, rank: int) -> int:
    """Return the client of the bound flow with number `rank` (from 0) in order of binding; NONE if none is bound."""
    broker = row(state, 0, STATE)
    durable = row(broker.durables, d, DURABLE)
    for place in range(durable.flow, durable.flow + durable.flows):
        flow = row(broker.flows, place, FLOW)
        before = 0
        for other in range(durable.flow, durable.flow + durable.flows):
            rival = row(broker.flows, other, FLOW)
            if rival.bound < flow.bound and row(broker.clients, rival.client, CLIENT).traits & ABSENT == 0:
                before += 1
        if before == rank and row(broker.clients, flow.client, CLIENT).traits & ABSENT == 0:
            return wide(flow.client)
    return wide(NONE)


@part
def next_flow(state: Any, d: int, size: int) -> int:
    """Return the client that the queue's next message is sent to; NONE while no flow has room."""
    broker = row(state, 0, STATE)
    durable = row(broker.durables, d, DURABLE)
    if durable.access == EXCLUSIVE:
        active = flow_of_rank(state, d, wide(0))
        return active if active != NONE and has_room(state, active, size) else wide(NONE)
    for step in range(durable.flows):
        turn = wide(durable.turn + step)
        if turn >= durable.flows:
            turn -= durable.flows
        c = wide(row(broker.flows, durable.flow + turn, FLOW).client)
        if has_room(state, c, size):
            durable.turn = turn + 1 if turn + 1 < durable.flows else 0
            return c
    return wide(NONE)


@part
def hand_over(state: Any, d: int, c: int, node: int, t: int) -> None:
    """Append a message of the queue to a client's G-1, and send the client's messages that may leave."""
    broker = row(state, 0, STATE)
    leave_line(state, d, node)
    flow = row(broker.endpoints, row(broker.more, c, MORE).endpoint, ENDPOINT)
    size = wide(row(broker.nodes, node, NODE).tag & SIZE_MASK)
    flow.unacknowledged += 1
    move_arrival(state, node, wide(row(broker.durables, d, DURABLE).number), c)
    append(broker.clients, broker.queues, broker.nodes, c, wide(0), node, size)
    broker.unacknowledged += 1
    row(broker.later, node, LATER).entered = t
    spooled = row(broker.spools, node, SPOOLED)
    spooled.deliveries += 1
    row(broker.backlogs, spooled.line, BACKLOG).out += 1
    life = row(broker.lives, node, LIFE)
    life.attempts += 1
    if life.attempts > 1:
        flow.redelivered += 1
    buffer_bytes(state, c, size)
    note_blocked(state, c, t, move(state, c, t))


@part
def dispense(state: Any, d: int, t: int) -> None:
    """Send waiting messages of the queue to the flows that have room for them."""
    broker = row(state, 0, STATE)
    durable = row(broker.durables, d, DURABLE)
    if durable.access == PARTITIONED:
        dispense_partitions(state, d, t)
        return
    line = wide(durable.backlog)
    while durable.waiting > 0:
        node = wide(row(broker.backlogs, line, BACKLOG).head)
        if node == NONE:
            line += 1
            continue
        c = next_flow(state, d, wide(row(broker.nodes, node, NODE).tag & SIZE_MASK))
        if c == NONE:
            break
        hand_over(state, d, c, node, t)


@part
def dispense_partitions(state: Any, d: int, t: int) -> None:
    """Send the oldest messages of the partitions in turn, while the partitions' flows have room."""
    broker = row(state, 0, STATE)
    durable = row(broker.durables, d, DURABLE)
    if durable.handing > 0:
        finish_handoffs(state, d, t)
    idle = 0
    while idle < durable.backlogs and durable.waiting > 0:
        backlog = row(broker.backlogs, durable.backlog + durable.turn, BACKLOG)
        durable.turn = durable.turn + 1 if durable.turn + 1 < durable.backlogs else 0
        node = wide(backlog.head)
        c = wide(backlog.client)
        idle += 1
        if node == NONE or c == NONE or backlog.upcoming != NONE:
            continue
        if has_room(state, c, wide(row(broker.nodes, node, NODE).tag & SIZE_MASK)):
            hand_over(state, d, c, node, t)
            idle = 0


@part
def finish_handoffs(state: Any, d: int, t: int) -> None:
    """Assign partitions to their next flows once their sent messages are acknowledged or the hand-off time is over."""
    broker = row(state, 0, STATE)
    durable = row(broker.durables, d, DURABLE)
    durable.handing = 0
    durable.handoff = FOREVER
    for line in range(durable.backlog, durable.backlog + durable.backlogs):
        backlog = row(broker.backlogs, line, BACKLOG)
        if backlog.upcoming == NONE:
            continue
        if backlog.out == 0 or backlog.until <= t:
            backlog.client = backlog.upcoming
            backlog.upcoming = NONE
        else:
            durable.handing += 1
            durable.handoff = min(wide(durable.handoff), wide(backlog.until))


@part
def place_of_flow(state: Any, d: int, c: int) -> int:
    """Return the row of FLOW of a client with a flow of the queue."""
    broker = row(state, 0, STATE)
    place = wide(row(broker.durables, d, DURABLE).flow)
    while row(broker.flows, place, FLOW).client != c:
        place += 1
    return place


@part
def flow_with_fewest(state: Any, d: int) -> int:
    """Return the row of FLOW of the bound flow with the fewest partitions; among equals the first that bound."""
    broker = row(state, 0, STATE)
    durable = row(broker.durables, d, DURABLE)
    fewest = wide(NONE)
    for place in range(durable.flow, durable.flow + durable.flows):
        flow = row(broker.flows, place, FLOW)
        if row(broker.clients, flow.client, CLIENT).traits & ABSENT:
            continue
        if fewest != NONE:
            best = row(broker.flows, fewest, FLOW)
            if (best.partitions, best.bound) <= (flow.partitions, flow.bound):
                continue
        fewest = wide(place)
    return fewest


@part
def flows_there(state: Any, d: int) -> int:
    """Return the number of flows bound to the queue."""
    broker = row(state, 0, STATE)
    durable = row(broker.durables, d, DURABLE)
    there = wide(0)
    for place in range(durable.flow, durable.flow + durable.flows):
        if row(broker.clients, row(broker.flows, place, FLOW).client, CLIENT).traits & ABSENT == 0:
            there += 1
    return there


@part
def deal_partitions(state: Any, d: int, t: int) -> None:
    """Distribute the partitions evenly over the bound flows, moving as few as possible; numbers differ by at most one.

    A partition whose flow changes is handed over: it waits for its sent messages. Without a bound flow none moves.
    """
    broker = row(state, 0, STATE)
    durable = row(broker.durables, d, DURABLE)
    there = flows_there(state, d)
    if there == 0:
        return
    for place in range(durable.flow, durable.flow + durable.flows):
        row(broker.flows, place, FLOW).partitions = 0
    least = quotient(wide(durable.backlogs), there)
    spare = durable.backlogs - least * there
    for line in range(durable.backlog, durable.backlog + durable.backlogs):
        backlog = row(broker.backlogs, line, BACKLOG)
        c = wide(backlog.client) if backlog.upcoming == NONE else wide(backlog.upcoming)
        backlog.dealt = NONE
        if c == NONE or row(broker.clients, c, CLIENT).traits & ABSENT:
            continue
        flow = row(broker.flows, place_of_flow(state, d, c), FLOW)
        if flow.partitions > least or (flow.partitions == least and spare == 0):
            continue
        if flow.partitions == least:
            spare -= 1
        flow.partitions += 1
        backlog.dealt = c
    for line in range(durable.backlog, durable.backlog + durable.backlogs):
        backlog = row(broker.backlogs, line, BACKLOG)
        if backlog.dealt == NONE:
            flow = row(broker.flows, flow_with_fewest(state, d), FLOW)
            flow.partitions += 1
            backlog.dealt = flow.client
        if backlog.dealt == backlog.client:
            backlog.upcoming = NONE
            continue
        if backlog.upcoming == NONE:
            backlog.until = t + durable.handoff_max
        backlog.upcoming = backlog.dealt
    finish_handoffs(state, d, t)
    if durable.handing > 0:
        want_timer(state, wide(durable.number), wide(durable.handoff))


@part
def lose(state: Any, number: int, node: int, t: int, outcome: int) -> None:
    """Count and log a message that a durable queue lost, and free its node."""
    broker = row(state, 0, STATE)
    loss = row(broker.losses, number * 5, LOSS)
    here = row(broker.nodes, node, NODE)
    if outcome == EXPIRED:
        loss.expired += 1
    elif outcome == REJECTED:
        loss.rejected += 1
    else:
        loss.dead += 1
    if broker.logging != 0:
        attempts = wide(row(broker.lives, node, LIFE).attempts)
        entered = wide(row(broker.later, node, LATER).entered - here.time) if attempts > 0 else wide(NONE)
        undelivered_row(
            state, wide(here.time), entered, wide(t - here.time), number, wide(row(broker.topics, node, TOPIC).topic),
            wide(here.tag & SIZE_MASK), wide(0), outcome, attempts,
        )  # fmt: skip
    release(state, node)


@part
def remove(state: Any, d: int, node: int, t: int, outcome: int) -> None:
    """Remove a message that is in no line because of `outcome`: move it to the dead message queue, or delete it."""
    broker = row(state, 0, STATE)
    durable = row(broker.durables, d, DURABLE)
    size = wide(row(broker.nodes, node, NODE).tag & SIZE_MASK)
    row(broker.endpoints, durable.number, ENDPOINT).held -= 1
    row(broker.endpoints, durable.number, ENDPOINT).held_bytes -= size
    eligible = row(broker.traffics, row(broker.spools, node, SPOOLED).traffic, TRAFFIC).dead_eligible != 0
    dead = wide(durable.dead_queue)
    if dead == NONE or not eligible:
        lose(state, wide(durable.number), node, t, outcome)
        return
    number = wide(row(broker.durables, dead, DURABLE).number)
    endpoint = row(broker.endpoints, number, ENDPOINT)
    if is_full(endpoint, size):
        lose(state, wide(durable.number), node, t, outcome)
        return
    if outcome == EXPIRED:
        durable.expired_moved += 1
    elif outcome == REJECTED:
        durable.rejected_moved += 1
    else:
        durable.dead_moved += 1
    move_arrival(state, node, wide(durable.number), number)
    endpoint.held += 1
    endpoint.held_bytes += size
    enter_queue(state, dead, node, t, wide(0))
    dispense(state, dead, t)


@part
def give_back(state: Any, d: int, first: int, t: int) -> None:
    """Return a list of unacknowledged deliveries to the front of the queue; remove the expired and exhausted ones."""
    broker = row(state, 0, STATE)
    durable = row(broker.durables, d, DURABLE)
    kept = wide(NONE)
    node = first
    while node != NONE:
        after = wide(row(broker.nodes, node, NODE).next)
        spooled = row(broker.spools, node, SPOOLED)
        if spooled.rejected != 0:
            remove(state, d, node, t, wide(REJECTED))
        elif durable.max_redelivery > 0 and spooled.deliveries > durable.max_redelivery:
            remove(state, d, node, t, wide(DEAD))
        elif spooled.expires <= t:
            remove(state, d, node, t, wide(EXPIRED))
        else:
            row(broker.nodes, node, NODE).next = kept
            kept = node
        node = after
    while kept != NONE:
        after = wide(row(broker.nodes, kept, NODE).next)
        wait_in_front(state, d, kept)
        kept = after


@part
def serve_queue(state: Any, d: int, t: int) -> None:
    """Return messages that applications did not accept to the queue, and send those that its flows have room for."""
    broker = row(state, 0, STATE)
    endpoint = row(broker.endpoints, row(broker.durables, d, DURABLE).number, ENDPOINT)
    if endpoint.returned_head != NONE:
        first = wide(endpoint.returned_head)
        endpoint.returned_head = NONE
        endpoint.returned_tail = NONE
        give_back(state, d, first, t)
    dispense(state, d, t)


@part
def expire(state: Any, t: int) -> None:
    """Remove the expired messages of all durable queues, in the order of arrival at equal times.

    Each queue concerned then sends at once, since a message behind an expired one may fit now.
    """
    broker = row(state, 0, STATE)
    while broker.expiry_count > 0 and row(broker.expiries, 0, HEAP).time <= t:
        due = row(broker.expiries, 0, HEAP).time
        node = wide(row(broker.expiries, 0, HEAP).client & ((1 << NODE_BITS) - 1))
        drop_top(broker.expiries, broker.expiry_count)
        broker.expiry_count -= 1
        spooled = row(broker.spools, node, SPOOLED)
        if spooled.waits != 0 and spooled.expires == due:
            d = wide(spooled.durable)
            leave_line(state, d, node)
            remove(state, d, node, t, wide(EXPIRED))
            dispense(state, d, t)


@part
def wake_queue(state: Any, number: int, t: int) -> None:
    """Process a durable queue's timer: its rebalance delay and its hand-offs.

    The timer of the first durable queue also removes the expired messages of all queues.
    """
    broker = row(state, 0, STATE)
    more = row(broker.more, number, MORE)
    d = wide(more.durable)
    more.timer = FOREVER
    if d == 0:
        expire(state, t)
    durable = row(broker.durables, d, DURABLE)
    if durable.rebalances <= t:
        durable.rebalances = FOREVER
        deal_partitions(state, d, t)
        dispense(state, d, t)
    elif durable.handoff <= t:
        dispense(state, d, t)
    if d == 0 and broker.expiry_count > 0:
        want_timer(state, number, wide(row(broker.expiries, 0, HEAP).time))
    due = min(wide(durable.rebalances), wide(durable.handoff))
    if due < FOREVER:
        want_timer(state, number, due)


@part
def rebalance(state: Any, d: int, t: int, went: bool) -> None:
    """Schedule a distribution of the partitions after the rebalance delay: a flow has bound, or has unbound (`went`).

    It is done at once without a delay, or where a flow unbound and another one without a partition takes over.
    """
    durable = row(row(state, 0, STATE).durables, d, DURABLE)
    if durable.access != PARTITIONED:
        return
    if durable.rebalance_delay == 0 or (went and flows_there(state, d) >= durable.backlogs):
        deal_partitions(state, d, t)
    else:
        durable.rebalances = t + durable.rebalance_delay
        want_timer(state, wide(durable.number), wide(durable.rebalances))


@part
def unbind(state: Any, c: int, first: int, t: int) -> None:
    """Return a disconnected client's list of unacknowledged messages to its queue, which sends them to other flows."""
    broker = row(state, 0, STATE)
    d = wide(row(broker.more, c, MORE).durable)
    number = wide(row(broker.durables, d, DURABLE).number)
    node = first
    while node != NONE:
        move_arrival(state, node, c, number)
        row(broker.backlogs, row(broker.spools, node, SPOOLED).line, BACKLOG).out -= 1
        node = wide(row(broker.nodes, node, NODE).next)
    give_back(state, d, first, t)
    rebalance(state, d, t, bool(1))
    dispense(state, d, t)


@part
def bind(state: Any, c: int, t: int) -> None:
    """Bind the flow of a client that reconnected, behind all that are bound."""
    broker = row(state, 0, STATE)
    d = wide(row(broker.more, c, MORE).durable)
    durable = row(broker.durables, d, DURABLE)
    row(broker.flows, place_of_flow(state, d, c), FLOW).bound = durable.binds
    durable.binds += 1
    rebalance(state, d, t, bool(0))
    dispense(state, d, t)
