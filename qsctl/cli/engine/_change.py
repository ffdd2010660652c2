"""`qsctl engine resend`, `delete`, `move`: an operator's changes to the messages of a recovery database.

Decides when a change is made. The command selects messages, or has --all; it is confirmed on a terminal, elsewhere by
--yes; and no engine may use the database, since messages in its memory would be delivered nevertheless. All selected
messages are changed, or none.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from qsctl.cli.command import Commands
from qsctl.cli.engine._change_results import Deleted, MovedMessages, Resent, counted
from qsctl.cli.engine._databases import whole_database
from qsctl.cli.engine._message_files import Framing, read_data, read_metadata
from qsctl.cli.engine._options import (
    DatabaseArgument,
    DryRunOption,
    ErrorsOption,
    FramingOption,
    MessageOptions,
    PriorityOption,
    YesOption,
)
from qsctl.errors import Interrupted, InvalidInput, NotFound, Refused, UsageError

if TYPE_CHECKING:
    from qsctl.cli.engine._message_files import EditedMessage
    from qsctl.core.integration.administration import MovePlace, ResendEdit
    from qsctl.core.integration.database import Database
    from qsctl.core.integration.message import Message, MessageId
    from qsctl.core.integration.messages import ResendPlace
    from qsctl.dumps.choice import Choice
    from qsctl.sim.engine.recovery_store import RecoveryStore

COMMANDS: Final = Commands()

AllOption = Annotated[bool, typer.Option("--all", help="Select every message of the database.")]
_MOST_ADVICE = 20
_EDITABLE: Final = ("transaction_id", "user_data", "source")


@COMMANDS.command(
    "resend",
    examples=(
        "qsctl engine resend hospital.recovery --mid 0.1.23 --data corrected.hl7 --yes",
        "qsctl engine resend hospital.recovery --state 405 --destination lab_out --into ob_pre_tps --dry-run",
        "qsctl engine resend hospital.recovery --meta edited.meta --messages edited.txt --framing nl --yes",
        "qsctl engine resend hospital.recovery --state 405 --into ob_pre_tps --to lab2_out --priority 6000 --yes",
    ),
)
def resend(
    database: DatabaseArgument,
    *,
    messages: MessageOptions,
    every: AllOption = False,
    into: Annotated[
        str,
        typer.Option(
            metavar="PLACE",
            help="Queue to send into: ib_pre_tps or ib_post_tps, of the source thread; ob_pre_tps or ob_post_tps, of "
            "the destination.",
        ),
    ] = "ib_pre_tps",
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File of corrected data for the message, which must be a single one.",
            show_default="its own data",
        ),
    ] = None,
    metadata: Annotated[
        Path | None,
        typer.Option(
            "--meta",
            metavar="FILE",
            help="File of metadata, a message a line, that names the messages in place of a choice, and what is "
            "different: `dump --write-meta` writes one.",
            show_default="none",
        ),
    ] = None,
    many: Annotated[
        Path | None,
        typer.Option(
            "--messages",
            metavar="FILE",
            help="File with the data of each message, in the order of --meta, or of their ids.",
            show_default="their own data",
        ),
    ] = None,
    framing: FramingOption = Framing.NEWLINE,
    to: Annotated[
        str | None,
        typer.Option(
            metavar="THREAD",
            help="Destination thread, with --into ob_pre_tps or ob_post_tps.",
            show_default="that of the message",
        ),
    ] = None,
    priority: PriorityOption = None,
    edits: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="FIELD=VALUE",
            help="Metadata with another value: transaction_id, user_data or source; may be repeated.",
            show_default="as they were",
        ),
    ] = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
) -> Resent:
    """Send messages of the error database again: each gets a new id, keeps its source's, and leaves the error database.

    Refused while an engine uses the database. Exits with 4 where no message fits.
    """
    from qsctl.core.integration.administration import UNEDITED, ResendEdit, resending
    from qsctl.core.integration.messages import ResendPlace
    from qsctl.sim.engine.recovery_store import is_in_use

    try:
        place = ResendPlace(into.lower())
    except ValueError:
        raise UsageError(f"--into {into!r} is not a queue", remedy=f"Write one of: {', '.join(ResendPlace)}.") from None
    content = whole_database(database)
    listed_edits = {} if metadata is None else {each.mid: each for each in read_metadata(metadata)}
    if metadata is None:
        chosen = _choice(messages, every=every)
        found = _fitting(content, chosen, errors=True)
        if not found:
            _refuse_if_on_its_way(content, chosen, database)
        _check_found(found, database, errors=True)
    else:
        _refuse_choice_with(metadata, messages, every=every)
        failed = {each.mid: each for each in content.failed()}
        found = [_named(failed, each, metadata, database) for each in listed_edits.values()]
    _check_destination(to, place)
    octets = _data_of_each(found, data, many, framing)
    edit = ResendEdit(None, priority, destination=to, **_metadata(edits or ()))
    named: dict[MessageId, ResendEdit] = {}
    for each, own in zip(found, octets, strict=True):
        of_file = listed_edits[each.mid].edit if each.mid in listed_edits else UNEDITED
        _check_destination(None if of_file.destination in {None, each.destination} else of_file.destination, place)
        named[each.mid] = of_file._replace(**{"payload": own, **edit.changes})
    if dry_run:
        return Resent(str(database), _pairs(found, resending(content, named, place, _now(content))[1]), True)
    if is_in_use(database):
        raise _in_use(database, (), "resend")
    resending(content, named, place, _now(content))  # refused before the question, not behind it
    _confirm(f"Send {counted(len(found))} of {database} again?", yes=yes)
    with _opened(database, (), "resend") as store:
        records, new = resending(store.database, named, place, _now(store.database))
        store.append(records)
        store.compact()
    return Resent(str(database), _pairs(found, new), False)


def _pairs(old: Sequence[Message], new: Sequence[Message]) -> list[tuple[Message, Message]]:
    return list(zip(old, new, strict=True))


def _check_destination(to: str | None, place: ResendPlace) -> None:
    if to is not None and place.value.startswith("ib_"):
        raise UsageError(
            f"--to {to} is given, and {place} is before the translation, whose routes decide on the destination",
            remedy="Add --into ob_pre_tps or --into ob_post_tps.",
        )


def _metadata(texts: Sequence[str]) -> dict[str, str]:
    """Return the fields of `--set` by name."""
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or name not in _EDITABLE or (name == "source" and not value):
            raise UsageError(f"--set {text!r} is not an edit", remedy=f"Write FIELD=VALUE of: {', '.join(_EDITABLE)}.")
        found[name] = value
    return found


@COMMANDS.command(
    "delete",
    examples=(
        "qsctl engine delete hospital.recovery --state 7,11 --destination rad_out --dry-run",
        "qsctl engine delete hospital.recovery --errors --mid 0.1.23 --yes",
    ),
)
def delete(
    database: DatabaseArgument,
    errors: ErrorsOption = False,
    *,
    messages: MessageOptions,
    every: AllOption = False,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
) -> Deleted:
    """Delete messages from the recovery database, or with --errors from the error database.

    Refused while an engine uses the database: a message is in the memory of its thread or process, too, and would be
    delivered after all. The error names what to stop. Exits with 4 where no message fits.
    """
    from qsctl.core.integration.administration import deletion
    from qsctl.sim.engine.recovery_store import is_in_use

    chosen = _choice(messages, every=every)
    found = _fitting(whole_database(database), chosen, errors=errors)
    _check_found(found, database, errors=errors)
    advice = _advice(found)
    if is_in_use(database):
        if not dry_run:
            raise _in_use(database, advice, "delete")
        return Deleted(str(database), found, True, (f"{database} is in use by an engine:", *advice))
    if dry_run:
        return Deleted(str(database), found, True, ())
    _confirm(f"Delete {counted(len(found))} of {database}?", yes=yes)
    with _opened(database, advice, "delete") as store:
        store.append(deletion(store.database, [each.mid for each in found]))
        store.compact()
    return Deleted(str(database), found, False, ())


@COMMANDS.command(
    "move",
    examples=(
        "qsctl engine move hospital.recovery --state 7,11 --destination lab_out --to lab2_out --into post_xlt --yes",
        "qsctl engine move hospital.recovery --mid 0.1.23 --front --yes  # it goes next",
        "qsctl engine move hospital.recovery --state 11 --until 08:00 --into errors --error 405 --dry-run",
    ),
)
def move(
    database: DatabaseArgument,
    *,
    messages: MessageOptions,
    every: AllOption = False,
    into: Annotated[
        str | None,
        typer.Option(
            metavar="PLACE",
            help="Queue to move into: ib_pre_tps, ib_post_tps, pre_xlt, post_xlt, ob_pre_tps or ob_post_tps; errors: "
            "the error database.",
            show_default="the queue that they are in",
        ),
    ] = None,
    to: Annotated[
        str | None,
        typer.Option(
            metavar="THREAD",
            help="Destination thread, of messages behind the translation.",
            show_default="that of the message",
        ),
    ] = None,
    priority: PriorityOption = None,
    front: Annotated[
        bool,
        typer.Option(
            "--front", help="Put them before all others of their queue, with at least the priority that those have."
        ),
    ] = False,
    error: Annotated[
        int | None,
        typer.Option(
            min=100,
            max=99_999,
            metavar="NUMBER",
            help="Number that they get in the error database, with --into errors.",
        ),
    ] = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
) -> MovedMessages:
    """Move waiting messages to another queue, another destination, the front, or the error database.

    They keep their ids, and among each other their order. What was being written to its receiver is marked as a
    possible duplicate. A result of a translation does not go back before it. Refused while an engine uses the database;
    the error names what to stop. Exits with 4 where no message fits.
    """
    from qsctl.core.integration.administration import MoveOrder, MovePlace, moving
    from qsctl.sim.engine.recovery_store import is_in_use

    try:
        place = None if into is None else MovePlace(into.lower())
    except ValueError:
        raise UsageError(f"--into {into!r} is not a queue", remedy=f"Write one of: {', '.join(MovePlace)}.") from None
    _check_move(place, error, is_other=to is not None or priority is not None or front)
    order = MoveOrder(place, to, priority, front, error or 0)
    chosen = _choice(messages, every=every)
    content = whole_database(database)
    found = _fitting(content, chosen, errors=False)
    _check_found(found, database, errors=False)
    named = [each.mid for each in found]
    was = {each.mid: each for each in found}
    _, after = moving(content, named, order, _now(content))  # refused before the question, not behind it
    advice = (*_advice(found, "move"), *_advice_of_targets(found, after))
    if is_in_use(database):
        if not dry_run:
            raise _in_use(database, advice, "move")
        in_use = f"{database} is in use by an engine:"
        return MovedMessages(str(database), [(was[each.mid], each) for each in after], True, (in_use, *advice))
    if dry_run:
        return MovedMessages(str(database), [(was[each.mid], each) for each in after], True, ())
    _confirm(f"Move {counted(len(found))} of {database}?", yes=yes)
    with _opened(database, advice, "move") as store:
        records, after = moving(store.database, named, order, _now(store.database))
        store.append(records)
        store.compact()
    return MovedMessages(str(database), [(was[each.mid], each) for each in after], False, ())


def _check_move(place: MovePlace | None, error: int | None, *, is_other: bool) -> None:
    is_to_errors = place is not None and place.value == "errors"
    if place is None and not is_other:
        raise UsageError("nothing is to be changed", remedy="Name --into, --to, --priority or --front.")
    if is_to_errors != (error is not None):
        raise UsageError(
            "--into errors needs the number of an error" if is_to_errors else "--error is given without --into errors",
            remedy="As in: --into errors --error 405; qsctl engine states lists the numbers.",
        )
    if is_to_errors and is_other:
        raise UsageError("the error database has no order", remedy="Leave --to, --priority and --front out.")


def _choice(messages: MessageOptions, *, every: bool) -> Choice:
    from qsctl.dumps.moments import DateOrder

    chosen = messages.choice(DateOrder.MONTH_FIRST)
    if chosen.is_everything != every:
        raise UsageError(
            "--all and a choice are both given" if every else "no messages are named",
            remedy="Name them, as in --mid 0.1.4 or --state 11 --destination lab; or all of them with --all.",
        )
    return chosen


def _fitting(content: Database, chosen: Choice, *, errors: bool) -> list[Message]:
    from qsctl.dumps.from_database import listed

    held = content.failed() if errors else content.messages()
    found = [message for message in held if chosen.fits(listed(message, with_data=chosen.reads_data))]
    _check_short_ids(chosen, found)
    return found


def _check_short_ids(chosen: Choice, found: Sequence[Message]) -> None:
    """Check that no short id selects several messages.

    Raises:
        UsageError: one does.
    """
    from qsctl.dumps.choice import NumberRange

    for each in chosen.mids:
        if isinstance(each, NumberRange) and each.first == each.last:
            meant = [message.mid for message in found if message.mid in each]
            if len(meant) > 1:
                raise UsageError(
                    f"--mid {each} is the short id of {len(meant)} messages: {', '.join(map(str, meant))}",
                    remedy="Write the whole id.",
                )


def _check_found(found: Sequence[Message], database: Path, *, errors: bool) -> None:
    if not found:
        which = "error" if errors else "recovery"
        option = " --errors" if errors else ""
        raise NotFound(
            f"{database}: no message of the {which} database matches",
            remedy=f"qsctl engine dump {database}{option} lists the messages.",
        )


def _refuse_if_on_its_way(content: Database, chosen: Choice, database: Path) -> None:
    """Refuse a selected message that is in the recovery database, since it has not failed."""
    waiting = _fitting(content, chosen, errors=False) if chosen.mids else []
    if waiting:
        raise Refused(
            f"{database}: message {waiting[0].mid} is in the recovery database ({waiting[0].queue_name}), "
            "not in the error database",
            remedy="It is on its way; only a message that failed is sent again.",
        )


def _refuse_choice_with(metadata: Path, messages: MessageOptions, *, every: bool) -> None:
    from qsctl.dumps.moments import DateOrder

    if every or not messages.choice(DateOrder.MONTH_FIRST).is_everything:
        raise UsageError(
            f"--meta {metadata} and a choice are both given",
            remedy="The file names the messages: edit it.",
        )


def _named(failed: Mapping[MessageId, Message], each: EditedMessage, metadata: Path, database: Path) -> Message:
    found = failed.get(each.mid)
    if found is None:
        raise NotFound(
            f"{metadata}:{each.line}: there is no message {each.mid} in the error database of {database}",
            remedy="Nothing was sent. Take the line out; qsctl engine dump --errors lists the messages.",
        )
    return found


def _data_of_each(
    found: Sequence[Message], data: Path | None, many: Path | None, framing: Framing
) -> Sequence[bytes | None]:
    """Return the new data of each message; None for messages that keep their own."""
    if data is not None and many is not None:
        raise UsageError("--data and --messages are both given", remedy="Name one of them.")
    if data is not None and len(found) != 1:
        raise UsageError(
            f"--data is for one message, and {len(found)} are named",
            remedy="Name it, as in --mid 0.1.4; or give the data of all of them with --messages.",
        )
    if data is not None:
        return read_data(data, Framing.WHOLE_FILE)
    if many is None:
        return [None] * len(found)
    octets = read_data(many, framing)
    if len(octets) != len(found):
        raise InvalidInput(
            f"{many} has {counted(len(octets))}, and {len(found)} are named",
            remedy=f"Nothing was sent. --framing {framing} separates them; nl, len10 and eof are known.",
        )
    return octets


def _now(content: Database) -> int:
    """Return the newest time in a database, in place of the wall clock: its clock may be that of a simulation."""
    held = [*content.recovery.values(), *content.errors.values()]
    return max((max(each.created_at_ns, each.entered_at_ns, each.outbound_at_ns) for each in held), default=0)


def _advice(found: Iterable[Message], verb: str = "delete") -> tuple[str, ...]:
    """Return a line for each thread and process that has to stop before these messages are changed."""
    from qsctl.core.integration.administration import Keeper, requirement_of

    needed: dict[str, list[Message]] = {}
    for message in found:
        requirement = requirement_of(message)
        if requirement is not None:
            is_thread = requirement.keeper is Keeper.THREAD and requirement.process
            also = f" (or its process {requirement.process})" if is_thread else ""
            needed.setdefault(f"{requirement.keeper} {requirement.name}{also}", []).append(message)
    lines = [
        f"stop {what} first, then {verb} {counted(len(messages))} in {_states_of(messages)}, then start it again"
        for what, messages in needed.items()
    ]
    more = len(lines) - _MOST_ADVICE
    return (*lines[:_MOST_ADVICE], *([f"and {more} more threads and processes"] if more > 0 else []))


def _advice_of_targets(found: Iterable[Message], after: Iterable[Message]) -> tuple[str, ...]:
    """Return a line for each target thread that has to stop, too: it finds the moved messages at its next start."""
    from qsctl.core.integration.administration import Keeper, keeper_of

    before = {each.owner for each in found}
    targets: dict[str, None] = {}
    for each in after:
        if not each.is_error and each.owner not in before:
            is_process = keeper_of(each.state) is Keeper.PROCESS
            targets[f"the process of thread {each.owner}" if is_process else f"thread {each.owner}"] = None
    return tuple(f"stop {target} first, too: it finds them when it starts" for target in targets)


def _states_of(messages: Iterable[Message]) -> str:
    states = dict.fromkeys((each.state.code, each.queue_name) for each in messages)
    return ", ".join(f"state {code} ({name})" for code, name in states)


def _in_use(database: Path, advice: Sequence[str], verb: str) -> Refused:
    what = "\n".join(("", *advice))
    return Refused(
        f"{database} is in use by an engine: what it has in memory would be delivered after all{what}"
        if verb != "resend"
        else f"{database} is in use by an engine, which would not see what is sent again",
        remedy=f"Stop the engine, {verb}, and start it again.",
    )


@contextmanager
def _opened(database: Path, advice: Sequence[str], verb: str) -> Iterator[RecoveryStore]:
    """Yield the store, open for one change.

    Raises:
        Refused: an engine has begun to use it.
    """
    from qsctl.sim.engine.recovery_store import RecoveryStore, is_in_use

    if is_in_use(database):
        raise _in_use(database, advice, verb)
    with closing(RecoveryStore(database)) as store:
        yield store


def _is_terminal() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def _confirm(question: str, *, yes: bool) -> None:
    """Ask for confirmation on a terminal, unless `yes`.

    Raises:
        UsageError: there is no terminal.
        Interrupted: the answer is no.
    """
    if yes:
        return
    if not _is_terminal():
        raise UsageError("there is no terminal for the confirmation", remedy="Add --yes, or try --dry-run first.")
    if not typer.confirm(question, default=False, err=True):
        raise Interrupted("nothing was changed")
