"""Usual steps that are counted: the same records, messages and statistics as when each is an event."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from qsctl.core.engine import Journal, ServiceEngine
from qsctl.core.events import Event, SampleEnqueued, SampleReceived, SampleRemoved, SampleSent, SamplesPassed
from qsctl.core.messages import Acknowledgment, AckResponse, ConsumerJoined, ConsumerLeft, Inbound, Write
from qsctl.core.queue.settings import (
    RedeliverySettings,
    ResourceLimitSettings,
    SharedReaderQueueSettings,
    StatisticsSettings,
)
from qsctl.core.records import RemovalCause
from qsctl.core.settings import DomainParticipantSettings, ServiceSettings, SharedSubscriberSettings
from qsctl.identity import Guid, SampleIdentity, counted_incarnations
from qsctl.resource import parse_resource

ORDERS = parse_resource("/domain_participant/P/shared_subscriber/S/shared_reader_queue/orders")
CONSUMERS = [Guid(bytes([number]) * 16) for number in (1, 2)]
WRITER = Guid(b"w" * 16)
QUEUE = "P/S/orders"

numbers = st.integers(1, 12)
consumers = st.sampled_from(CONSUMERS)
messages: st.SearchStrategy[Inbound] = st.one_of(
    st.builds(lambda number: Write("P", "Order", SampleIdentity(WRITER, number), b"x"), numbers),
    st.builds(
        lambda guid, number, response: Acknowledgment(QUEUE, guid, SampleIdentity(WRITER, number), response),
        consumers,
        numbers,
        st.sampled_from(AckResponse),
    ),
    st.builds(lambda guid: ConsumerJoined(QUEUE, guid), consumers),
    st.builds(lambda guid, hands_back: ConsumerLeft(QUEUE, guid, hands_back), consumers, st.booleans()),
    st.just(Write("P", "Nothing", SampleIdentity(WRITER, 1), b"x")),
    st.just(Acknowledgment("P/S/nothing", CONSUMERS[0], SampleIdentity(WRITER, 1))),
)
turns = st.lists(
    st.tuples(st.integers(0, 40), st.lists(messages, max_size=12), st.booleans(), st.booleans()), max_size=12
)
"""A turn: how much later it is, what comes, whether the status is read before it is over, and whether it ends."""


def service(**given_settings: Any) -> ServiceEngine:
    queue = SharedReaderQueueSettings("orders", "Order", statistics=StatisticsSettings(25), **given_settings)
    subscriber = SharedSubscriberSettings("S", (), (queue,))
    settings = ServiceSettings("svc", (DomainParticipantSettings("P", 0, (subscriber,)),))
    return ServiceEngine(settings, started_at=0, draw=counted_incarnations(), journal=Journal.EVERYTHING)


def in_numbers(events: list[Event]) -> Counter[str]:
    """How many steps of each kind there were, reported or counted."""
    counts: Counter[str] = Counter()
    for event in events:
        if isinstance(event, SamplesPassed):
            counts["received"] += event.enqueued_count
            counts["enqueued"] += event.enqueued_count
            counts["sent"] += event.sent_count
            counts["removed"] += event.delivered_count
        else:
            counts[str(event.__struct_config__.tag)] += 1
    return +counts


def is_usual(event: Event, before: Event | None) -> bool:
    """Whether it is what `SamplesPassed` counts; one that was enqueued as it came follows at once on its receipt."""
    match event:
        case SampleEnqueued():
            return isinstance(before, SampleReceived) and before.identity == event.identity
        case SampleSent():
            return event.attempt == 1 and not event.redelivered and event.at_ns == event.enqueued_at_ns
        case SampleRemoved():
            return event.cause is RemovalCause.DELIVERED
        case _:
            return False


@given(turns, st.sampled_from([-1, 3]), st.integers(0, 2))
def test_the_same_happens_and_is_counted(steps: Any, max_count: int, retries: int) -> None:
    options = {
        "limits": ResourceLimitSettings(max_count=max_count),
        "redelivery": RedeliverySettings(retries, 60),
        "lifespan_ns": 150,
    }
    reported, counted = service(**options), service(**options)
    counted.hosted.reports_each_step = False
    now = 0
    for later_ns, inbox, reads_status, ends in steps:
        now += later_ns
        for message in inbox:
            reported.receive(now, message)
        counted.receive_all(now, inbox)
        if reads_status:
            assert counted.hosted.status(now, ORDERS) == reported.hosted.status(now, ORDERS)
        reported.advance(now)
        counted.advance(now)
        if ends:
            one, other = reported.take_ready(), counted.take_ready()
            assert (other.batches, other.messages) == (one.batches, one.messages)
            assert in_numbers(other.events) == in_numbers(one.events)
            assert not any(map(is_usual, other.events, [None, *other.events]))
            usual_count = sum(map(is_usual, one.events, [None, *one.events]))
            counted_events = [each for each in other.events if isinstance(each, SamplesPassed)]
            assert usual_count == sum(
                each.enqueued_count + each.sent_count + each.delivered_count for each in counted_events
            )
    assert counted.refused_message_count == reported.refused_message_count
    assert counted.hosted.status(now, ORDERS) == reported.hosted.status(now, ORDERS)
