"""The turn: what is stepped, written, and may leave when, whatever a driver's disk does."""

from __future__ import annotations

import pytest

from qsctl.core.admin.command import CreateQueue, DeleteQueue, FlushQueue, GetMessages, GetStatus
from qsctl.core.admin.reply import Reply, ReturnCode
from qsctl.core.messages import (
    CommandReply,
    CommandRequest,
    ConsumerJoined,
    ConsumerLeft,
    Delivery,
    WriteAcknowledgment,
)
from qsctl.core.queue.settings import (
    PersistenceKind,
    PersistenceSettings,
    RedeliverySettings,
)
from qsctl.core.ready import SERVICE_STREAM
from qsctl.identity import Guid
from tests.core.turns import (
    ORDERS,
    PERSISTENT,
    READER,
    SUBSCRIBER,
    acknowledged,
    command,
    queue,
    report,
    run,
    sent,
    turn_of,
    write,
    write_all,
)


def test_nothing_leaves_before_the_record_it_rests_on_is_durable() -> None:
    turn = turn_of(queue("orders", persistence=PERSISTENT))
    run(turn, write(1))
    assert sent(turn) == []
    group = turn.to_write()
    assert group is not None
    assert sent(turn) == []
    run(turn, write(1))
    assert sent(turn) == [], "a duplicate is acknowledged with the sample itself at the earliest"
    report(turn, group)
    write_all(turn)
    assert acknowledged(turn) == [("orders", 1), ("orders", 1)]
    assert turn.is_idle


def test_a_stream_does_not_wait_for_another_one() -> None:
    turn = turn_of(queue("orders", persistence=PERSISTENT), queue("bills", persistence=PERSISTENT))
    run(turn, write(1), write(1, "Bills"), write(2))
    run(turn, write(3))
    group = turn.to_write()
    assert group is not None
    turn.durable("P/S/orders", 3)
    assert acknowledged(turn) == [("orders", 1), ("orders", 2)]
    turn.durable("P/S/orders", 4)
    assert acknowledged(turn) == [("orders", 3)]
    turn.durable("P/S/bills", 2)
    assert acknowledged(turn) == [("bills", 1)]
    assert turn.is_idle


OTHER = Guid(b"o" * 16)


@pytest.mark.parametrize("at_once", [False, True], ids=["in a later pass", "with what it would have got"])
@pytest.mark.parametrize("persistence", [PERSISTENT, PersistenceSettings()], ids=["persistent", "volatile"])
def test_what_has_not_left_for_a_consumer_that_is_gone_was_no_attempt(
    persistence: PersistenceSettings, at_once: bool
) -> None:
    turn = turn_of(queue("orders", persistence=persistence))
    run(turn, ConsumerJoined("P/S/orders", READER), write(1))
    group = turn.to_write()
    coming = (write(2), ConsumerLeft("P/S/orders", READER), write(3))
    if at_once:
        run(turn, *coming)
    else:
        for each in coming:
            run(turn, each)
    run(turn, ConsumerJoined("P/S/orders", OTHER))
    if group is not None:
        report(turn, group)
    write_all(turn)
    deliveries = [each for each in sent(turn) if type(each) is Delivery]
    assert [(each.consumer_guid, each.identity.sequence_number, each.attempt) for each in deliveries] == [
        (OTHER, 1, 1), (OTHER, 2, 1), (OTHER, 3, 1),
    ], "with no retries a failed attempt would have been the end of the sample"  # fmt: skip


def test_what_has_left_for_a_consumer_that_vanishes_is_a_failed_attempt() -> None:
    turn = turn_of(queue("orders", redelivery=RedeliverySettings(max_delivery_retries=1)))
    run(turn, ConsumerJoined("P/S/orders", READER), write(1))
    assert [each.attempt for each in sent(turn) if type(each) is Delivery] == [1]
    run(turn, ConsumerLeft("P/S/orders", READER), ConsumerJoined("P/S/orders", OTHER))
    assert [each.attempt for each in sent(turn) if type(each) is Delivery] == [2]


def test_events_leave_with_the_last_of_their_turn_and_in_the_order_of_turns() -> None:
    turn = turn_of(queue("orders", persistence=PERSISTENT), queue("bills", persistence=PERSISTENT))
    run(turn, write(1, "Bills"), now=1)
    run(turn, write(1), now=2)
    assert turn.to_write() is not None
    turn.durable("P/S/orders", 2)
    (released,) = turn.to_send()
    assert (len(released.messages), released.events) == (1, [])
    turn.durable("P/S/bills", 2)
    assert [event.at_ns for released in turn.to_send() for event in released.events] == [1, 1, 2, 2]


def test_a_volatile_queue_waits_for_no_disk() -> None:
    turn = turn_of(queue("orders", persistence=PERSISTENT), queue("news"))
    run(turn, write(1), write(1, "News"))
    assert acknowledged(turn) == [("news", 1)]
    run(turn, write(2, "News"))
    assert acknowledged(turn) == [("news", 2)]
    write_all(turn)
    assert acknowledged(turn) == [("orders", 1)]


def test_a_turn_that_rests_on_nothing_needs_no_writing() -> None:
    turn = turn_of(queue("news"))
    run(turn, ConsumerJoined("P/S/news", READER), write(1, "News"))
    assert turn.to_write() is None
    assert [type(each) for each in sent(turn)] == [WriteAcknowledgment, Delivery]
    assert turn.is_idle


