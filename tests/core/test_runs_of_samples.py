"""A queue that holds runs of samples, read and emptied while its samples leave."""

from __future__ import annotations

import itertools
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from qsctl.core.admin.command import FlushQueue, GetMessages
from qsctl.core.admin.reply import MessageData, MessageStatus
from qsctl.core.engine import Journal, ServiceEngine
from qsctl.core.events import SampleEnqueued, SampleReceived, SampleRemoved, SampleSent
from qsctl.core.messages import (
    AckResponse,
    CommandReply,
    CommandRequest,
    ConsumerJoined,
    ConsumerLeft,
    Inbound,
    RunAccepted,
    RunAcknowledgment,
    RunDelivery,
    WriteAcknowledgment,
    WriteRun,
)
from qsctl.core.messages import one_by_one as messages_one_by_one
from qsctl.core.payloads import fill_payloads
from qsctl.core.queue._limits import SAMPLE_METADATA_BYTES
from qsctl.core.queue.settings import (
    DistributionSettings,
    PersistenceKind,
    PersistenceSettings,
    ReplacementKind,
    ResourceLimitSettings,
    SharedReaderQueueSettings,
)
from qsctl.core.records import Enqueued, RemovalCause, one_by_one
from qsctl.core.settings import DomainParticipantSettings, ServiceSettings, SharedSubscriberSettings
from qsctl.identity import Guid, SampleIdentity, counted_incarnations
from qsctl.instant import INFINITE_NS
from qsctl.resource import parse_resource
from tests.example_counts import examples

QUEUE = "P/S/orders"
ORDERS = parse_resource("/domain_participant/P/shared_subscriber/S/shared_reader_queue/orders")
WRITER, READER = Guid(b"w" * 16), Guid(b"r" * 16)


def engine(**given: Any) -> ServiceEngine:
    subscriber = SharedSubscriberSettings("S", (), (SharedReaderQueueSettings("orders", "Order", **given),))
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
        SampleRemoved(5, QUEUE, SampleIdentity(WRITER, 12), RemovalCause.DELIVERED, 2, 1, 1),
    ]


# Frames that a rule divides.


def test_a_frame_enters_a_queue_with_less_room_as_far_as_it_fits() -> None:
    one = engine(limits=ResourceLimitSettings(max_count=10, replacement=ReplacementKind.REJECT_WITHOUT_REPLACEMENT))
    one.receive(1, run(1, 64))
    accepted_run, *refused = one.take_ready().messages
    assert accepted_run == RunAccepted(QUEUE, SampleIdentity(WRITER, 1), 10)
    assert [(each.identity.sequence_number, each.response) for each in refused] == [
        (number, AckResponse.REJECTED) for number in range(11, 65)
    ]
    assert [entry.position for entry in one.hosted.by_name[QUEUE].held.entries_behind(0)] == [1]


def test_samples_beyond_the_room_wait_outside_and_enter_in_order() -> None:
    one = engine(limits=ResourceLimitSettings(max_count=10, replacement=ReplacementKind.WAIT_WITHOUT_REPLACEMENT))
    one.receive_all(1, [run(1, 14), ConsumerJoined(QUEUE, READER)])
    assert [type(each) for each in one.take_ready().messages] == [RunAccepted, RunDelivery]
    one.receive(2, accepted(1, 10))
    accepted_later = [each for each in one.take_ready().messages if isinstance(each, WriteAcknowledgment)]
    assert [each.identity.sequence_number for each in accepted_later] == [11, 12, 13, 14]


def test_known_samples_divide_a_frame() -> None:
    one = engine()
    one.receive_all(1, [run(20, 1), run(30, 10), run(1, 64)])
    entries = one.hosted.by_name[QUEUE].held.entries_behind(0)
    assert [(entry.position, getattr(entry, "count", 1)) for entry in entries] == [
        (1, 1),
        (2, 10),
        (12, 19),
        (31, 9),
        (40, 25),
    ]


def test_what_several_deliveries_free_together_is_sent_as_one() -> None:
    """Otherwise a delivery that the end of a run divided would be two for ever, and those be divided again."""
    one = engine(distribution=DistributionSettings(unacked_threshold=29))
    one.receive_all(1, [run(1, 40), run(41, 100), ConsumerJoined(QUEUE, READER)])
    one.receive_all(2, [accepted(1, 20)])  # 31 to 50: of two runs
    one.take_ready()
    one.receive(3, accepted(21, 30))
    (sent,) = (each for each in one.take_ready().messages if isinstance(each, RunDelivery))
    assert (sent.identity.sequence_number, len(sent.payloads)) == (51, 30)


def test_a_run_is_on_disk_as_a_whole_or_not_at_all() -> None:
    one = engine(
        persistence=PersistenceSettings(PersistenceKind.PERSISTENT), limits=ResourceLimitSettings(max_count=100)
    )
    sizes = [300, 257, 256, 256, 0, 300]
    one.receive(1, WriteRun("P", "Order", SampleIdentity(WRITER, 1), tuple(bytes(size) for size in sizes)))
    one.take_ready()
    queue = one.hosted.by_name[QUEUE]
    assert [entry.position for entry in queue.held.entries_behind(0)] == [1, 3, 6]
    assert queue.limits.in_memory_bytes == 512 + len(sizes) * SAMPLE_METADATA_BYTES
    assert [(each.size_bytes, each.payload is None) for each in queue.held] == [(each, each > 256) for each in sizes]


