"""Many samples in one DDS sample: packing and parsing with one `struct` call each.

Decides: the bytes of `RTI::QueuingService::SampleFrame` and `…::AcknowledgmentFrame` in little-endian XCDR1. Every
member of a sample is aligned to four octets, so that a frame's layout is one fixed head a sample, its payload, and
padding to four.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any, Final, NamedTuple

import msgspec

from qsctl.core.messages import FLAGS_MASK, Acknowledgment, AckResponse, Delivery, Write, WriteAcknowledgment
from qsctl.identity import NIL_GUID, NIL_IDENTITY, Guid, SampleIdentity
from qsctl.instant import INFINITE_NS, SECOND_NS, Nanoseconds
from qsctl.transport.dds.boundary import Malformed

FRAME_BYTES_TARGET: Final = 60_000
"""A frame is closed once it holds this much: one message on the wire. A larger sample travels alone, fragmented."""

FRAME_SAMPLES_MAX: Final = 512

ANSWERS_MAX: Final = 2000
"""Acknowledgments in one frame: 56 kB."""

ENCAPSULATION: Final = b"\x00\x01\x00\x00"
"""Plain CDR, little-endian, no options."""

_COUNT: Final = struct.Struct("<I")
_HEAD: Final = struct.Struct("<IiI16siI16s16s16siI16sI")
_ANSWER: Final = struct.Struct("<16siII")
_ANSWERS_HEAD: Final = struct.Struct("<16sI")
_INFINITE: Final = (0x7FFF_FFFF, 0x7FFF_FFFF)

_INFINITE_OCTETS: Final = struct.pack("<II", *_INFINITE)
_TIME: Final = struct.Struct("<II")
"""The lifespan of a sample, which is infinite where a consumer is sent it: of a sample that is sent for the second time
or later the number of the attempt is there in the place of the nanoseconds."""
_NIL_IDENTITY_OCTETS: Final = bytes(24)

_ROUTE: Final = struct.Struct("<16s16s16siI16s")
"""The members of a sample that hold its source and its addressee."""

_NIL_ROUTE: Final = bytes(_ROUTE.size)

_SIZE_OF: Final = itemgetter(6)
"""The size of the payload, in the members of a sample as `_read` gives them."""

_RESPONSES: Final = frozenset(map(int, AckResponse))

_ATTEMPT_SHIFT: Final = 16
"""The upper half of a sample's flags, and of a response, is the number of the attempt, for replicated queues; 0: none.
A producer that does not number its attempts receives the response alone.
"""

RESPONSE_MASK: Final = 0xFF
LACKS_MASTER: Final = 0x100

PADDING: Final = (b"", b"\0\0\0", b"\0\0", b"\0")


@lru_cache(64)
def _plain(size: int) -> struct.Struct:
    """Return the layout of a sample with `size` octets of payload, lifespan and related identity as raw octets."""
    return struct.Struct(f"<I8s16siI16s16s24s16sI{size}s{-size & 3}x")


@lru_cache(64)
def _read(size: int) -> struct.Struct:
    """Return the same layout for reading: source, relations and addressee are one run of octets."""
    return struct.Struct(f"<I8s16siI{_ROUTE.size}sI{size}s{-size & 3}x")


class MalformedFrame(Malformed):
    """An error for a peer's octets that are not a frame: the message is refused and counted."""


class AnswerFrame(NamedTuple):
    """The acknowledgments of one sender for one queue: `responses[i]` answers the sample `identities[i]`."""

    sender: Guid
    queue_name: str
    identities: list[SampleIdentity]
    responses: list[int]


def pack_sample(
    identity: SampleIdentity,
    payload: bytes,
    source_guid: bytes = NIL_GUID,
    related_source_guid: bytes = NIL_GUID,
    related_identity: SampleIdentity = NIL_IDENTITY,
    related_reader_guid: bytes = NIL_GUID,
    flags: int = 0,
    lifespan_ns: Nanoseconds = INFINITE_NS,
) -> bytes:
    """Return the octets of one sample inside a frame, padded to four."""
    number = identity.sequence_number
    size = len(payload)
    if lifespan_ns >= INFINITE_NS and related_identity is NIL_IDENTITY:
        return _plain(size).pack(
            flags, _INFINITE_OCTETS, identity.writer_guid, number >> 32, number & 0xFFFF_FFFF, source_guid,
            related_source_guid, _NIL_IDENTITY_OCTETS, related_reader_guid, size, payload,
        )  # fmt: skip
    related = related_identity.sequence_number
    sec, nanosec = _INFINITE if lifespan_ns >= INFINITE_NS else divmod(lifespan_ns, SECOND_NS)
    return (
        _HEAD.pack(
            flags, min(sec, 0x7FFF_FFFF), nanosec,
            identity.writer_guid, number >> 32, number & 0xFFFF_FFFF, source_guid, related_source_guid,
            related_identity.writer_guid, related >> 32, related & 0xFFFF_FFFF, related_reader_guid, size,
        )
        + payload
        + PADDING[size & 3]
    )  # fmt: skip


