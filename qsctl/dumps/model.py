"""A message as a listing shows it, whatever the listing's form; None and empty text: the listing lacks it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from qsctl.core.integration.message import MessageId
from qsctl.dumps.moments import Moment


class ListingForm(StrEnum):
    """The amount of detail that a listing shows of a message."""

    SHORT = "short"
    """A row."""
    LONG = "long"
    """A date, a row, and what else matters, in eight lines."""
    EXTENDED = "extended"
    """Every field in a line of its own, with the data."""


CLASSES: Final = {"P": "protocol", "E": "engine", "I": "indeterminate"}
TYPES: Final = {"D": "data", "R": "reply", "U": "unknown"}


@dataclass(frozen=True, slots=True)
class ListedMessage:
    """One message as a listing shows it."""

    mid: MessageId
    state: int
    """Number of the queue that it is in, or of the error that ended it (`qsctl.dumps.states`)."""
    created: Moment | None = None
    message_class: str = ""
    """A letter of `CLASSES`."""
    type: str = ""
    """A letter of `TYPES`."""
    forward: bool | None = None
    priority: int | None = None
    size_bytes: int | None = None
    source: str = ""
    destination: str = ""
    source_mid: MessageId | None = None
    original_source: str = ""
    original_destination: str = ""
    owner: str = ""
    """The thread that holds it."""
    process: str = ""
    queue: str = ""
    """The name of its queue, where the number does not determine it: route detail, partial."""
    transaction_id: str = ""
    skips_translation: bool | None = None
    retries: int | None = None
    flags: int | None = None
    """Bits of `qsctl.dumps._flags`."""
    entered: Moment | None = None
    """The time at which the message entered its state."""
    outbound: Moment | None = None
    """The time at which the message reached its outbound thread."""
    user_data: str = ""
    error_text: str = ""
    others: tuple[tuple[str, str], ...] = ()
    """Values of unknown columns and lines, by their heading."""
    data: bytes | None = None
    place: int | None = None
    """Its place in its queue, the lowest first inside a priority; no listing prints it."""
