"""P1, P2, P3 and P11: the outcome of a sample, and the guarantees to its producer."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable

from qsctl.core.messages import AckResponse, Delivery, Outbound, SampleFlag, Write, WriteAcknowledgment
from qsctl.core.records import Enqueued, Record, RemovalCause
from qsctl.identity import Guid, SampleIdentity
from qsctl.instant import Nanoseconds
from qsctl.sim.world.invariants.base import Invariant, Ledger, dead_letters, removals
from qsctl.sim.world.programs.administrator import WorldAdministrator
from qsctl.sim.world.services.history import Observer


class AcceptedIsNeverLost(Invariant):
    """P1: at the end, every accepted sample has one of the permitted outcomes."""

    name = "P1"
    rule = "an accepted sample is delivered, dead, expired, flushed or deleted with its queue"

    def __init__(
        self,
        clock: Callable[[], Nanoseconds],
        records: Callable[[], Iterable[tuple[int, str, int, Record]]],
        held: Callable[[], Container[tuple[str, SampleIdentity]]],
        administrator: WorldAdministrator,
    ) -> None:
        super().__init__(clock)
        self._records = records
        self._held = held
        self._administrator = administrator
        self._accepted: dict[tuple[str, SampleIdentity], Nanoseconds] = {}
        self._processed: set[tuple[str, SampleIdentity]] = set()

    def released(self, service: int, message: Outbound) -> None:
        """Note a sample that a service acknowledged positively to its producer."""
        if isinstance(message, WriteAcknowledgment) and message.response == AckResponse.ACCEPTED:
            self._accepted.setdefault((message.queue, message.identity), self._clock())

    def processed(self, consumer_guid: Guid, queue: str, identity: SampleIdentity, response: AckResponse) -> None:
        """Note a sample that a consumer acknowledged positively."""
        if response == AckResponse.ACCEPTED:
            self._processed.add((queue, identity))

    def lost_majority(self, queue: str, held: frozenset[SampleIdentity]) -> None:
        """Expect of the queue's samples only those that the best remaining log holds."""
        self._accepted = {key: at for key, at in self._accepted.items() if key[0] != queue or key[1] in held}

    def concluded(self) -> None:
        """Test each accepted sample for a permitted outcome."""
        removed = removals(self._records())
        dead = dead_letters(self._records())
        held = self._held()
        for (queue, identity), since in self._accepted.items():
            self.checked_count += 1
            key = (queue, identity)
            if key in self._processed or key in held or identity in dead:
                continue
            if self._administrator.may_be_deleted(queue, since):
                continue
            removal = removed.get(key)
            if removal is None or removal.cause is RemovalCause.DELIVERED:
                fate = "removed as delivered" if removal is not None else "in no queue"
                self.violate(f"{queue}: {identity}, accepted at {since / 1e9:.3f} s, was never processed and is {fate}")


class DeliveredWasSent(Invariant):
    """P2, where a sample written to a deleted queue does not count as written to its namesake."""

    name = "P2"
    rule = "what is delivered was written, to this queue and with this payload"

    def __init__(self, clock: Callable[[], Nanoseconds], administrator: WorldAdministrator) -> None:
        super().__init__(clock)
        self._administrator = administrator
        self._payloads: dict[SampleIdentity, bytes] = {}
        self._arrived_ns: dict[SampleIdentity, Nanoseconds] = {}
        self._lost_ns: dict[str, Nanoseconds] = {}

    def lost_majority(self, queue: str, held: frozenset[SampleIdentity]) -> None:
        """Ignore earlier deletions of the queue: possibly only the lost members had records of them."""
        self._lost_ns[queue] = self._clock()

    def written(self, service: int, write: Write) -> None:
        """Note the payload that a producer wrote."""
        self._payloads[write.identity] = write.payload

    def arrived(self, service: int, write: Write) -> None:
        """Note the latest instant at which a sample reached a service."""
        self._arrived_ns[write.identity] = self._clock()

    def released(self, service: int, message: Outbound) -> None:
        """Test that a delivery has the payload that was written, to this creation of the queue."""
        if isinstance(message, Delivery):
            self.checked_count += 1
            sent = self._payloads.get(message.original_identity)
            if sent is None or message.payload not in {None, sent}:
                what = "no producer wrote" if sent is None else "has another payload than was written"
                self.violate(f"{message.queue}: {message.original_identity} is delivered, which {what}")
            arrived_ns = self._arrived_ns.get(message.original_identity, 0)
            lost_ns = self._lost_ns.get(message.queue, 0)
            if self._administrator.is_of_deleted(message.queue, arrived_ns, asked_after_ns=lost_ns):
                self.violate(
                    f"{message.queue}: {message.original_identity} leaves {service}, and was written to the queue of "
                    f"this name that was deleted"
                )


