"""When producers are held back for memory, and when they go on; what a bound is made of."""

from __future__ import annotations

import pytest

from qsctl.config.budgets import ServiceLimits
from qsctl.instant import SECOND_NS
from qsctl.service.process.memory import (
    COUNTED_AT_ONCE,
    LOOK_EVERY_NS,
    WORTH_BYTES,
    HeldCount,
    MemoryGuard,
    available_bytes,
    bound_of,
    give_back,
    resident_bytes,
)

BOUND = 1_000


class Process:
    """A process whose memory is what a test says."""

    def __init__(self, *, freed_bytes: int = 0) -> None:
        self.resident_bytes = 100
        self.held_count = 0
        self.freed_bytes = freed_bytes
        self.given_back_count = 0
        self.now = 10 * SECOND_NS
        self.guard = MemoryGuard(
            BOUND,
            lambda: self.held_count,
            resident=lambda: self.resident_bytes,
            free=self._give_back,
            clock=lambda: self.now,
        )

    def _give_back(self) -> None:
        self.given_back_count += 1
        self.resident_bytes -= self.freed_bytes

    def look(self, resident_bytes: int, held_count: int, after_ns: int = 3 * SECOND_NS) -> bool:
        self.now += after_ns
        self.resident_bytes, self.held_count = resident_bytes, held_count
        self.guard.look()
        return self.guard.is_high


def test_producers_are_held_back_above_the_bound_until_below_the_low_mark() -> None:
    process = Process()
    assert not process.look(1_000, 10)
    assert process.look(1_001, 10)
    assert process.look(950, 10), "between the marks nothing changes"
    assert not process.look(900, 10)
    assert not process.look(950, 10)
    assert process.guard.held_back_count == 1


def test_it_is_looked_ten_times_a_second() -> None:
    process = Process()
    process.look(500, 10)
    assert not process.look(2_000, 10, LOOK_EVERY_NS - 1)
    assert process.look(2_000, 10, 1)


def test_memory_is_given_back_before_anybody_is_held_back() -> None:
    process = Process(freed_bytes=500)
    process.look(900, 100)
    assert not process.look(1_200, 50), "half of what was held is gone, and so is its memory"
    assert process.given_back_count == 1
    assert process.look(1_200, 50), "nothing has left since: nothing is free"
    assert process.given_back_count == 1


def test_memory_is_given_back_when_many_samples_have_left() -> None:
    process = Process()
    process.guard.bound_bytes = 10 * WORTH_BYTES
    process.look(100, 0)
    process.look(2 * WORTH_BYTES, 100)
    process.look(2 * WORTH_BYTES, 51)
    assert process.given_back_count == 0, "more than half is held"
    process.look(2 * WORTH_BYTES, 50)
    assert process.given_back_count == 1
    process.look(2 * WORTH_BYTES, 26)
    assert process.given_back_count == 1
    process.look(WORTH_BYTES + 100, 0)
    assert process.given_back_count == 2, "the rest of it has left too, though the process has not grown since"
    process.look(WORTH_BYTES + 100, 0)
    assert process.given_back_count == 2, "nothing has left since"
    process.look(WORTH_BYTES + 99, 100)
    process.look(WORTH_BYTES + 99, 0)
    assert process.given_back_count == 2, "it is as small as it was"


def test_memory_that_cannot_be_given_back_is_used_again() -> None:
    process = Process()
    assert process.look(1_100, 100)
    assert process.look(1_100, 91)
    assert not process.look(1_100, 90), "what has left has made room, though the process is as large as before"
    assert not process.look(1_120, 95)
    assert process.look(1_121, 99), "it grows beyond what it was"


def test_without_a_bound_no_producer_is_held_back() -> None:
    guard = MemoryGuard(0, lambda: 0, resident=lambda: 10**15)
    guard.look()
    assert not guard.is_high


@pytest.mark.parametrize(
    ("limits", "share"),
    [
        (ServiceLimits(), 0.6),
        (ServiceLimits(max_memory_percent=25), 0.25),
        (ServiceLimits(max_memory_percent=100), 0),
    ],
)
def test_the_bound_is_a_percentage_of_what_the_machine_or_the_container_has(
    limits: ServiceLimits, share: float
) -> None:
    assert bound_of(limits) == pytest.approx(share * available_bytes(), abs=1)
    assert bound_of(limits, 2) == pytest.approx(share * available_bytes() / 2, abs=1)


def test_the_smaller_bound_holds() -> None:
    assert bound_of(ServiceLimits(max_memory_bytes=10**6)) == 10**6
    assert bound_of(ServiceLimits(max_memory_bytes=10**6, max_memory_percent=100), 4) == 250_000
    assert bound_of(ServiceLimits(max_memory_bytes=2**62)) == bound_of(ServiceLimits())


def test_the_memory_of_samples_that_left_is_the_systems_again() -> None:
    give_back()  # what the tests before left would be used first
    before = resident_bytes()
    held = [bytes([number % 256]) * 1_000 for number in range(100_000)]
    full = resident_bytes()
    assert full - before > 50e6
    del held
    give_back()
    assert resident_bytes() - before < 0.3 * (full - before)


def test_samples_of_few_queues_are_counted_at_each_look() -> None:
    queues: list[list[int]] = [[1], [1, 2]]
    count = HeldCount(lambda: queues)
    assert count() == 3
    queues.append([3])
    assert count() == 4
    queues.clear()
    assert count() == 0


def test_samples_of_many_queues_are_counted_in_parts() -> None:
    looked_at = 0

    class Queue:
        def __init__(self, count: int) -> None:
            self.count = count

        def __len__(self) -> int:
            nonlocal looked_at
            looked_at += 1
            return self.count

    queues = [Queue(2) for _ in range(3 * COUNTED_AT_ONCE - 1)]
    count = HeldCount(lambda: list(queues))
    counts = []
    for _ in range(3):
        looked_at = 0
        counts.append(count())
        assert looked_at <= COUNTED_AT_ONCE
    assert counts == [0, 0, 2 * len(queues)]
    queues.append(Queue(5))
    assert [count(), count(), count()] == [counts[2], counts[2], counts[2] + 5]
