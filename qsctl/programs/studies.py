"""`qsctl.sweep`, `size`, `compare`, `replay` and `what_if`: studies of many simulated runs.

The runs are simulated in this process, in `workers` processes, or on the Spark cluster `master`, with the same results.
A function may be called from any thread, also from several at the same time; its callbacks are called in the calling
thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike, fspath
from typing import TYPE_CHECKING, Literal, TypeAlias

from qsctl.cli.simulation.options.recorded import RecordedOptions, ReplayModel
from qsctl.errors import UsageError
from qsctl.programs._arguments import (
    PathName,
    Texts,
    at_least,
    path_text,
    path_texts,
    scenario_changes,
    spark_or_processes,
    texts,
)
from qsctl.programs.called import ProgressCallback, ShouldStop, assignments, called
from qsctl.programs.command_result import CommandResult
from qsctl.programs.sweep_result import SweepResult

if TYPE_CHECKING:
    from qsctl.cli.simulation.compare import Compared
    from qsctl.cli.simulation.results.replay import ReplayResult
    from qsctl.cli.simulation.results.what_if import WhatIf
    from qsctl.cli.simulation.size import Sized

Model: TypeAlias = Literal["replay", "solace", "tibco"]


def sweep(
    scenario: PathName | None = None,
    *,
    grid: Mapping[str, Iterable[object]],
    recording: PathName | None = None,
    model: Model = "replay",
    config: Sequence[PathName] = (),
    config_name: str | None = None,
    settings: Mapping[str, object] | None = None,
    variables: Mapping[str, str] | None = None,
    replications: int = 5,
    seed: int | None = None,
    common_random_numbers: bool = False,
    confidence: float = 0.95,
    precision: Texts = (),
    max_replications: int = 1_000,
    best: str | None = None,
    front: str | None = None,
    out: PathName | None = None,
    workers: int = 1,
    master: str = "",
    conf: Mapping[str, str] | None = None,
    progress: ProgressCallback | None = None,
    stop: ShouldStop | None = None,
) -> SweepResult:
    """Simulate a scenario at every point of a grid, as `qsctl sweep` does.

    Points whose results `out` has are not simulated again; a call with the same `out` thus continues a sweep, or adds
    values.

    Args:
        scenario: a file, or the name of a built-in scenario.
        grid: values of each varied setting by its path, as in {"profile[trading]/queue[D-1]/max-depth": [500, 1000]},
            or by a short name, as in {"max-depth(D-1)": [500, 1000]}.
        recording: run folder of a recording, which is replayed instead of a scenario.
        model: model that receives the load of the recording.
        config: configuration files of the service, instead of the recorded configuration.
        config_name: name of the `<queuing_service>` in these files; None: the only one.
        settings: values by their paths, as with `--set`.
        variables: values of `$(NAME)` in the file, as with `--var`.
        replications: number of repetitions per grid point.
        seed: seed of the random numbers; None: the scenario's.
        common_random_numbers: use the same arrivals at every point, which narrows the intervals of differences.
        confidence: confidence level of the intervals, between 0 and 1.
        precision: target half widths, reached by running more repetitions, as in `5%` or `time_to_done_p99(Orders)=5%`.
        max_replications: largest number of repetitions per point with `precision`.
        best: measure by which the best points are selected, as in `time_in_queue_p99(D-1)`.
        front: two measures whose Pareto front is selected.
        out: folder of the results, by path or URI; None: `qsctl-sweeps/SCENARIO`.
        workers: number of processes; 1: this process alone. A program that uses more guards its start by
            `if __name__ == "__main__"`.
        master: Spark master to use instead of processes, such as `local[*]`; only this starts Java.
        conf: settings of Spark.
        progress: called with the number of completed repetitions.
        stop: an event or a function; when it is set or returns True, the sweep ends soon, and its results so far stay
            in `out`.

    Returns:
        A row for each point, queue and measure, with `mean` and `half_width`; `plot("depths.svg")` draws them.

    Raises:
        NotFound: the scenario or recording does not exist.
        InvalidInput: the scenario or a value is invalid, or `out` holds another sweep.
        UsageError: a path of the grid or of `settings` does not exist, or an argument is out of its range.
        Interrupted: `stop` ended it.

    >>> import qsctl
    >>> table = qsctl.sweep(
    ...     "burst", grid={"max-depth(D-1)": [500, 2000]}, settings={"horizon": "20ms"}, replications=2, out="swept"
    ... )
    >>> table.content.points, sorted({row["replications"] for row in table})
    (2, [2])
    """
    from qsctl.cli.simulation import sweep as command

    axes = [f"{path}={','.join(map(str, values))}" for path, values in grid.items()]
    found = called(
        lambda: command.sweep(
            axes, path_text(scenario), path_text(recording), replications=replications, seed=seed,
            common=common_random_numbers, confidence=confidence, precision=texts(precision),
            most=at_least(2, max_replications, "max_replications"), best=best, front=front, out=path_text(out),
            recorded=_recorded(model, config, config_name), changes=scenario_changes(settings, variables),
            cluster=spark_or_processes(workers, master, conf),
        ),
        progress=progress, should_stop=stop,
    )  # fmt: skip
    return SweepResult(found.content, found.notes)


def size(
    scenario: PathName | None = None,
    *,
    target: Texts,
    vary: Texts,
    recording: PathName | Sequence[PathName] | None = None,
    model: Model = "replay",
    config: Sequence[PathName] = (),
    config_name: str | None = None,
    settings: Mapping[str, object] | None = None,
    variables: Mapping[str, str] | None = None,
    confidence: float = 0.95,
    max_replications: int | None = None,
    assume: Texts = (),
    seed: int | None = None,
    client_profile: Texts = (),
    workers: int = 1,
    master: str = "",
    conf: Mapping[str, str] | None = None,
    progress: ProgressCallback | None = None,
    stop: ShouldStop | None = None,
) -> CommandResult[Sized]:
    """Find the smallest settings that meet targets, as `qsctl size` does.

    If no setting in the range meets them, `content.sizing.answer` is None and `exit_status` is 1.

    Args:
        scenario: a file, or the name of a built-in scenario.
        target: conditions that must all hold, as in `discards(D-1)=0` or `time_in_queue_p99(D-1)<1s`.
        vary: settings to find, as in `max-depth(D-1)` or `max-depth(D-1)=100..20000`.
        recording: run folder of a recording, which is replayed instead of a scenario; if several, each replication has
            the load of another one.
        model: model that receives the load of the recording.
        config: configuration files of the service, instead of the recorded configuration.
        config_name: name of the `<queuing_service>` in these files; None: the only one.
        settings: values by their paths, as with `--set`.
        variables: values of `$(NAME)` in the file, as with `--var`.
        confidence: probability that the statements about the answer are true, between 0 and 1.
        max_replications: largest number of replications of a candidate; None: 160, or as many as the targets need.
        assume: assumed upper bounds of measures in any run, as in `time_in_queue_p99(D-1)<=1s`.
        seed: seed of the random numbers; None: the scenario's.
        client_profile: files whose values replace those of the scenario's profile, as with `--client-profile`.
        workers: number of processes; 1: this process alone. A program that uses more guards its start by
            `if __name__ == "__main__"`.
        master: Spark master to use instead of processes, such as `local[*]`; only this starts Java.
        conf: settings of Spark.
        progress: called with the number of candidates tried; the total is unknown, and reported as one more.
        stop: an event or a function; when it is set or returns True, the search ends soon.

    Returns:
        A row for each candidate, with `settings`, `met` and `evidence`; `to_dict()["sentence"]` is the answer in words.

    Raises:
        NotFound: the scenario or recording does not exist.
        InvalidInput: the scenario or a value is invalid.
        UsageError: a target, a setting or another argument is invalid.
        Interrupted: `stop` ended it.

    >>> import qsctl
    >>> sized = qsctl.size(
    ...     "burst", target="P(discards(D-1)>0)<90%", vary="max-depth(D-1)=500,100000", settings={"horizon": "20ms"},
    ...     confidence=0.9,
    ... )
    >>> [row["met"] for row in sized if row["chosen"]]
    [True]
    """
    from qsctl.cli.simulation import size as command

    return called(
        lambda: command.size(
            texts(target), texts(vary), path_text(scenario), path_texts(recording), confidence=confidence,
            most=max_replications, assume=texts(assume), seed=seed, client_profile=texts(client_profile),
            recorded=_recorded(model, config, config_name), changes=scenario_changes(settings, variables),
            cluster=spark_or_processes(workers, master, conf),
        ),
        progress=progress, should_stop=stop,
    )  # fmt: skip


def compare(
    a: PathName,
    b: PathName | None = None,
    *,
    confidence: float = 0.95,
    client_profile: Sequence[str] = (),
    replications: int = 5,
    seed: int | None = None,
    out: PathName | None = None,
    settings: Mapping[str, object] | None = None,
    variables: Mapping[str, str] | None = None,
    progress: ProgressCallback | None = None,
    stop: ShouldStop | None = None,
) -> CommandResult[Compared]:
    """Compare two runs, two sweeps, or a scenario with two client profiles, as `qsctl compare` does.

    Args:
        a: run folder or sweep folder, by path or URI; with `client_profile` a scenario.
        b: the other folder, of the same kind.
        confidence: confidence level of the intervals of the differences, between 0 and 1.
        client_profile: two files with client profiles, with each of which the scenario is simulated.
        replications: number of replications of each side, with `client_profile`.
        seed: seed of the random numbers, with `client_profile`; None: the scenario's.
        out: folder of the runs a and b, with `client_profile`; None: new ones in `qsctl-runs`.
        settings: values by their paths, as with `--set`, with `client_profile`.
        variables: values of `$(NAME)` in the scenario, with `client_profile`.
        progress: called with the number of completed replications, with `client_profile`.
        stop: an event or a function; when it is set or returns True, the simulation ends soon.

    Returns:
        A row for each point, queue and measure, with `difference`, `half_width` and `better`; `content.sentence` is the
        answer in words.

    Raises:
        NotFound: a folder does not exist.
        InvalidInput: a folder is neither a run nor a sweep, or the two differ in kind.
        UsageError: one side is missing, or an argument is out of its range.
        Interrupted: `stop` ended it.

    >>> import qsctl
    >>> sides = [
    ...     qsctl.simulate(
    ...         "burst", settings={"horizon": "20ms", "profile[trading]/queue[D-1]/max-depth": depth}, replications=2,
    ...         out=f"depth-{depth}",
    ...     )
    ...     for depth in ("500", "5000")
    ... ]
    >>> compared = qsctl.compare(str(sides[0].folder), str(sides[1].folder))
    >>> {row["better"] for row in compared} <= {"A", "B", "same", "undecided", "not compared"}
    True
    """
    from qsctl.cli.simulation import compare as command

    return called(
        lambda: command.compare(
            fspath(a), path_text(b), confidence=confidence, client_profile=texts(client_profile),
            replications=at_least(1, replications, "replications"), seed=seed, out=path_text(out),
            changes=scenario_changes(settings, variables),
        ),
        progress=progress, should_stop=stop,
    )  # fmt: skip


def replay(
    recording: PathName,
    *,
    out: PathName | None = None,
    seed: int | None = None,
    replications: int = 1,
    model: Model = "replay",
    config: Sequence[PathName] = (),
    config_name: str | None = None,
    client_profile: Texts = (),
    settings: Mapping[str, object] | None = None,
    variables: Mapping[str, str] | None = None,
    workers: int = 1,
    progress: ProgressCallback | None = None,
    stop: ShouldStop | None = None,
) -> CommandResult[ReplayResult]:
    """Replay a recording of a service with other settings, or in a broker, as `qsctl replay` does.

    Args:
        recording: its run folder, by path or URI.
        out: the run folder that is written; None: a new one in `qsctl-runs`.
        seed: seed of the random numbers that the recording does not determine; None: 1.
        replications: number of replications, each with its own random numbers.
        model: model that receives the load: the service itself, or clients of a broker.
        config: configuration files of the service, instead of the recorded configuration.
        config_name: name of the `<queuing_service>` in these files; None: the only one.
        client_profile: client profiles of a broker, as with `--client-profile`.
        settings: values by their paths, as in {"queue[OrderQueue]/consumers": 8}.
        variables: values of `$(NAME)` in the files of `config`.
        workers: number of processes; 1: this process alone.
        progress: called with the number of completed replications, which includes fractions.
        stop: an event or a function; when it is set or returns True, the replay ends soon and its folder is marked as
            partial.

    Returns:
        A row for each difference, or for each figure with its recorded value.

    Raises:
        NotFound: the recording does not exist, or is not a run.
        InvalidInput: the recording cannot be replayed, or a value is invalid.
        UsageError: a path of `settings` does not exist, or arguments exclude each other.

    >>> import qsctl
    >>> qsctl.replay("nowhere")
    Traceback (most recent call last):
    qsctl.errors.NotFound: nowhere is not a folder
    """
    from qsctl.cli.simulation import replay as command

    return called(
        lambda: command.replay(
            fspath(recording), path_text(out), seed, at_least(1, replications, "replications"), texts(client_profile),
            recorded=_recorded(model, config, config_name), changes=scenario_changes(settings, variables),
            workers=at_least(1, workers, "workers"),
        ),
        progress=progress, should_stop=stop,
    )  # fmt: skip


def what_if(
    broker: str | None = None,
    *,
    vary: str = "",
    target: str = "",
    listed: PathName | Sequence[PathName] = (),
    queue: str = "",
    arrivals: str = "",
    work: str = "",
    consumers: int | None = None,
    settings: Mapping[str, object] | None = None,
    horizon: str = "",
    replications: int = 8,
    confidence: float = 0.95,
    seed: int = 1,
    out: PathName = "",
    progress: ProgressCallback | None = None,
    stop: ShouldStop | None = None,
) -> CommandResult[WhatIf]:
    """Simulate the effect of a setting of a broker's queue, as `qsctl what-if` does.

    Args:
        broker: the preset with the names and defaults of the queue's settings, such as `sqs`; None: that of `listed`.
        vary: the setting with its values, in the broker's notation, as in `visibility=30s..600s`; empty: the unchanged
            queue.
        target: the condition that is sufficient, as in `duplicates<1%`; empty: chosen by the setting.
        listed: files with listings of the broker's tools.
        queue: name of the queue in the listings; empty: the only one.
        arrivals: rate of arrivals, as in `0.033/s`; empty: as listed, else for a utilization of 70 %.
        work: time that a consumer works on a message, as in `lognormal:45s,p99=280s`.
        consumers: number of consumers; None: as listed, else for a utilization of at most 70 %.
        settings: other settings, by the broker's names, as in {"max_ack_pending": 100}.
        horizon: simulated time of a run; empty: long enough for 15,000 messages.
        replications: number of runs of each value.
        confidence: probability that all intervals of the answer hold, between 0 and 1.
        seed: seed of the random numbers.
        out: file to which the scenario is written; empty: a new file in the working directory, named after the queue.
        progress: called with the number of completed runs.
        stop: an event or a function; when it is set or returns True, the runs end soon.

    Returns:
        A row for each value and measure, with `mean`, `half_width`, `in_force` and `chosen`; `to_dict()["sentence"]` is
        the answer in words.

    Raises:
        UsageError: no queue is named, its work is unknown, or an argument is invalid.
        NotFound: a file does not exist, or lists no queue of this name.
        Interrupted: `stop` ended it.

    >>> import qsctl
    >>> answer = qsctl.what_if(
    ...     "sqs", vary="visibility=30s,600s", arrivals="0.1/s", work="lognormal:45s,p99=280s", horizon="2h",
    ...     replications=2, out="sqs.xml",
    ... )
    >>> sorted({row["value"] for row in answer})
    ['30s', '600s']
    """
    from qsctl.cli.simulation import what_if as command
    from qsctl.cli.simulation.options.foreign_queue import ForeignQueueOptions
    from qsctl.sim.brokers.kinds import BrokerKind

    if broker is not None and broker not in set(BrokerKind):
        raise UsageError(f"broker {broker!r} is not a preset", remedy=f"Give one of {', '.join(BrokerKind)}.")
    files = [fspath(listed)] if isinstance(listed, str | PathLike) else [fspath(file) for file in listed]
    options = ForeignQueueOptions(
        None if broker is None else BrokerKind(broker), files or None, queue, arrivals, work,
        "" if consumers is None else str(consumers), assignments(settings) or None,
    )  # fmt: skip
    return called(
        lambda: command.what_if(
            vary, target, horizon, at_least(2, replications, "replications"), confidence, seed, fspath(out),
            queue=options,
        ),
        progress=progress, should_stop=stop,
    )  # fmt: skip


def _recorded(model: str, config: Sequence[PathName], config_name: str | None) -> RecordedOptions:
    if model not in set(ReplayModel):
        raise UsageError(f"model {model!r} is not one", remedy=f"Give one of {', '.join(ReplayModel)}.")
    return RecordedOptions(ReplayModel(model), [fspath(file) for file in config] or None, config_name)
