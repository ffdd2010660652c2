"""Signed letters: what members of a cluster send each other is accepted once, and what anyone else sends never."""

from __future__ import annotations

import contextlib
import hmac
import random
from collections.abc import Sequence
from itertools import permutations
from pathlib import Path

import msgspec
import pytest

from qsctl.config.signing_keys import create_keys, read_keys, retire_keys, rotate_keys
from qsctl.core.high_availability.frames import Entries, Frame, Vote
from qsctl.core.records import Enqueued
from qsctl.identity import Guid, SampleIdentity
from qsctl.instant import SECOND_NS
from qsctl.transport.dds.boundary import Boundary, Malformed
from qsctl.transport.dds.diagnosis.peer_faults import FaultKind, PeerFault
from qsctl.transport.dds.replicas import letter_signatures
from qsctl.transport.dds.replicas.letter_box import (
    PEERS_MAX,
    SIGNED_RUNS_MAX,
    SILENCE_NS,
    UNPROVEN_SILENCES,
    FragmentNumbers,
    LetterBox,
    Seen,
)
from qsctl.transport.dds.replicas.letter_signatures import (
    WINDOW_COUNT,
    ClusterKeys,
    LetterDenial,
    LetterSigner,
    PreparedKey,
)
from qsctl.transport.dds.replicas.replica_letters import PIECE_BYTES_MAX, Piece, piece_from_octets

VOTE = Vote("P/S/Orders", "A", 2, 3, True, True)
SAMPLE = Enqueued("P/S/Orders", 1, SampleIdentity(Guid(b"w" * 16), 1), 1, 2, payload=bytes(3 * PIECE_BYTES_MAX))
LONG = Entries("P/S/Orders", "A", 3, 0, 0, (SAMPLE,), 0, 1)


class Process:
    """One process of a member, which sees those that it is shown."""

    runs = 0

    def __init__(self, name: str, keys: Path | None = None, *, accepts_unsigned: bool = False) -> None:
        Process.runs += 1
        self.seen = Seen(name, f"run {Process.runs}", 0)
        self.faults: list[PeerFault] = []
        self.boundary = Boundary(self.faults.append)
        self.now = SECOND_NS
        self.keys = None if keys is None else ClusterKeys(keys, accepts_unsigned=accepts_unsigned)
        signer = None if self.keys is None else LetterSigner(self.seen.run, self.keys)
        self.box = LetterBox(self.seen, "letters", self.boundary, SILENCE_NS, lambda: self.now, signer)

    def sees(self, *others: Process) -> None:
        for other in others:
            self.box.appeared(hash(other.seen), other.seen)

    def letter(self, *recipients: str, frame: Frame = VOTE, passes: bool = False) -> list[bytes]:
        (octets,) = self.box.messages(recipients, ("A", "B"), (frame,), passes=passes)
        return octets

    def received(self, octets: Sequence[bytes]) -> list[Frame]:
        letters = [letter for each in octets for letter in self.box.receive(piece_from_octets(each))]
        return [frame for each in letters for frame in each.letter.frames]

    @property
    def refused(self) -> dict[str, int]:
        return dict(self.boundary.refused_letters)


def seeing_each_other(*processes: Process) -> tuple[Process, ...]:
    for each in processes:
        each.sees(*processes)
    return processes


@pytest.fixture
def file(tmp_path: Path) -> Path:
    create_keys(tmp_path / "cluster.key")
    return tmp_path / "cluster.key"


@pytest.fixture
def other_file(tmp_path: Path) -> Path:
    create_keys(tmp_path / "other.key")
    return tmp_path / "other.key"


def with_octets_of(piece: Piece) -> bytes:
    """Another fragment as it is sent, of any content."""
    octets = msgspec.msgpack.encode(piece)
    return b"\0\1\0\0" + len(octets).to_bytes(4, "little") + octets + bytes(-len(octets) & 3)


@pytest.mark.parametrize("frame", [VOTE, LONG], ids=["short", "long"])
def test_a_signed_letter_arrives_at_each_of_its_recipients_and_at_no_other(file: Path, frame: Frame) -> None:
    a, b, c, d = seeing_each_other(*(Process(name, file) for name in "ABCD"))
    octets = a.letter("B", "C", frame=frame)
    assert (b.received(octets), c.received(octets), d.received(octets)) == ([frame], [frame], [])
    assert (b.refused, c.refused, d.refused) == ({}, {}, {"other_run": len(octets)})


