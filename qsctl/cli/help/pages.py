"""`qsctl help`: the documentation without a network: pages, commands, and man pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Final

import typer

from qsctl.cli.command import Commands
from qsctl.cli.output.results import (
    Block,
    Column,
    ListResult,
    MarkdownBlock,
    Row,
    TableBlock,
    TextBlock,
    counted,
    fields_of,
)
from qsctl.cli.panels import MORE_PANEL
from qsctl.errors import NotFound, UsageError

COMMANDS: Final = Commands(panel=MORE_PANEL)


@dataclass(frozen=True)
class HelpResult(ListResult):
    """The results of `qsctl help`: the list of pages, one page, or the paths of man pages."""

    topics: tuple[Row, ...] = ()
    text: str = ""
    written: tuple[str, ...] = ()
    folder: str = ""

    field_help: ClassVar[Mapping[str, str]] = {
        "name": "name of the page, as `qsctl help NAME` takes it",
        "title": "heading of the page",
        "summary": "its first sentence",
        "group": "heading of the list that it stands under",
        "text": "the page in Markdown, where one was named; no other field is there then",
        "path": "path of a man page that was written; no other field is there then",
    }

    def rows(self) -> Sequence[Row]:
        """Return one row per page of the list, or per written file; or one row with the page."""
        if self.text:
            return [{"text": self.text}]
        return [{"path": path} for path in self.written] or list(self.topics)

    def blocks(self) -> Sequence[Block]:
        """Return the page as Markdown, or the list by groups."""
        if self.text:
            return [MarkdownBlock(self.text)]
        if self.written:
            number = counted(len(self.written), "man page")
            return [TextBlock(f"{number} in {self.folder}. man finds them where that folder is in MANPATH.")]
        columns = [Column("name", "Page"), Column("summary", "What it is about")]
        groups = dict.fromkeys(str(each["group"]) for each in self.topics)
        tables: list[Block] = [
            TableBlock(columns, [each for each in self.topics if each["group"] == group], title=group)
            for group in groups
        ]
        return [*tables, TextBlock("\nqsctl help PAGE shows one, qsctl help COMMAND a command with all its options.")]


@COMMANDS.command(
    "help",
    examples=(
        "qsctl help  # the pages there are",
        "qsctl help tutorial",
        "qsctl help get status  # a command, as in qsctl get status --help",
        "qsctl help --man ~/.local/share/man  # then: man qsctl-tutorial, man qsctl-get-status",
    ),
)
def help_pages(
    topic: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TOPIC]",
            help="Page of the documentation, or the words of a command.",
            show_default="the list of pages",
        ),
    ] = None,
    man: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Folder for the man pages of all commands and pages; created if it does not exist."
        ),
    ] = None,
) -> HelpResult:
    """Show a page of the documentation or a command, or list the pages.

    Needs no network. On a terminal, PAGER shows what is longer than the screen; a pipe gets Markdown.
    """
    from qsctl.cli.help.topics import topics

    words = topic or []
    if man is not None:
        if words:
            raise UsageError("--man writes all pages", remedy="Leave the topic out.")
        from qsctl.cli.help._man_pages import write_man_pages

        return HelpResult(written=tuple(str(path) for path in write_man_pages(man)), folder=str(man))
    if not words:
        return HelpResult(topics=tuple(fields_of(each) for each in topics()))
    return HelpResult(text=_text(words))


def _text(words: Sequence[str]) -> str:
    """Return the Markdown of a page, of a command's reference, or of all commands of a group."""
    from qsctl.cli.help._command_tree import commands
    from qsctl.cli.help.reference.commands import section
    from qsctl.cli.help.topics import page, topics

    found = [each for each in commands() if each.words[: len(words)] == tuple(words)]
    if len(words) == 1 and words[0] in {each.name for each in topics()}:
        options = "".join(f"\n`qsctl {each.name} --help` has the options.\n" for each in found)
        return page(words[0]) + options
    if found:
        return "\n\n".join(section(each, level=1) for each in found) + "\n"
    raise _unknown(" ".join(words), [each.name for each in topics()] + [each.name for each in commands()])


def _unknown(asked: str, names: Sequence[str]) -> NotFound:
    from difflib import get_close_matches

    close = get_close_matches(asked, names, n=3)
    meant = f"Did you mean {' or '.join(close)}? " if close else ""
    return NotFound(
        f"there is no page or command {asked!r}",
        remedy=f"{meant}qsctl help lists the pages, qsctl --help the commands.",
    )
