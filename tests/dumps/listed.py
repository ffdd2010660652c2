"""What a listing of each form keeps of a message: what printing it and reading it back must give."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from qsctl.dumps.model import ListedMessage, ListingForm
from qsctl.dumps.moments import SECOND_NS, Moment

_SHORT: Final = frozenset(
    {"mid", "state", "created", "message_class", "type", "forward", "priority", "size_bytes", "source", "destination"}
)
_LONG: Final = _SHORT | {"source_mid", "owner", "process", "entered"}


def as_listed(message: ListedMessage, form: ListingForm) -> ListedMessage:
    """Return what a listing of this form keeps of a message."""
    if form is ListingForm.EXTENDED:
        size = len(message.data) if message.data is not None else message.size_bytes
        return replace(message, size_bytes=size)
    kept = _SHORT if form is ListingForm.SHORT else _LONG
    values = {name: getattr(message, name) for name in kept}
    if message.created is not None:
        values["created"] = _in_row(message.created, with_date=form is ListingForm.LONG)
    return ListedMessage(**values)


def _in_row(moment: Moment, *, with_date: bool) -> Moment:
    at_ns = moment.at_ns // SECOND_NS * SECOND_NS
    if with_date and moment.has_date:
        return Moment(at_ns)
    return Moment(at_ns % (86_400 * SECOND_NS), has_date=False)
