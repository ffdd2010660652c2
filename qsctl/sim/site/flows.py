"""Message rates along the routes of an engine, and the work of its threads, computed without simulation.

Decides: the average number of messages that a procedure passes on. A message that a procedure itself sends to a
destination counts at that destination; one that is rerouted counts again for its new transaction id. Where rates change
over a day, they are those of one hour.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from qsctl.instant import SECOND_NS, Nanoseconds
from qsctl.sim.scenario.parts.engine import (
    Behaviour,
    Engine,
    EngineDetail,
    EngineInbound,
    EngineProcedure,
    EngineRoute,
    EngineTranslation,
    Spread,
)
from qsctl.sim.scenario.parts.traffic import Arrivals
from qsctl.sim.scenario.scenario import ConstantArrivals, MmppArrivals, OnOffArrivals, PoissonArrivals

HOURS = 24
_ROUNDS_MAX = 20
_ANY = "*"


class SiteFlow(NamedTuple):
    """The rate of messages from one thread to another, for one transaction id and kind of detail."""

    source: str
    process: str
    transaction: str
    destination: str
    destination_process: str
    kind: str
    per_s: float


@dataclass(frozen=True, slots=True)
class ServiceTime:
    """The first two moments of a service time: its mean, and the mean of its square."""

    mean_s: float
    square_s2: float


@dataclass(frozen=True, slots=True)
class ThreadWork:
    """The work that an inbound thread causes for the translation thread of its process."""

    thread: str
    process: str
    per_s: float
    service: ServiceTime

    @property
    def load(self) -> float:
        """The share of time for which the translation thread is busy with its messages."""
        return self.per_s * self.service.mean_s


def mean_rate(arrivals: Arrivals) -> float | None:
    """Return the mean rate of arrivals in messages a second, or None for recorded arrivals."""
    match arrivals:
        case PoissonArrivals(rate) | ConstantArrivals(rate):
            return rate
        case OnOffArrivals(rate, on_ns, off_ns, _):
            return rate * on_ns / (on_ns + off_ns)
        case MmppArrivals(rates, stays, _):
            return sum(rate * stay for rate, stay in zip(rates, stays, strict=True)) / sum(stays)
        case _:
            return None


def rate_at(arrivals: Arrivals, at_ns: Nanoseconds) -> float:
    """Return the rate at an instant in messages a second: that of the cycle's step, or without a cycle the mean."""
    if not isinstance(arrivals, MmppArrivals) or not arrivals.cycle:
        return mean_rate(arrivals) or 0.0
    within = at_ns % sum(arrivals.mean_stays_ns)
    for rate, stay in zip(arrivals.rates_per_second, arrivals.mean_stays_ns, strict=True):
        if within < stay:
            return rate
        within -= stay
    return 0.0


def is_over_a_day(engine: Engine) -> bool:
    """Return whether the rate of a thread changes over a day."""
    return any(
        isinstance(thread.inbound.arrivals, MmppArrivals) and thread.inbound.arrivals.cycle
        for process in engine.processes
        for thread in process.threads
        if thread.inbound is not None
    )


def busiest_hour(engine: Engine) -> int:
    """Return the hour of the day with the most arrivals."""
    inbound = [
        thread.inbound for process in engine.processes for thread in process.threads if thread.inbound is not None
    ]

    def total(hour: int) -> float:
        return sum(rate_at(each.arrivals, hour * 3600 * SECOND_NS + 1800 * SECOND_NS) for each in inbound)

    return max(range(HOURS), key=total) if is_over_a_day(engine) else 0


def site_flows(engine: Engine, hour: int | None = None) -> list[SiteFlow]:
    """Return the message rates between threads: a row for each thread, transaction id, destination and kind of detail.

    Args:
        engine: the engine whose routes are followed.
        hour: hour of the day whose rates count; None: the mean rates.
    """
    process_of = {thread.name: process.name for process in engine.processes for thread in process.threads}
    found: dict[tuple[str, str, str, str], float] = {}
    for thread in process_of:
        inbound = _inbound_of(engine, thread)
        if inbound is None:
            continue
        for transaction, per_s in _transactions(inbound, _arriving(inbound, hour)).items():
            route = _route(inbound, transaction)
            for detail in () if route is None else route.details:
                for destination, count in _led(detail):
                    key = (thread, transaction, destination, str(detail.kind))
                    found[key] = found.get(key, 0.0) + per_s * count
    return [
        SiteFlow(source, process_of[source], transaction, destination, process_of.get(destination, ""), kind, per_s)
        for (source, transaction, destination, kind), per_s in found.items()
    ]


