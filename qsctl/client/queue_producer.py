"""The awaitable producer (manual, section 8.1); `blocking.QueueProducer` says what the arguments mean."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterable, Callable, Iterable
from inspect import isawaitable
from typing import Generic, TypeAlias

from qsctl.client import blocking
from qsctl.client.awaitable import Awaitable
from qsctl.client.session import FOREVER_S, Codec, Value, no_answer
from qsctl.core.client.producer import WINDOW_COUNT, Settled
from qsctl.identity import NIL_GUID, NIL_IDENTITY, Guid, SampleIdentity
from qsctl.instant import INFINITE_NS, Nanoseconds
from qsctl.transport.dds.participant import DomainSettings

AcknowledgmentListener: TypeAlias = Callable[[blocking.ApplicationAcknowledgment], object]
"""A function, or one that is awaited."""


class QueueProducer(Awaitable[blocking.QueueProducer[Value]], Generic[Value]):
    """Writes samples to the queues of a topic; any number of tasks may share it.

    `on_application_acknowledgment` is called, and awaited where it is a coroutine function, in the task whose call took
    notice of the answer, before that call returns.
    """

    def __init__(
        self,
        topic_name: str,
        domain_id: int = 0,
        *,
        codec: Codec[Value] | None = None,
        window_count: int = WINDOW_COUNT,
        source_guid: Guid = NIL_GUID,
        writer_guid: Guid | None = None,
        on_application_acknowledgment: AcknowledgmentListener | None = None,
        settings: DomainSettings | None = None,
    ) -> None:
        self._listener = on_application_acknowledgment
        self._heard: deque[blocking.ApplicationAcknowledgment] = deque()
        super().__init__(
            blocking.QueueProducer(
                topic_name,
                domain_id,
                codec=codec,
                window_count=window_count,
                source_guid=source_guid,
                writer_guid=writer_guid,
                on_application_acknowledgment=None if self._listener is None else self._heard.append,
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

    async def _after_turn(self) -> None:
        while self._heard and self._listener is not None:
            answer = self._listener(self._heard.popleft())
            if isawaitable(answer):
                await answer

    async def write(
        self,
        value: Value,
        *,
        identity: SampleIdentity | None = None,
        related_identity: SampleIdentity = NIL_IDENTITY,
        related_source_guid: Guid = NIL_GUID,
        lifespan_ns: Nanoseconds = INFINITE_NS,
        timeout_s: float = FOREVER_S,
    ) -> SampleIdentity:
        """Write a sample; waits while the window is full. `blocking.QueueProducer.write` says what may be given.

        Raises:
            NoAnswer: the window stayed full.
            UsageError: the sample is too large, or the identity cannot be its.
        """
        state = self._blocking.state
        while not state.has_room:
            what = f"room in the window of {self._blocking.unacknowledged_text()}"
            await self._require(lambda: state.has_room, timeout_s, what)
        return await self._now(
            lambda: self._blocking.write(
                value,
                identity=identity,
                related_identity=related_identity,
                related_source_guid=related_source_guid,
                lifespan_ns=lifespan_ns,
            )
        )

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
        """Wait until every sample is acknowledged; gives how many were rejected since the last call.

        Raises:
            NoAnswer: some queue did not answer in time; names the samples.
        """
        state = self._blocking.state
        if not await self._until(lambda: state.unacknowledged_count == 0, timeout_s):
            raise no_answer(f"the acknowledgment of {self._blocking.unacknowledged_text()}", timeout_s)
        return await self._now(lambda: self._blocking.wait_for_acknowledgments(0.0))

    async def take_settled(self) -> list[Settled]:
        """The samples settled since the last call, in the order of their answers."""
        return await self._now(self._blocking.take_settled)
