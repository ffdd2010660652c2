"""`qsctl calibrate`: compare a scenario's figures with a broker's, and find parameters that explain differences."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Final

import typer

from qsctl.cli.command import Commands
from qsctl.cli.options import ScenarioChanges
from qsctl.cli.output.results import Block, Column, Plain, Result, Row, TableBlock, TextBlock, fields_of
from qsctl.cli.panels import SIMULATION_PANEL
from qsctl.cli.simulation.options.captures import Captures
from qsctl.errors import InvalidInput, UsageError

if TYPE_CHECKING:
    from qsctl.sim.captured.calibration import FittedParameter, Predicted

COMMANDS: Final = Commands(panel=SIMULATION_PANEL)

_SHOWN: Final = 40


@dataclass(frozen=True)
class Calibrated(Result):
    """Captured and predicted figures, and the parameter values that explain the captured discards."""

    scenario: str
    source: str
    seconds: float | None
    figures: tuple[Predicted, ...]
    fits: tuple[FittedParameter, ...]
    notes: tuple[str, ...] = ()

    field_help: ClassVar[Mapping[str, str]] = {
        "group": "the group of the scenario; figures are of one of its clients",
        "clients": "captured clients of the group",
        "queue": "the priority queue; empty: the client's connection",
        "measure": "discards, depth or blocked",
        "unit": "unit of the figures",
        "captured": "what the broker listed",
        "predicted": "mean over the replications",
        "half_width": "95 % of replications as long as the captures are within it of the mean",
        "error": "predicted minus captured",
        "agrees": "whether the captured figure is within half_width of the predicted one",
        "fits": "-o json and yaml: parameters with the value that explains a client's discards, with its 95 % interval",
        "seconds": "-o json and yaml: time between the captures; null: there was one",
        "scenario": "-o json and yaml: the scenario",
        "source": "-o json and yaml: what was captured",
        "notes": "-o json and yaml: remarks on the captures",
    }

    def rows(self) -> Sequence[Row]:
        """Return one row per figure."""
        names = ("group", "clients", "queue", "measure", "unit", "captured", "predicted", "half_width")
        return [{**fields_of(each, *names), "error": each.error, "agrees": each.agrees} for each in self.figures]

    def document(self) -> Plain:
        """Return the figures and the fitted parameters."""
        return {
            **fields_of(self, "scenario", "source", "seconds"),
            "figures": list(self.rows()),
            "fits": [fields_of(each) for each in self.fits],
            "notes": list(self.notes),
        }

    def blocks(self) -> Sequence[Block]:
        """Return a table of the figures, disagreeing ones first, and tables of parameters that would explain them."""
        ordered = sorted(self.figures, key=lambda each: each.agrees)
        agree = sum(each.agrees for each in self.figures)
        rows: list[Row] = [
            {
                "group": each.group,
                "figure": f"{each.queue} {each.measure}".strip(),
                "captured": f"{each.captured:,.4g}",
                "predicted": f"{each.predicted:,.4g} ± {each.half_width:,.2g}",
                "unit": each.unit,
                "agrees": "yes" if each.agrees else "no",
            }
            for each in ordered[:_SHOWN]
        ]
        columns = [
            Column("group", "Group"), Column("figure", "Figure"), Column("captured", "Captured", "right"),
            Column("predicted", "Predicted", "right"), Column("unit", "Unit"), Column("agrees", "Agrees"),
        ]  # fmt: skip
        blocks: list[Block] = [
            TextBlock(
                f"{self.scenario}: {agree} of {len(self.figures)} figures agree with {self.source}.",
                "good" if agree == len(self.figures) else "bad",
            ),
            TableBlock(columns, rows),
        ]
        if len(ordered) > _SHOWN:
            blocks.append(TextBlock(f"and {len(ordered) - _SHOWN:,} more: -o csv has all.", "faint"))
        return [*blocks, *self._fits(), *(TextBlock(each, "faint") for each in self.notes)]

    def _fits(self) -> list[Block]:
        blocks: list[Block] = []
        for group in dict.fromkeys(each.group for each in self.fits):
            of_it = [each for each in self.fits if each.group == group]
            best = [each for each in of_it if each.is_best]
            rows: list[Row] = [
                {
                    "parameter": each.path.partition("/")[2],
                    "value": f"{each.value:.4g}",
                    "interval": f"{each.low:.4g} to {each.high:.4g}",
                    "unit": each.unit,
                    "mismatch": f"{each.mismatch:.3f}",
                }
                for each in of_it
            ]
            columns = [
                Column("parameter", "Parameter alone"), Column("value", "Value", "right"),
                Column("interval", "95 % interval", "right"), Column("unit", "Unit"),
                Column("mismatch", "Mismatch of the rest", "right"),
            ]  # fmt: skip
            blocks.append(TableBlock(columns, rows, title=f"{group}: what explains its discards"))
            several = "" if len(best) == 1 else " These figures do not distinguish them: capture `connections wide`."
            names = ", ".join(each.path.partition("/")[2] for each in best)
            line = shlex.join(["qsctl", "simulate", self.scenario, "--set", f"{best[0].path}={best[0].setting}"])
            blocks.append(TextBlock(f"Best: {names}.{several}\n  Try: {line}"))
        return blocks


@COMMANDS.command(
    "calibrate",
    examples=(
        "qsctl calibrate scenario.xml --from-broker before.txt --from-broker after.txt",
        "qsctl calibrate scenario.xml --from-broker site --interval 30s -o json",
    ),
)
def calibrate(
    scenario: Annotated[
        str, typer.Argument(metavar="SCENARIO", help="Scenario file, as `qsctl init --from-broker` writes it.")
    ],
    replications: Annotated[
        int, typer.Option(min=4, max=32, help="Number of replications of each group's simulation.")
    ] = 8,
    *,
    captures: Captures,
    changes: ScenarioChanges,
) -> Calibrated:
    """Compare what a scenario predicts with what a broker listed: discards, depths, blocked percentages.

    For each client that lost messages: which one parameter explains it, with which value and interval. Each group is
    simulated with one of its clients alone; groups are found by the names that `qsctl init --from-broker` gives them.
    """
    from qsctl.sim.captured.calibration import fits, predictions
    from qsctl.sim.captured.scenario import grouped
    from qsctl.sim.simulate import open_scenario

    if not captures.from_broker:
        raise UsageError("there is nothing to compare with", remedy="Name captures, or a broker, with --from-broker.")
    read = open_scenario(scenario, changes.variables, changes.overrides)
    observation, _ = captures.read()
    groups = grouped(observation)
    known = {each.name for each in read.groups}
    missing = [each.name for each in groups if each.name not in known]
    if len(missing) == len(groups):
        raise InvalidInput(
            f"{scenario} has none of the captured groups: {', '.join(missing[:5])}",
            remedy="Write it anew with `qsctl init --from-broker`, or name its groups as the clients.",
        )
    notes = list(observation.notes)
    if missing:
        notes.append(f"{scenario} does not have the groups {', '.join(missing[:5])}{' …' * (len(missing) > 5)}.")
    figures = predictions(read, groups, observation, replications)
    fitted = [each for group in groups for each in fits(read, group, observation, replications)]
    return Calibrated(scenario, captures.source, observation.seconds, tuple(figures), tuple(fitted), tuple(notes))
