"""Applications without qsctl on the queues of a service: plain samples, and `schemas/qsctl_queue.idl` [QS 2.4 to 2.11].

One service for all tests but those that kill it; each test has queues of its own.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any

import pytest
from cyclonedds.core import DDSException
from cyclonedds.qos import Policy

from qsctl.client import QueueConsumer, QueueProducer, QueueReplier, QueueRequester
from qsctl.client.administration import Administration
from qsctl.config.sample_types.type_file import read_type_file
from qsctl.resource import parse_resource
from tests.dds.domains import claim_domain, release_domain
from tests.dds.peer import queue_types as idl
from tests.dds.peer.plain_types import TYPES, AppendableOrder, FinalOrder, MutableOrder, Octets, Price, Side, String
from tests.dds.plain_peer import XCDR1, XCDR2, PlainConsumer, PlainPeer, plain_peers
from tests.dds.service_process import ServiceProcess, eventually

SUBSCRIBER = "/domain_participant/P/shared_subscriber/S"
ORDER_TYPES = {"Final": FinalOrder, "Appendable": AppendableOrder, "Mutable": MutableOrder}
SMALL = """<queue_qos><resource_limits><queue_allocation_settings><max_count>3</max_count></queue_allocation_settings>
</resource_limits></queue_qos><datareader_qos><resource_limits><max_samples>5</max_samples></resource_limits>
</datareader_qos>"""
FEEDBACK = """<queue_qos><distribution><kind>ROUND_ROBIN</kind><property><value><element>
<name>ALLOW_CONSUMER_FEEDBACK</name><value>1</value></element></value></property></distribution></queue_qos>"""
RETRY = "<queue_qos><redelivery><max_delivery_retries>1</max_delivery_retries></redelivery></queue_qos>"
REPLIES = "<reply_type>DDS::Octets</reply_type>"


def queue(name: str, type_name: str = "DDS::Octets", more: str = "", dead: bool = False) -> str:
    letters = "<dead_letter_queue_name>Dead</dead_letter_queue_name>" if dead else ""
    return (
        f'<shared_reader_queue name="{name}" session="s"><topic_name>{name}</topic_name>'
        f"<type_name>{type_name}</type_name>{more}{letters}</shared_reader_queue>"
    )


QUEUES = "".join(
    (
        *(queue(f"{kind}s", f"market::{kind}Order") for kind in ORDER_TYPES),
        queue("Texts", "DDS::String"),
        queue("Mixed"),
        queue("Watched"),
        queue("Small", more=SMALL),
        queue("Windowed", more=FEEDBACK),
        queue("Questions", more=REPLIES),
        queue("Stale"),
        queue("Strange"),
        queue("Told", more=SMALL),
    )
)


@pytest.fixture(scope="module")
def domain() -> Iterator[int]:
    claimed = claim_domain()
    yield claimed
    release_domain(claimed)


@pytest.fixture(scope="module")
def service(domain: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    process = ServiceProcess(tmp_path_factory.mktemp("service"), domain, queues=QUEUES, types=TYPES)
    yield process
    process.end()


@pytest.fixture
def peer(service: ServiceProcess) -> Iterator[PlainPeer]:
    with plain_peers(service.domain) as make:
        yield make()


@pytest.mark.parametrize("kind", ORDER_TYPES)
def test_plain_samples_of_a_type_arrive_as_written(service: ServiceProcess, peer: PlainPeer, kind: str) -> None:
    data_type: Any = ORDER_TYPES[kind]
    topic = f"{kind}s"
    consumer = PlainConsumer(peer, topic)
    for number, representation in enumerate((XCDR1, XCDR2)):
        sample = data_type(number, Side.SELL, Price(1.5, "EUR"), ["a", "bcd"])
        peer.writer(topic, data_type, representation).write(sample)
        (delivery,) = consumer.receive(1)
        payload = bytes(delivery.payload)
        assert (payload[1] >= 6) == (representation is XCDR2), "in the representation of its writer"
        assert data_type.deserialize(payload) == sample
        consumer.answer(delivery)
    consumer.reader.__del__()
    codec = read_type_file(service.file).codec(f"market::{kind}Order")
    with QueueConsumer[Any](topic, "S", service.domain, codec=codec) as wrapped:
        wrapped.wait_for_queue()
        peer.writer(topic, data_type).write(data_type(7, Side.BUY, Price(2.0, "USD"), []))
        (sample,) = wrapped.receive()
        assert sample.value == {"number": 7, "side": "BUY", "price": {"amount": 2.0, "currency": "USD"}, "notes": []}
        sample.acknowledge()
    observed = peer.reader(topic, data_type)
    peer.writer(topic, data_type, matched=2).write(data_type(8))
    assert eventually(lambda: [each.number for each in observed.take(1)] == [8]), "a plain reader has its copy"


def test_plain_reader_gets_copies_of_what_wrappers_write(service: ServiceProcess, peer: PlainPeer) -> None:
    observed = peer.reader("Watched", Octets)
    peer.writer("Watched", Octets, matched=2).write(Octets(b"plain"))
    assert [bytes(each.value) for each in _take(observed, 1)] == [b"plain"]
    assert eventually(lambda: observed.get_subscription_matched_status().current_count == 1), "the copies' writer"
    with QueueProducer("Watched", service.domain) as producer:
        producer.wait_for_queue()
        producer.write(b"wrapped")
        assert producer.wait_for_acknowledgments() == 0
        assert [bytes(each.value) for each in _take(observed, 1)] == [b"wrapped"]
    consumer = PlainConsumer(peer, "Watched")
    got = [bytes(each.payload) for each in consumer.receive(2)]
    assert sorted(got) == [b"plain", b"wrapped"], "of two writers, on two ways, either may be first"
    assert consumer.receive(1, patience_s=0.2) == [], "a copy is not enqueued"


def test_text_and_octets_are_enqueued_bare(service: ServiceProcess, peer: PlainPeer) -> None:
    consumer = PlainConsumer(peer, "Texts")
    peer.writer("Texts", String).write(String("grün"))
    (delivery,) = consumer.receive(1)
    assert bytes(delivery.payload).decode() == "grün"
    consumer.answer(delivery)
    with QueueProducer("Texts", service.domain) as producer:
        producer.wait_for_queue()
        producer.write(b"of a wrapper")
    assert [bytes(each.payload) for each in consumer.receive(1)] == [b"of a wrapper"]


def test_each_sample_goes_to_one_consumer_of_either_kind(service: ServiceProcess, peer: PlainPeer) -> None:
    plain = PlainConsumer(peer, "Mixed")
    writer = peer.writer("Mixed", Octets)
    with (
        QueueProducer("Mixed", service.domain) as producer,
        QueueConsumer("Mixed", "S", service.domain) as wrapped,
    ):
        producer.wait_for_queue()
        wrapped.wait_for_queue()
        written: set[bytes] = set()
        got: list[bytes] = []
        by_kind = {"plain": 0, "wrapped": 0}

        def all_came() -> bool:
            for delivery in plain.receive(1, patience_s=0.02):
                plain.answer(delivery)
                got.append(bytes(delivery.payload))
                by_kind["plain"] += 1
            for sample in wrapped.receive(100, 0.02):
                sample.acknowledge()
                got.append(sample.value)
                by_kind["wrapped"] += 1
            return len(got) >= len(written)

        while not written or not all(by_kind.values()):
            number = len(written)
            writer.write(Octets(b"p%d" % number))
            producer.write(b"w%d" % number)
            producer.wait_for_acknowledgments()
            written |= {b"p%d" % number, b"w%d" % number}
            assert eventually(all_came), (written, got)
        wrapped.flush()
        assert len(got) == len(written), "each once"
        assert set(got) == written


def test_full_queue_holds_plain_writers_back_and_loses_nothing(service: ServiceProcess, peer: PlainPeer) -> None:
    """The queue holds 3 and its reader 5. The rest waits with the writer, whose cache is full at 8 MiB."""
    writer = peer.writer("Small", Octets)
    size, count = 60_000, 0
    with contextlib.suppress(DDSException):
        for count in range(1000):
            writer.write(Octets(b"%03d" % count + bytes(size)))
    assert 0 < count < 500, "the writer was held back"
    # Acknowledgments come in beside the samples that are not read: the queue gets going again.
    consumer = PlainConsumer(peer, "Small")
    got = []
    for _ in range(count):
        for delivery in consumer.receive(1):
            got.append(int(bytes(delivery.payload[:3])))
            consumer.answer(delivery)
    assert got == list(range(count))


def test_a_producer_that_asks_is_acknowledged_by_number_or_timestamp(service: ServiceProcess, peer: PlainPeer) -> None:
    """A queue of 3 that rejects: the fourth is refused, and a repeated number is accepted once more and held once."""
    answers = peer.reader("qsctl/Told/write_acknowledgment", idl.WriteAcknowledgment, "told")
    asked = PlainConsumer(peer, "Told", "S", b"qsctl;threshold=0")
    (first,) = _write_told(peer, answers, [1])
    assert (first.identity.sequence_number, first.response, first.queue) == (1, 1, "Told@S")
    assert asked.receive(1)[0].identity == first.identity, "the number is the producer's own"
    answered = _write_told(peer, answers, [1, 2, 3, 4])
    assert [(each.identity.sequence_number, each.response) for each in answered] == [(1, 1), (2, 1), (3, 1), (4, 0)]
    plain = peer.writer("Told", Octets)
    written_at = time.time_ns()
    plain.write(Octets(b"plain"), timestamp=written_at)
    (refused,) = _take(answers, 1)
    assert (refused.source_timestamp_ns, refused.response) == (written_at, 0)


def _write_told(peer: PlainPeer, answers: Any, numbers: list[int]) -> list[Any]:
    writer = peer.writer("qsctl/Told/write", idl.Write)
    for number in numbers:
        identity = idl.SampleIdentity(idl.Guid(b"a producer's own"), number)
        writer.write(idl.Write(identity, payload=b"%d" % number))
    return _take(answers, len(numbers))


def _take(reader: Any, count: int) -> list[Any]:
    taken: list[Any] = []

    def is_all() -> bool:
        taken.extend(each for each in reader.take(count) if each.sample_info.valid_data)
        return len(taken) >= count

    assert eventually(is_all), taken
    return taken


def test_requests_and_replies_of_both_kinds(service: ServiceProcess, peer: PlainPeer) -> None:
    me = bytes(range(16))
    replies = PlainConsumer(peer, "QuestionsReply", "S", b"qsctl;source=" + me.hex().encode())
    asks = peer.writer("qsctl/Questions/write", idl.Write)

    def ask(number: int) -> None:
        asks.write(idl.Write(idl.SampleIdentity(idl.Guid(bytes(16)), number), idl.Guid(me), payload=b"q%d" % number))

    with QueueReplier("Questions", "S", service.domain) as replier:
        replier.wait_for_queue()
        ask(1)
        (request,) = replier.receive()
        replier.reply(request, b"to " + request.value)
        (reply,) = replies.receive(1)
        assert (bytes(reply.payload), reply.related_identity.sequence_number) == (b"to q1", 1)
        assert reply.related_source_guid.value == me
        replies.answer(reply)
        replier.wait_for_acknowledgments()
    plain = PlainConsumer(peer, "Questions")
    writes = peer.writer("qsctl/QuestionsReply/write", idl.Write)
    with QueueRequester("Questions", "S", service.domain) as requester:
        requester.wait_for_queue()
        asked = requester.send(b"q2")
        (request,) = plain.receive(1)
        writes.write(
            idl.Write(
                idl.SampleIdentity(idl.Guid(bytes(16)), 1),
                related_source_guid=request.source_guid,
                related_identity=request.identity,
                payload=b"plainly",
            )
        )
        plain.answer(request)
        assert requester.replies(asked) == [b"plainly"]


def test_consumer_limits_itself_rejects_and_returns(service: ServiceProcess, peer: PlainPeer) -> None:
    says = peer.writer("qsctl/Windowed/S/availability", idl.Availability)
    says.write(idl.Availability(unacked_threshold=1))
    consumer = PlainConsumer(peer, "Windowed")
    writer = peer.writer("Windowed", Octets)
    for number in range(4):
        writer.write(Octets(b"%d" % number))
    held = consumer.receive(2)
    assert [bytes(each.payload) for each in held] == [b"0", b"1"]
    assert consumer.receive(1, patience_s=0.1) == [], "one more than the threshold, as in every queue"
    consumer.answer(held[0], 2)
    (again,) = consumer.receive(1)
    assert (bytes(again.payload), again.attempt, again.flags & 1) == (b"0", 1, 1), "returned: no attempt is counted"
    says.write(idl.Availability(reception_enabled=False))
    consumer.answer(again)
    assert consumer.receive(1, patience_s=0.1) == []
    says.write(idl.Availability(held[1].consumer))
    assert [bytes(each.payload) for each in consumer.receive(2)] == [b"2", b"3"]


def test_lifespan_counts_from_the_source_timestamp(service: ServiceProcess, peer: PlainPeer) -> None:
    writer = peer.writer("Stale", Octets, Policy.Lifespan(10**10))
    writer.write(Octets(b"old"), timestamp=time.time_ns() - 20 * 10**9)
    writer.write(Octets(b"new"))
    consumer = PlainConsumer(peer, "Stale")
    assert [bytes(each.payload) for each in consumer.receive(1)] == [b"new"]


@pytest.mark.slow
def test_strange_messages_have_no_effect_and_are_named(service: ServiceProcess, peer: PlainPeer) -> None:
    consumer = PlainConsumer(peer, "Strange")
    with plain_peers(service.domain) as make:
        other = PlainConsumer(make(), "Strange")
        peer.writer("Strange", Octets).write(Octets(b"one"))
        while not (found := consumer.receive(1, patience_s=0.05)) and not other.receive(1, patience_s=0.05):
            pass
        holder, thief = (consumer, other) if found else (other, consumer)
        (held,) = holder.taken
        thief.answer(held)
        holder.writer.write(idl.Acknowledgment(held.consumer, held.identity, 9))
        peer.writer("qsctl/Strange/write", idl.Write).write(idl.Write(idl.SampleIdentity(), payload=b"no number"))
        alone = peer.reader("qsctl/Strange/S/delivery", idl.Delivery)
        twin = peer.reader("qsctl/Strange/S/delivery", idl.Delivery, consumer.partition)
        for reason in (
            "acknowledges for a consumer of another process",
            "a response is 9",
            "a sequence number is 0",
            "is in no partition",
            "where another one is",
        ):
            assert eventually(lambda reason=reason: reason in service.log.read_text()), reason  # type: ignore[misc]
        assert alone.take(1) == twin.take(1) == []
        holder.answer(held)
        administration = Administration(service.connection(), service.name)
        strange = parse_resource(f"{SUBSCRIBER}/shared_reader_queue/Strange")
        assert eventually(lambda: administration.statuses(strange)[0].body.total.acknowledged_message_count == 1)
        assert administration.statuses(strange)[0].body.total.received_message_count == 1
