"""The codec of the records of queues and of the service's state, as MessagePack by msgspec [QS 2.14.2].

Decides: the content of a body, and which positions begin and end with it. Records that usually occur together are one
body: consecutive samples of one writer that are enqueued and at once assigned to consumers, up to a page of them; and
samples that are removed consecutively.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice, repeat, zip_longest
from operator import attrgetter
from typing import Any, Final, TypeAlias

import msgspec

from qsctl.core.records import (
    RUN_RECORDS,
    Assigned,
    AssignedRun,
    DeadLetterReason,
    Enqueued,
    EnqueuedRun,
    MovedFrom,
    Record,
    RemovalCause,
    Removed,
    RemovedRun,
    Returned,
    StreamRecord,
    Undeliverable,
    one_by_one,
)
from qsctl.errors import UNREADABLE
from qsctl.identity import NIL_GUID, NIL_IDENTITY, Guid, SampleIdentity
from qsctl.instant import Nanoseconds
from qsctl.storage.codec import Encoded, Positions, RecordCodec, UnreadableRecord

REMEMBERED_COUNT: Final = 8_192
"""Number of removed samples whose identities outlive a restart (as many as a queue remembers)."""


class _EnqueuedMetadata(msgspec.Struct, frozen=True, array_like=True, tag=1, gc=False):
    """The fields of `Enqueued` before its payload; decoding gives an `Enqueued` whose payload is empty."""

    queue: str
    position: int
    identity: SampleIdentity
    enqueued_at_ns: Nanoseconds
    expires_at_ns: Nanoseconds
    source_guid: Guid
    related_source_guid: Guid
    related_identity: SampleIdentity
    related_reader_guid: Guid
    flags: int
    dead_letter_from: str
    dead_letter_reason: DeadLetterReason | None
    dead_letter_position: int


class _DeadLetterMetadata(_EnqueuedMetadata, frozen=True, array_like=True, tag=17, gc=False):
    """The metadata of a dead letter of a queue that has an incarnation.

    It has no place for the payload before it: an array of more than 15 members begins otherwise, see `read_positions`.
    """

    dead_letter_incarnation: int


class _MovedMetadata(msgspec.Struct, frozen=True, array_like=True, tag=18, gc=False):
    """The metadata of a sample that a command moved from another queue of the service, see `Enqueued.moved_from`.

    `sample` has the other fields of the record.
    """

    queue: str
    position: int
    moved_from: MovedFrom
    sample: _DeadLetterMetadata


class _PlainMetadata(msgspec.Struct, frozen=True, array_like=True, tag=1, gc=False):
    """The metadata of a sample that is no reply, no dead letter and has no flag: its other fields have their defaults.

    Most samples are plain, and a restart reads them in little more than half the time.
    """

    queue: str
    position: int
    identity: SampleIdentity
    enqueued_at_ns: Nanoseconds
    expires_at_ns: Nanoseconds
    source_guid: Guid


class _SentMetadata(_PlainMetadata, frozen=True, array_like=True, tag=6, gc=False):
    """Two records: a plain sample, and its first assignment to a consumer right afterwards."""

    consumer_guid: Guid


class _RemovedRun(msgspec.Struct, frozen=True, array_like=True, tag=7, gc=False):
    """A record for each of several consecutive samples that left the queue for the same cause."""

    queue: str
    positions: list[int]
    cause: RemovalCause


class _SampleRun(msgspec.Struct, frozen=True, array_like=True, tag=9, gc=False):
    """Plain samples of one writer, one after the other by position and by sequence number, enqueued at one instant.

    `consumers` are the first ones to which the samples were assigned right afterwards: empty if none was, a single one
    if all were assigned to the same.
    """

    queue: str
    position: int
    count: int
    writer_guid: Guid
    sequence_number: int
    enqueued_at_ns: Nanoseconds
    expires_at_ns: Nanoseconds
    source_guid: Guid
    consumers: list[Guid]


RUN_SAMPLES_MAX: Final = 64
"""Number of samples in one body."""

RUN_PAYLOAD_BYTES_MAX: Final = 4_096
"""Bound on their payload: damage to a page loses this much, and a payload is read with the others of its body."""

_SEVERAL: Final = frozenset({_DeadLetterMetadata, _MovedMetadata, _SentMetadata, _RemovedRun, _SampleRun})
"""Encoded forms of several records, or of one that is not plain."""


class _EnqueuedHead(msgspec.Struct, frozen=True, array_like=True, tag=1, gc=False):
    queue: str
    position: int


class _SentHead(msgspec.Struct, frozen=True, array_like=True, tag=6, gc=False):
    queue: str
    position: int


class _DeadLetterHead(msgspec.Struct, frozen=True, array_like=True, tag=17, gc=False):
    queue: str
    position: int


class _MovedHead(msgspec.Struct, frozen=True, array_like=True, tag=18, gc=False):
    queue: str
    position: int


class _RemovedHead(msgspec.Struct, frozen=True, array_like=True, tag=4, gc=False):
    queue: str
    position: int


class _RemovedRunHead(msgspec.Struct, frozen=True, array_like=True, tag=7, gc=False):
    queue: str
    positions: list[int]


class _SampleRunHead(msgspec.Struct, frozen=True, array_like=True, tag=9, gc=False):
    queue: str
    position: int
    count: int


class _RememberedHead(msgspec.Struct, frozen=True, array_like=True, tag=5, gc=False):
    queue: str
    position: int


_ABOUT_A_SAMPLE: Final = frozenset({Enqueued, Assigned, Returned, Undeliverable, Removed})
"""The records that have a sample's position."""

