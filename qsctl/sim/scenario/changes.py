"""Changes at set times: pauses, absences, timed changes of limits and rates.

A timed change is a path and a value: `profile[web]/queue[D-1]/max-depth`, `…/min-msg-burst`, `…/weight`,
`port[eth1]/rate` (bits a second), `client[web]/pause` and `client[web]/absence` (a duration from then on).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from qsctl.declared.values import Value
from qsctl.errors import InvalidInput, UsageError
from qsctl.instant import INFINITE_NS, Nanoseconds, later, parse_duration
from qsctl.sim.scenario.forms.elements import QUEUE, queue_name
from qsctl.sim.scenario.forms.values import integer
from qsctl.sim.scenario.parts.broker_queue import WorkOutage
from qsctl.sim.scenario.scenario import QUEUE_ORDER, ClientInterval, Model, Queue, Scenario, TimedChange

_QUEUE_CHANGE: Final = re.compile(r"profile\[([^]]+)\]/queue\[([^]]+)\]/(max[-_]depth|min[-_]msg[-_]burst|weight)")
_PORT_CHANGE: Final = re.compile(r"port\[([^]]+)\]/rate")
_OUTAGE_CHANGE: Final = re.compile(r"client\[([^]]+)\]/(pause|absence)")
_PORT_BITS: Final = integer(1, 10**13)
"""As the reader leaves a port's rate: bits a second, within the range of `values.PORT_RATE`."""
MANY_INTERVALS: Final = 1_000_000

Span = tuple[Nanoseconds, Nanoseconds]


@dataclass(frozen=True, slots=True)
class QueueChange:
    """A new limit of one queue, for every client of one profile."""

    at_ns: Nanoseconds
    profile: str
    queue: Queue
    limit: str
    """`max_depth`, `burst` or `weight`, as in the kernel's record."""
    value: int


@dataclass(frozen=True, slots=True)
class PortChange:
    """A new line rate of a port, valid from `at_ns`."""

    at_ns: Nanoseconds
    port: str
    rate_bits_per_second: int


@dataclass(slots=True)
class Outages:
    """The merged spans [start, end) in which a group's clients do not read or are disconnected, by the group's name."""

    pauses: dict[str, list[Span]] = field(default_factory=dict)
    absences: dict[str, list[Span]] = field(default_factory=dict)

    def next_absence(self, group: str, after_ns: Nanoseconds) -> Nanoseconds:
        """Return the start of the group's next absence after `after_ns`; INFINITE_NS if there is none."""
        return next((start for start, _ in self.absences.get(group, []) if start > after_ns), INFINITE_NS)


