"""Invariants P5 and P6 of a world: one master an epoch, and committed entries that are never overwritten.

Both are checked from outside the replicas.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from qsctl.core.high_availability.frames import for_witness
from qsctl.core.high_availability.roles import Role, RoleChanged
from qsctl.core.records import Record
from qsctl.identity import SampleIdentity
from qsctl.instant import Nanoseconds
from qsctl.sim.world.invariants.base import Invariant, Ledger
from qsctl.sim.world.services.incarnations import Incarnations

if TYPE_CHECKING:
    from qsctl.sim.world.services.service import SimulatedService


class OneMasterAnEpoch(Invariant):
    """P5: a queue has at most one master in each epoch."""

    name = "P5"
    rule = "an epoch has one master"

    def __init__(self, clock: Callable[[], Nanoseconds], incarnations: Incarnations) -> None:
        super().__init__(clock)
        self._incarnations = incarnations
        self._masters: dict[tuple[str, int, int], int] = {}
        """The master's number, by stream, creation of its queues, and epoch."""

    def changed(self, service: int, change: RoleChanged) -> None:
        """Compare a new master with an earlier master of the same epoch."""
        if change.role is Role.MASTER:
            self.checked_count += 1
            which = self._incarnations.of(service, change.stream)
            master = self._masters.setdefault((change.stream, which, change.epoch), service)
            if master != service:
                self.violate(f"{change.stream}: {master} and {service} are masters in epoch {change.epoch}")

    def lost_majority(self, queue: str, held: frozenset[SampleIdentity]) -> None:
        """Forget the queue's earlier epochs: possibly only the lost members had records of them."""
        self._masters = {key: each for key, each in self._masters.items() if key[0] != queue}


class CommittedIsNeverOverwritten(Invariant):
    """P6: an entry that any replica considers committed is the same at all replicas, for ever."""

    name = "P6"
    rule = "a committed entry is never overwritten"

    def __init__(
        self,
        clock: Callable[[], Nanoseconds],
        services: Mapping[int, SimulatedService],
        ledger: Ledger,
        incarnations: Incarnations,
    ) -> None:
        super().__init__(clock)
        self._services = services
        self._ledger = ledger
        self._incarnations = incarnations
        self._committed: dict[tuple[str, int], dict[int, tuple[int, Record]]] = {}
        """Committed entries (epoch and record) by index, by stream and creation of its queues."""
        self._compacted: dict[tuple[str, int], dict[int, Record]] = {}
        """Records of entries that a snapshot replaced before they could be compared, by index."""
        self._witnesses: dict[tuple[str, int], set[str]] = {}
        """Members that hold no payloads, or did not, by stream and creation of its queues."""
        self._looked: dict[tuple[int, str], tuple[int, int]] = {}
        """The incarnation and the commit index of each replica at its latest comparison."""
        self._seen: dict[tuple[int, str], tuple[int, int]] = {}
        """The creation, and the index up to which its entries were compared, by service and stream."""

    def records(self) -> Iterator[tuple[int, str, int, Record]]:
        """Yield the committed records with stream and index, under numbers from 0 down, which no service has."""
        for number, group in enumerate(sorted(self._compacted.keys() | self._committed.keys())):
            found = dict(self._compacted.get(group, {}))
            found |= {index: record for index, (_, record) in self._committed.get(group, {}).items()}
            for index, record in sorted(found.items()):
                yield -number, group[0], index, record

    def started(self, service: int) -> None:
        """Compare again, from the beginning, the entries that a restarted service considers committed."""
        for number, stream in self._seen:
            if number == service:
                self._seen[number, stream] = (-1, 0)
                self._looked.pop((number, stream), None)

    def lost_majority(self, queue: str, held: frozenset[SampleIdentity]) -> None:
        """Forget what was committed to a queue: the remaining members start anew from the best log that is left."""
        self._committed = {key: each for key, each in self._committed.items() if key[0] != queue}
        self._compacted = {key: each for key, each in self._compacted.items() if key[0] != queue}
        self._seen = {key: each for key, each in self._seen.items() if key[1] != queue}
        self._looked = {key: each for key, each in self._looked.items() if key[1] != queue}

    def stepped(self, service: int) -> None:
        """Compare the entries that a service's replicas have committed since their latest comparison."""
        for stream, replica in self._services[service].replicas.items():
            log = replica.log
            key = (service, stream)
            if self._looked.get(key) == (replica.incarnation, log.commit_index):
                continue
            self._looked[key] = (replica.incarnation, log.commit_index)
            which = self._incarnations.of(service, stream)
            seen_of, seen = self._seen.get(key, (which, 0))
            if seen_of != which:
                seen = 0
            if log.commit_index <= seen:
                continue
            committed = self._committed.setdefault((stream, which), {})
            witnesses = self._witnesses.setdefault((stream, which), set())
            # Not from the entries that are compared: a snapshot may have replaced the list in the step that committed
            # it, and a witness compares earlier entries before it has the list itself.
            if (members := log.members_at(log.commit_index)) is not None:
                witnesses.update(members.witnesses)
            for index in range(seen + 1, log.commit_index + 1):
                if index <= log.base.index:
                    self._note_compacted(service, (stream, which), index)
                    continue
                self.checked_count += 1
                epoch, record = log.entry(index)[:2]
                if replica.name not in witnesses:
                    first_epoch, first = committed.setdefault(index, (epoch, record))
                elif index in committed:
                    first_epoch, first = committed[index]
                    if for_witness([first]) == for_witness([record]):
                        first = record
                else:
                    continue
                if (first_epoch, first) != (epoch, record):
                    self.violate(
                        f"{stream}: entry {index} is {record} of epoch {epoch} at {service}, and was committed as "
                        f"{first} of epoch {first_epoch}"
                    )
            self._seen[service, stream] = (which, log.commit_index)

    def _note_compacted(self, service: int, group: tuple[str, int], index: int) -> None:
        """Remember, from the ledger, the record of an entry that a snapshot replaced before it was compared."""
        record = self._ledger.record(service, group[0], index)
        if record is not None:
            self._compacted.setdefault(group, {}).setdefault(index, record)
