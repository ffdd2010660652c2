"""What the answers of several replicas say together to a producer, and what is written again [QS 7.1.1.2]."""

from __future__ import annotations

from msgspec import structs

from qsctl.core.client.unanswered import PATIENCE_NS, WRITES_AGAIN_NS, Unanswered
from qsctl.core.messages import AckResponse, SampleFlag, Write, WriteAcknowledgment
from qsctl.identity import Guid, SampleIdentity

QUEUE = "Orders@S"
IDENTITY = SampleIdentity(Guid(b"w" * 16), 1)
WRITE = Write("", "Orders", IDENTITY, b"payload")
THREE = {QUEUE: {"a", "b", "c"}}


def answer(*, accepted: bool = False, attempt: int = 1, lacks_master: bool = False) -> WriteAcknowledgment:
    response = AckResponse.ACCEPTED if accepted else AckResponse.REJECTED
    return WriteAcknowledgment(QUEUE, IDENTITY, response, 0, attempt, lacks_master)


def written() -> Unanswered:
    unanswered = Unanswered()
    assert [each.attempt for each in unanswered.sent(0, [WRITE], THREE)] == [1]
    return unanswered


def test_the_first_acceptance_is_the_queue_s() -> None:
    unanswered = written()
    assert not unanswered.receive(answer(), "a", THREE)
    assert unanswered.receive(answer(accepted=True, attempt=0), "b", THREE)
    assert not len(unanswered)
    assert unanswered.pop_due(10 * WRITES_AGAIN_NS, THREE) == []


def test_a_sample_is_refused_once_every_replica_refused_the_attempt() -> None:
    unanswered = written()
    assert not unanswered.receive(answer(), "a", THREE)
    assert not unanswered.receive(answer(), "a", THREE)
    assert not unanswered.receive(answer(lacks_master=True), "b", THREE)
    assert unanswered.receive(answer(lacks_master=True), "c", THREE)
    assert not len(unanswered)


TWO = {QUEUE: {"a", "b"}}


def test_sample_is_not_refused_while_a_replica_that_has_it_perhaps_is_gone() -> None:
    """The others can have no master, or a full one, and elect the one that has the sample later."""
    unanswered = written()
    assert not unanswered.receive(answer(), "a", TWO)
    assert not unanswered.receive(answer(), "b", TWO)
    assert unanswered.pop_refused(2 * PATIENCE_NS, TWO, gives_up=True) == []
    assert [each.attempt for each in unanswered.pop_due(WRITES_AGAIN_NS, TWO)] == [2]
    assert [unanswered.receive(answer(attempt=2), replica, TWO) for replica in "ab"] == [False, False]
    assert unanswered.pop_refused(2 * PATIENCE_NS, TWO, gives_up=True) == []
    assert [each.attempt for each in unanswered.pop_due(2 * WRITES_AGAIN_NS, THREE)] == [3]
    assert [unanswered.receive(answer(attempt=3), replica, THREE) for replica in "abc"] == [False, False, True]


def test_replica_that_refused_before_it_was_gone_is_not_waited_for() -> None:
    unanswered = written()
    assert not unanswered.receive(answer(lacks_master=True), "c", THREE)
    assert [each.attempt for each in unanswered.pop_due(WRITES_AGAIN_NS, TWO)] == [2]
    assert [unanswered.receive(answer(attempt=2), replica, TWO) for replica in "ab"] == [False, True]


def test_replica_that_was_gone_before_the_sample_was_written_is_not_waited_for() -> None:
    unanswered = Unanswered()
    unanswered.sent(0, [WRITE], TWO)
    assert [unanswered.receive(answer(), replica, TWO) for replica in "ab"] == [False, True]


def test_replica_that_appears_refuses_too() -> None:
    """It can have the sample from another one."""
    unanswered = Unanswered()
    unanswered.sent(0, [WRITE], TWO)
    assert [unanswered.receive(answer(), replica, THREE) for replica in "abc"] == [False, False, True]


def test_a_refusal_of_an_earlier_attempt_does_not_count_for_a_later_one() -> None:
    unanswered = written()
    assert not unanswered.receive(answer(), "a", THREE)
    assert [each.attempt for each in unanswered.pop_due(WRITES_AGAIN_NS, THREE)] == [2]
    for replica in "abc":
        assert not unanswered.receive(answer(attempt=1), replica, THREE)
    assert [unanswered.receive(answer(attempt=2), replica, THREE) for replica in "abc"] == [False, False, True]


def test_what_is_refused_for_lack_of_a_master_is_written_again_until_patience_ends() -> None:
    unanswered = written()
    now, attempt = 0, 1
    while True:
        for replica in "abc":
            assert not unanswered.receive(answer(attempt=attempt, lacks_master=True), replica, THREE)
        if refused := unanswered.pop_refused(now, THREE):
            break
        assert unanswered.pop_due(now + WRITES_AGAIN_NS - 1, THREE) == []
        now += 2 * WRITES_AGAIN_NS
        attempt += 1
        assert [each.attempt for each in unanswered.pop_due(now, THREE)] == [attempt]
    assert PATIENCE_NS <= now < PATIENCE_NS + 3 * WRITES_AGAIN_NS
    assert [(each.queue, each.identity, each.response) for each in refused] == [(QUEUE, IDENTITY, AckResponse.REJECTED)]
    assert not len(unanswered)


def test_a_producer_is_notified_only_of_samples_that_all_replicas_refuse() -> None:
    unanswered = written()
    assert unanswered.pop_refused(0, THREE, gives_up=True) == []
    for replica in "abc":
        unanswered.receive(answer(lacks_master=True), replica, THREE)
    assert len(unanswered.pop_refused(0, THREE, gives_up=True)) == 1


def test_sample_that_replicas_pass_on_is_not_refused_for_lack_of_a_master() -> None:
    """One that the producer does not reach may have it from the others, and be the next master."""
    unanswered = Unanswered()
    passed_on = structs.replace(WRITE, flags=SampleFlag.REPLICATE)
    for attempt in (1, 2):
        unanswered.sent(0, [passed_on], TWO)
        for replica in "ab":
            assert not unanswered.receive(answer(attempt=attempt, lacks_master=True), replica, TWO)
        assert unanswered.pop_refused(2 * PATIENCE_NS, TWO, gives_up=True) == []


def test_a_sample_that_its_producer_writes_again_is_another_attempt() -> None:
    unanswered = written()
    assert [each.attempt for each in unanswered.sent(1, [WRITE], THREE)] == [2]


def test_a_queue_that_was_deleted_is_not_waited_for() -> None:
    unanswered = written()
    unanswered.forget(QUEUE)
    assert not len(unanswered)


def test_samples_for_queues_that_are_not_replicated_have_no_attempts() -> None:
    unanswered = Unanswered()
    assert unanswered.sent(0, [WRITE], {}) == [WRITE]
    assert not len(unanswered)
