"""Replicas that are broken on purpose, each in one rule: what tests of the protocol must catch.

Some are classical, and random faults find them soon; some need a schedule of their own; the others are mistakes that
were made, or nearly. `MUTANTS` names them; each is applied by a `MonkeyPatch`. The tests of simulated worlds catch
them, too: `tests/world/catches.py` lists by which seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import msgspec
import pytest

from qsctl.core.admin.reply import Reply
from qsctl.core.high_availability import _learner as learner
from qsctl.core.high_availability import _log as log
from qsctl.core.high_availability import _mastery as mastery
from qsctl.core.high_availability import _members as members
from qsctl.core.high_availability import _producers as producers
from qsctl.core.high_availability import _progress as progress
from qsctl.core.high_availability import _staging as staging
from qsctl.core.high_availability import configuration, member
from qsctl.core.high_availability import replica as replica_module
from qsctl.core.high_availability._allegiance import Allegiance
from qsctl.core.high_availability._clients import Clients
from qsctl.core.high_availability._configuration_follower import ConfigurationFollower
from qsctl.core.high_availability._disk_watch import DiskWatch
from qsctl.core.high_availability._epochs import SEEN_MAX, SeenEpochs
from qsctl.core.high_availability._follower import Follower
from qsctl.core.high_availability._hand_over import HandOver
from qsctl.core.high_availability._log import LastEntry, LogSnapshot, ReplicatedLog
from qsctl.core.high_availability._member_changes import MemberChanges
from qsctl.core.high_availability._octets_behind import OctetsBehind
from qsctl.core.high_availability._preferences import Preferences
from qsctl.core.high_availability._snapshot_pieces import ArrivingSnapshot
from qsctl.core.high_availability._steady_time import SteadyTime
from qsctl.core.high_availability._uncommitted import UncommittedSamples
from qsctl.core.high_availability.ballot import Ballot, HardState
from qsctl.core.high_availability.cluster_configuration import ClusterConfiguration
from qsctl.core.high_availability.compaction import ReplicaCompaction
from qsctl.core.high_availability.configuration import Configuration
from qsctl.core.high_availability.frames import (
    Canvass,
    Confirmed,
    Entries,
    Entry,
    Frame,
    Heartbeat,
    Ordered,
    SnapshotPiece,
    Vote,
)
from qsctl.core.high_availability.outgoing import Outgoing
from qsctl.core.high_availability.replica import Replica
from qsctl.core.high_availability.versions import VERSION, Versions
from qsctl.core.messages import AckResponse, Delivery, WriteAcknowledgment, WriteRun
from qsctl.core.queue.restore import QueueReplay
from qsctl.core.records import Assigned, Enqueued, MembersChanged, QueueRecord, ReplicaRejoined
from qsctl.identity import SampleIdentity
from tests.core.high_availability.rules import Mutant, breaks, mutants_of


@breaks(4)
def acknowledges_on_append(patch: pytest.MonkeyPatch) -> None:
    """The master accepts a sample once it is in its own log."""
    hold = Clients.hold

    def hold_deliveries(self: Clients, message: Any) -> None:
        if type(message) is WriteAcknowledgment:
            self.release(message)
        else:
            hold(self, message)

    patch.setattr(Clients, "hold", hold_deliveries)


@breaks(1)
def acknowledges_before_the_sync(patch: pytest.MonkeyPatch) -> None:
    """What is written counts as durable."""
    write_records, send = Outgoing.write_records, Outgoing.send

    def write(self: Outgoing, first_index: int, records: Sequence[QueueRecord], *, truncates: bool) -> None:
        write_records(self, first_index, records, truncates=truncates)
        self.durable_index = first_index + len(records) - 1

    def send_at_once(self: Outgoing, recipient: str, frame: Frame, *, rests_on_writes: bool) -> None:
        send(self, recipient, frame, rests_on_writes=rests_on_writes and not isinstance(frame, Confirmed))

    patch.setattr(Outgoing, "write_records", write)
    patch.setattr(Outgoing, "send", send_at_once)


@breaks(4)
def acknowledges_on_receipt_by_a_slave(patch: pytest.MonkeyPatch) -> None:
    """A slave accepts a sample that no log has."""
    stage = staging.Staging.stage
    owners: dict[int, Any] = {}
    init = producers.Producers.__init__

    def remember(self: producers.Producers, *arguments: Any) -> None:
        init(self, *arguments)
        owners[id(self.staging)] = self._clients

    def stage_and_accept(self: staging.Staging, now: int, queue: str, write: Any) -> None:
        stage(self, now, queue, write)
        owners[id(self)].release(WriteAcknowledgment(queue, write.identity, AckResponse.ACCEPTED))

    patch.setattr(producers.Producers, "__init__", remember)
    patch.setattr(staging.Staging, "stage", stage_and_accept)


@breaks(3)
def votes_without_comparing_logs(patch: pytest.MonkeyPatch) -> None:
    """Whoever asks first gets the vote."""
    _compare(patch, lambda last: LastEntry(0, 0))


@breaks(3)
def compares_by_length(patch: pytest.MonkeyPatch) -> None:
    """The longer log counts as more up to date, of whatever epoch its last entry is."""
    _compare(patch, lambda last: LastEntry(0, last.index))


def _compare(patch: pytest.MonkeyPatch, key: Callable[[LastEntry], LastEntry]) -> None:
    vote, would_vote = Ballot.vote, Ballot.would_vote

    def voted(self: Ballot, candidate: str, last: LastEntry, epoch: int, own: LastEntry) -> bool:
        return vote(self, candidate, key(last), epoch, key(own))

    def would(self: Ballot, candidate: LastEntry, epoch: int, own: LastEntry) -> bool:
        return would_vote(self, key(candidate), epoch, key(own))

    patch.setattr(Ballot, "vote", voted)
    patch.setattr(Ballot, "would_vote", would)


@breaks(9)
def accepts_a_stale_master(patch: pytest.MonkeyPatch) -> None:
    """Frames of an older epoch count as of the present one."""
    receive = Replica.receive

    def accept(self: Replica, now: int, frame: Any) -> str:
        if isinstance(frame, Entries) and frame.epoch < self.epoch and self.mastery is None:
            self.master = frame.sender
            frame = msgspec.structs.replace(frame, epoch=self.epoch)
        return receive(self, now, frame)

    patch.setattr(Replica, "receive", accept)


@breaks(7)
def forgets_the_flag_on_take_over(patch: pytest.MonkeyPatch) -> None:
    """What was assigned is delivered again as if for the first time."""
    begin = QueueReplay._begin_epoch

    def forget(self: QueueReplay, *, flags_all: bool) -> None:
        flags = {sample.position: sample.redelivered for sample in self._held}
        begin(self, flags_all=flags_all)
        for sample in self._held:
            sample.redelivered = flags[sample.position]

    patch.setattr(QueueReplay, "_begin_epoch", forget)


@breaks(7)
def forgets_the_flag_without_synchronization(patch: pytest.MonkeyPatch) -> None:
    """A new master takes for undelivered what its predecessor sent before the assignment was committed."""
    begin = QueueReplay._begin_epoch
    patch.setattr(QueueReplay, "_begin_epoch", lambda self, *, flags_all: begin(self, flags_all=False))


@breaks(6)
def forgets_identities(patch: pytest.MonkeyPatch) -> None:
    """A sample that left its queue is enqueued when it is written again."""
    patch.setattr("qsctl.core.queue._held.RETIRED_IDENTITIES_MAX", 0)


@breaks(2)
def counts_half_as_a_quorum(patch: pytest.MonkeyPatch) -> None:
    """Two of four, and one of two or three, elect and commit."""
    patch.setattr(members, "quorum_of", lambda replica_count: max(1, replica_count // 2))


@breaks(2, 17)
def counts_removed_members(patch: pytest.MonkeyPatch) -> None:
    """A quorum is as many as when the group was formed, whichever members were removed since."""
    take = members.GroupMembers._take

    def keep_quorum(self: members.GroupMembers, latest: MembersChanged, committed: MembersChanged) -> None:
        take(self, latest, committed)
        self.quorum = members.quorum_of(len(self._first.voters))

    def is_quorum(self: members.GroupMembers, names: Iterable[str]) -> bool:
        return len(self._voters.intersection(names)) >= self.quorum

    patch.setattr(members.GroupMembers, "_take", keep_quorum)
    patch.setattr(members.GroupMembers, "is_quorum", is_quorum)


@breaks(5)
def rejects_a_logged_sample(patch: pytest.MonkeyPatch) -> None:
    """A replica that lost its master rejects a sample that is in its log and not committed."""
    receive = producers.Producers._receive

    def reject(self: producers.Producers, now: int, queue: Any, write: Any, *, is_master: bool) -> None:
        if (
            not is_master
            and self._allegiance.has_lost_master(now)
            and not queue.held.knows(write.identity)
            and self._log.uncommitted_index(queue.name, write.identity)
        ):
            self.staging.note_attempt(queue.name, write)
            answer = WriteAcknowledgment(queue.name, write.identity, AckResponse.REJECTED, 0, write.attempt)
            self._clients.release(answer)
        else:
            receive(self, now, queue, write, is_master=is_master)

    patch.setattr(producers.Producers, "_receive", reject)


@breaks(4)
def commits_older_epochs_by_counting(patch: pytest.MonkeyPatch) -> None:
    """An entry is committed as soon as a quorum has it, of whatever epoch it is."""

    def committable(self: progress.Progress, replicated: ReplicatedLog, own_index: int, epoch: int) -> int:
        del epoch
        return max(self.quorum_index(own_index), replicated.commit_index)

    patch.setattr(progress.Progress, "committable", committable)


@breaks(9)
def counts_confirmations_of_earlier_epochs(patch: pytest.MonkeyPatch) -> None:
    """What a replica confirmed in an earlier epoch counts in this one, though other entries have the indexes now."""
    receive = Replica.receive

    def count(self: Replica, now: int, frame: Any) -> str:
        if isinstance(frame, Confirmed) and frame.epoch < self.epoch and self.mastery is not None:
            frame = msgspec.structs.replace(frame, epoch=self.epoch)
        return receive(self, now, frame)

    patch.setattr(Replica, "receive", count)


@breaks(1)
def forgets_its_vote(patch: pytest.MonkeyPatch) -> None:
    """A restart finds the epoch, and not for whom the replica voted in it."""
    write = Outgoing.write_hard_state

    def write_epoch(self: Outgoing, state: HardState) -> None:
        write(self, msgspec.structs.replace(state, vote=""))

    patch.setattr(Outgoing, "write_hard_state", write_epoch)


@breaks(7)
def dispatches_before_its_own_entry(patch: pytest.MonkeyPatch) -> None:
    """A new master delivers at once what it knows to be committed, whatever its predecessor assigned since."""
    lead, hold = Replica.lead_if_elected, Clients.hold

    def lead_from_committed(self: Replica, now: int) -> None:
        follow = self.follower.follow

        def without_assignments(replicated: ReplicatedLog, index: int) -> None:
            records = replicated.records_from(self.follower.applied_index + 1, index - self.follower.applied_index)
            self.follower._play([record for record in records if not isinstance(record, Assigned)])
            self.follower.applied_index = index

        self.follower.follow = without_assignments  # type: ignore[method-assign]
        lead(self, now)
        self.follower.follow = follow  # type: ignore[method-assign]

    def hold_answers(self: Clients, message: Any) -> None:
        if type(message) is Delivery:
            self.release(message)
        else:
            hold(self, message)

    patch.setattr(Replica, "lead_if_elected", lead_from_committed)
    patch.setattr(Clients, "hold", hold_answers)


@breaks(4)
def confirms_without_the_payload(patch: pytest.MonkeyPatch) -> None:
    """A slave takes an entry for whole whose payload it never got."""
    take = staging.Staging.take

    def take_with_nothing(self: staging.Staging, entries: Sequence[Entry]) -> tuple[list[QueueRecord], list[int]]:
        taken, passed_on = take(self, entries)
        return taken + [
            Enqueued(each.queue, each.position, each.identity, each.enqueued_at_ns, each.expires_at_ns)
            if isinstance(each, Ordered)
            else each
            for each in entries[len(taken) :]
        ], passed_on

    patch.setattr(staging.Staging, "take", take_with_nothing)


@breaks(5)
def forgets_that_it_forgot(patch: pytest.MonkeyPatch) -> None:
    """A replica rejects a sample whose entry was taken back here, and that another replica has still."""
    patch.setattr(log.ReplicatedLog, "was_taken_back", lambda self, queue, identity: False)
    patch.setattr(producers.Producers, "remembers", True)


@breaks(1)
def sends_before_it_is_durable(patch: pytest.MonkeyPatch) -> None:
    """A master gives away entries that it forgets when it crashes."""
    replicate = mastery.Mastery._replicate

    def replicate_all(self: mastery.Mastery, now: int, peer: progress.Peer) -> bool:
        durable_index, self._outgoing.durable_index = self._outgoing.durable_index, self._log.last_index
        try:
            return replicate(self, now, peer)
        finally:
            self._outgoing.durable_index = durable_index

    append = Replica.append

    def append_and_send(self: Replica, now: int, first_index: int, records: Sequence[QueueRecord]) -> None:
        append(self, now, first_index, records)
        if self.mastery is not None:
            self.mastery.replicate(now)

    patch.setattr(mastery.Mastery, "_replicate", replicate_all)
    patch.setattr(Replica, "append", append_and_send)


@breaks(2)
def delivers_without_its_quorum(patch: pytest.MonkeyPatch) -> None:
    """A master that was paused delivers what was confirmed long ago."""
    patch.setattr(mastery.Mastery, "has_quorum", lambda self, now: True)


@breaks(16)
def a_snapshot_throws_away_the_rest(patch: pytest.MonkeyPatch) -> None:
    """A slave that gets a snapshot late forgets entries behind it that it had confirmed."""

    def install(self: Replica, now: int, frame: Any, records: Sequence[QueueRecord]) -> str:
        if frame.index > self.log.commit_index:
            self._begin_with(now, LogSnapshot(frame.index, frame.index_epoch, records))
        self._confirm(frame, self.log.commit_index, agreed=True)
        return ""

    patch.setattr(Replica, "_install", install)


@breaks(10)
def votes_after_the_loss_of_its_log(patch: pytest.MonkeyPatch) -> None:
    """A replica with a new disk votes and confirms as if it had never had another."""
    patch.setattr(Ballot, "lose_vote", lambda self: None)
    patch.setattr(learner.Learner, "formation", lambda self, now: None)


@breaks(8)
def moves_dead_letters_in_two_steps(patch: pytest.MonkeyPatch) -> None:
    """A slave keeps a sample in its queue that became a dead letter."""
    play = Follower._play

    def play_without_moves(self: Follower, records: Iterable[QueueRecord]) -> None:
        labels, self._labels = self._labels, {}
        play(self, records)
        self._labels = labels

    patch.setattr(Follower, "_play", play_without_moves)


@breaks(7)
def sends_assignments_at_once(patch: pytest.MonkeyPatch) -> None:
    """A delivery does not wait for its assignment, though assignments are to be synchronized."""
    patch.setattr("qsctl.core.high_availability._clients.AHEAD_COUNT", 0)
    begin = Clients.__init__
    patch.setattr(Clients, "__init__", lambda self, *, synchronizes: begin(self, synchronizes=False))


@breaks(17)
def changes_members_before_its_own_entry(patch: pytest.MonkeyPatch) -> None:
    """A new master changes the list of members before an entry of its own epoch is committed."""
    check = MemberChanges.check

    def check_at_once(self: MemberChanges, now: int, *change: Any) -> MembersChanged:
        own, self._clients.own_epoch_index = self._clients.own_epoch_index, 0
        try:
            return check(self, now, *change)
        finally:
            self._clients.own_epoch_index = own

    patch.setattr(MemberChanges, "check", check_at_once)


@breaks(17)
def lets_a_witness_lead(patch: pytest.MonkeyPatch) -> None:
    """A witness begins elections as any other voter: its log is as long."""
    stand = Replica._stand

    def stand_all_the_same(self: Replica, now: int, reason: str) -> None:
        self.members.is_witness = lambda name: False  # type: ignore[method-assign]
        stand(self, now, reason)
        del self.members.is_witness

    patch.setattr(Replica, "_stand", stand_all_the_same)


@breaks(3, 17)
def lets_a_witness_vote_for_less(patch: pytest.MonkeyPatch) -> None:
    """A witness votes for a candidate whatever it has in its own log, which has no payloads."""
    vote, would_vote = Ballot.vote, Ballot.would_vote

    def known(self: Ballot, own: LastEntry) -> LastEntry:
        return LastEntry(0, 0) if self._members.is_witness(self._name) else own

    def voted(self: Ballot, candidate: str, last: LastEntry, epoch: int, own: LastEntry) -> bool:
        return vote(self, candidate, last, epoch, known(self, own))

    def would(self: Ballot, candidate: LastEntry, epoch: int, own: LastEntry) -> bool:
        return would_vote(self, candidate, epoch, known(self, own))

    patch.setattr(Ballot, "vote", voted)
    patch.setattr(Ballot, "would_vote", would)


@breaks(8)
def carries_commands_out_as_they_come(patch: pytest.MonkeyPatch) -> None:
    """Each member changes its configuration when a command comes to it."""
    patch.setattr(Configuration, "takes", lambda self, request: False)


@breaks(8)
def follows_commands_that_are_not_committed(patch: pytest.MonkeyPatch) -> None:
    """A master carries out what is in its log, whatever becomes of the entry."""

    def follow(self: ConfigurationFollower, log: ReplicatedLog, index: int) -> None:
        for at in range(self.applied_index + 1, index + 1):
            self.configuration.play(at, log.entry(at)[1])
            self.applied_index = at

    def recorded(self: ConfigurationFollower, index: int) -> None:
        assert self.replica is not None
        self.follow(self.replica.log, index)

    patch.setattr(ConfigurationFollower, "follow", follow)
    patch.setattr(ConfigurationFollower, "recorded", recorded)


@breaks(11)
def takes_a_queue_for_the_one_before_it(patch: pytest.MonkeyPatch) -> None:
    """A queue that was deleted and created again while a member was away stays what it was there."""
    step = configuration.next_change
    patch.setattr(configuration, "next_change", lambda own, made, target, created: step(own, {}, target, {}))


@breaks(11)
def notes_what_it_creates_too_late(patch: pytest.MonkeyPatch) -> None:
    """A crash behind a creation leaves a queue that is taken for an older one."""
    patch.setattr(configuration, "_made", lambda change, created: {})


@breaks(2)
def stands_still_while_its_clock_is_set_back(patch: pytest.MonkeyPatch) -> None:
    """A member whose clock is set back takes its quorum for there until the clock has caught up."""

    def at(self: SteadyTime, clock: int) -> int:
        self._clock = max(clock, self._clock)
        return self._clock

    patch.setattr(SteadyTime, "at", at)


@breaks(2)
def leads_on_when_its_clock_is_set_back(patch: pytest.MonkeyPatch) -> None:
    """A master takes for no time what passed while its clock was set back."""
    patch.setattr(Replica, "lose_time", lambda self, now: None)


@breaks(2)
def votes_at_once_after_a_restart(patch: pytest.MonkeyPatch) -> None:
    """A process knows nothing of what the one before it confirmed, and votes as if that had been nothing.

    A master that looks for its quorum before letters that waited does no harm by it: that rule goes, too.
    """
    patch.setattr(Allegiance, "start", lambda self, now: None)
    patch.setattr(Replica, "notice_pause", lambda self, now: None)


@breaks(2)
def votes_at_once_in_a_later_epoch(patch: pytest.MonkeyPatch) -> None:
    """A voter that learns of a later epoch owes the master that it followed nothing more."""
    withholds_vote = Replica._withholds_vote

    def withholds(self: Replica, now: int, candidate: str) -> bool:
        return withholds_vote(self, now, candidate) and (self.mastery is not None or self.master != "")

    patch.setattr(Replica, "_withholds_vote", withholds)


@breaks(11)
def takes_the_name_for_the_group(patch: pytest.MonkeyPatch) -> None:
    """What a replica has under a name is of its group, whichever creation of the queue it is of."""
    patch.setattr(replica_module, "is_of_another_group", lambda own, frame: False)
    patch.setattr(replica_module, "right_group", lambda own, left, quorum, rolls: own)


@breaks(4)
def answers_for_what_was_taken_back(patch: pytest.MonkeyPatch) -> None:
    """An acceptance leaves though the entry that it rests on was taken back, and another has its index."""
    patch.setattr(Clients, "forget_from", lambda _self, _index: None)


@breaks(4)
def confirms_all_that_it_has(patch: pytest.MonkeyPatch) -> None:
    """A slave confirms its whole log, also what is behind the entries that it compared with the master's."""
    confirm = Replica._confirm

    def confirm_all(self: Replica, frame: Any, match_index: int, *, agreed: bool, **given: Any) -> None:
        index = self.log.last_index if agreed else match_index
        confirm(self, frame, index, agreed=agreed, **given)

    patch.setattr(Replica, "_confirm", confirm_all)


