"""What a new master makes of its predecessor's deliveries [QS 7.1.1.3], and what a deposed one takes back."""

from __future__ import annotations

from unittest.mock import patch

import pytest

from qsctl.core.high_availability.frames import Farewell
from qsctl.core.high_availability.roles import Role
from qsctl.core.messages import Acknowledgment, AckResponse, ConsumerLeft, SampleFlag
from qsctl.core.queue.settings import DistributionSettings, RedeliverySettings
from qsctl.core.records import SendsAhead
from tests.core.high_availability.cluster import (
    OTHER_READER,
    READER,
    STREAM,
    TIMEOUT_NS,
    Cluster,
    Process,
    acknowledge,
    held,
    join,
    queue,
    write,
    write_run,
)

always_ahead = patch("qsctl.core.high_availability._clients.AHEAD_COUNT", 0)
"""Samples are sent before their assignment is committed, however few there are."""

ONE_AT_A_TIME = {"distribution": DistributionSettings(unacked_threshold=0)}


def successor_of(cluster: Cluster, master: Process) -> Process:
    master.crash()
    return cluster.elect()


def numbers(process: Process) -> list[tuple[int, bytes, bool]]:
    """What was delivered: sample, consumer, flag."""
    return [
        (each.identity.sequence_number, each.consumer_guid[:1], bool(each.flags & SampleFlag.REDELIVERED))
        for each in process.deliveries()
    ]


def test_what_was_assigned_goes_to_the_same_consumers_before_anything_else() -> None:
    cluster = Cluster(3, queue(**ONE_AT_A_TIME))
    master = cluster.elect()
    cluster.send_all(join(), join(OTHER_READER))
    for number in range(1, 5):
        cluster.send_all(write(number))
    cluster.run_until(lambda: len(master.deliveries()) == 2)
    assert numbers(master) == [(1, b"r", False), (2, b"s", False)]
    cluster.run_for(TIMEOUT_NS)
    successor = successor_of(cluster, master)
    cluster.run_until(lambda: len(successor.deliveries()) >= 2)
    assert numbers(successor) == [(1, b"r", True), (2, b"s", True)]
    cluster.send(successor.name, acknowledge(2, OTHER_READER))
    cluster.run_until(lambda: len(successor.deliveries()) == 3)
    assert numbers(successor)[2] == (3, b"s", False), "it was never assigned"


def test_samples_of_a_run_that_were_assigned_go_to_the_same_consumers_before_the_others() -> None:
    cluster = Cluster(3, queue(**ONE_AT_A_TIME))
    master = cluster.elect()
    cluster.send_all(join(), join(OTHER_READER))
    cluster.send_all(write_run(1, [b"x"] * 9))
    cluster.run_until(lambda: len(master.deliveries()) == 2)
    cluster.run_for(TIMEOUT_NS)
    successor = successor_of(cluster, master)
    cluster.run_until(lambda: len(successor.deliveries()) >= 2)
    assert numbers(successor) == [(1, b"r", True), (2, b"s", True)]
    cluster.send(successor.name, acknowledge(2, OTHER_READER))
    cluster.run_until(lambda: len(successor.deliveries()) == 3)
    assert numbers(successor)[2] == (3, b"s", False), "it was never assigned"


def test_what_was_assigned_to_a_consumer_that_is_gone_goes_to_another() -> None:
    cluster = Cluster(3)
    master = cluster.elect()
    cluster.send_all(join())
    cluster.send_all(write(1))
    cluster.run_until(master.deliveries)
    cluster.run_for(TIMEOUT_NS)
    master.crash()
    cluster.send_all(ConsumerLeft(STREAM, READER), join(OTHER_READER))
    successor = cluster.elect()
    cluster.run_until(successor.deliveries)
    assert numbers(successor) == [(1, b"s", True)]
    cluster.send(successor.name, acknowledge(1, READER))
    cluster.run_until(lambda: held(successor) == [])


