"""JSON values of a type to the DDS library's values and back, everything checked before the library receives it.

A struct is an object of its members. An enumeration is its literal, or its number. A union is an object with its
selected member, and `discriminator` where the member alone does not determine it. A bit mask is a list of its flags.
Octets are hexadecimal text, or a list of numbers. A member without a value takes its `default`, or is left out where it
is optional; else it is missing, and that is an error.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from qsctl.config.sample_types._type_classes import ClassMaker, encoded_enumerator
from qsctl.config.sample_types.type_model import (
    INTEGER_RANGES,
    UNBOUNDED,
    Alias,
    Bitmask,
    Case,
    Definition,
    Enumeration,
    Primitive,
    Struct,
    StructMember,
    TypeShape,
    Union,
)
from qsctl.errors import InvalidInput

_FLOAT32_MAX: Final = 3.4028234663852886e38


def _refuse(path: str, found: object, allowed: str) -> InvalidInput:
    text = repr(found)
    return InvalidInput(f"{path or 'the sample'} is {text[:80]}", remedy=f"Allowed: {allowed}.")


class Values:
    """Conversions for the types of one library."""

    def __init__(self, definitions: Mapping[str, Definition], classes: ClassMaker) -> None:
        self._definitions = definitions
        self._classes = classes

    def native(self, name: str, value: object, path: str = "") -> Any:
        """Return the library's value for a JSON value of a named type.

        Raises:
            InvalidInput: the value does not fit the type; names the member.
        """
        definition = self._definitions[name]
        match definition:
            case Struct():
                return self._native_struct(definition, value, path)
            case Union():
                return self._native_union(definition, value, path)
            case Enumeration(values=values):
                made = self._classes.class_of(name)
                numbers = dict(values)
                if isinstance(value, str) and value in numbers:
                    return made(encoded_enumerator(numbers[value]))
                if type(value) is int and value in numbers.values():
                    return made(encoded_enumerator(value))
                raise _refuse(path, value, "one of " + ", ".join(numbers))
            case Bitmask(flags=flags):
                names = [flag for flag, _ in flags]
                if not isinstance(value, list) or not all(flag in names for flag in value):
                    raise _refuse(path, value, "a list of " + ", ".join(names))
                made = self._classes.class_of(name)
                own = self._classes.field_names(name)
                return made(**{own[flag]: flag in value for flag in names})
            case Alias(shape=shape):
                return self._native_shape(shape, value, path)

    def _native_struct(self, struct: Struct, value: object, path: str) -> Any:
        members = self.members_of(struct)
        if not isinstance(value, Mapping) and [member.name for member in members] == ["value"]:
            value = {"value": value}  # DDS::String and DDS::Octets as plain texts
        if not isinstance(value, Mapping):
            raise _refuse(path, value, f"an object with the members of {struct.name}")
        known = {member.name for member in members}
        for key in value:
            if key not in known:
                raise _refuse(
                    _step(path, str(key)), value[key], f"no such member: {struct.name} has " + ", ".join(known)
                )
        made = self._classes.class_of(struct.name)
        own = self._classes.field_names(struct.name)
        return made(**{own[member.name]: self._native_member(member, value, path) for member in members})

    def _native_member(self, member: StructMember, value: Mapping[str, object], path: str) -> Any:
        here = _step(path, member.name)
        given = value.get(member.name)
        if given is None:
            if member.optional:
                return None
            if member.default is None:
                raise _refuse(here, None, "a value: the member is not optional and has no default")
            given = self._default(member)
        return self._native_shape(member.shape, given, here)

    def _default(self, member: StructMember) -> object:
        text = (member.default or "").strip()
        if member.shape.base in INTEGER_RANGES:
            try:
                return int(text, 0)
            except ValueError:
                return text
        if member.shape.base in {Primitive.FLOAT32, Primitive.FLOAT64}:
            try:
                return float(text)
            except ValueError:
                return text
        if member.shape.base is Primitive.BOOLEAN:
            return text.lower() in {"true", "1"}
        if member.shape.base in {Primitive.STRING, Primitive.CHAR}:
            return text.strip("\"'")
        return text.rsplit("::", 1)[-1].strip("()")

    def _native_union(self, union: Union, value: object, path: str) -> Any:
        if not isinstance(value, Mapping):
            raise _refuse(path, value, f"an object with one member of {union.name}")
        named = [case for case in union.cases if case.member.name in value]
        names = ", ".join(case.member.name for case in union.cases)
        if len(named) != 1 or not value.keys() <= {named[0].member.name, "discriminator"}:
            raise _refuse(path, dict(value), f"exactly one of {names}, and discriminator")
        case = named[0]
        held = self._native_shape(case.member.shape, value[case.member.name], _step(path, case.member.name))
        return self._classes.class_of(union.name)(discriminator=self._label(union, case, value, path), value=held)

    def _label(self, union: Union, case: Case, value: Mapping[str, object], path: str) -> Any:
        given = value.get("discriminator")
        if given is None and case.labels:
            return self._native_shape(union.discriminator, case.labels[0], _step(path, "discriminator"))
        here = _step(path, "discriminator")
        if given is None:
            raise _refuse(here, None, f"a value: {case.member.name} holds for all values that have no case")
        label = self._native_shape(union.discriminator, given, here)
        number = getattr(label, "value", label)
        others = {known for other in union.cases if other is not case for known in self._encoded(union, other)}
        if (number not in self._encoded(union, case) and not case.is_default) or number in others:
            raise _refuse(here, given, f"a value that selects {case.member.name}")
        return label

    def _encoded(self, union: Union, case: Case) -> tuple[int | bool | str, ...]:
        """Return the labels of a case as the library has them."""
        shape = union.discriminator
        while isinstance(definition := self._definitions.get(str(shape.base)), Alias):
            shape = definition.shape
        if isinstance(definition, Enumeration):
            return tuple(encoded_enumerator(int(label)) for label in case.labels)
        return case.labels

    def _native_shape(self, shape: TypeShape, value: object, path: str, dimension: int = 0) -> Any:
        if dimension < len(shape.dimensions):
            size = shape.dimensions[dimension]
            inner = dimension + 1
            items = self._octets(shape, value, path) if self._is_octets(shape, inner) else value
            if not isinstance(items, list | bytes) or len(items) != size:
                raise _refuse(path, value, f"a list of {size}")
            return [self._native_shape(shape, item, f"{path}[{at}]", inner) for at, item in enumerate(items)]
        if shape.sequence_bound is not None:
            bound = shape.sequence_bound
            items = self._octets(shape, value, path) if shape.base is Primitive.OCTET else value
            if not isinstance(items, list | bytes) or (bound != UNBOUNDED and len(items) > bound):
                raise _refuse(path, value, "a list" if bound == UNBOUNDED else f"a list of at most {bound}")
            if isinstance(items, bytes):
                return items
            element = TypeShape(shape.base, shape.string_bound)
            return [self._native_shape(element, item, f"{path}[{at}]") for at, item in enumerate(items)]
        if isinstance(shape.base, Primitive):
            return _native_primitive(shape.base, shape.string_bound, value, path)
        return self.native(shape.base, value, path)

    def _is_octets(self, shape: TypeShape, dimension: int) -> bool:
        return shape.base is Primitive.OCTET and shape.sequence_bound is None and dimension == len(shape.dimensions)

    def _octets(self, shape: TypeShape, value: object, path: str) -> object:
        if isinstance(value, str):
            try:
                return bytes.fromhex(value)
            except ValueError:
                raise _refuse(path, value, "octets as hexadecimal digits, or a list of numbers") from None
        if isinstance(value, list):
            element = TypeShape(shape.base)
            return bytes(self._native_shape(element, item, f"{path}[{at}]") for at, item in enumerate(value))
        return value

    def members_of(self, struct: Struct) -> list[StructMember]:
        """Return all members, those of the bases first."""
        chain = [struct]
        name = struct.base
        while name:
            definition = self._definitions.get(name)
            if isinstance(definition, Alias):
                name = str(definition.shape.base)
            elif isinstance(definition, Struct):
                chain.append(definition)
                name = definition.base
            else:
                break
        return [member for each in reversed(chain) for member in each.members]

    def plain(self, name: str, value: Any) -> object:
        """Return the JSON value of a library's value of a named type."""
        definition = self._definitions[name]
        match definition:
            case Struct():
                own = self._classes.field_names(name)
                return {
                    member.name: self._plain_shape(member.shape, held)
                    for member in self.members_of(definition)
                    if (held := getattr(value, own[member.name])) is not None
                }
            case Union():
                return self._plain_union(definition, value)
            case Enumeration(values=values):
                number = getattr(value, "value", value)  # the library gives a number that it has no literal for
                literal = next((each for each, known in values if encoded_enumerator(known) == number), None)
                if literal is None:
                    raise ValueError(f"{number} is not a value of {name}")
                return literal
            case Bitmask(flags=flags):
                if isinstance(value, int):  # what the library puts where a sample ends early
                    return [flag for flag, position in flags if value >> position & 1]
                own = self._classes.field_names(name)
                return [flag for flag, _ in flags if getattr(value, own[flag])]
            case Alias(shape=shape):
                return self._plain_shape(shape, value)

    def _plain_union(self, union: Union, value: Any) -> object:
        label = value.discriminator
        number = getattr(label, "value", label)
        case = next((each for each in union.cases if number in self._encoded(union, each)), None)
        case = case or next((each for each in union.cases if each.is_default), None)
        discriminator = self._plain_shape(union.discriminator, label)
        if case is None:
            return {"discriminator": discriminator}
        return {"discriminator": discriminator, case.member.name: self._plain_shape(case.member.shape, value.value)}

    def _plain_shape(self, shape: TypeShape, value: Any, dimension: int = 0) -> object:
        if dimension < len(shape.dimensions):
            size = shape.dimensions[dimension]
            if len(value) != size:
                raise ValueError(f"{len(value)} elements where there are {size}")  # the library reads past the end
            if self._is_octets(shape, dimension + 1):
                return bytes(value).hex()
            return [self._plain_shape(shape, item, dimension + 1) for item in value]
        if shape.sequence_bound is not None:
            if shape.base is Primitive.OCTET:
                return bytes(value).hex()
            element = TypeShape(shape.base, shape.string_bound)
            return [self._plain_shape(element, item) for item in value]
        if isinstance(shape.base, Primitive):
            return bool(value) if shape.base is Primitive.BOOLEAN else value
        return self.plain(shape.base, value)


