"""`qsctl size`: the smallest settings that meet targets, with the evidence and the memory they cost."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

import typer

from qsctl.cli.command import command
from qsctl.cli.command_line import command_line
from qsctl.cli.options import SetOption, VariableOption, assignments_of, variables_of
from qsctl.cli.profile_overlay import ClientProfileOption, with_client_profiles
from qsctl.cli.results import Block, Column, Plain, Result, Row, TableBlock, TextBlock
from qsctl.cli.spark_options import ConfOption, MasterOption, spark_options
from qsctl.cli.summarize_results import short_duration
from qsctl.cli.task_progress import task_progress
from qsctl.errors import ExitStatus

if TYPE_CHECKING:
    from qsctl.summary.size import Candidate, Sizing, TargetEvidence


@dataclass(frozen=True)
class Sized(Result):
    """The answer with its evidence; the exit status is 1 where no setting in the range meets the targets."""

    scenario: str
    sizing: Sizing
    reproduce: str

    field_help: ClassVar[Mapping[str, str]] = {
        "met": "whether these settings meet every target with the confidence asked for",
        "chosen": "whether they are the answer",
        "replications": "how many it took to decide",
        "memory_bytes": "what all queues of all clients may hold at most, bursts of the largest messages included",
        "deterministic": "-o json and yaml: nothing in the scenario is random, one replication of each is certain",
        "settings": "each varied path with its value",
        "evidence": "each target: mean, half_width, the bound that decides, met",
        "reproduce": "the command that finds this again",
    }

    @property
    def exit_status(self) -> ExitStatus:
        """The answer is no where nothing in the range is enough."""
        return ExitStatus.DONE if self.sizing.answer is not None else ExitStatus.NO

    def document(self) -> Plain:
        """Everything, with stable names."""
        answer = self.sizing.answer
        return {
            "scenario": self.scenario,
            "confidence": self.sizing.confidence,
            "targets": [target.text for target in self.sizing.targets],
            "answer": None if answer is None else self._row(answer),
            "monotone": self.sizing.monotone,
            "deterministic": self.sizing.deterministic,
            "candidates": list(self.rows()),
            "reproduce": self.reproduce,
        }

    def rows(self) -> Sequence[Row]:
        """One row a candidate, in the order tried."""
        return [self._row(candidate) for candidate in self.sizing.candidates]

    def _row(self, candidate: Candidate) -> dict[str, Plain]:
        return {
            "settings": {
                setting.path: value for setting, value in zip(self.sizing.settings, candidate.values, strict=True)
            },
            "met": candidate.met,
            "chosen": candidate == self.sizing.answer,
            "replications": candidate.replications,
            "memory_bytes": candidate.memory_bytes,
            "evidence": [
                {
                    "target": each.target.text,
                    "mean": _finite(each.interval.mean),
                    "half_width": _finite(each.interval.half_width),
                    "bound": _finite(each.confidence_bound),
                    "met": each.met,
                }
                for each in candidate.evidence
            ],
        }

    def blocks(self) -> Sequence[Block]:
        """The answer in words, then the evidence."""
        sizing = self.sizing
        columns = [
            *(Column(setting.path, setting.text.partition("=")[0], "right") for setting in sizing.settings),
            *(Column(target.text, target.text, "right") for target in sizing.targets),
            Column("replications", "Replications", "right"),
            Column("memory", "Memory", "right"),
            Column("met", "Met"),
        ]
        rows: list[Row] = [
            {
                **{setting.path: value for setting, value in zip(sizing.settings, candidate.values, strict=True)},
                **{each.target.text: evidence_text(each) for each in candidate.evidence},
                "replications": candidate.replications,
                "memory": memory_text(candidate.memory_bytes),
                "met": "chosen" if candidate == sizing.answer else candidate.met,
            }
            for candidate in sorted(sizing.candidates, key=lambda each: each.values)
        ]
        blocks: list[Block] = [
            TextBlock(answer_text(sizing), "good" if sizing.answer else "bad"),
            TableBlock(columns, rows, title=f"{self.scenario}: what was simulated"),
        ]
        if not sizing.monotone:
            blocks.append(
                TextBlock(
                    "A larger setting did worse than a smaller one: bisection may have missed an answer. "
                    "List values, as in --vary 'max-depth(D-1)=100,200,400', to try each.",
                    "bad",
                )
            )
        return blocks


def answer_text(sizing: Sizing) -> str:
    """The answer as a sentence."""
    targets = " and ".join(target.text for target in sizing.targets)
    if sizing.answer is None:
        return f"No setting in the range meets {targets} with {100 * sizing.confidence:g} % confidence."
    settings = ", ".join(
        f"{setting.text.partition('=')[0]} = {value}"
        for setting, value in zip(sizing.settings, sizing.answer.values, strict=True)
    )
    memory = (
        f"all queues together may then hold {memory_text(sizing.answer.memory_bytes)}, bursts of the largest messages "
        "included."
    )
    if sizing.deterministic:
        return (
            f"{settings}: the smallest that meets {targets}; {memory} Nothing in the scenario is random: one "
            "replication of each candidate is certain."
        )
    text = (
        f"{settings}: the smallest that meets {targets} with {100 * sizing.confidence:g} % confidence "
        f"({sizing.answer.replications} replications); {memory}"
    )
    if any(target.operator == "=" for target in sizing.targets):
        chance = 1 - (1 - sizing.confidence) ** (1 / sizing.answer.replications)
        text += (
            f" Zero was seen in every replication: with that confidence at most {100 * chance:.2g} % of runs differ."
        )
    return text


def evidence_text(evidence: TargetEvidence) -> str:
    """A mean with its interval, in the measure's unit."""
    mean, half = evidence.interval.mean, evidence.interval.half_width
    if math.isnan(mean):
        return "nothing delivered"
    if evidence.target.measure.startswith("latency_"):
        return f"{short_duration(mean)} ± {short_duration(half)}" if math.isfinite(half) else short_duration(mean)
    return f"{mean:.6g} ± {half:.3g}" if math.isfinite(half) else f"{mean:.6g}"


