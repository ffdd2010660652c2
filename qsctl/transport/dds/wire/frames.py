"""Many samples in one DDS sample: packing and parsing with one `struct` call each.

Decides: the bytes of `RTI::QueuingService::SampleFrame` and `…::AcknowledgmentFrame` in little-endian XCDR1. Every
member of a sample is aligned to four octets, so that a frame's layout is one fixed head a sample, its payload, and
padding to four. The service reads samples and answers with consecutive numbers as runs, by comparing their octets.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate, repeat
from operator import itemgetter
from typing import Any, Final, NamedTuple, TypeAlias

from msgspec.structs import replace

from qsctl.core.client.consumer import Arrivals, QueueEnd, SampleAnswers
from qsctl.core.client.producer import OutgoingRun
from qsctl.core.messages import (
    EPOCH_SHIFT,
    FLAGS_MASK,
    RUN_SAMPLES_MIN,
    Acknowledgment,
    AckResponse,
    Delivery,
    QueueName,
    RunAccepted,
    RunAcknowledgment,
    RunDelivery,
    SampleFlag,
    Write,
    WriteAcknowledgment,
    WriteRun,
)
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

_SIZE_OF: Final = itemgetter(-2)
"""The size of the payload, in the members of a sample as `_read` gives them."""

SampleOctets: TypeAlias = tuple[bytes, bytes, bytes, bytes]
"""A sample that a queue sent, as octets: flags and lifespan; identity, which is also its key; source, relations,
addressee and size; payload."""

_HEAD_OF: Final = itemgetter(0)
_KEY_OF: Final = itemgetter(1)
_TAIL_OF: Final = itemgetter(2)
_KEY: Final = struct.Struct("<16siI")
_KEY_AT: Final = 12
_TAIL_AT: Final = _KEY_AT + _KEY.size
_LOW_AT: Final = _TAIL_AT - _COUNT.size
"""Offset of the lower half of the number, the only member that differs within a run, besides size and payload."""
_RUN_HEAD: Final = struct.Struct(f"<{_LOW_AT}sI{_ROUTE.size}sI")
_END_OF_QUEUE: Final = int(SampleFlag.END_OF_QUEUE)

_RESPONSE_OCTETS: Final = {response: _COUNT.pack(response) for response in AckResponse}
_WORDS_OF_ANSWER: Final = _ANSWER.size // _COUNT.size
_LOW_WORD_OF_ANSWER: Final = _KEY.size // _COUNT.size - 1

_RESPONSES: Final = frozenset(map(int, AckResponse))
_ACCEPTED: Final = int(AckResponse.ACCEPTED)
_RESPONSE_OF: Final = {int(response): response for response in AckResponse}

_COMMON: Final = struct.Struct("<I8s16si")
"""Flags, lifespan, writer and the upper half of the sequence number: equal in all samples of a run."""

_NUMBER: Final = struct.Struct("<iI")
_WRITER: Final = struct.Struct("<16si")
_ANSWERED: Final = struct.Struct("<20sII")
"""An acknowledgment with the writer and the upper half of the sequence number as one string of octets."""

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
    """Return the same layout for reading runs: all before the lower half of the number is one string of octets."""
    return struct.Struct(f"<{_LOW_AT}sI{_ROUTE.size}sI{size}s{-size & 3}x")


@lru_cache(64)
def _parts(size: int) -> struct.Struct:
    """Return the same layout for `SampleOctets`."""
    return struct.Struct(f"<{_KEY_AT}s{_KEY.size}s{_HEAD.size - _TAIL_AT}s{size}s{-size & 3}x")


@lru_cache(64)
def _of_run(size: int) -> struct.Struct:
    """Return the same layout for samples of a run: the octets around the lower half of the number are equal."""
    return struct.Struct(f"<{_LOW_AT}sI{_HEAD.size - _TAIL_AT}s{size}s{-size & 3}x")


class MalformedFrame(Malformed):
    """An error for a peer's octets that are not a frame: the message is refused and counted."""


class ConsumerAnswers(NamedTuple):
    """The acknowledgments of one consumer for one queue."""

    sender: Guid
    answers: list[Acknowledgment | RunAcknowledgment]


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


