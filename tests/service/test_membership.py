"""Which services are a cluster's members: those named, those found together, or those that another one knows."""

from __future__ import annotations

from qsctl.config.settings import ServiceConfiguration
from qsctl.core.settings import DomainParticipantSettings, ServiceSettings, SharedSubscriberSettings
from qsctl.service.replicas._membership import UNCHANGED_NS, Membership
from qsctl.service.replicas.replication import member_count
from tests.core.high_availability.cluster import queue


def test_the_first_services_that_stay_together_are_the_members() -> None:
    membership = Membership("B", 3)
    assert membership.stand_ins == ("B", "?2", "?3")
    assert not membership.find(0, {"A"})
    assert membership.lack == "2 of 3 members were found so far: A, B"
    assert membership.next_deadline() is None
    assert not membership.find(1, {"A", "C"})
    assert membership.next_deadline() == 1 + UNCHANGED_NS
    assert not membership.find(UNCHANGED_NS, {"A", "C"})
    assert membership.find(1 + UNCHANGED_NS, {"A", "C"})
    assert (membership.names, membership.lack) == (("A", "B", "C"), "")
    assert not membership.find(2 * UNCHANGED_NS, {"A", "C", "D"})
    assert membership.names == ("A", "B", "C")


def test_more_than_there_should_be_are_no_cluster() -> None:
    membership = Membership("A", 3)
    for now in (0, 10 * UNCHANGED_NS):
        assert not membership.find(now, {"B", "C", "D"})
    assert membership.lack == "4 services are there (A, B, C, D), and queue_instances is 3"


def test_names_are_learnt_from_one_that_knows_them() -> None:
    membership = Membership("C", 3)
    assert not membership.learn(("A", "B"))
    assert not membership.learn(("A", "B", "D"))
    assert membership.learn(("A", "B", "C"))
    assert not membership.learn(("A", "B", "C"))


def test_messages_of_another_cluster_are_recognized_by_their_names() -> None:
    membership = Membership("C", 3, ("C", "B", "A"))
    assert membership.agrees(("A", "B", "C"))
    assert membership.agrees(())
    assert not membership.agrees(("A", "B", "D"))


def test_a_service_stays_a_member_while_the_replicated_queue_of_its_file_is_deleted() -> None:
    """A member that was restarted between a deletion and a creation refused the creation for good."""
    subscriber = SharedSubscriberSettings("S", queues=(queue("orders", instances=3),))
    configured = ServiceSettings("A", (DomainParticipantSettings("P", 0, (subscriber,)),))
    hosted = ServiceSettings("A", (DomainParticipantSettings("P", 0, (SharedSubscriberSettings("S"),)),))
    assert member_count(ServiceConfiguration("C", configured), hosted) == 3
    assert member_count(ServiceConfiguration("C", hosted), configured) == 3
    assert member_count(ServiceConfiguration("C", hosted), hosted) == 0


def test_a_service_that_joins_forms_no_cluster_and_adopts_the_names_of_one() -> None:
    membership = Membership("D", 3, joins=True)
    assert membership.stand_ins == ("?1", "?2", "?3")
    for now in (0, 10 * UNCHANGED_NS):
        assert not membership.find(now, {"A", "B"})
    assert membership.next_deadline() is None
    assert (membership.is_joining, membership.lack) == (True, "no member of the cluster that it joins was found so far")
    assert not membership.learn(("A", "B"))
    assert membership.learn(("A", "B", "C"))
    assert (membership.is_joining, membership.agrees(("C", "B", "A"))) == (True, True)


def test_a_member_that_formed_the_cluster_is_one_though_it_is_started_to_join() -> None:
    membership = Membership("C", 3, joins=True)
    assert membership.learn(("A", "B", "C"))
    assert not membership.is_joining
    assert Membership("D", 3, ("A", "B", "C")).is_joining, "the stored names of those that it joined"
