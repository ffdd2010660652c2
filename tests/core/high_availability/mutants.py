"""Replicas that are broken on purpose, each in one rule: what tests of the protocol must catch.

Nine of them are the classical ones, which random faults find soon; the next six need a schedule of their own; the
others are mistakes that were made, or nearly. `MUTANTS` names them; each is applied by a `MonkeyPatch`. The tests of
simulated worlds catch them, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import msgspec
import pytest

from qsctl.core.admin.command import MemberAction
from qsctl.core.high_availability import _learner as learner
from qsctl.core.high_availability import _log as log
from qsctl.core.high_availability import _mastery as mastery
from qsctl.core.high_availability import _members as members
from qsctl.core.high_availability import _producers as producers
from qsctl.core.high_availability import _progress as progress
from qsctl.core.high_availability import _staging as staging
from qsctl.core.high_availability import configuration
from qsctl.core.high_availability import replica as replica_module
from qsctl.core.high_availability._allegiance import Allegiance
from qsctl.core.high_availability._clients import Clients
from qsctl.core.high_availability._configuration_follower import ConfigurationFollower
from qsctl.core.high_availability._follower import Follower
from qsctl.core.high_availability._log import LastEntry, LogSnapshot, ReplicatedLog
from qsctl.core.high_availability._steady_time import SteadyTime
from qsctl.core.high_availability.ballot import Ballot, HardState
from qsctl.core.high_availability.configuration import Configuration
from qsctl.core.high_availability.frames import Confirmed, Entries, Entry, Frame, Ordered
from qsctl.core.high_availability.outgoing import Outgoing
from qsctl.core.high_availability.replica import Replica
from qsctl.core.messages import AckResponse, Delivery, WriteAcknowledgment
from qsctl.core.queue.restore import QueueReplay
from qsctl.core.records import Assigned, Enqueued, MembersChanged, QueueRecord

Mutant = Callable[[pytest.MonkeyPatch], None]


def acknowledges_on_append(patch: pytest.MonkeyPatch) -> None:
    """The master accepts a sample once it is in its own log."""
    hold = Clients.hold

    def hold_deliveries(self: Clients, message: Any) -> None:
        if type(message) is WriteAcknowledgment:
            self.release(message)
        else:
            hold(self, message)

    patch.setattr(Clients, "hold", hold_deliveries)


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


def votes_without_comparing_logs(patch: pytest.MonkeyPatch) -> None:
    """Whoever asks first gets the vote."""
    _compare(patch, lambda last: LastEntry(0, 0))


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


def accepts_a_stale_master(patch: pytest.MonkeyPatch) -> None:
    """Frames of an older epoch count as of the present one."""
    receive = Replica.receive

    def accept(self: Replica, now: int, frame: Any) -> str:
        if isinstance(frame, Entries) and frame.epoch < self.epoch and self.mastery is None:
            self.master = frame.sender
            frame = msgspec.structs.replace(frame, epoch=self.epoch)
        return receive(self, now, frame)

    patch.setattr(Replica, "receive", accept)


def forgets_the_flag_on_take_over(patch: pytest.MonkeyPatch) -> None:
    """What was assigned is delivered again as if for the first time."""
    begin = QueueReplay._begin_epoch

    def forget(self: QueueReplay, *, flags_all: bool) -> None:
        flags = {sample.position: sample.redelivered for sample in self._held}
        begin(self, flags_all=flags_all)
        for sample in self._held:
            sample.redelivered = flags[sample.position]

    patch.setattr(QueueReplay, "_begin_epoch", forget)


def forgets_the_flag_without_synchronization(patch: pytest.MonkeyPatch) -> None:
    """A new master takes for undelivered what its predecessor sent before the assignment was committed."""
    begin = QueueReplay._begin_epoch
    patch.setattr(QueueReplay, "_begin_epoch", lambda self, *, flags_all: begin(self, flags_all=False))


def forgets_identities(patch: pytest.MonkeyPatch) -> None:
    """A sample that left its queue is enqueued when it is written again."""
    patch.setattr("qsctl.core.queue._held.RETIRED_IDENTITIES_MAX", 0)


def counts_half_as_a_quorum(patch: pytest.MonkeyPatch) -> None:
    """Two of four, and one of two or three, elect and commit."""
    patch.setattr(members, "quorum_of", lambda replica_count: max(1, replica_count // 2))


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


def rejects_a_logged_sample(patch: pytest.MonkeyPatch) -> None:
    """A replica that lost its master rejects a sample that is in its log and not committed."""
    receive = producers.Producers._receive

    def reject(self: producers.Producers, now: int, queue: Any, write: Any, *, is_master: bool) -> None:
        if (
            not is_master
            and self._allegiance.has_lost_master(now)
            and write.identity not in queue.held.known
            and self._log.uncommitted_index(queue.name, write.identity)
        ):
            self.staging.note_attempt(queue.name, write)
            answer = WriteAcknowledgment(queue.name, write.identity, AckResponse.REJECTED, 0, write.attempt)
            self._clients.release(answer)
        else:
            receive(self, now, queue, write, is_master=is_master)

    patch.setattr(producers.Producers, "_receive", reject)


def commits_older_epochs_by_counting(patch: pytest.MonkeyPatch) -> None:
    """An entry is committed as soon as a quorum has it, of whatever epoch it is."""

    def committable(self: progress.Progress, replicated: ReplicatedLog, own_index: int, epoch: int) -> int:
        del epoch
        return max(self.quorum_index(own_index), replicated.commit_index)

    patch.setattr(progress.Progress, "committable", committable)


def counts_confirmations_of_earlier_epochs(patch: pytest.MonkeyPatch) -> None:
    """What a replica confirmed in an earlier epoch counts in this one, though other entries have the indexes now."""
    receive = Replica.receive

    def count(self: Replica, now: int, frame: Any) -> str:
        if isinstance(frame, Confirmed) and frame.epoch < self.epoch and self.mastery is not None:
            frame = msgspec.structs.replace(frame, epoch=self.epoch)
        return receive(self, now, frame)

    patch.setattr(Replica, "receive", count)


def forgets_its_vote(patch: pytest.MonkeyPatch) -> None:
    """A restart finds the epoch, and not for whom the replica voted in it."""
    write = Outgoing.write_hard_state

    def write_epoch(self: Outgoing, state: HardState) -> None:
        write(self, msgspec.structs.replace(state, vote=""))

    patch.setattr(Outgoing, "write_hard_state", write_epoch)


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


def forgets_that_it_forgot(patch: pytest.MonkeyPatch) -> None:
    """A replica rejects a sample whose entry was taken back here, and that another replica has still."""
    patch.setattr(log.ReplicatedLog, "was_taken_back", lambda self, queue, identity: False)
    patch.setattr(producers.Producers, "remembers", True)


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


def delivers_without_its_quorum(patch: pytest.MonkeyPatch) -> None:
    """A master that was paused delivers what was confirmed long ago."""
    patch.setattr(mastery.Mastery, "has_quorum", lambda self, now: True)


def a_snapshot_throws_away_the_rest(patch: pytest.MonkeyPatch) -> None:
    """A slave that gets a snapshot late forgets entries behind it that it had confirmed."""

    def install(self: Replica, now: int, frame: Any, records: Sequence[QueueRecord]) -> str:
        if frame.index > self.log.commit_index:
            self._begin_with(now, LogSnapshot(frame.index, frame.index_epoch, records))
        self._confirm(frame, self.log.commit_index, agreed=True)
        return ""

    patch.setattr(Replica, "_install", install)


def votes_after_the_loss_of_its_log(patch: pytest.MonkeyPatch) -> None:
    """A replica with a new disk votes and confirms as if it had never had another."""
    patch.setattr(Ballot, "lose_vote", lambda self: None)
    patch.setattr(learner.Learner, "formation", lambda self, now: None)


def moves_dead_letters_in_two_steps(patch: pytest.MonkeyPatch) -> None:
    """A slave keeps a sample in its queue that became a dead letter."""
    play = Follower._play

    def play_without_moves(self: Follower, records: Iterable[QueueRecord]) -> None:
        labels, self._labels = self._labels, {}
        play(self, records)
        self._labels = labels

    patch.setattr(Follower, "_play", play_without_moves)


def sends_assignments_at_once(patch: pytest.MonkeyPatch) -> None:
    """A delivery does not wait for its assignment, though assignments are to be synchronized."""
    patch.setattr("qsctl.core.high_availability._clients.AHEAD_COUNT", 0)
    begin = Clients.__init__
    patch.setattr(Clients, "__init__", lambda self, *, synchronizes: begin(self, synchronizes=False))


def changes_members_before_its_own_entry(patch: pytest.MonkeyPatch) -> None:
    """A new master changes the list of members before an entry of its own epoch is committed."""
    check = Replica.check_member_change

    def check_at_once(self: Replica, now: int, action: MemberAction, name: str) -> MembersChanged:
        own, self.clients.own_epoch_index = self.clients.own_epoch_index, 0
        try:
            return check(self, now, action, name)
        finally:
            self.clients.own_epoch_index = own

    patch.setattr(Replica, "check_member_change", check_at_once)


def lets_a_witness_lead(patch: pytest.MonkeyPatch) -> None:
    """A witness begins elections as any other voter: its log is as long."""
    stand = Replica._stand

    def stand_all_the_same(self: Replica, now: int, reason: str) -> None:
        self.members.is_witness = lambda name: False  # type: ignore[method-assign]
        stand(self, now, reason)
        del self.members.is_witness

    patch.setattr(Replica, "_stand", stand_all_the_same)


def carries_commands_out_as_they_come(patch: pytest.MonkeyPatch) -> None:
    """Each member changes its configuration when a command comes to it."""
    patch.setattr(Configuration, "takes", lambda self, request: False)


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


def takes_a_queue_for_the_one_before_it(patch: pytest.MonkeyPatch) -> None:
    """A queue that was deleted and created again while a member was away stays what it was there."""
    step = configuration.next_change
    patch.setattr(configuration, "next_change", lambda own, made, target, created: step(own, {}, target, {}))


def notes_what_it_creates_too_late(patch: pytest.MonkeyPatch) -> None:
    """A crash behind a creation leaves a queue that is taken for an older one."""
    patch.setattr(configuration, "_made", lambda change, created: {})


def stands_still_while_its_clock_is_set_back(patch: pytest.MonkeyPatch) -> None:
    """A member whose clock is set back takes its quorum for there until the clock has caught up."""

    def at(self: SteadyTime, clock: int) -> int:
        self._clock = max(clock, self._clock)
        return self._clock

    patch.setattr(SteadyTime, "at", at)


def leads_on_when_its_clock_is_set_back(patch: pytest.MonkeyPatch) -> None:
    """A master takes for no time what passed while its clock was set back."""
    patch.setattr(Replica, "lose_time", lambda self, now: None)


def votes_at_once_after_a_restart(patch: pytest.MonkeyPatch) -> None:
    """A process knows nothing of what the one before it confirmed, and votes as if that had been nothing.

    A master that looks for its quorum before letters that waited does no harm by it: that rule goes, too.
    """
    patch.setattr(Allegiance, "start", lambda self, now: None)
    patch.setattr(Replica, "notice_pause", lambda self, now: None)


def votes_at_once_in_a_later_epoch(patch: pytest.MonkeyPatch) -> None:
    """A voter that learns of a later epoch owes the master that it followed nothing more."""
    withholds_vote = Replica._withholds_vote

    def withholds(self: Replica, now: int, candidate: str) -> bool:
        return withholds_vote(self, now, candidate) and (self.mastery is not None or self.master != "")

    patch.setattr(Replica, "_withholds_vote", withholds)


def takes_the_name_for_the_group(patch: pytest.MonkeyPatch) -> None:
    """What a replica has under a name is of its group, whichever creation of the queue it is of."""
    patch.setattr(replica_module, "is_of_another_group", lambda own, frame: False)
    patch.setattr(replica_module, "right_group", lambda own, left, quorum, rolls: own)


def answers_for_what_was_taken_back(patch: pytest.MonkeyPatch) -> None:
    """An acceptance leaves though the entry that it rests on was taken back, and another has its index."""
    patch.setattr(Clients, "forget_from", lambda _self, _index: None)


def confirms_all_that_it_has(patch: pytest.MonkeyPatch) -> None:
    """A slave confirms its whole log, also what is behind the entries that it compared with the master's."""
    confirm = Replica._confirm

    def confirm_all(self: Replica, frame: Any, match_index: int, *, agreed: bool, **given: Any) -> None:
        index = self.log.last_index if agreed else match_index
        confirm(self, frame, index, agreed=agreed, **given)

    patch.setattr(Replica, "_confirm", confirm_all)


