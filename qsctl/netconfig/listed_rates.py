"""Arrival and service rates from two listings of a site's recovery database.

Decides which rates can be derived. Queues are first in, first out. Where a message that waited for a destination in the
first listing still waits in the second, the destination was busy all the time and none of the later arrivals has left:
the departures divided by the time between the listings are its service rate, and the new messages give its arrival
rate. For other destinations no rate can be derived.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from qsctl.core.integration.message import MessageId
from qsctl.dumps.model import ListedMessage
from qsctl.dumps.moments import SECOND_NS

_WAITING: Final = frozenset({6, 7, 8, 9, 10, 11, 12, 13, 14})
"""States of a message that is on its way to a destination; lower states precede translation."""
_LAST_STATE: Final = 99
"""The largest state number that is not one of the error database."""


@dataclass(slots=True)
class WaitingListing:
    """The waiting messages of one listing, by destination, and their lengths, by source."""

    by_destination: dict[str, dict[MessageId, str]] = field(default_factory=dict)
    """By destination: the source of each message, by message id."""
    sizes: dict[str, list[int]] = field(default_factory=dict)
    newest_s: float | None = None
    """Unix time at which the newest message was created, which approximates the time of the listing."""


@dataclass(frozen=True, slots=True)
class DestinationRates:
    """Rates of a destination that was busy all the time between the listings."""

    served_per_s: float
    arrived_per_s: float
    by_source: dict[str, float]


def waiting_of(messages: Iterable[ListedMessage]) -> WaitingListing:
    """Collect the waiting messages of a listing."""
    found = WaitingListing()
    for each in messages:
        if each.state > _LAST_STATE:
            continue
        source = each.original_source or each.source
        if each.state in _WAITING and each.destination:
            found.by_destination.setdefault(each.destination, {})[each.mid] = source
        if each.size_bytes:
            found.sizes.setdefault(source, []).append(each.size_bytes)
        if each.created is not None:
            at_s = each.created.at_ns / SECOND_NS
            found.newest_s = at_s if found.newest_s is None else max(found.newest_s, at_s)
    return found


def listed_rates(before: WaitingListing, after: WaitingListing, seconds: float) -> dict[str, DestinationRates]:
    """Return the rates of each destination that was busy all the time between two listings, `seconds` apart."""
    found = {}
    for destination, first in before.by_destination.items():
        second = after.by_destination.get(destination, {})
        gone = first.keys() - second.keys()
        if not gone or len(gone) == len(first) or seconds <= 0:
            continue
        sources: dict[str, int] = {}
        for mid in second.keys() - first.keys():
            sources[second[mid]] = sources.get(second[mid], 0) + 1
        found[destination] = DestinationRates(
            len(gone) / seconds,
            sum(sources.values()) / seconds,
            {source: count / seconds for source, count in sources.items()},
        )
    return found
