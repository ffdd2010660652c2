"""The parts of a captured file: replies of SEMP v1, documents of SEMP v2, and the text of a CLI around them.

A capture may hold several of them one after the other. Each part is cut out and replaced by its line breaks, so that
each reader sees its own part alone, with the line numbers of the file.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Final

from qsctl.declared.problems import error_at
from qsctl.profiles.listings.problems import unread
from qsctl.profiles.listings.semp import MOST_PAGES, PAGE
from qsctl.profiles.listings.semp_v2 import looks_like_semp_v2

_CLOSE: Final = "</rpc-reply>"
_DOCUMENT: Final = re.compile(r"^[ \t]*(?=[{\[])", re.MULTILINE)
_VISIBLE: Final = re.compile(r"[^\n]+")
_MARKS: Final = ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
"""Byte order marks of what some shells write when output is redirected."""


@dataclass(frozen=True, slots=True)
class CapturedParts:
    """The parts of a file; each has as many lines as the file. `semp`, `json`: empty where there is none."""

    text: str
    semp: str
    json: str


def decoded(data: bytes) -> tuple[str, int, str]:
    """Return a file's text; the line of the first byte that is not UTF-8, or 0; and that byte.

    Bytes that are not UTF-8 are replaced: only the values that contain them are lost.
    """
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return data.decode(encoding, "replace"), 0, ""
    try:
        return data.decode("utf-8-sig"), 0, ""
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return data.decode("utf-8-sig", "replace"), line, f"byte 0x{data[error.start]:02x}"


def parts_of(text: str, name: str) -> CapturedParts:
    """Split a text into its parts.

    Raises:
        InvalidFile: it has too many pages.
    """
    pages: list[tuple[int, int]] = []
    starts = [match.start() for match in PAGE.finditer(text)]
    if len(starts) > MOST_PAGES:
        raise unread([error_at(name, 0, "the file has too many pages", allowed=f"at most {MOST_PAGES}")])
    for start, end in zip(starts, [*starts[1:], len(text)], strict=False):
        close = text.rfind(_CLOSE, start, end)
        pages.append((start, end if close < 0 else close + len(_CLOSE)))
    rest = _without(text, pages)
    documents = _documents(rest) if looks_like_semp_v2(rest.encode("utf-8", "replace")) else []
    return CapturedParts(_without(rest, documents), _only(text, pages), _only(rest, documents))


def json_of(text: str) -> tuple[str, int]:
    """Return a text with nothing but its JSON documents, on their lines, and the number of lines around them."""
    documents = _documents(text)
    if not documents:
        return text, 0
    around = sum(1 for line in _without(text, documents).splitlines() if line.strip())
    return _only(text, documents), around


def _documents(text: str) -> list[tuple[int, int]]:
    """Return the start and end of each JSON document; an incomplete one extends to the end of the text."""
    decoder = json.JSONDecoder()
    found: list[tuple[int, int]] = []
    at = 0
    while (start := _DOCUMENT.search(text, at)) is not None:
        try:
            _, end = decoder.raw_decode(text, start.end())
        except (ValueError, RecursionError):
            found.append((start.end(), len(text)))
            break
        while text[end : end + 1] in {"{", "["}:  # the next one in the same line
            try:
                _, end = decoder.raw_decode(text, end)
            except (ValueError, RecursionError):
                end = len(text)
        found.append((start.end(), end))
        at = end
    return found


def _only(text: str, spans: list[tuple[int, int]]) -> str:
    """Return a text with these spans and all line breaks alone."""
    if not spans:
        return ""
    pieces: list[str] = []
    at = 0
    for start, end in spans:
        pieces += ["\n" * text.count("\n", at, start), text[start:end]]
        at = end
    return "".join([*pieces, "\n" * text.count("\n", at)])


def _without(text: str, spans: list[tuple[int, int]]) -> str:
    """Return a text in which these spans are replaced by their line breaks."""
    if not spans:
        return text
    pieces: list[str] = []
    at = 0
    for start, end in spans:
        pieces += [text[at:start], _VISIBLE.sub("", text[start:end])]
        at = end
    return "".join([*pieces, text[at:]])
