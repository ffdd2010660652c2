"""The page of message states in an integration engine, from the table that is used to read listings."""

from __future__ import annotations

from qsctl.cli.help.reference.markdown import code, table
from qsctl.dumps.states import STATES

_HOW = """\
`qsctl engine states 7 11` prints some of them. From 100 on they are errors. Before a message is deleted, its
source's thread must stop (numbers 1 and 2), its destination's thread (10, 11, 16, 17), or the whole process (all
others up to 20)."""


def page() -> str:
    """Return a table with one row per state."""
    rows = ((code(str(each.code)), each.name, each.meaning, each.remedy) for each in STATES.values())
    return f"{_HOW}\n\n{table(('state', 'name', 'means', 'what to do'), rows)}"
