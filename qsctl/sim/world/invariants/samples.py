"""P1, P2, P3 and P11: what becomes of a sample, and what its producer may rely on."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from qsctl.core.events import Event, SampleDeadLettered
from qsctl.core.messages import AckResponse, Delivery, Outbound, Write, WriteAcknowledgment
from qsctl.core.records import Enqueued, RemovalCause
from qsctl.identity import Guid, SampleIdentity
from qsctl.instant import Nanoseconds
from qsctl.sim.world.history import Observer
from qsctl.sim.world.invariants.base import Invariant, Ledger, removals

if TYPE_CHECKING:
    from qsctl.sim.world.world import World


class AcceptedIsNeverLost(Invariant):
    """P1."""

    name = "P1"
    rule = "an accepted sample is delivered and acknowledged, or dead, expired or flushed"

    def __init__(self, clock: Callable[[], Nanoseconds], ledger: Ledger) -> None:
        super().__init__(clock)
        self._ledger = ledger
        self._accepted: dict[tuple[str, SampleIdentity], Nanoseconds] = {}
        self._processed: set[tuple[str, SampleIdentity]] = set()
        self._dead: set[tuple[str, SampleIdentity]] = set()

    def released(self, service: int, message: Outbound) -> None:
        """Note what a service accepts."""
        if isinstance(message, WriteAcknowledgment) and message.response == AckResponse.ACCEPTED:
            self._accepted.setdefault((message.queue, message.identity), self._clock())

    def processed(self, consumer_guid: Guid, queue: str, identity: SampleIdentity, response: AckResponse) -> None:
        """Note what a consumer has processed."""
        if response == AckResponse.ACCEPTED:
            self._processed.add((queue, identity))

    def happened(self, service: int, event: Event) -> None:
        """Note what went to the dead letters."""
        if isinstance(event, SampleDeadLettered):
            self._dead.add((event.queue, event.identity))

    def concluded(self, world: World) -> None:
        """Look for what is nowhere."""
        removed = removals(self._ledger.records())
        held = world.held()
        for (queue, identity), since in self._accepted.items():
            self.checked_count += 1
            key = (queue, identity)
            if key in self._processed or key in self._dead or key in held:
                continue
            removal = removed.get(key)
            if removal is None or removal.cause is RemovalCause.DELIVERED:
                fate = "removed as delivered" if removal is not None else "in no queue"
                self.violate(f"{queue}: {identity}, accepted at {since / 1e9:.3f} s, was never processed and is {fate}")


class DeliveredWasSent(Invariant):
    """P2."""

    name = "P2"
    rule = "what is delivered was written, with this payload"

    def __init__(self, clock: Callable[[], Nanoseconds]) -> None:
        super().__init__(clock)
        self._payloads: dict[SampleIdentity, bytes] = {}

    def written(self, service: int, write: Write) -> None:
        """Note what is sent."""
        self._payloads[write.identity] = write.payload

    def released(self, service: int, message: Outbound) -> None:
        """Compare what a service delivers."""
        if isinstance(message, Delivery):
            self.checked_count += 1
            sent = self._payloads.get(message.original_identity)
            if sent is None or message.payload not in {None, sent}:
                what = "nobody wrote" if sent is None else "has another payload than was written"
                self.violate(f"{message.queue}: {message.original_identity} is delivered, which {what}")


class RefusedIsNeverDelivered(Invariant):
    """P3. A sample is refused once every copy that was sent to any service was answered 0."""

    name = "P3"
    rule = "what every service has refused is never delivered"

    def __init__(self, clock: Callable[[], Nanoseconds], service_count: int) -> None:
        super().__init__(clock)
        self._service_count = service_count
        self._sent: dict[SampleIdentity, dict[int, int]] = {}
        self._refused: dict[tuple[str, SampleIdentity], dict[int, int]] = {}
        self._is_refused: set[tuple[str, SampleIdentity]] = set()
        self._released: set[tuple[str, SampleIdentity]] = set()

    def written(self, service: int, write: Write) -> None:
        """Count the copies; one more makes what was refused possible again."""
        sent = self._sent.setdefault(write.identity, {})
        sent[service] = sent.get(service, 0) + 1
        self._is_refused -= {key for key in self._is_refused if key[1] == write.identity}

    def answered(self, service: int, queue: str, identity: SampleIdentity, response: AckResponse) -> None:
        """Count the refusals."""
        if response != AckResponse.REJECTED:
            return
        refused = self._refused.setdefault((queue, identity), {})
        refused[service] = refused.get(service, 0) + 1
        if len(refused) == self._service_count and refused == self._sent.get(identity):
            self.checked_count += 1
            self._is_refused.add((queue, identity))
            if (queue, identity) in self._released:
                self.violate(f"{queue}: {identity} was delivered, and is refused by every service")

    def released(self, service: int, message: Outbound) -> None:
        """Look for what was refused."""
        if isinstance(message, Delivery):
            key = (message.queue, message.original_identity)
            self._released.add(key)
            if key in self._is_refused:
                self.violate(f"{message.queue}: {key[1]} is delivered by {service}, though every service refused it")


class WritingAgainChangesNothing(Invariant):
    """P11."""

    name = "P11"
    rule = "a sample is enqueued once, however often it is written"

    def __init__(self, clock: Callable[[], Nanoseconds], ledger: Ledger) -> None:
        super().__init__(clock)
        self._ledger = ledger

    def concluded(self, world: World) -> None:
        """Count in what is stored at each service."""
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


class Answers(Observer):
    """Not a rule: what producers were answered, for schedules that wait for it."""

    def __init__(self) -> None:
        self.accepted: set[SampleIdentity] = set()
        self.delivered_identities: set[SampleIdentity] = set()

    def answered(self, service: int, queue: str, identity: SampleIdentity, response: AckResponse) -> None:
        """Note what is accepted."""
        if response == AckResponse.ACCEPTED:
            self.accepted.add(identity)

    def delivered(self, service: int, delivery: Delivery) -> None:
        """Note what reached a consumer."""
        self.delivered_identities.add(delivery.original_identity)
