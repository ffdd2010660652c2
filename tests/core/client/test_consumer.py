"""Consumers, requesters and repliers as state machines [QS 2.5 and 2.11]."""

from __future__ import annotations

from typing import TypeAlias

import pytest

from qsctl.core.client.consumer import Arrivals, QueueReader, acknowledgments_of
from qsctl.core.client.producer import Producer
from qsctl.core.client.replier import Replier
from qsctl.core.client.requester import Requester
from qsctl.core.messages import EPOCH_SHIFT, Acknowledgment, AckResponse, Delivery
from qsctl.errors import UsageError
from qsctl.identity import NIL_GUID, NIL_IDENTITY, Guid, SampleIdentity

ME = Guid(b"c" * 16)
WRITER = Guid(b"w" * 16)


Reader: TypeAlias = QueueReader[SampleIdentity, Delivery]


def receive(consumer: Reader, delivery: Delivery) -> bool:
    return consumer.receive(Arrivals({delivery.identity: delivery}, delivery.flags >> EPOCH_SHIFT))


def delivery(
    number: int, *, flags: int = 0, source: Guid = NIL_GUID, related: SampleIdentity = NIL_IDENTITY
) -> Delivery:
    identity = SampleIdentity(WRITER, number)
    return Delivery("T@S", ME, number, identity, b"x", source_guid=source, related_identity=related, flags=flags)


def test_a_sample_is_answered_once() -> None:
    consumer: Reader = QueueReader("T@S", ME)
    receive(consumer, delivery(1))
    (delivered,) = consumer.deliver(5)
    consumer.acknowledge((delivered.identity,), AckResponse.REJECTED)
    assert acknowledgments_of(consumer) == [Acknowledgment("T@S", ME, delivered.identity, AckResponse.REJECTED)]
    assert acknowledgments_of(consumer) == []
    with pytest.raises(UsageError, match="not held"):
        consumer.acknowledge((delivered.identity,))


def test_a_sample_that_comes_again_before_it_is_taken_is_taken_once() -> None:
    consumer: Reader = QueueReader("T@S", ME)
    receive(consumer, delivery(1))
    receive(consumer, delivery(1, flags=1))
    assert [each.flags for each in consumer.deliver(5)] == [1]


def test_a_sample_that_comes_again_while_it_is_worked_on_is_answered_once_and_not_taken_again() -> None:
    consumer: Reader = QueueReader("T@S", ME)
    receive(consumer, delivery(1))
    (delivered,) = consumer.deliver(5)
    receive(consumer, delivery(1, flags=1))
    assert (consumer.touched_count, consumer.waiting_count) == (1, 1)
    consumer.acknowledge((delivered.identity,))
    assert consumer.deliver(5) == [], "the answer holds for the one that waits"
    assert len(acknowledgments_of(consumer)) == 1
    assert (consumer.touched_count, consumer.waiting_count) == (0, 0)
    with pytest.raises(UsageError, match="not held"):
        consumer.acknowledge((delivered.identity,))


@pytest.mark.parametrize("count", [2, 3])
def test_the_answers_to_twins_that_were_all_received_are_one(count: int) -> None:
    consumer: Reader = QueueReader("T@S", ME)
    for flags in (0, 1, 1)[:count]:
        receive(consumer, delivery(1, flags=flags))
        consumer.deliver(1)
    for _ in range(count):
        consumer.acknowledge((SampleIdentity(WRITER, 1),))
    assert len(acknowledgments_of(consumer)) == 1
    assert (consumer.touched_count, consumer.waiting_count) == (0, 0)
    with pytest.raises(UsageError, match="not held"):
        consumer.acknowledge((SampleIdentity(WRITER, 1),))


def test_acknowledging_all_answers_a_taken_sample_whose_twin_waits() -> None:
    consumer: Reader = QueueReader("T@S", ME)
    receive(consumer, delivery(1))
    consumer.deliver(1)
    receive(consumer, delivery(1, flags=1))
    receive(consumer, delivery(2))
    assert consumer.acknowledge_all() == 1
    assert [each.identity.sequence_number for each in consumer.deliver(5)] == [2]


