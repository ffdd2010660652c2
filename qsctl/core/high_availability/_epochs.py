"""The highest epoch that a replica follows when another one claims it [QS 7.1.2].

Decides: which epoch can be reached. One frame with a number that is far ahead would use up all epochs of a group: every
later election needs a higher one. So an epoch is raised by a candidate's canvass, or by a master's frame, and to at
most one more than the highest that a quorum was seen in. An epoch counts as seen when a replica stated it in an answer
to a question of this very process; an unsolicited frame is not an answer. Of a quorum of answers (this replica among
them) the highest counts: a group with a quorum can always continue, whatever the others missed. A replica that missed
changes of the members may know none of the present ones; so the answer of a process that it does not know counts by
itself, if that has more of the group's log: it may be a member by an entry that this replica lacks. So does any such
answer at a replica that has no vote: most of those that it knows may be gone. A frame that is further ahead has no
effect; it makes this replica ask, so that the sender's next one is followed if the sender itself confirms its epoch.

A trial raises no epoch at all, and neither does an answer to one.
"""

from __future__ import annotations

from typing import Final

from qsctl.core.high_availability._members import GroupMembers

SEEN_MAX: Final = 2**62
"""An election a nanosecond takes 146 years to come here; half of the numbers of a frame are left behind it."""


class SeenEpochs:
    """The epochs in which the other replicas are, by their own answers.

    Args:
        members: of the group.
    """

    def __init__(self, members: GroupMembers) -> None:
        self._members = members
        self._answers: dict[str, int] = {}
        self._later = 0
        """The highest epoch that a process stated which has entries that this replica lacks, where that suffices."""

    def note(self, replica: str, epoch: int) -> None:
        """Note what a replica answered to a question of this process; what no cluster comes to counts for nothing."""
        if epoch <= SEEN_MAX:
            self._answers[replica] = max(epoch, self._answers.get(replica, 0))

    def note_later(self, epoch: int) -> None:
        """Note what a process answered that has more of the group's log, and that needs no quorum beside it."""
        if epoch <= SEEN_MAX:
            self._later = max(epoch, self._later)

    def highest(self, own_epoch: int) -> int:
        """Return the highest epoch that a quorum was seen in."""
        if not self._members.is_quorum((*self._answers, self._members.name)):
            return max(own_epoch, self._later)
        return max(own_epoch, self._later, *self._answers.values(), 0)

    def reach(self, own_epoch: int) -> int:
        """Return the highest epoch that is followed, and in which this replica may be a candidate itself."""
        return self.highest(own_epoch) + 1
