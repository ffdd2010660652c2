"""The lines of the extended form: `name : value`, each field of a message with its name there.

Decides: names. Those that begin with msg are the vendor's; msgQueue, msgProcess, msgTransactionId, msgLength and
msgErrorText are added here for fields that the vendor's listing lacks. An unknown field is kept under its own name.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from qsctl.dumps._flags import names_of
from qsctl.dumps._values import (
    ALLOWED_MOMENT,
    READERS,
    class_letter,
    message_id,
    plain_number,
    state_number,
    type_letter,
    whole_number,
    yes_or_no,
)
from qsctl.dumps.model import CLASSES, TYPES, ListedMessage
from qsctl.dumps.moments import DateOrder, Moment, epoch_text, from_epoch, parse_moment
from qsctl.dumps.states import meaning_of

DATA: Final = "message"
NAME_WIDTH: Final = 18

_LINE: Final = re.compile(r"\s*([^\s:][^:]{0,60}?)\s*:(?:\s(.*)|\Z)", re.DOTALL)
_START: Final = re.compile(r"\s*msg\s*:\s*(?:0x[0-9A-Fa-f]+|\d*)\s*")
_STATE: Final = re.compile(r"(?:.*\()?(\d{1,5})\)?", re.DOTALL)
_FLAGS: Final = re.compile(r"(0x[0-9A-Fa-f]{1,16}|\d{1,19})(?:\s*\(.*\))?")
_NIL: Final = frozenset({"", "midNULL", "NULL", "{}"})


def is_start(line: str) -> bool:
    """Return whether a line begins a message: `msg:`, followed by an address in the vendor's listings."""
    return len(line) < 100 and _START.fullmatch(line) is not None


def split(line: str) -> tuple[str, str] | None:
    """Return the name and the value of a line; None if it is not of the form `name : value`."""
    found = _LINE.fullmatch(line)
    return None if found is None else (found[1], (found[2] or "").strip(" "))


class MessageField(NamedTuple):
    """One line: the field of `ListedMessage`, how it is read and written, and what is allowed."""

    name: str
    field: str
    read: Callable[[str, DateOrder], Any]
    write: Callable[[Any], str]
    allowed: str


def _text(text: str, _order: DateOrder) -> str:
    return unescaped(text)


def _mid(text: str, _order: DateOrder) -> Any:
    return None if text in _NIL else message_id(text)


def _count(text: str, _order: DateOrder) -> int:
    return whole_number(text)


def _number(text: str, _order: DateOrder) -> int:
    return plain_number(text)


def _state(text: str, _order: DateOrder) -> int:
    found = _STATE.fullmatch(text)
    if found is None:
        raise ValueError(text)
    return state_number(found[1])


def _flags(text: str, _order: DateOrder) -> int:
    found = _FLAGS.fullmatch(text)
    if found is None:
        raise ValueError(text)
    return int(found[1], 0) if found[1].startswith("0x") else int(found[1])


def _moment(text: str, order: DateOrder) -> Moment | None:
    """Return the instant of seconds since 1970 with their date in brackets, or of a date. 0.000 alone means never."""
    number, bracket, _ = text.partition("(")
    number = number.strip()
    if re.fullmatch(r"[0-9.]+", number) and number.count(".") <= 1:
        return None if not bracket and not number.strip("0.") else from_epoch(number)
    return parse_moment(text, order)


def _moment_text(moment: Moment) -> str:
    return epoch_text(moment) if moment.is_utc else str(moment)


def write_state(code: int) -> str:
    """Return the text of a state: its name, and the number."""
    return f"{meaning_of(code).name} ({code})"