def test_a_letter_without_a_signature_is_refused_counted_and_reported_once(file: Path) -> None:
    without_key, b = seeing_each_other(Process("A"), Process("B", file))
    for _ in range(3):
        assert b.received(without_key.letter("B")) == []
    assert b.refused == {"unsigned": 3}
    b.boundary.close()
    assert [(each.kind, each.peer, each.count) for each in b.faults] == [(FaultKind.UNPROVEN, "A", 1)]
    assert "--cluster-key" in b.faults[0].reason


def test_a_member_with_another_key_is_named_until_it_has_the_right_one(file: Path, other_file: Path) -> None:
    a, b = seeing_each_other(Process("A", other_file), Process("B", file))
    assert b.received(a.letter("B")) == []
    assert (b.refused, dict(b.box.unproven)) == ({"unknown_key": 1}, {"A": LetterDenial.UNKNOWN_KEY})
    other_file.write_bytes(file.read_bytes())
    assert a.keys is not None
    a.keys.read_again()
    assert b.received(a.letter("B")) == [VOTE]
    assert dict(b.box.unproven) == {}


def test_letters_of_a_stranger_in_the_name_of_an_accepted_member_do_not_show_it_as_unproven(file: Path) -> None:
    a, stranger, b = seeing_each_other(Process("A", file), Process("A"), Process("B", file))
    assert b.received(a.letter("B")) == [VOTE]
    assert b.received(stranger.letter("B")) == []
    assert dict(b.box.unproven) == {}
    b.now += SILENCE_NS + 1
    assert dict(b.box.unproven) == {"A": LetterDenial.UNSIGNED}
    b.now += UNPROVEN_SILENCES * SILENCE_NS  # found: slaves send each other nothing, and the mended one was still named
    assert dict(b.box.unproven) == {}


def test_every_changed_octet_costs_the_letter_and_no_other_letter_results(file: Path) -> None:
    a, b = seeing_each_other(Process("A", file), Process("B", file))
    (octets,) = a.letter("B")
    for at in range(len(octets)):
        changed = bytearray(octets)
        changed[at] ^= 0x55
        with contextlib.suppress(Malformed):
            assert b.received([bytes(changed)]) in ([], [VOTE]), at
    assert b.refused["wrong_signature"] > 50
    assert b.box._signer is not None
    content = piece_from_octets(octets)
    assert msgspec.structs.asdict(content)  # every member of it is covered:
    for changes in ({"sender": "C"}, {"run": "x"}, {"number": 9}, {"index": 1}, {"count": 2}, {"data": b"x"}):
        changed_piece = msgspec.structs.replace(content, **changes)
        assert b.box._signer.check(changed_piece) is LetterDenial.WRONG_SIGNATURE, changes


def test_random_changes_of_signed_letters_are_never_another_letter(file: Path) -> None:
    chance = random.Random(7)
    a, b = seeing_each_other(Process("A", file), Process("B", file))
    for _ in range(2_000):
        (octets,) = a.letter("B")
        changed = bytearray(octets)
        for _ in range(chance.randint(1, 6)):
            at = chance.randrange(len(changed))
            match chance.randrange(3):
                case 0:
                    changed[at] = chance.randrange(256)
                case 1:
                    del changed[at : at + chance.randint(1, 9)]
                case _:
                    changed[at:at] = chance.randbytes(chance.randint(1, 9))
            if not changed:
                break
        with contextlib.suppress(Malformed):
            assert b.received([bytes(changed)]) in ([], [VOTE])


def test_a_copy_of_a_letter_is_refused_at_the_same_process_and_after_a_restart_of_either_side(file: Path) -> None:
    a, b = seeing_each_other(Process("A", file), Process("B", file))
    recorded = [a.letter("B") for _ in range(3)]
    assert [b.received(each) for each in recorded] == [[VOTE]] * 3
    assert b.received(recorded[1]) == []
    assert b.refused == {"replayed": 1}

    restarted_b = Process("B", file)
    restarted_b.sees(a)
    assert [restarted_b.received(each) for each in recorded] == [[]] * 3
    assert restarted_b.refused == {"other_run": 3}

    restarted_a = Process("A", file)
    seeing_each_other(restarted_a, b)
    b.now += SILENCE_NS + 1
    assert b.received(restarted_a.letter("B")) == [VOTE]
    b.now += SILENCE_NS + 1  # the restarted one is silent, and nothing of the former one takes its place
    assert [b.received(each) for each in recorded] == [[]] * 3
    assert b.refused == {"replayed": 4}


