"""The results of `qsctl replay`: recorded and replayed figures, and the differences of an unchanged replay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from qsctl.cli.output.results import Block, Column, Plain, Result, Row, TableBlock, TextBlock, fields_of
from qsctl.cli.simulation.results.durations import short_duration
from qsctl.errors import ExitStatus

if TYPE_CHECKING:
    from qsctl.cli.simulation.results.simulate import Simulated
    from qsctl.sim.replay.difference import ReplayDifference
    from qsctl.sim.replay.then_and_now import Measured

LINES_SHOWN: Final = 20


class ReplayResult(Result):
    """Base class of the command's results: of a replay, or of a broker's clients."""

    field_help: ClassVar[Mapping[str, str]] = {
        "recording": "-o json and yaml: the run folder that was replayed",
        "folder": "the run folder of the replay; its `replay.json` has every difference",
        "status": "complete, or partial when it was stopped",
        "reproduce": "the command that makes this run again",
        "changes": "what was changed, by path",
        "is_equal": "whether every arrival, delivery, answer and dead letter is as it was, in the same order",
        "differences": "how many are not",
        "equality": "each queue: arrivals and deliveries then, now, and equal in both",
        "lines": f"the first {LINES_SHOWN} differences: sample, then, now, why",
        "notes": "what the recording lacks",
        "measures": "one entry a line of the table, as csv and jsonl print them",
        "then": "the recording's value; null: there is none",
        "now": "the replay's first replication, of the load as it was",
        "low": "lower end of the central 95 % of the other replications, whose loads are drawn from the recording",
        "high": "upper end",
        "unit": "messages, work units or ns",
        "queues": "with --model solace or tibco: what `qsctl simulate` prints of a run instead, see its --format-help",
    }


@dataclass(frozen=True)
class BrokerReplay(ReplayResult):
    """A broker's clients under a recorded load, shown as a simulation."""

    simulated: Simulated

    @property
    def exit_status(self) -> ExitStatus:
        """Return the exit status of the simulation."""
        return self.simulated.exit_status

    def document(self) -> Plain:
        """Return the simulation's document."""
        return self.simulated.document()

    def rows(self) -> Sequence[Row]:
        """Return the simulation's rows."""
        return self.simulated.rows()

    def blocks(self) -> Sequence[Block]:
        """Return the simulation's tables and texts."""
        return self.simulated.blocks()


RESAMPLED = (
    "Now: the load as it was. Resampled: 95 % of the other replications, each with a load drawn from the recording in "
    "blocks; that the load differs more than one recording shows, from day to day, is not in it."
)


@dataclass(frozen=True)
class Replayed(ReplayResult):
    """A replay: its figures beside those of the recording, and their differences."""

    recording: str
    folder: str
    status: str
    seed: int
    replications: int
    reproduce: str
    difference: ReplayDifference
    measured: tuple[Measured, ...]

    @property
    def exit_status(self) -> ExitStatus:
        """Return INTERRUPTED for a stopped replay, NO for an unchanged one that is not equal, else DONE."""
        if self.status != "complete":
            return ExitStatus.INTERRUPTED
        return ExitStatus.DONE if self.difference.is_equal or self.difference.changes else ExitStatus.NO

    def document(self) -> Plain:
        """Return the replay under stable names."""
        return {
            **fields_of(self, "recording", "folder", "status", "seed", "replications"),
            "changes": dict(self.difference.changes),
            "is_equal": self.difference.is_equal,
            "differences": self.difference.difference_count,
            "equality": [
                fields_of(
                    each,
                    "queue", "arrivals_then", "arrivals_now", "arrivals_equal",
                    "deliveries_then", "deliveries_now", "deliveries_equal",
                )
                for each in self.difference.queues
            ],
            "lines": [
                fields_of(line, "queue", "sample", "at_ns", "then", "now", "why")
                for line in self.difference.lines[:LINES_SHOWN]
            ],
            "notes": list(self.difference.notes),
            "measures": list(self.rows()),
            "reproduce": self.reproduce,
        }  # fmt: skip

    def rows(self) -> Sequence[Row]:
        """Return one row per queue and measure."""
        return [fields_of(each, "queue", "measure", "unit", "then", "now", "low", "high") for each in self.measured]

    def blocks(self) -> Sequence[Block]:
        """Return the verdict, the table, the differences, and the run folder."""
        columns = [
            Column("queue", "Queue"),
            Column("measure", "Measure"),
            Column("then", "Then", "right"),
            Column("now", "Now", "right"),
            *([Column("resampled", "Resampled", "right")] if self.replications > 1 else []),
        ]
        rows: list[Row] = [
            {
                "queue": each.queue,
                "measure": each.measure,
                "then": measured_text(each.then, each.unit),
                "now": measured_text(each.now, each.unit),
                "resampled": f"{measured_text(each.low, each.unit)} … {measured_text(each.high, each.unit)}",
            }
            for each in self.measured
        ]
        difference = self.difference
        good = difference.is_equal or bool(difference.changes)
        blocks: list[Block] = [
            TextBlock(equality_sentence(difference), "good" if good else "bad"),
            TableBlock(columns, rows, title=f"{self.recording}: then, and now in the replay"),
        ]
        if difference.lines and not difference.changes:
            blocks += [
                TextBlock(f"{line.queue} {line.sample}: then {line.then}; now {line.now}. Why: {line.why}.", "bad")
                for line in difference.lines[:LINES_SHOWN]
            ]
            if difference.difference_count > LINES_SHOWN:
                blocks.append(
                    TextBlock(f"… and {difference.difference_count - LINES_SHOWN} more: see replay.json.", "faint")
                )
        if self.replications > 1:
            blocks.append(TextBlock(RESAMPLED, "faint"))
        blocks += [TextBlock(note, "faint") for note in difference.notes]
        blocks.append(TextBlock(f"Run folder: {self.folder}", "faint"))
        return blocks


def equality_sentence(difference: ReplayDifference) -> str:
    """Return a sentence on whether a replay equals its recording."""
    arrivals = sum(each.arrivals_then for each in difference.queues)
    deliveries = sum(each.deliveries_then for each in difference.queues)
    if difference.changes:
        same = sum(each.deliveries_equal for each in difference.queues)
        changed = ", ".join(f"{path}={value}" for path, value in difference.changes.items())
        return f"With {changed}: {same:,} of {deliveries:,} deliveries are as they were, the others are modelled."
    if difference.is_equal:
        return (
            f"The replay is equal to the recording: {arrivals:,} arrivals and {deliveries:,} deliveries, their order, "
            "attempts, answers and dead letters."
        )
    what = "difference" if difference.difference_count == 1 else "differences"
    return (
        f"The replay differs from the recording: {difference.difference_count:,} {what} in {arrivals:,} arrivals and "
        f"{deliveries:,} deliveries."
    )


def measured_text(value: float | None, unit: str) -> str:
    """Return a value of `Measured` as text, times with their unit; a dash for None."""
    if value is None:
        return "–"
    return short_duration(value) if unit == "ns" else f"{value:,.6g}"
