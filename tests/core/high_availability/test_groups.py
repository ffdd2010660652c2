"""Groups over time: created, deleted and created again while members are away, and formed after losses.

Each was found with services as they were before: what a name named was taken for the thing itself.
"""

from __future__ import annotations

import copy

import msgspec
import pytest

from qsctl.core.admin.command import (
    CreateQueue,
    CreateSubscriber,
    DeleteQueue,
    DeleteSubscriber,
    ForceQuorum,
    GetMessages,
)
from qsctl.core.high_availability._groups import group_with_most, right_group
from qsctl.core.high_availability.ballot import NEW_MEMBER, HardState
from qsctl.core.high_availability.frames import Roll
from qsctl.core.high_availability.roles import Role, StoredLog
from qsctl.core.messages import CommandReply
from qsctl.core.records import EpochBegan
from qsctl.core.settings import SharedSubscriberSettings
from qsctl.errors import Refused
from qsctl.resource import ResourceKind
from tests.core.high_availability.cluster import (
    STREAM,
    TIMEOUT_NS,
    Cluster,
    Process,
    acknowledge,
    held,
    join,
    queue,
    write,
)
from tests.core.high_availability.member_commands import RESOURCE, SUBSCRIBER, command


def delete_and_create(cluster: Cluster, *names: str, size: int = 3) -> None:
    for name in names:
        cluster.send(name, command(1, DeleteQueue(RESOURCE)))
        while cluster[name].member.streams:
            cluster[name].run(cluster.now)
    for name in names:
        cluster.send(name, command(2, CreateQueue(SUBSCRIBER, queue(instances=size))))


def fill(cluster: Cluster, count: int = 5) -> Process:
    master = cluster.elect()
    for number in range(1, count + 1):
        cluster.send_all(write(number))
    cluster.run_until(lambda: all(len(held(process)) == count for process in cluster))
    return master


def lose(cluster: Cluster, *names: str) -> None:
    for name in names:
        cluster[name].crash()
    for name in names:
        cluster[name].start(cluster.now, is_lost=True)


def accepts(cluster: Cluster, number: int) -> None:
    cluster.send_all(write(number))
    cluster.run_until(lambda: any((number, 1) in process.answers() for process in cluster))


# Creation.


@pytest.mark.parametrize("volatile", [False, True])
@pytest.mark.parametrize("size", [2, 3, 5])
def test_a_queue_is_created_with_a_minority_down(size: int, volatile: bool) -> None:
    """Found: CREATE answered OK, and there was no master until every member was there."""
    cluster = Cluster(size)
    cluster.elect()
    quorum = size // 2 + 1
    for name in list(cluster.processes)[quorum:]:
        cluster[name].crash()
    new = queue("new", instances=size, volatile=volatile)
    cluster.send_all(command(1, CreateQueue(SUBSCRIBER, new)))
    replicas = [process.member.replicas["P/S/new"] for process in cluster]
    cluster.run_until(lambda: any(each.is_master for each in replicas), 3 * TIMEOUT_NS)
    cluster.send_all(write(1, topic="New"))
    cluster.run_until(lambda: any((1, 1) in process.answers() for process in cluster))


def test_a_member_that_was_away_at_the_creation_joins_when_it_creates_the_queue() -> None:
    cluster = Cluster(3)
    cluster.elect()
    cluster["c"].crash()
    cluster.send_all(command(1, CreateQueue(SUBSCRIBER, queue("new"))))
    cluster.run_until(lambda: any(each.member.replicas["P/S/new"].is_master for each in cluster))
    cluster.send_all(write(1, topic="New"))
    cluster["c"].start(cluster.now)
    cluster.send("c", command(2, CreateQueue(SUBSCRIBER, queue("new"))))
    cluster.run_until(lambda: held(cluster["c"], "P/S/new") == ["1 enqueued"])
    assert len({each.member.replicas["P/S/new"].incarnation for each in cluster}) == 1


