"""The results of `qsctl simulate`: a table of queues, discards by priority and cause, and the run folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from qsctl.cli.output.results import Block, Column, ListResult, Plain, Result, Row, TableBlock, TextBlock, fields_of
from qsctl.cli.simulation.results._cluster import cluster_blocks, cluster_fields
from qsctl.cli.simulation.results._worked import worked_blocks, worked_fields
from qsctl.cli.simulation.results.durations import short_duration
from qsctl.cli.simulation.results.intervals import interval_blocks, interval_rows
from qsctl.cli.simulation.results.summarize import (
    WORKED_WAIT,
    SparkSummary,
    figures_row,
    happening_blocks,
    happening_rows,
    loss_blocks,
    place_of,
    queue_blocks,
    waiting_blocks,
)
from qsctl.errors import ExitStatus

if TYPE_CHECKING:
    from qsctl.eventlog.run_folder import Happening, QueueWorker, ReplicatedQueue, RuleVerdict, WorkedQueue
    from qsctl.sim.run import RunReport
    from qsctl.summary.inference.run_intervals import RunInterval
    from qsctl.summary.run_summary import QueueFigures

MODEL_NAMES = {
    "solace": "Solace egress queues",
    "tibco": "TIBCO egress queues",
    "shared_reader_queue": "shared reader queues",
    "integration": "an integration engine",
    "world": "a cluster of queuing services under faults",
    "replay": "shared reader queues under a recorded load",
    "queue": "a broker's queue and its consumers",
}


COMPILE_SHOWN_S = 0.5
"""Compilation that takes less than this (in seconds) is not mentioned."""

OWN_NAMES = {
    "tibco": {
        "discards": "Transmit Congestion--Slow Consumer (Msgs)",
        "discarded_messages": "Transmit Congestion--Slow Consumer",
    },
    "integration": {"discards": "Thrown away (Msgs)", "discarded_messages": "Thrown away"},
    "world": {"discards": "Refused (Msgs)", "discarded_messages": "Refused"},
    "queue": {
        "discards": "Dropped (Msgs)",
        "discarded_messages": "Dropped",
        "spool_refused_messages": "Refused",
        "wait": WORKED_WAIT,
    },
}
"""Headings that a model uses in place of the general ones [CLOVERLEAF].

An integration engine discards results of failed route details.
"""

_OWN_PLACE = frozenset(
    {
        "queues",
        "notes",
        "elapsed_s",
        "compile_s",
        "happenings",
        "verdicts",
        "replicated_queues",
        "intervals",
        "worked_queues",
        "workers",
        "report",
    }
)
"""Fields that the document contains in another form, or not at all."""


class SimulateResult(Result):
    """Base class of the command's results."""

    field_help: ClassVar[Mapping[str, str]] = {
        "scenario": "-o json and yaml: the scenario's name; with the rest of the run beside `queues`",
        "folder": "the run folder",
        "status": "complete, or partial when it was stopped",
        "run_id": "the same for the same scenario and seed",
        "fingerprint": "hash of the event log: the same for the same scenario and seed",
        "reproduce": "the command that makes this run again",
        "computed_by": "simulator (its own counters) or spark (from the event log)",
        "simulated_messages": "messages that arrived, warm-up included",
        "elapsed_s": "seconds that the simulation took, without those of compile_s",
        "compile_s": "seconds that compiling the simulator for this machine took: of a first run",
        "replicated_queues": "of model world: masters of each replicated queue, and writes that were answered 0",
        "verdicts": "of model world: what was made of each rule, the first violation and a schedule that replays it",
        "worked_queues": "-o json and yaml, of model queue: duplicates, backlog, age of the oldest, time to drain, "
        "use of consumers, requests, cost, messages within the objective",
        "workers": "-o json and yaml, of model queue: each consumer with the time that it was there and worked",
        "queues": "one entry a line of the table, as csv and jsonl print them",
        "confidence": "with --confidence: the level of the intervals",
        "intervals": "-o json and yaml, with --confidence: queue, measure, mean, half_width (null: too few), method, "
        "messages, left_out_messages (start-up), warning",
        "figure": "with --rare: what was asked for",
        "value": "with --rare: messages lost of all that were lost, delivered or elided, or the probability that a run "
        "loses one or is filled to the depth; null: no run saw it",
        "low": "with --rare: the interval's lower end; null where too few runs saw it",
        "high": "with --rare: the interval's upper end; null as the lower one",
        "half_width_ratio": "with --rare: half the interval's width relative to the value; null as the lower end",
        "split_runs": "with --rare: independent split runs that the value is made of",
        "split_runs_that_saw_it": "with --rare: those with a loss, or with the depth",
        "trajectories": "with --rare: branches of all split runs",
        "pilot_messages": "with --rare: messages simulated to find where runs are split",
        "thresholds": "with --rare: depths at which runs are split, or how near to a loss, as a list",
        "factors": "with --rare: into how many trajectories a run goes on at each, as a list",
        "deepest": "with --rare: how far pilot runs came, of needed",
        "needed": "with --rare: the depth, or the limit, at which what is asked for happens",
        "plain_runs_needed": "with --rare: plain runs that give an interval as narrow; null without an interval",
        "plain_messages_needed": "with --rare: messages of those",
        **{name: text for name, text in SparkSummary.field_help.items() if name not in {"tables", "run_id"}},
    }


