"""P5 and P6: who is master, and what is committed, seen from outside of every replica."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from qsctl.core.high_availability.roles import Role, RoleChanged
from qsctl.core.records import Record
from qsctl.identity import SampleIdentity
from qsctl.instant import Nanoseconds
from qsctl.sim.world.invariants.base import Invariant, Ledger
from qsctl.sim.world.services.incarnations import Incarnations

if TYPE_CHECKING:
    from qsctl.sim.world.services.service import SimulatedService


class OneMasterAnEpoch(Invariant):
    """P5."""

    name = "P5"
    rule = "an epoch has one master"

    def __init__(self, clock: Callable[[], Nanoseconds], incarnations: Incarnations) -> None:
        super().__init__(clock)
        self._incarnations = incarnations
        self._masters: dict[tuple[str, int, int], int] = {}
        """By stream, which creation of its queues it is, and epoch."""

    def changed(self, service: int, change: RoleChanged) -> None:
        """Compare a new master with that of its epoch."""
        if change.role is Role.MASTER:
            self.checked_count += 1
            which = self._incarnations.of(service, change.stream)
            master = self._masters.setdefault((change.stream, which, change.epoch), service)
            if master != service:
                self.violate(f"{change.stream}: {master} and {service} are masters in epoch {change.epoch}")

    def lost_majority(self, queue: str, held: frozenset[SampleIdentity]) -> None:
        """Expect no earlier epochs: only the lost members may have had records of them."""
        self._masters = {key: each for key, each in self._masters.items() if key[0] != queue}


class CommittedIsNeverOverwritten(Invariant):
    """P6: every entry that any replica takes for committed is the same in all of them, for ever."""

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
        """By stream and which creation of its queues it is, and index."""
        self._compacted: dict[tuple[str, int], dict[int, Record]] = {}
        """Entries that a snapshot replaced before they were compared."""
        self._looked: dict[tuple[int, str], tuple[int, int]] = {}
        """The incarnation and the commit index of each replica when it was looked at last."""
        self._seen: dict[tuple[int, str], tuple[int, int]] = {}
        """Which creation, and how far."""

    def records(self) -> Iterator[tuple[int, str, int, Record]]:
        """Return what was committed, as the records of a service 0: its stream and index."""
        for number, group in enumerate(sorted(self._compacted.keys() | self._committed.keys())):
            found = dict(self._compacted.get(group, {}))
            found |= {index: record for index, (_, record) in self._committed.get(group, {}).items()}
            for index, record in sorted(found.items()):
                yield -number, group[0], index, record

    def started(self, service: int) -> None:
        """Compare again what the service takes for committed."""
        for number, stream in self._seen:
            if number == service:
                self._seen[number, stream] = (-1, 0)
                self._looked.pop((number, stream), None)

    def lost_majority(self, queue: str, held: frozenset[SampleIdentity]) -> None:
        """Begin anew with what those have that are left."""
        self._committed = {key: each for key, each in self._committed.items() if key[0] != queue}
        self._compacted = {key: each for key, each in self._compacted.items() if key[0] != queue}
        self._seen = {key: each for key, each in self._seen.items() if key[1] != queue}
        self._looked = {key: each for key, each in self._looked.items() if key[1] != queue}

    def stepped(self, service: int) -> None:
        """Compare what a replica has committed since it was looked at last."""
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
            for index in range(seen + 1, log.commit_index + 1):
                if index <= log.base.index:
                    self._note_compacted(service, (stream, which), index)
                    continue
                self.checked_count += 1
                epoch, record = log.entry(index)[:2]
                first_epoch, first = committed.setdefault(index, (epoch, record))
                if (first_epoch, first) != (epoch, record):
                    self.violate(
                        f"{stream}: entry {index} is {record} of epoch {epoch} at {service}, and was committed as "
                        f"{first} of epoch {first_epoch}"
                    )
            self._seen[service, stream] = (which, log.commit_index)

    def _note_compacted(self, service: int, group: tuple[str, int], index: int) -> None:
        """Remember what an entry was that a snapshot has replaced since the last look, as the disk has it."""
        record = self._ledger.record(service, group[0], index)
        if record is not None:
            self._compacted.setdefault(group, {}).setdefault(index, record)