def pack_deliveries(deliveries: Iterable[Delivery]) -> list[bytes]:
    """Return the octets of each sample in a frame for its consumer, whose GUID becomes the related reader.

    Every delivery must have its payload.
    """
    packed: list[bytes] = []
    size, pack = -1, _plain(0).pack
    for each in deliveries:
        identity, payload = each.identity, each.payload
        assert payload is not None, "the driver puts payloads back before it sends"
        if each.related_identity is not NIL_IDENTITY:
            packed.append(
                _with_attempt(
                    pack_sample(
                        identity, payload, each.source_guid, each.related_source_guid, each.related_identity,
                        each.consumer_guid, each.flags,
                    ),
                    each.attempt,
                )
            )  # fmt: skip
            continue
        if len(payload) != size:
            size = len(payload)
            pack = _plain(size).pack
        number = identity.sequence_number
        packed.append(
            pack(
                each.flags, _INFINITE_OCTETS if each.attempt == 1 else _time_of(each.attempt),
                identity.writer_guid, number >> 32, number & 0xFFFF_FFFF,
                each.source_guid, each.related_source_guid, _NIL_IDENTITY_OCTETS, each.consumer_guid, size, payload,
            )
        )  # fmt: skip
    return packed


def _time_of(attempt: int) -> bytes:
    return _TIME.pack(_INFINITE[0], min(attempt, _INFINITE[1] - 1))


def _with_attempt(packed: bytes, attempt: int) -> bytes:
    return packed if attempt == 1 else packed[:4] + _time_of(attempt) + packed[4 + _TIME.size :]


def frame_of(packed: Sequence[bytes]) -> bytes:
    """Return a frame from packed samples."""
    return b"".join((ENCAPSULATION, _COUNT.pack(len(packed)), *packed))


def frames_of(packed: Iterable[bytes]) -> list[tuple[bytes, int]]:
    """Return frames of at most `FRAME_BYTES_TARGET` octets, each with the number of samples in it."""
    frames: list[tuple[bytes, int]] = []
    group: list[bytes] = []
    size = 0
    for each in packed:
        if group and (size + len(each) > FRAME_BYTES_TARGET or len(group) >= FRAME_SAMPLES_MAX):
            frames.append((frame_of(group), len(group)))
            group, size = [], 0
        group.append(each)
        size += len(each)
    if group:
        frames.append((frame_of(group), len(group)))
    return frames


def parse_frame(data: bytes, participant: str, topic_name: str) -> list[Write]:
    """Return the samples of a frame as `Write`s of a topic.

    Raises:
        MalformedFrame: the octets end early or claim more than they hold, or a number is negative, which no store and
            no other replica would accept.
    """
    writes: list[Write] = []
    writer, route = NIL_GUID, _NIL_ROUTE
    source, related_source, related, reader = _members_of(route)
    for flags, lifespan, guid, high, low, octets, _, payload in _samples(data):
        # The samples of a frame mostly have all this in common: one object each, found in the cache and hashed once.
        if guid != writer:
            writer = guid
        if high < 0:
            raise MalformedFrame(f"a sequence number is {high << 32 | low}; 0 and more are read")
        if octets != route:
            route = octets
            source, related_source, related, reader = _members_of(route)
        writes.append(
            Write(
                participant,
                topic_name,
                SampleIdentity(writer, high << 32 | low),
                payload,
                source,
                related_source,
                related,
                reader,
                flags & FLAGS_MASK if flags > FLAGS_MASK else flags,
                INFINITE_NS if lifespan == _INFINITE_OCTETS else _lifespan_ns(lifespan),
                flags >> _ATTEMPT_SHIFT if flags > FLAGS_MASK else 0,
            )
        )
    return writes


