"""How the time of a loop is divided while samples move."""

from __future__ import annotations

import pytest

from qsctl.instant import MILLISECOND_NS, SECOND_NS
from qsctl.transport.dds.serving.loop_time import BEHIND_MAX_NS, BUSY_NS, PAUSE_MAX_NS, LoopTime


class Loop:
    """A loop whose clock a test sets."""

    def __init__(self) -> None:
        self.now = 0
        self.time = LoopTime(lambda: self.now)
        self.share = self.time.commands

    def work(self, duration_ns: int, worker: str = "one") -> bool:
        if not self.share.begins(worker):
            return False
        self.now += duration_ns
        self.share.end()
        return True


def test_without_samples_nothing_waits() -> None:
    loop = Loop()
    assert all(loop.work(SECOND_NS) for _ in range(10))
    assert loop.time.waits_ns() is None


@pytest.mark.slow
def test_while_samples_move_work_keeps_to_its_share() -> None:
    loop = Loop()
    worked_ns = 0
    while loop.now < 100 * SECOND_NS:
        loop.time.note_samples()
        if loop.work(3 * MILLISECOND_NS):
            worked_ns += 3 * MILLISECOND_NS
        else:
            loop.now += MILLISECOND_NS // 10
    assert 0.9 * loop.share.fraction < worked_ns / loop.now < 1.01 * loop.share.fraction
    assert loop.share.taken_ns == worked_ns


def test_what_happens_now_and_then_is_done_at_once() -> None:
    loop = Loop()
    for _ in range(20):
        loop.time.note_samples()
        assert loop.work(100 * MILLISECOND_NS)
        loop.now += SECOND_NS


def test_work_goes_on_after_a_bounded_pause_however_long_the_last_took() -> None:
    loop = Loop()
    loop.time.note_samples()
    loop.work(100 * SECOND_NS)
    loop.time.note_samples()
    assert not loop.work(1)
    assert loop.time.waits_ns() == PAUSE_MAX_NS
    loop.now += PAUSE_MAX_NS - 1
    loop.time.note_samples()
    assert not loop.work(1)
    loop.now += 1
    assert loop.work(1)
    assert loop.time.waits_ns() is None


def test_a_worker_that_waits_with_something_to_do_is_woken_for_whatever_it_asks_next() -> None:
    loop = Loop()
    loop.time.note_samples()
    loop.work(100 * SECOND_NS)
    loop.time.note_samples()
    assert not loop.share.begins("one", wakes=True)
    assert not loop.share.begins("one", wakes=False)
    assert loop.time.waits_ns() == PAUSE_MAX_NS


def test_kinds_of_work_in_one_share_take_turns() -> None:
    loop = Loop()
    done: list[str] = []
    while len(done) < 500:
        loop.time.note_samples()
        done += [worker for worker in ("one", "two", "three") if loop.work(MILLISECOND_NS, worker)]
        loop.now += MILLISECOND_NS
    assert sorted(done[-9:]) == ["one"] * 3 + ["three"] * 3 + ["two"] * 3


def test_one_that_is_closed_is_not_waited_for() -> None:
    loop = Loop()
    loop.time.note_samples()
    loop.work(SECOND_NS, "one")
    loop.time.note_samples()
    assert not loop.work(1, "closed")
    assert not loop.work(1, "one")
    loop.share.leave("closed")
    loop.now += SECOND_NS
    loop.time.note_samples()
    assert loop.work(1, "one")


def test_a_slice_is_over_only_while_samples_move() -> None:
    loop = Loop()
    assert loop.share.begins("one")
    loop.now += SECOND_NS
    assert not loop.share.is_over
    loop.time.note_samples()
    assert loop.share.is_over
    loop.now += BUSY_NS
    assert not loop.share.is_over


def test_work_that_is_soon_done_rests_while_samples_move() -> None:
    loop = Loop()
    loop.share = loop.time.discovery
    loop.time.note_samples()
    assert loop.work(MILLISECOND_NS // 10)
    assert not loop.work(MILLISECOND_NS // 10)
    rest_ns = loop.time.waits_ns()
    assert rest_ns is not None and rest_ns > MILLISECOND_NS
    assert loop.work(MILLISECOND_NS // 10, "another"), "each rests for itself"
    loop.now += rest_ns - MILLISECOND_NS // 10
    assert loop.work(MILLISECOND_NS)
    assert loop.work(MILLISECOND_NS), "more was left than a slice is long: it goes on"
    loop.now += BUSY_NS
    assert loop.work(MILLISECOND_NS // 10)
    assert loop.work(MILLISECOND_NS // 10), "nobody waits"


def test_the_loop_does_not_wake_for_what_is_in_no_hurry() -> None:
    loop = Loop()
    loop.time.note_samples()
    loop.work(SECOND_NS)
    loop.time.note_samples()
    assert not loop.share.begins("one", wakes=False)
    assert loop.time.waits_ns() is None
    assert not loop.share.begins("two")
    assert loop.time.waits_ns() is not None


def test_a_backlog_has_a_larger_share_until_it_is_processed() -> None:
    loop = Loop()
    assert loop.time.noticing("one") is loop.time.discovery
    loop.time.note_left("one", is_left=True)
    loop.now += BEHIND_MAX_NS - 1
    loop.time.note_left("one", is_left=True)
    assert loop.time.noticing("one") is loop.time.discovery
    loop.now += 1
    assert loop.time.noticing("one") is loop.time.connection
    assert loop.time.noticing("another") is loop.time.discovery
    loop.time.note_left("one", is_left=False)
    assert loop.time.noticing("one") is loop.time.discovery


def test_work_that_changes_its_share_is_not_waited_for_in_the_other() -> None:
    loop = Loop()
    loop.share = loop.time.discovery
    loop.time.note_samples()
    loop.time.note_left("one", is_left=True)
    assert loop.work(SECOND_NS, "one")
    loop.time.note_samples()
    assert not loop.work(1, "one")
    loop.now += BEHIND_MAX_NS
    loop.time.note_samples()
    loop.share = loop.time.noticing("one")
    assert loop.work(1, "one")
    loop.share = loop.time.discovery
    assert loop.work(1, "two"), "its turn is not kept for the other"
    loop.time.note_left("one", is_left=True)
    loop.time.leave("one")
    assert loop.time.noticing("one") is loop.time.discovery
