"""Signatures of the letters between members of a cluster, by a key that all of them hold (an extension) [QS 7.1].

Decides: which fragments of letters were written by a member, for this process, and come for the first time. A signature
is HMAC-SHA256 (RFC 2104) over the sender's name and run, the number of the fragment in that run, its place in its
letter, the route (letters that pass others have their own), the digest of the octets, and the run of the recipient. A
process draws the number of its run at its start, 64 random bits for all of its links, and announces it with its
readers; the frames in the octets contain the epoch, and the incarnation of their group. Each key of the file signs, and
each is accepted: a member that has a new key beside the former one is understood by all that have either.

Promises, against a peer without a key that records, changes, withholds, repeats and invents fragments:

- A fragment is accepted only as a member wrote it, and once.
- What was sent to a process is of no use at another one, nor after its restart: the recipient's run is another.
- What was sent by a process is of no use after its restart: the recipient remembers which of its fragments came, for as
  long as the recipient itself runs. It remembers `RUNS_MAX` processes, and forgets first the one whose latest letter is
  the oldest.

Not promised: letters are not encrypted. A fragment that was withheld may be delivered later, up to `WINDOW_COUNT`
fragments late, and any letter may be lost; replicas are correct on every network that does so. The announcements of DDS
are not signed: a peer that reaches the domain can hide members from each other, as it can by cutting their cable.
"""

from __future__ import annotations

import hmac
import struct
from collections.abc import Sequence
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from typing import Final

from qsctl.config.signing_keys import read_keys
from qsctl.transport.dds.replicas.replica_letters import Piece, Signature

WINDOW_COUNT: Final = 65_536
"""Fragments of one run by which a fragment may be overtaken; several times what may wait for a member."""

RUNS_MAX: Final = 4_096
"""Processes of which the accepted fragments are remembered."""

_CONTEXT: Final = b"qsctl letter"
_HEAD: Final = struct.Struct(">QQQQQQQ")
_BLOCK_BYTES: Final = 64
_INNER: Final = bytes(each ^ 0x36 for each in range(256))
_OUTER: Final = bytes(each ^ 0x5C for each in range(256))


class LetterDenial(StrEnum):
    """The reason for which a fragment of a letter was refused at a member that has a key."""

    UNSIGNED = "unsigned"
    UNKNOWN_KEY = "unknown_key"
    WRONG_SIGNATURE = "wrong_signature"
    OTHER_RUN = "other_run"
    REPLAYED = "replayed"
    LATE = "late"


REASONS: Final = {
    LetterDenial.UNSIGNED: "its messages are not signed: give it the cluster's key with --cluster-key",
    LetterDenial.UNKNOWN_KEY: "its messages are signed with another key: give all members the same --cluster-key",
    LetterDenial.WRONG_SIGNATURE: "a message was changed on its way, or invented",
    LetterDenial.OTHER_RUN: "a message is for another process: this one has just started, or the message is a copy",
    LetterDenial.REPLAYED: "a message arrived before: this is a copy of it",
    LetterDenial.LATE: f"more than {WINDOW_COUNT:,} later fragments of messages arrived before",
}
"""What each reason means, for the log and for the status of replicas."""


class PreparedKey:
    """A key whose part of each digest is computed once: that is most of the cost of a short HMAC [RFC 2104].

    Copies of two plain digests cost less than half of a copied `hmac.HMAC`.

    Args:
        key: its octets.
    """

    def __init__(self, key: bytes) -> None:
        block = (sha256(key).digest() if len(key) > _BLOCK_BYTES else key).ljust(_BLOCK_BYTES, b"\0")
        self._inner = sha256(block.translate(_INNER))
        self._outer = sha256(block.translate(_OUTER))

    def mac(self, data: bytes) -> bytes:
        """Return the HMAC-SHA256 of octets."""
        inner, outer = self._inner.copy(), self._outer.copy()
        inner.update(data)
        outer.update(inner.digest())
        return outer.digest()


