"""`qsctl engine dump`, `qsctl engine states`: the messages of a recovery or error database, or of a listing of one."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, Final

import typer

from qsctl.cli._input_files import STANDARD_INPUT, is_standard_input, reading
from qsctl.cli.command import Commands
from qsctl.cli.engine._databases import read_database
from qsctl.cli.engine._message_files import Framing, joined_messages, metadata_lines
from qsctl.cli.engine._options import DateOrderOption, ErrorsOption, FramingOption, MessageOptions, date_order
from qsctl.cli.engine.results import Dumped, MessageCount, States
from qsctl.cli.output.render import note
from qsctl.errors import InvalidInput, NotFound, UsageError
from qsctl.new_file import new_private_file

if TYPE_CHECKING:
    from qsctl.core.integration.message import Message
    from qsctl.dumps.choice import Choice
    from qsctl.dumps.groups import GroupBy
    from qsctl.dumps.model import ListedMessage, ListingForm
    from qsctl.dumps.moments import Moment
    from qsctl.dumps.order import ListOrder

COMMANDS: Final = Commands()

MOST_LISTED: Final = 500_000
"""Messages that are kept for a listing; groups and counts have no limit."""

_layout_option = partial(typer.Option, rich_help_panel="Layout")
_LISTING: Final = "Listing in a file"
_FILES: Final = "Files for resend"


@COMMANDS.command(
    "dump",
    examples=(
        "qsctl engine dump hospital.recovery --state 7,11 --destination lab  # what waits for it",
        "qsctl engine dump hospital.recovery --errors -L -o json",
        "qsctl engine dump hospital.recovery --hl7 PID-3=4711  # where are the messages of this patient?",
        "qsctl engine dump hospital.recovery -s 11 -d lab -O queue  # which one goes next?",
        "qsctl engine dump --file listing.txt --group-by state,age  # of another installation",
        "hcidbdump -r -l | qsctl engine dump --file - --group-by thread -o csv",
    ),
)
def dump(
    database: Annotated[
        Path | None,
        typer.Argument(
            metavar="DATABASE", help="Recovery database, the file that `qsctl engine run` made.", show_default=False
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            metavar="LISTING",
            help="Listing of such a database instead, in short, long or extended form; -: standard input.",
            rich_help_panel=_LISTING,
        ),
    ] = None,
    recovery: Annotated[
        bool, typer.Option("--recovery", "-r", help="Use the recovery database, as without this option.")
    ] = False,
    errors: ErrorsOption = False,
    *,
    messages: MessageOptions,
    group_by: Annotated[
        list[str] | None,
        typer.Option(
            "--group-by",
            "-g",
            metavar="KEY[,KEY…]",
            help="Keys to count messages by instead of a list: state, age, thread, source, destination, type or "
            "priority; thread is the one that holds the message.",
        ),
    ] = None,
    count: Annotated[
        bool, typer.Option("--count", "-C", help="Print the number of messages instead of a list.")
    ] = False,
    order: Annotated[
        str | None,
        _layout_option(
            "--order",
            "-O",
            metavar="i|o|queue",
            help="Order of the list: by inbound time (i), as outbound threads will send it (o), or queue by queue, "
            "each in the order in which it will go (queue).",
            show_default="by id",
        ),
    ] = None,
    long: Annotated[bool, _layout_option("--long", "-l", help="Print the list in its long form, with dates.")] = False,
    extended: Annotated[
        bool, _layout_option("--extended", "-L", help="Print the list in its extended form, with all fields and data.")
    ] = False,
    expanded: Annotated[
        bool, _layout_option("--expand-flags", "-x", help="Print the names of the flags, too, with -L.")
    ] = False,
    now: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Time that ages are counted to, as in 16:52:14 or 2026-11-22T16:52.",
            show_default="the newest one there is",
        ),
    ] = None,
    write_meta: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File to write, with the metadata of the listed messages: `resend --meta` reads it.",
            rich_help_panel=_FILES,
            show_default="none",
        ),
    ] = None,
    write_messages: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File to write, with the data of the listed messages: `resend --messages` reads it.",
            rich_help_panel=_FILES,
            show_default="none",
        ),
    ] = None,
    framing: FramingOption = Framing.NEWLINE,
    order_of_dates: DateOrderOption = "mdy",
    encoding: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Encoding of the listing, as in cp1252.",
            show_default="by its byte order mark, else UTF-8",
            rich_help_panel=_LISTING,
        ),
    ] = None,
) -> Dumped | MessageCount:
    """List a recovery or error database as operators know it, or read such a listing: list, filter or count messages.

    A listing with lines that are not understood is refused, with every one of them named.
    """
    from qsctl.dumps.choice import parse_limit
    from qsctl.dumps.lines import check_encoding
    from qsctl.dumps.model import ListingForm

    _check_source(database, file, recovery=recovery, errors=errors)
    if file is not None and (write_meta or write_messages):
        raise UsageError("--write-meta and --write-messages are of a database", remedy="Name it in place of --file.")
    dates = date_order(order_of_dates)
    keys = _group_keys(group_by)
    check_encoding(encoding)
    form = ListingForm.EXTENDED if extended else ListingForm.LONG if long else ListingForm.SHORT
    chosen = messages.choice(dates)
    limit = None if now is None else parse_limit(now, "--now", dates)
    sorted_by = _order(order, errors=errors)
    with_data = extended or chosen.reads_data
    newest = _Newest()
    if file is not None:
        from qsctl.dumps.read import read_messages

        where = STANDARD_INPUT if is_standard_input(file) else str(file)
        with _opened(file) as stream:
            read = read_messages(stream, where, encoding=encoding, order=dates, with_data=with_data)
            if chosen.reads_data:
                read = _with_some_data(read, where)
            made = _made(newest.seen(read), chosen, form, expanded, limit, keys, newest, sorted_by, count=count)
        _note_other_data(chosen)
        return made
    assert database is not None
    from qsctl.dumps.from_database import listed

    held, is_damaged = read_database(database)
    stored_ones = held.failed() if errors else held.messages()
    stored = (listed(each, with_data=with_data) for each in stored_ones)
    made = _made(newest.seen(stored), chosen, form, expanded, limit, keys, newest, sorted_by, count=count)
    _note_other_data(chosen)
    if write_meta or write_messages:
        listed_ones = [each for each in stored_ones if chosen.fits(listed(each, with_data=chosen.reads_data))]
        _write_files(listed_ones, write_meta, write_messages, framing)
    return dataclasses.replace(made, is_damaged=is_damaged)


def _write_files(messages: Sequence[Message], meta: Path | None, data: Path | None, framing: Framing) -> None:
    """Write the metadata and the data of messages to new files, in the same order."""
    octets = None if data is None else joined_messages(messages, framing)
    for path, content in (
        (meta, "".join(f"{line}\n" for line in metadata_lines(messages)).encode("utf-8")),
        (data, octets),
    ):
        if path is not None and content is not None:
            with new_private_file(path, "Choose another name, or remove it first.") as stream:
                stream.write(content)
            note(f"Note: {path} is written: {len(messages)} messages.")


def _made(
    messages: Iterable[ListedMessage], chosen: Choice, form: ListingForm, expanded: bool, now: Moment | None,
    keys: Sequence[GroupBy], newest: _Newest, order: ListOrder | None, *, count: bool,
) -> Dumped | MessageCount:  # fmt: skip
    """Return the listing, groups or count, after reading all messages: faults of a listing are raised last."""
    from qsctl.dumps.groups import GroupBy, grouped
    from qsctl.dumps.model import ListingForm
    from qsctl.dumps.order import in_order

    fitting = (message for message in messages if chosen.fits(message))
    if chosen.reads_data and form is not ListingForm.EXTENDED:
        fitting = (dataclasses.replace(message, data=None) for message in fitting)
    if count:
        return MessageCount(sum(1 for _ in fitting))
    if keys and (now is not None or GroupBy.AGE not in keys):
        groups = grouped(fitting, keys, now)
        return Dumped((), form, expanded, now or newest.moment, groups, keys)
    kept = list(itertools.islice(fitting, MOST_LISTED + 1))
    if len(kept) > MOST_LISTED:
        raise InvalidInput(
            f"there are more than {MOST_LISTED} messages to list",
            remedy="Filter them, or count them with --group-by; ages need --now then.",
        )
    limit = now or newest.moment
    if keys:
        if newest.moment is not None and not newest.moment.has_date:
            note("Note: the times have no dates: ages are within one day.")
        return Dumped((), form, expanded, limit, grouped(kept, keys, limit), keys)
    if order is not None:
        kept = in_order(kept, order)
    return Dumped(kept, form, expanded, limit)


class _Newest:
    """The newest time among the messages that pass through `seen`."""

    def __init__(self) -> None:
        self.moment: Moment | None = None

    def seen(self, messages: Iterable[ListedMessage]) -> Iterator[ListedMessage]:
        """Yield the messages, and keep the newest of their times."""
        for message in messages:
            for each in (message.created, message.entered, message.outbound):
                if each is not None and (self.moment is None or self._is_later(each, self.moment)):
                    self.moment = each
            yield message

    @staticmethod
    def _is_later(one: Moment, other: Moment) -> bool:
        return (one.has_date, one.at_ns) > (other.has_date, other.at_ns)


def _check_source(database: Path | None, file: Path | None, *, recovery: bool, errors: bool) -> None:
    if (database is None) == (file is None):
        raise UsageError(
            "name a database, or a listing with --file" if file is None else "a database and --file are both given",
            remedy="As in: qsctl engine dump hospital.recovery, or: qsctl engine dump --file listing.txt.",
        )
    if recovery and errors:
        raise UsageError("--recovery and --errors are both given", remedy="List one after the other.")
    if file is not None and (recovery or errors):
        raise UsageError(
            "--recovery and --errors are of a database; a listing is of one of them",
            remedy="To choose by state: --state 1-20, or --state 100-1004.",
        )


def _group_keys(texts: Sequence[str] | None) -> list[GroupBy]:
    from qsctl.dumps.groups import GroupBy

    keys: list[GroupBy] = []
    for word in (part.strip().lower() for text in texts or () for part in text.split(",")):
        try:
            key = GroupBy(word)
        except ValueError:
            raise UsageError(
                f"--group-by {word!r} is none", remedy=f"Write one or more of: {', '.join(GroupBy)}."
            ) from None
        if key not in keys:
            keys.append(key)
    return keys


def _order(text: str | None, *, errors: bool) -> ListOrder | None:
    from qsctl.dumps.order import ListOrder

    if text is None:
        return None
    try:
        order = ListOrder({"inbound": "i", "outbound": "o"}.get(text, text))
    except ValueError:
        raise UsageError(
            f"--order {text!r} is not an order",
            remedy="Write i (inbound time), o (as it goes out) or queue (queue by queue, as each will go).",
        ) from None
    if errors and order is ListOrder.QUEUE:
        raise UsageError("the error database has no queues", remedy="Write --order i, or leave --errors out.")
    return order


def _note_other_data(chosen: Choice) -> None:
    """Note the messages that conditions on fields cannot match, since their data is not HL7."""
    if chosen.not_hl7:
        some = ", ".join(map(str, sorted(chosen.not_hl7)[:3]))
        more = " and others" if len(chosen.not_hl7) > 3 else ""
        note(f"Note: the data of {len(chosen.not_hl7)} messages is not HL7 v2: {some}{more}; -c searches any data.")


def _with_some_data(messages: Iterable[ListedMessage], where: str) -> Iterator[ListedMessage]:
    """Yield the messages of a listing whose data are searched.

    Raises:
        InvalidInput: after the last message, if none has data.
    """
    count = data_count = 0
    for message in messages:
        count += 1
        data_count += message.data is not None
        yield message
    if count and not data_count:
        raise InvalidInput(
            f"{where} shows no data that could be searched",
            remedy="Capture the listing in its extended form: hcidbdump -r -L, or qsctl engine dump -L.",
        )


@contextmanager
def _opened(file: Path) -> Iterator[BinaryIO]:
    if is_standard_input(file):
        yield typer.get_binary_stream("stdin")
        return
    with reading(file), file.open("rb") as stream:
        yield stream


@COMMANDS.command("states", examples=("qsctl engine states", "qsctl engine states 7 11 -o json"))
def show_states(
    numbers: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NUMBERS…", help="Numbers of states, as in 11, 1-6 or 7,10-11; left out: all.", show_default=False
        ),
    ] = None,
) -> States:
    """Show what the numbers in a listing's State column mean, and what to do about each.

    Exits with 4 where a number is not known.
    """
    from qsctl.dumps.choice import parse_states
    from qsctl.dumps.states import STATES

    if not numbers:
        return States(tuple(STATES.values()))
    ranges = [each for text in numbers for each in parse_states(text)]
    for first, last in ranges:
        if not any(first <= code <= last for code in STATES):
            named = str(first) if first == last else f"{first}-{last}"
            raise NotFound(f"there is no state {named}", remedy="qsctl engine states lists all of them.")
    return States(tuple(each for each in STATES.values() if any(first <= each.code <= last for first, last in ranges)))