def parse_deliveries(data: bytes, queue: str, consumer_guid: Guid) -> list[Delivery]:
    """Return the samples of a frame as deliveries to a consumer of a queue.

    Raises:
        MalformedFrame: the octets end early or claim more than they hold.
    """
    deliveries: list[Delivery] = []
    append, infinite = deliveries.append, _INFINITE_OCTETS
    writer, route = NIL_GUID, _NIL_ROUTE
    source, related_source, related, reader = _members_of(route)
    for flags, lifespan, guid, high, low, octets, _, payload in _samples(data):
        if guid != writer:
            writer = guid
        if octets != route:
            route = octets
            source, related_source, related, reader = _members_of(route)
        identity = SampleIdentity(writer, high << 32 | low)
        append(Delivery(queue, consumer_guid, 0, identity, payload, source, related_source, related, reader, flags))
        if lifespan != infinite:
            deliveries[-1] = msgspec.structs.replace(deliveries[-1], attempt=_attempt_of(lifespan))
    return deliveries


def _attempt_of(lifespan: bytes) -> int:
    """Return the number of the attempt that a lifespan holds; 1 where another implementation sends a real lifespan."""
    seconds, attempt = _TIME.unpack(lifespan)
    return max(int(attempt), 1) if seconds == _INFINITE[0] else 1


def _members_of(route: bytes) -> tuple[Guid, Guid, SampleIdentity, Guid]:
    """Return source GUID, related source GUID, related identity and related reader GUID."""
    source, related_source, guid, high, low, reader = _ROUTE.unpack(route)
    if high < 0:
        raise MalformedFrame(f"a related sequence number is {high << 32 | low}; 0 and more are read")
    related = SampleIdentity(guid, high << 32 | low)
    return source, related_source, NIL_IDENTITY if related == NIL_IDENTITY else related, reader


def _samples(data: bytes) -> Iterable[tuple[Any, ...]]:
    """Return the members of each sample, as `_read` gives them."""
    _require_little_endian(data)
    end = len(data)
    if end < 8:
        raise MalformedFrame(f"a frame of {end} octets ends early")
    (count,) = _COUNT.unpack_from(data, 4)
    if not count:
        return ()
    if count > (end - 8) // _HEAD.size:
        raise MalformedFrame(f"a frame of {end} octets claims {count} samples")
    (size,) = _COUNT.unpack_from(data, 8 + _HEAD.size - 4)
    if size <= end:
        plain = _read(size)
        stop = 8 + count * plain.size
        if stop <= end:
            found = list(plain.iter_unpack(memoryview(data)[8:stop]))
            if set(map(_SIZE_OF, found)) == {size}:
                return found
    return list(_walk(data, count))


def _walk(data: bytes, count: int) -> Iterator[tuple[Any, ...]]:
    """Return samples of several sizes, one after the other; the last one's padding may be missing."""
    at, end = 8, len(data)
    for _ in range(count):
        if at + _HEAD.size > end:
            raise MalformedFrame(f"a frame of {end} octets ends early")
        (size,) = _COUNT.unpack_from(data, at + _HEAD.size - 4)
        start = at + _HEAD.size
        if start + size > end:
            raise MalformedFrame(f"a sample of {size} octets reaches past the frame's {end}")
        yield *_read(0).unpack_from(data, at)[:-1], data[start : start + size]
        at = (start + size + 3) & ~3


def _lifespan_ns(octets: bytes) -> Nanoseconds:
    sec, nanosec = struct.unpack("<iI", octets)
    return INFINITE_NS if sec == 0x7FFF_FFFF else int(sec * SECOND_NS + nanosec)


def pack_answer(identity: SampleIdentity, response: int) -> bytes:
    """Return the octets of one acknowledgment inside a frame."""
    number = identity.sequence_number
    return _ANSWER.pack(identity.writer_guid, number >> 32, number & 0xFFFF_FFFF, response)


def pack_answers(answers: Iterable[WriteAcknowledgment | Acknowledgment]) -> list[bytes]:
    """Return the octets of each acknowledgment inside a frame."""
    pack = _ANSWER.pack
    packed: list[bytes] = []
    for each in answers:  # a call of `pack_answer` for each takes as long as all else
        identity = each.identity
        number = identity.sequence_number
        packed.append(pack(identity.writer_guid, number >> 32, number & 0xFFFF_FFFF, each.response))
    return packed


def flags_of(write: Write) -> int:
    """Return the flags of a sample on the wire."""
    return write.flags & FLAGS_MASK | write.attempt << _ATTEMPT_SHIFT