def test_a_sample_read_by_a_command_has_its_payload_put_in_by_the_driver() -> None:
    on_disk = PersistenceSettings(PersistenceKind.PERSISTENT, in_memory_state=False)
    turn = turn_of(queue("orders", persistence=on_disk))
    run(turn, write(1))
    write_all(turn)
    turn.to_send()
    run(turn, command(GetMessages(ORDERS)))
    assert sent(turn) == [], "the driver has not seen it"
    write_all(turn)
    (reply,) = sent(turn)
    assert isinstance(reply, CommandReply)


def test_what_gathers_during_a_sync_is_one_group() -> None:
    turn = turn_of(queue("orders", persistence=PERSISTENT))
    run(turn, write(1))
    first = turn.to_write()
    assert first is not None
    assert turn.to_write() is None
    run(turn, write(2))
    run(turn, write(3))
    report(turn, first)
    second = turn.to_write()
    assert second is not None
    assert [batch.first_index for ready in second.turns for batch in ready.batches] == [3, 4]


@pytest.mark.parametrize("by", ["turns", "records"])
def test_the_service_waits_for_the_disk_when_it_is_too_far_ahead(by: str) -> None:
    bounds = {"turns_ahead_max": 2} if by == "turns" else {"records_ahead_max": 2}
    settings = queue("orders", persistence=PERSISTENT, redelivery=RedeliverySettings(1, 10))
    turn = turn_of(settings, **bounds)
    run(turn, write(1), write(2) if by == "records" else write(1))
    run(turn, write(3))
    run(turn, ConsumerJoined("P/S/orders", READER))
    assert turn.waits_for_disk
    assert turn.next_deadline() is None, "a deadline cannot be met before the disk has caught up"
    turn.receive((write(4),))
    assert not turn.step(5)
    assert not turn.is_idle
    write_all(turn)
    turn.to_send()
    assert not turn.waits_for_disk
    run(turn, now=5)
    write_all(turn)
    turn.to_send()
    assert turn.next_deadline() == (10 if by == "turns" else 15)


def test_a_reply_rests_on_what_its_command_removed() -> None:
    turn = turn_of(queue("orders", persistence=PERSISTENT), queue("bills", persistence=PERSISTENT))
    run(turn, write(1))
    write_all(turn)
    turn.to_send()
    run(turn, command(FlushQueue(ORDERS)), write(1, "Bills"))
    assert turn.to_write() is not None
    turn.durable("P/S/bills", 2)
    assert [type(each) for each in sent(turn)] == [WriteAcknowledgment]
    turn.durable("P/S/orders", 3)
    assert [type(each) for each in sent(turn)] == [CommandReply]


def test_a_status_waits_for_no_disk() -> None:
    turn = turn_of(queue("orders", persistence=PERSISTENT))
    run(turn, write(1), command(GetStatus(ORDERS)))
    assert [type(each) for each in sent(turn)] == [CommandReply]


# Changes of queues.


def test_messages_behind_a_change_of_queues_wait_until_it_is_durable() -> None:
    turn = turn_of(queue("orders", persistence=PERSISTENT))
    run(turn, write(1), command(CreateQueue(SUBSCRIBER, queue("more", persistence=PERSISTENT))), write(1, "More"))
    assert turn.waits_for_disk
    before = turn.to_write()
    if before is not None and not before.changes_queues:
        report(turn, before)
        turn.to_send()
        before = turn.to_write()
    assert before is not None
    assert before.changes_queues
    assert SERVICE_STREAM in [batch.stream for ready in before.turns for batch in ready.batches]
    turn.to_send()
    assert not turn.step(0), "the samples of an earlier run are not in the queue yet"
    assert turn.to_write() is None
    report(turn, before)
    replies = [message for released in turn.to_send() for message in released.messages]
    assert any(isinstance(each, CommandReply) for each in replies)
    assert turn.step(0)
    write_all(turn)
    assert acknowledged(turn) == [("more", 1)]


def test_a_change_of_queues_is_written_once_all_before_it_is_durable() -> None:
    turn = turn_of(queue("orders", persistence=PERSISTENT))
    run(turn, write(1))
    run(turn, command(DeleteQueue(ORDERS)))
    first = turn.to_write()
    assert first is not None
    assert not first.changes_queues
    assert turn.to_write() is None
    report(turn, first)
    turn.to_send()
    second = turn.to_write()
    assert second is not None
    assert second.changes_queues
    report(turn, second)
    assert [type(each) for each in sent(turn)] == [CommandReply]
    assert turn.is_idle


def test_a_queue_created_again_begins_a_stream_of_its_own() -> None:
    turn = turn_of(queue("orders", persistence=PERSISTENT))
    create = command(CreateQueue(SUBSCRIBER, queue("orders", persistence=PERSISTENT)))
    run(turn, write(1), write(2), command(DeleteQueue(ORDERS)), create, write(3))
    for _ in range(4):
        write_all(turn)
        turn.to_send()
        while turn.step(0):
            pass
    assert turn.to_write() is None
    run(turn, write(4))
    assert sent(turn) == []
    group = turn.to_write()
    assert group is not None
    assert [(batch.stream, batch.first_index) for batch in group.turns[0].batches] == [("P/S/orders", 3)]


def test_a_command_that_is_not_admitted_does_not_reach_the_engine() -> None:
    refused: list[CommandRequest] = []

    def admit(request: CommandRequest) -> CommandReply:
        refused.append(request)
        return CommandReply(request.request, "svc", Reply(ReturnCode.ERROR, "no room"))

    turn = turn_of(queue("orders", persistence=PERSISTENT), admit=admit)
    create = command(CreateQueue(SUBSCRIBER, queue("more")))
    run(turn, command(GetStatus(ORDERS)), create)
    assert refused == [create]
    assert [each.reply.text for each in sent(turn) if isinstance(each, CommandReply)][-1] == "no room"
    assert len(turn.engine.hosted.queues()) == 1
