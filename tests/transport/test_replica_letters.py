"""Letters between replicas: what was sent comes, and what a stranger sends gets no further than the boundary."""

from __future__ import annotations

import contextlib
import random
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qsctl.core.high_availability.frames import (
    Canvass,
    ConditionReport,
    Confirmed,
    Entries,
    Entry,
    Farewell,
    Frame,
    Ordered,
    OrderedRun,
    Relayed,
    Roll,
    Snapshot,
    Vote,
)
from qsctl.core.high_availability.versions import EARLIEST, VERSION
from qsctl.core.messages import Write
from qsctl.core.records import (
    Assigned,
    AssignedRun,
    DeadLetterReason,
    Enqueued,
    EnqueuedRun,
    EpochBegan,
    Remembered,
    RemovalCause,
    Removed,
    RemovedRun,
    ReplicaRejoined,
    Returned,
    SendsAhead,
    Undeliverable,
)
from qsctl.identity import NIL_GUID, NIL_IDENTITY, Guid, SampleIdentity
from qsctl.transport.dds.boundary import Boundary, Malformed
from qsctl.transport.dds.diagnosis.peer_faults import FaultKind, PeerFault
from qsctl.transport.dds.replicas.letter_box import LetterBox, Seen
from qsctl.transport.dds.replicas.replica_letters import (
    LETTER_FORMAT,
    NUMBER_MAX,
    PIECE_BYTES_MAX,
    RUN_COUNT_MAX,
    Assembly,
    Letter,
    letter_from_octets,
    letters_of,
    piece_from_octets,
    pieces_of,
)

S, A, WRITER = "P/S/orders", "A", Guid(b"w" * 16)
IDENTITY = SampleIdentity(WRITER, 7)
BEGAN = EpochBegan(S, 3, "A", flags_all=False)
ENQUEUED = Enqueued(S, 4, IDENTITY, 5, 6, payload=b"payload")
ENQUEUED_RUN = EnqueuedRun(S, 4, IDENTITY, (b"one", b"other"), 5, 6, NIL_GUID, NIL_GUID, NIL_IDENTITY, NIL_GUID, 0)
ORDERED_RUN = OrderedRun(S, 4, IDENTITY, 2, 5, 6, 0)
ASSIGNED_RUN = AssignedRun(S, 4, 2, (WRITER,))
REMOVED_RUN = RemovedRun(S, 4, 2, 3, RemovalCause.DELIVERED)
FRAMES: tuple[Frame, ...] = (
    Canvass(S, A, 2, 3, 1, 9, True),
    Vote(S, A, 2, 3, True, False),
    Entries(S, A, 3, 8, 2, (BEGAN, ENQUEUED, Assigned(S, 4, WRITER, 1), Removed(S, 4, RemovalCause.DELIVERED)), 7, 99),
    Entries(S, A, 3, 8, 2, (Ordered(S, 4, IDENTITY, 5, 6, 4), BEGAN), 7, 99, lacks_payloads=True),
    Confirmed(S, A, 3, 12, 9, 99),
    Snapshot(S, A, 3, 9, 3, (BEGAN, ENQUEUED), 99),
    Roll(S, A, 3, 12, 2, 9, True, 11, -7, True, (5, 6), 2, 8),
    Relayed(S, A, 3, S, Write("P", "Orders", IDENTITY, b"payload", attempt=2)),
)


def none_skipped(reason: str) -> None:
    raise AssertionError(reason)


def received(letter: Letter) -> Letter | None:
    """What comes of a letter at its addressee."""
    assembly, data = Assembly(), None
    for octets in pieces_of(letter, A, "run", 1):
        assert len(octets) % 4 == 0
        data = assembly.add(piece_from_octets(octets))
    return None if data is None else letter_from_octets(data, A, none_skipped)


def test_a_letter_comes_as_it_was_sent() -> None:
    letter = Letter(LETTER_FORMAT, ("A", "B"), (*FRAMES, ConditionReport(S, A, 3, 9, True)), VERSION)
    assert received(letter) == letter


def test_entries_of_runs_come_as_they_were_sent() -> None:
    entries = Entries(S, A, 3, 8, 2, (ENQUEUED_RUN, ORDERED_RUN, ASSIGNED_RUN, REMOVED_RUN), 7, 99)
    letter = Letter(LETTER_FORMAT, ("A", "B"), (entries,), VERSION)
    assert received(letter) == letter


