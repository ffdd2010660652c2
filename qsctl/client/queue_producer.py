"""The awaitable producer (manual, section 8.1); `blocking.QueueProducer` says what the arguments mean."""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable
from typing import Generic

from qsctl.client import blocking
from qsctl.client.awaitable import Awaitable
from qsctl.client.session import FOREVER_S, Codec, Value
from qsctl.core.client.producer import WINDOW_COUNT, Settled
from qsctl.identity import NIL_GUID, Guid, SampleIdentity
from qsctl.instant import INFINITE_NS, Nanoseconds
from qsctl.transport.dds.participant import DomainSettings


class QueueProducer(Awaitable[blocking.QueueProducer[Value]], Generic[Value]):
    """Writes samples to the queues of a topic; any number of tasks may share it."""

    def __init__(
        self,
        topic_name: str,
        domain_id: int = 0,
        *,
        codec: Codec[Value] | None = None,
        window_count: int = WINDOW_COUNT,
        source_guid: Guid = NIL_GUID,
        settings: DomainSettings | None = None,
    ) -> None:
        super().__init__(
            blocking.QueueProducer(
                topic_name,
                domain_id,
                codec=codec,
                window_count=window_count,
                source_guid=source_guid,
                settings=settings,
            )
        )

    @property
    def matched_queues(self) -> tuple[str, ...]:
        """The queues matched when this was last looked at (section 2.13)."""
        return self._blocking.state.matched_queues

    async def wait_for_queue(self, timeout_s: float = 10.0) -> tuple[str, ...]:
        """Wait until a queue of the topic is matched.

        Raises:
            NoAnswer: none is there in time.
        """
        state = self._blocking.state
        await self._require(lambda: bool(state.matched_queues), timeout_s, f"a queue of topic {state.topic_name!r}")
        return state.matched_queues

    async def write(
        self, value: Value, *, lifespan_ns: Nanoseconds = INFINITE_NS, timeout_s: float = FOREVER_S
    ) -> SampleIdentity:
        """Write a sample; waits while the window is full.

        Raises:
            NoAnswer: the window stayed full.
            UsageError: the sample is too large.
        """
        state = self._blocking.state
        while not state.has_room:
            await self._require(lambda: state.has_room, timeout_s, "room in the window")
        return await self._now(lambda: self._blocking.write(value, lifespan_ns=lifespan_ns))

    async def write_all(self, values: Iterable[Value] | AsyncIterable[Value]) -> int:
        """Write everything that an iterable gives; gives how many. Many samples share a frame.

        Raises:
            UsageError: a sample is too large.
        """
        count = 0
        state = self._blocking.state
        if isinstance(values, AsyncIterable):
            async for value in values:
                await self.write(value)
                count += 1
            return count
        for value in values:
            if not state.has_room:
                await self._until(lambda: state.has_room, FOREVER_S)
            async with self._lock:
                self._blocking.write(value)
            count += 1
        await self.flush()
        return count

    async def flush(self) -> None:
        """Send what was written."""
        await self._now(lambda: None)

    async def wait_for_acknowledgments(self, timeout_s: float = 10.0) -> int:
        """Wait until every sample is settled; gives how many were rejected since the last call.

        Raises:
            NoAnswer: some queue did not answer in time.
        """
        state = self._blocking.state
        await self._require(
            lambda: state.unacknowledged_count == 0,
            timeout_s,
            f"the acknowledgment of {state.unacknowledged_count} samples",
        )
        return await self._now(lambda: self._blocking.wait_for_acknowledgments(0.0))

    async def take_settled(self) -> list[Settled]:
        """The samples settled since the last call, in the order of their answers."""
        return await self._now(self._blocking.take_settled)