_Metadata: TypeAlias = Record | _DeadLetterMetadata | _MovedMetadata | _SentMetadata | _RemovedRun | _SampleRun


_FIELDS: Final = attrgetter(*_EnqueuedMetadata.__struct_fields__)

_encode = msgspec.msgpack.Encoder().encode
_decode: Callable[[bytes], Any] = msgspec.msgpack.Decoder(_Metadata).decode
"""Returns a `_Metadata`. Its kinds are distinguished by `_SEVERAL`, which a type checker cannot follow."""
_decode_head = msgspec.msgpack.Decoder(
    _EnqueuedHead | _SentHead | _DeadLetterHead | _MovedHead | _RemovedHead | _RememberedHead
).decode
_decode_run_head = msgspec.msgpack.Decoder(_RemovedRunHead).decode
_decode_sample_run_head = msgspec.msgpack.Decoder(_SampleRunHead).decode

_MOVED_TAG: Final = 18
_ENQUEUED_TAGS: Final = frozenset({1, 6, 17, _MOVED_TAG})
_REMOVED_TAG: Final = 4
_REMOVED_RUN_TAG: Final = 7
_SAMPLE_RUN_TAG: Final = 9
_REMEMBERED_TAG: Final = 5
"""Value of a body's second byte that marks remembered identities."""


