"""Processor time of a client's state and frames a sample, as a multiple of packing and parsing a frame alone.

No service is needed: frames that a service would send are given to the client's port, and what the client sends is
dropped. What DDS takes for a frame is left out on both sides. Run it alone:
`pytest tests/benchmarks/test_client_cost.py -s`.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

import pytest

from qsctl.client import QueueConsumer, QueueProducer
from qsctl.identity import NIL_GUID, Guid, SampleIdentity
from qsctl.transport.dds.wire import frames
from qsctl.transport.dds.wire.raw import RawReader
from tests.benchmarks.ratios import keep_ratio
from tests.dds.domains import claim_domain, release_domain

COUNT = 20_000
BURST = 50
ROUNDS = 9
PAYLOAD = bytes(256)
WRITER = Guid(b"w" * 16)


class FedReader:
    """A reader that returns the octets that it was given, in the place of another."""

    def __init__(self, former: RawReader) -> None:
        self.octets: deque[bytes] = deque()
        self.close = former.close

    def take_with_info(self, count: int) -> list[tuple[bytes, Any]]:
        return [(self.octets.popleft(), None) for _ in range(min(count, len(self.octets)))]


@pytest.fixture
def domain() -> Iterator[int]:
    found = claim_domain()
    yield found
    release_domain(found)


def produce(domain: int, write: Callable[[QueueProducer[bytes]], None]) -> float:
    """Return the processor time of a run; each frame that is sent is acknowledged at once."""
    with QueueProducer("Orders", domain) as producer:
        port: Any = producer._port
        guid = producer.state.writer_guid
        answers = [frames.pack_answer(SampleIdentity(guid, number), 1) for number in range(1, COUNT + 1)]
        reader = port._answers._reader = FedReader(port._answers._reader)
        answered = 0

        def put(frame: bytes) -> None:
            nonlocal answered
            count = int.from_bytes(frame[4:8], "little")
            packed = answers[answered : answered + count]
            reader.octets.append(frames.answers_of(NIL_GUID, "Orders@S", packed))
            answered += count

        port._writer.put = put
        producer.state.queue_appeared("Orders@S", True)
        begin = time.process_time()
        write(producer)
        spent = time.process_time() - begin
        assert (answered, producer.state.unacknowledged_count) == (COUNT, 0)
    return spent


def write_singly(producer: QueueProducer[bytes]) -> None:
    for _ in range(COUNT // BURST):
        for _ in range(BURST):
            producer.write(PAYLOAD)
        producer.flush()
    assert producer.wait_for_acknowledgments(10) == 0


def write_many(producer: QueueProducer[bytes]) -> None:
    assert producer.write_many([PAYLOAD] * COUNT) == []


def consume(domain: int, receive: Callable[[QueueConsumer[bytes]], int]) -> float:
    """Return the processor time of a run in which all samples have arrived."""
    with QueueConsumer("Orders", "S", domain) as consumer:
        port: Any = consumer._port
        reader = port._samples._reader = FedReader(port._samples._reader)
        reader.octets.extend(sent_frames())
        port._is_heard = True
        port.look = lambda _changes: None
        answered = 0

        def put(frame: bytes) -> None:
            nonlocal answered
            answered += int.from_bytes(frame[20:24], "little")

        port._writer.put = put
        begin = time.process_time()
        received = receive(consumer)
        consumer.flush()
        spent = time.process_time() - begin
        assert (received, answered) == (COUNT, COUNT)
    return spent


def receive_singly(consumer: QueueConsumer[bytes]) -> int:
    count = 0
    for sample in consumer:
        count += len(sample.value) == len(PAYLOAD)
        sample.acknowledge()
        if count == COUNT:
            break
    return count


def receive_in_batches(consumer: QueueConsumer[bytes]) -> int:
    return sum(len(batch) for batch in consumer.batches(100, max_samples=COUNT))


def receive_all(consumer: QueueConsumer[bytes]) -> int:
    count = 0
    while count < COUNT:
        count += len([sample.value for sample in consumer.receive(1000)])
        consumer.acknowledge_all()
        consumer.flush()
    return count


def sent_frames() -> list[bytes]:
    packed = [frames.pack_sample(SampleIdentity(WRITER, number), PAYLOAD) for number in range(COUNT)]
    return [frames.frame_of(packed[at : at + BURST]) for at in range(0, COUNT, BURST)]


def pack_and_parse() -> float:
    """Return the processor time to pack frames, one sample after the other, and to read their samples."""
    begin = time.process_time()
    for frame in sent_frames():
        assert len(list(frames._read(len(PAYLOAD)).iter_unpack(memoryview(frame)[8:]))) == BURST
    return time.process_time() - begin


WAYS: dict[str, tuple[Callable[..., float], Callable[[Any], Any], float]] = {
    "a written and acknowledged sample": (produce, write_singly, 2.6),
    "a sample of write_many": (produce, write_many, 2.3),
    "a sample received and acknowledged by itself": (consume, receive_singly, 5.0),
    "a sample of a batch": (consume, receive_in_batches, 3.2),
    "a sample acknowledged with all others": (consume, receive_all, 2.4),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_sample_costs_a_client_little_more_than_its_frame(domain: int, way: str) -> None:
    run, step, times_max = WAYS[way]
    spent, bare = [], []
    for _ in range(ROUNDS):
        spent.append(run(domain, step))
        bare.append(pack_and_parse())
    ratio = median(one / other for one, other in zip(spent, bare, strict=True))
    microseconds = [median(each) / COUNT * 1e6 for each in (spent, bare)]
    sys.stdout.write(f"\n{way}: {microseconds[0]:.2f} µs, its frame {microseconds[1]:.2f} µs: {ratio:.2f} times")
    keep_ratio(f"processor time of {way} to that of its frame", ratio, higher_is_better=False)
    assert ratio <= times_max
