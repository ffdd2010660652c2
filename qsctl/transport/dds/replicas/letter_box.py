"""The messages of one member of a cluster, without a network: members, accepted senders, fragments [QS 7.1].

Decides: which received data are a member's message, and how an outgoing message is fragmented. The owner transfers the
fragments: `replica_link` over DDS, a simulated world over its network. The name that a process announces is a claim:
`letter_signatures` proves it where the cluster has a key, and `correspondents` chooses where several processes have it.
Data that are not a message are refused at the boundary.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from qsctl.core.high_availability.frames import Frame
from qsctl.core.high_availability.versions import VERSION
from qsctl.instant import SECOND_NS, Nanoseconds
from qsctl.transport.dds.boundary import Boundary
from qsctl.transport.dds.peers.correspondents import Correspondents
from qsctl.transport.dds.replicas.letter_signatures import REASONS, LetterDenial, LetterSigner
from qsctl.transport.dds.replicas.replica_letters import (
    Assembly,
    Letter,
    Piece,
    Signature,
    letter_from_octets,
    letters_of,
    pieces_of,
)

PEERS_MAX: Final = 256
"""Bound of the registered endpoints of one cluster; further ones are ignored."""

SIGNED_RUNS_MAX: Final = 8
"""Processes of one name for which a message is signed: the accepted one, and those that were discovered last."""

UNPROVEN_SILENCES: Final = 10
"""Multiple of the silence of members for which a refusal counts: slaves of one master send each other nothing."""

REPORTED_MAX: Final = 1_000
"""Refusals of messages of which is remembered that they were reported."""

SILENCE_NS: Final[Nanoseconds] = 2 * SECOND_NS
"""Default duration of a member's silence after which another process of its name is accepted."""


class ReceivedLetter(NamedTuple):
    """A message, and the name of the member that sent it."""

    sender: str
    letter: Letter


class Seen(NamedTuple):
    """A member as its process announces it: name, run (one process of that name), and start time by its own clock.

    `joins` is whether it joins a cluster that was formed: it is none of the first members.
    """

    name: str
    run: str
    started_at_ns: Nanoseconds
    joins: bool = False


class Link(Protocol):
    """The interface through which a member exchanges messages with its cluster, over any network."""

    @property
    def peers(self) -> frozenset[str]:
        """The names of the other members that are discovered now."""

    @property
    def joining(self) -> frozenset[str]:
        """Those of them that join a cluster which was formed."""

    @property
    def namesake(self) -> Seen | None:
        """Another process that announces this member's name, or None."""

    @property
    def unproven(self) -> Mapping[str, LetterDenial]:
        """The members of which no message is accepted, by name, with the reason for which the last one was refused."""

    def pop_is_changed(self) -> bool:
        """Return whether a process of the cluster appeared or vanished since the last call."""

    def poll(self) -> list[ReceivedLetter]:
        """Return received messages, at most a bounded number a call, without waiting."""

    def send(self, recipients: Sequence[str], members: Sequence[str], frames: Sequence[Frame]) -> None:
        """Send a message to members; it is lost for those that are not discovered or do not read."""

    def flush(self) -> bool:
        """Send waiting fragments; return False while some wait for space in a peer's cache: call it again soon."""

    def close(self) -> None:
        """Delete the endpoints, which the peers notice at once."""


class FragmentNumbers:
    """The numbers of the fragments that a process sends, common to its links: in one domain each reads those of all."""

    def __init__(self) -> None:
        self.next = 1
        """The number of the next fragment."""


