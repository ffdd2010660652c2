"""The place of a mirror: how far it has copied its source, as a sample in a queue of the target's service.

Decides: the form of that sample, and the identity by which two mirrors of one name notice each other. Each place of a
mirror has the next number of one writer, so that a queue which holds a place refuses another one of that number.
"""

from __future__ import annotations

import hashlib
from typing import Final

import msgspec

from qsctl.errors import Damaged
from qsctl.identity import GUID_SIZE_BYTES, NIL_INCARNATION, Guid, SampleIdentity, WholeIncarnation

_PERSON: Final = b"qsctl mirror"


class MirrorPlace(msgspec.Struct, frozen=True):
    """The progress of a mirror.

    Samples up to `done_position` of the source's creation `incarnation` are in the target, or were passed over. Those
    behind it, up to `sending_position`, may be. `run` identifies the process that wrote the place.
    """

    mirror: str
    run: str = ""
    incarnation: WholeIncarnation = NIL_INCARNATION
    done_position: int = 0
    sending_position: int = 0


def place_writer(mirror: str) -> Guid:
    """Return the writer of the places of the mirror with this name."""
    return Guid(hashlib.blake2b(mirror.encode(), digest_size=GUID_SIZE_BYTES, person=_PERSON).digest())


def place_identity(mirror: str, number: int) -> SampleIdentity:
    """Return the identity of a mirror's place with this number, from 1."""
    return SampleIdentity(place_writer(mirror), number)


def place_octets(place: MirrorPlace) -> bytes:
    """Return a place as the payload of a sample: JSON, which `qsctl peek` shows."""
    return msgspec.json.encode(place)


def place_from_octets(payload: bytes) -> MirrorPlace:
    """Return the place in a payload.

    Raises:
        Damaged: it is not a place.
    """
    try:
        return msgspec.json.decode(payload, type=MirrorPlace)
    except msgspec.MsgspecError as error:
        raise Damaged(
            f"a sample with the identity of a mirror's place is none: {error}",
            remedy="Keep places in a queue that nothing else writes to.",
        ) from None