def finds_no_conflict(patch: pytest.MonkeyPatch) -> None:
    """A slave keeps the entries that it has where the master has others: it compares indexes, not epochs."""

    def first_conflict(self: ReplicatedLog, first_index: int, entries: Sequence[Entry], _epoch: int) -> int:
        return max(first_index, min(self.last_index + 1, first_index + len(entries)))

    patch.setattr(ReplicatedLog, "first_conflict", first_conflict)


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


def forgets_the_floor(patch: pytest.MonkeyPatch) -> None:
    """What the log of a group that formed anew must reach is known until the next start only."""
    regain_vote = Ballot.regain_vote
    floors: dict[int, LastEntry] = {}

    def regain(self: Ballot, epoch: int, spent_on: str, floor: LastEntry) -> None:
        regain_vote(self, epoch, spent_on, LastEntry(0, 0))
        floors[id(self)] = floor

    patch.setattr(Ballot, "regain_vote", regain)
    patch.setattr(Ballot, "floor", property(lambda self: floors.get(id(self), LastEntry(0, 0))))


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


FOUND_BY_RANDOM_FAULTS: Final[dict[str, Mutant]] = {
    "acknowledges on append": acknowledges_on_append,
    "acknowledges before the sync": acknowledges_before_the_sync,
    "acknowledges on receipt by a slave": acknowledges_on_receipt_by_a_slave,
    "votes without comparing logs": votes_without_comparing_logs,
    "accepts a stale master": accepts_a_stale_master,
    "forgets the flag on take-over": forgets_the_flag_on_take_over,
    "forgets identities": forgets_identities,
    "counts half as a quorum": counts_half_as_a_quorum,
    "rejects a logged sample": rejects_a_logged_sample,
    "answers for what was taken back": answers_for_what_was_taken_back,
    "confirms all that it has": confirms_all_that_it_has,
    "finds no conflict": finds_no_conflict,
}

