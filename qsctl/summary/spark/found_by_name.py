"""The content of the installed module `pyspark_qsctl`, by which Spark finds the format `qsctl` without registration.

Spark imports every installed top-level module whose name begins with `pyspark_` when a program first uses a Python data
source, and registers its `DefaultSource`. The build copies this file there, also in an editable installation
(`pyproject.toml`).
"""

from __future__ import annotations

from contextlib import suppress

# An ImportError would end every program's search for a data source; an installation for the service alone lacks the
# libraries.
with suppress(ImportError):
    from qsctl.summary.spark.data_source import QsctlDataSource as DefaultSource

__all__ = ["DefaultSource"]
