"""A replica that lost its log: a new disk, or the restart of a volatile one.

Decides: when it may vote again. It may have confirmed entries and given votes that it does not know of any more. So it
counts for no quorum until a master that knows of its loss has committed an entry (`ReplicaRejoined`) without it, and it
holds the log up to there: a replica that is elected afterwards has more than it ever confirmed.

Where too few others remember for that, at the first start of volatile replicas or after the loss of a majority of the
logs, the group forms anew, once every replica is there and has said what it has: nothing that is left anywhere is lost,
and what was only with those that lost their logs is gone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from qsctl.core.high_availability.frames import Roll
from qsctl.core.high_availability.log import LastEntry
from qsctl.instant import Nanoseconds

if TYPE_CHECKING:
    from qsctl.core.high_availability.replica import Replica


class Formation(NamedTuple):
    """How a group forms anew: the latest epoch of any replica, and the most that any of them has."""

    epoch: int
    floor: LastEntry


class Learner:
    """What a learner asks the others, and what they answer.

    Args:
        replica: the learner; any other replica only answers.
        valid_ns: how long an answer counts.
    """

    def __init__(self, replica: Replica, valid_ns: Nanoseconds) -> None:
        self._replica = replica
        self._valid_ns = valid_ns
        self._answers: dict[str, tuple[Nanoseconds, Roll]] = {}

    def call_the_roll(self) -> None:
        """Ask the others what they have."""
        for other in self._replica.others:
            self._send(other, None)

    def receive(self, now: Nanoseconds, roll: Roll) -> bool:
        """Answer another replica, or note its answer; one to an earlier process of this name counts for nothing.

        Returns:
            Whether it was an answer to this process.
        """
        if roll.answers is None:
            self._send(roll.sender, roll.run)
        elif roll.answers == self._replica.run:
            self._answers[roll.sender] = (now, roll)
            return True
        return False

    def formation(self, now: Nanoseconds) -> Formation | None:
        """Return how the group forms anew; None: it does not, for a replica is missing or enough remember."""
        replica = self._replica
        rolls = [roll for at_ns, roll in self._answers.values() if now - at_ns <= self._valid_ns]
        if len(rolls) < len(replica.others) or sum(not roll.is_learner for roll in rolls) >= replica.quorum:
            return None
        last = max((LastEntry(roll.last_epoch, roll.last_index) for roll in rolls), default=LastEntry(0, 0))
        return Formation(max((roll.epoch for roll in rolls), default=0), last)

    def _send(self, recipient: str, answers: int | None) -> None:
        replica = self._replica
        last = replica.log.last
        frame = Roll(
            replica.stream,
            replica.name,
            replica.epoch,
            replica.run,
            last.epoch,
            last.index,
            replica.ballot.is_learner,
            answers,
        )
        replica.outgoing.send(recipient, frame, rests_on_writes=True)
