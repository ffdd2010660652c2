"""The ledger of the engine: ids, serial numbers, positions, and the records of every step [CLOVERLEAF].

Decides: when a message has a copy in a database. A message with the flag USERDB is backed: each of its steps is a
record. The ledger keeps both databases in the state that the records describe, so that a restarted process finds its
messages.
"""

from __future__ import annotations

from msgspec.structs import replace

from qsctl.core.integration._lifecycle import HeldMessage
from qsctl.core.integration.database import Database, moved_record, stored
from qsctl.core.integration.error_codes import ErrorCode
from qsctl.core.integration.message import Flag, Message, MessageId
from qsctl.core.integration.records import STREAM, CopyRemovalCause, CopyRemoved, Failed, Record, Started
from qsctl.instant import Nanoseconds


class EngineLedger:
    """The writer of records and source of numbers. Only this class changes `database`."""

    def __init__(self, database: Database, site: int, now: Nanoseconds) -> None:
        self.database = database
        self.records: list[Record] = []
        """The records of this turn."""
        self._site = site
        self._number = 0
        positions = [each.position for each in database.recovery.values()]
        self._next_place = max(positions, default=0) + 1
        self._next_front = min(positions, default=0) - 1
        self.write(Started(STREAM, database.next_serial, database.start + 1, now))

    def write(self, record: Record) -> None:
        """Append a record and apply it to the databases."""
        self.records.append(record)
        self.database.apply(record)

    def new_id(self) -> MessageId:
        """Return a new message id."""
        self._number += 1
        return MessageId(self._site, self.database.start, self._number)

    def next_place(self, *, at_front: bool = False) -> int:
        """Return a position behind all others in any queue, or, with `at_front`, before them."""
        if at_front:
            self._next_front -= 1
            return self._next_front
        self._next_place += 1
        return self._next_place

    def save(self, held: HeldMessage) -> None:
        """Write a message's present version if it is backed."""
        message = held.message
        if not message.flags & Flag.USERDB:
            return
        if not message.serial:
            self._store(held)
            return
        self.write(moved_record(message))

    def remove(self, message: Message, cause: CopyRemovalCause) -> None:
        """Remove a message's copy from the databases, if it has one."""
        if message.serial:
            self.write(CopyRemoved(STREAM, message.serial, cause))

    def fail(self, held: HeldMessage, now: Nanoseconds, code: ErrorCode, text: str) -> None:
        """Move a message to the error database, or store it there if it had no copy."""
        if held.message.serial:
            self.write(Failed(STREAM, held.message.serial, now, held.message.state, int(code), text))
            return
        held.change(error=int(code), error_text=text, entered_at_ns=now)
        self._store(held)

    def _store(self, held: HeldMessage) -> None:
        held.change(serial=self.database.next_serial)
        self.write(stored(held.message))


def derived(message: Message, mid: MessageId, *, replaces: int = 0, results_from: int = 0) -> Message:
    """Return a separate message made from another one; its copy counts once the other's copy is removed."""
    return replace(message, mid=mid, serial=0, replaces=replaces, results_from=results_from, attempts=0)
