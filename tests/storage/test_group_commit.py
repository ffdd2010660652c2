"""Group commit: in order, together while one is under way, and nothing after a failure."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest

from qsctl.errors import Damaged
from qsctl.storage.group_commit import GroupCommit


class Disk:
    """A commit that waits to be let through, and remembers its groups."""

    def __init__(self) -> None:
        self.groups: list[list[int]] = []
        self.entered = threading.Semaphore(0)
        self.let_through = threading.Semaphore(0)
        self.fail_from = 1_000

    def commit(self, jobs: Sequence[int]) -> list[int]:
        self.groups.append(list(jobs))
        self.entered.release()
        assert self.let_through.acquire(timeout=10)
        if max(jobs) >= self.fail_from:
            raise Damaged("the disk refuses")
        return [job * 10 for job in jobs]


def test_what_is_submitted_during_a_commit_shares_the_next_one() -> None:
    disk = Disk()
    commits = GroupCommit(disk.commit)
    first = commits.submit(1)
    assert disk.entered.acquire(timeout=10)
    rest = [commits.submit(job) for job in (2, 3, 4)]
    assert not first.done()
    disk.let_through.release(2)
    assert [future.result(10) for future in (first, *rest)] == [10, 20, 30, 40]
    assert disk.groups == [[1], [2, 3, 4]]
    commits.close()


def test_nothing_is_done_before_its_commit_is() -> None:
    disk = Disk()
    commits = GroupCommit(disk.commit)
    future = commits.submit(1)
    assert disk.entered.acquire(timeout=10)
    assert not future.done()
    assert commits.pending_count == 0
    disk.let_through.release()
    assert future.result(10) == 10
    commits.close()


def test_drain_waits_for_everything_that_was_submitted() -> None:
    disk = Disk()
    disk.let_through.release(100)
    commits = GroupCommit(disk.commit)
    futures = [commits.submit(job) for job in range(50)]
    commits.drain()
    assert all(future.done() for future in futures)
    assert [job for group in disk.groups for job in group] == list(range(50))
    commits.close()


def test_after_a_failure_every_later_job_fails_too() -> None:
    disk = Disk()
    disk.let_through.release(100)
    disk.fail_from = 5
    commits = GroupCommit(disk.commit)
    assert commits.submit(1).result(10) == 10
    for job in (5, 6, 2):
        with pytest.raises(Damaged, match="the disk refuses"):
            commits.submit(job).result(10)
    assert [6] not in disk.groups
    assert [2] not in disk.groups
    commits.close()


def test_closing_commits_what_is_left() -> None:
    disk = Disk()
    disk.let_through.release(100)
    commits = GroupCommit(disk.commit)
    futures = [commits.submit(job) for job in range(10)]
    commits.close()
    assert [future.result(0) for future in futures] == [job * 10 for job in range(10)]
