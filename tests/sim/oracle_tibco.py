"""A TIBCO P-7500's egress in plain Python, written from [P7500]: slow and obvious."""

from __future__ import annotations

import heapq
from math import ceil
from typing import Any

from qsctl.sim.scenario.scenario import Queue, Scenario


class TibcoOracle:
    """Message queue, TCP transmit queue, send queue and port of every client; one heap of all events."""

    def __init__(self, scenario: Scenario, arrivals: Any) -> None:
        profiles = {profile.name: profile for profile in scenario.profiles}
        self.horizon = scenario.horizon_ns
        self.groups = [group for group in scenario.groups for _ in range(group.count)]
        self.profiles = [profiles[group.profile] for group in self.groups]
        self.rates = {port.name: port.rate_bits_per_second for port in scenario.ports}
        self.port_free = dict.fromkeys(self.rates, 0)
        clients = range(len(self.groups))
        self.message_queue: list[list[dict[str, int]]] = [[] for _ in clients]
        self.tcp_queue: list[list[dict[str, int]]] = [[] for _ in clients]
        """Waiting for the send queue."""
        self.send_queue: list[list[dict[str, int]]] = [[] for _ in clients]
        """Sent, not acknowledged."""
        self.window = [
            min(p.tcp.mss_bytes * p.tcp.initial_window_segments, p.tcp.max_window_bytes) for p in self.profiles
        ]
        self.slow_consumer = [0 for _ in clients]
        self.delivered = [0 for _ in clients]
        self.high = [0 for _ in clients]
        self.rows: list[tuple[Any, ...]] = []
        self.heap: list[tuple[Any, ...]] = [
            (time, 1, 0, i, (client, size)) for i, (time, client, size, *_) in enumerate(arrivals)
        ]
        if scenario.warm_up_ns > 0:
            self.heap.append((scenario.warm_up_ns, -1, 0, 0, None))
        heapq.heapify(self.heap)

    def run(self) -> None:
        while self.heap and self.heap[0][0] < self.horizon:
            now, kind, client, _, what = heapq.heappop(self.heap)
            if kind < 0:
                self.slow_consumer = [0 for _ in self.groups]
                self.delivered = [0 for _ in self.groups]
                self.high = [self.depth(each) for each in range(len(self.groups))]
                continue
            if kind == 0:
                done = self.send_queue[client].pop(0)
                grown = self.window[client] + done["size"]
                self.window[client] = min(grown, self.profiles[client].tcp.max_window_bytes)
            else:
                client, size = what
                self.arrive(client, now, size)
            self.move(client, now)
        for client, queue in enumerate(self.message_queue):
            for message in self.tcp_queue[client]:
                self.row(client, message, "delivered", message["moved"] - message["born"], -1, -1)
            for message in queue:
                self.row(client, message, "held", -1, -1, -1)

    def row(self, client: int, message: dict[str, int], outcome: str, wait: int, sent: int, acked: int) -> None:
        attempts = 0 if outcome == "discarded" else 1
        self.rows.append((client, 1, 0, message["size"], message["born"], wait, sent, acked, outcome, False, attempts))

    def depth(self, client: int) -> int:
        return sum(max(1, ceil(message["size"] / 2048)) for message in self.message_queue[client])

    def arrive(self, client: int, now: int, size: int) -> None:
        """A full message queue discards the message that arrives: Transmit Congestion--Slow Consumer."""
        message = {"born": now, "size": size}
        if self.depth(client) >= self.profiles[client].queues[Queue.D_1].max_depth_work_units:
            self.slow_consumer[client] += 1
            self.row(client, message, "discarded", 0, -1, -1)
            return
        self.message_queue[client].append(message)
        self.high[client] = max(self.high[client], self.depth(client))

    def move(self, client: int, now: int) -> None:
        """Message queue to TCP queue while that is below its maximum; TCP queue to send queue as the window allows."""
        group, tcp = self.groups[client], self.profiles[client].tcp
        while True:
            while self.tcp_queue[client]:
                message = self.tcp_queue[client][0]
                in_flight = sum(sent["size"] for sent in self.send_queue[client])
                if self.send_queue[client] and in_flight + message["size"] > self.window[client]:
                    break
                self.send_queue[client].append(self.tcp_queue[client].pop(0))
                wire = -(-message["size"] * 8 * 10**9 // self.rates[group.port])
                left = max(now, self.port_free[group.port]) + wire
                self.port_free[group.port] = left
                acked = left + group.round_trip_ns + group.reading_delay_ns
                heapq.heappush(self.heap, (acked, 0, client, left, None))
                born = message["born"]
                self.row(client, message, "delivered", message["moved"] - born, left - born, acked - born)
            held = sum(message["size"] for message in self.tcp_queue[client] + self.send_queue[client])
            if not self.message_queue[client] or held >= tcp.transmit_queue_bytes:
                return
            message = self.message_queue[client].pop(0)
            message["moved"] = now
            self.delivered[client] += 1
            self.tcp_queue[client].append(message)
