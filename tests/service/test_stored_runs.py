"""Runs of samples in stores: a restart finds each sample as it was, whatever was compacted meanwhile."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from qsctl.core.messages import (
    Acknowledgment,
    AckResponse,
    ConsumerJoined,
    Delivery,
    Inbound,
    RunAccepted,
    RunDelivery,
    WriteRun,
    one_by_one,
)
from qsctl.identity import Guid, SampleIdentity
from qsctl.storage.streams import _compaction
from qsctl.transport.dds.wire import frames
from tests.campaigns import trials
from tests.service.pipelines import WRITER, messages_of, pipelined, service
from tests.service.pipelines import queue as orders

SEEDS = trials("QSCTL_TEST_STORED_RUNS", 12, 500)
QUEUE = "P/S/orders"
CONSUMERS = [Guid(b"c" * 16), Guid(b"d" * 16)]
STEPS = 40


class Trial:
    """A service with one queue, a producer of frames, and consumers that accept or reject parts of them."""

    def __init__(self, directory: Path, seed: int) -> None:
        self.chance = Random(seed)
        loop = service(directory, orders())
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
            self.next_number += len(payloads)
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

    def held(self) -> list[tuple[int, SampleIdentity, bytes | None, int, bool]]:
        """Return the held samples, as they are after a restart."""
        return [
            (each.position, each.identity, each.payload, each.attempts, each.redelivered or each.holder in CONSUMERS)
            for each in self.queue.held
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
    again = service(tmp_path, orders())
    found = again.engine.hosted.by_name[QUEUE]
    assert [
        (each.position, each.identity, each.payload, each.attempts, each.redelivered) for each in found.held
    ] == held
    assert found.held.next_position == next_position
    assert {*retired[-100:]} <= {*found.held.retired()}
    assert not again.stores.damage
    again.stores.close()


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
