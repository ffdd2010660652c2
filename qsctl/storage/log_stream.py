"""What the write-ahead log has of one stream: its records, where their payloads are, and how far it is committed.

Decides: what an append, a commit and a truncation change in that, and which records of a file of the log are needed
when the file is to go. Reading the log once more gives the same.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterator, Sequence, Set
from itertools import accumulate, repeat
from operator import add
from typing import Final, NamedTuple

from msgspec.structs import replace

from qsctl.storage.codec import Encoded, Record, RecordCodec, UnreadableRecord, fill, pack_payloads, unpack_payloads
from qsctl.storage.damage import DamageKind, DamageReport
from qsctl.storage.frames import FRAME_HEADER
from qsctl.storage.log_frames import ENTRY_OVERHEAD_BYTES, Place, Stream
from qsctl.storage.log_usage import FILE_BITS, OFFSET_MASK, FileUsage, LogUsage
from qsctl.storage.write_ahead_log import Part, WriteAheadLog

_OVERHEAD_BYTES: Final = FRAME_HEADER.size + ENTRY_OVERHEAD_BYTES


class Body(NamedTuple):
    """What stands in one body of the log: some records that belong together.

    `body` is None where it says more than these records: they are to be encoded anew.
    """

    first_index: int
    body: bytes | None
    records: Sequence[Record]

    def without(self, positions: set[int], codec: RecordCodec) -> Body:
        """Return the same without what is said of some positions."""
        kept = [each for each in self.records if codec.position_of(each) not in positions]
        if len(kept) == len(self.records):
            return self
        return Body(self.first_index, None, kept)


class LogStream:
    """The records of one stream in a log. They are noted when it is made: `replayed` until the first change.

    Args:
        log: shared with others.
        name: that of the stream.
        codec: that of the records.
        is_truncatable: whether records count for nothing before `commit`, see `qsctl.storage.base`.
    """

    def __init__(self, log: WriteAheadLog, name: str, codec: RecordCodec, *, is_truncatable: bool) -> None:
        self.log = log
        self.codec = codec
        self.number = log.stream(name).number
        self.usage = LogUsage(codec.remembered_count)
        self.ended: set[int] = set()
        """Positions of which the log says that they ended, and whose payload may be in the stream's own files."""
        self.damage: list[DamageReport] = []
        self.next_index = self.entry.checkpointed + 1
        self.is_truncatable = is_truncatable
        self._committed_index = self.entry.checkpointed
        self._read_at = -1
        self._read: dict[int, bytes] = {}
        """The payloads of the body that was read last, and where it is: those beside it are often wanted next."""
        self._uncommitted: deque[tuple[int, int, int]] = deque()
        """Of the records that end a position and are not committed yet: index, file and position."""
        self.replayed: list[Record] | None = self._replay()

    @property
    def entry(self) -> Stream:
        """What the table of the log says of it."""
        return self.log.streams[self.number]

    @property
    def ended_in_log(self) -> set[int]:
        """The positions that end by records of the log, whether those are known to be committed or not.

        A commit is learnt again after a restart; what it ended may have left its payload behind before.
        """
        return self.ended.union(position for _, _, position in self._uncommitted)

    @property
    def last_index(self) -> int:
        """That of the last record."""
        return self.next_index - 1

    @property
    def committed_index(self) -> int:
        """Up to here nothing is truncated."""
        return self._committed_index if self.is_truncatable else self.last_index

    def part(self, encoded: Encoded) -> Part:
        """Return records as a part of a group."""
        bodies, data = encoded.bodies, encoded.data
        if len(data) != len(bodies) or encoded.piece_count != len(bodies):
            data = [b""] * len(bodies)
            carriers, end = encoded.carriers, 0
            while (start := end) < len(carriers):
                end = bisect_right(carriers, at := carriers[start], start)
                data[at] = pack_payloads(encoded.data[start:end])
        return Part(self.number, self.next_index, encoded.counts, bodies, data)

    def note(
        self, part: Part, records: Sequence[Record], encoded: Encoded, place: tuple[int, int], own: Set[int]
    ) -> None:
        """Take note of records that the log has now.

        Args:
            part: what was written.
            records: what it was made of.
            encoded: likewise.
            place: file, and offset of the first frame.
            own: the positions that the stream's own files have.
        """
        self.replayed = None
        file, offset = place
        first_index, self.next_index = self.next_index, self.next_index + len(records)
        bodies = part.bodies
        usage = self.usage.of(file, self.last_index, encoded.piece_count)
        if encoded.positions:
            sizes = map(add, map(len, bodies), map(len, part.data))
            starts = list(accumulate(map(add, sizes, repeat(_OVERHEAD_BYTES)), initial=file << FILE_BITS | offset))
            self.usage.begin(usage, encoded.positions, map(starts.__getitem__, encoded.carriers))
        if encoded.ended:
            self._note_ended(first_index, records, encoded.ended, file, usage)
        if own and not usage.is_touched:
            usage.is_touched = not own.isdisjoint(map(self.codec.position_of, records))

    def _note_ended(
        self, first_index: int, records: Sequence[Record], ended: Sequence[int], file: int, usage: FileUsage
    ) -> None:
        """Take note of the positions that end with records: where those may be truncated, once they are committed."""
        if not self.is_truncatable:
            self.ended.update(self.usage.end(file, usage, ended))
            return
        ended_by = self.codec.ended_by
        for index, record in enumerate(records, first_index):
            if (position := ended_by(record)) is not None:
                self._uncommitted.append((index, file, position))

    def commit(self, index: int) -> None:
        """Never truncate the records up to this index."""
        self._committed_index = index
        files = self.usage.files
        while self._uncommitted and self._uncommitted[0][0] <= index:
            _, file, position = self._uncommitted.popleft()
            self.ended.update(self.usage.end(file, files[file], (position,)))
        for usage in files.values():
            usage.ended_count = self.usage.ended_count

    def truncate(self, from_index: int) -> None:
        """Take back the records from this index on, durably. None of them was committed.

        Raises:
            Damaged: the disk refused; they may or may not be there.
        """
        try:
            self.log.truncate(self.number, from_index)
        finally:
            self.read_again()

    def read_again(self) -> None:
        """Take note of what the log has, from the checkpoint on, once more."""
        self.usage.clear()
        self.ended.clear()
        self._uncommitted.clear()
        self.replayed = None
        if self.is_truncatable:
            committed_index = self._committed_index
            self.next_index = self.entry.checkpointed + 1
            self._replay()
            self.commit(committed_index)

    def load_from(self, first: int) -> Iterator[Record]:
        """Return the records from an index on; what ended has no payload."""
        for index, place, records in self._entries():
            if place.last_index >= first:
                yield from map(self.held, records[max(0, first - index) :])

    def held(self, record: Record) -> Record:
        """Return a record, without its payload where the position ended."""
        if type(record) is self.codec.carrier and record.payload and record.position not in self.usage.locations:
            return replace(record, payload=b"")
        return record

    def without_ended(self, record: Record) -> Record:
        """Return a record of the stream's own files, without its payload where the log says that it ended."""
        if type(record) is self.codec.carrier and record.position in self.ended:
            return replace(record, payload=b"")
        return record

    def payload(self, position: int) -> bytes | None:
        """Return the payload at a position; None: the log has none.

        Raises:
            ValueError: it does not match its checksum.
            OSError: the disk refuses.
        """
        location = self.usage.locations.get(position)
        if location is None:
            return None
        payloads = self._read if self._read_at == location else self._payloads_at(location)
        if position not in payloads:
            raise ValueError("it is another position's")
        if len(payloads) > 1:
            self._read, self._read_at = payloads, location
        return payloads[position]

    def _payloads_at(self, location: int) -> dict[int, bytes]:
        """Return the payloads of a body by position."""
        body, packed = self.log.entry(location >> FILE_BITS, location & OFFSET_MASK, self.number)
        carrier = self.codec.carrier
        try:
            positions = [each.position for each in self.codec.decode(body) if type(each) is carrier]
            return dict(zip(positions, unpack_payloads(packed, len(positions)), strict=True))
        except UnreadableRecord as error:
            raise ValueError(str(error)) from error

    def place_of(self, position: int) -> str:
        """Return where the payload of a position is, for a message."""
        location = self.usage.locations[position]
        return f"{self.log.path(location >> FILE_BITS)}: offset {location & OFFSET_MASK}"

    def needed(self, files: set[int]) -> list[Body]:
        """Return which of the bodies in these files are needed once the files are gone.

        Of positions that are held all; of those that ended only what has an identity that is still of use.
        """
        usage, carrier, ended_by = self.usage, self.codec.carrier, self.codec.ended_by
        bodies = [
            self._body(place, body, payload)
            for file in sorted(files)
            for place, body, payload in self.log.records(self.number, file)
            if place.first_index <= usage.files[file].last_index
        ]
        records = [each for body in bodies for each in body.records]
        begun = {each.position for each in records if type(each) is carrier}
        ended = [position for each in records if (position := ended_by(each)) is not None]
        first = max(usage.files[file].ended_count for file in files) - len(ended) + 1
        dropped = set()
        for ordinal, position in enumerate(ended, first):
            if position in begun and not usage.is_remembered(ordinal) and position != usage.position_max:
                dropped.add(position)
        for file in files:
            for position, later, where in usage.files[file].crossing:
                if where in files:
                    continue
                if not usage.is_remembered(later) and position != usage.position_max:
                    dropped.add(position)
                elif where in usage.files:
                    usage.files[where].is_touched = True
        left = (body.without(dropped, self.codec) for body in bodies) if dropped else iter(bodies)
        return [body for body in left if body.records]

    def forget_payloads(self, positions: Sequence[int]) -> None:
        """Note that the payloads at these positions are in the stream's own files from now on."""
        for position in positions:
            self.usage.files[self.usage.locations.pop(position) >> FILE_BITS].live_count -= 1

    def _replay(self) -> list[Record]:
        """Read the stream in the log, note what is there, and return its records."""
        found: list[Record] = []
        usage, seen = self.usage, set[int]()
        carrier, position_of, ended_by = self.codec.carrier, self.codec.position_of, self.codec.ended_by
        in_file = FileUsage()
        file = -1
        for index, place, records in self._entries():
            if place.file != file:
                file = place.file
                in_file = usage.of(file, 0, 0)
            in_file.last_index = place.first_index + place.record_count - 1
            found += records
            rest = []
            for record in records:
                if type(record) is carrier:
                    seen.add(position := record.position)
                    usage.begin_one(in_file, position, file << FILE_BITS | place.start - FRAME_HEADER.size)
                else:
                    rest.append(record)
            in_file.body_count += max(1, len(records) - len(rest))
            if rest:
                ended = [position for each in rest if (position := ended_by(each)) is not None]
                if ended:
                    self._note_ended(index, records, ended, file, in_file)
                elif not in_file.is_touched:
                    in_file.is_touched = any(at is not None and at not in seen for at in map(position_of, rest))
        self.next_index = max(self.next_index, in_file.last_index + 1)
        return found

    def _entries(self) -> Iterator[tuple[int, Place, Sequence[Record]]]:
        """Return what the log has behind the checkpoint: index of the first record, place and records of each body."""
        for place, body, payload in self.log.records(self.number):
            index, _, records = self._body(place, body, payload)
            yield index, place, records

    def _body(self, place: Place, body: bytes, payload: bytes) -> Body:
        """Return what counts of a body: what is behind the checkpoint, as far as it was not taken back."""
        first_index = place.first_index
        skipped_count = max(0, self.entry.checkpointed + 1 - first_index)
        try:
            records = self.codec.decode(body)
            carriers = [each for each in records if type(each) is self.codec.carrier]
            if carriers:
                for record, each in zip(carriers, unpack_payloads(payload, len(carriers)), strict=True):
                    fill(record, "payload", each)
        except UnreadableRecord as error:
            self._report_unreadable(place, error)
            return Body(first_index + skipped_count, body, ())
        if skipped_count or place.is_cut:
            return Body(first_index + skipped_count, None, records[skipped_count : place.record_count])
        return Body(first_index, body, records)

    def _report_unreadable(self, place: Place, error: UnreadableRecord) -> None:
        what = f"a record that this version cannot read: {error}"
        size_bytes = place.end - place.start
        report = DamageReport(self.log.path(place.file), place.start, size_bytes, DamageKind.UNREADABLE, what)
        if report not in self.damage:
            self.damage.append(report)
