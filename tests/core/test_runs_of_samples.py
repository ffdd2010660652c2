"""A queue that holds runs of samples, read and emptied while its samples leave."""

from __future__ import annotations

from qsctl.core.admin.command import FlushQueue, GetMessages
from qsctl.core.admin.reply import MessageData, MessageStatus
from qsctl.core.engine import Journal, ServiceEngine
from qsctl.core.events import SampleEnqueued, SampleReceived, SampleRemoved, SampleSent
from qsctl.core.messages import (
    CommandReply,
    CommandRequest,
    ConsumerJoined,
    RunAcknowledgment,
    WriteRun,
)
from qsctl.core.queue.settings import SharedReaderQueueSettings
from qsctl.core.records import RemovalCause
from qsctl.core.settings import DomainParticipantSettings, ServiceSettings, SharedSubscriberSettings
from qsctl.identity import Guid, SampleIdentity, counted_incarnations
from qsctl.resource import parse_resource

QUEUE = "P/S/orders"
ORDERS = parse_resource("/domain_participant/P/shared_subscriber/S/shared_reader_queue/orders")
WRITER, READER = Guid(b"w" * 16), Guid(b"r" * 16)


def engine() -> ServiceEngine:
    subscriber = SharedSubscriberSettings("S", (), (SharedReaderQueueSettings("orders", "Order"),))
    settings = ServiceSettings("svc", (DomainParticipantSettings("P", 0, (subscriber,)),))
    one = ServiceEngine(settings, started_at=0, draw=counted_incarnations(), journal=Journal.PERSISTENT_ONLY)
    one.hosted.reports_each_step = False
    one.finish_restore(0)
    return one


def run(first: int, count: int) -> WriteRun:
    payloads = tuple(b"%d" % number for number in range(first, first + count))
    return WriteRun("P", "Order", SampleIdentity(WRITER, first), payloads)


def accepted(first: int, count: int) -> RunAcknowledgment:
    return RunAcknowledgment(QUEUE, READER, SampleIdentity(WRITER, first), count)


def test_samples_that_leave_while_a_queue_is_read_are_not_found() -> None:
    one = engine()
    one.receive_all(1, [ConsumerJoined(QUEUE, READER), run(1, 20), run(21, 20)])
    held = one.hosted.by_name[QUEUE].held
    found, later = iter(held), held.newer_than(5)
    assert [next(found).payload, next(later).payload] == [b"1", b"6"]
    one.receive(2, accepted(1, 18))
    assert [each.payload for each in found] == [b"%d" % number for number in range(19, 41)]
    one.receive(3, accepted(19, 20))
    assert [each.payload for each in later] == [b"39", b"40"]


def test_payloads_of_a_run_are_released_as_its_samples_leave() -> None:
    one = engine()
    one.receive_all(1, [ConsumerJoined(QUEUE, READER), run(1, 20)])
    held = one.hosted.by_name[QUEUE].held
    found = held.run_of(SampleIdentity(WRITER, 1))
    assert found is not None
    one.receive(2, accepted(3, 6))
    assert [bool(each) for each in found.payloads] == [True] * 2 + [False] * 6 + [True] * 12
    one.receive(3, accepted(1, 20))
    assert found.payloads == []


def test_a_command_that_reads_in_several_turns_returns_samples_as_they_are_by_then() -> None:
    one = engine()
    one.receive_all(1, [run(1, 3_000), CommandRequest(SampleIdentity(READER, 1), "*", GetMessages(ORDERS))])
    one.advance(1)
    before = bodies(one)
    one.receive(2, ConsumerJoined(QUEUE, READER))
    assert one.hosted.flush(2, ORDERS, list(one.hosted.samples(ORDERS))[-500:]) == 500
    one.take_ready()
    after: list[MessageData] = []
    for now in range(3, 3_000):
        one.advance(now)
        after += bodies(one)
    assert not one.answers.is_answering
    assert [each.position for each in before + after] == list(range(1, 2_501))
    assert all(each.payload == b"%d" % each.position for each in before + after)
    assert {each.status for each in before} == {MessageStatus.UNDELIVERED}
    assert {each.status for each in after} == {MessageStatus.SENT}


def bodies(one: ServiceEngine) -> list[MessageData]:
    """Return the samples in the replies of a turn."""
    replies = [each.reply.body for each in one.take_ready().messages if isinstance(each, CommandReply)]
    return [each for each in replies if isinstance(each, MessageData)]


def test_a_flush_in_several_turns_removes_every_sample_of_a_run() -> None:
    one = engine()
    one.hosted.share_count = 7
    one.receive_all(1, [ConsumerJoined(QUEUE, READER, unacked_threshold=9), run(1, 40)])
    one.receive(2, CommandRequest(SampleIdentity(READER, 1), "*", FlushQueue(ORDERS)))
    one.receive(3, accepted(1, 4))
    now = 4
    while (deadline := one.next_deadline()) is not None and deadline <= now:
        one.advance(now)
        now += 1
    assert not len(one.hosted.by_name[QUEUE].held)
    assert not [*one.hosted.by_name[QUEUE].held]


def test_each_step_of_a_run_is_an_event_of_a_range() -> None:
    one, other = engine(), Guid(b"s" * 16)
    one.receive_all(1, [ConsumerJoined(QUEUE, READER), run(8, 5)])
    one.receive(2, ConsumerJoined(QUEUE, other))
    one.receive(3, run(13, 3))
    one.receive(4, accepted(8, 4))
    one.receive(5, accepted(12, 2))
    first, second, sizes = SampleIdentity(WRITER, 8), SampleIdentity(WRITER, 13), (1, 1, 2, 2, 2)
    assert one.take_ready().events == [
        SampleReceived(1, QUEUE, first, sizes, count=5),
        SampleEnqueued(1, QUEUE, first, sizes, 1, 5),
        SampleSent(1, QUEUE, first, READER, 1, 1, count=5),
        SampleReceived(3, QUEUE, second, 2, count=3),
        SampleEnqueued(3, QUEUE, second, 2, 3, 3),
        SampleSent(3, QUEUE, second, other, 1, 3, count=2, step=2),
        SampleSent(3, QUEUE, SampleIdentity(WRITER, 14), READER, 1, 3, step=2),
        SampleRemoved(4, QUEUE, first, RemovalCause.DELIVERED, (1, 1, 2, 2), 1, 1, 4),
        SampleRemoved(5, QUEUE, SampleIdentity(WRITER, 12), RemovalCause.DELIVERED, (2,), 1, 1),
    ]