def pack_run(run: OutgoingRun) -> list[bytes]:
    """Return the octets of each sample of a run inside a frame."""
    traits, payloads, number = run.traits, run.payloads, run.first_number
    first = pack_sample(
        SampleIdentity(run.writer_guid, number), payloads[0], run.source_guid, traits.related_source_guid,
        traits.related_identity, NIL_GUID, traits.flags, traits.lifespan_ns,
    )  # fmt: skip
    return _pack_numbered(first, range(number, number + len(payloads)), payloads)


def _pack_delivered(run: RunDelivery) -> list[bytes]:
    """Return the octets of each sample of a run in a frame for its consumer."""
    identity, step = run.identity, run.step
    payloads: Sequence[bytes] = run.payloads  # type: ignore[assignment]  # the driver puts payloads back before
    first = pack_sample(
        identity, payloads[0], run.source_guid, run.related_source_guid, run.related_identity, run.consumer_guid,
        run.flags,
    )  # fmt: skip
    number = identity.sequence_number
    packed = _pack_numbered(first, range(number, number + step * len(payloads), step), payloads)
    if run.last_flags != run.flags:
        packed[-1] = _COUNT.pack(run.last_flags) + packed[-1][_COUNT.size :]
    return packed


def _pack_numbered(first: bytes, numbers: range, payloads: Sequence[bytes]) -> list[bytes]:
    """Return the octets of samples that have all but number and payload in common with the first one.

    Args:
        first: the octets of the first sample.
        numbers: the sequence number of each.
        payloads: the payload of each.
    """
    low = numbers[0] & 0xFFFF_FFFF
    lows = range(low, low + numbers[-1] - numbers[0] + 1, numbers.step)
    if lows[-1] >= 2**32:  # the upper half of the number changes on the way
        at = next(at for at, each in enumerate(lows) if each >= 2**32)
        later = first[: _LOW_AT - 4] + _NUMBER.pack(numbers[at] >> 32, 0) + first[_TAIL_AT:]
        return [
            *_pack_numbered(first, numbers[:at], payloads[:at]),
            *_pack_numbered(later, numbers[at:], payloads[at:]),
        ]
    head, route, sizes = first[:_LOW_AT], first[_TAIL_AT : _TAIL_AT + _ROUTE.size], list(map(len, payloads))
    if sizes.count(sizes[0]) == len(sizes):
        tail = route + _COUNT.pack(sizes[0])
        return list(map(_of_run(sizes[0]).pack, repeat(head), lows, repeat(tail), payloads))
    pack = _RUN_HEAD.pack
    return [
        pack(head, each, route, size) + payload + PADDING[size & 3]
        for each, size, payload in zip(lows, sizes, payloads, strict=True)
    ]


def pack_deliveries(deliveries: Iterable[Delivery | RunDelivery]) -> list[bytes]:
    """Return the octets of each sample in a frame for its consumer, whose GUID becomes the related reader.

    Every delivery must have its payload.
    """
    packed: list[bytes] = []
    size, pack = -1, _plain(0).pack
    for each in deliveries:
        if type(each) is RunDelivery:
            packed += _pack_delivered(each)
            continue
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


def delivery_frames(deliveries: Sequence[Delivery | RunDelivery]) -> list[tuple[bytes, list[int]]]:
    """Return frames of deliveries to a consumer, of at most `FRAME_BYTES_TARGET` octets, each with its positions.

    Every delivery must have its payload.
    """
    positions: list[int] = []
    for each in deliveries:
        if type(each) is Delivery:
            positions.append(each.position)
        else:
            positions += each.positions()
    cut: list[tuple[bytes, list[int]]] = []
    at = 0
    for frame, count in frames_of(pack_deliveries(deliveries)):
        cut.append((frame, positions[at : at + count]))
        at += count
    return cut


def frame_of(packed: Sequence[bytes]) -> bytes:
    """Return a frame from packed samples."""
    return b"".join((ENCAPSULATION, _COUNT.pack(len(packed)), *packed))


def frames_of(packed: Iterable[bytes]) -> list[tuple[bytes, int]]:
    """Return frames of at most `FRAME_BYTES_TARGET` octets, each with the number of samples in it."""
    packed = list(packed)
    frames: list[tuple[bytes, int]] = []
    ends = list(accumulate(map(len, packed)))
    at = begin = 0
    while at < len(packed):
        to = bisect_right(ends, begin + FRAME_BYTES_TARGET, at, min(at + FRAME_SAMPLES_MAX, len(ends)))
        group = packed[at : max(to, at + 1)]
        frames.append((frame_of(group), len(group)))
        at += len(group)
        begin = ends[at - 1]
    return frames


