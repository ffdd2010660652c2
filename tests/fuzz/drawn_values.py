"""Values of XML types as JSON has them, drawn from a seed: what a type says is a sample comes back as it was."""

from __future__ import annotations

import math
import random
import string
from collections.abc import Mapping

from qsctl.config.sample_types.type_model import (
    INTEGER_RANGES,
    UNBOUNDED,
    Alias,
    Bitmask,
    Definition,
    Enumeration,
    Primitive,
    Struct,
    TypeShape,
    Union,
)

SEQUENCE_MAX = 3
TEXT_MAX = 12
ELEMENTS_MAX = 2_000


class TooLarge(Exception):
    """A value of the type would have more elements than a fuzz target has time for."""


class ValueDrawing:
    """Draws values of the types of one library."""

    def __init__(self, definitions: Mapping[str, Definition], seed: int) -> None:
        self._definitions = definitions
        self._draw = random.Random(seed)
        self._elements = 0

    def value(self, name: str) -> object:
        """Draw a value of a named type."""
        definition = self._definitions[name]
        match definition:
            case Struct():
                return self._members(definition)
            case Union():
                return self._union(definition)
            case Enumeration(values=values):
                return self._draw.choice(values)[0]
            case Bitmask(flags=flags):
                return [flag for flag, _ in flags if self._draw.random() < 0.5]
            case Alias(shape=shape):
                return self._shape(shape)

    def _members(self, struct: Struct) -> dict[str, object]:
        found: dict[str, object] = {}
        base: Definition | None = self._definitions.get(struct.base)
        while isinstance(base, Alias):
            base = self._definitions.get(str(base.shape.base))
        if isinstance(base, Struct):
            found.update(self._members(base))
        for member in struct.members:
            if not (member.optional and self._draw.random() < 0.5):
                found[member.name] = self._shape(member.shape)
        return found

    def _union(self, union: Union) -> object:
        taken = {label for case in union.cases if not case.is_default for label in case.labels}
        case = self._draw.choice(union.cases)
        label = self._unused(union.discriminator, taken) if case.is_default else self._draw.choice(case.labels)
        if label is None:  # no value is left for the default
            case = next(each for each in union.cases if not each.is_default)
            label = case.labels[0]
        return {
            "discriminator": self._spelt(union.discriminator, label),
            case.member.name: self._shape(case.member.shape),
        }

    def _plain(self, shape: TypeShape) -> TypeShape:
        while isinstance(alias := self._definitions.get(str(shape.base)), Alias):
            shape = alias.shape
        return shape

    def _unused(self, shape: TypeShape, taken: set[int | bool | str]) -> int | bool | str | None:
        shape = self._plain(shape)
        definition = self._definitions.get(str(shape.base))
        candidates: list[int | bool | str]
        if isinstance(definition, Enumeration):
            candidates = [number for _, number in definition.values]
        elif shape.base is Primitive.BOOLEAN:
            candidates = [False, True]
        elif shape.base is Primitive.CHAR:
            candidates = list(string.ascii_letters)
        else:
            low, high = INTEGER_RANGES[shape.base]  # type: ignore[index]
            candidates = [low, high, *range(100)]
        return next((each for each in candidates if each not in taken), None)

    def _spelt(self, shape: TypeShape, label: int | bool | str) -> object:
        definition = self._definitions.get(str(self._plain(shape).base))
        if isinstance(definition, Enumeration):
            return next(name for name, number in definition.values if number == label)
        return label

    def _shape(self, shape: TypeShape, dimension: int = 0) -> object:
        self._elements += 1
        if self._elements > ELEMENTS_MAX:
            raise TooLarge
        if dimension < len(shape.dimensions):
            size = shape.dimensions[dimension]
            if math.prod(shape.dimensions) > ELEMENTS_MAX:
                raise TooLarge
            last = dimension + 1 == len(shape.dimensions)
            if shape.base is Primitive.OCTET and last and shape.sequence_bound is None:
                return self._draw.randbytes(size).hex()
            return [self._shape(shape, dimension + 1) for _ in range(size)]
        if shape.sequence_bound is not None:
            most = SEQUENCE_MAX if shape.sequence_bound == UNBOUNDED else min(SEQUENCE_MAX, shape.sequence_bound)
            size = self._draw.randint(0, most)
            if shape.base is Primitive.OCTET:
                return self._draw.randbytes(size).hex()
            return [self._shape(TypeShape(shape.base, shape.string_bound)) for _ in range(size)]
        if not isinstance(shape.base, Primitive):
            return self.value(shape.base)
        return self._primitive(shape.base, shape.string_bound)

    def _primitive(self, primitive: Primitive, string_bound: int) -> object:
        draw = self._draw
        if primitive in INTEGER_RANGES:
            low, high = INTEGER_RANGES[primitive]
            return draw.choice((low, high, 0, 1, draw.randint(low, high)))
        match primitive:
            case Primitive.BOOLEAN:
                return draw.random() < 0.5
            case Primitive.CHAR:
                return draw.choice(string.printable)
            case Primitive.FLOAT32 | Primitive.FLOAT64:
                return draw.choice((0.0, -1.5, 0.25, 2.0**100, float(draw.randint(-1000, 1000))))
            case _:
                most = TEXT_MAX if string_bound == UNBOUNDED else min(TEXT_MAX, string_bound)
                text = "".join(draw.choice("aZ9 é€\U0001f600\n") for _ in range(draw.randint(0, most)))
                while len(text.encode()) > most:
                    text = text[:-1]
                return text
