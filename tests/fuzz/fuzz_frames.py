"""Frames of samples and of acknowledgments in both directions, availability, replies and dead letters, as octets.

The first octet says what the rest is read as. What is read must be what an engine and a client can work with: it is
given to both, and written again.
"""

from __future__ import annotations

from collections.abc import Callable

from qsctl.core.admin.command import GetData, GetMessages, GetStatus, Shutdown
from qsctl.core.client.consumer import QueueEnd, QueueReader
from qsctl.core.client.producer import Producer, QueueAnswers
from qsctl.core.engine import Journal, ServiceEngine
from qsctl.core.messages import (
    AckResponse,
    ConsumerJoined,
    Delivery,
    RunAccepted,
    RunDelivery,
    WriteAcknowledgment,
)
from qsctl.identity import NIL_GUID, Guid, counted_incarnations
from qsctl.resource import ResourceIdentifier, parse_resource
from qsctl.transport.dds.boundary import Malformed
from qsctl.transport.dds.serving.endpoints import availability_from_octets
from qsctl.transport.dds.wire import frames
from qsctl.transport.dds.wire.bodies import dead_letter_from_octets
from qsctl.transport.dds.wire.replies import queue_domains, reply_of, reply_parts
from tests.answer_frames import parse_answers
from tests.fuzz.fuzz_command_requests import SETTINGS

DICTIONARY = (
    b"\x00\x01\x00\x00",
    b"\x00\x07\x00\x00",
    b"\x01\x00\x00\x00",
    b"\xff\xff\xff\x7f",
    b"Orders@S\x00",
    b"c" * 16,
)

QUEUE = parse_resource("/domain_participant/P/shared_subscriber/S/shared_reader_queue/Orders")
CONSUMER = Guid(b"c" * 16)


def engine_with_a_consumer() -> ServiceEngine:
    engine = ServiceEngine(SETTINGS, started_at=0, draw=counted_incarnations(), journal=Journal.EVERYTHING)
    engine.hosted.reports_each_step = False  # as a service without a recorder, which holds runs of samples
    engine.receive(1, ConsumerJoined("P/S/Orders", CONSUMER, NIL_GUID))
    return engine


def writes(data: bytes) -> None:
    found = frames.parse_frame(data, "P", "Orders")
    assert sum(len(write.payload) for each in found for write in each.singles()) <= len(data)
    engine = engine_with_a_consumer()
    engine.receive_all(2, found)
    engine.advance(3)
    ready = engine.take_ready()
    for frame, _ in frames.delivery_frames(
        [each for each in ready.messages if isinstance(each, Delivery | RunDelivery)]
    ):
        frames.parse_arrivals(frame)
    answered = [each for each in ready.messages if isinstance(each, WriteAcknowledgment | RunAccepted)]
    parse_answers(frames.answers_of(NIL_GUID, "Orders@S", frames.pack_answers(answered)))


def deliveries(data: bytes) -> None:
    consumer: QueueReader[bytes, frames.SampleOctets] = QueueReader("Orders@S", CONSUMER)
    for each in frames.parse_arrivals(data):
        if isinstance(each, QueueEnd):
            consumer.receive_end(each)
        else:
            consumer.receive(each)
    deliveries = [frames.delivery_of(each, "Orders@S", CONSUMER) for each in consumer.deliver(64)]
    count = consumer.acknowledge_all()
    answers = [parse_answers(each) for each in frames.answer_frames(CONSUMER, "Orders@S", consumer.pop_answers())]
    assert [each for frame in answers for each in frame.identities] == [each.identity for each in deliveries]
    assert len(deliveries) == count


def consumer_answers(data: bytes) -> None:
    engine = engine_with_a_consumer()
    engine.receive_all(2, frames.parse_consumer_answers(data, "P/S/Orders").answers)
    engine.take_ready()


def producer_answers(data: bytes) -> None:
    frame = frames.parse_answer_runs(data, CONSUMER)
    of_this = [each for each in parse_answers(data).identities if each.writer_guid == CONSUMER]
    assert sum(len(numbers) for numbers, _ in frame.runs) == len(of_this)
    producer = Producer("Orders", CONSUMER, window_count=16)
    producer.queue_appeared("Orders@S", True)
    producer.write(b"x")
    producer.pop_writes()
    for numbers, response in frame.runs:
        producer.receive(QueueAnswers(frame.queue_name, numbers, response == AckResponse.ACCEPTED))
    producer.pop_outcomes()


def availability(data: bytes) -> None:
    engine = engine_with_a_consumer()
    engine.receive(2, availability_from_octets("P/S/Orders", data))
    engine.take_ready()


def reply(data: bytes) -> None:
    for command in (GetStatus(QUEUE), GetMessages(QUEUE), GetData(QUEUE), GetData(ResourceIdentifier()), Shutdown()):
        try:
            read = reply_of(reply_parts(data), command)
        except Malformed:
            continue
        assert len(read.octets) <= len(data)


READERS: tuple[Callable[[bytes], object], ...] = (
    writes,
    deliveries,
    consumer_answers,
    producer_answers,
    availability,
    reply,
    dead_letter_from_octets,
    queue_domains,
)


def one_input(data: bytes) -> None:
    if not data:
        return
    try:
        READERS[data[0] % len(READERS)](data[1:])
    except Malformed as error:
        assert len(str(error)) < 2000
