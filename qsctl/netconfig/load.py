"""The known load of each thread of a site, and the source of each figure.

Decides the precedence of sources. An archive has hours, lengths and transaction ids; a pair of statistics dumps has
counts; two listings have the rates behind a queue that never ran empty. A rate that several sources state is taken from
the one that counted more messages; any other figure from the first source that has it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from qsctl.netconfig.archives import SavedTraffic, hourly
from qsctl.netconfig.listed_rates import DestinationRates, WaitingListing
from qsctl.netconfig.statistics import ThreadSample

_DAY_S: Final = 86_400.0
_WHOLE_DAY: Final = 0.95
"""Least fraction of a day that an archive or a series of dumps must cover to yield the rates of a day."""
_STEPS_MAX: Final = 48


class KnownFigure(NamedTuple):
    """A value and its source."""

    value: float
    why: str
    messages: int = 0
    """Number of messages from which the value was computed."""


@dataclass(slots=True)
class ThreadLoad:
    """The known load of one thread; None and empty fields are unknown."""

    arrived_per_s: KnownFigure | None = None
    """Inbound messages per second that arrive at the thread from outside."""
    steps: tuple[tuple[float, float], ...] = ()
    """Arrival rate over a day: steps of (messages per second, length in seconds), from midnight on."""
    median_bytes: KnownFigure | None = None
    sigma: float = 0.0
    """Standard deviation of the logarithm of the lengths."""
    types: dict[str, int] = field(default_factory=dict)
    """Number of messages by transaction id."""
    sent_per_s: KnownFigure | None = None
    """Messages per second that are routed to the thread for sending."""
    served_per_s: KnownFigure | None = None
    """Service rate: messages per second that the receiver accepts while messages wait."""
    by_source: dict[str, float] = field(default_factory=dict)
    """Messages per second that are routed to the thread, by source thread."""


@dataclass(slots=True)
class SiteLoad:
    """The known load of a site's threads, by name."""

    threads: dict[str, ThreadLoad] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    """The inputs that could not be used, with the reasons."""

    def of(self, thread: str) -> ThreadLoad:
        """Return the load of a thread; add an unknown load if the site has none for it."""
        return self.threads.setdefault(thread, ThreadLoad())


def add_archives(load: SiteLoad, saved: Mapping[tuple[str, bool], SavedTraffic]) -> None:
    """Add the load derived from message archives."""
    for (name, is_inbound), traffic in saved.items():
        thread = load.of(name)
        seconds = traffic.seconds
        rate = traffic.messages / seconds if traffic.messages > 1 and seconds > 0 else None
        why = f"{traffic.messages:,} saved messages"
        if rate is None:
            load.notes.append(f"{name}: {traffic.messages} saved messages of one instant have no rate")
            continue
        if is_inbound:
            thread.arrived_per_s = KnownFigure(rate, why, traffic.messages)
            if traffic.sizes:
                thread.median_bytes = KnownFigure(traffic.median_bytes, why)
                thread.sigma = traffic.sigma
            thread.types = dict(traffic.types)
            if seconds >= _WHOLE_DAY * _DAY_S:
                thread.steps = tuple((each, _DAY_S / 24) for each in hourly(traffic))
        else:
            thread.sent_per_s = KnownFigure(rate, why, traffic.messages)


def add_statistics(load: SiteLoad, samples: Iterable[ThreadSample], interval_s: float | None = None) -> None:
    """Add the load derived from statistics dumps: counts between two dumps, else since each thread began to count.

    Args:
        load: the load that is extended.
        samples: the samples of all dumps, in the order of time.
        interval_s: seconds between two dumps that state no instant; None: unknown.
    """
    by_thread: dict[str, list[ThreadSample]] = {}
    for each in samples:
        by_thread.setdefault(each.thread, []).append(each)
    for name, those in by_thread.items():
        dated = [each for each in those if each.at_s is not None]
        those = sorted(dated, key=lambda each: each.at_s or 0.0) if len(dated) == len(those) else those
        periods = _periods(those, interval_s)
        if not periods:
            load.notes.append(f"{name}: its statistics state no time to count over; give two dumps, or --interval")
            continue
        _add_periods(load.of(name), periods)


class _Period(NamedTuple):
    """The counts of a thread between two instants."""

    seconds: float
    messages_in: int | None
    messages_out: int | None
    bytes_in: int | None
    queued_more: int
    """Increase of the messages that waited for the connection, from the first instant to the second."""
    had_work: bool
    """Whether messages waited for the connection at both instants."""
    began_s: float | None


