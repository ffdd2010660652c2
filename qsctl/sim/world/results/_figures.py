"""The measures of a world: accepted and delivered samples, redeliveries, crashes, elections, time without progress."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from qsctl.core.high_availability.roles import Role, RoleChanged
from qsctl.core.messages import AckResponse, Delivery, Outbound, SampleFlag, WriteAcknowledgment
from qsctl.identity import Guid, SampleIdentity
from qsctl.instant import Nanoseconds
from qsctl.sim.world.programs.producing import ProducerProgram
from qsctl.sim.world.services.history import Observer


@dataclass(slots=True)
class Counts:
    """The counts of one world."""

    accepted: int = 0
    delivered: int = 0
    redelivered: int = 0
    crashes: int = 0
    elections: int = 0
    longest_stall_ns: Nanoseconds = 0
    """The longest time without an acceptance or a delivery while a producer had unanswered samples."""


class WorldFigures(Observer):
    """A counter of the measures of a world.

    Args:
        clock: returns the present instant.
        producers: the producers whose unanswered samples make a pause count as a stall.
    """

    def __init__(self, clock: Callable[[], Nanoseconds], producers: Sequence[ProducerProgram]) -> None:
        self._clock = clock
        self._producers = producers
        self.counts = Counts()
        self._accepted: set[tuple[str, SampleIdentity]] = set()
        self._progress_ns: Nanoseconds = 0

    def released(self, service: int, message: Outbound) -> None:
        """Count the first acceptance of a sample, and redeliveries."""
        if isinstance(message, WriteAcknowledgment) and message.response == AckResponse.ACCEPTED:
            self._progress()
            key = (message.queue, message.identity)
            if key not in self._accepted:
                self._accepted.add(key)
                self.counts.accepted += 1
        elif isinstance(message, Delivery):
            self._progress()
            if message.flags & SampleFlag.REDELIVERED or message.attempt > 1:
                self.counts.redelivered += 1

    def processed(self, consumer_guid: Guid, queue: str, identity: SampleIdentity, response: AckResponse) -> None:
        """Count a sample that a consumer accepted."""
        if response == AckResponse.ACCEPTED:
            self.counts.delivered += 1

    def ended(self, service: int) -> None:
        """Count the end of a service as a crash."""
        self.counts.crashes += 1

    def changed(self, service: int, change: RoleChanged) -> None:
        """Count a replica that became master."""
        self.counts.elections += change.role is Role.MASTER

    def look(self) -> None:
        """Update the longest stall from the time since the latest progress."""
        now = self._clock()
        for producer in self._producers:  # after every step of a world
            if producer.is_waiting:
                if now - self._progress_ns > self.counts.longest_stall_ns:
                    self.counts.longest_stall_ns = now - self._progress_ns
                return
        self._progress_ns = now

    def _progress(self) -> None:
        self.look()
        self._progress_ns = self._clock()
