"""The only place that prints: results on standard output, errors and notes on standard error.

No colour where nobody sees it: not in a pipe, not with `NO_COLOR`, not with `TERM=dumb`.
"""

from __future__ import annotations

import csv
import json
import os
import sys
from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, TextIO

from qsctl.cli.plain_table import table_lines
from qsctl.cli.results import Block, Column, LazyRows, Plain, Result, Row, TableBlock
from qsctl.errors import QsctlError

if TYPE_CHECKING:
    from rich.console import Console


class OutputFormat(StrEnum):
    """What `-o` takes."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"
    YAML = "yaml"
    CSV = "csv"
    XML = "xml"


_STYLES = {"plain": "", "good": "green", "bad": "bold red", "faint": "dim"}
_PIPE_WIDTH = 100_000
"""A table in a pipe is never folded: `grep` and `awk` read it."""


def console(stream: TextIO) -> Console:
    """A rich console for people on this stream."""
    from rich.console import Console

    return Console(
        file=stream,
        width=None if stream.isatty() else _PIPE_WIDTH,
        no_color=True if os.environ.get("NO_COLOR") else None,
        highlight=False,
        markup=False,
        soft_wrap=not stream.isatty(),
    )


def show(result: Result, output: OutputFormat) -> None:
    """Print a result on standard output."""
    match output:
        case OutputFormat.TABLE:
            _show_blocks(result.blocks())
        case OutputFormat.JSON:
            _show_json(result.document())
        case OutputFormat.JSONL:
            for row in result.rows():
                print(json.dumps(row, ensure_ascii=False))
        case OutputFormat.YAML:
            import yaml

            yaml.safe_dump(_listed(result.document()), sys.stdout, sort_keys=False, allow_unicode=True)
        case OutputFormat.CSV:
            _show_csv(result.rows())
        case OutputFormat.XML:
            print(result.xml().rstrip("\n"))
    sys.stdout.flush()


def show_format_help(result_type: type[Result]) -> None:
    """Print the fields of a command's output."""
    width = max((len(name) for name in result_type.field_help), default=0)
    for name, meaning in result_type.field_help.items():
        print(f"{name:<{width}}  {meaning}")


def show_error(error: QsctlError, output: OutputFormat = OutputFormat.TABLE) -> None:
    """Print an error on standard error: one message, then what to do; as JSON where the output is JSON."""
    if output in {OutputFormat.JSON, OutputFormat.JSONL}:
        document = {
            "error": {
                "kind": type(error).__name__,
                "message": error.message,
                "remedy": error.remedy,
                "exit_status": int(error.exit_status),
            }
        }
        print(json.dumps(document, ensure_ascii=False), file=sys.stderr)
        return
    out = console(sys.stderr)
    out.print("Error: ", style="bold red", end="")
    out.print(error.message)
    if error.remedy:
        out.print(error.remedy)


def note(text: str) -> None:
    """Say something beside the result, on standard error."""
    console(sys.stderr).print(text)


def _show_blocks(blocks: Sequence[Block]) -> None:
    out = console(sys.stdout)
    for index, block in enumerate(blocks):
        if isinstance(block, TableBlock):
            if index:
                out.print()
            _show_table(out, block)
        else:
            out.print(block.text, style=_STYLES[block.style])


def _show_table(out: Console, block: TableBlock) -> None:
    if block.title:
        out.print(block.title, style="bold")
    if not block.rows:
        out.print(block.empty, style="dim")
        return
    rows = [[_cell(row.get(column.field)) for column in block.columns] for row in block.rows]
    lines = table_lines(block.columns, rows, out.width)
    if lines is None:
        _show_folded(out, block.columns, rows)
        return
    out.print(next(lines), style="bold")
    out.file.writelines(f"{line}\n" for line in lines)


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
    if isinstance(value, str | int):
        return str(value)
    return json.dumps(value, ensure_ascii=False)


def _show_json(document: Plain) -> None:
    """Indented by two. A list goes out one by one: it may be of millions, whose text nobody wants in memory."""
    if isinstance(document, str) or not isinstance(document, Sequence):
        print(_indented(document))
        return
    if not document:
        print("[]")
        return
    separator = "["
    for each in document:
        print(separator, end="\n  ")
        # A line break inside a text is escaped, so every line here begins with what JSON is laid out with.
        print(_indented(each).replace("\n", "\n  "), end="")
        separator = ","
    print("\n]")


def _indented(value: Plain) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def _show_csv(rows: Sequence[Row]) -> None:
    names = rows.names if isinstance(rows, LazyRows) else list(dict.fromkeys(name for row in rows for name in row))
    if not rows:
        return
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([_csv_cell(row.get(name)) for name in names] for row in rows)


def _csv_cell(value: Plain) -> str | int | float:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return value
    return json.dumps(value, ensure_ascii=False)


def _listed(value: Plain) -> object:
    """Plain lists and dicts: YAML's safe dumper knows no tuples and no other mappings."""
    if isinstance(value, str) or value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Sequence):
        return [_listed(each) for each in value]
    return {key: _listed(each) for key, each in value.items()}
