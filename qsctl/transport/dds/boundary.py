"""The boundary: where what a peer sent is read, and where whatever its reading raises ends.

Decides: what one message may cost. It is refused, counted, reported at a limited rate with its sender's GUID, and
answered where it has an answer; those before and after it have their effect. Nothing of the engine runs in here: an
invariant of the core that does not hold still ends the service, for its state can no longer be trusted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from qsctl.transport.dds.diagnosis.peer_faults import (
    REASON_CHARACTERS_MAX,
    UNKNOWN_PEER,
    FaultKind,
    FaultReports,
    PeerFault,
    Report,
    log_fault,
)
from qsctl.transport.dds.serving.loop_time import LoopTime

INCOMPATIBLE_CHARACTERS_MAX: Final = 1000
"""Bound on the text that explains why a peer cannot match: it contains names that the peer chose."""

NAMED_MAX: Final = 10_000
"""Incompatible endpoints that are remembered, to name each once."""

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class PeerLimits:
    """Bounds on the endpoints and names kept for one peer, which is a participant; -1: unlimited."""

    endpoints_max: int = -1
    consumers_max: int = -1


class Malformed(ValueError):
    """Octets of a peer that break the format or a bound: raised by every reader of peers' data."""


class Boundary:
    """Applies a reader to each of a peer's messages and keeps what it raises from everything else.

    Args:
        report: called, at a limited rate, with the faults of peers; `logging` without one.

    Attributes:
        refused_count: messages that could not be read, since the start.
        unexpected_count: those of them whose reading raised what no reader declares.
        denied: commands without a signature that counts, at a service that requires one, by cause.
        incompatible_count: readers and writers of peers that were found on a topic of ours and cannot match.
    """

    def __init__(self, report: Report = log_fault) -> None:
        self.refused_count = 0
        self.unexpected_count = 0
        self.incompatible_count = 0
        self.denied: Counter[str] = Counter()
        self._named: dict[str, None] = {}
        self._reports = FaultReports(report)
        self.peer_limits = PeerLimits()
        """Bounds on the data kept for one peer."""
        self.time = LoopTime()
        """Division of the reading loop's time among the requests of peers."""

    def report_to(self, report: Report) -> None:
        """Report through another callable from now on."""
        self._reports.report = report

    def each(
        self,
        source: str,
        items: Iterable[Item],
        read: Callable[[Item], Result],
        peer_of: Callable[[int], str],
        answer: Callable[[Item, str], Any] | None = None,
    ) -> list[Result]:
        """Return what `read` makes of each item, in order, without those that it raises on.

        Args:
            source: what is read, for the report: a topic's name.
            items: of peers; each is read on its own.
            read: raises `Malformed` for what is not well-formed; anything else that it raises is caught just so.
            peer_of: the GUID of the sender of the item at an index, 32 hexadecimal digits.
            answer: called with an item that was refused, and the reason, where its sender is to get an answer.
        """
        results: list[Result] = []
        refused_count = 0
        for item in items:
            try:
                results.append(read(item))
            except Exception as error:  # whatever one message raises, the others and the service go on
                reason = _reason_of(error)
                kind = FaultKind.MALFORMED if isinstance(error, Malformed) else FaultKind.UNEXPECTED
                self.refuse(source, peer_of(len(results) + refused_count), reason, kind=kind)
                refused_count += 1
                if answer is not None:
                    answer(item, reason)
        return results

    def refuse(
        self, source: str, peer: str, reason: str, *, count: int = 1, kind: FaultKind = FaultKind.MALFORMED
    ) -> None:
        """Count and report messages without effect."""
        self.refused_count += count
        if kind is FaultKind.UNEXPECTED:
            self.unexpected_count += count
        self._reports.add(PeerFault(source, peer or UNKNOWN_PEER, reason, count, kind))

    def name_incompatible(self, topic_name: str, peer: str, reason: str) -> None:
        """Report a peer's endpoint that is on a topic of ours and cannot match, once; it is counted apart.

        A service sees a peer from several participants, which share a boundary.
        """
        if peer in self._named:
            return
        self._named[peer] = None
        if len(self._named) > NAMED_MAX:
            del self._named[next(iter(self._named))]
        self.incompatible_count += 1
        self._reports.add(
            PeerFault(topic_name, peer, reason[:INCOMPATIBLE_CHARACTERS_MAX], kind=FaultKind.INCOMPATIBLE)
        )

    def name_type(self, topic_name: str, peer: str, text: str) -> None:
        """Note the type that a topic's samples are read as, from an endpoint's announcement of its type."""
        self._reports.add(PeerFault(topic_name, peer, text[:INCOMPATIBLE_CHARACTERS_MAX], kind=FaultKind.TYPE))

    def deny(self, source: str, peer: str, cause: str, reason: str) -> None:
        """Count, by cause, and report a command that its sender may not give."""
        self.denied[cause] += 1
        self._reports.add(PeerFault(source, peer, reason[:REASON_CHARACTERS_MAX], kind=FaultKind.UNAUTHORIZED))

    def note(self, text: str) -> None:
        """Report what the library of DDS logged of itself."""
        text = text[:REASON_CHARACTERS_MAX]
        self._reports.add(PeerFault("Cyclone DDS", UNKNOWN_PEER, text, kind=FaultKind.LIBRARY))

    def turn(self) -> None:
        """Report what was counted, when it is time; called with every turn of a driver."""
        self._reports.turn()

    def close(self) -> None:
        """Report what was counted and not reported yet."""
        self._reports.finish()


def decoded(decode: Callable[[Item], Result], data: Item) -> Result:
    """Return what a function of the binding, which declares no errors, makes of a peer's data.

    Raises:
        Malformed: it raised something: the data is no such value.
    """
    try:
        return decode(data)
    except Exception as error:  # the binding of DDS raises `Exception` itself, among others
        size = f"{len(data)} octets: " if isinstance(data, bytes) else ""
        raise Malformed(f"{size}{type(error).__name__}: {error}") from error


def _reason_of(error: Exception) -> str:
    """Return what was wrong; for what is not declared, the kind of the error and the line that raised it."""
    text = str(error)[:REASON_CHARACTERS_MAX]
    if isinstance(error, Malformed):
        return text
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = f" ({trace.tb_frame.f_globals.get('__name__')}:{trace.tb_lineno})" if trace is not None else ""
    return f"{type(error).__name__}: {text}{where}"
