"""A file of keyed lists, as an engine and its operators write them: limited in size, with all problems in one error.

Decides the encoding (UTF-8, else Latin-1, which has a character for every octet), and the number of problems shown.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from qsctl.cli._input_files import reading
from qsctl.config.problems import Problem, Severity
from qsctl.errors import InvalidInput
from qsctl.netconfig.tcl import TclText, TclTrouble
from qsctl.netconfig.text import SiteFileError

_MOST_PROBLEMS: Final = 20
_FOUND_CHARACTERS: Final = 60


class KeyedListFile:
    """The text of a file, and the problems that are noted while it is parsed.

    Raises:
        NotFound: the file does not exist.
        InvalidInput: it is larger than allowed, or cannot be read.
    """

    def __init__(self, file: Path, largest_bytes: int, remedy: str, *, keeps_controls: bool = False) -> None:
        octets = bounded_octets(file, largest_bytes, remedy)
        try:
            content = octets.decode("utf-8-sig")
        except UnicodeDecodeError:
            content = octets.decode("latin-1")
        self._file = file
        self._remedy = remedy
        self._problems: list[Problem] = []
        self.content = content
        self.text = TclText(content, self._note_trouble, keeps_controls=keeps_controls)

    def note(self, line: int, message: str, found: str = "", allowed: str = "") -> None:
        """Note a problem of a line, by number; 0 for the whole file."""
        found = found[:_FOUND_CHARACTERS]
        self._problems.append(Problem(Severity.ERROR, str(self._file), line, "", message, found, allowed))

    @property
    def has_problems(self) -> bool:
        """Return whether a problem was noted."""
        return bool(self._problems)

    @property
    def is_full(self) -> bool:
        """Return whether the largest number of problems to show was noted, so that parsing may stop."""
        return len(self._problems) >= _MOST_PROBLEMS

    def check(self) -> None:
        """Raise the noted problems.

        Raises:
            SiteFileError: with every problem and its line.
        """
        if self._problems:
            raise SiteFileError(str(self._file), self._problems, self._remedy)

    def _note_trouble(self, each: TclTrouble) -> None:
        self.note(self.text.line_of(each.at), each.message, each.found, each.allowed)


def bounded_octets(file: Path, largest_bytes: int, remedy: str) -> bytes:
    """Return the octets of a file.

    Raises:
        NotFound: the file does not exist.
        InvalidInput: it is larger than allowed, or cannot be read.
    """
    with reading(file), file.open("rb") as stream:
        octets = stream.read(largest_bytes + 1)
    if len(octets) > largest_bytes:
        raise InvalidInput(f"{file} is larger than {largest_bytes >> 20} MiB", remedy=remedy)
    return octets
