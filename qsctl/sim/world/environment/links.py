"""The messages between the services of a world, as octets over its simulated network [QS 7.1].

How a message is read from octets, and which senders are accepted, is decided by `transport.dds.letter_box`, as live.
A link of an earlier version writes that version into its letters, and reads of received ones what that version reads.
So its process uses what the versions before it had; everything else about the process is of this version.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from msgspec import structs

from qsctl.core.high_availability.frames import (
    ConditionReport,
    Frame,
    Heartbeat,
    Preference,
    SnapshotPiece,
    Vote,
    passes,
)
from qsctl.core.high_availability.versions import (
    CONDITIONS,
    EARLIEST,
    HEARTBEATS,
    PREFERENCES,
    SNAPSHOT_PIECES,
    VERSION,
)
from qsctl.core.queue.settings import SharedReaderQueueSettings
from qsctl.instant import Nanoseconds
from qsctl.transport.dds.boundary import Boundary
from qsctl.transport.dds.replicas.letter_box import LetterBox, ReceivedLetter, Seen
from qsctl.transport.dds.replicas.letter_signatures import LetterDenial
from qsctl.transport.dds.replicas.replica_letters import piece_from_octets

QUEUES: Final = "queues"
"""Kind of the messages between the replicas of queues."""

CONFIGURATION: Final = "configuration"
"""Kind of the messages about the replicated configuration."""

STRANGER_RUN: Final = "stranger"

_SINCE: Final[Mapping[type[Frame], int]] = {
    SnapshotPiece: SNAPSHOT_PIECES,
    ConditionReport: CONDITIONS,
    Heartbeat: HEARTBEATS,
    Preference: PREFERENCES,
}
"""The versions that the later kinds of frames came with."""


class SimulatedLink:
    """A `Link` of one process: its messages of one kind to and from the other members.

    Args:
        kind: the kind of messages.
        own: how the process announces itself.
        silence_ns: after this much silence another process under the same name is accepted.
        clock: the monotonic clock.
        carry: called with the kind, a member's name, the fragments of a message to it, and whether it passes others.
        voted: called once a vote has been sent.
        version: that of the letters.
    """

    def __init__(
        self,
        kind: str,
        own: Seen,
        silence_ns: Nanoseconds,
        clock: Callable[[], Nanoseconds],
        carry: Callable[[str, str, Sequence[bytes], bool], None],
        voted: Callable[[], None],
        version: int,
    ) -> None:
        self.boundary = Boundary(lambda _: None)
        self.box = LetterBox(own, kind, self.boundary, silence_ns, clock, version=version)
        self._version = version
        self._kind = kind
        self._carry = carry
        self._voted = voted
        self._come: list[bytes] = []

    def arrive(self, datagram: bytes) -> None:
        """Buffer a datagram for the next `poll`."""
        self._come.append(datagram)

    @property
    def peers(self) -> frozenset[str]:
        """Return the names of the other members that are discovered."""
        return self.box.peers

    @property
    def joining(self) -> frozenset[str]:
        """Return those of them that join a cluster which was formed."""
        return self.box.joining

    @property
    def namesake(self) -> Seen | None:
        """Return another process that announces itself by this member's name; None if there is none."""
        return self.box.namesake

    @property
    def unproven(self) -> Mapping[str, LetterDenial]:
        """Return the members of which no message is accepted: none, since the clusters of a world have no key."""
        return self.box.unproven

    def pop_is_changed(self) -> bool:
        """Return whether other members appeared or disappeared since the last call."""
        return self.box.pop_is_changed()

    def poll(self) -> list[ReceivedLetter]:
        """Return the complete messages among the datagrams that arrived since the last call."""
        if not self._come:
            return []
        come, self._come = self._come, []
        pieces = self.boundary.each(self._kind, come, piece_from_octets, lambda _: "")
        received = [each for piece in pieces for each in self.box.receive(piece)]
        return received if self._version == VERSION else [*filter(None, map(self._read, received))]

    def _read(self, received: ReceivedLetter) -> ReceivedLetter | None:
        """Return what the link's version reads of a letter; None: it drops the letter."""
        letter = received.letter
        known = tuple(each for each in letter.frames if self._version >= _SINCE.get(type(each), EARLIEST))
        if self._version == EARLIEST and len(known) < len(letter.frames):
            return None
        version = min(letter.version, self._version)
        return received._replace(letter=structs.replace(letter, frames=known, version=version))

    def send(self, recipients: Sequence[str], members: Sequence[str], frames: Sequence[Frame]) -> None:
        """Send one message to members; it is lost where a member is not discovered or does not read."""
        peers = self.box.peers
        known = [each for each in recipients if each in peers]
        if not known:
            return
        passing = [frame for frame in frames if passes(frame)]
        ordered = [frame for frame in frames if not passes(frame)]
        for sent in (passing, ordered) if passing and ordered else (frames,):
            is_passing = bool(passing) and sent is not ordered
            for pieces in self.box.messages(known, members, sent, passes=is_passing):
                for recipient in known:
                    self._carry(self._kind, recipient, pieces, is_passing)
        if any(isinstance(frame, Vote) and frame.granted and not frame.is_trial for frame in frames):
            self._voted()

    def flush(self) -> bool:
        """Send the buffered messages; return False if some wait for room in a peer's cache, and a retry is due soon."""
        return True

    def close(self) -> None:
        """Delete the endpoints; the other members notice it at once."""


class Links:
    """The links of one process, an `OpensLinks`.

    Args:
        name: the process's application name.
        run: distinguishes the process from others of the same name.
        clock: the monotonic clock.
        carry: called with the kind of a message, a member's name, its fragments, and whether it passes others.
        voted: called once a vote has been sent.
        version: that of the letters.
    """

    def __init__(
        self,
        name: str,
        run: str,
        clock: Callable[[], Nanoseconds],
        carry: Callable[[str, str, Sequence[bytes], bool], None],
        voted: Callable[[], None],
        version: int,
    ) -> None:
        self.own = Seen(name, run, 0)
        self._version = version
        self._clock = clock
        self._carry = carry
        self._voted = voted
        self.opened: dict[str, SimulatedLink] = {}

    def open_replica_link(
        self,
        cluster: str,
        started_at_ns: Nanoseconds,
        replicated: Sequence[SharedReaderQueueSettings],
        silence_ns: Nanoseconds,
        *,
        joins: bool,
    ) -> SimulatedLink:
        """Open the link between the replicas of queues."""
        self.own = self.own._replace(joins=joins)
        return self._open(QUEUES, started_at_ns, silence_ns)

    def open_configuration_link(
        self, cluster: str, started_at_ns: Nanoseconds, silence_ns: Nanoseconds
    ) -> SimulatedLink:
        """Open the link that replicates the configuration."""
        return self._open(CONFIGURATION, started_at_ns, silence_ns)

    def _open(self, kind: str, started_at_ns: Nanoseconds, silence_ns: Nanoseconds) -> SimulatedLink:
        self.own = self.own._replace(started_at_ns=started_at_ns)
        link = self.opened[kind] = SimulatedLink(
            kind, self.own, silence_ns, self._clock, self._carry, self._voted, self._version
        )
        return link
