"""A TIBCO P-7500's egress in plain Python, written from [P7500]: slow and obvious."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from math import ceil
from typing import Any

from qsctl.instant import INFINITE_NS
from qsctl.sim.kernel.random import stream_key
from qsctl.sim.scenario.changes import PortChange, read_changes
from qsctl.sim.scenario.scenario import ClientGroup, Profile, Queue, Scenario
from tests.sim.oracle_receiver import Receiver, receiver_of
from tests.sim.oracle_tcp import PlainTcp

NEVER = -1
WARM, AT_THE_CLIENT, ACK, CHANGE, ARRIVAL = range(5)
"""What comes first at one instant. Of changes: a client comes before another one goes, limits change last."""
COMES, GOES, LIMIT = range(3)


@dataclass(eq=False)
class Message:
    """On its way through a client's queues."""

    born: int
    size: int
    moved: int = NEVER
    sent: int = NEVER
    arrived: int = NEVER
    """When the client has it whole, over a connection that loses segments."""

    @property
    def work(self) -> int:
        return max(1, ceil(self.size / 2048))


@dataclass(eq=False)
class Client:
    """A client's message queue, TCP transmit queue and send queue."""

    number: int
    group: ClientGroup
    profile: Profile
    window: int
    receiver: Receiver
    net: PlainTcp | None = None
    """Of a connection that loses segments: `tcp_queue` has what it has sent, too."""
    message_queue: list[Message] = field(default_factory=list)
    tcp_queue: list[Message] = field(default_factory=list)
    """Waiting for the send queue."""
    send_queue: list[Message] = field(default_factory=list)
    """Sent, not acknowledged."""
    unread: list[Message] = field(default_factory=list)
    """Acknowledged; no reader has begun them, as far as the broker knows."""
    is_there: bool = True
    connection: int = 0
    """What was sent over an earlier connection is acknowledged by nobody."""
    link_free: int = 0

    @property
    def retransmissions(self) -> int:
        return 0 if self.net is None else self.net.retransmissions

    @property
    def time_outs(self) -> int:
        return 0 if self.net is None else self.net.time_outs

    @property
    def depth(self) -> int:
        return sum(message.work for message in self.message_queue)


def nothing_counted() -> dict[str, Any]:
    return {
        "arrived": 0, "delivered": 0, "bytes": 0, "discarded": 0, "not_connected": 0, "disconnected": 0, "high": 0,
        "first": NEVER, "waits": [],
    }  # fmt: skip


