"""The results of `qsctl get replication`: each replica of each replicated queue, as its service reports it [QS 7.1]."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from qsctl.cli.administer.answers import SERVICE_HELP
from qsctl.cli.output.results import Block, Column, Plain, Result, Row, TableBlock

if TYPE_CHECKING:
    from qsctl.client.administration import FromService
    from qsctl.core.statistics.status import SharedReaderQueueStatus

NO_ANSWER: Final = "no answer"
"""Shown instead of a role, if the service did not answer."""

REPLICATION_HELP: Final = {
    "role": "of a replicated queue here: master, slave, candidate, learner (no vote before it has caught up), failed",
    "epoch": "number of the election that made the present master",
    "master": "application name of the master, as far as it is known here",
    "up_to_date_count": "replicas that hold all that is committed, as the master knows them",
    "replica_count": "how many replicas there are: queue_instances",
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
    }

    def document(self) -> Plain:
        """Return a list with one object per replica."""
        return self.rows()

    def rows(self) -> list[Row]:
        """Return one row per replica, and one per silent service."""
        rows: list[Row] = []
        for name in self.silent:
            unknown = dict.fromkeys(self.field_help)
            rows.append({**unknown, "queue_name": "", "role": NO_ANSWER, "service": name})
        for service, status in self.statuses:
            if (replication := status.replication) is not None:
                names = [name for name in self.field_help if name not in ("queue_name", "service")]
                fields = {name: getattr(replication, name) for name in names}
                rows.append({"queue_name": status.queue_name, **fields, "service": service})
        return sorted(rows, key=lambda row: (str(row["queue_name"]), str(row["service"])))

    def blocks(self) -> list[Block]:
        """Return a table of the masters, and of the progress of the other replicas."""
        rows: list[Row] = [
            {
                **row,
                "up_to_date": f"{row['up_to_date_count']} of {row['replica_count']}" if row["role"] == "master" else "",
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
        return [TableBlock(columns, rows, empty="No queue is replicated here.")]


def replication_fields(status: SharedReaderQueueStatus) -> dict[str, Plain]:
    """Return the fields of a queue's replica, for the queue's status; all None if the queue is not replicated."""
    return {name: getattr(status.replication, name, None) for name in REPLICATION_HELP}
