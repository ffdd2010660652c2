"""The awaitable consumer [QS 8.2]; the blocking one documents its arguments and methods."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Generic

from qsctl.client import consumer
from qsctl.client.aio.awaitable import AwaitableWrapper, awaited, opening, without_end
from qsctl.client.codec import Value
from qsctl.client.session import FOREVER_S


class QueueConsumer(AwaitableWrapper[consumer.QueueConsumer[Value]], Generic[Value]):
    """Consumes samples from a queue; any number of tasks may use it.

    Acknowledge samples through `acknowledge` of this consumer.
    """

    @opening(consumer.QueueConsumer)
    def __init__(self, blocking: consumer.QueueConsumer[Value]) -> None:
        super().__init__(blocking)

    wait_for_queue = awaited(consumer.QueueConsumer[Value].wait_for_queue, consumer.QueueConsumer[Value].has_queue)
    receive = awaited(consumer.QueueConsumer[Value].receive, consumer.QueueConsumer[Value].has_samples)
    receive_available = awaited(
        consumer.QueueConsumer[Value].receive_available, consumer.QueueConsumer[Value].has_samples_or_end
    )
    acknowledge = awaited(consumer.QueueConsumer[Value].acknowledge)
    acknowledge_all = awaited(consumer.QueueConsumer[Value].acknowledge_all)
    set_availability = awaited(
        consumer.QueueConsumer[Value].set_availability,
        consumer.QueueConsumer[Value].has_feedback,
        consumer.FEEDBACK_TIMEOUT_S,
    )
    flush = awaited(consumer.QueueConsumer[Value].flush)

    def __aiter__(self) -> AsyncIterator[consumer.ReceivedSample[Value]]:
        """Yield samples as they come, without end."""
        return without_end(self.receive, max_samples=256, timeout_s=FOREVER_S)