class TibcoOracle:
    """One heap of all that happens; depths are summed anew each time."""

    def __init__(self, scenario: Scenario, arrivals: Any) -> None:
        profiles = {profile.name: profile for profile in scenario.profiles}
        self.horizon = scenario.horizon_ns
        changes, self.outages = read_changes(scenario)
        self.bursts = {name: profile.queues[Queue.D_1].min_msg_burst for name, profile in profiles.items()}
        self.depths = {name: profile.queues[Queue.D_1].max_depth_work_units for name, profile in profiles.items()}
        self.rates = {port.name: port.rate_bits_per_second for port in scenario.ports}
        self.port_free = dict.fromkeys(self.rates, 0)
        self.clients: list[Client] = []
        for group in scenario.groups:
            for i in range(group.count):
                profile = profiles[group.profile]
                key = stream_key(scenario.seed, 0, "loss", group.name, i)
                receiver = receiver_of(scenario, self.outages, 0, group, profile, i)
                window = self.first_window(profile)
                client = Client(len(self.clients), group, profile, window, receiver)
                if group.loss_probability > 0:
                    client.net = PlainTcp(Net(self, client), group, profile.tcp, key)
                self.clients.append(client)
        self.counts = [nothing_counted() for _ in self.clients]
        self.rows: list[tuple[Any, ...]] = []
        self.events: list[tuple[int, int, int, str]] = []
        self.heap: list[tuple[Any, ...]] = []
        for i, (time, client, size, *_) in enumerate(arrivals):
            self.heap.append((time, ARRIVAL, 0, i, self.arrive, (self.clients[client], size)))
        if scenario.warm_up_ns > 0:
            self.heap.append((scenario.warm_up_ns, WARM, 0, 0, self.warm_up, ()))
        for i, change in enumerate(changes):
            self.heap.append((change.at_ns, CHANGE, LIMIT, i, self.change, (change,)))
        for client in self.clients:
            for start, end in self.outages.absences.get(client.group.name, []):
                self.heap.append((start, CHANGE, GOES, client.number, self.go, (client,)))
                self.heap.append((end, CHANGE, COMES, client.number, self.come, (client,)))
        heapq.heapify(self.heap)

    def run(self) -> None:
        self.now = 0
        while self.heap and self.heap[0][0] < self.horizon:
            self.now, _, _, _, action, what = heapq.heappop(self.heap)
            action(*what)
        for client in self.clients:
            self.leave_with_tcp(client)
            for message in client.message_queue:
                self.row(client, message, "held", NEVER)

    # What happens.

    def warm_up(self) -> None:
        """Statistics restart, queues do not."""
        self.counts = [nothing_counted() | {"high": client.depth} for client in self.clients]

    def change(self, change: Any) -> None:
        if isinstance(change, PortChange):
            self.rates[change.port] = change.rate_bits_per_second
        else:
            limits = self.bursts if change.limit == "burst" else self.depths
            limits[change.profile] = change.value

    def go(self, client: Client) -> None:
        """The client is gone: what is in its message queue is lost, what TCP has is TCP's."""
        if not client.is_there:
            return
        self.leave_with_tcp(client)
        self.events.append((self.now, client.number, len(client.message_queue), "disconnected"))
        for message in client.message_queue:
            self.lose(client, message, "disconnected")
        client.message_queue, client.tcp_queue, client.send_queue, client.unread = [], [], [], []
        client.receiver.connect()
        client.is_there = False
        client.connection += 1
        if client.net is not None:
            client.net.connect()

    def leave_with_tcp(self, client: Client) -> None:
        """What TCP has is delivered; nobody knows whether the client has it."""
        for message in client.tcp_queue:
            sent = message.sent - message.born if message.sent != NEVER else NEVER
            self.row(client, message, "delivered", message.moved - message.born, sent)

    def come(self, client: Client) -> None:
        if not client.is_there:
            client.is_there = True
            client.window = self.first_window(client.profile)
            self.events.append((self.now, client.number, 0, "connected"))

    def arrive(self, client: Client, size: int) -> None:
        """A full message queue discards the message that arrives: Transmit Congestion--Slow Consumer."""
        counts = self.counts[client.number]
        counts["arrived"] += 1
        message = Message(self.now, size)
        if not client.is_there:
            self.lose(client, message, "not_connected")
        elif self.is_full(client):
            self.lose(client, message, "discarded")
        else:
            client.message_queue.append(message)
            counts["high"] = max(counts["high"], client.depth)
            self.move(client)

    def is_full(self, client: Client) -> bool:
        """Below the minimum burst a message always enters."""
        name = client.profile.name
        return client.depth >= self.depths[name] and len(client.message_queue) >= self.bursts[name]

    def acknowledge(self, client: Client, connection: int) -> None:
        if connection != client.connection:
            return
        message = client.send_queue.pop(0)
        tcp = client.profile.tcp
        client.window = max(client.window, min(client.window + message.size, tcp.max_window_bytes))
        message.arrived = self.now - client.group.acknowledgment_latency_ns - client.group.round_trip_ns // 2
        self.hand_over(client, message)
        self.move(client)

    def hand_over(self, client: Client, message: Message) -> None:
        """The client's TCP has acknowledged a message: its application reads it."""
        if client.receiver.reads:
            back = client.group.round_trip_ns // 2
            begins, _ = client.receiver.read(message.arrived)
            client.unread.append(message)
            what = (client, client.connection)
            place = (2, client.receiver.served)  # of one instant: what was acknowledged first
            heapq.heappush(self.heap, (max(self.now, begins + back), ACK, client.number, place, self.read, what))

    def about_segments(self, client: Client, action: Any) -> None:
        if action():
            self.move(client)

    def read(self, client: Client, connection: int) -> None:
        """The broker learns that a reader has begun the oldest message: the window opens by its bytes."""
        if connection == client.connection:
            client.unread.pop(0)
            self.move(client)

    # Queues.

    def move(self, client: Client) -> None:
        """Message queue to TCP queue while that is below its maximum; TCP queue to send queue as the window allows."""
        counts = self.counts[client.number]
        while True:
            if client.net is not None:
                client.net.send()
            while client.tcp_queue and client.net is None:
                in_flight = sum(sent.size for sent in client.send_queue)
                if client.send_queue and in_flight + client.tcp_queue[0].size > client.window:
                    break
                occupied = in_flight + sum(message.size for message in client.unread)
                buffer = client.receiver.buffer_bytes
                if client.receiver.reads and occupied > 0 and occupied + client.tcp_queue[0].size > buffer:
                    break
                message = client.tcp_queue.pop(0)
                client.send_queue.append(message)
                self.send(client, message)
            held = sum(message.size for message in client.tcp_queue + client.send_queue)
            if not client.message_queue or held >= client.profile.tcp.transmit_queue_bytes:
                return
            message = client.message_queue.pop(0)
            message.moved = self.now
            counts["delivered"] += 1
            counts["bytes"] += message.size
            counts["waits"].append(self.now - message.born)
            client.tcp_queue.append(message)
            if client.net is not None:
                client.net.write(message)

    def send(self, client: Client, message: Message) -> None:
        """Over the port, the client's own link, and back."""
        group = client.group
        sent, left = self.leaves(client, message.size)
        acknowledged = left + group.round_trip_ns + group.acknowledgment_latency_ns
        what = (client, client.connection)
        heapq.heappush(self.heap, (acknowledged, ACK, client.number, (0, sent), self.acknowledge, what))
        leaves = self.outages.next_absence(group.name, self.now - 1)
        is_known = leaves == INFINITE_NS or acknowledged < leaves
        answered = acknowledged - message.born if is_known else NEVER
        self.row(client, message, "delivered", message.moved - message.born, sent - message.born, answered)

    def leaves(self, client: Client, size: int) -> tuple[int, int]:
        """Return when what is sent now leaves the port, and when the client's own link."""
        group = client.group
        left = max(self.now, self.port_free[group.port]) + self.serialization(size, self.rates[group.port])
        self.port_free[group.port] = sent = left
        if group.link_rate_bits_per_second:
            left = max(left, client.link_free) + self.serialization(size, group.link_rate_bits_per_second)
            client.link_free = left
        return sent, left

    def lose(self, client: Client, message: Message, cause: str) -> None:
        counts = self.counts[client.number]
        counts[cause] += 1
        if counts["first"] == NEVER:
            counts["first"] = self.now
        self.row(client, message, cause, self.now - message.born)

    def row(
        self, client: Client, message: Message, outcome: str, wait: int, sent: int = NEVER, acknowledged: int = NEVER
    ) -> None:
        attempts = int(outcome in {"delivered", "held"})
        self.rows.append(
            (client.number, 1, 0, message.size, message.born, wait, sent, acknowledged, outcome, False, attempts)
        )

    @staticmethod
    def first_window(profile: Profile) -> int:
        return min(profile.tcp.mss_bytes * profile.tcp.initial_window_segments, profile.tcp.max_window_bytes)

    @staticmethod
    def serialization(size: int, rate: int) -> int:
        return -(-size * 8 * 10**9 // rate)


class Net:
    """What a connection that loses segments asks of its broker."""

    def __init__(self, broker: TibcoOracle, client: Client) -> None:
        self.broker, self.client, self.events = broker, client, 0

    def now_ns(self) -> int:
        return self.broker.now

    def leaves(self, size: int) -> tuple[int, int]:
        return self.broker.leaves(self.client, size)

    def at_client(self, time: int, is_timer: bool, action: Any) -> None:
        self.events += 1
        place = (int(is_timer), self.events)
        heapq.heappush(self.broker.heap, (time, AT_THE_CLIENT, self.client.number, place, action, ()))

    def at_broker(self, time: int, is_timer: bool, action: Any) -> None:
        self.events += 1
        what = (self.client, action)
        place = (int(is_timer), self.events)
        heapq.heappush(self.broker.heap, (time, ACK, self.client.number, place, self.broker.about_segments, what))

    def acknowledged(self, message: Message) -> None:
        client = self.client
        assert client.tcp_queue.pop(0) is message
        born = message.born
        self.broker.row(client, message, "delivered", message.moved - born, message.sent - born, self.now_ns() - born)
        self.broker.hand_over(client, message)

    def room(self) -> tuple[int, int] | None:
        client = self.client
        if not client.receiver.reads or client.net is None:
            return None
        queued = sum(message.size for message in client.tcp_queue + client.unread)
        return client.receiver.buffer_bytes, queued - sum(left for _, left in client.net.stream)
