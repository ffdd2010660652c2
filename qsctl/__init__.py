"""qsctl: administer, run and simulate message queues, and summarize the runs on Spark.

For programs there are, beside the command line:

- `qsctl.Service`: a service as an object, embedded in a directory, over DDS, or started for the program, with the
  commands' verbs and rows.
- `qsctl.validate(…)`, `qsctl.render(…)`, `qsctl.diff(…)`: configuration files, judged, resolved and compared.
- `qsctl.simulate(…)`: a scenario into a run folder, or the estimate of a rare figure of it.
- `qsctl.sweep(…)`, `qsctl.size(…)`, `qsctl.compare(…)`, `qsctl.replay(…)`, `qsctl.what_if(…)`: questions that many
  runs answer, in this process unless `workers` or `master` names more.
- `qsctl.load(…)`: the tables of a run, a recording or a sweep, for Arrow, pandas, Polars and DuckDB, without Java.
- `qsctl.lake_rows(…)`: a table of a run or a sweep as tables of lakes have it, batch by batch.
- `qsctl.write_report(…)`: a run, a sweep or an answer as a page or a picture.
- `qsctl.explain(…)`: a setting of a service, or the discards and slow subscribers of a broker or a run.
- `qsctl.CommandResult`: what these return: rows, and tables of Arrow, pandas and polars; a `qsctl.SimulatedRun` has
  its folder and counters besides, a `qsctl.SweepResult` is drawn by `plot`.
- `qsctl.summary`: the tables of a run, on Spark: `summarize(spark, …)`.
- `qsctl.client` and `qsctl.client.aio`: producers, consumers, requesters and repliers of a queuing service.
- `qsctl.errors`: what they raise.

These names, and what `__all__` of those packages lists, stay from version to version. The rest of the modules serve
the command line and one another, and may change.

>>> import qsctl
>>> run = qsctl.simulate("burst", settings={"horizon": "20ms"}, replications=2, seed=7, out="burst-7")
>>> str(run.info.status), run.info.seed, len(run.info.done)
('complete', 7, 2)
>>> sum(run.counters["arrived_messages"].to_pylist()) == run.info.arrived_messages > 0
True
>>> qsctl.simulate("burst", settings={"horizon": "20ms"}, replications=2, seed=7, out="again").info.fingerprint == (
...     run.info.fingerprint
... )
True
"""

from importlib import import_module

_HOMES = {
    "CommandResult": "qsctl.programs.command_result",
    "ConsumedSample": "qsctl.programs.consumed_sample",
    "LoadedFolder": "qsctl.programs.loaded",
    "LoadedTable": "qsctl.programs.loaded",
    "Service": "qsctl.programs.service",
    "SimulatedRun": "qsctl.programs.simulated_run",
    "SweepResult": "qsctl.programs.sweep_result",
    "compare": "qsctl.programs.studies",
    "diff": "qsctl.programs.configuration",
    "explain": "qsctl.programs.explanation",
    "lake_rows": "qsctl.programs.lake",
    "load": "qsctl.programs.loaded",
    "render": "qsctl.programs.configuration",
    "replay": "qsctl.programs.studies",
    "simulate": "qsctl.programs.simulation",
    "size": "qsctl.programs.studies",
    "sweep": "qsctl.programs.studies",
    "validate": "qsctl.programs.configuration",
    "what_if": "qsctl.programs.studies",
    "write_report": "qsctl.programs.reporting",
}

__all__ = [
    "CommandResult",
    "ConsumedSample",
    "LoadedFolder",
    "LoadedTable",
    "Service",
    "SimulatedRun",
    "SweepResult",
    "__version__",
    "compare",
    "diff",
    "explain",
    "lake_rows",
    "load",
    "render",
    "replay",
    "simulate",
    "size",
    "sweep",
    "validate",
    "what_if",
    "write_report",
]


def __getattr__(name: str) -> object:
    """Look a name up when it is first used: each takes longer than all else before the program's first line.

    Raises:
        AttributeError: there is no such name.
    """
    if name not in __all__:
        raise AttributeError(f"module 'qsctl' has no attribute {name!r}")
    found: object = _version() if name == "__version__" else getattr(import_module(_HOMES[name]), name)
    globals()[name] = found
    return found


def _version() -> str:
    from qsctl.distribution import installed

    return installed()[1]
