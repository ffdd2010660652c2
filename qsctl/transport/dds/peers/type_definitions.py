"""Conversion of a type description from discovery to type definitions of the configuration [XTYPES 7.3.4, QS 3.3.1].

Decides: which descriptions are accepted as a queue's type. A description is not trusted: it must satisfy the rules for
types in a file, and its depth, its size, and the numbers of types and members are bounded. The complete description is
required; a minimal one has hashes instead of the members' names.
"""

from __future__ import annotations

from typing import Any, Final

from qsctl.config.sample_types.type_circles import find_circle
from qsctl.config.sample_types.type_model import (
    INTEGER_RANGES,
    UNBOUNDED,
    Alias,
    Bitmask,
    Case,
    Definition,
    Enumeration,
    Extensibility,
    Primitive,
    Struct,
    StructMember,
    TypeShape,
    Union,
)
from qsctl.config.sample_types.type_names import checked_identifier
from qsctl.config.sample_types.type_rules import wrong_definitions
from qsctl.errors import Refused
from qsctl.transport.dds.boundary import Malformed, decoded
from qsctl.transport.dds.peers.type_outlines import (
    DEPTH_MAX,
    MEMBERS_MAX,
    OBJECT_BYTES_MAX,
    TYPES_MAX,
    Fetch,
    NotYet,
    identifier_of,
    object_of,
    octets_of_identifier,
)

_COMPLETE, _MINIMAL, _STRONG_COMPONENT = 0xF2, 0xF1, 0xB0
_ALIAS, _ENUM, _BITMASK, _STRUCT, _UNION, _SEQUENCE, _ARRAY = 48, 64, 65, 81, 82, 96, 97
_PRIMITIVES: Final = {
    1: Primitive.BOOLEAN, 2: Primitive.OCTET, 3: Primitive.INT16, 4: Primitive.INT32, 5: Primitive.INT64,
    6: Primitive.UINT16, 7: Primitive.UINT32, 8: Primitive.UINT64, 9: Primitive.FLOAT32, 10: Primitive.FLOAT64,
    11: Primitive.FLOAT128, 12: Primitive.INT8, 13: Primitive.UINT8, 16: Primitive.CHAR, 17: Primitive.WCHAR,
}  # fmt: skip
_STRINGS: Final = {
    112: (Primitive.STRING, False),
    113: (Primitive.STRING, True),
    114: (Primitive.WSTRING, False),
    115: (Primitive.WSTRING, True),
}
"""Strings by type kind, and whether their bound is a number of 32 bits."""

_NO_TYPE: Final = 0
_NAME_CHARACTERS_MAX: Final = 1024


def definitions_of(identifier: bytes, fetch: Fetch) -> tuple[str, dict[str, Definition]]:
    """Return the name of a described type, and the definitions of it and of all types that it uses.

    Args:
        identifier: the serialized `TypeIdentifier`, without an encapsulation header.
        fetch: returns descriptions by identifier.

    Raises:
        NotYet: a description has not arrived.
        Malformed: a description cannot be parsed, violates a rule of types, is not the complete one, or is too large.
    """
    reader = _DefinitionReader(fetch)
    try:
        name = reader.named(decoded(identifier_of, identifier), 0)
        _require_sound(reader.definitions)
    except Refused as error:
        raise Malformed(error.message) from error
    return name, reader.definitions


def _require_sound(definitions: dict[str, Definition]) -> None:
    circle = find_circle(definitions)
    if circle:
        raise Malformed(f"the type {circle[0]} contains itself")
    for wrong in wrong_definitions(definitions):
        raise Malformed(wrong.message + (f": {wrong.found}" if wrong.found else ""))