def test_what_was_withheld_of_a_process_that_has_been_replaced_is_refused(file: Path) -> None:
    a, b = seeing_each_other(Process("A", file), Process("B", file))
    withheld = a.letter("B")
    assert b.received(a.letter("B")) == [VOTE]
    restarted = Process("A", file)
    seeing_each_other(restarted, b)
    b.now += SILENCE_NS + 1
    assert b.received(restarted.letter("B")) == [VOTE]
    b.now += SILENCE_NS + 1
    assert b.received(withheld) == []
    assert b.refused == {"replayed": 1}


def test_a_letter_that_was_overtaken_is_accepted_within_the_window_and_once(file: Path) -> None:
    a, b = seeing_each_other(Process("A", file), Process("B", file))
    late, *early = [a.letter("B") for _ in range(100)]
    assert [b.received(each) for each in reversed(early)] == [[VOTE]] * 99
    assert (b.received(late), b.received(late)) == ([VOTE], [])
    assert b.refused == {"replayed": 1}


def test_links_of_one_process_number_their_fragments_in_common(file: Path) -> None:
    """In one domain a reader gets what both links of a process send."""
    (a, b), numbers = seeing_each_other(Process("A", file), Process("B", file)), FragmentNumbers()
    assert a.keys is not None
    links = [
        LetterBox(a.seen, "letters", a.boundary, SILENCE_NS, lambda: a.now, LetterSigner(a.seen.run, a.keys), numbers)
        for _ in range(2)
    ]
    for link in links:
        link.appeared(1, b.seen)
    for link in (*links, *reversed(links)):
        (octets,) = link.messages(["B"], ("A", "B"), (VOTE,))
        assert b.received(octets) == [VOTE]
    assert b.refused == {}


def test_a_letter_that_was_overtaken_beyond_the_window_is_refused(file: Path) -> None:
    a, b = seeing_each_other(Process("A", file), Process("B", file))
    too_late, latest_of_window = a.letter("B"), a.letter("B")
    assert b.received(a.letter("B")) == [VOTE]
    a.box._numbers.next = 1 + WINDOW_COUNT
    assert b.received(a.letter("B")) == [VOTE]
    assert (b.received(too_late), b.received(latest_of_window)) == ([], [VOTE])
    assert b.refused == {"late": 1}


def test_fragments_of_a_stranger_between_those_of_a_long_letter_cost_themselves_alone(file: Path) -> None:
    a, b = seeing_each_other(Process("A", file), Process("B", file))
    octets = a.letter("B", frame=LONG)
    assert len(octets) == 4
    first = piece_from_octets(octets[0])
    invented = with_octets_of(msgspec.structs.replace(first, index=0, data=b"invented"))
    copies = [octets[0], invented]
    assert b.received([octets[0], *copies, octets[1], *copies, octets[2], *copies, octets[3]]) == [LONG]
    assert b.refused == {"replayed": 3, "wrong_signature": 3}


def test_a_fragment_is_of_no_use_on_the_other_route(file: Path) -> None:
    """Otherwise a copy that is sent there first would take the fragment's number, and the long letter lack it."""
    a, b = seeing_each_other(Process("A", file), Process("B", file))
    octets = a.letter("B", frame=LONG)
    assert [b.box.receive(piece_from_octets(each), passes=True) for each in octets] == [[]] * 4
    assert b.received(octets) == [LONG]
    (short,) = a.letter("B", passes=True)
    assert b.received([short]) == []
    assert len(b.box.receive(piece_from_octets(short), passes=True)) == 1
    assert b.refused == {"wrong_signature": 5}


