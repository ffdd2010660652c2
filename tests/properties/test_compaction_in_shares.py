"""A store compacted a share at a time while its queue works restores exactly the state that the queue has."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qsctl.config.filesystem import FilesystemSettings, Synchronization
from qsctl.core.admin.command import FlushQueue
from qsctl.core.engine import Journal, ServiceEngine
from qsctl.core.messages import (
    Acknowledgment,
    AckResponse,
    CommandRequest,
    ConsumerJoined,
    ConsumerLeft,
    Delivery,
    Inbound,
    Write,
)
from qsctl.core.queue import _held as held
from qsctl.core.queue.settings import (
    DistributionSettings,
    PersistenceKind,
    PersistenceSettings,
    RedeliverySettings,
    SharedReaderQueueSettings,
)
from qsctl.core.settings import DomainParticipantSettings, ServiceSettings, SharedSubscriberSettings
from qsctl.identity import Guid, SampleIdentity, counted_incarnations
from qsctl.resource import parse_resource
from qsctl.storage.streams import _compaction as compaction
from tests.batches import records_of
from tests.storage.own_files import OwnFiles

QUEUE = "P/S/orders"
ORDERS = parse_resource("/domain_participant/P/shared_subscriber/S/shared_reader_queue/orders")
WRITER = Guid(b"w" * 16)
CONSUMERS = [Guid(bytes([65 + n]) * 16) for n in range(3)]
SETTINGS = SharedReaderQueueSettings(
    "orders",
    "Order",
    persistence=PersistenceSettings(PersistenceKind.PERSISTENT),
    distribution=DistributionSettings(unacked_threshold=3),
    redelivery=RedeliverySettings(3, 5),
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(1, 20)),
        st.tuples(st.sampled_from(["join", "leave", "hand back"]), st.integers(0, 2)),
        st.tuples(st.sampled_from(["accept", "accept", "reject"]), st.integers(0, 30)),
        st.tuples(st.just("wait"), st.integers(1, 6)),
        st.tuples(st.just("flush"), st.just(0)),
        st.tuples(st.just("compact"), st.integers(1, 2)),
        st.tuples(st.just("compact"), st.integers(1, 2)),
    ),
    min_size=10,
    max_size=60,
)


def service() -> ServiceEngine:
    subscriber = SharedSubscriberSettings("S", (), (SETTINGS,))
    settings = ServiceSettings("svc", (DomainParticipantSettings("P", 0, (subscriber,)),))
    return ServiceEngine(settings, started_at=0, draw=counted_incarnations(), journal=Journal.PERSISTENT_ONLY)


def remembered(engine: ServiceEngine) -> Any:
    """All that a restart needs to know."""
    queue = engine.hosted.by_name[QUEUE]
    return (
        queue.held.next_position,
        queue.held.retired(),
        [
            (s.position, s.identity, s.payload, s.expires_at_ns, s.state, s.attempts, s.redelivered, s.holder)
            for s in queue.held
        ],
    )


class Story:
    """An engine and its store, as a driver turns them."""

    def __init__(self, store: OwnFiles) -> None:
        self.store = store
        self.engine = service()
        self.engine.finish_restore(0)
        self.engine.take_ready()
        self.now = 0
        self.written = 0
        self.sent: list[tuple[SampleIdentity, Guid]] = []
        self.shares: Iterator[None] | None = None

    def do(self, what: str, number: int) -> None:
        if what == "compact":
            for _ in range(number):
                self.compact_on()
            return
        self.now += number if what == "wait" else 0
        self.engine.receive_all(self.now, self.messages(what, number))
        self.engine.advance(self.now)
        ready = self.engine.take_ready()
        self.sent += [(m.identity, m.consumer_guid) for m in ready.messages if isinstance(m, Delivery)]
        self.store.append([each for each in records_of(ready) if getattr(each, "queue", "") == QUEUE])

    def messages(self, what: str, number: int) -> list[Inbound]:
        if what == "write":
            first, self.written = self.written + 1, self.written + number
            numbers = range(first, self.written + 1)
            return [Write("P", "Order", SampleIdentity(WRITER, each), b"%d" % each) for each in numbers]
        if what == "join":
            return [ConsumerJoined(QUEUE, CONSUMERS[number])]
        if what in ("leave", "hand back"):
            return [ConsumerLeft(QUEUE, CONSUMERS[number], what == "hand back")]
        if what == "flush":
            return [CommandRequest(SampleIdentity(WRITER, 1), "svc", FlushQueue(ORDERS))]
        if what == "wait" or not self.sent:
            return []
        identity, guid = self.sent[number % len(self.sent)]
        return [Acknowledgment(QUEUE, guid, identity, AckResponse(int(what == "accept")))]

    def compact_on(self) -> None:
        if self.shares is None:
            self.shares = self.store.compact_in_shares(self.engine.capture_queue(QUEUE))
        if next(self.shares, self) is self:
            self.shares = None


@pytest.mark.parametrize("retired_max", [2, 8192])
@given(steps=STEPS, synchronization=st.sampled_from([Synchronization.FULL, Synchronization.NORMAL]))
def test_what_is_restored_is_the_state_of_the_queue(
    tmp_path_factory: pytest.TempPathFactory, retired_max: int, steps: list[tuple[str, int]], synchronization: Any
) -> None:
    directory: Path = tmp_path_factory.mktemp("store")
    filesystem = FilesystemSettings(file_max_size_kb=1, synchronization=synchronization)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(compaction, "POSITIONS_AT_ONCE", 1)
        patched.setattr(held, "RETIRED_IDENTITIES_MAX", retired_max)
        story = Story(OwnFiles(directory / "q", filesystem))
        for what, number in steps:
            story.do(what, number)
        story.store.close()
        reopened = OwnFiles(directory / "q", filesystem)
        restored = service()
        for record in reopened.load():
            restored.replay(record)
        assert remembered(restored) == remembered(story.engine)
        assert not reopened.damage
        assert not restored.ignored_record_count, "nothing is told of samples that nobody knows"
        reopened.close()


def test_a_compaction_ends_although_more_comes_than_it_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "POSITIONS_AT_ONCE", 4)
    story = Story(OwnFiles(tmp_path / "q", FilesystemSettings()))
    story.do("write", 100)
    shares = 0
    story.compact_on()
    while story.shares is not None:
        story.do("write", 9)
        story.compact_on()
        shares += 1
    assert shares < 200
    held_count = len(story.engine.hosted.by_name[QUEUE].held)
    assert len([1 for _ in story.store.load()]) >= held_count
    story.store.close()