def parse_frame(data: bytes, participant: str, topic_name: str) -> list[Write | WriteRun]:
    """Return the samples of a frame as messages to a topic: those with consecutive numbers and equal members as runs.

    Raises:
        MalformedFrame: the octets end early or claim more than they hold, or a number is negative, which no store and
            no other replica would accept.
    """
    samples = _samples(data)
    if len(samples) < RUN_SAMPLES_MIN:
        return [*_writes(samples, participant, topic_name)]
    messages: list[Write | WriteRun] = []
    heads, lows, routes, _, payloads = zip(*samples, strict=True)
    count, start, done = len(samples), 0, 0
    while start < count:
        head, low, route = heads[start], lows[start], routes[start]
        stop = start + 1
        while stop < count and lows[stop] == low + stop - start and heads[stop] == head and routes[stop] == route:
            stop += 1
        if stop - start >= RUN_SAMPLES_MIN and (run := _run_of(head, low, route, participant, topic_name)) is not None:
            messages += _writes(samples[done:start], participant, topic_name)
            messages.append(replace(run, payloads=payloads[start:stop]))
            done = stop
        start = stop
    messages += _writes(samples[done:], participant, topic_name)
    return messages


def _run_of(head: bytes, low: int, route: bytes, participant: str, topic_name: str) -> WriteRun | None:
    """Return a run that begins with this sample, without payloads; None if its number is negative."""
    flags, lifespan, writer, high = _COMMON.unpack(head)
    if high < 0:
        return None
    identity = SampleIdentity(writer, high << 32 | low)
    lifespan_ns = INFINITE_NS if lifespan == _INFINITE_OCTETS else _lifespan_ns(lifespan)
    attempt = flags >> _ATTEMPT_SHIFT
    return WriteRun(
        participant, topic_name, identity, (), *_members_of(route), flags & FLAGS_MASK, lifespan_ns, attempt
    )


def _writes(samples: Sequence[tuple[Any, ...]], participant: str, topic_name: str) -> list[Write]:
    """Return samples as single messages."""
    writes: list[Write] = []
    flags, lifespan, writer, high = 0, b"", NIL_GUID, 0
    former = b""
    for head, low, route, _, payload in samples:
        # The samples of a frame mostly have all this in common: one object each, found in the cache and hashed once.
        if head != former:
            former = head
            flags, lifespan, writer, high = _COMMON.unpack(head)
            if high < 0:
                raise MalformedFrame(f"a sequence number is {high << 32 | low}; 0 and more are read")
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


def parse_arrivals(data: bytes) -> list[Arrivals[bytes, SampleOctets] | QueueEnd]:
    """Return the samples of a frame for a consumer, by their keys: those of one epoch together.

    Raises:
        MalformedFrame: the octets end early or claim more than they hold.
    """
    found = _split(data)
    for tail in set(map(_TAIL_OF, found)):
        _members_of(tail[: _ROUTE.size])
    flags = {_flags_in(head) for head in set(map(_HEAD_OF, found))}
    epochs = {each >> EPOCH_SHIFT for each in flags}
    if len(epochs) == 1 and not any(each & _END_OF_QUEUE for each in flags):
        return [Arrivals(dict(zip(map(_KEY_OF, found), found, strict=True)), epochs.pop())]
    return [_arrival(each) for each in found]


def _arrival(octets: SampleOctets) -> Arrivals[bytes, SampleOctets] | QueueEnd:
    head, key, _, _ = octets
    flags, identity = _flags_in(head), identity_of(key)
    if flags & _END_OF_QUEUE and identity.writer_guid == NIL_GUID:
        return QueueEnd(identity.sequence_number, flags >> EPOCH_SHIFT)
    return Arrivals({key: octets}, flags >> EPOCH_SHIFT)


def _flags_in(head: bytes) -> int:
    (flags,) = _COUNT.unpack_from(head)
    return int(flags)


def delivery_of(octets: SampleOctets, queue: str, consumer_guid: Guid) -> Delivery:
    """Return a sample as a delivery to a consumer of a queue."""
    head, key, tail, payload = octets
    source, related_source, related, reader = _members_of(tail[: _ROUTE.size])
    return Delivery(
        queue, consumer_guid, 0, identity_of(key), payload, source, related_source, related, reader, _flags_in(head),
        _attempt_of(head[_COUNT.size :]),
    )  # fmt: skip


