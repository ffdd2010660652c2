"""Taking samples out of a queue, whatever its threshold is."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator, Sequence

import pytest

from qsctl.client.batches import SampleBatch, receive_batches
from qsctl.core.admin.command import Command
from qsctl.core.admin.reply import Reply
from qsctl.core.messages import Delivery, Write, WriteAcknowledgment
from qsctl.identity import NIL_GUID, Guid, SampleIdentity


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

    def receive(self, queue: str, max_samples: int, timeout_s: float, source_guid: Guid = NIL_GUID) -> list[Delivery]:
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
            self.waiting.appendleft(delivery.position)


class QuickShelf(Shelf):
    """A queue that settles many samples at once."""

    batches: tuple[int, ...] = ()

    def acknowledge_all(self, deliveries: Sequence[Delivery], ok: bool) -> None:
        self.batches = (*self.batches, len(deliveries))
        for delivery in deliveries:
            self.acknowledge(delivery, ok)


def positions(batches: Iterator[SampleBatch]) -> list[int]:
    return [delivery.position for batch in batches for delivery in batch.deliveries]


@pytest.mark.parametrize("outstanding", [1, 2, 100])
def test_all_samples_are_received_and_accepted_in_order(outstanding: int) -> None:
    shelf = Shelf(5, outstanding)
    assert positions(receive_batches(shelf, "Q", None, 3.0, True)) == [1, 2, 3, 4, 5]
    assert shelf.settled == [(position, True) for position in range(1, 6)]
    assert shelf.waits[0] == 3.0
    assert set(shelf.waits[1:]) == {0.0}


@pytest.mark.parametrize("ok", [True, False])
def test_a_batch_is_answered_only_when_the_caller_comes_back(ok: bool) -> None:
    shelf = Shelf(3, 2)
    batches = receive_batches(shelf, "Q", None, 0.0, ok)
    assert [delivery.position for delivery in next(batches).deliveries] == [1, 2]
    assert shelf.settled == []
    next(batches, None)
    assert shelf.settled == [(1, ok), (2, ok)]


@pytest.mark.parametrize("ok", [True, False])
def test_a_batch_whose_caller_stops_is_not_answered(ok: bool) -> None:
    shelf = Shelf(3, 2)
    batches = receive_batches(shelf, "Q", None, 0.0, ok)
    next(batches)
    assert isinstance(batches, Generator)
    batches.close()
    assert (shelf.settled, shelf.held) == ([], {1, 2})


def test_samples_are_answered_at_once_where_the_connection_can() -> None:
    shelf = QuickShelf(5, 3)
    assert len(positions(receive_batches(shelf, "Q", None, 0.0, True))) == 5
    assert shelf.batches == (3, 2)


def test_no_more_is_received_than_asked_for() -> None:
    shelf = Shelf(5, 100)
    assert [(len(batch.deliveries), batch.is_last) for batch in receive_batches(shelf, "Q", 2, 0.0, True)] == [
        (2, True)
    ]
    assert list(shelf.waiting) == [3, 4, 5]


@pytest.mark.parametrize("most", [None, 2, 7])
@pytest.mark.parametrize("outstanding", [1, 2, 100])
def test_each_sample_is_rejected_once_and_was_shown_before(most: int | None, outstanding: int) -> None:
    shelf = Shelf(2, outstanding)
    shown = positions(receive_batches(shelf, "Q", most, 0.0, False))
    assert shown == [1, 2][:outstanding]
    assert shelf.settled == [(position, False) for position in shown]
    assert shelf.held == set()


def test_without_answers_what_the_threshold_allows_is_received() -> None:
    shelf = Shelf(5, 2)
    assert len(positions(receive_batches(shelf, "Q", None, 0.0, None))) == 2
    assert shelf.settled == []


@pytest.mark.parametrize(("most", "count"), [(2_500, 2_500), (None, 3_000)])
def test_without_answers_as_many_are_received_as_asked_for(most: int | None, count: int) -> None:
    shelf = Shelf(3_000, 5_000)
    assert len(positions(receive_batches(shelf, "Q", most, 2.0, None))) == count
    assert shelf.waits == [2.0]


@pytest.mark.parametrize("ok", [True, False, None])
def test_an_empty_queue_gives_nothing(ok: bool | None) -> None:
    assert list(receive_batches(Shelf(0, 1), "Q", None, 0.0, ok)) == []
