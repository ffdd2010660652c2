"""The messages of one member of a cluster, without a network: members, accepted senders, fragments [QS 7.1].

Decides: which received data are a member's message, and how an outgoing message is fragmented. The owner transfers the
fragments: `replica_link` over DDS, a simulated world over its network. The name that a process announces is a claim:
see `correspondents`. Data that are not a message are refused at the boundary.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, Protocol

from qsctl.core.high_availability.frames import Frame
from qsctl.instant import SECOND_NS, Nanoseconds
from qsctl.transport.dds.boundary import Boundary
from qsctl.transport.dds.peers.correspondents import Correspondents
from qsctl.transport.dds.replicas.replica_letters import (
    LETTER_VERSION,
    Assembly,
    Letter,
    Piece,
    letter_from_octets,
    pieces_of,
)

PEERS_MAX: Final = 256
"""Endpoints of one cluster that are looked after; more are none of ours."""

SILENCE_NS: Final[Nanoseconds] = 2 * SECOND_NS
"""Default time that a member may be silent before another process of its name is accepted."""


class ReceivedLetter(NamedTuple):
    """A letter, and whose it is."""

    sender: str
    letter: Letter


class Seen(NamedTuple):
    """A member as its process announces it: its name, its run, and when that began on its own clock."""

    name: str
    run: str
    started_at_ns: Nanoseconds


class Link(Protocol):
    """The letters of a member to and from the others of its cluster, over some network."""

    @property
    def peers(self) -> frozenset[str]:
        """The names of the other members that are there."""

    @property
    def namesake(self) -> Seen | None:
        """Another process that announces itself by this member's name; None: there is none."""

    def pop_is_changed(self) -> bool:
        """Return whether others came or went since the last call."""

    def poll(self) -> list[ReceivedLetter]:
        """Return the letters that have come, a turn's share of them."""

    def send(self, recipients: Sequence[str], members: Sequence[str], frames: Sequence[Frame]) -> None:
        """Send a letter to members; where one is not there, or does not read, it is lost."""

    def flush(self) -> bool:
        """Send what was put. False: some waits for room in a peer's cache, come again soon."""

    def close(self) -> None:
        """Delete everything; the others see it at once."""


class LetterBox:
    """One process's half of a `Link`.

    Args:
        own: how this process announces itself.
        source: what its letters are called in reports.
        boundary: where letters that cannot be read are refused.
        silence_ns: a member that sent nothing for longer may be another process from then on.
        clock: never goes back.
    """

    def __init__(
        self,
        own: Seen,
        source: str,
        boundary: Boundary,
        silence_ns: Nanoseconds = SILENCE_NS,
        clock: Callable[[], Nanoseconds] = time.monotonic_ns,
    ) -> None:
        self._own = own
        self._source = source
        self._boundary = boundary
        self._clock = clock
        self._peers: dict[int, Seen] = {}
        self._announced: set[tuple[str, str]] = set()
        """The names and runs of those."""
        self._assemblies: dict[tuple[str, str], Assembly] = {}
        self._correspondents = Correspondents(silence_ns)
        self._number = 0
        self._is_changed = False

    # Who is there.

    def appeared(self, handle: int, seen: Seen) -> bool:
        """Note another process of the cluster by a handle; whether it is one to write to."""
        if seen == self._own or len(self._peers) >= PEERS_MAX:
            return False
        self._peers[handle] = seen
        self._announced.add((seen.name, seen.run))
        self._is_changed = True
        return seen.name != self._own.name

    def vanished(self, handle: int) -> str:
        """Note that a process is gone; return its name if it was the last of that name, else nothing."""
        seen = self._peers.pop(handle, None)
        if seen is None:
            return ""
        self._is_changed = True
        self._announced = {(each.name, each.run) for each in self._peers.values()}
        self._assemblies.pop((seen.name, seen.run), None)
        self._correspondents.forget(seen.name, seen.run)
        return "" if any(each.name == seen.name for each in self._peers.values()) else seen.name

    @property
    def peers(self) -> frozenset[str]:
        """The names of the other members that are there."""
        return frozenset(each.name for each in self._peers.values()) - {self._own.name}

    @property
    def namesake(self) -> Seen | None:
        """Another process that announces itself by this member's name; None: there is none."""
        return next((each for each in self._peers.values() if each.name == self._own.name), None)

    def pop_is_changed(self) -> bool:
        """Return whether others came or went since the last call."""
        is_changed, self._is_changed = self._is_changed, False
        return is_changed

    # Letters.

    def pieces(self, members: Sequence[str], frames: Sequence[Frame]) -> list[bytes]:
        """Return the samples that a letter to a member is.

        Raises:
            OverflowError: it is longer than a receiver takes.
        """
        self._number += 1
        letter = Letter(LETTER_VERSION, tuple(members), tuple(frames))
        return list(pieces_of(letter, self._own.name, self._own.run, self._number))

    def receive(self, piece: Piece) -> list[ReceivedLetter]:
        """Put a piece to those before it; pieces of one that was not announced are of no member."""
        if (piece.sender, piece.run) not in self._announced:
            return []
        if not self._correspondents.hears(self._clock(), piece.sender, piece.run):
            if piece.index == 0:
                self._boundary.refuse(
                    self._source, piece.sender, f"another process is heard as {piece.sender}: two have one name"
                )
            return []
        assembly = self._assemblies.setdefault((piece.sender, piece.run), Assembly())
        data = assembly.add(piece)
        if data is None:
            return []
        letters = self._boundary.each(
            self._source, (data,), lambda octets: letter_from_octets(octets, piece.sender), lambda _: piece.sender
        )
        return [ReceivedLetter(piece.sender, letter) for letter in letters]
