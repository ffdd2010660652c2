"""`<trace_file>`: a log of the statements that a store ran, without the data in them [QS Table 3.9]."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from qsctl.storage.names import open_private

_BLOB: Final = re.compile(r"[xX]'([0-9A-Fa-f]*)'")
_TEXT: Final = re.compile(r"'(?:[^']|'')*'")


class StatementTrace:
    """A trace file, one line a statement, that only its owner may read.

    Statements contain samples as literals: each is replaced by its size in bytes.

    Raises:
        InvalidInput: a link or a device is in the file's place.
        OSError: an I/O error occurs.
    """

    def __init__(self, path: Path) -> None:
        self._file = os.fdopen(open_private(path, os.O_WRONLY | os.O_APPEND), "a", encoding="utf-8")

    def write(self, statement: str) -> None:
        """Append one statement."""
        self._file.write(redact(statement) + "\n")
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def redact(statement: str) -> str:
    """Return the statement on one line, with each literal of octets or text replaced by its size."""
    shown = _BLOB.sub(lambda match: f"<{len(match[1]) // 2} octets>", statement)
    return " ".join(_TEXT.sub(lambda match: f"<{len(match[0]) - 2} characters>", shown).split())
