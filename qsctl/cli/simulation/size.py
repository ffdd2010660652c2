"""`qsctl size`: find the smallest settings that meet targets, with the evidence and their memory."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, ClassVar, Final

import typer

from qsctl.cli.command import Commands
from qsctl.cli.confirmation import agree_to_cost
from qsctl.cli.options import ScenarioChanges
from qsctl.cli.output.results import Block, Column, Plain, Result, Row, TableBlock, TextBlock, fields_of
from qsctl.cli.panels import SIMULATION_PANEL
from qsctl.cli.simulation.options.command_line import command_line
from qsctl.cli.simulation.options.profile_overlay import ClientProfileOption, with_client_profiles
from qsctl.cli.simulation.options.recorded import RecordedOptions, scenario_or_recording, with_other_recordings
from qsctl.cli.simulation.options.spark import TaskOptions
from qsctl.cli.simulation.progress.long_run import YesOption
from qsctl.cli.simulation.progress.task_progress import task_progress
from qsctl.cli.simulation.results.size_words import (
    answer_text,
    evidence_text,
    load_text,
    looked_at_text,
    memory_text,
    statement_of,
)
from qsctl.errors import ExitStatus

if TYPE_CHECKING:
    from qsctl.summary.sweeps.candidates import Candidate
    from qsctl.summary.sweeps.size import Sizing

COMMANDS: Final = Commands(panel=SIMULATION_PANEL)


@dataclass(frozen=True)
class Sized(Result):
    """The answer with its evidence; the exit status is 1 if no setting in the range meets the targets."""

    scenario: str
    sizing: Sizing
    reproduce: str
    load: str | None = None
    """The loads of the runs, if they are those of a recording."""

    field_help: ClassVar[Mapping[str, str]] = {
        "met": "whether these settings are shown to meet every target, with the given confidence; nothing else is met",
        "chosen": "whether they are the answer",
        "replications": "how many it took to decide",
        "memory_bytes": "what all queues of all clients may hold at most, bursts of the largest messages included",
        "deterministic": "-o json and yaml: nothing in the scenario is random, one replication of each is certain",
        "settings": "each varied path with its value",
        "sentence": "-o json and yaml: the answer in words, with what is stated of it",
        "evidence": "each target: what is stated, on which basis (mean, share, exact), mean, half_width, bound, runs; "
        "answer: shown, refused, or open where these runs cannot show it; of a mean run_at_most, and why",
        "interval": "-o json and yaml: of one setting, the values from and to which all meet the targets",
        "looked_at": "-o json and yaml: how the range was looked at, and each setting's ends and values tried",
        "directions": "-o json and yaml: what a larger setting does to each target (better, worse, unknown), and why",
        "estimated_replications": "-o json and yaml: replications that were expected before the search began",
        "load": "-o json and yaml, of a recording: which loads the runs had, and what is not in them; else null",
        "reproduce": "the command that finds this again",
    }

    @property
    def exit_status(self) -> ExitStatus:
        """Return NO if no value in the range suffices, else DONE."""
        return ExitStatus.DONE if self.sizing.answer is not None else ExitStatus.NO

    def document(self) -> Plain:
        """Return the answer and its evidence under stable names."""
        answer = self.sizing.answer
        return {
            "scenario": self.scenario,
            "sentence": answer_text(self.sizing),
            "confidence": self.sizing.confidence,
            "targets": [target.text for target in self.sizing.targets],
            "answer": None if answer is None else self._row(answer),
            "interval": self._interval(),
            "looked_at": {
                "method": self.sizing.method.value,
                "settings": [
                    {"path": setting.path, "low": setting.low, "high": setting.high, "tried": self.sizing.tried(place)}
                    for place, setting in enumerate(self.sizing.settings)
                ],
            },
            "directions": [
                {
                    "target": effect.target.text,
                    "setting": effect.setting.path,
                    "larger_is": effect.direction.value,
                    "reason": effect.reason,
                    "contradicted": effect in self.sizing.contradicted,
                }
                for effect in self.sizing.effects
            ],
            **fields_of(self.sizing, "monotone", "deterministic"),
            "max_replications": self.sizing.most_replications,
            "candidates": list(self.rows()),
            "load": self.load,
            "estimated_replications": None if self.sizing.cost is None else self.sizing.cost.replications,
            "reproduce": self.reproduce,
        }

    def rows(self) -> Sequence[Row]:
        """Return one row per candidate, in the order of the search."""
        return [self._row(candidate) for candidate in self.sizing.candidates]

    def _interval(self) -> Plain:
        sizing = self.sizing
        if sizing.answer is None or sizing.largest is None:
            return None
        return {"path": sizing.settings[0].path, "from": sizing.answer.values[0], "to": sizing.largest}

    def _row(self, candidate: Candidate) -> dict[str, Plain]:
        return {
            "settings": {
                setting.path: setting.value_text(value) if setting.unit else value
                for setting, value in zip(self.sizing.settings, candidate.values, strict=True)
            },
            "met": candidate.met,
            "chosen": candidate == self.sizing.answer,
            **fields_of(candidate, "replications", "memory_bytes"),
            "evidence": [
                {
                    "target": each.target.text,
                    "mean": _finite(each.interval.mean),
                    "half_width": _finite(each.interval.half_width),
                    "bound": _finite(each.bound),
                    **fields_of(each, "runs", "violating_runs", "basis", "answer"),
                    "run_at_most": None if each.support is None else _finite(each.support.bound),
                    "run_at_most_source": None if each.support is None else each.support.source.value,
                    "statement": statement_of(each),
                    "met": each.met,
                }
                for each in candidate.evidence
            ],
        }

    def blocks(self) -> Sequence[Block]:
        """Return the answer in words, then the evidence."""
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
                **{
                    setting.path: setting.value_text(value)
                    for setting, value in zip(sizing.settings, candidate.values, strict=True)
                },
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
        if self.load is not None:
            blocks.append(TextBlock(self.load))
        blocks.append(TextBlock(looked_at_text(sizing), "good" if sizing.monotone else "bad"))
        return blocks


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


@COMMANDS.command(
    "size",
    examples=(
        "qsctl size burst --target 'discards(D-1)=0' --vary 'max-depth(D-1)'",
        "qsctl size burst --target 'time_in_queue_p99(D-1)<1s' --target 'loss_ratio(D-1)<5%' --vary 'max-depth(D-1)'",
        "qsctl size guaranteed --target 'waiting_messages(G-1)<20' --vary 'min-msg-burst(G-1)=4,8,16,32,255'",
        "qsctl size --from yesterday --target 'time_to_done_p99(OrderQueue)<50ms' --vary 'consumers(OrderQueue)=1..16'",
    ),
)
def size(
    target: Annotated[
        list[str],
        typer.Option(
            metavar="TARGET",
            help="Condition of a measure: 'time_to_done_p99(G-1)<50ms' of its mean over runs, 'discards(D-1)=0' of "
            "every run, 'P(discards(D-1)>0)<1%' of the share of runs; may be repeated, all must hold.",
        ),
    ],
    vary: Annotated[
        list[str],
        typer.Option(
            metavar="SETTING",
            help="Setting to find: 'max-depth(D-1)', 'max-depth(D-1)=100..20000', 'PATH=1,2'; of a recording "
            "'consumers(QUEUE)=1..16', 'unacked_threshold(QUEUE)=0..50', 'max_count(QUEUE)=1..1000'; may be repeated.",
        ),
    ],
    scenario: Annotated[
        str | None,
        typer.Argument(metavar="[SCENARIO]", help="Scenario file, or the name of a ready one.", show_default=False),
    ] = None,
    recording: Annotated[
        list[str] | None,
        typer.Option(
            "--from",
            metavar="RUN",
            help="Recording of a service that is replayed, by path or URI, in place of a scenario; its paths are those "
            "of replay. May be repeated, as for several days: each replication has the load of another one.",
            show_default="none, a scenario",
        ),
    ] = None,
    confidence: Annotated[
        float, typer.Option(help="Probability that what is stated of the answer is true, between 0 and 1.")
    ] = 0.95,
    most: Annotated[
        int | None,
        typer.Option(
            "--max-replications",
            help="Largest number of replications of one candidate.",
            show_default="160, or what the targets need",
        ),
    ] = None,
    assume: Annotated[
        list[str] | None,
        typer.Option(
            metavar="BOUND",
            help="Largest value of a measure that any run has, as in 'time_in_queue_p99(D-1)<=1s': what a target on "
            "its mean rests on; may be repeated.",
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the random numbers.", show_default="the scenario's")] = None,
    client_profile: ClientProfileOption = None,
    yes: YesOption = False,
    *,
    recorded: RecordedOptions,
    changes: ScenarioChanges,
    cluster: TaskOptions,
) -> Sized:
    """Find the smallest settings that meet targets, by simulating only where the answer is open.

    Every replication is a run with random numbers of its own. A target of zero is met when less than 5 % of runs differ
    from it, which needs 59 runs without one that does. A target on a mean is met, is not met, or cannot be shown with
    these runs: one run in many may outweigh all others, so the answer depends on an upper bound of a run's value, which
    is printed. Where that bound is too high, state a lower one with --assume, or a fraction of runs, as in
    'P(discards(D-1)>0)<1%'.

    For each target, whether a larger setting makes it better or worse, or that this is unknown, is printed with the
    reason.

    Measures are columns of the tables of simulate: discarded_messages, lost_messages, loss_ratio, waiting_messages,
    delivered_per_second, wait_p50_ns, wait_p99_ns, high_water_mark_work_units and so on; or the short names of sweep:
    discards, delivered, throughput, time_in_queue_mean, time_in_queue_p50, _p90, _p99, _p999, time_in_queue_max, the
    same of time_to_done, unfinished, high_water_mark; of clusters time_to_master, time_without_master,
    refused_before_master, elections, broken_rules; of a broker's queue within_objective, duplicates,
    parallel_duplicates, backlog_mean, backlog_max, ready_max, time_of_oldest_max, time_to_drain, utilization,
    requests, worker_hours, cost. The time in the queue (wait) ends when a message is sent to its
    client, the time to done when it is acknowledged: only that one answers how much a client may accept ahead
    (prefetch, unacked-threshold, windows).
    """
    from qsctl.cli.simulation.options.confidence import checked_confidence
    from qsctl.errors import UsageError
    from qsctl.sim.scenario.overrides.set_values import apply_overrides
    from qsctl.sim.sizing.targets import parse_bound, parse_setting, parse_target
    from qsctl.summary.sweeps.points import EVERY_MEASURE
    from qsctl.summary.sweeps.size import size as find_size

    checked_confidence(confidence)
    if most is not None and most < 2:
        raise UsageError(f"--max-replications {most} is too few for an interval", remedy="Allow 2 or more.")
    targets = [parse_target(text, tuple(EVERY_MEASURE)) for text in target]
    settings = [parse_setting(text) for text in vary]
    stated = [parse_bound(text, tuple(EVERY_MEASURE)) for text in assume or ()]
    variables, overrides = changes.variables, changes.overrides
    recordings = recording or []
    opened = scenario_or_recording(scenario, recordings[0] if recordings else None, recorded, variables, seed)
    if len(recordings) > 1:
        opened = with_other_recordings(opened, recordings[1:])
    plain, of_profiles = with_client_profiles(opened, client_profile)
    read = apply_overrides(plain, overrides)
    overrides = {**of_profiles, **overrides}
    given: list[tuple[str, object]] = [*(("--from", each) for each in recordings), *recorded.given()]
    given += [("--target", text) for text in target]
    given += [("--vary", text) for text in vary]
    given += [("--assume", text) for text in assume or ()]
    given += [("--confidence", f"{confidence:g}"), ("--max-replications", most), ("--seed", seed)]
    with task_progress("candidates") as show_progress, cluster.runner(read) as runner:
        count = 0

        def note(_: Candidate) -> None:
            nonlocal count
            count += 1
            show_progress(count, count + 1)

        sizing = find_size(
            read,
            targets,
            settings,
            confidence=confidence,
            most_replications=most,
            stated={(measure, queue): bound for measure, queue, bound in stated},
            options=cluster.spark_options(),
            runner=runner,
            report=note,
            agree=partial(agree_to_cost, yes=yes),
        )
    return Sized(read.name, sizing, command_line("size", scenario, given, variables, overrides), load_text(read))
