"""What a replica answers to producers, and what it does with their samples until the master's log has them [QS 7.1.1].

Decides: 1, 0 or silence. A 1 rests on the sample's entry, and holds for all replicas: the master says it, the replica
that passed the sample on, and each that is asked again. A 0 says that this attempt is in
no entry of this log, never was, and will never come from here; a producer that hears it from all replicas knows that
the sample is not enqueued. Wherever neither is sure there is no answer, and the producer writes again.

Our reading of `sample_timeout` [QS Table 7.3]: it bounds the wait of a sample that the master has not ordered. What is
in the log cannot be taken out of it by one replica alone. The master need not know of it, for it gives a replica
whatever payload that lacks.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from qsctl.core.events import BounceReason
from qsctl.core.high_availability.followed import Fed
from qsctl.core.high_availability.frames import Relayed
from qsctl.core.high_availability.staging import REPLICATE, Staging
from qsctl.core.messages import AckResponse, Write, WriteAcknowledgment
from qsctl.core.records import Enqueued, QueueRecord
from qsctl.identity import SampleIdentity
from qsctl.instant import Nanoseconds

if TYPE_CHECKING:
    from qsctl.core.high_availability.replica import Replica


class Producers:
    """The producers of one replica's queues.

    Args:
        replica: whose they are.
        sample_timeout_ns: how long a sample waits for the master.
    """

    def __init__(self, replica: Replica, sample_timeout_ns: Nanoseconds) -> None:
        self._replica = replica
        self._queues = {queue.name: queue for queue in replica.follower.queues}
        self.staging = Staging(sample_timeout_ns)

    def receive(self, now: Nanoseconds, queue: Fed, write: Write) -> None:
        """Process a sample that its producer sent here; with the flag REPLICATE, pass it on to the others."""
        replica = self._replica
        if replica.is_failed:
            return
        if write.flags & REPLICATE and write.identity not in queue.held.known:
            frame = Relayed(replica.stream, replica.name, replica.epoch, queue.name, write, replica.incarnation)
            for other in replica.others:
                replica.outgoing.send(other, frame, rests_on_writes=False)
        self._receive(now, queue, write)

    def receive_relayed(self, now: Nanoseconds, queue: str, write: Write) -> str:
        """Process a sample that another replica passed on; return why it cannot be one of these queues, or nothing."""
        found = self._queues.get(queue)
        if found is None:
            return f"it passes on a sample of {queue!r}, which is not in this replication group"
        if (reason := found.bar(write)) is BounceReason.TOO_LARGE:
            return f"it passes on a sample of {len(write.payload)} octets, more than a queue takes"
        if reason is not None:
            return ""  # this service holds producers back; the others have the sample
        self._receive(now, found, write)
        return ""

    def take_over(self, now: Nanoseconds) -> None:
        """Let the master's queues have what waited for a master, and answer for what may be unanswered."""
        log = self._replica.log
        for (queue, identity), index in log.uncommitted():
            _, record = log.entry(index)
            if type(record) is Enqueued and record.dead_letter_reason is None:
                self._accept(self._queues[queue], identity, index)
        for queue, write in self.staging.unstage_all():
            self._queues[queue].receive(now, write)

    def stage_again(self, now: Nanoseconds, outside: Iterable[tuple[str, Write]]) -> None:
        """Let wait here what waited outside full queues, whose master this replica was."""
        for queue, write in outside:
            self.staging.stage(now, queue, write)

    def accept(self, record: QueueRecord, index: int) -> None:
        """Answer for a sample that was passed on from here, or came so, once its entry is committed."""
        assert type(record) is Enqueued, f"{record!r} came from no producer"
        self._accept(self._queues[record.queue], record.identity, index)

    def next_deadline(self) -> Nanoseconds:
        """When a sample has waited long enough."""
        return self.staging.next_deadline()

    def advance(self, now: Nanoseconds) -> None:
        """Reject what has waited `sample_timeout`."""
        for queue, write in self.staging.overdue(now):
            self.reject(queue, write.identity, lacks_master=True)

    def reject(self, queue: str, identity: SampleIdentity, *, lacks_master: bool = False) -> None:
        """Answer 0, if that is sure."""
        replica = self._replica
        if (
            not replica.remembers
            or replica.log.uncommitted_index(queue, identity)
            or replica.log.was_taken_back(queue, identity)
        ):
            return
        attempt = self.staging.refuse(queue, identity)
        if self._queues[queue].context.acknowledges:
            rejection = WriteAcknowledgment(queue, identity, AckResponse.REJECTED, 0, attempt, lacks_master)
            replica.clients.release(rejection)

    def _receive(self, now: Nanoseconds, queue: Fed, write: Write) -> None:
        replica, name, identity = self._replica, queue.name, write.identity
        if self.staging.is_refused(name, write):
            self.reject(name, identity, lacks_master=True)  # it was answered before, by the reason that counts
            return
        if write.attempt != 1:
            self.staging.note_attempt(name, write)
        if replica.mastery is not None:
            queue.receive(now, write)
        elif identity in queue.held.known:
            self._accept(queue, identity, 0)
        elif index := replica.log.uncommitted_index(name, identity):
            self._accept(queue, identity, index)
        elif replica.allegiance.has_lost_master(now) and replica.remembers:
            self.reject(name, identity, lacks_master=True)
        else:
            self.staging.stage(now, name, write)

    def _accept(self, queue: Fed, identity: SampleIdentity, rests_on: int) -> None:
        """Answer 1 once an entry is committed."""
        if queue.context.acknowledges:
            answer = WriteAcknowledgment(queue.name, identity, AckResponse.ACCEPTED, rests_on)
            self._replica.clients.hold(answer)
            if self._replica.mastery is None:
                self._replica.clients.commit(self._replica.log.commit_index)
