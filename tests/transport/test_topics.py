"""Topics that cannot be made: asked for again where the library was at fault, and nothing is left where the name is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest
from cyclonedds.core import DDSException

from qsctl.client import QueueConsumer, QueueProducer, QueueReplier, QueueRequester
from qsctl.client._dds_administrator import Administrator
from qsctl.errors import Refused
from qsctl.transport.dds import participant as participants
from qsctl.transport.dds.participant import TOPIC_ATTEMPTS, Participant
from qsctl.transport.dds.wire.wire_types import WireFrame
from tests.dds.domains import claim_domain, open_domains, release_domain

MakesClient = Callable[[int], Any]

CLIENTS: dict[str, MakesClient] = {
    "producer": lambda domain: QueueProducer("Orders", domain),
    "consumer": lambda domain: QueueConsumer("Orders", "S", domain),
    "requester": lambda domain: QueueRequester("Orders", "S", domain),
    "replier": lambda domain: QueueReplier("Orders", "S", domain),
    "administrator": lambda domain: Administrator(domain, 1.0),
}

TOPICS = {"producer": 2, "consumer": 2, "requester": 4, "replier": 4, "administrator": 2}


class Refusing:
    """The library's topics, of which the first ones are refused as one with a bad name is."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, refused_count: int, code: int) -> None:
        self.asked_count = 0
        self._refused_count = refused_count
        self._code = code
        self._topic = participants.Topic
        monkeypatch.setattr(participants, "Topic", self)

    def __call__(self, *arguments: Any) -> Any:
        self.asked_count += 1
        if self.asked_count <= self._refused_count:
            raise DDSException(self._code, "while a peer was discovered")
        return self._topic(*arguments)


@pytest.fixture
def domain() -> Iterator[int]:
    claimed = claim_domain()
    yield claimed
    release_domain(claimed)


@pytest.fixture
def participant(domain: int) -> Iterator[Participant]:
    with closing(Participant(domain)) as made:
        yield made


def test_a_topic_that_the_library_could_not_make_for_a_moment_is_made(
    participant: Participant, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = Refusing(monkeypatch, TOPIC_ATTEMPTS - 1, DDSException.DDS_RETCODE_BAD_PARAMETER)
    assert participant.topic("Orders", WireFrame).name == "Orders"
    assert library.asked_count == TOPIC_ATTEMPTS


def test_what_another_moment_does_not_change_is_refused_at_once(
    participant: Participant, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = Refusing(monkeypatch, 9, DDSException.DDS_RETCODE_OUT_OF_RESOURCES)
    with pytest.raises(Refused, match="'Orders' cannot be a DDS topic"):
        participant.topic("Orders", WireFrame)
    assert library.asked_count == 1


def test_a_name_that_cannot_be_a_topic_is_refused(participant: Participant) -> None:
    with pytest.raises(Refused, match="'two words' cannot be a DDS topic"):
        participant.topic("two words", WireFrame)


@pytest.mark.parametrize(("kind", "made_count"), [(kind, made) for kind in CLIENTS for made in range(TOPICS[kind])])
def test_a_client_that_cannot_be_made_leaves_the_domain(
    kind: str, made_count: int, domain: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    library_makes = participants.Topic
    made = 0

    def make(*arguments: Any) -> Any:
        nonlocal made
        if made == made_count:
            raise DDSException(DDSException.DDS_RETCODE_OUT_OF_RESOURCES, "no room")
        made += 1
        return library_makes(*arguments)

    monkeypatch.setattr(participants, "Topic", make)
    with pytest.raises(Refused, match="cannot be a DDS topic") as kept:  # and with it, whatever was made
        CLIENTS[kind](domain)
    assert domain not in open_domains(), kept
