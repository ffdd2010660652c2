"""The reader of a NetConfig: its processes, threads and destinations, and all errors of the file in one run.

Decides where a part begins and ends. A line that begins with `process`, `protocol` or `destination` begins a part, even
if the previous part lacks a closing brace: a missing brace costs the part that lacks it, which is reported, and no
other.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from qsctl.declared.problems import Problem, ProblemList, did_you_mean
from qsctl.netconfig._blocks import process_of, remote_of, thread_of
from qsctl.netconfig._text import read_bytes, text_of
from qsctl.netconfig.model import NetConfig, NetProcess, NetRemote, NetThread
from qsctl.netconfig.tcl import TclText, TclTrouble, TclWord

KINDS: Final = ("process", "protocol", "destination")
_BEGIN: Final = re.compile(r"^(?P<kind>process|protocol|destination)[ \t]+(?=\S)", re.MULTILINE)
_PROLOGUE: Final = re.compile(r"\A\s*prologue\b.*?^[ \t]*end_prologue[ \t\r]*$", re.MULTILINE | re.DOTALL)
_PASSED_OVER: Final = re.compile(r"\s*(?:#[^\n]*\s*)*")
_REMEDY: Final = (
    "Correct these lines, or save the site's configuration anew; another encoding is named with --encoding."
)


@dataclass(frozen=True, slots=True)
class NetConfigReading:
    """A site read from a NetConfig, and the warnings about the file."""

    config: NetConfig
    warnings: tuple[Problem, ...]


def read_netconfig(path: Path, encoding: str | None = None) -> NetConfigReading:
    """Read the NetConfig of a site.

    Raises:
        NotFound: the file does not exist.
        InvalidFile: parts of the file cannot be parsed; it lists all of them.
        InvalidInput: the file is too large.
        UsageError: the encoding is unknown.
    """
    return parse_netconfig(read_bytes(path), str(path), encoding)


def parse_netconfig(data: bytes, name: str, encoding: str | None = None) -> NetConfigReading:
    """Parse the octets of a NetConfig; `name` is the file's name in error messages.

    Raises:
        InvalidFile: parts of the file cannot be parsed; it lists all of them.
        UsageError: the encoding is unknown.
    """
    text, encoding_problems = text_of(data, name, encoding)
    found = ProblemList(name)
    reader = _NetConfigReader(text, found)
    found.extend(encoding_problems)
    reader.read()
    found.check("the NetConfig", _REMEDY)
    config = NetConfig(name, tuple(reader.processes), tuple(reader.threads), tuple(reader.remotes))
    return NetConfigReading(config, tuple(found.problems))


class _NetConfigReader:
    """A pass through the parts of one NetConfig."""

    def __init__(self, text: str, found: ProblemList) -> None:
        self._found = found
        self._part = ""
        self._text = TclText(text, self._note)
        self.processes: list[NetProcess] = []
        self.threads: list[NetThread] = []
        self.remotes: list[NetRemote] = []

    def read(self) -> None:
        text = self._text.text
        prologue = _PROLOGUE.match(text)
        at = 0 if prologue is None else prologue.end()
        begins = [each.start() for each in _BEGIN.finditer(text, at)]
        self._pass_over(at, begins[0] if begins else len(text))
        for begin, end in itertools.pairwise([*begins, len(text)]):
            if self._found.is_full:
                return
            self._read_part(begin, end)
        if not begins and not self._found.errors:
            allowed = "parts that begin with process, protocol or destination"
            self._found.add(0, "there is no site in it", "", allowed)

    def _read_part(self, begin: int, end: int) -> None:
        """Read one part: its kind, its name and its keyed list."""
        kind, name, body, at = self._head(begin, end)
        self._part = f"{kind} {name}".strip()
        if body is None:
            return
        line = self._text.line_of(begin)
        keyed = self._text.keyed(body)
        match kind:
            case "process":
                self.processes.append(process_of(name, line))
            case "protocol":
                self.threads.append(thread_of(name, line, keyed, self._found))
            case _:
                self.remotes.append(remote_of(name, line, keyed))
        self._pass_over(at, end)

    def _head(self, begin: int, end: int) -> tuple[str, str, TclWord | None, int]:
        """Return the kind and the name of a part, its keyed list or None, and the offset of its end."""
        content = self._text.text
        newline = content.find("\n", begin, end)
        brace = content.find("{", begin, end if newline < 0 else newline)
        head_end = (end if newline < 0 else newline) if brace < 0 else brace
        words = [self._text.value(each) for each in self._text.words(begin, head_end)]
        kind, name = words[0], words[1] if len(words) > 1 else ""
        self._part = f"{kind} {name}".strip()
        line = self._text.line_of(begin)
        if len(words) != 2 or brace < 0:
            self._found.add(line, "this part has no name, or nothing in braces", content[begin:head_end], "KIND NAME {")
            return kind, name, None, end
        close = self._text.end_of_braces(brace, end)
        if close is None:
            self._found.add(
                line, "the brace that opens here is not closed before the next part", content[begin:head_end + 1],
                "a } for each {", path=self._part,
            )  # fmt: skip
            return kind, name, None, end
        return kind, name, TclWord(brace + 1, close, "{"), close + 1

    def _pass_over(self, at: int, end: int) -> None:
        """Report text between two parts that is neither space nor a comment."""
        text = self._text.text
        space = _PASSED_OVER.match(text, at, end)
        assert space is not None
        if space.end() < end:
            found = text[space.end() : end][:60].partition("\n")[0]
            word = found.split(maxsplit=1)[0] if found.split() else ""
            hint = did_you_mean(word, KINDS)
            allowed = "a line that begins with process, protocol or destination, or with #"
            self._found.add(
                self._text.line_of(space.end()), "this is not understood", found, f"{allowed}. {hint}".rstrip()
            )

    def _note(self, trouble: TclTrouble) -> None:
        self._found.add(
            self._text.line_of(trouble.at), trouble.message, trouble.found, trouble.allowed, path=self._part
        )