class _QueueCodec:
    """The codec of the records of queues."""

    carrier = Enqueued
    remembered_count = REMEMBERED_COUNT

    def decode(self, body: bytes) -> Sequence[Record]:
        """Return the records of a body, in order; payloads are absent, the caller fills them in with `fill`."""
        try:
            found = _decode(body)
        except UNREADABLE as error:
            raise UnreadableRecord(str(error)) from error
        return _parts(found) if type(found) in _SEVERAL else (found,)

    def without_payload(self, record: Record) -> Record | None:
        """Return None: a sample without its data is useless to a consumer; see `RecordCodec.without_payload`."""
        del record
        return None

    def decode_all(self, bodies: Sequence[bytes]) -> Sequence[Record]:
        """Return the records of many bodies, faster than one by one."""
        try:
            found = list(map(_decode, bodies))
        except UNREADABLE as error:
            raise UnreadableRecord(str(error)) from error
        if _SEVERAL.isdisjoint(map(type, found)):
            return found
        return [record for each in found for record in (_parts(each) if type(each) in _SEVERAL else (each,))]

    def read_positions(self, bodies: Iterable[bytes], into: Positions) -> None:
        """Add the positions that begin and end in bodies to `into`, without decoding the rest."""
        begin, end = into.begun.add, into.ended.add
        try:
            for body in bodies:
                kind = body[1]
                if kind == _SAMPLE_RUN_TAG:
                    head = _decode_sample_run_head(body)
                    _check_run_count(head.count)
                    into.begun.update(range(head.position, head.position + head.count))
                    into.carrier_count += 1
                elif kind in _ENQUEUED_TAGS:
                    begin(_decode_head(body).position)
                    into.carrier_count += 1
                elif kind == _REMOVED_RUN_TAG:
                    into.ended.update(_decode_run_head(body).positions)
                elif kind == _REMOVED_TAG:
                    end(_decode_head(body).position)
                elif kind == _REMEMBERED_TAG:
                    into.next_free = max(into.next_free, _decode_head(body).position)
        except UNREADABLE as error:
            raise UnreadableRecord(str(error)) from error

    def moves(self, body: bytes) -> bool:
        """Return whether a body is of a kind that versions up to 0.2 cannot read, see `Encoded.has_moves`."""
        return body[1] == _MOVED_TAG

    def position_of(self, record: Record) -> int | None:
        """Return the position that a record begins, ends or concerns; None where it concerns none."""
        return record.position if type(record) in _ABOUT_A_SAMPLE else None  # type: ignore[union-attr]

    def ended_by(self, record: Record) -> int | None:
        """Return the position that a record ends, or None."""
        return record.position if type(record) is Removed else None

    def one_by_one(self, records: Iterable[StreamRecord]) -> Iterable[Record]:
        """Return the records with those of runs one by one."""
        return one_by_one(records)

    def encode(self, records: Sequence[StreamRecord]) -> Encoded:
        """Encode records into bodies."""
        if RUN_RECORDS.isdisjoint(map(type, records)):
            return self._encode_singles(records)  # type: ignore[arg-type]
        encoded = Encoded([], [], [], [], [], [])
        singles: list[Record] = []
        left = deque(records)
        while left:
            record = left.popleft()
            if isinstance(record, EnqueuedRun) and _is_plain_run(record):
                encoded = self._with_singles(encoded, singles)
                singles = []
                _add_sample_run(encoded, record, left)
            elif isinstance(record, RemovedRun):
                encoded = self._with_singles(encoded, singles)
                singles = []
                positions = list(record.positions)
                while left and isinstance(after := left[0], RemovedRun) and after.cause is record.cause:
                    positions += after.positions
                    left.popleft()
                encoded.bodies.append(_encode(_RemovedRun(record.queue, positions, record.cause)))
                encoded.counts.append(len(positions))
                encoded.ended.extend(positions)
            else:
                singles += one_by_one((record,))
        return self._with_singles(encoded, singles)

    def _with_singles(self, encoded: Encoded, records: Sequence[Record]) -> Encoded:
        """Add other records without runs behind encoded ones, and return all."""
        if not records:
            return encoded
        added, first = self._encode_singles(records), len(encoded.bodies)
        encoded.bodies.extend(added.bodies)
        encoded.counts.extend(added.counts)
        encoded.positions.extend(added.positions)
        encoded.data.extend(added.data)
        encoded.ended.extend(added.ended)
        encoded.carriers.extend([first + each for each in added.carriers])
        return encoded._replace(has_moves=True) if added.has_moves else encoded

    def _encode_singles(self, records: Sequence[Record]) -> Encoded:
        """Encode records without runs."""
        bodies: list[bytes] = []
        counts: list[int] = []
        positions: list[int] = []
        data: list[bytes] = []
        ended: list[int] = []
        carriers: list[int] = []
        removed: list[int] = []
        first: Enqueued | None = None  # of the run of samples that is open
        consumers: list[Guid] = []
        count = left_bytes = position = number = 0
        writer = NIL_GUID
        included: Record | None = None
        has_moves = False
        for record, after in zip_longest(records, islice(records, 1, None)):
            if record is included:
                included = None  # one object may be listed again
                continue
            if type(record) is Enqueued:
                position, number = position + 1, number + 1
                identity, payload = record.identity, record.payload
                is_plain = _is_plain(record)
                assigned: Assigned | None = None
                if type(after) is Assigned and after.position == record.position and after.attempt == 1:
                    assigned = after
                if first is not None and not (
                    is_plain
                    and record.position == position
                    and identity.sequence_number == number
                    and identity.writer_guid == writer
                    and record.enqueued_at_ns == first.enqueued_at_ns
                    and record.expires_at_ns == first.expires_at_ns
                    and record.source_guid == first.source_guid
                    and record.queue == first.queue
                    and (assigned is not None) is bool(consumers)
                    and len(payload) <= left_bytes
                    and count < RUN_SAMPLES_MAX
                ):
                    bodies.append(_encode(_run_of_records(first, count, consumers)))
                    counts.append(2 * count if consumers else count)
                    first = None
                positions.append(record.position)
                data.append(payload)
                carriers.append(len(bodies))
                if not is_plain:
                    has_moves = has_moves or record.moved_from is not None
                    bodies.append(_encode(_metadata(record)))
                    counts.append(1)
                    continue
                if first is None:
                    first, consumers, count, left_bytes = record, [], 0, RUN_PAYLOAD_BYTES_MAX
                    position, number, writer = record.position, identity.sequence_number, identity.writer_guid
                count += 1
                left_bytes -= len(payload)
                if assigned is not None:
                    included = assigned
                    consumers.append(assigned.consumer_guid)
                continue
            if first is not None:
                bodies.append(_encode(_run_of_records(first, count, consumers)))
                counts.append(2 * count if consumers else count)
                first = None
            if type(record) is Removed:
                removed.append(record.position)
                if type(after) is Removed and after.cause is record.cause and after.queue == record.queue:
                    continue
                run = record if len(removed) == 1 else _RemovedRun(record.queue, removed, record.cause)
                bodies.append(_encode(run))
                counts.append(len(removed))
                ended += removed
                removed = []
            else:
                bodies.append(_encode(record))
                counts.append(1)
        if first is not None:
            bodies.append(_encode(_run_of_records(first, count, consumers)))
            counts.append(2 * count if consumers else count)
        return Encoded(bodies, counts, positions, data, ended, carriers, has_moves)


