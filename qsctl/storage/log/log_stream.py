"""One stream's records in the write-ahead log, and the places of their payloads.

Decides: how an append changes this bookkeeping, and which records of a log file must be copied before the file is
deleted. Replaying the log gives the same result as appending did.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence, Set
from itertools import accumulate, repeat
from operator import add
from typing import Final, NamedTuple

from msgspec.structs import replace

from qsctl.storage._frames import FRAME_HEADER
from qsctl.storage.codec import Encoded, Record, RecordCodec, UnreadableRecord, fill, pack_payloads, unpack_payloads
from qsctl.storage.damage import DamageKind, DamageReport
from qsctl.storage.log._log_usage import FILE_BITS, OFFSET_MASK, FileUsage, LogUsage
from qsctl.storage.log.log_frames import ENTRY_OVERHEAD_BYTES, Place, Stream
from qsctl.storage.log.write_ahead_log import Part, WriteAheadLog

_OVERHEAD_BYTES: Final = FRAME_HEADER.size + ENTRY_OVERHEAD_BYTES


class Body(NamedTuple):
    """The records of one body of the log, which belong together.

    `body` is None where the encoded body contains further records: these must be encoded again.
    """

    first_index: int
    body: bytes | None
    records: Sequence[Record]

    def without(self, positions: set[int], codec: RecordCodec) -> Body:
        """Return a copy without the records of some positions."""
        kept = [each for each in self.records if codec.position_of(each) not in positions]
        if len(kept) == len(self.records):
            return self
        return Body(self.first_index, None, kept)


class LogStream:
    """The records of one stream in a log, replayed by the constructor: `replayed` has them until the first change.

    Args:
        log: the log, shared with other streams.
        name: the stream's name.
        codec: the codec of its records.
    """

    def __init__(self, log: WriteAheadLog, name: str, codec: RecordCodec) -> None:
        self.log = log
        self.codec = codec
        self.number = log.stream(name).number
        self.usage = LogUsage(codec.remembered_count)
        self.ended: set[int] = set()
        """Positions that ended according to the log, and whose payload may be in the stream's own files."""
        self.damage: list[DamageReport] = []
        self.next_index = self.entry.checkpointed + 1
        self._written_at: tuple[int, int] | None = None
        """The file and offset of what was written last; None: nothing was written since the log was opened."""
        self._read_at = -1
        self._read: dict[int, bytes] = {}
        """The payloads of the body that was read last, and where it is: those beside it are often wanted next."""
        self.replayed: list[Record] | None = self._replay()

    @property
    def entry(self) -> Stream:
        """The stream's entry in the table of the log."""
        return self.log.streams[self.number]

    @property
    def last_index(self) -> int:
        """The index of the last record."""
        return self.next_index - 1

    @property
    def outlasts_mending(self) -> bool:
        """Return whether the log keeps all of the stream's records when it is mended after a failed sync."""
        return self._written_at is None or self.log.keeps(self._written_at)

    def part(self, encoded: Encoded) -> Part:
        """Return encoded records as the stream's part of a group."""
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
        """Register records that were written to the log.

        Args:
            part: the encoded part that was written.
            records: its records.
            encoded: the records as bodies.
            place: the file, and the offset of the first frame.
            own: the positions in the stream's own files.
        """
        self.replayed = None
        self._written_at = file, offset = place
        self.next_index += sum(part.counts)
        bodies = part.bodies
        usage = self.usage.of(file, self.last_index, encoded.piece_count)
        if encoded.positions:
            sizes = map(add, map(len, bodies), map(len, part.data))
            starts = list(accumulate(map(add, sizes, repeat(_OVERHEAD_BYTES)), initial=file << FILE_BITS | offset))
            self.usage.begin(usage, encoded.positions, map(starts.__getitem__, encoded.carriers))
        if encoded.ended:
            self.ended.update(self.usage.end(file, usage, encoded.ended))
        if own and not usage.is_touched:
            usage.is_touched = not own.isdisjoint(map(self.codec.position_of, self.codec.one_by_one(records)))

    def forget(self) -> None:
        """Forget all records in the log, after a snapshot in the stream's own files replaced them."""
        self.usage.clear()
        self.ended.clear()
        self.replayed = None

    def load(self) -> Iterator[Record]:
        """Yield the records behind the checkpoint; a record whose position has ended has no payload."""
        for _, records in self._entries():
            yield from map(self.held, records)

    def held(self, record: Record) -> Record:
        """Return the record, with an empty payload if its position has ended."""
        if type(record) is self.codec.carrier and record.payload and record.position not in self.usage.locations:
            return replace(record, payload=b"")
        return record

    def without_ended(self, record: Record) -> Record:
        """Return a record of the stream's own files, with an empty payload if the log ended its position."""
        if type(record) is self.codec.carrier and record.position in self.ended:
            return replace(record, payload=b"")
        return record

    def payload(self, position: int) -> bytes | None:
        """Return the payload at a position; None where the log does not have it.

        Raises:
            ValueError: it does not match its checksum.
            OSError: an I/O error occurs.
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
        """Return file and offset of the payload at a position, for a message."""
        location = self.usage.locations[position]
        return f"{self.log.path(location >> FILE_BITS)}: offset {location & OFFSET_MASK}"

    def needed(self, files: set[int]) -> list[Body]:
        """Return the bodies in these files that are still needed once the files are deleted.

        Those are the records of held positions, and of ended positions whose identity is still remembered.
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
        """Register that the payloads at these positions are in the stream's own files."""
        for position in positions:
            self.usage.files[self.usage.locations.pop(position) >> FILE_BITS].live_count -= 1

    def _replay(self) -> list[Record]:
        """Read the stream from the log, register its records, and return them."""
        found: list[Record] = []
        usage, seen = self.usage, set[int]()
        carrier, position_of, ended_by = self.codec.carrier, self.codec.position_of, self.codec.ended_by
        in_file = FileUsage()
        file = -1
        for place, records in self._entries():
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
                    self.ended.update(usage.end(file, in_file, ended))
                elif not in_file.is_touched:
                    in_file.is_touched = any(at is not None and at not in seen for at in map(position_of, rest))
        self.next_index = max(self.next_index, in_file.last_index + 1)
        return found

    def _entries(self) -> Iterator[tuple[Place, Sequence[Record]]]:
        """Yield place and records of each body behind the checkpoint."""
        for place, body, payload in self.log.records(self.number):
            yield place, self._body(place, body, payload).records

    def _body(self, place: Place, body: bytes, payload: bytes) -> Body:
        """Return the records of a body that are behind the checkpoint."""
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
        if skipped_count:
            return Body(first_index + skipped_count, None, records[skipped_count:])
        return Body(first_index, body, records)

    def _report_unreadable(self, place: Place, error: UnreadableRecord) -> None:
        what = f"a record that this version cannot read: {error}"
        size_bytes = place.end - place.start
        report = DamageReport(self.log.path(place.file), place.start, size_bytes, DamageKind.UNREADABLE, what)
        if report not in self.damage:
            self.damage.append(report)
