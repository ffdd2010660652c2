"""The history of a world for its judges: each invariant is an observer.

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
    """Sees everything, and ignores all that it does not override. Services are named by their numbers, from 1."""

    def written(self, service: int, write: Write) -> None:
        """Note that a producer sends a sample to a service."""

    def arrived(self, service: int, write: Write) -> None:
        """Note that a sample reached a service."""

    def refused(self, queue: str, write: Write) -> None:
        """Every service that an attempt to write was sent to has answered 0 for a queue."""

    def answered(self, service: int, answer: WriteAcknowledgment) -> None:
        """Note that a service's answer reached the sample's producer."""

    def released(self, service: int, message: Outbound) -> None:
        """Note that a message leaves a service."""

    def happened(self, service: int, event: Event) -> None:
        """Note that an event leaves a service: its change is committed."""

    def delivered(self, service: int, delivery: Delivery) -> None:
        """Note that a delivery reached its consumer."""

    def processed(self, consumer_guid: Guid, queue: str, identity: SampleIdentity, response: AckResponse) -> None:
        """Note that a consumer's program answered a sample."""

    def set_back(self, service: int, queue: str) -> None:
        """Note that a service set a queue back to what its store holds: the store refused what came later."""

    def joined(self, service: int, consumer_guid: Guid) -> None:
        """Note that a service discovered a consumer."""

    def left(self, service: int, consumer_guid: Guid) -> None:
        """Note that a service takes a consumer for gone."""

    def stored(self, service: int, operations: Sequence[Operation]) -> None:
        """Note that a service's operations are durable."""

    def ended(self, service: int) -> None:
        """Note that a service lost its power, or ended itself."""

    def lost_disk(self, service: int) -> None:
        """Note that a service's disk lost everything."""

    def lost_majority(self, queue: str, held: frozenset[SampleIdentity]) -> None:
        """Too few have the log of a replicated queue still; the best that is left holds these samples."""

    def started(self, service: int) -> None:
        """Note that a service was started, and has restored what it found."""

    def paused(self, service: int) -> None:
        """Note that a service is stopped for a while."""

    def resumed(self, service: int) -> None:
        """Note that a service goes on after a pause."""

    def changed(self, service: int, change: RoleChanged) -> None:
        """Note that a replica of a service has another role."""

    def stepped(self, service: int) -> None:
        """Note that a service did one pass."""

    def concluded(self) -> None:
        """Note that the world is at its end, after the time without faults."""


class Audience:
    """All observers of a world: of each kind of happening the methods of those that look at it, in their order.

    A world has more than ten observers and thousands of happenings; most look at two kinds or three.
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
        """Let observers look, behind those that do."""
        for observer in observers:
            for name, methods in vars(self).items():
                if getattr(type(observer), name) is not getattr(Observer, name):
                    looking: list[Any] = methods
                    looking.append(getattr(observer, name))
