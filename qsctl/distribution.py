"""The installed distribution of qsctl, and the message of a command whose libraries are missing.

Two distributions contain the same package: `qsctl` with everything, and `qsctl-service` for machines that only run
services and administer them. `qsctl-service` omits the large libraries: Spark and its Java, the compiler of the
simulator, Arrow, charts. Code that needs one of them imports it at the first use.
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
"""Modules that `qsctl-service` omits, with the features that need them."""


def installed() -> tuple[str, str]:
    """Return the name and the version of the installed distribution; (`qsctl`, `0+unknown`) for a tree without one."""
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
    except ModuleNotFoundError:  # the package that contains the module is missing
        return True


def missing(module: str) -> Unavailable | None:
    """Return the error for a module that is not installed, or None if no distribution omits the module.

    Args:
        module: the name from a `ModuleNotFoundError`, which may contain submodules.
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
    """Raise an error if a module is not installed, before a command begins work that needs it.

    Raises:
        Unavailable: the module is not installed.
    """
    if is_missing(module):
        error = missing(module)
        assert error is not None, module
        raise error
