"""The output of commands that yield several results, printed as they arrive.

Decides how the parts become one document: a JSON array is opened and closed around them, a table keeps its column
widths. A result is flushed before the command continues, which is when `consume` acknowledges its samples.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from qsctl.cli.output import render
from qsctl.cli.output._plain_table import ColumnLayout
from qsctl.cli.output.frames import Frame, FramePrinter
from qsctl.cli.output.render import OutputFormat
from qsctl.cli.output.results import PartialResult, Result, TableBlock
from qsctl.cli.output.view import AS_IT_IS, View, viewed

if TYPE_CHECKING:
    from rich.console import Console


class Printer:
    """The output of one command.

    Args:
        output: the format of all its results.
        view: the fields, order and form of the results.
    """

    def __init__(self, output: OutputFormat, view: View = AS_IT_IS) -> None:
        self._output = output
        self._view = view
        self._array: render.JsonArray | None = None
        self._out: Console | None = None
        self._layout: ColumnLayout | None = None
        self._has_rows = False
        self._frames: FramePrinter | None = None

    def show(self, result: Result) -> None:
        """Print a result, or the next part of one, and flush it.

        Raises:
            OutputFailed, OutputClosed: standard output cannot be written.
            UsageError: the view names a field that it does not have.
        """
        if isinstance(result, Frame):
            self._frames = self._frames or FramePrinter(self._output, self._view)
            self._frames.show(result)
        elif isinstance(result, PartialResult):
            self._show_part(result)
            sys.stdout.flush()
        else:
            render.show(result, self._output, self._view)

    @property
    def is_watching(self) -> bool:
        """Return whether the results are repeated reads (frames), until the user interrupts."""
        return self._frames is not None

    def end(self) -> None:
        """Complete the document, unless it is complete.

        Raises:
            OutputFailed, OutputClosed: standard output cannot be written.
        """
        if self._array is not None:
            self._array.end()
            sys.stdout.flush()

    def _show_part(self, part: PartialResult) -> None:
        seen = viewed(part, self._view)
        rows = seen.rows()
        if self._view.template:
            render.show_template(rows, self._view.template)
            return
        match self._output:
            case OutputFormat.JSON:
                self._array = self._array or render.JsonArray()
                self._array.add(rows)
                if part.is_last:
                    self._array.end()
            case OutputFormat.JSONL:
                render.show_lines_of_json(rows)
            case OutputFormat.YAML:
                render.show_yaml(rows)
            case OutputFormat.CSV:
                render.show_csv(rows, heading=not self._has_rows)
            case OutputFormat.TABLE | OutputFormat.XML | OutputFormat.PROMETHEUS:
                self._show_table(part.table() if seen is part else _only_table(seen))
        self._has_rows = self._has_rows or bool(rows)

    def _show_table(self, table: TableBlock) -> None:
        out = self._out = self._out or render.console(sys.stdout)
        if not table.rows:
            out.print(table.empty, style="dim")
            return
        self._layout = self._layout or render.layout_of(out, table, wide=self._view.wide)
        render.show_rows(out, self._layout, table)


def _only_table(result: Result) -> TableBlock:
    (table,) = result.blocks()
    assert isinstance(table, TableBlock), "chosen columns are one table"
    return table
