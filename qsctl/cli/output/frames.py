"""Repeated results of `--watch`: drawn in place on a terminal, one document each elsewhere.

Decides how frames are separated in each format. On a terminal a table is drawn over the previous one. In a pipe each
frame is one line of JSON with its instant, also if a table was asked for; JSON lines and CSV have the instant in each
row, YAML begins a document.
"""

from __future__ import annotations

import io
import json
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, ClassVar, Final

from qsctl.cli.output import render
from qsctl.cli.output.render import OutputFormat
from qsctl.cli.output.results import Block, Plain, Result, Row
from qsctl.cli.output.shown_text import shown, shown_json
from qsctl.cli.output.view import View, viewed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from qsctl.errors import QsctlError

_HOME: Final = "\x1b[H"
_CLEAR: Final = "\x1b[2J"
_CLEAR_LINE: Final = "\x1b[K"
_CLEAR_BELOW: Final = "\x1b[J"


@dataclass(frozen=True)
class Frame(Result):
    """A result at an instant; if `error` is set, it is an earlier result, since reading a newer one failed."""

    result: Result
    at_ns: int
    title: str
    error: QsctlError | None = None

    field_help: ClassVar[Mapping[str, str]] = {}

    def document(self) -> Plain:
        """Return the instant and the result's document."""
        return {"at": self.at, "rows": self.result.document()}

    def rows(self) -> Sequence[Row]:
        """Return the result's rows, each with the instant as its first field."""
        return [{"at": self.at, **row} for row in self.result.rows()]

    def blocks(self) -> Sequence[Block]:
        """Return the result's blocks."""
        return self.result.blocks()

    @property
    def at(self) -> str:
        """Return the instant in UTC, to the millisecond."""
        instant = datetime.fromtimestamp(self.at_ns / 1e9, UTC)
        return instant.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class FramePrinter:
    """A printer of frames.

    Args:
        output: the format of all frames.
        view: the fields, order and form of their results.
    """

    def __init__(self, output: OutputFormat, view: View) -> None:
        self._output = output
        self._view = view
        self._csv_names: Sequence[str] | None = None
        self._is_first = True

    def show(self, frame: Frame) -> None:
        """Print a frame, and flush it.

        Raises:
            OutputFailed, OutputClosed: standard output cannot be written.
            UsageError: the view names a field that the result does not have.
        """
        chosen = Frame(viewed(frame.result, self._view), frame.at_ns, frame.title, frame.error)
        match self._output:
            case OutputFormat.TABLE if self._view.template:
                render.show_template(chosen.result.rows(), self._view.template)
            case OutputFormat.TABLE if sys.stdout.isatty():
                self._draw(chosen)
            case OutputFormat.JSONL:
                render.show_lines_of_json(chosen.rows())
            case OutputFormat.CSV:
                self._show_csv(chosen.rows())
            case OutputFormat.YAML:
                sys.stdout.write("---\n")
                render.show_yaml(chosen.document())
            case _:
                line = json.dumps(_plain(chosen.document()), ensure_ascii=not render.is_unicode())
                sys.stdout.write(f"{shown_json(line)}\n")
        sys.stdout.flush()
        self._is_first = False

    def _show_csv(self, rows: Sequence[Row]) -> None:
        names = list(rows[0]) if rows else self._csv_names
        render.show_csv(rows, heading=names != self._csv_names)
        self._csv_names = names

    def _draw(self, frame: Frame) -> None:
        """Draw a frame over the previous one, cut to the terminal's height, so that no line scrolls away."""
        real = sys.stdout
        height = shutil.get_terminal_size().lines
        sys.stdout = captured = _Captured(real.encoding)
        try:
            render.show(frame.result, OutputFormat.TABLE, View(wide=self._view.wide))
        finally:
            sys.stdout = real
        state = f"Error: {shown(frame.error.message)}" if frame.error else frame.at
        lines = [f"{frame.title}   {state}", "", *captured.getvalue().rstrip("\n").split("\n")]
        if len(lines) >= height:
            more = len(lines) - height + 2
            lines = [*lines[: max(1, height - 2)], f"{more} more lines have no room"]
        start = _CLEAR + _HOME if self._is_first else _HOME
        real.write(start + "".join(f"{line}{_CLEAR_LINE}\n" for line in lines) + _CLEAR_BELOW)


class _Captured(io.StringIO):
    """A buffer that replaces the terminal while a table is rendered for it."""

    def __init__(self, encoding: str) -> None:
        super().__init__()
        self._encoding = encoding

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """Return the terminal's encoding."""
        return self._encoding

    def isatty(self) -> bool:
        """Return True, so that the table is rendered as for the terminal."""
        return True


def _plain(value: Plain) -> object:
    """Return a value with lists in place of other sequences, which the JSON encoder does not accept."""
    if isinstance(value, str) or value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Sequence):
        return [_plain(each) for each in value]
    return {key: _plain(each) for key, each in value.items()}
