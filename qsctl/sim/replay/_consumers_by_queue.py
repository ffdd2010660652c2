"""The consumers of a replay: the recorded ones, copies of them, and their actions at recorded instants."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from qsctl.core.messages import ConsumerAvailability, ConsumerJoined, ConsumerLeft, Inbound
from qsctl.core.settings import queues_by_name
from qsctl.eventlog.recording.schema import PeerHappening
from qsctl.identity import NIL_GUID, Guid
from qsctl.sim.replay._consumers import ConsumerSlot
from qsctl.sim.replay._services import Services
from qsctl.sim.replay.recording import PeerRow, Recorded
from qsctl.sim.scenario.parts.replay import AS_RECORDED, ReplayedQueue


class Consumers:
    """The consumers of a replay.

    Args:
        recorded: the recording.
        changes: the scenario's `<queue>` elements by the queues' full names.
        hosts: returns whether the service has a queue of this full name.
        seed, replication: keys of the random draws.
        is_as_recorded: whether the load is the recorded one; otherwise no consumer repeats its recorded answers.
    """

    def __init__(
        self,
        recorded: Recorded,
        changes: dict[str, ReplayedQueue],
        hosts: Callable[[str], bool],
        seed: int,
        replication: int,
        *,
        is_as_recorded: bool = True,
    ) -> None:
        self._is_as_recorded = is_as_recorded
        self._guids = recorded.guids
        self._changes = changes
        self._thresholds = {
            name: queue.distribution.unacked_threshold for name, queue in queues_by_name(recorded.service).items()
        }
        self.slots: dict[tuple[str, Guid], ConsumerSlot] = {}
        self.services: dict[str, Services] = {}
        self._doubles: dict[tuple[str, int], list[Guid]] = {}
        """The readers that do what a recorded consumer did, itself first; none: it stays away."""
        for row in recorded.peers:
            queue = row.queue
            if row.happening != PeerHappening.CONSUMER_JOINED or queue is None or not hosts(queue):
                continue
            if queue not in self.services:
                self.services[queue] = Services(recorded, queue, seed, replication)
            if (queue, row.peer) not in self._doubles:
                self._doubles[queue, row.peer] = []
                self._add_slot(queue, self._guids[row.peer], row.peer, 0)
        for queue in self.services:
            self._change_number(queue)

    def messages_of(self, row: PeerRow) -> Iterator[tuple[ConsumerSlot, Inbound]]:
        """Yield the message of a recorded action, from the recorded consumer itself and from each copy of it."""
        queue = row.queue or ""
        for guid in self._doubles.get((queue, row.peer), ()):
            slot = self.slots[queue, guid]
            match row.happening:
                case PeerHappening.CONSUMER_JOINED:
                    own = row.unacked_threshold
                    if own == self._thresholds.get(queue):
                        own = None  # the queue's own, which may have changed
                    address = Guid(bytes.fromhex(row.address)) if row.address else NIL_GUID
                    yield slot, ConsumerJoined(queue, guid, address, own, row.reception_enabled)
                case PeerHappening.CONSUMER_AVAILABILITY:
                    enabled = row.reception_enabled is not False
                    yield slot, ConsumerAvailability(queue, guid, enabled, row.unacked_threshold or 0)
                case PeerHappening.CONSUMER_LEFT:
                    slot.leave()
                    yield slot, ConsumerLeft(queue, guid, row.hands_back)
                case _:
                    pass  # of a producer

    def _change_number(self, queue: str) -> None:
        """Add copies of consumers, or remove consumers, where the scenario changes their number."""
        wanted = self._changes[queue].consumers if queue in self._changes else AS_RECORDED
        there = [number for name, number in self._doubles if name == queue]
        if wanted == AS_RECORDED:
            return
        for number in there[wanted:]:
            for guid in self._doubles.pop((queue, number)):
                del self.slots[queue, guid]
        for extra in range(wanted - len(there)):
            number, copy = there[extra % len(there)], extra // len(there) + 1
            original = self._guids[number]
            guid = Guid(copy.to_bytes(4, "big") + bytes(octet ^ 0xA5 for octet in original[4:]))
            self._add_slot(queue, guid, number, copy)

    def _add_slot(self, queue: str, guid: Guid, number: int, copy: int) -> None:
        factor = self._changes[queue].service_factor if queue in self._changes else 1.0
        self.slots[queue, guid] = ConsumerSlot(
            queue, guid, number, copy, self.services[queue], factor, may_copy=self._is_as_recorded
        )
        self._doubles[queue, number].append(guid)
