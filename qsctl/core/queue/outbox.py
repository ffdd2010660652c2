"""Where the queues of one service put what is to be stored, sent and told, in order.

Decides: that all queues share one batch, so that records of several queues keep their common order.
"""

from __future__ import annotations

from typing import Final, Protocol

from qsctl.core.events import Event
from qsctl.core.messages import Outbound
from qsctl.core.queue.agenda import Agenda
from qsctl.core.queue.sample import Sample
from qsctl.core.ready import Ready
from qsctl.core.records import Record, ServiceRecord
from qsctl.instant import INFINITE_NS, Nanoseconds

NEVER_NS: Final[Nanoseconds] = -1
"""No instant at all."""


class Passing(Protocol):
    """A queue that tells of its usual samples in numbers. `passed_at_ns` is the instant of those it still adds to."""

    passed_at_ns: Nanoseconds


class Outbox:
    """The open batch, and the service's agenda.

    Args:
        tells_usual: whether every step of a sample on its usual way is told; False: in numbers, see `SamplesPassed`.
    """

    __slots__ = (
        "_changes_service",
        "_has_spilled",
        "agenda",
        "events",
        "messages",
        "passing",
        "records",
        "share_count",
        "spilling",
        "tells_usual",
    )

    def __init__(self, *, tells_usual: bool = True) -> None:
        self.tells_usual = tells_usual
        self.share_count = INFINITE_NS
        """How many samples a queue moves in a row for one cause; the rest follows in the next turn."""
        self.records: list[Record] = []
        self.messages: list[Outbound] = []
        self.events: list[Event] = []
        self.spilling: list[Sample] = []
        """Samples whose payload is on disk as soon as this batch is stored (section 2.14.2)."""
        self.passing: list[Passing] = []
        """Queues that still add to a number in this batch."""
        self.agenda = Agenda()
        self._changes_service = False
        self._has_spilled = False

    def record_change(self, record: ServiceRecord) -> None:
        """Record a change of the service's configuration."""
        self.records.append(record)
        self._changes_service = True

    def end_passing(self) -> None:
        """Nothing is added to the numbers told so far: somebody reads them."""
        for queue in self.passing:
            queue.passed_at_ns = NEVER_NS
        self.passing.clear()

    def take(self) -> Ready:
        """Close the batch and open the next one. Payloads that are on disk only leave the memory here."""
        ready = Ready(self.records, self.messages, self.events, self._changes_service, self._has_spilled)
        self.records, self.messages, self.events = [], [], []
        self._changes_service = False
        self.end_passing()
        if self.spilling:
            self._has_spilled = True
            for sample in self.spilling:
                sample.payload = None
            self.spilling.clear()
        return ready
