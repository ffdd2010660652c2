"""`qsctl compare`: compare two runs, sweeps or client profiles, and show which is better by which measure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Final

import typer

from qsctl.cli.command import Commands
from qsctl.cli.options import ScenarioChanges
from qsctl.cli.output.declared import DeclaredRows, Heading, read, table_of
from qsctl.cli.output.results import Block, Column, Plain, Row, TableBlock, TextBlock, fields_of
from qsctl.cli.panels import SIMULATION_PANEL
from qsctl.cli.simulation.options.profile_overlay import ClientProfileOption, compared_runs
from qsctl.cli.simulation.progress.long_run import YesOption
from qsctl.cli.simulation.results.durations import short_duration
from qsctl.cli.simulation.results.summarize import MOST_LINES
from qsctl.cli.simulation.results.sweep import SHOWN
from qsctl.errors import UsageError

if TYPE_CHECKING:
    from qsctl.eventlog.location import Location
    from qsctl.summary.comparison.compare import Comparison, Difference

COMMANDS: Final = Commands(panel=SIMULATION_PANEL)


@dataclass(frozen=True)
class ComparedMeasure:
    """A row: a measure of a queue at a point of a sweep, for both sides."""

    point: Annotated[str, "the point of a sweep; of two runs, the scenario as it is", Heading("Point")]
    queue: Annotated[str, "the queue, over all clients", Heading("Queue")]
    measure: Annotated[str, "what is compared", Heading("Measure")]
    unit: Annotated[str, "the measure's unit"]
    mean_a: Annotated[float, "mean of A over its replications"]
    mean_b: Annotated[float, "mean of B over its replications"]
    difference: Annotated[float, "mean of B − A"]
    half_width: Annotated[
        float | None, "difference ± half_width is its confidence interval, alone; null with one replication"
    ]
    replications: Annotated[int, "how many replications of the smaller side, or pairs of them, it is from"]
    method: Annotated[str, "how the interval and the p-value were made"]
    adjusted_p_value: Annotated[
        float | None, "chance of such a difference between equals, adjusted for all shown (Holm)"
    ]
    relative_error: Annotated[
        float, "how much too high a percentile may be, which comes from a histogram, as a share of it"
    ]
    paired: Annotated[bool, "whether replications were paired by common random numbers"]
    a: Annotated[str, Heading("A", "right")]
    b: Annotated[str, Heading("B", "right")]
    b_less_a: Annotated[str, Heading("B − A", "right", cell="difference")]
    better: Annotated[
        str, "A, B, same or undecided: A or B where adjusted_p_value is at most 1 − confidence; or not compared: "
        "the measure follows a load or a time that differs", Heading("Better"),
    ]  # fmt: skip


@dataclass(frozen=True)
class Compared(DeclaredRows, rows=ComparedMeasure):
    """The comparison of two sides, and its verdict in a sentence."""

    sentence: str
    comparison: Comparison

    document_help: ClassVar[Mapping[str, str]] = {
        "settings": "-o json and yaml: the settings that differ, by path, with both values; null where unknown",
        "load_differs": "-o json and yaml: whether what came, or for how long, was different",
    }

    def document(self) -> Plain:
        """Return the whole comparison under stable names."""
        return {
            "sentence": self.sentence,
            "a": str(self.comparison.a),
            "b": str(self.comparison.b),
            "settings": None
            if self.comparison.settings is None
            else [fields_of(each, "path", "a", "b") for each in self.comparison.settings],
            **fields_of(self.comparison, "load_differs", "confidence", "only_in_a", "only_in_b"),
            "differences": list(self.rows()),
        }

    def items(self) -> Sequence[ComparedMeasure]:
        """Return a row for each point, queue and measure."""
        return [_line(each) for each in self.comparison.differences]

    def blocks(self) -> Sequence[Block]:
        """Return the verdict, then a table of the most important measures."""
        shown = [each for each in self.comparison.differences if each.measure in SHOWN]
        one_point = len({each.point.key for each in shown}) == 1
        methods = ", ".join(dict.fromkeys(each.difference.method for each in shown))
        blocks: list[Block] = [
            TextBlock(self.sentence, "good"),
            *([self._settings()] if self.comparison.settings else []),
            table_of(
                ComparedMeasure,
                [_line(each) for each in shown[:MOST_LINES]],
                title=f"{100 * self.comparison.confidence:g} % intervals ({methods}), {_basis(shown)}",
                leave_out=("point",) if one_point else (),
            ),
            TextBlock(
                f"A winner is named where its difference stands among all {len(shown)} shown (Holm): with "
                f"{100 * self.comparison.confidence:g} % confidence none of them is wrong.",
                "faint",
            ),
        ]
        if len(shown) > MOST_LINES:
            blocks.append(TextBlock(f"… and {len(shown) - MOST_LINES} more lines: use -o csv.", "faint"))
        for name, missing in (("A", self.comparison.only_in_a), ("B", self.comparison.only_in_b)):
            if missing:
                blocks.append(TextBlock(f"Only in {name}: {', '.join(missing[:5])}", "faint"))
        return blocks

    def _settings(self) -> Block:
        rows: list[Row] = [fields_of(each, "path", "a", "b") for each in self.comparison.settings or ()]
        columns = [Column("path", "Setting"), Column("a", "A", "right"), Column("b", "B", "right")]
        return TableBlock(columns, rows[:MOST_LINES], title="What differs between A and B")


def _basis(shown: Sequence[Difference]) -> str:
    """Return in words the replications that the intervals are computed from."""
    counts = sorted({each.difference.count for each in shown})
    if counts == [1]:
        pairs = any(each.paired for each in shown)
        return "one run of each" + (", with the same arrivals on both sides: sample by sample" if pairs else "")
    number = f"{counts[0]} to {counts[-1]}" if len(counts) > 1 else f"{counts[0]}"
    paired = all(each.paired for each in shown)
    return f"{number} replications {'paired by common random numbers' if paired else 'not paired: the seeds differ'}"


def _line(each: Difference) -> ComparedMeasure:
    from qsctl.summary.sweeps.points import reading_error

    found = each.difference
    return read(
        ComparedMeasure, each, point=str(each.point), difference=found.mean, replications=found.count,
        half_width=found.half_width if math.isfinite(found.half_width) else None, method=found.method,
        relative_error=reading_error(each.measure), a=_text(each.measure, each.mean_a),
        b=_text(each.measure, each.mean_b), b_less_a=_difference(each), better=each.verdict.value,
    )  # fmt: skip


def _difference(each: Difference) -> str:
    sign = "−" if each.difference.mean < 0 else "+"
    text = f"{sign}{_text(each.measure, abs(each.difference.mean))}" if each.difference.mean else "0"
    if not math.isfinite(each.difference.half_width):
        return text
    return f"{text} ± {_text(each.measure, each.difference.half_width)}"


def _text(measure: str, value: float) -> str:
    if measure.startswith("time_"):
        return short_duration(value)
    if measure == "loss_ratio":
        return f"{100 * value:.4g} %"
    return f"{value:.6g}"


@COMMANDS.command(
    "compare",
    examples=(
        "qsctl compare qsctl-runs/trace-solace-1 qsctl-runs/trace-tibco-1",
        "qsctl compare burst --client-profile old.json --client-profile new.json --set horizon=2s",
        "qsctl compare sweeps/strict sweeps/weighted -o csv  # every measure at every point",
    ),
)
def compare(
    a: Annotated[
        str,
        typer.Argument(
            metavar="RUN_A", help="Run folder or sweep folder, by path or URI; with --client-profile a scenario."
        ),
    ],
    b: Annotated[
        str | None,
        typer.Argument(metavar="[RUN_B]", help="Other folder, of the same kind as RUN_A.", show_default=False),
    ] = None,
    confidence: Annotated[
        float, typer.Option(help="Confidence level of the intervals of the differences, between 0 and 1.")
    ] = 0.95,
    client_profile: ClientProfileOption = None,
    replications: Annotated[
        int, typer.Option(min=1, max=10_000, help="Number of replications of each side, with --client-profile.")
    ] = 5,
    seed: Annotated[
        int | None,
        typer.Option(min=0, help="Seed of the random numbers, with --client-profile.", show_default="the scenario's"),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            help="Folder of the runs a and b, by path or URI, with --client-profile.",
            show_default="new ones in qsctl-runs",
        ),
    ] = None,
    *,
    changes: ScenarioChanges,
    yes: YesOption = False,
) -> Compared:
    """Compare two runs or two sweeps: differences with confidence intervals, and which is better on what.

    With the same seed on both sides replications are paired, which shows small differences with few of them. Give
    --client-profile twice to simulate a scenario with each of two profiles, under one load.
    """
    from qsctl.cli.simulation.options.confidence import checked_confidence
    from qsctl.eventlog.location import location
    from qsctl.summary.comparison.compare import compare as compare_folders
    from qsctl.summary.comparison.compare_sentence import sentence

    checked_confidence(confidence)
    if client_profile:
        if b is not None or len(client_profile) != 2:
            raise UsageError(
                "two client profiles are compared under one scenario",
                remedy="As in: qsctl compare SCENARIO --client-profile old.json --client-profile new.json.",
            )
        sides: Sequence[Location] = compared_runs(
            a, client_profile, replications, seed, changes.variables, changes.overrides,
            None if out is None else location(out), yes,
        )  # fmt: skip
    elif b is None:
        raise UsageError("RUN_B is missing", remedy="Name two folders, or a scenario and two --client-profile.")
    else:
        sides = (location(a), location(b))
    comparison = compare_folders(sides[0], sides[1], confidence)
    return Compared(sentence(comparison), comparison)
