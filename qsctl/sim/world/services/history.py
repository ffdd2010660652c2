"""The history of a world for its judges: the interface of observers, and the list of them.

Decides nothing. A world calls every observer, in order; most observe a few kinds of events only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from qsctl.core.events import Event
from qsctl.core.messages import AckResponse, Delivery, Outbound, Write, WriteAcknowledgment
from qsctl.identity import Guid, SampleIdentity

if TYPE_CHECKING:
    from qsctl.core.high_availability.roles import RoleChanged
    from qsctl.sim.world.services.stored import Operation


class Observer:
    """An observer of a world, whose methods ignore every event until overridden; services are numbered from 1."""

    def written(self, service: int, write: Write) -> None:
        """Note that a producer sends a sample to a service."""

    def arrived(self, service: int, write: Write) -> None:
        """Note that a sample reached a service."""

    def refused(self, queue: str, write: Write) -> None:
        """Note that all services to which an attempt was sent have answered 0 for a queue."""

    def answered(self, service: int, answer: WriteAcknowledgment) -> None:
        """Note that a service's answer reached the sample's producer."""

    def released(self, service: int, message: Outbound) -> None:
        """Note that a message leaves a service."""

    def happened(self, service: int, event: Event) -> None:
        """Note that an event leaves a service, whose change is committed."""

    def delivered(self, service: int, delivery: Delivery) -> None:
        """Note that a delivery reached its consumer."""

    def processed(self, consumer_guid: Guid, queue: str, identity: SampleIdentity, response: AckResponse) -> None:
        """Note that a consumer's program acknowledged or rejected a sample."""

    def set_back(self, service: int, queue: str) -> None:
        """Note that a service reset a queue to its stored content, since the store refused later records."""

    def joined(self, service: int, consumer_guid: Guid) -> None:
        """Note that a service discovered a consumer."""

    def left(self, service: int, consumer_guid: Guid) -> None:
        """Note that a service considers a consumer gone."""

    def stored(self, service: int, operations: Sequence[Operation]) -> None:
        """Note that a service's operations are durable."""

    def ended(self, service: int) -> None:
        """Note that a service's process ended, by a power failure or by itself."""

    def lost_disk(self, service: int) -> None:
        """Note that a service's disk lost everything."""

    def lost_majority(self, queue: str, held: frozenset[SampleIdentity]) -> None:
        """Note that fewer than a quorum still have a replicated queue's log; the best of them holds these samples."""

    def started(self, service: int) -> None:
        """Note that a service has started and restored its stored state."""

    def paused(self, service: int) -> None:
        """Note that a service's process is paused."""

    def resumed(self, service: int) -> None:
        """Note that a service continues after a pause."""

    def changed(self, service: int, change: RoleChanged) -> None:
        """Note that a service's replica changed its role."""

    def stepped(self, service: int) -> None:
        """Note that a service completed one pass."""

    def concluded(self) -> None:
        """Note that the simulation of the world has ended, after the recovery time without faults."""


class Audience:
    """The observers of a world, as one list of methods for each kind of event: only those that override it, in order.

    A world has more than ten observers and thousands of events; most observers override two or three methods.
    """

    def __init__(self) -> None:
        self.written: list[Callable[[int, Write], None]] = []
        self.arrived: list[Callable[[int, Write], None]] = []
        self.refused: list[Callable[[str, Write], None]] = []
        self.answered: list[Callable[[int, WriteAcknowledgment], None]] = []
        self.released: list[Callable[[int, Outbound], None]] = []
        self.happened: list[Callable[[int, Event], None]] = []
        self.delivered: list[Callable[[int, Delivery], None]] = []
        self.processed: list[Callable[[Guid, str, SampleIdentity, AckResponse], None]] = []
        self.set_back: list[Callable[[int, str], None]] = []
        self.joined: list[Callable[[int, Guid], None]] = []
        self.left: list[Callable[[int, Guid], None]] = []
        self.stored: list[Callable[[int, Sequence[Operation]], None]] = []
        self.ended: list[Callable[[int], None]] = []
        self.lost_disk: list[Callable[[int], None]] = []
        self.lost_majority: list[Callable[[str, frozenset[SampleIdentity]], None]] = []
        self.started: list[Callable[[int], None]] = []
        self.paused: list[Callable[[int], None]] = []
        self.resumed: list[Callable[[int], None]] = []
        self.changed: list[Callable[[int, RoleChanged], None]] = []
        self.stepped: list[Callable[[int], None]] = []
        self.concluded: list[Callable[[], None]] = []

    def add(self, *observers: Observer) -> None:
        """Append observers to the lists of the methods that they override."""
        for observer in observers:
            for name, methods in vars(self).items():
                if getattr(type(observer), name) is not getattr(Observer, name):
                    looking: list[Any] = methods
                    looking.append(getattr(observer, name))
