"""A connection that loses segments, in plain Python: a sender, a receiver and what is on its way between them.

Written from RFC 5681, 6582 (NewReno), 3042, 3465, 6298 and 9438 (CUBIC). Every arrival of a segment, every delayed
acknowledgment, every acknowledgment on its way back and every timer is an event of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from math import floor, inf
from typing import Any, Protocol

import numpy as np

from qsctl.sim.kernel.random import uniform_bits
from qsctl.sim.scenario.scenario import CongestionControl, TcpSettings

LONGEST_TIME_OUT = 60 * 10**9


class Host(Protocol):
    """What a connection asks of the broker that it belongs to."""

    def now_ns(self) -> int:
        """Return the time."""

    def leaves(self, size: int) -> tuple[int, int]:
        """Return when what is sent now leaves the port, and when the client's link."""

    def at_client(self, time: int, is_timer: bool, action: Any) -> None:
        """Have something happen at the client's end."""

    def at_broker(self, time: int, is_timer: bool, action: Any) -> None:
        """Have something happen to the broker's end, and the connection take its turn unless it returns False."""

    def acknowledged(self, message: Any) -> None:
        """Have a message leave the transmit queue."""

    def room(self) -> tuple[int, int] | None:
        """Return the bytes of the receive buffer and those in it; None: the client needs no time to read."""


@dataclass(eq=False)
class Segment:
    number: int
    size: int
    first_sent: int
    completes: list[Any]
    """Messages whose last byte it has."""
    copies: int = 0


@dataclass(eq=False)
class Far:
    """The client's end."""

    arrived: set[int] = field(default_factory=set)
    expected: int = 0
    owes: bool = False
    """One segment in order has not been acknowledged."""
    owed: int = 0


