"""A session beside one that another program has in this process: a notebook of a platform, or `spark-submit`.

Spark has one Java machine and one context a process. Where there is one already, a new session on it is used, so that
what the measures rely on is set there and nowhere else. Its owner ends it. A program of `spark-submit` runs below a
Java machine from its first line on: where it has no context yet, one is made there, with the settings of
`spark-submit`.

Of Spark Connect there may be several sessions in a process, and none of them has a Java machine here. A session of the
platform is used as it is, with its settings: no figure depends on them.
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
    """Return a session on the Spark that runs in this process and is not ours; None where none does.

    Args:
        master: the one that the caller asks for; empty where it asks for none.
        sessions: those that were returned before, by the application's id; a new one is added.

    Raises:
        UsageError: another master is asked for than the one that runs.
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
    if context is None and os.environ.get(PORT_NAME):  # the Java machine of spark-submit
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
