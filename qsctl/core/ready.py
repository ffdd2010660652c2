"""What one turn of the engine hands to its driver: store the records, then send the messages, then tell the events."""

from __future__ import annotations

from typing import NamedTuple

from qsctl.core.events import Event
from qsctl.core.messages import Outbound
from qsctl.core.records import Record


class Ready(NamedTuple):
    """A batch. Its three lists belong to the receiver; their order is the order of doing.

    A busy driver looks into the lists only where it must: `changes_service` says whether a record is a `ServiceRecord`,
    `may_lack_payloads` whether a payload may be on disk only, see `qsctl.core.payloads`.
    """

    records: list[Record]
    messages: list[Outbound]
    events: list[Event]
    changes_service: bool = False
    may_lack_payloads: bool = False
