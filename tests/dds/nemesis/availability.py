"""The share of the time with a quorum in which writes were answered, by the journals and the driver's own times."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

from qsctl.instant import MILLISECOND_NS
from tests.dds.nemesis.journals import Answered, Journal, Wrote

Span: TypeAlias = tuple[int, int]
"""A time from one instant to another, in nanoseconds."""

_SHORT_NS: Final = 100 * MILLISECOND_NS
"""Gaps up to this length are not looked at: there are as many as samples."""


def joined(spans: Iterable[Span]) -> list[Span]:
    """Return the union of some times, in order and apart from each other."""
    found: list[Span] = []
    for begin, end in sorted(spans):
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        elif begin < end:
            found.append((begin, end))
    return found


def common(first: Sequence[Span], second: Sequence[Span]) -> list[Span]:
    """Return the time that two unions have in common."""
    pairs = ((max(a, c), min(b, d)) for a, b in first for c, d in second)
    return [(begin, end) for begin, end in pairs if begin < end]


def length_ns(spans: Iterable[Span]) -> int:
    """Return the length of a union."""
    return sum(end - begin for begin, end in spans)


def waits(journals: Iterable[Journal]) -> list[Span]:
    """Return the times in which samples waited for their first answers.

    One without an answer waited until the last event of its producer, which was killed then.
    """
    found: list[Span] = []
    for journal in journals:
        open_since: dict[int, int] = {}
        for event in journal.events:
            if isinstance(event, Wrote):
                open_since[event.number] = event.at_ns
            elif isinstance(event, Answered) and event.number in open_since:
                found.append((open_since.pop(event.number), event.at_ns))
        found += ((begin, journal.events[-1].at_ns) for begin in open_since.values())
    return found


def availability(quorum: Sequence[Span], waited: Iterable[Span], longest_ns: int) -> float:
    """Return the share of the time with a quorum in which no sample waited longer than that for its answer.

    Of a wait its parts in times with a quorum count, each alone: what passed before a quorum came back does not.
    """
    long = [each for each in waited if each[1] - each[0] > longest_ns]
    too_long = joined(each for each in common(long, quorum) if each[1] - each[0] > longest_ns)
    return 1 - length_ns(too_long) / length_ns(quorum)


def longest_gap_ns(journals: Iterable[Journal], quorum: Sequence[Span]) -> int:
    """Return the longest part of a time with a quorum in which no answer came."""
    instants = sorted(each.at_ns for journal in journals for each in journal.events if isinstance(each, Answered))
    gaps = [each for each in itertools.pairwise(instants) if each[1] - each[0] > _SHORT_NS]
    return max((end - begin for begin, end in common(gaps, quorum)), default=0)