def test_replies_to_one_request_are_a_run_for_its_requester() -> None:
    one = engine(reply_type="Reply", reply_topic="Replies")
    name, requester = "P/S/ordersReply", Guid(b"q" * 16)
    one.receive(1, ConsumerJoined(name, READER, source_guid=requester))
    frame = structs.replace(run(1, 20), topic_name="Replies", related_source_guid=requester)
    one.receive(1, structs.replace(frame, related_source_guid=Guid(b"a" * 16)))
    one.receive(1, structs.replace(frame, identity=SampleIdentity(WRITER, 21)))
    sent = [each for each in one.take_ready().messages if isinstance(each, RunDelivery)]
    assert [(each.consumer_guid, each.identity.sequence_number, len(each.payloads)) for each in sent] == [
        (READER, 21, 20)
    ]
    one.receive(2, structs.replace(accepted(21, 20), queue=name))
    assert len(one.hosted.by_name[name].held) == 20
    one.receive(3, ConsumerJoined(name, Guid(b"b" * 16), source_guid=Guid(b"a" * 16)))
    assert [len(each.payloads) for each in one.take_ready().messages if isinstance(each, RunDelivery)] == [20]


def several(size: int) -> st.SearchStrategy[list[int]]:
    """Return consecutive samples of one size."""
    return st.integers(1, 30).map(lambda count: [size] * count)


SETTINGS = st.fixed_dictionaries(
    {
        "limits": st.builds(
            ResourceLimitSettings,
            max_count=st.sampled_from([-1, 30, 100]),
            max_in_memory_bytes=st.sampled_from([-1, 1, 12_000, 40_000]),
            max_sample_bytes=st.sampled_from([-1, 100]),
            replacement=st.sampled_from(list(ReplacementKind)),
            high_watermark_percent=st.sampled_from([None, 50, 90]),
            low_watermark_percent=st.sampled_from([None, 20]),
        ),
        "persistence": st.sampled_from(
            [PersistenceSettings(kind, in_memory_state=state) for kind in PersistenceKind for state in (True, False)]
        ),
        "lifespan_ns": st.sampled_from([INFINITE_NS, INFINITE_NS, 5]),
    }
)
FRAMES = st.tuples(
    st.integers(-20, 2), st.lists(st.sampled_from([0, 3, 3, 40, 256, 300]).flatmap(several), min_size=1, max_size=6)
)


@settings(max_examples=examples(40), deadline=None)
@given(
    configured=SETTINGS,
    steps=st.lists(st.one_of(FRAMES, st.tuples(st.integers(1, 60), st.integers(1, 40)), st.booleans()), max_size=10),
)
def test_frames_enter_and_leave_as_their_samples_do(configured: dict[str, Any], steps: list[Any]) -> None:
    """Sizes, limits, watermarks, payloads on disk and expiry divide frames; the effect is that of single samples."""
    by_runs, singly = engine(**configured), engine(**configured)
    stored: dict[int, bytes] = {}
    next_number = 1
    for now, step in enumerate(steps, 1):
        message: Inbound
        if isinstance(step, bool):
            message = ConsumerJoined(QUEUE, READER, unacked_threshold=20) if step else ConsumerLeft(QUEUE, READER)
        elif isinstance(step[1], list):
            payloads = tuple(b"x" * size for size in itertools.chain.from_iterable(step[1]))
            first = max(1, next_number + step[0])
            message = WriteRun("P", "Order", SampleIdentity(WRITER, first), payloads)
            next_number = max(next_number, first + len(payloads))
        else:
            message = accepted(max(1, next_number - step[0]), step[1])
        by_runs.receive(now, message)
        singly.receive_all(now, message.singles() if isinstance(message, WriteRun | RunAcknowledgment) else [message])
        for one in (by_runs, singly):
            one.advance(now)
        readies = [one.take_ready() for one in (by_runs, singly)]
        messages = []
        for ready in readies:
            for record in itertools.chain.from_iterable(one_by_one(batch.records) for batch in ready.batches):
                if isinstance(record, Enqueued):
                    stored[record.position] = record.payload
            fill_payloads(ready, lambda _, positions: [stored[each] for each in positions])
            messages.append([structs.replace(each, rests_on=0) for each in messages_one_by_one(ready.messages)])
        assert sorted(messages[0], key=repr) == sorted(messages[1], key=repr)
        queues = [one.hosted.by_name[QUEUE] for one in (by_runs, singly)]
        assert list(queues[0].held) == list(queues[1].held)
        limits = [queue.limits for queue in queues]
        assert (limits[0].count, limits[0].in_memory_bytes) == (limits[1].count, limits[1].in_memory_bytes)
        assert by_runs.hosted.status(now, ORDERS) == singly.hosted.status(now, ORDERS)
        assert sorted(queues[0].held.sizes_bytes()) == sorted(each.size_bytes for each in queues[1].held)
