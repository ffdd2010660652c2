"""Conversion of a type description from discovery to plain data: names, members, keys, bounds [XTYPES 7.3.4].

Decides: how much of a peer's description is read. A description is not trusted: its depth, its members and the number
of descriptions that it refers to are bounded, and unknown kinds are shown by number.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from cyclonedds import _clayer as layer
from cyclonedds.idl._typesupport.DDS.XTypes import TypeIdentifier, TypeObject

from qsctl.transport.dds.boundary import Malformed, decoded

Fetch: TypeAlias = Callable[[bytes], bytes | None]
"""Return the serialized description of a type by its serialized identifier; None: it has not arrived."""

DEPTH_MAX: Final = 16
TYPES_MAX: Final = 200
MEMBERS_MAX: Final = 2000
WAIT_NS: Final = 1
"""Time-out of a look-up: with 0 the library requests nothing from the peer; with 1 it does, for the next call."""

OBJECT_BYTES_MAX: Final = 64 * 1024

_COMPLETE, _MINIMAL = 0xF2, 0xF1
_ALIAS, _ENUM, _STRUCT, _SEQUENCE, _ARRAY = 48, 64, 81, 96, 97
_STRINGS: Final = {112: "string", 113: "string", 114: "wstring", 115: "wstring"}
_PRIMITIVES: Final = {
    0: "nothing", 1: "boolean", 2: "octet", 3: "int16", 4: "int32", 5: "int64", 6: "uint16", 7: "uint32", 8: "uint64",
    9: "float32", 10: "float64", 11: "float128", 12: "int8", 13: "uint8", 16: "char", 17: "wchar",
}  # fmt: skip
_KINDS: Final = {64: "enum", 65: "bitmask", 81: "struct", 82: "union", 83: "bitset", 98: "map"}


@dataclass(frozen=True, slots=True)
class Bounded:
    """The type of a member: its form without bounds, its bounds from outside in (0: unbounded), and its inner type.

    `sequence<string<128>, 10>` has the form `sequence<string>` with the bounds 10 and 128.
    """

    form: str
    bounds: tuple[int, ...] = ()
    inside: TypeOutline | None = None


@dataclass(frozen=True, slots=True)
class OutlineMember:
    """A member of a structure, by its id; the name is empty if the description has only a hash of it."""

    number: int
    name: str
    type: Bounded
    is_key: bool
    is_optional: bool


@dataclass(frozen=True, slots=True)
class TypeOutline:
    """A structure, an enumeration or another type that has a description of its own."""

    kind: str
    name: str = ""
    extensibility: str = ""
    members: tuple[OutlineMember, ...] = ()
    literals: tuple[tuple[str, int], ...] = ()


class NotYet(Exception):
    """A description that has not arrived; it has been requested from the peer."""


def fetch_from(participant_reference: int) -> Fetch:
    """Return a `Fetch` by the library's type look-up, which sends a request to the peer and never waits."""

    def fetch(identifier: bytes) -> bytes | None:
        got: Any = layer.ddspy_get_typeobj(participant_reference, identifier, WAIT_NS)
        return None if isinstance(got, int) else bytes(got)

    return fetch


def outline_of(identifier: bytes, fetch: Fetch) -> TypeOutline:
    """Return the outline of a type.

    Args:
        identifier: the serialized `TypeIdentifier`, without an encapsulation header.
        fetch: returns descriptions by identifier.

    Raises:
        NotYet: a description has not arrived.
        Malformed: a description cannot be parsed, or is too large.
    """
    return _OutlineReader(fetch).named(decoded(identifier_of, identifier), 0)


def identifier_of(octets: bytes) -> Any:
    """Parse a `TypeIdentifier`; raises the binding's errors."""
    return TypeIdentifier.deserialize(octets, has_header=False, use_version_2=True)


