"""The awaitable requester [QS 8.3]; the blocking one documents its arguments and methods."""

from __future__ import annotations

from typing import Generic, Unpack, overload

from qsctl.client import requester
from qsctl.client.aio._awaitable import AwaitableWrapper, awaited, opening
from qsctl.client.codec import Codec
from qsctl.client.requester import QueueRequester as Blocking
from qsctl.client.requester import Reply, Request
from qsctl.identity import Guid


class QueueRequester(AwaitableWrapper[requester.QueueRequester[Request, Reply]], Generic[Request, Reply]):
    """Sends requests and waits for their replies; any number of tasks may have requests in progress."""

    @overload
    def __init__(
        self: QueueRequester[bytes, bytes],
        topic_name: str,
        subscriber: str,
        domain_id: int = 0,
        *,
        codec: None = None,
        reply_codec: None = None,
        **options: Unpack[requester.RequesterOptions],
    ) -> None: ...

    @overload
    def __init__(
        self: QueueRequester[bytes, Reply],
        topic_name: str,
        subscriber: str,
        domain_id: int = 0,
        *,
        codec: None = None,
        reply_codec: Codec[Reply] | type[Reply],
        **options: Unpack[requester.RequesterOptions],
    ) -> None: ...

    @overload
    def __init__(
        self: QueueRequester[Request, bytes],
        topic_name: str,
        subscriber: str,
        domain_id: int = 0,
        *,
        codec: Codec[Request] | type[Request],
        reply_codec: None = None,
        **options: Unpack[requester.RequesterOptions],
    ) -> None: ...

    @overload
    def __init__(
        self,
        topic_name: str,
        subscriber: str,
        domain_id: int = 0,
        *,
        codec: Codec[Request] | type[Request],
        reply_codec: Codec[Reply] | type[Reply],
        **options: Unpack[requester.RequesterOptions],
    ) -> None: ...

    @opening(requester.QueueRequester)
    def __init__(self, blocking: requester.QueueRequester[Request, Reply]) -> None:
        super().__init__(blocking)

    @property
    def source_guid(self) -> Guid:
        """The GUID that replies are addressed to."""
        return self._blocking.source_guid

    wait_for_queue = awaited(Blocking[Request, Reply].wait_for_queue, Blocking[Request, Reply].has_queue)
    wait_for_queues = awaited(Blocking[Request, Reply].wait_for_queues, Blocking[Request, Reply].has_queue)
    send = awaited(
        Blocking[Request, Reply].send,
        Blocking[Request, Reply].has_room,
        requester.ROOM_TIMEOUT_S,
    )
    replies = awaited(Blocking[Request, Reply].replies, Blocking[Request, Reply].has_replies)
    held_replies = awaited(Blocking[Request, Reply].held_replies, Blocking[Request, Reply].has_replies)
    acknowledge = awaited(Blocking[Request, Reply].acknowledge)

    async def request(self, value: Request, timeout_s: float = 10.0) -> Reply:
        """Send a request and wait for its one reply.

        Raises:
            NoAnswer: no reply arrived in time.
            Refused: the queue rejected the request.
        """
        identity = await self.send(value)
        try:
            return self._blocking.only_reply(identity, await self.replies(identity, 1, timeout_s), timeout_s)
        finally:
            self._blocking.state.forget(identity)
