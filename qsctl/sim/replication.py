"""One repetition in this process: step a model to its horizon and write its rows to the event log.

The model is stepped in slices of about a tenth of a second of real time, between which progress is reported and a stop
is obeyed. Slices do not change the rows: the log is cut into chunks by the number of rows alone.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from qsctl.eventlog.location import Location
from qsctl.eventlog.run_folder import FileInfo, Happening, ReplicatedQueue, ReplicationInfo, RuleVerdict
from qsctl.eventlog.schema import LogLevel
from qsctl.eventlog.tables import tables_of_level
from qsctl.eventlog.writer import ReplicationWriter
from qsctl.sim.figures import Figures, figures_of
from qsctl.sim.model import EVENT_NAMES, CompiledModel, ModelRun, Stop
from qsctl.sim.scenario.scenario import QUEUE_ORDER, Model, Scenario

if TYPE_CHECKING:
    import pyarrow as pa

SLICE_SECONDS: Final = 0.1
FIRST_SLICES: Final = 1000
"""The first slice is this part of the horizon, no longer than the maximum; later ones follow the speed."""
FIRST_SLICE_NS_MAX: Final = 10_000_000
"""Longest first slice: a thousandth of a horizon of days alone could take hours, in which nothing stops the run."""


@dataclass(frozen=True, slots=True)
class ReplicationProgress:
    """The progress of one repetition."""

    replication: int
    simulated_ns: int
    horizon_ns: int
    messages: int
    compiles: bool = False
    """True in a single report before the process compiles kernels, which takes up to a minute; else False."""
    memory_bytes: int = 0
    """The peak memory of the process so far."""


@dataclass(frozen=True, slots=True)
class ReplicationOutcome:
    """The result of one repetition."""

    info: ReplicationInfo
    files: dict[str, FileInfo]
    """Each file of the repetition, by its path within the run folder."""
    compile_s: float = 0.0
    """Seconds that this process spent on compiling kernels."""


def model_of(scenario: Scenario) -> CompiledModel:
    """Return the model that simulates the scenario; imports numba only when called."""
    match scenario.model:
        case Model.SOLACE:
            from qsctl.sim.egress import solace

            return solace
        case Model.TIBCO:
            from qsctl.sim.egress import tibco

            return tibco
        case Model.SHARED_READER_QUEUE:
            from qsctl.sim.service import run as shared_reader_queue

            return shared_reader_queue
        case Model.INTEGRATION:
            from qsctl.sim.integration import run as integration

            return integration
        case Model.WORLD:
            from qsctl.sim.world import run as world

            return world
        case Model.REPLAY:
            from qsctl.sim.replay import run as replay

            return replay
        case Model.QUEUE:
            from qsctl.sim.broker_queue import run as broker_queue

            return broker_queue


def queue_names(run: ModelRun) -> Sequence[str]:
    """Return the names that `LOG_ROW.queue` indexes: the five priority queues, or a run's own queue names."""
    names: Sequence[str] = getattr(run, "queue_names", QUEUE_ORDER)
    return [str(name) for name in names]


def simulate_counters(
    scenario: Scenario, replication: int = 0, *, model: CompiledModel | None = None, run_id: str = ""
) -> pa.Table:
    """Run one repetition without a folder and return its counters.

    A pure function of its arguments, without state of its own: it may run in several processes at the same time.

    Returns:
        A table of `eventlog.schema.COUNTERS`, one row for each client and queue.

    Raises:
        InvalidInput: the scenario cannot be simulated.
    """
    from qsctl.eventlog.columns import counter_table
    from qsctl.sim.scenario.forms.text import scenario_digest

    run = _counted(model or model_of(scenario), scenario, replication)
    return counter_table(run.counters(), run_id or scenario_digest(scenario))


def simulate_counters_and_happenings(
    scenario: Scenario, replication: int = 0
) -> tuple[list[dict[str, Any]], Sequence[Happening]]:
    """Run one repetition of a broker without a folder; return its counters as rows, and the kinds of its events."""
    from qsctl.eventlog.columns import counter_table

    run = _counted(model_of(scenario), scenario, replication)
    table = counter_table(run.counters(), "").drop_columns(["histogram_bucket", "histogram_count"])
    return table.to_pylist(), getattr(run, "happenings", ())


def simulate_figures(scenario: Scenario, replication: int = 0) -> list[Figures]:
    """Run one repetition without a folder and return its figures, one row a queue; see `simulate_counters`."""
    from qsctl.eventlog.columns import counter_table

    run = _counted(model_of(scenario), scenario, replication)
    return figures_of(counter_table(run.counters(), ""), *_of_cluster(run), getattr(run, "worked_queues", ()))


