"""Which sessions share a process, and where queues go that are created at run time [QS 3.3.9]."""

from __future__ import annotations

from dataclasses import replace

from qsctl.core.admin.command import CreateQueue, CreateSubscriber, DeleteSubscriber
from qsctl.core.queue.settings import SessionSettings, SharedReaderQueueSettings
from qsctl.core.records import QueueCreated, SubscriberCreated, SubscriberDeleted
from qsctl.core.settings import DomainParticipantSettings, ServiceSettings, SharedSubscriberSettings
from qsctl.resource import parse_resource
from qsctl.service.sessions._placement import Placement
from qsctl.service.sessions.groups import part_of, session_groups

DEAD = SharedReaderQueueSettings("Dead", "Dead", session="a", is_dead_letter=True)
ORDERS = SharedReaderQueueSettings("Orders", "Orders", session="b", dead_letter_queue="Dead")
QUOTES = SharedReaderQueueSettings("Quotes", "Quotes", session="c", reply_type="T")


def service(*queues: SharedReaderQueueSettings, sessions: str = "abc") -> ServiceSettings:
    subscriber = SharedSubscriberSettings("S", tuple(map(SessionSettings, sessions)), queues)
    return ServiceSettings("App", (DomainParticipantSettings("P", 0, (subscriber,)),))


def names(settings: ServiceSettings) -> list[str]:
    return [group.name for group in session_groups(settings)]


def test_sessions_that_share_nothing_are_groups_of_their_own() -> None:
    assert names(service(DEAD, replace(ORDERS, dead_letter_queue=""), QUOTES)) == ["P/S/a", "P/S/b", "P/S/c"]


def test_dead_letters_tie_sessions_together_also_over_several_steps() -> None:
    assert names(service(DEAD, ORDERS, QUOTES)) == ["P/S/a + P/S/b", "P/S/c"]
    assert names(service(DEAD, ORDERS, replace(QUOTES, dead_letter_queue="Dead"))) == ["P/S/a + P/S/b + P/S/c"]


def test_a_declared_queue_of_replies_goes_with_its_requests() -> None:
    replies = SharedReaderQueueSettings("Replies", "QuotesReply", session="a")
    assert names(service(QUOTES, replies)) == ["P/S/a + P/S/c", "P/S/b"]


def test_a_session_without_queues_has_a_group_for_those_to_come() -> None:
    assert names(service(QUOTES)) == ["P/S/a", "P/S/b", "P/S/c"]


def test_the_parts_hold_every_queue_once_and_every_subscriber() -> None:
    settings = service(DEAD, ORDERS, QUOTES)
    parts = [part_of(settings, group).participants[0].subscribers[0] for group in session_groups(settings)]
    assert [[queue.name for queue in part.queues] for part in parts] == [["Dead", "Orders"], ["Quotes"]]
    assert all(part.sessions == settings.participants[0].subscribers[0].sessions for part in parts)


def test_a_new_queue_goes_to_its_dead_letters_or_to_its_session() -> None:
    settings = service(DEAD, ORDERS, QUOTES)
    placement = Placement(settings, session_groups(settings))
    subscriber = parse_resource("/domain_participant/P/shared_subscriber/S")
    for queue, index in (
        (SharedReaderQueueSettings("One", "One", session="c"), 1),
        (SharedReaderQueueSettings("Two", "Two", session="c", dead_letter_queue="Dead"), 0),
    ):
        command = CreateQueue(subscriber, queue)
        assert placement.follow(command, [QueueCreated("P", "S", queue)]) == {index: command}
        assert placement.holder(f"P/S/{queue.name}") == index
    assert placement.holder("P/S/QuotesReply") == 1
    assert placement.holder("P/S/Nothing") is None


def test_a_new_subscriber_is_known_everywhere_and_its_queues_are_in_the_emptiest_process() -> None:
    settings = service(DEAD, ORDERS, QUOTES)
    placement = Placement(settings, session_groups(settings))
    inside = SharedReaderQueueSettings("In", "In", session="x")
    subscriber = SharedSubscriberSettings("T", (SessionSettings("x"),), (inside,))
    command = CreateSubscriber(parse_resource("/domain_participant/P"), subscriber)
    told = placement.follow(command, [SubscriberCreated("P", subscriber)])
    assert told == {0: CreateSubscriber(command.participant, replace(subscriber, queues=())), 1: command}
    assert placement.holder("P/T/In") == 1
    later = replace(inside, name="Later", topic_name="Later")
    create = CreateQueue(parse_resource("/domain_participant/P/shared_subscriber/T"), later)
    assert placement.follow(create, [QueueCreated("P", "T", later)]) == {1: create}
    gone = DeleteSubscriber(parse_resource("/domain_participant/P/shared_subscriber/T"))
    assert placement.follow(gone, [SubscriberDeleted("P", "T")]) == {0: gone, 1: gone}
    assert placement.holder("P/T/In") is None
