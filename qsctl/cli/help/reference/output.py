"""The page of output fields: those of each command's result, and which of them are stable."""

from __future__ import annotations

from qsctl.cli.help._command_tree import commands
from qsctl.cli.help.reference.markdown import code, table, text_in_markdown

_PROMISE = """\
**What is promised.** A field that stands here keeps its name, its meaning, its unit and its kind of value in `-o
json`, `-o jsonl`, `-o yaml` and `-o csv` until the next major version. Further fields may be added, in JSON and
YAML anywhere, in CSV as further columns: read columns by their names. A field that is to go is named in the section
Changes of the README one minor version before. Exit statuses and the first word of an error on standard error
(`Error:`) are promised in the same way.

**What is not.** Tables for people (`-o table`) may change in any version: headings, columns, widths and sentences.
So may the texts of errors, the order of rows where no order is stated, and fields of documents that are not listed
here.

Units stand at the end of a name: `_ns` nanoseconds, `_s` seconds, `_bytes` octets, `_percent`, `_count`. Instants
are in UTC, as in `2026-11-21T03:53:48.201446Z`. A field that has no value is `null` in JSON and YAML, and empty in
CSV. `qsctl COMMAND --format-help` prints the fields of one command."""


def page() -> str:
    """Return a table of fields for each command; commands with the same fields share one."""
    by_fields: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for each in commands():
        by_fields.setdefault(tuple(each.result.field_help.items()), []).append(f"qsctl {each.name}")
    parts = [_PROMISE]
    for fields, names in by_fields.items():
        parts.append(f"## {', '.join(names)}")
        rows = [(code(name), text_in_markdown(meaning)) for name, meaning in fields]
        parts.append(
            table(("field", "meaning"), rows) if rows else "The document is what is printed; it has no fields."
        )
    return "\n\n".join(parts)
