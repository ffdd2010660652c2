"""P4, P8 and P9: the deliveries to consumers: their redelivered flag, the number outstanding, and the attempts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from qsctl.core.events import Event, SampleRemoved, SampleReturned, SampleSent
from qsctl.core.high_availability.roles import Role, RoleChanged
from qsctl.core.messages import AckResponse, Delivery, Outbound, SampleFlag
from qsctl.core.queue.settings import SharedReaderQueueSettings
from qsctl.core.ready import SERVICE_STREAM
from qsctl.core.records import Enqueued, QueueDeleted, SubscriberDeleted
from qsctl.identity import Guid, SampleIdentity
from qsctl.instant import Nanoseconds
from qsctl.sim.world.invariants.base import Invariant, Ledger
from qsctl.sim.world.services.incarnations import Incarnations
from qsctl.sim.world.services.stored import Append, Operation


class OneDeliveryWithoutTheFlag(Invariant):
    """P4, where a sample that was rejected may be delivered again without the flag (our reading of [QS 2.9])."""

    name = "P4"
    rule = "at most one delivery of a sample lacks the redelivered flag, rejected ones aside"

    def __init__(self, clock: Callable[[], Nanoseconds], incarnations: Incarnations) -> None:
        super().__init__(clock)
        self._incarnations = incarnations
        self._unanswered: dict[tuple[str, int], dict[SampleIdentity, dict[Guid, int]]] = {}
        """Number of deliveries that a consumer has not rejected, by queue and its creation, sample, and consumer."""

    def released(self, service: int, message: Outbound) -> None:
        """Test a delivery against the earlier ones of the sample."""
        if not isinstance(message, Delivery):
            return
        self.checked_count += 1
        queue = message.queue, self._incarnations.of(service, message.queue)
        unanswered = self._unanswered.setdefault(queue, {}).setdefault(message.identity, {})
        if not message.flags & SampleFlag.REDELIVERED and unanswered:
            self.violate(
                f"{message.queue}: {message.identity} leaves {service} without the redelivered flag, and was sent to "
                f"{', '.join(sorted(guid.hex()[-4:] for guid in unanswered))} before"
            )
        unanswered[message.consumer_guid] = unanswered.get(message.consumer_guid, 0) + 1

    def processed(self, consumer_guid: Guid, queue: str, identity: SampleIdentity, response: AckResponse) -> None:
        """Forget a delivery that its consumer rejected."""
        if response != AckResponse.REJECTED:
            return
        for key in [each for each in self._unanswered if each[0] == queue]:
            unanswered = self._unanswered[key].get(identity, {})
            if consumer_guid in unanswered:
                unanswered[consumer_guid] -= 1
                if not unanswered[consumer_guid]:
                    del unanswered[consumer_guid]

    def lost_majority(self, queue: str, held: frozenset[SampleIdentity]) -> None:
        """Forget the queue's earlier deliveries: possibly only the lost members had records of them."""
        self._unanswered = {key: each for key, each in self._unanswered.items() if key[0] != queue}


class ThresholdHolds(Invariant):
    """P8, for each service and consumer, counted from the service's events in their order."""

    name = "P8"
    rule = "a consumer has at most its threshold of unacknowledged samples, and one more"

    def __init__(self, clock: Callable[[], Nanoseconds], settings: Mapping[str, SharedReaderQueueSettings]) -> None:
        super().__init__(clock)
        self._settings = settings
        self._outstanding: dict[tuple[int, str], dict[SampleIdentity, Guid]] = {}

    def happened(self, service: int, event: Event) -> None:
        """Count a delivery that begins or ends."""
        if not isinstance(event, SampleSent | SampleReturned | SampleRemoved) or event.queue not in self._settings:
            return
        outstanding = self._outstanding.setdefault((service, event.queue), {})
        if not isinstance(event, SampleSent):
            outstanding.pop(event.identity, None)
            return
        self.checked_count += 1
        outstanding[event.identity] = event.consumer_guid
        count = sum(guid == event.consumer_guid for guid in outstanding.values())
        threshold = self._settings[event.queue].distribution.unacked_threshold
        if 0 <= threshold < count - 1:
            self.violate(
                f"{event.queue}: {count} samples of {service} are unacknowledged at {event.consumer_guid.hex()[-4:]}, "
                f"whose threshold is {threshold}"
            )

    def changed(self, service: int, change: RoleChanged) -> None:
        """Forget the deliveries of a service that is not master any more."""
        if change.role is not Role.MASTER:
            self.ended(service)

    def stored(self, service: int, operations: Sequence[Operation]) -> None:
        """Forget the deliveries of a service that has deleted a queue."""
        for operation in operations:
            records = operation.records if isinstance(operation, Append) and operation.stream == SERVICE_STREAM else ()
            if any(isinstance(record, QueueDeleted | SubscriberDeleted) for record in records):
                self.ended(service)

    def set_back(self, service: int, queue: str) -> None:
        """Forget the deliveries of a queue that was reset to its stored state."""
        self._outstanding[service, queue] = {}

    def ended(self, service: int) -> None:
        """Forget the deliveries of a service that ended."""
        for number, queue in self._outstanding:
            if number == service:
                self._outstanding[number, queue] = {}


class AttemptsAsConfigured(Invariant):
    """P9: a sample has no more attempts than its queue allows, and at most one dead letter."""

    name = "P9"
    rule = "a sample is tried as often as configured, then is a dead letter exactly once"

    def __init__(
        self, clock: Callable[[], Nanoseconds], settings: Mapping[str, SharedReaderQueueSettings], ledger: Ledger
    ) -> None:
        super().__init__(clock)
        self._settings = settings
        self._ledger = ledger

    def released(self, service: int, message: Outbound) -> None:
        """Test the attempt number of a delivery against the queue's maximum."""
        if isinstance(message, Delivery) and message.queue in self._settings:
            self.checked_count += 1
            attempts_max = self._settings[message.queue].redelivery.max_delivery_retries + 1
            if message.attempt > attempts_max:
                self.violate(
                    f"{message.queue}: {message.identity} leaves {service} for the {message.attempt}th time, of "
                    f"{attempts_max}"
                )

    def concluded(self) -> None:
        """Test that no service has stored two dead letters of one sample."""
        found: dict[tuple[int, str, SampleIdentity, str], int] = {}
        for service, _, _, record in self._ledger.records():
            if isinstance(record, Enqueued) and record.dead_letter_reason is not None:
                self.checked_count += 1
                key = (service, record.queue, record.identity, record.dead_letter_from)
                position = found.setdefault(key, record.position)
                if position != record.position:
                    self.violate(
                        f"{record.queue}: {record.identity} is a dead letter twice at {service}: at positions "
                        f"{position} and {record.position}"
                    )
