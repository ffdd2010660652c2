"""The awaitable consumer [QS 8.2]; the blocking one documents its arguments and methods."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final, Generic, Unpack, overload

import anyio

from qsctl.client import consumer
from qsctl.client.aio.awaitable import AwaitableWrapper, awaited, opening
from qsctl.client.codec import Codec, Value
from qsctl.client.retry import ONCE, Retry
from qsctl.client.session import FOREVER_S
from qsctl.core.messages import AckResponse

_LOG: Final = logging.getLogger("qsctl.client")


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
        codec: Codec[Value],
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
        """Yield samples as they come, until `stop`."""
        while not self.is_stopping:
            for each in await self.receive(1, FOREVER_S):
                yield each

    async def batches(self, max_samples: int = 100) -> AsyncIterator[list[consumer.ReceivedSample[Value]]]:
        """Yield what has come, as lists of 1 to `max_samples` samples, until `stop`, as the blocking wrapper does."""
        while not self.is_stopping:
            if batch := await self.receive(max_samples, FOREVER_S):
                yield batch

    async def process(
        self,
        handler: Callable[[consumer.ReceivedSample[Value]], Awaitable[Any]],
        *,
        retry: Retry = ONCE,
        max_samples: int | None = None,
    ) -> int:
        """Await a handler for each sample as it comes, until `stop`; return the number of samples that it processed.

        A sample is acknowledged, tried again and rejected as by the blocking wrapper's `process`. When the task is
        cancelled, the handler in progress is finished and its sample acknowledged first; a sample that is to be tried
        again returns to the queue.

        Args:
            handler: processes one sample.
            retry: attempts and pauses for one sample.
            max_samples: number of samples after which to end; None: no bound.
        """
        count = finished = 0
        while not self.is_stopping and (max_samples is None or finished < max_samples):
            for sample in await self.receive(1, FOREVER_S):
                finished += 1
                count += await self._process(sample, handler, retry)
        return count

    async def _process(
        self,
        sample: consumer.ReceivedSample[Value],
        handler: Callable[[consumer.ReceivedSample[Value]], Awaitable[Any]],
        retry: Retry,
    ) -> bool:
        pauses = retry.pauses()
        response = AckResponse.RETURNED
        try:
            while True:
                try:
                    with anyio.CancelScope(shield=True):
                        await handler(sample)
                except Exception:
                    pause_s = next(pauses, None)
                    if pause_s is None:
                        response = AckResponse.REJECTED
                        _LOG.exception("sample %s is rejected", sample.identity)
                        return False
                    if await self._until(lambda: self.is_stopping, pause_s):
                        return False
                else:
                    response = AckResponse.ACCEPTED
                    return True
        finally:
            with anyio.CancelScope(shield=True):
                await self._call(lambda: self._blocking.acknowledge_once(sample, response))
