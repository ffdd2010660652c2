"""Frames that no replica can have sent: refused, counted and reported; none raises anything or changes a role."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from qsctl.core.high_availability.frames import Canvass, Confirmed, Entries, Frame, Relayed, Snapshot, Vote
from qsctl.core.high_availability.roles import Role
from qsctl.core.records import Assigned, Enqueued, EpochBegan, QueueRecord
from qsctl.identity import SampleIdentity
from qsctl.instant import INFINITE_NS
from tests.core.high_availability.cluster import (
    READER,
    STREAM,
    TIMEOUT_NS,
    WRITER,
    Cluster,
    Process,
    acknowledge,
    held,
    join,
    queue,
    write,
)


def enqueued(number: int, position: int, name: str = STREAM) -> Enqueued:
    return Enqueued(name, position, SampleIdentity(WRITER, number), 1, INFINITE_NS, payload=b"x")


def refused(cluster: Cluster, process: Process, frame: Frame) -> str:
    """What is said of a frame that a process refuses; the cluster works on as before."""
    epoch, role, last = process.replica.epoch, process.replica.role, process.replica.log.last
    count = process.member.refused_frame_count
    process.run(cluster.now, frames=[frame])
    refusals = process.member.pop_refusals()
    assert len(refusals) == 1
    refusal = refusals[0]
    assert process.member.refused_frame_count == count + 1
    assert (refusal.stream, refusal.sender, refusal.kind) == (STREAM, frame.sender, type(frame).__name__)
    assert (process.replica.epoch, process.replica.role, process.replica.log.last) == (epoch, role, last)
    assert not process.member.pop_refusals()
    return refusal.reason


@pytest.fixture
def cluster() -> Cluster:
    return working()


def working() -> Cluster:
    """A cluster with two samples everywhere."""
    made = Cluster(3)
    made.elect()
    made.send_all(write(1), write(2))
    made.run_until(lambda: all(len(held(process)) == 2 for process in made))
    return made


def others(cluster: Cluster) -> tuple[Process, Process, Process]:
    """The master, and the two slaves."""
    master = cluster[cluster.masters()[0]]
    one, other = (process for process in cluster if process is not master)
    return master, one, other


def works(cluster: Cluster) -> None:
    """Have what was accepted before, and accept more."""
    cluster.send_all(join())
    cluster.send_all(write(7))
    (master,) = cluster.masters()
    cluster.run_until(lambda: (7, 1) in cluster[master].answers())
    cluster.run_until(lambda: all(len(held(process)) == 3 for process in cluster))


def test_entries_in_the_master_s_own_epoch_are_refused_by_it(cluster: Cluster) -> None:
    """Found: an assertion ended the process, and no line said so."""
    master, slave, _ = others(cluster)
    forged = Entries(STREAM, slave.name, 1, 1, 1, (), 1, cluster.now)
    assert f"which is {master.name}" in refused(cluster, master, forged)
    works(cluster)


def test_another_master_of_the_epoch_is_refused_by_a_slave(cluster: Cluster) -> None:
    master, slave, other = others(cluster)
    forged = Entries(STREAM, other.name, 1, 3, 1, (enqueued(9, 3),), 4, cluster.now)
    assert f"which is {master.name}" in refused(cluster, slave, forged)
    works(cluster)


@pytest.mark.parametrize(
    ("entries", "reason"),
    [
        ((3, 1, (enqueued(9, 3, "P/S/other"),), 4), "which is not in this replication group"),
        ((0, 0, (EpochBegan(STREAM, 1, "x", flags_all=False), EpochBegan(STREAM, 1, "x", flags_all=False)), 2), ""),
        ((1, 0, (enqueued(9, 1),), 2), ""),
        ((0, 0, (enqueued(9, 1),), 2), "contradicts the one that is committed"),
    ],
)
def test_entries_that_do_not_fit_are_refused_by_a_slave(
    cluster: Cluster, entries: tuple[int, int, Sequence[QueueRecord], int], reason: str
) -> None:
    master, slave, _ = others(cluster)
    previous_index, previous_epoch, records, commit_index = entries
    forged = Entries(STREAM, master.name, 1, previous_index, previous_epoch, tuple(records), commit_index, cluster.now)
    if reason:
        assert reason in refused(cluster, slave, forged)
    else:
        slave.run(cluster.now, frames=[forged])  # it is said to be there already, or not to agree
        assert held(slave) == ["1 enqueued", "2 enqueued"]
    works(cluster)


@pytest.mark.parametrize("first", [1, 2, 3])
@pytest.mark.parametrize("count", [0, 1])
def test_entries_of_which_more_is_committed_are_confirmed(cluster: Cluster, first: int, count: int) -> None:
    """Frames that come twice, late, or again because their confirmation was lost contradict nothing."""
    master, slave, _ = others(cluster)
    log = slave.replica.log
    assert log.commit_index == 3
    records = tuple(log.records_from(first, count)) if count else ()
    again = Entries(STREAM, master.name, 1, first - 1, log.epoch_at(first - 1), records, 3, cluster.now)
    slave.member.pop_frames()
    slave.run(cluster.now, frames=[again])
    (answer,) = (frame for _, frame in slave.member.pop_frames() if type(frame) is Confirmed)
    assert (answer.match_index, answer.agreed) == (3, True)
    assert slave.member.refused_frame_count == 0
    works(cluster)


def test_a_snapshot_that_cannot_be_played_is_refused_and_the_queues_are_as_before(cluster: Cluster) -> None:
    master, slave, _ = others(cluster)
    began = EpochBegan(STREAM, 1, master.name, flags_all=False)
    twice = Assigned(STREAM, 1, READER, 1)
    forged = Snapshot(STREAM, master.name, 1, 9, 1, (began, enqueued(1, 1), twice, twice), cluster.now)
    assert "its snapshot does not fit" in refused(cluster, slave, forged)
    assert held(slave) == ["1 enqueued", "2 enqueued"]
    works(cluster)


def test_a_replica_whose_log_cannot_be_played_falls_back_to_the_master_s_alone(cluster: Cluster) -> None:
    master, slave, other = others(cluster)
    twice = Assigned(STREAM, 1, READER, 1)
    forged = Entries(STREAM, master.name, 1, 3, 1, (twice, twice), 5, cluster.now)
    slave.run(cluster.now, frames=[forged])
    assert slave.replica.role is Role.LEARNER
    assert slave.replica.reason.startswith("its log does not fit, and is built anew")
    assert held(slave) == ["1 enqueued", "2 enqueued"], "as of the last entry that fitted"
    slave.crash()
    slave.start(cluster.now)
    assert slave.replica.role is Role.LEARNER, "that is durable"
    cluster.run_until(lambda: slave.replica.role is Role.SLAVE)
    works(cluster)
    cluster.run_until(lambda: slave.replica.log.last == master.replica.log.last == other.replica.log.last)
    master.crash()
    cluster.elect()
    cluster.run_until(lambda: len({tuple(held(process)) for process in cluster}) == 1)
    assert len(held(slave)) == 3


def test_a_replica_that_fell_back_takes_up_a_snapshot(cluster: Cluster) -> None:
    master, slave, _ = others(cluster)
    cluster.send_all(join())
    for number in range(3, 40):
        cluster.send_all(write(number))
        cluster.run_until(lambda number=number: (number, 1) in master.answers())  # type: ignore[misc]
        cluster.send_all(acknowledge(number))
    cluster.run_until(lambda: len({each.replica.log.commit_index for each in cluster}) == 1)
    index = slave.replica.log.last_index
    slave.run(
        cluster.now,
        frames=[
            Entries(STREAM, master.name, 1, index, 1, (Assigned(STREAM, 1, READER, 1),) * 2, index + 2, cluster.now)
        ],
    )
    assert slave.replica.role is Role.LEARNER
    for process in cluster:
        process.replica.compaction._over_count = 10
    cluster.send_all(write(41))
    cluster.run_until(lambda: slave.replica.role is Role.SLAVE)
    assert slave.replica.log.base.index > 10
    cluster.run_until(lambda: held(slave) == held(master))
    slave.crash()
    slave.start(cluster.now)
    cluster.run_until(lambda: held(slave) == held(master))


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (Confirmed(STREAM, "", 1, 1, 99, 0), "it confirms entry 99"),
        (Confirmed(STREAM, "", 1, 1, 1, 2**62), "what is not sent yet"),
        (Canvass(STREAM, "", 1, 3, 1, 9, False), "it stands in epoch 3 and is in epoch 1"),
        (Relayed(STREAM, "", 1, "P/S/other", write(9)), "which is not in this replication group"),
        (Relayed(STREAM, "", 1, STREAM, write(9, bytes(101))), "more than a queue takes"),
    ],
)
def test_what_no_replica_sends_is_refused_by_the_master(cluster: Cluster, frame: Frame, reason: str) -> None:
    master, slave, _ = others(cluster)
    master.member.engine.hosted.outbox.payload_size_bytes_max = 100
    for each in master.member.engine.hosted.by_name.values():
        each.context.find_bound()
    forged = msgspec.structs.replace(frame, sender=slave.name, incarnation=master.replica.incarnation)
    assert reason in refused(cluster, master, forged)
    works(cluster)


def test_a_frame_of_a_stranger_is_refused(cluster: Cluster) -> None:
    master, _, _ = others(cluster)
    assert "not a member" in refused(cluster, master, Vote(STREAM, "z", 9, 9, False, True))


# Epochs.


def test_a_trial_raises_no_epoch(cluster: Cluster) -> None:
    """Found: a trial in epoch 2**53 was adopted, and every later epoch refused as malformed, for good."""
    for process in cluster:
        sender = next(each for each in cluster if each is not process).name
        for epoch in (2, 2**53, 2**63 - 1):
            process.run(
                cluster.now, frames=[Canvass(STREAM, sender, epoch, epoch, 9, 9, True, process.replica.incarnation)]
            )
            process.run(cluster.now, frames=[Vote(STREAM, sender, epoch, epoch, True, False)])
    cluster.run_for(3 * TIMEOUT_NS)
    assert {process.replica.epoch for process in cluster} == {1}
    assert all(store.hard_state.epoch == 1 for process in cluster for store in process.stores.values())
    works(cluster)


@pytest.mark.parametrize("epoch", [3, 2**53, 2**63 - 1])
def test_an_epoch_far_ahead_is_refused_and_nothing_follows_from_it(cluster: Cluster, epoch: int) -> None:
    master, slave, other = others(cluster)
    master.crash()
    cluster.run_for(TIMEOUT_NS + TIMEOUT_NS // 5)
    forged: tuple[Frame, ...] = (
        Canvass(STREAM, master.name, epoch, epoch, 9, 9, False, slave.replica.incarnation),
        Entries(STREAM, master.name, epoch, 3, 1, (), 3, cluster.now),
        Snapshot(STREAM, master.name, epoch, 9, 1, (EpochBegan(STREAM, 1, "x", flags_all=False),), cluster.now),
    )
    for frame in forged:
        slave.run(cluster.now, frames=[frame])
        (refusal,) = slave.member.pop_refusals()
        assert "is more than one above 1, in which a quorum was seen" in refusal.reason
    cluster.elect()
    assert max(slave.replica.epoch, other.replica.epoch) <= 4
    master.start(cluster.now)
    cluster.run_until(lambda: len({each.replica.log.last for each in cluster}) == 1)
    works(cluster)


def test_a_replica_that_missed_many_elections_follows_once_the_others_confirm_their_epoch() -> None:
    cluster = Cluster(3)
    away = cluster["c"]
    away.crash()
    for _ in range(4):
        master = cluster.elect()
        master.crash()
        master.start(cluster.now)
        cluster.run_for(2 * TIMEOUT_NS)
    master = cluster.elect()
    epoch = master.replica.epoch
    assert epoch > 4
    away.start(cluster.now)
    cluster.run_until(lambda: away.replica.epoch == epoch and away.replica.master == master.name, TIMEOUT_NS)
    assert cluster.masters() == [master.name], "nobody is deposed for that"


def test_a_group_in_a_very_late_epoch_goes_on() -> None:
    """What an earlier version took up from one letter is an epoch like any other."""
    cluster = Cluster(3)
    late = cluster["a"].stores[STREAM]
    cluster["a"].crash()
    late.hard_state = msgspec.structs.replace(late.hard_state, epoch=2**53)
    cluster.elect()
    cluster["a"].start(cluster.now)
    cluster.run_for(TIMEOUT_NS)
    master = cluster.elect()
    cluster.run_until(lambda: {each.replica.epoch for each in cluster} == {master.replica.epoch})
    cluster.send_all(write(1))
    cluster.run_until(lambda: all(len(held(process)) == 1 for process in cluster))


def test_an_unsuccessful_candidate_is_followed_into_its_epoch_at_once(cluster: Cluster) -> None:
    """It follows no master of an earlier epoch, and the others hear their master: it would be left behind for good."""
    master, slave, _ = others(cluster)
    slave.replica.ballot.observe(2)
    slave.replica.outgoing.write_hard_state(slave.replica.ballot.state)
    cluster.run_until(lambda: slave.replica.master != "" and slave.replica.epoch > 1, 2 * TIMEOUT_NS)
    assert cluster.masters() == [master.name]
    works(cluster)


def test_queues_of_one_group_alone_are_known() -> None:
    cluster = Cluster(3, queue("dead", is_dead_letter=True), queue(dead_letter_queue="dead"))
    master = cluster.elect()
    slave = next(process for process in cluster if process is not master)
    stream = slave.replica.stream
    forged = Entries(stream, master.name, 1, 1, 1, (enqueued(1, 1, "P/S/none"),), 2, cluster.now)
    slave.run(cluster.now, frames=[forged])
    (refusal,) = slave.member.pop_refusals()
    assert refusal.reason == "its entries are of 'P/S/none', which is not in this replication group"
