"""Conversion of Python arguments to the values of command-line options, for all functions that simulate."""

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
"""One text or several, for an option that may be repeated."""


def path_text(name: PathName | None) -> str | None:
    """Return a path as text, the form that the commands expect; None stays None."""
    return None if name is None else fspath(name)


def path_texts(names: PathName | Sequence[PathName] | None) -> list[str] | None:
    """Return one path or several as a list of texts, the value of a repeatable option; None stays None."""
    if names is None:
        return None
    return [fspath(names)] if isinstance(names, str | PathLike) else [fspath(name) for name in names]


def texts(given: Texts) -> list[str]:
    """Return a text or several as a list, the value of a repeatable option."""
    return [given] if isinstance(given, str) else list(given)


def at_least(least: int, number: int, name: str) -> int:
    """Return a number if it is at least `least`.

    Raises:
        UsageError: it is smaller.
    """
    if number < least:
        raise UsageError(f"{name} {number} is not at least {least}", remedy=f"Give {least} or more.")
    return number


def scenario_changes(settings: Mapping[str, object] | None, variables: Mapping[str, object] | None) -> ScenarioChanges:
    """Return the settings and variables as the values of `--set` and `--var`."""
    return ScenarioChanges(assignments(settings), assignments(variables))


def spark(master: str, conf: Mapping[str, str] | None) -> ClusterOptions:
    """Return the options of the Spark cluster that computes.

    Raises:
        UsageError: settings of Spark are given without a master.
    """
    if conf and not master:
        raise UsageError("conf has settings of Spark, and no master is named", remedy='As in master="local[*]".')
    return ClusterOptions(master, assignments(conf))


def spark_or_processes(workers: int, master: str, conf: Mapping[str, str] | None) -> TaskOptions:
    """Return the options of the Spark cluster `master`, or of `workers` processes without one.

    Raises:
        UsageError: `workers` is less than 1, or settings of Spark are given without a master.
    """
    cluster = spark(master, conf)
    return (
        TaskOptions(cluster.master, cluster.conf) if master else LocalProcesses(workers=at_least(1, workers, "workers"))
    )
