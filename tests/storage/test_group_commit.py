"""Group commit: in order, together while a sync is under way, and nothing after a failure."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence

import pytest

from qsctl.errors import Damaged
from qsctl.storage.base import Sync
from qsctl.storage.group_commit import TRIAL_AFTER, GroupCommit
from tests.patience import PATIENCE_S


class Disk:
    """Groups that are written at once, and synced when they are let through."""

    def __init__(self) -> None:
        self.groups: list[list[int]] = []
        self.let_through = threading.Semaphore(0)
        self.fail_from = 1_000
        self.writers: set[int] = set()
        self.needs_sync = True

    def write(self, jobs: Sequence[int]) -> tuple[list[int], Sync | None]:
        self.groups.append(list(jobs))
        self.writers.add(threading.get_ident())
        return [job * 10 for job in jobs], (lambda: self._sync(max(jobs))) if self.needs_sync else None

    def _sync(self, highest: int) -> None:
        assert threading.get_ident() not in self.writers, "the disk is waited for in another thread"
        assert self.let_through.acquire(timeout=PATIENCE_S)
        if highest >= self.fail_from:
            raise Damaged("the disk refuses")


@pytest.fixture
def disk() -> Disk:
    return Disk()


@pytest.fixture
def commits(disk: Disk) -> Iterator[GroupCommit[int, int]]:
    commits = GroupCommit(disk.write, quick_sync_s=0)
    yield commits
    disk.let_through.release(1_000)
    commits.close()


def test_what_is_submitted_during_a_sync_shares_the_next_one(disk: Disk, commits: GroupCommit[int, int]) -> None:
    for job in (1, 2, 3, 4):
        commits.submit(job)
    assert disk.groups == [[1]]
    assert commits.take_done() == []
    assert commits.pending_count == 4
    disk.let_through.release()
    commits.wait()
    assert commits.take_done() == [10]
    assert disk.groups == [[1], [2, 3, 4]]
    disk.let_through.release()
    assert commits.drain() == [20, 30, 40]
    assert commits.is_idle


def test_who_waits_is_told_when_a_sync_is_over(disk: Disk) -> None:
    told = threading.Event()
    commits = GroupCommit(disk.write, told.set, quick_sync_s=0)
    commits.submit(1)
    assert not told.is_set()
    disk.let_through.release()
    assert told.wait(10)
    assert commits.take_done() == [10]
    commits.close()


def test_what_needs_no_sync_is_done_at_once_but_never_before_what_came_before(
    disk: Disk, commits: GroupCommit[int, int]
) -> None:
    commits.submit(1)
    disk.needs_sync = False
    commits.submit(2)
    assert commits.take_done() == []
    disk.let_through.release()
    assert commits.drain() == [10, 20]
    commits.submit(3)
    assert commits.take_done() == [30]


def test_drain_waits_for_everything_that_was_submitted(disk: Disk, commits: GroupCommit[int, int]) -> None:
    disk.let_through.release(100)
    for job in range(50):
        commits.submit(job)
    assert commits.drain() == [job * 10 for job in range(50)]
    assert [job for group in disk.groups for job in group] == list(range(50))


def test_after_a_failure_nothing_is_written_and_every_call_fails(disk: Disk, commits: GroupCommit[int, int]) -> None:
    disk.let_through.release(100)
    disk.fail_from = 5
    commits.submit(1)
    assert commits.drain() == [10]
    commits.submit(5)
    for _ in range(2):
        with pytest.raises(Damaged, match="the disk refuses"):
            commits.drain()
    for call in (lambda: commits.submit(2), commits.take_done):
        with pytest.raises(Damaged, match="the disk refuses"):
            call()
    assert disk.groups == [[1], [5]]


def test_closing_commits_what_is_left_and_hides_no_failure(disk: Disk) -> None:
    disk.let_through.release(100)
    commits = GroupCommit(disk.write, quick_sync_s=0)
    for job in range(10):
        commits.submit(job)
    commits.close()
    assert commits.take_done() == [job * 10 for job in range(10)]
    disk.fail_from = 0
    failing = GroupCommit(disk.write, quick_sync_s=0)
    failing.submit(1)
    failing.close()
    with pytest.raises(Damaged, match="the disk refuses"):
        failing.take_done()


def test_a_quick_disk_is_waited_for_and_a_slow_one_is_not() -> None:
    here = threading.get_ident()
    synced_by: list[int] = []
    pause = threading.Event()
    seconds = 0.0

    def sync() -> None:
        synced_by.append(threading.get_ident())
        pause.wait(seconds)

    def write(jobs: Sequence[int]) -> tuple[Sequence[int], Sync]:
        return jobs, sync

    commits: GroupCommit[int, int] = GroupCommit(write, quick_sync_s=0.05)

    def commit(count: int) -> list[int]:
        """The threads that synced so many commits, one after the other."""
        synced_by.clear()
        for job in range(count):
            commits.submit(job)
            assert commits.drain() == [job]
        return synced_by

    assert set(commit(20)) == {here}
    seconds = 0.2
    assert here not in commit(20)[10:]
    seconds = 0.0
    assert here in commit(TRIAL_AFTER)
    assert set(commit(20)) == {here}
    commits.close()


def test_a_sync_that_is_waited_for_fails_like_any_other(disk: Disk) -> None:
    commits = GroupCommit(disk.write, quick_sync_s=10)

    def refuse() -> None:
        raise Damaged("the disk refuses")

    commits._write = lambda jobs: (jobs, refuse)
    for _ in range(2):
        with pytest.raises(Damaged, match="the disk refuses"):
            commits.submit(1)
    commits.close()
    with pytest.raises(Damaged, match="the disk refuses"):
        commits.take_done()
