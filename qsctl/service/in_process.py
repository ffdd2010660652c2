"""A service beside its clients in one program: the pipeline, driven by a transport of messages.

Decides: how turns, sleep and sending take their places on an event loop.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import TypeAlias, get_args

import anyio
import anyio.from_thread

from qsctl.core.events import Event
from qsctl.core.messages import Inbound
from qsctl.errors import Damaged
from qsctl.instant import SECOND_NS
from qsctl.service.loop import ServiceLoop
from qsctl.service.pipeline import PipelinedLoop
from qsctl.transport.base import Transport

TellEvents: TypeAlias = Callable[[Sequence[Event]], None]
"""Told after the messages were sent; must not block."""

_INBOUND = get_args(Inbound)


class _Inbox:
    """What arrived, and what wakes the service: a message, a finished commit, the peer's end."""

    def __init__(self) -> None:
        self.messages: list[Inbound] = []
        self.has_ended = False
        self._changed = anyio.Event()

    def put(self, messages: Iterable[Inbound]) -> None:
        self.messages.extend(messages)
        self.wake()

    def end(self) -> None:
        self.has_ended = True
        self.wake()

    def wake(self) -> None:
        self._changed.set()

    def take(self) -> list[Inbound]:
        messages, self.messages = self.messages, []
        return messages

    async def wait(self, patience_s: float | None) -> None:
        with anyio.move_on_after(patience_s):
            await self._changed.wait()
        self._changed = anyio.Event()


async def serve_in_process(loop: ServiceLoop, transport: Transport, tell: TellEvents = lambda _: None) -> None:
    """Turn until SHUTDOWN or until the transport's peer is gone; what was received is stored and answered then.

    Raises:
        Damaged: the disk refuses.
    """
    refusal: Damaged | None = None
    async with _inbox_of(transport) as inbox, anyio.from_thread.BlockingPortal() as portal:
        pipeline = PipelinedLoop(loop, on_finished=lambda: portal.start_task_soon(inbox.wake))
        try:
            while not loop.engine.shutting_down and not (inbox.has_ended and not inbox.messages):
                pipeline.begin(inbox.take())
                await _send_finished(pipeline, transport, tell)
                if not inbox.messages and not inbox.has_ended and not loop.engine.shutting_down:
                    pipeline.settle()
                    await inbox.wait(_patience_s(loop))
            while not pipeline.is_idle:
                await _send_finished(pipeline, transport, tell)
                await anyio.sleep(0)
        except Damaged as error:
            refusal = error  # raised below: a task group would wrap it
        finally:
            pipeline.close()
    if refusal is not None:
        raise refusal


async def _send_finished(pipeline: PipelinedLoop, transport: Transport, tell: TellEvents) -> None:
    for ready in pipeline.take_finished():
        if ready.messages:
            await transport.send(ready.messages)
        if ready.events:
            tell(ready.events)


def _patience_s(loop: ServiceLoop) -> float | None:
    """How long nothing is due; None: until something happens."""
    deadline = loop.engine.next_deadline()
    return None if deadline is None else max(0.0, (deadline - loop.clock()) / SECOND_NS)


@asynccontextmanager
async def _inbox_of(transport: Transport) -> AsyncIterator[_Inbox]:
    """An inbox that a task of its own fills from the transport; what is no message for a service is dropped."""
    inbox = _Inbox()

    async def fill() -> None:
        while messages := await transport.receive():
            inbox.put(message for message in messages if isinstance(message, _INBOUND))
        inbox.end()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(fill)
        yield inbox
        tasks.cancel_scope.cancel()
