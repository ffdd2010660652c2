"""A check that every executor can run qsctl: done before the first task, so that one that cannot is named.

This module is sent to the executors by value, since it must run without qsctl: what runs there imports nothing of it.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ANSWER = "struct<host string, python string, version string, problem string>"
"""The report of an executor: its host, its Python, its qsctl, and why it has none."""


def self_report() -> dict[str, str]:
    """Return what the process that runs this is; on an executor, of that."""
    import platform
    import socket

    found = {"host": socket.gethostname(), "python": platform.python_version(), "version": "", "problem": ""}
    try:
        import qsctl
        import qsctl.sim.kernel.jit
        import qsctl.sim.run

        found["version"] = qsctl.__version__
    except (ImportError, AttributeError, OSError, RuntimeError, TypeError, ValueError) as error:
        found["problem"] = f"{type(error).__name__}: {error}"
    return found


def reports_of(tasks: DataFrame) -> list[dict[str, str]]:
    """Ask whatever runs the tasks of a frame.

    Args:
        tasks: a frame with a partition a task, one row in each.
    """
    from pyspark.sql.functions import udf

    from qsctl.summary.spark.internals import sent_by_value

    with sent_by_value(sys.modules[__name__]):
        ask = udf(lambda _: self_report(), ANSWER, useArrow=False)
        rows = tasks.select(ask(tasks[0]).alias("report")).distinct().collect()
    return [row["report"].asDict() for row in rows]