def memory_text(size_bytes: int) -> str:
    """Bytes for people, in powers of 1,024."""
    value = float(size_bytes)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.4g} {unit}"
        value /= 1024
    return f"{value:.4g} TiB"


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def size(
    scenario: Annotated[str, typer.Argument(metavar="SCENARIO", help="A scenario file or the name of a ready one.")],
    target: Annotated[
        list[str],
        typer.Option("--target", metavar="TARGET", help="'discards(D-1)=0', 'latency_p99(G-1)<50ms'; all hold."),
    ],
    vary: Annotated[
        list[str],
        typer.Option("--vary", metavar="SETTING", help="'max-depth(D-1)', 'max-depth(D-1)=100..20000', 'PATH=1,2'."),
    ],
    confidence: Annotated[float, typer.Option("--confidence", help="That the answer meets each target.")] = 0.95,
    most: Annotated[int, typer.Option("--max-replications", help="Of one candidate, to decide it.")] = 40,
    seed: Annotated[int | None, typer.Option("--seed", help="Instead of the scenario's.", show_default=False)] = None,
    client_profile: ClientProfileOption = None,
    assignments: SetOption = None,
    var: VariableOption = None,
    master: MasterOption = "",
    conf: ConfOption = None,
) -> Sized:
    """Find the smallest settings that meet targets, by simulating only where the answer is open.

    Measures are columns of the tables of simulate: discarded_messages, lost_messages, loss_ratio, waiting_messages,
    delivered_per_second, wait_p50_ns, wait_p99_ns, high_water_mark_work_units and so on; or the short names of sweep:
    discards, delivered, throughput, latency_mean, latency_p50, _p90, _p99, _p999, latency_max, high_water_mark. Waits
    and latencies are the time in the queue.
    """
    from qsctl.cli.sweep_input import checked_confidence, open_scenario
    from qsctl.errors import UsageError
    from qsctl.sim.overrides import apply_overrides
    from qsctl.sim.targets import parse_setting, parse_target
    from qsctl.summary.points import EVERY_MEASURE
    from qsctl.summary.size import size as find_size

    checked_confidence(confidence)
    if most < 2:
        raise UsageError(f"--max-replications {most} is too few for an interval", remedy="Allow 2 or more.")
    targets = [parse_target(text, tuple(EVERY_MEASURE)) for text in target]
    settings = [parse_setting(text) for text in vary]
    variables, overrides = variables_of(var), assignments_of(assignments)
    plain, of_profiles = with_client_profiles(open_scenario(scenario, variables, {}, seed), client_profile)
    read = apply_overrides(plain, overrides)
    overrides = {**of_profiles, **overrides}
    asked: list[tuple[str, object]] = [("--target", text) for text in target]
    asked += [("--vary", text) for text in vary]
    asked += [("--confidence", f"{confidence:g}"), ("--max-replications", most), ("--seed", seed)]
    with task_progress("candidates") as tell:
        count = 0

        def told(_: Candidate) -> None:
            nonlocal count
            count += 1
            tell(count, count + 1)

        sizing = find_size(
            read,
            targets,
            settings,
            confidence=confidence,
            most_replications=most,
            options=spark_options(master, conf),
            told=told,
        )
    return Sized(read.name, sizing, command_line("size", scenario, asked, variables, overrides))


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(
        app,
        "size",
        panel="Simulate and summarize",
        examples=(
            "qsctl size burst --target 'discards(D-1)=0' --vary 'max-depth(D-1)'",
            "qsctl size burst --target 'latency_p99(D-1)<200ms' --target 'loss_ratio(D-1)<5%' --vary 'max-depth(D-1)'",
            "qsctl size guaranteed --target 'waiting_messages(G-1)<20' --vary 'min-msg-burst(G-1)=4,8,16,32,255'",
        ),
    )(size)
