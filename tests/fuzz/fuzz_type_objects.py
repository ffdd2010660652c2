"""Types as peers describe them in discovery: an identifier, then descriptions, with their sizes before them.

The first two octets are the number of octets of the identifier, the next two those of the first description, and so on.
An identifier is answered with the descriptions in turn, so that any may refer to any: also to itself.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from qsctl.config.sample_types.types import TypeLibrary
from qsctl.errors import Refused
from qsctl.transport.dds.boundary import Malformed
from qsctl.transport.dds.peers.type_definitions import definitions_of
from qsctl.transport.dds.peers.type_outlines import MEMBERS_MAX, TYPES_MAX, NotYet

DICTIONARY = (
    b"\xf2",
    b"\xf1",
    b"\x51",
    b"\x52",
    b"\x40",
    b"\x41",
    b"\x30",
    b"\x60",
    b"\x61",
    b"a\0",
    b"\xff\xff\xff\xff",
)
SHORT_COUNT = 150


def one_input(data: bytes) -> None:
    identifier, *descriptions = [*_parts(data), b""]
    turns = itertools.cycle(descriptions)
    answered = itertools.count()

    def fetch(_identifier: bytes) -> bytes | None:
        assert next(answered) <= TYPES_MAX, "the number of descriptions that are asked for is bounded"
        return next(turns) or None

    try:
        name, definitions = definitions_of(identifier, fetch)
        TypeLibrary(definitions).class_of(name)
    except (Malformed, NotYet, Refused) as error:
        assert len(str(error)) < 1000
        return
    assert name in definitions
    assert len(definitions) <= TYPES_MAX + MEMBERS_MAX


def _parts(data: bytes) -> Iterator[bytes]:
    at = 0
    while at + 2 <= len(data):
        size = int.from_bytes(data[at : at + 2], "little")
        yield data[at + 2 : at + 2 + size]
        at += 2 + size
