"""Files for other programs that come with qsctl, printed or copied."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from qsctl.cli._output_files import written
from qsctl.cli.output.declared import DeclaredResult
from qsctl.cli.output.results import Block, LinesBlock, Plain, TextBlock

OutOption = Annotated[Path | None, typer.Option(metavar="FILE", help="File to write.", show_default="standard output")]
ForceOption = Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")]


@dataclass(frozen=True)
class ShippedFile(DeclaredResult):
    """A file for another program, printed or written."""

    text: Annotated[str, "the file's content"]
    file: Annotated[str, "where it was written"]

    def document(self) -> Plain:
        """Return the content, or the path that it was written to."""
        return {"file": self.file} if self.file else {"text": self.text}

    def blocks(self) -> list[Block]:
        """Return the content unchanged, or a sentence with the path."""
        return [TextBlock(f"{self.file} is written", "good")] if self.file else [LinesBlock(self.text.splitlines())]


def shipped_file(path: Path, out: Path | None, *, force: bool) -> ShippedFile:
    """Return a file that comes with qsctl, after writing it to `out` if that is given.

    Raises:
        UsageError: `out` exists already, or cannot be written.
    """
    text = path.read_text(encoding="utf-8")
    return ShippedFile(text, written(text, out, force=force))