def _periods(samples: Sequence[ThreadSample], interval_s: float | None) -> list[_Period]:
    found = []
    for before, after in itertools.pairwise(samples):
        if before.at_s is not None and after.at_s is not None:
            seconds: float | None = after.at_s - before.at_s
        else:
            seconds = interval_s
        if seconds is None or seconds <= 0:
            continue
        found.append(
            _Period(
                seconds,
                _difference(before.messages_in, after.messages_in),
                _difference(before.messages_out, after.messages_out),
                _difference(before.bytes_in, after.bytes_in),
                0 if before.queued is None or after.queued is None else after.queued - before.queued,
                bool(before.queued) and bool(after.queued),
                before.at_s,
            )
        )
    if found or not samples:
        return found
    last = samples[-1]
    if last.at_s is None or last.since_s is None or last.at_s <= last.since_s:
        return []
    seconds = last.at_s - last.since_s
    return [_Period(seconds, last.messages_in, last.messages_out, last.bytes_in, last.queued or 0, False, last.since_s)]


def _difference(before: int | None, after: int | None) -> int | None:
    """Return the increase of a counter; a counter that decreased was reset to 0 in between."""
    if before is None or after is None:
        return None
    return after - before if after >= before else after


def _add_periods(thread: ThreadLoad, periods: Sequence[_Period]) -> None:
    seconds = sum(each.seconds for each in periods)
    why = f"statistics over {seconds:,.0f} s"
    arrived = _total(each.messages_in for each in periods)
    sent = _total(each.messages_out for each in periods)
    octets = _total(each.bytes_in for each in periods)
    if arrived > _messages(thread.arrived_per_s):
        thread.arrived_per_s = KnownFigure(arrived / seconds, why, arrived)
        thread.steps = _scaled(thread.steps, arrived / seconds) or _steps(periods)
    if arrived and octets and thread.median_bytes is None:
        thread.median_bytes = KnownFigure(max(1.0, octets / arrived), f"mean length, {why}")
    came = sent + sum(each.queued_more for each in periods if each.messages_out is not None)
    if came > _messages(thread.sent_per_s):
        thread.sent_per_s = KnownFigure(came / seconds, why, came)
    busy = [each for each in periods if each.had_work and each.messages_out]
    if busy and thread.served_per_s is None:
        busy_s = sum(each.seconds for each in busy)
        served = sum(each.messages_out or 0 for each in busy) / busy_s
        thread.served_per_s = KnownFigure(served, f"statistics over {busy_s:,.0f} s in which messages waited for it")


def _messages(figure: KnownFigure | None) -> int:
    return 0 if figure is None else figure.messages


def _scaled(steps: tuple[tuple[float, float], ...], per_s: float) -> tuple[tuple[float, float], ...]:
    """Return the steps with their rates scaled to the mean `per_s`; empty if all rates are 0."""
    total = sum(rate * seconds for rate, seconds in steps)
    if total <= 0:
        return ()
    factor = per_s * sum(seconds for _, seconds in steps) / total
    return tuple((rate * factor, seconds) for rate, seconds in steps)


def _total(counts: Iterable[int | None]) -> int:
    return sum(each or 0 for each in counts)


def _steps(periods: Sequence[_Period]) -> tuple[tuple[float, float], ...]:
    """Return the arrival rates over a day, from midnight on, if the periods cover one day; else an empty tuple."""
    seconds = sum(each.seconds for each in periods)
    first = periods[0].began_s
    if first is None or not 3 <= len(periods) <= _STEPS_MAX or not _WHOLE_DAY * _DAY_S <= seconds <= 1.05 * _DAY_S:
        return ()
    if any(each.messages_in is None for each in periods):
        return ()
    steps = [((each.messages_in or 0) / each.seconds, each.seconds) for each in periods]
    within_s = first % _DAY_S
    rotated: list[tuple[float, float]] = []
    at_s = within_s
    for rate, length in steps:
        # A step across midnight is split into two.
        if at_s < _DAY_S < at_s + length:
            rotated += [(rate, _DAY_S - at_s), (rate, at_s + length - _DAY_S)]
        else:
            rotated.append((rate, length))
        at_s += length
    place, clock = 0, within_s
    while place < len(rotated) and clock < _DAY_S - 1e-6:
        clock += rotated[place][1]
        place += 1
    return (*rotated[place:], *rotated[:place])


def add_listings(
    load: SiteLoad, rates: Mapping[str, DestinationRates], listings: Sequence[WaitingListing], seconds: float
) -> None:
    """Add the load derived from two listings, `seconds` apart."""
    why = f"two listings, {seconds:,.0f} s apart"
    for destination, each in rates.items():
        thread = load.of(destination)
        thread.served_per_s = thread.served_per_s or KnownFigure(each.served_per_s, why)
        thread.sent_per_s = thread.sent_per_s or KnownFigure(each.arrived_per_s, why)
        thread.by_source = dict(each.by_source)
    by_source: dict[str, float] = {}
    for each in rates.values():
        for source, rate in each.by_source.items():
            by_source[source] = max(by_source.get(source, 0.0), rate)
    for source, rate in by_source.items():
        thread = load.of(source)
        if thread.arrived_per_s is None:
            thread.arrived_per_s = KnownFigure(rate, f"{why}: at least what it sent to one destination")
    for listing in listings:
        for source, sizes in listing.sizes.items():
            thread = load.of(source)
            if thread.median_bytes is None:
                thread.median_bytes = KnownFigure(sum(sizes) / len(sizes), f"{len(sizes)} listed messages")
