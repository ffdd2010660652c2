"""One producer or consumer of the broker benchmark: `dds_peers.py BROKER WHERE ROLE COUNT SIZE RATE`.

A broker's name may end in a kind. `redis-pipeline` writes a burst with the client's own pipeline, which waits for its
answers before the next; `redis` reads them beside. `rabbitmq-durable` has a durable queue and persistent messages, and
so has `rabbitmq-quorum`, whose queue is a quorum queue.

A payload begins with the instant it was written at; where there is a rate, with the instant it was due: a producer that
a broker holds up is behind, and what it could not write in time is late too (no coordinated omission). Every producer
may have a thousand samples unconfirmed. Each says READY once it is attached; a producer then waits for a line, so that
all begin together. A consumer that is done prints how many samples came, when, and how late; each prints its processor
time since READY (JSON).
"""

from __future__ import annotations

import contextlib
import json
import struct
import sys
import time
from collections.abc import Callable, Iterator
from itertools import cycle
from threading import Event, Lock, Semaphore, Thread
from typing import Any

WINDOW = 1000
BURST = 50
EVERY = 10
QUORUM = {"x-queue-type": "quorum"}
BEGUN_S: list[float] = []
"""Processor time of this process when it was ready."""
_STAMP = struct.Struct("<d")


def paced(count: int, size_bytes: int, rate: float) -> Iterator[list[bytes]]:
    """`count` payloads in bursts; at `rate` a second when it is not 0."""
    begun_s = time.time()
    done = 0
    rest = bytes(size_bytes - _STAMP.size)
    while done < count:
        burst = min(BURST, count - done) if not rate else max(1, min(BURST, int(rate / 500), count - done))
        due_s = begun_s + done / rate if rate else time.time()
        if (ahead_s := due_s - time.time()) > 0:  # to sleep for nothing hands the processor over, and small bursts on
            time.sleep(ahead_s)
        yield [_STAMP.pack(due_s) + rest] * burst
        done += burst


def ready() -> None:
    sys.stdout.write("READY\n")
    sys.stdout.flush()
    BEGUN_S.append(time.process_time())


def show(figures: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({**figures, "processor_s": time.process_time() - BEGUN_S[0]}))


def begin_together() -> None:
    ready()
    sys.stdin.readline()


class Seen:
    """What a consumer saw. Every tenth latency is kept: whatever came together, each sample counts the same."""

    def __init__(self) -> None:
        self.count = 0
        self.first_s = 0.0
        self.last_s = 0.0
        """When the last came; 0: when this is shown."""
        self.latencies: list[float] = []

    def take(self, payloads: list[bytes]) -> None:
        now = time.time()
        self.first_s = self.first_s or now
        following = -self.count % EVERY
        self.count += len(payloads)
        for payload in payloads[following::EVERY]:
            self.latencies.append((now - _STAMP.unpack_from(payload)[0]) * 1000)

    def show(self) -> None:
        show(
            {
                "count": self.count,
                "first_s": self.first_s,
                "last_s": self.last_s or time.time(),
                "latencies_ms": self.latencies or [0.0],
            }
        )


def qsctl_topics(where: str) -> tuple[int, list[str]]:
    """The domain and the topics: of one queue, or (`DOMAIN/COUNT`) of so many."""
    domain, _, count = where.partition("/")
    return int(domain), [f"Orders{number}" for number in range(int(count))] if count else ["Orders"]


def qsctl_produce(where: str, count: int, size: int, rate: float) -> None:
    from qsctl.client import QueueProducer

    domain, topics = qsctl_topics(where)
    with contextlib.ExitStack() as stack:
        producers = [stack.enter_context(QueueProducer(topic, domain, window_count=WINDOW)) for topic in topics]
        for producer in producers:
            producer.wait_for_queue(30)
        begin_together()
        for burst, producer in zip(paced(count, size, rate), cycle(producers), strict=False):
            for payload in burst:
                producer.write(payload)
            producer.flush()
        for producer in producers:
            assert producer.wait_for_acknowledgments(120) == 0


def qsctl_consume(where: str, count: int, _size: int, _rate: float) -> Seen:
    from qsctl.client import QueueConsumer

    seen, lock, is_over = Seen(), Lock(), Event()
    domain, topics = qsctl_topics(where)

    def receive(consumer: QueueConsumer[bytes]) -> None:
        while not is_over.is_set():
            samples = consumer.receive(min(1000, count - seen.count), 0.5 if len(topics) > 1 else 60)
            if not samples and len(topics) == 1:
                break
            if samples:
                with lock:
                    seen.take([sample.value for sample in samples])
                    if seen.count >= count:
                        is_over.set()
                consumer.acknowledge_all()
                consumer.flush()

    with contextlib.ExitStack() as stack:
        consumers = [stack.enter_context(QueueConsumer(topic, "S", domain)) for topic in topics]
        for consumer in consumers:
            consumer.wait_for_queue(30)
        ready()
        if len(consumers) == 1:
            receive(consumers[0])
        else:
            threads = [Thread(target=receive, args=(consumer,), daemon=True) for consumer in consumers]
            for thread in threads:
                thread.start()
            is_over.wait(120)
            seen.last_s = time.time()
            for thread in threads:
                thread.join(5)
    return seen


def redis_streams(where: str) -> tuple[int, list[str]]:
    """The port and the streams: one, or (`PORT/COUNT`) so many."""
    port, _, count = where.partition("/")
    return int(port), [f"orders{number}" for number in range(int(count))] if count else ["orders"]


