"""A master's record of the other replicas of its group, and of the entries that a quorum has.

Decides: how far the log is committed: only an entry of the master's own epoch commits by counting, and those before it
with it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Final, TypeVar, cast

from qsctl.core.high_availability._log import ReplicatedLog
from qsctl.core.high_availability._members import GroupMembers
from qsctl.core.high_availability.frames import Entry
from qsctl.core.records import Enqueued, EnqueuedRun
from qsctl.instant import Nanoseconds

ENTRIES_MAX: Final = 512
"""Entries of one frame."""

UNCONFIRMED_MAX: Final = 8 * ENTRIES_MAX
"""Entries that are sent ahead of a replica's confirmations."""

FRAME_BYTES_MAX: Final = 1024 * 1024
"""Octets of payloads in one frame; a larger sample is sent alone. The loop that sends heartbeats encodes frames, and a
receiver has all of one in memory before it reads the first entry."""

PROBE_BYTES_MAX: Final = 32 * 1024
"""The same for a frame that finds out where the logs agree: it is sent again with each heartbeat."""

UNCONFIRMED_BYTES_MAX: Final = 8 * FRAME_BYTES_MAX
"""Octets of payloads from which on nothing more is sent ahead of a replica's confirmations: what waits for one replica
in memory and in the network is less than this and a frame more."""


NEVER_NS: Final[Nanoseconds] = -(2**62)
"""In the place of an instant: a replica confirmed nothing yet."""


EntryKind = TypeVar("EntryKind", bound=Entry)


def entries_that_fit(entries: Sequence[EntryKind], *, is_probe: bool = False) -> tuple[Sequence[EntryKind], int]:
    """Return the entries that one frame contains, and the octets of their payloads; a run is divided.

    A probe may contain none, any other frame at least the first.
    """
    total, bytes_max = 0, PROBE_BYTES_MAX if is_probe else FRAME_BYTES_MAX
    for at, entry in enumerate(entries):
        sizes = _payload_sizes(entry)
        if total + sum(sizes) <= bytes_max or (len(sizes) == 1 and not (at or is_probe)):
            total += sum(sizes)
            continue
        count = 0
        while total + sizes[count] <= bytes_max or not (at or count or is_probe):
            total += sizes[count]
            count += 1
        if not count:
            return entries[:at], total
        assert isinstance(entry, EnqueuedRun)
        return (*entries[:at], cast("EntryKind", entry.part(0, count))), total
    return entries, total


def _payload_sizes(entry: Entry) -> list[int]:
    """Return the octets of each payload in an entry."""
    if type(entry) is Enqueued:
        return [len(entry.payload)]
    return [*map(len, entry.payloads)] if type(entry) is EnqueuedRun else []


class Peer:
    """One other replica, as the master knows it."""

    __slots__ = (
        "_goal",
        "_sent",
        "_unconfirmed_bytes",
        "applied_index",
        "disk_hangs",
        "has_confirmed",
        "heard_at_ns",
        "is_learner",
        "is_probed",
        "level_at_ns",
        "match_index",
        "name",
        "next_index",
        "rejoins_at_index",
        "rewound_at_ns",
        "run",
        "snapshot_sent_at_ns",
        "wants_payloads_to",
    )

    def __init__(self, name: str, next_index: int, now: Nanoseconds) -> None:
        self.name = name
        self.match_index = 0
        """It holds the log durably up to here."""
        self.next_index = next_index
        self.is_probed = True
        """Whether it is not known yet where the logs agree: one frame at a time."""
        self.heard_at_ns = now
        """When the latest frame was sent that it confirmed: since then it waits for another sign of the master."""
        self.run = 0
        self.is_learner = False
        self.rejoins_at_index = 0
        """The entry that gives a learner its vote back; 0: not appended."""
        self.wants_payloads_to = 0
        """Entries up to here go to it with their payloads."""
        self.snapshot_sent_at_ns: Nanoseconds = -1
        self.has_confirmed = False
        """Whether it has confirmed a frame of this master: else its indexes are unknown."""
        self.level_at_ns = NEVER_NS
        """The latest instant of which it is known that it holds all that was committed then."""
        self._goal: tuple[int, Nanoseconds] = (0, NEVER_NS)
        """The commit index, and its instant, from which on `level_at_ns` is that instant."""
        self.applied_index: int | None = None
        """The entry up to which its queues have followed, by its latest `ConditionReport`; None: unknown."""
        self.disk_hangs: bool | None = None
        self.rewound_at_ns: Nanoseconds = NEVER_NS
        """When entries were to be sent again: what it answers to earlier frames is outdated."""
        self._sent: deque[tuple[int, int]] = deque()
        """The last index and the octets of each frame that was sent ahead."""
        self._unconfirmed_bytes = 0

    @property
    def is_level(self) -> bool:
        """Return whether it confirmed everything that was sent to it."""
        return not self.is_probed and self.next_index == self.match_index + 1

    def note_sent(self, count: int, payload_bytes: int) -> None:
        """Note that a frame of entries from `next_index` on was sent ahead of confirmations."""
        self.next_index += count
        self._sent.append((self.next_index - 1, payload_bytes))
        self._unconfirmed_bytes += payload_bytes

    def unconfirmed_bytes(self) -> int:
        """Return the octets of payloads that were sent ahead, not confirmed, and not to be sent again."""
        sent = self._sent
        while sent and sent[0][0] <= self.match_index:
            self._unconfirmed_bytes -= sent.popleft()[1]
        while sent and sent[-1][0] >= self.next_index:
            self._unconfirmed_bytes -= sent.pop()[1]
        return self._unconfirmed_bytes

    def note_level(self, now: Nanoseconds, commit_index: int) -> None:
        """Note how recently it held all that was committed, once it has confirmed more."""
        index, at_ns = self._goal
        if self.match_index >= commit_index:
            self.level_at_ns = now
        elif self.match_index >= index:
            self.level_at_ns = at_ns
        else:
            return
        self._goal = commit_index, now

    def begin_again(self, run: int) -> None:
        """Know nothing of it: it lost its log."""
        self.run = run
        self.is_learner = True
        self.level_at_ns, self._goal = NEVER_NS, (0, NEVER_NS)
        self.applied_index = self.disk_hangs = None
        self.match_index = self.rejoins_at_index = self.wants_payloads_to = 0
        self.next_index = 1
        self.is_probed = True
        self.snapshot_sent_at_ns = -1

    def rewind(self, now: Nanoseconds, next_index: int) -> None:
        """Send it entries again from an index on."""
        self.next_index = next_index
        self.rewound_at_ns = now


