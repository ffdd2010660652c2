"""What one turn of the engine hands to its driver: store the records, then send the messages, then tell the events."""

from __future__ import annotations

from typing import NamedTuple

from qsctl.core.events import Event
from qsctl.core.messages import Outbound
from qsctl.core.records import Record


class Ready(NamedTuple):
    """A batch. Its three lists belong to the receiver; their order is the order of doing."""

    records: list[Record]
    messages: list[Outbound]
    events: list[Event]