def redis_produce(where: str, count: int, size: int, rate: float, kind: str = "") -> None:
    import redis

    port, streams = redis_streams(where)
    client = redis.Redis(port=port)
    client.ping()
    if kind == "pipeline":
        begin_together()
        for burst, stream in zip(paced(count, size, rate), cycle(streams), strict=False):
            pipeline = client.pipeline(transaction=False)
            for payload in burst:
                pipeline.xadd(stream, {"p": payload})
            pipeline.execute()
        return
    # A pipeline waits for its answers before the next; here they are read beside.
    connection: Any = client.connection_pool.get_connection()
    unconfirmed = Semaphore(WINDOW)

    def read_answers() -> None:
        for _ in range(count):
            connection.read_response()
            unconfirmed.release()

    reader = Thread(target=read_answers, daemon=True)
    reader.start()
    begin_together()
    for burst, stream in zip(paced(count, size, rate), cycle(streams), strict=False):
        for _ in burst:
            unconfirmed.acquire()
        commands = [("XADD", stream, "*", "p", payload) for payload in burst]
        connection.send_packed_command(connection.pack_commands(commands), check_health=False)
    reader.join(120)
    assert not reader.is_alive()


def redis_consume(where: str, count: int, _size: int, _rate: float, _kind: str = "") -> Seen:
    import os

    import redis

    port, streams = redis_streams(where)
    client: Any = redis.Redis(port=port)
    for stream in streams:
        # Another consumer was first.
        with contextlib.suppress(redis.ResponseError):
            client.xgroup_create(stream, "s", id="0", mkstream=True)
    seen = Seen()
    ready()
    while seen.count < count:
        answer = client.xreadgroup(
            "s", str(os.getpid()), dict.fromkeys(streams, ">"), count=min(500, count - seen.count), block=60_000
        )
        if not answer:
            break
        # The count is that of each stream.
        for stream, entries in answer:
            seen.take([fields[b"p"] for _, fields in entries])
            client.xack(stream, "s", *[identity for identity, _ in entries])
    return seen


def rabbitmq_connection(where: str) -> Any:
    import pika

    return pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", int(where)))


def rabbitmq_queue(channel: Any, kind: str) -> None:
    channel.queue_declare("orders", durable=bool(kind), arguments=QUORUM if kind == "quorum" else None)


def rabbitmq_produce(where: str, count: int, size: int, rate: float, kind: str = "") -> None:
    import pika

    connection = rabbitmq_connection(where)
    channel = connection.channel()
    rabbitmq_queue(channel, kind)
    properties = pika.BasicProperties(delivery_mode=2 if kind else 1)
    # pika's blocking confirms wait for each message; a window of confirms needs its callbacks.
    confirmed = 0

    def on_confirm(frame: Any) -> None:
        nonlocal confirmed
        method = frame.method
        confirmed = method.delivery_tag if method.multiple else max(confirmed, method.delivery_tag)

    channel._impl.confirm_delivery(on_confirm)
    sent = 0
    begin_together()
    for burst in paced(count, size, rate):
        for payload in burst:
            channel.basic_publish("", "orders", payload, properties)
        sent += len(burst)
        connection.process_data_events(0)
        while sent - confirmed > WINDOW:
            connection.process_data_events(0.01)
    while confirmed < sent:
        connection.process_data_events(0.01)
    connection.close()


def rabbitmq_consume(where: str, count: int, _size: int, _rate: float, kind: str = "") -> Seen:
    connection = rabbitmq_connection(where)
    channel = connection.channel()
    rabbitmq_queue(channel, kind)
    channel.basic_qos(prefetch_count=WINDOW)
    seen = Seen()
    batch: list[bytes] = []
    ready()
    for method, _, body in channel.consume("orders", inactivity_timeout=60):
        if method is None:
            break
        batch.append(body)
        if len(batch) >= 100 or seen.count + len(batch) >= count or not channel.get_waiting_message_count():
            seen.take(batch)
            batch = []
            channel.basic_ack(method.delivery_tag, multiple=True)
        if seen.count >= count:
            break
    channel.cancel()
    connection.close()
    return seen


def nats_produce(where: str, count: int, size: int, rate: float) -> None:
    import asyncio

    import nats

    async def produce() -> None:
        client = await nats.connect(where.split(","))
        stream, window = client.jetstream(timeout=120), asyncio.Semaphore(WINDOW)
        writes: set[asyncio.Task[Any]] = set()

        async def write(payload: bytes) -> None:
            try:
                await stream.publish("orders", payload)
            finally:
                window.release()

        await asyncio.to_thread(begin_together)
        for burst in paced(count, size, rate):
            for payload in burst:
                await window.acquire()
                task = asyncio.create_task(write(payload))
                writes.add(task)
                task.add_done_callback(writes.discard)
        await asyncio.gather(*writes)
        await client.close()

    asyncio.run(produce())


def nats_consume(where: str, count: int, _size: int, _rate: float) -> Seen:
    import asyncio

    import nats

    seen = Seen()

    async def consume() -> None:
        client = await nats.connect(where.split(","))
        subscription = await client.jetstream().pull_subscribe("orders", "consumers", stream="ORDERS")
        ready()
        while seen.count < count:
            with contextlib.suppress(nats.errors.TimeoutError):
                messages = await subscription.fetch(min(500, count - seen.count), timeout=60)
                seen.take([message.data for message in messages])
                for message in messages:
                    await message.ack()
        await client.drain()

    asyncio.run(consume())
    return seen


def main() -> None:
    broker, where, role, count, size, rate = sys.argv[1:7]
    arguments = (where, int(count), int(size), float(rate))
    name, _, kind = broker.partition("-")
    run: Callable[..., Seen | None] = globals()[f"{name}_{role}"]
    seen = run(*arguments, *((kind,) if kind else ()))
    if seen is not None:
        seen.show()
    else:
        show({})


if __name__ == "__main__":
    main()
