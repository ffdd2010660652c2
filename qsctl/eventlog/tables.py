"""The tables of a run folder's log: which of them each level has, and the schema of each."""

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
    """Return the tables beside the counters that a run of this level has, with or without rows.

    Args:
        level: of the log.
        replays: whether it has the tables that a replay needs.
    """
    if level is LogLevel.COUNTERS:
        return ()
    events = ("events",) if level is LogLevel.EVENTS else ()
    return ("messages", *events, *(REPLAY_TABLES if replays else ()))
