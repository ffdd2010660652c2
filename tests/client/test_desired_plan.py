"""A plan on a model of the service: its steps lead to the file, whatever was there, and so does the rest of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest.mock import create_autospec

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from qsctl.client.administration import Administration
from qsctl.client.desired.execution import carry_out
from qsctl.client.desired.plan import Wishes, plan_of
from qsctl.client.desired.steps import Action, Plan, PlanStep
from qsctl.config.live import live_text, read_live_text
from qsctl.config.settings import MonitoringPublicationSettings, ServiceConfiguration
from qsctl.core.hosted_service import HostedService
from qsctl.core.queue.settings import (
    DistributionSettings,
    MonitoringSettings,
    PersistenceKind,
    PersistenceSettings,
    RedeliverySettings,
    ReplicationSettings,
    ResourceLimitSettings,
    SessionSettings,
    SharedReaderQueueSettings,
)
from qsctl.core.settings import (
    DomainParticipantSettings,
    ServiceSettings,
    SharedSubscriberSettings,
    queues_by_name,
    with_queues,
)
from qsctl.identity import counted_incarnations

EVERYTHING = Wishes(prune=True, replace=True)
SESSION = SessionSettings("main")


def queue(name: str, **other: Any) -> SharedReaderQueueSettings:
    given = {"topic_name": name, "type_name": "DDS::String", "session": "main", **other}
    return SharedReaderQueueSettings(name, **given)


def dead(name: str = "Dead", **other: Any) -> SharedReaderQueueSettings:
    return queue(name, type_name="", is_dead_letter=True, **other)


def service(**subscribers: tuple[SharedReaderQueueSettings, ...]) -> ServiceConfiguration:
    made = tuple(SharedSubscriberSettings(name, (SESSION,), queues) for name, queues in subscribers.items())
    return ServiceConfiguration("shop", ServiceSettings("shop", (DomainParticipantSettings("P", 0, made),)))


def shown(plan: Plan) -> list[str]:
    return [f"{step.action} {step.resource.name}" for step in plan.steps]


def done(live: ServiceConfiguration, steps: list[PlanStep]) -> ServiceConfiguration:
    """The service after these steps."""
    host = HostedService(live.service, 0, draw=counted_incarnations(), journals_everything=True)
    for step in steps:
        match step.action, step.settings:
            case Action.CREATE_SUBSCRIBER, SharedSubscriberSettings() as settings:
                host.create_subscriber(0, step.resource.parent, settings)
            case Action.CREATE_QUEUE, SharedReaderQueueSettings() as settings:
                host.create_queue(0, step.resource.parent, settings)
            case Action.UPDATE_QUEUE, SharedReaderQueueSettings() as settings:
                host.change_queue(0, step.resource, settings)
            case Action.DELETE_QUEUE, _:
                host.delete_queue(0, step.resource)
            case _:
                host.delete_subscriber(0, step.resource)
    return replace(live, service=host.settings())


queues = st.builds(
    queue,
    st.sampled_from(["A", "B", "C"]),
    topic_name=st.sampled_from(["T1", "T2", "T3", "T4"]),
    reply_type=st.sampled_from(["", "", "Answer"]),
    dead_letter_queue=st.sampled_from(["", "Dead"]),
    limits=st.builds(ResourceLimitSettings, max_count=st.sampled_from([-1, 5, 9])),
    persistence=st.builds(PersistenceSettings, kind=st.sampled_from(PersistenceKind)),
)
dead_letter_queues = st.builds(dead, persistence=st.builds(PersistenceSettings, kind=st.sampled_from(PersistenceKind)))


@st.composite
def subscriber(draw: st.DrawFn) -> tuple[SharedReaderQueueSettings, ...]:
    found = draw(st.lists(queues, max_size=3, unique_by=(lambda each: each.name, lambda each: each.topic_name)))
    letters = [draw(dead_letter_queues)] if draw(st.booleans()) else []
    made = [each if letters else replace(each, dead_letter_queue="") for each in found]
    made = [replace(each, reply_topic=f"{each.topic_name}Reply") if each.reply_type else each for each in made]
    return (*made, *letters)


services = st.dictionaries(st.sampled_from(["S", "R"]), subscriber(), max_size=2).map(lambda found: service(**found))


@given(services, services, st.integers(0, 20))
def test_a_plan_leads_to_the_file_also_when_it_was_interrupted(
    live: ServiceConfiguration, wanted: ServiceConfiguration, count: int
) -> None:
    plan = plan_of(live, wanted, EVERYTHING)
    assert not plan.obstacles
    interrupted = done(live, list(plan.steps)[:count])
    rest = plan_of(interrupted, wanted, EVERYTHING)
    assert not rest.obstacles
    reached = done(interrupted, list(rest.steps))
    assert queues_by_name(reached.service) == queues_by_name(wanted.service)
    assert plan_of(reached, wanted, EVERYTHING) == Plan([], [], [], [])


@given(services, services)
def test_without_leave_nothing_is_deleted(live: ServiceConfiguration, wanted: ServiceConfiguration) -> None:
    plan = plan_of(live, wanted, Wishes())
    assert not {Action.DELETE_QUEUE, Action.DELETE_SUBSCRIBER} & {step.action for step in plan.steps}
    held, reached = queues_by_name(live.service), queues_by_name(done(live, list(plan.steps)).service)
    assert held.keys() <= reached.keys()


@given(services)
def test_configuration_of_a_service_is_read_as_it_was_written(live: ServiceConfiguration) -> None:
    read = read_live_text(live_text(live, live.service))
    assert plan_of(read, live, EVERYTHING) == Plan([], [], [], [])


@given(st.text(st.sampled_from("\\\";='a "), max_size=12))
def test_words_of_a_property_are_read_as_they_were_written(words: str) -> None:
    """Quotation marks, backslashes and semicolons have a meaning in `str://` literals, and none in a stored text."""
    words = " ".join(words.split())
    given_qos = (
        "<datareader_qos><property><value><element><name>a</name><value/></element></value></property></datareader_qos>"
    )
    element = etree.fromstring(given_qos)
    element[0][0][0][1].text = words
    live = service(S=(queue("A", qos={"datareader_qos": etree.tostring(element, encoding="unicode")}),))
    read = read_live_text(live_text(live, live.service))
    found = etree.fromstring(queues_by_name(read.service)["P/S/A"].qos["datareader_qos"])
    assert (found.findtext("property/value/element/value") or "") == words


@pytest.mark.parametrize("force", [False, True])
def test_what_is_deleted_must_be_empty_unless_it_is_forced(force: bool) -> None:
    """Samples may have come since the plan was made: of queues, and of a subscriber with all of its."""
    live, wanted = service(S=(queue("A"), queue("B")), T=(queue("C"),)), service(S=(queue("A"),))
    administration = create_autospec(Administration, instance=True)
    steps = list(carry_out(administration, plan_of(live, wanted, EVERYTHING), force=force))
    assert Action.DELETE_SUBSCRIBER in {step.action for step in steps}
    deletions = [*administration.delete_queue.mock_calls, *administration.delete_subscriber.mock_calls]
    assert len(deletions) == len(steps) >= 2
    assert {call.kwargs["only_if_empty"] for call in deletions} == {not force}


def test_changes_come_first_and_what_needs_room_last() -> None:
    live = service(S=(queue("Old", topic_name="T"), queue("Kept"), dead(), queue("Bills", dead_letter_queue="Dead")))
    wanted = service(
        R=(queue("Other"),),
        S=(queue("New", topic_name="T"), queue("Kept", limits=ResourceLimitSettings(max_count=5)), queue("More")),
    )
    assert shown(plan_of(live, wanted, Wishes(prune=True))) == [
        "create subscriber R",
        "update queue Kept",
        "create queue Other",
        "create queue More",
        "delete queue Old",
        "delete queue Bills",
        "delete queue Dead",
        "create queue New",
    ]
    kept = plan_of(live, wanted, Wishes())
    (in_the_way,) = kept.obstacles
    assert "P/S has a queue of topic 'T' already: 'Old'" in in_the_way.what
    assert in_the_way.how.endswith("Or --prune: delete what is not in the file")
    assert [each.name for each in kept.extras] == ["Old", "Dead", "Bills"]


def test_what_cannot_be_changed_in_place_is_in_the_way_unless_it_may_be_replaced() -> None:
    persistent = PersistenceSettings(PersistenceKind.PERSISTENT)
    live = service(S=(queue("Orders", dead_letter_queue="Dead"), dead()))
    wanted = service(S=(queue("Orders", dead_letter_queue="Dead"), dead(persistence=persistent)))
    plan = plan_of(live, wanted, Wishes())
    (obstacle,) = plan.obstacles
    assert (obstacle.resource.name, obstacle.what) == ("Dead", "persistence.kind cannot be changed in place")
    assert [str(each) for each in obstacle.changes] == ["queue_qos/persistence/kind VOLATILE -> PERSISTENT"]
    assert "move what is held" in obstacle.how
    anew = plan_of(live, wanted, Wishes(replace=True))
    assert shown(anew) == ["delete queue Orders", "delete queue Dead", "create queue Dead", "create queue Orders"]
    assert anew.steps[0].reason == "its dead-letter queue Dead is created anew"


def test_reply_queue_of_a_deleted_queue_does_not_replace_another() -> None:
    live = service(S=(queue("Answers", topic_name="OrdersReply"),))
    wanted = service(S=(queue("Orders", reply_type="Answer", reply_topic="OrdersReply"),))
    assert shown(plan_of(live, wanted, Wishes(prune=True))) == ["delete queue Answers", "create queue Orders"]


def test_session_that_a_subscriber_lacks_is_in_the_way() -> None:
    wanted = service(S=(queue("Orders", session="fast"),))
    (obstacle,) = plan_of(service(S=()), wanted, Wishes()).obstacles
    assert "no session 'fast', and gets none while it works" in obstacle.what


def test_replicated_queues_are_left_to_their_cluster() -> None:
    replicated = queue("Orders", replication=ReplicationSettings(True, 3))
    for live, wanted in ((service(S=()), service(S=(replicated,))), (service(S=(replicated,)), service(S=()))):
        plan = plan_of(live, wanted, Wishes(prune=True))
        assert not plan.steps
        assert "The members of a cluster change together" in plan.obstacles[0].how
    changed = replace(replicated, redelivery=RedeliverySettings(7))
    (obstacle,) = plan_of(service(S=(replicated,)), service(S=(changed,)), Wishes()).obstacles
    assert "is replicated" in obstacle.what


def test_what_only_a_restart_changes_is_listed_and_in_nobodys_way() -> None:
    live = service(S=(queue("Orders"),))
    slow = MonitoringSettings(True, 60_000_000_000)
    wanted = replace(
        live,
        monitoring=MonitoringPublicationSettings(7),
        service=with_queues(live.service, lambda _p, _s, each: replace(each, monitoring=slow)),
    )
    plan = plan_of(live, wanted, Wishes())
    assert plan.is_nothing
    paths = [each.path for each in plan.restarts]
    assert "monitoring/domain_id" in paths
    assert any(path.endswith("Orders/entity_monitoring/enabled") for path in paths)
    assert [each.path for each in plan_of(live, wanted, Wishes(), compares_service=False).restarts] == [
        path for path in paths if "domain_participant" in path
    ]


def test_participants_come_and_go_with_a_restart() -> None:
    live = service(S=())
    other = replace(live.service.participants[0], name="Q", domain_id=4)
    plan = plan_of(live, replace(live, service=replace(live.service, participants=(other,))), EVERYTHING)
    assert [str(each) for each in plan.restarts] == [
        "domain_participant[P] domain 0 -> (none)",
        "domain_participant[Q] (none) -> domain 4",
    ]


@pytest.mark.parametrize("other", [{"unacked_threshold": 3}, {"mark_last_undelivered_sample": True}])
def test_settings_of_the_dispatch_policy_are_changed_in_place(other: dict[str, Any]) -> None:
    live, wanted = (service(S=(queue("Orders", distribution=DistributionSettings(**each)),)) for each in ({}, other))
    (step,) = plan_of(live, wanted, Wishes()).steps
    assert step.action is Action.UPDATE_QUEUE
    assert [each.path.rpartition("/")[2].lower() for each in step.changes] == list(other)
