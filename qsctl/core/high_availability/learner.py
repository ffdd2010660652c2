"""A replica that lost its log: a new disk, or the restart of a volatile one.

Decides: when it may vote again. It may have confirmed entries and given votes that it does not know of any more. So it
counts for no quorum until a master that knows of its loss has committed an entry (`ReplicaRejoined`) without it, and it
holds the log up to there: whoever is elected afterwards has more than it ever confirmed.

Where too few others remember for that, at the first start of volatile replicas or after the loss of a majority of the
logs, the group forms anew, once every replica is there and has said what it has: nothing that is left anywhere is lost,
and what was only with those that lost their logs is gone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from qsctl.core.high_availability.frames import Roll
from qsctl.core.high_availability.log import LastEntry
from qsctl.instant import Nanoseconds


class Formation(NamedTuple):
    """How a group forms anew: the latest epoch of any replica, and the most that any of them has."""

    epoch: int
    floor: LastEntry


class Learner:
    """What a learner heard of the others.

    Args:
        others: their names.
        quorum: how many replicas commit an entry.
        incarnation: the start of this process: answers to an earlier one count for nothing.
        valid_ns: how long an answer counts.
    """

    def __init__(self, others: Sequence[str], quorum: int, incarnation: int, valid_ns: Nanoseconds) -> None:
        self._others = others
        self._quorum = quorum
        self._incarnation = incarnation
        self._valid_ns = valid_ns
        self._answers: dict[str, tuple[Nanoseconds, Roll]] = {}

    def receive(self, now: Nanoseconds, roll: Roll) -> None:
        """Note what another replica has."""
        if roll.answers == self._incarnation and roll.sender in self._others:
            self._answers[roll.sender] = (now, roll)

    def formation(self, now: Nanoseconds) -> Formation | None:
        """Return how the group forms anew; None: it does not, for somebody is missing or enough remember."""
        rolls = [roll for at_ns, roll in self._answers.values() if now - at_ns <= self._valid_ns]
        if len(rolls) < len(self._others) or sum(not roll.is_learner for roll in rolls) >= self._quorum:
            return None
        last = max((LastEntry(roll.last_epoch, roll.last_index) for roll in rolls), default=LastEntry(0, 0))
        return Formation(max((roll.epoch for roll in rolls), default=0), last)
