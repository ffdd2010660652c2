"""A channel to one peer: what it takes while the peer has no room, and that it goes without anybody waiting for it."""

from __future__ import annotations

import threading
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest

from qsctl.core.messages import Delivery
from qsctl.identity import Guid, SampleIdentity
from qsctl.transport.dds import participant as participant_module
from qsctl.transport.dds.channels import PACKED_AT_ONCE_BYTES, SENT_AT_ONCE_BYTES, AnswerChannel, SampleChannel
from qsctl.transport.dds.participant import Participant
from qsctl.transport.dds.peers.discovery import RemoteEndpoint
from qsctl.transport.dds.plain.consumers import DeliveryChannel
from qsctl.transport.dds.wire.raw import RawWriter, close_entity
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


SIZE = 512 * 1024
COUNT = 4 * SENT_AT_ONCE_BYTES // SIZE


class Cache:
    """The cache of a writer, which has room for some octets."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.room_bytes = 0
        self.written: list[bytes] = []
        monkeypatch.setattr(RawWriter, "write", lambda _, frame: self._write(frame))
        monkeypatch.setattr(RawWriter, "has_lost", lambda *_: False)

    def _write(self, frame: bytes) -> bool:
        if self.room_bytes < len(frame):
            return False
        self.room_bytes -= len(frame)
        self.written.append(frame[-8:])
        return True


def deliveries_to(guid: Guid) -> list[Delivery]:
    """Make deliveries whose payloads end with their position."""
    return [
        Delivery("P/S/Q", guid, at, SampleIdentity(guid, at + 1), bytes(SIZE - 8) + at.to_bytes(8, "big"))
        for at in range(COUNT)
    ]


@pytest.fixture(params=["of the wrappers", "without qsctl"])
def consumer_channel(participant: Participant, request: pytest.FixtureRequest) -> SampleChannel | DeliveryChannel:
    endpoint = RemoteEndpoint(1, False, "T@S", guid=GUID, key=GUID, partitions=("p",))
    if request.param == "without qsctl":
        return DeliveryChannel(participant, "T@S", endpoint, ())
    return SampleChannel(participant, participant.topic("T@S", WireFrame), endpoint, traits={})


def test_samples_that_a_consumer_has_no_room_for_are_in_memory_once(
    consumer_channel: SampleChannel | DeliveryChannel, monkeypatch: pytest.MonkeyPatch
) -> None:
    Cache(monkeypatch)
    deliveries = deliveries_to(GUID)
    tracemalloc.start()
    try:
        consumer_channel.put(deliveries)
        assert not consumer_channel.flush()
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 4 * PACKED_AT_ONCE_BYTES


def test_samples_of_a_backlog_leave_in_order_a_share_a_flush(
    consumer_channel: SampleChannel | DeliveryChannel, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = Cache(monkeypatch)
    consumer_channel.put(deliveries_to(GUID))
    assert not consumer_channel.flush()
    flush_count = 0
    cache.room_bytes = 2 * COUNT * SIZE
    while not consumer_channel.flush():
        flush_count += 1
        assert len(cache.written) * SIZE <= flush_count * SENT_AT_ONCE_BYTES + 2 * PACKED_AT_ONCE_BYTES
    assert flush_count >= COUNT * SIZE // SENT_AT_ONCE_BYTES - 1
    assert [int.from_bytes(each, "big") for each in cache.written] == [*range(COUNT)]


def test_samples_that_were_not_written_are_taken_back_in_order(
    consumer_channel: SampleChannel | DeliveryChannel, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = Cache(monkeypatch)
    cache.room_bytes = 7 * SIZE // 2
    consumer_channel.put(deliveries_to(GUID))
    assert not consumer_channel.flush()
    assert consumer_channel.take_back() == tuple(range(3, COUNT))
    assert consumer_channel.flush()
