"""Runs of samples in stores: a restart finds each sample as it was, whatever was compacted meanwhile."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from qsctl.core.messages import (
    Acknowledgment,
    AckResponse,
    ConsumerJoined,
    ConsumerLeft,
    Delivery,
    Inbound,
    Outbound,
    RunAccepted,
    RunAcknowledgment,
    RunDelivery,
    WriteRun,
    one_by_one,
)
from qsctl.core.queue._run import Run
from qsctl.core.queue.settings import PersistenceKind, PersistenceSettings, ResourceLimitSettings
from qsctl.identity import Guid, SampleIdentity
from qsctl.instant import SECOND_NS
from qsctl.service.directory.embedded import open_embedded
from qsctl.service.run.loop import ServiceLoop
from qsctl.storage.streams import _compaction
from qsctl.transport.dds.wire import frames
from tests.campaigns import trials
from tests.service.embedded_commands import FULL_NAME, create, queue, write
from tests.service.pipelines import WRITER, messages_of, pipelined, service
from tests.service.pipelines import queue as orders

SEEDS = trials("QSCTL_TEST_STORED_RUNS", 12, 500)
QUEUE = "P/S/orders"
KINDS = (
    PersistenceSettings(PersistenceKind.PERSISTENT),
    PersistenceSettings(PersistenceKind.PERSISTENT, in_memory_state=False),
)
CONSUMERS = [Guid(b"c" * 16), Guid(b"d" * 16)]
STEPS = 40


class Trial:
    """A service with one queue, a producer of frames, and consumers that accept or reject parts of them."""

    def __init__(self, directory: Path, seed: int) -> None:
        self.chance = Random(seed)
        limits = ResourceLimitSettings(max_count=self.chance.choice((-1, -1, 100)))
        self.settings = replace(orders(persistence=self.chance.choice(KINDS)), limits=limits)
        self.directory = directory
        loop = service(directory, self.settings)
        loop.engine.hosted.reports_each_step = False
        self.loop = pipelined(loop)
        self.queue = loop.engine.hosted.by_name[QUEUE]
        self.next_number = 1
        self.unanswered: list[Delivery] = []
        self.runs_count = 0
        consumers = CONSUMERS[: self.chance.randint(1, 2)]
        self.inbox: list[Inbound] = [
            ConsumerJoined(QUEUE, each, unacked_threshold=self.chance.choice((5, 40, 100))) for each in consumers
        ]

    def step(self) -> None:
        """Let a frame or answers arrive, or a compaction go on."""
        chance, loop = self.chance, self.loop
        if chance.random() < 0.6:
            size = chance.choice((3, 3, 900, 3000))
            payloads = tuple(bytes([self.next_number % 251]) * size for _ in range(chance.choice((4, 9, 64))))
            self.inbox.append(WriteRun("P", "Orders", SampleIdentity(WRITER, self.next_number), payloads))
            self.next_number += len(payloads) - chance.choice((0, 0, 0, 2))
        if chance.random() < 0.5:
            self.answer()
        loop.begin(self.inbox)
        self.inbox = []
        messages = messages_of(loop.drain() if chance.random() < 0.5 else loop.pop_finished())
        self.runs_count += sum(isinstance(each, RunDelivery | RunAccepted) for each in messages)
        self.unanswered += [each for each in one_by_one(messages) if isinstance(each, Delivery)]
        if chance.random() < 0.1:
            loop.compact_every_store()
        if not loop.is_compacting and chance.random() < 0.1:
            self.checkpoint()
        if loop.is_compacting and chance.random() < 0.5:
            loop.compact_on()

    def checkpoint(self) -> None:
        """Begin another file of the log, and move what the earlier ones have to the queue's own files."""
        self.unanswered += [each for each in one_by_one(messages_of(self.loop.drain())) if isinstance(each, Delivery)]
        for log in self.loop.stores.files.logs.values():
            log.seal()
        for _ in self.loop.stores.keep_logs_short(1):
            pass

    def answer(self) -> None:
        """Answer some of what was received, from anywhere."""
        chance = self.chance
        going = [each for each in self.unanswered if chance.random() < 0.9] if chance.random() < 0.5 else []
        going = going or self.unanswered[: chance.randint(0, 70)]
        self.unanswered = [each for each in self.unanswered if each not in going]
        response = chance.choice((AckResponse.ACCEPTED, AckResponse.ACCEPTED, AckResponse.REJECTED))
        for consumer in CONSUMERS:
            answers = [frames.pack_answer(each.identity, response) for each in going if each.consumer_guid == consumer]
            if answers:
                frame = frames.answers_of(consumer, "Orders@S", answers)
                self.inbox += frames.parse_consumer_answers(frame, QUEUE).answers

    def held(self) -> list[tuple[int, SampleIdentity, bytes, int, int, bool]]:
        """Return the held samples, as they are after a restart."""
        return held_by(self.loop)

    def restarted(self) -> ServiceLoop:
        """Start a service on the files."""
        return service(self.directory, self.settings)