def _counted(model: CompiledModel, scenario: Scenario, replication: int) -> ModelRun:
    """Simulate a repetition to its end at log level counters and return the finished run."""
    run = model.prepare(scenario, replication, LogLevel.COUNTERS)
    while run.step(scenario.horizon_ns) is Stop.LOG_FULL:
        run.take_log()
    while run.finish() is Stop.LOG_FULL:
        run.take_log()
    return run


def _of_cluster(run: ModelRun) -> tuple[tuple[ReplicatedQueue, ...], tuple[RuleVerdict, ...]]:
    """Return a cluster's replicated queues and verdicts; two empty tuples for other models."""
    return getattr(run, "replicated_queues", ()), getattr(run, "verdicts", ())


def simulate_replication(
    scenario: Scenario,
    folder: Location,
    run_id: str,
    replication: int,
    *,
    progress: Callable[[ReplicationProgress], None] | None = None,
    stop: Callable[[], bool] = lambda: False,
    model: CompiledModel | None = None,
    threads: int = 1,
) -> ReplicationOutcome:
    """Run one repetition and write its part of the run folder.

    `threads` of them simulate the model's independent parts, where it has any (`egress.runs`); the number of threads
    does not change the bytes written.

    A stop, or Ctrl-C, ends it early: rows and counters up to that instant are written, and the outcome is marked as
    incomplete.
    """
    level = LogLevel(scenario.log_level)
    chosen = model or model_of(scenario)
    from qsctl.sim.kernel.compilations import compilation_reported, compilation_timed

    def compiles() -> None:
        if progress is not None:
            progress(ReplicationProgress(replication, 0, scenario.horizon_ns, 0, compiles=True))

    with compilation_timed() as compile_s, compilation_reported(compiles):
        run = chosen.prepare(scenario, replication, level)
        use_cores = getattr(run, "use_cores", None)
        if use_cores is not None:
            use_cores(threads)
        replays = scenario.model is Model.REPLAY or (hasattr(run, "take_tables") and level is LogLevel.EVENTS)
        always = tables_of_level(level, replays=replays)
        with ReplicationWriter(folder, replication, run_id, queue_names(run), EVENT_NAMES, always) as writer:
            log = _Log(run, writer)
            try:
                complete = _step_through(run, scenario, replication, log, progress, stop)
            except KeyboardInterrupt:
                complete = False
            while run.finish() is Stop.LOG_FULL:
                log.take()
            log.take()
            writer.counters(run.counters())
    replicated, verdicts = _of_cluster(run)
    info = ReplicationInfo(
        replication=replication,
        complete=complete,
        simulated_ns=run.now_ns,
        messages=run.messages,
        message_rows=writer.message_rows,
        event_rows=writer.event_rows,
        happenings=getattr(run, "happenings", ()),
        replicated_queues=replicated,
        verdicts=verdicts,
        worked_queues=tuple(getattr(run, "worked_queues", ())),
        workers=tuple(getattr(run, "workers", ())),
    )
    return ReplicationOutcome(info, writer.files, compile_s())


class _Log:
    def __init__(self, run: ModelRun, writer: ReplicationWriter) -> None:
        self._run = run
        self._writer = writer

    def take(self) -> None:
        """Move the rows and events that the model has logged since the last call to the writer."""
        self._writer.messages(self._run.take_log())
        self._writer.events(self._run.take_events())
        take_tables = getattr(self._run, "take_tables", None)
        if take_tables is not None:
            self._writer.tables(take_tables())


def _step_through(
    run: ModelRun,
    scenario: Scenario,
    replication: int,
    log: _Log,
    progress: Callable[[ReplicationProgress], None] | None,
    stop: Callable[[], bool],
) -> bool:
    """Step the run to its horizon; return False when it was stopped before."""
    horizon_ns = scenario.horizon_ns
    slice_ns = min(max(1, horizon_ns // FIRST_SLICES), FIRST_SLICE_NS_MAX)
    until_ns = 0
    while until_ns < horizon_ns:
        if stop():
            return False
        until_ns = min(horizon_ns, until_ns + slice_ns)
        began = time.perf_counter()
        while run.step(until_ns) is Stop.LOG_FULL:
            log.take()
        took = time.perf_counter() - began
        slice_ns = _next_slice(slice_ns, took)
        if progress is not None:
            progress(
                ReplicationProgress(replication, run.now_ns, horizon_ns, run.messages, memory_bytes=_most_memory())
            )
    return True


def _most_memory() -> int:
    """Return the peak memory of this process in bytes, libraries included."""
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return kilobytes if sys.platform == "darwin" else kilobytes << 10  # bytes there


def _next_slice(slice_ns: int, took_seconds: float) -> int:
    """Return a slice of simulated time that takes about `SLICE_SECONDS`, within a factor of eight of the last one."""
    factor = min(8.0, max(0.125, SLICE_SECONDS / max(took_seconds, 1e-6)))
    return max(1, int(slice_ns * factor))