@breaks(4)
def finds_no_conflict(patch: pytest.MonkeyPatch) -> None:
    """A slave keeps the entries that it has where the master has others: it compares indexes, not epochs."""

    def first_conflict(self: ReplicatedLog, first_index: int, entries: Sequence[Entry], _epoch: int) -> int:
        return max(first_index, min(self.last_index + 1, first_index + len(entries)))

    patch.setattr(ReplicatedLog, "first_conflict", first_conflict)


@breaks(11, 12)
def heeds_a_deleted_log_when_it_forms(patch: pytest.MonkeyPatch) -> None:
    """A group that a command created has as its floor what a member has of the queue that was deleted."""
    takes_the_name_for_the_group(patch)
    _creates_without_a_vote(patch)

    def formation(self: learner.Learner, now: int) -> learner.Formation | None:
        rolls = self.rolls(now)
        if len(rolls) < len(self._members.others) or sum(not each.is_learner for each in rolls) >= self._members.quorum:
            return None
        last = max(LastEntry(each.last_epoch, each.last_index) for each in rolls)
        return learner.Formation(max(each.epoch for each in rolls), last, "all are there")

    patch.setattr(learner.Learner, "formation", formation)


@breaks(12)
def forgets_the_floor(patch: pytest.MonkeyPatch) -> None:
    """What the log of a group that formed anew must reach is known until the next start only."""
    regain_vote = Ballot.regain_vote
    floors: dict[int, LastEntry] = {}

    def regain(self: Ballot, epoch: int, spent_on: str, floor: LastEntry) -> None:
        regain_vote(self, epoch, spent_on, LastEntry(0, 0))
        floors[id(self)] = floor

    patch.setattr(Ballot, "regain_vote", regain)
    patch.setattr(Ballot, "floor", property(lambda self: floors.get(id(self), LastEntry(0, 0))))


