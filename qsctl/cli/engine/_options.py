"""Options of the commands of `qsctl engine` that select messages, with the letters that operators know."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from qsctl.cli.engine._message_files import Framing
from qsctl.cli.option_groups import OptionGroup
from qsctl.errors import UsageError

if TYPE_CHECKING:
    from qsctl.dumps.choice import Choice
    from qsctl.dumps.hl7_fields import FieldCondition
    from qsctl.dumps.moments import DateOrder

_which_option = partial(typer.Option, rich_help_panel="Which messages")
_choice_option = partial(_which_option, show_default="any")

DatabaseArgument = Annotated[
    Path,
    typer.Argument(
        metavar="DATABASE", help="Recovery database, the file that `qsctl engine run` made.", show_default=False
    ),
]
ErrorsOption = Annotated[
    bool, _which_option("--errors", "-e", help="Use the error database instead of the recovery database.")
]
DateOrderOption = Annotated[
    str,
    typer.Option("--date-order", metavar="mdy|dmy", help="Order of month and day in dates such as 04/05/2026."),
]
FramingOption = Annotated[
    Framing,
    typer.Option(
        help="Form of a file of messages: nl (each ends with a newline), len10 (ten digits of its length before each) "
        "or eof (the file is one message)."
    ),
]
PriorityOption = Annotated[
    int | None,
    typer.Option(
        min=0, max=65_535, metavar="NUMBER", help="Priority, the highest first.", show_default="that of the message"
    ),
]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Skip the question on a terminal.")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Print the messages, and change nothing.")]


def date_order(text: str) -> DateOrder:
    """Parse the value of `--date-order`.

    Raises:
        UsageError: it is not a date order.
    """
    from qsctl.dumps.moments import DateOrder

    try:
        return DateOrder(text)
    except ValueError:
        raise UsageError(
            f"--date-order {text!r} is none", remedy="Write mdy (month first) or dmy (day first)."
        ) from None


@dataclass(frozen=True)
class MessageOptions(OptionGroup):
    """The options that select messages; an omitted option excludes none."""

    mids: Annotated[
        list[str] | None,
        _choice_option(
            "--mid",
            "-m",
            metavar="ID[:ID]",
            help="Message id, or a range of them, as in 0.1.4, 0.1.4:0.1.9 or, by the last number, 4; may be repeated.",
        ),
    ] = None
    states: Annotated[
        str | None,
        _choice_option(
            "--state",
            "-s",
            metavar="NUMBERS",
            help="States, as in 11, 1-6 or 7,10-11; `qsctl engine states` lists them.",
        ),
    ] = None
    source: Annotated[
        str | None,
        _choice_option("--source", "-f", metavar="THREAD", help="Source thread; ? matches one character, * any text."),
    ] = None
    destination: Annotated[
        str | None,
        _choice_option(
            "--destination",
            "-d",
            metavar="THREAD",
            help="Destination thread; ? matches one character, * any text.",
        ),
    ] = None
    owner: Annotated[
        str | None,
        _choice_option(metavar="THREAD", help="Thread that holds the message; ? matches one character, * any text."),
    ] = None
    kind: Annotated[
        str | None,
        _choice_option("--type", "-t", metavar="D|R|U", help="Type of the message: data, reply, or unknown."),
    ] = None
    since: Annotated[
        str | None,
        _choice_option(
            "--since", "-S", metavar="TIME", help="Earliest time of creation, as in 16:52:14 or 2026-11-22T16:52."
        ),
    ] = None
    until: Annotated[
        str | None,
        _choice_option(
            "--until",
            "-E",
            metavar="TIME",
            help="Latest time of creation, in the same form; a date alone is its whole day.",
        ),
    ] = None

    texts: Annotated[
        list[str] | None,
        _choice_option(
            "--content",
            "-c",
            metavar="TEXT",
            help="Text that the data contains, with octets as a listing has them, as in MSH|^~ or \\x0d; may be "
            "repeated, and all must be there.",
        ),
    ] = None
    fields: Annotated[
        list[str] | None,
        _choice_option(
            "--hl7",
            metavar="FIELD=VALUE",
            help="Field of HL7 v2 and its value, as in PID-3=4711, PID-5.1=Doe*, OBX-5~positive (contains) or "
            "PV1-2!=I; may be repeated, and all must hold.",
        ),
    ] = None

    def choice(self, order: DateOrder) -> Choice:
        """Return the selection that the options describe.

        Raises:
            UsageError: an option is not valid, or the times exclude everything.
        """
        from qsctl.dumps.choice import Choice, parse_limit, parse_range, parse_states
        from qsctl.dumps.model import TYPES

        letter = self.kind.upper() if self.kind is not None else None
        if letter is not None and letter not in TYPES:
            words = ", ".join(f"{each} ({name})" for each, name in TYPES.items())
            raise UsageError(f"--type {self.kind!r} is none", remedy=f"Write one of: {words}.")
        begin = None if self.since is None else parse_limit(self.since, "--since", order)
        end = None if self.until is None else parse_limit(self.until, "--until", order)
        if begin is not None and end is not None and begin.has_date == end.has_date and end < begin:
            raise UsageError(f"--until {self.until} is before --since {self.since}", remedy="Turn them round.")
        return Choice(
            tuple(parse_range(text) for text in self.mids or ()),
            () if self.states is None else parse_states(self.states),
            self.source,
            self.destination,
            self.owner,
            letter,
            begin,
            end,
            tuple(_octets(text) for text in self.texts or ()),
            self._conditions(),
        )

    def _conditions(self) -> tuple[FieldCondition, ...]:
        from qsctl.dumps.hl7_fields import check_reader, parse_condition

        conditions = tuple(parse_condition(text) for text in self.fields or ())
        if conditions:
            check_reader()
        return conditions


def _octets(text: str) -> bytes:
    from qsctl.dumps.payload_text import payload_octets

    if not text:
        raise UsageError("--content is empty", remedy="Write what the data contains, as in --content 4711.")
    return payload_octets(f"'{text}'")
