"""One self-contained HTML file out of a page: no script, no font, no picture that would have to be fetched."""

from __future__ import annotations

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from qsctl import __version__
from qsctl.errors import InvalidInput
from qsctl.eventlog.location import Location
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
    return environment.get_template("page.html.j2").render(page=page, version=__version__)


def write_page(page: Page, file: Location) -> int:
    """Write the page and return its size in bytes.

    Raises:
        InvalidInput: the file cannot be written there.
    """
    try:
        content = page_html(page).encode("utf-8")
        file.write_bytes(content)
    except OSError as error:
        raise InvalidInput(f"{file} cannot be written: {error.strerror}", remedy="Choose another with --out.") from None
    return len(content)