class Progress:
    """The other replicas of a master.

    Args:
        members: of the group; a quorum of the voters among them commits an entry.
        next_index: the master's first own entry.
        now: the instant of its election.
    """

    def __init__(self, members: GroupMembers, next_index: int, now: Nanoseconds) -> None:
        self._peers = {name: Peer(name, next_index, now) for name in members.others}
        self._members = members

    def __iter__(self) -> Iterator[Peer]:
        return iter(self._peers.values())

    def __getitem__(self, name: str) -> Peer:
        return self._peers[name]

    def get(self, name: str) -> Peer | None:
        """Return the record of another replica; None: it is not a member."""
        return self._peers.get(name)

    def follow_members(self, next_index: int) -> list[Peer]:
        """Have a record of each other member, and of no other replica; return those that are not members any more."""
        names = self._members.others
        gone = [self._peers.pop(name) for name in self._peers.keys() - set(names)]
        for name in names:
            if name not in self._peers:
                self._peers[name] = Peer(name, next_index, NEVER_NS)
        return gone

    def _voters(self) -> Iterator[Peer]:
        return (each for each in self if not each.is_learner and self._members.is_voter(each.name))

    def held_index(self, now: Nanoseconds, within_ns: Nanoseconds) -> int | None:
        """Return the index up to which each voter with payloads holds the log that was level lately; None: none was.

        One that has not confirmed anything to this master yet counts as long.
        """
        return min(
            (
                each.match_index
                for each in self._voters()
                if not self._members.is_witness(each.name)
                and now - (each.level_at_ns if each.has_confirmed else each.heard_at_ns) <= within_ns
            ),
            default=None,
        )

    def quorum_index(self, own_index: int) -> int:
        """Return the highest index that a quorum of voters holds; `own_index` is durable at the master."""
        members = self._members
        own = [own_index] if members.is_voter(members.name) else []
        held = sorted([*own, *(each.match_index for each in self._voters())], reverse=True)
        return held[members.quorum - 1] if len(held) >= members.quorum else 0

    def committable(self, log: ReplicatedLog, own_index: int, epoch: int) -> int:
        """Return how far the log is committed now."""
        index = self.quorum_index(own_index)
        # An entry of an older epoch at a quorum may still be replaced; one of this epoch above it commits both.
        return index if index > log.commit_index and log.epoch_at(index) == epoch else log.commit_index

    def quorum_heard_at_ns(self) -> Nanoseconds:
        """Return the latest instant since which a quorum confirmed something, the master itself counting as a voter."""
        members = self._members
        heard = sorted((each.heard_at_ns for each in self._voters()), reverse=True)
        wanted = members.quorum - members.is_voter(members.name)
        if not wanted:
            return 2**62
        return heard[wanted - 1] if len(heard) >= wanted else NEVER_NS
