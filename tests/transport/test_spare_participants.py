"""Participants that closed clients leave to later ones: who gets them, and what a closed client can no longer do."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from qsctl.client.consumer import QueueConsumer
from qsctl.client.producer import QueueProducer
from qsctl.client.session import ClientSession
from qsctl.errors import Refused
from qsctl.transport.dds.clients import spare_participants
from qsctl.transport.dds.clients.spare_participants import SPARE_MAX, SpareParticipants
from qsctl.transport.dds.participant import DomainSettings, participant_count
from tests.dds.domains import claim_domain, release_domain
from tests.patience import eventually


@pytest.fixture
def domain() -> Iterator[int]:
    claimed = claim_domain()
    yield claimed
    release_domain(claimed)


@pytest.fixture
def spares(domain: int) -> Iterator[SpareParticipants]:
    made = SpareParticipants(domain)
    yield made
    made.close()
    assert participant_count(domain) == 0


def test_a_client_takes_the_participant_that_a_closed_one_has_left(spares: SpareParticipants) -> None:
    with ClientSession(spares.domain_id) as first, ClientSession(spares.domain_id) as second:
        taken = {first.domain.participant, second.domain.participant}
        assert len(taken) == 2, "no two clients have one at a time"
        assert spares.count == 0
    assert spares.count == 2
    with ClientSession(spares.domain_id) as third:
        assert third.domain.participant in taken
        assert (spares.count, participant_count(spares.domain_id)) == (1, 2)


def test_a_client_without_spares_deletes_its_participant(domain: int) -> None:
    with ClientSession(domain):
        assert participant_count(domain) == 1
    assert participant_count(domain) == 0


def test_a_participant_of_other_settings_is_not_taken(spares: SpareParticipants) -> None:
    ClientSession(spares.domain_id).close()
    with pytest.raises(Refused, match="with another interface, lease or transport"):
        ClientSession(spares.domain_id, DomainSettings(lease_duration_ns=1_000_000_000))
    assert spares.count == 1


def test_no_more_are_kept_than_a_few(spares: SpareParticipants) -> None:
    opened = [ClientSession(spares.domain_id) for _ in range(SPARE_MAX + 1)]
    for each in opened:
        each.close()
    assert spares.count == participant_count(spares.domain_id) == SPARE_MAX


def test_a_client_closed_after_the_spares_deletes_its_participant(domain: int) -> None:
    spares = SpareParticipants(domain)
    session = ClientSession(domain)
    spares.close()
    session.close()
    session.close()
    assert participant_count(domain) == 0


def test_closing_former_spares_leaves_later_ones_of_the_domain(domain: int) -> None:
    former, later = SpareParticipants(domain), SpareParticipants(domain)
    former.close()
    ClientSession(domain).close()
    assert later.count == 1
    later.close()
    assert participant_count(domain) == 0


def test_a_closed_client_does_nothing_to_the_next_one(spares: SpareParticipants) -> None:
    closed = QueueConsumer("T", "S", spares.domain_id)
    session = closed.session
    closed.close()
    with QueueProducer("T", spares.domain_id) as producer, QueueConsumer("T", "S", spares.domain_id) as reader:
        assert session.domain.participant is producer.session.domain.participant, "it has the closed one's"
        ours, discovery = reader.session.domain.participant, producer.session.domain.discovery
        assert ours is not session.domain.participant
        assert not closed.is_matched, "which takes nothing of what was announced"
        session.domain.turn(0)
        with pytest.raises(Refused, match="is closed"):
            closed.flush()
        closed.stop()
        closed.close()
        assert eventually(lambda: [producer.session.domain.turn(1_000_000), discovery.endpoints()][1]), "it comes here"
        with pytest.raises(Refused, match="is closed"):
            QueueProducer("T", session=session)
        with pytest.raises(Refused, match="is closed"):
            QueueConsumer("T", "S", session=session)
    assert producer.matched_queues == ()
    with pytest.raises(Refused, match="is closed"):
        producer.flush()


def test_spares_take_what_is_announced_to_them(spares: SpareParticipants) -> None:
    ClientSession(spares.domain_id).close()
    with ClientSession(spares.domain_id) as first:  # it has the spare one; a second spare sees its endpoints
        with ClientSession(spares.domain_id) as second:
            discovery = second.domain.discovery
        known = len(discovery.endpoints())
        with QueueProducer("T", session=first):
            assert eventually(lambda: [spares.look(), len(discovery.endpoints()) > known][1])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no child processes of fork here")
def test_a_child_of_fork_is_given_none(spares: SpareParticipants, monkeypatch: pytest.MonkeyPatch) -> None:
    ClientSession(spares.domain_id).close()
    monkeypatch.setattr(spare_participants.os, "getpid", lambda: -1)
    assert not spares.is_usable
    with pytest.MonkeyPatch.context() as inner:
        made: list[int] = []
        inner.setattr(spare_participants, "_participant", lambda domain_id, _settings: made.append(domain_id))
        inner.setattr(spare_participants, "ClientDomain", lambda participant: participant)
        spare_participants.client_domain(spares.domain_id)
    assert made == [spares.domain_id]
    monkeypatch.undo()
    assert spares.count == 1
