"""Logs of replicas with made entries."""

from __future__ import annotations

from collections.abc import Iterable

from qsctl.core.high_availability._log import ReplicatedLog
from qsctl.core.high_availability._members import GroupMembers
from qsctl.core.records import Enqueued, EnqueuedRun, EpochBegan, QueueRecord
from qsctl.identity import NIL_GUID, NIL_IDENTITY, SampleIdentity
from tests.core.high_availability.cluster import STREAM, WRITER


def began(epoch: int) -> EpochBegan:
    return EpochBegan(STREAM, epoch, "a", flags_all=False)


def enqueued(number: int) -> Enqueued:
    return Enqueued(STREAM, number, SampleIdentity(WRITER, number), 0, 0, payload=b"sample")


def enqueued_run(first: int, *payloads: bytes) -> EnqueuedRun:
    identity = SampleIdentity(WRITER, first)
    return EnqueuedRun(STREAM, first, identity, payloads, 0, 0, NIL_GUID, NIL_GUID, NIL_IDENTITY, NIL_GUID, 0)


def log_of(*records: QueueRecord) -> ReplicatedLog:
    log = ReplicatedLog()
    log.append(records)
    return log


def members_of(log: ReplicatedLog, others: Iterable[str]) -> GroupMembers:
    """The voters `a`, whose log this is, and the others."""
    return GroupMembers(STREAM, "a", log, ("a", *others))
