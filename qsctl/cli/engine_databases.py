"""The recovery database that a command of `qsctl engine` is given.

Decides: what is no recovery database. SQLite would take an empty file, and storage a damaged one, for one without
messages: an operator must not read that everything was delivered.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from qsctl.cli.input_files import reading
from qsctl.cli.render import note
from qsctl.errors import Damaged, InvalidInput

if TYPE_CHECKING:
    from qsctl.core.integration.database import Database

_MAGIC: Final = b"SQLite format 3\0"


def read_database(path: Path) -> tuple[Database, bool]:
    """Read both databases of a file, with a note for each damaged place; and whether there is one.

    Raises:
        NotFound: there is no such file.
        InvalidInput: it is something else.
        Damaged: nothing of it can be read.
    """
    from qsctl.storage.recovery_store import read_recovery_database

    if path.is_file():
        _check_kind(path)
    content = read_recovery_database(path)
    for each in content.damage:
        # Its place is that in a copy: reading changes nothing of the file itself.
        note(f"Note: {path}: offset {each.offset}: {each.what} ({each.size_bytes} bytes left out)")
    return content.database, bool(content.damage)


def whole_database(path: Path) -> Database:
    """The same for a command that changes it.

    Raises:
        Damaged: it has damaged places, too.
    """
    database, is_damaged = read_database(path)
    if is_damaged:
        raise Damaged(
            f"{path} is damaged: what is changed now could be about the wrong messages",
            remedy="Run the engine with it first: that sets the damaged places aside and recovers the rest.",
        )
    return database


def _check_kind(path: Path) -> None:
    with reading(path), path.open("rb") as stream:
        start = stream.read(len(_MAGIC))
    if start == _MAGIC:
        return
    if not start and path.with_name(f"{path.name}-wal").exists():
        return
    what = "is empty: it is no recovery database" if not start else "is no recovery database"
    raise InvalidInput(
        f"{path} {what}", remedy=f"A listing of one is read with --file: qsctl engine dump --file {path}."
    )
