"""A snapshot in pieces: at the master that sends it, and at the replica that gathers it.

Decides: how much of a snapshot is sent ahead of confirmations, what is sent again, and which pieces belong together.
Pieces of two snapshots are never mixed. A snapshot is its index and its mark, which all replicas compute alike from the
order of its records: in one committed state, the positions of the records determine what they contain. So a transfer
goes on where it was, also with a master that was restarted or another one, if that has the same snapshot.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Final
from zlib import crc32

from qsctl.core.high_availability._log import LogSnapshot
from qsctl.core.high_availability._progress import ENTRIES_MAX, UNCONFIRMED_BYTES_MAX, entries_that_fit
from qsctl.core.high_availability.frames import SnapshotPiece
from qsctl.core.records import QueueRecord
from qsctl.instant import Nanoseconds

UNCONFIRMED_RECORDS_MAX: Final = 16 * ENTRIES_MAX
"""Records of a snapshot that are sent ahead of a replica's confirmations."""


class SnapshotTransfer:
    """The transfer of a snapshot to one replica.

    The snapshot is kept until the replica holds it, also if the master's log is compacted meanwhile: else a transfer
    that takes longer than the time between two compactions would never end.

    Args:
        base: the snapshot.
        master_timeout_ns: time without progress after which everything unconfirmed is sent again.
    """

    def __init__(self, base: LogSnapshot, master_timeout_ns: Nanoseconds) -> None:
        self.base = base
        self.mark = mark_of(base.records)
        self._master_timeout_ns = master_timeout_ns
        self._confirmed_count = 0
        self._next = 0
        self._is_resumed = False
        """Whether the replica has reported how many records it holds: until then one piece is sent."""
        self._sent: deque[tuple[int, int]] = deque()
        """The end and the octets of payload of each unconfirmed piece."""
        self._unconfirmed_bytes = 0
        self._moved_at_ns: Nanoseconds = -1
        self._rewound_at_ns: Nanoseconds = -1

    def confirm(self, now: Nanoseconds, count: int, sent_at_ns: Nanoseconds, *, has_gap: bool) -> None:
        """Note the number of records that the replica holds.

        Args:
            now: the instant.
            count: that number.
            sent_at_ns: when the piece was sent that the replica answers.
            has_gap: whether a piece before that one is missing.
        """
        if not self._is_resumed or count > self._confirmed_count:
            self._is_resumed = True
            self._confirmed_count = min(count, len(self.base.records))
            self._next = max(self._next, self._confirmed_count)
            self._moved_at_ns = now
            while self._sent and self._sent[0][0] <= self._confirmed_count:
                self._unconfirmed_bytes -= self._sent.popleft()[1]
        if has_gap and sent_at_ns >= self._rewound_at_ns:
            # The replica may have begun anew, and hold less than it confirmed before.
            self._confirmed_count = min(count, self._confirmed_count)
            self._rewind(now)

    def pieces(self, now: Nanoseconds) -> Iterator[tuple[int, Sequence[QueueRecord]]]:
        """Yield the pieces to send now: the number of the first record of each, and its records."""
        if self._sent and now - self._moved_at_ns >= self._master_timeout_ns:
            self._rewind(now)
        records = self.base.records
        while (
            self._next < len(records)
            and self._next - self._confirmed_count < UNCONFIRMED_RECORDS_MAX
            and self._unconfirmed_bytes < UNCONFIRMED_BYTES_MAX
            and (self._is_resumed or not self._sent)
        ):
            first = self._next
            piece, payload_bytes = entries_that_fit(records[first : first + ENTRIES_MAX])
            if not self._sent:
                self._moved_at_ns = now
            self._next += len(piece)
            self._sent.append((self._next, payload_bytes))
            self._unconfirmed_bytes += payload_bytes
            yield first, piece

    def _rewind(self, now: Nanoseconds) -> None:
        self._next = self._confirmed_count
        self._sent.clear()
        self._unconfirmed_bytes = 0
        self._rewound_at_ns = self._moved_at_ns = now


class ArrivingSnapshot:
    """The records of a snapshot that a replica has received so far; they are in memory until the last one arrives."""

    def __init__(self) -> None:
        self._of: tuple[int, int, int, int] | None = None
        self._records: list[QueueRecord] = []

    def add(self, piece: SnapshotPiece) -> bool:
        """Add a piece; return False where one before it is missing.

        A piece of another snapshot replaces everything that was received before.
        """
        of = (piece.index, piece.index_epoch, piece.count, piece.mark)
        if of != self._of:
            self._of, self._records = of, []
        if piece.first > len(self._records):
            return False
        self._records += piece.records[len(self._records) - piece.first :]
        return True

    @property
    def count(self) -> int:
        """The number of records that were received."""
        return len(self._records)

    def pop_whole(self) -> tuple[QueueRecord, ...] | None:
        """Return the records if the snapshot is whole, and forget them; else None."""
        if self._of is None or len(self._records) < self._of[2]:
            return None
        records = tuple(self._records)
        self.forget()
        return records

    def forget(self) -> None:
        """Forget what was received."""
        self._of, self._records = None, []

    def forget_to(self, index: int) -> None:
        """Forget a snapshot that reaches no further than an index."""
        if self._of is not None and self._of[0] <= index:
            self.forget()


def mark_of(records: Sequence[QueueRecord]) -> int:
    """Return a number above 0 that differs for another order of the records of one committed state."""
    return 1 + crc32(array("Q", [getattr(record, "position", 0) for record in records]).tobytes())