@breaks(12)
def forms_with_all_members_only(patch: pytest.MonkeyPatch) -> None:
    """A new group waits for every member, though a quorum is there."""
    _creates_without_a_vote(patch)
    formation = learner.Learner.formation

    def when_complete(self: learner.Learner, now: int) -> learner.Formation | None:
        return formation(self, now) if len(self.rolls(now)) == len(self._members.others) else None

    patch.setattr(learner.Learner, "formation", when_complete)


def _creates_without_a_vote(patch: pytest.MonkeyPatch) -> None:
    create = Replica.create

    def be_new(self: Replica, *given: Any, **named: Any) -> None:
        create(self, *given, **named)
        self.ballot.be_new()
        self.outgoing.write_hard_state(self.ballot.state)

    patch.setattr(Replica, "create", be_new)


@breaks(1)
def forgets_later_epochs(patch: pytest.MonkeyPatch) -> None:
    """A later epoch that another replica stated is not stored, unless this one votes in it."""
    write = Outgoing.write_hard_state

    def write_votes(self: Outgoing, state: HardState) -> None:
        if state.vote:
            write(self, state)

    patch.setattr(Outgoing, "write_hard_state", write_votes)


@breaks(7)
def keeps_deliveries_when_it_steps_down(patch: pytest.MonkeyPatch) -> None:
    """What a deposed master wanted to deliver leaves once its entry is committed by another one."""

    def step_down(self: Clients) -> None:
        self._enqueued_at.clear()
        self.send_no_more_ahead()

    patch.setattr(Clients, "step_down", step_down)