class _OutlineReader:
    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch
        self._known: dict[bytes, TypeOutline] = {}
        self._members_count = 0

    def named(self, identifier: Any, depth: int) -> TypeOutline:
        """Return the outline of a type that is identified by a hash."""
        if identifier.discriminator not in (_COMPLETE, _MINIMAL):
            return TypeOutline(self.bounded(identifier, depth).form)
        octets = octets_of_identifier(identifier)
        known = self._known.get(octets)
        if known is None:
            if depth > DEPTH_MAX or len(self._known) >= TYPES_MAX:
                raise Malformed(f"the type is nested more than {DEPTH_MAX} deep, or of more than {TYPES_MAX} types")
            described = self._fetch(octets)
            if described is None:
                raise NotYet
            if len(described) > OBJECT_BYTES_MAX:
                raise Malformed(f"the description of a type has {len(described)} octets")
            known = self._known[octets] = self._outline(decoded(object_of, described), depth)
        return known

    def _outline(self, described: Any, depth: int) -> TypeOutline:
        body = described.complete if described.discriminator == _COMPLETE else described.minimal
        if body.discriminator == _STRUCT:
            return self._structure(body.struct_type, depth)
        if body.discriminator == _ENUM:
            enumeration = body.enumerated_type
            literals = tuple((_name(each.detail), each.common.value) for each in enumeration.literal_seq)
            return TypeOutline("enum", _name(enumeration.header), literals=literals)
        if body.discriminator == _ALIAS:
            inner = self.bounded(body.alias_type.body.common.related_type, depth + 1)
            return inner.inside or TypeOutline(inner.form)
        return TypeOutline(_KINDS.get(body.discriminator, f"kind {body.discriminator}"))

    def _structure(self, structure: Any, depth: int) -> TypeOutline:
        flags = structure.struct_flags
        extensibility = "final" if flags.IS_FINAL else "mutable" if flags.IS_MUTABLE else "appendable"
        members: list[OutlineMember] = []
        if structure.header.base_type.discriminator != 0:
            members.extend(self.named(structure.header.base_type, depth + 1).members)
        self._members_count += len(structure.member_seq)
        if self._members_count > MEMBERS_MAX:
            raise Malformed(f"the type has more than {MEMBERS_MAX} members")
        for each in structure.member_seq:
            common = each.common
            members.append(
                OutlineMember(
                    common.member_id,
                    _name(each.detail),
                    self.bounded(common.member_type_id, depth + 1),
                    bool(common.member_flags.IS_KEY),
                    bool(common.member_flags.IS_OPTIONAL),
                )
            )
        return TypeOutline("struct", _name(structure.header), extensibility, tuple(members))

    def bounded(self, identifier: Any, depth: int) -> Bounded:
        """Return the type of a member or an element."""
        kind = identifier.discriminator
        if depth > DEPTH_MAX:
            raise Malformed(f"the type is nested more than {DEPTH_MAX} deep")
        if kind in _PRIMITIVES:
            return Bounded(_PRIMITIVES[kind])
        if kind in _STRINGS:
            definition = identifier.string_sdefn if kind in (112, 114) else identifier.string_ldefn
            return Bounded(_STRINGS[kind], (definition.bound,))
        if kind in (128, 129):
            definition = identifier.seq_sdefn if kind == 128 else identifier.seq_ldefn
            return self._sequence(definition.element_identifier, definition.bound, depth)
        if kind in (144, 145):
            definition = identifier.array_sdefn if kind == 144 else identifier.array_ldefn
            return self._array(definition.element_identifier, definition.array_bound_seq, depth)
        if kind in (_COMPLETE, _MINIMAL):
            return self._by_hash(identifier, depth)
        return Bounded(f"type {kind}")

    def _by_hash(self, identifier: Any, depth: int) -> Bounded:
        """Return a member's type that has a description of its own; aliases and collections are resolved."""
        described = self._fetch(octets_of_identifier(identifier))
        if described is None:
            raise NotYet
        if len(described) > OBJECT_BYTES_MAX:
            raise Malformed(f"the description of a type has {len(described)} octets")
        whole = decoded(object_of, described)
        body = whole.complete if whole.discriminator == _COMPLETE else whole.minimal
        if body.discriminator == _ALIAS:
            return self.bounded(body.alias_type.body.common.related_type, depth + 1)
        if body.discriminator == _SEQUENCE:
            sequence = body.sequence_type
            return self._sequence(sequence.element.common.type, sequence.header.common.bound, depth)
        if body.discriminator == _ARRAY:
            array = body.array_type
            return self._array(array.element.common.type, array.header.common.bound_seq, depth)
        inside = self.named(identifier, depth + 1)
        return Bounded(inside.kind, (), inside)

    def _sequence(self, element: Any, bound: int, depth: int) -> Bounded:
        inner = self.bounded(element, depth + 1)
        return Bounded(f"sequence<{inner.form}>", (bound, *inner.bounds), inner.inside)

    def _array(self, element: Any, dimensions: Any, depth: int) -> Bounded:
        inner = self.bounded(element, depth + 1)
        lengths = "".join(f"[{length}]" for length in dimensions)
        return Bounded(f"{inner.form}{lengths}", inner.bounds, inner.inside)


def octets_of_identifier(identifier: Any) -> bytes:
    """Serialize a `TypeIdentifier` from a peer's description.

    Raises:
        Malformed: it is not valid: octets that were parsed without an error may still not be a value of its type.
    """
    octets: Any = decoded(lambda read: read.serialize(use_version_2=True), identifier)
    return bytes(octets)[4:]


def object_of(octets: bytes) -> Any:
    """Parse a `TypeObject`; raises the binding's errors."""
    return TypeObject.deserialize(octets, has_header=False, use_version_2=True)


def _name(detail: Any) -> str:
    """Return the name in a header or a member's detail; empty in a minimal description."""
    named = getattr(detail, "detail", detail)
    return str(getattr(named, "name", "") or getattr(named, "type_name", "") or "")
