"""A wake ends one wait, whatever the waiting thread is doing, and none of a waiter that is closed."""

from __future__ import annotations

import threading
import time
from typing import Any

from qsctl.transport.dds.participant import Participant

WAIT_NS = 50_000_000


class GuardInterrupted:
    """A guard that is set only after the waiting thread, awake for another reason, went through its wait."""

    def __init__(self, guard: Any, waits: Any) -> None:
        self._guard, self._waits = guard, waits

    def set(self, value: bool) -> None:
        self._waits(0)
        self._guard.set(value)
        self._waits(0)

    def take(self) -> bool:
        return bool(self._guard.take())


def test_a_wake_beside_another_one_s_end_leaves_no_wait_that_ends_at_once(domain: int) -> None:
    participant = Participant(domain)
    waiter: Any = participant.waiter
    guard = waiter._guard
    try:
        waiter.wait(1_000_000)
        waiter._guard = GuardInterrupted(guard, waiter.wait)
        waiter.wake()
        waiter.wait(0)
        began = time.monotonic_ns()
        waiter.wait(WAIT_NS)
        assert time.monotonic_ns() - began >= WAIT_NS
    finally:
        waiter._guard = guard
        participant.close()


class GuardOfClosed:
    """A guard that is set while another thread closes the waiter."""

    def __init__(self, waiter: Any) -> None:
        self._waiter, self._guard = waiter, waiter._guard
        self.closing = threading.Thread(target=self._close)

    def set(self, value: bool) -> None:
        self.closing.start()
        self.closing.join(0.2)
        self._guard.set(value)

    def _close(self) -> None:
        self._waiter._guard = self._guard
        self._waiter.close()


def test_a_wake_while_another_thread_closes_the_waiter_does_nothing(domain: int) -> None:
    participant = Participant(domain)
    waiter: Any = participant.waiter
    beside = waiter._guard = GuardOfClosed(waiter)
    try:
        waiter.wake()
        beside.closing.join()
        waiter.wake()
        waiter.wait(0)
    finally:
        participant.close()