def spans(intervals: Iterable[ClientInterval | WorkOutage], horizon_ns: Nanoseconds) -> list[Span]:
    """Return every occurrence before the horizon, merged where they touch.

    Raises:
        InvalidInput: an interval starts before 0, has no duration, or repeats too often to be listed.
    """
    found: list[Span] = []
    for interval in intervals:
        if interval.start_ns < 0 or interval.duration_ns <= 0 or interval.every_ns <= 0:
            raise InvalidInput(
                f"an interval starts at {interval.start_ns} ns, lasts {interval.duration_ns} ns and repeats every "
                f"{interval.every_ns} ns",
                remedy="Start at 0 or later; last and repeat after more than 0.",
            )
        if (horizon_ns - interval.start_ns) // interval.every_ns > MANY_INTERVALS:
            raise InvalidInput(
                f"an interval that repeats every {interval.every_ns} ns happens more than a million times",
                remedy="Use a longer period or a slower reading delay.",
            )
        start = interval.start_ns
        while start < horizon_ns:
            found.append((start, later(start, interval.duration_ns)))
            start = later(start, interval.every_ns)
    merged: list[Span] = []
    for start, end in sorted(found):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def read_changes(scenario: Scenario) -> tuple[list[QueueChange | PortChange], Outages]:
    """Return the scenario's changes of limits and rates, and the outages stated by groups or by timed changes.

    Raises:
        InvalidInput: a path cannot be changed during a run, its value is not allowed, or a name is unknown.
    """
    changes: list[QueueChange | PortChange] = []
    pauses = {group.name: list(group.pauses) for group in scenario.groups}
    absences = {group.name: list(group.absences) for group in scenario.groups}
    for change in scenario.changes:
        if match := _QUEUE_CHANGE.fullmatch(change.path):
            changes.append(_queue_change(scenario, change, *match.groups()))
        elif match := _PORT_CHANGE.fullmatch(change.path):
            _known(change, "port", match[1], [port.name for port in scenario.ports])
            changes.append(PortChange(change.at_ns, match[1], _value(change, _PORT_BITS)))
        elif match := _OUTAGE_CHANGE.fullmatch(change.path):
            _known(change, "client group", match[1], list(pauses))
            kind = pauses if match[2] == "pause" else absences
            try:
                duration = parse_duration(change.value)
            except UsageError as error:
                raise InvalidInput(f"the change of {change.path}: {error.message}", remedy=error.remedy) from error
            kind[match[1]].append(ClientInterval(change.at_ns, duration))
        else:
            raise InvalidInput(
                f"a timed change names {change.path!r}, which cannot change during a run",
                remedy="Use profile[P]/queue[Q]/max-depth, /min-msg-burst or /weight, port[P]/rate, client[G]/pause or "
                "client[G]/absence.",
            )
    horizon = scenario.horizon_ns
    outages = Outages(
        pauses={name: found for name, given in pauses.items() if (found := spans(given, horizon))},
        absences={name: found for name, given in absences.items() if (found := spans(given, horizon))},
    )
    return changes, outages


def changed_part(change: TimedChange) -> tuple[str, str] | None:
    """Return `port` or `group` with the name of the part that a timed change affects; None if it affects a profile."""
    if match := _PORT_CHANGE.fullmatch(change.path):
        return "port", match[1]
    if match := _OUTAGE_CHANGE.fullmatch(change.path):
        return "group", match[1]
    return None


def _known(change: TimedChange, kind: str, name: str, names: list[str]) -> None:
    if name not in names:
        raise InvalidInput(
            f"a timed change of {change.path!r}: there is no {kind} {name!r}, but {', '.join(names) or 'none'}",
            remedy=f"Name a {kind} of the scenario.",
        )


def _value(change: TimedChange, kind: Value) -> int:
    """Return the new value, of the same kind and range as at its first place in the file."""
    try:
        value = kind.parse(change.value)
    except InvalidInput as error:
        raise InvalidInput(
            f"a timed change of {change.path!r} to {change.value!r}, which is not {kind.allowed}",
            remedy=f"Give {kind.allowed}.",
        ) from error
    assert isinstance(value, int)
    return value


def _queue_change(scenario: Scenario, change: TimedChange, profile: str, queue: str, limit: str) -> QueueChange:
    _known(change, "profile", profile, [known.name for known in scenario.profiles])
    names = queue_name(scenario.model)
    place = [names.write(name) for name in ((Queue.D_1,) if scenario.model is Model.TIBCO else QUEUE_ORDER)]
    _known(change, "queue", queue, place)
    attribute = QUEUE.attribute(limit.replace("_", "-"))
    assert attribute is not None, "the pattern of paths names no other"
    if scenario.model not in attribute.models:
        raise InvalidInput(
            f"a timed change names {change.path!r}, which a {scenario.model} client does not have",
            remedy=f"Change profile[{profile}]/queue[{queue}]/max-depth, or leave the change out.",
        )
    chosen = names.parse(queue)
    assert isinstance(chosen, Queue)
    field_name = {"max-depth": "max_depth", "min-msg-burst": "burst"}.get(attribute.name, attribute.name)
    return QueueChange(change.at_ns, profile, chosen, field_name, _value(change, attribute.value))
