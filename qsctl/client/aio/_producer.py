"""The awaitable producer [QS 8.1]; the blocking one documents its arguments and methods."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterable, Iterable
from functools import partial
from inspect import isawaitable
from typing import Generic, Unpack, overload

import anyio

from qsctl.client import producer
from qsctl.client._retry import Retry
from qsctl.client.aio._awaitable import AwaitableWrapper, awaited, opening
from qsctl.client.codec import Codec, Value
from qsctl.client.session import FOREVER_S, no_answer
from qsctl.identity import SampleIdentity
from qsctl.instant import INFINITE_NS, Nanoseconds


class QueueProducer(AwaitableWrapper[producer.QueueProducer[Value]], Generic[Value]):
    """Writes samples to the queues of a topic; any number of tasks may use it.

    `on_application_acknowledgment` is called, and awaited where it is a coroutine function, in the task whose call
    processed the acknowledgment, before that call returns.
    """

    @overload
    def __init__(
        self: QueueProducer[bytes],
        topic_name: str,
        domain_id: int = 0,
        *,
        codec: None = None,
        **options: Unpack[producer.ProducerOptions],
    ) -> None: ...

    @overload
    def __init__(
        self,
        topic_name: str,
        domain_id: int = 0,
        *,
        codec: Codec[Value] | type[Value],
        **options: Unpack[producer.ProducerOptions],
    ) -> None: ...

    @opening(producer.QueueProducer)
    def __init__(self, blocking: producer.QueueProducer[Value]) -> None:
        super().__init__(blocking)
        self._unreported: deque[producer.ApplicationAcknowledgment] = deque()
        self._listener = blocking.replace_listener(self._unreported.append)

    @property
    def matched_queues(self) -> tuple[str, ...]:
        """The queues of the topic that were matched when the producer last processed messages [QS 2.13]."""
        return self._blocking.state.matched_queues

    wait_for_queue = awaited(producer.QueueProducer[Value].wait_for_queue, producer.QueueProducer[Value].has_queue)
    write = awaited(producer.QueueProducer[Value].write, producer.QueueProducer[Value].has_room)
    flush = awaited(producer.QueueProducer[Value].flush)
    wait_for_acknowledgments = awaited(
        producer.QueueProducer[Value].wait_for_acknowledgments, producer.QueueProducer[Value].is_acknowledged
    )
    pop_acknowledged = awaited(producer.QueueProducer[Value].pop_acknowledged)

    async def write_until_accepted(
        self,
        value: Value,
        *,
        lifespan_ns: Nanoseconds = INFINITE_NS,
        timeout_s: float = FOREVER_S,
        retry: Retry = producer.DEFAULT_RETRY,
    ) -> SampleIdentity:
        """Write a sample until its queues accept it, as the blocking wrapper does.

        Raises:
            NoAnswer: the window stayed full, or an attempt was not acknowledged.
            Refused: a queue rejected the last attempt.
            UsageError: the sample is too large.
        """
        pauses, blocking = retry.pauses(), self._blocking
        known: SampleIdentity | None = None
        while True:
            with blocking.awaiting() as attempt:
                write = partial(attempt.write, value, known, lifespan_ns, timeout_s)
                identity = known = await self._call(write, blocking.has_room, timeout_s)
                if not await self._until(attempt.are_acknowledged, timeout_s):
                    raise no_answer(f"the acknowledgment of sample {identity}", timeout_s)
            if not attempt.rejected():
                return identity
            await anyio.sleep(blocking.next_pause(pauses, identity, retry))

    async def write_many(self, values: Iterable[Value], *, timeout_s: float = 10.0) -> list[Value]:
        """Write all values of an iterable, and wait for their acknowledgments; return the rejected values.

        After a cancellation the samples written before may be in the queue. Otherwise as for the blocking wrapper.

        Raises:
            NoAnswer: the window stayed full, or a queue did not acknowledge in time; names the samples.
            UsageError: a sample is too large.
        """
        blocking = self._blocking
        with blocking.awaiting() as many:
            for value in values:
                while True:
                    if not blocking.has_room() and not await self._until(blocking.has_room, timeout_s):
                        raise no_answer(f"room in the window of {blocking.unacknowledged_text()}", timeout_s)
                    async with self._turns.lock:
                        if blocking.has_room():
                            many.write(value)
                            break
            if not await self._until(many.are_acknowledged, timeout_s):
                raise no_answer(f"the acknowledgment of {blocking.unacknowledged_text()}", timeout_s)
            return many.rejected()

    async def write_all(self, values: Iterable[Value] | AsyncIterable[Value]) -> int:
        """Write all values of an iterable, many to a frame; return their number.

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
