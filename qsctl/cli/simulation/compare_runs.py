"""`qsctl compare-runs`: find the runs that differ from the others of their group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final

import typer

from qsctl.cli.command import Commands
from qsctl.cli.output.results import Block, Column, Plain, Result, Row, TableBlock, TextBlock
from qsctl.cli.panels import SIMULATION_PANEL
from qsctl.cli.simulation.options.spark import TaskOptions
from qsctl.cli.simulation.progress.task_progress import task_progress
from qsctl.cli.simulation.results.durations import short_duration
from qsctl.cli.simulation.results.summarize import MOST_LINES

if TYPE_CHECKING:
    from qsctl.summary.differences import ComparedRuns

COMMANDS: Final = Commands(panel=SIMULATION_PANEL)

_FIELDS: Final = (
    "run_group", "client", "queue", "measure", "kind", "run_id", "value", "typical", "score", "limit", "runs",
)  # fmt: skip


@dataclass(frozen=True)
class RunsCompared(Result):
    """The findings about runs that differ from their group."""

    compared: ComparedRuns
    false_alarm: float

    field_help: ClassVar[Mapping[str, str]] = {
        "run_group": "the group of runs that should be alike",
        "client": "the client; null unless --by client",
        "queue": "the queue; null unless --by queue",
        "measure": "loss_ratio, p99_wait_ns, delivered_per_second or high_water_mark_work_units",
        "kind": "outlier, of this run alone; change, of the first run of those that differ from the runs before",
        "run_id": "the run",
        "value": "its value",
        "typical": "median of the group; of a change that of the runs before",
        "score": "distance in median absolute deviations; of a change the probability of one by chance",
        "limit": "value that the score is compared with; null where most runs have one and the same value",
        "runs": "runs of the group that have the measure",
        "groups": "-o json and yaml: how many runs each group has",
        "series": "-o json and yaml: measures of clients and queues that were compared in all groups",
        "false_alarm": "-o json and yaml: the probability of a finding of a kind in one series of runs that are alike",
        "notes": "-o json and yaml: runs that were left out",
    }

    def document(self) -> Plain:
        """Return the findings under stable names."""
        return {
            "runs": self.compared.runs,
            "groups": dict(self.compared.groups),
            "series": self.compared.series,
            "false_alarm": self.false_alarm,
            "findings": list(self.rows()),
            "notes": list(self.compared.skipped),
        }

    def rows(self) -> Sequence[Row]:
        """Return one row per finding."""
        return [{name: row[name] for name in _FIELDS} for row in self.compared.findings.to_pylist()]

    def blocks(self) -> Sequence[Block]:
        """Return the findings: changes first, and merely unequal runs apart."""
        from qsctl.summary.comparison.run_differences import LEAST_RUNS

        rows = sorted(self.compared.findings.to_pylist(), key=lambda row: (row["kind"] != "change", row["run_id"]))
        stated = [row for row in rows if row["score"] is not None]
        unequal = [row for row in rows if row["score"] is None]
        differing = len({row["run_id"] for row in stated})
        expected = 2 * self.compared.series * self.false_alarm
        blocks: list[Block] = [
            TextBlock(
                f"{differing} of {self.compared.runs} runs {'differs' if differing == 1 else 'differ'} from others of "
                f"the group. Of the {self.compared.series} series that were compared, {expected:.3g} findings are "
                "expected at the most if all runs of a group are alike and their figures are normal.",
                "bad" if stated else "good",
            ),
            *_tables(stated, ""),
            *_tables(unequal, "Other values where most runs have one and the same: no probability is stated"),
        ]
        few = [name for name, count in self.compared.groups.items() if count < LEAST_RUNS]
        if few:
            names = ", ".join(few[:MOST_LINES])
            blocks.append(TextBlock(f"Of fewer than {LEAST_RUNS} runs nothing is stated: {names}.", "faint"))
        return [*blocks, *(TextBlock(note, "faint") for note in self.compared.skipped)]


def _tables(rows: Sequence[Mapping[str, Any]], title: str) -> list[Block]:
    if not rows:
        return []
    keys = [key for key in _HEADINGS if len({row[key] for row in rows}) > 1 or key == "queue"]
    columns = [
        *(Column(key, _HEADINGS[key]) for key in keys),
        Column("measure", "Measure"), Column("run_id", "Run"), Column("kind", "Kind"),
        Column("value", "Value", "right"), Column("typical", "Others", "right"),
        *([Column("score", "Score", "right")] if rows[0]["score"] is not None else []),
    ]  # fmt: skip
    blocks: list[Block] = [TableBlock(columns, [_line(row, keys) for row in rows[:MOST_LINES]], title=title)]
    if len(rows) > MOST_LINES:
        blocks.append(TextBlock(f"… and {len(rows) - MOST_LINES} more: use -o csv.", "faint"))
    return blocks


_HEADINGS: Final = {"run_group": "Group", "client": "Client", "queue": "Queue"}


def _line(row: Mapping[str, Any], keys: Sequence[str]) -> Row:
    score, limit = row["score"], row["limit"]
    is_change = row["kind"] == "change"
    return {
        **{key: row[key] or "" for key in keys},
        "measure": row["measure"],
        "run_id": row["run_id"],
        "kind": "from here on" if is_change else "alone",
        "value": _text(row["measure"], row["value"]),
        "typical": _text(row["measure"], row["typical"]),
        "score": "" if score is None else f"p = {score:.2g}" if is_change else f"{score:.1f} > {limit:.1f}",
    }


def _text(measure: str, value: float) -> str:
    if measure.endswith("_ns"):
        return short_duration(value)
    return f"{100 * value:.3g} %" if measure == "loss_ratio" else f"{value:.6g}"


@COMMANDS.command(
    "compare-runs",
    examples=(
        "qsctl compare-runs recordings/*  # which of them differ from the others",
        "qsctl compare-runs recordings/* --group weekday  # which Mondays were different",
        "qsctl compare-runs recordings/* --by client,queue --false-alarm 0.001 -o csv",
    ),
)
def compare_runs(
    runs: Annotated[list[str], typer.Argument(metavar="RUN…", help="Run folders, by path or URI; five at least.")],
    group: Annotated[
        str,
        typer.Option(
            help="Runs that should be alike: those of one scenario, of one scenario and weekday (UTC), or all; "
            "scenario, weekday or all."
        ),
    ] = "scenario",
    by: Annotated[str, typer.Option(help="Grouping of the figures: some of client,queue.")] = "queue",
    false_alarm: Annotated[
        float,
        typer.Option(
            help="Probability, between 0 and 1, of a finding among runs that are alike, for each measure of each "
            "queue, outliers and changes by themselves; 0.001 to 0.5."
        ),
    ] = 0.01,
    skip_damaged: Annotated[
        bool, typer.Option("--skip-damaged", help="Leave out damaged runs, with a note for each, instead of failing.")
    ] = False,
    *,
    cluster: TaskOptions,
) -> RunsCompared:
    """Compare many runs: which are outliers of their group, and from which on the others follow.

    The loss, the p99 of the wait, the rate of deliveries and the high-water mark of each queue are compared. Changes
    are looked for among recordings, in the order of their start; of a group of fewer than five runs nothing is stated,
    and of changes among fewer than ten neither.
    """
    from qsctl.eventlog.location import location
    from qsctl.summary.differences import compare_runs as compare_folders
    from qsctl.summary.read_rows import reported_to

    words = tuple(word.strip() for word in by.split(",") if word.strip())
    with task_progress("rows read") as show_progress, reported_to(show_progress):
        compared = compare_folders(
            [location(run) for run in runs], by=words, group=group, false_alarm=false_alarm,
            skip_damaged=skip_damaged, options=cluster.spark_asked_for(),
        )  # fmt: skip
    return RunsCompared(compared, false_alarm)