class LetterBox:
    """The part of a `Link` that does not depend on the network: discovered members, and fragments of messages.

    Args:
        own: the name, run and start time that this process announces.
        source: name of the messages in reports of refused ones.
        boundary: refuses and reports messages that cannot be decoded.
        silence_ns: duration of a member's silence after which another process of its name is accepted.
        clock: monotonic time in nanoseconds.
        signer: signs messages and checks those of others; None: the cluster has no key.
        numbers: of this process's fragments; None: this is its only link.
        version: that of the messages, which a simulated process of an earlier version changes.
    """

    def __init__(
        self,
        own: Seen,
        source: str,
        boundary: Boundary,
        silence_ns: Nanoseconds = SILENCE_NS,
        clock: Callable[[], Nanoseconds] = time.monotonic_ns,
        signer: LetterSigner | None = None,
        numbers: FragmentNumbers | None = None,
        version: int = VERSION,
    ) -> None:
        self._own = own
        self._source = source
        self._boundary = boundary
        self._clock = clock
        self._signer = signer
        self._version = version
        self._peers: dict[int, Seen] = {}
        self._announced: set[tuple[str, str]] = set()
        """Names and runs of `_peers`."""
        self._assemblies: dict[tuple[str, str, bool], Assembly] = {}
        self._silence_ns = silence_ns
        self._correspondents = Correspondents(silence_ns)
        self._numbers = numbers or FragmentNumbers()
        self._denied: dict[str, tuple[LetterDenial, Nanoseconds]] = {}
        """The reason for which the last message of a member was refused, and when that was."""
        self._reported: set[tuple[str, str, LetterDenial]] = set()
        self._is_changed = False

    # Members.

    def appeared(self, handle: int, seen: Seen) -> bool:
        """Register another process of the cluster; return whether it is to be sent messages, as no namesake is."""
        is_own = (seen.name, seen.run) == (self._own.name, self._own.run)  # perhaps by another link of this process
        if is_own or len(self._peers) >= PEERS_MAX:
            return False
        self._peers[handle] = seen
        self._announced.add((seen.name, seen.run))
        self._is_changed = True
        return seen.name != self._own.name

    def vanished(self, handle: int) -> str:
        """Remove a process; return its name if no other process has that name, else the empty string."""
        seen = self._peers.pop(handle, None)
        if seen is None:
            return ""
        self._is_changed = True
        self._announced = {(each.name, each.run) for each in self._peers.values()}
        for passes in (False, True):
            self._assemblies.pop((seen.name, seen.run, passes), None)
        self._correspondents.forget(seen.name, seen.run)
        return "" if any(each.name == seen.name for each in self._peers.values()) else seen.name

    @property
    def peers(self) -> frozenset[str]:
        """The names of the other members that are discovered now."""
        return frozenset(each.name for each in self._peers.values()) - {self._own.name}

    @property
    def joining(self) -> frozenset[str]:
        """Those of them that join a cluster which was formed."""
        return frozenset(each.name for each in self._peers.values() if each.joins) - {self._own.name}

    @property
    def namesake(self) -> Seen | None:
        """Another process that announces this member's name, or None."""
        return next((each for each in self._peers.values() if each.name == self._own.name), None)

    def pop_is_changed(self) -> bool:
        """Return whether a process of the cluster appeared or vanished since the last call."""
        is_changed, self._is_changed = self._is_changed, False
        return is_changed

    # Messages.

    @property
    def unproven(self) -> Mapping[str, LetterDenial]:
        """The members of which no message is accepted, by name, with the reason for which the last one was refused."""
        if not self._denied:
            return {}
        now, peers = self._clock(), self.peers
        return {
            name: denial
            for name, (denial, at_ns) in self._denied.items()
            if name in peers
            and now - at_ns <= UNPROVEN_SILENCES * self._silence_ns
            and not self._correspondents.is_accepted(now, name)
        }

    def messages(
        self, recipients: Sequence[str], members: Sequence[str], frames: Sequence[Frame], *, passes: bool = False
    ) -> Iterator[list[bytes]]:
        """Encode messages with these frames and yield the fragments of each, every one a sample in CDR.

        Args:
            recipients: the members that the messages are for; all are sent the same octets.
            members: the names of all members.
            frames: the content.
            passes: whether the messages are sent by the way of those that pass others.

        Raises:
            OverflowError: a message is longer than `LETTER_BYTES_MAX`.
        """
        sign = self._signing_for(recipients, passes=passes)
        for letter in letters_of(members, frames, self._version):
            pieces = list(pieces_of(letter, self._own.name, self._own.run, self._numbers.next, sign))
            self._numbers.next += len(pieces)
            yield pieces

    def _signing_for(self, recipients: Sequence[str], *, passes: bool) -> Callable[[Piece], tuple[Signature, ...]]:
        signer = self._signer
        if signer is None:
            return lambda _: ()
        runs: list[str] = []
        for name in recipients:
            announced = [each.run for each in self._peers.values() if each.name == name]
            accepted = self._correspondents.run_of(name)
            announced.sort(key=lambda run: run == accepted)
            runs += announced[-SIGNED_RUNS_MAX:]
        return lambda piece: signer.signatures(piece, runs, passes=passes)

    def receive(self, piece: Piece, *, passes: bool = False) -> list[ReceivedLetter]:
        """Add a fragment; return the message that it completes, or nothing, as for a sender that is not announced.

        Args:
            piece: the fragment.
            passes: whether it came by the way of messages that pass others: fragments of two may alternate.
        """
        if self._signer is not None and (denial := self._signer.check(piece, passes=passes)) is not None:
            self._deny(piece, denial)
            return []
        if self._signer is not None and not piece.signatures:
            self._boundary.unsigned_count += 1
        if (piece.sender, piece.run) not in self._announced:
            return []
        if not self._correspondents.accepts(self._clock(), piece.sender, piece.run):
            if piece.index == 0:
                self._boundary.refuse(
                    self._source, piece.sender, f"another process is heard as {piece.sender}: two have one name"
                )
            return []
        self._denied.pop(piece.sender, None)
        assembly = self._assemblies.setdefault((piece.sender, piece.run, passes), Assembly())
        data = assembly.add(piece)
        if data is None:
            return []
        letters = self._boundary.each(
            self._source,
            (data,),
            lambda octets: letter_from_octets(octets, piece.sender, lambda reason: self._skip(piece.sender, reason)),
            lambda _: piece.sender,
        )
        return [ReceivedLetter(piece.sender, letter) for letter in letters]

    def _deny(self, piece: Piece, denial: LetterDenial) -> None:
        """Count a refused fragment, and report the first one of its sender's process for each reason."""
        if piece.sender in self.peers:
            self._denied[piece.sender] = denial, self._clock()
        of = (piece.sender, piece.run, denial)
        is_new = of not in self._reported
        if is_new:
            if len(self._reported) >= REPORTED_MAX:
                self._reported.clear()
            self._reported.add(of)
        self._boundary.deny_letter(self._source, piece.sender, denial, REASONS[denial] if is_new else "")

    def _skip(self, sender: str, reason: str) -> None:
        self._boundary.skip(self._source, sender, reason)
