"""`qsctl.write_report`: write a run, a sweep, a comparison or a sizing as a page or a picture."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike, fspath
from typing import TYPE_CHECKING, Literal, TypeAlias

from qsctl.errors import UsageError
from qsctl.programs._arguments import spark_or_processes
from qsctl.programs.called import called
from qsctl.programs.command_result import CommandResult

if TYPE_CHECKING:
    from qsctl.cli.simulation.report import Reported

Form: TypeAlias = Literal["html", "md", "svg", "png", "text"]


def write_report(
    source: str | PathLike[str],
    *,
    out: str | PathLike[str],
    form: Form | None = None,
    best: str | None = None,
    front: str | None = None,
    master: str = "local[*]",
    conf: Mapping[str, str] | None = None,
) -> CommandResult[Reported]:
    """Write a report of simulation results, as `qsctl report` does: a page, its charts as one picture, or text.

    Args:
        source: run folder or sweep folder, by path or URI, or a file with the `-o json` output of compare or size.
        out: file to write, by path or URI.
        form: `html`, `md`, `svg`, `png` or `text`; None: the form of the file's suffix, else `html`.
        best: measure whose best points are shown, for a sweep.
        front: two measures whose Pareto front is shown, for a sweep.
        master: Spark master that summarizes a run; not used for a sweep or a file.
        conf: settings of Spark.

    Returns:
        One row, with the file, its size in bytes and the first sentences of the report.

    Raises:
        NotFound: the folder or file does not exist.
        InvalidInput: the source is neither a run, a sweep, nor a document of `compare` or `size`.
        UsageError: the form is unknown, or `best` or `front` is given for a source other than a sweep.

    >>> import qsctl
    >>> swept = qsctl.sweep(
    ...     "burst", grid={"max-depth(D-1)": [100, 5000]}, settings={"horizon": "20ms"}, replications=2, out="depths"
    ... )
    >>> qsctl.write_report("depths", out="depths.svg")[0]["bytes"] > 1_000
    True
    """
    from qsctl.cli.simulation import report as command
    from qsctl.report.formats import ReportFormat

    if form is not None and form not in set(ReportFormat):
        raise UsageError(f"form {form!r} is not one", remedy=f"Give one of {', '.join(ReportFormat)}.")
    return called(
        lambda: command.report(
            fspath(source), fspath(out), None if form is None else ReportFormat(form), best, front,
            cluster=spark_or_processes(1, master, conf),
        )
    )  # fmt: skip
