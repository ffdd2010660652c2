"""The plain Solace model: durable queues, whose messages several clients share by flows of their own."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from qsctl.instant import INFINITE_NS, later
from qsctl.sim.kernel.random import stream_key, uniform_bits
from qsctl.sim.scenario.scenario import Access, DurableQueue, Endpoint, Scenario, flow_endpoint
from tests.sim.oracle_connection import Connection, Message, is_full

TIMER = 1


@dataclass(eq=False)
class PlainQueue:
    """A durable queue; `number`: where it stands among the clients."""

    number: int
    queue: DurableQueue
    flows: list[Connection] = field(default_factory=list)
    """In the order in which they are served."""
    bound: list[Connection] = field(default_factory=list)
    """In the order in which they bound."""
    last: int = -1
    waiting: list[Message] = field(default_factory=list)
    returned: tuple[Message, ...] = ()
    failed: list[Message] = field(default_factory=list)
    held: int = 0
    held_bytes: int = 0
    queues: tuple[tuple[Message, ...], ...] = ((),) * 5
    dealt: dict[int, Connection | None] = field(default_factory=dict)
    """The flow of each partition."""
    handed: dict[int, tuple[Connection, int]] = field(default_factory=dict)
    """Of each partition that is being handed over, the flow that it goes to, and until when it waits."""
    rebalances: int = INFINITE_NS
    moved: dict[str, int] = field(default_factory=lambda: {"expired": 0, "dead": 0, "rejected": 0})

    @property
    def endpoint(self) -> DurableQueue:
        return self.queue

    def held_by(self, queue: int) -> list[Message]:
        """What stands for a durable queue among the clients has no egress queues."""
        return []

    def partition(self, message: Message) -> int:
        with np.errstate(over="ignore"):
            return int(uniform_bits(np.uint64(0), message.topic)) % self.queue.partitions

    def is_out(self, partition: int) -> bool:
        """Whether a client has a message of a partition, or what is on its way to it."""
        return any(
            message.spooled and self.partition(message) == partition
            for flow in self.flows
            for message in (*flow.queues[0], *flow.tcp, *flow.unread, *flow.reading)
        )

    def deal(self, now: int) -> None:
        """As many partitions for each flow that is there, give or take one; they keep theirs as far as they can."""
        there = [flow.number for flow in self.bound if flow.present]
        if not there:
            return
        least, spare = divmod(self.queue.partitions, len(there))
        has: dict[int, list[int]] = {number: [] for number in there}
        left = []
        for partition in range(self.queue.partitions):
            flow = self.handed[partition][0] if partition in self.handed else self.dealt.get(partition)
            mine = has.get(flow.number) if flow is not None else None
            beyond = sum(len(others) > least for others in has.values())
            if mine is not None and len(mine) < least + (beyond < spare):
                mine.append(partition)
            else:
                left.append(partition)
        for partition in left:
            min(has.values(), key=len).append(partition)
        flows = {flow.number: flow for flow in self.flows}
        for number, partitions in has.items():
            for partition in partitions:
                if self.dealt.get(partition) is flows[number]:
                    self.handed.pop(partition, None)
                else:
                    _, until = self.handed.get(partition, (None, later(now, self.queue.max_handoff_ns)))
                    self.handed[partition] = flows[number], until

    def hand_over(self, now: int) -> None:
        """Partitions of which nothing is out, or that have waited long enough, are their new flows'."""
        for partition, (flow, until) in list(self.handed.items()):
            if until <= now or not self.is_out(partition):
                self.dealt[partition] = flow
                del self.handed[partition]


def flow_as_endpoint(scenario: Scenario, group: str) -> Endpoint | None:
    """Return the flow of a client of a group, in the words of an endpoint of one flow."""
    for queue in scenario.durable_queues:
        for flow in queue.flows:
            if flow.group == group:
                return flow_endpoint(queue, flow)
    return None


