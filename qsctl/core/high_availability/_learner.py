"""A replica without a vote: one that lost its log (a new disk, a volatile one that restarted), or that never had any.

Decides: when it may vote. One that lost its log may have confirmed entries and given votes that it has lost since. So
it counts for no quorum until a master that was notified of its loss has committed an entry (`ReplicaRejoined`) without
it, and it has the log up to there: a replica that is elected afterwards has more than it ever confirmed.

Replicas that never had a log, as far as they can know, form a new group as soon as a quorum of the configured members
is present and none that answers has any entry. Where too few have their logs after a loss, only an operator's command
lets a group form (`qsctl member force-quorum`): entries that only the replicas with lost logs, or absent ones, had are
lost then. The longest log of those present is the floor of the new group, durably: no replica with less is elected.
Where the one that had it is gone, too, or has no vote itself, another command helps: each replica that it reaches has a
vote, and requires no more than the remaining logs. Volatile replicas, whose logs are lost by any restart, form anew by
themselves once all of them are present.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from qsctl.core.high_availability._groups import group_with_most, incarnation_of, is_of_group
from qsctl.core.high_availability._log import LastEntry, ReplicatedLog
from qsctl.core.high_availability._members import GroupMembers
from qsctl.core.high_availability.ballot import Ballot
from qsctl.core.high_availability.frames import Roll
from qsctl.core.high_availability.outgoing import Outgoing
from qsctl.errors import Refused
from qsctl.instant import Nanoseconds

NOTHING: Final = LastEntry(0, 0)


class Formation(NamedTuple):
    """The formation of a group: the latest epoch of any replica, the longest log of any, and the reason, for people."""

    epoch: int
    floor: LastEntry
    reason: str
    group: int = 0
    """The incarnation of the group that the replica changes to; 0: it is in the right one."""
    joined: int = 0
    """The incarnation of the group in which a replica without one votes, where others are of several; 0: any."""


class Voter(NamedTuple):
    """A replica that has a vote: the last entry of its log, and the least that it votes for."""

    last: LastEntry
    floor: LastEntry
    is_witness: bool = False


class Learner:
    """The questions of a learner to the others, and their answers; any other replica only answers.

    Args:
        stream: the group's name.
        members: of the group.
        ballot: the replica's vote.
        log: its log.
        outgoing: sends the frames.
        master_timeout_ns: the setting; an answer counts for twice as long.
        is_persistent: whether logs are stored.
    """

    def __init__(
        self,
        stream: str,
        members: GroupMembers,
        ballot: Ballot,
        log: ReplicatedLog,
        outgoing: Outgoing,
        master_timeout_ns: Nanoseconds,
        *,
        is_persistent: bool,
    ) -> None:
        self._stream = stream
        self._members = members
        self._ballot = ballot
        self._log = log
        self._outgoing = outgoing
        self._master_timeout_ns = master_timeout_ns
        self._is_persistent = is_persistent
        self._answers: dict[str, tuple[Nanoseconds, Roll]] = {}
        self._blank_since_ns: Nanoseconds | None = None
        """Since when a quorum answers and no member has a log; None: it does not."""

    def call_the_roll(self, run: int, *senders: str) -> None:
        """Ask the others, and these, what they have; `run` distinguishes this process from those before it."""
        for other in dict.fromkeys((*self._members.others, *senders)):
            self._send(other, run, None)

    def receive(self, now: Nanoseconds, roll: Roll, run: int) -> bool:
        """Answer another replica, or note its answer; one to an earlier process of this name counts for nothing.

        Returns:
            Whether it was an answer to this process.
        """
        if roll.answers is None:
            self._send(roll.sender, run, roll.run)
        elif roll.answers == run and roll.sender in self._members.others:
            self._answers[roll.sender] = (now, roll)
            return True
        return False

    def rolls(self, now: Nanoseconds) -> list[Roll]:
        """Return the answers of voters that still count."""
        return [
            roll
            for at_ns, roll in self._answers.values()
            if now - at_ns <= 2 * self._master_timeout_ns and self._members.is_voter(roll.sender)
        ]

    @property
    def _own_vote(self) -> int:
        """Return how many voters this replica is."""
        return int(self._members.is_voter(self._members.name))

    def formation(self, now: Nanoseconds) -> Formation | None:
        """Return how the group forms by itself; None: it does not, see `lack`."""
        rolls = self.rolls(now)
        epoch, floor = _latest(rolls, self._with_payloads(rolls))
        if self._ballot.is_new:
            _, floor = _latest(rolls)
            blank_count = self._own_vote + sum(_is_blank(roll) for roll in rolls)
            if floor > NOTHING or blank_count < self._members.quorum:
                self._blank_since_ns = None
                return None
            since_ns = self._blank_since_ns = now if self._blank_since_ns is None else self._blank_since_ns
            if blank_count < len(self._members.voters) and now - since_ns < self._master_timeout_ns:
                return None  # an answer may be on its way, of one that has something
            return Formation(epoch, NOTHING, "a new group forms: a quorum answers, and no member has a log")
        is_complete = len(rolls) + self._own_vote == len(self._members.voters)
        if self._is_persistent or not is_complete or len(self._voters(rolls)) >= self._members.quorum:
            return None
        return Formation(epoch, floor, "the group forms anew: too few replicas have a log")

    def forced(self, now: Nanoseconds) -> Formation:
        """Return how the group forms at an operator's command.

        Raises:
            Refused: the group can still elect a master; the message names the remedy.
        """
        rolls = self.rolls(now)
        own, group = self._incarnation, self._group_with_most(rolls)
        agreed = {each.incarnation for each in rolls if each.incarnation > 0}
        joined = group if not own and len(agreed) > 1 and group in agreed else 0
        of_group = [each for each in rolls if is_of_group(own or joined, each)]
        epoch, floor = _latest(of_group, self._with_payloads(of_group))
        if self._can_elect(rolls):
            raise Refused(
                f"{self._stream}: a quorum of the replicas that answer has its log",
                remedy="Wait for the election; `qsctl get replication` shows it.",
            )
        if (present := len(rolls) + self._own_vote) < self._members.quorum:
            raise Refused(
                f"{self._stream}: {present} of {len(self._members.voters)} members answer, "
                f"and {self._members.quorum} are a quorum",
                remedy="Start as many members first, with empty disks where theirs are lost.",
            )
        gives_way = bool(own and group) and group != abs(own)
        return Formation(epoch, floor, "the group forms anew by an operator's word", group if gives_way else 0, joined)

    def lack(self, now: Nanoseconds) -> str:
        """Return why there is no master, and what gets out of it, for people; empty: nothing is known to be lacking."""
        rolls = self.rolls(now)
        count, needed = len(self._members.voters), self._members.quorum
        if (present := len(rolls) + self._own_vote) < needed:
            return f"{present} of {count} members answer, and {needed} are a quorum: start the others"
        own = abs(self._incarnation)
        if others := sorted(each.sender for each in rolls if own and each.incarnation not in (0, own, -own)):
            return (
                f"{', '.join(others)}: of another creation of the queue, and none has a quorum: start the others, or "
                "accept with `qsctl member force-quorum` that the creation goes on which most members have"
            )
        voters = self._voters(rolls)
        if len(voters) < needed and not self._is_forming(rolls):
            return (
                f"{len(voters)} of {count} replicas are there with their log, and {needed} are a "
                "quorum: start the others, or accept the loss with `qsctl member force-quorum`"
            )
        if len(voters) >= needed and not self._can_elect(rolls):
            wanted = max(max(each.last, each.floor) for each in voters).index
            return (
                f"no replica that has a vote reaches entry {wanted}, which the group had: "
                "start the others, or accept the loss with `qsctl member force-quorum`"
            )
        return ""

    def _is_forming(self, rolls: Sequence[Roll]) -> bool:
        """Return whether no member that answers has a log, and this one never had, as far as it can know."""
        if self._ballot.is_new:
            return _latest(rolls)[1] == NOTHING
        has_nothing = self._log.last == self._ballot.floor == NOTHING and not self._ballot.is_learner
        return has_nothing and all(map(_is_blank, rolls))

    def _voters(self, rolls: Sequence[Roll]) -> list[Voter]:
        """Return those that have a vote in one group with this one, itself among them."""
        group = self._incarnation or self._group_with_most(rolls)
        own = (
            []
            if self._ballot.is_learner or not self._own_vote
            else [Voter(self._log.last, self._ballot.floor, self._members.is_witness(self._members.name))]
        )
        return own + [
            Voter(
                LastEntry(roll.last_epoch, roll.last_index),
                LastEntry(roll.floor_epoch, roll.floor_index),
                self._members.is_witness(roll.sender),
            )
            for roll in rolls
            if not roll.is_learner and is_of_group(group, roll)
        ]

    def _with_payloads(self, rolls: Sequence[Roll]) -> list[Roll]:
        return [each for each in rolls if not self._members.is_witness(each.sender)]

    def _group_with_most(self, rolls: Sequence[Roll]) -> int:
        return group_with_most(self._incarnation, self._ballot.state.left, self._log.last_index, rolls)

    def _can_elect(self, rolls: Sequence[Roll]) -> bool:
        """Return whether there is a replica for which a quorum would vote, itself among it."""
        voters = self._voters(rolls)
        return any(
            not is_witness
            and candidate >= floor
            and sum(candidate >= max(each.last, each.floor) for each in voters) >= self._members.quorum
            for candidate, floor, is_witness in voters
        )

    @property
    def _incarnation(self) -> int:
        return incarnation_of(self._ballot.state, self._log)

    def _send(self, recipient: str, run: int, answers: int | None) -> None:
        ballot, last = self._ballot, self._log.last
        frame = Roll(
            self._stream,
            self._members.name,
            ballot.epoch,
            run,
            last.epoch,
            last.index,
            ballot.is_learner,
            answers,
            self._incarnation,
            ballot.is_new,
            ballot.state.left,
            ballot.floor.epoch,
            ballot.floor.index,
        )
        self._outgoing.send(recipient, frame, rests_on_writes=True)


def _is_blank(roll: Roll) -> bool:
    """Return whether a replica has nothing and never had."""
    return LastEntry(roll.last_epoch, roll.last_index) == NOTHING and (roll.is_new or not roll.is_learner)


def _latest(rolls: Sequence[Roll], counting: Sequence[Roll] | None = None) -> tuple[int, LastEntry]:
    """Return the latest epoch of any replica, and the most that any of those has which count; None: all do."""
    lasts = [LastEntry(roll.last_epoch, roll.last_index) for roll in (rolls if counting is None else counting)]
    return max((roll.epoch for roll in rolls), default=0), max(lasts, default=NOTHING)
