"""Replicas that lost their logs: new disks, and the restarts of volatile ones."""

from __future__ import annotations

from qsctl.core.high_availability.ballot import NO_VOTER
from qsctl.core.high_availability.frames import Canvass, Confirmed, Vote
from qsctl.core.high_availability.roles import Role
from tests.core.high_availability.cluster import TIMEOUT_NS, Cluster, Process, held, queue, write


def filled(cluster: Cluster, count: int = 3) -> Process:
    """Have a master, and so many samples at all."""
    master = cluster.elect()
    for number in range(1, count + 1):
        cluster.send_all(write(number))
    cluster.run_until(lambda: all(len(held(process)) == count for process in cluster))
    return master


def test_a_replica_with_a_new_disk_has_no_vote_until_a_quorum_without_it_committed_an_entry() -> None:
    cluster = Cluster(3)
    master = filled(cluster)
    lost = next(process for process in cluster if process is not master)
    lost.crash()
    cluster.run_for(TIMEOUT_NS)
    lost.start(cluster.now, is_lost=True)
    assert lost.replica.role is Role.LEARNER
    assert lost.stores[lost.replica.stream].hard_state.vote in ("", NO_VOTER)
    cluster.run_until(lambda: lost.replica.role is Role.SLAVE)
    assert held(lost) == held(master)
    assert lost.stores[lost.replica.stream].hard_state.vote == master.name
    master.crash()
    cluster.elect()


def test_a_learner_has_no_vote_and_its_confirmations_do_not_count() -> None:
    cluster = Cluster(3)
    master = filled(cluster)
    lost, other = (process for process in cluster if process is not master)
    other.crash()
    lost.crash()
    lost.start(cluster.now, is_lost=True)
    commit_index = master.replica.log.commit_index
    cluster.send(master.name, write(9))
    for _ in range(40):
        cluster.tick()
        for _, _, frame in cluster.frames:
            assert not (isinstance(frame, Vote) and frame.sender == lost.name and frame.granted)
            assert not (isinstance(frame, Confirmed) and frame.sender == lost.name) or frame.is_learner
    assert master.replica.log.commit_index == commit_index
    assert (9, 1) not in master.answers()
    lost.run(cluster.now, frames=[Canvass(lost.replica.stream, other.name, 9, 9, 99, 99, False)])
    assert not any(isinstance(frame, Vote) and frame.granted for _, frame in lost.member.pop_frames())
    other.start(cluster.now)
    cluster.run_until(lambda: cluster.masters() and lost.replica.role is Role.SLAVE)
    cluster.run_until(lambda: len({tuple(held(process)) for process in cluster}) == 1)
    assert "1 enqueued" in held(lost)


