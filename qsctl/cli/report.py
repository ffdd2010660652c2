"""`qsctl report`: a run, a sweep, a comparison or a sizing as one HTML file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

import typer

from qsctl.cli.command import command
from qsctl.cli.results import Block, Result, TextBlock
from qsctl.cli.spark_options import ConfOption, MasterOption, spark_options

SWEEP_FILE = "sweep.json"


@dataclass(frozen=True)
class Written(Result):
    """The report that was written, and what it says first."""

    file: Path
    bytes: int
    verdict: tuple[str, ...]

    field_help: ClassVar[Mapping[str, str]] = {
        "file": "the HTML file",
        "bytes": "its size",
        "verdict": "what it says first, a sentence each",
    }

    def blocks(self) -> Sequence[Block]:
        """The verdict and the file."""
        return [*(TextBlock(sentence) for sentence in self.verdict), TextBlock(f"Report: {self.file}")]


def report(
    of: Annotated[
        Path,
        typer.Argument(
            metavar="RUN|SWEEP|JSON", help="A run folder, a sweep folder, or what compare or size printed with -o json."
        ),
    ],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="The HTML file.")] = Path("report.html"),
    master: MasterOption = "",
    conf: ConfOption = None,
) -> Written:
    """Write one self-contained HTML file: the verdict in words, charts, tables, configuration, how to reproduce it."""
    if (of / SWEEP_FILE).exists():
        from qsctl.report.sweep_report import sweep_page

        page = sweep_page(of)
    elif of.is_dir():
        from qsctl.report.run_report import run_page

        page = run_page(of, spark_options(master, conf))
    else:
        from qsctl.report.document_report import document_page

        page = document_page(of)
    from qsctl.report.html import write_page

    write_page(page, out)
    return Written(out, out.stat().st_size, tuple(page.verdict))


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(
        app,
        "report",
        panel="Simulate and summarize",
        examples=(
            "qsctl report qsctl-runs/burst-1",
            "qsctl report qsctl-sweeps/burst --out sweep.html",
            "qsctl report sizing.json --out sizing.html  # of `qsctl size … -o json > sizing.json`",
        ),
    )(report)
