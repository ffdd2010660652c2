"""The tables of a run folder by level of the log, and the schema of each."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from qsctl.eventlog.recording.schema import REPLAY_TABLES
from qsctl.eventlog.schema import COUNTERS, EVENTS, MESSAGES, LogLevel

LOG_TABLES: Final[dict[str, pa.Schema]] = {
    "messages": MESSAGES,
    "counters": COUNTERS,
    "events": EVENTS,
    **REPLAY_TABLES,
}


def tables_of_level(level: LogLevel, *, replays: bool) -> tuple[str, ...]:
    """Return the tables, other than counters, in the folder of a run of this level; a table may have no rows.

    Args:
        level: the level of the log.
        replays: whether it has the tables that a replay needs.
    """
    if level is LogLevel.COUNTERS:
        return ()
    events = ("events",) if level is LogLevel.EVENTS else ()
    return ("messages", *events, *(REPLAY_TABLES if replays else ()))
