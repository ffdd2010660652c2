"""The additional parts of a replay's page: recording and replay side by side, and unexpected differences."""

from __future__ import annotations

from typing import Final

from qsctl.errors import QsctlError
from qsctl.eventlog.location import Location, location
from qsctl.eventlog.run_folder import RunInfo
from qsctl.report._words import count_text, duration_text
from qsctl.report.page import PageTable
from qsctl.sim.replay.replay import difference_in
from qsctl.sim.replay.then_and_now import Measured, then_and_now

LINES_SHOWN: Final = 100


def replay_sentences(folder: Location, info: RunInfo) -> list[str]:
    """Return the sentences that compare a replay with its recording; empty if the run is not a replay."""
    difference = difference_in(folder, info)
    if difference is None:
        return []
    deliveries = sum(each.deliveries_then for each in difference.queues)
    same = sum(each.deliveries_equal for each in difference.queues)
    what = f"A replay of {difference.recording}"
    if difference.changes:
        changed = ", ".join(f"{path} = {value}" for path, value in difference.changes.items())
        first = f"{what} with {changed}: {count_text(same)} of {count_text(deliveries)} deliveries are as they were."
    elif difference.is_equal:
        first = f"{what} without a change: all {count_text(deliveries)} deliveries are equal."
    else:
        first = f"{what} without a change: {count_text(difference.difference_count)} differences."
    return [first, *difference.notes]


def replay_tables(folder: Location, info: RunInfo) -> list[PageTable]:
    """Return the tables of the comparison and of the differences; empty if the run is not a replay."""
    difference = difference_in(folder, info)
    if difference is None:
        return []
    tables = []
    try:
        measured = then_and_now(location(difference.recording), folder)
    except QsctlError:
        measured = []  # the recording was moved; the replay's own figures are still available
    if measured:
        note = "Then is the recording, now the replay, the mean over its replications."
        rows = [
            [each.queue, each.measure, *(_text(value, each) for value in (each.then, each.now))] for each in measured
        ]
        tables.append(PageTable("Then and now", ["Queue", "Measure", "Then", "Now"], rows, frozenset({2, 3}), note))
    if difference.lines and not difference.changes:
        rows = [[line.queue, line.sample, line.then, line.now, line.why] for line in difference.lines[:LINES_SHOWN]]
        note = f"{len(rows)} of {count_text(difference.difference_count)}; replay.json in the run folder has more."
        tables.append(PageTable("Differences", ["Queue", "Sample", "Then", "Now", "Why"], rows, frozenset(), note))
    return tables


def _text(value: float | None, measured: Measured) -> str:
    if value is None:
        return "–"
    return duration_text(round(value)) if measured.unit == "ns" else count_text(round(value))
