"""Confidence intervals of the times of a run, as a table and as rows, with warnings about its start-up."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from qsctl.cli.output.results import Block, Column, Row, TableBlock, TextBlock, fields_of
from qsctl.cli.simulation.results.durations import short_duration

if TYPE_CHECKING:
    from qsctl.summary.inference.run_intervals import RunInterval


def interval_rows(intervals: Sequence[RunInterval]) -> list[Row]:
    """Return one row per queue and measure, in nanoseconds."""
    return [
        {
            **fields_of(each, "queue", "measure"),
            "mean": each.interval.mean,
            "half_width": each.interval.half_width if math.isfinite(each.interval.half_width) else None,
            "method": each.interval.method,
            **fields_of(each, "messages", "left_out_messages", "warning"),
        }
        for each in intervals
    ]


def heading_of(measure: str) -> str:
    """Return the heading of a measure of time, such as "In queue, p99"."""
    time, _, figure = measure.rpartition("_")
    return f"{'To done' if time == 'time_to_done' else 'In queue'}, {figure}"


def interval_blocks(intervals: Sequence[RunInterval], confidence: float | None) -> list[Block]:
    """Return a table of the intervals with one line per queue, then warnings about their validity."""
    if confidence is None:
        return []
    if not intervals:
        return [TextBlock("No intervals: one replication that did not log its messages has none.", "faint")]
    measures = list(dict.fromkeys(each.measure for each in intervals))
    rows: dict[str, Row] = {}
    for each in intervals:
        text = short_duration(each.interval.mean)
        if math.isfinite(each.interval.half_width):
            text += f" ± {short_duration(each.interval.half_width)}"
        rows.setdefault(each.queue, {"queue": each.queue})[each.measure] = text  # type: ignore[index]
    columns = [Column("queue", "Queue"), *(Column(name, heading_of(name), "right") for name in measures)]
    title = f"{100 * confidence:g} % intervals ({intervals[0].interval.method})"
    warnings = dict.fromkeys(f"{each.queue}: {each.warning}." for each in intervals if each.warning)
    blocks: list[Block] = [TableBlock(columns, list(rows.values()), title=title)]
    if warnings:
        advice = "Simulate longer, or with a warm-up, before the figures are taken for what lasts."
        blocks.append(TextBlock("\n".join([*warnings, advice]), "bad"))
    return blocks
