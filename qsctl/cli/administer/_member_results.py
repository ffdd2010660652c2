"""The members of replicated queues, one row a member, with what its master or it itself reports [QS 7.1]."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final

from qsctl.cli.administer.answers import AnsweringService
from qsctl.cli.output.declared import DeclaredRows, Heading, read, table_of, varied
from qsctl.cli.output.results import Block
from qsctl.instant import SECOND_NS, Nanoseconds

if TYPE_CHECKING:
    from qsctl.cli.output.results import Plain
    from qsctl.client.administration import FromService
    from qsctl.core.statistics.status import MemberStatus, ReplicationStatus, SharedReaderQueueStatus

_UNKNOWN: Final = "?"


def _or_unknown(value: Plain) -> Plain:
    return _UNKNOWN if value in (None, "") else value


def _seconds(value: float | None) -> Plain:
    return _UNKNOWN if value is None else f"{value:.1f}"


@dataclass(frozen=True)
class MemberRow:
    """A row: a member of the replication group of a queue, or of the configuration."""

    queue_name: Annotated[str, "PARTICIPANT/SUBSCRIBER/QUEUE, or configuration", Heading("Queue", when=varied)]
    member: Annotated[str, "application name of the member", Heading("Member")]
    vote: Annotated[
        str, "voter, witness (a voter without samples), or learner: a member without a vote", Heading("Vote")
    ]
    is_witness: Annotated[bool, "whether it holds no samples, as a witness, or as a learner that is to be one"]
    role: Annotated[
        str | None,
        "master, slave, candidate, learner (no vote before it has caught up) or failed; null: it "
        "confirmed nothing within master_timeout",
        Heading("Role", shown=_or_unknown),
    ]
    durable_index: Annotated[
        int | None,
        "number of the last entry that is durable there; null: unknown, as of each field after it",
        Heading("Durable", shown=_or_unknown),
    ]
    applied_index: Annotated[
        int | None,
        "number of the entry that its queues have followed the log to",
        Heading("Applied", shown=_or_unknown),
    ]
    lag_count: Annotated[int | None, "entries of the master's log that it lacks", Heading("Lag", shown=_or_unknown)]
    lag_bytes: Annotated[
        int | None,
        "octets of payloads in these; null also where they are in a snapshot",
        Heading("Octets", rank=1, shown=_or_unknown),
    ]
    lag_seconds: Annotated[
        float | None, "seconds since it held all that was committed; 0: it does", Heading("Behind", shown=_seconds)
    ]
    silent_seconds: Annotated[
        float | None,
        "seconds since the latest frame that it confirmed was sent, or since the master's latest frame arrived",
        Heading("Silent", rank=1, shown=_seconds),
    ]
    version: Annotated[int | None, "version of its replication messages", Heading("Version", rank=2, shown=_or_unknown)]
    disk: Annotated[
        str | None,
        "ok, hangs (no sync ended within master_timeout), none (a volatile queue)",
        Heading("Disk", rank=1, shown=_or_unknown),
    ]
    master_priority: Annotated[
        int | None,
        "priority as master, see `serve --master-priority`; null: unknown",
        Heading("Priority", rank=1, shown=_or_unknown),
    ]
    service: AnsweringService


@dataclass(frozen=True)
class Members(DeclaredRows, rows=MemberRow):
    """The members of the replication groups of queues."""

    members: Sequence[MemberRow]

    def items(self) -> Sequence[MemberRow]:
        """Return the members."""
        return self.members

    def blocks(self) -> list[Block]:
        """Return a table of the members."""
        return [members_table(self.members)]


def members_table(members: Sequence[MemberRow]) -> Block:
    """Return a table of members."""
    return table_of(MemberRow, members, empty="No service reports the members of a replicated queue.")


def members_seen(statuses: Iterable[FromService[SharedReaderQueueStatus]]) -> list[MemberRow]:
    """Return the members of each replicated queue, as the master of the latest epoch has them.

    Without a master each member that answers has itself, and of the others their votes.
    """
    by_queue: dict[str, list[FromService[SharedReaderQueueStatus]]] = {}
    for each in statuses:
        if each.body.replication is not None:
            by_queue.setdefault(each.body.queue_name, []).append(each)
    rows: list[MemberRow] = []
    for queue, found in sorted(by_queue.items()):
        master = max(found, key=lambda each: _epoch_led(each.body.replication))
        is_led = _epoch_led(master.body.replication) > 0
        rows += _rows(queue, [master] if is_led else found)
    return rows


def _epoch_led(replication: ReplicationStatus | None) -> int:
    """Return the epoch of which a replica is the master; 0: it is none."""
    is_master = replication is not None and replication.role == "master" and replication.has_quorum
    return replication.epoch if replication is not None and is_master else 0


def _rows(queue: str, found: Iterable[FromService[SharedReaderQueueStatus]]) -> list[MemberRow]:
    """Return a row for each member: by its own service, or by the first that lists it."""
    rows: dict[str, MemberRow] = {}
    for service, status in found:
        for member in status.replication.members if status.replication is not None else ():
            if member.name not in rows or service == member.name:
                rows[member.name] = _row(queue, service, member)
    return [rows[name] for name in sorted(rows)]


def _row(queue: str, service: str, member: MemberStatus) -> MemberRow:
    return read(
        MemberRow,
        member,
        queue_name=queue,
        member=member.name,
        vote=("witness" if member.is_witness else "voter") if member.is_voter else "learner",
        role=member.role or None,
        lag_seconds=_in_seconds(member.lag_ns),
        silent_seconds=_in_seconds(member.silent_ns),
        disk=member.disk or None,
        service=service,
    )


def _in_seconds(duration_ns: Nanoseconds | None) -> float | None:
    return None if duration_ns is None else round(duration_ns / SECOND_NS, 3)