def flags_of_octets(octets: SampleOctets) -> int:
    """Return the flags of a sample."""
    return _flags_in(octets[0])


def identity_of(key: bytes) -> SampleIdentity:
    """Return the identity of a sample from its key."""
    guid, high, low = _KEY.unpack(key)
    return SampleIdentity(guid, high << 32 | low)


def key_of(identity: SampleIdentity) -> bytes:
    """Return the key of a sample: the octets of its identity on the wire."""
    number = identity.sequence_number
    return _KEY.pack(identity.writer_guid, number >> 32, number & 0xFFFF_FFFF)


def _attempt_of(lifespan: bytes) -> int:
    """Return the number of the attempt that a lifespan holds; 1 where another implementation sends a real lifespan."""
    seconds, attempt = _TIME.unpack(lifespan)
    return max(int(attempt), 1) if seconds == _INFINITE[0] and lifespan != _INFINITE_OCTETS else 1


@lru_cache(64)
def _members_of(route: bytes) -> tuple[Guid, Guid, SampleIdentity, Guid]:
    """Return source GUID, related source GUID, related identity and related reader GUID."""
    source, related_source, guid, high, low, reader = _ROUTE.unpack(route)
    if high < 0:
        raise MalformedFrame(f"a related sequence number is {high << 32 | low}; 0 and more are read")
    related = SampleIdentity(guid, high << 32 | low)
    return source, related_source, NIL_IDENTITY if related == NIL_IDENTITY else related, reader


def _samples(data: bytes) -> Sequence[tuple[Any, ...]]:
    """Return the members of each sample, as `_read` gives them."""
    count, size = _count_and_size(data)
    plain = _read(size)
    stop = 8 + count * plain.size
    if stop <= len(data):
        found = list(plain.iter_unpack(memoryview(data)[8:stop]))
        if set(map(_SIZE_OF, found)) <= {size}:
            return found
    read = _read(0)
    return [(*read.unpack_from(data, at)[:-1], data[start:stop]) for at, start, stop in _walk(data, count)]


def _split(data: bytes) -> list[SampleOctets]:
    """Return each sample as octets."""
    count, size = _count_and_size(data)
    plain = _parts(size)
    stop = 8 + count * plain.size
    if stop <= len(data):
        found = list(plain.iter_unpack(memoryview(data)[8:stop]))
        size_octets = _COUNT.pack(size)
        if all(tail.endswith(size_octets) for tail in set(map(_TAIL_OF, found))):
            return found
    return [
        (data[at : at + _KEY_AT], data[at + _KEY_AT : at + _TAIL_AT], data[at + _TAIL_AT : start], data[start:stop])
        for at, start, stop in _walk(data, count)
    ]


def _count_and_size(data: bytes) -> tuple[int, int]:
    """Return the number of samples in a frame, and the size of the first payload; 0 and 0 for none."""
    _require_little_endian(data)
    end = len(data)
    if end < 8:
        raise MalformedFrame(f"a frame of {end} octets ends early")
    (count,) = _COUNT.unpack_from(data, 4)
    if not count:
        return 0, 0
    if count > (end - 8) // _HEAD.size:
        raise MalformedFrame(f"a frame of {end} octets claims {count} samples")
    (size,) = _COUNT.unpack_from(data, 8 + _HEAD.size - 4)
    if size > end:
        raise MalformedFrame(f"a sample of {size} octets reaches past the frame's {end}")
    return count, size


def _walk(data: bytes, count: int) -> Iterator[tuple[int, int, int]]:
    """Yield where each of several samples begins, and where its payload does and ends, one after the other; the last
    one's padding may be missing.
    """
    at, end = 8, len(data)
    for _ in range(count):
        if at + _HEAD.size > end:
            raise MalformedFrame(f"a frame of {end} octets ends early")
        (size,) = _COUNT.unpack_from(data, at + _HEAD.size - 4)
        start = at + _HEAD.size
        if start + size > end:
            raise MalformedFrame(f"a sample of {size} octets reaches past the frame's {end}")
        yield at, start, start + size
        at = (start + size + 3) & ~3


