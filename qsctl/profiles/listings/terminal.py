"""The lines that a terminal showed: pagers, escape sequences and overprinted text are taken out.

A capture of a session (`script`, a terminal's log, a serial console) has the pager's prompts between the lines of a
listing, erased by carriage returns, backspaces or escape sequences. Each line that is left keeps its number in the
file, so that problems name it.
"""

from __future__ import annotations

import re
from typing import Final

_CONTROLS: Final = re.compile(r"[\x07\x08\r\x1b]")
_ESCAPES: Final = re.compile(
    r"\x1b(?:\[[0-?]{0,64}[ -/]{0,8}[@-~]|\][^\x07\x1b\n]{0,1000}(?:\x07|\x1b\\)|[()*+][0-9A-Za-z]|[ -/]{0,4}[0-~])"
)
_PAGER_WORDS: Final = re.compile(r"more|press any key|\(END\)|^lines \d", re.IGNORECASE | re.MULTILINE)
_PAGER: Final = re.compile(
    r"[ \t]*(?:-{1,3}[ \t]?\(?more\)?[ \t]?-{0,3}(?:[ \t]?\(?\d{1,3}[ \t]?%\)?)?[ \t]?-{0,3}"
    r"|-*[ \t]?press any key to continue(?:[ \t]*\([^()\n]{1,40}\))?\.{0,3}|\(END\)"
    r"|lines \d{1,9}-\d{1,9}[^\n|]{0,40})[ \t]*",
    re.IGNORECASE,
)
"""A pager's prompt: of the broker's own, of `more` and of `less`."""


def shown_lines(text: str) -> tuple[str, list[int] | None]:
    """Return the lines that a terminal showed and the number of each in the file; None where all of them are left.

    Args:
        text: with line ends of any kind.
    """
    text = text.replace("\r\n", "\n")
    if "\n" not in text:
        text = text.replace("\r", "\n")
    if _CONTROLS.search(text) is None and _PAGER_WORDS.search(text) is None:
        return text, None
    lines: list[str] = []
    numbers: list[int] = []
    for number, line in enumerate(text.split("\n"), 1):
        for piece in _pieces(line):
            lines.append(piece)
            numbers.append(number)
    return "\n".join(lines), numbers


def _pieces(line: str) -> list[str]:
    """Return the lines that one line of a capture becomes: none for a pager's prompt, several if it was overwritten.

    Text that a carriage return overwrites becomes a line of its own, except blanks and prompts: a progress meter is
    skipped later, and in a file of mixed line ends nothing is lost.
    """
    if _CONTROLS.search(line) is None:
        return [] if _PAGER.fullmatch(line) else [_without_prompt(line)]
    line = _ESCAPES.sub("", line).replace("\x07", "").replace("\x1b", "")
    pieces = [_written_over(piece) if "\b" in piece else piece for piece in line.split("\r")]
    kept = [piece for piece in pieces if piece.strip() and not _PAGER.fullmatch(piece)]
    if kept:
        return [_without_prompt(piece) for piece in kept]
    is_only_a_prompt = len(pieces) == 1 and _PAGER.fullmatch(pieces[0]) is not None
    return [] if is_only_a_prompt else [""]


def _written_over(piece: str) -> str:
    """Return a text after its backspaces: each moves back by one character, and the following text overwrites."""
    shown: list[str] = []
    at = 0
    for character in piece:
        if character == "\b":
            at = max(0, at - 1)
        else:
            shown[at : at + 1] = [character]
            at += 1
    return "".join(shown).rstrip()


def _without_prompt(line: str) -> str:
    """Return a line without a pager's prompt at its start, as a capture without control characters has it."""
    if line.lstrip()[:2] != "--":
        return line
    found = re.match(r"[ \t]*--[ \t]?\(?more\)?[ \t]?--[ \t]?(?=[ \t]*[^\s-])", line, re.IGNORECASE)
    return line if found is None else line[found.end() :]
