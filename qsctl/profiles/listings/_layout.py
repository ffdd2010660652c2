"""The tables of queues as the broker lays them out: [SOL-QUEUES] with its misprints.

The source has them as flowed lines: the widths come from their rules, the alignment is ours (headings to the left,
figures to the right). With its white space collapsed, a printed listing is the source's text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class QueueTable:
    """One table: `fields` are those of its row's dataclass after the queue's name, `units` the second line."""

    banner: str
    stars: tuple[int, int]
    """Before and after the banner's words."""
    headings: tuple[str, ...]
    units: tuple[str, ...]
    widths: tuple[int, ...]
    """Of the rule's dashes, blanks around a cell included."""
    fields: tuple[str, ...]
    closed: bool = False
    """Whether a row ends with a bar too."""

    @property
    def words(self) -> tuple[str, ...]:
        """The words of both heading lines."""
        return tuple(word for word in (*self.headings, *self.units) if word)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns in messages: heading and unit."""
        return tuple(f"{heading} {unit}".strip() for heading, unit in zip(self.headings, self.units, strict=True))


_DATA_FIELDS: Final = (
    "length_messages", "length_work_units", "high_water_mark_work_units", "max_depth_work_units", "discarded_messages",
    "delivered_messages",
)  # fmt: skip
_DATA_HEADINGS: Final = ("Queue", "Length", "Length", "HWMark", "Max", "Discards", "Delivered")
_DATA_WIDTHS: Final = (7, 9, 9, 10, 10, 10, 17)

CLIENT_TABLE: Final = QueueTable(
    "Client Transmit Queues",
    (27, 27),
    _DATA_HEADINGS,
    ("(Prio)", "(Msgs)", "(Work)", "(Work)", "(Work)", "(Msgs)", "(Msgs)"),
    _DATA_WIDTHS,
    _DATA_FIELDS,
)
NEIGHBOR_TABLE: Final = QueueTable(
    "Data Queues - Network Acceleration Blade",
    (18, 18),
    _DATA_HEADINGS,
    ("(Prio)", "(Msgs)", "(Work)", "(Work)", "(Work)", "Msgs)", "(Msgs)"),
    _DATA_WIDTHS,
    _DATA_FIELDS,
)
CONTROL_TABLE: Final = QueueTable(
    "Control Queues - Control Card",
    (19, 18),
    ("", "Length", "HWMark"),
    ("Queue", "(Msgs)", "Msg)"),
    (16, 9, 9),
    ("length_messages", "high_water_mark_messages"),
    closed=True,
)
