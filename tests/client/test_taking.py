"""Taking samples out of a queue, whatever its threshold is."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import pytest

from qsctl.client.taking import take
from qsctl.core.admin.command import Command
from qsctl.core.admin.reply import Reply
from qsctl.core.messages import Delivery, Write, WriteAcknowledgment
from qsctl.identity import NIL_GUID, SampleIdentity


class Shelf:
    """A queue that hands out `outstanding` unsettled samples at the most; rejected ones come back."""

    def __init__(self, count: int, outstanding: int) -> None:
        self.waiting = deque(range(1, count + 1))
        self.outstanding = outstanding
        self.held: set[int] = set()
        self.settled: list[tuple[int, bool]] = []
        self.waits: list[float] = []

    def request(self, command: Command, target: str = "*") -> list[Reply]:
        raise AssertionError("taking asks for nothing")

    def write(self, samples: Sequence[Write]) -> list[WriteAcknowledgment]:
        raise AssertionError("taking writes nothing")

    def receive(self, queue: str, max_samples: int, timeout_s: float) -> list[Delivery]:
        self.waits.append(timeout_s)
        batch = []
        while self.waiting and len(batch) < max_samples and len(self.held) < self.outstanding:
            position = self.waiting.popleft()
            self.held.add(position)
            batch.append(Delivery(queue, NIL_GUID, position, SampleIdentity(NIL_GUID, position), b""))
        return batch

    def acknowledge(self, delivery: Delivery, ok: bool) -> None:
        self.held.discard(delivery.position)
        self.settled.append((delivery.position, ok))
        if not ok:
            self.waiting.append(delivery.position)


class QuickShelf(Shelf):
    """A queue that settles many samples at once."""

    batches: tuple[int, ...] = ()

    def acknowledge_all(self, deliveries: Sequence[Delivery], ok: bool) -> None:
        self.batches = (*self.batches, len(deliveries))
        for delivery in deliveries:
            self.acknowledge(delivery, ok)


@pytest.mark.parametrize("outstanding", [1, 2, 100])
def test_all_samples_are_taken_and_accepted_in_order(outstanding: int) -> None:
    shelf = Shelf(5, outstanding)
    assert [delivery.position for delivery in take(shelf, "Q", None, 3.0, True)] == [1, 2, 3, 4, 5]
    assert shelf.settled == [(position, True) for position in range(1, 6)]
    assert shelf.waits[0] == 3.0
    assert set(shelf.waits[1:]) == {0.0}


def test_samples_are_settled_at_once_where_the_connection_can() -> None:
    shelf = QuickShelf(5, 3)
    assert len(take(shelf, "Q", None, 0.0, True)) == 5
    assert shelf.batches == (3, 2)


def test_no_more_is_taken_than_asked_for() -> None:
    shelf = Shelf(5, 100)
    assert len(take(shelf, "Q", 2, 0.0, True)) == 2
    assert list(shelf.waiting) == [3, 4, 5]


def test_a_rejected_sample_that_comes_back_ends_the_taking() -> None:
    shelf = Shelf(2, 100)
    assert [delivery.position for delivery in take(shelf, "Q", None, 0.0, False)] == [1, 2]
    assert shelf.settled[:2] == [(1, False), (2, False)]
    assert shelf.held == set()


def test_without_settling_what_the_threshold_allows_is_taken() -> None:
    shelf = Shelf(5, 2)
    assert len(take(shelf, "Q", None, 0.0, None)) == 2
    assert shelf.settled == []


@pytest.mark.parametrize(("most", "count"), [(2_500, 2_500), (None, 3_000)])
def test_without_settling_as_many_are_taken_as_asked_for(most: int | None, count: int) -> None:
    shelf = Shelf(3_000, 5_000)
    assert len(take(shelf, "Q", most, 2.0, None)) == count
    assert shelf.waits == [2.0]


def test_an_empty_queue_gives_nothing() -> None:
    assert take(Shelf(0, 1), "Q", None, 0.0, True) == []
