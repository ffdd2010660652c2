"""A check, before the first task, that every executor can run qsctl; an executor that cannot is reported by name.

This module is sent to the executors by value, since it must run where qsctl is missing: its functions import nothing of
qsctl there.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ANSWER = "struct<host string, python string, version string, problem string>"
"""The schema of an executor's report: its host, its Python, its qsctl, and the reason why qsctl cannot be imported."""


def self_report() -> dict[str, str]:
    """Return host, Python and qsctl version of this process, or the reason why qsctl cannot be imported."""
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
    """Run `self_report` in the tasks of a frame, and return the reports.

    Args:
        tasks: a frame with one row in each partition, each of which is a task.
    """
    from pyspark.sql.functions import udf

    from qsctl.summary.spark.internals import sent_by_value

    with sent_by_value(sys.modules[__name__]):
        ask = udf(lambda _: self_report(), ANSWER, useArrow=False)
        rows = tasks.select(ask(tasks[0]).alias("report")).distinct().collect()
    return [row["report"].asDict() for row in rows]
