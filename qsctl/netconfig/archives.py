"""Message archives of threads: number, lengths and transaction ids of the saved messages, and their hours of the day.

The index of a saved file has a keyed list for each message; only the first octets of the message file are read, for the
type of an HL7 message. The index is read line by line, so that an archive of years takes the memory of its longest
line.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Final

from qsctl.declared.problems import ProblemList
from qsctl.dumps.lines import LineError, lines_of
from qsctl.errors import NotFound
from qsctl.netconfig.tcl import TclKeyedList, TclText, TclTrouble

HOURS: Final = 24
_HOUR_S: Final = 3600
_SECONDS_MAX: Final = 1e11
_HEADER_BYTES: Final = 2048
_TYPES_MAX: Final = 200
_HL7: Final = re.compile(rb"MSH(?P<field>[^\r\n\w])")
_REMEDY: Final = "Correct or remove these lines, or name another folder with --archive."


@dataclass(slots=True)
class SavedTraffic:
    """Statistics of the messages that one thread saved in one direction."""

    thread: str
    is_inbound: bool
    messages: int = 0
    first_s: float = math.inf
    last_s: float = -math.inf
    sizes: int = 0
    """Number of messages whose length is known; the sums below cover these."""
    bytes: int = 0
    log_sum: float = 0.0
    log_squares: float = 0.0
    longest_bytes: int = 0
    by_hour: list[int] = field(default_factory=lambda: [0] * HOURS)
    """Number of messages in each hour of the day, UTC."""
    types: dict[str, int] = field(default_factory=dict)
    """Number of messages by transaction id; messages without a recognized id are not counted."""

    def add(self, at_s: float | None, size_bytes: int | None, type: str) -> None:
        """Add a message."""
        self.messages += 1
        if at_s is not None:
            self.first_s, self.last_s = min(self.first_s, at_s), max(self.last_s, at_s)
            self.by_hour[int(at_s // _HOUR_S) % HOURS] += 1
        if size_bytes:
            self.sizes += 1
            self.bytes += size_bytes
            logarithm = math.log(size_bytes)
            self.log_sum += logarithm
            self.log_squares += logarithm * logarithm
            self.longest_bytes = max(self.longest_bytes, size_bytes)
        if type and (type in self.types or len(self.types) < _TYPES_MAX):
            self.types[type] = self.types.get(type, 0) + 1

    @property
    def seconds(self) -> float:
        """Seconds from the first message to the last."""
        return max(0.0, self.last_s - self.first_s)

    @property
    def sigma(self) -> float:
        """Standard deviation of the logarithm of the lengths."""
        mean = self.log_sum / max(1, self.sizes)
        return math.sqrt(max(0.0, self.log_squares / max(1, self.sizes) - mean * mean))

    @property
    def median_bytes(self) -> int:
        """Median length in octets, under the assumption that lengths are lognormal."""
        return max(1, round(math.exp(self.log_sum / max(1, self.sizes))))


def read_archives(folder: Path, encoding: str | None = None) -> dict[tuple[str, bool], SavedTraffic]:
    """Return the statistics of the saved files below a folder, by thread and direction (True: inbound).

    Raises:
        NotFound: the folder does not exist, or contains no index.
        InvalidFile: lines of an index cannot be parsed; it lists all of them.
    """
    indexes = sorted(path for path in folder.rglob("*.idx") if path.is_file()) if folder.is_dir() else []
    if not indexes:
        raise NotFound(f"{folder}: it contains no saved file (*.idx)", remedy="Name a folder of saved messages.")
    found: dict[tuple[str, bool], SavedTraffic] = {}
    problems = ProblemList("")
    for path in indexes:
        problems.file = str(path)
        message_file = path.with_suffix(".msg")
        with path.open("rb") as stream:
            if message_file.is_file():
                with message_file.open("rb") as messages:
                    read_index(stream, found, problems, messages, encoding)
            else:
                read_index(stream, found, problems, None, encoding)
        if problems.is_full:
            break
    problems.check("the archive", _REMEDY)
    return found


def read_index(
    stream: BinaryIO,
    found: dict[tuple[str, bool], SavedTraffic],
    problems: ProblemList,
    messages: BinaryIO | None = None,
    encoding: str | None = None,
) -> None:
    """Add the messages of an index to `found`, and the lines that cannot be parsed to `problems`.

    Args:
        stream: the index.
        found: the statistics by thread and direction.
        problems: the problems of all files so far; reading ends when it is full.
        messages: the message file of the index, or None.
        encoding: encoding of the index; None: detected.
    """
    for number, line in enumerate(lines_of(stream, encoding), 1):
        if problems.is_full:
            return
        if isinstance(line, LineError):
            problems.add(number, str(line), line.found)
            continue
        if not line.strip():
            continue
        entry = _entry(line, number, problems)
        if entry is None:
            continue
        source, destination = entry.value("SOURCECONN"), entry.value("DESTCONN")
        if entry.value("TYPE").upper().startswith("R") or not (source or destination):
            continue  # a reply, or a message without a thread
        at_s = _number(entry, "TIME", number, problems)
        if at_s is not None and at_s > _SECONDS_MAX:
            at_s /= 1000.0  # newer releases count milliseconds
        size = _number(entry, "LENGTH", number, problems)
        key = (source, True) if not destination else (destination, False)
        traffic = found.setdefault(key, SavedTraffic(*key))
        size_bytes = None if size is None else int(min(size, 2**40))
        traffic.add(at_s, size_bytes, _type_of(entry, messages) if key[1] else "")


def _entry(line: str, number: int, problems: ProblemList) -> TclKeyedList | None:
    """Parse a line of an index as a keyed list, which may be nested in another list; None if it cannot be parsed."""
    before = len(problems.problems)

    def note(trouble: TclTrouble) -> None:
        if len(problems.problems) == before:  # report one problem for each line
            problems.add(number, trouble.message, trouble.found, trouble.allowed)

    text = TclText(line, note, number)
    words = list(text.words(0, len(line)))
    if len(words) == 1 and words[0].form == "{":
        inner, inside = text.list_of(words[0])
        if inside and inside[0].form == "{":
            text, words = inner, inside
    entry = TclKeyedList(text, words, number)
    return entry if len(problems.problems) == before else None


def _number(entry: TclKeyedList, key: str, line: int, problems: ProblemList) -> float | None:
    text = entry.value(key)
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < 1e14:
        problems.add(line, f"{key} is not a number", text, "a number")
        return None
    return value


def _type_of(entry: TclKeyedList, messages: BinaryIO | None) -> str:
    """Return the transaction id of an HL7 message, such as `ADT_A01`; empty for another message."""
    offset = entry.value("OFFSET")
    if messages is None or not (offset.isascii() and offset.isdigit()) or len(offset) > 18:
        return ""
    messages.seek(int(offset), os.SEEK_SET)
    return hl7_type(messages.read(_HEADER_BYTES))


def hl7_type(data: bytes) -> str:
    """Return type and event of an HL7 v2 message, such as `ADT_A01`; empty if the octets do not begin with an HL7
    header.
    """
    start = _HL7.match(data)
    if start is None:
        return ""
    fields = data.split(b"\r", 1)[0].split(start["field"])
    if len(fields) < 9 or not fields[1]:
        return ""
    parts = fields[8].split(fields[1][:1])
    words = [each.decode("ascii", "replace") for each in parts[:2]]
    text = "_".join(each for each in words if each)
    return text if re.fullmatch(r"[A-Za-z0-9_]{1,32}", text) else ""


def hourly(traffic: SavedTraffic) -> Iterator[float]:
    """Yield the mean messages per second of each hour of the day (UTC)."""
    days = traffic.seconds / (HOURS * _HOUR_S)
    for count in traffic.by_hour:
        yield count / _HOUR_S / max(1.0, days)