@pytest.mark.parametrize("order", list(permutations(range(3))), ids=str)
def test_a_key_is_replaced_member_by_member_in_any_order(tmp_path: Path, order: tuple[int, ...]) -> None:
    files = [tmp_path / f"{name}.key" for name in "ABC"]
    create_keys(files[0])
    former = files[0].read_bytes()
    for each in files[1:]:
        each.write_bytes(former)
        each.chmod(0o600)
    processes = seeing_each_other(*(Process(name, each) for name, each in zip("ABC", files, strict=True)))

    def all_understand_each_other() -> bool:
        frames = [
            (other.received(each.letter(other.seen.name, frame=msgspec.structs.replace(VOTE, sender=each.seen.name))))
            for each in processes
            for other in processes
            if other is not each
        ]
        return all(frames) and not any(each.refused for each in processes)

    def distribute(content: bytes) -> None:
        for at in order:
            files[at].write_bytes(content)
            keys = processes[at].keys
            assert keys is not None
            keys.read_again()
            assert all_understand_each_other()

    pattern = tmp_path / "pattern.key"
    pattern.write_bytes(former)
    pattern.chmod(0o600)
    rotate_keys(pattern)
    distribute(pattern.read_bytes())
    retire_keys(pattern)
    distribute(pattern.read_bytes())
    assert former not in pattern.read_bytes()
    assert len(read_keys(pattern)) == 1


def test_a_cluster_without_a_key_is_given_one_member_by_member(file: Path) -> None:
    """First each is started again with the key, accepting both; then each without accepting unsigned letters."""

    def understand_each_other(a: Process, b: Process) -> bool:
        seeing_each_other(a, b)
        back = msgspec.structs.replace(VOTE, sender="B")
        return (b.received(a.letter("B")), a.received(b.letter("A", frame=back))) == ([VOTE], [back])

    assert understand_each_other(Process("A"), Process("B", file, accepts_unsigned=True))
    assert understand_each_other(Process("A", file, accepts_unsigned=True), Process("B", file, accepts_unsigned=True))
    assert understand_each_other(Process("A", file, accepts_unsigned=True), Process("B", file))
    assert understand_each_other(Process("A", file), Process("B", file))
    assert not understand_each_other(Process("A"), Process("B", file))


def test_accepted_letters_without_a_signature_are_counted(file: Path) -> None:
    a, b = seeing_each_other(Process("A"), Process("B", file, accepts_unsigned=True))
    assert b.received(a.letter("B")) == [VOTE]
    assert (b.boundary.unsigned_count, b.refused) == (1, {})


def test_a_member_that_accepts_unsigned_letters_refuses_those_with_a_wrong_signature(
    file: Path, other_file: Path
) -> None:
    a, b = seeing_each_other(Process("A", other_file), Process("B", file, accepts_unsigned=True))
    assert b.received(a.letter("B")) == []
    assert b.refused == {"unknown_key": 1}


def test_false_announcements_of_a_name_neither_keep_letters_from_the_member_nor_make_them_long(file: Path) -> None:
    a, b = seeing_each_other(Process("A", file), Process("B", file))
    back = msgspec.structs.replace(VOTE, sender="B")
    assert a.received(b.letter("A", frame=back)) == [back]
    length = len(a.letter("B")[0])
    a.sees(*(Process("B") for _ in range(PEERS_MAX)))
    octets = a.letter("B")
    assert b.received(octets) == [VOTE]
    assert len(octets[0]) < length + SIGNED_RUNS_MAX * 60


def test_processes_are_forgotten_in_the_order_of_their_latest_letters(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(letter_signatures, "RUNS_MAX", 3)
    b = Process("B", file)
    recorded = []
    for _ in range(4):
        a = Process("A", file)
        seeing_each_other(a, b)
        b.now += SILENCE_NS + 1
        recorded.append(a.letter("B"))
        assert b.received(recorded[-1]) == [VOTE]
    b.now += SILENCE_NS + 1
    assert [b.received(each) for each in recorded[1:]] == [[]] * 3
    assert b.refused == {"replayed": 3}
    assert b.box._signer is not None
    assert len(b.box._signer._accepted) == 3


@pytest.mark.parametrize("size", [1, 32, 64, 65, 200])
def test_prepared_key_makes_the_digests_of_rfc_2104(size: int) -> None:
    key, data = bytes(range(size)), b"what is covered"
    prepared = PreparedKey(key)
    assert prepared.mac(data) == hmac.digest(key, data, "sha256")
    assert prepared.mac(b"") == hmac.digest(key, b"", "sha256"), "the prepared digests are as before"
