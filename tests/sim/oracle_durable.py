"""The plain Solace model: durable queues, whose messages several clients share by flows of their own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from qsctl.sim.scenario.scenario import Access, DurableQueue, Endpoint, Scenario
from tests.sim.oracle_connection import Connection, Message


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
    held: int = 0
    queues: tuple[tuple[Message, ...], ...] = ((),) * 5

    @property
    def endpoint(self) -> DurableQueue:
        return self.queue

    def held_by(self, queue: int) -> list[Message]:
        """What stands for a durable queue among the clients has no egress queues."""
        return []


def flow_as_endpoint(scenario: Scenario, group: str) -> Endpoint | None:
    """Return the flow of a client of a group, in the words of an endpoint of one flow."""
    for queue in scenario.durable_queues:
        for flow in queue.flows:
            if flow.group == group:
                return Endpoint(
                    group,
                    window_messages=flow.window_messages,
                    unacknowledged_limit_messages=queue.unacknowledged_limit_messages,
                    acknowledge_delay_ns=flow.acknowledge_delay_ns,
                    library_threshold_percent=flow.library_threshold_percent,
                    library_timer_ns=flow.library_timer_ns,
                )
    return None


class DurableQueues:
    connections: list[Connection]
    counted_from: int

    def holder(self, c: int) -> Connection | PlainQueue:
        """Return the client or the durable queue that has a number."""
        clients = len(self.connections)
        return self.connections[c] if c < clients else self.durable_queues[c - clients]

    def make_durable_queues(self, scenario: Scenario) -> None:
        self.durable_queues = []
        for queue in scenario.durable_queues:
            made = PlainQueue(len(self.connections) + len(self.durable_queues), queue)
            for flow in queue.flows:
                for connection in self.connections:
                    if connection.group.name == flow.group:
                        connection.durable = made
                        made.flows.append(connection)
                        made.bound.append(connection)
            self.durable_queues.append(made)

    def publish(self, queue: PlainQueue, message: Message, eligible: bool) -> None:
        message.queue = 0
        self.count(queue.number, 0)["arrived"] += 1
        self.spool(queue, message, eligible)
        self.dispense(queue)

    def dispense(self, queue: PlainQueue) -> None:
        while queue.waiting:
            message = queue.waiting[0]
            chosen = self.choose_flow(queue, message)
            if chosen is None:
                return
            queue.waiting.pop(0)
            self.belong(message, chosen.number)
            chosen.outstanding += 1
            chosen.unacknowledged += 1
            self.append(chosen, message)
            message.attempts += 1
            if message.attempts > 1:
                self.count(chosen.number, 0)["redelivered"] += 1
            self.pump(chosen)
            self.note_blocked(chosen)

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
        return flow.present and flow.unacknowledged < flow.limit_messages and self.room_in_g1(flow, message)

    def belong(self, message: Message, number: int) -> None:
        """The message counts for whom it is with."""
        again = max(0, message.attempts - 1)
        self.count(message.client, 0)["redelivered"] -= again
        self.count(number, 0)["redelivered"] += again
        if message.born >= self.counted_from:
            self.count(message.client, 0)["arrived"] -= 1
            self.count(number, 0)["arrived"] += 1
        message.client = number

    def put_back(self, flow: Connection, messages: Iterable[Message]) -> None:
        queue = flow.durable
        back = list(messages)
        for message in back:
            self.belong(message, queue.number)
        queue.waiting = back + queue.waiting

    def bind(self, flow: Connection) -> None:
        flow.durable.bound.remove(flow)
        flow.durable.bound.append(flow)