def pack_replica_answers(answers: Iterable[WriteAcknowledgment]) -> list[bytes]:
    """Return the octets of each answer of a replica inside a frame: with the attempt it answers, and the reason."""
    return [
        pack_answer(
            each.identity,
            each.response | each.attempt << _ATTEMPT_SHIFT | (LACKS_MASTER if each.lacks_master else 0)
            if each.attempt
            else each.response,
        )
        for each in answers
    ]


def answer_of(queue: str, identity: SampleIdentity, response: int) -> WriteAcknowledgment:
    """Return the acknowledgment that a response on the wire is for a producer."""
    kind = AckResponse.ACCEPTED if response & RESPONSE_MASK == AckResponse.ACCEPTED else AckResponse.REJECTED
    return WriteAcknowledgment(queue, identity, kind, 0, response >> _ATTEMPT_SHIFT, bool(response & LACKS_MASTER))


def answers_of(sender: bytes, queue_name: str, packed: Sequence[bytes]) -> bytes:
    """Return an acknowledgment frame from packed ones. `queue_name` is at most 255 octets."""
    name = queue_name.encode() + b"\0"
    return b"".join(
        (
            ENCAPSULATION,
            _ANSWERS_HEAD.pack(sender, len(packed)),
            *packed,
            _COUNT.pack(len(name)),
            name,
        )
    )


def parse_answers(data: bytes) -> AnswerFrame:
    """Return the inverse of `answers_of`.

    Raises:
        MalformedFrame: the octets end early, claim more than they hold, or name no queue.
    """
    _require_little_endian(data)
    try:
        sender, count = _ANSWERS_HEAD.unpack_from(data, 4)
        at = 4 + _ANSWERS_HEAD.size
        stop = at + count * _ANSWER.size
        if stop + 4 > len(data):
            raise MalformedFrame(f"a frame of {len(data)} octets claims {count} acknowledgments")
        identities, responses = [], []
        writer = NIL_GUID
        for guid, high, low, response in _ANSWER.iter_unpack(memoryview(data)[at:stop]):
            if guid != writer:
                writer = guid
            identities.append(SampleIdentity(writer, high << 32 | low))
            responses.append(response)
        (size,) = _COUNT.unpack_from(data, stop)
    except struct.error as error:
        raise MalformedFrame(f"an acknowledgment frame of {len(data)} octets ends early") from error
    name = data[stop + 4 : stop + 4 + size]
    if len(name) != size or not name.endswith(b"\0"):
        raise MalformedFrame("an acknowledgment frame without its queue's name")
    try:
        return AnswerFrame(sender, name[:-1].decode(), identities, responses)
    except UnicodeDecodeError as error:
        raise MalformedFrame("an acknowledgment frame with a queue name that is not UTF-8") from error


def parse_consumer_answers(data: bytes) -> AnswerFrame:
    """Return the acknowledgments of a consumer: as `parse_answers`, with its GUID and the responses checked.

    Raises:
        MalformedFrame: as `parse_answers`; or no consumer sent it, or a response is none of 0 to 2.
    """
    frame = parse_answers(data)
    if frame.sender == NIL_GUID:
        # A sample that no consumer holds has the nil GUID as its holder's: such an answer must never be looked up.
        raise MalformedFrame("an acknowledgment frame without its sender")
    if not {*frame.responses} <= _RESPONSES:
        raise MalformedFrame(f"a response is {max(frame.responses)}; 0 to 2 are read")
    return frame


def example_frames() -> tuple[bytes, bytes]:
    """Return one frame of each kind with no member at its default, for the start-up test of `raw`."""
    guids = [Guid(bytes([digit]) * 16) for digit in range(1, 6)]
    first = SampleIdentity(guids[0], 2**33 + 5)
    second = SampleIdentity(guids[3], 7)
    samples = [
        pack_sample(first, b"12345", guids[1], guids[2], second, guids[4], 5, 3 * SECOND_NS + 4),
        pack_sample(second, b"1234", guids[1], guids[2], first, guids[4], 1),
    ]
    return frame_of(samples), answers_of(guids[0], "Topic@Subscriber", [pack_answer(first, 1), pack_answer(second, 0)])


def _require_little_endian(data: bytes) -> None:
    if data[:2] != ENCAPSULATION[:2]:
        raise MalformedFrame(f"a frame with the encapsulation {data[:2].hex()}; 0001 (little-endian CDR) is read")