def translation_work(engine: Engine, hour: int | None = None) -> list[ThreadWork]:
    """Return the work that each inbound thread causes for the translation thread of its process."""
    found = []
    for process in engine.processes:
        for thread in process.threads:
            inbound = thread.inbound
            if inbound is None:
                continue
            mean = square = total = 0.0
            for transaction, per_s in _transactions(inbound, _arriving(inbound, hour)).items():
                route = _route(inbound, transaction)
                each_mean, variance = _route_time(route)
                mean += per_s * each_mean
                square += per_s * (variance + each_mean * each_mean)
                total += per_s
            service = ServiceTime(mean / total, square / total) if total else ServiceTime(0.0, 0.0)
            found.append(ThreadWork(thread.name, process.name, total, service))
    return found


def _inbound_of(engine: Engine, name: str) -> EngineInbound | None:
    for process in engine.processes:
        for thread in process.threads:
            if thread.name == name:
                return thread.inbound
    return None


def _arriving(inbound: EngineInbound, hour: int | None) -> float:
    at_ns = 0 if hour is None else (hour * 3600 + 1800) * SECOND_NS
    rate = (mean_rate(inbound.arrivals) or 0.0) if hour is None else rate_at(inbound.arrivals, at_ns)
    return rate * _passed(inbound.procedures)


def _transactions(inbound: EngineInbound, per_s: float) -> dict[str, float]:
    """Return the rate of each transaction id at the translation thread, rerouted messages included."""
    total = sum(each.weight for each in inbound.transactions)
    rates = {each.id: per_s * each.weight / total for each in inbound.transactions} if total else {_ANY: per_s}
    again, rounds = dict(rates), 0
    while again and rounds < _ROUNDS_MAX:
        rounds += 1
        following: dict[str, float] = {}
        for transaction, rate in again.items():
            route = _route(inbound, transaction)
            for detail in () if route is None else route.details:
                for procedure in (*detail.pre, *detail.post):
                    if procedure.does is Behaviour.REROUTE:
                        at = procedure.transaction
                        following[at] = following.get(at, 0.0) + rate / procedure.every
        again = {name: rate for name, rate in following.items() if rate > 1e-9}
        for name, rate in again.items():
            rates[name] = rates.get(name, 0.0) + rate
    return rates


def _route(inbound: EngineInbound, transaction: str) -> EngineRoute | None:
    by_name = {each.transaction: each for each in inbound.routes}
    return by_name.get(transaction) or by_name.get(_ANY)


def _passed(procedures: Sequence[EngineProcedure]) -> float:
    """Return the mean number of messages that leave a stack of procedures for each message that enters it."""
    count = 1.0
    for each in procedures:
        if each.does is Behaviour.SPLIT:
            count *= 1.0 + (each.results - 1) / each.every
        elif each.does not in {Behaviour.PASS, Behaviour.CHANGE, Behaviour.RETRY}:
            count *= 1.0 - 1.0 / each.every
    return count


def _led(detail: EngineDetail) -> Iterator[tuple[str, float]]:
    """Yield each destination of a detail, with the mean number of messages to it for each message of the detail."""
    count = 1.0
    for each in detail.pre:
        if each.does is Behaviour.SEND:
            yield each.to, count / each.every
        count *= _passed((each,))
    for translation in detail.translations:
        count *= _results(translation)
    for each in detail.post:
        if each.does is Behaviour.SEND:
            yield each.to, count / each.every
        count *= _passed((each,))
    for destination in detail.to.split():
        yield destination, count


def _results(translation: EngineTranslation) -> float:
    return float(translation.results)


def _route_time(route: EngineRoute | None) -> tuple[float, float]:
    """Return the mean (s) and the variance (s²) of the time that the details of a message's route take."""
    mean = variance = 0.0
    for detail in () if route is None else route.details:
        count = 1.0
        for each in detail.pre:
            mean, variance = _with(mean, variance, each.takes_ns, each.spread, count)
            count *= _passed((each,))
        for translation in detail.translations:
            count *= _results(translation)
            mean, variance = _with(mean, variance, translation.takes_ns, translation.spread, count)
        for each in detail.post:
            mean, variance = _with(mean, variance, each.takes_ns, each.spread, count)
            count *= _passed((each,))
    return mean, variance


def _with(mean: float, variance: float, takes_ns: int, spread: Spread, count: float) -> tuple[float, float]:
    seconds = takes_ns / SECOND_NS
    return mean + count * seconds, variance + (count * seconds * seconds if spread is Spread.EXPONENTIAL else 0.0)