def test_a_long_letter_comes_in_pieces() -> None:
    entries = Entries(S, A, 3, 0, 0, (msgspec.structs.replace(ENQUEUED, payload=bytes(3 * PIECE_BYTES_MAX)),), 0, 1)
    letter = Letter(LETTER_FORMAT, (), (entries,))
    assert len(list(pieces_of(letter, A, "run", 1))) == 4
    assert received(letter) == letter


def test_a_long_frame_begins_a_letter_of_its_own() -> None:
    """A receiver reads a letter once it is complete: of eight frames in one it would confirm none before the last."""
    small = Vote(S, A, 3, 3, True, True)
    large = Entries(S, A, 3, 0, 0, (msgspec.structs.replace(ENQUEUED, payload=bytes(PIECE_BYTES_MAX)),), 0, 1)
    frames = (small, small, large, large, small)
    letters = list(letters_of((A,), frames, VERSION))
    assert [len(letter.frames) for letter in letters] == [2, 1, 1, 1]
    read = [letter_from_octets(msgspec.msgpack.encode(letter), A, none_skipped) for letter in letters]
    assert [frame for letter in read for frame in letter.frames] == [*frames]
    assert [len(letter.frames) for letter in letters_of((A,), (), VERSION)] == [0]


def test_a_letter_that_lacks_a_piece_is_none() -> None:
    entries = Entries(S, A, 3, 0, 0, (msgspec.structs.replace(ENQUEUED, payload=bytes(3 * PIECE_BYTES_MAX)),), 0, 1)
    pieces = [piece_from_octets(each) for each in pieces_of(Letter(LETTER_FORMAT, (), (entries,)), A, "run", 1)]
    assembly = Assembly()
    assert [assembly.add(each) for each in (pieces[0], *pieces[2:])] == [None] * 3
    other = [piece_from_octets(each) for each in pieces_of(Letter(LETTER_FORMAT, (), (entries,)), A, "run", 2)]
    mixed = [pieces[0], *other[1:]]
    assert [assembly.add(each) for each in mixed] == [None] * 4
    whole = [assembly.add(each) for each in other]
    assert whole[-1] is not None


OF_VERSION_3: dict[str, Frame] = dict(
    zip(("canvass", "vote", "entries", "ordered", "confirmed", "snapshot", "roll", "relayed"), FRAMES, strict=True)
) | {
    "heartbeat": Entries(S, A, 3, 8, 2, (), 7, 99, incarnation=-7),
    "farewell": Farewell(S, A, 3, "B", 7),
    "other_records": Entries(
        S, A, 3, 8, 2,
        (
            ReplicaRejoined(S, "B", 9), SendsAhead(S, True), Returned(S, 4, 1, True),
            Undeliverable(S, 4, DeadLetterReason.LIFESPAN),
        ),
        7, 99,
    ),
}  # fmt: skip
"""What the recorded letters contain, by the name of each."""


def recorded() -> Iterator[tuple[str, bytes]]:
    """The letters that version 3 wrote: name of each, and the octets of its only fragment."""
    for line in (Path(__file__).parent / "letters" / "version_3.txt").read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            case, digits = line.split()
            yield case, bytes.fromhex(digits)


@pytest.mark.parametrize(("case", "octets"), list(recorded()), ids=lambda each: each if type(each) is str else "")
def test_letters_that_version_3_wrote_are_read(case: str, octets: bytes) -> None:
    frames = {"all": tuple(OF_VERSION_3.values()), "members": ()}.get(case) or tuple(
        OF_VERSION_3[each] for each in (case,) if each in OF_VERSION_3
    )
    data = Assembly().add(piece_from_octets(octets))
    assert data is not None
    assert letter_from_octets(data, A, none_skipped) == Letter(LETTER_FORMAT, ("A", "B"), frames, EARLIEST)


def test_every_kind_of_frame_of_version_3_is_recorded() -> None:
    assert {case for case, _ in recorded()} == {*OF_VERSION_3, "all", "members"}


def box_of(faults: list[PeerFault]) -> LetterBox:
    """The end of B, which has discovered A."""
    boundary = Boundary(faults.append)
    box = LetterBox(Seen("B", "run", 0), "replicas", boundary)
    box.appeared(1, Seen("A", "run", 0))
    return box


