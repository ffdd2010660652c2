"""The awaitable replier [QS 8.4]; the blocking one documents its arguments and methods."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Generic

from qsctl.client import replier
from qsctl.client.aio.awaitable import AwaitableWrapper, awaited, opening, without_end
from qsctl.client.codec import Value
from qsctl.client.consumer import ReceivedSample
from qsctl.client.requester import ROOM_TIMEOUT_S
from qsctl.client.session import FOREVER_S


class QueueReplier(AwaitableWrapper[replier.QueueReplier[Value]], Generic[Value]):
    """Receives requests and sends replies; any number of tasks may use it."""

    @opening(replier.QueueReplier)
    def __init__(self, blocking: replier.QueueReplier[Value]) -> None:
        super().__init__(blocking)

    wait_for_queues = awaited(replier.QueueReplier[Value].wait_for_queues, replier.QueueReplier[Value].has_queues)
    receive = awaited(replier.QueueReplier[Value].receive, replier.QueueReplier[Value].has_requests)
    reply = awaited(replier.QueueReplier[Value].reply, replier.QueueReplier[Value].has_room, ROOM_TIMEOUT_S)
    finish = awaited(replier.QueueReplier[Value].finish)
    reject = awaited(replier.QueueReplier[Value].reject)
    wait_for_acknowledgments = awaited(
        replier.QueueReplier[Value].wait_for_acknowledgments, replier.QueueReplier[Value].is_acknowledged
    )

    def __aiter__(self) -> AsyncIterator[ReceivedSample[Value]]:
        """Yield requests as they come, without end."""
        return without_end(self.receive, max_requests=256, timeout_s=FOREVER_S)
