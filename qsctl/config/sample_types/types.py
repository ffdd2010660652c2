"""The types of a configuration: which there are, and samples of them between JSON and CDR [QS 3.3.1].

Serialization is the DDS library's own, in the first version of CDR with its encapsulation header, as other
implementations expect it. The library is loaded when the first sample is converted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from lxml.etree import _Element

from qsctl.config.sample_types._type_classes import ClassMaker
from qsctl.config.sample_types._type_reader import TypeReader
from qsctl.config.sample_types._type_values import Values
from qsctl.config.sample_types.type_model import BUILTIN_TYPES, Alias, Bitmask, Definition, Enumeration, Struct, Union
from qsctl.declared.problems import Problem
from qsctl.errors import InvalidInput, NotFound, Refused


@dataclass(eq=False)
class TypeLibrary:
    """Types by their qualified names, the builtin ones included. Two libraries are equal when their types are."""

    definitions: dict[str, Definition] = field(default_factory=dict)
    _values: Values | None = field(default=None, repr=False)
    _classes: ClassMaker | None = field(default=None, repr=False)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypeLibrary) and self.definitions == other.definitions

    __hash__ = None  # type: ignore[assignment]

    def type_names(self) -> list[str]:
        """Return the names of types that a queue may hold: structs and unions of `<types>`, then the builtin ones."""
        own = [name for name, definition in self.definitions.items() if isinstance(definition, Struct | Union)]
        return [*own, *BUILTIN_TYPES]

    def __contains__(self, type_name: object) -> bool:
        return isinstance(type_name, str) and _plain_name(type_name) in {**BUILTIN_TYPES, **self.definitions}

    def json_to_cdr(self, type_name: str, value: object) -> bytes:
        """Return a sample given as JSON in CDR, with its encapsulation header.

        Raises:
            NotFound: there is no such type.
            InvalidInput: the value does not fit; the message names the member, the value and the allowed values.
            Refused: the type is neither a struct nor a union, or the DDS library cannot represent it.
            Unavailable: the DDS library is missing.
        """
        name = self._of_samples(type_name)
        values, classes = self._converters()
        classes.class_of(name)
        try:
            native = values.native(name, value)
            octets: bytes = native.serialize(use_version_2=False)
        except RecursionError:
            raise InvalidInput(f"the sample of {name} is nested too deeply") from None
        return octets

    def cdr_to_json(self, type_name: str, octets: bytes) -> object:
        """Return a sample in CDR, with its encapsulation header, as JSON.

        Raises:
            NotFound: there is no such type.
            InvalidInput: the octets are not a sample of this type.
            Refused: the type is neither a struct nor a union, or the DDS library cannot represent it.
            Unavailable: the DDS library is missing.
        """
        name = self._of_samples(type_name)
        values, classes = self._converters()
        made = classes.class_of(name)
        if len(octets) < 4 or octets[0] != 0:
            raise InvalidInput(f"{len(octets)} octets are not a sample of {name}: there is no encapsulation header")
        try:
            return values.plain(name, made.deserialize(octets))
        except Exception as error:  # the library raises its own and bare `Exception`s for octets that are not a sample
            raise InvalidInput(
                f"the {len(octets)} octets are not a sample of {name}: {error}", remedy="Check the queue's type_name."
            ) from None

    def class_of(self, type_name: str) -> type:
        """Return the DDS library's class for a type, as a transport registers it. Raises as `json_to_cdr` does."""
        name = self._of_samples(type_name)
        made: type = self._converters()[1].class_of(name)
        return made

    def codec(self, type_name: str) -> TypedCodec:
        """Return a codec of this type for producers and consumers. Raises as `json_to_cdr` does."""
        self.class_of(type_name)
        return TypedCodec(self, type_name)

    def is_of_samples(self, type_name: str) -> bool:
        """Return whether a queue may hold samples of a type: it is a struct, a union, or another name for one."""
        try:
            self._of_samples(type_name)
        except (NotFound, Refused):
            return False
        return True

    def _of_samples(self, type_name: str) -> str:
        """Return the struct or union of a type name, aliases followed.

        Raises:
            NotFound: there is no such type.
            Refused: a sample cannot be of this type.
        """
        name = self._known(type_name)
        seen: set[str] = set()
        while isinstance(definition := self.definitions.get(name), Alias) and name not in seen:
            seen.add(name)
            shape = definition.shape
            if shape.sequence_bound is not None or shape.dimensions or str(shape.base) not in self:
                break
            name = str(shape.base)
        if not isinstance(definition or BUILTIN_TYPES.get(name), Struct | Union):
            raise Refused(
                f"the type {type_name} is {_kind_of(definition)}: no queue holds samples of it",
                remedy="Name a struct or a union: " + (", ".join(self.type_names()[:20])) + ".",
            )
        return name

    def _known(self, type_name: str) -> str:
        name = _plain_name(type_name)
        if name not in self.definitions and name not in BUILTIN_TYPES:
            raise NotFound(
                f"there is no type {type_name}",
                remedy="The types are " + ", ".join(self.type_names()[:20]) + ".",
            )
        return name

    def _converters(self) -> tuple[Values, ClassMaker]:
        if self._values is None or self._classes is None:
            everything = {**BUILTIN_TYPES, **self.definitions}
            self._classes = ClassMaker(everything)
            self._values = Values(everything, self._classes)
        return self._values, self._classes


@dataclass(frozen=True)
class TypedCodec:
    """A codec of one type: from JSON values to payloads and back.

    Producers and consumers of programs [QS 8] read and write typed samples with it.
    """

    library: TypeLibrary
    type_name: str

    def encode(self, value: object) -> bytes:
        """Return the value in CDR; raises as `TypeLibrary.json_to_cdr` does."""
        return self.library.json_to_cdr(self.type_name, value)

    def decode(self, payload: bytes) -> object:
        """Return the value in a payload; raises as `TypeLibrary.cdr_to_json` does."""
        return self.library.cdr_to_json(self.type_name, payload)


def _kind_of(definition: Definition | None) -> str:
    match definition:
        case Enumeration():
            return "an enumeration"
        case Bitmask():
            return "a bit mask"
        case _:
            return "another name for what is neither a struct nor a union"


def _plain_name(type_name: str) -> str:
    return type_name.strip().removeprefix("::")


def read_types(parents: Iterable[tuple[_Element, Path | None]]) -> tuple[TypeLibrary, list[Problem]]:
    """Return the types of `<types>` elements, and problems; each element comes with the directory of its includes."""
    reader = TypeReader()
    for element, directory in parents:
        reader.collect(element, directory)
    reader.read_all()
    return TypeLibrary(reader.definitions), reader.problems
