"""`qsctl report`: a run, a sweep, a comparison or a sizing as one HTML file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Final

import typer

from qsctl.cli.command import Commands
from qsctl.cli.output.results import Block, Result, TextBlock
from qsctl.cli.simulation.spark_options import ClusterOptions

COMMANDS: Final = Commands(panel="Simulate and summarize")

SWEEP_FILE = "sweep.json"


@dataclass(frozen=True)
class Written(Result):
    """The report that was written, and its first sentences."""

    file: str
    bytes: int
    verdict: tuple[str, ...]

    field_help: ClassVar[Mapping[str, str]] = {
        "file": "the HTML file",
        "bytes": "its size",
        "verdict": "its first sentences",
    }

    def blocks(self) -> Sequence[Block]:
        """The verdict and the file."""
        return [*(TextBlock(sentence) for sentence in self.verdict), TextBlock(f"Report: {self.file}")]


@COMMANDS.command(
    "report",
    examples=(
        "qsctl report qsctl-runs/burst-1",
        "qsctl report qsctl-sweeps/burst --out sweep.html",
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
    out: Annotated[str, typer.Option(metavar="FILE", help="HTML file to write, by path or URI.")] = "report.html",
    *,
    cluster: ClusterOptions,
) -> Written:
    """Write one self-contained HTML file: the verdict in words, charts, tables, configuration, how to reproduce it."""
    from qsctl.eventlog.location import location

    of, file = location(named), location(out)
    if (of / SWEEP_FILE).exists():
        from qsctl.report.sweep_report import sweep_page

        page = sweep_page(of)
    elif of.is_dir():
        from qsctl.report.run_report import run_page

        page = run_page(of, cluster.spark_options())
    else:
        from qsctl.report.document_report import document_page

        page = document_page(of)
    from qsctl.report.html import write_page

    size = write_page(page, file)
    return Written(str(file), size, tuple(page.verdict))
