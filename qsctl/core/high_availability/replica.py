"""One replica of a replication group: master, slave, candidate or learner [QS 7.1.1 and 7.1.2].

Decides:

- when it changes its role, and what each frame means in it;
- how it becomes master: a trial first, in which nothing durable changes anywhere, so that a replica that merely lost
  contact returns without a later epoch, which would depose a working master; then the election itself. `epochs` decides
  which epoch is asked for;
- how it follows: which entries of a master's frame are appended, which entries of its own are truncated for them, and
  what is confirmed. A confirmation leaves once the entries are durable, with their payloads. What cannot be of this
  group's log is refused before anything changes; where an entry that the master calls committed cannot be played, this
  replica alone falls back: it has no vote until a master has given it everything anew.

Its parts have state of their own: the log, the vote (`ballot`), what producers wait for (`producers`), what clients
wait for (`clients`), what the other members answered (`learner`), and a master's knowledge of the others (`mastery`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from typing import Final, assert_never

from msgspec import structs

from qsctl.core.admin.command import FirstMembers, MemberAction
from qsctl.core.high_availability._allegiance import Allegiance
from qsctl.core.high_availability._clients import Clients
from qsctl.core.high_availability._disk_watch import DiskWatch
from qsctl.core.high_availability._epochs import SeenEpochs
from qsctl.core.high_availability._followed import Fed, FedByRuns, Followed, Unplayable
from qsctl.core.high_availability._groups import EARLIER, incarnation_of, is_of_another_group, right_group
from qsctl.core.high_availability._hand_over import HandOver
from qsctl.core.high_availability._learner import Formation, Learner
from qsctl.core.high_availability._log import EMPTY, LastEntry, LogSnapshot, ReplicatedLog, behind, entry_count
from qsctl.core.high_availability._mastery import HEARTBEATS_PER_TIMEOUT, Mastery
from qsctl.core.high_availability._member_changes import MemberChanges
from qsctl.core.high_availability._members import WITNESS, GroupMembers
from qsctl.core.high_availability._preferences import OwnPreference, Preferences
from qsctl.core.high_availability._producers import Producers
from qsctl.core.high_availability._progress import NEVER_NS
from qsctl.core.high_availability._snapshot_pieces import ArrivingSnapshot
from qsctl.core.high_availability.ballot import Ballot, HardState
from qsctl.core.high_availability.compaction import COMPACTED_OVER_COUNT, ReplicaCompaction
from qsctl.core.high_availability.frames import (
    Canvass,
    ConditionReport,
    Confirmed,
    Entries,
    Entry,
    Farewell,
    Frame,
    Heartbeat,
    OfMaster,
    Preference,
    Relayed,
    Roll,
    Snapshot,
    SnapshotPiece,
    Vote,
)
from qsctl.core.high_availability.outgoing import Outgoing
from qsctl.core.high_availability.roles import Jitter, Role, RoleChanged, StoredLog
from qsctl.core.high_availability.versions import CONDITIONS, PREFERENCES, Versions
from qsctl.core.messages import (
    AckResponse,
    Delivery,
    Outbound,
    RunDelivery,
    Write,
    WriteAcknowledgment,
    WriteRun,
)
from qsctl.core.queue.settings import ReplicationSettings
from qsctl.core.records import (
    EpochBegan,
    MembersChanged,
    QueueRecord,
    QueueStreamRecord,
    ReplicaRejoined,
    SendsAhead,
)
from qsctl.errors import Refused
from qsctl.identity import DrawIncarnation, Incarnation, no_incarnation
from qsctl.instant import INFINITE_NS, Nanoseconds

RUNS: Final = 2**52
"""The number of draws for the number of a process, which is added to the instant of its start."""

DISK_HANGS: Final = "no sync of its disk ended within master_timeout"

DRAINED: Final = "an operator drained this service, which is no master before it restarts"

WAIT_FACTOR_MAX: Final = 2
"""Upper bound of the multiple of `master_timeout` to which the wait of a candidate that was not elected doubles. A
trial without a quorum does not double it: after an outage the group shall have a master soon."""


class Replica:
    """One replication group in one process.

    Args:
        stream: the group's name.
        follower: what follows its log.
        settings: of the protocol.
        is_persistent: whether its log is stored.
        name, names: the process's, and those of all replicas that the group was formed with.
        now: the start of the process.
        jitter: spreads elections.
        compacted_over_count: entries that the log keeps before it is compacted.
        number: what its writes are counted from.
        draw: gives a new group its incarnation, where no command did.
        versions: those of the other members; None: none is known.
        preference: that for this process as master; None: as for any other.
        is_joining: whether this replica is not among them: a master is to add it.
    """

    def __init__(
        self,
        stream: str,
        follower: Followed,
        settings: ReplicationSettings,
        is_persistent: bool,
        name: str,
        names: Sequence[str],
        now: Nanoseconds,
        jitter: Jitter,
        compacted_over_count: int = COMPACTED_OVER_COUNT,
        number: int = 0,
        draw: DrawIncarnation = no_incarnation,
        *,
        is_joining: bool = False,
        versions: Versions | None = None,
        preference: OwnPreference | None = None,
    ) -> None:
        self.stream = stream
        self.name = name
        self._spread = jitter()
        self.run = now + int(self._spread * RUNS)
        """Distinguishes this process from those before it; drawn, so that no stranger answers to it by guessing."""
        self.is_persistent = is_persistent
        self.role = Role.SLAVE
        self.master = ""
        """The present master, as far as it is known."""
        self.reason = ""
        self.log = ReplicatedLog()
        self.members = GroupMembers(stream, name, self.log, names, is_joining=is_joining)
        """Shared with the other parts."""
        self.ballot = Ballot(self.members, HardState())
        self.epochs = SeenEpochs(self.members)
        self.outgoing = Outgoing(stream, is_stored=self.is_persistent, number=number)
        self.clients = Clients(synchronizes=settings.synchronize_consumer_assignment)
        self.follower = follower
        self.compaction = ReplicaCompaction(self.log, follower, compacted_over_count)
        self.mastery: Mastery | None = None
        self.changes: list[RoleChanged] = []
        self._reported_change: tuple[object, ...] = ()
        """The latest of them, without its instant."""
        self._settings = settings
        self._draw = draw
        self.versions = Versions() if versions is None else versions
        self._arriving = ArrivingSnapshot()
        self.master_timeout_ns = settings.master_timeout_ns
        self.allegiance = Allegiance(self.master_timeout_ns)
        self.disk = DiskWatch(self.outgoing, self.master_timeout_ns)
        of_group = (stream, self.members, self.ballot, self.log, self.outgoing)
        self.producers = Producers(
            *of_group, follower.queues, self.clients, self.allegiance, settings.sample_timeout_ns
        )
        self._learner = Learner(*of_group, self.master_timeout_ns, is_persistent=is_persistent)
        self.preferences = Preferences(preference or OwnPreference(), self.master_timeout_ns)
        self._hand_over = HandOver(
            stream, self.members, self.log, follower, self.producers, self.preferences, self.master_timeout_ns
        )
        self._member_changes = MemberChanges(stream, self.members, self.log, self.clients, self.versions)
        self._jitter = jitter
        self._reported: tuple[ConditionReport | None, Nanoseconds] = (None, NEVER_NS)
        """The latest report to a master, and when it was sent."""
        self._asks_from_ns: Nanoseconds = 0
        self._wait_factor = 1
        self._wakes_at_ns: Nanoseconds = INFINITE_NS
        """When it asks for votes, or as a learner for the others."""
        if not self.is_persistent:
            self.ballot.lose_vote()

    @property
    def epoch(self) -> int:
        """The latest epoch that it has seen."""
        return self.ballot.epoch

    @property
    def incarnation(self) -> int:
        """That of the group, as frames carry it: 0 where it has none, negative where it is not agreed."""
        return incarnation_of(self.ballot.state, self.log)

    @property
    def is_master(self) -> bool:
        """Return whether it decides what becomes of samples."""
        return self.role is Role.MASTER

    @property
    def is_failed(self) -> bool:
        """Return whether its store failed: it sends nothing any more."""
        return self.role is Role.FAILED

    def name_members(self, now: Nanoseconds, names: Sequence[str], *, is_joining: bool) -> None:
        """Take the names of the members that the group was formed with, where they were not known before."""
        if not self.ballot.state.voters:
            self.members.form_with(names, is_joining=is_joining)
            self._follow_members(now)

    # Start.

    def create(
        self,
        incarnation: Incarnation,
        left: tuple[int, ...],
        *,
        is_fresh: bool,
        members: FirstMembers | None = None,
    ) -> None:
        """Be of a group that a command created, before `start`.

        Args:
            incarnation: what the command calls the group; nil: nothing.
            left: the groups of the name that this member was in before.
            is_fresh: whether this member cannot have been in this group before, and lost its log.
            members: those that the command named; None: those that the cluster was formed with.

        Where it is among those that it left, it joined the group by what others answered, before its own DELETE and
        CREATE were carried out: what it promised there is forgotten.
        """
        is_fresh = is_fresh and incarnation not in left
        self.ballot.state = HardState(incarnation=incarnation, left=tuple(each for each in left if each != incarnation))
        if members is not None:
            self.members.begin_with(members)
            self.ballot.state = structs.replace(self.ballot.state, voters=members.voters, learners=members.learners)
        if not incarnation and self.is_persistent:
            self.ballot.be_new()
        elif not (incarnation and is_fresh):
            self.ballot.lose_vote()
        self.outgoing.write_hard_state(self.ballot.state)
        if incarnation:
            self.follower.be(incarnation)

    def restore(self, now: Nanoseconds, stored: StoredLog, *, is_lost: bool, is_new: bool = False) -> None:
        """Take up what a store has, before `start`.

        Args:
            now: the instant.
            stored: that.
            is_lost: what was in the store is gone, or a part of it.
            is_new: there never was a store, as far as the driver can know.
        """
        self.ballot.state = state = stored.hard_state
        if state.voters:
            self.members.begin_with(FirstMembers(state.voters, state.learners))
        if stored.snapshot_index:
            began = stored.snapshot_records[0]
            assert isinstance(began, EpochBegan), "a snapshot begins with the epoch of its last entry"
            self.log.install(LogSnapshot(stored.snapshot_index, began.epoch, stored.snapshot_records))
        self.log.append(stored.records)
        self.members.look()
        self.producers.remember_from(self.log.last.epoch)
        self.outgoing.durable_index = self.log.last_index
        if incarnation := self.ballot.state.incarnation or self.log.incarnation_at(self.log.last_index):
            self.follower.be(Incarnation(incarnation))
        try:
            self.follower.roll_back(now, self.log, self.log.commit_index)
        except Unplayable:
            self.follower.forget(now)
            self.ballot.lose_log()
            self.outgoing.write_hard_state(self.ballot.state)
        if is_lost or is_new:
            if is_lost:
                self.ballot.lose_vote()
            else:
                self.ballot.be_new()
            self.outgoing.write_hard_state(self.ballot.state)

    def start(self, now: Nanoseconds) -> None:
        """Begin to wait for a master."""
        if (self.ballot.state.epoch, self.ballot.state.vote) != (
            0,
            "",
        ):  # else it is new to the group, and never confirmed anything
            self.allegiance.start(now)
        self._become(now, self._passive_role, "", "the process started")
        self.sleep(now)

    # Time.

    def next_deadline(self) -> Nanoseconds:
        """Return when `advance` next has something to do."""
        own = self._wakes_at_ns if self.mastery is None else self.mastery.heartbeat_at_ns
        return (
            INFINITE_NS if self.is_failed else min(own, self._hand_over.next_deadline(), self.producers.next_deadline())
        )

    def advance(self, now: Nanoseconds) -> None:
        """Do what is due."""
        if self.is_failed:
            return
        self.producers.advance(now)
        self._go_on_handing_over(now)
        if self.mastery is not None:
            if self.mastery.heartbeat_at_ns <= now and self._leads(now):
                self._change_pace(now)
                self.mastery.beat(now)
                self._yield_if_removed(now)
                self._yield_to_preferred(now)
        elif self._wakes_at_ns <= now:
            if self.ballot.is_candidate:
                self._wait_factor = min(2 * self._wait_factor, WAIT_FACTOR_MAX)
            self._wait_for_votes(now)
            if self.role is Role.LEARNER:
                if self.master and self.allegiance.has_lost_master(now):
                    self._become(now, Role.LEARNER, "", "no sign of a master within master_timeout")
                if self.ballot.is_learner or not self.master:
                    self._learner.call_the_roll(self.run)
                self._form(now)
            else:
                self._ask(now)
                self._stand(now, "no sign of a master within master_timeout")

    def watch_disk(self, now: Nanoseconds) -> None:
        """Stop leading where the disk hangs: what it does not sync is not committed by this master."""
        if self.disk.look(now) and self.mastery is not None:
            self._follow(now, "", DISK_HANGS)

    def _change_pace(self, now: Nanoseconds) -> None:
        """Record that samples are sent before their assignment is committed, or are not, where that changes."""
        is_allowed = self.clients.change_of_pace()
        if is_allowed is None:
            return
        if not is_allowed:
            self.clients.send_no_more_ahead()
        self.follower.record(now, SendsAhead(self.stream, is_allowed))

    def notice_pause(self, now: Nanoseconds) -> None:
        """Stop leading where no quorum was reached for long, before messages that arrived meanwhile are processed.

        Frames that waited while the process was paused are outdated: the group may have another master, or the queue be
        deleted and another have its name. Entries that they commit may be lost.
        """
        if self.mastery is not None and not self.is_failed:
            self._leads(now)

    def _leads(self, now: Nanoseconds) -> bool:
        """Return whether a master may go on; else let it follow."""
        assert self.mastery is not None, "it is a master"
        if self.mastery.may_lead(now):
            return True
        self._follow(now, "", "no quorum of replicas answered within master_timeout")
        return False

    def lose_time(self, now: Nanoseconds) -> None:
        """Lead no more, for how long ago the others confirmed is unknown."""
        if self.mastery is not None and self.members.others:
            self._follow(now, "", "the clock was set back")

    def _withholds_vote(self, now: Nanoseconds, candidate: str) -> bool:
        if self.mastery is not None:
            return self.mastery.has_quorum(now)
        return candidate != self.master and self.allegiance.withholds_vote(now)

    # Samples of producers.

    def receive_write(self, now: Nanoseconds, queue: Fed, write: Write) -> None:
        """Process a sample that its producer sent here."""
        if not self.is_failed:
            self.producers.receive(now, queue, write, is_master=self.is_master)

    def receive_run(self, now: Nanoseconds, queue: FedByRuns, writes: WriteRun) -> None:
        """Process samples that their producer sent here together."""
        if not self.is_failed:
            self.producers.receive_run(now, queue, writes, is_master=self.is_master)

    # What the queues recorded, as the master's.

    def append(self, now: Nanoseconds, first_index: int, records: Sequence[QueueStreamRecord]) -> None:
        """Put what the master's queues recorded into the log, and send it to the others."""
        assert self.mastery is not None, f"{self.name} is {self.role} of {self.stream} and recorded {records!r}"
        assert first_index == self.log.last_index + 1, "the queues are in the state of the log's last entry"
        self.log.append(records)
        self._look_at_members(now)
        self.clients.note_entries(first_index, records)
        self.outgoing.write_records(first_index, records, truncates=False)
        self.follower.recorded(self.log.last_index)
        self.mastery.replicate(now)
        self.commit(now)
        if not self.follower.follows_commit:
            self.compaction.capture()

    def stored(self, now: Nanoseconds, number: int) -> None:
        """Note that the writes up to this number are durable."""
        if self.is_failed:
            return
        self.outgoing.stored(number)
        self.disk.synced()
        self.lead_if_elected(now)
        if self.mastery is not None:
            self.mastery.replicate(now)
        self.commit(now)
        self._yield_if_removed(now)
        self._go_on_handing_over(now)

    def fail(self, now: Nanoseconds) -> None:
        """Be silent from now on: the store failed, and what is in it is unknown."""
        if not self.is_failed:
            self._follow(now, "", "the store failed")
            self._become(now, Role.FAILED, "", "the store failed")
            self.outgoing.fall_silent()

    # Frames.

    def receive(self, now: Nanoseconds, frame: Frame) -> str:
        """Process what another replica sent.

        Returns:
            Why it has no effect, for people, where no replica of this group can have sent it; empty: it can.
        """
        if self.is_failed:
            return ""
        if frame.sender not in self.members.others and (reason := self._bar(frame)):
            return reason
        if isinstance(frame, Roll):
            self._receive_roll(now, frame)
            return ""
        if is_of_another_group(self.incarnation, frame):
            self._ask(now)
            return "it is of another creation of the queue"
        if frame.epoch > self.epoch:
            if isinstance(frame, Canvass | OfMaster) and not (isinstance(frame, Canvass) and frame.is_trial):
                if isinstance(frame, Canvass) and self._withholds_vote(now, frame.sender):
                    return ""  # a quorum was asked before, and this replica follows a master since: it is late
                if frame.epoch > self.epochs.reach(self.epoch):
                    self._ask(now, frame.sender)
                    highest = self.epochs.highest(self.epoch)
                    return f"its epoch {frame.epoch} is more than one above {highest}, in which a quorum was seen"
                self.ballot.observe(frame.epoch)
                self.outgoing.write_hard_state(self.ballot.state)
                self._follow(now, "", f"{frame.sender} is in epoch {frame.epoch}")
            else:
                self._ask(now, frame.sender)  # it may be behind, and cannot know that by this
        match frame:
            case Canvass():
                return self._receive_canvass(now, frame)
            case Vote():
                if self.role is Role.CANDIDATE:
                    self._count(now, frame)
            case Entries() | Heartbeat() | Snapshot() | SnapshotPiece():
                return self._receive_of_master(now, frame)
            case Confirmed():
                if self.mastery is not None and frame.epoch == self.epoch:
                    return self._receive_confirmed(now, self.mastery, frame)
            case ConditionReport():
                peer = None if self.mastery is None else self.mastery.progress.get(frame.sender)
                if peer is not None and frame.epoch == self.epoch:
                    peer.applied_index, peer.disk_hangs = frame.applied_index, frame.disk_hangs
            case Preference():
                self.preferences.note(now, frame)
            case Relayed(_, _, _, queue, write):
                return self.producers.receive_relayed(now, queue, write, is_master=self.is_master)
            case Farewell():
                if self.mastery is None and frame.epoch == self.epoch and frame.sender == self.master:
                    self.allegiance.end()  # it delivers nothing more: no replica need wait for its time-out
                    self._become(now, self.role, "", f"{frame.sender} leaves")
                    self.sleep(now)
                    if frame.successor == self.name and self.role is Role.SLAVE:
                        self._stand(now, f"{frame.sender} hands over to it")
            case _:
                assert_never(frame)
        return ""

    def _receive_canvass(self, now: Nanoseconds, canvass: Canvass) -> str:
        if not canvass.is_trial and canvass.candidate_epoch != canvass.epoch:
            return f"it stands in epoch {canvass.candidate_epoch} and is in epoch {canvass.epoch}"
        if canvass.candidate_epoch > self.epochs.reach(self.epoch):
            self._ask(now, canvass.sender)  # so that it can follow if the candidate proceeds
        if canvass.is_trial or not self._withholds_vote(now, canvass.sender):
            self._answer(now, canvass)
        return ""

    def _receive_of_master(self, now: Nanoseconds, frame: OfMaster) -> str:
        if frame.epoch < self.epoch:
            self._confirm(frame, self.log.commit_index, agreed=False)
            return ""
        if self.mastery is not None:
            return f"it sends entries as the master of epoch {self.epoch}, which is {self.name}"
        if self.master not in ("", frame.sender) and not self.allegiance.has_lost_master(now):
            return f"it sends entries as the master of epoch {self.epoch}, which is {self.master}"
        self.allegiance.hear(now)
        if self.master != frame.sender or self.role is Role.CANDIDATE:
            self._follow(now, frame.sender, f"{frame.sender} is the master of epoch {frame.epoch}")
        self.sleep(now)
        match frame:
            case Entries():
                misfit = self._extend(now, frame)
            case Heartbeat():
                misfit = self._hear(now, frame)
            case Snapshot():
                misfit = self._install(now, frame, frame.records)
            case _:
                misfit = self._gather(now, frame)
        self._report_condition(now)
        self._announce_preference(now)
        return misfit

    def _report_condition(self, now: Nanoseconds) -> None:
        """Report to the master what operators see of this replica: once it changed, and again after a while."""
        heartbeat_ns = self.master_timeout_ns // HEARTBEATS_PER_TIMEOUT
        reported, at_ns = self._reported
        if now - at_ns < heartbeat_ns or not self.master or self.versions.of(self.master) < CONDITIONS:
            return
        frame = ConditionReport(
            self.stream, self.name, self.epoch, self.follower.applied_index, self.disk.hangs, self.incarnation
        )
        if frame != reported or now - at_ns >= self.master_timeout_ns:
            self._reported = frame, now
            self.outgoing.send(self.master, frame, rests_on_writes=False)

    def _announce_preference(self, now: Nanoseconds) -> None:
        """Announce to the others how much this process is preferred as master, where that is due."""
        if self.preferences.pop_is_due(now):
            own = self.preferences.own
            frame = Preference(
                self.stream, self.name, self.epoch, self.run, own.priority, own.is_drained, self.incarnation
            )
            for other in self.members.others:
                if self.versions.of(other) >= PREFERENCES:
                    self.outgoing.send(other, frame, rests_on_writes=False)

    def _receive_confirmed(self, now: Nanoseconds, mastery: Mastery, confirmed: Confirmed) -> str:
        if misfit := mastery.misfit(now, confirmed):
            return misfit
        if (learner := mastery.receive(now, confirmed)) is not None:
            learner.rejoins_at_index = self.log.last_index + 1
            self.follower.record(now, ReplicaRejoined(self.stream, confirmed.sender, confirmed.run))
        self.commit(now)
        self._yield_if_removed(now)
        self._go_on_handing_over(now)
        return ""

    def _receive_roll(self, now: Nanoseconds, roll: Roll) -> None:
        needs_quorum = roll.sender in self.members.others and self.members.may_lead
        if not needs_quorum and self._is_answer_of_longer_log(roll):
            self.epochs.note_later(roll.epoch)
        if not self._learner.receive(now, roll, self.run):
            return
        own = self.incarnation
        group = right_group(own, self.ballot.state.left, len(self.members.voters), self._learner.rolls(now))
        if group != own and group != -own:
            self._change_group(now, group)
        if is_of_another_group(self.incarnation, roll):
            return  # its epochs are others
        self.epochs.note(roll.sender, roll.epoch)
        if self.mastery is not None and (highest := self.epochs.highest(self.epoch)) > self.epoch:
            # An unsuccessful candidate follows no master of an earlier epoch.
            self._follow(now, "", f"a replica is in epoch {highest}")
            self._stand(now, f"a replica is in epoch {highest}")
        elif self.role is Role.LEARNER:
            self._form(now)

    def _ask(self, now: Nanoseconds, *senders: str) -> None:
        """Ask all others, and these, in which epoch they are, unless they were asked just now."""
        if now >= self._asks_from_ns:
            self._asks_from_ns = now + max(1, self.master_timeout_ns // HEARTBEATS_PER_TIMEOUT)
            self._learner.call_the_roll(self.run, *senders)

    # Elections.

    def _answer(self, now: Nanoseconds, canvass: Canvass) -> None:
        """Vote for another replica, or do not. A vote leaves once it is durable."""
        ballot, own = self.ballot, self.log.last
        last = LastEntry(canvass.last_epoch, canvass.last_index)
        if canvass.is_trial:
            # A master that steps down to be a candidate in a later epoch is not a rival of itself.
            is_rival = canvass.sender != self.master and self.allegiance.withholds_vote(now)
            granted = self.mastery is None and not is_rival and ballot.would_vote(last, canvass.candidate_epoch, own)
        else:
            before = ballot.state
            granted = ballot.vote(canvass.sender, last, canvass.candidate_epoch, own)
            if granted:
                self.sleep(now)
                if ballot.state != before:
                    self.outgoing.write_hard_state(ballot.state)
        vote = Vote(
            self.stream,
            self.name,
            ballot.epoch,
            canvass.candidate_epoch,
            canvass.is_trial,
            granted,
            self.incarnation,
        )
        self.outgoing.send(canvass.sender, vote, rests_on_writes=True)

    def _count(self, now: Nanoseconds, vote: Vote) -> None:
        """Count another replica's vote, and do what follows from a quorum."""
        if vote.granted and self.ballot.gather(vote.sender, vote.candidate_epoch, is_trial=vote.is_trial):
            self._win(now, is_trial=vote.is_trial)

    def _canvass(self, now: Nanoseconds, epoch: int, *, is_trial: bool) -> None:
        last = self.log.last
        frame = Canvass(
            self.stream,
            self.name,
            self.epoch,
            epoch,
            last.epoch,
            last.index,
            is_trial,
            self.incarnation,
        )
        for other in self.members.others:
            self.outgoing.send(other, frame, rests_on_writes=not is_trial)
        if self.ballot.has_quorum(is_trial=is_trial):  # it is alone
            self._win(now, is_trial=is_trial)

    def _win(self, now: Nanoseconds, *, is_trial: bool) -> None:
        if is_trial:
            epoch = self.ballot.stand()
            self.outgoing.write_hard_state(self.ballot.state)
            self._wait_for_votes(now)
            self._canvass(now, epoch, is_trial=False)
        else:
            self.lead_if_elected(now)

    def lead_if_elected(self, now: Nanoseconds) -> None:
        """Become master, once a quorum voted for it and its own vote, which counts, is durable."""
        if self.role is not Role.CANDIDATE or not self.ballot.is_elected or not self.outgoing.is_durable:
            return
        entry_count = len(self.log)
        incarnation = Incarnation(
            self.ballot.state.incarnation or self.log.incarnation_at(self.log.last_index) or self._draw()
        )
        self.follower.be(incarnation)
        try:
            self.follower.follow(self.log, self.log.last_index)
        except Unplayable as error:
            self.fall_back(now, str(error))
            return
        assigned = self.follower.assigned()
        began = EpochBegan(
            self.stream,
            self.epoch,
            self.name,
            flags_all=not self._settings.synchronize_consumer_assignment and self.follower.sends_ahead,
            incarnation=incarnation,
        )
        self.log.append([began])
        index = self.log.last_index
        self.outgoing.write_records(index, [began], truncates=False)
        self.follower.follow(self.log, index)
        self.clients.lead(self.epoch, index)
        of_log = (self.epoch, self.log, self.outgoing)
        self.mastery = Mastery(
            self.stream, self.members, *of_log, now, self.master_timeout_ns,
            sends_payloads=self.follower.sends_payloads, incarnation=lambda: self.incarnation,
            versions=self.versions,
        )  # fmt: skip
        self._arriving.forget()
        self._become(now, Role.MASTER, self.name, f"elected with {entry_count} entries")
        self.follower.take_over(now, index, assigned)
        if self.ballot.state.voters and self.log.members_at(self.log.last_index) is None:
            self.change_members(now, self.members.latest)  # a member that lost its own record of them needs the entry
        self.producers.take_over(now)
        self.mastery.beat(now)
        self.commit(now)

    # Leading.

    def commit(self, now: Nanoseconds) -> None:
        """Find out how far the master's log is committed, and let leave what rests on that."""
        mastery = self.mastery
        if mastery is None:
            return
        index = mastery.committable()
        if index > self.log.commit_index:
            self.clients.note_commit(self.log.commit(index))
            self._look_at_members(now)
            self.agree()
            if self.follower.follows_commit:
                self.follower.follow(self.log, index)
                self.compaction.compact(index)
            else:
                needed_index = min((each.next_index for each in mastery.present(now)), default=index + 1)
                self.compaction.use_capture(needed_index)
        if mastery.has_quorum(now):
            # Else another may be master by now, and have sent the same to a consumer, marked as redelivered.
            self.clients.commit(self.log.commit_index)

    def hand_over(self, now: Nanoseconds, *, waits: bool) -> bool:
        """Transfer mastership to the most up-to-date other replica, because this process ends.

        Returns False only with `waits`: the successor does not have all entries yet; call again. True: done, or this
        replica is not the master, or there is no successor, and it remains the master until the process has ended.
        """
        successor = None if self.mastery is None else self._hand_over.most_up_to_date(now, self.mastery)
        if successor is None:
            return True
        if waits and successor.match_index < self.log.last_index:
            return False
        self._hand_over_to(now, successor.name, "it leaves")
        return True

    def _hand_over_to(self, now: Nanoseconds, successor: str, reason: str) -> None:
        self._follow(now, "", f"{reason}, and hands over to {successor}" if successor else reason)
        for other in self.members.others:
            farewell = Farewell(self.stream, self.name, self.epoch, successor, self.incarnation)
            self.outgoing.send(other, farewell, rests_on_writes=False)

    def check_step_down(self, now: Nanoseconds, successor: str) -> str:
        """Return the member that this master can hand over to: this one, or of all (empty) the most up to date.

        Raises:
            Refused: it is not the master, or the only voter, or no such voter answers and holds all that is committed.
        """
        return self._hand_over.choose(now, self._check_leads(), successor)

    def check_drain(self, now: Nanoseconds) -> str:
        """Return the member that this master hands over to before its process is stopped.

        Raises:
            Refused: as `check_step_down`, or without this process the group has no quorum.
        """
        successor = self.check_step_down(now, "")
        self._hand_over.check_stop(now, self._check_leads())
        return successor

    def step_down(self, now: Nanoseconds, successor: str) -> None:
        """Hand over to a member, after `check_step_down`, once it holds the whole log."""
        self._begin_handing_over(now, successor, "an operator wants another master")

    def _begin_handing_over(self, now: Nanoseconds, successor: str, reason: str) -> None:
        self._hand_over.begin(now, successor, reason)
        self._go_on_handing_over(now)

    def drain(self, now: Nanoseconds) -> None:
        """Be no master, since the process is drained: hand over as soon as that is possible."""
        self.preferences.announce_again()
        self._announce_preference(now)
        if self.role is Role.CANDIDATE:
            self._stand(now, DRAINED)
            self.sleep(now)
        self._yield_to_preferred(now)

    def _yield_to_preferred(self, now: Nanoseconds) -> None:
        """Begin to hand over where this process is drained, or another one is preferred."""
        if self.mastery is None or self._hand_over.is_in_progress:
            return
        if self.preferences.own.is_drained:
            with contextlib.suppress(Refused):
                self.step_down(now, self.check_step_down(now, ""))
        elif successor := self._hand_over.preferred(now, self.mastery):
            self._begin_handing_over(now, successor, f"{successor} has a higher priority")

    def _go_on_handing_over(self, now: Nanoseconds) -> None:
        if self.mastery is not None and (successor := self._hand_over.ready(now, self.mastery)):
            self._hand_over_to(now, successor, self._hand_over.reason)

    def _check_leads(self) -> Mastery:
        """Return its work as the master.

        Raises:
            Refused: it is not the master.
        """
        if self.mastery is None:
            raise Refused(
                f"{self.stream}: {self.name} is not its master; {self.master or 'none'} is",
                remedy="The master carries it out; `qsctl get replication` shows it.",
            )
        return self.mastery

    # Members.

    def check_member_change(self, now: Nanoseconds, action: MemberAction, name: str) -> MembersChanged:
        """Return the members of the group after a change of them.

        Raises:
            Refused: the change cannot be made, or not now; the message names the reason.
        """
        return self._member_changes.check(now, self._check_leads(), action, name)

    def members_of_creations(self, now: Nanoseconds) -> FirstMembers | None:
        """Return the members that groups begin with which commands of this log create; None: those at first."""
        return self._member_changes.of_creations([] if self.mastery is None else self.mastery.present(now))

    def change_members(self, now: Nanoseconds, changed: MembersChanged) -> int:
        """Put a list of members into the log, after `check_member_change`; return its index."""
        index = self.log.last_index + 1
        self.follower.record(now, changed)
        return index

    def _look_at_members(self, now: Nanoseconds) -> None:
        """Do what follows from a change of the members that the log lists."""
        was_witness = self.members.is_witness(self.name)
        if self.members.look():
            self._follow_members(now)
            if self.members.is_witness(self.name) and not was_witness and self.log.has_payloads:
                self.fall_back(now, "it is a witness now, and drops payloads")

    def _follow_members(self, now: Nanoseconds) -> None:
        if self.mastery is not None:
            self.mastery.follow_members(now)
        elif self.role in (Role.SLAVE, Role.LEARNER) and self.role is not self._passive_role:
            self._become(now, self._passive_role, self.master, self.members.description)
            self.sleep(now)

    def _yield_if_removed(self, now: Nanoseconds) -> None:
        """Lead no more, once it is committed that this replica has no vote."""
        if self.mastery is not None and not self.members.may_lead:
            successor = self._hand_over.most_up_to_date(now, self.mastery)
            self._hand_over_to(now, "" if successor is None else successor.name, self.members.description)

    def _bar(self, frame: Frame) -> str:
        """Return why a frame of a process that is not a member has no effect; empty: it has one.

        This replica may be behind, and a member that it does not know may need its vote, or be the master. One that
        was removed and does not know that gets no vote of those that do: their logs are more up to date.
        """
        own = self.incarnation
        if frame.sender != self.name:
            if self._is_of_group(frame) and isinstance(frame, Canvass | OfMaster):
                return ""
            if isinstance(frame, Roll):
                if frame.answers is None and frame.incarnation in (0, own, -own):
                    return ""
                if self._is_answer_of_longer_log(frame):
                    return ""
        return "it is not a member of this replication group"

    def _is_of_group(self, frame: Frame) -> bool:
        own = self.incarnation
        return abs(frame.incarnation) == abs(own) if own else frame.incarnation > 0

    def _is_answer_of_longer_log(self, roll: Roll) -> bool:
        """Return whether a process answered this one that has more of the group's log."""
        is_ahead = LastEntry(roll.last_epoch, roll.last_index) > self.log.last
        return roll.answers == self.run and self._is_of_group(roll) and is_ahead

    def hold(self, message: Outbound) -> None:
        """Let a message of a queue leave once it may."""
        if type(message) is WriteAcknowledgment and message.response == AckResponse.REJECTED:
            self.producers.reject(message.queue, message.identity)
        elif self.mastery is None:
            assert not isinstance(message, Delivery | RunDelivery), (
                f"{self.name} is {self.role} of {self.stream} and delivers"
            )
            self.clients.release(message)
        else:
            self.clients.hold(message)

    # Following.

    def _hear(self, now: Nanoseconds, heartbeat: Heartbeat) -> str:
        """Confirm the master's sign, and commit what it rests on; return the empty string: it fits any log."""
        log, index = self.log, heartbeat.index
        if self.ballot.awaits_beginning:
            self._confirm(heartbeat, 0, agreed=False)
        elif not log.agrees(index, heartbeat.index_epoch):
            self._confirm(heartbeat, log.last_before(index), agreed=False)
        else:
            agreed = self._commit_to(now, min(heartbeat.commit_index, index))
            self._confirm(heartbeat, index if agreed else 0, agreed=agreed)
        return ""

    def _extend(self, now: Nanoseconds, entries: Entries) -> str:
        """Make the log agree with the master's, as far as it was sent and its payloads are here.

        Returns:
            Why these cannot be entries of this group's log, for people; empty: they can.
        """
        log, first_index = self.log, entries.previous_index + 1
        if foreign := self._foreign(entries.records):
            return f"its entries are of {foreign!r}, which is not in this replication group"
        if self.ballot.awaits_beginning:
            if entries.previous_index:
                self._confirm(entries, 0, agreed=False)
                return ""
            self._begin_with(now, EMPTY)
        if not log.agrees(entries.previous_index, entries.previous_epoch):
            self._confirm(entries, log.last_before(entries.previous_index), agreed=False)
            return ""
        conflict = log.first_conflict(first_index, entries.records, entries.previous_epoch)
        lacking = behind(entries.records, conflict - first_index)
        if lacking and conflict <= log.commit_index:  # without any it is a frame that came late, or again
            return f"its entry {conflict} contradicts the one that is committed"
        records, passed_on = self.producers.staging.take(lacking)
        if records:
            truncates = conflict <= log.last_index
            if truncates:
                log.truncate(conflict)
                self.clients.forget_from(conflict)
            log.append(records)
            self._look_at_members(now)
            self.outgoing.write_records(conflict, records, truncates=truncates)
            for count, record in passed_on:
                self.producers.accept(record, conflict + count)
        taken_count = entry_count(records)
        matched = conflict - 1 + taken_count
        if self.ballot.awaits_beginning or not self._commit_to(now, min(entries.commit_index, matched)):
            self._confirm(entries, 0, agreed=False)
            return ""
        lacks_payload = taken_count < entry_count(lacking)
        self._confirm(entries, max(matched, log.commit_index), agreed=True, lacks_payload=lacks_payload)
        return ""

    def _foreign(self, records: Iterable[Entry]) -> str:
        """Return the first queue of these records that is not in this replication group; empty: all are."""
        return min({record.queue for record in records} - self.follower.names, default="")

    def _gather(self, now: Nanoseconds, piece: SnapshotPiece) -> str:
        """Keep a piece of the master's snapshot, and begin again from that once it is whole.

        Returns:
            Why it cannot be a piece of a snapshot of this group's log, for people; empty: it can.
        """
        log, awaits_beginning = self.log, self.ballot.awaits_beginning
        if foreign := self._foreign(piece.records):
            return f"its snapshot is of {foreign!r}, which is not in this replication group"
        is_held = piece.index <= log.last_index and log.agrees(piece.index, piece.index_epoch)
        if not awaits_beginning and (is_held or piece.index <= log.commit_index):
            return self._install(now, piece, ())
        is_next = self._arriving.add(piece)
        if (records := self._arriving.pop_whole()) is not None:
            return self._install(now, piece, records)
        match_index = 0 if awaits_beginning else log.commit_index
        self._confirm(piece, match_index, agreed=is_next, snapshot_mark=piece.mark, snapshot_count=self._arriving.count)
        return ""

    def _install(self, now: Nanoseconds, frame: Snapshot | SnapshotPiece, records: Sequence[QueueRecord]) -> str:
        """Begin again from the master's snapshot, if it reaches further.

        Returns:
            Why it cannot be a snapshot of this group's log, for people; empty: it can.
        """
        log, base = self.log, LogSnapshot(frame.index, frame.index_epoch, records)
        if foreign := self._foreign(records):
            return f"its snapshot is of {foreign!r}, which is not in this replication group"
        is_held = frame.index <= log.last_index and log.agrees(frame.index, frame.index_epoch)
        if is_held and not self.ballot.awaits_beginning:
            if not self._commit_to(now, frame.index):  # what is behind it was confirmed, perhaps, and must stay
                self._confirm(frame, 0, agreed=False)
                return ""
        elif frame.index > log.commit_index or self.ballot.awaits_beginning:
            applied_index = self.follower.applied_index
            try:
                self._begin_with(now, base)
            except Unplayable as error:
                self.rebuild(now, applied_index)
                return f"its snapshot does not fit: {error}"
        self._confirm(frame, log.commit_index, agreed=True)
        return ""

    def _begin_with(self, now: Nanoseconds, base: LogSnapshot) -> None:
        awaits_beginning = self.ballot.awaits_beginning
        if awaits_beginning:
            self.follower.forget(now)
        self.follower.begin(now, base)
        self.log.install(base)
        self._look_at_members(now)
        self._arriving.forget()
        self.clients.forget_from(0)
        self.outgoing.write_snapshot(base.index, base.records)
        if awaits_beginning:
            self.ballot.lose_vote()
            self.outgoing.write_hard_state(self.ballot.state)

    def _confirm(
        self,
        frame: OfMaster,
        match_index: int,
        *,
        agreed: bool,
        lacks_payload: bool = False,
        snapshot_mark: int = 0,
        snapshot_count: int = 0,
    ) -> None:
        """Report how far the log is durable and agrees, or where it may."""
        confirmed = Confirmed(
            self.stream,
            self.name,
            self.epoch,
            self.run,
            match_index,
            frame.sent_at_ns,
            agreed,
            lacks_payload,
            self.ballot.is_learner,
            self.incarnation,
            snapshot_mark,
            snapshot_count,
        )
        self.outgoing.send(frame.sender, confirmed, rests_on_writes=True)

    def _commit_to(self, now: Nanoseconds, index: int) -> bool:
        """Let the queues follow to the master's commit index; return False where they cannot, and the log is void."""
        log = self.log
        if index <= log.commit_index:
            return True
        records = log.commit(index)
        self._look_at_members(now)
        self._arriving.forget_to(index)
        self.agree()
        try:
            self.follower.follow(log, index)
        except Unplayable as error:
            self.fall_back(now, str(error))
            return False
        self.clients.commit(index)
        for record in [each for each in records if type(each) is ReplicaRejoined]:
            if record.replica == self.name:
                self.rejoin(now, record)
        self.compaction.compact(index)
        return True

    # Learning.

    def fall_back(self, now: Nanoseconds, reason: str) -> None:
        """Have no vote until a master has given it the whole log anew: an entry of its own does not fit."""
        self.run += 1  # for the master it is a replica that lost its log
        self.ballot.lose_log()
        self.outgoing.write_hard_state(self.ballot.state)
        self.rebuild(now, self.follower.applied_index)
        self._follow(now, self.master, f"its log does not fit, and is built anew: {reason}")
        self.sleep(now)

    def rebuild(self, now: Nanoseconds, applied_index: int) -> None:
        """Put the queues into the state of the last entry that fitted, or of none."""
        try:
            self.follower.roll_back(now, self.log, max(self.log.base.index, applied_index))
        except Unplayable:
            self.follower.forget(now)

    def _form(self, now: Nanoseconds, *, is_forced: bool = False) -> None:
        if not self.ballot.is_learner:
            return
        formation = self._learner.forced(now) if is_forced else self._learner.formation(now)
        if formation is not None:
            self.producers.remember_from(formation.floor.epoch)
            if formation.joined:
                self.ballot.agree(formation.joined)
                self.follower.be(Incarnation(formation.joined))
            self._vote_again(now, formation.epoch, self.name, formation.floor, formation.reason)

    def check_force(self, now: Nanoseconds) -> str:
        """Return what becomes of this replica by an operator's word that the group form without a quorum of logs.

        Raises:
            Refused: the group is not without a master for good.
        """
        if self.master:
            raise Refused(f"{self.stream}: {self.master} is its master", remedy="There is nothing to force.")
        formation = self._learner.forced(now)
        own, longest = self.log.last, self._longest(formation)
        if self.members.is_witness(self.name) and own > longest:
            return (
                f"{self.stream}: this witness drops its {own.index} entries, of which no member that answers has more "
                f"than {longest.index}, and votes for a log of these"
            )
        if formation.group:
            return (
                f"{self.stream}: what this replica has, {self.follower.held_count()} samples, is of another creation "
                "of the queue than most members have; it is dropped, and the replica follows them"
            )
        if self.ballot.is_learner:
            return (
                f"{self.stream}: this replica, which lost its log, votes again; "
                f"the longest log that is left has {longest.index} entries"
            )
        text = f"{self.stream}: this replica has its log, {own.index} entries, and keeps it"
        if self.ballot.floor > longest:
            text += (
                f"; it votes for a log of {longest.index} entries, the longest that is left, "
                f"where {self.ballot.floor.index} were to be reached"
            )
        return text

    def force(self, now: Nanoseconds) -> None:
        """Vote again, or for less, or in another group, by an operator's word, after `check_force`."""
        formation = self._learner.forced(now)
        if formation.group:
            self._change_group(now, formation.group)
            return
        if not self.ballot.is_learner:
            longest = self._longest(formation)
            if self.log.last > longest:  # of a witness: it is no content, and would withhold its vote for ever
                epoch, vote = self.epoch, self.ballot.state.vote
                self._begin_with(now, EMPTY)
                self.ballot.regain_vote(epoch, vote, longest)
                self.outgoing.write_hard_state(self.ballot.state)
                self._become(now, self._passive_role, "", "a witness dropped its log by an operator's word")
            elif self.ballot.floor > longest:
                self.ballot.regain_vote(self.epoch, self.ballot.state.vote, longest)
                self.outgoing.write_hard_state(self.ballot.state)
            return
        if self.ballot.awaits_beginning:
            # What fitted of its log is what is left of it.
            index = max(self.log.base.index, self.follower.applied_index)
            if index < self.log.last_index:
                self.log.commit_index = index
                self.log.truncate(index + 1)
                self._look_at_members(now)
                self.outgoing.write_records(index + 1, (), truncates=True)
        self._form(now, is_forced=True)

    def _longest(self, formation: Formation) -> LastEntry:
        """Return the last entry of the longest log with payloads that is left."""
        return formation.floor if self.members.is_witness(self.name) else max(self.log.last, formation.floor)

    def agree(self) -> None:
        """Note the incarnation of the group, once an entry that contains it is committed."""
        if self.ballot.state.incarnation:
            return
        if incarnation := self.log.incarnation_at(self.log.commit_index):
            self.ballot.agree(incarnation)
            self.outgoing.write_hard_state(self.ballot.state)
            self.follower.be(Incarnation(incarnation))

    def _change_group(self, now: Nanoseconds, incarnation: int) -> None:
        """Be in another group of the name: what is here belongs to a queue that was deleted."""
        held_count = self.follower.held_count()
        if self.mastery is not None:
            self._follow(now, "", "it is of another creation of the queue")
        self.follower.forget(now)
        own = self.incarnation
        self.ballot.change_group(incarnation, 0 if own == -EARLIER else own)
        if own == -EARLIER:
            self.ballot.lose_vote()
        self.log.install(EMPTY)
        self.clients.forget_from(0)
        self._arriving.forget()
        self.run += 1
        self.members.look()
        self.epochs = SeenEpochs(self.members)
        self.producers.remember_from(0)
        self.outgoing.write_snapshot(0, ())
        self.outgoing.write_hard_state(self.ballot.state)
        self.follower.be(Incarnation(incarnation))
        self.master, self.role = "", self._passive_role
        reason = f"{held_count} samples that it held were of a queue of this name that was deleted; they are dropped"
        self._report_change(RoleChanged(now, self.stream, self.role, self.epoch, "", reason, incarnation))
        self.reason = reason
        self.sleep(now)

    def answer_count(self, now: Nanoseconds) -> int:
        """Return how many of the others have answered it lately."""
        return len(self._learner.rolls(now))

    def lack(self, now: Nanoseconds) -> str:
        """Return why there is no master, and what gets out of it, for people; empty: there is, or nothing is known."""
        return "" if self.master else self._learner.lack(now)

    def rejoin(self, now: Nanoseconds, rejoined: ReplicaRejoined) -> None:
        """Have a vote again: a quorum without this replica committed an entry since it lost its log."""
        if self.ballot.is_learner and rejoined.run == self.run:
            held = LastEntry(self.log.epoch_at(self.log.commit_index), self.log.commit_index)
            self._vote_again(now, self.epoch, self.master, held, "it holds the log again")

    def _vote_again(self, now: Nanoseconds, epoch: int, spent_on: str, floor: LastEntry, reason: str) -> None:
        self.ballot.regain_vote(epoch, spent_on, floor)
        self.outgoing.write_hard_state(self.ballot.state)
        self._become(now, self._passive_role, self.master, reason)
        self.sleep(now)

    # Roles.

    def _follow(self, now: Nanoseconds, master: str, reason: str) -> None:
        """Be a slave, or the learner that it is."""
        if self.mastery is not None:
            self.allegiance.note_led(min(now, self.mastery.progress.quorum_heard_at_ns()))
            self.mastery = None
            self._hand_over.end()
            self.allegiance.end()
            self.compaction.forget_capture()
            self.clients.step_down()
            self.producers.stage_again(now, self.follower.step_down(now, self.log))
            self.sleep(now)
        self._become(now, self._passive_role, master, reason)

    @property
    def _passive_role(self) -> Role:
        return Role.SLAVE if self.members.may_lead and not self.ballot.is_learner else Role.LEARNER

    def _stand(self, now: Nanoseconds, reason: str) -> None:
        if self.log.last < self.ballot.floor:
            wanted = self.ballot.floor.index
            self._become(now, Role.SLAVE, "", f"its log ends before entry {wanted}, which the group had")
            return
        if self.members.is_witness(self.name):
            self._become(now, Role.SLAVE, "", WITNESS)
            return
        if self.disk.hangs or self.preferences.own.is_drained:
            self._become(now, Role.SLAVE, "", DISK_HANGS if self.disk.hangs else DRAINED)
            return
        self._become(now, Role.CANDIDATE, "", reason)
        self._canvass(now, self.ballot.try_out(self.epochs.reach(self.epoch)), is_trial=True)

    def _become(self, now: Nanoseconds, role: Role, master: str, reason: str) -> None:
        if self._reported_change != (role, master, self.epoch, reason):
            self._report_change(RoleChanged(now, self.stream, role, self.epoch, master, reason, self.incarnation))
        self.role, self.master, self.reason = role, master, reason
        if role is not Role.CANDIDATE:
            self.ballot.give_up()

    def _report_change(self, change: RoleChanged) -> None:
        self.changes.append(change)
        self._reported_change = change.role, change.master, change.epoch, change.reason

    def sleep(self, now: Nanoseconds) -> None:
        """Wait for a sign of a master, or for the others."""
        self._wait_factor = 1
        self._wait(now)

    def _wait_for_votes(self, now: Nanoseconds) -> None:
        """Wait for votes, for a newly drawn time: so that one of several candidates is first."""
        self._spread = self._jitter()
        self._wait(now)

    def _wait(self, now: Nanoseconds) -> None:
        if self._passive_role is Role.LEARNER:
            self._wakes_at_ns = now + max(1, self.master_timeout_ns // HEARTBEATS_PER_TIMEOUT)
            return
        # The latest master, whose loss is waited for, delays no other.
        rivals = [each for each in self.members.voters if each not in (self.name, self.master)]
        factor = self._wait_factor * (1 + self._spread) + self.preferences.prefers_another(now, rivals)
        self._wakes_at_ns = now + int(factor * self.master_timeout_ns)
