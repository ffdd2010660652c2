"""The recovery database and the error database, as the result of their records.

Decides: the effect of each record, and which copies count. Replaying all records of a store gives the state that wrote
them; `unfinished` copies belong to a change that was interrupted before its last record.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import assert_never

from msgspec.structs import replace

from qsctl.core.integration.error_codes import ErrorCode
from qsctl.core.integration.message import Message
from qsctl.core.integration.records import STREAM, CopyRemoved, Failed, Moved, Record, Started, Stored
from qsctl.instant import Nanoseconds


class Database:
    """Both databases of one engine, by serial number of the copies."""

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self.recovery: dict[int, Message] = {}
        self.errors: dict[int, Message] = {}
        self.start = 0
        """Number of starts of the engine."""
        self.next_serial = 1
        self.latest_ns: Nanoseconds = 0
        """The latest instant in any record."""
        for record in records:
            self.apply(record)

    def apply(self, record: Record) -> None:
        """Apply a record; a record about a copy that was lost to damage has no effect."""
        match record:
            case Stored(_, serial, message, payload):
                held = self.errors if message.is_error else self.recovery
                held[serial] = replace(message, serial=serial, payload=payload)
                self.next_serial = max(self.next_serial, serial + 1)
                self.latest_ns = max(self.latest_ns, message.entered_at_ns)
            case Moved(_, serial):
                found = self.recovery.get(serial)
                self.latest_ns = max(self.latest_ns, record.at_ns)
                if found is not None:
                    self.recovery[serial] = replace(
                        found,
                        state=record.state,
                        position=record.place,
                        process=record.process,
                        owner=record.owner,
                        destination=record.destination,
                        priority=record.priority,
                        entered_at_ns=record.at_ns,
                        flags=record.flags,
                        attempts=record.attempts,
                        turns=record.turns,
                        outbound_at_ns=record.outbound_at_ns,
                    )
            case Failed(_, serial, at_ns, state, error, text):
                found = self.recovery.pop(serial, None)
                self.latest_ns = max(self.latest_ns, at_ns)
                if found is not None:
                    self.errors[serial] = replace(found, state=state, error=error, error_text=text, entered_at_ns=at_ns)
            case CopyRemoved(_, serial, _):
                self.recovery.pop(serial, None)
                self.errors.pop(serial, None)
            case Started(_, next_serial, start, at_ns):
                self.latest_ns = max(self.latest_ns, at_ns)
                self.start = max(self.start, start)
                self.next_serial = max(self.next_serial, next_serial)
            case _:
                assert_never(record)

    def fail_unreadable(self, serials: Iterable[int]) -> None:
        """Move the messages of these serials, whose data cannot be read, to the error database.

        A message that has left the databases since is ignored; one that had failed before keeps that error in its text.
        """
        for serial in serials:
            found = self.recovery.pop(serial, None) or self.errors.get(serial)
            if found is not None:
                before = f"; it had failed with {found.error}: {found.error_text}" if found.is_error else ""
                text = f"its data is gone or damaged in the database{before}"
                self.errors[serial] = replace(found, error=int(ErrorCode.UNREADABLE), error_text=text, payload=b"")

    def counts(self, message: Message) -> bool:
        """Return whether a copy belongs to a change that was completed."""
        if message.results_from and message.results_from in self.recovery:
            return False
        replaced = message.replaces
        return not replaced or (replaced not in self.recovery and replaced not in self.errors)

    def messages(self) -> list[Message]:
        """Return the counting messages of the recovery database, by id."""
        return sorted((each for each in self.recovery.values() if self.counts(each)), key=_by_id)

    def failed(self) -> list[Message]:
        """Return the counting messages of the error database, by id."""
        return sorted((each for each in self.errors.values() if self.counts(each)), key=_by_id)

    def unfinished(self) -> list[Message]:
        """Return the copies of interrupted changes, which do not count."""
        held = [*self.recovery.values(), *self.errors.values()]
        return [each for each in held if not self.counts(each)]

    def mark(self, at_ns: Nanoseconds = 0) -> Started:
        """Return a record of the highest id, serial and instant so far."""
        return Started(STREAM, self.next_serial, self.start, max(at_ns, self.latest_ns))

    def copy(self) -> Database:
        """Return an independent database with the same content."""
        made = Database()
        made.recovery, made.errors = dict(self.recovery), dict(self.errors)
        made.start, made.next_serial, made.latest_ns = self.start, self.next_serial, self.latest_ns
        return made

    def snapshot(self) -> Iterator[Record]:
        """Yield the smallest set of records that replays to this state, for a store that is rewritten."""
        yield self.mark()
        held = self.recovery | self.errors
        for serial in sorted(held):
            yield stored(held[serial])


def stored(message: Message) -> Stored:
    """Return the record that stores a copy."""
    return Stored(STREAM, message.serial, replace(message, payload=b""), message.payload)


def moved_record(message: Message) -> Moved:
    """Return the record that replaces a message's copy by its present version."""
    return Moved(
        STREAM, message.serial, message.state, message.position, message.process, message.owner, message.destination,
        message.priority, message.entered_at_ns, message.flags, message.attempts, message.turns, message.outbound_at_ns,
    )  # fmt: skip


def _by_id(message: Message) -> tuple[object, ...]:
    return (message.mid, message.serial)