def held_by(loop: ServiceLoop) -> list[tuple[int, SampleIdentity, bytes, int, int, bool]]:
    """Return the samples that a service holds, with payloads, and whether a consumer may have processed them."""
    held = list(loop.engine.hosted.by_name[QUEUE].held)
    on_disk = [each.position for each in held if each.payload is None]
    stored = dict(zip(on_disk, loop.stores.payloads(QUEUE, on_disk) if on_disk else (), strict=True))
    return [
        (
            each.position,
            each.identity,
            stored[each.position] if each.payload is None else each.payload,
            each.size_bytes,
            each.attempts,
            each.redelivered or each.holder in CONSUMERS,
        )
        for each in held
    ]


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_restart_finds_every_sample_of_a_run_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(_compaction, "POSITIONS_AT_ONCE", 7)  # so that records are appended meanwhile
    trial = Trial(tmp_path, seed)
    for _ in range(STEPS):
        trial.step()
    trial.loop.drain()
    trial.loop.sync_deferred()
    assert trial.runs_count
    held, retired = trial.held(), trial.queue.held.retired()
    next_position = trial.queue.held.next_position
    trial.loop.close()
    if trial.chance.random() < 0.5:
        trial.loop.stores.close()
    else:
        trial.loop.stores.abandon()
    again = trial.restarted()
    found = again.engine.hosted.by_name[QUEUE]
    assert held_by(again) == held
    assert all(len(payload) == size for _, _, payload, size, _, _ in held)
    assert found.held.next_position == next_position
    assert {*retired[-100:]} <= {*found.held.retired()}
    assert not again.stores.damage
    again.stores.close()


@pytest.mark.parametrize("persistence", KINDS, ids=["memory", "disk"])
def test_a_restart_restores_runs_and_sends_and_removes_them_as_runs(
    tmp_path: Path, persistence: PersistenceSettings
) -> None:
    loop = service(tmp_path, orders(persistence=persistence))
    loop.engine.hosted.reports_each_step = False
    payloads = tuple(b"%d" % number for number in range(1, 41))
    loop.turn([WriteRun("P", "Orders", SampleIdentity(WRITER, 1), payloads)])
    done = loop.turn([ConsumerJoined(QUEUE, CONSUMERS[0], unacked_threshold=9)])
    assert numbers_and_payloads(done.messages) == {number: payloads[number - 1] for number in range(1, 11)}
    loop.turn([RunAcknowledgment(QUEUE, CONSUMERS[0], SampleIdentity(WRITER, 1), 5)])
    loop.turn([ConsumerLeft(QUEUE, CONSUMERS[0], hands_back=True)])
    loop.close()
    loop.stores.abandon()
    again = service(tmp_path, orders(persistence=persistence))
    again.engine.hosted.reports_each_step = False
    entries = again.engine.hosted.by_name[QUEUE].held.entries_behind(0)
    assert [entry.position for entry in entries if isinstance(entry, Run)] == [1]
    done = again.turn([ConsumerJoined(QUEUE, CONSUMERS[1])])
    assert [type(each) for each in done.messages] == [Delivery] * 10 + [RunDelivery]
    assert numbers_and_payloads(done.messages) == {number: payloads[number - 1] for number in range(6, 41)}
    assert not again.turn([RunAcknowledgment(QUEUE, CONSUMERS[1], SampleIdentity(WRITER, 6), 35)]).messages
    assert not len(again.engine.hosted.by_name[QUEUE].held)
    again.stores.close()


def numbers_and_payloads(messages: Iterable[Outbound]) -> dict[int, bytes | None]:
    """Return the payload of each delivery by its number."""
    return {each.identity.sequence_number: each.payload for each in one_by_one(messages) if isinstance(each, Delivery)}


def test_payloads_of_a_run_that_is_sent_before_it_is_stored_are_in_its_records(tmp_path: Path) -> None:
    loop = pipelined(service(tmp_path, orders(persistence=KINDS[1])))
    loop.engine.hosted.reports_each_step = False
    payloads = tuple(b"%d" % number for number in range(1, 21))
    loop.begin([WriteRun("P", "Orders", SampleIdentity(WRITER, 1), payloads)])
    loop.begin([ConsumerJoined(QUEUE, CONSUMERS[0])])
    messages = messages_of(loop.drain())
    assert numbers_and_payloads(messages) == dict(enumerate(payloads, 1))
    assert [type(each) for each in messages] == [RunAccepted, RunDelivery]
    loop.close()
    loop.stores.close()


def test_a_late_acknowledgment_of_a_restored_sample_of_a_run_retires_it(tmp_path: Path) -> None:
    loop = service(tmp_path, orders())
    loop.engine.hosted.reports_each_step = False
    run = WriteRun("P", "Orders", SampleIdentity(WRITER, 1), (b"x",) * 8)
    done = loop.turn([ConsumerJoined(QUEUE, CONSUMERS[0]), run])
    assert [type(each) for each in done.messages] == [RunAccepted, RunDelivery]
    loop.close()
    loop.stores.abandon()
    again = service(tmp_path, orders())
    done = again.turn([Acknowledgment(QUEUE, CONSUMERS[0], SampleIdentity(WRITER, 3))])
    held = again.engine.hosted.by_name[QUEUE].held
    assert [each.identity.sequence_number for each in held] == [1, 2, 4, 5, 6, 7, 8]
    again.stores.close()


@pytest.mark.parametrize("persistence", KINDS, ids=["segments", "database"])
def test_samples_of_a_run_that_expire_while_nothing_runs_are_dead_letters_with_their_payloads(
    tmp_path: Path, persistence: PersistenceSettings
) -> None:
    clock = [1_700_000_000_000_000_000]
    payloads = [b"%d" % number * 200 for number in range(10, 30)]
    with open_embedded(tmp_path / "s", now=lambda: clock[0]) as embedded:
        create(embedded, replace(queue("Dead", persistence), is_dead_letter=True))
        create(embedded, replace(queue("P", persistence), dead_letter_queue="Dead", lifespan_ns=SECOND_NS))
        write(embedded, *payloads, topic="P")
    clock[0] += 2 * SECOND_NS
    with open_embedded(tmp_path / "s", now=lambda: clock[0]) as embedded:
        received = embedded.receive(FULL_NAME + "Dead", 20, 0.0)
        assert [each.payload for each in received] == payloads
