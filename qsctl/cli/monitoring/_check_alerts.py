"""Evaluation of a file's alerts on a database or on listings: which fire, and which cannot be evaluated.

Decides when an alert fires. Its comparison holds now for enough of its sources; with a duration it must also have held
at every captured instant since then, and an instant that early must have been captured.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from qsctl.cli.engine.looks import LookOptions, WatchedEngine
from qsctl.cli.monitoring._alert_file import Alert, parse_words, read_alerts
from qsctl.cli.monitoring._check_engine import ENGINE_MEASURES, EngineFilter, refuse_older
from qsctl.cli.monitoring._nagios import CheckStatus, number
from qsctl.dumps.choice import parse_states
from qsctl.dumps.figures import history_of
from qsctl.errors import UsageError
from qsctl.instant import SECOND_NS


class FiredAlerts(NamedTuple):
    """The results of a file's alerts."""

    status: CheckStatus
    text: str
    values: tuple[tuple[str, float], ...]
    """Name and figure of each alert: the highest of its sources."""


def fired(
    sources: Sequence[Path], file: Path, words: Sequence[str], max_age: str | None, options: LookOptions
) -> FiredAlerts:
    """Evaluate a file's alerts: CRITICAL if one fires, else WARNING if some cannot be evaluated, else OK.

    Raises:
        QsctlError: the file or all of the sources cannot be read.
    """
    measures = list(ENGINE_MEASURES)
    read = read_alerts(file, parse_words(words, measures), measures)
    watched = options.look(sources)
    if max_age is not None:
        refuse_older(watched, max_age)
    left_out = list(read.left_out)
    firing: list[str] = []
    values: list[tuple[str, float]] = []
    for alert in read.alerts:
        try:
            found = _figures(alert, watched)
            since = _holds_since(alert, watched)
        except UsageError as error:
            left_out.append(f"line {alert.line}, {alert.name}: {error.message}")
            continue
        values.append((alert.name, max(found.values(), default=0.0)))
        if since:
            figures = ", ".join(f"{source} is {number(value)}" for source, value in found.items() if alert.holds(value))
            firing.append(f"{alert.name}: {alert.condition}: {figures}")
    some = f"{len(left_out)} of {len(read.alerts) + len(read.left_out)} not evaluated: {'; '.join(left_out)}"
    parts = [*firing, *([some] if left_out else [])]
    damage = f"damaged: {watched.damage[0]}; " if watched.damage else ""
    if firing or damage:
        return FiredAlerts(CheckStatus.CRITICAL, damage + "; ".join(parts), tuple(values))
    status = CheckStatus.WARNING if left_out else CheckStatus.OK
    return FiredAlerts(status, "; ".join([f"none of {len(values)} alerts fires", *parts]), tuple(values))


def _holds_since(alert: Alert, watched: WatchedEngine) -> bool:
    """Return whether an alert fires: it holds now, and has held for its duration."""
    looks = watched.history.looks
    now_ns = looks[-1].taken.utc_ns
    for end in range(len(looks), 0, -1):
        at = watched if end == len(looks) else watched._replace(history=history_of(looks[:end]))
        try:
            found = _figures(alert, at)
        except UsageError:
            if end == len(looks):
                raise
            return False  # no rate yet at the first instant
        if sum(map(alert.holds, found.values())) < alert.least_sources:
            return False
        if now_ns - looks[end - 1].taken.utc_ns >= alert.for_s * SECOND_NS:
            return True
    return False


def _figures(alert: Alert, watched: WatchedEngine) -> dict[str, float]:
    """Return the figure of each source: the sum over its queues, or the age of its last message."""
    states = () if alert.value.states is None else parse_states(alert.value.states)
    measure = ENGINE_MEASURES[alert.value.measure]
    if not alert.sources:
        found: dict[str, float] = {}
        for each in measure(watched, EngineFilter("*", states)):
            thread = each.label.partition(" ")[0] if alert.value.measure in _SUMS else each.label
            found[thread] = found.get(thread, 0.0) + each.value if alert.value.measure in _SUMS else each.value
        return found
    figures = {}
    for source in alert.sources:
        values = [each.value for each in measure(watched, EngineFilter(source, states))]
        figures[source] = float(sum(values) if alert.value.measure in _SUMS else max(values, default=0.0))
    return figures


_SUMS = frozenset({"queue_messages", "growth_per_min", "arrived_per_min", "left_per_min"})
"""Measures that are summed over the queues of a thread."""
