"""A Solace event broker's egress in plain Python, written from [SOL-QUEUES]: slow and obvious.

Every acknowledgment is an event; depths are summed anew; a connection is a few lists. Where the sources are silent it
follows the same readings as the model, one sentence each.
"""

from __future__ import annotations

import heapq
from typing import Any

from qsctl.sim.kernel.random import stream_key
from qsctl.sim.scenario.changes import PortChange, read_changes
from qsctl.sim.scenario.scenario import QUEUE_ORDER, Admission, GuaranteedOverflow, Scenario, Scheduler
from tests.sim.oracle_broker import (
    ACK,
    ARRIVAL,
    CONNECT,
    CONTROL,
    READER_BEGINS,
    TCP_ACKNOWLEDGES,
    TCP_TIMES_OUT,
    WholeBroker,
)
from tests.sim.oracle_connection import NEVER, Connection, Message
from tests.sim.oracle_durable import DurableQueues, flow_as_endpoint
from tests.sim.oracle_receiver import receiver_of
from tests.sim.oracle_tcp import PlainTcp

SECOND, _, DISCONNECT, MARK, CHANGE = range(5)
BEFORE_ALL = -1
AT_THE_CLIENT = -0.5
"""What happens at the far end of a connection, before what the broker learns at the same instant."""


