"""Queues, topic endpoints and the message spool in lines of a label and a value, as `show queue … detail` prints them.

A value follows a colon, or two blanks; of several figures in a line, as the spool has them for its memory, its disk and
both, the last is the sum. A label is read only where the command above it, or the name above it, states its object:
`Config Status` of the spool, not of another part of the broker.
"""

from __future__ import annotations

import re
from typing import Any, Final

from qsctl.profiles.listings import discards as d
from qsctl.profiles.listings._columns import ENDPOINT_COLUMNS, SPOOL_COLUMNS, TableColumn, plain_heading
from qsctl.profiles.listings._text import ListingText
from qsctl.profiles.listings.labels import TEXT
from qsctl.profiles.listings.model import EndpointUsage, SpoolUsage

_LINE: Final = re.compile(r"([A-Za-z#%][\w ()/#%.-]{0,60}?)[ \t]*(?::[ \t]*|[ \t]{2,})(\S.{0,400})?")
_NO_VALUE: Final = frozenset({"", "-", "-%", "N/A", "n/a", "unspecified"})
_FIGURES: Final = re.compile(r"[\d.]+(?:\s+[\d.]+)+")
_NEAR_LINES: Final = 2
"""A message VPN so far behind a name is that of the name."""
_KINDS: Final = {d.QUEUE: "queue", d.TOPIC_ENDPOINT: "topic endpoint"}


def _by_heading(columns: tuple[TableColumn, ...]) -> dict[str, TableColumn]:
    return {key: column for column in columns if column.field != "name" for key in column.keys}


_OF_ENDPOINTS: Final = _by_heading(ENDPOINT_COLUMNS)
_OF_SPOOLS: Final = _by_heading(SPOOL_COLUMNS)
_FIGURES_OF_SPOOLS: Final = frozenset({"maximum_usage_mb", "usage_mb", "spooled_messages"})


class UsageLines:
    """The labelled lines of endpoints and of the spool that were read so far."""

    def __init__(self, source: ListingText) -> None:
        self._source = source
        self._endpoints: list[dict[str, Any]] = []
        self._spools: list[dict[str, Any]] = []
        self._owner_line = 0

    def begin(self, of: str, line: int) -> None:
        """Begin an object that a line names.

        Args:
            of: the client, queue, topic endpoint or message VPN, with its kind before the name.
            line: the line's number.
        """
        self._owner_line = line
        for prefix, kind in _KINDS.items():
            if of.startswith(prefix):
                self._endpoints.append({"name": of.removeprefix(prefix), "kind": kind})

    def is_near(self, of: str, line: int) -> bool:
        """Return whether a message VPN in this line belongs to the client or endpoint named just above it."""
        return of.startswith((d.CLIENT, *_KINDS)) and 0 < line - self._owner_line <= _NEAR_LINES

    def take_message_vpn(self, of: str, name: str) -> None:
        """Set the message VPN of the endpoint named just above."""
        if of.startswith(tuple(_KINDS)) and self._endpoints:
            self._endpoints[-1].setdefault("message_vpn", name)

    def take(self, line: str, of: str, command: str, at: int) -> bool:
        """Read a line; return whether it has one of the known labels.

        Args:
            line: without blanks around it.
            of: the object that it is about.
            command: above it; empty where none was captured.
            at: where the line begins.
        """
        found = _LINE.fullmatch(line)
        if found is None:
            return False
        label, text = plain_heading(found[1]), (found[2] or "").strip()
        if of.startswith(tuple(_KINDS)):
            column = _OF_ENDPOINTS.get(label)
            if column is None or not self._endpoints:
                return False
            self._put(self._endpoints[-1], column, text, of, at)
            return True
        column = _OF_SPOOLS.get(label)
        if column is None or of.startswith(d.CLIENT) or (command and "message-spool" not in command):
            return False
        whose = d.of_message_vpn(of.removeprefix(d.MESSAGE_VPN)) if of.startswith(d.MESSAGE_VPN) else d.SPOOL
        if not self._spools or self._spools[-1]["of"] != whose or column.field in self._spools[-1]:
            self._spools.append({"of": whose})
        self._put(self._spools[-1], column, text, whose, at)
        return True

    def _put(self, values: dict[str, Any], column: TableColumn, text: str, of: str, at: int) -> None:
        if column.kind is not TEXT and _FIGURES.fullmatch(text):
            text = text.split()[-1]
        if text in _NO_VALUE:
            values.setdefault(column.field, None)
            return
        try:
            values[column.field] = column.kind.read(text)
        except ValueError:
            values.setdefault(column.field, None)
            self._source.note(
                f"{column.heading} is not {column.kind.allowed}", path=of, found=text, allowed=column.kind.allowed,
                at=at,
            )  # fmt: skip

    def endpoints(self) -> list[EndpointUsage]:
        """Return the endpoints that have more than a name and a message VPN."""
        return [EndpointUsage(**each) for each in self._endpoints if each.keys() - {"name", "kind", "message_vpn"}]

    def spools(self) -> list[SpoolUsage]:
        """Return the parts of the spool that have a figure."""
        return [
            SpoolUsage(**each)
            for each in self._spools
            if any(each.get(field) is not None for field in _FIGURES_OF_SPOOLS)
        ]
