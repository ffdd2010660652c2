"""The programs of a mixed load over DDS: `python -m tests.dds.mixed_load producers|consumers LOAD.json`.

Producers write at times drawn beforehand, some samples with a short lifespan. Consumers serve one sample at a time;
how long, and whether a sample is rejected or never answered, is drawn from the sample and how often it came: another
service under the same load meets the same.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec

from qsctl.client import ClientSession, QueueConsumer, QueueProducer
from qsctl.instant import INFINITE_NS, MILLISECOND_NS, SECOND_NS

NUMBER_BYTES = 12


class Producers(msgspec.Struct):
    """Producers of a topic, each with its own stream."""

    topic: str
    count: int
    rate_per_second: float
    sizes_bytes: tuple[int, int] = (64, 4000)
    lifespan_ms: int = 0
    """Of every fourth sample; 0: none."""
    window: int = 1000


class Consumers(msgspec.Struct):
    """Consumers of a queue."""

    topic: str
    count: int
    mean_ms: float
    rejects: float = 0.0
    silent: float = 0.0
    leaves_after_s: float = 0.0
    """The last of them vanishes then; 0: none does."""


class Load(msgspec.Struct):
    """Everything that the programs do."""

    domain: int
    seed: int
    duration_s: float
    producers: list[Producers]
    consumers: list[Consumers]
    subscriber: str = "S"
    rest_s: float = 1.0
    """How long consumers stay after the last sample."""


def written(load: Load, group: Producers, number: int) -> list[tuple[float, bytes, int]]:
    """Return when a producer writes what, with which lifespan."""
    draw = random.Random(f"{load.seed} {group.topic} {number}")
    at_s, found = 0.0, []
    while (at_s := at_s + draw.expovariate(group.rate_per_second)) < load.duration_s:
        head = number.to_bytes(4, "big") + len(found).to_bytes(NUMBER_BYTES - 4, "big")
        lifespan_ns = group.lifespan_ms * MILLISECOND_NS if group.lifespan_ms and len(found) % 4 == 0 else INFINITE_NS
        found.append((at_s, head + bytes(draw.randint(*group.sizes_bytes)), lifespan_ns))
    return found


def wait_for_start() -> None:
    """Report that the queues are there; begin together with the other program."""
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()


def produce(load: Load) -> None:
    """Write until everything is written, then wait a little for answers."""
    session = ClientSession(load.domain)
    producers: list[tuple[QueueProducer[bytes], list[tuple[float, bytes, int]]]] = []
    for group in load.producers:
        for number in range(group.count):
            producer = QueueProducer(group.topic, window_count=group.window, session=session)
            producers.append((producer, written(load, group, number)[::-1]))
    for producer, _ in producers:
        producer.wait_for_queue(20.0)
    wait_for_start()
    started = time.monotonic()
    while any(rest for _, rest in producers) and time.monotonic() < started + load.duration_s + load.rest_s:
        now = time.monotonic() - started
        due = load.duration_s + load.rest_s
        for producer, rest in producers:
            while rest and rest[-1][0] <= now and producer.has_room():
                _, payload, lifespan_ns = rest.pop()
                producer.write(payload, lifespan_ns=lifespan_ns)
            producer.turn()
            due = min([due, *(each[0] for each in rest[-1:] if producer.has_room())])
        session.domain.turn(max(0, int((due - (time.monotonic() - started)) * SECOND_NS)))
        for producer, _ in producers:
            producer.turn()
    time.sleep(load.rest_s)
    session.close()


class Server:
    """A consumer's program: one sample at a time."""

    def __init__(self, load: Load, group: Consumers, session: ClientSession) -> None:
        self.consumer = QueueConsumer(group.topic, load.subscriber, load.domain, session=session)
        self._seed, self._group = load.seed, group
        self._serving: tuple[Any, float] | None = None
        self.ends_at = 0.0

    def turn(self, now: float, times: Counter[bytes]) -> float:
        """Answer what is served, begin with the next; return when to come again."""
        self.consumer.turn()
        while True:
            if self._serving is not None:
                if now < self.ends_at:
                    return self.ends_at
                sample, chance = self._serving
                self._serving = None
                if chance < self._group.rejects:
                    sample.reject()
                elif chance >= self._group.rejects + self._group.silent:
                    sample.acknowledge()
                self.consumer.turn()
            found = self.consumer.state.waiting_count and self.consumer.receive(1, 0.0)
            if not found:
                return now + 1.0
            head = self._group.topic.encode() + found[0].value[:NUMBER_BYTES]
            times[head] += 1
            draw = random.Random(f"{self._seed} {head.hex()} {times[head]}")
            self._serving = (found[0], draw.random())
            self.ends_at = now + draw.expovariate(1.0) * self._group.mean_ms / 1000.0


def consume(load: Load) -> None:
    """Serve until the load is over."""
    session = ClientSession(load.domain)
    servers: list[Server] = []
    leaving: list[tuple[float, Server]] = []
    for group in load.consumers:
        servers += [Server(load, group, session) for _ in range(group.count - (group.leaves_after_s > 0))]
        if group.leaves_after_s:
            leaving.append((group.leaves_after_s, Server(load, group, ClientSession(load.domain))))
            servers.append(leaving[-1][1])
    for server in servers:
        server.consumer.wait_for_queue(20.0)
    wait_for_start()
    times: Counter[bytes] = Counter()
    started = time.monotonic()
    while (now := time.monotonic() - started) < load.duration_s + load.rest_s:
        for at_s, server in list(leaving):
            server.consumer.session.domain.turn(0)
            if now >= at_s:
                leaving.remove((at_s, server))
                servers.remove(server)
                server.consumer.session.close()  # vanishes, with what it holds
        due = min(server.turn(time.monotonic() - started, times) for server in servers)
        longest_s = 0.002 if leaving else 0.25
        session.domain.turn(max(0, int(min(due - (time.monotonic() - started), longest_s) * SECOND_NS)))
    session.close()
    for _, server in leaving:
        server.consumer.session.close()


if __name__ == "__main__":
    read = msgspec.convert(json.loads(Path(sys.argv[2]).read_text()), Load)
    {"producers": produce, "consumers": consume}[sys.argv[1]](read)
