"""Rules across whole definitions: bases, member ids, the discriminators of cases, and the least size of a sample.

Walks from type to type without recursion: types nest as deep as their author likes. Needs definitions without circles.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from qsctl.config.sample_types.type_model import (
    INTEGER_RANGES,
    Alias,
    Bitmask,
    Definition,
    Enumeration,
    Primitive,
    Struct,
    StructMember,
    TypeShape,
    Union,
)
from qsctl.config.sample_types.type_names import hashed_id

NESTING_MAX: Final = 100
"""Types inside types; the DDS library works through them by recursion."""

ARRAY_ELEMENTS_MAX: Final = 1_048_576
"""Of one array, all its dimensions together; arrays of octets may be as large as a sample."""

LEAST_SAMPLE_BYTES_MAX: Final = 32 * 1024 * 1024
"""The least that a sample of a type may take: a service refuses larger ones, so there could be none."""

_DISCRIMINATORS: Final = frozenset({*INTEGER_RANGES, Primitive.BOOLEAN, Primitive.CHAR, Primitive.WCHAR})
_LEAST_BYTES: Final[Mapping[Primitive, int]] = {
    Primitive.BOOLEAN: 1,
    Primitive.OCTET: 1,
    Primitive.CHAR: 1,
    Primitive.WCHAR: 2,
    Primitive.INT8: 1,
    Primitive.UINT8: 1,
    Primitive.INT16: 2,
    Primitive.UINT16: 2,
    Primitive.INT32: 4,
    Primitive.UINT32: 4,
    Primitive.INT64: 8,
    Primitive.UINT64: 8,
    Primitive.FLOAT32: 4,
    Primitive.FLOAT64: 8,
    Primitive.FLOAT128: 16,
    Primitive.STRING: 5,
    Primitive.WSTRING: 4,
}
_SEQUENCE_BYTES: Final = 4


@dataclass(frozen=True, slots=True)
class WrongDefinition:
    """An error in the definition of the type of this name."""

    name: str
    message: str
    found: str = ""
    allowed: str = ""


def wrong_definitions(definitions: Mapping[str, Definition]) -> Iterator[WrongDefinition]:
    """Yield an error for each definition that breaks a rule; the definitions hold no circle."""
    for name, definition in definitions.items():
        match definition:
            case Struct():
                yield from _wrong_struct(definition, definitions)
            case Union():
                yield from _wrong_union(definition, definitions)
            case _:
                pass
        for member_name, shape in _shapes(definition):
            count = math.prod(shape.dimensions)
            if count > ARRAY_ELEMENTS_MAX and shape.base is not Primitive.OCTET:
                where = f"the array {member_name} of {name}" if member_name else f"the array {name}"
                yield WrongDefinition(
                    name, f"{where} has too many elements", str(count), f"at most {ARRAY_ELEMENTS_MAX}"
                )
    yield from _too_large(definitions)


def _wrong_struct(struct: Struct, definitions: Mapping[str, Definition]) -> Iterator[WrongDefinition]:
    chain: list[Struct] = []
    at: Definition | None = struct
    while at is not None:
        if isinstance(at, Struct):
            chain.append(at)
            at = definitions.get(at.base) if at.base else None
        elif (
            isinstance(at, Alias) and at.shape == TypeShape(at.shape.base) and not isinstance(at.shape.base, Primitive)
        ):
            at = definitions.get(at.shape.base)
        else:
            yield WrongDefinition(
                struct.name, f"{struct.name} cannot be based on {struct.base}", struct.base, "a struct"
            )
            return
    ids: dict[int, str] = {}
    names: set[str] = set()
    following = 0
    for each in reversed(chain):
        for member in each.members:
            if member.name in names:
                yield WrongDefinition(
                    struct.name,
                    f"the member {member.name} is in {struct.name} and in its base",
                    member.name,
                    "once",
                )
            names.add(member.name)
            number = _member_id(member, following, hashed=struct.hashed_ids)
            following = number + 1
            if number in ids:
                yield WrongDefinition(
                    struct.name,
                    f"the members {ids[number]} and {member.name} of {struct.name} have one id",
                    str(number),
                    "an id of its own",
                )
            ids[number] = member.name


def _member_id(member: StructMember, following: int, *, hashed: bool) -> int:
    if member.id is not None:
        return member.id
    return hashed_id(member.name) if hashed else following


def _wrong_union(union: Union, definitions: Mapping[str, Definition]) -> Iterator[WrongDefinition]:
    shape = union.discriminator
    while isinstance(definition := definitions.get(str(shape.base)), Alias) and shape.sequence_bound is None:
        shape = definition.shape
    enumeration = definition if isinstance(definition, Enumeration) else None
    is_plain = shape.sequence_bound is None and not shape.dimensions
    if not is_plain or (enumeration is None and shape.base not in _DISCRIMINATORS):
        yield WrongDefinition(
            union.name,
            f"the discriminator of {union.name} cannot select a case",
            str(union.discriminator.base),
            "a whole number, boolean, char or an enumeration",
        )
        return
    for case in union.cases:
        for label in case.labels:
            allowed = _not_a_label(label, shape, enumeration)
            if allowed:
                yield WrongDefinition(union.name, f"a case of {union.name} can never be selected", str(label), allowed)
    if sum(case.is_default for case in union.cases) > 1:
        yield WrongDefinition(union.name, f"{union.name} has several default cases", "default", "at most one")
    for name, count in Counter(case.member.name for case in union.cases).items():
        if count > 1:
            yield WrongDefinition(union.name, f"the member {name} occurs {count} times in {union.name}", name, "once")
        if name == "discriminator":
            yield WrongDefinition(
                union.name,
                f"a member of the union {union.name} is called discriminator, as JSON calls what selects the member",
                name,
                "another name",
            )


def _not_a_label(label: int | bool | str, shape: TypeShape, enumeration: Enumeration | None) -> str:
    """Return what a label of this type must be; empty if the label is allowed."""
    if enumeration is not None:
        return "" if label in dict(enumeration.values).values() else ", ".join(dict(enumeration.values))[:200]
    match shape.base:
        case Primitive.BOOLEAN:
            return "" if isinstance(label, bool) else "true or false"
        case Primitive.CHAR | Primitive.WCHAR:
            return "" if isinstance(label, str) and len(label) == 1 and label.isascii() else "one ASCII character"
        case Primitive() as base:
            low, high = INTEGER_RANGES[base]
            return "" if isinstance(label, int) and low <= label <= high else f"{low} to {high}"
        case _:
            return ""


def _too_large(definitions: Mapping[str, Definition]) -> Iterator[WrongDefinition]:
    """Yield an error for each type that nests too deeply, and for each whose smallest sample is too large."""
    measures: dict[str, tuple[int, int]] = {}
    for start in definitions:
        pending = [(start, False)]
        while pending:
            name, leaving = pending.pop()
            if not leaving:
                if name not in measures:
                    measures[name] = (0, 0)  # seen: a type that a sequence leads back to counts nothing
                    pending.append((name, True))
                    inner = {str(shape.base) for _, shape in _shapes(definitions[name])} | _base_of(definitions[name])
                    pending.extend((each, False) for each in inner if each in definitions and each not in measures)
                continue
            definition = definitions[name]
            inside = [measures.get(str(shape.base), (0, 0)) for _, shape in _shapes(definition)]
            inside += [measures.get(base, (0, 0)) for base in _base_of(definition)]
            depth = 1 + max((depth for depth, _ in inside), default=0)
            size_bytes = _least_bytes(definition, measures)
            if depth == NESTING_MAX + 1:
                yield WrongDefinition(
                    name, f"the types of {name} are nested too deeply", f"{depth} levels", f"at most {NESTING_MAX}"
                )
            if size_bytes > LEAST_SAMPLE_BYTES_MAX:
                yield WrongDefinition(
                    name,
                    f"every sample of {name} would be too large",
                    f"at least {size_bytes} bytes",
                    f"at most {LEAST_SAMPLE_BYTES_MAX} bytes",
                )
                size_bytes = 0  # reported once, not again for each type around it
            measures[name] = (depth, size_bytes)


def _least_bytes(definition: Definition, measures: Mapping[str, tuple[int, int]]) -> int:
    def of(shape: TypeShape) -> int:
        if shape.sequence_bound is not None:
            one = _SEQUENCE_BYTES
        elif isinstance(shape.base, Primitive):
            one = _LEAST_BYTES[shape.base]
        else:
            one = measures.get(shape.base, (0, 0))[1]
        return one * math.prod(shape.dimensions)

    match definition:
        case Struct(members=members, base=base):
            own = sum(0 if member.optional else of(member.shape) for member in members)
            return own + measures.get(base, (0, 0))[1]
        case Union(cases=cases):
            return 1 + min((of(case.member.shape) for case in cases), default=0)
        case Alias(shape=shape):
            return of(shape)
        case Enumeration():
            return 4
        case Bitmask():
            return 1


def _base_of(definition: Definition) -> set[str]:
    return {definition.base} if isinstance(definition, Struct) and definition.base else set()


def _shapes(definition: Definition) -> Iterator[tuple[str, TypeShape]]:
    match definition:
        case Struct(members=members):
            yield from ((member.name, member.shape) for member in members)
        case Union(discriminator=discriminator, cases=cases):
            yield "", discriminator
            yield from ((case.member.name, case.member.shape) for case in cases)
        case Alias(shape=shape):
            yield "", shape
        case _:
            return