def arrived(box: LetterBox, letter: Any) -> list[Letter]:
    """What B reads of a letter of A, of any content."""
    return [each.letter for octets in pieces_of(letter, A, "run", 1) for each in box.receive(piece_from_octets(octets))]


def test_unknown_kinds_of_frames_are_skipped_one_by_one_counted_and_reported_with_the_sender() -> None:
    faults: list[PeerFault] = []
    box = box_of(faults)
    vote, canvass = FRAMES[1], FRAMES[0]
    later = ("later", S, A, 3, "whatever", {"a": 1})
    (letter,) = arrived(box, (LETTER_FORMAT, ("A", "B"), (vote, later, canvass, later), VERSION + 1))
    assert letter == Letter(LETTER_FORMAT, ("A", "B"), (vote, canvass), VERSION + 1)
    boundary = box._boundary
    assert (boundary.skipped_count, boundary.refused_count) == (2, 0)
    assert [(each.kind, each.peer) for each in faults] == [(FaultKind.SKIPPED, "A")]
    assert "'later'" in faults[0].reason
    assert f"version {VERSION + 1}" in faults[0].reason


def test_fields_behind_the_last_known_one_are_skipped_counted_and_reported_with_the_sender() -> None:
    faults: list[PeerFault] = []
    box = box_of(faults)
    roll = (*msgspec.msgpack.decode(msgspec.msgpack.encode(FRAMES[6])), *range(20))
    (letter,) = arrived(box, (LETTER_FORMAT, ("A", "B"), (roll, FRAMES[1]), VERSION + 1, "more"))
    assert letter == Letter(LETTER_FORMAT, ("A", "B"), (FRAMES[6], FRAMES[1]), VERSION + 1)
    assert box._boundary.skipped_count == 2
    assert [each.kind for each in faults] == [FaultKind.SKIPPED]
    assert faults[0].reason.startswith("1 fields behind the last of a replication message")


@pytest.mark.parametrize("frame", [(), 7, ("later",), (7, S, A), ["vote", S], {"vote": 1}])
def test_a_frame_that_is_none_is_refused_and_one_of_a_later_version_is_skipped(frame: Any) -> None:
    box = box_of([])
    letters = arrived(box, (LETTER_FORMAT, (), (FRAMES[1], frame), VERSION + 1))
    is_later = frame == ("later",)
    assert [each.frames for each in letters] == [(FRAMES[1],)] * is_later
    assert (box._boundary.skipped_count, box._boundary.refused_count) == (int(is_later), int(not is_later))


def of_run(record: Entry, **changed: object) -> Entries:
    return Entries(S, A, 3, 8, 2, (msgspec.structs.replace(record, **changed),), 7, 99)