def _lifespan_ns(octets: bytes) -> Nanoseconds:
    sec, nanosec = struct.unpack("<iI", octets)
    return INFINITE_NS if sec == 0x7FFF_FFFF else int(sec * SECOND_NS + nanosec)


def pack_answer(identity: SampleIdentity, response: int) -> bytes:
    """Return the octets of one acknowledgment inside a frame."""
    number = identity.sequence_number
    return _ANSWER.pack(identity.writer_guid, number >> 32, number & 0xFFFF_FFFF, response)


def pack_answers(answers: Iterable[WriteAcknowledgment | RunAccepted | Acknowledgment]) -> list[bytes]:
    """Return the octets of each acknowledgment inside a frame."""
    pack = _ANSWER.pack
    packed: list[bytes] = []
    for each in answers:  # a call of `pack_answer` for each takes as long as all else
        identity = each.identity
        number = identity.sequence_number
        if type(each) is RunAccepted:
            writer = identity.writer_guid
            numbers = range(number, number + each.count)
            packed += [pack(writer, number >> 32, number & 0xFFFF_FFFF, _ACCEPTED) for number in numbers]
        else:
            packed.append(pack(identity.writer_guid, number >> 32, number & 0xFFFF_FFFF, each.response))
    return packed


def flags_of(write: Write) -> int:
    """Return the flags of a sample on the wire."""
    return write.flags & FLAGS_MASK | write.attempt << _ATTEMPT_SHIFT


def pack_replica_answers(answers: Iterable[WriteAcknowledgment | RunAccepted]) -> list[bytes]:
    """Return the octets of each answer of a replica inside a frame: with the attempt it answers, and the reason."""
    packed: list[bytes] = []
    for each in answers:
        if type(each) is WriteAcknowledgment and each.attempt:
            reason = LACKS_MASTER if each.lacks_master else 0
            packed.append(pack_answer(each.identity, each.response | each.attempt << _ATTEMPT_SHIFT | reason))
        else:
            packed += pack_answers((each,))
    return packed


def answer_of(queue: str, identity: SampleIdentity, response: int) -> WriteAcknowledgment:
    """Return the acknowledgment that a response on the wire is for a producer."""
    kind = AckResponse.ACCEPTED if response & RESPONSE_MASK == AckResponse.ACCEPTED else AckResponse.REJECTED
    return WriteAcknowledgment(queue, identity, kind, 0, response >> _ATTEMPT_SHIFT, bool(response & LACKS_MASTER))


def answers_of(sender: bytes, queue_name: str, packed: Sequence[bytes]) -> bytes:
    """Return an acknowledgment frame from packed ones. `queue_name` is at most 255 octets."""
    return _answer_frame(sender, queue_name, b"".join(packed))


def answer_frames(sender: bytes, queue_name: str, answers: Iterable[SampleAnswers[bytes]]) -> list[bytes]:
    """Return acknowledgment frames of answers to samples, which are given by their keys."""
    octets = ((_RESPONSE_OCTETS[each.response], each.keys) for each in answers)
    packed = b"".join([part for response, keys in octets for part in (response.join(keys), response)])
    step = ANSWERS_MAX * _ANSWER.size
    return [_answer_frame(sender, queue_name, packed[at : at + step]) for at in range(0, len(packed), step)]


