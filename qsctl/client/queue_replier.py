"""The awaitable replier (manual, section 8.4); `blocking_requests.QueueReplier` says what the arguments mean."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Generic

from qsctl.client import blocking_requests
from qsctl.client.awaitable import Awaitable
from qsctl.client.blocking import ReceivedSample
from qsctl.client.session import FOREVER_S, Codec, Value
from qsctl.identity import SampleIdentity
from qsctl.transport.dds.participant import DomainSettings


class QueueReplier(Awaitable[blocking_requests.QueueReplier[Value]], Generic[Value]):
    """Takes requests and sends replies; any number of tasks may share it."""

    def __init__(
        self,
        topic_name: str,
        subscriber: str,
        domain_id: int = 0,
        *,
        reply_topic: str = "",
        codec: Codec[Value] | None = None,
        reply_codec: Codec[Any] | None = None,
        settings: DomainSettings | None = None,
    ) -> None:
        super().__init__(
            blocking_requests.QueueReplier(
                topic_name,
                subscriber,
                domain_id,
                reply_topic=reply_topic,
                codec=codec,
                reply_codec=reply_codec,
                settings=settings,
            )
        )

    async def wait_for_queues(self, timeout_s: float = 10.0) -> None:
        """Wait until the request queue and the reply queue are matched.

        Raises:
            NoAnswer: one is not there in time.
        """
        await self._require(self._blocking.has_queues, timeout_s, "the request queue and the reply queue")

    async def receive(self, max_requests: int = 1, timeout_s: float = 10.0) -> list[ReceivedSample[Value]]:
        """Wait for requests; an empty list: none came in time."""
        waiting = self._blocking.state.consumer
        if not await self._until(lambda: waiting.waiting_count > 0, timeout_s):
            return []
        return await self._now(lambda: self._blocking.receive(max_requests, 0.0))

    def __aiter__(self) -> AsyncIterator[ReceivedSample[Value]]:
        """Requests as they come, for ever."""
        return self._endless()

    async def reply(self, request: ReceivedSample[Value], value: Any, *, finish: bool = True) -> SampleIdentity:
        """Reply to a request; `finish` acknowledges the request too, after its last reply.

        Raises:
            UsageError: the request names no source, or was finished before.
            NoAnswer: the window stays full for ten seconds.
        """
        await self._require(self._blocking.has_room, 10.0, "room in the window")
        return await self._now(lambda: self._blocking.reply(request, value, finish=finish))

    async def reject(self, request: ReceivedSample[Value]) -> None:
        """Send the request to another replier."""
        await self._now(lambda: self._blocking.reject(request))

    async def _endless(self) -> AsyncIterator[ReceivedSample[Value]]:
        while True:
            for request in await self.receive(max_requests=256, timeout_s=FOREVER_S):
                yield request
