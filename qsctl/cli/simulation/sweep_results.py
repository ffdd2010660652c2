"""What `qsctl sweep` shows: points and queues with the measures that decide, each with its interval."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from qsctl.cli.output.results import Block, Column, Plain, Result, Row, TableBlock, TextBlock, fields_of
from qsctl.cli.simulation.durations import short_duration
from qsctl.cli.simulation.summarize_results import MOST_LINES

if TYPE_CHECKING:
    from qsctl.eventlog.location import Location
    from qsctl.summary.points import PointMeasure
    from qsctl.summary.statistics import Interval

SHOWN = ("discards", "loss_ratio", "throughput", "latency_mean", "latency_p99")
HEADINGS = {
    "discards": "Discards",
    "loss_ratio": "Loss %",
    "throughput": "Msgs/s",
    "latency_mean": "Wait mean",
    "latency_p99": "Wait p99",
}


@dataclass(frozen=True)
class SweepTable(Result):
    """The measures of every point and queue."""

    folder: Location
    scenario: str
    replications: int
    points: int
    reused_replications: int
    confidence: float
    measures: tuple[PointMeasure, ...]

    field_help: ClassVar[Mapping[str, str]] = {
        "point": "the point's values, path=value",
        "queue": "the queue, over all clients",
        "measure": "discards, loss_ratio, throughput, latency_p99, …: see --help",
        "unit": "the measure's unit",
        "mean": "mean over the replications",
        "half_width": "mean ± half_width is the confidence interval; null with one replication",
        "method": "how the interval was made",
        "relative_error": "how much too high a percentile may be, which comes from a histogram, as a share of it",
        "minimum": "smallest of the replications",
        "maximum": "largest of the replications",
        "replications": "how many replications had the measure",
    }

    def document(self) -> Plain:
        """Everything, with stable names."""
        return {
            "folder": str(self.folder),
            **fields_of(self, "scenario", "replications", "points", "reused_replications", "confidence"),
            "measures": list(self.rows()),
        }

    def rows(self) -> Sequence[Row]:
        """One row a point, queue and measure."""
        from qsctl.summary.points import UNITS

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
        """A line a point and queue."""
        lines: dict[tuple[str, str], dict[str, Plain]] = {}
        for each in self.measures:
            line = lines.setdefault((str(each.point), each.queue), {"queue": each.queue, **dict(each.point.values)})
            if each.measure in SHOWN:
                line[each.measure] = interval_text(each.measure, each.interval)
        paths = list(dict.fromkeys(path for each in self.measures for path, _ in each.point.values))
        columns = [
            *(Column(path, path, "right") for path in paths),
            Column("queue", "Queue"),
            *(Column(name, HEADINGS[name], "right") for name in SHOWN),
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
        if any(each.measure == "latency_p99" for each in self.measures):
            blocks.append(TextBlock("Percentiles come from histograms and are at most 0.8 % too high.", "faint"))
        if self.reused_replications:
            blocks.append(TextBlock(f"{self.reused_replications} replications were there already.", "faint"))
        blocks.append(TextBlock(f"Results: {self.folder}"))
        return blocks


def interval_text(measure: str, interval: Interval) -> str:
    """A mean with its half width, in the measure's unit."""
    if measure.startswith("latency_"):
        text, half = short_duration(interval.mean), short_duration(interval.half_width)
    elif measure == "loss_ratio":
        text, half = f"{100 * interval.mean:.4g}", f"{100 * interval.half_width:.2g}"
    else:
        text, half = f"{interval.mean:.6g}", f"{interval.half_width:.3g}"
    return f"{text} ± {half}" if math.isfinite(interval.half_width) else text
