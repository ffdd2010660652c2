"""How a replica becomes master: a trial, in which nothing changes, then the election itself [QS 7.1.2].

Decides: who is asked for votes, and who gets this replica's. A trial first, so that a replica that merely lost contact
comes back without a later epoch, which would depose a master that works. A trial changes nothing durable anywhere; see
`epochs` for which epoch is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qsctl.core.high_availability.frames import Canvass, Vote
from qsctl.core.high_availability.log import LastEntry
from qsctl.instant import Nanoseconds

if TYPE_CHECKING:
    from qsctl.core.high_availability.replica import Replica


class Election:
    """One replica's part in elections, on the wire.

    Args:
        replica: whose part it is.
    """

    def __init__(self, replica: Replica) -> None:
        self._replica = replica

    def begin(self, now: Nanoseconds) -> None:
        """Ask all others whether they would vote for it."""
        self._canvass(now, self._replica.ballot.try_out(self._replica.epochs.reach(self._replica.epoch)), is_trial=True)

    def answer(self, now: Nanoseconds, canvass: Canvass) -> None:
        """Vote for another replica, or do not. A vote leaves once it is durable."""
        replica = self._replica
        ballot, own = replica.ballot, replica.log.last
        last = LastEntry(canvass.last_epoch, canvass.last_index)
        if canvass.is_trial:
            # A master that steps down to stand in a later epoch is not a rival of itself.
            is_rival = canvass.sender != replica.master and replica.allegiance.withholds_vote(now)
            granted = replica.mastery is None and not is_rival and ballot.would_vote(last, canvass.candidate_epoch, own)
        else:
            before = ballot.state
            granted = ballot.vote(canvass.sender, last, canvass.candidate_epoch, own)
            if granted:
                replica.sleep(now)
                if ballot.state != before:
                    replica.outgoing.write_hard_state(ballot.state)
        vote = Vote(
            replica.stream,
            replica.name,
            ballot.epoch,
            canvass.candidate_epoch,
            canvass.is_trial,
            granted,
            replica.incarnation,
        )
        replica.outgoing.send(canvass.sender, vote, rests_on_writes=True)

    def count(self, now: Nanoseconds, vote: Vote) -> None:
        """Count another replica's vote, and do what follows from a quorum."""
        if vote.granted and self._replica.ballot.gather(vote.sender, vote.candidate_epoch, is_trial=vote.is_trial):
            self._win(now, is_trial=vote.is_trial)

    def _canvass(self, now: Nanoseconds, epoch: int, *, is_trial: bool) -> None:
        replica = self._replica
        last = replica.log.last
        frame = Canvass(
            replica.stream,
            replica.name,
            replica.epoch,
            epoch,
            last.epoch,
            last.index,
            is_trial,
            replica.incarnation,
        )
        for other in replica.others:
            replica.outgoing.send(other, frame, rests_on_writes=not is_trial)
        if replica.ballot.has_quorum:  # it is alone
            self._win(now, is_trial=is_trial)

    def _win(self, now: Nanoseconds, *, is_trial: bool) -> None:
        replica = self._replica
        if is_trial:
            epoch = replica.ballot.stand()
            replica.outgoing.write_hard_state(replica.ballot.state)
            self._canvass(now, epoch, is_trial=False)
        else:
            replica.lead_if_elected(now)
