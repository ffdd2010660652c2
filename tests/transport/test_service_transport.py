"""The service's transport on DDS: what a producer in another participant writes and is answered, whole and in order."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

import pytest

from qsctl.core.client.producer import QueueAnswers
from qsctl.core.messages import (
    RUN_SAMPLES_MIN,
    AckResponse,
    Message,
    RunAccepted,
    Write,
    WriteAcknowledgment,
    WriteRun,
)
from qsctl.core.queue.settings import SharedReaderQueueSettings
from qsctl.core.settings import SharedSubscriberSettings
from qsctl.identity import Guid, SampleIdentity
from qsctl.resource import ResourceIdentifier
from qsctl.transport.dds.clients.client_domain import ClientDomain
from qsctl.transport.dds.clients.client_ports import ProducerPort
from qsctl.transport.dds.participant import Participant
from qsctl.transport.dds.serving.service_transport import DomainPlace, ServicePlaces, ServiceTransport
from tests.dds.domains import claim_domain, release_domain
from tests.patience import PATIENCE_S

GUID = Guid(b"p" * 16)
QUEUE = "P/S/Q"
COUNT = 700


def a_write(number: int) -> Write:
    return Write("P", "T", SampleIdentity(GUID, number), b"%d" % number, source_guid=GUID)


def an_answer(number: int) -> WriteAcknowledgment:
    return WriteAcknowledgment(QUEUE, SampleIdentity(GUID, number), AckResponse(number % 2))


class NoSnippets:
    """Administration is off here."""

    def queue(self, xml: str, subscriber: ResourceIdentifier) -> SharedReaderQueueSettings:
        raise AssertionError(xml)

    def subscriber(self, xml: str, participant: ResourceIdentifier) -> SharedSubscriberSettings:
        raise AssertionError(xml)


class Pair:
    """A transport that hosts queue `P/S/Q` of topic `T`, and a producer of the topic."""

    def __init__(self, domain: int) -> None:
        self.transport = ServiceTransport("Test", ServicePlaces({"P": DomainPlace(domain)}), NoSnippets())
        self.transport.reconcile({QUEUE: ("S", SharedReaderQueueSettings(name="Q", topic_name="T", session="s"))})
        self.domain = ClientDomain(Participant(domain))
        self.port = ProducerPort(self.domain.participant, "T", GUID)
        self.domain.add(self.port)
        self.answers: list[WriteAcknowledgment] = []
        self.batches: list[Sequence[Message]] = []
        self.runs_count = 0
        self.until(self.port.matched_queues)

    def until(self, is_so: Callable[[], object]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not is_so():
            assert time.monotonic() < deadline
            self.domain.turn(1_000_000)
            for change in self.port.poll():
                if isinstance(change, QueueAnswers):
                    assert change.queue == "T@S"
                    response = AckResponse(change.accepted)
                    self.answers += [
                        WriteAcknowledgment(QUEUE, SampleIdentity(GUID, number), response) for number in change.numbers
                    ]
            self.transport.flush()
            written = [each for each in self.transport.poll() if isinstance(each, Write | WriteRun)]
            self.runs_count += sum(isinstance(each, WriteRun) for each in written)
            batch = [write for each in written for write in each.singles()]
            if batch:
                self.batches.append(batch)

    def close(self) -> None:
        self.domain.close()
        self.transport.close()


@pytest.fixture
def pair() -> Iterator[Pair]:
    domain = claim_domain()
    opened = Pair(domain)
    yield opened
    opened.close()
    release_domain(domain)


def test_what_a_producer_writes_is_received_whole_and_in_order(pair: Pair) -> None:
    written = [a_write(number) for number in range(1, COUNT + 1)]
    pair.port.send(written)
    pair.until(lambda: sum(map(len, pair.batches)) >= COUNT)
    assert [each for batch in pair.batches for each in batch] == written
    assert len(pair.batches) < COUNT, "what is there comes together"
    assert 0 < pair.runs_count <= COUNT / RUN_SAMPLES_MIN


def test_what_is_sent_reaches_the_producer_whole_and_in_order(pair: Pair) -> None:
    answers = [an_answer(number) for number in range(1, COUNT + 1)]
    pair.transport.put(answers)
    pair.until(lambda: len(pair.answers) >= COUNT)
    assert pair.answers == answers


def test_answers_to_a_run_reach_the_producer_one_by_one_and_in_order(pair: Pair) -> None:
    identities = [a_write(number).identity for number in range(1, COUNT + 1)]
    answers = [WriteAcknowledgment(QUEUE, each, AckResponse.ACCEPTED) for each in identities]
    pair.transport.put([answers[0], RunAccepted(QUEUE, answers[1].identity, COUNT - 2), answers[-1]])
    pair.until(lambda: len(pair.answers) >= COUNT)
    assert pair.answers == answers


def test_after_closing_nothing_is_received(pair: Pair) -> None:
    pair.port.send([a_write(1)])
    pair.domain.turn(0)
    pair.transport.close()
    assert list(pair.transport.poll()) == []
