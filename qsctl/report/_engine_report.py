"""The parts of a run's report specific to an integration engine: its routes, and the messages that wait over time.

Decides the number of messages that wait at a thread: those in its queues at the end of each window of time; a
post-translation queue belongs to its destination thread. Threads at which on average no message waits are counted, and
not shown.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from qsctl.declared.problems import InvalidFile
from qsctl.eventlog.checked_files import checked_text
from qsctl.eventlog.location import Location
from qsctl.eventlog.run_folder import SCENARIO_FILE, RunInfo
from qsctl.instant import HOUR_NS, MINUTE_NS, SECOND_NS, Nanoseconds
from qsctl.report._charts import Picture, heat_chart, picture
from qsctl.report._words import count_text, duration_text
from qsctl.report.page import PageTable
from qsctl.report.route_graph import route_picture
from qsctl.sim.scenario.scenario import Scenario
from qsctl.sim.scenario.xml import read_scenario
from qsctl.sim.site.flows import site_flows
from qsctl.summary.job import summarize_run
from qsctl.summary.spark.session import SparkOptions

_THREADS_DRAWN: Final = 20
_THREADS_LISTED: Final = 50
_BINS_MAX: Final = 24
_WINDOWS_A_BIN: Final = 10
_LEAST: Final = 0.005
"""Mean number of waiting messages below which a thread is not shown."""
_ROW_PIXELS: Final = 22
_MOST_ROWS: Final = 2_000_000


@dataclass(frozen=True, slots=True)
class WaitingThread:
    """The messages that wait at a thread: the mean number in each bin of time, and the largest at the end of a
    window.
    """

    thread: str
    by_bin: tuple[float, ...]
    most: float

    @property
    def mean(self) -> float:
        """Mean number of waiting messages over the whole run."""
        return sum(self.by_bin) / len(self.by_bin)


def engine_parts(
    folder: Location, info: RunInfo, options: SparkOptions | None
) -> tuple[list[Picture], list[PageTable], list[str]]:
    """Return the charts, tables and sentences of a run of an integration engine."""
    bin_ns = bin_of(info.horizon_ns)
    waiting: list[WaitingThread] = []
    if info.log_level != "counters":
        window_ns = max(SECOND_NS // 10, bin_ns // _WINDOWS_A_BIN)
        windows = summarize_run(
            folder, by=("client",), measures={"windows"}, window_ns=window_ns, options=options, most_rows=_MOST_ROWS
        ).tables.get("windows", ())
        waiting = waiting_threads(windows, info.horizon_ns, window_ns, bin_ns)
    pictures: list[Picture] = []
    scenario = _scenario(folder, info)
    if scenario is not None and scenario.engine is not None:
        depths = {each.thread: each.mean for each in waiting} if waiting else None
        pictures.append(route_picture(site_flows(scenario.engine), depths))
    shown = [each for each in waiting if each.mean >= _LEAST]
    if not shown:
        return pictures, [], []
    pictures.append(_picture(shown[:_THREADS_DRAWN], bin_ns))
    return pictures, [_table(shown, len(waiting), bin_ns)], [_sentence(shown, bin_ns)]


def bin_of(horizon_ns: Nanoseconds) -> Nanoseconds:
    """Return the length of a run's bins: an hour where that fits, else a length that yields at most `_BINS_MAX`
    bins.
    """
    if 2 * HOUR_NS <= horizon_ns <= _BINS_MAX * HOUR_NS:
        return HOUR_NS
    for length in (SECOND_NS, 5 * SECOND_NS, 15 * SECOND_NS, MINUTE_NS, 5 * MINUTE_NS, 15 * MINUTE_NS, HOUR_NS):
        if horizon_ns <= _BINS_MAX * length:
            return length
    hours = -(-horizon_ns // (_BINS_MAX * HOUR_NS))
    return hours * HOUR_NS


def waiting_threads(
    windows: Sequence[Mapping[str, int | str]], horizon_ns: Nanoseconds, window_ns: Nanoseconds, bin_ns: Nanoseconds
) -> list[WaitingThread]:
    """Return the waiting messages of each thread, as means over the replications, by decreasing mean.

    Args:
        windows: rows of the summary's table `windows`, by client and replication.
        horizon_ns: length of the run.
        window_ns: length of a window.
        bin_ns: length of a bin.
    """
    count = max(1, -(-horizon_ns // window_ns))
    bins = max(1, -(-horizon_ns // bin_ns))
    replications = len({row["replication"] for row in windows}) or 1
    changes: dict[str, list[float]] = {}
    for row in windows:
        at = min(count - 1, int(row["window_start_ns"]) // window_ns)
        change = (int(row["entered_messages"]) - int(row["left_messages"])) / replications
        changes.setdefault(str(row["client"]), [0.0] * count)[at] += change
    found = []
    for thread, steps in changes.items():
        sums, numbers = [0.0] * bins, [0] * bins
        depth = most = 0.0
        for at, change in enumerate(steps):
            depth += change
            most = max(most, depth)
            place = min(bins - 1, at * window_ns // bin_ns)
            sums[place] += depth
            numbers[place] += 1
        means = tuple(max(0.0, total / max(1, number)) for total, number in zip(sums, numbers, strict=True))
        found.append(WaitingThread(thread, means, most))
    return sorted(found, key=lambda each: (-each.mean, each.thread))


def _scenario(folder: Location, info: RunInfo) -> Scenario | None:
    """Return the scenario of a local or remote run folder; None if this version cannot read it."""
    with tempfile.TemporaryDirectory() as copy:
        path = Path(copy) / SCENARIO_FILE
        path.write_text(checked_text(folder, info, SCENARIO_FILE), encoding="utf-8")
        try:
            return read_scenario(path)
        except InvalidFile:
            return None


def _bin_text(at: int, bin_ns: Nanoseconds) -> str:
    begins_ns = at * bin_ns
    if bin_ns % MINUTE_NS == 0:
        minutes = begins_ns // MINUTE_NS
        return f"{minutes // 60:02d}:{minutes % 60:02d}"
    return duration_text(begins_ns) if at else "0 s"


def _short(value: float) -> str:
    """Return a number of messages as the label of a cell of the heat map; empty for a number near 0."""
    return "" if value < _LEAST else f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def _picture(shown: Sequence[WaitingThread], bin_ns: Nanoseconds) -> Picture:
    cells = [
        {
            "x": _bin_text(at, bin_ns),
            "y": each.thread,
            "value": value,
            "label": _short(value),
        }
        for each in shown
        for at, value in enumerate(each.by_bin)
    ]
    unit = "hour" if bin_ns == HOUR_NS else duration_text(bin_ns)
    return picture(
        f"Where messages wait, {unit} by {unit}",
        f"Messages that wait at a thread, on average in each {unit} from the beginning of the run; the {len(shown)} "
        "threads with most.",
        partial(heat_chart, cells, "from", "thread", "messages"),
        height=60 + _ROW_PIXELS * len(shown),
    )


def _table(shown: Sequence[WaitingThread], count: int, bin_ns: Nanoseconds) -> PageTable:
    rows = []
    for each in shown[:_THREADS_LISTED]:
        worst = max(range(len(each.by_bin)), key=lambda at: each.by_bin[at])
        rows.append(
            [
                each.thread, count_text(each.mean), count_text(each.most), _bin_text(worst, bin_ns),
                count_text(each.by_bin[worst]), count_text(each.by_bin[-1]),
            ]
        )  # fmt: skip
    left = count - min(len(shown), _THREADS_LISTED)
    note = f"Messages in the queues of a thread, on average; {left} threads at which fewer wait are not listed."
    headings = ["Thread", "Waiting, mean", "Most", "Worst from", "Waiting then", "Waiting at the end"]
    return PageTable("Where messages wait, by thread", headings, rows, frozenset({1, 2, 4, 5}), note)


def _sentence(shown: Sequence[WaitingThread], bin_ns: Nanoseconds) -> str:
    first = shown[0]
    worst = max(range(len(first.by_bin)), key=lambda at: first.by_bin[at])
    part = first.mean / sum(each.mean for each in shown)
    then = f"{count_text(first.by_bin[worst])} in the worst {duration_text(bin_ns)}, from {_bin_text(worst, bin_ns)}"
    mean = f"{count_text(first.mean)} on average, {part:.0%} of all that wait"
    return f"Messages wait most at {first.thread}: {mean}, and {then}."