_MSG = "a message id as in [0.1.42], or midNULL"
FIELDS: Final = (
    MessageField("msgType", "type", lambda text, _: type_letter(text), lambda value: TYPES[value].upper(),
          READERS["type"][2]),
    MessageField("msgClass", "message_class", lambda text, _: class_letter(text), lambda value: CLASSES[value].upper(),
          READERS["message_class"][2]),
    MessageField("msgState", "state", _state, write_state, "a name with the number in brackets, or the number"),
    MessageField("msgPriority", "priority", _number, str, "a whole number"),
    MessageField("msgFlags", "flags", _flags, lambda value: f"0x{value:08x}", "a hexadecimal number, as in 0x8002"),
    MessageField("msgMid", "mid", _mid, str, "a message id as in [0.1.42]"),
    MessageField("msgSrcMid", "source_mid", _mid, str, _MSG),
    MessageField("msgOrigSrcThread", "original_source", _text, str, ""),
    MessageField("msgOrigDestThread", "original_destination", _text, str, ""),
    MessageField("msgSrcThread", "source", _text, str, ""),
    MessageField("msgDestThread", "destination", _text, str, ""),
    MessageField("msgOwner", "owner", _text, str, ""),
    MessageField("msgProcess", "process", _text, str, ""),
    MessageField("msgQueue", "queue", _text, str, ""),
    MessageField("msgTransactionId", "transaction_id", _text, str, ""),
    MessageField("msgSkipXlate", "skips_translation", lambda text, _: yes_or_no(text), lambda value: str(int(value)),
          "0 or 1"),
    MessageField("msgForward", "forward", lambda text, _: yes_or_no(text), lambda value: str(int(value)), "0 or 1"),
    MessageField("msgNumRetries", "retries", _count, str, "a whole number"),
    MessageField("msgUserData", "user_data", _text, str, ""),
    MessageField("msgTimeStartIb", "created", _moment, _moment_text, ALLOWED_MOMENT),
    MessageField("msgTimeStartOb", "outbound", _moment, _moment_text, ALLOWED_MOMENT),
    MessageField("msgTimeRecovery", "entered", _moment, _moment_text, ALLOWED_MOMENT),
    MessageField("msgErrorText", "error_text", _text, str, ""),
    MessageField("msgLength", "size_bytes", _count, str, "a whole number of octets"),
)  # fmt: skip
"""In the order in which they are printed."""

BY_NAME: Final = {each.name.lower(): each for each in FIELDS}
SECOND_STATE: Final = "msgrecoverydbstate"
"""The number alone, which counts where msgState has words without it."""


def knows(name: str) -> bool:
    """Return whether a line of this name is one of the extended form."""
    return name.lower() in BY_NAME or name.lower() in {SECOND_STATE, DATA, "msg"}


def other_name(heading: str) -> str:
    """Return the name under which an unknown heading's values are kept: a line may begin with it."""
    printable = "".join(each if each.isprintable() and each != ":" else " " for each in heading)
    name = " ".join(printable.split())[:40].strip()
    return f"column {name}".strip() if not name or knows(name) else name


_UNSAFE: Final = re.compile(r"[^ -~]|\\|^ | $")
_ESCAPE: Final = re.compile(r"\\(?:x([0-9a-f]{2})|u([0-9a-f]{8})|\\)")


def escaped(text: str) -> str:
    """Return a text escaped to one line; `unescaped` is the inverse."""
    return _UNSAFE.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    number = ord(found[0])
    if number > 126 and found[0].isprintable():
        return found[0]
    return "\\\\" if number == 92 else f"\\x{number:02x}" if number < 256 else f"\\u{number:08x}"


def unescaped(text: str) -> str:
    """Return the text without its escapes; other backslashes are kept."""
    if "\\" not in text:
        return text
    return _ESCAPE.sub(_plain, text)


def _plain(found: re.Match[str]) -> str:
    number = int(found[1] or found[2] or "5c", 16)
    return chr(number) if number < 0x110000 else found[0]


def field_line(field: MessageField, message: ListedMessage, *, expanded: bool) -> str | None:
    """Return the line of a field; None where the message has no value for it."""
    value = getattr(message, field.field)
    if value is None or value == "":
        return None
    text = escaped(value) if field.read is _text else field.write(value)
    if field.name == "msgFlags" and expanded:
        text += f" ({' | '.join(names_of(value)) or 'none'})"
    return f"    {field.name:<{NAME_WIDTH}}: {text}"
