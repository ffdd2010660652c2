"""The awaitable requester (manual, section 8.3); `blocking_requests.QueueRequester` says what the arguments mean."""

from __future__ import annotations

from typing import Any

from qsctl.client import blocking_requests
from qsctl.client.awaitable import Awaitable
from qsctl.client.session import Codec
from qsctl.errors import NoAnswer
from qsctl.identity import Guid, SampleIdentity
from qsctl.transport.dds.participant import DomainSettings


class QueueRequester(Awaitable[blocking_requests.QueueRequester]):
    """Sends requests and waits for their replies; any number of tasks may have requests under way."""

    def __init__(
        self,
        topic_name: str,
        subscriber: str,
        domain_id: int = 0,
        *,
        reply_topic: str = "",
        codec: Codec[Any] | None = None,
        reply_codec: Codec[Any] | None = None,
        source_guid: Guid | None = None,
        settings: DomainSettings | None = None,
    ) -> None:
        super().__init__(
            blocking_requests.QueueRequester(
                topic_name,
                subscriber,
                domain_id,
                reply_topic=reply_topic,
                codec=codec,
                reply_codec=reply_codec,
                source_guid=source_guid,
                settings=settings,
            )
        )

    async def wait_for_queues(self, timeout_s: float = 10.0) -> None:
        """Wait until the request queue and the reply queue are matched.

        Raises:
            NoAnswer: one is not there in time.
        """
        await self._require(self._blocking.has_queues, timeout_s, "the request queue and the reply queue")

    async def send(self, value: Any) -> SampleIdentity:
        """Send a request and do not wait for replies.

        Raises:
            NoAnswer: the window stays full for ten seconds.
            UsageError: the request is too large.
        """
        await self._require(self._blocking.has_room, 10.0, "room in the window")
        return await self._now(lambda: self._blocking.send(value))

    async def replies(self, request: SampleIdentity, count: int = 1, timeout_s: float = 10.0) -> list[Any]:
        """Wait for `count` replies to a request; fewer when the time is over.

        Raises:
            Refused: the request was rejected by its queue.
        """
        found: list[Any] = []

        def is_done() -> bool:
            found.extend(self._blocking.take_replies(request))
            return len(found) >= count

        await self._until(is_done, timeout_s)
        await self._now(lambda: None)
        return found

    async def request(self, value: Any, timeout_s: float = 10.0) -> Any:
        """Send a request and wait for its one reply.

        Raises:
            NoAnswer: no reply came in time.
            Refused: the queue rejected the request.
        """
        identity = await self.send(value)
        found = await self.replies(identity, 1, timeout_s)
        await self._now(lambda: self._blocking.state.forget(identity))
        if not found:
            raise NoAnswer(
                f"no reply to request {identity} came in {timeout_s:g} s", remedy="Check that a replier is running."
            )
        return found[0]
