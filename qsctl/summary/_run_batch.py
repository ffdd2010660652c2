"""Runs that are summarized in one plan: those with a message log, or those without.

Decides the number of each run in frames, and the SQL expressions that differ between runs. The facts that measures need
of the runs are collected here once, from `run.json` and the counters, before Spark reads anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from qsctl.eventlog.reader import part_batches
from qsctl.sim.scenario.scenario import Model
from qsctl.summary.measures.by_run import RUN_NUMBER, expression_by_run
from qsctl.summary.measures.done import AcknowledgedRows, acknowledged_in
from qsctl.summary.measures.observation import Holding, HoldingByRun, Observation, listed_numbers
from qsctl.summary.measures.tables import Names
from qsctl.summary.recorded_run import SummarizedRun, holding_of, marks_of


@dataclass(frozen=True)
class RunBatch:
    """Runs of one kind, in the order of their `run_number`.

    Args:
        runs: at least one; all have a message log, or none has.
        labels: the names of the runs in the tables.
        clients: names of the clients whose messages count; empty: all.
    """

    runs: tuple[SummarizedRun, ...]
    labels: tuple[str, ...]
    clients: tuple[str, ...]

    @property
    def several(self) -> bool:
        """Return whether frames need a column for the run: there are several runs."""
        return len(self.runs) > 1

    @property
    def has_messages(self) -> bool:
        """Return whether the runs have message logs."""
        return self.runs[0].has_messages

    @property
    def message_rows(self) -> int:
        """Number of rows of all message logs."""
        return sum(run.message_rows for run in self.runs)

    @property
    def observation(self) -> Observation:
        """The observed part of each run."""
        if not self.several:
            return Observation(self.runs[0].warm_up_ns, self.runs[0].horizon_ns)
        return Observation(tuple(run.warm_up_ns for run in self.runs), tuple(run.horizon_ns for run in self.runs))

    @property
    def holding(self) -> Holding | HoldingByRun:
        """Return the queues that hold messages until they are acknowledged.

        Raises:
            Damaged: the scenario of a run is missing or was changed.
        """
        each = tuple(holding_of(run) for run in self.runs)
        return HoldingByRun(each) if self.several else each[0]

    @cached_property
    def _all_marks(self) -> pa.Table:
        return pa.concat_tables([marks_of(run, number) for number, run in enumerate(self.runs)])

    @cached_property
    def marks(self) -> pa.Table:
        """The marks, limits and observed times of the chosen clients' queues (`marks_of`)."""
        return self._of_chosen(self._all_marks) if self.clients else self._all_marks

    @cached_property
    def names(self) -> Names:
        """The names of runs and clients, and the start time of each run."""
        columns = [self._all_marks[name].to_pylist() for name in (RUN_NUMBER, "client_id", "client")]
        named = {(run, client_id): client for run, client_id, client in zip(*columns, strict=True)}
        clients = pa.table(
            {
                RUN_NUMBER: pa.array([run for run, _ in named], pa.int32()),
                "client_id": pa.array([client_id for _, client_id in named], pa.int32()),
                "client": pa.array(named.values(), pa.string()),
            }
        )
        started = (run.info.recording.started_at_ns if run.info.recording else None for run in self.runs)
        return Names(self.labels, clients, tuple(started))

    @property
    def chosen(self) -> str:
        """The SQL condition that a message, counter or event belongs to a chosen client."""
        if not self.clients:
            return "true"
        numbers: list[list[int]] = [[] for _ in self.runs]
        for row in self._of_chosen(self.names.clients).to_pylist():
            numbers[row[RUN_NUMBER]].append(row["client_id"])
        return expression_by_run([f"client_id in ({listed_numbers(each)})" if each else "false" for each in numbers])

    @property
    def acknowledged(self) -> AcknowledgedRows:
        """The messages that their models acknowledge."""
        return acknowledged_in(self.marks, comes_back=[run.info.model == Model.INTEGRATION for run in self.runs])

    @property
    def replications(self) -> pa.Table:
        """A row for each completed replication, with its run and the observed time."""
        rows = [
            (number, replication, run.horizon_ns - run.warm_up_ns)
            for number, run in enumerate(self.runs)
            for replication in run.replications
        ]
        numbers, replications, observed_ns = zip(*rows, strict=True)
        return pa.table(
            {
                RUN_NUMBER: pa.array(numbers, pa.int32()),
                "replication": pa.array(replications, pa.int32()),
                "observed_ns": pa.array(observed_ns, pa.int64()),
            }
        )

    def counters(self) -> pa.Table:
        """Return the counters of the chosen clients, read in this process since their files are small."""
        parts = []
        for number, run in enumerate(self.runs):
            batches = [
                batch
                for part in run.parts["counters"]
                for batch in part_batches(part.path, part.replication, "counters")
            ]
            rows = pa.Table.from_batches(batches).drop_columns(["run_id"])
            parts.append(rows.append_column(RUN_NUMBER, pa.array([number] * rows.num_rows, pa.int32())))
        return self._of_chosen(pa.concat_tables(parts, promote_options="permissive"))

    def _of_chosen(self, rows: pa.Table) -> pa.Table:
        if not self.clients:
            return rows
        return rows.filter(pc.is_in(rows["client"].cast(pa.string()), pa.array(self.clients)))


def labels_of(runs: Sequence[SummarizedRun]) -> list[str]:
    """Return each run's name in the column `run_id`: its id, or its folder's name if several runs have the same id."""
    ids = [run.info.run_id for run in runs]
    labels: list[str] = []
    for run in runs:
        label = run.info.run_id if ids.count(run.info.run_id) == 1 else f"{run.info.run_id} {run.folder.name}"
        labels.append(f"{label} {len(labels) + 1}" if label in labels else label)
    return labels


def facts_of(runs: Sequence[SummarizedRun], labels: Sequence[str]) -> pa.Table:
    """Return a row of the schema `tables.RUNS` for each run."""
    started = [run.info.recording.started_at_ns // 1000 if run.info.recording else None for run in runs]
    return pa.table(
        {
            "run_id": pa.array(labels, pa.string()),
            "folder": pa.array([str(run.folder) for run in runs], pa.string()),
            "scenario": pa.array([run.info.scenario for run in runs], pa.string()),
            "model": pa.array([run.info.model for run in runs], pa.string()),
            "seed": pa.array([run.info.seed for run in runs], pa.int64()),
            "is_complete": pa.array([run.info.complete for run in runs], pa.bool_()),
            "level": pa.array([run.level for run in runs], pa.string()),
            "warm_up_ns": pa.array([run.warm_up_ns for run in runs], pa.int64()),
            "horizon_ns": pa.array([run.horizon_ns for run in runs], pa.int64()),
            "replications": pa.array([len(run.replications) for run in runs], pa.int64()),
            "started_at": pa.array(started, pa.timestamp("us", "UTC")),
        }
    )


def batches_of(runs: Sequence[SummarizedRun], labels: Sequence[str], clients: Sequence[str]) -> list[RunBatch]:
    """Return a batch of the runs with a message log and a batch of those without; an empty batch is omitted."""
    named = list(zip(runs, labels, strict=True))
    found = []
    for has_messages in (True, False):
        chosen = [(run, label) for run, label in named if run.has_messages is has_messages]
        if chosen:
            of_runs, of_labels = zip(*chosen, strict=True)
            found.append(RunBatch(of_runs, of_labels, tuple(clients)))
    return found
