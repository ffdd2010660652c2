"""Pages of Markdown: rendered on a terminal, a page at a time; unchanged in a pipe."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Final

from qsctl.cli.output.shown_text import shown

if TYPE_CHECKING:
    from rich.console import Console

_WIDEST: Final = 110
"""The width that prose is limited to, for readability."""


def show_markdown(out: Console, text: str) -> None:
    """Print a page; on a terminal, one longer than the screen is shown by the pager that `PAGER` names."""
    if not out.is_terminal:
        out.file.write(text)
        return
    from rich.markdown import Markdown

    laid_out = Markdown(shown(with_commands_for_links(text)), hyperlinks=False, inline_code_lexer=None)
    width = min(out.width, _WIDEST)
    lines = len(out.render_lines(laid_out, out.options.update_width(width), pad=False))
    if lines <= out.height or os.environ.get("TERM") == "dumb":
        out.print(laid_out, width=width)
        return
    os.environ.setdefault("LESS", "FRX")  # as git does: colours are shown, and what fits is only printed
    with out.pager(styles=True):
        out.print(laid_out, width=width)


def with_commands_for_links(text: str) -> str:
    """Return the page with commands in place of links to other pages, and descriptions in place of pictures."""
    text = re.sub(r"!\[([^]]*)\]\([^)]*\)", r"*\1*", text)
    text = re.sub(r"\[`?qsctl help [a-z-]+`?\]\(([a-z-]+)\.md(?:#[^)]*)?\)", r"`qsctl help \1`", text)
    return re.sub(r"\[([^]]+)\]\(([a-z-]+)\.md(?:#[^)]*)?\)", r"\1 (`qsctl help \2`)", text)
