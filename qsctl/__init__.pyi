"""The types of what `__init__.py` looks up when it is first used."""

from qsctl.programs.command_result import CommandResult as CommandResult
from qsctl.programs.configuration import diff as diff
from qsctl.programs.configuration import render as render
from qsctl.programs.configuration import validate as validate
from qsctl.programs.consumed_sample import ConsumedSample as ConsumedSample
from qsctl.programs.explanation import explain as explain
from qsctl.programs.loaded import LoadedFolder as LoadedFolder
from qsctl.programs.loaded import LoadedTable as LoadedTable
from qsctl.programs.loaded import load as load
from qsctl.programs.reporting import write_report as write_report
from qsctl.programs.service import Service as Service
from qsctl.programs.simulated_run import SimulatedRun as SimulatedRun
from qsctl.programs.simulation import simulate as simulate
from qsctl.programs.studies import compare as compare
from qsctl.programs.studies import replay as replay
from qsctl.programs.studies import size as size
from qsctl.programs.studies import sweep as sweep
from qsctl.programs.studies import what_if as what_if
from qsctl.programs.sweep_result import SweepResult as SweepResult

__version__: str
