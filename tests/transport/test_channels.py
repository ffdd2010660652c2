"""A channel to one peer: it goes without anybody waiting for it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from qsctl.identity import Guid
from qsctl.transport.dds import participant as participant_module
from qsctl.transport.dds.channels import AnswerChannel, SampleChannel
from qsctl.transport.dds.participant import Participant
from qsctl.transport.dds.peers.discovery import RemoteEndpoint
from qsctl.transport.dds.wire.raw import close_entity
from qsctl.transport.dds.wire.wire_types import WireAcknowledgmentFrame, WireFrame
from tests.dds.domains import claim_domain, release_domain

GUID = Guid(bytes(range(16)))


@pytest.fixture
def participant() -> Iterator[Participant]:
    domain = claim_domain()
    opened = Participant(domain)
    yield opened
    opened.close()
    release_domain(domain)


def open_channel(
    participant: Participant, kind: type[SampleChannel] | type[AnswerChannel]
) -> SampleChannel | AnswerChannel:
    if kind is SampleChannel:
        return SampleChannel(
            participant, participant.topic("T@S", WireFrame), RemoteEndpoint(1, False, "T@S", guid=GUID), traits={}
        )
    return AnswerChannel(participant, participant.topic("T.answers", WireAcknowledgmentFrame), GUID, 1)


@pytest.mark.parametrize("kind", [SampleChannel, AnswerChannel])
def test_a_lane_is_deleted_while_others_are_served(
    participant: Participant, kind: type[SampleChannel] | type[AnswerChannel], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer's deletion takes up to a second, as long as its reader needs: here, until it is let through."""
    let_through = threading.Event()
    deleted: list[tuple[str, bool]] = []

    def close_slowly(entity: Any) -> None:
        assert let_through.wait(10)
        deleted.append((type(entity).__name__, threading.current_thread() is threading.main_thread()))
        close_entity(entity)

    channel = open_channel(participant, kind)
    monkeypatch.setattr(participant_module, "close_entity", close_slowly)
    channel.close()
    assert deleted == []
    let_through.set()
    participant.close()
    names = [name for name, _ in deleted]
    assert [(name, here) for name, here in deleted if not here] == [("DataWriter", False), ("Publisher", False)]
    assert names.index("Publisher") < names.index("DomainParticipant")