def test_nothing_is_delivered_before_the_first_entry_of_the_own_epoch_is_committed() -> None:
    cluster = Cluster(3)
    master = cluster.elect()
    cluster.send_all(write(1))
    cluster.run_until(lambda: all(held(process) for process in cluster))
    master.crash()
    for process in cluster:
        process.run(cluster.now, [join()])
    cluster.run_until(cluster.masters)
    successor = cluster[cluster.masters()[0]]
    assert held(successor) == ["1 sent"]
    cluster.cut(successor.name)
    cluster.run_for(TIMEOUT_NS // 2)
    assert successor.deliveries() == []
    cluster.heal()
    cluster.run_until(lambda: len(cluster.masters()) == 1 and cluster[cluster.masters()[0]].deliveries())


@pytest.mark.parametrize("synchronizes", [True, False])
@always_ahead
def test_a_delivery_waits_for_its_assignment_only_where_that_is_synchronized(synchronizes: bool) -> None:
    cluster = Cluster(3, queue(replication={"synchronize_consumer_assignment": synchronizes}))
    master = cluster.elect()
    cluster.send_all(write(1))
    cluster.run_until(lambda: all(held(process) for process in cluster))
    cluster.cut(master.name)
    cluster.send(master.name, join())
    assert len(master.deliveries()) == (0 if synchronizes else 1)


@always_ahead
def test_while_samples_are_sent_ahead_everything_held_is_flagged_after_a_take_over() -> None:
    cluster = Cluster(3, queue(replication={"synchronize_consumer_assignment": False}))
    master = cluster.elect()
    cluster.send_all(write(1), write(2))
    cluster.run_until(lambda: all(len(held(process)) == 2 for process in cluster))
    cluster.cut(master.name)
    cluster.send(master.name, join())
    assert numbers(master) == [(1, b"r", False), (2, b"r", False)]
    cluster.tick()
    master.crash()
    cluster.heal()
    cluster.send_all(join())
    successor = cluster.elect()
    cluster.run_until(lambda: len(successor.deliveries()) == 2)
    assert numbers(successor) == [(1, b"r", True), (2, b"r", True)]


@always_ahead
def test_a_run_that_was_sent_ahead_is_flagged_after_a_take_over() -> None:
    cluster = Cluster(3, queue(replication={"synchronize_consumer_assignment": False}))
    master = cluster.elect()
    cluster.send_all(write_run(1, [b"x"] * 3))
    cluster.run_until(lambda: all(len(held(process)) == 3 for process in cluster))
    cluster.cut(master.name)
    cluster.send(master.name, join())
    assert numbers(master) == [(number, b"r", False) for number in (1, 2, 3)]
    cluster.tick()
    master.crash()
    cluster.heal()
    cluster.send_all(join())
    successor = cluster.elect()
    cluster.run_until(lambda: len(successor.deliveries()) == 3)
    assert numbers(successor) == [(number, b"r", True) for number in (1, 2, 3)]


def test_a_deposed_master_takes_back_what_was_not_committed_and_follows() -> None:
    cluster = Cluster(3)
    master = cluster.elect()
    cluster.send_all(join())
    cluster.send_all(write(1))
    cluster.run_until(master.deliveries)
    cluster.run_for(TIMEOUT_NS)
    cluster.cut(master.name)
    cluster.send(master.name, acknowledge(1), write(2))
    assert held(master) == ["2 sent"], "it decides at once, and says nothing yet"
    cluster.run_until(lambda: len(cluster.masters()) == 1 and cluster.masters() != [master.name])
    successor = cluster[cluster.masters()[0]]
    cluster.run_until(lambda: not master.replica.is_master)
    cluster.heal()
    cluster.run_until(lambda: held(master) == held(successor) == ["1 sent redelivered"])
    assert (2, 1) not in master.answers()


def test_time_outs_are_the_masters_and_go_through_the_log() -> None:
    redelivery = RedeliverySettings(max_delivery_retries=3, response_timeout_ns=TIMEOUT_NS // 2)
    cluster = Cluster(3, queue(redelivery=redelivery))
    master = cluster.elect()
    cluster.send_all(join())
    cluster.send_all(write(1))
    cluster.run_until(lambda: len(master.deliveries()) == 2)
    assert numbers(master) == [(1, b"r", False), (1, b"r", True)]
    cluster.run_until(lambda: all(held(process) == ["1 sent redelivered"] for process in cluster))
    attempts = {sample.attempts for process in cluster for sample in process.member.engine.hosted.by_name[STREAM].held}
    assert attempts == {1}


def test_a_rejection_counts_as_an_attempt_after_a_take_over_too() -> None:
    cluster = Cluster(3, queue(redelivery=RedeliverySettings(max_delivery_retries=1)))
    master = cluster.elect()
    cluster.send_all(join())
    cluster.send_all(write(1))
    cluster.run_until(master.deliveries)
    reject = Acknowledgment(STREAM, READER, write(1).identity, AckResponse.REJECTED)
    cluster.send(master.name, reject)
    cluster.run_until(lambda: len(master.deliveries()) == 2)
    cluster.run_for(TIMEOUT_NS)
    successor = successor_of(cluster, master)
    cluster.run_until(successor.deliveries)
    cluster.send(successor.name, reject)
    cluster.run_until(lambda: all(held(process) == [] for process in cluster))
    assert len(successor.deliveries()) == 1


def test_a_master_that_leaves_hands_over_at_once_and_nothing_is_written_again() -> None:
    cluster = Cluster(3)
    master = cluster.elect()
    cluster.send_all(join())
    cluster.send_all(write(1), write(2))
    cluster.run_until(lambda: len(master.deliveries()) == 2)
    cluster.run_for(TIMEOUT_NS)
    assert master.replica.hand_over(master.member.time.now, waits=True)
    cluster.gather(master)
    began = cluster.now
    cluster.run_until(lambda: any(each.replica.is_master for each in cluster if each is not master))
    assert cluster.now - began < TIMEOUT_NS // 2
    (successor,) = (each for each in cluster if each.replica.is_master)
    assert successor is not master
    cluster.run_until(lambda: len(successor.deliveries()) == 2)
    assert all(each.flags & SampleFlag.REDELIVERED for each in successor.deliveries())
    assert len(master.deliveries()) == 2, "it delivers nothing once it has handed over"


def test_a_master_hands_over_only_what_another_holds_unless_it_must() -> None:
    cluster = Cluster(3)
    master = cluster.elect()
    for process in cluster:
        process.syncs = process is master
    cluster.send_all(write(1))
    assert not master.replica.hand_over(master.member.time.now, waits=True)
    assert master.replica.is_master
    assert master.replica.hand_over(master.member.time.now, waits=False)
    assert not master.replica.is_master


def test_a_farewell_of_another_epoch_or_of_no_master_changes_nothing() -> None:
    cluster = Cluster(3)
    master = cluster.elect()
    other, last = (each for each in cluster if each is not master)
    for epoch, sender in ((master.replica.epoch - 1, master.name), (master.replica.epoch, last.name)):
        other.run(cluster.now, frames=[Farewell(STREAM, sender, epoch, other.name)])
        assert other.replica.role is Role.SLAVE
        assert other.replica.master == master.name


@pytest.mark.parametrize("is_busy", [False, True])
def test_what_no_consumer_was_sent_is_not_flagged_after_a_take_over(is_busy: bool) -> None:
    """Few samples wait for their assignment, and each delivery for its own; also once many were sent ahead before."""
    distribution = DistributionSettings(unacked_threshold=9)
    cluster = Cluster(3, queue(distribution=distribution, replication={"synchronize_consumer_assignment": False}))
    master = cluster.elect()
    cluster.send_all(join())
    for number in range(1, 51):
        cluster.send_all(write(number))
    cluster.run_until(lambda: len(master.deliveries()) == 10)
    cluster.run_for(TIMEOUT_NS)
    acknowledged_count = 10 * is_busy
    for number in range(1, 1 + acknowledged_count):
        cluster.send(master.name, acknowledge(number))
    cluster.run_until(lambda: len(master.deliveries()) == 10 + acknowledged_count)
    cluster.run_for(TIMEOUT_NS)
    successor = successor_of(cluster, master)
    for number in range(1 + acknowledged_count, 51):
        cluster.run_until(lambda number=number: len(successor.deliveries()) >= number - acknowledged_count)  # type: ignore[misc]
        cluster.send(successor.name, acknowledge(number))
    flags = {number: flag for number, _, flag in numbers(successor)}
    assert flags == {number: number <= 10 + acknowledged_count for number in range(1 + acknowledged_count, 51)}


def test_samples_are_sent_ahead_while_many_wait_for_their_assignment_alone() -> None:
    """Its log records when that begins and ends; a snapshot does, too."""
    distribution = DistributionSettings(unacked_threshold=9)
    cluster = Cluster(3, queue(distribution=distribution, replication={"synchronize_consumer_assignment": False}))
    master = cluster.elect()
    cluster.run_for(TIMEOUT_NS)
    assert not master.replica.follower.sends_ahead, "nothing is sent"
    cluster.send_all(join())
    for number in range(1, 201):
        cluster.send_all(write(number))
    number = 0
    while not master.replica.follower.sends_ahead:
        number += 1
        cluster.run_until(lambda number=number: len(master.deliveries()) >= number)  # type: ignore[misc]
        cluster.send(master.name, acknowledge(number))
        cluster.tick()
        assert number < 200
    assert not any(type(each) is SendsAhead for each in master.replica.follower.snapshot(1, 1))
    cluster.run_for(TIMEOUT_NS)
    assert not any(process.replica.follower.sends_ahead for process in cluster), "few are sent again"
    assert [each for each in master.replica.follower.snapshot(1, 1) if type(each) is SendsAhead]


def test_a_deposed_master_delivers_nothing_that_its_successor_commits() -> None:
    cluster = Cluster(3)
    master = cluster.elect()
    cluster.send_all(join())
    cluster.run_for(TIMEOUT_NS)
    cluster.cuts = {(each.name, master.name) for each in cluster if each is not master}  # it is confirmed no more
    cluster.send(master.name, write(1))
    cluster.run_for(TIMEOUT_NS // 2)
    assigned_index = master.replica.log.last_index
    assert assigned_index > master.replica.log.commit_index
    cluster.cut(master.name)
    cluster.run_until(lambda: set(cluster.masters()) - {master.name} and not master.replica.is_master)
    cluster.heal()
    cluster.run_until(lambda: master.replica.log.commit_index > assigned_index)
    assert "1 sent redelivered" in held(cluster.elect())
    assert master.deliveries() == []
