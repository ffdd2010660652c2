"""The result of `qsctl.simulate`: the rows of the command, and the run as it is in its folder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from qsctl.cli.output.results import Row
from qsctl.cli.simulation.results.intervals import interval_rows
from qsctl.cli.simulation.results.simulate import Simulated
from qsctl.programs.command_result import CommandResult

if TYPE_CHECKING:
    import pyarrow

    from qsctl.eventlog.location import Location
    from qsctl.eventlog.run_folder import RunInfo
    from qsctl.sim.run import RunReport


class SimulatedRun(CommandResult[Simulated]):
    """The rows of a simulated run, one a client or group and queue, with its folder and its counters.

    `to_dict()` has what else `qsctl simulate -o json` prints, `events` and `worked_queues` among it.
    `qsctl.summary.summarize` computes the rest from the folder.
    """

    @property
    def folder(self) -> Location:
        """Return the run folder: a `pathlib.Path`, or the place of an object store."""
        return self._report.folder

    @property
    def info(self) -> RunInfo:
        """Return what the folder records of the run, with its seed, status and fingerprint."""
        return self._report.info

    @property
    def counters(self) -> pyarrow.Table:
        """Return an Arrow table with a row a replication, client and queue."""
        return self._report.counters

    @property
    def intervals(self) -> Sequence[Row]:
        """Return a mapping a queue and measure, with `mean` and `half_width`; empty unless `confidence` was given."""
        return interval_rows(self.content.intervals)

    @property
    def compile_s(self) -> float:
        """Return the seconds that compiling took, in the process that took longest."""
        return self._report.compile_s

    @property
    def _report(self) -> RunReport:
        assert self.content.report is not None
        return self.content.report
