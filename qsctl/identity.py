"""Identities of samples, and of queues, subscribers and services, that do not depend on names.

A sample is its writer's GUID and a sequence number [QS 2.11 and 5.2.2]. A GUID is 16 octets; a sequence number has
64 bits, written as the pair (high, low) on the wire and in selectors.

A queue is identified by its incarnation, a number drawn when the queue is created: after a deletion, another queue may
have the same name.
"""

from __future__ import annotations

from collections.abc import Callable
from string import hexdigits
from typing import Annotated, Final, NewType, TypeAlias

import msgspec

from qsctl.errors import UsageError

Guid = NewType("Guid", bytes)
"""A DDS GUID, 16 octets."""

GUID_SIZE_BYTES: Final = 16
NIL_GUID: Final = Guid(bytes(GUID_SIZE_BYTES))

SEQUENCE_NUMBER_MAX: Final = 2**63 - 1
"""The largest sequence number that a signed and an unsigned 32-bit half can represent."""

WholeGuid: TypeAlias = Annotated[Guid, msgspec.Meta(min_length=GUID_SIZE_BYTES, max_length=GUID_SIZE_BYTES)]
Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=SEQUENCE_NUMBER_MAX)]
"""An integer from 0; validated when decoded, but not when created in this process."""


Incarnation = NewType("Incarnation", int)
"""The number of one creation of a queue, a shared subscriber or a service; positions of samples are comparable only
within one incarnation.

1 to `INCARNATION_MAX`, drawn at random by the driver, so that no two are ever equal (our reading: [QS] identifies
a queue by its name alone).
"""

INCARNATION_MAX: Final = 2**63 - 1
_INCARNATION_DIGITS: Final = 16
NIL_INCARNATION: Final = Incarnation(0)
"""The incarnation of an object that was created before incarnations were recorded."""

WholeIncarnation: TypeAlias = Annotated[Incarnation, msgspec.Meta(ge=0, le=INCARNATION_MAX)]

DrawIncarnation: TypeAlias = Callable[[], Incarnation]
"""Returns another incarnation with each call; passed to the core, which has no source of randomness."""


class SampleIdentity(msgspec.Struct, frozen=True, order=True, array_like=True, gc=False):
    """The GUID of the virtual writer and the sample's sequence number; unique for all time.

    A struct that the garbage collector ignores, not a tuple: it takes half the memory and a quarter of the time to
    create, and the collector would otherwise take a third of the processor time of a client that holds thousands.
    """

    writer_guid: WholeGuid
    sequence_number: Count

    def __str__(self) -> str:
        return f"{self.writer_guid.hex()}:{self.sequence_number}"


NIL_IDENTITY: Final = SampleIdentity(NIL_GUID, 0)


def identity_behind(first: SampleIdentity, count: int) -> SampleIdentity:
    """Return the identity of the same writer whose sequence number is greater by `count`."""
    return SampleIdentity(first.writer_guid, first.sequence_number + count)


def identities_from(first: SampleIdentity, count: int, step: int = 1) -> list[SampleIdentity]:
    """Return identities of one writer whose sequence numbers have a constant step."""
    guid, number = first.writer_guid, first.sequence_number
    return [SampleIdentity(guid, each) for each in range(number, number + count * step, step)]


def guid_from_hex(text: str) -> Guid:
    """Read 32 hexadecimal digits; fewer are padded with zeros on the left.

    Raises:
        UsageError: it has other characters, or more than 16 octets.
    """
    digits = text.strip().removeprefix("0x").replace("-", "").replace(".", "")
    try:
        octets = bytes.fromhex(digits.rjust(2 * GUID_SIZE_BYTES, "0"))
    except ValueError:
        octets = b""
    if len(octets) != GUID_SIZE_BYTES:
        raise UsageError(f"{text!r} is not a GUID", remedy="Write up to 32 hexadecimal digits, as in 0000…0007 or 7.")
    return Guid(octets)


def identity_from_text(text: str) -> SampleIdentity:
    """Read what `str(identity)` prints: `<hexadecimal GUID>:<sequence number>`.

    Raises:
        UsageError: the text has another form.
    """
    guid, colon, digits = text.partition(":")
    number = decimal_from_text(digits.strip(), SEQUENCE_NUMBER_MAX) if colon else None
    if number is None:
        raise UsageError(
            f"{text!r} is not a sample identity",
            remedy=f"Write it as GUID:number, as `get messages` does; numbers are 0 to {SEQUENCE_NUMBER_MAX}.",
        )
    return SampleIdentity(guid_from_hex(guid), number)


def no_incarnation() -> Incarnation:
    """Return the nil incarnation, for a model of a service in which queues hold no samples."""
    return NIL_INCARNATION


class _Counted:
    """A source of incarnations 1, 2, 3, …; a copy continues after the number that was drawn last."""

    def __init__(self) -> None:
        self._drawn = 0

    def __call__(self) -> Incarnation:
        self._drawn += 1
        return Incarnation(self._drawn)


def counted_incarnations() -> DrawIncarnation:
    """Return a source of incarnations 1, 2, 3, …, for a simulated service whose samples are not kept after its end."""
    return _Counted()


def incarnation_text(incarnation: Incarnation) -> str:
    """Format an incarnation as 16 hexadecimal digits."""
    return f"{incarnation:016x}"


def incarnation_from_text(text: str) -> Incarnation:
    """Parse the text of `incarnation_text`; an empty text is the nil incarnation.

    Raises:
        UsageError: the text has another form, or is out of range.
    """
    digits = text.strip() or "0"
    is_written = len(digits) <= _INCARNATION_DIGITS and set(digits) <= set(hexdigits)
    if not is_written or int(digits, 16) > INCARNATION_MAX:
        raise UsageError(
            f"{text!r} is not an incarnation",
            remedy=f"Write up to {_INCARNATION_DIGITS} hexadecimal digits, {INCARNATION_MAX:x} at most.",
        )
    return Incarnation(int(digits, 16))


def decimal_from_text(text: str, largest: int) -> int | None:
    """Return the number that a text of ASCII digits denotes, if it is at most `largest`; None for any other text.

    `str.isdigit` alone does not suffice: it is true for '²', which `int` refuses, and does not bound the length.
    """
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(largest))):
        return None
    number = int(text)
    return number if number <= largest else None


def sequence_number_pair(number: int) -> tuple[int, int]:
    """Return the (high, low) pair of `SequenceNumber_t`: a signed and an unsigned 32-bit half."""
    return number >> 32, number & 0xFFFF_FFFF


def sequence_number_from_pair(high: int, low: int) -> int:
    """Return the sequence number of a pair: the inverse of `sequence_number_pair`."""
    return (high << 32) | (low & 0xFFFF_FFFF)
