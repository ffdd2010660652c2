"""Files of many messages for `qsctl engine resend`, and those that `dump` writes for it: metadata, and data.

Decides the forms [CLOVERLEAF]. A file of metadata has one keyed list per message and line, as the index of saved
messages has; MID is the message's id, the other keys are its metadata. A file of data has messages that end with a
newline (nl), that follow their length in ten digits (len10), or a single one that is the whole file (eof).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from qsctl.errors import InvalidInput

if TYPE_CHECKING:
    from qsctl.core.integration.administration import ResendEdit
    from qsctl.core.integration.message import Message, MessageId
    from qsctl.netconfig.tcl import TclKeyedList

Note = Callable[..., None]
"""A function that notes a problem: its line, a message, the text found, and the allowed one."""
LARGEST_BYTES: Final = 1 << 30
_DIGITS: Final = 10
_PLAIN: Final = re.compile(r"[A-Za-z0-9_.:/-]+")
_TYPES: Final = {0: "UNKNOWN", 1: "DATA", 2: "REPLY"}


class Framing(StrEnum):
    """The way in which a file separates its messages."""

    NEWLINE = "nl"
    LENGTH = "len10"
    WHOLE_FILE = "eof"


class EditedMessage(NamedTuple):
    """An entry of a file of metadata."""

    mid: MessageId
    edit: ResendEdit
    line: int


def read_metadata(file: Path) -> list[EditedMessage]:
    """Return the entries of a file of metadata.

    Raises:
        NotFound: the file does not exist.
        InvalidInput: it is not such a file; names every problem with its line.
    """
    from qsctl.cli.engine.keyed_list_file import KeyedListFile

    source = KeyedListFile(
        file,
        LARGEST_BYTES,
        "Write it with qsctl engine dump DATABASE --errors --write-meta FILE, and edit that.",
        keeps_controls=True,
    )
    found: list[EditedMessage] = []
    lines: dict[MessageId, int] = {}
    for word in source.text.words(0, len(source.content)):
        entry = _entry(source.text.keyed(word), source.problems.add)
        if entry is not None and entry.mid in lines:
            allowed = "each message once"
            source.problems.add(entry.line, f"message {entry.mid} is in line {lines[entry.mid]}, too", allowed=allowed)
        elif entry is not None:
            lines[entry.mid] = entry.line
            found.append(entry)
        if source.problems.is_full:
            break
    if not found and not source.problems.errors:
        allowed = "a keyed list a message: {{MID {{DOMAIN 0} {HUB 1} {NUM 5}}} …}"
        source.problems.add(0, "there is no message in it", allowed=allowed)
    source.check()
    return found


def _entry(keyed: TclKeyedList, note: Note) -> EditedMessage | None:
    from qsctl.core.integration.administration import ResendEdit
    from qsctl.core.integration.message import PRIORITY_MAX, MessageId, parse_id
    from qsctl.errors import UsageError

    line = keyed.line
    if "MID" not in keyed:
        note(line, "the entry has no MID", ", ".join(keyed.entries)[:60], "{MID {{DOMAIN 0} {HUB 1} {NUM 5}}}")
        return None
    parts = [keyed.keyed("MID").value(name) for name in ("DOMAIN", "HUB", "NUM")] if "{" in keyed.value("MID") else []
    try:
        mid = MessageId(*map(_number, parts)) if parts else parse_id(keyed.value("MID"))
    except (UsageError, ValueError):
        note(keyed.line_of("MID"), "this is not a message id", keyed.value("MID")[:60], "{{DOMAIN x} {HUB y} {NUM z}}")
        return None
    priority = keyed.value("PRIORITY")
    if priority and not (priority.isascii() and priority.isdigit() and int(priority[:9]) <= PRIORITY_MAX):
        note(keyed.line_of("PRIORITY"), "this is not a priority", priority[:60], f"0 to {PRIORITY_MAX}")
        return None
    edit = ResendEdit(
        priority=int(priority) if priority else None,
        source=keyed.value("SOURCECONN") or None,
        destination=keyed.value("DESTCONN") or None,
        transaction_id=keyed.value("TRXID") if "TRXID" in keyed else None,
        user_data=keyed.value("USERDATA") if "USERDATA" in keyed else None,
    )
    return EditedMessage(mid, edit, line)


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise ValueError(text)
    return int(text)


def metadata_lines(messages: Iterable[Message]) -> Iterator[str]:
    """Yield a line of a file of metadata for each message."""
    for each in messages:
        fields = (
            ("MID", _id_text(each.mid)),
            ("SRCMID", _id_text(each.source_mid)),
            ("TYPE", _TYPES[int(each.type)]),
            ("SOURCECONN", _word(each.source)),
            ("ORIGSOURCECONN", _word(each.source)),
            ("DESTCONN", _word(each.destination)),
            ("ORIGDESTCONN", _word(each.destination)),
            ("TIME", f"{each.created_at_ns // 10**9}.{each.created_at_ns // 10**6 % 1000:03}"),
            ("PRIORITY", str(each.priority)),
            ("TRXID", _word(each.transaction_id)),
            ("USERDATA", _word(each.user_data)),
        )
        yield f"{{{' '.join(f'{{{name} {value}}}' for name, value in fields)}}}"


def _id_text(mid: MessageId) -> str:
    return f"{{{{DOMAIN {mid.site}}} {{HUB {mid.start}}} {{NUM {mid.number}}}}}"


def _word(text: str) -> str:
    """Return a text as one word of a Tcl list, on one line."""
    if _PLAIN.fullmatch(text):
        return text
    if not text:
        return "{}"
    return "".join(each if each.isalnum() and each.isascii() else _escaped(each) for each in text)


def _escaped(character: str) -> str:
    if character == " " or character in '{}[]$";\\':
        return f"\\{character}"
    return f"\\u{ord(character):04x}" if not character.isprintable() and ord(character) < 0x10000 else character


def split_messages(data: bytes, framing: Framing, name: str) -> list[bytes]:
    """Return the messages of a file's data.

    Raises:
        InvalidInput: the data do not have the given form, or contain no message; `name` is used in the error.
    """
    if framing is Framing.WHOLE_FILE:
        found = [data]
    elif framing is Framing.NEWLINE:
        found = data.removesuffix(b"\n").split(b"\n") if data else []
    else:
        found = []
        at = 0
        while at < len(data):
            digits = data[at : at + _DIGITS]
            end = at + _DIGITS + int(digits) if len(digits) == _DIGITS and digits.isdigit() else -1
            if not 0 <= end <= len(data):
                raise InvalidInput(
                    f"{name}: offset {at}: there is no message of a length in ten digits: {digits!r}",
                    remedy="Name what separates its messages with --framing: nl, len10 or eof.",
                )
            found.append(data[at + _DIGITS : end])
            at = end
    if not found or not all(found):
        raise InvalidInput(
            f"{name} has {'an empty message' if found else 'no message'}", remedy="Give the data of each message."
        )
    return found


def read_data(file: Path, framing: Framing) -> list[bytes]:
    """Read a file and return its messages, split as by `split_messages`.

    Raises:
        NotFound: the file does not exist.
        InvalidInput: it cannot be read, or does not have the given form.
    """
    from qsctl.cli.engine.keyed_list_file import bounded_octets

    return split_messages(bounded_octets(file, LARGEST_BYTES, "Split it."), framing, str(file))


def joined_messages(messages: Sequence[Message], framing: Framing) -> bytes:
    """Return the data of messages in the form of a file.

    Raises:
        InvalidInput: the framing cannot separate them.
    """
    if framing is Framing.LENGTH:
        return b"".join(b"%010d%b" % (each.size_bytes, each.payload) for each in messages)
    if framing is Framing.NEWLINE:
        for each in messages:
            if b"\n" in each.payload:
                raise InvalidInput(
                    f"message {each.mid} has a newline in its data", remedy="Use --framing len10, which needs none."
                )
        return b"".join(each.payload + b"\n" for each in messages)
    if len(messages) != 1:
        raise InvalidInput(
            f"--framing eof is for one message, and {len(messages)} are listed", remedy="Use --framing len10 or nl."
        )
    return messages[0].payload