@pytest.mark.parametrize("size", [3, 5])
def test_new_members_form_a_group_as_soon_as_a_quorum_is_there(size: int) -> None:
    cluster = Cluster(size)
    for process in cluster.processes.values():
        process.crash()
    quorum = size // 2 + 1
    for at, process in enumerate(cluster.processes.values(), 1):
        if at <= quorum:
            cluster.run_for(3 * TIMEOUT_NS)
            assert cluster.masters() == []
            process.start(cluster.now, is_new=True)
            assert process.replica.role is Role.LEARNER
    cluster.elect()
    accepts(cluster, 1)
    late = cluster[list(cluster.processes)[-1]]
    late.start(cluster.now, is_new=True)
    cluster.run_until(lambda: held(late) == ["1 enqueued"] and late.replica.role is Role.SLAVE)


@pytest.mark.parametrize("size", [2, 3, 5])
def test_new_members_form_a_group_at_once_when_all_answer_that_they_have_nothing(size: int) -> None:
    cluster = Cluster(size)
    for process in cluster.processes.values():
        process.crash()
    for process in cluster.processes.values():
        process.start(cluster.now, is_new=True)
    cluster.run_until(lambda: all(each.replica.role is not Role.LEARNER for each in cluster), TIMEOUT_NS // 2)
    cluster.elect()
    accepts(cluster, 1)


def test_new_members_form_no_group_while_one_has_a_log() -> None:
    """Two disks are others, and the third member is there: what it has is not given away."""
    cluster = Cluster(3)
    fill(cluster)
    for name in "ab":
        cluster[name].crash()
    for name in "ab":
        cluster[name].start(cluster.now, is_new=True)
    cluster.run_for(10 * TIMEOUT_NS)
    assert cluster.masters() == []
    assert len(held(cluster["c"])) == 5


# Deletion and creation while a member is away.


@pytest.mark.parametrize("size", [3, 5])
def test_a_member_that_missed_deletion_and_creation_decides_nothing(size: int) -> None:
    """Found: it was elected with its 21 entries, and the samples that were consumed were delivered again."""
    cluster = Cluster(size)
    fill(cluster, 20)
    cluster.run_for(TIMEOUT_NS)
    stale = cluster["c"]
    stale.crash()
    cluster.send_all(join())
    for number in range(1, 21):
        cluster.run_until(lambda: any(process.deliveries() for process in cluster))
        cluster.send_all(acknowledge(number))
    cluster.run_until(lambda: not any(held(process) for process in cluster))
    delete_and_create(cluster, *(process.name for process in cluster), size=size)
    deliveries = sum(len(process.deliveries()) for process in cluster)
    stale.start(cluster.now)
    assert len(held(stale)) >= 0
    cluster.run_for(10 * TIMEOUT_NS)
    assert not stale.replica.is_master
    (master,) = cluster.masters()
    cluster.send_all(join())
    cluster.run_for(3 * TIMEOUT_NS)
    assert sum(len(process.deliveries()) for process in cluster) == deliveries, "nothing of the deleted queue comes"
    assert stale.replica.role is Role.SLAVE
    changes = [each.reason for each in stale.member.pop_changes()]
    assert sum("of a queue of this name that was deleted" in reason for reason in changes) == 1
    assert stale.replica.incarnation == cluster[master].replica.incarnation
    accepts(cluster, 30)
    cluster.run_until(lambda: len({tuple(held(process)) for process in cluster}) == 1)
    stale.crash()
    stale.start(cluster.now)
    cluster.run_until(lambda: stale.replica.master == master)


def test_a_stale_member_and_one_of_the_new_group_are_enough() -> None:
    """The third is gone for good."""
    cluster = Cluster(3)
    fill(cluster)
    cluster.run_for(TIMEOUT_NS)
    cluster["c"].crash()
    delete_and_create(cluster, "a", "b")
    cluster.run_until(lambda: bool(cluster.masters()))
    cluster["b"].crash()
    cluster["c"].start(cluster.now)
    cluster.elect()
    assert held(cluster["a"]) == held(cluster["c"]) == []
    accepts(cluster, 30)


def test_of_two_members_the_one_that_missed_the_deletion_changes_its_group() -> None:
    cluster = Cluster(2)
    fill(cluster)
    cluster.run_for(TIMEOUT_NS)
    cluster["b"].crash()
    delete_and_create(cluster, "a", size=2)
    cluster["a"].crash()
    cluster["a"].start(cluster.now)
    cluster["b"].start(cluster.now)
    cluster.elect()
    assert held(cluster["a"]) == held(cluster["b"]) == []
    accepts(cluster, 30)


def test_a_member_that_deletes_and_creates_alone_comes_back_without_a_vote() -> None:
    """What it promised in the group of the others it has forgotten."""
    cluster = Cluster(3)
    master = fill(cluster)
    slave = next(process for process in cluster if process is not master)
    delete_and_create(cluster, slave.name)
    cluster.run_until(lambda: slave.replica.role is Role.LEARNER)
    cluster.run_until(lambda: slave.replica.role is Role.SLAVE and len(held(slave)) == 5)
    assert slave.replica.incarnation == master.replica.incarnation


def test_the_incarnation_is_in_snapshots_and_survives_restarts() -> None:
    cluster = Cluster(3)
    for process in cluster:
        process.compacted_over_count = 10
        process.start(0)
    master = cluster.elect()
    cluster.send_all(join())
    for number in range(1, 30):
        cluster.send_all(write(number))
        cluster.run_until(lambda number=number: (number, 1) in master.answers())  # type: ignore[misc]
        cluster.send_all(acknowledge(number))
    cluster.run_for(TIMEOUT_NS)
    incarnation = master.replica.incarnation
    assert incarnation > 0
    for process in cluster:
        assert process.replica.log.base.index > 0
        assert process.stores[STREAM].hard_state.incarnation == incarnation
        process.crash()
        process.stores[STREAM].hard_state = HardState(1)
        process.start(cluster.now)
        assert abs(process.replica.incarnation) == incarnation, "the log says it, too"
    cluster.elect()
    cluster.run_until(lambda: {process.replica.incarnation for process in cluster} == {incarnation})


def test_a_group_of_an_earlier_version_gets_an_incarnation_and_keeps_its_samples() -> None:
    cluster = Cluster(3)
    fill(cluster)
    for process in cluster:
        process.crash()
        store = process.stores[STREAM]
        store.hard_state = HardState(store.hard_state.epoch, store.hard_state.vote)
        store.records[0] = type(store.records[0])(STREAM, 1, "a", True)  # type: ignore[call-arg]
        process.start(cluster.now)
    cluster.elect()
    cluster.run_until(lambda: len({process.replica.incarnation for process in cluster}) == 1)
    assert cluster["a"].replica.incarnation > 0
    assert all(len(held(process)) == 5 for process in cluster)


# Losses.


def test_after_the_loss_of_a_majority_of_disks_there_is_no_master_without_an_operator_s_word() -> None:
    """Found: two formed without the third, and took back what it still had."""
    cluster = Cluster(3)
    fill(cluster)
    lose(cluster, "a", "b")
    cluster.run_for(10 * TIMEOUT_NS)
    assert cluster.masters() == []
    reason = cluster["a"].member.statuses()[STREAM].reason
    assert "1 of 3 replicas are there with their log, and 2 are a quorum" in reason
    assert "qsctl member force-quorum" in reason
    said = cluster["a"].replica.check_force(cluster.now)
    assert "the longest log that is left has 6 entries" in said
    cluster["a"].replica.force(cluster.now)
    cluster.elect()
    cluster.run_until(lambda: all(len(held(process)) == 5 for process in cluster))
    accepts(cluster, 30)


def test_the_floor_survives_a_restart() -> None:
    """Found: the two that lost their disks restarted alone, and elected an empty log."""
    cluster = Cluster(3)
    fill(cluster)
    lose(cluster, "a", "b")
    cluster.run_for(TIMEOUT_NS)
    for name in "ab":
        cluster[name].replica.force(cluster.now)
        cluster[name].run(cluster.now)
    cluster["c"].crash()
    for name in "ab":
        cluster[name].crash()
        cluster[name].start(cluster.now)
        assert cluster[name].replica.ballot.floor.index == 6
    cluster.run_for(10 * TIMEOUT_NS)
    assert cluster.masters() == []
    cluster["c"].start(cluster.now)
    cluster.elect()
    cluster.run_until(lambda: all(len(held(process)) == 5 for process in cluster))


def test_entries_of_a_former_group_are_not_taken_for_those_of_the_group_that_has_followed_it() -> None:
    """Found by a world: damage took the deletion between the two logs, whose epochs have the same numbers."""
    cluster = Cluster(3)
    master = fill(cluster)
    slave = next(process for process in cluster if process is not master)
    slave.crash()
    store = slave.stores[STREAM]
    assert store.hard_state.incarnation
    store.records = [
        msgspec.structs.replace(each, incarnation=each.incarnation + 1) if isinstance(each, EpochBegan) else each
        for each in store.records
    ]
    slave.start(cluster.now)
    assert (slave.replica.role, slave.replica.log.last_index) == (Role.LEARNER, 0)
    cluster.run_until(lambda: len(held(slave)) == 5)
    ours, theirs = slave.replica.log, master.replica.log
    assert [ours.entry(at) for at in range(1, ours.last_index + 1)] == [
        theirs.entry(at) for at in range(1, theirs.last_index + 1)
    ]


def learner_with_the_longest_log(cluster: Cluster) -> None:
    """`a` has a part of the log, `b` all of it and no vote yet, `c` lost it."""
    fill(cluster)
    for name in "abc":
        cluster[name].crash()
    del cluster["a"].stores[STREAM].records[3:]
    store = cluster["b"].stores[STREAM]
    store.hard_state = msgspec.structs.replace(store.hard_state, vote=NEW_MEMBER)
    for name in "abc":
        cluster[name].start(cluster.now, is_lost=name == "c")
    cluster.run_for(10 * TIMEOUT_NS)
    assert cluster.masters() == []


def test_a_word_at_one_member_leaves_the_next_word_to_the_one_with_the_longest_log() -> None:
    """Found by a world: the second word was refused, for two had a vote, of which none could be elected."""
    cluster = Cluster(3)
    learner_with_the_longest_log(cluster)
    cluster["c"].replica.force(cluster.now)
    cluster.run_for(10 * TIMEOUT_NS)
    assert cluster.masters() == []
    reason = cluster["a"].member.statuses()[STREAM].reason
    assert "no replica that has a vote reaches entry 6, which the group had" in reason
    assert "qsctl member force-quorum" in reason
    assert "the longest log that is left has 6 entries" in cluster["b"].replica.check_force(cluster.now)
    cluster["b"].replica.force(cluster.now)
    cluster.elect()
    cluster.run_until(lambda: all(len(held(process)) == 5 for process in cluster))
    accepts(cluster, 30)


def test_a_learner_gives_up_a_master_that_is_gone() -> None:
    """Found by the same world: for the learner its master was there for good, so that the word was refused."""
    cluster = Cluster(3)
    master = fill(cluster)
    lost = "b" if master.name == "a" else "a"
    lose(cluster, lost)
    cluster.cut(lost)
    cluster.run_for(2 * TIMEOUT_NS)
    cluster.heal()
    cluster[lost].syncs = False
    cluster.run_until(lambda: cluster[lost].replica.master == master.name)
    for name in "abc":
        if name != lost:
            cluster[name].crash()
    cluster.run_for(3 * TIMEOUT_NS)
    assert cluster[lost].replica.master == ""
    assert "1 of 3 members answer" in cluster[lost].member.statuses()[STREAM].reason


def test_of_two_creations_without_a_quorum_the_one_of_most_members_goes_on_by_an_operator_s_word() -> None:
    """Found by a world: `c` was new when the queue was deleted and created there alone, and `b` lost its disk."""
    cluster = Cluster(3)
    fill(cluster)
    cluster["c"].crash()
    cluster["c"].start(cluster.now, is_new=True)
    cluster.cut("c")
    delete_and_create(cluster, "c")
    lose(cluster, "b")
    cluster["a"].crash()
    cluster["a"].start(cluster.now)
    cluster.heal()
    cluster.run_for(10 * TIMEOUT_NS)
    assert cluster.masters() == []
    assert "c: of another creation of the queue, and none has a quorum" in cluster["a"].member.statuses()[STREAM].reason
    said = {name: cluster[name].replica.check_force(cluster.now) for name in "abc"}
    assert "has its log, 6 entries, and keeps it" in said["a"]
    assert "votes again; the longest log that is left has 6 entries" in said["b"]
    assert "0 samples, is of another creation of the queue than most members have; it is dropped" in said["c"]
    cluster["c"].replica.force(cluster.now)
    cluster.elect()
    cluster.run_until(lambda: all(len(held(process)) == 5 for process in cluster))
    accepts(cluster, 30)


def test_a_member_that_lost_its_log_votes_by_an_operator_s_word_in_the_group_that_none_left() -> None:
    """Found by a world: it voted for the log of the deleted queue, and took back what was accepted then."""
    cluster = Cluster(3)
    fill(cluster)
    cluster.run_for(TIMEOUT_NS)
    cluster["c"].crash()
    delete_and_create(cluster, "a", "b")
    cluster["a"].crash()
    lose(cluster, "b")
    cluster["a"].start(cluster.now)
    cluster["c"].start(cluster.now)
    cluster.cuts = {("a", "c"), ("c", "a")}  # it does not learn that its queue was deleted
    cluster.run_until(lambda: cluster["b"].replica.answer_count(cluster.now) == 2)
    assert "the longest log that is left has 0 entries" in cluster["b"].replica.check_force(cluster.now)
    cluster["b"].replica.force(cluster.now)
    cluster.run_until(cluster.masters)
    accepts(cluster, 30)
    cluster.heal()
    cluster.run_for(4 * TIMEOUT_NS)
    assert [held(process) for process in cluster] == 3 * [["30 enqueued"]]


def test_a_group_that_one_member_created_draws_none_from_a_group_that_may_be_committed() -> None:
    """Found by a world: four members formed a group and accepted samples; before all knew of the first commit they went
    over to the one of the fifth, where alone the queue had been deleted and created, and the samples were gone."""
    cluster = Cluster(5)
    for process in cluster.processes.values():
        process.crash()
    for name in "abcde":
        cluster[name].start(cluster.now, is_new=True)
    cluster.cut("e")
    delete_and_create(cluster, "e", size=5)
    cluster.elect()
    accepts(cluster, 1)
    created = cluster["e"].replica.incarnation
    assert created > 0
    for name in "abcd":
        cluster[name].crash()
        state = cluster[name].stores[STREAM].hard_state
        # As after a crash right after the commit: it is known to the master alone, which is away now.
        cluster[name].stores[STREAM].hard_state = msgspec.structs.replace(state, incarnation=0)
    cluster.heal()
    for name in "bcd":
        cluster[name].start(cluster.now)
    cluster.elect()
    cluster.run_until(lambda: all(len(held(process)) == 1 for process in cluster))
    assert {process.replica.incarnation for process in cluster} != {created}


@pytest.mark.parametrize("where", ["own", "another's"])
def test_a_group_that_a_member_left_is_the_older_one(where: str) -> None:
    """Found by a world: the word went to the longer log, of a queue that another member's memory knew to be deleted."""
    x, y = 7, 9
    rolls = [roll("b", y, 0), roll("c", 0, 0, left=(x,))]
    left = (x,) if where == "own" else ()
    assert right_group(x, (), 3, rolls) == y
    assert group_with_most(x, left, 50, rolls if where != "own" else rolls[:1]) == y
    assert group_with_most(x, (), 50, rolls[:1]) == x, "nothing says which is older: the longest log goes on"


def roll(sender: str, incarnation: int, last_index: int, left: tuple[int, ...] = ()) -> Roll:
    return Roll(STREAM, sender, 1, 1, 1 if last_index else 0, last_index, False, 1, incarnation, False, left)


def test_a_member_that_joined_a_group_before_its_own_command_was_carried_out_has_no_vote_there() -> None:
    """Found by a world: its own DELETE and CREATE came later, it forgot what it had confirmed, and voted again."""
    cluster = Cluster(3)
    fill(cluster)
    cluster["c"].crash()
    delete_and_create(cluster, "a", "b")
    cluster.elect()
    accepts(cluster, 30)
    cluster["c"].start(cluster.now)
    cluster.run_until(lambda: held(cluster["c"]) == ["30 enqueued"])
    cluster.cut("c")
    delete_and_create(cluster, "c")
    assert cluster["c"].replica.incarnation == cluster["a"].replica.incarnation
    assert cluster["c"].replica.role is Role.LEARNER
    assert cluster["c"].replica.incarnation not in cluster["c"].replica.ballot.state.left
    cluster.heal()
    cluster.run_until(lambda: held(cluster["c"]) == ["30 enqueued"] and cluster["c"].replica.role is Role.SLAVE)


@pytest.mark.parametrize("is_compacted", [False, True])
@pytest.mark.parametrize("goes_down", ["after the deletion", "after the creation"])
def test_a_log_that_outlived_its_queue_is_not_that_of_the_next_one(goes_down: str, is_compacted: bool) -> None:
    """Found by a world: a disk kept the deletion in the service's own state, and the log of the replicas as it was.

    With a member that was away at the deletion the old log was a quorum, and the deleted samples were delivered.
    """
    cluster = Cluster(3)
    fill(cluster)
    cluster["c"].crash()
    b = cluster["b"]
    log = copy.deepcopy(b.stores[STREAM])

    def crash() -> None:
        if is_compacted:
            b.service_records = list(b.member.engine.snapshot_service())
        b.crash()
        b.stores[STREAM] = log
        b.start(cluster.now)

    cluster.send("b", command(1, DeleteQueue(RESOURCE)))
    while b.member.streams:
        b.run(cluster.now)
    if goes_down == "after the deletion":
        crash()
    cluster.send("b", command(2, CreateQueue(SUBSCRIBER, queue(instances=3))))
    while not b.member.streams:
        b.run(cluster.now)
    created = b.replica.incarnation
    if goes_down == "after the creation":
        crash()
    assert b.member.outlived == {STREAM}
    cluster["a"].crash()
    cluster["c"].start(cluster.now)
    cluster.elect()
    assert held(cluster["b"]) == held(cluster["c"]) == []
    assert b.replica.incarnation == cluster["c"].replica.incarnation == created
    accepts(cluster, 30)


def test_a_log_whose_queue_no_command_deleted_waits_for_it() -> None:
    """A configuration without the queue deletes nothing: with it again, the replica goes on."""
    cluster = Cluster(3)
    fill(cluster)
    b = cluster["b"]
    b.crash()
    queues, b._queues = b._queues, ()
    b.start(cluster.now)
    cluster.send("b", command(1, CreateQueue(SUBSCRIBER, queue(instances=3))))
    cluster.run_until(lambda: b.member.streams and len(held(b)) == 5)
    assert b.member.outlived == set()
    b._queues = queues


def test_each_queue_of_a_name_in_a_created_subscriber_is_a_group_of_its_own() -> None:
    """The queue's own creation counts, and not the subscriber's, which may be older or later."""
    cluster = Cluster(3)
    cluster.send_all(command(1, DeleteSubscriber(SUBSCRIBER)))
    cluster.run_until(lambda: all(not each.member.streams for each in cluster))
    participant = SUBSCRIBER.parent
    settings = SharedSubscriberSettings("S", queues=(queue(instances=3),))
    cluster.send_all(command(2, CreateSubscriber(participant, settings)))
    cluster.elect()
    found = {each.replica.incarnation for each in cluster}
    for number in (3, 5):
        cluster.send_all(command(number, DeleteQueue(RESOURCE)))
        cluster.run_until(lambda: all(not each.member.streams for each in cluster))
        cluster.send_all(command(number + 1, CreateQueue(SUBSCRIBER, queue(instances=3))))
        cluster.elect()
        (incarnation,) = {each.replica.incarnation for each in cluster}
        assert incarnation not in found
        found.add(incarnation)
    assert len(found) == 3


def test_no_replica_is_a_candidate_with_a_shorter_log_than_it_votes_for() -> None:
    """Found beside it: a replica gave itself the vote that it would refuse to another with the same log."""
    cluster = Cluster(5)
    fill(cluster)
    lose(cluster, "a", "b", "c")
    cluster.run_for(TIMEOUT_NS)
    cluster["a"].replica.force(cluster.now)
    cluster["a"].run(cluster.now)
    for name in "de":
        cluster[name].crash()
    for name in "bc":
        cluster[name].crash()
        cluster[name].start(cluster.now, is_new=True)
        state = cluster[name].replica.ballot.state
        cluster[name].replica.ballot.state = msgspec.structs.replace(state, vote="")
    cluster.run_for(10 * TIMEOUT_NS)
    assert not cluster["a"].replica.is_master
    assert "its log ends before entry 6" in cluster["a"].member.statuses()[STREAM].reason


def test_a_floor_that_no_log_reaches_any_more_is_lowered_by_another_word() -> None:
    """Found by asking for the next loss: the member with the longest log lost it, too, after the word was given."""
    cluster = Cluster(3)
    fill(cluster)
    lose(cluster, "a", "b")
    cluster.run_for(TIMEOUT_NS)
    for name in "ab":
        cluster[name].replica.force(cluster.now)
        cluster[name].run(cluster.now)
    lose(cluster, "c")
    cluster.run_for(10 * TIMEOUT_NS)
    assert cluster.masters() == []
    assert "no replica that has a vote reaches entry 6" in cluster["c"].member.statuses()[STREAM].reason
    said = cluster["a"].replica.check_force(cluster.now)
    assert "it votes for a log of 0 entries, the longest that is left, where 6 were to be reached" in said
    for name in "ab":
        cluster[name].replica.force(cluster.now)
        cluster[name].run(cluster.now)
    cluster.elect()
    accepts(cluster, 30)
    with pytest.raises(Refused, match=r"is its master"):
        cluster["a"].replica.check_force(cluster.now)


def test_two_that_lost_their_disks_form_without_the_third_by_an_operator_s_word_alone() -> None:
    cluster = Cluster(3)
    fill(cluster)
    cluster["c"].crash()
    lose(cluster, "a", "b")
    cluster.run_for(10 * TIMEOUT_NS)
    assert cluster.masters() == []
    for name in "ab":
        cluster[name].replica.force(cluster.now)
        cluster[name].run(cluster.now)
    cluster.elect()
    accepts(cluster, 30)
    cluster["c"].start(cluster.now)
    cluster.run_until(lambda: held(cluster["c"]) == held(cluster["a"]) == ["30 enqueued"])


def test_force_is_refused_where_a_quorum_has_its_log_or_too_few_are_there() -> None:
    cluster = Cluster(3)
    master = fill(cluster)
    lose(cluster, "a" if master.name != "a" else "b")
    lost = next(process for process in cluster if process.replica.role is Role.LEARNER)
    with pytest.raises(Refused, match="1 of 3 members answer, and 2 are a quorum"):
        lost.replica.check_force(cluster.now)
    cluster.run_for(TIMEOUT_NS // 2)
    with pytest.raises(Refused, match=r"is its master|a quorum of the replicas that answer has its log"):
        lost.replica.check_force(cluster.now)


def test_a_candidate_without_a_quorum_names_the_missing_members() -> None:
    cluster = Cluster(3)
    cluster.elect()
    for name in "bc":
        cluster[name].crash()
    cluster.run_for(10 * TIMEOUT_NS)
    reason = cluster["a"].member.statuses()[STREAM].reason
    assert "1 of 3 members answer, and 2 are a quorum: start the others" in reason


def test_samples_are_not_read_at_a_member_without_a_master() -> None:
    """Found: it answered that there are none."""
    cluster = Cluster(3)
    fill(cluster)
    for name in "bc":
        cluster[name].crash()
    cluster.run_for(10 * TIMEOUT_NS)
    cluster.send("a", command(9, GetMessages(RESOURCE.at(ResourceKind.MESSAGE))))
    code, text = cluster["a"].replies()[9]
    assert code == "ERROR"
    assert "P/S/orders has no master now, and what this member holds may not be all: 1 of 3 members answer" in text
    cluster["b"].start(cluster.now)
    cluster.elect()
    cluster.send("a", command(10, GetMessages(RESOURCE.at(ResourceKind.MESSAGE))))
    assert cluster["a"].replies()[10][0] == "OK"


def test_stale_samples_are_read_at_a_member_without_a_master_where_that_is_allowed() -> None:
    cluster = Cluster(3)
    fill(cluster)
    for name in "bc":
        cluster[name].crash()
    cluster.run_for(10 * TIMEOUT_NS)
    cluster.send("a", command(9, GetMessages(RESOURCE.at(ResourceKind.MESSAGE), allows_stale=True)))
    found = [each.reply for each in cluster["a"].sent if isinstance(each, CommandReply)]
    assert {each.retcode.name for each in found} == {"OK"}
    assert len([each for each in found if each.body is not None]) == len(held(cluster["a"])) > 0


def test_only_a_master_whose_quorum_answered_lately_is_current() -> None:
    cluster = Cluster(3)
    fill(cluster)
    master = cluster.elect()
    cluster.run_for(TIMEOUT_NS)
    statuses = {each.name: each.member.statuses()[STREAM] for each in cluster}
    assert [name for name, each in statuses.items() if each.is_current] == [master.name]
    assert all(0 < (each.behind_ns or 0) <= TIMEOUT_NS // 2 for each in statuses.values())
    for process in list(cluster):
        if process is not master:
            process.crash()
    cluster.run_for(TIMEOUT_NS * 3 // 4)
    status = master.member.statuses()[STREAM]
    assert (status.role, status.has_quorum, status.is_current) == ("master", True, False)
    cluster.run_for(TIMEOUT_NS)
    status = master.member.statuses()[STREAM]
    assert (master.replica.is_master, status.is_current) == (False, False)
    assert TIMEOUT_NS < (status.behind_ns or 0) < 3 * TIMEOUT_NS, "since a quorum of it answered"
    master.crash()
    master.start(cluster.now)
    assert master.member.statuses()[STREAM].behind_ns is None


def test_an_operator_s_word_is_a_command() -> None:
    cluster = Cluster(3)
    fill(cluster)
    lose(cluster, "a", "b")
    cluster.run_for(10 * TIMEOUT_NS)
    for number, is_trial in ((1, True), (2, False)):
        cluster.send_all(command(number, ForceQuorum(RESOURCE, is_trial)))
        replies = [process.replies()[number] for process in cluster]
        assert [code for code, _ in replies] == ["OK"] * 3
        assert "the longest log that is left has 6 entries" in replies[0][1]
        assert "has its log, 6 entries, and keeps it" in replies[2][1]
        assert [process.replica.role is Role.LEARNER for process in cluster] == [is_trial, is_trial, False]
    cluster.elect()
    cluster.send_all(command(3, ForceQuorum(RESOURCE)))
    assert {process.replies()[3][0] for process in cluster} == {"ERROR"}
    assert "is its master. There is nothing to force" in cluster["a"].replies()[3][1]


def test_a_restore_without_a_store_is_a_loss_only_where_declared() -> None:
    cluster = Cluster(3)
    process = cluster["a"]
    for given, role in (
        ({"is_new": True}, Role.LEARNER),
        ({"is_lost": True}, Role.LEARNER),
        ({"is_lost": False}, Role.SLAVE),
    ):
        process.start(cluster.now)
        process.member.replicas[STREAM].restore(cluster.now, StoredLog(), **({"is_lost": False} | given))  # type: ignore[arg-type]
        process.member.replicas[STREAM].start(cluster.now)
        assert process.replica.role is role
