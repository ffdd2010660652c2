"""The labelled values above a table, one a line or all of them flowed into one.

In a flowed text a value ends where a new label begins; in lines it ends with its line, or where a label follows two
blanks. A label that the sources do not name can only be recognized in lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final

from qsctl.profiles.listings._text import ListingText
from qsctl.profiles.listings.labels import UNSPECIFIED, Label, LabelKind, Value

STOP: Final = re.compile(r"(?<![^\s])(?:\*{3,}|Listed\s+from\s+lowest)")
"""Pattern of the end of the labelled values: a banner, or the line above it."""

_OTHER: Final = re.compile(r"([A-Za-z#][^:|\n]{0,60}?)\s*:(?:\s+(.*))?")


class Labelled:
    """Labelled values: those of known labels by field, and those of unknown labels."""

    def __init__(self) -> None:
        self.values: dict[str, Value] = {}
        self.others: list[tuple[str, str]] = []


@cache
def _pattern(labels: tuple[Label, ...]) -> re.Pattern[str]:
    words = sorted((label.text for label in labels), key=len, reverse=True)
    alternatives = "|".join(r"\s+".join(map(re.escape, word.split())) for word in words)
    return re.compile(rf"(?<!\S)({alternatives})\s*:(?=\s|\Z)")


def begins_with(source: ListingText, label: str) -> bool:
    """Return whether the next words are this label."""
    return re.compile(rf"\s*{re.escape(label)}\s*:(?=\s|\Z)").match(source.text, source.at) is not None


def read_labelled(source: ListingText, labels: tuple[Label, ...]) -> Labelled:
    """Read the values from the first label up to the table's banner, where the position is then.

    Raises:
        NotUnderstoodError: no table follows.
    """
    start = source.place
    first = labels[0].text
    again = re.compile(rf"^[ \t]*{re.escape(first)}\s*:(?=\s|\Z)", re.MULTILINE)
    stop = source.next_match(STOP, start)
    if stop is None or again.search(source.text, start + 1, stop.start()) is not None:
        source.fail(
            f"no table of queues follows {first}: {_line_at(source.text, start)}",
            allowed=f"the table of `show {'client' if first == 'Client' else 'cspf neighbor'} … stats queues`",
        )
    block = source.text[start : stop.start()]
    found = Labelled()
    spans = _flowed(block, labels) if _is_flowed(block, labels) else _in_lines(source, block, start, labels, found)
    by_text = {label.text: label for label in labels}
    for text, value, at in spans:
        label = by_text[text]
        if label.field in found.values:
            source.note(f"{text} occurs a second time", found=value, allowed="each label once", at=start + at)
        elif label.field:
            assert label.kind is not None
            found.values[label.field] = _value(source, text, label.kind, value, start + at)
    source.at = stop.start()
    return found


def _line_at(text: str, start: int) -> str:
    return text[start : start + 200].split("\n", 1)[0].partition(":")[2].strip()[:60]


def _is_flowed(block: str, labels: tuple[Label, ...]) -> bool:
    """Return whether the first line has a second label after a single blank."""
    line = block.split("\n", 1)[0]
    return any(
        match.start() and not line[: match.start()].endswith(("  ", "\t")) for match in _pattern(labels).finditer(line)
    )


def _flowed(block: str, labels: tuple[Label, ...]) -> Iterator[tuple[str, str, int]]:
    seen: set[str] = set()
    chosen: list[tuple[str, int, int]] = []
    for match in _pattern(labels).finditer(block):
        text = " ".join(match[1].split())
        if text not in seen:
            seen.add(text)
            chosen.append((text, match.start(), match.end()))
    for (text, start, end), after in zip(chosen, [*(each[1] for each in chosen[1:]), len(block)], strict=False):
        yield text, " ".join(block[end:after].split()), start


def _in_lines(
    source: ListingText, block: str, offset: int, labels: tuple[Label, ...], found: Labelled
) -> Iterator[tuple[str, str, int]]:
    at = 0
    for line in block.split("\n"):
        begins = len(line) - len(line.lstrip())
        matches = [
            match
            for match in _pattern(labels).finditer(line)
            if match.start() == begins or line[: match.start()].endswith(("  ", "\t"))
        ]
        if line.strip() and not (matches and matches[0].start() == begins):
            other = _OTHER.fullmatch(line.strip())
            if other is None:
                source.note(
                    "this line cannot be understood", found=line, allowed="a label and a value, as in `Type: Primary`",
                    at=offset + at + begins,
                )  # fmt: skip
            else:
                found.others.append((" ".join(other[1].split()), " ".join((other[2] or "").split())))
            matches = []
        yield from _pieces(line, matches, at)
        at += len(line) + 1


def _pieces(line: str, matches: Sequence[re.Match[str]], at: int) -> Iterator[tuple[str, str, int]]:
    """Yield each label of a line with the text up to the next one."""
    for match, after in zip(matches, [*(each.start() for each in matches[1:]), len(line)], strict=False):
        yield " ".join(match[1].split()), " ".join(line[match.end() : after].split()), at + match.start()


def _value(source: ListingText, label: str, kind: LabelKind, text: str, at: int) -> Value:
    if text == UNSPECIFIED:
        return None
    try:
        return kind.read(text)
    except ValueError:
        if text:
            source.note(f"{label} is not {kind.allowed}", found=text, allowed=kind.allowed, at=at)
        return None
