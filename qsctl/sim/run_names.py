"""Tables of names of a simulated run: its topics and its settings, read from its scenario."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Final

from qsctl.errors import QsctlError
from qsctl.eventlog.names import TOPICS_MAX, names_from
from qsctl.eventlog.recording.names import peers_in
from qsctl.eventlog.schema import LogLevel
from qsctl.sim.scenario.overrides.set_values import settings_of
from qsctl.sim.scenario.parts.traffic import TraceArrivals
from qsctl.sim.scenario.scenario import Model, Scenario, Workload

if TYPE_CHECKING:
    import pyarrow as pa

    from qsctl.eventlog.location import Location
    from qsctl.eventlog.run_folder import RunInfo

_UNITS: Final = {
    "_bits_per_second": "bits/s",
    "_per_second": "1/s",
    "_ns": "ns",
    "_bytes": "bytes",
    "_messages": "messages",
    "_samples": "samples",
    "_segments": "segments",
    "_work_units": "work units",
    "_percent": "percent",
}
"""The unit of a field by the end of its name, the longer ends first."""

_FILES: Final = frozenset({"path", "schedule"})
"""Fields that name a file: their last part is in the table, which has the same bytes wherever the file lies."""


def names_of_run(folder: Location, scenario: Scenario, info: RunInfo, counters: pa.Table) -> dict[str, pa.Table]:
    """Return the tables of names of a simulated run.

    Args:
        folder: the run folder.
        scenario: the simulated scenario.
        info: the run's info.
        counters: the counters of all its repetitions.

    Raises:
        Damaged: a file of a replay's producers is missing or was changed.
    """
    topics: Iterable[tuple[int, str]] = ()
    if info.model == Model.REPLAY:
        topics = itertools.islice(sorted(peers_in(folder, info).items()), TOPICS_MAX)
    elif info.log_level != LogLevel.COUNTERS:
        topics = _topics_of(scenario)
    return names_from(info, counters, topics=topics, settings=_settings_of(scenario))


def _topics_of(scenario: Scenario) -> Iterator[tuple[int, str]]:
    """Yield the number and the name of each topic below number `TOPICS_MAX`.

    The topics of an unreadable trace, and of all traffic after it, are left out: their numbers are unknown.
    """
    if scenario.queue is not None and scenario.model is Model.QUEUE:
        yield from enumerate(each.name for each in scenario.queue.classes)
    if scenario.workload is not None:
        yield from enumerate(_producers_of(scenario.workload))
    first = 0
    for traffic in scenario.traffic:
        count = traffic.topics
        if isinstance(traffic.arrivals, TraceArrivals):
            count = _topics_of_trace(traffic.arrivals)
            if not count:
                return
        for number in range(min(count, TOPICS_MAX - first)):
            yield first + number, traffic.name if count == 1 else f"{traffic.name}/{number}"
        first += count


def _producers_of(workload: Workload) -> Iterator[str]:
    """Yield the producers' names by number: the topic's name, with /1, /2, … where several producers write it."""
    for each in workload.producers:
        if each.count == 1:
            yield each.topic_name
        else:
            yield from (f"{each.topic_name}/{number + 1}" for number in range(each.count))


def _topics_of_trace(trace: TraceArrivals) -> int:
    """Return the number of topics of a trace, 0 where it cannot be read."""
    from qsctl.sim.arrivals.trace import read_trace

    with suppress(QsctlError, OSError):
        return int(read_trace(Path(trace.path), 2**31 - 1)["topic"].max(initial=0)) + 1
    return 0


def _settings_of(scenario: Scenario) -> Iterator[tuple[str, str, float | None, str | None]]:
    for path, kind, value, field in settings_of(scenario):
        text = PurePath(value).name if field in _FILES and value else kind.write(value)
        is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        # `unlimited` and `infinite` are stored as numbers that mean nothing.
        number = float(value) if is_number and any(each.isdigit() for each in text) else None
        unit = next((unit for end, unit in _UNITS.items() if field.endswith(end)), None)
        yield path, text, number, None if number is None else unit
