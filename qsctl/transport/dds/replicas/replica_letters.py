"""Frames of replicas as octets and back: messages of one member to another, fragmented where they are long [QS 7.1].

Decides: which received octets may reach a replica. Data with a frame that no member can send are refused as a whole, at
the boundary, with sender and reason. A frame of a kind that this version does not know is skipped alone, as a field
that it does not know behind the last one is: both are of a later version (`versions`). Whether a member has written a
fragment is decided by `letter_signatures`.
"""

from __future__ import annotations

import struct
import typing
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import msgspec

from qsctl.core.high_availability.ballot import LEFT_MAX
from qsctl.core.high_availability.cluster_configuration import check_hostable
from qsctl.core.high_availability.frames import (
    Canvass,
    ConditionReport,
    Confirmed,
    Entries,
    Entry,
    Farewell,
    Frame,
    Heartbeat,
    Ordered,
    OrderedRun,
    Preference,
    Relayed,
    Roll,
    Snapshot,
    SnapshotPiece,
    Vote,
)
from qsctl.core.high_availability.versions import EARLIEST
from qsctl.core.records import (
    Assigned,
    AssignedRun,
    ConfigurationKnown,
    Enqueued,
    EnqueuedRun,
    EpochBegan,
    MembersChanged,
    Remembered,
    RemovedRun,
    ReplicaRejoined,
    Returned,
    RunRecord,
)
from qsctl.errors import UNREADABLE, QsctlError
from qsctl.identity import GUID_SIZE_BYTES, NIL_GUID
from qsctl.transport.dds.boundary import Malformed
from qsctl.transport.dds.wire.frames import ENCAPSULATION

PIECE_BYTES_MAX: Final = 56 * 1024
"""Octets of a message in one fragment; a fragment is one DDS sample, and one message on the wire."""

LETTER_BYTES_MAX: Final = 1024 * 1024 * 1024
"""Bound of an encoded message; a longer one is refused, since the queues of a group hold less in memory."""

NUMBER_MAX: Final = 2**63 - 1
"""Largest number of the format; the bound on how far an epoch may be ahead is `epochs`'s."""

LETTER_FORMAT: Final = 3
"""The format of letters: an array that begins with this number. It changes only where earlier members could not read a
letter at all. Letters of versions before 1.0 began with the names of the members."""

RUN_COUNT_MAX: Final = 65_536
"""Bound of the number of samples in one entry: a few octets must not be millions of entries."""

MEMBERS_MAX: Final = 64
KIND_CHARACTERS_MAX: Final = 32
"""Characters of the name of an unknown kind of frame in a report."""

_ARRAY_16: Final = 0xDC
"""The octet before the 16-bit count of a long array in msgpack; a short one has its count in its first octet."""
_LENGTH: Final = struct.Struct("<I")
_HEAD_BYTES: Final = len(ENCAPSULATION) + _LENGTH.size


class Letter(msgspec.Struct, frozen=True, array_like=True):
    """A message of one member to another.

    `members` are the names of all members that the sender knows, `version` is its version.
    """

    format: int
    members: tuple[str, ...]
    frames: tuple[Frame, ...]
    version: int = EARLIEST


class EncodedLetter(msgspec.Struct, frozen=True, array_like=True):
    """A `Letter` whose frames are encoded."""

    format: int
    members: tuple[str, ...]
    frames: tuple[msgspec.Raw, ...]
    version: int = EARLIEST


class Signature(msgspec.Struct, frozen=True, array_like=True):
    """The signature of a fragment for one run of a recipient, by the key of a number; see `letter_signatures`."""

    key: bytes
    run: str
    mac: bytes


class Piece(msgspec.Struct, frozen=True, array_like=True):
    """Fragment `index` of `count` of a message.

    `run` is the sender's process, which numbers its fragments; `number` is that of the first one of the message.
    """

    sender: str
    run: str
    number: int
    index: int
    count: int
    data: bytes
    signatures: tuple[Signature, ...] = ()


_encode = msgspec.msgpack.Encoder().encode
_decode_letter = msgspec.msgpack.Decoder(EncodedLetter).decode
_decode_frame: Final[Callable[[msgspec.Raw], Frame]] = msgspec.msgpack.Decoder(Frame).decode
_KINDS: Final = frozenset(each.__struct_config__.tag for each in typing.get_args(Frame))
_decode_any = msgspec.msgpack.Decoder(list[msgspec.Raw]).decode
_decode_version = msgspec.msgpack.Decoder(int).decode
_decode_kind = msgspec.msgpack.Decoder(str).decode
_decode_piece = msgspec.msgpack.Decoder(Piece).decode


