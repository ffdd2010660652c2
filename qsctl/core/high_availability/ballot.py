"""Elections of a replica: its epoch, its one vote in it, and the votes that it gathers [QS 7.1.2].

Decides: who gets the vote, and when the votes gathered make a master. When an election begins, and what is sent, is the
replica's.
"""

from __future__ import annotations

from typing import Final

import msgspec

from qsctl.core.high_availability.log import LastEntry

NO_VOTER: Final = "*"
"""In the place of a vote: the replica lost its log and has none until it holds the log again."""


NO_LOG: Final = "!"
"""The same, and the log that it has does not fit: it is replaced from the beginning."""


class HardState(msgspec.Struct, frozen=True, array_like=True):
    """What a replica must never forget: the latest epoch that it has seen, and which replica it voted for in it."""

    epoch: int = 0
    vote: str = ""


class Ballot:
    """One replica's part in the elections of its group.

    Args:
        name: the replica's own.
        quorum: how many votes make a master.
        state: what it remembers; changed only here.
    """

    def __init__(self, name: str, quorum: int, state: HardState) -> None:
        self._name = name
        self._quorum = quorum
        self.state = state
        self._votes: dict[str, None] = {}
        self._trial_epoch = 0
        self.floor = LastEntry(0, 0)
        """No candidate whose log is less up to date gets the vote: see `Learner`."""

    @property
    def epoch(self) -> int:
        """The latest epoch that it has seen."""
        return self.state.epoch

    @property
    def is_learner(self) -> bool:
        """Whether it has no vote."""
        return self.state.vote in (NO_VOTER, NO_LOG)

    @property
    def awaits_beginning(self) -> bool:
        """Whether only a log from its beginning is taken up."""
        return self.state.vote == NO_LOG

    def observe(self, epoch: int) -> bool:
        """Take up a later epoch, in which it has not voted; false: it is none."""
        if epoch <= self.state.epoch:
            return False
        self.state = HardState(epoch, self.state.vote if self.is_learner else "")
        self._votes.clear()
        self._trial_epoch = 0
        return True

    def try_out(self, epoch: int) -> int:
        """Ask for votes in a later epoch without standing in it; return that epoch."""
        self._trial_epoch = epoch
        self._votes = {self._name: None}
        return self._trial_epoch

    def stand(self) -> int:
        """Stand in the epoch of the trial, with its own vote; return that epoch."""
        self.state = HardState(max(self._trial_epoch, self.state.epoch + 1), self._name)
        self._trial_epoch = 0
        self._votes = {self._name: None}
        return self.state.epoch

    def gather(self, voter: str, epoch: int, *, is_trial: bool) -> bool:
        """Count a vote; whether they are a quorum now. Votes of another election count for nothing."""
        wanted = self._trial_epoch if is_trial else self.state.epoch
        if epoch != wanted or is_trial != bool(self._trial_epoch) or self.is_learner:
            return False
        self._votes[voter] = None
        return self.has_quorum

    @property
    def has_quorum(self) -> bool:
        """Whether the votes that were gathered make a master."""
        return len(self._votes) >= self._quorum

    @property
    def is_elected(self) -> bool:
        """Whether it stood in the present epoch and a quorum voted for it."""
        return not self._trial_epoch and self.state.vote == self._name and self.has_quorum

    def would_vote(self, candidate: LastEntry, epoch: int, own: LastEntry) -> bool:
        """Whether a candidate of a later epoch would get the vote."""
        return not self.is_learner and epoch > self.state.epoch and candidate >= max(own, self.floor)

    def vote(self, candidate: str, last: LastEntry, epoch: int, own: LastEntry) -> bool:
        """Vote for a candidate of the present epoch, if it is as up to date and no other has the vote."""
        if self.is_learner or epoch != self.state.epoch or last < max(own, self.floor):
            return False
        if self.state.vote not in ("", candidate):
            return False
        self.state = HardState(epoch, candidate)
        return True

    def lose_vote(self) -> None:
        """Have no vote from now on: the log was lost."""
        self.state = HardState(self.state.epoch, NO_VOTER)

    def lose_log(self) -> None:
        """Have no vote from now on: the log does not fit, and counts for nothing."""
        self.state = HardState(self.state.epoch, NO_LOG)

    def regain_vote(self, epoch: int, spent_on: str) -> None:
        """Vote again, from the epoch after this one on."""
        self.state = HardState(max(epoch, self.state.epoch), spent_on)