def _answer_frame(sender: bytes, queue_name: str, packed: bytes) -> bytes:
    name = queue_name.encode() + b"\0"
    head = _ANSWERS_HEAD.pack(sender, len(packed) // _ANSWER.size)
    return b"".join((ENCAPSULATION, head, packed, _COUNT.pack(len(name)), name))


class AnswerRuns(NamedTuple):
    """The acknowledgments of one sender for one queue to one producer.

    `whole_count`: all in the frame. `runs`: the numbers of the producer's samples, and the response to them.
    """

    sender: Guid
    queue_name: str
    whole_count: int
    runs: list[tuple[range, int]]


def parse_answer_runs(data: bytes, writer_guid: Guid) -> AnswerRuns:
    """Return the answers in a frame to the samples of a writer, those to others left out.

    Raises:
        MalformedFrame: the octets end early, claim more than they hold, or name no queue.
    """
    sender, name, packed = _answer_parts(data)
    count = len(packed) // _ANSWER.size
    runs: list[tuple[range, int]] = []
    if count:
        guid, high, low, response = _ANSWER.unpack_from(packed)
        first = high << 32 | low
        if guid == writer_guid and low + count <= 2**32 and packed == _consecutive(packed[: _ANSWER.size], low, count):
            return AnswerRuns(sender, name, count, [(range(first, first + count), response)])
    for guid, high, low, response in _ANSWER.iter_unpack(packed):
        number = high << 32 | low
        if guid != writer_guid:
            continue
        if runs and (number, response) == (runs[-1][0].stop, runs[-1][1]):
            runs[-1] = range(runs[-1][0].start, number + 1), response
        else:
            runs.append((range(number, number + 1), response))
    return AnswerRuns(sender, name, count, runs)


def _consecutive(packed: bytes, low: int, count: int) -> bytearray:
    """Return one packed answer again and again, with the lower halves of its number counted up."""
    answers = bytearray(packed * count)
    numbers = struct.pack(f"<{count}I", *range(low, low + count))
    memoryview(answers).cast("I")[_LOW_WORD_OF_ANSWER::_WORDS_OF_ANSWER] = memoryview(numbers).cast("I")
    return answers


def _answer_parts(data: bytes) -> tuple[Guid, str, bytes]:
    """Return the sender of an acknowledgment frame, the name of its queue, and the packed acknowledgments."""
    _require_little_endian(data)
    try:
        sender, count = _ANSWERS_HEAD.unpack_from(data, 4)
        at = 4 + _ANSWERS_HEAD.size
        stop = at + count * _ANSWER.size
        if stop + 4 > len(data):
            raise MalformedFrame(f"a frame of {len(data)} octets claims {count} acknowledgments")
        (size,) = _COUNT.unpack_from(data, stop)
    except struct.error as error:
        raise MalformedFrame(f"an acknowledgment frame of {len(data)} octets ends early") from error
    name = data[stop + 4 : stop + 4 + size]
    if len(name) != size or not name.endswith(b"\0"):
        raise MalformedFrame("an acknowledgment frame without its queue's name")
    try:
        return sender, name[:-1].decode(), data[at:stop]
    except UnicodeDecodeError as error:
        raise MalformedFrame("an acknowledgment frame with a queue name that is not UTF-8") from error


def parse_consumer_answers(data: bytes, queue: QueueName) -> ConsumerAnswers:
    """Return the acknowledgments of a consumer of a queue, acceptances at a constant step as runs.

    Raises:
        MalformedFrame: as of `parse_answer_runs`; or no consumer sent it, or a response is none of 0 to 2.
    """
    sender, _, octets = _answer_parts(data)
    if sender == NIL_GUID:
        # A sample that no consumer holds has the nil GUID as its holder's: such an answer must never be looked up.
        raise MalformedFrame("an acknowledgment frame without its sender")
    found = list(_ANSWERED.iter_unpack(octets))
    answers: list[Acknowledgment | RunAcknowledgment] = []
    if not found:
        return ConsumerAnswers(sender, answers)
    heads, lows, responses = zip(*found, strict=True)
    if not _RESPONSES.issuperset(responses):
        raise MalformedFrame(f"a response is {max(responses)}; 0 to 2 are read")
    if (count := len(found)) < RUN_SAMPLES_MIN:
        for guid, high, low, response in _ANSWER.iter_unpack(octets):
            identity = SampleIdentity(guid, high << 32 | low)
            answers.append(Acknowledgment(queue, sender, identity, _RESPONSE_OF[response]))
        return ConsumerAnswers(sender, answers)
    start = 0
    while start < count:
        head, low = heads[start], lows[start]
        writer, high = _WRITER.unpack(head)
        stop, step = start + 1, lows[start + 1] - low if start + 1 < count else 0
        if step > 0 and writer != NIL_GUID:  # an acknowledgment with the nil GUID is a question
            while (
                stop < count
                and lows[stop] == low + step * (stop - start)
                and responses[stop - 1] == _ACCEPTED == responses[stop]
                and heads[stop] == head
            ):
                stop += 1
        number = high << 32 | low
        if stop - start >= RUN_SAMPLES_MIN:
            answers.append(RunAcknowledgment(queue, sender, SampleIdentity(writer, number), stop - start, step))
        else:
            answers += [
                Acknowledgment(
                    queue, sender, SampleIdentity(writer, high << 32 | lows[at]), _RESPONSE_OF[responses[at]]
                )
                for at in range(start, stop)
            ]
        start = stop
    return ConsumerAnswers(sender, answers)


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
