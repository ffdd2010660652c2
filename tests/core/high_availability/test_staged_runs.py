"""Staging of samples by runs, beside that of single samples: both give the same after every step."""

from __future__ import annotations

from random import Random

import pytest
from msgspec import structs

from qsctl.core.high_availability._log import entry_count
from qsctl.core.high_availability._staging import Staging, without_payloads
from qsctl.core.high_availability.frames import Entry, OrderedRun
from qsctl.core.messages import SampleFlag, Write
from qsctl.core.records import EnqueuedRun, one_by_one
from qsctl.identity import SampleIdentity
from tests.core.high_availability.cluster import STREAM, WRITER, write, write_run
from tests.core.high_availability.logs import enqueued_run

TIMEOUT_NS = 20
NUMBERS = 60


def payload_of(number: int) -> bytes:
    return bytes([number]) * (100 if number // 12 % 2 else 10)


def singles_of(entries: list[Entry]) -> list[Entry]:
    return [
        single
        for each in entries
        for single in (each.singles() if isinstance(each, OrderedRun | EnqueuedRun) else [each])
    ]


class Twins:
    """Two replicas that receive the same samples, one of them one by one."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.now = 0
        self.runs, self.singles = Staging(TIMEOUT_NS), Staging(TIMEOUT_NS)

    def write_run(self, first: int, count: int) -> None:
        writes = write_run(first, [payload_of(each) for each in range(first, first + count)])
        identities = [each.identity for each in writes.singles()]
        if self.runs.knows_any(STREAM, identities):
            for each in writes.singles():
                self.write(each)
            return
        assert not any(self.singles.is_refused(STREAM, each) for each in writes.singles())
        self.runs.stage_run(self.now, STREAM, writes)
        for each in writes.singles():
            self.singles.stage(self.now, STREAM, each)

    def write(self, each: Write) -> None:
        refused = [staging.is_refused(STREAM, each) for staging in (self.runs, self.singles)]
        assert refused[0] == refused[1]
        if refused[0]:
            return
        for staging in (self.runs, self.singles):
            staging.stage(self.now, STREAM, each)

    def step(self) -> None:
        random = self.random
        self.now += random.randint(0, 3)
        kind, first, count = random.randrange(8), random.randint(1, NUMBERS), random.randint(1, 12)
        if kind < 3:
            self.write_run(first, count)
        elif kind == 3:
            flags = int(SampleFlag.REPLICATE) * random.randrange(2)
            self.write(structs.replace(write(first, payload_of(first)), flags=flags))
        elif kind == 4:
            assert self.runs.refuse(STREAM, SampleIdentity(WRITER, first)) == self.singles.refuse(
                STREAM, SampleIdentity(WRITER, first)
            )
        elif kind == 5:
            assert self.runs.overdue(self.now) == self.singles.overdue(self.now)
        elif kind == 6:
            self.take(first, count)
        elif random.random() < 0.1:
            assert self.runs.unstage_all() == self.singles.unstage_all()
        assert len(self.runs) == len(self.singles)
        assert self.runs.next_deadline() == self.singles.next_deadline()

    def take(self, first: int, count: int) -> None:
        """Receive entries of a run, as its master divided it, with or without the payloads."""
        run = enqueued_run(first, *(payload_of(each) for each in range(first, first + count)))
        at = self.random.randrange(count)
        parts = [run.part(0, at), run.part(at, count)] if at else [run]
        entries: list[Entry] = without_payloads(parts) if self.random.random() < 0.8 else [*parts]
        by_runs, passed_on = self.runs.take(entries)
        by_singles, passed_on_alone = self.singles.take(singles_of(entries))
        assert [*one_by_one(by_runs)] == by_singles
        assert passed_on == passed_on_alone
        assert entry_count(by_runs) == len(by_singles)


@pytest.mark.parametrize("seed", range(60))
def test_samples_wait_in_a_run_as_they_do_one_by_one(seed: int) -> None:
    twins = Twins(seed)
    for _ in range(200):
        twins.step()
