"""`<types>` to definitions: names resolved, constants evaluated, bounds checked, circles reported.

An `<include file="…"/>` reads another file below the directory of its own: a relative path without `..` and without
symbolic links that lead elsewhere. Every problem is collected. What is wrong with whole definitions is for
`type_rules`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Final

from lxml.etree import _Element

from qsctl.config.files.document import read_file
from qsctl.config.sample_types._type_constants import Constant
from qsctl.config.sample_types._type_document import parse_types, types_of_document
from qsctl.config.sample_types._type_scope import Named, TypeScope, is_set
from qsctl.config.sample_types.type_circles import find_circle
from qsctl.config.sample_types.type_model import (
    INTEGER_RANGES,
    SPELLINGS,
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
from qsctl.config.sample_types.type_names import hashed_id
from qsctl.config.sample_types.type_rules import wrong_definitions
from qsctl.declared.problems import InvalidFile, Problem
from qsctl.declared.values import ValueForm, boolean

_INCLUDED_FILES_MAX: Final = 64
_NAMED_TAGS: Final = frozenset({"struct", "enum", "union", "typedef", "const", "bitmask"})
_MEMBER_ID_MAX: Final = 0x0FFF_FFFF
_ENUM_BITS_MAX: Final = 32


@dataclass
class TypeReader:
    """Reads any number of `<types>` elements into one set of definitions."""

    definitions: dict[str, Definition] = field(default_factory=dict)
    _scope: TypeScope = field(default_factory=TypeScope)
    _included: set[Path] = field(default_factory=set)
    _aliases: dict[str, Alias] = field(default_factory=dict)

    @property
    def problems(self) -> list[Problem]:
        """The problems found so far, in the order of reading."""
        return self._scope.problems

    def collect(self, parent: _Element, directory: Path | None, module: str = "") -> None:
        """Collect the names of a `<types>` or `<module>`, and those of the files that it includes."""
        for child in parent:
            tag = str(child.tag)
            name = child.get("name", "").strip()
            if tag == "module":
                self.collect(child, directory, f"{module}{name}::")
            elif tag == "include":
                self._include(child, directory, module)
            elif tag in _NAMED_TAGS:
                full = f"{module}{name}"
                if full in self._scope.named:
                    self._scope.wrong(
                        child, f"the name {full} is given to two types", found=full, allowed="one definition"
                    )
                else:
                    self._scope.named[full] = Named(child, module)

    def read_all(self) -> None:
        """Turn what was collected into definitions: constants and enumerations first, then the rest, then circles."""
        for name, each in self._scope.named.items():
            if each.element.tag == "enum":
                self._read_enum(name, each)
        for name, each in self._scope.named.items():
            if each.element.tag == "const":
                self._read_const(name, each)
        for name, each in self._scope.named.items():
            if each.element.tag == "typedef":
                self._aliases[name] = Alias(name, self._scope.shape(each.element, each.module))
        for name, each in self._scope.named.items():
            match each.element.tag:
                case "struct":
                    self.definitions[name] = self._struct(name, each)
                case "union":
                    self.definitions[name] = self._union(name, each)
                case "typedef":
                    self.definitions[name] = self._aliases[name]
                case "bitmask":
                    self.definitions[name] = self._bitmask(name, each)
                case _:
                    pass  # constants and enumerations were read before
        circle = find_circle(self.definitions)
        if circle:
            element = self._scope.named[circle[0]].element
            self._scope.wrong(element, f"the type {circle[0]} contains itself", found=" → ".join(circle[:10]))
            return  # what follows walks from type to type
        for wrong in wrong_definitions(self.definitions):
            self._scope.wrong(
                self._scope.named[wrong.name].element, wrong.message, found=wrong.found, allowed=wrong.allowed
            )

    def _include(self, element: _Element, directory: Path | None, module: str) -> None:
        file = element.get("file", "").strip()
        given = PurePosixPath(file.replace("\\", "/"))
        if directory is None or not file or given.is_absolute() or ".." in given.parts or ":" in file:
            self._scope.wrong(
                element,
                "only a file below the directory of this one can be included",
                found=file,
                allowed="a relative path without ..",
            )
            return
        try:
            path = (directory / given).resolve()
            inside = path.is_relative_to(directory.resolve())
        except (OSError, ValueError, RuntimeError):
            self._scope.wrong(element, "the included file has no usable path", found=file, allowed="a relative path")
            return
        if not inside:
            self._scope.wrong(
                element, "the included file lies elsewhere", found=file, allowed="a file below this directory"
            )
            return
        if path in self._included:
            return
        if len(self._included) >= _INCLUDED_FILES_MAX:
            self._scope.wrong(element, "too many files are included", allowed=f"at most {_INCLUDED_FILES_MAX}")
            return
        self._included.add(path)
        try:
            document = parse_types(read_file(path, str(directory / given)), str(directory / given), path.parent)
        except InvalidFile as error:
            self.problems.extend(error.problems)
            return
        parents, problems = types_of_document(document)
        self.problems.extend(problems)
        for parent in parents:
            self.collect(parent, path.parent, module)

    def _read_enum(self, name: str, each: Named) -> None:
        bits = self._scope.number(each.element, "bitBound", each.module, _ENUM_BITS_MAX, low=1, high=_ENUM_BITS_MAX)
        low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
        if bits < _ENUM_BITS_MAX:
            high = 2**bits - 1  # the vendor's files count from zero upwards in all the bits
        values: dict[str, int] = {}
        numbers: set[int] = set()
        following = 0
        for enumerator in each.element.findall("enumerator"):
            literal = enumerator.get("name", "").strip()
            number = self._scope.number(enumerator, "value", each.module, following)
            if not low <= number <= high:
                self._scope.wrong(
                    enumerator,
                    f"the number of {literal} does not fit the enumeration",
                    found=str(number),
                    allowed=f"{low} to {high}",
                )
                continue
            if literal in values or number in numbers:
                self._scope.wrong(enumerator, f"{literal} or its number occurs twice in the enumeration", found=literal)
                continue
            values[literal] = number
            numbers.add(number)
            following = number + 1
            for scope in (name + "::", each.module):
                self._scope.constants.setdefault(f"{scope}{literal}", number)
        self.definitions[name] = Enumeration(name, tuple(values.items()), bits)

    def _read_const(self, name: str, each: Named) -> None:
        kind = SPELLINGS.get(each.element.get("type", "").strip())
        text = each.element.get("value", "").strip()
        value: Constant | None = None
        allowed = ""
        if kind in {Primitive.STRING, Primitive.WSTRING, Primitive.CHAR, Primitive.WCHAR}:
            value = text.strip("\"'")
        elif kind is Primitive.BOOLEAN:
            try:
                value = boolean(text)
            except ValueForm as form:
                allowed = form.allowed
        elif kind in {Primitive.FLOAT32, Primitive.FLOAT64, Primitive.FLOAT128}:
            try:
                value = float(text)
            except ValueError:
                allowed = "a number"
        else:
            before = len(self.problems)
            number = self._scope.number(each.element, "value", each.module, 0)
            low, high = INTEGER_RANGES.get(kind, (-(2**63), 2**64)) if kind else (-(2**63), 2**64)
            if low <= number <= high:
                value = number
            elif len(self.problems) == before:
                allowed = f"{low} to {high}"
        if value is None:
            value = 0
            if allowed:
                self._scope.wrong(each.element, f"the constant {name} has a wrong value", found=text, allowed=allowed)
        self._scope.constants[name] = value

    def _struct(self, name: str, each: Named) -> Struct:
        base = each.element.get("baseType", "").strip()
        resolved = self._scope.resolve(base, each.module, each.element) if base else ""
        held = self._scope.named.get(resolved)
        if held is not None and held.element.tag not in {"struct", "typedef"}:
            self._scope.wrong(each.element, f"{name} cannot be based on {base}", found=base, allowed="a struct")
            resolved = ""
        return Struct(
            name,
            tuple(self._members(each.element, each.module)),
            resolved,
            _extensibility(each.element),
            each.element.get("autoid", "").strip().lower() == "hash",
        )

    def _members(self, parent: _Element, module: str) -> Iterator[StructMember]:
        seen: set[str] = set()
        for element in parent.findall("member"):
            member = self._member(element, module)
            if member.name in seen:
                self._scope.wrong(element, f"the member {member.name} occurs twice", found=member.name, allowed="once")
                continue
            seen.add(member.name)
            yield member

    def _member(self, element: _Element, module: str) -> StructMember:
        name = element.get("name", "").strip()
        number = self._scope.number(element, "id", module, 0, low=0, high=_MEMBER_ID_MAX) if element.get("id") else None
        hashed = element.get("hashid")
        if number is None and hashed is not None:
            number = hashed_id(hashed.strip() or name)
        return StructMember(
            name,
            self._scope.shape(element, module),
            key=is_set(element, "key"),
            optional=is_set(element, "optional"),
            id=number,
            must_understand=is_set(element, "mustUnderstand"),
            default=element.get("default"),
        )

    def _union(self, name: str, each: Named) -> Union:
        discriminator = each.element.find("discriminator")
        shape = (
            self._scope.shape(discriminator, each.module) if discriminator is not None else TypeShape(Primitive.INT32)
        )
        plain = self._behind_aliases(shape)
        cases: list[Case] = []
        seen: set[int | bool | str] = set()
        for case in each.element.findall("case"):
            member = case.find("member")
            if member is None:
                continue
            labels: list[int | bool | str] = []
            is_default = False
            for label in case.findall("caseDiscriminator"):
                text = label.get("value", "").strip()
                if text == "default":
                    is_default = True
                    continue
                value = self._label(label, text, plain, each.module)
                if value in seen:
                    self._scope.wrong(label, f"the case {text} occurs twice in {name}", found=text, allowed="once")
                    continue
                seen.add(value)
                labels.append(value)
            cases.append(Case(tuple(labels), is_default, self._member(member, each.module)))
        key = discriminator is not None and is_set(discriminator, "key")
        return Union(name, shape, tuple(cases), _extensibility(each.element), key)

    def _behind_aliases(self, shape: TypeShape) -> TypeShape:
        seen: set[str] = set()
        while (alias := self._aliases.get(str(shape.base))) is not None and alias.name not in seen:
            seen.add(alias.name)
            shape = alias.shape
        return shape

    def _label(self, element: _Element, text: str, shape: TypeShape, module: str) -> int | bool | str:
        if shape.base is Primitive.BOOLEAN:
            try:
                return boolean(text)
            except ValueForm as form:
                self._scope.wrong(element, "the case is not a truth value", found=text, allowed=form.allowed)
                return False
        if shape.base in {Primitive.CHAR, Primitive.WCHAR}:
            return text.strip("'")
        text = text.strip("()")
        definition = self.definitions.get(str(shape.base))
        if isinstance(definition, Enumeration):
            literals = dict(definition.values)
            literal = text.rsplit("::", 1)[-1]
            if literal in literals:
                return literals[literal]
        return self._scope.number(element, "value", module, 0)

    def _bitmask(self, name: str, each: Named) -> Bitmask:
        bits = self._scope.number(each.element, "bitBound", each.module, 32, low=1, high=64)
        flags: dict[str, int] = {}
        positions: set[int] = set()
        following = 0
        for flag in each.element.findall("flag"):
            literal = flag.get("name", "").strip()
            position = self._scope.number(flag, "position", each.module, following)
            following = position + 1
            if not 0 <= position < bits or position in positions:
                self._scope.wrong(
                    flag,
                    "the bit does not fit or is taken",
                    found=str(position),
                    allowed=f"a free bit, 0 to {bits - 1}",
                )
                continue
            if literal in flags:
                self._scope.wrong(flag, f"the flag {literal} occurs twice", found=literal, allowed="once")
                continue
            flags[literal] = position
            positions.add(position)
        return Bitmask(name, tuple(flags.items()), bits)


def _extensibility(element: _Element) -> Extensibility:
    word = element.get("extensibility", "").strip().lower().removesuffix("_extensibility")
    return {"final": Extensibility.FINAL, "mutable": Extensibility.MUTABLE}.get(word, Extensibility.APPENDABLE)
