"""The only module that prints: results on standard output, errors and notes on standard error.

Colours are used on terminals only, and not with `NO_COLOR` or `TERM=dumb`. If the encoding is not UTF-8, each format
escapes other characters in its own way, so that the output is still JSON, YAML or XML. Results that are printed in
parts are in `streaming`.
"""

from __future__ import annotations

import csv
import json
import os
import re
import sys
from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Final, TextIO

from qsctl.cli.caller import program_caller
from qsctl.cli.output._markdown import show_markdown
from qsctl.cli.output._plain_table import ColumnLayout
from qsctl.cli.output.results import Block, Column, LazyRows, LinesBlock, MarkdownBlock, Plain, Result, Row, TableBlock
from qsctl.cli.output.shown_text import is_obeyed, shown, shown_in_line, shown_json
from qsctl.cli.output.view import AS_IT_IS, View, viewed
from qsctl.errors import QsctlError

if TYPE_CHECKING:
    from rich.console import Console


class OutputFormat(StrEnum):
    """The values of `-o`."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"
    YAML = "yaml"
    CSV = "csv"
    XML = "xml"
    PROMETHEUS = "prometheus"


_STYLES = {"plain": "", "good": "green", "bad": "bold red", "faint": "dim"}
_PASTED: Final = re.compile(r"(^|[\s`'\"(:=])(qsctl |~?\.{0,2}/[^\s/])")
"""The beginning of a text that a user may paste: a command, or a path."""

_PIPE_WIDTH = 100_000
"""The width of a table in a pipe: it is never folded, since `grep` and `awk` read it."""


def console(stream: TextIO) -> Console:
    """Return a rich console that writes to a stream, with colours only if it is a terminal."""
    from rich.console import Console

    return Console(
        file=stream,
        width=None if stream.isatty() else _PIPE_WIDTH,
        no_color=True if os.environ.get("NO_COLOR") else None,
        highlight=False,
        markup=False,
        soft_wrap=not stream.isatty(),
    )


def show(result: Result, output: OutputFormat, view: View = AS_IT_IS) -> None:
    """Print a result on standard output.

    Raises:
        UsageError: the view names a field that the result does not have, or its template cannot be filled in.
    """
    result = viewed(result, view)
    if view.template:
        show_template(result.rows(), view.template)
        sys.stdout.flush()
        return
    match output:
        case OutputFormat.TABLE:
            _show_blocks(result.blocks(), wide=view.wide)
        case OutputFormat.JSON:
            _show_json(result.document())
        case OutputFormat.JSONL:
            show_lines_of_json(result.rows())
        case OutputFormat.YAML:
            show_yaml(result.document())
        case OutputFormat.CSV:
            show_csv(result.rows())
        case OutputFormat.XML:
            # ASCII with character references is valid in every encoding that the XML declaration may name.
            text = result.xml().rstrip("\n")
            text = text if is_unicode() else text.encode("ascii", "xmlcharrefreplace").decode("ascii")
            print(shown(text) if sys.stdout.isatty() else text)
        case OutputFormat.PROMETHEUS:
            metrics = result.prometheus()
            sys.stdout.write(shown(metrics) if sys.stdout.isatty() else metrics)
    sys.stdout.flush()


def is_unicode() -> bool:
    """Return whether standard output can encode every character."""
    return (sys.stdout.encoding or "utf-8").lower().replace("-", "").startswith("utf")


def show_lines_of_json(rows: Sequence[Row]) -> None:
    """Print each row as one line of JSON."""
    is_ascii = not is_unicode()
    for row in rows:
        print(shown_json(json.dumps(row, ensure_ascii=is_ascii)))


def show_template(rows: Sequence[Row], template: str) -> None:
    """Print a line of a template for each row; on a terminal control characters are escaped."""
    from qsctl.cli.output.template import line_maker

    line = line_maker(template)
    safe = shown if sys.stdout.isatty() else str
    for row in rows:
        print(safe(line(row)))


def show_yaml(document: Plain) -> None:
    """Print a document as YAML; lists printed one after the other form one list."""
    import yaml

    listed = _listed(document)
    text = yaml.safe_dump(listed, sort_keys=False, allow_unicode=is_unicode())
    # Without `allow_unicode` the YAML writer escapes all characters except ASCII, and so those that terminals obey.
    sys.stdout.write(yaml.safe_dump(listed, sort_keys=False) if is_obeyed(text) else text)


def show_format_help(result_type: type[Result]) -> None:
    """Print the documented fields of a command's result."""
    width = max((len(name) for name in result_type.field_help), default=0)
    for name, meaning in result_type.field_help.items():
        print(f"{name:<{width}}  {meaning}")


