"""Options that the commands of `qsctl engine` share: which messages are meant, by the letters that operators know."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from qsctl.errors import UsageError

if TYPE_CHECKING:
    from qsctl.dumps.choice import Choice
    from qsctl.dumps.moments import DateOrder

_WHICH: Final = "Which messages"

DatabaseArgument = Annotated[
    Path,
    typer.Argument(
        metavar="DATABASE", help="Recovery database, the file that `qsctl engine run` made.", show_default=False
    ),
]
ErrorsOption = Annotated[
    bool,
    typer.Option("--errors", "-e", help="The error database instead of the recovery database.", rich_help_panel=_WHICH),
]
MidOption = Annotated[
    list[str] | None,
    typer.Option(
        "--mid",
        "-m",
        metavar="ID[:ID]",
        help="Message id, or a range of them, as in 0.1.4 or 0.1.4:0.1.9; may be repeated.",
        show_default=False,
        rich_help_panel=_WHICH,
    ),
]
StateOption = Annotated[
    str | None,
    typer.Option(
        "--state",
        "-s",
        metavar="NUMBERS",
        help="States, as in 11, 1-6 or 7,10-11; `qsctl engine states` lists them.",
        show_default=False,
        rich_help_panel=_WHICH,
    ),
]
SourceOption = Annotated[
    str | None,
    typer.Option(
        "--source",
        "-f",
        metavar="THREAD",
        help="Source thread; ? stands for one character, * for any.",
        show_default=False,
        rich_help_panel=_WHICH,
    ),
]
DestinationOption = Annotated[
    str | None,
    typer.Option(
        "--destination",
        "-d",
        metavar="THREAD",
        help="Destination thread, with ? and * likewise.",
        show_default=False,
        rich_help_panel=_WHICH,
    ),
]
OwnerOption = Annotated[
    str | None,
    typer.Option(
        "--owner",
        metavar="THREAD",
        help="Thread that holds the message, with ? and * likewise.",
        show_default=False,
        rich_help_panel=_WHICH,
    ),
]
TypeOption = Annotated[
    str | None,
    typer.Option(
        "--type",
        "-t",
        metavar="D|R|U",
        help="Data, replies, or messages of unknown type.",
        show_default=False,
        rich_help_panel=_WHICH,
    ),
]
SinceOption = Annotated[
    str | None,
    typer.Option(
        "--since",
        "-S",
        metavar="TIME",
        help="Created at this time or later, as in 16:52:14 or 2026-11-22T16:52.",
        show_default=False,
        rich_help_panel=_WHICH,
    ),
]
UntilOption = Annotated[
    str | None,
    typer.Option(
        "--until",
        "-E",
        metavar="TIME",
        help="Created at this time or earlier; a date alone is its whole day.",
        show_default=False,
        rich_help_panel=_WHICH,
    ),
]
DateOrderOption = Annotated[
    str,
    typer.Option("--date-order", metavar="mdy|dmy", help="What 04/05/2026 means: month or day first."),
]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do it without the question on the terminal.")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Print which messages it would be, and change nothing.")]


def date_order(text: str) -> DateOrder:
    """The value of `--date-order`.

    Raises:
        UsageError: it is none.
    """
    from qsctl.dumps.moments import DateOrder

    try:
        return DateOrder(text)
    except ValueError:
        raise UsageError(
            f"--date-order {text!r} is none", remedy="Write mdy (month first) or dmy (day first)."
        ) from None


def choice_of(
    *,
    mids: Sequence[str] | None = None,
    states: str | None = None,
    source: str | None = None,
    destination: str | None = None,
    owner: str | None = None,
    kind: str | None = None,
    since: str | None = None,
    until: str | None = None,
    order: DateOrder,
) -> Choice:
    """What the options choose.

    Raises:
        UsageError: one of them is not understood, or the times leave nothing.
    """
    from qsctl.dumps.choice import Choice, parse_limit, parse_range, parse_states
    from qsctl.dumps.model import TYPES

    letter = kind.upper() if kind is not None else None
    if letter is not None and letter not in TYPES:
        words = ", ".join(f"{each} ({name})" for each, name in TYPES.items())
        raise UsageError(f"--type {kind!r} is none", remedy=f"Write one of: {words}.")
    begin = None if since is None else parse_limit(since, "--since", order)
    end = None if until is None else parse_limit(until, "--until", order)
    if begin is not None and end is not None and begin.has_date == end.has_date and end < begin:
        raise UsageError(f"--until {until} is before --since {since}", remedy="Turn them round.")
    return Choice(
        tuple(parse_range(text) for text in mids or ()),
        () if states is None else parse_states(states),
        source,
        destination,
        owner,
        letter,
        begin,
        end,
    )
