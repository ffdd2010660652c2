"""Definitions to classes of the DDS library, made when they are first needed.

Only this file knows the library's names; it is imported lazily. What the library cannot represent (wide strings, long
doubles, types that refer to themselves) is refused by name.
"""

from __future__ import annotations

import keyword
from collections.abc import Mapping
from typing import Any, Final, Optional

from qsctl.config.type_model import (
    UNBOUNDED,
    Alias,
    Bitmask,
    Definition,
    Enumeration,
    Member,
    Primitive,
    Shape,
    Struct,
    Union,
)
from qsctl.errors import Refused, Unavailable

NESTING_MAX: Final = 100
"""Types inside types; the library works through them by recursion."""


def field_name(name: str) -> str:
    """The Python name of a member: keywords and names that the library keeps for itself get a suffix."""
    taken = keyword.iskeyword(name) or name in {"value", "discriminator", "serialize", "deserialize"}
    return f"{name}_" if taken or name.startswith("_") else name


class ClassMaker:
    """Classes of one type library, each made once."""

    def __init__(self, definitions: Mapping[str, Definition]) -> None:
        try:
            from cyclonedds import idl
            from cyclonedds.idl import types
        except ImportError as error:
            raise Unavailable(
                f"samples of XML types need the DDS library, which cannot be loaded: {error}",
                remedy="Install it: pip install cyclonedds.",
            ) from None
        self._idl: Any = idl
        self._types: Any = types
        self._definitions = definitions
        self._made: dict[str, Any] = {}
        self._under_way: dict[str, None] = {}

    def class_of(self, name: str) -> Any:
        """The class of a struct, union, enumeration or bit mask.

        Raises:
            Refused: the type refers to itself, nests too deeply, or holds what the library cannot represent.
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

    def _make(self, definition: Definition) -> Any:
        local = definition.name.replace("::", "_")
        dotted = definition.name.replace("::", ".")
        match definition:
            case Struct():
                return self._make_struct(definition, local, dotted)
            case Union():
                return self._make_union(definition, local, dotted)
            case Enumeration(values=values):
                made = self._idl.make_idl_enum(local, dotted, dict(values))
                made.__idl_annotations__["bit_bound"] = definition.bit_bound
                return made
            case Bitmask(flags=flags):
                positions = {field_name(name): {"position": position} for name, position in flags}
                made = self._idl.make_idl_bitmask(local, dotted, list(positions), field_annotations=positions)
                made.__idl_annotations__["bit_bound"] = definition.bit_bound
                return made
            case Alias(shape=shape):
                return self._types.typedef[dotted, self.hint(shape)]

    def _make_struct(self, struct: Struct, local: str, dotted: str) -> Any:
        base = self._base_class(struct)
        fields: dict[str, Any] = {}
        for member in struct.members:
            hint = self.hint(member.shape)
            fields[field_name(member.name)] = Optional[hint] if member.optional else hint  # noqa: UP045
        made = self._idl.make_idl_struct(
            local,
            dotted,
            fields,
            field_annotations={field_name(member.name): _annotations(member) for member in struct.members},
            bases=(base,) if base else (),
        )
        made.__idl_annotations__["extensibility"] = str(struct.extensibility)
        if struct.hashed_ids:
            made.__idl_annotations__["autoid"] = "hash"
        return made

    def _base_class(self, struct: Struct) -> Any:
        """The class of the base struct, seen through aliases."""
        name = struct.base
        for _ in range(NESTING_MAX):
            definition = self._definitions.get(name)
            if not isinstance(definition, Alias):
                break
            name = str(definition.shape.base)
        return self.class_of(name) if name else None

    def _make_union(self, union: Union, local: str, dotted: str) -> Any:
        fields: dict[str, Any] = {}
        discriminator = self.hint(union.discriminator)
        enumeration = (
            discriminator if isinstance(discriminator, type) and hasattr(discriminator, "__members__") else None
        )
        for case in union.cases:
            hint = self.hint(case.member.shape)
            labels: list[Any] = [enumeration(label) if enumeration else label for label in case.labels]
            key = field_name(case.member.name)
            # A case that is also the default needs no labels of its own: it takes whatever no other case takes.
            fields[key] = self._types.default[hint] if case.is_default else self._types.case[labels, hint]
        made = self._idl.make_idl_union(
            local, dotted, fields, discriminator=discriminator, discriminator_is_key=union.key
        )
        made.__idl_annotations__["extensibility"] = str(union.extensibility)
        return made

    def hint(self, shape: Shape) -> Any:
        """The library's annotation for a shape."""
        hint = self._base_hint(shape)
        if shape.sequence_bound is not None:
            bounded = shape.sequence_bound != UNBOUNDED
            hint = self._types.sequence[hint, shape.sequence_bound] if bounded else self._types.sequence[hint]
        for size in reversed(shape.dimensions):
            hint = self._types.array[hint, size]
        return hint

    def _base_hint(self, shape: Shape) -> Any:
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


def _annotations(member: Member) -> dict[str, Any]:
    annotations: dict[str, Any] = {}
    if member.key:
        annotations["key"] = True
    if member.id is not None:
        annotations["id"] = member.id
    if member.must_understand:
        annotations["must_understand"] = True
    if field_name(member.name) != member.name:
        annotations["name"] = member.name
    return annotations
