"""Logs of replicas with made entries."""

from __future__ import annotations

from collections.abc import Iterable

from qsctl.core.high_availability._log import ReplicatedLog
from qsctl.core.high_availability._members import GroupMembers
from qsctl.core.records import Enqueued, EpochBegan, QueueRecord
from qsctl.identity import SampleIdentity
from tests.core.high_availability.cluster import STREAM, WRITER


def began(epoch: int) -> EpochBegan:
    return EpochBegan(STREAM, epoch, "a", flags_all=False)


def enqueued(number: int) -> Enqueued:
    return Enqueued(STREAM, number, SampleIdentity(WRITER, number), 0, 0, payload=b"sample")


def log_of(*records: QueueRecord) -> ReplicatedLog:
    log = ReplicatedLog()
    log.append(records)
    return log


def members_of(log: ReplicatedLog, others: Iterable[str]) -> GroupMembers:
    """The voters `a`, whose log this is, and the others."""
    return GroupMembers(STREAM, "a", log, ("a", *others))
