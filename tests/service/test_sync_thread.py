"""Where a sync is done: a quick one is waited for, a slow one has a thread."""

from __future__ import annotations

import threading

import pytest

from qsctl.errors import Damaged
from qsctl.service.stores.sync_thread import TRIAL_AFTER, SyncThread


def test_a_sync_in_the_other_thread_is_reported() -> None:
    reported, let_through, synced_by = threading.Event(), threading.Event(), list[int]()
    syncs = SyncThread(reported.set, quick_sync_s=0)

    def sync() -> None:
        assert let_through.wait(10)
        synced_by.append(threading.get_ident())

    assert not syncs.begin(sync)
    assert not syncs.is_done
    let_through.set()
    assert reported.wait(10)
    assert syncs.is_done
    syncs.end()
    assert synced_by != [threading.get_ident()]
    syncs.close()


def test_a_quick_disk_is_waited_for_and_a_slow_one_is_not() -> None:
    here = threading.get_ident()
    synced_by: list[int] = []
    pause = threading.Event()
    seconds = 0.0

    def sync() -> None:
        synced_by.append(threading.get_ident())
        pause.wait(seconds)

    syncs = SyncThread(quick_sync_s=0.05)

    def threads_of(count: int) -> list[int]:
        """The threads that did so many syncs, one after the other."""
        synced_by.clear()
        for _ in range(count):
            if not syncs.begin(sync):
                syncs.end()
        return synced_by

    assert set(threads_of(20)) == {here}
    seconds = 0.2
    assert here not in threads_of(13)[10:]
    seconds = 0.0
    assert here in threads_of(TRIAL_AFTER)
    assert set(threads_of(20)) == {here}
    syncs.close()


@pytest.mark.parametrize("quick_sync_s", [0, 10])
def test_a_sync_fails_in_either_thread(quick_sync_s: float) -> None:
    syncs = SyncThread(quick_sync_s=quick_sync_s)

    def refuse() -> None:
        raise Damaged("the disk refuses")

    def do() -> None:
        if not syncs.begin(refuse):
            syncs.end()

    for _ in range(2):
        with pytest.raises(Damaged, match="the disk refuses"):
            do()
    syncs.close()
