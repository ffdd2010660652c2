"""Members of a group are added, promoted and removed by entries of its log, one at a time."""

from __future__ import annotations

import pytest

from qsctl.core.admin.command import MemberAction
from qsctl.core.high_availability.frames import Canvass, Confirmed, Entries, Roll, Vote
from qsctl.core.high_availability.roles import Role
from qsctl.core.high_availability.versions import VERSION
from qsctl.core.records import MembersChanged
from tests.core.high_availability.changed_cluster import (
    ADD,
    OK,
    PROMOTE,
    REMOVE,
    Changed,
    filled,
    has_caught_up,
    voters,
)
from tests.core.high_availability.cluster import TIMEOUT_NS, Process, held, queue, write


def test_added_member_learns_the_log_and_counts_for_no_quorum() -> None:
    cluster, master, (first, second) = filled()
    joined = cluster.join("d")
    cluster.change(master, ADD, "d")
    cluster.run_until(lambda: held(joined) == held(master) and has_caught_up(master, joined))
    assert (joined.replica.role, voters(joined)) == (Role.LEARNER, ["a", "b", "c"])
    first.crash()
    second.crash()
    commit_index = master.replica.log.commit_index
    cluster.send(master.name, write(9))
    cluster.run_for(TIMEOUT_NS // 2)
    assert master.replica.log.commit_index == commit_index, "the learner confirms, and is no voter"
    epoch = master.replica.epoch
    cluster.run_for(20 * TIMEOUT_NS)
    assert (cluster.masters(), master.replica.epoch) == ([], epoch), "the vote of a learner elects no master"
    assert joined.replica.role is Role.LEARNER, "it is never a candidate"


def test_promoted_member_has_a_vote_and_the_quorum_grows() -> None:
    cluster, master, others = filled()
    joined = cluster.grow(master, "d")
    cluster.run_until(lambda: joined.replica.role is Role.SLAVE)
    assert all(voters(process) == ["a", "b", "c", "d"] for process in (master, joined))
    assert master.replica.members.quorum == 3
    others[0].crash()
    master.crash()
    cluster.run_for(5 * TIMEOUT_NS)
    assert cluster.masters() == [], "two of four are no quorum"
    others[0].start(cluster.now)
    cluster.elect()


def test_a_member_is_replaced_by_one_of_another_name_and_the_rest_needs_it() -> None:
    cluster, master, (dead, other) = filled()
    dead.crash()
    joined = cluster.grow(master, "d")
    cluster.change(master, REMOVE, dead.name)
    cluster.run_until(lambda: voters(joined) == voters(other) == sorted(("d", master.name, other.name)))
    master.crash()
    successor = cluster.elect()
    cluster.send_all(write(9))
    cluster.run_until(lambda: (9, 1) in successor.answers())
    cluster.run_until(lambda: {len(held(process)) for process in (joined, other)} == {4})


def test_removed_master_commits_its_removal_without_counting_itself_and_steps_down() -> None:
    cluster, master, (first, second) = filled()
    cluster.cut(master.name, first.name)
    number = cluster.request(master, REMOVE, master.name)
    cluster.run_for(TIMEOUT_NS // 2)
    assert number not in master.replies(), "one of the two voters that are left is no quorum"
    assert master.replica.is_master
    cluster.heal()
    cluster.run_until(lambda: not master.replica.is_master)
    assert master.replica.role is Role.LEARNER
    assert "it was removed from the group" in master.replica.reason
    assert master.replies()[number][0] == OK
    cluster.run_until(lambda: bool(cluster.masters()))
    assert voters(first) == voters(second) == sorted((first.name, second.name))
    cluster.run_for(10 * TIMEOUT_NS)
    assert len(cluster.masters()) == 1
    assert cluster.masters() != [master.name]


@pytest.mark.parametrize("is_informed", [True, False])
def test_removed_member_does_not_disturb_the_group(is_informed: bool) -> None:
    cluster, master, (removed, _) = filled()
    if not is_informed:
        cluster.cut(removed.name)
    cluster.change(master, REMOVE, removed.name)
    cluster.run_until(lambda: all(voters(each) == voters(master) for each in cluster if each is not removed))
    cluster.run_for(3 * TIMEOUT_NS)
    epoch = master.replica.epoch
    cluster.heal()
    cluster.run_for(10 * TIMEOUT_NS)
    assert cluster.masters() == [master.name]
    assert master.replica.epoch == epoch
    assert (removed.replica.role is Role.LEARNER) == is_informed
    for voter in cluster:
        if voter is not removed:
            voter.run(
                cluster.now, frames=[Canvass(removed.replica.stream, removed.name, epoch + 1, epoch + 1, 99, 99, False)]
            )
            assert voter.replica.epoch == epoch


def test_next_change_is_refused_until_the_one_before_is_committed() -> None:
    cluster, master, others = filled()
    for other in others:
        cluster.cut(other.name)
    cluster.request(master, ADD, "d")
    assert "an earlier change of the members or of the master is not committed yet" in cluster.refusal(master, ADD, "e")
    cluster.heal()
    cluster.run_until(lambda: master.replica.log.commit_index == master.replica.log.last_index)
    cluster.change(master, ADD, "e")
    assert master.replica.members.latest.learners == ("d", "e")


def test_new_master_changes_no_member_before_an_entry_of_its_own_epoch_is_committed() -> None:
    """The mistake of 2015: two masters each change the list of the same committed entry, and have disjoint quorums."""
    cluster, master, others = filled(4)
    cluster.cut(master.name)
    cluster.request(master, ADD, "e")
    master.syncs = False
    cluster.run_until(lambda: any(process.replica.is_master for process in others))
    successor = next(process for process in others if process.replica.is_master)
    replica = successor.replica
    assert replica.log.commit_index < replica.clients.own_epoch_index
    assert "is not committed yet" in cluster.refusal(successor, REMOVE, others[0].name)


def test_list_of_members_is_taken_back_with_its_entry() -> None:
    cluster, master, _ = filled()
    cluster.cut(master.name)
    number = cluster.request(master, REMOVE, master.name)
    assert len(voters(master)) == 2
    cluster.run_until(lambda: any(name != master.name for name in cluster.masters()))
    cluster.heal()
    cluster.run_until(lambda: voters(master) == ["a", "b", "c"] and master.replica.role is Role.SLAVE)
    assert number not in master.replies()


def test_list_of_members_is_kept_by_snapshots_and_restarts() -> None:
    cluster, master, others = filled()
    for process in cluster:
        process.compacted_over_count = 4
    joined = cluster.grow(master, "d")
    for process in list(cluster):
        process.crash()
        process.compacted_over_count = 4
    for process in cluster.processes.values():
        process.start(cluster.now)
    master = cluster.elect()
    for _ in range(10):
        cluster.change(master, ADD, "e")
        cluster.change(master, REMOVE, "e")
    cluster.run_until(lambda: all(process.replica.log.base.index > 8 for process in cluster))
    for process in cluster:
        assert [type(each) for each in process.stores[process.replica.stream].snapshot_records][1] is MembersChanged
    lost = next(process for process in (*others, joined) if process is not master)
    lost.crash()
    lost.start(cluster.now, is_lost=True)
    cluster.run_until(lambda: lost.replica.role is Role.SLAVE)
    assert all(voters(process) == ["a", "b", "c", "d"] for process in cluster)


def test_member_that_missed_all_changes_follows_a_master_that_it_does_not_know() -> None:
    """And votes for it, where its vote is needed."""
    cluster, master, (first, second) = filled()
    cluster.cut(second.name)
    added = [cluster.grow(master, name) for name in "de"]
    for gone in (first.name, master.name):
        cluster.change(master, REMOVE, gone)
    cluster.run_until(lambda: any(each.replica.is_master for each in added))
    first.crash()
    master.crash()
    cluster.run_until(lambda: all(voters(each) == sorted(("d", "e", second.name)) for each in added))
    added[1].crash()
    cluster.heal()
    cluster.elect()
    cluster.run_until(lambda: voters(second) == voters(added[0]))


@pytest.mark.parametrize("own_count", [0, 3])
@pytest.mark.parametrize("compacted_over_count", [4, 8_192])
def test_member_is_removed_and_added_again_under_its_name_with_its_old_log(
    own_count: int, compacted_over_count: int
) -> None:
    """Its log ends with entries that no other member has, of the epoch in which it was the master."""
    cluster, _, _ = filled()
    for process in list(cluster):
        process.crash()
        process.compacted_over_count = compacted_over_count
    for process in cluster.processes.values():
        process.start(cluster.now)
    removed = cluster.elect()
    others = [process for process in cluster if process is not removed]
    cluster.cut(removed.name)
    cluster.send(removed.name, *(write(100 + number) for number in range(own_count)))
    cluster.run_until(lambda: any(each.replica.is_master for each in others))
    master = next(each for each in others if each.replica.is_master)
    cluster.run_until(lambda: master.replica.log.commit_index >= master.replica.clients.own_epoch_index)
    cluster.change(master, REMOVE, removed.name)
    removed.crash()
    cluster.heal()
    cluster.send_all(*(write(number) for number in range(10, 20)))
    cluster.run_until(lambda: all(len(held(process)) == 13 for process in others))
    removed.start(cluster.now)
    cluster.run_for(5 * TIMEOUT_NS)
    assert cluster.masters() == [master.name]
    cluster.change(master, ADD, removed.name)
    cluster.run_until(lambda: has_caught_up(master, removed))
    assert held(removed) == held(master)
    cluster.change(master, PROMOTE, removed.name)
    cluster.run_until(lambda: removed.replica.role is Role.SLAVE)
    assert voters(removed) == voters(master) == ["a", "b", "c"]
    master.crash()
    successor = cluster.elect()
    cluster.send_all(write(20))
    cluster.run_until(lambda: (20, 1) in successor.answers())
    cluster.run_until(lambda: held(removed) == held(successor))
    assert len(held(removed)) == 14


def replaced_away() -> tuple[Changed, Process, list[Process]]:
    """A cluster of d, e and one that missed all changes, which is down; the others that it knows are gone.

    Meanwhile there were many elections.
    """
    cluster, master, (first, absent) = filled()
    absent.crash()
    added = [cluster.grow(master, name) for name in "de"]
    for gone in (first.name, master.name):
        cluster.change(master, REMOVE, gone)
    cluster.run_until(lambda: any(each.replica.is_master for each in added))
    first.crash()
    master.crash()
    added[0]._jitter = lambda: 0.0
    for _ in range(3):
        for each in added:
            each.crash()
            each.start(cluster.now)
        cluster.elect()
    assert added[0].replica.epoch > absent.replica.epoch + 2
    assert voters(added[0]) == voters(added[1]) == sorted(("d", "e", absent.name))
    return cluster, absent, added


def test_member_whose_known_members_are_all_gone_follows_a_master_of_a_much_later_epoch() -> None:
    cluster, absent, added = replaced_away()
    absent.start(cluster.now)
    cluster.run_until(lambda: held(absent) == held(added[0]) and voters(absent) == voters(added[0]))


def test_member_whose_known_members_are_all_gone_votes_for_a_candidate_of_a_much_later_epoch() -> None:
    cluster, absent, added = replaced_away()
    for each in added:
        each.crash()
    absent.start(cluster.now)
    added[0].start(cluster.now)
    assert cluster.elect() is added[0]


def test_process_joins_after_all_members_of_the_beginning_were_replaced() -> None:
    cluster, absent, added = replaced_away()
    master = next(each for each in added if each.replica.is_master)
    cluster.run_for(2 * TIMEOUT_NS)
    cluster.change(master, REMOVE, absent.name)
    joined = cluster.grow(master, "f")
    assert held(joined) == held(master)


def test_answer_of_an_unlisted_process_raises_no_epoch_where_it_has_no_more_of_the_log() -> None:
    cluster, _, (slave, _) = filled()
    replica = slave.replica
    last, group = replica.log.last, replica.incarnation
    for behind in ((last.epoch, last.index, group, replica.run), (99, 99, group + 1, replica.run), (99, 99, group, 5)):
        last_epoch, last_index, incarnation, run = behind
        roll = Roll(replica.stream, "z", 99, 1, last_epoch, last_index, False, run, incarnation)
        canvass = Canvass(replica.stream, "z", 99, 99, 99, 99, False, group)
        cluster.run_for(2 * TIMEOUT_NS)
        slave.run(cluster.now, frames=[roll])
        replica.allegiance.end()
        slave.run(cluster.now, frames=[canvass])
        assert replica.epoch == 1


def test_candidate_that_alone_has_its_own_removal_is_elected() -> None:
    """No log without the entry gets its vote, and the one other voter has no quorum of the former two."""
    cluster, master, (other,) = filled(2)
    cluster.cuts.add((master.name, other.name))
    cluster.request(master, REMOVE, master.name)
    cluster.tick()
    cluster.cuts.clear()
    cluster.frames.clear()
    master.crash()
    master.start(cluster.now)
    assert master.replica.role is Role.SLAVE
    cluster.run_until(lambda: other.replica.is_master and voters(other) == [other.name])


def test_candidate_that_alone_has_its_own_removal_is_elected_where_the_first_members_did_not_include_it() -> None:
    """After a restart it knows no commit, and the first list of its log is not the one before its removal."""
    cluster, first, (gone,) = filled(2)
    joined = cluster.grow(first, "c")
    cluster.change(first, REMOVE, gone.name)
    gone.crash()
    cluster.run_until(lambda: voters(joined) == sorted((first.name, "c")))
    cluster.run_until(lambda: first.replica.hand_over(cluster.now, waits=True))
    cluster.gather(first)
    assert cluster.elect() is joined
    cluster.cuts.add((joined.name, first.name))
    cluster.request(joined, REMOVE, joined.name)
    cluster.tick()
    cluster.heal()
    cluster.frames.clear()
    joined.crash()
    joined.start(cluster.now)
    cluster.run_until(lambda: first.replica.is_master and voters(first) == [first.name])


@pytest.mark.parametrize(
    ("action", "name", "reason"),
    [
        (ADD, "a", "a is a member already"),
        (PROMOTE, "a", "a has a vote already"),
        (PROMOTE, "z", "z is not a member; there are a, b, c"),
        (REMOVE, "z", "z is not a member; there are a, b, c"),
    ],
)
def test_change_that_is_none_is_refused(action: MemberAction, name: str, reason: str) -> None:
    cluster, master, _ = filled()
    assert reason in cluster.refusal(master, action, name)


def test_change_is_the_masters() -> None:
    cluster, master, (slave, _) = filled()
    assert f"is not its master; {master.name} is" in cluster.refusal(slave, ADD, "d")


def test_last_voter_is_not_removed() -> None:
    cluster, master, _ = filled(1)
    assert "a is the only member that has a vote" in cluster.refusal(master, REMOVE, "a")


def test_removal_that_would_lose_the_quorum_is_refused() -> None:
    cluster, master, (dead, alive) = filled()
    dead.crash()
    cluster.run_for(2 * TIMEOUT_NS)
    assert f"{dead.name} did not answer within master_timeout" in cluster.refusal(master, REMOVE, alive.name)
    cluster.change(master, REMOVE, dead.name)


def test_member_that_never_answered_this_master_counts_for_no_quorum() -> None:
    """Found by a world: a new master removed itself, and of the four that were left two had no vote yet."""
    cluster, former, (dead, master) = filled()
    dead.crash()
    cluster.run_for(2 * TIMEOUT_NS)
    cluster.run_until(lambda: former.replica.hand_over(cluster.now, waits=True))
    cluster.gather(former)
    assert cluster.elect() is master
    master.member.versions.note(dead.name, VERSION)
    assert f"{dead.name} did not answer within master_timeout" in cluster.refusal(master, REMOVE, former.name)


def test_learner_that_has_not_caught_up_is_not_promoted() -> None:
    cluster, master, _ = filled()
    cluster.change(master, ADD, "d")
    assert "did not answer within master_timeout" in cluster.refusal(master, PROMOTE, "d")
    joined = cluster.join("d")
    cluster.run_until(lambda: has_caught_up(master, joined))
    joined.syncs = False
    cluster.send_all(write(9))
    cluster.run_until(lambda: (9, 1) in master.answers())
    assert "d has " in cluster.refusal(master, PROMOTE, "d")


def test_trial_of_a_change_reports_the_members_and_changes_nothing() -> None:
    cluster, master, _ = filled()
    number = cluster.request(master, ADD, "d", is_trial=True)
    cluster.tick()
    assert master.replies()[number] == (OK, "P/S/orders: voters: a, b, c; learners: d")
    assert not master.replica.members.latest.learners


@pytest.mark.parametrize("kind", [Vote, Confirmed])
def test_votes_and_confirmations_of_unknown_processes_are_refused(kind: type) -> None:
    cluster, master, _ = filled()
    replica = master.replica
    frame = (
        Vote(replica.stream, "z", replica.epoch, replica.epoch, False, True, replica.incarnation)
        if kind is Vote
        else Confirmed(replica.stream, "z", replica.epoch, 1, 1, 0, incarnation=replica.incarnation)
    )
    master.run(cluster.now, frames=[frame])
    assert [each.reason for each in master.member.pop_refusals()] == ["it is not a member of this replication group"]


def test_entries_of_an_unknown_master_of_another_group_are_refused() -> None:
    cluster, _, (slave, _) = filled()
    replica = slave.replica
    frame = Entries(
        replica.stream, "z", replica.epoch + 1, 0, 0, (), 0, cluster.now, incarnation=replica.incarnation + 1
    )
    slave.run(cluster.now, frames=[frame])
    assert [each.reason for each in slave.member.pop_refusals()] == ["it is not a member of this replication group"]


def test_volatile_group_replaces_a_member() -> None:
    cluster = Changed(3, queue(volatile=True))
    master = cluster.elect()
    cluster.send_all(write(1))
    cluster.run_until(lambda: all(held(process) for process in cluster))
    gone = next(process for process in cluster if process is not master)
    gone.crash()
    joined = cluster.grow(master, "d")
    cluster.change(master, REMOVE, gone.name)
    master.crash()
    cluster.elect()
    assert held(joined) == ["1 enqueued"]
