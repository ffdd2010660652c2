"""The format of these sources in a session, whatever the installation has."""

from __future__ import annotations

import contextlib
from typing import Any

from pyspark.errors import AnalysisException

from qsctl.summary.spark.data_source import QsctlDataSource


def register(spark: Any) -> None:
    """Register the format where the session has not found it by its name: PySpark 4.0 refuses a second one."""
    with contextlib.suppress(AnalysisException):
        spark.dataSource.register(QsctlDataSource)