def letters_of(members: Sequence[str], frames: Sequence[Frame], version: int) -> Iterator[EncodedLetter]:
    """Yield messages with these frames, in order; one without frames where there are none.

    A frame that would make a message longer than a fragment begins the next one: a receiver reads a message once it is
    complete, and confirms what is in it.
    """
    joined: list[msgspec.Raw] = []
    size_bytes = 0
    for frame in frames:
        data = _encode(frame)
        if joined and size_bytes + len(data) > PIECE_BYTES_MAX:
            yield EncodedLetter(LETTER_FORMAT, tuple(members), tuple(joined), version)
            joined, size_bytes = [], 0
        joined.append(msgspec.Raw(data))
        size_bytes += len(data)
    yield EncodedLetter(LETTER_FORMAT, tuple(members), tuple(joined), version)


def pieces_of(
    letter: Letter | EncodedLetter,
    sender: str,
    run: str,
    number: int,
    sign: Callable[[Piece], tuple[Signature, ...]] = lambda _: (),
) -> Iterator[bytes]:
    """Yield the fragments of an encoded message, each one sample in CDR.

    Args:
        letter: the message.
        sender: the name of the member that sends it.
        run: the process that sends it.
        number: of the message's first fragment in that run.
        sign: returns the signatures of a fragment.

    Raises:
        OverflowError: the message is longer than `LETTER_BYTES_MAX`.
    """
    data = _encode(letter)
    if len(data) > LETTER_BYTES_MAX:
        raise OverflowError(
            f"a replication message of {len(data)} octets is too long: at most {LETTER_BYTES_MAX} are allowed"
        )
    count = -(-len(data) // PIECE_BYTES_MAX)
    for index in range(count):
        part = data[index * PIECE_BYTES_MAX : (index + 1) * PIECE_BYTES_MAX]
        piece = Piece(sender, run, number, index, count, part)
        octets = _encode(msgspec.structs.replace(piece, signatures=sign(piece)))
        yield b"".join((ENCAPSULATION, _LENGTH.pack(len(octets)), octets, bytes(-len(octets) & 3)))


def piece_from_octets(data: bytes) -> Piece:
    """Decode a fragment.

    Raises:
        Malformed: the octets are not a fragment of a message.
    """
    if data[:2] != ENCAPSULATION[:2] or len(data) < _HEAD_BYTES:
        raise Malformed(f"{len(data)} octets are not a fragment of a replication message")
    (length,) = _LENGTH.unpack_from(data, len(ENCAPSULATION))
    if not 0 < length <= len(data) - _HEAD_BYTES:
        raise Malformed(f"a fragment states {length} octets, and has {len(data) - _HEAD_BYTES}")
    try:
        piece = _decode_piece(data[_HEAD_BYTES : _HEAD_BYTES + length])
    except UNREADABLE as error:
        raise Malformed(f"a fragment of a replication message cannot be decoded: {error}") from error
    if not (0 <= piece.index < piece.count <= LETTER_BYTES_MAX // PIECE_BYTES_MAX and piece.number >= 0):
        raise Malformed(
            f"fragment {piece.index} of {piece.count} of replication message {piece.number} is out of range"
        )
    if not 0 < len(piece.data) <= PIECE_BYTES_MAX:
        raise Malformed(f"a fragment has {len(piece.data)} octets; 1 to {PIECE_BYTES_MAX} are allowed")
    return piece


def letter_from_octets(data: bytes, sender: str, skip: Callable[[str], object]) -> Letter:
    """Decode a message and check its frames.

    Args:
        data: the octets.
        sender: the name of the member that sent them.
        skip: called with the reason for each part that is skipped, since only later versions know it.

    Raises:
        Malformed: the octets are not a message of this format, or a frame in it is not from `sender` or not valid.
    """
    try:
        received = _decode_letter(data)
    except UNREADABLE as error:
        raise Malformed(_of_another_format(data) or f"a replication message cannot be decoded: {error}") from error
    if received.format != LETTER_FORMAT:
        raise Malformed(_of_another_format(data))
    if len(received.members) > MEMBERS_MAX or len(set(received.members)) < len(received.members):
        raise Malformed(
            f"a replication message lists {len(received.members)} members, "
            f"of which at most {MEMBERS_MAX} are allowed, each once"
        )
    _check_numbers(received.version)
    _skip_fields("a replication message", data, len(Letter.__struct_fields__), received.version, skip)
    frames: list[Frame] = []
    for raw in received.frames:
        try:
            frame = _decode_frame(raw)
        except UNREADABLE as error:
            if (kind := _unknown_kind(raw)) is None:
                raise Malformed(f"a frame of a replication message cannot be decoded: {error}") from error
            skip(f"a frame of kind {kind!r} of a member of version {received.version}")
            continue
        if frame.sender != sender:
            raise Malformed(f"a frame is of {frame.sender!r}, and its replication message is of {sender!r}")
        _check(frame)
        _skip_fields(f"{type(frame).__name__}", raw, 1 + len(frame.__struct_fields__), received.version, skip)
        frames.append(frame)
    return Letter(received.format, received.members, tuple(frames), received.version)


def _unknown_kind(raw: msgspec.Raw) -> str | None:
    """Return the kind of a frame of a later version; None: the frame is of a known kind, or not a frame."""
    try:
        kind = _decode_kind(next(iter(_decode_any(raw)), msgspec.Raw()))
    except UNREADABLE:
        return None
    return None if kind in _KINDS else kind[:KIND_CHARACTERS_MAX]


def _skip_fields(
    what: str, data: bytes | msgspec.Raw, known_count: int, version: int, skip: Callable[[str], object]
) -> None:
    """Report the fields of an array behind the last known one, by the count with which its encoding begins."""
    head = bytes(memoryview(data)[:3])
    count = head[0] & 0xF if head[0] < _ARRAY_16 else int.from_bytes(head[1:3])
    if count > known_count:
        skip(f"{count - known_count} fields behind the last of {what} of a member of version {version}")


def _of_another_format(data: bytes) -> str:
    """Return the error for a message of another format; empty for one of this format, or other octets."""
    try:
        version = _decode_version(next(iter(_decode_any(data)), msgspec.Raw()))
    except UNREADABLE:
        try:
            msgspec.msgpack.decode(data, type=tuple[tuple[str, ...], list[msgspec.Raw]])
        except UNREADABLE:
            return ""
        version = 1
    if version == LETTER_FORMAT:
        return ""
    return (
        f"a replication message has format {version}, and this service reads format {LETTER_FORMAT}: "
        "run one version of qsctl on all members of a cluster"
    )


def _check(frame: Frame) -> None:
    _check_numbers(frame.epoch, abs(frame.incarnation))
    match frame:
        case Entries():
            _check_numbers(frame.previous_index, frame.previous_epoch, frame.commit_index, frame.sent_at_ns)
            _check_records(frame.records, frame.previous_epoch, frame.epoch)
            if frame.previous_epoch > frame.epoch:
                raise Malformed("entries follow one of a later epoch")
        case Heartbeat():
            _check_numbers(frame.index, frame.index_epoch, frame.commit_index, frame.sent_at_ns)
            if frame.index_epoch > frame.epoch:
                raise Malformed("a heartbeat follows an entry of a later epoch")
        case Snapshot():
            _check_numbers(frame.index, frame.index_epoch, frame.sent_at_ns)
            _check_records(frame.records, 0, frame.epoch)
            began = frame.records[0] if frame.records else None
            if not frame.index or not isinstance(began, EpochBegan) or began.epoch != frame.index_epoch:
                raise Malformed("a snapshot does not begin with its epoch")
        case SnapshotPiece():
            _check_numbers(frame.index, frame.index_epoch, frame.mark, frame.first, frame.sent_at_ns)
            _check_records(frame.records, 0, frame.epoch)
            if not frame.index or not frame.records or frame.first + len(frame.records) > frame.count:
                raise Malformed(
                    f"{len(frame.records)} records from {frame.first} on do not fit a snapshot of {frame.count}"
                )
            began = frame.records[0]
            if not frame.first and (not isinstance(began, EpochBegan) or began.epoch != frame.index_epoch):
                raise Malformed("a snapshot does not begin with its epoch")
        case Confirmed():
            _check_numbers(frame.run, frame.match_index, frame.sent_at_ns, frame.snapshot_mark, frame.snapshot_count)
        case Canvass():
            _check_numbers(frame.candidate_epoch, frame.last_epoch, frame.last_index)
        case Vote():
            _check_numbers(frame.candidate_epoch)
        case Roll():
            _check_numbers(frame.run, frame.last_epoch, frame.last_index, frame.answers or 0, *frame.left)
            _check_numbers(frame.floor_epoch, frame.floor_index)
            if len(frame.left) > LEFT_MAX:
                raise Malformed(
                    f"a replica reports {len(frame.left)} groups that it left; at most {LEFT_MAX} are allowed"
                )
        case Relayed():
            write = frame.write
            _check_numbers(write.lifespan_ns, write.attempt, write.flags, write.identity.sequence_number)
            _check_guids(write.source_guid, write.related_source_guid, write.related_reader_guid)
        case ConditionReport():
            _check_numbers(frame.applied_index)
        case Preference():
            _check_numbers(frame.run, frame.priority)
        case Farewell():
            pass


def _check_numbers(*numbers: int) -> None:
    for number in numbers:
        if not 0 <= number <= NUMBER_MAX:
            raise Malformed(f"a number in a frame is {number}; 0 to {NUMBER_MAX} are allowed")


def _check_guids(*guids: bytes) -> None:
    for guid in guids:
        if len(guid) != GUID_SIZE_BYTES:
            raise Malformed(f"a GUID has {len(guid)} octets; {GUID_SIZE_BYTES} are allowed")


def _check_records(records: Sequence[Entry], latest: int, epoch: int) -> None:
    for record in records:
        if type(record) is EpochBegan:
            if not latest <= record.epoch <= epoch:
                raise Malformed(f"epoch {record.epoch} begins in a frame of epoch {epoch}, after epoch {latest}")
            latest = record.epoch
        elif type(record) is Enqueued:
            if record.payload_from is not None:  # a replica keeps all payloads, and leaves them out as `Ordered`
                raise Malformed("an entry refers to a payload that it does not contain")
            if record.related_source_guid is not NIL_GUID:
                _check_guids(record.related_source_guid)
            _check_numbers(record.enqueued_at_ns, record.expires_at_ns, record.flags, record.dead_letter_position)
        elif type(record) is Assigned:
            _check_guids(record.consumer_guid)
            _check_numbers(record.attempt)
        elif type(record) is Ordered:
            _check_numbers(record.enqueued_at_ns, record.expires_at_ns, record.flags)
        elif isinstance(record, RunRecord | OrderedRun):
            _check_run(record)
        elif type(record) is Returned:
            _check_numbers(record.attempts)
            _check_guids(*record.past_holders)
        elif type(record) is Remembered:
            _check_numbers(record.next_position)
        elif type(record) is ReplicaRejoined:
            _check_numbers(record.run)
        elif type(record) is MembersChanged:
            names = (*record.voters, *record.learners)
            if not record.voters or len(set(names)) < len(names):
                raise Malformed("a list of members has no voters, or a name twice")
        elif type(record) is ConfigurationKnown:
            try:
                check_hostable(record)
            except QsctlError as error:
                raise Malformed(f"a configuration cannot be hosted: {error.message}") from error


def _check_run(run: RunRecord | OrderedRun) -> None:
    if not 0 < run.count <= RUN_COUNT_MAX:
        raise Malformed(f"an entry has {run.count} samples; 1 to {RUN_COUNT_MAX} are allowed")
    if isinstance(run, EnqueuedRun | OrderedRun):
        _check_numbers(run.enqueued_at_ns, run.expires_at_ns, run.flags)
        _check_numbers(run.identity.sequence_number + run.count, run.position + run.count)
    if isinstance(run, EnqueuedRun) and run.related_source_guid is not NIL_GUID:
        _check_guids(run.related_source_guid)
    elif isinstance(run, AssignedRun):
        _check_numbers(run.position + run.count)
        if not run.consumers:
            raise Malformed("samples are assigned, and no consumer is named")
    elif isinstance(run, RemovedRun):
        _check_numbers(run.position + run.count * run.step)
        if not run.step:
            raise Malformed("the samples of an entry have one position")


class Assembly:
    """The incomplete message of one sender. Fragments arrive in order; a missing one discards the message."""

    def __init__(self) -> None:
        self._of: tuple[str, int, int] | None = None
        self._parts: list[bytes] = []

    def add(self, piece: Piece) -> bytes | None:
        """Add a fragment; return the octets of the message if this is its last one, else None."""
        of = (piece.run, piece.number, piece.count)
        if piece.index == 0:
            self._of, self._parts = of, []
        if of != self._of or piece.index != len(self._parts):
            self._of, self._parts = None, []
            return None
        self._parts.append(piece.data)
        if len(self._parts) < piece.count:
            return None
        data = b"".join(self._parts)
        self._of, self._parts = None, []
        return data
