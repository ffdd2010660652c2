"""The awaitable producer [QS 8.1]; the blocking one documents its arguments and methods."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterable, Iterable
from inspect import isawaitable
from typing import Generic

from qsctl.client import producer
from qsctl.client.aio.awaitable import AwaitableWrapper, awaited, opening
from qsctl.client.codec import Value
from qsctl.client.session import FOREVER_S


class QueueProducer(AwaitableWrapper[producer.QueueProducer[Value]], Generic[Value]):
    """Writes samples to the queues of a topic; any number of tasks may use it.

    `on_application_acknowledgment` is called, and awaited where it is a coroutine function, in the task whose call
    processed the acknowledgment, before that call returns.
    """

    @opening(producer.QueueProducer)
    def __init__(self, blocking: producer.QueueProducer[Value]) -> None:
        super().__init__(blocking)
        self._unreported: deque[producer.ApplicationAcknowledgment] = deque()
        self._listener = blocking.replace_listener(self._unreported.append)

    @property
    def matched_queues(self) -> tuple[str, ...]:
        """The queues of the topic that were matched at the last turn [QS 2.13]."""
        return self._blocking.state.matched_queues

    wait_for_queue = awaited(producer.QueueProducer[Value].wait_for_queue, producer.QueueProducer[Value].has_queue)
    write = awaited(producer.QueueProducer[Value].write, producer.QueueProducer[Value].has_room)
    flush = awaited(producer.QueueProducer[Value].flush)
    wait_for_acknowledgments = awaited(
        producer.QueueProducer[Value].wait_for_acknowledgments, producer.QueueProducer[Value].is_acknowledged
    )
    pop_acknowledged = awaited(producer.QueueProducer[Value].pop_acknowledged)

    async def write_all(self, values: Iterable[Value] | AsyncIterable[Value]) -> int:
        """Write everything that an iterable yields; return how many. Many samples go into one frame.

        Raises:
            UsageError: a sample is too large.
        """
        count = 0
        if isinstance(values, AsyncIterable):
            async for value in values:
                await self.write(value)
                count += 1
            return count
        for value in values:
            while True:
                if not self._blocking.has_room():
                    await self._until(self._blocking.has_room, FOREVER_S)
                async with self._turns.lock:
                    if self._blocking.has_room():
                        self._blocking.write(value)
                        break
            count += 1
        await self.flush()
        return count

    async def _after_turn(self) -> None:
        while self._unreported and self._listener is not None:
            answer = self._listener(self._unreported.popleft())
            if isawaitable(answer):
                await answer
