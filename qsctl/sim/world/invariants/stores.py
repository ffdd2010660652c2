"""P7 and P10: the content of disks when a sample is accepted, and after a restart."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING

from qsctl.core.messages import AckResponse, Outbound, WriteAcknowledgment
from qsctl.core.records import EpochBegan
from qsctl.instant import Nanoseconds
from qsctl.sim.world.invariants.base import Invariant, Ledger
from qsctl.sim.world.services.stored import StreamFile, held_positions

if TYPE_CHECKING:
    from qsctl.sim.world.services.service import SimulatedService


class DurableBeforeAccepted(Invariant):
    """P7, for persistent queues."""

    name = "P7"
    rule = "no sample is accepted before it is durable at a quorum"

    def __init__(
        self,
        clock: Callable[[], Nanoseconds],
        ledger: Ledger,
        quorums: Mapping[str, int],
        voters: Callable[[int, str], Collection[int]],
    ) -> None:
        super().__init__(clock)
        self._ledger = ledger
        self._quorums = dict(quorums)
        self._voters = voters

    def released(self, service: int, message: Outbound) -> None:
        """Test that an accepted sample has been durable at a quorum of services."""
        if isinstance(message, WriteAcknowledgment) and message.response == AckResponse.ACCEPTED:
            quorum = self._quorums.get(message.queue, 0)
            if quorum:
                if voters := self._voters(service, message.queue):
                    # Where members were removed, fewer are a quorum, of samples that were accepted before as well.
                    quorum = self._quorums[message.queue] = min(quorum, len(voters) // 2 + 1)
                self.checked_count += 1
                count = self._ledger.most_holders(message.queue, message.identity)
                if count < quorum:
                    self.violate(
                        f"{message.queue}: {service} accepts {message.identity}, which was never durable at more than "
                        f"{count} of the {quorum} services of a quorum"
                    )


class RestartGivesAPrefix(Invariant):
    """P10, judged by the written and synced records, folded independently of the queue's own code."""

    name = "P10"
    rule = "after a restart a service has what was durable, and a beginning of the rest"

    def __init__(self, clock: Callable[[], Nanoseconds], services: Mapping[int, SimulatedService]) -> None:
        super().__init__(clock)
        self._services = services

    def started(self, service: int) -> None:
        """Compare the restored queues and replica logs with the stored records."""
        simulated = self._services[service]
        process = simulated.process
        assert process is not None
        self.checked_count += 1
        for what in process.watch.restart_faults:
            self.violate(f"{service}: {what}")
        for name, queue in process.engine.hosted.by_name.items():
            # A sample that expires at the restart is a dead letter at once, which is stored a little later.
            if queue.journaled and not queue.settings.is_dead_letter and queue.stream.name not in process.replicas:
                self._check_held(service, name, {sample.position for sample in queue.held}, simulated)
        for name, replica in process.replicas.items():
            stored = process.watch.found_streams.get(name)
            if stored is None:
                continue
            self.checked_count += 1
            log = replica.log
            found = [log.entry(index)[1] for index in range(log.base.index + 1, log.last_index + 1)]
            records, base = stored.records, stored.snapshot_index
            if name in process.outlived and _is_of_another(stored, replica.incarnation):
                # The stored records are of an earlier creation of the queue; the present one has none yet.
                records, base = [], 0
            if found != records or log.base.index != base:
                self.violate(f"{name}: {service} restored {len(found)} entries of {len(records)} stored ones")

    def _check_held(self, service: int, name: str, held: set[int], simulated: SimulatedService) -> None:
        self.checked_count += 1
        extra = held - held_positions(simulated.stored.stream(name).load())  # some may have expired meanwhile
        if extra:
            self.violate(f"{name}: {service} holds positions {sorted(extra)[:5]} that are not in its records")


def _is_of_another(stored: StreamFile, incarnation: int) -> bool:
    """Return whether what was stored, or the log in it, is of another creation of the queue."""
    began = (each for each in (*stored.snapshot[:1], *stored.records) if isinstance(each, EpochBegan))
    return stored.hard_state.incarnation != incarnation or any(each.incarnation != incarnation for each in began)
