"""`qsctl report`: a report on a run, a sweep, a comparison or a sizing, as a page, a picture or text."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final

import typer

from qsctl.cli.command import Commands
from qsctl.cli.output.declared import DeclaredResult
from qsctl.cli.output.render import is_unicode
from qsctl.cli.output.results import Block, LinesBlock, TextBlock
from qsctl.cli.panels import SIMULATION_PANEL
from qsctl.cli.simulation.options.selection import BestOption, FrontOption, asked_criteria
from qsctl.cli.simulation.options.spark import TaskOptions
from qsctl.cli.simulation.progress.task_progress import task_progress
from qsctl.errors import UsageError
from qsctl.report.formats import ReportFormat

if TYPE_CHECKING:
    from qsctl.eventlog.location import Location
    from qsctl.report.page import Page
    from qsctl.summary.sweeps.selection import Criterion

COMMANDS: Final = Commands(panel=SIMULATION_PANEL)

SWEEP_FILE = "sweep.json"


@dataclass(frozen=True)
class Reported(DeclaredResult):
    """The report that was written or printed, and its first sentences."""

    file: Annotated[str, "the file that was written; empty: it was printed"]
    bytes: Annotated[int, "size of what was written, pictures beside a page too"]
    verdict: Annotated[tuple[str, ...], "its first sentences"]
    text: str = ""
    """The whole report, if it is printed; not part of the document."""

    def blocks(self) -> Sequence[Block]:
        """Return the verdict and the file's name, or the report itself."""
        if self.text:
            return [LinesBlock(self.text.splitlines())]
        return [*(TextBlock(sentence) for sentence in self.verdict), TextBlock(f"Report: {self.file}")]


@COMMANDS.command(
    "report",
    examples=(
        "qsctl report qsctl-runs/burst-1",
        "qsctl report qsctl-sweeps/burst --out sweep.html",
        "qsctl report qsctl-sweeps/burst --front 'high_water_mark(D-1),loss_ratio(D-1)' --out front.html",
        "qsctl report qsctl-runs/burst-1 --format text  # charts on the terminal",
        "qsctl report qsctl-runs/burst-1 --out burst.png  # the charts as one picture; .svg, too",
        "qsctl report qsctl-runs/burst-1 --out burst.md  # Markdown, with the charts beside it",
        "qsctl report sizing.json --out sizing.html  # of `qsctl size … -o json > sizing.json`",
    ),
)
def report(
    named: Annotated[
        str,
        typer.Argument(
            metavar="RUN|SWEEP|JSON",
            help="Run folder or sweep folder, by path or URI, or a file of what compare or size printed with -o json.",
        ),
    ],
    out: Annotated[
        str,
        typer.Option(
            metavar="FILE", help="File to write, by path or URI.", show_default="report.FORMAT; of text the terminal"
        ),
    ] = "",
    format: Annotated[
        ReportFormat | None,
        typer.Option(
            "--format",
            help="Form of the report: a page of HTML or Markdown, its charts as one SVG or PNG, or text with charts.",
            show_default="that of the file's ending, else html",
        ),
    ] = None,
    best: BestOption = None,
    front: FrontOption = None,
    *,
    cluster: TaskOptions,
) -> Reported:
    """Write a report: the verdict in words, charts, tables, configuration, how to reproduce it."""
    from qsctl.eventlog.location import location
    from qsctl.report.formats import contents, format_of, write_report
    from qsctl.report.text import page_lines

    form = format or format_of(out)
    is_printed = form is ReportFormat.TEXT and not out
    page = _page(location(named), cluster, asked_criteria(best, front))
    width = min(100, shutil.get_terminal_size().columns)
    text = ""
    if form is ReportFormat.TEXT:
        text = "".join(f"{line}\n" for line in page_lines(page, width, is_unicode=not is_printed or is_unicode()))
    if is_printed:
        return Reported("", 0, tuple(page.verdict), text)
    file = location(out or f"report.{form}")
    return Reported(str(file), write_report(contents(page, file, form, text)), tuple(page.verdict))


def _page(of: Location, cluster: TaskOptions, asked: Sequence[Sequence[Criterion]]) -> Page:
    """Return the page about a run, a sweep, or a file of results.

    Raises:
        UsageError: best points are requested of something other than a sweep.
    """
    if (of / SWEEP_FILE).exists():
        from qsctl.report.sweep_report import sweep_page

        return sweep_page(of, asked)
    if asked:
        raise UsageError(
            f"{of} is not a folder of a sweep, and --best and --front select points of a sweep",
            remedy="Leave them out, or name a folder that qsctl sweep wrote.",
        )
    if of.is_dir():
        from qsctl.report.run_report import run_page
        from qsctl.summary.read_rows import reported_to

        with task_progress("rows read") as show_progress, reported_to(show_progress):
            return run_page(of, cluster.spark_asked_for())
    from qsctl.report.document_report import document_page

    return document_page(of)
