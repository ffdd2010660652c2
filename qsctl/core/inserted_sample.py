"""A sample in an administration command that enqueues it (an extension)."""

from __future__ import annotations

import msgspec

from qsctl.identity import (
    NIL_GUID,
    NIL_IDENTITY,
    NIL_INCARNATION,
    Count,
    Guid,
    SampleIdentity,
    WholeIncarnation,
)
from qsctl.instant import INFINITE_NS, Nanoseconds


class InsertedSample(msgspec.Struct, frozen=True, array_like=True):
    """A sample that a command enqueues, with all its metadata from another queue.

    `expires_at_ns` is absolute; if infinite, the queue's own lifespan applies from now on. A dead-letter queue accepts
    only samples with `dead_letter_from` and `dead_letter_reason`; the position and incarnation of a dead letter make it
    a duplicate of the same one in the queue.
    """

    identity: SampleIdentity
    payload: bytes
    source_guid: Guid = NIL_GUID
    related_source_guid: Guid = NIL_GUID
    related_identity: SampleIdentity = NIL_IDENTITY
    related_reader_guid: Guid = NIL_GUID
    flags: int = 0
    redelivered: bool = True
    expires_at_ns: Nanoseconds = INFINITE_NS
    dead_letter_from: str = ""
    dead_letter_reason: str = ""
    dead_letter_position: Count = 0
    dead_letter_incarnation: WholeIncarnation = NIL_INCARNATION