FOUND_BY_SCHEDULES: Final[dict[str, Mutant]] = {
    "commits older epochs by counting": commits_older_epochs_by_counting,
    "counts confirmations of earlier epochs": counts_confirmations_of_earlier_epochs,
    "forgets its vote": forgets_its_vote,
    "changes members before its own entry": changes_members_before_its_own_entry,
    "dispatches before its own entry": dispatches_before_its_own_entry,
    "compares by length": compares_by_length,
    "leads on when its clock is set back": leads_on_when_its_clock_is_set_back,
    "votes at once after a restart": votes_at_once_after_a_restart,
}

OTHERS: Final[dict[str, Mutant]] = {
    "forgets the flag without synchronization": forgets_the_flag_without_synchronization,
    "confirms without the payload": confirms_without_the_payload,
    "forgets that it forgot": forgets_that_it_forgot,
    "sends before it is durable": sends_before_it_is_durable,
    "delivers without its quorum": delivers_without_its_quorum,
    "a snapshot throws away the rest": a_snapshot_throws_away_the_rest,
    "votes after the loss of its log": votes_after_the_loss_of_its_log,
    "moves dead letters in two steps": moves_dead_letters_in_two_steps,
    "sends assignments at once": sends_assignments_at_once,
    "stands still while its clock is set back": stands_still_while_its_clock_is_set_back,
    "votes at once in a later epoch": votes_at_once_in_a_later_epoch,
}

MUTANTS: Final[dict[str, Mutant]] = FOUND_BY_RANDOM_FAULTS | FOUND_BY_SCHEDULES | OTHERS
