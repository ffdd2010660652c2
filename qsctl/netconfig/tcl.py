"""A parser of Tcl lists inside a text: words, nested lists and keyed lists, each with its line.

Decides the boundaries of words by Tcl's own rules: content of braces is literal; backslashes are replaced in quotation
marks and in bare words. Nothing is executed: `$` and `[` are plain characters. A list is parsed on request, one level
at a time, so that nesting needs no recursion, and a fault in one part does not affect the others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

_SPACE: Final = re.compile(r"[ \t\r\n\f\v]*+")
_BRACE: Final = re.compile(r"[{}\\]")
_QUOTE: Final = re.compile(r'["\\]')
_BARE_END: Final = re.compile(r"[ \t\r\n\f\v\\]")
_BACKSLASH: Final = re.compile(
    r"\\(?:(?P<octal>[0-7]{1,3})|x(?P<hex>[0-9A-Fa-f]{1,2})|u(?P<four>[0-9A-Fa-f]{1,4})"
    r"|(?P<line>\r?\n[ \t]*)|(?P<other>.))",
    re.DOTALL,
)
_NAMED: Final = {"a": "\ufffd", "b": "\ufffd", "f": " ", "n": "\n", "r": "\n", "t": "\t", "v": " "}
_CHECKPOINT: Final = 1 << 16
_CLOSED: Final = "a } for each {, at most 500 inside each other"
DEEPEST: Final = 500
"""Largest depth of nested braces; a NetConfig has about ten."""
WORDS_MAX: Final = 50_000
"""Largest number of words in a list; a route has some hundred details."""


class TclWord(NamedTuple):
    """A word of a list: the offsets of its content in the text, and its form."""

    start: int
    end: int
    form: str
    """The opening character, `{` or `"`; empty for a bare word."""


@dataclass(frozen=True, slots=True)
class TclTrouble:
    """A part of a text that is not a valid list: its offset, and the fault."""

    at: int
    message: str
    found: str
    allowed: str


class TclText:
    """A text that contains Tcl lists.

    Args:
        text: the whole text.
        note: called with each fault that is found while a list is parsed.
        first_line: line number of the text's beginning.
        keeps_controls: whether an escape may yield a character that is not printable; otherwise it becomes U+FFFD,
            since the value may be shown on a terminal or written as XML.
    """

    def __init__(
        self, text: str, note: Callable[[TclTrouble], None], first_line: int = 1, *, keeps_controls: bool = False
    ) -> None:
        self.text = text
        self.note = note
        self._first_line = first_line
        self._keeps_controls = keeps_controls
        self._counts: list[int] | None = None

    def line_of(self, at: int) -> int:
        """Return the line number, from 1, of an offset."""
        if self._counts is None:
            counts = [0]
            for begin in range(0, len(self.text), _CHECKPOINT):
                counts.append(counts[-1] + self.text.count("\n", begin, begin + _CHECKPOINT))
            self._counts = counts
        place = min(max(at, 0), len(self.text))
        before = place // _CHECKPOINT
        return self._first_line + self._counts[before] + self.text.count("\n", before * _CHECKPOINT, place)

    def words(self, start: int, end: int, most: int = WORDS_MAX) -> Iterator[TclWord]:
        """Yield the words of a list between two offsets; note and skip the parts that are not words."""
        text, at, count = self.text, start, 0
        while True:
            space = _SPACE.match(text, at, end)
            at = at if space is None else space.end()
            if at >= end:
                return
            count += 1
            if count > most:
                message = f"this list has more than {most:,} words"
                self.note(TclTrouble(at, message, self._excerpt(at, end), f"at most {most:,}"))
                return
            word, at = self._word(at, end)
            yield word

    def value(self, word: TclWord) -> str:
        """Return the value of a word, with its escapes replaced."""
        content = self.text[word.start : word.end]
        if word.form == "{":
            return content
        return _BACKSLASH.sub(self._replaced, content) if "\\" in content else content

    def list_of(self, word: TclWord) -> tuple[TclText, list[TclWord]]:
        """Parse a word as a list; return the text that holds the list, and its words."""
        content = self
        start, end = word.start, word.end
        if word.form != "{" and "\\" in self.text[start:end]:
            line = self.line_of(start)
            content = TclText(self.value(word), self.note, line, keeps_controls=self._keeps_controls)
            start, end = 0, len(content.text)
        return content, list(content.words(start, end))

    def keyed(self, word: TclWord) -> TclKeyedList:
        """Parse a word as a keyed list: pairs of a key and a value, each in braces."""
        content, words = self.list_of(word)
        return TclKeyedList(content, words, self.line_of(word.start))

    def end_of_braces(self, at: int, end: int) -> int | None:
        """Return the offset of the brace that closes the one at offset `at`.

        None if no brace before `end` closes it, or braces are nested deeper than `DEEPEST`.
        """
        depth, text = 0, self.text
        place = at
        while (found := _BRACE.search(text, place, end)) is not None:
            place = found.end()
            match text[found.start()]:
                case "{":
                    depth += 1
                    if depth > DEEPEST:
                        return None
                case "}":
                    depth -= 1
                    if depth == 0:
                        return found.start()
                case _:
                    place += 1
        return None

    def _word(self, at: int, end: int) -> tuple[TclWord, int]:
        opening = self.text[at]
        if opening == "{":
            close = self.end_of_braces(at, end)
            if close is None:
                self.note(TclTrouble(at, "this brace is not closed", self._excerpt(at, end), _CLOSED))
                return TclWord(at + 1, end, "{"), end
            return TclWord(at + 1, close, "{"), self._behind(close + 1, end)
        if opening == '"':
            quote = self._end_of_quotes(at + 1, end)
            if quote is None:
                self.note(TclTrouble(at, "this quotation mark is not closed", self._excerpt(at, end), 'a second "'))
                return TclWord(at + 1, end, '"'), end
            return TclWord(at + 1, quote, '"'), self._behind(quote + 1, end)
        place = at
        while (found := _BARE_END.search(self.text, place, end)) is not None:
            place = found.start()
            if self.text[place] != "\\":
                break
            escaped = _BACKSLASH.match(self.text, place, end)
            place = end if escaped is None else escaped.end()
        else:
            place = end
        return TclWord(at, place, ""), place

    def _behind(self, at: int, end: int) -> int:
        """Return the offset at which the next word may begin; note characters directly after a closing brace or
        quotation mark.
        """
        if at < end and _BARE_END.match(self.text, at) is None:
            found = _BARE_END.search(self.text, at, end)
            behind = end if found is None else found.start()
            message = "there are characters directly behind a closing brace or quotation mark"
            self.note(TclTrouble(at, message, self._excerpt(at, behind), "a space, or the end of the list"))
            return max(behind, at + 1)
        return at

    def _end_of_quotes(self, at: int, end: int) -> int | None:
        while (found := _QUOTE.search(self.text, at, end)) is not None:
            if self.text[found.start()] == '"':
                return found.start()
            at = min(found.end() + 1, end)
        return None

    def _excerpt(self, at: int, end: int) -> str:
        return self.text[at : min(end, at + 60)].partition("\n")[0]

    def _replaced(self, found: re.Match[str]) -> str:
        """Return the character of a backslash escape; one that is not allowed becomes U+FFFD."""
        if found["octal"]:
            return self._character(int(found["octal"], 8) & 0xFF)
        if found["hex"] or found["four"]:
            return self._character(int(found["hex"] or found["four"], 16))
        if found["line"]:
            return " "
        return _NAMED.get(found["other"], found["other"])

    def _character(self, code: int) -> str:
        character = chr(code)
        is_allowed = self._keeps_controls or character.isprintable() or character in "\t\n"
        return character if is_allowed else "\ufffd"


class TclKeyedList:
    """A keyed list: `{KEY VALUE} {KEY VALUE}`; keys are compared without regard to case."""

    def __init__(self, text: TclText, words: list[TclWord], line: int) -> None:
        self.text = text
        self.line = line
        """The line at which the list begins."""
        self.entries: dict[str, tuple[TclText, TclWord]] = {}
        """The values by key, in order; of a repeated key the first value, as in Tcl."""
        for word in words:
            content, pair = text.list_of(word)
            if word.form == "" or not pair:
                found = text.value(word)[:60]
                text.note(TclTrouble(word.start, "this is no pair of a key and a value", found, "{ KEY value }"))
                continue
            key = content.value(pair[0]).upper()
            if len(pair) > 2:
                message = f"the value of {key} is several words"
                text.note(TclTrouble(word.start, message, content.value(pair[2])[:60], "one word, or braces around it"))
            empty = TclWord(word.end, word.end, "{")
            self.entries.setdefault(key, (content, pair[1] if len(pair) > 1 else empty))

    def __contains__(self, key: str) -> bool:
        return key in self.entries

    def value(self, key: str, default: str = "") -> str:
        """Return the value of a key as text without surrounding space; `default` without the key."""
        found = self.entries.get(key)
        return default if found is None else found[0].value(found[1]).strip()

    def line_of(self, key: str) -> int:
        """Return the line of a key's value; the line of the list if it lacks the key."""
        found = self.entries.get(key)
        return self.line if found is None else found[0].line_of(found[1].start)

    def words(self, key: str) -> list[tuple[str, int]]:
        """Return the words of a key's value, each with its line."""
        found = self.entries.get(key)
        if found is None:
            return []
        content, words = found[0].list_of(found[1])
        return [(content.value(each), content.line_of(each.start)) for each in words]

    def keyed(self, key: str) -> TclKeyedList:
        """Return the value of a key as a keyed list; empty without the key."""
        found = self.entries.get(key)
        return TclKeyedList(self.text, [], self.line) if found is None else found[0].keyed(found[1])

    def list_of_keyed(self, key: str) -> list[TclKeyedList]:
        """Return the value of a key as a list of keyed lists; empty without the key."""
        found = self.entries.get(key)
        if found is None:
            return []
        content, words = found[0].list_of(found[1])
        return [content.keyed(each) for each in words]
