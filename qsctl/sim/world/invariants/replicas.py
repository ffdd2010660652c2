"""P5 and P6: who is master, and what is committed, seen from outside of every replica."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from qsctl.core.high_availability.roles import Role, RoleChanged
from qsctl.core.records import Record
from qsctl.instant import Nanoseconds
from qsctl.sim.world.invariants.base import Invariant, Ledger

if TYPE_CHECKING:
    from qsctl.sim.world.service import SimulatedService


class OneMasterAnEpoch(Invariant):
    """P5."""

    name = "P5"
    rule = "an epoch has one master"

    def __init__(self, clock: Callable[[], Nanoseconds]) -> None:
        super().__init__(clock)
        self._masters: dict[tuple[str, int], int] = {}

    def changed(self, service: int, change: RoleChanged) -> None:
        """Compare a new master with that of its epoch."""
        if change.role is Role.MASTER:
            self.checked_count += 1
            master = self._masters.setdefault((change.stream, change.epoch), service)
            if master != service:
                self.violate(f"{change.stream}: {master} and {service} are masters in epoch {change.epoch}")


class CommittedIsNeverOverwritten(Invariant):
    """P6: every entry that any replica takes for committed is the same in all of them, for ever."""

    name = "P6"
    rule = "a committed entry is never overwritten"

    def __init__(
        self, clock: Callable[[], Nanoseconds], services: Mapping[int, SimulatedService], ledger: Ledger
    ) -> None:
        super().__init__(clock)
        self._services = services
        self._ledger = ledger
        self._committed: dict[tuple[str, int], tuple[int, Record]] = {}
        self._compacted: dict[tuple[str, int], Record] = {}
        """Entries that a snapshot replaced before they were compared."""
        self._seen: dict[tuple[int, str], int] = {}

    def records(self) -> Iterator[tuple[int, str, int, Record]]:
        """What was committed, as the records of a service 0: its stream and index."""
        found = self._compacted | {key: record for key, (_, record) in self._committed.items()}
        for (stream, index), record in sorted(found.items(), key=lambda each: each[0]):
            yield 0, stream, index, record

    def started(self, service: int) -> None:
        """What it takes for committed is compared again."""
        for number, stream in self._seen:
            if number == service:
                self._seen[number, stream] = 0

    def stepped(self, service: int) -> None:
        """Compare what a replica has committed since it was looked at last."""
        life = self._services[service].life
        for stream, replica in life.member.replicas.items() if life is not None else ():
            log = replica.log
            seen = self._seen.get((service, stream), 0)
            for index in range(seen + 1, log.commit_index + 1):
                if index <= log.base.index:
                    self._note_compacted(service, stream, index)
                    continue
                self.checked_count += 1
                epoch, record = log.entry(index)[:2]
                first_epoch, first = self._committed.setdefault((stream, index), (epoch, record))
                if (first_epoch, first) != (epoch, record):
                    self.violate(
                        f"{stream}: entry {index} is {record} of epoch {epoch} at {service}, and was committed as "
                        f"{first} of epoch {first_epoch}"
                    )
            self._seen[service, stream] = max(seen, log.commit_index)

    def _note_compacted(self, service: int, stream: str, index: int) -> None:
        """Remember what an entry was that a snapshot has replaced since the last look, as the disk has it."""
        record = self._ledger.record(service, stream, index)
        if record is not None:
            self._compacted.setdefault((stream, index), record)
