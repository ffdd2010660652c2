"""Definitions to classes of the DDS library, made when they are first needed.

Only this file knows the library's names; it is imported lazily. What the library cannot represent (wide strings, long
doubles, types that refer to themselves) is refused by name. What it represents wrongly is given to it in another form
with the same encoding: see `hint`, `_make_enumeration` and `_discriminator`.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Mapping
from typing import Any, Final, Optional

from qsctl.config.sample_types.type_model import (
    UNBOUNDED,
    Alias,
    Bitmask,
    Definition,
    Enumeration,
    Extensibility,
    Primitive,
    Struct,
    StructMember,
    TypeShape,
    Union,
)
from qsctl.config.sample_types.type_names import checked_identifier, hashed_id, python_names
from qsctl.config.sample_types.type_rules import NESTING_MAX
from qsctl.errors import Refused, Unavailable

_LIBRARY_SEQUENCE_BOUND_MAX: Final = 65_535
"""A sequence of a larger bound is one without a bound to the library; the encoding is the same, and the bound is
checked where values are."""

_ENUMERATOR_MASK: Final = 2**32 - 1
"""The library encodes enumerators as unsigned numbers of 32 bits and fails on negative ones."""

_BIT_BOUNDS: Final = (8, 16, 32, 64)


def encoded_enumerator(number: int) -> int:
    """Return the number of an enumerator in the library's class."""
    return number & _ENUMERATOR_MASK


