"""Elections of a cluster of three and more [QS 7.1.2]."""

from __future__ import annotations

from itertools import pairwise

import pytest

from qsctl.core.high_availability.ballot import HardState
from qsctl.core.high_availability.frames import Canvass, Confirmed, Entries, Frame, Heartbeat, Vote
from qsctl.core.high_availability.replica import DISK_HANGS, WAIT_FACTOR_MAX
from qsctl.core.high_availability.roles import Role
from qsctl.core.messages import EPOCH_SHIFT
from qsctl.instant import Nanoseconds
from tests.core.high_availability.cluster import (
    STEP_NS,
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


def ask(cluster: Cluster, voter: Process, candidate: str, epoch: int, last: tuple[int, int], *, trial: bool) -> bool:
    """Whether a voter grants its vote, once that is durable; one that leaves an election alone says nothing."""
    stream = voter.replica.stream
    voter.run(
        cluster.now, frames=[Canvass(stream, candidate, epoch - trial, epoch, *last, trial, voter.replica.incarnation)]
    )
    answers = [
        frame.granted
        for recipient, frame in voter.member.pop_frames()
        if isinstance(frame, Vote) and recipient == candidate
    ]
    assert len(answers) <= 1
    return answers == [True]


class SlowCluster(Cluster):
    """A cluster whose frames take half a round trip."""

    def __init__(self, round_trip_ns: Nanoseconds, size: int = 3) -> None:
        super().__init__(size)
        self._one_way_ns = round_trip_ns // 2
        self._on_the_way: list[tuple[Nanoseconds, tuple[str, str, Frame]]] = []

    def tick_others(self, than: Process | None) -> None:
        self._on_the_way += [(self.now + self._one_way_ns, each) for each in self.frames]
        at = self.now + STEP_NS
        self.frames = [each for due, each in self._on_the_way if due <= at]
        self._on_the_way = [(due, each) for due, each in self._on_the_way if due > at]
        super().tick_others(than)


def trials(cluster: Cluster, name: str, duration_ns: Nanoseconds) -> list[Nanoseconds]:
    """When a member begins a trial."""
    begun = []
    for _ in range(duration_ns // STEP_NS):
        cluster.tick()
        if any(sender == name and isinstance(frame, Canvass) for sender, _, frame in cluster.frames):
            begun.append(cluster.now)
    return begun


def test_one_of_three_becomes_master_and_commits_a_sample_at_a_quorum() -> None:
    cluster = Cluster()
    master = cluster.elect()
    cluster.send_all(join())
    cluster.send_all(write(1))
    assert master.answers() == []
    cluster.run_until(lambda: master.answers() == [(1, 1)])
    cluster.run_until(lambda: [each.identity.sequence_number for each in master.deliveries()] == [1])
    assert master.deliveries()[0].flags == master.replica.epoch << EPOCH_SHIFT
    cluster.send_all(acknowledge(1))
    cluster.run_until(lambda: all(held(process) == [] for process in cluster))


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
def test_a_cluster_of_any_size_elects_one_master(size: int) -> None:
    cluster = Cluster(size)
    master = cluster.elect()
    cluster.run_for(5 * TIMEOUT_NS)
    assert cluster.masters() == [master.name]
    assert {process.replica.master for process in cluster} == {master.name}
    assert {process.replica.epoch for process in cluster} == {1}


@pytest.mark.parametrize("size", [3, 5])
@pytest.mark.parametrize("tenths", [1, 3, 5, 7])
def test_the_first_candidacy_elects_a_lasting_master_however_late_the_votes_come(tenths: int, size: int) -> None:
    """Beyond eight tenths no master lasts: what a quorum confirmed lately is older than master_timeout."""
    cluster = SlowCluster(tenths * TIMEOUT_NS // 10, size)
    master = cluster.elect()
    cluster.run_for(10 * TIMEOUT_NS)
    assert cluster.masters() == [master.name]
    assert {process.replica.epoch for process in cluster} == {1}


def test_a_round_trip_of_two_timeouts_uses_up_no_epoch_without_a_master() -> None:
    cluster = SlowCluster(2 * TIMEOUT_NS)
    cluster.run_for(40 * TIMEOUT_NS)
    elected = [each for process in cluster for each in process.member.pop_changes() if each.role is Role.MASTER]
    assert elected
    assert max(process.replica.epoch for process in cluster) <= len(elected) + 1


def test_votes_for_a_candidacy_count_after_the_next_trial_began() -> None:
    cluster = Cluster(3)
    candidate = cluster["a"]
    stream = candidate.replica.stream
    cluster.run_until(lambda: candidate.replica.role is Role.CANDIDATE)
    candidate.run(cluster.now, frames=[Vote(stream, "b", 0, 1, True, True)])
    assert candidate.replica.epoch == 1
    cluster.cut("a")
    assert trials(cluster, "a", 3 * TIMEOUT_NS), "it has asked whether it would get votes in epoch 2"
    candidate.run(cluster.now, frames=[Vote(stream, "b", 1, 1, False, True)])
    assert (candidate.replica.role, candidate.replica.epoch) == (Role.MASTER, 1)


def test_votes_for_a_candidacy_of_an_earlier_process_count_for_nothing() -> None:
    cluster = Cluster(3)
    candidate = cluster["a"]
    stream = candidate.replica.stream
    cluster.run_until(lambda: candidate.replica.role is Role.CANDIDATE)
    candidate.run(cluster.now, frames=[Vote(stream, "b", 0, 1, True, True)])
    cluster.cut("a")
    candidate.crash()
    candidate.start(cluster.now)
    assert trials(cluster, "a", 3 * TIMEOUT_NS)
    for voter in ("b", "c"):
        candidate.run(cluster.now, frames=[Vote(stream, voter, 1, 1, False, True)])
    assert candidate.replica.role is Role.CANDIDATE


def test_votes_count_for_nothing_once_another_is_master() -> None:
    cluster = Cluster(3)
    loser = cluster["a"]
    stream = loser.replica.stream
    cluster.run_until(lambda: loser.replica.role is Role.CANDIDATE)
    loser.run(cluster.now, frames=[Vote(stream, "c", 0, 1, True, True)])
    loser.run(cluster.now, frames=[Entries(stream, "b", 1, 0, 0, (), 0, cluster.now)])
    assert (loser.replica.role, loser.replica.master) == (Role.SLAVE, "b")
    cluster.cut("a")
    assert trials(cluster, "a", 3 * TIMEOUT_NS)
    loser.run(cluster.now, frames=[Vote(stream, "c", 1, 1, False, True)])
    assert loser.replica.role is Role.CANDIDATE


def test_a_candidate_waits_no_shorter_than_at_first_for_the_votes_of_a_trial() -> None:
    cluster = Cluster(3, jitter=(0.5, 0.5, 0.5))
    cluster.cut("a")
    begun = trials(cluster, "a", 20 * TIMEOUT_NS)
    waits = [(after - before) / TIMEOUT_NS for before, after in pairwise([0, *begun])]
    assert waits == pytest.approx([1.5] * len(waits), abs=0.05)
    assert len(waits) > 10


def test_a_candidate_that_is_not_elected_waits_longer_up_to_a_bound() -> None:
    cluster = Cluster(3, jitter=(0.5, 0.5, 0.5))
    cluster.cut("a")
    candidate = cluster["a"]
    waits = []
    last = cluster.now
    for _ in range(5):
        while not (begun := trials(cluster, "a", STEP_NS)):
            pass
        waits.append((begun[0] - last) / TIMEOUT_NS)
        last = begun[0]
        epoch = candidate.replica.epoch
        vote = Vote(candidate.replica.stream, "b", epoch, epoch + 1, True, True)
        candidate.run(cluster.now, frames=[vote])
        assert candidate.replica.epoch == epoch + 1
        candidate.member.pop_frames()
    assert waits == pytest.approx([1.5, 1.5, *[1.5 * WAIT_FACTOR_MAX] * 3], abs=0.05)


def test_less_than_a_quorum_elects_no_master() -> None:
    cluster = Cluster(4)
    cluster.cut("a", "b")
    cluster.run_for(10 * TIMEOUT_NS)
    assert cluster.masters() == []
    assert {process.replica.epoch for process in cluster} == {0}, "trials change no epoch"


def test_a_voter_votes_once_an_epoch_also_after_a_restart() -> None:
    cluster = Cluster(3)
    voter = cluster["c"]
    assert ask(cluster, voter, "a", 1, (0, 0), trial=False)
    assert ask(cluster, voter, "a", 1, (0, 0), trial=False), "the same again, for its answer may be lost"
    assert not ask(cluster, voter, "b", 1, (0, 0), trial=False)
    voter.crash()
    voter.start(cluster.now)
    assert voter.stores["P/S/orders"].hard_state == HardState(1, "a")
    cluster.now += TIMEOUT_NS + STEP_NS  # before, it withholds its vote
    assert not ask(cluster, voter, "b", 1, (0, 0), trial=False)
    assert ask(cluster, voter, "b", 2, (0, 0), trial=False)


def test_a_vote_leaves_once_it_is_durable() -> None:
    cluster = Cluster(3)
    voter = cluster["c"]
    voter.syncs = False
    voter.run(0, frames=[Canvass(voter.replica.stream, "a", 1, 1, 0, 0, False)])
    assert voter.member.pop_frames() == []
    voter.syncs = True
    voter.run(0)
    assert [(recipient, type(frame)) for recipient, frame in voter.member.pop_frames()] == [("a", Vote)]


def test_a_candidate_with_a_log_less_up_to_date_gets_no_vote() -> None:
    cluster = Cluster(3)
    master = cluster.elect()
    cluster.send_all(write(1), write(2))
    cluster.run_until(lambda: master.answers() == [(1, 1), (2, 1)])
    cluster.run_for(TIMEOUT_NS)
    master.crash()
    cluster.run_for(TIMEOUT_NS + TIMEOUT_NS // 5)
    voter = next(process for process in cluster if process.replica.role is Role.SLAVE)
    last = voter.replica.log.last
    for trial, one, other in ((True, 2, 2), (False, 2, 3)):
        assert not ask(cluster, voter, master.name, one, (last.epoch, last.index - 1), trial=trial)
        assert not ask(cluster, voter, master.name, other, (last.epoch - 1, last.index + 9), trial=trial), (
            "longer, but older"
        )
    assert ask(cluster, voter, master.name, 4, (last.epoch, last.index), trial=False)


def test_a_replica_that_follows_its_master_votes_for_no_other() -> None:
    cluster = Cluster(3)
    master = cluster.elect()
    cluster.run_for(TIMEOUT_NS)
    voter, other = (process for process in cluster if process is not master)
    assert not ask(cluster, voter, other.name, 2, (9, 9), trial=True)
    voter.run(cluster.now, frames=[Canvass(voter.replica.stream, other.name, 2, 2, 9, 9, False)])
    assert voter.replica.epoch == 1
    assert voter.replica.ballot.state.vote == master.name


def test_a_voter_that_restarts_withholds_its_vote_as_long_as_a_master_may_count_on_it() -> None:
    """The process before may have confirmed something that the master has yet to hear of."""
    cluster = Cluster(3)
    master = cluster.elect()
    cluster.run_for(TIMEOUT_NS)
    voter, other = (process for process in cluster if process is not master)
    voter.crash()
    voter.start(cluster.now)
    started_at = cluster.now
    for passed_ns in (0, TIMEOUT_NS // 2, TIMEOUT_NS):
        cluster.now = started_at + passed_ns
        assert not ask(cluster, voter, other.name, 2, (9, 9), trial=True)
        assert not ask(cluster, voter, other.name, 2, (9, 9), trial=False)
        assert voter.replica.epoch == 1
    cluster.now = started_at + TIMEOUT_NS + STEP_NS
    assert ask(cluster, voter, other.name, 2, (9, 9), trial=True)
    assert ask(cluster, voter, other.name, 2, (9, 9), trial=False)


def test_a_new_replica_votes_at_once() -> None:
    cluster = Cluster(3)
    assert ask(cluster, cluster["c"], "a", 1, (0, 0), trial=True)


def test_a_voter_that_learns_of_a_later_epoch_withholds_its_vote_all_the_same() -> None:
    """What it confirmed before may be on its way to the master."""
    cluster = Cluster(3)
    master = cluster.elect()
    cluster.run_for(TIMEOUT_NS)
    voter, other = (process for process in cluster if process is not master)
    voter.run(
        cluster.now, frames=[Canvass(voter.replica.stream, master.name, 2, 2, 0, 0, False, voter.replica.incarnation)]
    )
    assert (voter.replica.epoch, voter.replica.master) == (2, "")
    assert not ask(cluster, voter, other.name, 2, (9, 9), trial=False)
    cluster.now += TIMEOUT_NS + STEP_NS
    assert ask(cluster, voter, other.name, 2, (9, 9), trial=False)


def test_a_replica_that_was_cut_off_comes_back_without_deposing_the_master() -> None:
    cluster = Cluster(3)
    master = cluster.elect()
    lonely = next(process for process in cluster if process is not master)
    cluster.cut(lonely.name)
    cluster.run_for(10 * TIMEOUT_NS)
    assert lonely.replica.role is Role.CANDIDATE
    cluster.heal()
    cluster.run_for(3 * TIMEOUT_NS)
    assert cluster.masters() == [master.name]
    assert master.replica.epoch == 1


def test_a_master_without_a_quorum_steps_down_and_its_samples_are_taken_back() -> None:
    cluster = Cluster(3)
    master = cluster.elect()
    cluster.send_all(join())
    cluster.cut(master.name)
    cluster.send(master.name, write(1))
    cluster.run_for(2 * TIMEOUT_NS)
    assert not master.replica.is_master
    assert master.answers() == [], "its log has the sample, and another may get it from there"
    assert master.deliveries() == []
    successor = next(process for process in cluster if process.replica.is_master)
    cluster.heal()
    cluster.run_until(lambda: master.replica.master == successor.name)
    cluster.run_until(lambda: master.replica.log.last == successor.replica.log.last)
    assert held(master) == held(successor) == []
    cluster.send_all(write(1, attempt=2))
    cluster.run_until(lambda: (1, 1) in successor.answers())


def test_a_paused_master_delivers_nothing_when_it_goes_on() -> None:
    """What confirmed its entries is in its inbox, before the news that there is another master."""
    cluster = Cluster(3)
    master = cluster.elect()
    cluster.send_all(join())
    cluster.send_all(write(1))
    slaves = [process for process in cluster if process is not master]
    inbox = []
    while not inbox or not any(process.replica.is_master for process in slaves):
        arriving, cluster.frames = cluster.frames, []
        cluster.now += TIMEOUT_NS // 50
        inbox += [frame for _, recipient, frame in arriving if recipient == master.name]
        for process in slaves:
            process.run(cluster.now, frames=[frame for _, to, frame in arriving if to == process.name])
            cluster.gather(process)
    sent_before = len(master.deliveries())
    for frame in inbox:
        master.run(cluster.now, frames=[frame])
    assert len(master.deliveries()) == sent_before
    assert not master.replica.is_master


def test_a_store_that_fails_silences_its_replica_and_another_takes_over() -> None:
    cluster = Cluster(3)
    master = cluster.elect()
    master.member.store_failed(cluster.now, master.replica.stream)
    cluster.gather(master)
    assert master.replica.role is Role.FAILED
    successor = next(iter([cluster.elect()]))
    assert successor is not master
    master.run(cluster.now, [write(1)])
    assert master.member.pop_frames() == []
    assert master.answers() == []


def test_a_master_whose_disk_hangs_follows_until_the_disk_answers() -> None:
    cluster = Cluster(3)
    master = cluster.elect()
    others = [process for process in cluster if process is not master]
    cluster.run_for(5 * TIMEOUT_NS)
    assert master.replica.is_master, "a disk with nothing to sync does not hang"
    master.syncs = False
    cluster.send_all(write(1))
    cluster.run_until(lambda: not master.replica.is_master, within_ns=2 * TIMEOUT_NS)
    assert master.member.statuses()[STREAM].reason.startswith(DISK_HANGS)
    cluster.run_until(lambda: any(process.replica.is_master for process in others), within_ns=5 * TIMEOUT_NS)
    cluster.send_all(write(1, attempt=2))
    cluster.run_until(lambda: any((1, 1) in process.answers() for process in others))
    begun = trials(cluster, master.name, 10 * TIMEOUT_NS)
    assert begun == []
    assert DISK_HANGS in master.member.statuses()[STREAM].reason
    master.syncs = True
    cluster.tick()
    cluster.tick()
    assert DISK_HANGS not in master.member.statuses()[STREAM].reason
    others[1].crash()
    assert cluster.elect(), "its vote counts again"


def test_a_replica_whose_disk_hangs_begins_no_election() -> None:
    cluster = Cluster(3)
    master = cluster.elect()
    slave = next(process for process in cluster if process is not master)
    slave.syncs = False
    cluster.send_all(write(1))
    cluster.run_for(3 * TIMEOUT_NS)
    cluster.cut(slave.name)
    assert trials(cluster, slave.name, 10 * TIMEOUT_NS) == []
    slave.syncs = True
    assert trials(cluster, slave.name, 10 * TIMEOUT_NS)


def test_a_disk_that_syncs_slowly_does_not_hang() -> None:
    """Writes wait all the time, and some sync ends within each master_timeout."""
    cluster = Cluster(3)
    master = cluster.elect()
    for number in range(1, 40):
        cluster.send_all(write(number))
        master.syncs = False
        cluster.run_for(TIMEOUT_NS // 2)
        cluster.send_all(write(100 + number))
        master.syncs = True
        cluster.tick()
        master.syncs = False
    assert cluster.masters() == [master.name]


def test_the_time_of_a_pause_is_no_time_of_a_hanging_disk() -> None:
    """Alone it needs no quorum, and the sync has ended when the process goes on, but is not reported yet."""
    cluster = Cluster(1)
    master = cluster.elect()
    master.syncs = False
    cluster.send_all(write(1))
    cluster.now += 5 * TIMEOUT_NS
    cluster.tick()
    master.syncs = True
    cluster.run_for(2 * TIMEOUT_NS)
    assert [change.role for change in master.member.pop_changes()].count(Role.MASTER) == 1
    assert master.replica.is_master


def test_changes_of_roles_have_a_reason() -> None:
    cluster = Cluster(3, queue())
    master = cluster.elect()
    changes = master.member.pop_changes()
    assert [change.role for change in changes] == [Role.SLAVE, Role.CANDIDATE, Role.MASTER]
    assert changes[1].reason == "no sign of a master within master_timeout"
    assert (changes[2].epoch, changes[2].master) == (1, master.name)
    assert master.member.pop_changes() == []


def test_candidacy_without_a_quorum_is_reported_once() -> None:
    """A driver logs a line for each change: one that repeats with each trial would fill its log."""
    cluster = Cluster(3, queue())
    cluster.elect()
    cluster.cut("a")
    reported = []
    for _ in range(20):
        cluster.run_for(TIMEOUT_NS)
        reported += [(each.role, each.epoch, each.reason) for each in cluster["a"].member.pop_changes()]
    assert reported[-1] == (Role.CANDIDATE, 1, "no sign of a master within master_timeout")
    assert len(reported) == len(set(reported))


def test_a_confirmation_leaves_once_the_entry_is_durable() -> None:
    cluster = Cluster(3)
    master = cluster.elect()
    slaves = [process for process in cluster if process is not master]
    for slave in slaves:
        slave.syncs = False
    cluster.send_all(write(1))
    cluster.run_for(TIMEOUT_NS // 2)
    assert all(slave.replica.log.last_index == 2 for slave in slaves)
    assert master.replica.log.commit_index == 1
    assert master.answers() == []
    slaves[0].syncs = True
    cluster.run_until(lambda: master.answers() == [(1, 1)])


def test_entries_of_a_deposed_master_are_refused() -> None:
    cluster = Cluster(3)
    master = cluster.elect()
    cluster.cut(master.name)
    cluster.run_until(lambda: cluster.masters() and cluster.masters()[-1] != master.name)
    slave = next(process for process in cluster if not process.replica.is_master and process is not master)
    cluster.run_until(lambda: slave.replica.log.last.epoch == 2)
    last = slave.replica.log.last
    stale = Entries(slave.replica.stream, master.name, 1, 1, 1, (), 1, cluster.now)
    slave.run(cluster.now, frames=[stale])
    ((recipient, answer),) = slave.member.pop_frames()
    assert isinstance(answer, Confirmed)
    assert (recipient, answer.agreed, answer.epoch) == (master.name, False, 2)
    assert slave.replica.log.last == last
    assert slave.replica.master != master.name


def test_a_master_that_was_paused_while_its_clock_was_set_back_leads_no_more() -> None:
    """How long the pause was it cannot know: what was confirmed before may be of long ago."""
    cluster = Cluster(3)
    master = cluster.elect()
    cluster.run_for(4 * TIMEOUT_NS)
    cluster.cut(master.name)
    for _ in range(3 * TIMEOUT_NS // STEP_NS):
        cluster.tick_others(master)
    assert set(cluster.masters()) - {master.name}, "another one is elected meanwhile"
    master.run(cluster.now - 4 * TIMEOUT_NS)
    assert not master.replica.is_master


def test_a_master_whose_clock_is_set_back_loses_its_quorum_all_the_same() -> None:
    cluster = Cluster(3)
    master = cluster.elect()
    cluster.run_for(4 * TIMEOUT_NS)
    cluster.cut(master.name)
    set_back_ns = 3 * TIMEOUT_NS
    for _ in range(2 * TIMEOUT_NS // STEP_NS):
        cluster.tick_others(master)
        master.run(cluster.now - set_back_ns)
    assert not master.replica.is_master, "its time did not stand still"
    deadline = master.member.next_deadline()
    assert deadline is not None
    assert deadline < cluster.now - set_back_ns + 3 * TIMEOUT_NS, "it is due by the clock as it is now"


def test_a_master_that_was_paused_commits_nothing_by_letters_that_waited() -> None:
    """Found by a world: the queue had been deleted and created again meanwhile, and what it accepted was lost."""
    cluster = Cluster(3)
    master = cluster.elect()
    cluster.send_all(write(1))
    waiting: list[Frame] = []
    for _ in range(3 * TIMEOUT_NS // STEP_NS):
        arriving = [frame for _, recipient, frame in cluster.frames if recipient == master.name]
        waiting += [frame for frame in arriving if isinstance(frame, Confirmed) and frame.agreed]
        cluster.tick_others(master)
    assert waiting, "a quorum confirmed the sample before another was elected"
    committed = master.replica.log.commit_index
    master.run(cluster.now, frames=waiting)
    assert master.replica.log.commit_index == committed
    assert master.answers() == []
    cluster.gather(master)
    cluster.send_all(write(1, attempt=2))
    cluster.run_until(lambda: any((1, 1) in process.answers() for process in cluster))


def elected_slowly() -> tuple[Cluster, Process]:
    """A cluster whose first master needed longer than `master_timeout` for its election, and that process."""
    cluster = Cluster(3)
    cluster.run_until(cluster.masters)
    master = cluster[cluster.masters()[0]]
    master.run(cluster.now)  # it looks at the time when a letter was read, before anything leaves
    cluster.now += 2 * TIMEOUT_NS
    return cluster, master


def test_master_whose_election_took_longer_than_the_timeout_leads() -> None:
    cluster, master = elected_slowly()
    cluster.run_until(lambda: master.replica.log.commit_index >= master.replica.clients.own_epoch_index)
    assert (master.replica.is_master, master.replica.epoch) == (True, 1)
    cluster.run_for(3 * TIMEOUT_NS)
    assert (cluster.masters(), master.replica.epoch) == ([master.name], 1)


def test_master_whose_election_took_long_follows_when_no_quorum_answers() -> None:
    cluster, master = elected_slowly()
    cluster.cut(master.name)
    cluster.run_for(TIMEOUT_NS + 2 * STEP_NS)
    assert not master.replica.is_master
    assert master.replica.log.commit_index == 0


def test_master_that_was_confirmed_has_no_time_beyond_the_timeout() -> None:
    cluster = Cluster(3)
    master = cluster.elect()
    cluster.cut(master.name)
    master.run(cluster.now + TIMEOUT_NS + STEP_NS)
    assert not master.replica.is_master


def test_a_heartbeat_commits_no_entries_behind_the_one_that_it_covers() -> None:
    cluster = Cluster(3)
    deposed = cluster.elect()
    cluster.run_for(TIMEOUT_NS)
    common_index = deposed.replica.log.commit_index
    cluster.cut(deposed.name)
    for number in range(1, 4):
        cluster.send(deposed.name, write(number))
    cluster.run_until(lambda: set(cluster.masters()) - {deposed.name} and not deposed.replica.is_master)
    (master,) = (cluster[name] for name in cluster.masters())
    replica = master.replica
    heartbeat = Heartbeat(
        STREAM, master.name, replica.epoch, common_index, replica.log.epoch_at(common_index), common_index + 2,
        cluster.now, replica.incarnation,
    )  # fmt: skip
    deposed.run(cluster.now, frames=[heartbeat])
    assert deposed.replica.master == master.name
    assert deposed.replica.log.commit_index == common_index < deposed.replica.log.last_index


def test_an_epoch_that_a_replica_only_followed_survives_its_restart() -> None:
    cluster = Cluster(3)
    cluster.cut("c")
    master = cluster.elect()
    cluster.heal()
    late = cluster["c"]
    cluster.run_until(lambda: late.replica.master == master.name)
    assert late.replica.ballot.state.vote == "", "it voted for none"
    late.crash()
    late.start(cluster.now)
    assert late.replica.epoch == master.replica.epoch > 0
