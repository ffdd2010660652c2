"""Rendering of a page as a self-contained HTML file, which refers to no external script, font or picture."""

from __future__ import annotations

import re

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup, escape

from qsctl import __version__
from qsctl.report.page import Page


def page_html(page: Page) -> str:
    """Return a page as HTML, with every text escaped and the charts embedded as SVG."""
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
    """Escape a text for HTML, and mark text in backticks as code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))
