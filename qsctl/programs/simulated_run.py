"""The result of `qsctl.simulate`: the rows of the command, and access to the run folder."""

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
    """The rows of a simulated run, one for each queue of a client or group, with its folder and its counters.

    `to_dict()` has the other output of `qsctl simulate -o json`, such as `events` and `worked_queues`.
    `qsctl.summary.summarize` computes further measures from the folder.
    """

    @property
    def folder(self) -> Location:
        """Return the run folder: a `pathlib.Path`, or a location in an object store."""
        return self._report.folder

    @property
    def info(self) -> RunInfo:
        """Return the run's description from the folder, with its seed, status and fingerprint."""
        return self._report.info

    @property
    def counters(self) -> pyarrow.Table:
        """Return the counters as an Arrow table, with a row for each replication, client and queue."""
        return self._report.counters

    @property
    def intervals(self) -> Sequence[Row]:
        """Return a mapping for each queue and measure, with `mean` and `half_width`; empty without `confidence`."""
        return interval_rows(self.content.intervals)

    @property
    def compile_s(self) -> float:
        """Return the seconds of compilation in the process in which it took longest."""
        return self._report.compile_s

    @property
    def _report(self) -> RunReport:
        assert self.content.report is not None
        return self.content.report
