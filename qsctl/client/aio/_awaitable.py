"""Awaitable wrappers around the blocking ones: a task awaits the wait of a call, then makes the call.

Decides: how tasks share one wrapper, and wrappers of one session. A wait runs in a worker thread, in short slices, and
ends at once when a task needs to write or acknowledge; a cancelled wait ends with its slice. The calls themselves
are those of the blocking wrapper, with its signatures: `awaited` and `opening` copy them.
"""

from __future__ import annotations

import functools
import inspect
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Concatenate, Final, Generic, ParamSpec, Self, TypeVar
from weakref import WeakKeyDictionary

import anyio
import anyio.lowlevel
import anyio.to_thread

from qsctl.client._attempts import Handling, Sample, attempted_in_task
from qsctl.client._retry import Retry
from qsctl.client.session import FOREVER_S, ClientSession, Wrapper
from qsctl.core.messages import AckResponse

SLICE_S: Final = 0.05
"""The longest that a wait keeps the session when no other task wants it."""

BlockingWrapper = TypeVar("BlockingWrapper", bound=Wrapper)
Self_ = TypeVar("Self_")
Parameters = ParamSpec("Parameters")
Answer = TypeVar("Answer")


class _Turns:
    """The order in which the tasks of one session use it."""

    def __init__(self) -> None:
        self.lock = anyio.Lock()
        self.wanted_count = 0
        """Number of tasks that want to make a call: a wait ends for them."""


_TURNS: Final[WeakKeyDictionary[ClientSession, _Turns]] = WeakKeyDictionary()


class AwaitableWrapper(Generic[BlockingWrapper]):
    """Base of the awaitable wrappers; an asynchronous context manager."""

    def __init__(self, blocking: BlockingWrapper) -> None:
        self._blocking = blocking
        blocking.session.may_wait = False
        self._turns = _TURNS.setdefault(blocking.session, _Turns())

    @property
    def session(self) -> ClientSession:
        """The session; give it to another awaitable wrapper to use one participant for both."""
        return self._blocking.session

    def stop(self) -> None:
        """End the iterations and `process`, as the blocking wrapper's `stop` does; may be called in any thread."""
        self._blocking.stop()

    @property
    def is_stopping(self) -> bool:
        """Return whether `stop` was called."""
        return self._blocking.is_stopping

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with anyio.CancelScope(shield=True):
            await self.aclose()

    async def aclose(self) -> None:
        """Close the wrapper, as the blocking wrapper's `close` does."""
        async with self._turn():
            await anyio.to_thread.run_sync(self._blocking.close)

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """Hold the session for this task only; tasks that wait yield to others."""
        self._turns.wanted_count += 1
        self.session.domain.wake()
        try:
            await self._turns.lock.acquire()
        finally:
            self._turns.wanted_count -= 1
        try:
            yield
        finally:
            self._turns.lock.release()

    async def _until(self, is_done: Callable[[], bool], timeout_s: float) -> bool:
        """Wait, processing messages, until `is_done` is True or the time limit has passed; return the last
        `is_done`.
        """
        deadline = time.monotonic() + timeout_s
        done = False

        def pause() -> bool:
            nonlocal done
            done = is_done()
            return done or self._turns.wanted_count > 0

        while True:
            left = deadline - time.monotonic()
            async with self._turns.lock:
                await anyio.to_thread.run_sync(
                    self.session.run_until, pause, max(0.0, min(left, SLICE_S)), self._blocking.turn
                )
            await self._after_turn()
            if done:
                return True
            if left <= 0:
                return False
            await anyio.lowlevel.checkpoint()

    async def _call(
        self, call: Callable[[], Answer], is_ready: Callable[[], bool] = lambda: True, timeout_s: float = 0.0
    ) -> Answer:
        """Make a call once it is ready or the time limit has passed, and send its messages.

        Another task may consume the awaited condition: it is checked again together with the call.
        """
        deadline = time.monotonic() + timeout_s
        is_over = False
        while True:
            if not is_ready():
                is_over = not await self._until(is_ready, deadline - time.monotonic())
            async with self._turn():
                if is_over or is_ready():
                    answer = call()
                    self._blocking.turn()
                    self.session.domain.turn(0)
                    break
        await self._after_turn()
        return answer

    async def _process_samples(
        self,
        blocking: Handling[Sample],
        receive: Callable[[int, float], Awaitable[Sequence[Sample]]],
        handle: Callable[[Sample], Awaitable[object]],
        retry: Retry,
        max_samples: int | None,
    ) -> int:
        """Await a handler for each arriving sample, as `process_samples` calls one.

        A cancelled task finishes the attempt in progress, and acknowledges its sample, first.

        Args:
            blocking: the blocking wrapper, a consumer or a replier.
            receive: awaits samples.
            handle: processes one sample.
            retry: attempts and pauses for one sample.
            max_samples: number of samples after which to end; None: no bound.
        """
        pauses = functools.partial(self._until, lambda: self.is_stopping)
        count = finished = 0
        while not self.is_stopping and (max_samples is None or finished < max_samples):
            for sample in await receive(1, FOREVER_S):
                finished += 1
                response = AckResponse.RETURNED
                blocking.begin(sample)
                try:
                    name = f"{blocking.request_queue}: {sample.identity}"
                    response = await attempted_in_task(functools.partial(handle, sample), retry, pauses, name)
                finally:
                    with anyio.CancelScope(shield=True):
                        await self._call(functools.partial(blocking.acknowledge_once, sample, response))
                count += response is AckResponse.ACCEPTED
        return count

    async def _after_turn(self) -> None:
        """Run in the task the callbacks caused by a turn in the worker thread."""


