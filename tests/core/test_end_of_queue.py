"""A consumer asks whether its queue has more for it, and is answered behind all that it was sent [extension]."""

from __future__ import annotations

from itertools import chain

import pytest

from qsctl.core.client.consumer import Arrivals, QueueEnd, QueueReader
from qsctl.core.engine import ServiceEngine
from qsctl.core.messages import (
    QUESTION_NUMBER_MIN,
    Acknowledgment,
    AckResponse,
    ConsumerJoined,
    ConsumerLeft,
    Delivery,
    Inbound,
    SampleFlag,
    Write,
)
from qsctl.core.queue.settings import DistributionSettings
from qsctl.identity import NIL_GUID, SampleIdentity, guid_from_hex
from tests.core import turns

QUEUE = "P/S/orders"
WRITER, ONE, TWO = guid_from_hex("1"), guid_from_hex("2"), guid_from_hex("3")


def engine_of(threshold: int = -1, share_count: int = 1000) -> ServiceEngine:
    distribution = DistributionSettings(unacked_threshold=threshold)
    engine = turns.engine_of(turns.queue("orders", distribution=distribution))
    engine.finish_restore(0)
    engine.hosted.share_count = share_count
    return engine


def write(number: int, flags: int = 0) -> Write:
    return Write("P", "Orders", SampleIdentity(WRITER, number), b"x", flags=flags)


def question(number: int = 1, consumer: bytes = ONE) -> Acknowledgment:
    identity = SampleIdentity(NIL_GUID, QUESTION_NUMBER_MIN + number)
    return Acknowledgment(QUEUE, consumer, identity, AckResponse.ACCEPTED)  # type: ignore[arg-type]


def sent(engine: ServiceEngine, *messages: Inbound) -> list[list[int]]:
    """What is sent, turn by turn: numbers of samples; a question's negative."""
    engine.receive_all(1, messages)
    sent_by_turn: list[list[int]] = []
    while True:
        ready = engine.take_ready()
        sent_by_turn.append(
            [
                number if number < QUESTION_NUMBER_MIN else QUESTION_NUMBER_MIN - number
                for each in ready.messages
                if type(each) is Delivery and (number := each.identity.sequence_number)
            ]
        )
        if engine.next_deadline() != 1:
            return sent_by_turn
        engine.advance(1)


def test_the_answer_comes_behind_what_was_there() -> None:
    engine = engine_of()
    assert sent(engine, write(1), write(2), ConsumerJoined(QUEUE, ONE), question(), write(3)) == [[1, 2, -1, 3]]


def test_an_empty_queue_answers() -> None:
    assert sent(engine_of(), ConsumerJoined(QUEUE, ONE), question(1), question(2)) == [[-1, -2]]


def test_the_answer_waits_for_what_a_turn_leaves_to_the_next() -> None:
    by_turn = sent(engine_of(share_count=2), *map(write, range(1, 6)), ConsumerJoined(QUEUE, ONE), question())
    assert len(by_turn) > 1
    assert [*chain(*by_turn)] == [1, 2, 3, 4, 5, -1]


def test_what_is_beyond_the_threshold_is_not_there() -> None:
    engine = engine_of(threshold=0)
    assert sent(engine, write(1), write(2), ConsumerJoined(QUEUE, ONE), question()) == [[1, -1]]
    done = Acknowledgment(QUEUE, ONE, SampleIdentity(WRITER, 1), AckResponse.ACCEPTED)
    assert sent(engine, done, question(2)) == [[2, -2]]


def test_what_another_consumer_holds_is_not_there() -> None:
    engine = engine_of()
    assert sent(engine, ConsumerJoined(QUEUE, ONE), write(1)) == [[1]]
    assert sent(engine, ConsumerJoined(QUEUE, TWO), question(1, TWO)) == [[-1]]
    assert sent(engine, ConsumerLeft(QUEUE, ONE), question(2, TWO)) == [[-2]], "it was a failed delivery, its last"


def test_a_stranger_is_not_answered() -> None:
    engine = engine_of()
    assert sent(engine, question()) == [[]]
    assert engine.hosted.queue(next(iter(engine.hosted.queues()))).refused_count == 1


def test_the_answer_rests_on_the_records_before_it() -> None:
    turn = turns.turn_of(turns.queue("orders", persistence=turns.PERSISTENT))
    turns.run(turn, write(1), ConsumerJoined(QUEUE, ONE), question())
    assert turns.sent(turn) == []
    turns.write_all(turn)
    deliveries = [each for each in turns.sent(turn) if type(each) is Delivery]
    assert [each.flags for each in deliveries] == [0, SampleFlag.END_OF_QUEUE]


def test_a_producer_cannot_end_a_queue() -> None:
    engine = engine_of()
    engine.receive_all(1, [write(1, int(SampleFlag.END_OF_QUEUE)), ConsumerJoined(QUEUE, ONE)])
    (delivery,) = [each for each in engine.take_ready().messages if type(each) is Delivery]
    assert delivery.flags == 0


@pytest.mark.parametrize("epoch", [0, 5])
def test_a_consumer_counts_answers_to_its_latest_question(epoch: int) -> None:
    consumer: QueueReader[SampleIdentity, None] = QueueReader("T@S", ONE)
    former, latest = consumer.ask(), consumer.ask()
    for each in (former, latest, latest):
        consumer.receive_end(QueueEnd(each.sequence_number, epoch))
    assert (consumer.end_count, consumer.waiting_count) == (2, 0)
    consumer.ask()
    assert consumer.end_count == 0


def test_an_answer_of_a_former_master_does_not_count() -> None:
    consumer: QueueReader[SampleIdentity, None] = QueueReader("T@S", ONE)
    consumer.receive(Arrivals({SampleIdentity(WRITER, 1): None}, epoch=6))
    asked = consumer.ask()
    consumer.receive_end(QueueEnd(asked.sequence_number, epoch=5))
    assert (consumer.end_count, consumer.refused_count) == (0, 1)
