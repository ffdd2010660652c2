"""The awaitable requester [QS 8.3]; the blocking one documents its arguments and methods."""

from __future__ import annotations

from typing import Any

from qsctl.client import requester
from qsctl.client.aio.awaitable import AwaitableWrapper, awaited, opening
from qsctl.identity import Guid


class QueueRequester(AwaitableWrapper[requester.QueueRequester]):
    """Sends requests and waits for their replies; any number of tasks may have requests in progress."""

    @opening(requester.QueueRequester)
    def __init__(self, blocking: requester.QueueRequester) -> None:
        super().__init__(blocking)

    @property
    def source_guid(self) -> Guid:
        """The GUID that replies are addressed to."""
        return self._blocking.source_guid

    wait_for_queues = awaited(requester.QueueRequester.wait_for_queues, requester.QueueRequester.has_queues)
    send = awaited(requester.QueueRequester.send, requester.QueueRequester.has_room, requester.ROOM_TIMEOUT_S)
    replies = awaited(requester.QueueRequester.replies, requester.QueueRequester.has_replies)
    held_replies = awaited(requester.QueueRequester.held_replies, requester.QueueRequester.has_replies)
    acknowledge = awaited(requester.QueueRequester.acknowledge)

    async def request(self, value: Any, timeout_s: float = 10.0) -> Any:
        """Send a request and wait for its one reply.

        Raises:
            NoAnswer: no reply came in time.
            Refused: the queue rejected the request.
        """
        identity = await self.send(value)
        return self._blocking.only_reply(identity, await self.replies(identity, 1, timeout_s), timeout_s)
