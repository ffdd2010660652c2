"""Reads of replicated queues that may be behind: the option, and how far behind an answer may be [QS 7.1]."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final, TypeVar

import typer

from qsctl.cli.output.render import note
from qsctl.instant import SECOND_NS

if TYPE_CHECKING:
    from qsctl.cli.output.results import Plain
    from qsctl.client.administration import Administration, FromService
    from qsctl.core.statistics.status import SharedReaderQueueStatus
    from qsctl.resource import ResourceIdentifier

_NO_MEMBER: Final = "no member"

_Read = TypeVar("_Read")

AllowStaleOption = Annotated[
    bool,
    typer.Option(
        "--allow-stale",
        help="Read also at members without a master, and report how far behind the answer may be.",
    ),
]

STALENESS_HELP: Final = {
    "may_be_behind": "with --allow-stale: whether samples may be missing, or shown that have left the queue; "
    "else null, as the fields after it",
    "behind_count": "entries of the answering member's log that are not known to be committed; null: unknown",
    "behind_seconds": "seconds since that member received a frame of the master, or as the master since a quorum "
    "confirmed one; null: never",
}
"""Help of the fields that answers have with --allow-stale."""


@dataclass(frozen=True)
class Staleness:
    """Bounds of the age of an answer, by the member of the answering ones that is the least behind."""

    service: str
    may_be_behind: bool
    behind_count: int | None
    behind_seconds: float | None

    @property
    def sentence(self) -> str:
        """The same for people; empty: the answer is not behind."""
        if not self.may_be_behind:
            return ""
        seconds = self.behind_seconds
        contact = (
            "had no contact with a master yet"
            if seconds is None
            else f"had contact with its master {seconds:.1f} s ago"
        )
        entries = "" if self.behind_count is None else f", and {self.behind_count} entries of its log are undecided"
        return f"May be behind: {self.service} {contact}{entries}."


def staleness_fields(staleness: Staleness | None) -> dict[str, Plain]:
    """Return the fields for documents, as in `STALENESS_HELP`; None: no answer that may be behind was allowed."""
    return {name: getattr(staleness, name, None) for name in STALENESS_HELP}


def read_at_members(
    administration: Administration, queue: ResourceIdentifier, read: Callable[[], _Read], *, allows_stale: bool
) -> tuple[_Read, Staleness | None]:
    """Read; with `allows_stale` at all members that answer, and note on standard error how far behind that may be.

    The state of the members is looked at before and after: the answer counts as not behind only if it was so at both.
    Without `allows_stale` only members with a master are asked, and there is no staleness.
    """
    if not allows_stale:
        return read(), None
    administration.tolerate_silence()
    before = _by_service(administration.statuses(queue))
    found = read()
    after = _by_service(administration.statuses(queue))
    # A member that began to lead or was deposed meanwhile may have read before.
    both = [max(before[name], after[name], key=_order) for name in before if name in after]
    staleness = min(both, key=_order, default=Staleness(_NO_MEMBER, True, None, None))
    if staleness.sentence:
        note(staleness.sentence)
    return found, staleness


def _order(staleness: Staleness) -> tuple[bool, bool, float]:
    seconds = staleness.behind_seconds
    return staleness.may_be_behind, seconds is None, seconds or 0.0


def _by_service(statuses: list[FromService[SharedReaderQueueStatus]]) -> dict[str, Staleness]:
    return {service: _of(service, status) for service, status in statuses}


def _of(service: str, status: SharedReaderQueueStatus) -> Staleness:
    replication = status.replication
    if replication is None:
        return Staleness(service, False, 0, 0.0)
    behind_ns = replication.behind_ns
    seconds = None if behind_ns is None else round(behind_ns / SECOND_NS, 3)
    undecided_count = replication.last_index - replication.commit_index
    return Staleness(service, not replication.is_current, undecided_count, seconds)
