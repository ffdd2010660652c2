"""The awaitable consumer [QS 8.2]; the blocking one documents its arguments and methods."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from types import TracebackType
from typing import Any, Generic, Unpack, overload

import anyio

from qsctl.client import consumer
from qsctl.client._retry import ONCE, Retry
from qsctl.client.aio._awaitable import AwaitableWrapper, awaited, opening
from qsctl.client.codec import Codec, Value
from qsctl.client.session import FOREVER_S


class QueueConsumer(AwaitableWrapper[consumer.QueueConsumer[Value]], Generic[Value]):
    """Consumes samples from a queue; any number of tasks may use it.

    Acknowledge and reject samples through the methods of this consumer, not those of the sample.
    """

    @overload
    def __init__(
        self: QueueConsumer[bytes],
        topic_name: str,
        subscriber: str,
        domain_id: int = 0,
        *,
        codec: None = None,
        **options: Unpack[consumer.ConsumerOptions],
    ) -> None: ...

    @overload
    def __init__(
        self,
        topic_name: str,
        subscriber: str,
        domain_id: int = 0,
        *,
        codec: Codec[Value] | type[Value],
        **options: Unpack[consumer.ConsumerOptions],
    ) -> None: ...

    @opening(consumer.QueueConsumer)
    def __init__(self, blocking: consumer.QueueConsumer[Value]) -> None:
        super().__init__(blocking)

    wait_for_queue = awaited(consumer.QueueConsumer[Value].wait_for_queue, consumer.QueueConsumer[Value].has_queue)
    receive = awaited(consumer.QueueConsumer[Value].receive, consumer.QueueConsumer[Value].has_samples_or_stops)
    receive_available = awaited(
        consumer.QueueConsumer[Value].receive_available, consumer.QueueConsumer[Value].has_samples_or_end
    )
    acknowledge = awaited(consumer.QueueConsumer[Value].acknowledge)
    reject = awaited(consumer.QueueConsumer[Value].reject)
    acknowledge_all = awaited(consumer.QueueConsumer[Value].acknowledge_all)
    reject_all = awaited(consumer.QueueConsumer[Value].reject_all)
    set_availability = awaited(
        consumer.QueueConsumer[Value].set_availability,
        consumer.QueueConsumer[Value].has_feedback,
        consumer.FEEDBACK_TIMEOUT_S,
    )
    flush = awaited(consumer.QueueConsumer[Value].flush)

    async def __aiter__(self) -> AsyncIterator[consumer.ReceivedSample[Value]]:
        """Yield samples as they arrive, until `stop`."""
        while not self.is_stopping:
            for each in await self.receive(1, FOREVER_S):
                yield each

    async def batches(
        self, size: int = 100, *, max_samples: int | None = None
    ) -> AsyncIterator[list[consumer.ReceivedSample[Value]]]:
        """Yield available samples in lists of 1 to `size`, until `stop`; each list is acknowledged after the loop body.

        After an exception or a cancellation the consumer's `async with` block rejects or returns the current batch, as
        for the blocking wrapper.

        Raises:
            UsageError: `size` is less than 1.
        """
        consumer.check_size(size)
        blocking, finished = self._blocking, 0
        while not self.is_stopping and (max_samples is None or finished < max_samples):
            count = consumer.bounded(size, max_samples, finished)
            receiving = partial(blocking.receive_batch, count, FOREVER_S)
            if batch := await self._call(receiving, blocking.has_samples_or_stops, FOREVER_S):
                finished += len(batch)
                yield batch
                await self._call(partial(blocking.finish_batch, batch))

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None and issubclass(kind, Exception):
            with anyio.CancelScope(shield=True):
                await self._call(partial(self._blocking.leave, kind))
        await super().__aexit__(kind, error, trace)

    async def process(
        self,
        handler: Callable[[consumer.ReceivedSample[Value]], Awaitable[Any]],
        *,
        retry: Retry = ONCE,
        max_samples: int | None = None,
    ) -> int:
        """Await a handler for each arriving sample, until `stop`; return the number of samples processed.

        A sample is acknowledged, tried again and rejected as by the blocking wrapper's `process`. When the task is
        cancelled, the handler in progress is finished and its sample acknowledged first; a sample that is to be tried
        again returns to the queue.

        Args:
            handler: processes one sample.
            retry: attempts and pauses for one sample.
            max_samples: number of samples after which to end; None: no bound.
        """
        return await self._process_samples(self._blocking, self.receive, handler, retry, max_samples)