@breaks(7)
def delivers_what_rests_on_entries_of_others(patch: pytest.MonkeyPatch) -> None:
    """A delivery of a new master does not wait for the first entry of its epoch."""
    lead = Clients.lead

    def lead_at_once(self: Clients, epoch: int, index: int) -> None:
        lead(self, epoch, index)
        self.own_epoch_index = 0

    patch.setattr(Clients, "lead", lead_at_once)


@breaks(1)
def takes_truncated_entries_for_durable(patch: pytest.MonkeyPatch) -> None:
    """Entries in the place of truncated ones count as durable before their sync."""
    write_records = Outgoing.write_records

    def write(self: Outgoing, first_index: int, records: Sequence[QueueRecord], *, truncates: bool) -> None:
        indexes, durable_index = self._indexes.copy(), self.durable_index
        write_records(self, first_index, records, truncates=truncates)
        if truncates:
            self._indexes = indexes
            self._indexes.append((self._number, first_index + len(records) - 1))
            self.durable_index = durable_index

    patch.setattr(Outgoing, "write_records", write)


@breaks(1)
def votes_before_the_sync(patch: pytest.MonkeyPatch) -> None:
    """A vote leaves before it is durable."""
    send = Outgoing.send

    def send_votes(self: Outgoing, recipient: str, frame: Frame, *, rests_on_writes: bool) -> None:
        send(self, recipient, frame, rests_on_writes=rests_on_writes and not isinstance(frame, Vote))

    patch.setattr(Outgoing, "send", send_votes)