def _run_of_records(first: Enqueued, count: int, consumers: list[Guid]) -> _PlainMetadata | _SampleRun:
    """Return the body for a run of samples, beginning with `first`, and their assignments to these consumers."""
    instants = (first.enqueued_at_ns, first.expires_at_ns)
    return _run_of(first.queue, first.position, first.identity, instants, first.source_guid, count, consumers)


def _run_of(
    queue: str,
    position: int,
    identity: SampleIdentity,
    instants: tuple[Nanoseconds, Nanoseconds],
    source_guid: Guid,
    count: int,
    consumers: list[Guid],
) -> _PlainMetadata | _SampleRun:
    """Return the body for a run of samples and their assignments.

    Args:
        queue: the full name.
        position: the position of the first sample.
        identity: that of the first sample.
        instants: when they were enqueued, and when they expire.
        source_guid: see `Enqueued`.
        count: the number of samples.
        consumers: the consumer of each sample; empty if none is assigned.
    """
    if count == 1:
        fields = (queue, position, identity, *instants, source_guid)
        return _SentMetadata(*fields, consumers[0]) if consumers else _PlainMetadata(*fields)
    return _SampleRun(
        queue,
        position,
        count,
        identity.writer_guid,
        identity.sequence_number,
        *instants,
        source_guid,
        consumers[:1] if consumers.count(consumers[0] if consumers else NIL_GUID) == count else consumers,
    )


def _add_sample_run(encoded: Encoded, run: EnqueuedRun, left: deque[StreamRecord]) -> None:
    """Encode a run and the assignments of its samples that follow it, which are removed from `left`."""
    parts: list[tuple[int, AssignedRun | None]] = []
    end = run.position
    while left and isinstance(after := left[0], AssignedRun) and after.position == end < run.position + run.count:
        left.popleft()
        end += after.count
        parts.append((after.count, after))
    if end < run.position + run.count:
        parts.append((run.position + run.count - end, None))
    start, writer_guid, number = 0, run.identity.writer_guid, run.identity.sequence_number
    instants = (run.enqueued_at_ns, run.expires_at_ns)
    for count, assigned in parts:
        for at, to in _bodies_of(run.payloads, start, start + count):
            consumers = [] if assigned is None else assigned.consumers_of(at - start, to - start)
            identity = SampleIdentity(writer_guid, number + at)
            body = _run_of(run.queue, run.position + at, identity, instants, run.source_guid, to - at, consumers)
            encoded.carriers.extend([len(encoded.bodies)] * (to - at))
            encoded.bodies.append(_encode(body))
            encoded.counts.append(to - at + len(consumers))
        start += count
    encoded.positions.extend(range(run.position, run.position + run.count))
    encoded.data.extend(run.payloads)


