"""Reports of messages that could not be read: each kind at once, then with a count, never one line a message.

Decides: how many lines the faults of peers may cost. A peer that sends a million broken messages gets two lines every
ten seconds, and one that invents a new GUID for each shares the lines of all the others.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias

from qsctl.instant import SECOND_NS, Nanoseconds

REPORT_PERIOD_NS: Final[Nanoseconds] = 10 * SECOND_NS
"""After the first report of a kind of fault the others like it are counted for so long, and then reported as one."""

KINDS_MAX: Final = 16
"""Kinds of faults reported singly in one period; those of any further kind are reported together."""

REASON_CHARACTERS_MAX: Final = 300

UNKNOWN_PEER: Final = "unknown"
"""In the place of a GUID: the peer was gone before it could be looked up, or the faults are those of several."""


class FaultKind(StrEnum):
    """Whose fault it is."""

    MALFORMED = "malformed_messages"
    """The peer's: what it sent is not what it must be."""
    UNEXPECTED = "unexpected_errors"
    """The peer's and qsctl's: the reading of it raised an error that no reader declares."""
    UNAUTHORIZED = "unauthorized_commands"
    """The peer's: a command without a signature that counts, at a service that requires one."""
    LIBRARY = "dds_messages"
    """Of no known peer: what the library of DDS logs by itself."""
    INCOMPATIBLE = "incompatible_peer"
    """Kind of fault without a message: a reader or writer on a topic of the service that cannot match it."""
    TYPE = "type_discovered"
    """No fault: what the service takes a topic's samples for, where no file defines their type."""


@dataclass(frozen=True, slots=True)
class PeerFault:
    """Messages of a peer that had no effect because they could not be read.

    Attributes:
        source: what was being read, such as a topic's name.
        peer: the GUID of the writer, 32 hexadecimal digits, or `UNKNOWN_PEER`.
        reason: what was wrong with the latest of them.
        count: how many, since the last report of this kind.
        kind: whose fault it is.
    """

    source: str
    peer: str
    reason: str
    count: int = 1
    kind: FaultKind = FaultKind.MALFORMED


Report: TypeAlias = Callable[[PeerFault], None]


def log_fault(fault: PeerFault) -> None:
    """Log a fault as a library does, for the program around it: through `logging`, by the name `qsctl.transport`."""
    level = logging.ERROR if fault.kind in (FaultKind.UNEXPECTED, FaultKind.LIBRARY) else logging.WARNING
    logging.getLogger("qsctl.transport").log(
        logging.INFO if fault.kind is FaultKind.TYPE else level,
        "%s: count=%d peer=%s source=%s reason=%s",
        fault.kind.value,
        fault.count,
        fault.peer,
        # Both may hold a peer's own text.
        ascii(fault.source),
        ascii(fault.reason),
    )


class FaultReports:
    """Reports faults through a callable: the first of a kind at once, those after it counted.

    Like each other are faults of one kind, source and peer; of the library's own lines, those of one text.

    Args:
        report: called with each fault that is to be reported.
        clock: monotonic nanoseconds.
    """

    def __init__(self, report: Report, clock: Callable[[], Nanoseconds] = time.monotonic_ns) -> None:
        self.report = report
        self._clock = clock
        self._later: dict[tuple[str, ...], PeerFault | None] = {}
        self._others: PeerFault | None = None
        self._period_ends_at: Nanoseconds = 0

    def add(self, fault: PeerFault) -> None:
        """Report a fault now, or with those like it at the end of the period."""
        if not self._later:
            self._period_ends_at = self._clock() + REPORT_PERIOD_NS
        else:
            self.turn()
        text = fault.reason if fault.kind in (FaultKind.LIBRARY, FaultKind.INCOMPATIBLE, FaultKind.TYPE) else ""
        like = (fault.kind, fault.source, fault.peer, text)
        if like in self._later:
            self._later[like] = _together(self._later[like], fault, fault.source, fault.peer)
        elif len(self._later) < KINDS_MAX:
            self._later[like] = None
            self.report(fault)
        else:
            self._others = _together(self._others, fault, "several topics", UNKNOWN_PEER)

    def turn(self) -> None:
        """Report what was counted if the period is over; cheap while there is nothing."""
        if self._later and self._clock() >= self._period_ends_at:
            self.finish()

    def finish(self) -> None:
        """Report what was counted, now."""
        counted = [*self._later.values(), self._others]
        self._later.clear()
        self._others = None
        for fault in counted:
            if fault is not None:
                self.report(fault)


def _together(former: PeerFault | None, fault: PeerFault, source: str, peer: str) -> PeerFault:
    count = fault.count + (0 if former is None else former.count)
    return PeerFault(source, peer, fault.reason, count, fault.kind)