def test_a_sample_that_comes_again_after_its_answer_is_a_new_delivery() -> None:
    consumer: Reader = QueueReader("T@S", ME)
    for _ in range(2):
        receive(consumer, delivery(1))
        consumer.acknowledge((consumer.deliver(1)[0].identity,))
    assert len(acknowledgments_of(consumer)) == 2


def test_acknowledging_all_acknowledges_received_samples_only() -> None:
    consumer: Reader = QueueReader("T@S", ME)
    for number in range(5):
        receive(consumer, delivery(number))
    consumer.deliver(2)
    assert consumer.touched_count == 2
    assert consumer.acknowledge_all() == 2
    assert (consumer.waiting_count, consumer.touched_count) == (3, 0)


def of_epoch(epoch: int, number: int) -> Delivery:
    return delivery(number, flags=1 | (epoch & 0xFFFF) << 16)


def test_what_a_former_master_sent_is_refused_once_a_later_one_delivered() -> None:
    consumer: Reader = QueueReader("T@S", ME)
    assert [receive(consumer, of_epoch(*each)) for each in ((4, 1), (4, 2), (5, 2), (4, 3), (5, 4))] == [
        True, True, True, False, True,
    ]  # fmt: skip
    assert consumer.refused_count == 1
    assert [each.identity.sequence_number for each in consumer.deliver(9)] == [1, 2, 4]


def test_epochs_are_compared_by_their_lower_bits() -> None:
    consumer: Reader = QueueReader("T@S", ME)
    assert [receive(consumer, of_epoch(epoch, 1)) for epoch in (0xFFFF, 0x10001, 0xFFFE)] == [True, True, False]


def test_a_sample_without_an_epoch_is_not_of_a_former_master() -> None:
    consumer: Reader = QueueReader("T@S", ME)
    assert [receive(consumer, each) for each in (of_epoch(7, 1), delivery(2), of_epoch(6, 3))] == [True, True, False]


def test_deliveries_of_restarted_replicas_are_accepted() -> None:
    consumer: Reader = QueueReader("T@S", ME)
    receive(consumer, of_epoch(9, 1))
    consumer.forget_epoch()
    assert receive(consumer, of_epoch(1, 1))


def test_availability_is_checked() -> None:
    consumer: Reader = QueueReader("T@S", ME)
    assert consumer.availability(False, 3).unacked_threshold == 3
    assert consumer.availability(True, 2**31 - 1).unacked_threshold == 2**31 - 1
    for wrong in (-2, 2**31):
        with pytest.raises(UsageError, match=f"threshold of {wrong} means nothing"):
            consumer.availability(True, wrong)


def test_a_reply_goes_to_its_request_and_a_strange_one_is_acknowledged_away() -> None:
    arrived: list[Delivery] = []
    acknowledged: list[Delivery] = []

    def pop_arrived() -> list[Delivery]:
        found = list(arrived)
        arrived.clear()
        return found

    requester = Requester(Producer("Q", WRITER), pop_arrived, acknowledged.append)
    first, second = requester.request(b"1"), requester.request(b"2")
    for number, related in ((1, second), (2, first), (3, second), (4, SampleIdentity(ME, 9))):
        arrived.append(delivery(number, related=related))
    requester.sort_replies()
    assert [each.identity.sequence_number for each in requester.pop_replies(second)] == [1, 3]
    assert [each.identity.sequence_number for each in requester.pop_replies(first)] == [2]
    assert requester.pop_replies(first) == []
    assert requester.dropped_count == 1
    assert [each.identity.sequence_number for each in acknowledged] == [1, 2, 3, 4]
    requester.forget(first)
    for number, related in ((5, first), (6, second)):
        arrived.append(delivery(number, related=related))
    requester.sort_replies()
    assert (requester.reply_count(first), requester.reply_count(second), requester.dropped_count) == (0, 1, 2)


def test_a_reply_carries_the_request_and_its_source() -> None:
    replier = Replier(Producer("QReply", WRITER))
    replier.producer.queue_appeared("QReply@S", True)
    request = delivery(7, source=Guid(b"a" * 16))
    replier.reply(request, b"answer")
    (write,) = replier.producer.pop_writes()
    assert (write.related_source_guid, write.related_identity) == (Guid(b"a" * 16), request.identity)
    with pytest.raises(UsageError, match="no source GUID"):
        replier.reply(delivery(8), b"answer")
