"""qsctl: administer, run and simulate message queues, and summarize the runs on Spark.

For programs there are, beside the command line:

- `qsctl.Service`: a service as an object, embedded in a directory or over DDS, with the commands' verbs and rows.
- `qsctl.CommandResult`: what its methods return: rows, and tables of Arrow, pandas and polars.
- `qsctl.simulate(…)`: a scenario into a run folder.
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
    "Service": "qsctl.programs.service",
    "simulate": "qsctl.sim.simulate",
}

__all__ = ["CommandResult", "ConsumedSample", "Service", "__version__", "simulate"]


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