class PlainTcp:
    """See above. `stream` has the messages that were not sent whole, each with its bytes that were not."""

    def __init__(self, host: Host, group: Any, tcp: TcpSettings, key: int) -> None:
        self.host, self.group, self.tcp, self.key = host, group, tcp, key
        self.draws = self.retransmissions = self.time_outs = 0
        self.most = max(1, tcp.max_window_bytes // tcp.mss_bytes)
        self.connection = 0
        self.connect()

    def connect(self) -> None:
        """Begin a connection."""
        self.connection += 1
        self.far = Far()
        self.stream: list[list[Any]] = []
        self.flying: list[Segment] = []
        self.to_repeat: list[Segment] = []
        """Of those: what a time-out has to be sent again."""
        self.next_number = 0
        self.window = min(self.tcp.initial_window_segments, self.most)
        self.threshold: float = inf
        self.grown = Fraction(0)
        self.duplicates = 0
        self.recovering = False
        self.noticed = -1
        """The last number sent when a loss was noticed last."""
        self.round_trip = self.group.round_trip_ns + self.group.acknowledgment_latency_ns
        self.deviation = self.round_trip // 2
        self.set_time_out()
        self.backed_off = False
        self.timer: int | None = None
        self.timers = 0
        self.peak = self.before = 0
        self.since: int | None = None

    # The sender.

    @property
    def oldest(self) -> int:
        return self.flying[0].number if self.flying else self.next_number

    @property
    def in_flight(self) -> int:
        """Segments, without those that a time-out gave up and that were not sent again."""
        return len(self.flying) - len(self.to_repeat)

    @property
    def bytes_in_flight(self) -> int:
        return sum(segment.size for segment in self.flying)

    @property
    def is_held_back(self) -> bool:
        return bool(self.stream or self.to_repeat)

    def write(self, message: Any) -> None:
        self.stream.append([message, message.size])

    def send(self) -> None:
        """Send what may go."""
        while self.to_repeat and self.may_send():
            self.repeat(self.to_repeat.pop(0))
        while self.stream and not self.to_repeat and self.may_send():
            size = min(self.tcp.mss_bytes, sum(left for _, left in self.stream))
            if self.in_flight > 0 and self.bytes_in_flight + size > self.tcp.max_window_bytes:
                return
            room = self.host.room()
            if room is not None:
                buffer, occupied = room
                message, left = self.stream[0]
                if occupied > 0 and occupied + size > buffer:
                    if occupied > message.size - left:
                        return
                    size = min(size, left)
            self.cut(size)

    def may_send(self) -> bool:
        allowed = self.window + (0 if self.recovering else self.duplicates)
        return self.in_flight == 0 or self.in_flight < allowed

    def cut(self, size: int) -> None:
        segment = Segment(self.next_number, size, self.host.now_ns(), [])
        self.next_number += 1
        self.flying.append(segment)
        while size > 0:
            part = min(size, self.stream[0][1])
            self.stream[0][1] -= part
            size -= part
            if self.stream[0][1] == 0:
                segment.completes.append(self.stream.pop(0)[0])
        left = self.launch(segment)
        for message in segment.completes:
            message.sent = left

    def repeat(self, segment: Segment) -> None:
        self.retransmissions += 1
        self.launch(segment)

    def launch(self, segment: Segment) -> int:
        """Put a copy of a segment on the wire."""
        segment.copies += 1
        sent, left = self.host.leaves(segment.size)
        drawn = int(uniform_bits(np.uint64(self.key), self.draws))
        self.draws += 1
        if drawn >= int(self.group.loss_probability * 2.0**64):
            arrives = left + self.group.round_trip_ns - self.group.round_trip_ns // 2
            self.host.at_client(arrives, False, self.of_this_connection(self.arrive, segment))
        if self.timer is None:
            self.start_timer()
        return sent

    def of_this_connection(self, action: Any, *arguments: Any) -> Any:
        number = self.connection

        def act() -> bool:
            return number == self.connection and action(*arguments) is not False

        return act

    def start_timer(self) -> None:
        self.timers += 1
        self.timer = self.timers
        due = self.host.now_ns() + self.time_out
        self.host.at_broker(due, True, self.of_this_connection(self.timer_ends, self.timer))

    def set_time_out(self) -> None:
        least = self.tcp.minimum_time_out_ns
        self.time_out = min(max(least, self.round_trip + 4 * self.deviation), max(least, LONGEST_TIME_OUT))

    def timer_ends(self, timer: int) -> bool:
        if timer != self.timer:
            return False
        self.time_outs += 1
        if not self.backed_off:
            self.lose()
        self.backed_off = True
        self.window, self.grown = 1, Fraction(0)
        self.duplicates, self.recovering, self.noticed = 0, False, self.next_number - 1
        self.to_repeat = list(self.flying)
        self.time_out = min(2 * self.time_out, max(self.tcp.minimum_time_out_ns, LONGEST_TIME_OUT))
        self.timer = None
        return True

    def acknowledge(self, expected: int) -> None:
        """Receive an acknowledgment: the client has all before `expected`."""
        if not self.flying:
            return
        done = [segment for segment in self.flying if segment.number < expected]
        if not done:
            self.acknowledge_again()
            return
        self.flying = self.flying[len(done) :]
        self.to_repeat = [segment for segment in self.to_repeat if segment.number >= expected]
        if all(segment.copies == 1 for segment in done):
            measured = self.host.now_ns() - done[0].first_sent
            self.deviation = (3 * self.deviation + abs(self.round_trip - measured)) // 4
            self.round_trip = (7 * self.round_trip + measured) // 8
        self.set_time_out()
        self.backed_off = False
        self.timer = None
        if self.flying:
            self.start_timer()
        if not self.recovering:
            self.duplicates = 0
            self.grow(len(done))
        elif self.oldest > self.noticed:
            self.recovering, self.duplicates, self.grown = False, 0, Fraction(0)
            self.window = int(self.threshold)
        else:
            self.window = max(1, self.window - len(done) + 1)
            self.repeat(self.flying[0])
        for segment in done:
            for message in segment.completes:
                self.host.acknowledged(message)

    def acknowledge_again(self) -> None:
        if self.recovering:
            self.window += 1
        elif self.oldest > self.noticed:
            self.duplicates += 1
            if self.duplicates == 3:
                self.lose()
                self.recovering, self.noticed = True, self.next_number - 1
                self.window = int(self.threshold) + 3
                self.repeat(self.flying[0])

    # The congestion window.

    @property
    def is_cubic(self) -> bool:
        return self.tcp.congestion_control is CongestionControl.CUBIC

    def lose(self) -> None:
        keeps = Fraction(7, 10) if self.is_cubic else Fraction(1, 2)
        self.threshold = max(2, floor(len(self.flying) * keeps))
        if self.is_cubic:
            shrinks = self.window < self.peak
            self.before = self.window
            self.peak = floor(self.window * Fraction(17, 20)) if shrinks else self.window
            self.since = None

    def grow(self, segments: int) -> None:
        if self.window < self.threshold:
            self.window = int(min(self.window + min(segments, 2), self.threshold))
        elif self.is_cubic:
            self.grow_cubic(segments)
        else:
            self.grown += segments
            whole = floor(self.grown / self.window)
            self.grown -= whole * self.window
            self.window += whole
        self.window = min(self.window, self.most)

    def grow_cubic(self, segments: int) -> None:
        """Of RFC 9438, in thousandths of a segment and whole milliseconds."""
        now = self.host.now_ns()
        if self.since is None:
            self.since = now
            self.like_reno = 1000 * self.window
            self.peak = max(self.peak, self.window)
            self.k = floor_cube_root(Fraction(self.peak - self.window) / Fraction(4, 10) * 1000**3)
        gain = Fraction(1000) if self.like_reno >= 1000 * self.before else Fraction(529)
        self.like_reno += floor(gain * segments / self.window)
        if self.curve((now - self.since) // 10**6) < self.like_reno:
            self.window = max(self.window, self.like_reno // 1000)
            return
        ahead = self.curve((now - self.since + self.round_trip) // 10**6)
        wanted = min(max(ahead, 1000 * self.window), floor(Fraction(3, 2) * 1000 * self.window))
        self.grown += floor(Fraction(segments * (wanted - 1000 * self.window), self.window))
        whole = floor(self.grown / 1000)
        self.grown -= 1000 * whole
        self.window += whole

    def curve(self, milliseconds: int) -> int:
        away = max(-(10**6), min(10**6, milliseconds - self.k))
        return 1000 * self.peak + floor(Fraction(4, 10) * Fraction(away, 1000) ** 3 * 1000)

    # The receiver.

    def arrive(self, segment: Segment) -> None:
        far = self.far
        is_next = segment.number == far.expected
        had_gap = bool(far.arrived)
        if segment.number >= far.expected:
            far.arrived.add(segment.number)
        while far.expected in far.arrived:
            far.arrived.discard(far.expected)
            for message in self.completed_by(far.expected):
                message.arrived = self.host.now_ns()
            far.expected += 1
        if is_next and not had_gap and not far.owes and self.group.delayed_acknowledgment_ns > 0:
            far.owes = True
            far.owed += 1
            due = self.host.now_ns() + self.group.delayed_acknowledgment_ns
            self.host.at_client(due, True, self.of_this_connection(self.delay_ends, far.owed))
        else:
            self.answer()

    def completed_by(self, number: int) -> list[Any]:
        return next(segment.completes for segment in self.flying if segment.number == number)

    def delay_ends(self, owed: int) -> None:
        if self.far.owes and self.far.owed == owed:
            self.answer()

    def answer(self) -> None:
        self.far.owes = False
        back = self.group.round_trip_ns // 2 + self.group.acknowledgment_latency_ns
        action = self.of_this_connection(self.acknowledge, self.far.expected)
        self.host.at_broker(self.host.now_ns() + back, False, action)


def floor_cube_root(value: Fraction) -> int:
    """Return the largest integer whose cube is not above a value."""
    root = round(float(value) ** (1 / 3))
    while root**3 > value:
        root -= 1
    while (root + 1) ** 3 <= value:
        root += 1
    return root
