"""The man pages: one for each command and each page of the documentation, and `qsctl(1)` with their list."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from qsctl import __version__
from qsctl.cli.help._command_tree import commands
from qsctl.cli.help._roff import man_page
from qsctl.cli.help.reference.commands import section
from qsctl.cli.help.reference.exit_statuses import page as exit_statuses
from qsctl.cli.help.reference.markdown import table
from qsctl.cli.help.topics import page, topics

_SYNOPSIS = """\
Administer, run and simulate message queues, and summarize the runs on Spark.

`qsctl COMMAND [ARGUMENTS] [OPTIONS]`

`qsctl help PAGE` shows a page of section 7, `qsctl help COMMAND` one of section 1."""


def write_man_pages(folder: Path) -> list[Path]:
    """Write all man pages to `man1` and `man7` below `folder`, and return their paths.

    Raises:
        OSError: the folder cannot be created or written.
    """
    written = []
    for name, number, summary, text in _pages():
        path = folder / f"man{number}" / f"{name}.{number}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(man_page(name, number, __version__, summary, text), encoding="utf-8")
        written.append(path)
    return written


def _pages() -> Iterator[tuple[str, int, str, str]]:
    """Yield the name, section, summary and Markdown of each man page."""
    yield "qsctl", 1, "administer, run and simulate message queues", _overview()
    for command in commands():
        text = section(command, level=1).replace("\n**", "\n## ").replace("**\n", "\n")
        yield f"qsctl-{'-'.join(command.words)}", 1, command.text.partition("\n")[0].rstrip("."), text
    for topic in topics():
        yield f"qsctl-{topic.name}", 7, topic.summary.rstrip("."), page(topic.name)


def _overview() -> str:
    listed = [(f"`qsctl-{'-'.join(each.words)}(1)`", each.text.partition("\n")[0]) for each in commands()]
    pages = [(f"`qsctl-{each.name}(7)`", each.summary) for each in topics()]
    return "\n\n".join(
        (
            _SYNOPSIS,
            f"## Commands\n\n{table(('command', 'what it does'), listed)}",
            f"## Pages\n\n{table(('page', 'what it is about'), pages)}",
            f"## Exit status\n\n{exit_statuses()}",
        )
    )