def show_error(error: QsctlError, output: OutputFormat = OutputFormat.TABLE) -> None:
    """Print an error on standard error: the message, then the remedy; as JSON if the output is JSON."""
    if output in {OutputFormat.JSON, OutputFormat.JSONL}:
        document = {
            "error": {
                "kind": type(error).__name__,
                "message": error.message,
                "remedy": error.remedy,
                "exit_status": int(error.exit_status),
                **({"context": error.context} if error.context else {}),
                **({"service": error.place} if error.place else {}),
            }
        }
        print(shown_json(json.dumps(document, ensure_ascii=False)), file=sys.stderr)
        return
    out = console(sys.stderr)
    out.print("Error: ", style="bold red", end="")
    _show_text(out, shown(error.message))
    if error.remedy:
        _show_text(out, shown(error.remedy))
    if error.context:
        out.print(f"Context: {shown(error.context)}")
    if error.place:
        out.print(f"Service: {shown(error.place)}")


def note(text: str) -> None:
    """Print a note on standard error; a calling program receives it instead."""
    if (program := program_caller()) is not None:
        program.on_note(shown(text))
        return
    _show_text(console(sys.stderr), shown(text))


def _show_text(out: Console, text: str, style: str = "") -> None:
    """Print lines of text; a line with a command or a path is not folded, so that it can be copied."""
    for line in text.split("\n"):
        out.print(line, style=style, soft_wrap=True if _PASTED.search(line) else None)


def _show_blocks(blocks: Sequence[Block], *, wide: bool) -> None:
    out = console(sys.stdout)
    for index, block in enumerate(blocks):
        if isinstance(block, TableBlock):
            if index:
                out.print()
            _show_table(out, block, wide=wide)
        elif isinstance(block, LinesBlock):
            out.file.writelines(f"{shown_in_line(line)}\n" for line in block.lines)
        elif isinstance(block, MarkdownBlock):
            show_markdown(out, block.text)
        else:
            _show_text(out, shown(block.text), _STYLES[block.style])


def _show_table(out: Console, block: TableBlock, *, wide: bool) -> None:
    if block.title:
        out.print(shown(block.title), style="bold")
    if not block.rows:
        out.print(shown(block.empty), style="dim")
        return
    show_rows(out, layout_of(out, block, wide=wide), block, fits=not wide)


def layout_of(out: Console, block: TableBlock, *, wide: bool) -> ColumnLayout:
    """Return the layout of a table of which nothing is printed yet; with `wide`, as wide as in a pipe."""
    return ColumnLayout(block.columns, _PIPE_WIDTH if wide else out.width, rule_of(out))


def rule_of(out: Console) -> str:
    """Return the character that the rule below a heading consists of."""
    return "─" if out.encoding.startswith("utf") else "-"


def show_rows(out: Console, layout: ColumnLayout, block: TableBlock, *, fits: bool = False) -> None:
    """Print rows of a table, the first ones below its heading.

    Args:
        out: the console to print to.
        layout: of the table, the same for all parts of its rows.
        block: the columns and rows.
        fits: whether these are all rows, so that the table may be fitted to the terminal if it is too wide.
    """
    rows = [[_cell(row.get(column.field)) for column in block.columns] for row in block.rows]
    is_first = not layout.has_heading
    lines = layout.lines(rows)
    if lines is None:
        if not (fits and _show_fitted(out, block, rows)):
            _show_folded(out, block.columns, rows)
        return
    if is_first:
        _show_line(out, next(lines), style="bold")
    out.file.writelines(f"{line}\n" for line in lines)


def _show_line(out: Console, line: str, style: str) -> None:
    """Print lines in a style, without folding."""
    out.print(line, style=style, soft_wrap=True)


