"""`qsctl.simulate`: simulate a scenario, or estimate the probability of a rare event in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from os import fspath
from typing import TYPE_CHECKING, Literal, TypeVar, cast, overload

from qsctl.errors import UsageError
from qsctl.programs._arguments import PathName, Texts, at_least, scenario_changes, spark, texts
from qsctl.programs.called import ProgressCallback, ShouldStop, WorkDone, called
from qsctl.programs.command_result import CommandResult
from qsctl.programs.simulated_run import SimulatedRun

if TYPE_CHECKING:
    from qsctl.cli.simulation.results.rare import RareResult
    from qsctl.cli.simulation.results.simulate import Simulated
    from qsctl.eventlog.location import Location
    from qsctl.sim.replication import ReplicationProgress

NameT = TypeVar("NameT", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class RunProgress(WorkDone):
    """Progress of a run in replications, with the current replication; its fields are 0 before the run begins."""

    replication: int = 0
    simulated_ns: int = 0
    horizon_ns: int = 0
    messages: int = 0


@overload
def simulate(
    scenario: PathName | None = None,
    *,
    client_profile: Texts = (),
    settings: Mapping[str, object] | None = None,
    variables: Mapping[str, object] | None = None,
    seed: int | None = None,
    replications: int | None = None,
    level: str | None = None,
    by: Literal["client", "group", "queue"] | None = None,
    confidence: float | None = None,
    precision: Texts = (),
    rare: None = None,
    out: PathName | Location | None = None,
    workers: int = 1,
    master: str = "",
    conf: Mapping[str, str] | None = None,
    progress: Callable[[RunProgress], None] | None = None,
    stop: ShouldStop | None = None,
) -> SimulatedRun: ...


@overload
def simulate(
    scenario: PathName | None = None,
    *,
    client_profile: Texts = (),
    settings: Mapping[str, object] | None = None,
    variables: Mapping[str, object] | None = None,
    seed: int | None = None,
    replications: int | None = None,
    confidence: float | None = None,
    precision: Texts = (),
    rare: str,
    workers: int = 1,
    progress: ProgressCallback | None = None,
    stop: ShouldStop | None = None,
) -> CommandResult[RareResult]: ...


def simulate(
    scenario: PathName | None = None,
    *,
    client_profile: Texts = (),
    settings: Mapping[str, object] | None = None,
    variables: Mapping[str, object] | None = None,
    seed: int | None = None,
    replications: int | None = None,
    level: str | None = None,
    by: str | None = None,
    confidence: float | None = None,
    precision: Texts = (),
    rare: str | None = None,
    out: PathName | Location | None = None,
    workers: int = 1,
    master: str = "",
    conf: Mapping[str, str] | None = None,
    progress: Callable[[RunProgress], None] | None = None,
    stop: ShouldStop | None = None,
) -> SimulatedRun | CommandResult[RareResult]:
    """Simulate a scenario and write a run folder, or estimate the probability of a rare event, as `qsctl simulate`
    does.

    The same scenario, settings and seed give the same run, with any number of workers.

    Args:
        scenario: a file, or the name of a built-in scenario (`qsctl simulate --list`); None: `burst`.
        client_profile: files whose values replace those of the scenario's profile, as in "trading=trading.json".
        settings: values by their paths, as with `--set`: {"horizon": "2s", "group[desks]/count": 40}.
        variables: values of `$(NAME)` in the file, as with `--var`.
        seed: seed of the random numbers; None: the scenario's.
        replications: number of replications; with `precision` the largest number, with `rare` the number of split runs;
            None: the scenario's, or as many as `rare` and `precision` need.
        level: level of the event log: counters, messages or events; None: the scenario's.
        by: rows by client or by group; None: by client, or by group if there are many clients.
        confidence: confidence level of `intervals`, between 0 and 1; None: no intervals, but 0.95 with `precision` or
            `rare`.
        precision: target half widths, reached by running more replications, as in "5%" or
            "time_to_done_p99(Orders)=5%".
        rare: a rare event, as in "P(lost(D-1)>0)", whose probability is estimated by splitting of runs, without a run
            folder.
        out: the run folder, which must be new or empty, by path or URI; None: a new one in `qsctl-runs`.
        workers: number of processors to use: by processes for replications, and where it exceeds these by threads for
            the independent ports of a broker; 1 uses this process and thread alone. A program that uses more guards its
            start by `if __name__ == "__main__"`.
        master: Spark master that computes the figures from the event log, such as `local[*]`; only this starts Java.
        conf: settings of Spark.
        progress: called about ten times a second.
        stop: an event or a function; when it is set or returns True, the run ends soon and its folder is marked as
            partial.

    Returns:
        A row for each queue of a client or group, with `folder`, `info` and `counters` of the run; with `rare` one row,
        with `value`, `low` and `high`.

    Raises:
        NotFound: the scenario does not exist.
        InvalidInput: the scenario, a value, a client profile or `out` is invalid; no file remains.
        UsageError: a path of `settings` does not exist, or an argument is invalid, or not allowed with `rare`.
        Interrupted: `stop` ended the run before it had a result.

    >>> import qsctl
    >>> run = qsctl.simulate(settings={"horizon": "20ms"}, replications=3, confidence=0.9, out="run")
    >>> [row["queue"] for row in run]
    ['G-1', 'D-1', 'D-2', 'D-3', 'C-1']
    >>> sum(run["delivered_messages"]) == sum(run.counters["delivered_messages"].to_pylist())
    True
    >>> sorted({each["queue"] for each in run.intervals if each["measure"] == "time_to_done_mean"})
    ['G-1']
    """
    from qsctl.cli.simulation import simulate as command

    if rare is not None and (master or conf):
        raise UsageError("master and conf are of a run folder, and rare writes none", remedy="Leave them out.")
    latest: list[ReplicationProgress] = []

    def report(work: WorkDone) -> None:
        assert progress is not None
        numbers = (work.done, work.total, work.elapsed_s, work.remaining_s)
        if latest:
            now = latest[0]
            progress(RunProgress(*numbers, now.replication, now.simulated_ns, now.horizon_ns, now.messages))
        else:
            progress(RunProgress(*numbers))

    def note(replication: ReplicationProgress) -> None:
        latest[:] = [replication]

    found = called(
        lambda: command.simulate(
            None if scenario is None else fspath(scenario), bool(master), None if out is None else str(out), seed,
            None if replications is None else at_least(1, replications, "replications"),
            _named(command.Level, level, "level"), _named(command.By, by, "by"), texts(client_profile), confidence,
            texts(precision), rare, changes=scenario_changes(settings, variables),
            workers=at_least(1, workers, "workers"), cluster=spark(master, conf),
        ),
        progress=None if progress is None else report, should_stop=stop, on_replication=note,
    )  # fmt: skip
    if rare is not None:
        return cast("CommandResult[RareResult]", found)
    return SimulatedRun(cast("Simulated", found.content), found.notes)


def _named(kinds: type[NameT], name: str | None, argument: str) -> NameT | None:
    """Return the enumeration member of a name; None without a name.

    Raises:
        UsageError: no member has this name.
    """
    if name is None:
        return None
    if name not in tuple(kinds):
        raise UsageError(f"{argument} {name!r} does not exist", remedy=f"Give one of {', '.join(kinds)}.")
    return kinds(name)
