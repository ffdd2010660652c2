"""The roles of a replica, the data passed on when its role changes, and its stored log [QS 7.1.2]."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum

import msgspec

from qsctl.core.high_availability.ballot import HardState
from qsctl.core.records import QueueRecord
from qsctl.instant import Nanoseconds

Jitter = Callable[[], float]
"""Gives the next number in [0, 1): the only thing about a replica that is random, and the driver's."""


class Role(StrEnum):
    """The role of a replica."""

    MASTER = "master"
    SLAVE = "slave"
    CANDIDATE = "candidate"
    LEARNER = "learner"
    """It has no vote: it lost its log, was not promoted yet, or was removed."""
    FAILED = "failed"
    """Its store failed: it is silent until the process starts again."""


class StoredLog(msgspec.Struct, frozen=True):
    """The log of a stream as stored. `snapshot_records` replace the entries up to `snapshot_index`."""

    hard_state: HardState = HardState()
    snapshot_index: int = 0
    snapshot_records: Sequence[QueueRecord] = ()
    records: Sequence[QueueRecord] = ()


class FrameRefused(msgspec.Struct, frozen=True):
    """A frame came that no replica of the group can have sent: it had no effect."""

    stream: str
    sender: str
    kind: str
    """The type of the frame."""
    reason: str


class RoleChanged(msgspec.Struct, frozen=True):
    """A replica has another role, or another master, and why."""

    at_ns: Nanoseconds
    stream: str
    role: Role
    epoch: int
    master: str
    reason: str
    incarnation: int = 0
    """That of the group, as frames carry it."""
