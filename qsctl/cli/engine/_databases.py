"""The recovery database of a command of `qsctl engine`.

Decides the treatment of damage. The readable part of a damaged database is listed, with a note and an exit status of
its own: an operator must not conclude that everything was delivered. The file is not changed.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from qsctl.cli.output.render import note
from qsctl.errors import Damaged

if TYPE_CHECKING:
    from qsctl.core.integration.database import Database


def read_database(path: Path) -> tuple[Database, bool]:
    """Read both databases of a file, and note each damaged place; return also whether there is damage.

    Raises:
        NotFound: the file does not exist.
        InvalidInput: it is a link or a device.
        Damaged: it is not a recovery database, or nothing of it can be read.
    """
    from qsctl.sim.engine.recovery_store import read_recovery_database

    content = read_recovery_database(path)
    for each in content.damage:
        # The damage's own path is that of a temporary copy, since reading must not change the file.
        note(f"Note: {path}: offset {each.offset}: {each.what} ({each.size_bytes} bytes left out)")
    return content.database, bool(content.damage)


def whole_database(path: Path) -> Database:
    """Read the recovery and the error database of a file, for a command that changes them.

    Raises:
        Damaged: it has damaged places, even if the rest can be read.
    """
    database, is_damaged = read_database(path)
    if is_damaged:
        raise Damaged(
            f"{path} is damaged: a change could affect the wrong messages",
            remedy="Run the engine with it first: that sets the damaged places aside and recovers the rest.",
        )
    return database
