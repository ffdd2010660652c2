"""The changes of a group's members that an operator asks its master for [QS 7.1].

Decides: whether a change can be made now. Two masters must not change the same list, no present member may be of a
version that cannot replay the change, and the voters that answer must be a quorum of the new list. Which list follows
from which is decided by `_members`.
"""

from __future__ import annotations

from collections.abc import Iterable

from qsctl.core.admin.command import FirstMembers, MemberAction
from qsctl.core.high_availability._clients import Clients
from qsctl.core.high_availability._log import ReplicatedLog
from qsctl.core.high_availability._mastery import Mastery
from qsctl.core.high_availability._members import GroupMembers, changed_members, is_quorum
from qsctl.core.high_availability._progress import Peer
from qsctl.core.high_availability.versions import FIRST_MEMBERS, MEMBER_CHANGES, WITNESSES, Versions
from qsctl.core.records import MembersChanged
from qsctl.errors import Refused
from qsctl.instant import Nanoseconds


class MemberChanges:
    """The judgement of changes of one group's members.

    Args:
        stream: the group's name.
        members: of the group.
        log: the replica's.
        clients: have the first entry of the master's own epoch.
        versions: those of the other members.
    """

    def __init__(
        self, stream: str, members: GroupMembers, log: ReplicatedLog, clients: Clients, versions: Versions
    ) -> None:
        self._stream = stream
        self._members = members
        self._log = log
        self._clients = clients
        self._versions = versions

    def check(self, now: Nanoseconds, mastery: Mastery, action: MemberAction, name: str) -> MembersChanged:
        """Return the members of the group after a change of them.

        Raises:
            Refused: the change cannot be made, or not now; the message names the reason.
        """
        log, own_epoch_index = self._log, self._clients.own_epoch_index
        if log.commit_index < own_epoch_index or log.commit_index < log.members_index:
            # Two masters that each changed the list of the last committed entry would have quorums without overlap.
            raise Refused(
                f"{self._stream}: an earlier change of the members or of the master is not committed yet",
                remedy="Wait until it is: one member is changed at a time.",
            )
        present = mastery.present(now)
        # One that is gone may be removed, whatever its version.
        earlier = [peer.name for peer in present if self._versions.of(peer.name) < MEMBER_CHANGES]
        if earlier:
            raise Refused(
                f"{self._stream}: {', '.join(earlier)} cannot replay a change of the members: of an earlier version",
                remedy="Upgrade all members first.",
            )
        changed = changed_members(self._members.latest, action, name)
        needing = [*(peer.name for peer in present), *((name,) if action is MemberAction.PROMOTE else ())]
        if changed.witnesses and (earlier := [each for each in needing if self._versions.of(each) < WITNESSES]):
            raise Refused(
                f"{self._stream}: {', '.join(dict.fromkeys(earlier))} cannot follow a list with a witness: of an "
                "earlier version",
                remedy="Upgrade all members first.",
            )
        # One that has not confirmed the first entry of this epoch is only taken to be there, and may have no vote.
        confirming = [peer for peer in present if peer.match_index >= own_epoch_index]
        heard = [self._members.name, *(peer.name for peer in confirming if not peer.is_learner)]
        if not is_quorum(changed.voters, heard):
            missing = ", ".join(sorted(set(changed.voters).difference(heard)))
            raise Refused(
                f"{self._stream}: of the {len(changed.voters)} voters that there would be, "
                f"{missing} did not answer within master_timeout, and the others are not a quorum",
                remedy="Start these members first, or remove one of them.",
            )
        if action is MemberAction.PROMOTE:
            peer = mastery.progress[name]
            if name not in heard or peer.match_index < log.commit_index:
                raise Refused(
                    f"{self._stream}: {name} has {peer.match_index} of {log.commit_index} committed entries, "
                    "or did not answer within master_timeout",
                    remedy="Wait until it has caught up, and try again.",
                )
        return changed

    def of_creations(self, present: Iterable[Peer]) -> FirstMembers | None:
        """Return the members that groups begin with which commands of this log create; None: those at first.

        Those of this log, once they have changed and no present member would create a group without them.
        """
        latest = self._log.members_at(self._log.last_index)
        if latest is None or any(self._versions.of(peer.name) < FIRST_MEMBERS for peer in present):
            return None
        return FirstMembers(latest.voters, latest.learners)
