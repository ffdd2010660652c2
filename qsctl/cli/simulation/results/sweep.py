"""The results of `qsctl sweep`: the most important measures by point and queue, each with its interval."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from qsctl.cli.output.results import Block, Column, Plain, Result, Row, TableBlock, TextBlock, fields_of
from qsctl.cli.simulation.results.durations import short_duration
from qsctl.cli.simulation.results.summarize import MOST_LINES
from qsctl.errors import ExitStatus
from qsctl.report.selection_words import is_separated, selection_text

if TYPE_CHECKING:
    from qsctl.eventlog.location import Location
    from qsctl.summary.inference.statistics import Interval
    from qsctl.summary.sweeps.points import PointMeasure
    from qsctl.summary.sweeps.selection import Selection

SHOWN = ("discards", "loss_ratio", "throughput", "time_in_queue_mean", "time_in_queue_p99")
OF_DONE = ("time_to_done_mean", "time_to_done_p99", "unfinished")
"""Measures that are shown, too, if messages are acknowledged."""
HEADINGS = {
    "discards": "Discards",
    "loss_ratio": "Loss %",
    "throughput": "Msgs/s",
    "time_in_queue_mean": "In queue, mean",
    "time_in_queue_p99": "In queue, p99",
    "time_to_done_mean": "To done, mean",
    "time_to_done_p99": "To done, p99",
    "unfinished": "Unfinished",
    "time_to_master": "First master at",
    "refused_before_master": "Refused before (Writes)",
    "time_without_master": "Longest without master",
    "elections": "Elections",
    "dead": "Dead",
    "duplicates": "Duplicates",
    "utilization": "Working %",
    "backlog_mean": "Backlog, mean",
}
OF_BROKERS = ("dead", "duplicates", "utilization", "backlog_mean")
"""Measures that are shown, too, of brokers' queues."""
OF_CLUSTERS = ("time_to_master", "refused_before_master", "time_without_master", "elections")
"""Measures of clusters, shown in place of those that only brokers' queues have."""


@dataclass(frozen=True)
class BrokenRun:
    """A repetition of a cluster that broke a rule, and the command that reproduces it."""

    point: str
    seed: int
    command: str


