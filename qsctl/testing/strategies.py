"""Strategies of hypothesis: payloads, and schedules of what goes wrong between a queue and its consumers.

A schedule is a list of `Fault`: those that the next deliveries meet. `consumed_under` runs the application's
handler as a consumer under a schedule, so that a property can state what must hold of its effects whatever happens:
that the handler is idempotent, for a queue delivers at least once. Needs hypothesis, which this module alone imports.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from hypothesis import strategies as st

from qsctl.client import Codec, QueueConsumer, RawOctets
from qsctl.client.consumer import ReceivedSample
from qsctl.testing.virtual_service import VirtualService

__all__ = ["Fault", "consumed_under", "faults", "payloads", "schedules", "values"]

Value = TypeVar("Value")

DELIVERIES_MAX = 10_000
"""Deliveries of one `consumed_under`: a queue that redelivers without bound would go on for ever."""


class Fault(enum.Enum):
    """A fault that a delivery of a sample meets."""

    NONE = "none"
    """The handler processes it, and it is acknowledged."""
    REJECTS = "rejects"
    """The consumer rejects it before the handler sees it."""
    STOPS_BEFORE = "stops before"
    """The consumer ends before the handler sees it; another one goes on."""
    STOPS_AFTER = "stops after"
    """The handler processes it, and the consumer ends before it has acknowledged: the sample comes again."""
    IS_SLOW = "is slow"
    """The handler processes it, and the acknowledgment comes after the queue's response timeout."""
    SERVICE_RESTARTS = "service restarts"
    """The handler processes it, and the service starts again before the acknowledgment; for persistent queues."""


def payloads(max_size: int = 4096) -> st.SearchStrategy[bytes]:
    """Generate payloads: empty, short, and around powers of two up to a size in octets."""
    edges = [size for power in range(4, 24) for size in (2**power - 1, 2**power, 2**power + 1) if size <= max_size]
    sized = st.sampled_from(edges or [0]).map(bytes)
    return st.one_of(st.binary(max_size=min(max_size, 64)), sized)


def values(codec: Codec[Value], of: st.SearchStrategy[Value]) -> st.SearchStrategy[bytes]:
    """Generate payloads that a codec makes of values, such as those of `st.builds(Order)`."""
    return of.map(codec.encode)


def faults(*, restarts: bool = False) -> st.SearchStrategy[Fault]:
    """Generate faults; those that restart the service with `restarts` alone, for queues that are not persistent lose
    their samples then.
    """
    return st.sampled_from([each for each in Fault if restarts or each is not Fault.SERVICE_RESTARTS])


def schedules(*, max_size: int = 8, restarts: bool = False) -> st.SearchStrategy[list[Fault]]:
    """Generate schedules of faults, which shrink to fewer and simpler ones."""
    return st.lists(faults(restarts=restarts), max_size=max_size)


def consumed_under(
    service: VirtualService,
    schedule: Sequence[Fault],
    handler: Callable[[ReceivedSample[Any]], object],
    topic_name: str,
    subscriber: str = "SharedSubscriber",
    *,
    codec: Codec[Any] | None = None,
    response_timeout: str = "30s",
) -> int:
    """Consume everything in a queue with a handler, whose deliveries meet the faults of a schedule one after the other.

    Behind the schedule nothing goes wrong. Time passes virtually.

    Args:
        service: the fixture.
        schedule: the faults of the first deliveries.
        handler: the application's: called with a sample; an exception of it passes.
        topic_name: the queue's topic.
        subscriber: the queue's shared subscriber.
        codec: how payloads become the values of the samples; without one they are octets.
        response_timeout: virtual time by which a slow handler is late: that of the queue, or more.

    Returns:
        The number of deliveries.
    """
    planned = iter(schedule)
    count = 0
    consumer = _opened(service, topic_name, subscriber, codec)
    try:
        while count < DELIVERIES_MAX:
            samples = consumer.receive_available(1)
            if not samples:
                return count
            count += 1
            (sample,) = samples
            match next(planned, Fault.NONE):
                case Fault.NONE:
                    handler(sample)
                    sample.acknowledge()
                case Fault.REJECTS:
                    sample.reject()
                case Fault.STOPS_BEFORE:
                    consumer.close()
                    consumer = _opened(service, topic_name, subscriber, codec)
                case Fault.STOPS_AFTER:
                    handler(sample)
                    consumer.close()
                    consumer = _opened(service, topic_name, subscriber, codec)
                case Fault.IS_SLOW:
                    handler(sample)
                    service.advance(response_timeout)
                    sample.acknowledge()
                case Fault.SERVICE_RESTARTS:
                    handler(sample)
                    consumer.close()
                    service.restart()
                    consumer = _opened(service, topic_name, subscriber, codec)
            consumer.flush()
            service.wait_until_processed()
    finally:
        consumer.close()
    raise AssertionError(f"{topic_name}@{subscriber} delivers without end: {count} deliveries")


def _opened(service: VirtualService, topic_name: str, subscriber: str, codec: Codec[Any] | None) -> QueueConsumer[Any]:
    consumer: QueueConsumer[Any] = QueueConsumer(topic_name, subscriber, service.domain_id, codec=codec or RawOctets())
    consumer.wait_for_queue()
    return consumer
