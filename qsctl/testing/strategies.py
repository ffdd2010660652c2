"""Hypothesis strategies: payloads, and schedules of faults between a queue and its consumers.

A schedule is a list of `Fault`, one for each of the next deliveries. `consumed_under` runs the application's handler as
a consumer under a schedule, so that a property can state invariants of its effects under any faults: above all that the
handler is idempotent, since a queue delivers at least once. This module alone imports hypothesis.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from hypothesis import strategies as st

from qsctl.client import Codec, QueueConsumer, RawOctets
from qsctl.client.consumer import ReceivedSample
from qsctl.testing._virtual_service import VirtualService

__all__ = ["Fault", "consumed_under", "faults", "payloads", "schedules", "values"]

Value = TypeVar("Value")

DELIVERIES_MAX = 10_000
"""Largest number of deliveries in one `consumed_under`, since a queue may redeliver without bound."""


class Fault(enum.Enum):
    """A fault of one delivery."""

    NONE = "none"
    """The handler processes the sample, which is acknowledged."""
    REJECTS = "rejects"
    """The consumer rejects the sample before the handler is called."""
    STOPS_BEFORE = "stops before"
    """The consumer ends before the handler is called; another consumer continues."""
    STOPS_AFTER = "stops after"
    """The handler processes the sample, and the consumer ends before it acknowledges: the sample is redelivered."""
    IS_SLOW = "is slow"
    """The handler processes the sample, and the acknowledgment arrives after the queue's response timeout."""
    SERVICE_RESTARTS = "service restarts"
    """The handler processes the sample, and the service restarts before the acknowledgment; for persistent queues."""


def payloads(max_size: int = 4096) -> st.SearchStrategy[bytes]:
    """Generate payloads: empty, short, and of sizes around powers of two, up to `max_size` octets."""
    edges = [size for power in range(4, 24) for size in (2**power - 1, 2**power, 2**power + 1) if size <= max_size]
    sized = st.sampled_from(edges or [0]).map(bytes)
    return st.one_of(st.binary(max_size=min(max_size, 64)), sized)


def values(codec: Codec[Value], of: st.SearchStrategy[Value]) -> st.SearchStrategy[bytes]:
    """Generate payloads by encoding generated values, such as those of `st.builds(Order)`."""
    return of.map(codec.encode)


def faults(*, restarts: bool = False) -> st.SearchStrategy[Fault]:
    """Generate faults; restarts of the service only with `restarts`, since queues that are not persistent lose samples
    then.
    """
    return st.sampled_from([each for each in Fault if restarts or each is not Fault.SERVICE_RESTARTS])


def schedules(*, max_size: int = 8, restarts: bool = False) -> st.SearchStrategy[list[Fault]]:
    """Generate schedules of faults; Hypothesis shrinks them to shorter and simpler ones."""
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
    """Consume every sample of a queue with a handler; the faults of a schedule apply to the first deliveries in order.

    After the schedule no fault occurs. Only virtual time passes.

    Args:
        service: the value of the fixture.
        schedule: the faults of the first deliveries.
        handler: the application's handler, called with a sample; its exceptions propagate.
        topic_name: topic of the queue.
        subscriber: shared subscriber of the queue.
        codec: decodes payloads to the values of the samples; None: the values are the octets.
        response_timeout: virtual delay of a late acknowledgment: at least the queue's response timeout.

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