class _DefinitionReader:
    """A recursive reader of descriptions, which reads each description once."""

    def __init__(self, fetch: Fetch) -> None:
        self.definitions: dict[str, Definition] = {}
        self._fetch = fetch
        self._names: dict[bytes, str] = {}
        """Names of the types that were read, by serialized identifier."""
        self._shapes: dict[bytes, TypeShape] = {}
        """Shapes of the collections that have descriptions of their own, by serialized identifier."""
        self._in_progress: set[bytes] = set()
        self._members_count = 0
        self._octets_count = 0

    def named(self, identifier: Any, depth: int) -> str:
        """Return the name of a type that is identified by a hash, and add its definition."""
        octets = octets_of_identifier(identifier)
        if octets in self._names:
            return self._names[octets]
        body = self._described(identifier, octets, depth)
        self._in_progress.add(octets)
        definition = self._definition(body, depth)
        self._in_progress.discard(octets)
        if self.definitions.setdefault(definition.name, definition) != definition:
            raise Malformed(f"two of its types have the name {definition.name}")
        self._names[octets] = definition.name
        return definition.name

    def _described(self, identifier: Any, octets: bytes, depth: int) -> Any:
        """Return the body of a type's complete description."""
        kind = identifier.discriminator
        if kind == _STRONG_COMPONENT or octets in self._in_progress:
            raise Malformed("the type refers to itself")
        if kind == _MINIMAL:
            raise Malformed("its writer sends only the minimal description, which has no names")
        if kind != _COMPLETE:
            raise Malformed(f"it is identified in a way that is not known: {kind}")
        if depth > DEPTH_MAX or len(self._names) + len(self._in_progress) + len(self._shapes) >= TYPES_MAX:
            raise Malformed(f"the type is nested more than {DEPTH_MAX} deep, or of more than {TYPES_MAX} types")
        described = self._fetch(octets)
        if described is None:
            raise NotYet
        self._octets_count += len(described)
        if self._octets_count > OBJECT_BYTES_MAX:
            raise Malformed(f"the description of the type has more than {OBJECT_BYTES_MAX} octets")
        whole = decoded(object_of, described)
        if whole.discriminator != _COMPLETE:
            raise Malformed("its writer sends only the minimal description, which has no names")
        return whole.complete

    def _definition(self, body: Any, depth: int) -> Definition:
        match body.discriminator:
            case 81:  # _STRUCT
                return self._structure(body.struct_type, depth)
            case 82:  # _UNION
                return self._union(body.union_type, depth)
            case 64:  # _ENUM
                enumeration = body.enumerated_type
                self._count(enumeration.literal_seq)
                values = tuple((_name(each.detail.name), each.common.value) for each in enumeration.literal_seq)
                _require_different([name for name, _ in values], "enumerator")
                bits = enumeration.header.common.bit_bound
                if not 1 <= bits <= 32:
                    raise Malformed(f"an enumeration has {bits} bits; 1 to 32 are possible")
                return Enumeration(_type_name(enumeration.header.detail), values, bits)
            case 65:  # _BITMASK
                mask = body.bitmask_type
                self._count(mask.flag_seq)
                flags = tuple((_name(each.detail.name), each.common.position) for each in mask.flag_seq)
                _require_different([name for name, _ in flags], "flag")
                bits = mask.header.common.bit_bound
                if not 1 <= bits <= 64 or any(position >= bits for _, position in flags):
                    raise Malformed(f"a bit mask of {bits} bits has a flag that does not fit")
                return Bitmask(_type_name(mask.header.detail), flags, bits)
            case 48:  # _ALIAS
                alias = body.alias_type
                name = _type_name(alias.header.detail)
                return Alias(name, self._shape(alias.body.common.related_type, depth + 1, name))
            case kind:
                raise Malformed(f"it holds a type of kind {kind}, which cannot be represented")

    def _structure(self, structure: Any, depth: int) -> Struct:
        name = _type_name(structure.header.detail)
        base = structure.header.base_type
        self._count(structure.member_seq)
        members = tuple(
            [
                StructMember(
                    _name(each.detail.name),
                    self._shape(each.common.member_type_id, depth + 1, name),
                    key=bool(each.common.member_flags.IS_KEY),
                    optional=bool(each.common.member_flags.IS_OPTIONAL),
                    id=each.common.member_id,
                    must_understand=bool(each.common.member_flags.IS_MUST_UNDERSTAND),
                )
                for each in structure.member_seq
            ]
        )
        _require_different([each.name for each in members], "member")
        return Struct(
            name,
            members,
            "" if base.discriminator == _NO_TYPE else self.named(base, depth + 1),
            _extensibility(structure.struct_flags),
        )

    def _union(self, union: Any, depth: int) -> Union:
        name = _type_name(union.header.detail)
        common = union.discriminator.common
        discriminator = self._shape(common.type_id, depth + 1, name)
        plain = self._behind_aliases(discriminator)
        self._count(union.member_seq)
        cases = []
        for each in union.member_seq:
            self._count(each.common.label_seq)
            member = StructMember(_name(each.detail.name), self._shape(each.common.type_id, depth + 1, name))
            labels = tuple(_label(label, plain) for label in each.common.label_seq)
            cases.append(Case(labels, bool(each.common.member_flags.IS_DEFAULT), member))
        _require_different([each.member.name for each in cases], "case")
        _require_different([label for each in cases for label in each.labels], "label")
        is_key = bool(common.member_flags.IS_KEY)
        return Union(name, discriminator, tuple(cases), _extensibility(union.union_flags), is_key)

    def _behind_aliases(self, shape: TypeShape) -> TypeShape:
        for _ in range(DEPTH_MAX):
            alias = self.definitions.get(str(shape.base))
            if not isinstance(alias, Alias):
                break
            shape = alias.shape
        return shape

    def _shape(self, identifier: Any, depth: int, owner: str) -> TypeShape:
        """Return the shape of a member or an element.

        Args:
            identifier: of its type.
            depth: the number of enclosing types.
            owner: the enclosing named type, from whose name that of an inner collection is formed.
        """
        kind = identifier.discriminator
        if depth > DEPTH_MAX:
            raise Malformed(f"the type is nested more than {DEPTH_MAX} deep")
        if kind in _PRIMITIVES:
            return TypeShape(_PRIMITIVES[kind])
        if kind in _STRINGS:
            base, is_large = _STRINGS[kind]
            bound = (identifier.string_ldefn if is_large else identifier.string_sdefn).bound
            return TypeShape(base, string_bound=bound or UNBOUNDED)
        if kind in (128, 129):
            definition = identifier.seq_sdefn if kind == 128 else identifier.seq_ldefn
            return self._sequence(definition.element_identifier, definition.bound, depth, owner)
        if kind in (144, 145):
            definition = identifier.array_sdefn if kind == 144 else identifier.array_ldefn
            return self._array(definition.element_identifier, definition.array_bound_seq, depth, owner)
        if kind in (_COMPLETE, _MINIMAL, _STRONG_COMPONENT):
            return self._by_hash(identifier, depth, owner)
        raise Malformed(f"a member's type is identified in a way that is not known: {kind}")

    def _by_hash(self, identifier: Any, depth: int, owner: str) -> TypeShape:
        octets = octets_of_identifier(identifier)
        if octets in self._shapes:
            return self._shapes[octets]
        if octets in self._names:
            return TypeShape(self._names[octets])
        body = self._described(identifier, octets, depth)
        if body.discriminator not in (_SEQUENCE, _ARRAY):
            return TypeShape(self.named(identifier, depth))
        self._in_progress.add(octets)
        if body.discriminator == _SEQUENCE:
            sequence = body.sequence_type
            bound = sequence.header.common.bound
            shape = self._sequence(sequence.element.common.type, bound, depth, owner)
        else:
            array = body.array_type
            shape = self._array(array.element.common.type, array.header.common.bound_seq, depth, owner)
        self._in_progress.discard(octets)
        self._shapes[octets] = shape
        return shape

    def _sequence(self, element: Any, bound: int, depth: int, owner: str) -> TypeShape:
        inner = self._shape(element, depth + 1, owner)
        if inner.sequence_bound is not None or inner.dimensions:
            inner = self._given_a_name(inner, owner)
        return TypeShape(inner.base, inner.string_bound, bound or UNBOUNDED)

    def _array(self, element: Any, dimensions: Any, depth: int, owner: str) -> TypeShape:
        inner = self._shape(element, depth + 1, owner)
        lengths = tuple(int(each) for each in dimensions)
        if not lengths or min(lengths) < 1:
            raise Malformed("an array has no length")
        return TypeShape(inner.base, inner.string_bound, inner.sequence_bound, (*lengths, *inner.dimensions))

    def _given_a_name(self, shape: TypeShape, owner: str) -> TypeShape:
        """Return an alias of a collection inside a sequence: a shape can contain only one collection."""
        count = sum(1 for each in self.definitions.values() if isinstance(each, Alias))
        name = f"{owner}_elements_{count}"
        self.definitions[name] = Alias(name, shape)
        return TypeShape(name)

    def _count(self, parts: Any) -> None:
        self._members_count += len(parts)
        if self._members_count > MEMBERS_MAX:
            raise Malformed(f"the type has more than {MEMBERS_MAX} members")