class ClassMaker:
    """Classes of one type library, each made once."""

    def __init__(self, definitions: Mapping[str, Definition]) -> None:
        try:
            from cyclonedds import idl
            from cyclonedds.idl import types as idl_types
        except ImportError as error:
            raise Unavailable(
                f"samples of XML types need the DDS library, which cannot be loaded: {error}",
                remedy="Install it: pip install cyclonedds.",
            ) from None
        self._idl: Any = idl
        self._types: Any = idl_types
        self._definitions = definitions
        self._made: dict[str, Any] = {}
        self._names: dict[str, dict[str, str]] = {}
        self._empty: dict[str, bool] = {}
        self._under_way: dict[str, None] = {}

    def class_of(self, name: str) -> Any:
        """Return the class of a struct, union, enumeration or bit mask.

        Raises:
            Refused: a name is not an identifier; the type refers to itself, nests too deeply, or has a member that the
                library cannot represent.
        """
        made = self._made.get(name)
        if made is not None:
            return made
        if name in self._under_way:
            raise Refused(f"the type {name} refers to itself, which the DDS library cannot represent")
        if len(self._under_way) >= NESTING_MAX:
            raise Refused(f"the types of {next(iter(self._under_way))} are nested deeper than {NESTING_MAX}")
        self._under_way[name] = None
        try:
            made = self._make(self._definitions[name])
        finally:
            self._under_way.pop(name)
        self._made[name] = made
        return made

    def field_names(self, name: str) -> Mapping[str, str]:
        """Return the names that a made class uses for a type's members, cases or flags, those of its bases included."""
        return self._names[name]

    def _make(self, definition: Definition) -> Any:
        for part in definition.name.split("::"):
            checked_identifier(part)
        local = definition.name.replace("::", "_")
        dotted = definition.name.replace("::", ".")
        match definition:
            case Struct():
                return self._make_struct(definition, local, dotted)
            case Union():
                return self._make_union(definition, local, dotted)
            case Enumeration():
                return self._make_enumeration(definition, local, dotted)
            case Bitmask():
                return self._make_bitmask(definition, local, dotted)
            case Alias(shape=shape):
                return self._types.typedef[dotted, self.hint(shape)]

    def _make_enumeration(self, enumeration: Enumeration, local: str, dotted: str) -> Any:
        names = python_names([name for name, _ in enumeration.values], self._idl.IdlEnum)
        numbers = {names[name]: encoded_enumerator(number) for name, number in enumeration.values}
        made = self._idl.make_idl_enum(local, dotted, numbers)
        made.__idl_annotations__["bit_bound"] = _whole_bytes(min(enumeration.bit_bound, 32))
        return made

    def _make_bitmask(self, bitmask: Bitmask, local: str, dotted: str) -> Any:
        names = python_names([name for name, _ in bitmask.flags], self._idl.IdlBitmask)
        self._names[bitmask.name] = names

        def fill(namespace: dict[str, Any]) -> None:
            # The library's own way to make one knows no bound but 32.
            namespace["__idl_annotations__"]["bit_bound"] = _whole_bytes(bitmask.bit_bound)
            namespace["__annotations__"].update(dict.fromkeys(names.values(), bool))
            for name, position in bitmask.flags:
                namespace["__idl_field_annotations__"][names[name]] = {"position": position}

        return dataclasses.dataclass(types.new_class(local, (self._idl.IdlBitmask,), {"typename": dotted}, fill))

    def _make_struct(self, struct: Struct, local: str, dotted: str) -> Any:
        base_name = self._base_name(struct)
        base = self.class_of(base_name) if base_name else None
        inherited = self._names[base_name] if base_name else {}
        names = python_names(
            [member.name for member in struct.members],
            self._idl.IdlStruct,
            taken=set(inherited.values()),
        )
        self._names[struct.name] = {**inherited, **names}
        fields: dict[str, Any] = {}
        for member in struct.members:
            hint = self.hint(member.shape)
            if member.optional and self._is_empty(member.shape):
                raise Refused(
                    f"the optional member {member.name} of {struct.name} has no content, which the DDS library cannot "
                    "represent",
                    remedy="Use a boolean.",
                )
            fields[names[member.name]] = Optional[hint] if member.optional else hint  # noqa: UP045
        made = self._idl.make_idl_struct(
            local,
            dotted,
            fields,
            field_annotations={
                names[member.name]: _annotations(member, names[member.name], hashed=struct.hashed_ids)
                for member in struct.members
            },
            bases=(base,) if base else (),
        )
        made.__idl_annotations__["extensibility"] = str(struct.extensibility)
        if struct.hashed_ids:
            made.__idl_annotations__["autoid"] = "hash"
        return self._without_key_scan(made)

    def _base_name(self, struct: Struct) -> str:
        """Return the name of the base struct, seen through aliases."""
        name = struct.base
        for _ in range(NESTING_MAX):
            definition = self._definitions.get(name)
            if not isinstance(definition, Alias):
                break
            name = str(definition.shape.base)
        return name

    def _make_union(self, union: Union, local: str, dotted: str) -> Any:
        if union.extensibility is Extensibility.MUTABLE:
            raise Refused(
                f"the union {union.name} is mutable, which the DDS library cannot represent",
                remedy='Use extensibility="appendable" or "final".',
            )
        if not any(case.labels and not case.is_default for case in union.cases):
            raise Refused(
                f"the union {union.name} has no case but the default, which the DDS library cannot represent",
                remedy="Add a case, or use a struct.",
            )
        names = python_names([case.member.name for case in union.cases], self._idl.IdlUnion)
        self._names[union.name] = names
        fields: dict[str, Any] = {}
        discriminator = self._discriminator(union)
        enumeration = (
            discriminator if isinstance(discriminator, type) and hasattr(discriminator, "__members__") else None
        )
        for case in union.cases:
            hint = self.hint(case.member.shape)
            labels: list[Any] = [_label(label, enumeration) for label in case.labels]
            key = names[case.member.name]
            # A case that is also the default needs no labels of its own: it takes whatever no other case takes.
            fields[key] = self._types.default[hint] if case.is_default else self._types.case[labels, hint]
        made = self._idl.make_idl_union(
            local, dotted, fields, discriminator=discriminator, discriminator_is_key=union.key
        )
        made.__idl_annotations__["extensibility"] = str(union.extensibility)
        return self._without_key_scan(made)

    def _discriminator(self, union: Union) -> Any:
        """Return the class of a union's discriminator, with aliases replaced: the library accepts none there."""
        shape = union.discriminator
        for _ in range(NESTING_MAX):
            definition = self._definitions.get(str(shape.base))
            if not isinstance(definition, Alias):
                break
            shape = definition.shape
        labels = {label for case in union.cases if not case.is_default for label in case.labels}
        if shape.base is Primitive.BOOLEAN and labels == {True, False}:
            return self._types.uint8  # the library wants one value that no case has; the encoding is the same
        return self.hint(shape)

    def hint(self, shape: TypeShape) -> Any:
        """Return the library's annotation for a shape."""
        hint = self._base_hint(shape)
        if (shape.sequence_bound is not None or shape.dimensions) and self._is_empty(TypeShape(shape.base)):
            # Four octets could claim four billion of them.
            raise Refused(
                f"a sequence or array of {shape.base}, which has no content, cannot be represented",
                remedy="Give the type a member, or write a count.",
            )
        if shape.sequence_bound is not None:
            bounded = shape.sequence_bound != UNBOUNDED and shape.sequence_bound <= _LIBRARY_SEQUENCE_BOUND_MAX
            hint = self._types.sequence[hint, shape.sequence_bound] if bounded else self._types.sequence[hint]
        for size in reversed(shape.dimensions):
            hint = self._types.array[hint, size]
        return hint

    def _base_hint(self, shape: TypeShape) -> Any:
        if not isinstance(shape.base, Primitive):
            return self.class_of(shape.base)
        if shape.base is Primitive.STRING:
            return str if shape.string_bound == UNBOUNDED else self._types.bounded_str[shape.string_bound]
        if shape.base is Primitive.BOOLEAN:
            return bool
        if shape.base in {Primitive.WSTRING, Primitive.WCHAR, Primitive.FLOAT128}:
            raise Refused(f"{shape.base} cannot be represented by the DDS library", remedy="Use string or float64.")
        name = "byte" if shape.base is Primitive.OCTET else str(shape.base)
        return getattr(self._types, name)

    def _is_empty(self, shape: TypeShape) -> bool:
        """Return whether values of a shape take no octets: a struct without members, or one of only such members."""
        if isinstance(shape.base, Primitive) or shape.sequence_bound is not None:
            return False
        name = shape.base
        known = self._empty.get(name)
        if known is None:
            self._empty[name] = False  # while it is looked at: a type that refers to itself is refused elsewhere
            match self._definitions.get(name):
                case Struct(members=members):
                    base = self._base_name(self._definitions[name])  # type: ignore[arg-type]
                    empty = all(not member.optional and self._is_empty(member.shape) for member in members)
                    known = empty and (not base or self._is_empty(TypeShape(base)))
                case Alias(shape=inner):
                    known = self._is_empty(inner)
                case _:
                    known = False
            self._empty[name] = known
        return known

    def _without_key_scan(self, made: Any) -> Any:
        """Return the class, changed so that the library does not compute the size of its key inside another type's.

        The library multiplies the cases of all unions with each other for that: twenty of three cases would never end.
        A key of unknown size is hashed, whatever its size; only endpoints of the type itself would ask.
        """
        from cyclonedds.idl import _support

        scanner: Any = _support.KeyScanner
        made.__idl__.key_scan = lambda use_version_2=None: scanner.infinity()  # noqa: ARG005 - the library names it
        return made


def _label(label: int | bool | str, enumeration: Any) -> Any:
    return enumeration(encoded_enumerator(int(label))) if enumeration else label


def _whole_bytes(bits: int) -> int:
    return next(bound for bound in _BIT_BOUNDS if bits <= bound)


def _annotations(member: StructMember, own_name: str, *, hashed: bool) -> dict[str, Any]:
    annotations: dict[str, Any] = {}
    if member.key:
        annotations["key"] = True
    if member.id is not None:
        annotations["id"] = member.id
    elif hashed and own_name != member.name:
        annotations["id"] = hashed_id(member.name)  # the library would hash its own name of the member
    if member.must_understand:
        annotations["must_understand"] = True
    if own_name != member.name:
        annotations["name"] = member.name
    return annotations
