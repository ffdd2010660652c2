"""P7 and P10: what is on disks when a sample is accepted, and what a restart makes of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from qsctl.core.messages import AckResponse, Outbound, WriteAcknowledgment
from qsctl.core.records import Enqueued, Removed
from qsctl.identity import SampleIdentity
from qsctl.instant import Nanoseconds
from qsctl.sim.world.invariants.base import Invariant, Ledger

if TYPE_CHECKING:
    from qsctl.sim.world.service import SimulatedService


class DurableBeforeAccepted(Invariant):
    """P7, of queues that are stored."""

    name = "P7"
    rule = "no sample is accepted before it is durable at a quorum"

    def __init__(self, clock: Callable[[], Nanoseconds], ledger: Ledger, quorums: Mapping[str, int]) -> None:
        super().__init__(clock)
        self._ledger = ledger
        self._quorums = quorums

    def released(self, service: int, message: Outbound) -> None:
        """Count the disks that have it."""
        if isinstance(message, WriteAcknowledgment) and message.response == AckResponse.ACCEPTED:
            quorum = self._quorums.get(message.queue, 0)
            if quorum:
                self.checked_count += 1
                count = self._ledger.holders(message.queue, message.identity)
                if count < quorum:
                    self.violate(
                        f"{message.queue}: {service} accepts {message.identity}, which is durable at {count} of the "
                        f"{quorum} services of a quorum"
                    )


class RestartGivesAPrefix(Invariant):
    """P10: compared with a plain fold over the stored records, which knows no queue."""

    name = "P10"
    rule = "after a restart a queue holds what its stored records say, and nothing else"

    def __init__(self, clock: Callable[[], Nanoseconds], services: Mapping[int, SimulatedService]) -> None:
        super().__init__(clock)
        self._services = services

    def started(self, service: int) -> None:
        """Compare what was restored."""
        simulated = self._services[service]
        for name, queue in simulated.engine.hosted.by_name.items():
            if not queue.journaled:
                continue
            self.checked_count += 1
            stored: dict[int, SampleIdentity] = {}
            for record in simulated.disk.stream(name).load():
                if isinstance(record, Enqueued):
                    stored[record.position] = record.identity
                elif isinstance(record, Removed):
                    stored.pop(record.position, None)
            held = {sample.position: sample.identity for sample in queue.held}
            extra = held.keys() - stored.keys()
            if extra:
                self.violate(f"{name}: {service} holds positions {sorted(extra)[:5]} that are not in its records")
