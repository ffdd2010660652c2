"""The members of a replication group, as a function of its log [QS 7.1].

Decides: which replicas have a vote, how many are a quorum, and which change of the members may follow. The rules are
those of Ongaro, *Consensus: Bridging Theory and Practice* (2014), sections 4.1 to 4.4: one member at a time, so that
each quorum of the former members overlaps with each of the latter. A list of members takes effect at a replica once it
is appended there, and is taken back with its entry.

A witness has a vote and holds the entries without payloads: it is never master. Of the voters at least two hold
payloads, and no more are witnesses than that. A name that was once a witness is none of the others any more: its log
lacks payloads, which no index or epoch shows.

A member is added as a learner: it receives the log and counts for no quorum until it is promoted. What the log lists
from its beginning is the list that the group was formed with.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final

from msgspec import structs

from qsctl.core.admin.command import FirstMembers, MemberAction
from qsctl.core.high_availability._log import ReplicatedLog
from qsctl.core.records import MembersChanged
from qsctl.errors import Refused

WITNESS: Final = "it is a witness, which holds no payloads and is no master"

PAYLOADS_MIN: Final = 2
"""Voters that hold payloads beside a witness, at least: of one alone nothing would be left."""


def quorum_of(replica_count: int) -> int:
    """Return how many replicas are a quorum: the lowest number higher than half [QS 7.1.1.2]."""
    return replica_count // 2 + 1


def is_quorum(voters: Collection[str], names: Iterable[str]) -> bool:
    """Return whether the voters among these names are a quorum."""
    return len(set(voters).intersection(names)) >= quorum_of(len(voters))


class GroupMembers:
    """The members of one replica's group, by its log.

    Args:
        stream: the group's name.
        name: the replica's.
        log: its log.
        names: the members that the group was formed with.
        is_joining: whether this replica is not among them.
    """

    def __init__(
        self, stream: str, name: str, log: ReplicatedLog, names: Sequence[str], *, is_joining: bool = False
    ) -> None:
        self.name = name
        self._stream = stream
        self._log = log
        self.others: list[str] = []
        """All with which this replica exchanges frames: the other members of the latest and of the committed list.

        The list before the latest is committed, as far as this replica may know, since a master changes none before.
        """
        self.form_with(names, is_joining=is_joining)

    def form_with(self, names: Sequence[str], *, is_joining: bool = False) -> None:
        """Set the members that the group was formed with."""
        self._first = MembersChanged(self._stream, tuple(names), (self.name,) if is_joining else ())
        self._take(self._first, self._first)
        self.look()

    def begin_with(self, members: FirstMembers) -> None:
        """Set the members that the group was created with; another replica joins them."""
        is_joining = self.name not in (*members.voters, *members.learners)
        learners = (*members.learners, self.name) if is_joining else members.learners
        self._first = MembersChanged(self._stream, members.voters, learners)
        self._take(self._first, self._first)
        self.look()

    def look(self) -> bool:
        """Adopt what the log lists now; return whether anything changed."""
        latest = self._log.members_at(self._log.last_index) or self._first
        is_committed = self._log.members_index <= self._log.commit_index
        former = latest if is_committed else self._log.members_at(self._log.members_index - 1)
        committed = former or self._first
        if latest is self.latest and committed is self._committed:
            return False
        self._take(latest, committed)
        return True

    def _take(self, latest: MembersChanged, committed: MembersChanged) -> None:
        self.latest, self._committed = latest, committed
        self._voters = frozenset(latest.voters)
        self.quorum = quorum_of(len(latest.voters))
        names = dict.fromkeys((*latest.voters, *latest.learners, *committed.voters, *committed.learners))
        self.others[:] = [each for each in names if each != self.name]

    @property
    def voters(self) -> Sequence[str]:
        """The members that have a vote."""
        return self.latest.voters

    @property
    def may_lead(self) -> bool:
        """Return whether this replica may be a candidate.

        One that is being removed may: perhaps it alone has the entry that removes it, and no log without that entry
        gets its vote.
        """
        return self.name in self._voters or self.name in self._committed.voters

    @property
    def has_self(self) -> bool:
        """Return whether the log lists this replica as a member."""
        return self.name in self._voters or self.name in self.latest.learners

    @property
    def description(self) -> str:
        """Return what this replica is in the group, for people."""
        if self.name in self._voters:
            return WITNESS if self.is_witness(self.name) else "it has a vote in the group"
        is_learner = self.name in self.latest.learners
        return "it has no vote in the group before it is promoted" if is_learner else "it was removed from the group"

    def is_voter(self, name: str) -> bool:
        """Return whether a replica has a vote."""
        return name in self._voters

    def is_witness(self, name: str) -> bool:
        """Return whether a member holds no payloads."""
        return name in self.latest.witnesses

    def is_served(self, name: str) -> bool:
        """Return whether a member may be sent entries: that a witness is one must be committed first.

        Else another master, which lacks that entry, could take what it has for a log with payloads.
        """
        return name not in self.latest.witnesses or name in self._committed.witnesses

    def is_quorum(self, names: Collection[str]) -> bool:
        """Return whether the voters among these names are a quorum."""
        return is_quorum(self._voters, names)


def changed_members(former: MembersChanged, action: MemberAction, name: str) -> MembersChanged:
    """Return the members after a change.

    Raises:
        Refused: the change is not one of these members.
    """
    voters, learners = former.voters, former.learners
    is_member = name in voters or name in learners
    if action in (MemberAction.ADD, MemberAction.ADD_WITNESS):
        if is_member:
            raise Refused(f"{former.queue}: {name} is a member already", remedy="Name another one.")
        witnesses = former.witnesses
        if action is MemberAction.ADD and name in witnesses:
            raise Refused(
                f"{former.queue}: {name} was a witness, whose log has no payloads",
                remedy="Add a member of another name, or add it with --witness.",
            )
        if action is MemberAction.ADD_WITNESS and name not in witnesses:
            witnesses = (*witnesses, name)
        return structs.replace(former, learners=(*learners, name), witnesses=witnesses)
    if not is_member:
        raise Refused(
            f"{former.queue}: {name} is not a member; there are {', '.join((*voters, *learners))}",
            remedy="`qsctl member add` makes it one.",
        )
    left = tuple(each for each in learners if each != name)
    if action is MemberAction.PROMOTE:
        if name in voters:
            raise Refused(f"{former.queue}: {name} has a vote already", remedy="Name a learner.")
        return _checked(structs.replace(former, voters=(*voters, name), learners=left))
    remaining = tuple(each for each in voters if each != name)
    if not remaining:
        raise Refused(f"{former.queue}: {name} is the only member that has a vote", remedy="Add another one first.")
    return _checked(structs.replace(former, voters=remaining, learners=left))


def _checked(changed: MembersChanged) -> MembersChanged:
    """Return these members.

    Raises:
        Refused: too few of the voters hold payloads.
    """
    witness_count = len(set(changed.voters).intersection(changed.witnesses))
    data_count = len(changed.voters) - witness_count
    if witness_count and (data_count < PAYLOADS_MIN or witness_count > data_count):
        raise Refused(
            f"{changed.queue}: of the {len(changed.voters)} voters that there would be, {data_count} hold payloads and "
            f"{witness_count} {'is a witness' if witness_count == 1 else 'are witnesses'}",
            remedy=f"At least {PAYLOADS_MIN} voters hold payloads, and no more are witnesses than that.",
        )
    return changed
