"""Deliberately broken replicas: each forgets one thing that the protocol rests on.

A mutant changes one function of `core.high_availability` (or of the queue) for as long as a test runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from qsctl.core.high_availability.ballot import NO_VOTER, Ballot, HardState
from qsctl.core.high_availability.clients import Clients
from qsctl.core.high_availability.election import Election
from qsctl.core.high_availability.frames import Canvass, Entries, Frame
from qsctl.core.high_availability.log import LastEntry, ReplicatedLog
from qsctl.core.high_availability.mastery import Mastery
from qsctl.core.high_availability.outgoing import Outgoing
from qsctl.core.high_availability.producers import Producers
from qsctl.core.high_availability.progress import Progress
from qsctl.core.high_availability.replica import Replica
from qsctl.core.messages import AckResponse, Outbound, Write, WriteAcknowledgment
from qsctl.core.queue.held import Held
from qsctl.core.queue.restore import Replay, release
from qsctl.core.queue.sample import Cause, Sample, SampleState
from qsctl.core.queue.shared_reader_queue import SharedReaderQueue
from qsctl.instant import Nanoseconds

Mutant = Callable[[pytest.MonkeyPatch], None]


def accepts_on_append(patch: pytest.MonkeyPatch) -> None:
    """A sample is accepted as soon as it is in the master's log."""
    hold = Clients.hold

    def mutated(self: Clients, message: Outbound) -> None:
        if isinstance(message, WriteAcknowledgment) and message.response == AckResponse.ACCEPTED:
            self.release(message)
        else:
            hold(self, message)

    patch.setattr(Clients, "hold", mutated)


def confirms_before_the_sync(patch: pytest.MonkeyPatch) -> None:
    """What is written counts as durable before it is synced."""
    send, write = Outgoing.send, Outgoing.write_records

    def mutated_send(self: Outgoing, recipient: str, frame: Frame, *, rests_on_writes: bool) -> None:
        send(self, recipient, frame, rests_on_writes=False)

    def mutated_write(self: Outgoing, first_index: int, records: Any, *, truncates: bool) -> None:
        write(self, first_index, records, truncates=truncates)
        self.durable_index = first_index + len(records) - 1

    patch.setattr(Outgoing, "send", mutated_send)
    patch.setattr(Outgoing, "write_records", mutated_write)


def accepts_on_receipt_by_a_slave(patch: pytest.MonkeyPatch) -> None:
    """A slave accepts what it has received, before the master has ordered it."""
    receive = Producers.receive

    def mutated(self: Producers, now: Nanoseconds, queue: SharedReaderQueue, write: Write) -> None:
        receive(self, now, queue, write)
        if self._replica.mastery is None:
            self._replica.clients.release(WriteAcknowledgment(queue.name, write.identity, AckResponse.ACCEPTED))

    patch.setattr(Producers, "receive", mutated)


def votes_without_comparing_logs(patch: pytest.MonkeyPatch) -> None:
    """Whoever asks first gets the vote, whatever its log holds."""
    most = LastEntry(2**60, 2**60)
    would_vote, vote = Ballot.would_vote, Ballot.vote
    patch.setattr(Ballot, "would_vote", lambda self, last, epoch, own: would_vote(self, most, epoch, own))
    patch.setattr(Ballot, "vote", lambda self, name, last, epoch, own: vote(self, name, most, epoch, own))


def compares_logs_by_length(patch: pytest.MonkeyPatch) -> None:
    """The longest log gets the vote, and not the one of the latest epoch."""
    would_vote, vote = Ballot.would_vote, Ballot.vote

    def length(last: LastEntry) -> LastEntry:
        return LastEntry(0, last.index)

    patch.setattr(
        Ballot, "would_vote", lambda self, last, epoch, own: would_vote(self, length(last), epoch, length(own))
    )
    patch.setattr(
        Ballot, "vote", lambda self, name, last, epoch, own: vote(self, name, length(last), epoch, length(own))
    )


def accepts_an_old_master(patch: pytest.MonkeyPatch) -> None:
    """Entries of a master that was deposed are taken for those of the present one."""
    receive = Replica.receive

    def mutated(self: Replica, now: Nanoseconds, frame: Frame) -> None:
        if isinstance(frame, Entries) and frame.epoch < self.epoch and self.mastery is None:
            frame = msgspec.structs.replace(frame, epoch=self.epoch)
        receive(self, now, frame)

    patch.setattr(Replica, "receive", mutated)