@breaks(10)
def gets_a_spent_vote_back(patch: pytest.MonkeyPatch) -> None:
    """A learner that votes again does so in the epoch in which it may have voted before."""
    regain_vote = Ballot.regain_vote
    patch.setattr(Ballot, "regain_vote", lambda self, epoch, spent_on, floor: regain_vote(self, epoch, "", floor))


@breaks(10)
def counts_learners(patch: pytest.MonkeyPatch) -> None:
    """What a learner confirms counts for a quorum."""
    patch.setattr(
        progress.Progress,
        "_voters",
        lambda self: (each for each in self if self._members.is_voter(each.name)),
    )


@breaks(10)
def rejoins_before_it_is_committed(patch: pytest.MonkeyPatch) -> None:
    """A learner votes again once the entry that lets it is in its log, committed or not."""
    extend = Replica._extend

    def extend_and_rejoin(self: Replica, now: int, entries: Entries) -> str:
        misfit = extend(self, now, entries)
        for record in entries.records:
            if type(record) is ReplicaRejoined and record.replica == self.name:
                self.rejoin(now, record)
        return misfit

    patch.setattr(Replica, "_extend", extend_and_rejoin)


@breaks(5)
def takes_up_refused_attempts(patch: pytest.MonkeyPatch) -> None:
    """A late copy of an attempt that was refused is taken up."""
    patch.setattr(staging.Staging, "is_refused", lambda self, queue, write: False)