def _show_fitted(out: Console, block: TableBlock, texts: Sequence[Sequence[str]]) -> bool:
    """Print a table that is wider than the terminal so that it fits; return False if that is impossible."""
    from qsctl.cli.output.fitting import Cell, fitted

    cells = [
        [Cell(row.get(column.field), text) for column, text in zip(block.columns, line, strict=True)]
        for row, line in zip(block.rows, texts, strict=True)
    ]
    table = fitted(block.columns, cells, out.width, keep=block.keeps_columns)
    if table is None:
        return False
    _show_line(out, table.heading, style="bold")
    out.file.write(f"{rule_of(out) * table.rule_width}\n")
    out.file.writelines(f"{line}\n" for line in table.lines)
    if table.left_out:
        out.print(f"Left out for want of room: {', '.join(table.left_out)}. --wide shows all.", style="dim")
    return True


def _show_folded(out: Console, columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column.heading, justify=column.justify, overflow="fold")
    for row in rows:
        table.add_row(*row)
    # Rich pads the last column; a pipe gets lines without trailing blanks.
    if out.is_terminal:
        out.print(table)
    else:
        with out.capture() as capture:
            out.print(table)
        out.file.write("".join(line.rstrip() + "\n" for line in capture.get().splitlines()))


def _cell(value: Plain) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, int):
        return str(value)
    return shown_in_line(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def _show_json(document: Plain) -> None:
    """Print JSON indented by two; a list is printed item by item, as its whole text might fill the memory."""
    if isinstance(document, str) or not isinstance(document, Sequence):
        print(_indented(document))
        return
    array = JsonArray()
    array.add(document)
    array.end()


class JsonArray:
    """A JSON array that is printed value by value."""

    def __init__(self) -> None:
        self._separator = "["
        self._is_over = False

    def add(self, values: Sequence[Plain]) -> None:
        """Print values after those printed before."""
        for each in values:
            print(self._separator, end="\n  ")
            # Line breaks inside texts are escaped, so that every line break here is part of the layout.
            print(_indented(each).replace("\n", "\n  "), end="")
            self._separator = ","

    def end(self) -> None:
        """Print the end of the array, if that is not done yet."""
        if not self._is_over:
            self._is_over = True
            print("[]" if self._separator == "[" else "\n]")


def _indented(value: Plain) -> str:
    return shown_json(json.dumps(value, indent=2, ensure_ascii=not is_unicode()))


def show_csv(rows: Sequence[Row], *, heading: bool = True) -> None:
    """Print a heading with the fields' names, and a CSV line for each row; nothing without rows."""
    names = rows.names if isinstance(rows, LazyRows) else list(dict.fromkeys(name for row in rows for name in row))
    if not rows:
        return
    writer = csv.writer(_CsvLines())
    if heading:
        writer.writerow(names)
    # CSV has no escapes: a file gets the data unchanged, a terminal gets escaped control characters.
    cell = _csv_cell_shown if sys.stdout.isatty() else _csv_cell
    writer.writerows([cell(row.get(name)) for name in names] for row in rows)


class _CsvLines:
    """The target of a CSV writer, which ends lines with a line feed.

    The writer quotes the characters of its own line terminator. With a line feed alone it would leave a carriage return
    unquoted, which readers interpret as the end of a row. So it is given both, and the carriage return is removed here.
    """

    @staticmethod
    def write(line: str) -> None:
        sys.stdout.write(line.removesuffix("\r\n") + "\n")


_FORMULA: Final = frozenset("=+-@\t\r'")
"""Characters that begin a spreadsheet's formula; and the apostrophe that escapes them."""

_NUMBER: Final = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?")


def _csv_cell(value: Plain) -> str | int | float:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # A spreadsheet would evaluate such a text as a formula, although any producer may have written it.
        return f"'{value}" if value[:1] in _FORMULA and not _NUMBER.fullmatch(value) else value
    if isinstance(value, int | float):
        return value
    return json.dumps(value, ensure_ascii=False)


def _csv_cell_shown(value: Plain) -> str | int | float:
    cell = _csv_cell(value)
    return shown(cell) if isinstance(cell, str) else cell


def _listed(value: Plain) -> object:
    """Return a value as plain lists and dicts: YAML's safe dumper does not accept tuples and other mappings."""
    if isinstance(value, str) or value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Sequence):
        return [_listed(each) for each in value]
    return {key: _listed(each) for key, each in value.items()}
