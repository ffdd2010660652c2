"""The producer's window: when a sample is acknowledged and when it is sent again [QS 2.4]."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from qsctl.core.client.producer import Producer, WriteOutcome
from qsctl.core.messages import AckResponse, WriteAcknowledgment
from qsctl.errors import UsageError
from qsctl.identity import Guid, SampleIdentity
from tests.example_counts import examples

GUID = Guid(b"p" * 16)


def accepted(queue: str, identity: SampleIdentity) -> WriteAcknowledgment:
    return WriteAcknowledgment(queue, identity, AckResponse.ACCEPTED)


def rejected(queue: str, identity: SampleIdentity) -> WriteAcknowledgment:
    return WriteAcknowledgment(queue, identity, AckResponse.REJECTED)


def test_a_sample_written_before_a_queue_is_there_goes_out_when_it_appears() -> None:
    producer = Producer("T", GUID)
    identity = producer.write(b"x")
    assert producer.pop_writes() == []
    producer.queue_appeared("T@S", True)
    assert [write.identity for write in producer.pop_writes()] == [identity]
    producer.receive(accepted("T@S", identity))
    assert producer.pop_outcomes() == [WriteOutcome(identity, True)]


def test_every_acknowledging_queue_has_to_answer_and_one_refusal_is_enough() -> None:
    producer = Producer("T", GUID)
    producer.queue_appeared("T@A", True)
    producer.queue_appeared("T@B", True)
    producer.queue_appeared("T@Silent", False)
    identity = producer.write(b"x")
    producer.receive(rejected("T@A", identity))
    assert producer.pop_outcomes() == []
    producer.receive(accepted("T@B", identity))
    assert producer.pop_outcomes() == [WriteOutcome(identity, False)]
    producer.receive(accepted("T@B", identity))
    assert producer.pop_outcomes() == []


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
    assert producer.pop_outcomes() == [WriteOutcome(identity, True)]


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


def test_answers_for_another_producer_change_nothing() -> None:
    producer = Producer("T", GUID)
    producer.queue_appeared("T@S", True)
    identity = producer.write(b"x")
    producer.receive(accepted("T@S", SampleIdentity(Guid(b"o" * 16), 1)))
    producer.receive(accepted("T@Other", identity))
    assert producer.unacknowledged_count == 1


def test_replies_to_a_producer_without_a_source_find_the_writer() -> None:
    producer = Producer("T", GUID)
    producer.queue_appeared("T@S", False)
    producer.write(b"x")
    assert producer.pop_writes()[0].source_guid == GUID


class Window(RuleBasedStateMachine):
    """Against a model: which samples are out, and what each queue was sent and has answered."""

    def __init__(self) -> None:
        super().__init__()
        self.producer = Producer("T", GUID, window_count=5)
        self.written: list[SampleIdentity] = []
        self.acknowledged: list[SampleIdentity] = []
        self.sent: set[SampleIdentity] = set()
        self.there: set[str] = set()

    @rule(queue=st.sampled_from(["T@A", "T@B"]))
    def appear(self, queue: str) -> None:
        self.producer.queue_appeared(queue, True)
        self.there.add(queue)

    @rule(queue=st.sampled_from(["T@A", "T@B"]))
    def vanish(self, queue: str) -> None:
        self.producer.queue_vanished(queue)
        self.there.discard(queue)

    @precondition(lambda self: self.producer.has_room)
    @rule()
    def write(self) -> None:
        self.written.append(self.producer.write(b"x"))

    @rule()
    def send(self) -> None:
        sent = [write.identity for write in self.producer.pop_writes()]
        assert sent == sorted(sent), "in order"
        assert not set(sent) & set(self.acknowledged), "nothing acknowledged is sent again"
        self.sent.update(sent)

    @rule(queue=st.sampled_from(["T@A", "T@B"]), response=st.sampled_from(AckResponse), data=st.data())
    def answer(self, queue: str, response: AckResponse, data: st.DataObject) -> None:
        if self.sent and queue in self.there:
            identity = data.draw(st.sampled_from(sorted(self.sent)))
            self.producer.receive(WriteAcknowledgment(queue, identity, response))

    @invariant()
    def every_sample_is_open_or_settled_once(self) -> None:
        self.acknowledged += [each.identity for each in self.producer.pop_outcomes()]
        assert len(self.acknowledged) == len(set(self.acknowledged))
        assert len(self.acknowledged) + self.producer.unacknowledged_count == len(self.written)

    def teardown(self) -> None:
        """Once every queue is there and answers, nothing is left open."""
        for queue in ("T@A", "T@B"):
            self.producer.queue_appeared(queue, True)
        for write in self.producer.pop_writes():
            for queue in ("T@A", "T@B"):
                self.producer.receive(accepted(queue, write.identity))
        self.every_sample_is_open_or_settled_once()
        assert self.producer.unacknowledged_count == 0


TestWindow = Window.TestCase
TestWindow.settings = settings(max_examples=examples(30), stateful_step_count=30, deadline=None)
