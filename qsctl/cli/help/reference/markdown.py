"""Parts of Markdown from arbitrary text: tables, code, and escaped text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table with a heading row; a cell is Markdown that may contain `|` and line breaks."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join("| " + " | ".join(_cell(cell) for cell in line) + " |" for line in lines)


def code(text: str) -> str:
    """Return a text as inline code; an empty text is unchanged."""
    return f"`{text}`" if text else ""


def text_in_markdown(text: str) -> str:
    """Return plain text escaped for Markdown; text between backticks is code already."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if at % 2 else re.sub(r"([\\*<\[])", r"\\\1", part) for at, part in enumerate(parts))


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
