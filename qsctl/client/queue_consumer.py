"""The awaitable consumer (manual, section 8.2); `blocking.QueueConsumer` says what the arguments mean."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Generic

from qsctl.client import blocking
from qsctl.client.awaitable import Awaitable
from qsctl.client.blocking import ReceivedSample
from qsctl.client.session import FOREVER_S, Codec, Value
from qsctl.core.client.consumer import UNLIMITED_THRESHOLD
from qsctl.identity import NIL_GUID, Guid
from qsctl.transport.dds.participant import DomainSettings


class QueueConsumer(Awaitable[blocking.QueueConsumer[Value]], Generic[Value]):
    """Takes samples out of a queue; any number of tasks may share it."""

    def __init__(
        self,
        topic_name: str,
        subscriber: str,
        domain_id: int = 0,
        *,
        codec: Codec[Value] | None = None,
        feedback: bool = False,
        consumer_guid: Guid | None = None,
        source_guid: Guid = NIL_GUID,
        unacked_threshold: int | None = None,
        settings: DomainSettings | None = None,
    ) -> None:
        super().__init__(
            blocking.QueueConsumer(
                topic_name,
                subscriber,
                domain_id,
                codec=codec,
                feedback=feedback,
                consumer_guid=consumer_guid,
                source_guid=source_guid,
                unacked_threshold=unacked_threshold,
                settings=settings,
            )
        )

    async def wait_for_queue(self, timeout_s: float = 10.0) -> None:
        """Wait until the queue is matched (section 2.13).

        Raises:
            NoAnswer: it is not there in time.
        """
        await self._require(self._blocking.has_queue, timeout_s, f"queue {self._blocking.state.queue!r}")

    async def receive(self, max_samples: int = 1, timeout_s: float = 10.0) -> list[ReceivedSample[Value]]:
        """Wait for samples; gives all that are there, at most `max_samples`; an empty list: none came in time.

        Acknowledge them through `acknowledge` of this consumer.
        """
        state = self._blocking.state
        if not await self._until(lambda: state.waiting_count > 0, timeout_s):
            return []
        return await self._now(lambda: self._blocking.receive(max_samples, 0.0))

    def __aiter__(self) -> AsyncIterator[ReceivedSample[Value]]:
        """Samples as they come, for ever."""
        return self._endless()

    async def acknowledge(self, sample: ReceivedSample[Value], accepted: bool = True) -> None:
        """Settle a sample (section 2.5).

        Raises:
            UsageError: it was settled before, or is not this consumer's.
        """
        await self._now(lambda: self._blocking.acknowledge(sample, accepted))

    async def acknowledge_all(self, accepted: bool = True) -> int:
        """Settle every sample received so far; gives their number."""
        return await self._now(lambda: self._blocking.acknowledge_all(accepted))

    async def set_availability(self, reception_enabled: bool, unacked_threshold: int = UNLIMITED_THRESHOLD) -> None:
        """Tell the queue whether to send, and how many samples may be unacknowledged (section 2.10.2).

        Raises:
            UsageError: the consumer was opened without feedback.
            NoAnswer: the queue does not read it.
        """
        await self._require(self._blocking.has_feedback, 10.0, "a queue that takes consumer feedback")
        await self._now(lambda: self._blocking.set_availability(reception_enabled, unacked_threshold))

    async def _endless(self) -> AsyncIterator[ReceivedSample[Value]]:
        while True:
            for sample in await self.receive(max_samples=256, timeout_s=FOREVER_S):
                yield sample
