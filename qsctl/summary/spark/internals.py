"""All uses of undocumented interfaces of PySpark, to be checked before another minor version is supported.

In: sessions and contexts of PySpark. Out: operations on them for which PySpark has no documented call. Each name here
exists, with the same meaning, in PySpark 4.0 to 4.3; pyproject.toml has the bound, `.ci/pyspark_versions` runs the
tests of Spark with each of these versions, and `tests/summary/test_internals.py` keeps other modules to the documented
interface.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

CONNECTION_FILE_NAME: Final = "_PYSPARK_DRIVER_CONN_INFO_PATH"
"""Environment variable with the file in which Java writes its port and secret."""
PORT_NAME: Final = "PYSPARK_GATEWAY_PORT"
"""Environment variable with the port of a Java virtual machine that runs already."""
SECRET_NAME: Final = "PYSPARK_GATEWAY_SECRET"
_CONNECT_VARIABLES: Final = ("SPARK_CONNECT_MODE_ENABLED", "SPARK_REMOTE")
"""Variables that PySpark sets for a session of Spark Connect, and does not remove at its end."""


def connect_to_java() -> Any:
    """Connect to the Java virtual machine whose port and secret are in the variables `PORT_NAME` and `SECRET_NAME`."""
    from pyspark.java_gateway import launch_gateway

    return launch_gateway()  # type: ignore[no-untyped-call]


def forget_java(connection: Any) -> None:
    """Make PySpark forget a connection, so that the next context may use another."""
    from pyspark import SparkContext

    if SparkContext._gateway is connection:
        SparkContext._gateway = None
        SparkContext._jvm = None


def forget_connect() -> None:
    """Make PySpark forget that sessions of this process were of Spark Connect."""
    for name in _CONNECT_VARIABLES:
        os.environ.pop(name, None)


def active_context() -> SparkContext | None:
    """Return the context that runs in this process; None if none runs or PySpark was not imported."""
    pyspark = sys.modules.get("pyspark")
    context: SparkContext | None = None if pyspark is None else pyspark.SparkContext._active_spark_context
    return context


def is_connected(session: SparkSession) -> bool:
    """Return whether a session is a Spark Connect session."""
    return type(session).__module__.startswith("pyspark.sql.connect")


def connected_session() -> SparkSession | None:
    """Return this process's default session of Spark Connect; None if it has none."""
    module = sys.modules.get("pyspark.sql.connect.session")
    if module is None:
        return None
    from pyspark.errors import PySparkException

    try:
        session: SparkSession = module.SparkSession.active()
    except PySparkException:
        return None
    return session


@contextmanager
def sent_by_value(module: ModuleType) -> Iterator[None]:
    """Make PySpark send the functions of a module to executors with their code during the block."""
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        cloudpickle.unregister_pickle_by_value(module)  # type: ignore[no-untyped-call]