class RefusedIsNeverDelivered(Invariant):
    """P3, where a sample is refused once every service that it was sent to has answered 0 to each attempt.

    A sample with the flag to replicate counts as sent to every service. Also refused is what its producer concludes to
    be so, until it writes the sample again.
    """

    name = "P3"
    rule = "what every service has refused is never delivered"

    def __init__(self, clock: Callable[[], Nanoseconds], service_count: int) -> None:
        super().__init__(clock)
        self._services = frozenset(range(1, service_count + 1))
        self._sent: dict[SampleIdentity, set[tuple[int, int]]] = {}
        self._refused: dict[tuple[str, SampleIdentity], set[tuple[int, int]]] = {}
        self._released: set[tuple[str, SampleIdentity]] = set()
        self._concluded: dict[SampleIdentity, set[str]] = {}
        """The queues by which the producer of a sample holds it to be refused."""

    def refused(self, queue: str, write: Write) -> None:
        """Note a sample that its producer concludes to be refused; a queue that was deleted may have delivered it."""
        self._concluded.setdefault(write.identity, set()).add(queue)

    def written(self, service: int, write: Write) -> None:
        """Note the services that an attempt is sent to."""
        self._concluded.pop(write.identity, None)
        receivers = self._services if write.flags & SampleFlag.REPLICATE else {service}
        self._sent.setdefault(write.identity, set()).update((write.attempt, each) for each in receivers)

    def answered(self, service: int, answer: WriteAcknowledgment) -> None:
        """Note a negative acknowledgment; once the sample is refused, test that it was never delivered."""
        if answer.response == AckResponse.REJECTED:
            key = (answer.queue, answer.identity)
            self._refused.setdefault(key, set()).add((answer.attempt, service))
            if self._is_refused(key):
                self.checked_count += 1
                if key in self._released:
                    self.violate(f"{key[0]}: {key[1]} was delivered, and is refused by every service")

    def lost_majority(self, queue: str, held: frozenset[SampleIdentity]) -> None:
        """Forget the queue's refusals: possibly only the lost members had evidence that a sample is in no log."""
        self._refused = {key: refused for key, refused in self._refused.items() if key[0] != queue}
        self._released = {key for key in self._released if key[0] != queue}
        for queues in self._concluded.values():
            queues.discard(queue)

    def released(self, service: int, message: Outbound) -> None:
        """Test that a delivered sample is not refused."""
        if isinstance(message, Delivery) and message.dead_letter_reason is None:
            key = (message.queue, message.identity)
            self._released.add(key)
            if self._is_refused(key):
                self.violate(f"{key[0]}: {key[1]} is delivered by {service}, though every service refused it")
            if key[0] in self._concluded.get(key[1], ()):
                self.violate(f"{key[0]}: {key[1]} is delivered by {service}, and its producer holds it to be refused")

    def _is_refused(self, key: tuple[str, SampleIdentity]) -> bool:
        sent, refused = self._sent.get(key[1]), self._refused.get(key)
        return sent is not None and refused is not None and sent <= refused


class WritingAgainChangesNothing(Invariant):
    """P11: a sample that is written again is not enqueued again."""

    name = "P11"
    rule = "a sample is enqueued once, however often it is written"

    def __init__(self, clock: Callable[[], Nanoseconds], ledger: Ledger) -> None:
        super().__init__(clock)
        self._ledger = ledger

    def concluded(self) -> None:
        """Test that no service has stored one sample at two positions of a queue."""
        found: dict[tuple[int, str, SampleIdentity], int] = {}
        for service, _, _, record in self._ledger.records():
            if isinstance(record, Enqueued) and record.dead_letter_reason is None:
                self.checked_count += 1
                key = (service, record.queue, record.identity)
                position = found.setdefault(key, record.position)
                if position != record.position:
                    self.violate(
                        f"{record.queue}: {record.identity} is enqueued at {service} at positions {position} "
                        f"and {record.position}"
                    )


class AnswersOfProducers(Observer):
    """The accepted and delivered samples, for schedules that wait for them; not a rule."""

    def __init__(self) -> None:
        self.accepted: set[SampleIdentity] = set()
        self.delivered_identities: set[SampleIdentity] = set()

    def answered(self, service: int, answer: WriteAcknowledgment) -> None:
        """Note a positive acknowledgment that reached a producer."""
        if answer.response == AckResponse.ACCEPTED:
            self.accepted.add(answer.identity)

    def delivered(self, service: int, delivery: Delivery) -> None:
        """Note a sample that reached a consumer."""
        self.delivered_identities.add(delivery.original_identity)
