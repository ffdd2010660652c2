"""What a sample costs the pure core: `pytest tests/benchmarks/test_queue_core.py --benchmark-only`.

A lifecycle is write, enqueue, dispatch, delivery, acknowledgment and retirement, through the engine in batches of 100,
statistics included. The best of several rounds counts, in processor time: other programs share the machine.
"""

from __future__ import annotations

import time
import tracemalloc
from itertools import count

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from qsctl.core.engine import ServiceEngine
from qsctl.core.messages import Acknowledgment, ConsumerJoined, Delivery, Write
from qsctl.identity import Guid, SampleIdentity
from qsctl.instant import SECOND_NS
from tests.batches import records_of
from tests.benchmarks.core_queues import PAYLOAD_BYTES, PERSISTENT, QUEUES, WRITER, engine

BATCH = 100
SAMPLES = 20_000
LIFECYCLES_A_SECOND = {"volatile": 250_000, "persistent": 150_000, "everything on": 120_000}


def live(one: ServiceEngine, identities: list[SampleIdentity], payload: bytes, now: int) -> None:
    """Every sample from its write to its retirement, as a driver steps the engine."""
    for start in range(0, len(identities), BATCH):
        now += 1_000
        one.receive_all(now, [Write("P", "Order", identity, payload) for identity in identities[start : start + BATCH]])
        one.advance(now)
        answers = [
            Acknowledgment("P/S/orders", message.consumer_guid, message.identity)
            for message in one.take_ready().messages
            if type(message) is Delivery
        ]
        one.receive_all(now, answers)
        one.advance(now)
        one.take_ready()
        one.next_deadline()


@pytest.mark.benchmark(timer=time.process_time)
@pytest.mark.parametrize("kind", QUEUES)
@pytest.mark.parametrize("consumers", [1, 100])
def test_lifecycles_a_second(benchmark: BenchmarkFixture, kind: str, consumers: int) -> None:
    one = engine(**QUEUES[kind])
    for number in range(1, consumers + 1):
        one.receive(0, ConsumerJoined("P/S/orders", Guid(number.to_bytes(16, "big"))))
    payload, numbers, clock = bytes(PAYLOAD_BYTES), count(1), count(1)

    def fresh() -> tuple[tuple[object, ...], dict[str, object]]:
        identities = [SampleIdentity(WRITER, next(numbers)) for _ in range(SAMPLES)]
        return (one, identities, payload, next(clock) * SECOND_NS), {}

    benchmark.pedantic(live, setup=fresh, rounds=7, warmup_rounds=1)
    (queue,) = one.hosted.queues()
    status = one.hosted.status(0, queue)
    assert status.total.acknowledged_message_count == 8 * SAMPLES
    assert status.current_message_count == 0
    benchmark.extra_info["lifecycles_per_second"] = round(SAMPLES / benchmark.stats.stats.min)
    if consumers == 1:
        assert SAMPLES / benchmark.stats.stats.min >= LIFECYCLES_A_SECOND[kind]


@pytest.mark.parametrize("kind", ["volatile", "everything on"])
def test_a_queued_sample_takes_at_most_400_bytes_beyond_its_payload(kind: str) -> None:
    """The payload's own object is the payload; position, identity, index and state are what is counted."""
    one = engine(**QUEUES[kind])
    samples = 200_000
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for now in range(10_000, 10_000 + samples // BATCH):
            for number in range(BATCH):
                identity = SampleIdentity(WRITER, now * BATCH + number)
                one.receive(now, Write("P", "Order", identity, bytes(PAYLOAD_BYTES)))
            one.take_ready()
        used = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert used / samples - bytes(PAYLOAD_BYTES).__sizeof__() <= 400


@pytest.mark.benchmark(timer=time.process_time)
def test_restoring_a_hundred_thousand_samples_takes_less_than_a_second(benchmark: BenchmarkFixture) -> None:
    one = engine(persistence=PERSISTENT)
    for number in range(100_000):
        one.receive(0, Write("P", "Order", SampleIdentity(WRITER, number), bytes(PAYLOAD_BYTES)))
    records = records_of(one.take_ready())

    def restore() -> None:
        again = engine(persistence=PERSISTENT)
        again.restore(0, records)

    benchmark.pedantic(restore, rounds=5)
    assert benchmark.stats.stats.median < 1
