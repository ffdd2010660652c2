"""A run's events summarized at every log level: for each kind its count, first instant and first client."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from qsctl.eventlog.run_folder import Happening
from qsctl.sim.model import EVENT_NAMES, Event

TOTALS: Final = frozenset(
    {
        Event.CONGESTION_DISCARDS, Event.NOT_CONNECTED_DISCARDS, Event.DISCONNECT_DISCARDS, Event.SPOOL_DISCARDS,
        Event.RETURNED, Event.RETRANSMISSIONS, Event.MISSED_KEEPALIVES, Event.TIME_OUTS, Event.EXPIRED_TO_DMQ,
        Event.REDELIVERED_TO_DMQ, Event.REJECTED_TO_DMQ,
    }
)  # fmt: skip
"""Events whose value is a number of messages or segments, raised once a client at the end."""


@dataclass(slots=True)
class _HappeningKind:
    count: int = 0
    first_ns: int = 0
    first_client: int = -1
    peak: int = 0
    clients: set[int] = field(default_factory=set)


class Happenings:
    """The summary of one replication's events by kind."""

    def __init__(self) -> None:
        self._kinds: dict[int, _HappeningKind] = {}

    def note(self, at_ns: int, client: int, value: int, event: int) -> None:
        """Add one event to the summary; `client` -1: it concerns no single client."""
        kind = self._kinds.get(event)
        if kind is None:
            kind = self._kinds[event] = _HappeningKind(first_ns=at_ns, first_client=client)
        elif at_ns < kind.first_ns:
            kind.first_ns, kind.first_client = at_ns, client
        kind.count += value if event in TOTALS else 1
        kind.peak = max(kind.peak, value)
        if client >= 0:
            kind.clients.add(client)

    def add(self, others: Happenings, numbers: Sequence[int]) -> None:
        """Add the summary of other clients of the same broker; `numbers` maps their client numbers to those used here.

        The count and the peak of an event that is a total of the whole broker are the sums of those of both parts.
        """
        for event, other in others._kinds.items():
            client = numbers[other.first_client] if other.first_client >= 0 else -1
            kind = self._kinds.get(event)
            if kind is None:
                kind = self._kinds[event] = _HappeningKind(first_ns=other.first_ns, first_client=client)
            elif (other.first_ns, client) < (kind.first_ns, kind.first_client):
                kind.first_ns, kind.first_client = other.first_ns, client
            kind.count += other.count
            is_sum = event in TOTALS and not other.clients
            kind.peak = kind.peak + other.peak if is_sum else max(kind.peak, other.peak)
            kind.clients.update(numbers[each] for each in other.clients)

    def summed(self, names: Sequence[str]) -> tuple[Happening, ...]:
        """Return one row for each kind of event, ordered by first instant; `names` are the clients' names by number."""
        return tuple(
            Happening(
                event=EVENT_NAMES[event],
                count=kind.count,
                clients=len(kind.clients),
                first_ns=kind.first_ns,
                first_client=names[kind.first_client] if kind.first_client >= 0 else "",
                peak=kind.peak,
            )
            for event, kind in sorted(self._kinds.items(), key=lambda each: (each[1].first_ns, each[0]))
        )
