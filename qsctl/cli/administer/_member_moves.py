"""The plans of `qsctl member replace` and `qsctl member rebalance`, and whether a member can be spared.

All follow from what the members report.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final

from qsctl.cli.administer._member_results import MemberRow, members_seen
from qsctl.cli.output.declared import DeclaredRows, Heading, table_of
from qsctl.cli.output.results import Block
from qsctl.core.admin.command import MemberAction
from qsctl.errors import Refused
from qsctl.resource import ResourceKind

if TYPE_CHECKING:
    from qsctl.client.administration import Administration, FromService
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

        The step follows from the members alone, so that a replacement that was interrupted goes on. In the place of a
        witness comes a witness.

        Raises:
            Refused: there is no master, neither of the two is a member, or one of two members is a witness.
        """
        if not any(each.role == "master" for each in members):
            raise Refused(
                "the replication group has no master now",
                remedy="Start members until a quorum can elect one; `qsctl member list` shows those that answer.",
            )
        by_name = {each.member: each for each in members}
        old, new = by_name.get(self.old), by_name.get(self.new)
        if new is None:
            if old is None:
                raise Refused(
                    f"neither {self.old} nor {self.new} is a member; there are {', '.join(by_name)}",
                    remedy="Name a member that is to be replaced.",
                )
            return MemberAction.ADD_WITNESS if old.is_witness else MemberAction.ADD, self.new
        if old is not None and old.is_witness != new.is_witness:
            witness, other = (old, new) if old.is_witness else (new, old)
            raise Refused(
                f"{witness.member} is a witness, and {other.member}, a member too, holds the samples",
                remedy=f"Replace {old.member} by one that is no member yet, or promote and remove them one by one.",
            )
        if new.vote == "learner":
            return MemberAction.PROMOTE, self.new
        return None if old is None else (MemberAction.REMOVE, self.old)

    def steps(self, members: Sequence[MemberRow]) -> list[str]:
        """Return the steps that are left, for people."""
        match self.next_step(members):
            case None:
                return []
            case MemberAction.REMOVE, _:
                steps: list[str] = []
            case MemberAction.PROMOTE, _:
                steps = [f"promote {self.new}"]
            case action, _:
                kind = " as a witness" if action is MemberAction.ADD_WITNESS else ""
                steps = [f"add {self.new}{kind}", f"promote {self.new}"]
        is_member = any(each.member == self.old for each in members)
        return [*steps, f"remove {self.old}"] if is_member else steps


@dataclass(frozen=True)
class Move:
    """A row: a queue whose master is another member now, or is to be."""

    queue_name: Annotated[
        str, "PARTICIPANT/SUBSCRIBER/QUEUE, whose dead-letter queue moves with it, or configuration", Heading("Queue")
    ]
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


def all_statuses(administration: Administration) -> list[FromService[SharedReaderQueueStatus]]:
    """Return the statuses of all queues and of the configuration, from each service that answers."""
    statuses = administration.statuses()
    with suppress(Refused):  # it is not replicated, or no service reports its members
        statuses += administration.configuration_statuses()
    return statuses


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
    # The configuration's first: no samples wait meanwhile.
    for group, (_, former) in sorted(leaders.items(), key=lambda each: (each[0] != ResourceKind.CONFIGURATION, each)):
        for member in sorted(heirs[group]):
            gain = counts[former] - counts[member]
            if gain >= _UNEVEN and (best is None or gain > best[0]):
                best = gain, group, member
    return None if best is None else best[1:]


def _may_lead(row: MemberRow) -> bool:
    is_level = row.lag_seconds is not None and row.lag_seconds < _LEVEL_S
    return row.vote == "voter" and row.role == "slave" and is_level and row.disk != "hangs"
