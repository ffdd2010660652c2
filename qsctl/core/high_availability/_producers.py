"""A replica's answers to producers, and their samples until the master's log has them [QS 7.1.1].

Decides: 1, 0 or no answer. A 1 rests on the sample's entry, and holds for all replicas: it is sent by the master, by
the replica that passed the sample on, and by each that is asked again. A 0 means that this attempt is in no entry of
this log, never was, and will never be; a producer that receives it from all replicas knows that the sample is not
enqueued. Where neither is certain there is no answer, and the producer writes again.

Our reading of `sample_timeout` [QS Table 7.3]: it bounds the wait of a sample that the master has not ordered. One
replica alone cannot remove a sample from the log. The master does not depend on the time-out, since it sends a replica
every payload that it lacks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from qsctl.core.events import BounceReason
from qsctl.core.high_availability._allegiance import Allegiance
from qsctl.core.high_availability._clients import Clients
from qsctl.core.high_availability._followed import Fed, FedByRuns
from qsctl.core.high_availability._groups import incarnation_of
from qsctl.core.high_availability._log import ReplicatedLog
from qsctl.core.high_availability._members import GroupMembers
from qsctl.core.high_availability._staging import REPLICATE, Staging
from qsctl.core.high_availability.ballot import Ballot
from qsctl.core.high_availability.frames import Relayed
from qsctl.core.high_availability.outgoing import Outgoing
from qsctl.core.messages import AckResponse, RunAccepted, Write, WriteAcknowledgment, WriteRun
from qsctl.core.records import Enqueued
from qsctl.identity import SampleIdentity, identities_from
from qsctl.instant import Nanoseconds


class Producers:
    """The producers of one replica's queues.

    Args:
        stream: the group's name.
        members: of the group.
        ballot: the replica's vote.
        log: its log.
        outgoing: where frames go.
        queues: what producers write to.
        clients: where answers wait for what they rest on.
        allegiance: to the master that it follows.
        sample_timeout_ns: how long a sample waits for the master.
    """

    def __init__(
        self,
        stream: str,
        members: GroupMembers,
        ballot: Ballot,
        log: ReplicatedLog,
        outgoing: Outgoing,
        queues: Sequence[Fed],
        clients: Clients,
        allegiance: Allegiance,
        sample_timeout_ns: Nanoseconds,
    ) -> None:
        self._stream = stream
        self._members = members
        self._ballot = ballot
        self._log = log
        self._outgoing = outgoing
        self._queues = {queue.name: queue for queue in queues}
        self._clients = clients
        self._allegiance = allegiance
        self._remembers_from_epoch = 0
        self.staging = Staging(sample_timeout_ns)
        self.holds_back = False
        """Whether the master keeps samples aside, for another is about to be master."""

    def remember_from(self, epoch: int) -> None:
        """Note the epoch of the last entry with which this process began."""
        self._remembers_from_epoch = epoch

    @property
    def remembers(self) -> bool:
        """Return whether it remembers every entry that others may have from it, and that may still be committed.

        Entries that it passed on before its start and withdrew are void once an entry of the epoch is committed in
        which they were withdrawn; that is the epoch of the log's last entry, or an earlier one.
        """
        return not self._ballot.is_learner and self._log.epoch_at(self._log.commit_index) >= self._remembers_from_epoch

    def receive(self, now: Nanoseconds, queue: Fed, write: Write, *, is_master: bool) -> None:
        """Process a sample that its producer sent here; with the flag REPLICATE, pass it on to the others."""
        if write.flags & REPLICATE and not queue.held.knows(write.identity):
            incarnation = incarnation_of(self._ballot.state, self._log)
            frame = Relayed(self._stream, self._members.name, self._ballot.epoch, queue.name, write, incarnation)
            for other in self._members.others:
                self._outgoing.send(other, frame, rests_on_writes=False)
        self._receive(now, queue, write, is_master=is_master)

    def receive_run(self, now: Nanoseconds, queue: FedByRuns, writes: WriteRun, *, is_master: bool) -> None:
        """Process samples that their producer sent here together, one by one where a rule may distinguish them."""
        identities = identities_from(writes.identity, writes.count)
        if writes.flags & REPLICATE or writes.attempt != 1 or self.staging.knows_any(queue.name, identities):
            self._receive_singles(now, queue, writes, is_master=is_master)
        elif is_master:
            if self.holds_back:
                self.staging.stage_run(now, queue.name, writes)
            else:
                queue.receive_run(now, writes)
        elif queue.held.admits_run(writes.identity, writes.count) and not self._log.has_uncommitted(
            queue.name, identities
        ):
            if self._allegiance.has_lost_master(now) or self._members.is_witness(self._members.name):
                self._receive_singles(now, queue, writes, is_master=False)
            else:
                self.staging.stage_run(now, queue.name, writes)
        elif all(map(queue.held.knows, identities)):
            self._accept_run(queue, writes, 0)
        elif index := self._log.uncommitted_run_index(queue.name, identities):
            self._accept_run(queue, writes, index)
        else:
            self._receive_singles(now, queue, writes, is_master=False)

    def _receive_singles(self, now: Nanoseconds, queue: Fed, writes: WriteRun, *, is_master: bool) -> None:
        for write in writes.singles():
            self.receive(now, queue, write, is_master=is_master)

    def _accept_run(self, queue: Fed, writes: WriteRun, rests_on: int) -> None:
        """Answer 1 to samples that a slave has already, once an entry is committed."""
        if queue.context.acknowledges:
            self._clients.hold(RunAccepted(queue.name, writes.identity, writes.count, rests_on))
            self._clients.commit(self._log.commit_index)

    def receive_relayed(self, now: Nanoseconds, queue: str, write: Write, *, is_master: bool) -> str:
        """Process a sample that another replica passed on; return why it cannot be one of these queues, or nothing."""
        found = self._queues.get(queue)
        if found is None:
            return f"it passes on a sample of {queue!r}, which is not in this replication group"
        if (reason := found.bar(write)) is BounceReason.TOO_LARGE:
            return f"it passes on a sample of {len(write.payload)} octets, more than a queue takes"
        if reason is not None:
            return ""  # this service holds producers back; the others have the sample
        self._receive(now, found, write, is_master=is_master)
        return ""

    def take_over(self, now: Nanoseconds) -> None:
        """Let the master's queues have what waited for a master, and answer for what may be unanswered."""
        for (queue, identity), index in self._log.uncommitted():
            _, record = self._log.entry(index)
            if type(record) is Enqueued and record.dead_letter_reason is None:
                self._accept(self._queues[queue], identity, index, is_master=True)
        self.go_on(now)

    def go_on(self, now: Nanoseconds) -> None:
        """Let the master's queues have what waits here."""
        self.holds_back = False
        for queue, write in self.staging.unstage_all():
            self._queues[queue].receive(now, write)

    def stage_again(self, now: Nanoseconds, outside: Iterable[tuple[str, Write]]) -> None:
        """Let wait here what waited outside full queues, whose master this replica was."""
        for queue, write in outside:
            self.staging.stage(now, queue, write)

    def accept(self, record: Enqueued, index: int) -> None:
        """Answer for a sample that was passed on from here, or came so, once its entry is committed."""
        self._accept(self._queues[record.queue], record.identity, index, is_master=False)

    def next_deadline(self) -> Nanoseconds:
        """Return when a sample has waited long enough."""
        return self.staging.next_deadline()

    def advance(self, now: Nanoseconds) -> None:
        """Reject what has waited `sample_timeout`."""
        for queue, write in self.staging.overdue(now):
            self.reject(queue, write.identity, lacks_master=True)

    def reject(self, queue: str, identity: SampleIdentity, *, lacks_master: bool = False) -> None:
        """Answer 0, if that is sure."""
        log = self._log
        if not self.remembers or log.uncommitted_index(queue, identity) or log.was_taken_back(queue, identity):
            return
        attempt = self.staging.refuse(queue, identity)
        if self._queues[queue].context.acknowledges:
            rejection = WriteAcknowledgment(queue, identity, AckResponse.REJECTED, 0, attempt, lacks_master)
            self._clients.release(rejection)

    def _receive(self, now: Nanoseconds, queue: Fed, write: Write, *, is_master: bool) -> None:
        name, identity = queue.name, write.identity
        if self.staging.is_refused(name, write):
            self.reject(name, identity, lacks_master=True)  # it was answered before, by the reason that counts
            return
        if write.attempt != 1:
            self.staging.note_attempt(name, write)
        if is_master and self.holds_back:
            self.staging.stage(now, name, write)
        elif is_master:
            queue.receive(now, write)
        elif queue.held.knows(identity):
            self._accept(queue, identity, 0, is_master=False)
        elif index := self._log.uncommitted_index(name, identity):
            self._accept(queue, identity, index, is_master=False)
        elif self._allegiance.has_lost_master(now) and self.remembers:
            self.reject(name, identity, lacks_master=True)
        elif self._members.is_witness(self._members.name):
            self.reject(name, identity)  # it holds no payloads, and is never the master that orders the sample
        else:
            self.staging.stage(now, name, write)

    def _accept(self, queue: Fed, identity: SampleIdentity, rests_on: int, *, is_master: bool) -> None:
        """Answer 1 once an entry is committed."""
        if queue.context.acknowledges:
            answer = WriteAcknowledgment(queue.name, identity, AckResponse.ACCEPTED, rests_on)
            self._clients.hold(answer)
            if not is_master:
                self._clients.commit(self._log.commit_index)