class SolaceOracle(WholeBroker, DurableQueues):
    def __init__(self, scenario: Scenario, arrivals: Any, replication: int = 0) -> None:
        self.scenario = scenario
        self.changes, self.outages = read_changes(scenario)
        self.profiles = {profile.name: profile for profile in scenario.profiles}
        self.limits = {
            (profile.name, q): [limits.max_depth_work_units, limits.min_msg_burst, limits.weight]
            for profile in scenario.profiles
            for q, limits in enumerate(profile.queues[name] for name in QUEUE_ORDER)
        }
        self.rates = {port.name: port.rate_bits_per_second for port in scenario.ports}
        self.port_free = dict.fromkeys(self.rates, 0)
        endpoints = {endpoint.to: endpoint for endpoint in scenario.endpoints}
        self.connections: list[Connection] = []
        for group in scenario.groups:
            profile = self.profiles[group.profile]
            tracked = (
                group.name in endpoints
                or profile.guaranteed_overflow is GuaranteedOverflow.HOLD
                or bool(self.outages.absences.get(group.name))
                or scenario.broker.egress_buffer_bytes > 0
                or scenario.broker.unacknowledged_limit_messages >= 0
            )
            for i in range(group.count):
                key = stream_key(scenario.seed, replication, "loss", group.name, i)
                receiver = receiver_of(scenario, self.outages, replication, group, profile, i)
                endpoint = endpoints.get(group.name) or flow_as_endpoint(scenario, group.name)
                made = Connection(len(self.connections), group, profile, endpoint, tracked, receiver)
                if group.loss_probability > 0:
                    made.net = PlainTcp(Net(self, made), group, profile.tcp, key)
                made.window = self.initial_window(made)
                self.connections.append(made)
        self.make_durable_queues(scenario, replication)
        self.starved = False
        self.resumed = 0
        self.member = dict.fromkeys(range(len(scenario.traffic)), 0)
        self.rows: list[tuple[Any, ...]] = []
        self.events: list[tuple[int, int, int, int, str]] = []
        self.counters: dict[tuple[int, int], dict[str, Any]] = {}
        self.slow = [False] * len(self.connections)
        self.percent = [0.0] * len(self.connections)
        self.buffer_bytes = 0
        self.load_set = False
        self.now = 0
        self.counted_from = 0
        self.heap: list[tuple[Any, ...]] = []
        self.sequence = 0
        self.plan()
        for time, client, size, topic, queue, number in arrivals:
            self.at(time, ARRIVAL, 0, ("arrive", client, size, topic, queue, number))

    def at(self, time: int, order: float, client: int | tuple[int, int], what: tuple[Any, ...]) -> None:
        self.sequence += 1
        heapq.heappush(self.heap, (time, order, client, self.sequence, what))

    def plan(self) -> None:
        scenario = self.scenario
        if scenario.warm_up_ns > 0:
            self.at(scenario.warm_up_ns, BEFORE_ALL, 0, ("warm",))
        for second in range(1, scenario.horizon_ns // 10**9 + 1):
            self.at(second * 10**9, CONTROL, SECOND, ("second",))
        for change in self.changes:
            self.at(change.at_ns, CONTROL, CHANGE, ("change", change))
        for connection in self.connections:
            for start, end in self.outages.absences.get(connection.group.name, []):
                self.at(start, CONTROL, DISCONNECT, ("disconnect", connection.number))
                self.at(end, CONTROL, CONNECT, ("connect", connection.number))

    def run(self) -> None:
        while self.heap and self.heap[0][0] < self.scenario.horizon_ns:
            time, order, _, _, what = heapq.heappop(self.heap)
            self.now = time
            getattr(self, f"do_{what[0]}")(*what[1:])
            if order != BEFORE_ALL and what[0] != "nothing":
                self.check_load()
        self.now = self.scenario.horizon_ns
        self.finish()

    def count(self, c: int, q: int) -> dict[str, Any]:
        fresh = {
            "arrived": 0, "delivered": 0, "discarded": 0, "elided": 0, "redelivered": 0, "indications": 0, "bytes": 0,
            "high": 0, "first": NEVER, "waits": [], "evicted": 0,
            "not_connected": 0, "disconnected": 0, "spool_refused": 0, "expired": 0, "dead": 0,
            "rejected": 0,
        }  # fmt: skip
        return self.counters.setdefault((c, q), fresh)

    def depth(self, connection: Connection, q: int) -> int:
        return sum(message.work for message in connection.held_by(q))

    def mark_depth(self, connection: Connection, q: int) -> None:
        counted = self.count(connection.number, q)
        counted["high"] = max(counted["high"], self.depth(connection, q))

    def row(self, message: Message, outcome: str, wait: int) -> None:
        delivered = outcome == "delivered" or (outcome == "held" and wait != NEVER)
        sent = message.sent - message.born if delivered and message.sent != NEVER else NEVER
        acked = message.acked - message.born if delivered and message.acked != NEVER else NEVER
        indication = message.indication if delivered else False
        attempts = message.attempts if delivered or message.spooled or outcome in {"held", "waiting"} else 0
        self.rows.append(
            (message.client, message.queue, message.topic, message.size, message.born, wait, sent, acked, outcome,
             indication, attempts)
        )  # fmt: skip

    def lose(self, message: Message, cause: str = "discarded") -> None:
        counted = self.count(message.client, message.queue)
        counted[cause] += 1
        if counted["first"] == NEVER and cause not in {"expired", "dead", "rejected"}:
            counted["first"] = self.now
        self.row(message, cause, self.now - message.born)

    def count_delivered(self, message: Message, wait: int) -> None:
        counted = self.count(message.client, message.queue)
        counted["delivered"] += 1
        counted["bytes"] += message.size
        counted["waits"].append(wait)

    def buffer(self, connection: Connection, size: int) -> None:
        self.buffer_bytes += size
        connection.buffered += size

    # What happens.

    def do_nothing(self) -> None:
        """An acknowledgment of a connection that is gone."""

    def do_warm(self) -> None:
        self.counted_from = self.now
        for (c, q), counted in list(self.counters.items()):
            connection = self.holder(c)
            del self.counters[c, q]
            if connection.held_by(q) or counted:
                self.count(c, q)["high"] = self.depth(connection, q)
        for connection in self.connections:
            queued = (message for queue in connection.queues for message in queue)
            stages = (
                connection.tcp,
                connection.unread,
                connection.reading,
                connection.returned,
                connection.waiting,
                queued,
            )
            for message in (message for stage in stages for message in stage):
                message.attempts = min(message.attempts, 1)
        for queue in self.durable_queues:
            queue.moved = dict.fromkeys(queue.moved, 0)
        for message in (message for queue in self.durable_queues for message in queue.waiting):
            message.attempts = min(message.attempts, 1)

    def do_change(self, change: Any) -> None:
        if isinstance(change, PortChange):
            self.rates[change.port] = change.rate_bits_per_second
            return
        place = ("max_depth", "burst", "weight").index(change.limit)
        queue = QUEUE_ORDER.index(change.queue)
        self.limits[change.profile, queue][place] = change.value
        for connection in self.connections:
            opens = change.limit != "weight" and queue == 0 and connection.holds and connection.present
            if opens and connection.profile.name == change.profile:
                self.turn(connection)

    def do_arrive(self, c: int, size: int, topic: int, q: int, number: int) -> None:
        traffic = self.scenario.traffic[number]
        if traffic.shared:
            c = self.next_member(traffic, number)
        eligible = traffic.discard_eligible
        message = Message(self.now, c, size, topic, q, traffic=traffic)
        if c >= len(self.connections):
            self.publish(self.holder(c), message, eligible)
            return
        connection = self.connections[c]
        counted = self.count(c, q)
        counted["arrived"] += 1
        if q == 0 and connection.tracked:
            self.spool(connection, message, eligible)
            if not connection.present:
                return
        elif not connection.present:
            self.lose(message, "not_connected")
            return
        elif not self.elide(connection, message):
            self.make_room(connection, message)
            self.append(connection, message)
        self.turn(connection)

    def next_member(self, traffic: Any, number: int) -> int:
        """Return the client whose turn it is in a shared subscription, the first one when none is there."""
        members = [each for each in self.connections if each.group.name == traffic.to]
        for step in range(len(members)):
            place = (self.member[number] + step) % len(members)
            if members[place].present:
                self.member[number] = (place + 1) % len(members)
                return members[place].number
        return members[0].number

    def do_ack(self, c: int, message: Message, epoch: int) -> None:
        connection = self.connections[c]
        if connection.epoch != epoch:
            return
        assert connection.tcp[0] is message
        connection.tcp.pop(0)
        connection.sent -= 1
        tcp = connection.profile.tcp
        connection.window = max(connection.window, min(connection.window + message.size, tcp.max_window_bytes))
        message.arrived = self.now - connection.group.acknowledgment_latency_ns - connection.group.round_trip_ns // 2
        self.hand_over(connection, message)
        self.turn(connection)

    def hand_over(self, connection: Connection, message: Message) -> None:
        """The client's TCP has acknowledged a message: its application reads it."""
        self.buffer(connection, -message.size)
        if connection.receiver.reads:
            back = connection.group.round_trip_ns // 2
            begins, done = connection.receiver.read(message.arrived)
            message.done = done + back
            connection.unread.append(message)
            known = max(self.now, begins + back)
            c = connection.number
            self.at(known, ACK, (c, READER_BEGINS), ("read", c, message, connection.epoch))
        else:
            message.done = self.now
            self.begin(connection, message)

    def do_far(self, action: Any) -> None:
        action()

    def do_net(self, c: int, action: Any) -> None:
        if action():
            self.turn(self.connections[c])

    # Priority queues.

    def make_room(self, connection: Connection, message: Message) -> None:
        """Below the burst a message always enters; else the oldest go while the queue is full."""
        q = message.queue
        queue = connection.queues[q]
        maximum, burst, _ = self.limits[connection.profile.name, q]
        while len(queue) >= burst and queue:
            depth = self.depth(connection, q)
            if connection.profile.admission is Admission.FIT:
                depth += message.work - 1
            if depth < maximum:
                break
            oldest = queue.pop(0)
            self.buffer(connection, -oldest.size)
            if q == 0:
                self.count(connection.number, 0)["evicted"] += 1
                oldest.due = self.now + max(1, connection.profile.redelivery_delay_ns)
                connection.returned.append(oldest)
                connection.outstanding -= 1
                connection.unacknowledged -= 1
                self.wake_at(connection, oldest.due)
            else:
                connection.pending[q] = True
                self.lose(oldest)

    def append(self, connection: Connection, message: Message) -> None:
        connection.queues[message.queue].append(message)
        self.buffer(connection, message.size)
        self.mark_depth(connection, message.queue)

    def elide(self, connection: Connection, message: Message) -> bool:
        """A newer message of a topic takes the place of the queued one."""
        eliding = connection.profile.eliding
        if not eliding.enabled or not 1 <= message.queue <= 3 or not message.traffic.eliding_eligible:
            return False
        if message.topic not in connection.topics:
            if len(connection.topics) >= eliding.max_topics:
                if not connection.one_shot:
                    connection.one_shot = True
                    self.events.append((self.now, connection.number, -1, eliding.max_topics, "max-eliding-topics"))
                return False
            connection.topics[message.topic] = None
        queue = connection.queues[message.queue]
        for place, queued in enumerate(queue):
            if queued.topic == message.topic:
                self.count(message.client, message.queue)["elided"] += 1
                self.row(queued, "elided", self.now - queued.born)
                queue[place] = message
                self.buffer(connection, message.size - queued.size)
                self.mark_depth(connection, message.queue)
                return True
        return False

    def held_by_delay(self, connection: Connection, message: Message) -> int | None:
        """Until when the eliding delay of its topic holds a queued message."""
        if not connection.profile.eliding.enabled or not 1 <= message.queue <= 3:
            return None
        last = connection.topics.get(message.topic)
        if last is None or last + connection.profile.eliding.delay_ns <= self.now:
            return None
        return last + connection.profile.eliding.delay_ns

    def choose(self, connection: Connection, take: bool) -> Message | None:
        """What the scheduler takes next."""
        order = range(4, -1, -1)
        if take and connection.profile.scheduler is Scheduler.WEIGHTED:
            ready = [
                q
                for q in order
                if any(self.held_by_delay(connection, message) is None for message in connection.queues[q])
            ]
            if ready:
                while connection.credit <= 0 or connection.turn not in ready:
                    connection.turn = (connection.turn - 1) % 5
                    connection.credit = self.limits[connection.profile.name, connection.turn][2]
                connection.credit -= 1
                order = range(connection.turn, connection.turn - 1, -1)
        ends = []
        for q in order:
            for message in connection.queues[q]:
                end = self.held_by_delay(connection, message)
                if end is None:
                    if take:
                        connection.queues[q].remove(message)
                        if message.topic in connection.topics and 1 <= q <= 3:
                            connection.topics[message.topic] = self.now
                    return message
                ends.append(end)
        if ends:
            self.wake_at(connection, min(ends))
        return None

    # TCP and port.

    def initial_window(self, connection: Connection) -> int:
        tcp = connection.profile.tcp
        return min(tcp.mss_bytes * tcp.initial_window_segments, tcp.max_window_bytes)

    def serialization(self, size: int, rate: int) -> int:
        return -(-size * 8 * 10**9 // rate)

    def pump(self, connection: Connection) -> None:
        limit = connection.profile.tcp.transmit_queue_bytes
        while True:
            self.send_what_may_go(connection)
            if sum(message.size for message in connection.tcp) >= limit:
                return
            message = self.choose(connection, take=True)
            if message is None:
                return
            if not (message.queue == 0 and connection.tracked):
                self.count_delivered(message, self.now - message.born)
            message.moved = self.now
            message.sent = message.acked = NEVER
            message.indication = connection.pending[message.queue]
            connection.pending[message.queue] = False
            self.count(message.client, message.queue)["indications"] += message.indication
            connection.tcp.append(message)
            if connection.net is not None:
                connection.net.write(message)

    def send_what_may_go(self, connection: Connection) -> None:
        if connection.net is not None:
            connection.net.send()
            connection.sent = len(connection.tcp) - len(connection.net.stream)
            return
        while connection.sent < len(connection.tcp):
            message = connection.tcp[connection.sent]
            if connection.sent > 0 and connection.in_flight + message.size > connection.window:
                return
            occupied, reads = connection.occupied, connection.receiver.reads
            if reads and occupied > 0 and occupied + message.size > connection.receiver.buffer_bytes:
                return
            connection.sent += 1
            self.send(connection, message)

    def send(self, connection: Connection, message: Message) -> None:
        group = connection.group
        message.sent, left = self.leaves(connection, message.size)
        message.acked = acked = left + group.round_trip_ns + group.acknowledgment_latency_ns
        ack = ("ack", connection.number, message, connection.epoch)
        self.at(acked, ACK, (connection.number, TCP_ACKNOWLEDGES), ack)
        if not (message.queue == 0 and connection.tracked):
            absence = self.outages.next_absence(group.name, self.now - 1)
            if self.outages.absences.get(group.name) and acked >= absence:
                message.acked = NEVER
            self.row(message, "delivered", message.moved - message.born)

    def leaves(self, connection: Connection, size: int) -> tuple[int, int]:
        """Return when what is sent now leaves the port, and when the client's own link."""
        group = connection.group
        port = group.port
        sent = self.port_free[port] = max(self.now, self.port_free[port]) + self.serialization(size, self.rates[port])
        if not group.link_rate_bits_per_second:
            return sent, sent
        left = max(sent, connection.link_free) + self.serialization(size, group.link_rate_bits_per_second)
        connection.link_free = left
        return sent, left

    def turn(self, connection: Connection) -> None:
        self.pump(connection)
        if connection.tracked:
            self.feed(connection)
        self.note_blocked(connection)
        if connection.durable is not None:
            self.serve_queue(connection.durable)
        else:
            self.resume()


class Net:
    """What a connection that loses segments asks of its broker."""

    def __init__(self, broker: SolaceOracle, connection: Connection) -> None:
        self.broker, self.connection = broker, connection

    def now_ns(self) -> int:
        return self.broker.now

    def leaves(self, size: int) -> tuple[int, int]:
        return self.broker.leaves(self.connection, size)

    def at_client(self, time: int, is_timer: bool, action: Any) -> None:
        self.broker.at(time, AT_THE_CLIENT, (self.connection.number, int(is_timer)), ("far", action))

    def at_broker(self, time: int, is_timer: bool, action: Any) -> None:
        c = self.connection.number
        self.broker.at(time, ACK, (c, TCP_TIMES_OUT if is_timer else TCP_ACKNOWLEDGES), ("net", c, action))

    def acknowledged(self, message: Message) -> None:
        connection = self.connection
        assert connection.tcp.pop(0) is message
        connection.sent -= 1
        message.acked = self.broker.now
        if not (message.queue == 0 and connection.tracked):
            self.broker.row(message, "delivered", message.moved - message.born)
        self.broker.hand_over(connection, message)

    def room(self) -> tuple[int, int] | None:
        receiver = self.connection.receiver
        return (receiver.buffer_bytes, self.connection.occupied) if receiver.reads else None
