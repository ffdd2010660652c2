"""Arguments of the functions that simulate, as the options of the commands are given: one place for all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from typing import TypeAlias

from qsctl.cli.options import ScenarioChanges
from qsctl.cli.simulation.options.spark import ClusterOptions, LocalProcesses, TaskOptions
from qsctl.errors import UsageError
from qsctl.programs.called import assignments

PathName: TypeAlias = str | PathLike[str]
Texts: TypeAlias = str | Sequence[str]
"""One text, or several, as an option that may be repeated."""


def path_text(name: PathName | None) -> str | None:
    """Return a path as the text that the command has."""
    return None if name is None else fspath(name)


def path_texts(names: PathName | Sequence[PathName] | None) -> list[str] | None:
    """Return one path, or several, as the texts of an option that may be repeated."""
    if names is None:
        return None
    return [fspath(names)] if isinstance(names, str | PathLike) else [fspath(name) for name in names]


def texts(given: Texts) -> list[str]:
    """Return the values of an option that may be repeated."""
    return [given] if isinstance(given, str) else list(given)


def at_least(least: int, number: int, name: str) -> int:
    """Return a number, as the command's option has it checked.

    Raises:
        UsageError: it is smaller than the least.
    """
    if number < least:
        raise UsageError(f"{name} {number} is not at least {least}", remedy=f"Give {least} or more.")
    return number


def scenario_changes(settings: Mapping[str, object] | None, variables: Mapping[str, object] | None) -> ScenarioChanges:
    """Return the values of `--set` and `--var`."""
    return ScenarioChanges(assignments(settings), assignments(variables))


def spark(master: str, conf: Mapping[str, str] | None) -> ClusterOptions:
    """Return the Spark that a function computes on.

    Raises:
        UsageError: there are settings of Spark, and no master.
    """
    if conf and not master:
        raise UsageError("conf has settings of Spark, and no master is named", remedy='As in master="local[*]".')
    return ClusterOptions(master, assignments(conf))


def spark_or_processes(workers: int, master: str, conf: Mapping[str, str] | None) -> TaskOptions:
    """Return the Spark of `master`, or without one `workers` processes.

    Raises:
        UsageError: the number of processes is not at least 1, or there are settings of Spark, and no master.
    """
    cluster = spark(master, conf)
    return (
        TaskOptions(cluster.master, cluster.conf) if master else LocalProcesses(workers=at_least(1, workers, "workers"))
    )
