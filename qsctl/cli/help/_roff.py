"""The conversion of Markdown to a man page, from the pages that the site and `qsctl help` show.

Decides the form of each part of Markdown. A table becomes a list with its first column as the terms, since `man` would
not wrap its cells. Sections of level 2 become sections of the page, deeper ones subsections.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from markdown_it.token import Token

_ESCAPES: Final = str.maketrans({"\\": "\\e", "-": "\\-", "^": "\\(ha", "~": "\\(ti", "`": "\\(ga"})
"""Characters that `man` would print as others: a typed hyphen must remain one, for example."""
_NO_HYPHENATION: Final = (".nh", ".ad l")
"""Macro that prevents hyphenation: text that users type must not be broken within a word."""


def man_page(name: str, section: int, version: str, summary: str, text: str) -> str:
    """Return a man page.

    Args:
        name: as in `man NAME`.
        section: 1 for commands, 7 for other pages.
        version: of the program, for the footer.
        summary: one line, for `apropos`.
        text: Markdown; its heading of level 1 is omitted, since the page begins with the name.
    """
    from markdown_it import MarkdownIt

    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    head = f'.TH "{name.upper()}" {section} "" "qsctl {_escaped(version)}" "qsctl"'
    lines = [head, *_NO_HYPHENATION, ".SH NAME", f"{_escaped(name)} \\- {_escaped(summary)}", *_blocks(tokens)]
    return "\n".join(lines) + "\n"


def _blocks(tokens: Sequence[Token]) -> Iterator[str]:
    """Yield the lines of a page; `lists` has the number of the next item of each enclosing list, 0 for bullets."""
    lists: list[int] = []
    at = 0
    begins_item = False
    yield ".SH DESCRIPTION"
    while at < len(tokens):
        token = tokens[at]
        match token.type:
            case "heading_open":
                if token.tag != "h1":
                    yield f'{".SH" if token.tag == "h2" else ".SS"} "{_quoted(_inline(tokens[at + 1]))}"'
                at += 2
            case "paragraph_open":
                if not begins_item:
                    yield ".IP" if lists else ".PP"
                begins_item = False
                yield from _lines(_inline(tokens[at + 1]))
                at += 2
            case "bullet_list_open" | "ordered_list_open":
                if lists:
                    yield ".RS 4"
                lists.append(1 if token.type == "ordered_list_open" else 0)
            case "bullet_list_close" | "ordered_list_close":
                lists.pop()
                if lists:
                    yield ".RE"
            case "list_item_open":
                yield f".IP {lists[-1]}. 4" if lists[-1] else ".IP \\(bu 2"
                lists[-1] += bool(lists[-1])
                begins_item = True
            case "fence" | "code_block":
                yield from (".PP" if not lists else ".IP", ".RS 4", ".nf")
                yield from (_line_start(_escaped(line)) for line in token.content.splitlines())
                yield from (".fi", ".RE")
            case "table_open":
                end = next(to for to in range(at, len(tokens)) if tokens[to].type == "table_close")
                yield from _table(tokens[at:end])
                at = end
            case _:
                pass
        at += 1


def _table(tokens: Sequence[Token]) -> Iterator[str]:
    """Yield each row as a term with its other cells below, each after its heading if there are several."""
    headings: list[str] = []
    row: list[str] = []
    for at, token in enumerate(tokens):
        if token.type == "th_open":
            headings.append(_inline(tokens[at + 1]))
        elif token.type == "td_open":
            row.append(_inline(tokens[at + 1]))
        elif token.type == "tr_close" and row:
            yield from (".TP", *_lines(row[0] or "\\&"))
            others = [(heading, cell) for heading, cell in zip(headings[1:], row[1:], strict=False) if cell]
            if len(headings) == 2:
                yield from (line for _, cell in others for line in _lines(cell))
            for number, (heading, cell) in enumerate(others if len(headings) > 2 else []):
                if number:
                    yield ".br"
                yield from _lines(f"{heading}: {cell}" if heading else cell)
            row = []


def _inline(token: Token) -> str:
    """Return the text of a paragraph with font changes for bold, italic and code."""
    parts: list[str] = []
    targets: list[str] = []
    for each in token.children or ():
        match each.type:
            case "text":
                parts.append(_escaped(each.content))
            case "code_inline":
                parts.append(f"\\fB{_escaped(each.content)}\\fR")
            case "strong_open":
                parts.append("\\fB")
            case "em_open":
                parts.append("\\fI")
            case "strong_close" | "em_close":
                parts.append("\\fR")
            case "softbreak":
                parts.append("\n")
            case "hardbreak":
                parts.append("\n.br\n")
            case "image":
                parts.append(f"\\fI{_escaped(each.content)}\\fR")
            case "link_open":
                targets.append(str(each.attrGet("href") or ""))
            case "link_close":
                parts.append(_pointer(targets.pop(), "".join(parts)))
            case _:
                pass
    return "".join(parts)


def _pointer(target: str, before: str) -> str:
    """Return the target to print after a link's text: the man page of another page, or the address."""
    page = re.fullmatch(r"([a-z-]+)\.md(#.*)?", target)
    named = f"qsctl\\-{_escaped(page[1])}(7)" if page else _escaped(target)
    return "" if target.startswith("#") or before.endswith(named) else f" ({named})"


def _lines(text: str) -> list[str]:
    return [line if line == ".br" else _line_start(line) for line in text.split("\n")]


def _line_start(line: str) -> str:
    """Return a text line protected against being read as a request, which begins with a full stop or a quote."""
    return f"\\&{line}" if line.startswith((".", "'")) else line


def _escaped(text: str) -> str:
    return text.translate(_ESCAPES)


def _quoted(text: str) -> str:
    return text.replace('"', "\\(dq").replace("\n", " ")
