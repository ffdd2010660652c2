"""The conversion of a plain sample to a payload, and back.

Decides: the payload of a type. For types of octets and of text it is the bare content [QS 3.3.1], as qsctl's own
producers write it; for all others the serialized sample with its encapsulation header, whatever the version of CDR and
the byte order.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final, TypeAlias

from qsctl.transport.dds.boundary import Malformed

ENCAPSULATION_SIZE: Final = 4

_KINDS: Final = frozenset(bytes((0, kind)) for kind in (0, 1, 2, 3, 6, 7, 8, 9, 10, 11))
"""Encapsulation identifiers of CDR: plain, delimited and parameter lists, in both versions and byte orders."""

_DELIMITED: Final = frozenset((b"\x00\x08", b"\x00\x09"))
_PARAMETERS: Final = frozenset((b"\x00\x02", b"\x00\x03", b"\x00\x0a", b"\x00\x0b"))

PayloadOf: TypeAlias = Callable[[bytes], bytes]


def payload_of(type_name: str) -> PayloadOf:
    """Return the function that converts a type's serialized samples to payloads; it raises `Malformed` for others."""
    return {"DDS::Octets": _octets, "DDS::String": _text}.get(type_name, _serialized)


def serialized(type_name: str, payload: bytes) -> bytes:
    """Return the serialized sample, in XCDR1, of a payload: the inverse of `payload_of`."""
    if type_name == "DDS::Octets":
        return b"\x00\x01\x00\x00" + struct.pack("<I", len(payload)) + payload
    if type_name == "DDS::String":
        return b"\x00\x01\x00\x00" + struct.pack("<I", len(payload) + 1) + payload + b"\0"
    return payload


def _serialized(data: bytes) -> bytes:
    if data[:2] not in _KINDS or len(data) < ENCAPSULATION_SIZE:
        raise Malformed(f"a sample of {len(data)} octets has no encapsulation header of CDR: {data[:4].hex()}")
    return data


def _octets(data: bytes) -> bytes:
    kind = _serialized(data)[:2]
    if kind in _PARAMETERS:
        raise Malformed("a sample of octets or text is sent as a list of parameters; the type is final")
    start = ENCAPSULATION_SIZE + (4 if kind in _DELIMITED else 0)
    if len(data) < start + 4:
        raise Malformed(f"a sample of {len(data)} octets ends before its length")
    (size,) = struct.unpack_from("<I" if kind[1] & 1 else ">I", data, start)
    content = data[start + 4 : start + 4 + size]
    if len(content) != size:
        raise Malformed(f"a sample of {len(data)} octets claims {size}")
    return content


def _text(data: bytes) -> bytes:
    content = _octets(data)
    if not content.endswith(b"\0"):
        raise Malformed("a text does not end with zero")
    return content[:-1]