def awaited(
    method: Callable[Concatenate[BlockingWrapper, Parameters], Answer],
    is_ready: Callable[..., bool] | None = None,
    timeout_s: float = 0.0,
) -> Callable[Concatenate[AwaitableWrapper[BlockingWrapper], Parameters], Coroutine[Any, Any, Answer]]:
    """Return the awaitable form of a blocking wrapper's method.

    Args:
        method: the blocking method.
        is_ready: returns whether the method would not block; called with the blocking wrapper, and, if its name begins
            with `has_`, with the method's arguments. None: the method does not wait.
        timeout_s: the longest wait, where the method has no parameter of this name.
    """
    parameters = list(inspect.signature(method).parameters.values())
    at = next((at for at, each in enumerate(parameters) if each.name == "timeout_s"), None)
    asks_arguments = is_ready is not None and len(inspect.signature(is_ready).parameters) > 1

    @functools.wraps(method)
    async def run(
        self: AwaitableWrapper[BlockingWrapper], /, *args: Parameters.args, **kwargs: Parameters.kwargs
    ) -> Answer:
        blocking = self._blocking
        call = functools.partial(method, blocking, *args, **kwargs)
        if is_ready is None:
            return await self._call(call)
        ready = (
            functools.partial(is_ready, blocking, *args, **kwargs)
            if asks_arguments
            else (functools.partial(is_ready, blocking))
        )
        wait_s: Any = timeout_s
        if at is not None:
            wait_s = args[at - 1] if len(args) >= at else kwargs.get("timeout_s", parameters[at].default)
        return await self._call(call, ready, wait_s)

    return run


def opening(
    open_blocking: Callable[Parameters, BlockingWrapper],
) -> Callable[[Callable[[Self_, BlockingWrapper], None]], Callable[..., None]]:
    """Return a decorator for `__init__` of an awaitable wrapper, which gets the overloads of the blocking constructor.

    The decorated function receives the blocking wrapper, which was opened with the arguments.
    """

    def decorate(
        initialize: Callable[[Self_, BlockingWrapper], None],
    ) -> Callable[..., None]:
        @functools.wraps(vars(open_blocking)["__init__"])
        def run(self: Self_, /, *args: Parameters.args, **kwargs: Parameters.kwargs) -> None:
            initialize(self, open_blocking(*args, **kwargs))

        return run

    return decorate
