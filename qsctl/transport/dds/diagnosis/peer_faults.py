"""Rate-limited reports of faults of peers: the first of each kind at once, the following as a count.

Decides: the number of log lines. A peer that sends a million invalid messages causes two lines every ten seconds, and
one that invents a new GUID for each shares its lines with all others.
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
"""Period after the first report of a kind of fault in which equal ones are counted and then reported as one."""

KINDS_MAX: Final = 16
"""Number of kinds of faults reported singly in one period; all further kinds are reported together."""

REASON_CHARACTERS_MAX: Final = 300

UNKNOWN_PEER: Final = "unknown"
"""Placeholder for a GUID: the peer was gone before it could be looked up, or the faults are of several peers."""


class FaultKind(StrEnum):
    """The kind of a fault."""

    MALFORMED = "malformed_messages"
    """A peer sent invalid data."""
    UNEXPECTED = "unexpected_errors"
    """The parser of a peer's message raised an error other than `Malformed`, a defect of qsctl as well."""
    UNAUTHORIZED = "unauthorized_commands"
    """A peer sent a command without a valid signature to a service that requires one."""
    UNPROVEN = "refused_letters"
    """A peer sent a replication message in a member's name without a valid signature of the cluster's key."""
    SKIPPED = "skipped_of_later_version"
    """A peer of a later version sent what this version does not know; the rest of its message was used."""
    LIBRARY = "dds_messages"
    """The DDS library logged a line of its own; the peer is unknown."""
    INCOMPATIBLE = "incompatible_peer"
    """A peer's reader or writer on a topic of the service cannot match it; no message is involved."""
    TYPE = "type_discovered"
    """Not a fault: the type that the service assumes for a topic, where no file defines it."""


_BY_TEXT: Final = (FaultKind.LIBRARY, FaultKind.INCOMPATIBLE, FaultKind.TYPE, FaultKind.UNPROVEN)
"""Kinds whose texts are few: faults with different texts are reported singly."""


@dataclass(frozen=True, slots=True)
class PeerFault:
    """Messages of a peer that had no effect because they could not be parsed.

    Attributes:
        source: origin of the messages, such as the name of a topic.
        peer: the GUID of the writer, 32 hexadecimal digits, or `UNKNOWN_PEER`.
        reason: the fault of the latest message.
        count: number of messages since the last report of this kind.
        kind: the kind of the fault.
    """

    source: str
    peer: str
    reason: str
    count: int = 1
    kind: FaultKind = FaultKind.MALFORMED


Report: TypeAlias = Callable[[PeerFault], None]


def log_fault(fault: PeerFault) -> None:
    """Log a fault through `logging`, as logger `qsctl.transport`, for the application program."""
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
    """The reports of faults through a callable: the first of a kind at once, the following as a count.

    Faults are of the same kind if `kind`, source and peer are equal; for some kinds, also the text.

    Args:
        report: called with each fault to report.
        clock: returns monotonic nanoseconds.
    """

    def __init__(self, report: Report, clock: Callable[[], Nanoseconds] = time.monotonic_ns) -> None:
        self.report = report
        self._clock = clock
        self._later: dict[tuple[str, ...], PeerFault | None] = {}
        self._others: PeerFault | None = None
        self._period_ends_at: Nanoseconds = 0

    def add(self, fault: PeerFault) -> None:
        """Report a fault now, or together with equal ones at the end of the period."""
        if not self._later:
            self._period_ends_at = self._clock() + REPORT_PERIOD_NS
        else:
            self.turn()
        text = fault.reason if fault.kind in _BY_TEXT else ""
        like = (fault.kind, fault.source, fault.peer, text)
        if like in self._later:
            self._later[like] = _together(self._later[like], fault, fault.source, fault.peer)
        elif len(self._later) < KINDS_MAX:
            self._later[like] = None
            self.report(fault)
        else:
            self._others = _together(self._others, fault, "several topics", UNKNOWN_PEER)

    def turn(self) -> None:
        """Report the counted faults if the period is over; cheap if there are none."""
        if self._later and self._clock() >= self._period_ends_at:
            self.finish()

    def finish(self) -> None:
        """Report the counted faults now."""
        counted = [*self._later.values(), self._others]
        self._later.clear()
        self._others = None
        for fault in counted:
            if fault is not None:
                self.report(fault)


def _together(former: PeerFault | None, fault: PeerFault, source: str, peer: str) -> PeerFault:
    count = fault.count + (0 if former is None else former.count)
    return PeerFault(source, peer, fault.reason, count, fault.kind)