def _step(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _native_primitive(primitive: Primitive, string_bound: int, value: object, path: str) -> object:
    if primitive in INTEGER_RANGES:
        low, high = INTEGER_RANGES[primitive]
        if type(value) is not int or not low <= value <= high:
            raise _refuse(path, value, f"a whole number from {low} to {high}")
        return value
    match primitive:
        case Primitive.BOOLEAN:
            if not isinstance(value, bool):
                raise _refuse(path, value, "true or false")
        case Primitive.STRING:
            bound = "" if string_bound == UNBOUNDED else f" of at most {string_bound} bytes"
            if not isinstance(value, str) or "\0" in value or not _is_unicode(value):
                raise _refuse(path, value, f"a text without NUL{bound}")
            if string_bound != UNBOUNDED and len(value.encode()) > string_bound:
                raise _refuse(path, value, f"a text{bound}")
        case Primitive.CHAR:
            if not isinstance(value, str) or len(value) != 1 or ord(value) > 127:
                raise _refuse(path, value, "one ASCII character")
        case Primitive.FLOAT32 | Primitive.FLOAT64:
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise _refuse(path, value, "a number")
            try:
                number = float(value)
            except OverflowError:
                raise _refuse(path, value, "a number of 64 bits") from None
            if primitive is Primitive.FLOAT32 and math.isfinite(number) and abs(number) > _FLOAT32_MAX:
                raise _refuse(path, value, "a number of 32 bits")
            return number
        case _:
            raise _refuse(path, value, f"nothing: {primitive} cannot be represented")
    return value


def _is_unicode(text: str) -> bool:
    return not any(0xD800 <= ord(character) <= 0xDFFF for character in text)
