"""A long answer is given a share at a time, and the service goes on meanwhile."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from qsctl.core.admin._reading import LOOKED_AT_AT_ONCE, REPLIES_AT_ONCE
from qsctl.core.admin.command import DeleteQueue, FlushQueue, GetMessages
from qsctl.core.admin.reply import MessageData, ReturnCode
from qsctl.core.engine import Journal, ServiceEngine
from qsctl.core.messages import CommandReply, CommandRequest, Write, WriteAcknowledgment
from qsctl.core.queue.settings import SharedReaderQueueSettings
from qsctl.core.settings import DomainParticipantSettings, ServiceSettings, SharedSubscriberSettings
from qsctl.identity import Guid, SampleIdentity, counted_incarnations
from qsctl.resource import parse_resource

ORDERS = parse_resource("/domain_participant/P/shared_subscriber/S/shared_reader_queue/orders")
WRITER, ASKER = Guid(b"w" * 16), Guid(b"a" * 16)


def engine_with(count: int) -> ServiceEngine:
    queues = (SharedReaderQueueSettings("orders", "Orders"),)
    settings = ServiceSettings(
        "svc", (DomainParticipantSettings("P", 0, (SharedSubscriberSettings("S", (), queues),)),)
    )
    engine = ServiceEngine(settings, started_at=0, draw=counted_incarnations(), journal=Journal.PERSISTENT_ONLY)
    engine.finish_restore(0)
    write(engine, range(1, count + 1))
    engine.take_ready()
    return engine


def write(engine: ServiceEngine, numbers: Sequence[int]) -> None:
    engine.receive_all(1, [Write("P", "Orders", SampleIdentity(WRITER, number), b"x") for number in numbers])


def ask(engine: ServiceEngine, command: GetMessages, number: int = 1) -> None:
    engine.receive(1, CommandRequest(SampleIdentity(ASKER, number), "svc", command))


def flush(engine: ServiceEngine, numbers: Sequence[int]) -> None:
    for number in numbers:
        selector = (
            f"@original_sample_identity.writer_guid.value = &hex({WRITER.hex()}) AND "
            f"@original_sample_identity.sequence_number = (0,{number})"
        )
        engine.receive(1, CommandRequest(SampleIdentity(ASKER, 10_000), "svc", FlushQueue(ORDERS, selector)))


def turn(engine: ServiceEngine, number: int = 1) -> list[CommandReply]:
    """What a turn of a driver gives to one request."""
    engine.advance(1)
    replies = [each for each in engine.take_ready().messages if isinstance(each, CommandReply)]
    return [each for each in replies if each.request == SampleIdentity(ASKER, number)]


def all_turns(engine: ServiceEngine) -> list[list[CommandReply]]:
    turns = [turn(engine)]
    while engine.answers.is_answering:
        turns.append(turn(engine))
    return turns


def numbers(replies: Sequence[CommandReply]) -> list[int]:
    return [each.reply.body.identity.sequence_number for each in replies if isinstance(each.reply.body, MessageData)]


def is_finished_once(replies: Sequence[CommandReply]) -> bool:
    return [each.intermediate for each in replies] == [True] * (len(replies) - 1) + [False]


def test_a_large_queue_is_given_over_many_turns_in_order() -> None:
    engine = engine_with(500)
    ask(engine, GetMessages(ORDERS))
    assert engine.answers.is_answering
    turns = all_turns(engine)
    replies = [each for share in turns for each in share]
    assert numbers(replies) == list(range(1, 501))
    assert is_finished_once(replies)
    # The first turn carries the command's own share and the next one.
    assert max(map(len, turns)) <= 2 * REPLIES_AT_ONCE + 1
    assert engine.next_deadline() is None


def test_others_are_served_between_the_shares() -> None:
    engine = engine_with(500)
    ask(engine, GetMessages(ORDERS))
    turn(engine)
    assert engine.next_deadline() == 1, "the next share is due at once"
    write(engine, [501])
    ready = engine.take_ready()
    assert [type(each) for each in ready.messages] == [WriteAcknowledgment]
    assert engine.answers.is_answering


def test_a_selector_that_picks_few_of_many_does_not_hold_a_turn_up() -> None:
    engine = engine_with(3 * LOOKED_AT_AT_ONCE)
    ask(engine, GetMessages(ORDERS, "@sample_queue_status = SENT_MESSAGE_STATUS"))
    turns = all_turns(engine)
    assert len(turns) >= 2
    (last,) = [each for share in turns for each in share]
    assert (last.reply.text, last.intermediate) == ("no other sample of queue P/S/orders is selected", False)


def test_no_more_are_given_than_wanted_and_no_turn_is_wasted() -> None:
    engine = engine_with(500)
    ask(engine, GetMessages(ORDERS, "", 3))
    replies = turn(engine)
    assert numbers(replies) == [1, 2, 3]
    assert is_finished_once(replies)
    assert not engine.answers.is_answering


def test_two_long_answers_take_turns() -> None:
    engine = engine_with(200)
    ask(engine, GetMessages(ORDERS), 1)
    ask(engine, GetMessages(ORDERS), 2)
    replies: list[CommandReply] = []
    while engine.answers.is_answering:
        engine.advance(1)
        replies += [each for each in engine.take_ready().messages if isinstance(each, CommandReply)]
    for number in (1, 2):
        of_one = [each for each in replies if each.request == SampleIdentity(ASKER, number)]
        assert numbers(of_one) == list(range(1, 201))
        assert is_finished_once(of_one)
    first_ends = max(at for at, each in enumerate(replies) if each.request.sequence_number == 1)
    second_begins = min(at for at, each in enumerate(replies) if each.request.sequence_number == 2)
    assert second_begins < first_ends


def test_nothing_is_read_while_replies_wait_for_room() -> None:
    engine = engine_with(500)
    ask(engine, GetMessages(ORDERS))
    replies = turn(engine)
    engine.answers.reads_on = False
    assert turn(engine) == []
    assert engine.next_deadline() is None
    assert engine.answers.is_answering
    engine.answers.reads_on = True
    assert engine.next_deadline() == 1
    while engine.answers.is_answering:
        replies += turn(engine)
    assert numbers(replies) == list(range(1, 501))


def test_a_queue_deleted_meanwhile_ends_the_answer() -> None:
    engine = engine_with(500)
    ask(engine, GetMessages(ORDERS))
    replies = turn(engine)
    engine.receive(1, CommandRequest(SampleIdentity(ASKER, 2), "svc", DeleteQueue(ORDERS)))
    while engine.answers.is_answering:
        replies += turn(engine)
    assert is_finished_once(replies)
    assert replies[-1].reply.retcode is ReturnCode.OK
    assert replies[-1].reply.body is None


@given(
    st.integers(1, 150),
    st.integers(0, 120),
    st.lists(st.lists(st.integers(1, 170), max_size=20), max_size=6),
    st.lists(st.integers(0, 10), max_size=6),
)
def test_what_stays_is_given_once_and_what_left_is_not(
    held: int, count: int, removals: list[list[int]], arrivals: list[int]
) -> None:
    engine = engine_with(held)
    ask(engine, GetMessages(ORDERS, "", count))
    replies = turn(engine)
    left: set[int] = set()
    following = held + 1
    for at in range(max(len(removals), len(arrivals))):
        gone = removals[at] if at < len(removals) else []
        seen = set(numbers(replies))
        flush(engine, gone)
        left |= set(gone) - seen
        if at < len(arrivals):
            write(engine, range(following, following + arrivals[at]))
            following += arrivals[at]
        replies += turn(engine)
    while engine.answers.is_answering:
        replies += turn(engine)
    given = numbers(replies)
    assert is_finished_once(replies)
    assert given == sorted(set(given))
    assert not left & set(given), "it had left before its turn came"
    expected = [number for number in range(1, held + 1) if number not in left]
    assert given == (expected[:count] if count else expected)
