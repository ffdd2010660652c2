"""The base class of a world's invariants, and the ledger of the records that the services have stored."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import ClassVar, Final

from qsctl.core.records import Enqueued, Record, Remembered, Removed
from qsctl.identity import SampleIdentity
from qsctl.instant import Nanoseconds
from qsctl.sim.world.services.history import Observer
from qsctl.sim.world.services.stored import Append, Compact, Drop, Install, Operation, Truncate

VIOLATIONS_KEPT: Final = 20
"""Violations that are kept of one invariant; a broken world may violate it at every step."""


class Invariant(Observer):
    """One rule that a world must keep.

    Args:
        clock: returns the present instant, which is noted with each violation.
    """

    name: ClassVar[str]
    """The rule's number (P1 to P12, P14, P15), or another short name."""
    rule: ClassVar[str]
    """The rule in one line, as shown to users."""

    def __init__(self, clock: Callable[[], Nanoseconds]) -> None:
        self._clock = clock
        self.checked_count = 0
        """Number of times that the rule was tested."""
        self.violation_count = 0
        self.violations: list[tuple[Nanoseconds, str]] = []
        """The first violations: instant and description."""
        self.on_violation: Callable[[], None] = lambda: None
        """Called at each violation."""

    def violate(self, what: str) -> None:
        """Note a violation of the rule, described by `what`."""
        self.violation_count += 1
        self.on_violation()
        if len(self.violations) < VIOLATIONS_KEPT:
            self.violations.append((self._clock(), what))


class Ledger(Observer):
    """The durable records of each service, one by one, including those that a snapshot has replaced since."""

    def __init__(self) -> None:
        self._streams: dict[int, dict[str, dict[int, Record]]] = {}
        self._holding: dict[tuple[str, SampleIdentity], set[int]] = {}
        """Services with a durable record that the queue enqueued the sample."""
        self._held_once: dict[tuple[str, SampleIdentity], set[int]] = {}
        """The same, and services that have lost their disks since: they had confirmed the sample."""
        self._deleted: dict[tuple[str, SampleIdentity], set[int]] = {}
        """Services that confirmed the sample and then deleted the queue; cleared when it is created again."""
        self._most: dict[tuple[str, SampleIdentity], int] = {}

    def stored(self, service: int, operations: Sequence[Operation]) -> None:
        """Apply operations that have become durable."""
        streams = self._streams.setdefault(service, {})
        for operation in operations:
            if isinstance(operation, Append):
                stream = streams.setdefault(operation.stream, {})
                for index, record in enumerate(operation.records, operation.first_index):
                    stream[index] = record
                    self._enter(service, record)
            elif isinstance(operation, Truncate):
                stream = streams.setdefault(operation.stream, {})
                for index in sorted(index for index in stream if index >= operation.from_index):
                    self._strike(service, stream.pop(index))
            elif isinstance(operation, Compact | Install):
                if isinstance(operation, Install):
                    for record in streams.pop(operation.stream, {}).values():
                        self._strike(service, record)
                for record in operation.snapshot:
                    self._enter(service, record)
            elif isinstance(operation, Drop):
                for record in streams.pop(operation.stream, {}).values():
                    self._strike(service, record)
                    for each in _enqueued(record):
                        self._deleted.setdefault(each, set()).add(service)

    def lost_disk(self, service: int) -> None:
        """Forget the records of a service whose disk was lost."""
        self._streams.pop(service, None)
        for holding in self._holding.values():
            holding.discard(service)

    def most_holders(self, queue: str, identity: SampleIdentity) -> int:
        """Return the number of services that have confirmed a sample, ignoring later losses and deletions."""
        return self._most.get((queue, identity), 0)

    def is_held_at(self, service: int, identity: SampleIdentity) -> bool:
        """Return whether a service has a durable record that some queue enqueued this sample."""
        return any(service in holding for (_, each), holding in self._holding.items() if each == identity)

    def record(self, service: int, stream: str, index: int) -> Record | None:
        """Return the record of an index of a stream; None if the ledger has none."""
        return self._streams.get(service, {}).get(stream, {}).get(index)

    def records(self) -> Iterator[tuple[int, str, int, Record]]:
        """Yield every record with its service, stream and index."""
        for service, streams in sorted(self._streams.items()):
            for name, stream in sorted(streams.items()):
                for index in sorted(stream):
                    yield service, name, index, stream[index]

    def _enter(self, service: int, record: Record) -> None:
        for queue, identity in _enqueued(record):
            holding = self._holding.setdefault((queue, identity), set())
            holding.add(service)
            held_once = self._held_once.setdefault((queue, identity), set())
            held_once.add(service)
            deleted = self._deleted.get((queue, identity), set())
            if service in deleted:  # the sample was sent to the next queue of the name, too
                deleted.clear()
            self._most[queue, identity] = max(self._most.get((queue, identity), 0), len(held_once | deleted))

    def _strike(self, service: int, record: Record) -> None:
        for queue, identity in _enqueued(record):
            self._holding.get((queue, identity), set()).discard(service)
            self._held_once.get((queue, identity), set()).discard(service)


def _enqueued(record: Record) -> Iterator[tuple[str, SampleIdentity]]:
    if isinstance(record, Enqueued):
        yield record.queue, record.identity
    elif isinstance(record, Remembered):
        for identity in record.identities:
            yield record.queue, identity


def removals(records: Iterable[tuple[int, str, int, Record]]) -> dict[tuple[str, SampleIdentity], Removed]:
    """Return the stored record of each sample's final removal, by queue and sample."""
    identities: dict[tuple[int, str, int], SampleIdentity] = {}
    removed: dict[tuple[str, SampleIdentity], Removed] = {}
    for service, _, _, record in records:
        if isinstance(record, Enqueued):
            identities[service, record.queue, record.position] = record.identity
        elif isinstance(record, Removed):
            identity = identities.get((service, record.queue, record.position))
            if identity is not None:
                removed[record.queue, identity] = record
    return removed


def dead_letters(records: Iterable[tuple[int, str, int, Record]]) -> set[SampleIdentity]:
    """Return the identities of the samples that are or were dead letters, according to the stored records."""
    return {
        record.identity
        for _, _, _, record in records
        if isinstance(record, Enqueued) and record.dead_letter_reason is not None
    }