@breaks(5)
def forgets_what_a_snapshot_replaced(patch: pytest.MonkeyPatch) -> None:
    """A replica whose log a snapshot replaced rejects samples of entries that another one may have still."""
    patch.setattr(ReplicatedLog, "install", ReplicatedLog._begin)


@breaks(13, 15)
def follows_any_epoch(patch: pytest.MonkeyPatch) -> None:
    """A replica follows an epoch however far it is ahead."""
    patch.setattr(SeenEpochs, "reach", lambda self, own_epoch: SEEN_MAX)


@breaks(14, 16)
def takes_a_snapshot_with_gaps(patch: pytest.MonkeyPatch) -> None:
    """A piece of a snapshot is added wherever it begins."""

    def add(self: ArrivingSnapshot, piece: SnapshotPiece) -> bool:
        of = (piece.index, piece.index_epoch, piece.count, piece.mark)
        if of != self._of:
            self._of, self._records = of, []
        self._records += piece.records
        if piece.first + len(piece.records) == piece.count:
            self._of = (*of[:2], len(self._records), of[3])
        return True

    patch.setattr(ArrivingSnapshot, "add", add)


@breaks(4)
def compacts_what_is_not_committed(patch: pytest.MonkeyPatch) -> None:
    """A master replaces entries by the state behind them before a quorum has them."""

    def use_capture(self: ReplicaCompaction, _needed_index: int) -> None:
        if self._capture is not None:
            self._replace(self._capture)
            self._capture = None

    patch.setattr(ReplicaCompaction, "use_capture", use_capture)