def forgets_the_flag_on_take_over(patch: pytest.MonkeyPatch) -> None:
    """A new master sends what was assigned as if it had never been sent."""

    def mutated(self: Replay, *, flags_all: bool) -> None:
        for sample in self._held:
            if sample.state is SampleState.SENT:
                release(sample)
                sample.move(Cause.RESTORE)
            elif flags_all:
                sample.redelivered = True

    patch.setattr(Replay, "_begin_epoch", mutated)


def forgets_the_flag_without_synchronization(patch: pytest.MonkeyPatch) -> None:
    """A new master flags only what it knows to be assigned, though assignments were not synchronized."""
    begin = Replay._begin_epoch
    patch.setattr(Replay, "_begin_epoch", lambda self, *, flags_all: begin(self, flags_all=False))


def forgets_identities(patch: pytest.MonkeyPatch) -> None:
    """What was delivered is forgotten, and enqueued again when it is written again."""

    def mutated(self: Held, sample: Sample) -> None:
        del self.known[sample.identity]

    patch.setattr(Held, "retire", mutated)


def takes_half_for_a_quorum(patch: pytest.MonkeyPatch) -> None:
    """Half of the replicas commit and elect."""
    begin = Progress.__init__
    ballot = Ballot.__init__

    def mutated(self: Progress, names: Any, quorum: int, next_index: int, now: Nanoseconds) -> None:
        begin(self, names, quorum - 1, next_index, now)

    def mutated_ballot(self: Ballot, name: str, quorum: int, state: HardState) -> None:
        ballot(self, name, quorum - 1, state)

    patch.setattr(Progress, "__init__", mutated)
    patch.setattr(Ballot, "__init__", mutated_ballot)


def refuses_what_is_in_its_log(patch: pytest.MonkeyPatch) -> None:
    """A replica without a master refuses a sample that is in its log and not known to be committed."""
    patch.setattr(ReplicatedLog, "uncommitted_index", lambda self, queue, identity: 0)
    patch.setattr(ReplicatedLog, "was_taken_back", lambda self, queue, identity: False)


def commits_older_epochs_by_counting(patch: pytest.MonkeyPatch) -> None:
    """An entry of an older epoch counts as committed once a quorum holds it."""

    def mutated(self: Progress, log: ReplicatedLog, own_index: int, epoch: int) -> int:
        return max(log.commit_index, self.quorum_index(own_index))

    patch.setattr(Progress, "committable", mutated)


def forgets_its_vote(patch: pytest.MonkeyPatch) -> None:
    """A vote for another replica is not stored."""
    answer = Election.answer

    def mutated(self: Election, now: Nanoseconds, canvass: Canvass) -> None:
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(Outgoing, "write_hard_state", lambda _self, _state: None)
            answer(self, now, canvass)

    patch.setattr(Election, "answer", mutated)


def keeps_its_vote_without_a_log(patch: pytest.MonkeyPatch) -> None:
    """A replica that lost its disk votes as if it had not."""
    patch.setattr(Ballot, "lose_vote", lambda self: None)


def sends_assignments_at_once(patch: pytest.MonkeyPatch) -> None:
    """A delivery does not wait for its assignment, though assignments are to be synchronized."""
    begin = Clients.__init__

    def mutated(self: Clients, *, synchronizes: bool) -> None:
        begin(self, synchronizes=False)

    patch.setattr(Clients, "__init__", mutated)


def leads_without_a_quorum(patch: pytest.MonkeyPatch) -> None:
    """A master that nobody answers goes on, and sends."""
    patch.setattr(Mastery, "has_quorum", lambda self, now: True)


def votes_though_it_is_a_learner(patch: pytest.MonkeyPatch) -> None:
    """A learner forgets, when it starts again, that it has no vote."""
    write = Outgoing.write_hard_state

    def mutated(self: Outgoing, state: HardState) -> None:
        write(self, HardState(state.epoch, "") if state.vote == NO_VOTER else state)

    patch.setattr(Outgoing, "write_hard_state", mutated)
