"""The results of `qsctl get replication`: each replica of each replicated queue, as its service reports it [QS 7.1]."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from qsctl.cli.administer._member_results import MemberRow, members_seen, members_table
from qsctl.cli.administer.answers import SERVICE_HELP
from qsctl.cli.output.declared import row_of
from qsctl.cli.output.results import Block, Column, Plain, Result, Row, TableBlock, counted

if TYPE_CHECKING:
    from qsctl.client.administration import FromService
    from qsctl.core.statistics.status import SharedReaderQueueStatus

NO_ANSWER: Final = "no answer"
"""Shown instead of a role, if the service did not answer."""

REPLICATION_HELP: Final = {
    "role": "of a replicated queue here: master, slave, candidate, learner (no vote before it has caught up), failed",
    "epoch": "number of the election that made the present master",
    "master": "application name of the master, as far as it is known here",
    "up_to_date_count": "voters that hold all that is committed, as the master knows them",
    "replica_count": "voters: members that have a vote",
    "learner_count": "members without a vote",
    "quorum_count": "replicas that must hold a sample before it is accepted",
    "has_quorum": "the master hears from a quorum, or this replica from its master",
    "lag_count": "entries that the replica furthest behind lacks; elsewhere those not known to be committed",
}


@dataclass(frozen=True)
class Replications(Result):
    """The replicas of queues, one per queue and service."""

    statuses: tuple[FromService[SharedReaderQueueStatus], ...]
    silent: tuple[str, ...] = ()
    """Names of services that are discovered but did not answer in time."""

    field_help: ClassVar[Mapping[str, str]] = {
        "queue_name": "PARTICIPANT/SUBSCRIBER/QUEUE",
        **REPLICATION_HELP,
        "last_index": "number of the last entry of the log here",
        "commit_index": "number of the last entry that is known to be at a quorum",
        "reason": "why the replica has its role",
        **SERVICE_HELP,
        "members": "-o json and yaml: the members of the queue's group as the service knows them, each with the fields "
        "of `member list`",
    }

    def document(self) -> Plain:
        """Return a list with one object per replica, its group's members nested."""
        known: dict[tuple[Plain, Plain], list[Plain]] = {}
        for each in self.statuses:
            for member in members_seen([each]):
                known.setdefault((member.queue_name, member.service), []).append(row_of(MemberRow, member))
        return [{**row, "members": known.get((row["queue_name"], row["service"]), [])} for row in self.rows()]

    def rows(self) -> list[Row]:
        """Return one row per replica, and one per silent service."""
        rows: list[Row] = []
        for name in self.silent:
            unknown = dict.fromkeys(self._names())
            rows.append({**unknown, "queue_name": "", "role": NO_ANSWER, "service": name})
        for service, status in self.statuses:
            if (replication := status.replication) is not None:
                names = [name for name in self._names() if name not in ("queue_name", "service")]
                fields = {name: getattr(replication, name) for name in names}
                rows.append({"queue_name": status.queue_name, **fields, "service": service})
        return sorted(rows, key=lambda row: (str(row["queue_name"]), str(row["service"])))

    @classmethod
    def _names(cls) -> list[str]:
        return [name for name in cls.field_help if name != "members"]

    def blocks(self) -> list[Block]:
        """Return a table of the replicas that answered, and one of the members of their groups."""
        rows: list[Row] = [
            {
                **row,
                "up_to_date": _up_to_date(row) if row["role"] == "master" else "",
                "quorum": f"{row['quorum_count']}, {'there' if row['has_quorum'] else 'not there'}"
                if row["role"] != NO_ANSWER
                else "",
            }
            for row in self.rows()
        ]
        columns = [
            Column("queue_name", "Queue"),
            Column("service", "Service"),
            Column("role", "Role"),
            Column("epoch", "Epoch", "right"),
            Column("master", "Master"),
            Column("up_to_date", "Up to date"),
            Column("quorum", "Quorum"),
            Column("lag_count", "Lag", "right"),
            Column("commit_index", "Committed", "right"),
            Column("reason", "Because"),
        ]
        replicas = TableBlock(columns, rows, empty="No queue is replicated here.")
        members = members_seen(self.statuses)
        return [replicas, members_table(members)] if members else [replicas]


def _up_to_date(row: Row) -> str:
    voters = f"{row['up_to_date_count']} of {row['replica_count']} voters"
    learner_count = row["learner_count"]
    assert isinstance(learner_count, int), "the row is of a service that answered"
    return f"{voters}, {counted(learner_count, 'learner')}" if learner_count else voters


def replication_fields(status: SharedReaderQueueStatus) -> dict[str, Plain]:
    """Return the fields of a queue's replica, for the queue's status; all None if the queue is not replicated."""
    return {name: getattr(status.replication, name, None) for name in REPLICATION_HELP}