class DurableQueues:
    connections: list[Connection]
    counted_from: int
    now: int

    def holder(self, c: int) -> Connection | PlainQueue:
        """Return the client or the durable queue that has a number."""
        clients = len(self.connections)
        return self.connections[c] if c < clients else self.durable_queues[c - clients]

    def make_durable_queues(self, scenario: Scenario, replication: int) -> None:
        self.durable_queues: list[PlainQueue] = []
        self.spooled = 0
        for queue in scenario.durable_queues:
            made = PlainQueue(len(self.connections) + len(self.durable_queues), queue)
            for flow in queue.flows:
                members = [connection for connection in self.connections if connection.group.name == flow.group]
                for i, connection in enumerate(members):
                    connection.durable = made
                    connection.fails = int(flow.fails * 2.0**64)
                    connection.refuses = int((flow.fails + flow.rejects) * 2.0**64)
                    connection.fail_key = stream_key(scenario.seed, replication, "fails", flow.group, i)
                    made.flows.append(connection)
                    made.bound.append(connection)
            made.deal(0)
            made.hand_over(0)
            self.durable_queues.append(made)

    def publish(self, queue: PlainQueue, message: Message, eligible: bool) -> None:
        message.queue = 0
        message.spooled = True
        message.attempts = 0
        self.count(queue.number, 0)["arrived"] += 1
        full = is_full(queue.queue, queue, message)
        congested = eligible and 0 <= queue.queue.low_priority_limit_messages <= queue.held
        if full or congested:
            self.lose(message, "spool_refused")
            return
        queue.held += 1
        queue.held_bytes += message.size
        self.enter_queue(queue, message, message.traffic.time_to_live_ns)
        self.dispense(queue)

    def enter_queue(self, queue: PlainQueue, message: Message, time_to_live: int) -> None:
        message.deliveries = 0
        message.rejected = False
        message.expires = INFINITE_NS
        if queue.queue.respects_time_to_live:
            least = min(time_to_live, queue.queue.max_time_to_live_ns)
            if least < INFINITE_NS:
                message.expires = self.now + least
                self.spooled += 1
                message.spooled_as = self.spooled
                self.at(message.expires, TIMER, self.durable_queues[0].number, ("tick", 0))
        queue.waiting.append(message)

    def do_tick(self, d: int) -> None:
        if d == 0:
            while over := [(message.expires, message.spooled_as, queue, message) for queue in self.durable_queues
                           for message in queue.waiting if message.expires <= self.now]:  # fmt: skip
                _, _, queue, message = min(over, key=lambda each: each[:2])
                queue.waiting.remove(message)
                self.remove(queue, message, "expired")
                self.dispense(queue)
        queue = self.durable_queues[d]
        if queue.rebalances <= self.now:
            queue.rebalances = INFINITE_NS
            self.deal(queue)
            self.dispense(queue)
        elif any(until <= self.now for _, until in queue.handed.values()):
            self.dispense(queue)
        self.resume()

    def deal(self, queue: PlainQueue) -> None:
        queue.deal(self.now)
        for _, until in queue.handed.values():
            self.at(until, TIMER, queue.number, ("tick", self.durable_queues.index(queue)))

    def rebalance(self, queue: PlainQueue, went: bool) -> None:
        there = sum(flow.present for flow in queue.flows)
        if queue.queue.partitions and (
            not queue.queue.rebalance_delay_ns or (went and there >= queue.queue.partitions)
        ):
            self.deal(queue)
        elif queue.queue.partitions:
            queue.rebalances = later(self.now, queue.queue.rebalance_delay_ns)
            self.at(queue.rebalances, TIMER, queue.number, ("tick", self.durable_queues.index(queue)))

    def dispense(self, queue: PlainQueue) -> None:
        queue.hand_over(self.now)
        while queue.waiting:
            message, chosen = self.next_delivery(queue)
            if chosen is None:
                return
            queue.waiting.remove(message)
            self.belong(message, chosen.number)
            chosen.outstanding += 1
            chosen.unacknowledged += 1
            self.append(chosen, message)
            message.deliveries += 1
            message.attempts += 1
            if message.attempts > 1:
                self.count(chosen.number, 0)["redelivered"] += 1
            self.pump(chosen)
            self.note_blocked(chosen)

    def next_delivery(self, queue: PlainQueue) -> tuple[Message, Connection | None]:
        first = queue.waiting[0]
        if queue.queue.partitions:
            for step in range(1, queue.queue.partitions + 1):
                partition = (queue.last + step) % queue.queue.partitions
                there = [message for message in queue.waiting if queue.partition(message) == partition]
                flow = queue.dealt.get(partition) if partition not in queue.handed else None
                if there and flow is not None and self.flow_has_room(flow, there[0]):
                    queue.last = partition
                    return there[0], flow
            return first, None
        if queue.queue.respects_priority:
            first = max(queue.waiting, key=lambda message: message.traffic.priority)
        return first, self.choose_flow(queue, first)

    def choose_flow(self, queue: PlainQueue, message: Message) -> Connection | None:
        if queue.queue.access is Access.EXCLUSIVE:
            there = [flow for flow in queue.bound if flow.present]
            return there[0] if there and self.flow_has_room(there[0], message) else None
        for step in range(1, len(queue.flows) + 1):
            place = (queue.last + step) % len(queue.flows)
            if self.flow_has_room(queue.flows[place], message):
                queue.last = place
                return queue.flows[place]
        return None

    def flow_has_room(self, flow: Connection, message: Message) -> bool:
        if flow.present and flow.unacknowledged < flow.limit_messages and self.room_in_g1(flow, message):
            return self.broker_has_room()
        return False

    def broker_has_room(self) -> bool:
        """Below the broker's limit of unacknowledged deliveries; who is refused waits for it."""
        limit = self.scenario.broker.unacknowledged_limit_messages
        if limit < 0 or sum(connection.unacknowledged for connection in self.connections) < limit:
            return True
        self.starved = True
        return False

    def resume(self) -> None:
        limit = self.scenario.broker.unacknowledged_limit_messages
        if not self.starved or sum(connection.unacknowledged for connection in self.connections) >= limit:
            return
        self.starved = False
        numbers = [*range(len(self.connections) + len(self.durable_queues))]
        numbers = numbers[self.resumed :] + numbers[: self.resumed]
        self.resumed = (self.resumed + 1) % len(numbers)
        for number in numbers:
            holder = self.holder(number)
            if isinstance(holder, PlainQueue):
                self.dispense(holder)
            elif holder.tracked and holder.durable is None and holder.present:
                self.pump(holder)
                self.feed(holder)
                self.note_blocked(holder)

    def belong(self, message: Message, number: int) -> None:
        """The message counts for whom it is with."""
        again = max(0, message.attempts - 1)
        self.count(message.client, 0)["redelivered"] -= again
        self.count(number, 0)["redelivered"] += again
        if message.born >= self.counted_from:
            self.count(message.client, 0)["arrived"] -= 1
            self.count(number, 0)["arrived"] += 1
        message.client = number

    def fails(self, flow: Connection, message: Message) -> bool:
        """Draw whether the application fails on a message, or rejects it: it then goes back to its queue."""
        if not flow.refuses:
            return False
        drawn = int(uniform_bits(np.uint64(flow.fail_key), flow.answered))
        flow.answered += 1
        if drawn >= flow.refuses:
            return False
        message.rejected = drawn >= flow.fails
        self.belong(message, flow.durable.number)
        flow.durable.failed.append(message)
        return True

    def serve_queue(self, queue: PlainQueue) -> None:
        failed, queue.failed = queue.failed, []
        self.give_back(queue, failed)
        self.dispense(queue)
        self.resume()

    def give_back(self, queue: PlainQueue, messages: list[Message]) -> None:
        kept = []
        for message in messages:
            if message.rejected:
                self.remove(queue, message, "rejected")
            elif 0 <= queue.queue.max_redelivery < message.deliveries:
                self.remove(queue, message, "dead")
            elif message.expires <= self.now:
                self.remove(queue, message, "expired")
            else:
                kept.append(message)
        queue.waiting = kept + queue.waiting

    def remove(self, queue: PlainQueue, message: Message, cause: str) -> None:
        queue.held -= 1
        queue.held_bytes -= message.size
        found = [each for each in self.durable_queues if each.queue.name == queue.queue.dead_message_queue]
        full = bool(found) and is_full(found[0].queue, found[0], message)
        if not found or full or not message.traffic.dead_message_eligible:
            self.lose(message, cause)
            return
        queue.moved[cause] += 1
        self.belong(message, found[0].number)
        found[0].held += 1
        found[0].held_bytes += message.size
        self.enter_queue(found[0], message, INFINITE_NS)
        self.dispense(found[0])

    def unbind(self, flow: Connection, messages: list[Message]) -> None:
        for message in messages:
            self.belong(message, flow.durable.number)
        self.give_back(flow.durable, messages)
        self.rebalance(flow.durable, went=True)
        self.dispense(flow.durable)

    def bind(self, flow: Connection) -> None:
        flow.durable.bound.remove(flow)
        flow.durable.bound.append(flow)
        self.rebalance(flow.durable, went=False)