@breaks(4)
def keeps_the_capture_of_a_deposed_master(patch: pytest.MonkeyPatch) -> None:
    """A master compacts its log by a state that it had in an earlier epoch, whichever entries followed."""
    patch.setattr(ReplicaCompaction, "forget_capture", lambda self: None)


@breaks(18)
def sends_pieces_to_any_version(patch: pytest.MonkeyPatch) -> None:
    """A master sends a snapshot in pieces to a member that does not know them."""
    patch.setattr(mastery, "SNAPSHOT_PIECES", 0)


@breaks(18)
def sends_heartbeats_to_any_version(patch: pytest.MonkeyPatch) -> None:
    """A master sends heartbeats alone to a member that does not know them."""
    patch.setattr(mastery, "HEARTBEATS", 0)


@breaks(18)
def sends_runs_to_any_version(patch: pytest.MonkeyPatch) -> None:
    """A master sends the entries of a run as one to a member that does not know such entries."""
    patch.setattr(mastery, "RUNS", 0)


@breaks(5)
def overlooks_runs_that_are_not_committed(patch: pytest.MonkeyPatch) -> None:
    """A replica rejects a sample of a run that is in its log and not committed."""
    patch.setattr(UncommittedSamples, "add_run", lambda self, record, index: None)
    patch.setattr(UncommittedSamples, "commit_run", lambda self, record: None)


@breaks(4)
def takes_a_run_of_which_it_lacks_samples(patch: pytest.MonkeyPatch) -> None:
    """A slave takes a run for whole once its first sample waits there."""
    take = staging.Staging._take_run

    def take_first(self: staging.Staging, queue: str, first: SampleIdentity, count: int) -> WriteRun | None:
        run = self._run_of(queue, first)
        return take(self, queue, first, count) if run is None else run.writes

    patch.setattr(staging.Staging, "_take_run", take_first)


@breaks(18)
def takes_all_for_its_own_version(patch: pytest.MonkeyPatch) -> None:
    """A member takes the others for as new as itself."""
    patch.setattr(Versions, "of", lambda self, member: VERSION)


@breaks(12)
def forms_at_the_first_answers(patch: pytest.MonkeyPatch) -> None:
    """A new replica forms a group as soon as a quorum answers that has no log."""
    formation = learner.Learner.formation

    def form(self: learner.Learner, now: int) -> learner.Formation | None:
        self._blank_since_ns = 0
        return formation(self, now)

    patch.setattr(learner.Learner, "formation", form)


@breaks(17)
def serves_a_witness_at_once(patch: pytest.MonkeyPatch) -> None:
    """A master sends entries without payloads to a witness before it is committed that this is one."""
    patch.setattr(members.GroupMembers, "is_served", lambda self, name: True)


@breaks(16)
def commits_past_what_a_heartbeat_covers(patch: pytest.MonkeyPatch) -> None:
    """A slave takes entries of its own for the committed ones of its master, as far as it has any."""
    hear = Replica._hear

    def hear_and_commit(self: Replica, now: int, heartbeat: Heartbeat) -> str:
        if heartbeat.index and self.log.agrees(heartbeat.index, heartbeat.index_epoch):
            self._commit_to(now, min(heartbeat.commit_index, self.log.last_index))
        return hear(self, now, heartbeat)

    patch.setattr(Replica, "_hear", hear_and_commit)


@breaks(4)
def commits_past_what_was_sent(patch: pytest.MonkeyPatch) -> None:
    """The same by a frame of entries, whatever it contains."""
    extend = Replica._extend

    def commit_and_extend(self: Replica, now: int, entries: Entries) -> str:
        if self.log.agrees(entries.previous_index, entries.previous_epoch) and not self.ballot.awaits_beginning:
            self._commit_to(now, min(entries.commit_index, self.log.last_index))
        return extend(self, now, entries)

    patch.setattr(Replica, "_extend", commit_and_extend)


@breaks(2)
def votes_while_its_master_leads(patch: pytest.MonkeyPatch) -> None:
    """A replica votes for another one though its master may still deliver."""
    patch.setattr(Allegiance, "withholds_vote", lambda self, now: False)
    patch.setattr(Replica, "_withholds_vote", lambda self, now, candidate: False)


