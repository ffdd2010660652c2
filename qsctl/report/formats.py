"""The formats of reports, and the files of each.

The command line imports this module, so libraries that draw are imported only when a report is drawn.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from qsctl.errors import InvalidInput

if TYPE_CHECKING:
    from qsctl.eventlog.location import Location
    from qsctl.report.page import Page


class ReportFormat(StrEnum):
    """The values of `--format`."""

    HTML = "html"
    MARKDOWN = "md"
    SVG = "svg"
    PNG = "png"
    TEXT = "text"


def format_of(name: str) -> ReportFormat:
    """Return the format that a file name's suffix denotes; HTML for an unknown suffix."""
    endings = {".md": ReportFormat.MARKDOWN, ".markdown": ReportFormat.MARKDOWN, ".svg": ReportFormat.SVG,
               ".png": ReportFormat.PNG, ".txt": ReportFormat.TEXT}  # fmt: skip
    return endings.get(PurePosixPath(name).suffix.lower(), ReportFormat.HTML)


def contents(page: Page, file: Location, form: ReportFormat, text: str) -> dict[Location, bytes]:
    """Return the content of each file of a report, the report itself first.

    Args:
        page: the report.
        file: path of the report.
        form: format of the report.
        text: the report for a terminal.

    Raises:
        NotFound: the format is a picture, and the page has no chart.
    """
    match form:
        case ReportFormat.HTML:
            from qsctl.report._html import page_html

            return {file: page_html(page).encode()}
        case ReportFormat.TEXT:
            return {file: text.encode()}
        case ReportFormat.SVG:
            from qsctl.report.standalone import page_svg

            return {file: page_svg(page).encode()}
        case ReportFormat.PNG:
            from qsctl.report.standalone import page_png

            return {file: page_png(page)}
        case ReportFormat.MARKDOWN:
            from qsctl.report._markdown import page_markdown, picture_names
            from qsctl.report.standalone import picture_svg

            names = picture_names(page, PurePosixPath(file.name).stem)
            pictures = {
                file.parent / name: picture_svg(each).encode() for name, each in zip(names, page.pictures, strict=True)
            }
            return {file: page_markdown(page, names).encode(), **pictures}


def write_report(files: dict[Location, bytes]) -> int:
    """Write the files of a report, and return their total size in bytes.

    Raises:
        InvalidInput: a file cannot be written.
    """
    for file, content in files.items():
        try:
            file.write_bytes(content)
        except OSError as error:
            raise InvalidInput(
                f"{file} cannot be written: {error.strerror}", remedy="Choose another with --out."
            ) from None
    return sum(map(len, files.values()))