def _bodies_of(payloads: Sequence[bytes], start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Divide samples of a run into bodies: yield the offsets where each begins and ends."""
    left_bytes = RUN_PAYLOAD_BYTES_MAX
    for at in range(start, stop):
        size = len(payloads[at])
        if at > start and (size > left_bytes or at - start == RUN_SAMPLES_MAX):
            yield start, at
            start, left_bytes = at, RUN_PAYLOAD_BYTES_MAX
        left_bytes -= size
    yield start, stop


def _is_plain_run(run: EnqueuedRun) -> bool:
    """Return whether the samples of a run are plain, see `_PlainMetadata`."""
    return (
        not run.flags
        and run.related_source_guid == NIL_GUID
        and run.related_identity == NIL_IDENTITY
        and run.related_reader_guid == NIL_GUID
    )


def _check_run_count(count: int) -> None:
    if not 0 < count <= RUN_SAMPLES_MAX:
        raise UnreadableRecord(f"a run of {count} samples; there are 1 to {RUN_SAMPLES_MAX}")


def _parts(found: _Metadata) -> Sequence[Record]:
    """Return the records of a body that has several.

    Raises:
        UnreadableRecord: its members contradict each other.
    """
    if isinstance(found, _SentMetadata):
        queue, position = found.queue, found.position
        sample = (queue, position, found.identity, found.enqueued_at_ns, found.expires_at_ns, found.source_guid)
        return (Enqueued(*sample), Assigned(queue, position, found.consumer_guid, 1))
    if isinstance(found, _SampleRun):
        return _samples_of(found)
    if isinstance(found, _MovedMetadata):
        *fields, incarnation = msgspec.structs.astuple(found.sample)
        return (Enqueued(*(*fields, b"", None, incarnation, found.moved_from)),)
    if isinstance(found, _DeadLetterMetadata):
        *fields, incarnation = msgspec.structs.astuple(found)
        return (Enqueued(*(*fields, b"", None, incarnation)),)
    assert isinstance(found, _RemovedRun)
    return [Removed(found.queue, position, found.cause) for position in found.positions]


@lru_cache(maxsize=4_096)
def _same(name_or_guid: Any) -> Any:
    """Return one object for all equal values, so that later comparisons are by identity."""
    return name_or_guid


def _samples_of(run: _SampleRun) -> Sequence[Record]:
    _check_run_count(run.count)
    queue, writer, source = _same(run.queue), _same(run.writer_guid), _same(run.source_guid)
    at_ns, expires_at_ns = run.enqueued_at_ns, run.expires_at_ns
    first, consumers = run.position, run.consumers
    numbers = range(run.sequence_number, run.sequence_number + run.count)
    enqueued = [
        Enqueued(queue, position, SampleIdentity(writer, number), at_ns, expires_at_ns, source)
        for position, number in enumerate(numbers, first)
    ]
    if not consumers:
        return enqueued
    if len(consumers) not in (1, run.count):
        raise UnreadableRecord(f"{run.count} samples were assigned to {len(consumers)} consumers")
    each = repeat(consumers[0]) if len(consumers) == 1 else iter(consumers)
    assigned = [
        Assigned(queue, position, guid, 1)
        for position, guid in zip(range(first, first + run.count), each, strict=False)
    ]
    return [record for pair in zip(enqueued, assigned, strict=True) for record in pair]


def _metadata(record: Enqueued) -> _EnqueuedMetadata | _MovedMetadata:
    fields = _FIELDS(record)
    if record.moved_from is not None:
        sample = _DeadLetterMetadata(*(*fields, record.dead_letter_incarnation))
        return _MovedMetadata(record.queue, record.position, record.moved_from, sample)
    if record.dead_letter_incarnation:
        return _DeadLetterMetadata(*(*fields, record.dead_letter_incarnation))
    return _EnqueuedMetadata(*fields)


def _is_plain(record: Enqueued) -> bool:
    return (
        record.flags == 0
        and record.moved_from is None
        and not record.dead_letter_from
        and record.dead_letter_reason is None
        and record.related_identity == NIL_IDENTITY
        and record.related_source_guid == NIL_GUID
        and record.related_reader_guid == NIL_GUID
    )


QUEUE_CODEC: Final[RecordCodec] = _QueueCodec()
"""Of the records of a queue, and of the service's own."""
