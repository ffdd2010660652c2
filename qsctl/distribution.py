"""The installed distribution of qsctl, and the message of a command whose libraries are missing.

There are two, of the same package: `qsctl` with everything, and `qsctl-service` for machines that only run services and
administer them. It leaves out the large libraries: Spark and its Java, the compiler of the simulator, Arrow, charts.
Code that needs one of them imports it when it is used.
"""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Final

from qsctl.errors import Unavailable

DISTRIBUTIONS: Final = ("qsctl", "qsctl-service")

LEFT_OUT: Final = {
    "pyspark": "summaries and sweeps",
    "py4j": "summaries and sweeps",
    "duckdb": "summaries",
    "sqlglot": "summaries",
    "numba": "simulations",
    "numpy": "simulations",
    "pyarrow": "recordings, simulations and Parquet files",
    "altair": "reports",
    "vl_convert": "reports",
    "uniplot": "charts on a terminal",
    "hcl2": "client profiles of Terraform",
    "starlette": "the page of `qsctl web`",
    "uvicorn": "the page of `qsctl web`",
}
"""Modules that `qsctl-service` comes without, with what needs them."""


def installed() -> tuple[str, str]:
    """Return name and version of the distribution that this process runs.

    A tree that was never installed is `qsctl`, of version `0+unknown`.
    """
    for name in DISTRIBUTIONS:
        try:
            return name, version(name)
        except PackageNotFoundError:
            continue
    return DISTRIBUTIONS[0], "0+unknown"


def is_missing(module: str) -> bool:
    """Return whether a module cannot be imported, without importing it."""
    try:
        return module not in sys.modules and find_spec(module) is None
    except ModuleNotFoundError:  # of the package around it
        return True


def missing(module: str) -> Unavailable | None:
    """Return the error for a module that is not installed, or None where it is none that may be left out.

    Args:
        module: as a `ModuleNotFoundError` names it, with the modules inside of it.
    """
    package = module.partition(".")[0]
    if package == "cyclonedds":
        python = ".".join(map(str, sys.version_info[:2]))
        return Unavailable(
            f"this needs DDS, and cyclonedds is not installed for Python {python}",
            remedy="Use Python 3.11 to 3.13, for which cyclonedds 11.0 has wheels. Embedded services need no DDS.",
        )
    if package not in LEFT_OUT:
        return None
    name, number = installed()
    more = (
        "'qsctl-service[record]' has it, and"
        if (name, package) == (DISTRIBUTIONS[1], "pyarrow")
        else "The distribution"
    )
    return Unavailable(
        f"this needs {package}, for {LEFT_OUT[package]}, and it is not installed",
        remedy=f"This installation is {name} {number}. {more} qsctl has everything: see `qsctl help containers`.",
    )


def require(module: str) -> None:
    """Check that a module is there before something begins that would end without it.

    Raises:
        Unavailable: it is not installed.
    """
    if is_missing(module):
        error = missing(module)
        assert error is not None, module
        raise error
