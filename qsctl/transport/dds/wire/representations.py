"""One topic in both representations: XCDR1 for all, and XCDR2 for readers that accept nothing else.

Decides: when a second writer is opened. A writer has one representation. RTI's applications and older peers read XCDR1;
code that plain `idlc` of Cyclone DDS generates for an extensible type reads XCDR2 only, and never matches another
writer. A reader of both would receive everything twice, so the second writer is opened only when a reader cannot match
the first one, and is written to only while it has such a reader.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final, Generic, Protocol, TypeVar

from cyclonedds.idl import IdlStruct

from qsctl.instant import MILLISECOND_NS, Nanoseconds
from qsctl.transport.dds.channels import FrameWriter
from qsctl.transport.dds.wire.raw import RawWriter

LOOK_PERIOD_NS: Final[Nanoseconds] = 100 * MILLISECOND_NS


class Sends(Protocol):
    """A writer of either kind: its operations that `BothRepresentations` calls."""

    def close(self) -> None:
        """Delete the writer."""


Writer = TypeVar("Writer", bound=Sends)


class BothRepresentations(Generic[Writer]):
    """A writer in XCDR1 and, when it is needed, its twin in XCDR2.

    Args:
        make: makes a writer; True: in XCDR2.
        raw: the writer of serialized samples inside one.
        kind: the topic's type.
    """

    def __init__(
        self, make: Callable[[bool], Writer], raw: Callable[[Writer], RawWriter], kind: type[IdlStruct]
    ) -> None:
        self._make = make
        self._raw = raw
        self._kind = kind
        self.first = make(False)
        self.second: Writer | None = None
        self._look_at: Nanoseconds = 0

    def open_second(self) -> bool:
        """Open the XCDR2 writer if a reader needs it, checked at most ten times a second; return whether it was opened
        now.
        """
        if self.second is not None or (now := time.monotonic_ns()) < self._look_at:
            return False
        self._look_at = now + LOOK_PERIOD_NS
        if _has_incompatible_reader(self._raw(self.first)):
            self.second = self._make(True)
        return self.second is not None

    def serves_second(self) -> bool:
        """Return whether a reader is matched with the XCDR2 writer alone."""
        if self.second is None:
            return False
        return bool(self._raw(self.second).matched_handles() - self._raw(self.first).matched_handles())

    def in_xcdr2(self, octets: bytes) -> bytes:
        """Return the octets of the same sample in XCDR2."""
        return bytes(self._kind.deserialize(octets).serialize(use_version_2=True))

    def writers(self) -> tuple[Writer, ...]:
        """Return the open writers: that of XCDR1, and that of XCDR2 if it is open."""
        return (self.first,) if self.second is None else (self.first, self.second)

    def close(self) -> None:
        """Delete the writers."""
        for each in self.writers():
            each.close()


def raw_of_frames(writer: FrameWriter) -> RawWriter:
    """Return the `RawWriter` inside a writer that keeps a backlog."""
    return writer.writer


def _has_incompatible_reader(writer: RawWriter) -> bool:
    entity: Any = writer.writer
    return bool(entity.get_offered_incompatible_qos_status().total_count)
