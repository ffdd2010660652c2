"""What a turn takes, and from whom."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from qsctl.core.messages import ProducerLeft, RunAcknowledgment, WriteRun
from qsctl.identity import NIL_GUID, SampleIdentity
from qsctl.transport.dds.serving.turns import READER_SHARE, TAKES_MAX, TURN_SHARE, Inbox, Rotation, read_all, read_share

WAITING = st.lists(st.integers(0, 3 * TURN_SHARE), min_size=1, max_size=6)


class Queue:
    """So many messages that wait to be read."""

    def __init__(self, name: str, waiting_count: int) -> None:
        self.message = ProducerLeft("D", name, NIL_GUID)
        self.waiting_count = waiting_count

    def take(self) -> list[Any] | None:
        taken = min(self.waiting_count, 100)
        self.waiting_count -= taken
        return [self.message] * taken or None

    def poll(self, inbox: Inbox) -> bool:
        return read_share(self.take, lambda taken, into: into.extend(taken), inbox)


@given(WAITING)
def test_all_that_waits_is_read_in_turns_and_no_turn_takes_much_more_than_its_share(waiting: list[int]) -> None:
    queues = [Queue(str(at), count) for at, count in enumerate(waiting)]
    rotation, turns = Rotation[Queue](), 0
    while True:
        inbox = Inbox()
        rotation.poll(queues, inbox)
        if not inbox:
            break
        assert len(inbox) < TURN_SHARE + READER_SHARE + 100
        turns += 1
    assert [each.waiting_count for each in queues] == [0] * len(queues), "an empty inbox means that nothing waits"
    assert turns <= sum(waiting) / READER_SHARE + len(queues) + 1


@given(WAITING)
def test_a_queue_waits_for_each_other_once_at_most(waiting: list[int]) -> None:
    """However much comes to the others."""
    queues = [Queue(str(at), 10**9) for at in range(len(waiting))]
    rotation = Rotation[Queue]()
    served: list[list[str]] = []
    for _ in range(3 * len(queues)):
        inbox = Inbox()
        rotation.poll(queues, inbox)
        served.append(list(dict.fromkeys(each.topic_name for each in inbox)))
    order = [name for each in served for name in each]
    for each in queues:
        places = [at for at, name in enumerate(order) if name == each.message.topic_name]
        assert all(later - earlier == len(queues) for earlier, later in pairwise(places))


def test_the_rotation_goes_on_where_queues_were_deleted() -> None:
    queues = [Queue(str(at), 10**6) for at in range(5)]
    rotation = Rotation[Queue]()
    rotation.poll(queues, Inbox())
    rotation.poll(queues, Inbox())
    for deleted in queues[1:]:
        rotation.leave(deleted)
    inbox = Inbox()
    rotation.poll(queues[:1], inbox)
    assert {each.topic_name for each in inbox} == {"0"}
    rotation.poll([], inbox)


def test_a_turn_costs_what_has_come_and_not_what_there_is() -> None:
    queues = [Queue(str(at), 10) for at in range(1_000)]
    rotation = Rotation[Queue]()
    assert rotation.poll([queues[7]], Inbox()) == [queues[7]]
    assert [each.waiting_count for each in queues].count(0) == 1


def test_what_cannot_be_read_costs_a_bounded_number_of_takes() -> None:
    takes = []
    assert read_share(lambda: takes.append(1) or [], lambda taken, into: into.extend(taken), Inbox())
    assert len(takes) == TAKES_MAX


def test_everything_is_read_before_a_peer_is_reported_as_left() -> None:
    queue, inbox = Queue("Orders", 10 * READER_SHARE + 7), Inbox()
    read_all(queue.poll, inbox)
    assert len(inbox) == 10 * READER_SHARE + 7


def test_a_run_counts_as_its_samples_in_a_turn() -> None:
    inbox = Inbox()
    run = WriteRun("D", "Orders", SampleIdentity(NIL_GUID, 1), (b"x",) * 100)
    answers = RunAcknowledgment("Q", NIL_GUID, run.identity, 100)
    assert read_share(lambda: [run, answers], lambda taken, into: into.receive(taken), inbox)
    assert inbox == [run, answers] * 2
    assert inbox.size == 400 >= READER_SHARE
