"""Types of samples as data: structs, enumerations, unions, bit masks, aliases [QS 3.3.1].

Names are fully qualified with `::`. A shape describes a member: a primitive, a string, or a named type, and around it a
sequence, and around that an array.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias

UNBOUNDED: Final = -1
DEFAULT_STRING_BOUND: Final = 255
"""Of a string member without `stringMaxLength`."""


class Primitive(StrEnum):
    """Primitive types under the names of IDL 4.2."""

    BOOLEAN = "boolean"
    OCTET = "octet"
    CHAR = "char"
    WCHAR = "wchar"
    INT8 = "int8"
    UINT8 = "uint8"
    INT16 = "int16"
    UINT16 = "uint16"
    INT32 = "int32"
    UINT32 = "uint32"
    INT64 = "int64"
    UINT64 = "uint64"
    FLOAT32 = "float32"
    FLOAT64 = "float64"
    FLOAT128 = "float128"
    STRING = "string"
    WSTRING = "wstring"


SPELLINGS: Final[dict[str, Primitive]] = {
    **{primitive.value: primitive for primitive in Primitive},
    "byte": Primitive.OCTET,
    "char8": Primitive.CHAR,
    "char16": Primitive.WCHAR,
    "char32": Primitive.WCHAR,
    "short": Primitive.INT16,
    "unsignedShort": Primitive.UINT16,
    "long": Primitive.INT32,
    "unsignedLong": Primitive.UINT32,
    "longLong": Primitive.INT64,
    "unsignedLongLong": Primitive.UINT64,
    "float": Primitive.FLOAT32,
    "double": Primitive.FLOAT64,
    "longDouble": Primitive.FLOAT128,
}
"""Every spelling of a primitive in XML."""

INTEGER_RANGES: Final[dict[Primitive, tuple[int, int]]] = {
    Primitive.OCTET: (0, 2**8 - 1),
    Primitive.INT8: (-(2**7), 2**7 - 1),
    Primitive.UINT8: (0, 2**8 - 1),
    Primitive.INT16: (-(2**15), 2**15 - 1),
    Primitive.UINT16: (0, 2**16 - 1),
    Primitive.INT32: (-(2**31), 2**31 - 1),
    Primitive.UINT32: (0, 2**32 - 1),
    Primitive.INT64: (-(2**63), 2**63 - 1),
    Primitive.UINT64: (0, 2**64 - 1),
}


class Extensibility(StrEnum):
    """The permitted differences between versions of a type."""

    FINAL = "final"
    APPENDABLE = "appendable"
    MUTABLE = "mutable"


@dataclass(frozen=True, slots=True)
class TypeShape:
    """The shape of a member. `base` is a primitive or the qualified name of a type.

    `string_bound` counts for strings. `sequence_bound` None: not a sequence; -1: one without a bound. `dimensions` of
    an array around it, the outermost first.
    """

    base: Primitive | str
    string_bound: int = UNBOUNDED
    sequence_bound: int | None = None
    dimensions: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class StructMember:
    """A member of a struct or of a case."""

    name: str
    shape: TypeShape
    key: bool = False
    optional: bool = False
    id: int | None = None
    must_understand: bool = False
    default: str | None = None


@dataclass(frozen=True, slots=True)
class Struct:
    """A structure; the members of `base` come first."""

    name: str
    members: tuple[StructMember, ...]
    base: str = ""
    extensibility: Extensibility = Extensibility.APPENDABLE
    hashed_ids: bool = False


@dataclass(frozen=True, slots=True)
class Enumeration:
    """An enumeration: names with their numbers."""

    name: str
    values: tuple[tuple[str, int], ...]
    bit_bound: int = 32


@dataclass(frozen=True, slots=True)
class Case:
    """A case of a union: the values that select it, and whether it is the one for all others."""

    labels: tuple[int | bool | str, ...]
    is_default: bool
    member: StructMember


@dataclass(frozen=True, slots=True)
class Union:
    """A union: the value of its discriminator selects one of its cases."""

    name: str
    discriminator: TypeShape
    cases: tuple[Case, ...]
    extensibility: Extensibility = Extensibility.APPENDABLE
    key: bool = False


@dataclass(frozen=True, slots=True)
class Bitmask:
    """A bit mask: flags by name, each with its bit."""

    name: str
    flags: tuple[tuple[str, int], ...]
    bit_bound: int = 32


@dataclass(frozen=True, slots=True)
class Alias:
    """Another name for a shape (`<typedef>`)."""

    name: str
    shape: TypeShape


Definition: TypeAlias = Struct | Enumeration | Union | Bitmask | Alias

_OCTETS: Final = StructMember("value", TypeShape(Primitive.OCTET, sequence_bound=UNBOUNDED))
_TEXT: Final = StructMember("value", TypeShape(Primitive.STRING))
_KEY: Final = StructMember("key", TypeShape(Primitive.STRING), key=True)

BUILTIN_TYPES: Final[dict[str, Definition]] = {
    "DDS::Octets": Struct("DDS::Octets", (_OCTETS,), extensibility=Extensibility.FINAL),
    "DDS::String": Struct("DDS::String", (_TEXT,), extensibility=Extensibility.FINAL),
    "DDS::KeyedOctets": Struct("DDS::KeyedOctets", (_KEY, _OCTETS), extensibility=Extensibility.FINAL),
    "DDS::KeyedString": Struct("DDS::KeyedString", (_KEY, _TEXT), extensibility=Extensibility.FINAL),
}
"""Types that every file may use without defining them."""
