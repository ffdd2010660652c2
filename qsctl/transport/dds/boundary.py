"""The trust boundary for messages of peers: every error from parsing one is caught here.

Decides: the effect of an invalid message. It is refused, counted, reported at a limited rate with its sender's GUID,
and answered if it has an answer; the messages before and after it are processed. The engine does not run inside the
boundary: a violated invariant of the core still ends the service, because its state can no longer be trusted.
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
"""Maximum length of the text that explains why a peer cannot match: it contains names chosen by the peer."""

NAMED_MAX: Final = 10_000
"""Number of remembered incompatible endpoints, each of which is reported once."""

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class PeerLimits:
    """Bounds on the endpoints and names kept for one peer, which is a DDS participant; -1: unlimited."""

    endpoints_max: int = -1
    consumers_max: int = -1


class Malformed(ValueError):
    """Octets of a peer that violate the format or a bound; every parser of peers' data raises it."""


class Boundary:
    """The application of a parser to each message of peers; errors of one message do not affect others.

    Args:
        report: called, at a limited rate, with the faults of peers; by default they are logged through `logging`.

    Attributes:
        refused_count: messages that could not be parsed, since the start.
        unexpected_count: the subset of them whose parser raised another error than `Malformed`.
        refused_letters: parts of letters between replicas without a valid signature, at a member with a key, by cause.
        unsigned_count: parts of letters that were accepted without a signature, at a member with a key.
        denied: commands without a valid signature, at a service that requires one, by cause.
        skipped_count: parts of messages that only later versions know; the rest of each message was used.
        incompatible_count: readers and writers of peers that were found on a topic of ours and cannot match.
    """

    def __init__(self, report: Report = log_fault) -> None:
        self.refused_count = 0
        self.unexpected_count = 0
        self.skipped_count = 0
        self.incompatible_count = 0
        self.denied: Counter[str] = Counter()
        self.refused_letters: Counter[str] = Counter()
        self.unsigned_count = 0
        self._named: dict[str, None] = {}
        self._reports = FaultReports(report)
        self.peer_limits = PeerLimits()
        """Bounds on the data kept for one peer."""
        self.time = LoopTime()
        """Division of the transport loop's time among the requests of peers."""

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
        """Return the results of `read` for each item, in order, omitting items on which it raises an error.

        Args:
            source: the origin of the items, for reports, such as the name of a topic.
            items: received from peers; each is parsed by itself.
            read: raises `Malformed` for invalid octets; any other error is caught in the same way.
            peer_of: returns the GUID of the sender of the item at an index, 32 hexadecimal digits.
            answer: called with a refused item and the reason, if its sender is to be answered.
        """
        results: list[Result] = []
        refused_count = 0
        for item in items:
            try:
                results.append(read(item))
            except Exception as error:  # an error of one message affects neither the others nor the service
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
        """Count and report refused messages."""
        self.refused_count += count
        if kind is FaultKind.UNEXPECTED:
            self.unexpected_count += count
        self._reports.add(PeerFault(source, peer or UNKNOWN_PEER, reason, count, kind))

    def skip(self, source: str, peer: str, reason: str) -> None:
        """Count and report a part of a message that only later versions know."""
        self.skipped_count += 1
        self._reports.add(PeerFault(source, peer, reason[:REASON_CHARACTERS_MAX], kind=FaultKind.SKIPPED))

    def name_incompatible(self, topic_name: str, peer: str, reason: str) -> None:
        """Report, once, a peer's endpoint on a topic of ours that cannot match; it is counted separately.

        A service discovers a peer by several participants, which share a boundary.
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
        """Report the type as which a topic's samples are read, derived from an endpoint's type information."""
        self._reports.add(PeerFault(topic_name, peer, text[:INCOMPATIBLE_CHARACTERS_MAX], kind=FaultKind.TYPE))

    def deny(self, source: str, peer: str, cause: str, reason: str) -> None:
        """Count, by cause, and report a command for which its sender has no permission."""
        self.denied[cause] += 1
        self._reports.add(PeerFault(source, peer, reason[:REASON_CHARACTERS_MAX], kind=FaultKind.UNAUTHORIZED))

    def deny_letter(self, source: str, peer: str, cause: str, reason: str) -> None:
        """Count, by cause, a part of a letter that no member can have sent, and report it if a reason is given."""
        self.refused_letters[cause] += 1
        if reason:
            self._reports.add(PeerFault(source, peer, f"{cause}: {reason}", kind=FaultKind.UNPROVEN))

    def note(self, text: str) -> None:
        """Report a line that the DDS library logged."""
        text = text[:REASON_CHARACTERS_MAX]
        self._reports.add(PeerFault("Cyclone DDS", UNKNOWN_PEER, text, kind=FaultKind.LIBRARY))

    def turn(self) -> None:
        """Report the counted faults when their period is over; a driver calls it in every turn."""
        self._reports.turn()

    def close(self) -> None:
        """Report the counted faults that were not reported yet."""
        self._reports.finish()


def decoded(decode: Callable[[Item], Result], data: Item) -> Result:
    """Return the result of a function of the binding for a peer's data, converting any error to `Malformed`.

    Raises:
        Malformed: the function raised an error: the data is invalid.
    """
    try:
        return decode(data)
    except Exception as error:  # the binding of DDS raises `Exception` itself, among others
        size = f"{len(data)} octets: " if isinstance(data, bytes) else ""
        raise Malformed(f"{size}{type(error).__name__}: {error}") from error


def _reason_of(error: Exception) -> str:
    """Return the text of an error; for another one than `Malformed` also its class and the line that raised it."""
    text = str(error)[:REASON_CHARACTERS_MAX]
    if isinstance(error, Malformed):
        return text
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = f" ({trace.tb_frame.f_globals.get('__name__')}:{trace.tb_lineno})" if trace is not None else ""
    return f"{type(error).__name__}: {text}{where}"