def test_a_confirmation_from_before_the_loss_hides_nothing_that_the_learner_lacks() -> None:
    cluster = Cluster(3)
    master = filled(cluster)
    lost = next(process for process in cluster if process is not master)
    before = lost.replica.run
    lost.crash()
    cluster.run_for(TIMEOUT_NS // 2)
    lost.start(cluster.now, is_lost=True)
    cluster.run_until(lambda: master.replica.mastery and master.replica.mastery.progress[lost.name].is_learner)
    last_index = master.replica.log.last_index
    stale = Confirmed(lost.replica.stream, lost.name, master.replica.epoch, before, last_index, cluster.now)
    master.run(cluster.now, frames=[stale])
    cluster.run_until(lambda: lost.replica.role is Role.SLAVE)
    assert held(lost) == held(master)


def test_frames_of_a_replica_restarted_with_a_clock_set_back_are_accepted() -> None:
    cluster = Cluster(3)
    master = filled(cluster)
    cluster.run_for(TIMEOUT_NS)
    slave = next(process for process in cluster if process is not master)
    assert master.replica.mastery is not None
    peer = master.replica.mastery.progress[slave.name]
    for number, start_ns in ((7, cluster.now), (8, 5)):
        slave.crash()
        slave.start(start_ns)
        cluster.send_all(write(number))
        cluster.run_until(lambda: peer.match_index == master.replica.log.last_index)


def test_a_learner_whose_clock_was_set_back_is_known_for_one() -> None:
    cluster = Cluster(3)
    master = filled(cluster)
    cluster.run_for(TIMEOUT_NS)
    lost = next(process for process in cluster if process is not master)
    for start_ns in (cluster.now, 5):
        lost.crash()
        lost.start(start_ns, is_lost=True)
        cluster.run_until(lambda: lost.replica.role is Role.SLAVE)
        assert held(lost) == held(master)


def test_volatile_replicas_form_a_group_when_all_are_there() -> None:
    cluster = Cluster(3, queue(volatile=True))
    assert {process.replica.role for process in cluster} == {Role.LEARNER}
    cluster["c"].crash()
    cluster.run_for(5 * TIMEOUT_NS)
    assert cluster.masters() == []
    cluster["c"].start(cluster.now)
    cluster.elect()


def test_a_volatile_replica_that_restarts_learns_what_the_others_have() -> None:
    cluster = Cluster(3, queue(volatile=True))
    master = filled(cluster)
    master.crash()
    cluster.run_for(TIMEOUT_NS // 5)
    master.start(cluster.now)
    assert held(master) == []
    successor = cluster.elect()
    assert successor is not master
    cluster.run_until(lambda: master.replica.role is Role.SLAVE)
    assert held(master) == ["1 enqueued", "2 enqueued", "3 enqueued"]


def test_what_one_of_two_volatile_replicas_has_is_kept_when_the_other_restarts() -> None:
    cluster = Cluster(2, queue(volatile=True, instances=2))
    master = filled(cluster)
    master.crash()
    cluster.run_for(2 * TIMEOUT_NS)
    master.start(cluster.now)
    cluster.elect()
    cluster.run_until(lambda: held(master) == ["1 enqueued", "2 enqueued", "3 enqueued"])


def test_after_the_loss_of_a_majority_the_longest_log_is_kept_and_reported() -> None:
    cluster = Cluster(3, queue(volatile=True))
    filled(cluster)
    for name in "ab":
        cluster[name].crash()
    cluster.run_for(TIMEOUT_NS)
    for name in "ab":
        cluster[name].start(cluster.now)
    cluster.elect()
    cluster.run_until(lambda: all(len(held(process)) == 3 for process in cluster))
    reasons = [change.reason for process in cluster for change in process.member.pop_changes()]
    assert "the group forms anew: too few replicas have a log" in reasons


def test_if_all_volatile_replicas_restart_nothing_is_left() -> None:
    cluster = Cluster(3, queue(volatile=True))
    filled(cluster)
    for process in list(cluster):
        process.crash()
    cluster.run_for(TIMEOUT_NS)
    for process in cluster.processes.values():
        process.start(cluster.now)
    cluster.elect()
    assert all(held(process) == [] for process in cluster)


def test_a_new_replica_that_asked_for_long_waits_for_the_answers_beside_the_first_ones() -> None:
    """Found by a world: a group formed anew at the first answer, beside a member that had the log."""
    cluster = Cluster(3)
    new, blank, holder = cluster.processes.values()
    blank.crash()
    filled(cluster)
    new.crash()
    holder.crash()
    new.start(cluster.now, is_new=True)
    cluster.run_for(3 * TIMEOUT_NS)
    blank.start(cluster.now)
    cluster.run_until(lambda: new.replica.answer_count(cluster.now) == 1)
    holder.start(cluster.now)
    cluster.elect()
    assert held(holder) == ["1 enqueued", "2 enqueued", "3 enqueued"]
    cluster.run_until(lambda: held(new) == held(blank) == held(holder))


def test_a_new_group_forms_with_a_quorum_that_answers_for_master_timeout() -> None:
    cluster = Cluster(3)
    cluster["c"].crash()
    for process in cluster:
        process.start(cluster.now, is_new=True)
    cluster.run_for(TIMEOUT_NS * 9 // 10)
    assert {process.replica.role for process in cluster} == {Role.LEARNER}
    cluster.elect()


def test_no_operator_is_asked_to_force_a_quorum_while_a_new_group_forms() -> None:
    """Found by a world, whose operator did: a member that had formed took the others for such as lost their logs."""
    cluster = Cluster(3)
    for process in cluster:
        process.start(cluster.now, is_new=True)
    lacks = set()
    while not cluster.masters():
        cluster.tick()
        lacks |= {process.replica.lack(cluster.now) for process in cluster}
    assert not [each for each in lacks if "force-quorum" in each]
    assert "1 of 3 members answer, and 2 are a quorum: start the others" in lacks
