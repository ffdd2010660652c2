"""The orderly hand-over of a master to another voter, by an operator's command or to a preferred one [QS 7.1.2].

Decides: which members can be master next, when the chosen one holds enough for that, and when the master goes on itself
instead. Meanwhile samples wait, and queues send nothing, so that the log comes to rest.

A master hands over by itself to the voter of the highest priority above its own, once that one has been level for
`LEVEL_TIMEOUTS` times `master_timeout` without a gap, as seen at each heartbeat. A hand-over that is given up begins
that time anew. So a member that returns, falls behind, or hangs again and again interrupts the queues rarely.
"""

from __future__ import annotations

from typing import Final

from qsctl.core.high_availability._followed import Followed
from qsctl.core.high_availability._log import ReplicatedLog
from qsctl.core.high_availability._mastery import Mastery
from qsctl.core.high_availability._members import GroupMembers
from qsctl.core.high_availability._preferences import Preferences
from qsctl.core.high_availability._producers import Producers
from qsctl.core.high_availability._progress import Peer
from qsctl.errors import Refused
from qsctl.instant import INFINITE_NS, Nanoseconds

LEVEL_TIMEOUTS: Final = 5
"""Multiple of `master_timeout` for which a preferred member must have been level before it is handed over to."""


class HandOver:
    """The hand-over of one replica that is master, if one is in progress.

    Args:
        stream: the group's name.
        members: of the group.
        log: the replica's.
        follower: the queues, which pause meanwhile.
        producers: their samples wait meanwhile.
        preferences: for members as masters.
        master_timeout_ns: the setting; a hand-over lasts half of it at most.
    """

    def __init__(
        self,
        stream: str,
        members: GroupMembers,
        log: ReplicatedLog,
        follower: Followed,
        producers: Producers,
        preferences: Preferences,
        master_timeout_ns: Nanoseconds,
    ) -> None:
        self._stream = stream
        self._members = members
        self._log = log
        self._follower = follower
        self._producers = producers
        self._preferences = preferences
        self._master_timeout_ns = master_timeout_ns
        self._successor = ""
        self._reason = ""
        self._is_due_at_ns: Nanoseconds = INFINITE_NS
        self._level_since_ns: dict[str, Nanoseconds] = {}
        """Since when each preferred member has been level, by name."""

    @property
    def is_in_progress(self) -> bool:
        """Return whether a successor is chosen and does not hold enough yet."""
        return bool(self._successor)

    @property
    def reason(self) -> str:
        """The reason for the present or latest hand-over, for people."""
        return self._reason

    def next_deadline(self) -> Nanoseconds:
        """Return when the successor must hold enough."""
        return self._is_due_at_ns

    def candidates(self, now: Nanoseconds, mastery: Mastery) -> list[Peer]:
        """Return the other voters that answer and are not drained, of which each can be master next."""
        return [peer for peer in self._remaining(now, mastery) if not self._members.is_witness(peer.name)]

    def _remaining(self, now: Nanoseconds, mastery: Mastery) -> list[Peer]:
        """Return the other voters that answer and are not about to be stopped, as a drained one is."""
        return [
            peer
            for peer in mastery.present(now)
            if self._members.is_voter(peer.name)
            and not peer.is_learner
            and not self._preferences.is_drained(now, peer.name, peer.run)
        ]

    def check_stop(self, now: Nanoseconds, mastery: Mastery) -> None:
        """Check that the group has a quorum without this process.

        Raises:
            Refused: the other voters that answer and are not drained are fewer.
        """
        members, remaining = self._members, self._remaining(now, mastery)
        if not members.is_quorum([peer.name for peer in remaining]):
            raise Refused(
                f"{self._stream}: of the {len(members.voters)} voters only {len(remaining)} would be left without "
                f"{members.name}, and {members.quorum} are a quorum",
                remedy="Wait until another voter is back, or add one; `qsctl shutdown` without --drain stops this one.",
            )

    def most_up_to_date(self, now: Nanoseconds, mastery: Mastery) -> Peer | None:
        """Return the candidate with the longest log; None: there is no candidate."""
        return max(self.candidates(now, mastery), key=lambda peer: peer.match_index, default=None)

    def choose(self, now: Nanoseconds, mastery: Mastery, wanted: str) -> str:
        """Return the member that the master can hand over to: the wanted one, or of all (empty) the most up to date.

        Raises:
            Refused: the master is the only voter, or no such voter answers and holds all that is committed.
        """
        members = self._members
        if set(members.voters) == {members.name}:
            raise Refused(
                f"{self._stream}: {members.name} is the only voter",
                remedy="Add another member and promote it; `qsctl shutdown` without --drain stops this one.",
            )
        if wanted and not (members.is_voter(wanted) and wanted != members.name):
            raise Refused(
                f"{self._stream}: {wanted} is not another member that has a vote",
                remedy=f"Name one of {', '.join(each for each in members.voters if each != members.name)}.",
            )
        if wanted and self._preferences.is_drained(now, wanted, mastery.progress[wanted].run):
            raise Refused(
                f"{self._stream}: {wanted} is drained, and no master before it restarts", remedy="Name another member."
            )
        answering = [peer for peer in self.candidates(now, mastery) if wanted in ("", peer.name)]
        level = [peer for peer in answering if self._is_level(now, peer)]
        if not level:
            known = ", ".join(f"{peer.name} has {peer.match_index}" for peer in answering)
            raise Refused(
                f"{self._stream}: {wanted or 'each other voter'} does not answer, or lacks some of the "
                f"{self._log.commit_index} committed entries{known and f' ({known})'}",
                remedy="Wait until one has caught up; `qsctl member list` shows it.",
            )
        return max(level, key=lambda peer: peer.match_index).name

    def _is_level(self, now: Nanoseconds, peer: Peer) -> bool:
        return peer.has_confirmed and not peer.disk_hangs and now - peer.level_at_ns <= self._master_timeout_ns

    def preferred(self, now: Nanoseconds, mastery: Mastery) -> str:
        """Return the member that is preferred to the master and has been level for long; empty: there is none.

        It is to be called with each heartbeat.
        """
        preferences = self._preferences
        self._level_since_ns = {
            peer.name: self._level_since_ns.get(peer.name, now)
            for peer in self.candidates(now, mastery)
            if preferences.is_preferred(now, peer.name, peer.run) and self._is_level(now, peer)
        }
        wait_ns = LEVEL_TIMEOUTS * self._master_timeout_ns
        return max(
            (name for name, since_ns in self._level_since_ns.items() if now - since_ns >= wait_ns),
            key=lambda name: preferences.priority(now, name),
            default="",
        )

    def begin(self, now: Nanoseconds, successor: str, reason: str) -> None:
        """Begin to hand over to a member, after `choose`: `ready` returns it once it holds enough."""
        self._successor, self._reason = successor, reason
        self._is_due_at_ns = now + max(1, self._master_timeout_ns // 2)
        self._producers.holds_back = True
        self._follower.pause()

    def ready(self, now: Nanoseconds, mastery: Mastery) -> str:
        """Return the successor once it holds enough; empty: it does not, or none is chosen.

        It must hold the whole log, and half of `master_timeout` later at least what is committed: an entry behind that
        is in no answer. If it does not hold that either, or is gone, the master goes on.
        """
        if not self._successor:
            return ""
        peer = next((each for each in self.candidates(now, mastery) if each.name == self._successor), None)
        is_late = self._is_due_at_ns <= now
        needed_index = self._log.commit_index if is_late else self._log.last_index
        if peer is not None and peer.match_index >= needed_index:
            return peer.name
        if peer is None or is_late:
            self.end()
            self._follower.go_on(now)
            self._producers.go_on(now)
        return ""

    def end(self) -> None:
        """Forget the successor: the replica is not the master any more, or goes on."""
        self._successor, self._is_due_at_ns = "", INFINITE_NS
        self._level_since_ns.clear()
        self._producers.holds_back = False
