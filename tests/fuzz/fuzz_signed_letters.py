"""Fragments of signed letters, changed, mixed and repeated: what a member accepts was sent, and is accepted once."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections import Counter
from pathlib import Path

import msgspec

from qsctl.core.high_availability.frames import Entries, Frame, Vote
from qsctl.core.records import Enqueued
from qsctl.identity import Guid, SampleIdentity
from qsctl.transport.dds.boundary import Boundary, Malformed
from qsctl.transport.dds.replicas.letter_box import SILENCE_NS, LetterBox, Seen
from qsctl.transport.dds.replicas.letter_signatures import ClusterKeys, LetterDenial, LetterSigner
from qsctl.transport.dds.replicas.replica_letters import PIECE_BYTES_MAX, Piece, piece_from_octets
from tests.fuzz.target import MEMORY

STEPS_MAX = 64
A, B = Seen("A", "run of A", 0), Seen("B", "run of B", 0)
SAMPLE = Enqueued("P/S/Q", 1, SampleIdentity(Guid(b"w" * 16), 1), 1, 2, payload=bytes(PIECE_BYTES_MAX))
SENT: tuple[Frame, ...] = (
    *(Vote("P/S/Q", "A", epoch, epoch + 1, True, True) for epoch in range(4)),
    Entries("P/S/Q", "A", 3, 0, 0, (SAMPLE,), 0, 1),
)


def keys_of(octet: int) -> ClusterKeys:
    descriptor, name = tempfile.mkstemp(dir=MEMORY)
    with os.fdopen(descriptor, "w") as file:
        file.write(f"{octet:02x}" * 32)
    try:
        return ClusterKeys(Path(name))
    finally:
        Path(name).unlink()


KEYS, OTHER_KEYS = keys_of(1), keys_of(2)


def box_of(own: Seen, other: Seen, signer: LetterSigner | None) -> LetterBox:
    box = LetterBox(own, "letters", Boundary(lambda _: None), SILENCE_NS, lambda: 1, signer)
    box.appeared(1, other)
    return box


def fragments(signer: LetterSigner | None) -> list[Piece]:
    """The fragments of all letters, as A sends them."""
    box = box_of(A, B, signer)
    messages = [octets for frame in SENT for octets in box.messages(("B",), ("A", "B"), (frame,))]
    return [piece_from_octets(each) for octets in messages for each in octets]


GENUINE = fragments(LetterSigner(A.run, KEYS))
FALSE = [*fragments(None), *fragments(LetterSigner(A.run, OTHER_KEYS))]
DICTIONARY = tuple(bytes((number, step)) for number in range(len(GENUINE)) for step in range(9))


def changed(piece: Piece, step: int, number: int) -> Piece:
    """A fragment with a member of another value."""
    another, other_number = GENUINE[number % len(GENUINE)], number - 3
    match step:
        case 1:
            data = bytearray(piece.data)
            data[number * 7 % len(data)] ^= 1 << number % 8
            return msgspec.structs.replace(piece, data=bytes(data))
        case 2:
            return msgspec.structs.replace(piece, signatures=another.signatures)
        case 3:
            return msgspec.structs.replace(piece, number=max(0, piece.number + other_number))
        case 4:
            return msgspec.structs.replace(piece, index=another.index, count=another.count)
        case 5:
            return msgspec.structs.replace(piece, data=another.data)
        case 6:
            return msgspec.structs.replace(piece, signatures=piece.signatures * (number % 4))
        case 7:
            return FALSE[number % len(FALSE)]
        case _:
            return piece


def one_input(data: bytes) -> None:
    if not data:
        return
    box = box_of(B, A, LetterSigner(B.run, KEYS))
    received: Counter[Frame] = Counter()
    if data[0] & 128:
        with contextlib.suppress(Malformed):
            received.update(frame for each in box.receive(piece_from_octets(data[1:])) for frame in each.letter.frames)
        assert not received, "drawn octets are not signed"
        return
    for at in range(0, min(len(data), 3 * STEPS_MAX) - 2, 3):
        piece = changed(GENUINE[data[at] % len(GENUINE)], data[at + 1] % 9, data[at + 2])
        received.update(frame for each in box.receive(piece) for frame in each.letter.frames)
    assert set(received) <= set(SENT)
    assert max(received.values(), default=0) <= 1
    assert box._boundary.refused_letters.keys() <= set(LetterDenial)
