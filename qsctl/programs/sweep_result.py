"""The result of `qsctl.sweep`, whose `plot` draws charts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qsctl.cli.simulation.results.sweep import SweepTable
from qsctl.programs.command_result import CommandResult
from qsctl.programs.reporting import Form, write_report

if TYPE_CHECKING:
    from qsctl.cli.simulation.report import Reported
    from qsctl.eventlog.location import Location
    from qsctl.programs._arguments import PathName


class SweepResult(CommandResult[SweepTable]):
    """The rows of a sweep, with its folder and a method that draws them.

    >>> import qsctl
    >>> swept = qsctl.sweep(
    ...     "burst", grid={"max-depth(D-1)": [100, 5000]}, settings={"horizon": "20ms"}, replications=2, out="depths"
    ... )
    >>> str(swept.folder)
    'depths'
    >>> swept.plot("depths.svg")[0]["file"]
    'depths.svg'
    """

    @property
    def folder(self) -> Location:
        """Return the folder of the results: a `pathlib.Path`, or a location in an object store."""
        return self.content.folder

    def plot(
        self, out: PathName, *, form: Form | None = None, best: str | None = None, front: str | None = None
    ) -> CommandResult[Reported]:
        """Draw the measures over the varied settings, as `qsctl report` does, without Spark and matplotlib.

        Args:
            out: file to write, by path or URI.
            form: `svg`, `png`, or a page around the charts: `html`, `md` or `text`; None: the form of the file's
                suffix.
            best: measure whose best points are shown.
            front: two measures whose Pareto front is shown.

        Returns:
            One row, with the file, its size in bytes and the first sentences of the report.

        Raises:
            UsageError: the form or a measure is unknown.
            NotFound: the folder no longer exists.
        """
        return write_report(str(self.folder), out=out, form=form, best=best, front=front)
