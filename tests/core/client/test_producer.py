"""The producer's window: when a sample is acknowledged and when it is sent again [QS 2.4]."""

from __future__ import annotations

import pytest

from qsctl.core.client.producer import Producer, QueueAnswers
from qsctl.errors import UsageError
from qsctl.identity import Guid, SampleIdentity

GUID = Guid(b"p" * 16)


def accepted(queue: str, *identities: SampleIdentity) -> QueueAnswers:
    return QueueAnswers(queue, [each.sequence_number for each in identities], accepted=True)


def rejected(queue: str, *identities: SampleIdentity) -> QueueAnswers:
    return QueueAnswers(queue, [each.sequence_number for each in identities], accepted=False)


def outcomes(producer: Producer) -> list[tuple[int, bool]]:
    return [(number, each.accepted) for each in producer.pop_outcomes() for number in each.numbers]


def test_a_sample_written_before_a_queue_is_there_goes_out_when_it_appears() -> None:
    producer = Producer("T", GUID)
    identity = producer.write(b"x")
    assert producer.pop_writes() == []
    producer.queue_appeared("T@S", True)
    assert [write.identity for write in producer.pop_writes()] == [identity]
    producer.receive(accepted("T@S", identity))
    assert outcomes(producer) == [(identity.sequence_number, True)]


def test_every_acknowledging_queue_has_to_answer_and_one_refusal_is_enough() -> None:
    producer = Producer("T", GUID)
    producer.queue_appeared("T@A", True)
    producer.queue_appeared("T@B", True)
    producer.queue_appeared("T@Silent", False)
    identity = producer.write(b"x")
    producer.receive(rejected("T@A", identity))
    assert outcomes(producer) == []
    producer.receive(accepted("T@B", identity))
    assert outcomes(producer) == [(identity.sequence_number, False)]
    producer.receive(accepted("T@B", identity))
    assert outcomes(producer) == []


def test_a_queue_that_comes_back_is_sent_again_what_it_did_not_answer_in_order() -> None:
    producer = Producer("T", GUID)
    producer.queue_appeared("T@S", True)
    first, second, third = (producer.write(bytes([at])) for at in range(3))
    producer.pop_writes()
    producer.receive(accepted("T@S", second))
    producer.queue_vanished("T@S")
    fourth = producer.write(b"x")
    assert producer.pop_writes() == []
    producer.queue_appeared("T@S", True)
    assert [write.identity for write in producer.pop_writes()] == [first, third, fourth]


def test_a_queue_deleted_for_good_does_not_hold_up_what_another_answers() -> None:
    producer = Producer("T", GUID)
    producer.queue_appeared("T@A", True)
    producer.queue_appeared("T@B", True)
    identity = producer.write(b"x")
    producer.queue_vanished("T@A")
    producer.receive(accepted("T@B", identity))
    assert outcomes(producer) == [(identity.sequence_number, True)]


def test_the_window_bounds_what_is_unanswered() -> None:
    producer = Producer("T", GUID, window_count=2)
    producer.queue_appeared("T@S", True)
    first = producer.write(b"x")
    producer.write(b"x")
    assert not producer.has_room
    with pytest.raises(UsageError, match="2 samples of 'T' wait"):
        producer.write(b"x")
    producer.receive(accepted("T@S", first))
    assert producer.has_room
    with pytest.raises(UsageError, match="holds nothing"):
        Producer("T", GUID, window_count=0)


def test_the_answer_of_a_queue_that_is_not_waited_for_changes_nothing() -> None:
    producer = Producer("T", GUID)
    producer.queue_appeared("T@S", True)
    identity = producer.write(b"x")
    producer.receive(accepted("T@Other", identity))
    assert producer.unacknowledged_count == 1


def test_numbers_that_are_used_up_are_refused_when_written() -> None:
    producer = Producer("T", GUID)
    producer.queue_appeared("T@S", True)
    last = producer.write(b"x", SampleIdentity(GUID, 2**63 - 1))
    with pytest.raises(UsageError, match="no sequence number behind 9223372036854775807"):
        producer.write(b"y")
    before = producer.write(b"z", SampleIdentity(GUID, 2**63 - 2))
    assert [run.first_number for run in producer.pop_runs()] == [last.sequence_number, before.sequence_number]
    assert producer.unacknowledged() == [last, before]


def test_replies_to_a_producer_without_a_source_find_the_writer() -> None:
    producer = Producer("T", GUID)
    producer.queue_appeared("T@S", False)
    producer.write(b"x")
    assert producer.pop_writes()[0].source_guid == GUID
