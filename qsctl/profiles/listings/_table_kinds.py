"""The tables recognized by their headings: the columns of each, and the dataclass of its rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from qsctl.profiles.listings._columns import (
    CONNECTION_COLUMNS,
    ENDPOINT_COLUMNS,
    ONLY_OF_CONNECTIONS,
    SLOW_COLUMNS,
    SPOOL_COLUMNS,
    TableColumn,
    plain_heading,
)
from qsctl.profiles.listings.discards import of_message_vpn
from qsctl.profiles.listings.model import ClientConnection, EndpointUsage, SlowSubscriber, SpoolUsage

TableRow: TypeAlias = SlowSubscriber | ClientConnection | EndpointUsage | SpoolUsage


@dataclass(frozen=True, slots=True)
class TableKind:
    """A kind of table: its columns, those of which one is required, and the dataclass of a row."""

    columns: tuple[TableColumn, ...]
    needed: frozenset[str]
    make: Callable[..., TableRow]


def _endpoint(**row: Any) -> EndpointUsage:
    return EndpointUsage(**row)


def _spool_of_message_vpn(name: str, **row: Any) -> SpoolUsage:
    return SpoolUsage(of_message_vpn(name), **row)


_KINDS: Final = (
    TableKind(SLOW_COLUMNS, frozenset({"slow_subscriber", "blocked_percent"}), SlowSubscriber),
    TableKind(CONNECTION_COLUMNS, ONLY_OF_CONNECTIONS, ClientConnection),
    TableKind(ENDPOINT_COLUMNS, frozenset({"spooled_messages", "usage_mb", "high_water_mark_mb"}), _endpoint),
    TableKind(
        SPOOL_COLUMNS, frozenset({"spooled_messages", "usage_mb", "maximum_usage_mb"}), _spool_of_message_vpn
    ),
)  # fmt: skip


def kind_of(headings: Sequence[str]) -> tuple[list[TableColumn | None], TableKind | None]:
    """Return the column of each heading, None for an unknown one, and the kind of table; None where none fits.

    Of several kinds with these headings, the one that knows most of them is chosen.
    """
    plain = [plain_heading(heading) for heading in headings]
    best: tuple[list[TableColumn | None], TableKind | None] = ([], None)
    most = 0
    for kind in _KINDS:
        columns = _chosen(plain, kind.columns)
        fields = {column.field for column in columns if column is not None}
        if "name" in fields and fields & kind.needed and len(fields) > most:
            best, most = (columns, kind), len(fields)
    return best


def _chosen(plain: Sequence[str], known: Sequence[TableColumn]) -> list[TableColumn | None]:
    """Return the column of each heading; None for one that is unknown or repeated."""
    chosen: list[TableColumn | None] = []
    for heading in plain:
        chosen.append(next((each for each in known if heading in each.keys and each not in chosen), None))
    return chosen
