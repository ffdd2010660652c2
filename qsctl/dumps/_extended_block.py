"""One message of the extended form, built from its lines in order.

Decides: the required fields of a message, and which line is used if two have the same field.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from qsctl.core.integration.message import MessageId
from qsctl.dumps._fields import BY_NAME, DATA, SECOND_STATE, MessageField, other_name, unescaped
from qsctl.dumps._values import Trouble
from qsctl.dumps.model import ListedMessage
from qsctl.dumps.moments import DateOrder
from qsctl.dumps.payload_text import payload_octets

MOST_OTHERS: Final = 100
"""Lines of one message that are not known: a file with more is something else."""

LONG_NAMES: Final[Mapping[str, str]] = {
    "Source Mid": "source_mid",
    "Owner": "owner",
    "Process": "process",
    "Entered": "entered",
}
"""The lines of the long form below a row: the field of each."""


class Block:
    """The lines of one message.

    Args:
        number: the line that it begins in.
        order: of dates in numbers.
        encoding: of characters beyond ASCII in its data.
        with_data: whether the data is kept.
    """

    def __init__(self, number: int, order: DateOrder, encoding: str, *, with_data: bool) -> None:
        self.number = number
        self.is_broken = False
        self._order = order
        self._encoding = encoding
        self._with_data = with_data
        self._values: dict[str, Any] = {}
        self._others: list[tuple[str, str]] = []
        self._second_state: int | None = None

    @staticmethod
    def of_the_long_form() -> dict[str, tuple[str, Callable[[str, DateOrder], Any], str]]:
        """Return the lines of the long form by their names: field, reader, what is allowed."""
        by_field: dict[str, MessageField] = {each.field: each for each in BY_NAME.values()}
        return {
            name.lower(): (field, by_field[field].read, by_field[field].allowed) for name, field in LONG_NAMES.items()
        }

    @property
    def mid(self) -> MessageId | None:
        """The message id, or None if its line was not read yet."""
        mid: MessageId | None = self._values.get("mid")
        return mid

    def add(self, name: str, text: str) -> list[Trouble]:
        """Read the value of a line, and return its problems."""
        key = name.lower()
        if key == DATA:
            return self._add_data(text)
        known = BY_NAME.get(key)
        if known is None and key != SECOND_STATE:
            return self._add_other(name, text)
        try:
            if known is None:
                self._second_state = BY_NAME["msgstate"].read(text, self._order) if text else None
            elif text:
                self._values[known.field] = known.read(text, self._order)
        except ValueError:
            if key == "msgstate":
                return []  # words alone, in another language: msgRecoveryDbState has the number
            self.is_broken = True
            return [Trouble(f"{name} is not understood", text, known.allowed if known else "a whole number")]
        return []

    def _add_data(self, text: str) -> list[Trouble]:
        try:
            data = payload_octets(text, self._encoding)
        except (ValueError, LookupError) as error:
            self.is_broken = True
            return [Trouble(f"the data of the message is cut: {error}", text, "the data between '…'")]
        self._values["size_bytes"] = len(data)
        if self._with_data:
            self._values["data"] = data
        return []

    def _add_other(self, name: str, text: str) -> list[Trouble]:
        if len(self._others) == MOST_OTHERS:
            self.is_broken = True
            return [Trouble("the message has too many lines that are not known", name, f"{MOST_OTHERS} lines")]
        if not self.is_broken:
            self._others.append((other_name(name), unescaped(text)))
        return []

    def missing(self) -> list[Trouble]:
        """Return a problem that names the required fields that the message lacks; empty for a complete one."""
        if self.is_broken:
            return []
        if "state" not in self._values and self._second_state is not None:
            self._values["state"] = self._second_state
        missing = [
            name for name, field in (("msgMid", "mid"), ("msgState", "state")) if self._values.get(field) is None
        ]
        if not missing:
            return []
        self.is_broken = True
        return [Trouble(f"the message is cut: it has no {' and no '.join(missing)}", "", "every line of the message")]

    def message(self) -> ListedMessage:
        """Return the message built from the lines."""
        return ListedMessage(others=tuple(self._others), **self._values)