@pytest.mark.parametrize(
    "frame",
    [
        Canvass(S, "B", 2, 3, 1, 9, True),
        Canvass(S, A, NUMBER_MAX + 1, 3, 1, 9, True),
        Canvass(S, A, 2, -1, 1, 9, True),
        Entries(S, A, 3, -1, 2, (), 7, 99),
        Entries(S, A, 3, 8, 4, (), 7, 99),
        Entries(S, A, 3, 8, 2, (EpochBegan(S, 4, "A", flags_all=False),), 7, 99),
        Entries(S, A, 3, 8, 2, (msgspec.structs.replace(ENQUEUED, position=-1),), 7, 99),
        Entries(S, A, 3, 8, 2, (msgspec.structs.replace(ENQUEUED, source_guid=Guid(b"short")),), 7, 99),
        Entries(S, A, 3, 8, 2, (msgspec.structs.replace(ENQUEUED, payload=b"", payload_from=(S, 4)),), 7, 99, True),
        Confirmed(S, A, 3, 12, NUMBER_MAX + 1, 99),
        ConditionReport(S, A, 3, -1, True),
        Vote(S, A, 2, 3, True, False, -NUMBER_MAX - 1),
        Roll(S, A, 3, 12, 2, 9, True, 11, 0, False, tuple(range(65))),
        Roll(S, A, 3, 12, 2, 9, True, 11, 0, False, (-1,)),
        Roll(S, A, 3, 12, 2, 9, True, 11, 0, False, (), -1),
        Roll(S, A, 3, 12, 2, 9, True, 11, 0, False, (), 1, NUMBER_MAX + 1),
        Snapshot(S, A, 3, 9, 3, (ENQUEUED,), 99),
        Snapshot(S, A, 3, 0, 3, (BEGAN,), 99),
        Snapshot(S, A, 3, 9, 2, (BEGAN,), 99),
        Entries(S, A, 3, 8, 2, (EpochBegan(S, 1, "A", flags_all=False),), 7, 99),
        Entries(S, A, 3, 8, 2, (msgspec.structs.replace(ENQUEUED, expires_at_ns=-1),), 7, 99),
        Entries(S, A, 3, 8, 2, (Assigned(S, 4, Guid(b"short"), 1),), 7, 99),
        Entries(S, A, 3, 8, 2, (Remembered(S, NUMBER_MAX + 1, ()),), 7, 99),
        Relayed(S, A, 3, S, Write("P", "Orders", SampleIdentity(Guid(b""), 1), b"")),
        of_run(ENQUEUED_RUN, payloads=()),
        of_run(ENQUEUED_RUN, position=NUMBER_MAX - 1),
        of_run(ENQUEUED_RUN, identity=SampleIdentity(WRITER, NUMBER_MAX)),
        of_run(ENQUEUED_RUN, flags=-1),
        of_run(ENQUEUED_RUN, related_source_guid=Guid(b"short")),
        of_run(ORDERED_RUN, count=0),
        of_run(ORDERED_RUN, count=RUN_COUNT_MAX + 1),
        of_run(ORDERED_RUN, expires_at_ns=-1),
        of_run(ASSIGNED_RUN, consumers=()),
        of_run(ASSIGNED_RUN, consumers=(Guid(b"short"),)),
        of_run(ASSIGNED_RUN, count=0),
        of_run(ASSIGNED_RUN, position=NUMBER_MAX),
        of_run(REMOVED_RUN, step=0),
        of_run(REMOVED_RUN, step=NUMBER_MAX),
        of_run(REMOVED_RUN, count=RUN_COUNT_MAX + 1),
    ],
    ids=repr,
)
def test_a_frame_that_cannot_be_a_replica_s_is_refused(frame: Frame) -> None:
    with pytest.raises(Malformed):
        received(Letter(LETTER_FORMAT, (), (frame,)))


def test_a_letter_that_names_a_member_twice_is_refused() -> None:
    with pytest.raises(Malformed, match="2 members"):
        received(Letter(LETTER_FORMAT, ("A", "A"), ()))


@pytest.mark.parametrize(
    ("letter", "version"),
    [((("A", "B"), ()), 1), ((LETTER_FORMAT + 1, ("A", "B"), ("of another kind",)), LETTER_FORMAT + 1)],
)
def test_a_letter_of_another_format_is_refused_with_what_to_do(letter: object, version: int) -> None:
    with pytest.raises(
        Malformed, match=f"a replication message has format {version}.*run one version of qsctl on all members"
    ):
        letter_from_octets(msgspec.msgpack.encode(letter), A, none_skipped)


@given(st.binary(max_size=200))
def test_any_octets_are_a_piece_or_malformed(octets: bytes) -> None:
    for data in (octets, b"\0\1\0\0" + octets, b"\0\1\0\0" + struct.pack("<I", len(octets)) + octets):
        try:
            piece_from_octets(data)
        except Malformed:
            continue
    with contextlib.suppress(Malformed):
        letter_from_octets(octets, A, lambda _: None)


@pytest.mark.parametrize("seed", range(20))
def test_a_letter_with_flipped_octets_is_a_letter_or_malformed(seed: int) -> None:
    chance = random.Random(seed)
    data = bytearray(msgspec.msgpack.encode(Letter(LETTER_FORMAT, ("A", "B"), FRAMES)))
    for _ in range(200):
        changed = bytearray(data)
        for _ in range(chance.randint(1, 4)):
            changed[chance.randrange(len(changed))] = chance.randrange(256)
        try:
            letter_from_octets(bytes(changed), A, lambda _: None)
        except Malformed:
            continue


def test_process_that_joins_is_no_namesake_of_itself() -> None:
    """Each of two links in a domain discovers the readers of both, and one alone announces that the process joins."""
    own = Seen("B", "run", 5)
    box = LetterBox(own, "replicas", Boundary(lambda _: None))
    assert not box.appeared(1, own)
    assert not box.appeared(2, own._replace(joins=True))
    assert box.namesake is None
    other = own._replace(run="another")
    assert not box.appeared(3, other)
    assert box.namesake == other
