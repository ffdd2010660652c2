"""The types of what `__init__.py` looks up when it is first used."""

from qsctl.sim.simulate import simulate as simulate

__version__: str
