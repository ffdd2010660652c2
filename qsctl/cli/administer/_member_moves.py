"""The plans of `qsctl member replace` and `qsctl member rebalance`, and whether a member can be spared.

All follow from what the members report.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final

from qsctl.cli.administer._member_results import MemberRow, members_seen
from qsctl.cli.output.declared import DeclaredRows, Heading, table_of
from qsctl.cli.output.results import Block
from qsctl.core.admin.command import MemberAction
from qsctl.errors import Refused

if TYPE_CHECKING:
    from qsctl.client.administration import FromService
    from qsctl.core.statistics.status import SharedReaderQueueStatus

_UNEVEN: Final = 2
"""Difference of two members' numbers of masters from which on moving one makes them more even."""

_LEVEL_S: Final = 1
"""Lag below which a voter counts as level: under load it is rarely none."""


@dataclass(frozen=True)
class MemberReplacement:
    """A member that takes the place of another one in a replication group."""

    old: str
    new: str

    def next_step(self, members: Sequence[MemberRow]) -> tuple[MemberAction, str] | None:
        """Return the next change and its member; None: the replacement is complete.

        The step follows from the members alone, so that a replacement that was interrupted goes on.

        Raises:
            Refused: there is no master, or neither of the two is a member.
        """
        if not any(each.role == "master" for each in members):
            raise Refused("there is no master now", remedy="`qsctl member list` shows the members that answer.")
        votes = {each.member: each.vote for each in members}
        if self.new not in votes:
            if self.old not in votes:
                raise Refused(
                    f"neither {self.old} nor {self.new} is a member; there are {', '.join(votes)}",
                    remedy="Name a member that is to be replaced.",
                )
            return MemberAction.ADD, self.new
        if votes[self.new] == "learner":
            return MemberAction.PROMOTE, self.new
        return (MemberAction.REMOVE, self.old) if self.old in votes else None

    def steps(self, members: Sequence[MemberRow]) -> list[str]:
        """Return the steps that are left, for people."""
        first = self.next_step(members)
        every = ((MemberAction.ADD, self.new), (MemberAction.PROMOTE, self.new), (MemberAction.REMOVE, self.old))
        left = every[every.index(first) :] if first else ()
        is_member = any(each.member == self.old for each in members)
        return [f"{action} {name}" for action, name in left if action is not MemberAction.REMOVE or is_member]


@dataclass(frozen=True)
class Move:
    """A row: a queue whose master is another member now, or is to be."""

    queue_name: Annotated[str, "PARTICIPANT/SUBSCRIBER/QUEUE; its dead-letter queue moves with it", Heading("Queue")]
    former: Annotated[str, "application name of its master before", Heading("From")]
    master: Annotated[str, "application name of its master afterwards", Heading("To")]
    is_done: Annotated[bool, "whether it moved: with --dry-run nothing does", Heading("Moved")]


@dataclass(frozen=True)
class Moves(DeclaredRows, rows=Move, items="moves"):
    """The masters that were moved, or with --dry-run would be."""

    moves: Sequence[Move]

    def blocks(self) -> list[Block]:
        """Return a table of the moves."""
        return [table_of(Move, self.moves, empty="The masters are spread evenly: there is nothing to move.")]


def check_spared(statuses: Iterable[FromService[SharedReaderQueueStatus]], name: str) -> None:
    """Check that each group that a member has a vote in has a quorum without it, as the masters report.

    A member that is not the master of a group does not know that itself.

    Raises:
        Refused: a group has not.
    """
    for _, status in statuses:
        replication = status.replication
        if replication is None or replication.role != "master" or not replication.has_quorum:
            continue
        voters = [each for each in replication.members if each.is_voter]
        left = [each for each in voters if each.name != name and each.role in ("master", "slave")]
        is_voter = any(each.name == name for each in voters)
        if is_voter and len(left) < replication.quorum_count:
            raise Refused(
                f"{status.queue_name}: of the {len(voters)} voters only {len(left)} would be left without {name}, and "
                f"{replication.quorum_count} are a quorum",
                remedy="Wait until another voter is back, or add one; `qsctl shutdown` without --drain stops this one.",
            )


def moves_to_spread(statuses: Iterable[FromService[SharedReaderQueueStatus]]) -> list[Move]:
    """Return the moves after which no two members differ by more than one master, as far as level voters allow.

    Queues of one group have one master, and are one move. None moves to a member of a lower priority: it would be moved
    back.
    """
    leaders: dict[str, tuple[str, str]] = {}
    heirs: dict[str, list[str]] = {}
    counts: Counter[str] = Counter()
    for each in statuses:
        service, status = each
        replication = status.replication
        if replication is None or replication.role != "master" or not replication.has_quorum:
            continue
        group = replication.group or status.queue_name
        if group in leaders:
            continue
        leaders[group] = status.queue_name, service
        members = members_seen([each])
        counts.update({row.member: 0 for row in members if row.vote == "voter"} | {service: 1})
        least = next((row.master_priority or 0 for row in members if row.member == service), 0)
        heirs[group] = [row.member for row in members if _may_lead(row) and (row.master_priority or 0) >= least]
    moves: list[Move] = []
    while (move := _next_move(leaders, heirs, counts)) is not None:
        group, master = move
        queue, former = leaders[group]
        moves.append(Move(queue, former, master, is_done=False))
        leaders[group] = queue, master
        heirs[group] = [former if each == master else each for each in heirs[group]]
        counts.update({former: -1, master: 1})
    return moves


def _next_move(
    leaders: dict[str, tuple[str, str]], heirs: dict[str, list[str]], counts: Counter[str]
) -> tuple[str, str] | None:
    """Return the group and the member of the move that evens most; None: none does."""
    best: tuple[int, str, str] | None = None
    for group, (_, former) in sorted(leaders.items()):
        for member in sorted(heirs[group]):
            gain = counts[former] - counts[member]
            if gain >= _UNEVEN and (best is None or gain > best[0]):
                best = gain, group, member
    return None if best is None else best[1:]


def _may_lead(row: MemberRow) -> bool:
    is_level = row.lag_seconds is not None and row.lag_seconds < _LEVEL_S
    return row.vote == "voter" and row.role == "slave" and is_level and row.disk != "hangs"
