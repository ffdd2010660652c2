"""A session on the Spark context that another program has in this process, such as a notebook or `spark-submit`.

A process has one Java virtual machine and one Spark context. If they exist already, a new session on that context is
used, so that settings that the measures rely on affect no other session. The owner of the context ends it. A program of
`spark-submit` is started by a Java virtual machine: if it has no context yet, one is made there, with the settings of
`spark-submit`.

A process may have several sessions of Spark Connect, none of which has Java here. A platform's session is used with its
settings, on which no figure depends.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from qsctl.errors import UsageError
from qsctl.summary.spark.internals import PORT_NAME, active_context, connected_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SESSION_SETTINGS: Final = {"spark.sql.session.timeZone": "UTC", "spark.sql.ansi.enabled": "false"}
"""The settings that the measures need and that a session may set on a shared Spark."""


def session_beside(master: str, sessions: dict[str, SparkSession]) -> SparkSession | None:
    """Return a session on the Spark of another program in this process; None if none runs.

    Args:
        master: the requested master; empty: any.
        sessions: the sessions returned before, by the application's id; a new one is added.

    Raises:
        UsageError: the running Spark has another master than the requested one.
    """
    connected = connected_session()
    if connected is not None:
        if master:
            raise UsageError(
                f"a session of Spark Connect is active in this process already: it cannot have {master}, too",
                remedy="Leave out the master to use that session, or stop it first.",
            )
        return connected
    context = active_context()
    if context is None and os.environ.get(PORT_NAME):  # this process was started by the Java of spark-submit
        from pyspark import SparkContext

        context = SparkContext.getOrCreate()
    if context is None:
        return None
    if master and master != context.master:
        raise UsageError(
            f"Spark runs in this process already, at {context.master}: a process cannot have {master}, too",
            remedy="Leave out the master, or stop that session first.",
        )
    name = str(context.applicationId)
    if name not in sessions:
        from pyspark.sql import SparkSession

        session = SparkSession(context).newSession()
        for setting, value in SESSION_SETTINGS.items():
            session.conf.set(setting, value)
        sessions[name] = session
    return sessions[name]
