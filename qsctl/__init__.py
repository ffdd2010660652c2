"""qsctl: administer, run and simulate message queues, and summarize the runs on Spark.

For programs there are, beside the command line:

- `qsctl.Service`: a service as an object, embedded in a directory, over DDS, or started for the program, with the
  commands' verbs and rows.
- `qsctl.validate(…)`, `qsctl.render(…)`, `qsctl.diff(…)`: check, resolve and compare configuration files.
- `qsctl.simulate(…)`: simulate a scenario and write its run folder, or estimate the probability of a rare event.
- `qsctl.sweep(…)`, `qsctl.size(…)`, `qsctl.compare(…)`, `qsctl.replay(…)`, `qsctl.what_if(…)`: simulate many runs and
  compare them, in this process, or in the processes that `workers` or `master` names.
- `qsctl.load(…)`: the tables of a run, a recording or a sweep, for Arrow, pandas, Polars and DuckDB; Java is not
  needed.
- `qsctl.lake_rows(…)`: a table of a run or a sweep in the schema of the data-lake tables, as Arrow record batches.
- `qsctl.write_report(…)`: a run, a sweep or another result as an HTML page or a picture.
- `qsctl.explain(…)`: a setting of a service, or the discards and slow subscribers of a broker or a run.
- `qsctl.CommandResult`: the result of these functions: rows, and tables of Arrow, pandas and Polars; a
  `qsctl.SimulatedRun` also has the run folder and the counters, and `plot` of a `qsctl.SweepResult` draws a chart.
- `qsctl.summary`: the tables of a run, on Spark: `summarize(spark, …)`.
- `qsctl.client` and `qsctl.client.aio`: producers, consumers, requesters and repliers of a queuing service.
- `qsctl.errors`: the exceptions that these functions raise.

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
    """Import a public name when it is first used: each import takes longer than the rest of a program's start.

    Raises:
        AttributeError: the package has no public name `name`.
    """
    if name not in __all__:
        raise AttributeError(f"module 'qsctl' has no attribute {name!r}")
    found: object = _version() if name == "__version__" else getattr(import_module(_HOMES[name]), name)
    globals()[name] = found
    return found


def _version() -> str:
    from qsctl.distribution import installed

    return installed()[1]
