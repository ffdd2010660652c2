"""Parts of Markdown made of any text: tables, words as they are typed, sentences as they are."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table with a heading; a cell is Markdown that may contain `|` and line breaks."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join("| " + " | ".join(_cell(cell) for cell in line) + " |" for line in lines)


def code(text: str) -> str:
    """Return a text as it is typed; an empty one stays empty."""
    return f"`{text}`" if text else ""


def text_in_markdown(text: str) -> str:
    """Return plain text escaped for Markdown; text between backticks is code already."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if at % 2 else re.sub(r"([\\*<\[])", r"\\\1", part) for at, part in enumerate(parts))


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
