"""Worlds whose service processes samples and answers as runs."""

from __future__ import annotations

from collections import Counter
from itertools import chain
from random import Random

import pytest
from msgspec import structs

from qsctl.core.messages import Acknowledgment, AckResponse, ConsumerJoined, Inbound, RunAcknowledgment, Write, WriteRun
from qsctl.core.queue._delivery import Deliveries
from qsctl.core.queue._entry import Entry
from qsctl.core.queue._run import SINGLE, Run
from qsctl.core.queue.sample import Sample
from qsctl.identity import NIL_GUID, Guid, SampleIdentity
from qsctl.instant import Nanoseconds
from qsctl.sim.world.results.verdict import judge
from qsctl.sim.world.services._runs import in_runs
from tests.world import kinds

GUIDS = [Guid(bytes([65 + n]) * 16) for n in range(2)]


def test_a_world_with_a_slow_disk_holds_runs_and_singles_samples_out(monkeypatch: pytest.MonkeyPatch) -> None:
    counts: Counter[str] = Counter()
    enqueue_run, single_out = Entry._enqueue_run, Run.single_out
    acknowledge_run = Deliveries.acknowledge_run

    def enqueue(entry: Entry, now: Nanoseconds, writes: WriteRun) -> None:
        counts["in runs"] += writes.count
        enqueue_run(entry, now, writes)

    def single(run: Run, offset: int) -> Sample:
        counts["singled out"] += run.marks[offset] != SINGLE
        return single_out(run, offset)

    def acknowledge(deliveries: Deliveries, now: Nanoseconds, answers: RunAcknowledgment) -> None:
        counts["answered in runs"] += answers.count
        acknowledge_run(deliveries, now, answers)

    monkeypatch.setattr(Entry, "_enqueue_run", enqueue)
    monkeypatch.setattr(Run, "single_out", single)
    monkeypatch.setattr(Deliveries, "acknowledge_run", acknowledge)
    judged = judge(kinds.gathering(1))
    assert not any(each.violations for each in judged.verdicts())
    assert counts["in runs"] > judged.counts.accepted / 2
    assert counts["singled out"] > 10
    assert counts["answered in runs"] > 10


def singles_of(message: Inbound) -> list[Inbound]:
    return list(message.singles()) if isinstance(message, WriteRun | RunAcknowledgment) else [message]


def test_messages_in_runs_are_the_same_messages_in_order() -> None:
    lengths: Counter[int] = Counter()
    for seed in range(200):
        chance = Random(seed)
        messages: list[Inbound] = []
        for _ in range(30):
            number, step = chance.randrange(1, 4), chance.choice((1, 1, 2))
            guid, count = chance.choice((*GUIDS, NIL_GUID)), chance.choice((1, 2, 5))
            numbers = [SampleIdentity(guid, each) for each in range(number, number + count * step, step)]
            match chance.randrange(3):
                case 0:
                    messages += [Write("P", "Order", each, b"x%d" % each.sequence_number) for each in numbers]
                case 1:
                    response = chance.choice((AckResponse.ACCEPTED, AckResponse.ACCEPTED, AckResponse.REJECTED))
                    messages += [Acknowledgment("P/S/Orders", GUIDS[0], each, response) for each in numbers]
                case _:
                    messages.append(ConsumerJoined("P/S/Orders", guid))
        found = in_runs(messages)
        assert list(chain.from_iterable(map(singles_of, found))) == messages
        runs = [each for each in found if isinstance(each, WriteRun | RunAcknowledgment)]
        assert not any(isinstance(each, RunAcknowledgment) and each.identity.writer_guid == NIL_GUID for each in runs)
        lengths.update(each.count for each in runs)
    assert min(lengths[2], lengths[5]) > 100


def test_samples_that_wait_when_full_or_differ_are_by_themselves() -> None:
    first, second = (Write("P", "Order", SampleIdentity(GUIDS[0], number), b"", attempt=1) for number in (1, 2))
    differing = [structs.replace(second, **each) for each in ({"waits_when_full": True}, {"flags": 8}, {"attempt": 2})]
    assert in_runs([first, second]) == [WriteRun("P", "Order", first.identity, (b"", b""), attempt=1)]
    for each in differing:
        assert in_runs([first, each]) == [first, each]
