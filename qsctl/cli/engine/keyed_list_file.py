"""A file of keyed lists, as an engine and its operators write them: limited in size, with all problems in one error.

Decides the encoding (UTF-8, else Latin-1, which has a character for every octet), and the number of problems shown.
"""

from __future__ import annotations

from pathlib import Path

from qsctl.cli._input_files import reading
from qsctl.declared.problems import ProblemList
from qsctl.errors import InvalidInput
from qsctl.netconfig.tcl import TclText, TclTrouble


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
        self._remedy = remedy
        self.problems = ProblemList(str(file))
        self.content = content
        self.text = TclText(content, self._note_trouble, keeps_controls=keeps_controls)

    def check(self) -> None:
        """Raise the noted problems.

        Raises:
            InvalidFile: with every problem and its line.
        """
        self.problems.check(self.problems.file, self._remedy)

    def _note_trouble(self, each: TclTrouble) -> None:
        self.problems.add(self.text.line_of(each.at), each.message, each.found, each.allowed)


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
