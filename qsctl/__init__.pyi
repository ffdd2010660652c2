"""The types of what `__init__.py` looks up when it is first used."""

from qsctl.programs.command_result import CommandResult as CommandResult
from qsctl.programs.consumed_sample import ConsumedSample as ConsumedSample
from qsctl.programs.service import Service as Service
from qsctl.sim.simulate import simulate as simulate

__version__: str
