"""Elections of a replica: its epoch, its one vote in it, and the votes that it gathers [QS 7.1.2].

Decides: who gets the vote, and when the votes gathered make a master. When an election begins, and what is sent, is the
replica's.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import structs

from qsctl.core.high_availability._log import LastEntry
from qsctl.core.high_availability._members import GroupMembers

NO_VOTER: Final = "*"
"""In the place of a vote: the replica lost its log and has none until it holds the log again."""


NO_LOG: Final = "!"
"""The same, and the log that it has does not fit: it is replaced from the beginning."""


NEW_MEMBER: Final = "?"
"""The same, of a replica that never had a log, as far as it can know: it may form a new group with others like it."""

LEFT_MAX: Final = 64
"""Groups of one name that are remembered as left."""


class HardState(msgspec.Struct, frozen=True, array_like=True):
    """The durable state of a replica's votes: the latest epoch that it has seen, and the replica that it voted for in
    it.

    `floor_epoch` and `floor_index`: no candidate whose log is less up to date gets the vote, for the group formed anew
    when some replica had that much. `incarnation` is that of the group once it is agreed, 0 before; `left` are those of
    the groups of this name that this replica was in earlier, latest last. `voters` and `learners` are the members that
    the group was created with, until its log lists them; no voters: those that the cluster was formed with.
    """

    epoch: int = 0
    vote: str = ""
    floor_epoch: int = 0
    floor_index: int = 0
    incarnation: int = 0
    left: tuple[int, ...] = ()
    voters: tuple[str, ...] = ()
    learners: tuple[str, ...] = ()

    def leaving(self, incarnation: int) -> tuple[int, ...]:
        """Return `left` with one more."""
        kept = tuple(each for each in self.left if each != incarnation)
        return (*kept, incarnation)[-LEFT_MAX:] if incarnation else kept


class Ballot:
    """One replica's part in the elections of its group.

    Args:
        members: of the group; the voters among them elect a master.
        state: its durable state; changed only here.
    """

    def __init__(self, members: GroupMembers, state: HardState) -> None:
        self._name = members.name
        self._members = members
        self.state = state
        self._votes: dict[str, None] = {}
        """Those for its candidacy in the present epoch, its own among them; empty: it is no candidate there."""
        self._trial_epoch = 0
        self._trial_votes: dict[str, None] = {}

    @property
    def floor(self) -> LastEntry:
        """No candidate whose log is less up to date gets the vote: see `Learner`."""
        return LastEntry(self.state.floor_epoch, self.state.floor_index)

    @property
    def epoch(self) -> int:
        """The latest epoch that it has seen."""
        return self.state.epoch

    @property
    def is_learner(self) -> bool:
        """Return whether it has no vote."""
        return self.state.vote in (NO_VOTER, NO_LOG, NEW_MEMBER)

    @property
    def is_new(self) -> bool:
        """Return whether it never had a log, as far as it can know, and has no vote yet."""
        return self.state.vote == NEW_MEMBER

    @property
    def awaits_beginning(self) -> bool:
        """Return whether only a log from its beginning is accepted."""
        return self.state.vote == NO_LOG

    def observe(self, epoch: int) -> bool:
        """Take up a later epoch, in which it has not voted; false: it is none."""
        if epoch <= self.state.epoch:
            return False
        self.state = self._with(epoch=epoch, vote=self.state.vote if self.is_learner else "")
        self.give_up()
        return True

    def give_up(self) -> None:
        """End its trial and candidacy: votes that come for them later count for nothing."""
        self._trial_epoch = 0
        self._trial_votes.clear()
        self._votes.clear()

    def try_out(self, epoch: int) -> int:
        """Ask for votes in a later epoch without becoming a candidate in it; return that epoch.

        A candidacy in the present epoch goes on: the votes for it may only be late.
        """
        self._trial_epoch = epoch
        self._trial_votes = {self._name: None}
        return self._trial_epoch

    def stand(self) -> int:
        """Become a candidate in the epoch of the trial, with its own vote; return that epoch."""
        self.state = self._with(epoch=max(self._trial_epoch, self.state.epoch + 1), vote=self._name)
        self.give_up()
        self._votes[self._name] = None
        return self.state.epoch

    def gather(self, voter: str, epoch: int, *, is_trial: bool) -> bool:
        """Count a vote; whether they are a quorum now. Votes of another election count for nothing."""
        votes = self._trial_votes if is_trial else self._votes
        if self.is_learner or not votes or epoch != (self._trial_epoch if is_trial else self.state.epoch):
            return False
        votes[voter] = None
        return self.has_quorum(is_trial=is_trial)

    def has_quorum(self, *, is_trial: bool) -> bool:
        """Return whether the votes that were gathered are a quorum."""
        return self._members.is_quorum(self._trial_votes if is_trial else self._votes)

    @property
    def is_candidate(self) -> bool:
        """Return whether it asked for votes in the present epoch, and did not give up."""
        return bool(self._votes)

    @property
    def is_elected(self) -> bool:
        """Return whether it is a candidate of the present epoch and a quorum voted for it."""
        return self.state.vote == self._name and self.has_quorum(is_trial=False)

    def would_vote(self, candidate: LastEntry, epoch: int, own: LastEntry) -> bool:
        """Return whether a candidate of a later epoch would get the vote."""
        return not self.is_learner and epoch > self.state.epoch and candidate >= max(own, self.floor)

    def vote(self, candidate: str, last: LastEntry, epoch: int, own: LastEntry) -> bool:
        """Vote for a candidate of the present epoch, if it is as up to date and no other has the vote."""
        if self.is_learner or epoch != self.state.epoch or last < max(own, self.floor):
            return False
        if self.state.vote not in ("", candidate):
            return False
        self.state = self._with(epoch=epoch, vote=candidate)
        return True

    def lose_vote(self) -> None:
        """Have no vote from now on: the log was lost."""
        self.state = self._with(vote=NO_VOTER)

    def lose_log(self) -> None:
        """Have no vote from now on: the log does not fit, and counts for nothing."""
        self.state = self._with(vote=NO_LOG)

    def be_new(self) -> None:
        """Have no vote until a group forms: there is nothing to remember."""
        self.state = self._with(vote=NEW_MEMBER)

    def regain_vote(self, epoch: int, spent_on: str, floor: LastEntry) -> None:
        """Vote again, from the epoch after this one on, and for no log that is less up to date than `floor`."""
        self.state = self._with(
            epoch=max(epoch, self.state.epoch), vote=spent_on, floor_epoch=floor.epoch, floor_index=floor.index
        )

    def agree(self, incarnation: int) -> None:
        """Note the incarnation of the group: a quorum has it."""
        self.state = self._with(incarnation=incarnation)

    def change_group(self, incarnation: int, left: int) -> None:
        """Be in another group of the name.

        Epochs begin anew there, unless the group that it leaves was not agreed: then both are of one beginning, in
        which no epoch may get two votes. A group that it was in before knows promises of it that are forgotten: there
        it is as one that lost its log.
        """
        is_beginning = left <= 0
        vote = self.state.vote if is_beginning or self.is_learner else ""
        if incarnation in self.state.left:
            vote = NO_VOTER
        gone = tuple(each for each in self.state.leaving(abs(left)) if each != incarnation)
        self.state = HardState(self.state.epoch if is_beginning else 0, vote, incarnation=incarnation, left=gone)
        self.give_up()

    def _with(self, **changed: Any) -> HardState:
        return structs.replace(self.state, **changed)
