"""The plain Solace model: clients that go and come, slow subscribers, the broker's buffers, the end of the run."""

from __future__ import annotations

from math import ceil, floor
from typing import Any

from qsctl.instant import INFINITE_NS, later
from tests.sim.oracle_connection import NEVER, Connection, Message, is_full

ACK, TIMER, CONTROL, ARRIVAL = range(4)
TCP_ACKNOWLEDGES, TCP_TIMES_OUT, READER_BEGINS, LIBRARY, APPLICATION = range(5)
"""What comes first of one client's at one instant."""
CONNECT = 1


class WholeBroker:
    connections: list[Connection]
    scenario: Any
    outages: Any
    events: list[Any]
    slow: list[bool]
    percent: list[float]
    now: int
    buffer_bytes: int
    load_set: bool
    counted_from: int

    def do_disconnect(self, c: int, name: str = "disconnected") -> None:
        connection = self.connections[c]
        if not connection.present:
            return
        self.end_blocked(connection)
        unread = [message for message in connection.unread if message.queue == 0 and connection.tracked]
        back: list[Message] = [*connection.reading, *unread]
        for place, message in enumerate(connection.tcp):
            if message.queue == 0 and connection.tracked:
                back.append(message)
            elif place >= connection.sent or connection.net is not None:
                self.row(message, "delivered", message.moved - message.born)
        dropped = 0
        for q in range(4, -1, -1):
            for message in connection.queues[q]:
                if q == 0 and connection.tracked:
                    back.append(message)
                else:
                    dropped += 1
                    self.lose(message, "disconnected")
            connection.queues[q] = []
            connection.pending[q] = False
        if connection.durable is None:
            connection.waiting = back + connection.waiting
        connection.reading, connection.tcp, connection.sent, connection.outstanding = [], [], 0, 0
        connection.batch, connection.unacknowledged = [], 0
        connection.unread = []
        connection.receiver.connect()
        self.buffer(connection, -connection.buffered)
        connection.window = self.initial_window(connection)
        connection.present = False
        connection.epoch += 1
        if connection.net is not None:
            connection.net.connect()
        connection.wakes = set()
        connection.topics = {}
        self.events.append((self.now, c, -1, dropped, name))
        if connection.durable is not None:
            self.unbind(connection, back)
        self.resume()

    def do_connect(self, c: int) -> None:
        connection = self.connections[c]
        if connection.present:
            return
        connection.present = True
        self.events.append((self.now, c, -1, 0, "connected"))
        if connection.durable is not None:
            self.bind(connection)
        self.turn(connection)
        for message in connection.returned:
            if message.due > self.now:
                self.wake_at(connection, message.due)

    def note_blocked(self, connection: Connection) -> None:
        """Blocked: there is data that the window or the transmit queue holds back."""
        full = sum(message.size for message in connection.tcp) >= connection.profile.tcp.transmit_queue_bytes
        blocked = connection.sent < len(connection.tcp)
        blocked = blocked or (connection.net is not None and connection.net.is_held_back)
        if full and self.choose(connection, take=False) is not None:
            blocked = True
        if blocked and connection.blocked_from is None:
            connection.blocked_from = self.now
        elif not blocked:
            self.end_blocked(connection)

    def end_blocked(self, connection: Connection) -> None:
        if connection.blocked_from is not None:
            connection.blocked.append((connection.blocked_from, self.now))
            connection.blocked_from = None

    def do_second(self) -> None:
        second = self.now // 10**9
        for connection in self.connections:
            spans = [*connection.blocked]
            if connection.blocked_from is not None:
                spans.append((connection.blocked_from, self.now))
            slow_seconds = 0
            for s in range(max(0, second - 60), second):
                begin, end = s * 10**9, (s + 1) * 10**9
                blocked = sum(max(0, min(b, end) - max(a, begin)) for a, b in spans)
                slow_seconds += 2 * blocked >= 10**9
            connection.retransmitted_by_second.append(connection.retransmissions)
            history = [0, *connection.retransmitted_by_second]
            penalty = history[-1] - history[max(0, len(history) - 61)]
            broker = self.scenario.broker
            share = slow_seconds * (100.0 / 60) + broker.slow_penalty_percent * penalty
            c = connection.number
            self.percent[c] = min(100.0, share)
            slow = self.percent[c] >= broker.slow_threshold_percent
            if slow != self.slow[c]:
                self.slow[c] = slow
                name = "slow-subscriber" if slow else "slow-subscriber-cleared"
                self.events.append((self.now, c, -1, round(100 * self.percent[c]), name))

    def check_load(self) -> None:
        broker = self.scenario.broker
        size = broker.egress_buffer_bytes
        if size == 0:
            return
        if not self.load_set and self.buffer_bytes >= ceil(size * broker.load_factor_set_percent / 100):
            self.load_set = True
            self.events.append((self.now, -1, -1, 100 * self.buffer_bytes // size, "buffer-load-set"))
        while self.buffer_bytes > size:
            slowest = max(
                (connection for connection in self.connections if connection.buffered > 0),
                key=lambda connection: (self.percent[connection.number], connection.buffered, -connection.number),
            )
            self.do_disconnect(slowest.number, "disconnected-slow")
            back = later(self.now, broker.slow_reconnect_ns)
            if back < INFINITE_NS:
                self.at(back, CONTROL, CONNECT, ("connect", slowest.number))
        if self.load_set and self.buffer_bytes <= floor(size * broker.load_factor_clear_percent / 100):
            self.load_set = False
            self.events.append((self.now, -1, -1, 100 * self.buffer_bytes // size, "buffer-load-cleared"))

    def finish(self) -> None:
        for connection in self.connections:
            guaranteed = "held" if connection.holds else "delivered"
            unread = [message for message in connection.unread if message.queue == 0 and connection.tracked]
            for message in [*connection.reading, *unread]:
                taken = message in connection.reading and message not in connection.batch
                if not taken:
                    message.acked = NEVER
                if taken or not connection.holds:
                    self.count_guaranteed(message)
                outcome = "delivered" if taken else guaranteed
                self.row(message, outcome, message.moved - message.born)
            for place, message in enumerate(connection.tcp):
                tracked = message.queue == 0 and connection.tracked
                if tracked and not connection.holds:
                    self.count_guaranteed(message)
                if place >= connection.sent or tracked or connection.net is not None:
                    message.acked = NEVER
                    self.row(message, guaranteed if tracked else "delivered", message.moved - message.born)
            for q in range(4, -1, -1):
                for message in connection.queues[q]:
                    self.row(message, "held", NEVER)
            for message in [*connection.returned, *connection.waiting]:
                self.row(message, "waiting", NEVER)
        for queue in self.durable_queues:
            for message in queue.waiting:
                self.row(message, "waiting", NEVER)

    def spool(self, connection: Connection, message: Message, eligible: bool) -> None:
        endpoint = connection.endpoint
        if endpoint is not None:
            full = is_full(endpoint, connection, message)
            congested = eligible and 0 <= endpoint.low_priority_limit_messages <= connection.held
            if full or congested:
                self.lose(message, "spool_refused")
                return
        connection.held += 1
        connection.held_bytes += message.size
        message.attempts = 0
        connection.waiting.append(message)

    def room_in_g1(self, connection: Connection, message: Message) -> bool:
        """Beside all that G-1 holds: below the burst any message, else one that fits."""
        maximum, burst, _ = self.limits[connection.profile.name, 0]
        held = connection.held_by(0)
        if len(held) >= connection.window_messages:
            return False
        return len(held) < max(1, burst) or sum(each.work for each in held) + message.work <= maximum

    def feed(self, connection: Connection) -> None:
        budget = connection.limit_messages - connection.unacknowledged
        if not connection.holds:
            budget = min(budget, connection.window_messages - connection.outstanding)
        while budget > 0:
            if connection.returned and connection.returned[0].due <= self.now:
                source = connection.returned
            elif connection.waiting:
                source = connection.waiting
            else:
                break
            message = source[0]
            if connection.holds and not self.room_in_g1(connection, message):
                break
            if not self.broker_has_room():
                break
            source.pop(0)
            connection.outstanding += 1
            connection.unacknowledged += 1
            if not connection.holds:
                self.make_room(connection, message)
            self.append(connection, message)
            message.attempts += 1
            if message.attempts > 1:
                self.count(connection.number, 0)["redelivered"] += 1
            budget -= 1
            self.pump(connection)

    def count_guaranteed(self, message: Message) -> None:
        """It counts once, by its last sending: when it is acknowledged, or sent at the end."""
        if message.moved >= self.counted_from:
            self.count_delivered(message, message.moved - message.born)

    def retire(self, connection: Connection, message: Message) -> None:
        connection.unacknowledged -= 1
        if connection.durable is not None and self.fails(connection, message):
            return
        (connection.durable or connection).held -= 1
        (connection.durable or connection).held_bytes -= message.size
        self.count_guaranteed(message)
        self.row(message, "delivered", message.moved - message.born)

    def do_read(self, c: int, message: Message, epoch: int) -> None:
        """The broker learns that a reader has begun a message: the window opens by its bytes."""
        connection = self.connections[c]
        if connection.epoch == epoch:
            assert connection.unread.pop(0) is message
            self.begin(connection, message)
            self.turn(connection)

    def begin(self, connection: Connection, message: Message) -> None:
        """A reader begins a message; of a guaranteed one, library and application acknowledge it later."""
        if message.queue != 0 or not connection.tracked:
            return
        delay = connection.endpoint.acknowledge_delay_ns if connection.endpoint else 0
        message.due = max(self.now, later(message.done, delay), *(each.due for each in connection.reading[-1:]))
        message.acked = NEVER
        connection.reading.append(message)
        connection.batch.append(message)
        if len(connection.batch) >= connection.library_threshold:
            self.library_acknowledges(connection)
        elif len(connection.batch) == 1:
            assert connection.endpoint is not None
            what = ("library", connection.number, connection.epoch, connection.batches)
            self.at(later(self.now, connection.endpoint.library_timer_ns), ACK, (connection.number, LIBRARY), what)

    def do_library(self, c: int, epoch: int, batch: int) -> None:
        """The timer of the client's library."""
        connection = self.connections[c]
        if (connection.epoch, connection.batches) == (epoch, batch):
            self.library_acknowledges(connection)
            self.turn(connection)

    def library_acknowledges(self, connection: Connection) -> None:
        connection.batches += 1
        for message in connection.batch:
            message.acked = self.now
            connection.outstanding -= 1
            if self.now < message.due < INFINITE_NS:
                what = ("application", connection.number, connection.epoch)
                self.at(message.due, ACK, (connection.number, APPLICATION), what)
        connection.batch = []
        self.application_acknowledges(connection)

    def do_application(self, c: int, epoch: int) -> None:
        connection = self.connections[c]
        if connection.epoch == epoch and self.application_acknowledges(connection):
            self.turn(connection)

    def application_acknowledges(self, connection: Connection) -> bool:
        """What the application has acknowledged leaves the endpoint, if the library has acknowledged it."""
        before = len(connection.reading)
        while connection.reading and connection.reading[0].due <= self.now:
            if connection.reading[0] in connection.batch:
                break
            self.retire(connection, connection.reading.pop(0))
        return len(connection.reading) < before

    def do_wake(self, c: int) -> None:
        connection = self.connections[c]
        if self.now not in connection.wakes or not connection.present:
            return
        connection.wakes.discard(self.now)
        stirred = bool(connection.returned) and connection.returned[0].due == self.now
        self.pump(connection)
        if stirred:
            self.feed(connection)
        self.note_blocked(connection)
        self.resume()

    def wake_at(self, connection: Connection, time: int) -> None:
        if time < INFINITE_NS and time not in connection.wakes:
            connection.wakes.add(time)
            self.at(time, TIMER, connection.number, ("wake", connection.number))
