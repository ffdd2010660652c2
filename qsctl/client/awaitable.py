"""Blocking wrappers under a task group: waits in a worker thread, everything else in turns.

Decides: how tasks share one wrapper. A task that waits does so in short slices and gives way at once to a task that
wants to write or acknowledge; a cancelled wait ends with its slice.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Final, Generic, Self, TypeVar

import anyio
import anyio.to_thread

from qsctl.client.session import Wrapper, no_answer

SLICE_S: Final = 0.05
"""The longest a wait keeps the wrapper when nobody else wants it."""

BlockingWrapper = TypeVar("BlockingWrapper", bound=Wrapper)
Answer = TypeVar("Answer")


class Awaitable(Generic[BlockingWrapper]):
    """Base of the awaitable wrappers; an asynchronous context manager."""

    def __init__(self, blocking: BlockingWrapper) -> None:
        self._blocking = blocking
        self._lock = anyio.Lock()
        self._wanted_count = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with anyio.CancelScope(shield=True):
            await self.aclose()

    async def aclose(self) -> None:
        """Leave, as the blocking wrapper's `close`."""
        async with self._mine():
            await anyio.to_thread.run_sync(self._blocking.close)

    @asynccontextmanager
    async def _mine(self) -> AsyncIterator[None]:
        """The wrapper for this task alone; whoever waits gives way."""
        self._wanted_count += 1
        self._blocking.session.domain.wake()
        try:
            await self._lock.acquire()
        finally:
            self._wanted_count -= 1
        try:
            yield
        finally:
            self._lock.release()

    async def _until(self, is_done: Callable[[], bool], timeout_s: float) -> bool:
        """Turn until something is so; false: the time is over."""
        deadline = time.monotonic() + timeout_s
        done = False

        def pause() -> bool:
            nonlocal done
            done = is_done()
            return done or self._wanted_count > 0

        session = self._blocking.session
        while True:
            left = deadline - time.monotonic()
            async with self._lock:
                await anyio.to_thread.run_sync(
                    session.run_until, pause, max(0.0, min(left, SLICE_S)), self._blocking.turn
                )
            await self._after_turn()
            if done:
                return True
            if left <= 0:
                return False
            await anyio.lowlevel.checkpoint()

    async def _require(self, is_done: Callable[[], bool], timeout_s: float, what: str) -> None:
        if not await self._until(is_done, timeout_s):
            raise no_answer(what, timeout_s)

    async def _after_turn(self) -> None:
        """Do in the task what a turn in the worker thread led to."""

    async def _now(self, call: Callable[[], Answer]) -> Answer:
        """Do something that does not wait, and send what it leads to."""
        async with self._mine():
            answer = call()
            self._blocking.turn()
            self._blocking.session.domain.turn(0)
        await self._after_turn()
        return answer