@dataclass(frozen=True)
class Simulated(SimulateResult):
    """A finished run and its figures."""

    scenario: str
    model: str
    description: str
    folder: str
    status: str
    run_id: str
    seed: int
    replications: int
    done_replications: int
    log_level: str
    warm_up_ns: int
    horizon_ns: int
    simulated_ns: int
    simulated_messages: int
    elapsed_s: float
    compile_s: float
    fingerprint: str
    reproduce: str
    computed_by: str
    by: str
    clients: int
    queues: tuple[QueueFigures, ...]
    notes: tuple[str, ...] = ()
    happenings: tuple[Happening, ...] = ()
    verdicts: tuple[RuleVerdict, ...] = ()
    replicated_queues: tuple[ReplicatedQueue, ...] = ()
    worked_queues: tuple[WorkedQueue, ...] = ()
    workers: tuple[QueueWorker, ...] = ()
    intervals: tuple[RunInterval, ...] = ()
    confidence: float | None = None
    report: RunReport | None = field(default=None, repr=False, compare=False)
    """The run itself, for calling programs; not part of the document."""

    @property
    def exit_status(self) -> ExitStatus:
        """Return INTERRUPTED for a stopped run, NO if a cluster broke a rule, else DONE."""
        if any(each.violations for each in self.verdicts):
            return ExitStatus.NO
        return ExitStatus.DONE if self.status == "complete" else ExitStatus.INTERRUPTED

    def document(self) -> Plain:
        """Return the run under stable names."""
        fields: dict[str, Plain] = {
            name: getattr(self, name) for name in self.__dataclass_fields__ if name not in _OWN_PLACE
        }
        times: dict[str, Plain] = {name: round(getattr(self, name), 3) for name in ("elapsed_s", "compile_s")}
        return {
            **fields,
            **times,
            "queues": self.rows(),
            "events": happening_rows(self.happenings),
            **cluster_fields(self.replicated_queues, self.verdicts),
            **worked_fields(self.worked_queues, self.workers),
            "notes": list(self.notes),
            "intervals": interval_rows(self.intervals),
        }

    def rows(self) -> Sequence[Row]:
        """Return one row per client or group, and queue."""
        return [figures_row(each) for each in self.queues]

    def blocks(self) -> Sequence[Block]:
        """Return the tables and texts, in the order in which operators look for them."""
        blocks: list[Block] = [TextBlock(self._headline())]
        if self.description:
            blocks.append(TextBlock(self.description, "faint"))
        if self.status != "complete":
            blocks.append(
                TextBlock(
                    f"Stopped early: {self.done_replications} of {self.replications} replications began, "
                    f"{short_duration(self.simulated_ns)} were simulated. These are the figures up to there.",
                    "bad",
                )
            )
        blocks += queue_blocks(self.queues, OWN_NAMES.get(self.model), grouped=self.by == "group")
        blocks += loss_blocks(self.queues, OWN_NAMES.get(self.model))
        blocks += waiting_blocks(self.queues)
        blocks += happening_blocks(self.happenings)
        blocks += cluster_blocks(self.replicated_queues, self.verdicts, is_summed=self.replications > 1)
        blocks += worked_blocks(self.worked_queues, self.workers, is_summed=self.replications > 1)
        blocks += self._repeats()
        blocks += interval_blocks(self.intervals, self.confidence)
        blocks += [TextBlock(note, "faint") for note in self.notes]
        blocks.append(TextBlock(f"Run folder: {self.folder}"))
        return blocks

    def _headline(self) -> str:
        several = f", {self.replications} replications" if self.replications > 1 else ""
        source = "Spark, from the event log" if self.computed_by == "spark" else "the simulator's own counters"
        rate = self.simulated_messages / max(self.elapsed_s, 1e-9)
        speed = f"{rate / 1e6:.1f} M/s" if rate >= 1e6 else f"{rate / 1e3:,.0f} k/s"
        before = f", after {self.compile_s:.0f} s of compiling" if self.compile_s >= COMPILE_SHOWN_S else ""
        return (
            f"{self.scenario}: {MODEL_NAMES[self.model]}, {self.clients:,} client{'s' * (self.clients != 1)}, "
            f"{short_duration(self.horizon_ns)}, seed {self.seed}{several}\n"
            f"{self.simulated_messages:,} messages in {self.elapsed_s:.2f} s ({speed}){before}; figures by {source}."
        )

    def _repeats(self) -> list[Block]:
        """Return the numbers of repeated deliveries (after a disconnect, eviction, rejection or time-out)."""
        repeated = [each for each in self.queues if each.redelivered_messages]
        lines = [
            f"{place_of(each)}: {each.redelivered_messages:,} deliveries were repeats."
            if each.redelivered_messages != 1
            else f"{place_of(each)}: one delivery was a repeat."
            for each in repeated[:_MOST_LOSSES]
        ]
        return [TextBlock("\n".join(lines))] if lines else []


_MOST_LOSSES = 15


@dataclass(frozen=True)
class ReadyScenario:
    """A scenario that comes with qsctl."""

    name: str
    model: str
    description: str
    file: str


@dataclass(frozen=True)
class ReadyScenarios(ListResult, SimulateResult):
    """The results of `--list`."""

    scenarios: tuple[ReadyScenario, ...]
    command: str = "qsctl simulate NAME"
    """The command that runs one of the scenarios."""

    def rows(self) -> Sequence[Row]:
        """Return one row per scenario."""
        return [fields_of(each) for each in self.scenarios]

    def blocks(self) -> Sequence[Block]:
        """Return a table of names, models and descriptions."""
        columns = [Column("name", "Scenario"), Column("model", "Model"), Column("description", "What it shows")]
        return [TableBlock(columns, self.rows()), TextBlock(f"Run one with: {self.command}", "faint")]