@breaks(17)
def loses_the_members_of_a_compacted_log(patch: pytest.MonkeyPatch) -> None:
    """A log that was compacted lists the members that the group was formed with."""
    compact = ReplicatedLog.compact

    def compact_alone(self: ReplicatedLog, index: int, records: Sequence[QueueRecord]) -> None:
        compact(self, index, [each for each in records if type(each) is not MembersChanged])
        self._base_members = None

    patch.setattr(ReplicatedLog, "compact", compact_alone)


@breaks(17)
def changes_two_members_at_a_time(patch: pytest.MonkeyPatch) -> None:
    """A change of the members does not wait until the one before it is committed."""
    check = MemberChanges.check

    def check_alone(self: MemberChanges, now: int, *change: Any) -> MembersChanged:
        committed, self._log.commit_index = self._log.commit_index, self._log.last_index
        try:
            return check(self, now, *change)
        finally:
            self._log.commit_index = committed

    patch.setattr(MemberChanges, "check", check_alone)


@breaks(8)
def changes_a_part_of_a_group(patch: pytest.MonkeyPatch) -> None:
    """A member creates and deletes a part of a replication group."""
    patch.setattr("qsctl.core.high_availability._changes.check_change", lambda hosted, member_count, command: None)


@breaks(19)
def sees_no_hanging_disk(patch: pytest.MonkeyPatch) -> None:
    """A master whose disk hangs leads on, and commits nothing."""
    patch.setattr(DiskWatch, "look", lambda self, now: False)


@breaks()
def hands_over_to_a_member_that_lacks_entries(patch: pytest.MonkeyPatch) -> None:
    """A preferred member is handed over to, however far it is behind."""
    patch.setattr(HandOver, "_is_level", lambda self, now, peer: True)
    patch.setattr(HandOver, "ready", lambda self, now, mastery: self._successor)


@breaks()
def prefers_a_drained_member(patch: pytest.MonkeyPatch) -> None:
    """A member that an operator drained is handed over to."""
    patch.setattr(Preferences, "is_drained", lambda self, now, member, run=None: False)


@breaks()
def counts_compacted_octets(patch: pytest.MonkeyPatch) -> None:
    """What a replica lacks is counted from the log's beginning, whatever a snapshot covers."""
    patch.setattr(OctetsBehind, "of", lambda self, index: self._log.payload_bytes)


@breaks(6)
def carries_out_superseded_commands(patch: pytest.MonkeyPatch) -> None:
    """A command that a later one of its administrator has overtaken is carried out."""
    remember = ClusterConfiguration._remember

    def remember_outcome(self: ClusterConfiguration, identity: SampleIdentity, outcome: Reply) -> None:
        remember(self, identity, outcome)
        self._latest.clear()

    patch.setattr(ClusterConfiguration, "_remember", remember_outcome)


@breaks(17)
def sends_payloads_to_a_witness(patch: pytest.MonkeyPatch) -> None:
    """A witness is sent the payloads, too."""
    patch.setattr(mastery, "for_witness", list)


@breaks(2)
def leads_on_whatever_its_clock_shows(patch: pytest.MonkeyPatch) -> None:
    """No replica of a member learns that its clock was set back."""
    patch.setattr(member.Member, "_lose_time", lambda self, now: None)


@breaks(13)
def raises_epochs_by_trials(patch: pytest.MonkeyPatch) -> None:
    """A replica takes up the epoch of a trial."""
    receive_canvass = Replica._receive_canvass

    def receive(self: Replica, now: int, canvass: Canvass) -> str:
        if canvass.is_trial and self.ballot.observe(canvass.candidate_epoch):
            self.outgoing.write_hard_state(self.ballot.state)
        return receive_canvass(self, now, canvass)

    patch.setattr(Replica, "_receive_canvass", receive)


@breaks(14)
def goes_on_with_what_it_cannot_play(patch: pytest.MonkeyPatch) -> None:
    """A replica whose queues cannot follow its log keeps log and vote."""
    patch.setattr(Replica, "fall_back", lambda self, now, reason: None)


@breaks(15)
def heeds_strangers(patch: pytest.MonkeyPatch) -> None:
    """Frames of a process that is not a member are processed as those of one."""
    patch.setattr(Replica, "_bar", lambda self, frame: "")


MUTANTS: Final[dict[str, Mutant]] = mutants_of(__name__)

BY_WORLDS: Final = (
    "carries commands out as they come", "counts confirmations of earlier epochs", "counts removed members",
    "follows any epoch", "follows commands that are not committed", "forgets the floor",
    "forms with all members only", "heeds a deleted log when it forms", "lets a witness lead",
    "lets a witness vote for less", "notes what it creates too late",
    "takes a queue for the one before it", "takes the name for the group",
)  # fmt: skip
"""A schedule or seeds of simulated worlds catch these, see `tests/world/catches.py`."""
