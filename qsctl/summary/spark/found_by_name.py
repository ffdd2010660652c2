"""The module `pyspark_qsctl` of an installation: Spark finds the format `qsctl` by it, without registration.

Spark imports every installed top-level module whose name begins with `pyspark_`, when a program first names a format of
Python, and registers its `DefaultSource`. The build copies this file there, into an editable installation too
(`pyproject.toml`).
"""

from __future__ import annotations

from contextlib import suppress

# An error here would end every search for a format, of programs that use none of ours too: an installation for the
# service alone lacks the libraries.
with suppress(ImportError):
    from qsctl.summary.spark.data_source import QsctlDataSource as DefaultSource

__all__ = ["DefaultSource"]