def _type_name(detail: Any) -> str:
    """Return the qualified name in a type's header; the Python binding writes it with dots."""
    name = str(detail.type_name)
    if len(name) > _NAME_CHARACTERS_MAX:
        raise Malformed(f"the name of a type has {len(name)} characters")
    parts = [checked_identifier(part) for part in name.replace("::", ".").split(".")]
    return "::".join(parts)


def _name(name: Any) -> str:
    return checked_identifier(str(name))


def _require_different(given: list[Any], what: str) -> None:
    if len({(type(each), each) for each in given}) != len(given):
        raise Malformed(f"a type has the same {what} twice")


def _extensibility(flags: Any) -> Extensibility:
    if flags.IS_FINAL:
        return Extensibility.FINAL
    return Extensibility.MUTABLE if flags.IS_MUTABLE else Extensibility.APPENDABLE


def _label(number: int, discriminator: TypeShape) -> int | bool | str:
    """Return a union label, which is described as a number, as a value of the discriminator's type."""
    if discriminator.base is Primitive.BOOLEAN:
        return bool(number)
    if discriminator.base in (Primitive.CHAR, Primitive.WCHAR):
        if not 0 <= number < 128:
            raise Malformed(f"a case's label is not a character: {number}")
        return chr(number)
    if isinstance(discriminator.base, Primitive) and discriminator.base not in INTEGER_RANGES:
        raise Malformed(
            f"the discriminator of a union is a {discriminator.base}; "
            "a boolean, a character, an integer or an enumeration is allowed"
        )
    return number
