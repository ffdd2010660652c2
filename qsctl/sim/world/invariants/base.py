"""An invariant of a world, what it found, and the ledger of what the services have stored."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import ClassVar, Final

from qsctl.core.records import Enqueued, Record, Remembered, Removed
from qsctl.identity import SampleIdentity
from qsctl.instant import Nanoseconds
from qsctl.sim.world.services.history import Observer
from qsctl.sim.world.services.stored import Append, Compact, Drop, Install, Operation, Truncate

VIOLATIONS_KEPT: Final = 20
"""Of one invariant; a world that is broken may break it at every step."""


class Invariant(Observer):
    """One rule.

    Args:
        clock: gives the instant, for what is found.
    """

    name: ClassVar[str]
    """P1 to P12, P14 and P15."""
    rule: ClassVar[str]
    """In one line, for people."""

    def __init__(self, clock: Callable[[], Nanoseconds]) -> None:
        self._clock = clock
        self.checked_count = 0
        """Number of tests of the rule."""
        self.violation_count = 0
        self.violations: list[tuple[Nanoseconds, str]] = []
        """The first of them: when, and what was found."""
        self.on_violation: Callable[[], None] = lambda: None
        """Called with each of them."""

    def violate(self, what: str) -> None:
        """Note that the rule does not hold."""
        self.violation_count += 1
        self.on_violation()
        if len(self.violations) < VIOLATIONS_KEPT:
            self.violations.append((self._clock(), what))


class Ledger(Observer):
    """The durable records of each service, one by one, including those that a snapshot has replaced since."""

    def __init__(self) -> None:
        self._streams: dict[int, dict[str, dict[int, Record]]] = {}
        self._holding: dict[tuple[str, SampleIdentity], set[int]] = {}
        """Services with a stored record that a queue enqueued a sample."""
        self._held_once: dict[tuple[str, SampleIdentity], set[int]] = {}
        """The same, and those that lost their disks since: what they confirmed they had."""
        self._deleted: dict[tuple[str, SampleIdentity], set[int]] = {}
        """Services that had it and deleted the queue: what they confirmed they had, too, until it is created again."""
        self._most: dict[tuple[str, SampleIdentity], int] = {}

    def stored(self, service: int, operations: Sequence[Operation]) -> None:
        """Enter what is durable now."""
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
        """Forget what a service had stored."""
        self._streams.pop(service, None)
        for holding in self._holding.values():
            holding.discard(service)

    def most_holders(self, queue: str, identity: SampleIdentity) -> int:
        """At how many it was durable that the queue enqueued this sample, before disks were lost or it was deleted."""
        return self._most.get((queue, identity), 0)

    def is_held_at(self, service: int, identity: SampleIdentity) -> bool:
        """Return whether a service has it durable that a queue enqueued this sample."""
        return any(service in holding for (_, each), holding in self._holding.items() if each == identity)

    def record(self, service: int, stream: str, index: int) -> Record | None:
        """Return the record of an index, as far as it is known here."""
        return self._streams.get(service, {}).get(stream, {}).get(index)

    def records(self) -> Iterator[tuple[int, str, int, Record]]:
        """Every record: its service, stream and index."""
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
    """Return the removal of each sample that a queue has removed for good, from what is stored."""
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
    """Return the identities of the samples that are dead letters, or were once, from what is stored."""
    return {
        record.identity
        for _, _, _, record in records
        if isinstance(record, Enqueued) and record.dead_letter_reason is not None
    }