class ClusterKeys:
    """The keys of a cluster, as a process has them now.

    Args:
        file: the file of the keys.
        accepts_unsigned: whether letters without a signature are accepted too, while a cluster is given its first key.

    Raises:
        NotFound, Refused, InvalidInput: see `read_keys`.
    """

    def __init__(self, file: Path, *, accepts_unsigned: bool = False) -> None:
        self._file = file
        self.accepts_unsigned = accepts_unsigned
        self.by_number: dict[bytes, PreparedKey] = {}
        """Each key by its number."""
        self.read_again()

    def read_again(self) -> tuple[str, ...]:
        """Use the keys that the file contains now; return their numbers.

        Raises:
            NotFound, Refused, InvalidInput: the file cannot be used; the former keys remain.
        """
        keys = read_keys(self._file)
        self.by_number = {each.number: PreparedKey(each.octets) for each in keys}
        return tuple(map(str, keys))


class LetterSigner:
    """Signs the fragments of one process's letters on one topic, and checks those of the others.

    Args:
        run: of this process on this topic: no other one has it.
        keys: those of the cluster; they may change.
    """

    def __init__(self, run: str, keys: ClusterKeys) -> None:
        self._run = run
        self._keys = keys
        self._accepted: dict[tuple[str, str], _Accepted] = {}
        """The accepted fragments by name and run of their sender; the one whose latest is the oldest first."""

    def signatures(self, piece: Piece, runs: Sequence[str], *, passes: bool = False) -> tuple[Signature, ...]:
        """Return the signatures of a fragment for these runs of its recipients, and the way by which it is sent."""
        covered = _covered(piece, passes=passes)
        keys = self._keys.by_number.items()
        return tuple(Signature(number, run, key.mac(covered + run.encode())) for number, key in keys for run in runs)

    def check(self, piece: Piece, *, passes: bool = False) -> LetterDenial | None:
        """Return the reason for which a fragment is refused; None: it is accepted, and remembered."""
        if not piece.signatures:
            return None if self._keys.accepts_unsigned else LetterDenial.UNSIGNED
        keys = self._keys.by_number
        known = [each for each in piece.signatures if each.key in keys]
        if not known:
            return LetterDenial.UNKNOWN_KEY
        # One signature is tried at most: a stranger's fragment costs one digest, however many signatures it has.
        own = next((each for each in known if each.run == self._run), None)
        if own is None:
            return LetterDenial.OTHER_RUN
        mac = keys[own.key].mac(_covered(piece, passes=passes) + self._run.encode())
        if not hmac.compare_digest(own.mac, mac):
            return LetterDenial.WRONG_SIGNATURE
        return self._remember(piece)

    def _remember(self, piece: Piece) -> LetterDenial | None:
        of = (piece.sender, piece.run)
        accepted = self._accepted.pop(of, None)
        if accepted is None:
            for (name, _), each in self._accepted.items():
                if name == piece.sender:
                    each.end()
            accepted = _Accepted()
        self._accepted[of] = accepted
        if len(self._accepted) > RUNS_MAX:
            del self._accepted[next(iter(self._accepted))]
        return accepted.add(piece.number + piece.index)


class _Accepted:
    """The numbers of a run's accepted fragments, as in RFC 6479: the highest, and which of the `WINDOW_COUNT` below."""

    def __init__(self) -> None:
        self._next = 0
        self._is_accepted = bytearray()
        """By number, modulo the window. Empty: no number below `_next` is accepted any more."""

    def end(self) -> None:
        """Accept no number below the highest any more: another run has taken the sender's place."""
        self._is_accepted = bytearray()

    def add(self, number: int) -> LetterDenial | None:
        """Accept a number that was not accepted before; return the reason for which it is refused, or None."""
        window = self._is_accepted
        if (behind := self._next - number) > 0:
            if not window or (behind <= WINDOW_COUNT and window[number % WINDOW_COUNT]):
                return LetterDenial.REPLAYED
            if behind > WINDOW_COUNT:
                return LetterDenial.LATE
        else:
            if not window:
                window = self._is_accepted = bytearray(b"\1") * WINDOW_COUNT
            for skipped in range(max(self._next, number - WINDOW_COUNT), number):
                window[skipped % WINDOW_COUNT] = 0
            self._next = number + 1
        window[number % WINDOW_COUNT] = 1
        return None


def _covered(piece: Piece, *, passes: bool) -> bytes:
    sender, run = piece.sender.encode(), piece.run.encode()
    head = _HEAD.pack(piece.number, piece.index, piece.count, passes, len(sender), len(run), len(piece.data))
    return b"".join((_CONTEXT, head, sender, run, sha256(piece.data).digest()))
