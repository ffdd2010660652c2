"""The awaitable replier [QS 8.4]; the blocking one documents its arguments and methods."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Generic, Unpack, overload

from qsctl.client import replier
from qsctl.client._retry import ONCE, Retry
from qsctl.client.aio._awaitable import AwaitableWrapper, awaited, opening
from qsctl.client.codec import Codec
from qsctl.client.consumer import ReceivedSample
from qsctl.client.replier import QueueReplier as Blocking
from qsctl.client.requester import ROOM_TIMEOUT_S, Reply, Request
from qsctl.client.session import FOREVER_S


class QueueReplier(AwaitableWrapper[replier.QueueReplier[Request, Reply]], Generic[Request, Reply]):
    """Receives requests and sends replies; any number of tasks may use it."""

    @overload
    def __init__(
        self: QueueReplier[bytes, bytes],
        topic_name: str,
        subscriber: str,
        domain_id: int = 0,
        *,
        codec: None = None,
        reply_codec: None = None,
        **options: Unpack[replier.ReplierOptions],
    ) -> None: ...

    @overload
    def __init__(
        self: QueueReplier[bytes, Reply],
        topic_name: str,
        subscriber: str,
        domain_id: int = 0,
        *,
        codec: None = None,
        reply_codec: Codec[Reply] | type[Reply],
        **options: Unpack[replier.ReplierOptions],
    ) -> None: ...

    @overload
    def __init__(
        self: QueueReplier[Request, bytes],
        topic_name: str,
        subscriber: str,
        domain_id: int = 0,
        *,
        codec: Codec[Request] | type[Request],
        reply_codec: None = None,
        **options: Unpack[replier.ReplierOptions],
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
        **options: Unpack[replier.ReplierOptions],
    ) -> None: ...

    @opening(replier.QueueReplier)
    def __init__(self, blocking: replier.QueueReplier[Request, Reply]) -> None:
        super().__init__(blocking)

    wait_for_queue = awaited(Blocking[Request, Reply].wait_for_queue, Blocking[Request, Reply].has_queue)
    wait_for_queues = awaited(Blocking[Request, Reply].wait_for_queues, Blocking[Request, Reply].has_queue)
    receive = awaited(Blocking[Request, Reply].receive, Blocking[Request, Reply].has_samples_or_stops)
    reply = awaited(Blocking[Request, Reply].reply, Blocking[Request, Reply].has_room, ROOM_TIMEOUT_S)
    acknowledge = awaited(Blocking[Request, Reply].acknowledge)
    finish = awaited(Blocking[Request, Reply].finish)
    reject = awaited(Blocking[Request, Reply].reject)
    flush = awaited(Blocking[Request, Reply].flush)
    wait_for_acknowledgments = awaited(
        Blocking[Request, Reply].wait_for_acknowledgments,
        Blocking[Request, Reply].is_acknowledged,
    )

    async def process(
        self,
        handler: Callable[[ReceivedSample[Request]], Awaitable[Reply]],
        *,
        retry: Retry = ONCE,
        max_samples: int | None = None,
    ) -> int:
        """Reply to each request with the result of an awaited handler, until `stop`; return the number of replies.

        A request is acknowledged, tried again and rejected as by the blocking wrapper's `process`. When the task is
        cancelled, the request in progress is answered first; one that is to be tried again returns to the queue.

        Args:
            handler: returns the reply to one request.
            retry: attempts and pauses for one request.
            max_samples: number of requests after which to end; None: no bound.
        """
        return await self._process_samples(
            self._blocking, self.receive, partial(self._answer, handler), retry, max_samples
        )

    async def _answer(
        self, handler: Callable[[ReceivedSample[Request]], Awaitable[Reply]], request: ReceivedSample[Request]
    ) -> None:
        await self.reply(request, await handler(request))

    async def __aiter__(self) -> AsyncIterator[ReceivedSample[Request]]:
        """Yield requests as they arrive, until `stop`."""
        while not self.is_stopping:
            for each in await self.receive(1, FOREVER_S):
                yield each