@dataclass(frozen=True)
class SweepTable(Result):
    """The measures at every point, by queue."""

    folder: Location
    scenario: str
    replications: int
    points: int
    reused_replications: int
    confidence: float
    measures: tuple[PointMeasure, ...]
    broken: tuple[BrokenRun, ...] = ()
    """Repetitions of a cluster that broke a rule."""
    load: str | None = None
    """The loads of the repetitions, if they are those of a recording."""
    precision: str | None = None
    """The precision that was reached, if one was requested."""
    selections: tuple[Selection, ...] = ()
    """The points selected by `--best` and `--front`."""

    field_help: ClassVar[Mapping[str, str]] = {
        "point": "the point's values, path=value",
        "queue": "the queue, over all clients",
        "measure": "discards, loss_ratio, throughput, time_in_queue_p99, time_to_done_p99, …: see --help",
        "unit": "the measure's unit",
        "mean": "mean over the replications",
        "half_width": "mean ± half_width is the confidence interval; null with one replication",
        "method": "how the interval was made",
        "relative_error": "how much too high a percentile may be, which comes from a histogram, as a share of it",
        "minimum": "smallest of the replications",
        "maximum": "largest of the replications",
        "replications": "how many replications had the measure",
        "precision": "-o json and yaml: what --precision reached, in words; else null",
        "selections": "-o json and yaml, of --best and --front: criteria, confidence, replications, worse_at_most (of "
        "the best: how much worse than the best point the first one is at most; null: not shown), left_out, and points "
        "with their means, the best first, and beaten_by (null: may be the best, or on the front)",
        "load": "-o json and yaml, of a recording: which loads the replications had; else null",
        "broken": "-o json and yaml, of model world: repetitions that broke a rule, each with the command to see it",
    }

    @property
    def exit_status(self) -> ExitStatus:
        """Return NO if a repetition of a cluster broke a rule, else DONE."""
        return ExitStatus.NO if self.broken else ExitStatus.DONE

    def document(self) -> Plain:
        """Return the sweep under stable names."""
        return {
            "folder": str(self.folder),
            **fields_of(self, "scenario", "replications", "points", "reused_replications", "confidence"),
            "measures": list(self.rows()),
            "broken": [fields_of(each) for each in self.broken],
            "load": self.load,
            "precision": self.precision,
            "selections": [selection_document(each) for each in self.selections],
        }

    def rows(self) -> Sequence[Row]:
        """Return one row per point, queue and measure."""
        from qsctl.summary.sweeps.points import UNITS

        return [
            {
                "point": str(each.point),
                **fields_of(each, "queue", "measure"),
                "unit": UNITS.get(each.measure, "messages"),
                "mean": each.interval.mean,
                "half_width": each.interval.half_width if math.isfinite(each.interval.half_width) else None,
                "method": each.interval.method,
                "relative_error": each.relative_error,
                "minimum": each.smallest,
                "maximum": each.largest,
                "replications": each.interval.count,
            }
            for each in self.measures
        ]

    def blocks(self) -> Sequence[Block]:
        """Return a table with one line per point and queue."""
        lines: dict[tuple[str, str], dict[str, Plain]] = {}
        for each in self.measures:
            line = lines.setdefault((str(each.point), each.queue), {"queue": each.queue, **dict(each.point.values)})
            if each.measure in HEADINGS:
                line[each.measure] = interval_text(each.measure, each.interval)
        paths = list(dict.fromkeys(path for each in self.measures for path, _ in each.point.values))
        columns = [
            *(Column(path, path, "right") for path in paths),
            Column("queue", "Queue"),
            *(Column(name, HEADINGS[name], "right") for name in self._shown()),
        ]
        shown = list(lines.values())
        blocks: list[Block] = [
            TableBlock(
                columns,
                shown[:MOST_LINES],
                title=f"{self.scenario}: {self.points} points × {self.replications} replications, "
                f"{100 * self.confidence:g} % intervals (Student's t over the replications of a point)",
            )
        ]
        if len(shown) > MOST_LINES:
            blocks.append(TextBlock(f"… and {len(shown) - MOST_LINES} more lines: use -o csv.", "faint"))
        if any(each.measure == "time_in_queue_p99" for each in self.measures):
            blocks.append(TextBlock("Percentiles come from histograms and are at most 0.8 % too high.", "faint"))
        blocks += [
            TextBlock(selection_text(each), "good" if is_separated(each) else "plain") for each in self.selections
        ]
        if self.precision is not None:
            blocks.append(TextBlock(self.precision))
        if self.load is not None:
            blocks.append(TextBlock(self.load, "faint"))
        if self.broken:
            blocks.append(TextBlock(self._broken_text(), "bad"))
        if self.reused_replications:
            blocks.append(TextBlock(f"{self.reused_replications} replications were there already.", "faint"))
        blocks.append(TextBlock(f"Results: {self.folder}"))
        return blocks

    def _shown(self) -> Sequence[str]:
        done = OF_DONE if any(each.measure in OF_DONE for each in self.measures) else ()
        is_cluster = any(each.measure in OF_CLUSTERS for each in self.measures)
        if is_cluster:
            return (*OF_CLUSTERS, "time_in_queue_mean", "time_in_queue_p99", *done)
        if any(each.measure == "duplicates" for each in self.measures):
            return (*SHOWN, *done, *OF_BROKERS)
        return (*SHOWN, *done)

    def _broken_text(self) -> str:
        lines = [
            f"{len(self.broken)} of {self.points * self.replications} repetitions broke a rule. See one again with:"
        ]
        lines += [each.command for each in self.broken[:_MOST_BROKEN]]
        if len(self.broken) > _MOST_BROKEN:
            lines.append(f"… and {len(self.broken) - _MOST_BROKEN} more: -o json has all.")
        return "\n".join(lines)


_MOST_BROKEN = 5


def selection_document(selection: Selection) -> Plain:
    """Return the document of the best points or of a front."""
    return {
        "criteria": [str(each) for each in selection.criteria],
        **fields_of(selection, "confidence", "replications", "worse_at_most"),
        "left_out": [str(each) for each in selection.left_out],
        "points": [
            {
                "point": str(each.point),
                "means": list(each.means),
                "beaten_by": None if each.beaten_by is None else str(each.beaten_by),
            }
            for each in selection.ranked
        ],
    }


def interval_text(measure: str, interval: Interval) -> str:
    """Return a mean with its half width, in the measure's unit."""
    if measure.startswith("time_"):
        text, half = short_duration(interval.mean), short_duration(interval.half_width)
    elif measure == "loss_ratio":
        text, half = f"{100 * interval.mean:.4g}", f"{100 * interval.half_width:.2g}"
    else:
        text, half = f"{interval.mean:.6g}", f"{interval.half_width:.3g}"
    return f"{text} ± {half}" if math.isfinite(interval.half_width) else text
