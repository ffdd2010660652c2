"""One self-contained HTML file out of a page: no script, no font, no picture that would have to be fetched."""

from __future__ import annotations

import re

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup, escape

from qsctl import __version__
from qsctl.report.page import Page


def page_html(page: Page) -> str:
    """Return the page as HTML; every text in it is escaped, the drawings are our own."""
    environment = Environment(
        loader=PackageLoader("qsctl.report", ""),
        autoescape=select_autoescape(default=True, default_for_string=True, enabled_extensions=("j2", "html")),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["coded"] = _coded
    return environment.get_template("page.html.j2").render(
        page=page, drawings=[(each, each.wide, each.narrow) for each in page.pictures], version=__version__
    )


def _coded(text: str) -> Markup:
    """Return a text, escaped, with text in backticks as code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))
