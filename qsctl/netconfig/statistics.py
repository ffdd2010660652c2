"""Readers of the engine's statistics by thread, as its tools and its users' scripts print them.

Decides the forms: keyed lists of Tcl (a status report, or a script's output for each thread), CSV with the statistics'
names as heading, and lines `label : value`. Instants are Unix times in seconds, or dates in the form of listings.
Unknown parts are ignored; a count that is not a number is an error with its line.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from qsctl.declared.problems import ProblemList, Severity
from qsctl.dumps.moments import SECOND_NS, DateOrder, parse_moment
from qsctl.netconfig._text import read_bytes, text_of
from qsctl.netconfig.tcl import TclText, TclTrouble, TclWord

_COUNTS: Final = {
    "msgsin": "messages_in", "messagesin": "messages_in", "inmsgs": "messages_in", "msgsreceived": "messages_in",
    "msgsout": "messages_out", "messagesout": "messages_out", "outmsgs": "messages_out", "msgssent": "messages_out",
    "bytesin": "bytes_in", "bytesout": "bytes_out",
    "obdataqd": "queued", "obdataqdepth": "queued", "obdataqueuedepth": "queued", "obqueuedepth": "queued",
    "outbounddataqueuedepth": "queued",
    "errorcnt": "errors", "errorcount": "errors", "errors": "errors",
}  # fmt: skip
"""Field of each count, by its name in the statistics without spaces and punctuation."""
_NAMES: Final = frozenset({"thread", "threadname", "connname", "connection", "name"})
_AT: Final = frozenset({"lastextract", "sampletime", "extracttime", "lastextracted", "now", "sampledate"})
_SINCE: Final = frozenset({"start", "threadstart", "starttime", "threadstartdate", "countssince", "lastzeroed"})
_CLOCKS: Final = {"sampledate": "sampletime", "threadstartdate": "threadstarttime"}
"""Columns with a date, each with the column of its time of day."""
_SECTION: Final = re.compile(
    r"\s*(?:(?:data )?section(?: dump)?|statistics|stats|data)?\s*(?:for|of)?\s*thread:?\s+([^\s:]+):?\s*",
    re.IGNORECASE,
)
_LARGEST: Final = 10**18
_DEEPEST: Final = 6
_REMEDY: Final = "Correct these lines, or dump the statistics anew."


@dataclass(slots=True)
class ThreadSample:
    """The counts of one thread at an instant; fields that the dump lacks are None."""

    thread: str
    line: int = 0
    at_s: float | None = None
    """Unix time of the sample, in seconds."""
    since_s: float | None = None
    """Unix time at which the counts began, in seconds."""
    messages_in: int | None = None
    messages_out: int | None = None
    bytes_in: int | None = None
    bytes_out: int | None = None
    queued: int | None = None
    """Messages that wait for the connection."""
    errors: int | None = None

    @property
    def is_empty(self) -> bool:
        """Return whether the sample has no count."""
        return self.messages_in is None and self.messages_out is None


@dataclass(slots=True)
class _Samples:
    """The samples and the problems of one file."""

    problems: ProblemList
    order: DateOrder
    found: list[ThreadSample] = field(default_factory=list)


def read_statistics(
    path: Path, encoding: str | None = None, order: DateOrder = DateOrder.MONTH_FIRST
) -> list[ThreadSample]:
    """Read the samples of a dump, in its order.

    Raises:
        NotFound: the file does not exist.
        InvalidFile: a value cannot be parsed, or the file has no statistics.
        UsageError: the encoding is unknown.
    """
    return parse_statistics(read_bytes(path), str(path), encoding, order)


def parse_statistics(
    data: bytes, name: str, encoding: str | None = None, order: DateOrder = DateOrder.MONTH_FIRST
) -> list[ThreadSample]:
    """Parse the octets of a dump; `name` is the file's name in error messages.

    Raises:
        InvalidFile: a value cannot be parsed, or the file has no statistics.
        UsageError: the encoding is unknown.
    """
    text, problems = text_of(data, name, encoding)
    samples = _Samples(ProblemList(name), order)
    samples.problems.extend(each for each in problems if each.severity is Severity.ERROR)
    first = next((line for line in io.StringIO(text) if line.strip()), "")
    heading = {_plain(each) for each in first.split(",")}
    if heading & _NAMES and heading & set(_COUNTS):
        _read_csv(text, samples)
    elif "{" in first:
        _read_lists(text, samples)
    else:
        _read_labels(text, samples)
    samples.found = [each for each in samples.found if not each.is_empty]
    if not samples.found and not samples.problems.errors:
        allowed = "keyed lists of Tcl, CSV with THREADNAME and MSGSIN, or lines `Msgs In : 12`"
        samples.problems.add(0, "there are no statistics of threads in it", "", allowed)
    samples.problems.check("the statistics dump", _REMEDY)
    return samples.found


def _plain(label: str) -> str:
    return re.sub(r"[^a-z0-9]", "", label.lower())


def _set(samples: _Samples, sample: ThreadSample, line: int, given: Mapping[str, str]) -> None:
    """Set the fields of a sample from values by label; ignore unknown labels."""
    for label, text in given.items():
        value = text.strip()
        if not value:
            continue
        if label in _COUNTS:
            number = value.replace(",", "")
            if number.isascii() and number.isdigit() and len(number) < 19:
                setattr(sample, _COUNTS[label], min(int(number), _LARGEST))
            else:
                samples.problems.add(
                    line, f"{label} is not a count", value, "a whole number", path=f"thread {sample.thread}"
                )
        elif label in _AT | _SINCE:
            clock = given.get(_CLOCKS.get(label, ""), "")
            instant = _instant(f"{value} {clock}".strip(), samples.order)
            if instant is not None:
                if label in _AT:
                    sample.at_s = instant
                else:
                    sample.since_s = instant


def _instant(text: str, order: DateOrder) -> float | None:
    """Parse an instant to Unix seconds; None for a text that means never, or is not an instant."""
    word = text.split()[0]
    try:
        seconds = float(word)
    except ValueError:
        pass
    else:
        return seconds if 0 < seconds < 1e11 else None
    try:
        moment = parse_moment(text, order)
    except ValueError:
        return None
    return moment.at_ns / SECOND_NS if moment.has_date else None


def _read_csv(text: str, samples: _Samples) -> None:
    reader = csv.reader(io.StringIO(text, newline=""))
    heading: list[str] = []
    try:
        for cells in reader:
            if samples.problems.is_full:
                return
            if not any(each.strip() for each in cells):
                continue
            if not heading or [_plain(each) for each in cells] == heading:
                heading = [_plain(each) for each in cells]
                continue
            given = dict(zip(heading, cells, strict=False))
            thread = next((given[each].strip() for each in heading if each in _NAMES and given.get(each)), "")
            if not thread or len(cells) < len(heading):
                found = ",".join(cells)
                samples.problems.add(reader.line_num, "the row is cut", found, f"{len(heading)} columns, with a thread")
                continue
            sample = ThreadSample(thread, reader.line_num)
            samples.found.append(sample)
            _set(samples, sample, reader.line_num, given)
    except csv.Error as error:
        samples.problems.add(reader.line_num, f"this is no CSV: {error}")


def _read_lists(text: str, samples: _Samples) -> None:
    def note(trouble: TclTrouble) -> None:
        samples.problems.add(content.line_of(trouble.at), trouble.message, trouble.found, trouble.allowed)

    content = TclText(text, note)
    waiting = [("", content, list(content.words(0, len(text), len(text))), 0)]  # a file of many dumps has many words
    while waiting and not samples.problems.is_full:
        name, within, words, depth = waiting.pop()
        pairs = dict(_pairs(within, words))
        if set(pairs) & set(_COUNTS):
            thread = next((within.value(pairs[each]) for each in pairs if each in _NAMES), name)
            line = within.line_of(words[0].start)
            sample = ThreadSample(thread, line)
            if not thread:
                samples.problems.add(line, "these statistics have no name", "", "{thread {{MSGSIN 1} …}}")
                continue
            samples.found.append(sample)
            _set(samples, sample, line, {label: within.value(each) for label, each in pairs.items()})
            continue
        if depth >= _DEEPEST:
            continue
        before = name
        inner = []
        for word in words:
            if word.form == "{":
                inner.append((before, *within.list_of(word), depth + 1))
            else:
                before = within.value(word)
        waiting.extend(reversed(inner))


def _pairs(content: TclText, words: list[TclWord]) -> Iterator[tuple[str, TclWord]]:
    """Yield (key, value) of the words that are pairs, the key reduced to lower-case letters and digits."""
    for word in words:
        if word.form == "{" and word.end - word.start < 4096:
            _, pair = content.list_of(word)
            if len(pair) == 2 and pair[0].form != "{":
                yield _plain(content.value(pair[0])), pair[1]


def _read_labels(text: str, samples: _Samples) -> None:
    sample: ThreadSample | None = None
    for number, line in enumerate(io.StringIO(text), 1):
        if samples.problems.is_full:
            return
        label, colon, value = line.partition(":")
        section = _SECTION.fullmatch(line) if len(line) < 300 else None
        if section is not None:
            sample = ThreadSample(section[1], number)
            samples.found.append(sample)
        elif colon and len(label) < 60:
            plain = _plain(label)
            if plain in _NAMES and value.strip():
                sample = ThreadSample(value.strip(), number)
                samples.found.append(sample)
            elif sample is not None:
                _set(samples, sample, number, {plain: value})
