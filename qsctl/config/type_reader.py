"""`<types>` to definitions: names resolved, constants evaluated, bounds checked, circles reported.

An `<include file="…"/>` reads another file below the directory of its own: a relative path without `..` and without
symbolic links that lead elsewhere. Every problem is collected.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Final

from lxml.etree import _Element

from qsctl.config.document import parse_document, read_file
from qsctl.config.problems import ConfigError, Problem, did_you_mean, problem_at
from qsctl.config.schema import check_document
from qsctl.config.type_circles import find_circle
from qsctl.config.type_constants import Constant, ConstantForm, evaluate
from qsctl.config.type_model import (
    BUILTIN_TYPES,
    DEFAULT_STRING_BOUND,
    INTEGER_RANGES,
    SPELLINGS,
    UNBOUNDED,
    Alias,
    Bitmask,
    Case,
    Definition,
    Enumeration,
    Extensibility,
    Member,
    Primitive,
    Shape,
    Struct,
    Union,
)
from qsctl.config.values import INT32_MAX, ValueForm, boolean

_INCLUDED_FILES_MAX: Final = 64
_NAMED_TAGS: Final = frozenset({"struct", "enum", "union", "typedef", "const", "bitmask"})


@dataclass
class _Named:
    """A definition that is still XML: its element and the module that it stands in."""

    element: _Element
    module: str


@dataclass
class TypeReader:
    """Reads any number of `<types>` elements into one set of definitions."""

    problems: list[Problem] = field(default_factory=list)
    definitions: dict[str, Definition] = field(default_factory=dict)
    constants: dict[str, Constant] = field(default_factory=dict)
    _named: dict[str, _Named] = field(default_factory=dict)
    _included: set[Path] = field(default_factory=set)

    def collect(self, parent: _Element, directory: Path | None, module: str = "") -> None:
        """Take the names of a `<types>` or `<module>`, and those of the files that it includes."""
        for child in parent:
            tag = str(child.tag)
            name = child.get("name", "").strip()
            if tag == "module":
                self.collect(child, directory, f"{module}{name}::")
            elif tag == "include":
                self._include(child, directory, module)
            elif tag in _NAMED_TAGS:
                full = f"{module}{name}"
                if full in self._named:
                    self._wrong(child, f"the name {full} is given to two types", found=full, allowed="one definition")
                else:
                    self._named[full] = _Named(child, module)

    def read_all(self) -> None:
        """Turn what was collected into definitions: constants and enumerations first, then the rest, then circles."""
        for name, each in self._named.items():
            if each.element.tag == "enum":
                self._read_enum(name, each)
        for name, each in self._named.items():
            if each.element.tag == "const":
                self._read_const(name, each)
        for name, each in self._named.items():
            match each.element.tag:
                case "struct":
                    self.definitions[name] = self._struct(name, each)
                case "union":
                    self.definitions[name] = self._union(name, each)
                case "typedef":
                    self.definitions[name] = Alias(name, self._shape(each.element, each.module))
                case "bitmask":
                    self.definitions[name] = self._bitmask(name, each)
                case _:
                    pass  # constants and enumerations were read before
        circle = find_circle(self.definitions)
        if circle:
            element = self._named[circle[0]].element
            self._wrong(element, f"the type {circle[0]} contains itself", found=" → ".join(circle[:10]))

    def _include(self, element: _Element, directory: Path | None, module: str) -> None:
        file = element.get("file", "").strip()
        given = PurePosixPath(file.replace("\\", "/"))
        if directory is None or not file or given.is_absolute() or ".." in given.parts or ":" in file:
            self._wrong(
                element,
                "only a file below the directory of this one can be included",
                found=file,
                allowed="a relative path without ..",
            )
            return
        path = (directory / given).resolve()
        if not path.is_relative_to(directory.resolve()):
            self._wrong(element, "the included file lies elsewhere", found=file, allowed="a file below this directory")
            return
        if path in self._included:
            return
        if len(self._included) >= _INCLUDED_FILES_MAX:
            self._wrong(element, "too many files are included", allowed=f"at most {_INCLUDED_FILES_MAX}")
            return
        self._included.add(path)
        try:
            document = parse_document(
                read_file(path, str(directory / given)), str(directory / given), directory=path.parent
            )
        except ConfigError as error:
            self.problems.extend(error.problems)
            return
        problems = check_document(document, ("types", "dds"))
        self.problems.extend(problems)
        if not problems:
            parents = [document.root] if document.root.tag == "types" else document.root.findall("types")
            for parent in parents:
                self.collect(parent, path.parent, module)

    def _read_enum(self, name: str, each: _Named) -> None:
        values: list[tuple[str, int]] = []
        following = 0
        for enumerator in each.element.findall("enumerator"):
            literal = enumerator.get("name", "").strip()
            number = self._number(enumerator, "value", each.module, following)
            if any(literal == known for known, _ in values) or any(number == known for _, known in values):
                self._wrong(enumerator, f"{literal} or its number stands twice in the enumeration", found=literal)
            values.append((literal, number))
            following = number + 1
            for scope in (name + "::", each.module):
                self.constants.setdefault(f"{scope}{literal}", number)
        bits = self._number(each.element, "bitBound", each.module, 32)
        self.definitions[name] = Enumeration(name, tuple(values), bits)

    def _read_const(self, name: str, each: _Named) -> None:
        kind = SPELLINGS.get(each.element.get("type", "").strip())
        text = each.element.get("value", "").strip()
        if kind in {Primitive.STRING, Primitive.WSTRING, Primitive.CHAR, Primitive.WCHAR}:
            self.constants[name] = text.strip("\"'")
        elif kind is Primitive.BOOLEAN:
            try:
                self.constants[name] = boolean(text)
            except ValueForm as form:
                self._wrong(each.element, f"the constant {name} has a wrong value", found=text, allowed=form.allowed)
        elif kind in {Primitive.FLOAT32, Primitive.FLOAT64, Primitive.FLOAT128}:
            try:
                self.constants[name] = float(text)
            except ValueError:
                self._wrong(each.element, f"the constant {name} has a wrong value", found=text, allowed="a number")
        else:
            self.constants[name] = self._number(each.element, "value", each.module, 0)
            low, high = INTEGER_RANGES.get(kind, (-(2**63), 2**64)) if kind else (-(2**63), 2**64)
            if not low <= int(self.constants[name]) <= high:
                self._wrong(
                    each.element, f"the constant {name} has a wrong value", found=text, allowed=f"{low} to {high}"
                )

    def _number(self, element: _Element, attribute: str, module: str, absent: int) -> int:
        text = element.get(attribute, "").strip()
        if not text:
            return absent
        if text.isascii() and text.isdigit() and len(text) < 20:
            return int(text)
        try:
            return evaluate(text, self._visible(module))
        except ConstantForm as form:
            self._wrong(element, f"{attribute} is not a whole number", found=text, allowed=str(form))
            return absent

    def _visible(self, module: str) -> dict[str, Constant]:
        """Constants by the names that they have inside a module, the nearest first."""
        if not module:
            return self.constants
        visible = dict(self.constants)
        parts = module.split("::")[:-1]
        for depth in range(1, len(parts) + 1):
            prefix = "::".join(parts[:depth]) + "::"
            for name, value in self.constants.items():
                if name.startswith(prefix):
                    visible[name.removeprefix(prefix)] = value
        return visible

    def _struct(self, name: str, each: _Named) -> Struct:
        base = each.element.get("baseType", "").strip()
        resolved = self._resolve(base, each.module, each.element) if base else ""
        if resolved and resolved in self._named and self._named[resolved].element.tag not in {"struct", "typedef"}:
            self._wrong(each.element, f"{name} cannot be based on {base}", found=base, allowed="a struct")
            resolved = ""
        return Struct(
            name,
            tuple(self._members(each.element, each.module)),
            resolved,
            _extensibility(each.element),
            each.element.get("autoid", "").strip().lower() == "hash",
        )

    def _members(self, parent: _Element, module: str) -> Iterator[Member]:
        seen: set[str] = set()
        for element in parent.findall("member"):
            member = self._member(element, module)
            if member.name in seen:
                self._wrong(element, f"the member {member.name} stands twice", found=member.name, allowed="once")
                continue
            seen.add(member.name)
            yield member

    def _member(self, element: _Element, module: str) -> Member:
        number = element.get("id")
        return Member(
            element.get("name", "").strip(),
            self._shape(element, module),
            key=_flag(element, "key"),
            optional=_flag(element, "optional"),
            id=self._number(element, "id", module, 0) if number else None,
            must_understand=_flag(element, "mustUnderstand"),
            default=element.get("default"),
        )

    def _union(self, name: str, each: _Named) -> Union:
        discriminator = each.element.find("discriminator")
        shape = self._shape(discriminator, each.module) if discriminator is not None else Shape(Primitive.INT32)
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
                value = self._label(label, text, shape, each.module)
                if value in seen:
                    self._wrong(label, f"the case {text} stands twice in {name}", found=text, allowed="once")
                seen.add(value)
                labels.append(value)
            cases.append(Case(tuple(labels), is_default, self._member(member, each.module)))
        key = discriminator is not None and _flag(discriminator, "key")
        return Union(name, shape, tuple(cases), _extensibility(each.element), key)

    def _label(self, element: _Element, text: str, shape: Shape, module: str) -> int | bool | str:
        if shape.base is Primitive.BOOLEAN:
            try:
                return boolean(text)
            except ValueForm as form:
                self._wrong(element, "the case is not a truth value", found=text, allowed=form.allowed)
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
        return self._number(element, "value", module, 0)

    def _bitmask(self, name: str, each: _Named) -> Bitmask:
        bits = self._number(each.element, "bitBound", each.module, 32)
        flags: list[tuple[str, int]] = []
        following = 0
        for flag in each.element.findall("flag"):
            position = self._number(flag, "position", each.module, following)
            if not 0 <= position < bits or any(position == known for _, known in flags):
                self._wrong(
                    flag,
                    "the bit does not fit or is taken",
                    found=str(position),
                    allowed=f"a free bit, 0 to {bits - 1}",
                )
            flags.append((flag.get("name", "").strip(), position))
            following = position + 1
        return Bitmask(name, tuple(flags), bits)

    def _shape(self, element: _Element, module: str) -> Shape:
        kind = element.get("type", "").strip()
        base: Primitive | str
        if kind == "nonBasic":
            named = element.get("nonBasicTypeName", "").strip()
            if not named:
                self._wrong(element, "a nonBasic type needs the attribute nonBasicTypeName", found="none")
            base = self._resolve(named, module, element) if named else Primitive.OCTET
        else:
            base = SPELLINGS.get(kind) or self._resolve(kind, module, element)
        bound = self._bound(element, "stringMaxLength", module)
        sequence = self._bound(element, "sequenceMaxLength", module)
        dimensions = []
        for text in (element.get("arrayDimensions") or "").split(","):
            if not text.strip():
                continue
            size = self._size(element, text.strip(), module)
            dimensions.append(size)
        is_string = base in {Primitive.STRING, Primitive.WSTRING}
        string_bound = (DEFAULT_STRING_BOUND if bound is None else bound) if is_string else UNBOUNDED
        return Shape(base, string_bound, sequence, tuple(dimensions))

    def _bound(self, element: _Element, attribute: str, module: str) -> int | None:
        text = element.get(attribute, "").strip()
        if not text:
            return None
        if text == "-1":
            return UNBOUNDED
        return self._size(element, text, module)

    def _size(self, element: _Element, text: str, module: str) -> int:
        allowed = f"a whole number from 1 to {INT32_MAX}, or a constant"
        try:
            short = text.isascii() and text.isdigit() and len(text) < 20
            size = int(text) if short else evaluate(text, self._visible(module))
        except ConstantForm as form:
            self._wrong(element, "the bound is not a number", found=text, allowed=str(form))
            return 1
        if not 1 <= size <= INT32_MAX:
            self._wrong(element, "the bound is out of range", found=text, allowed=allowed)
            return 1
        return size

    def _resolve(self, name: str, module: str, element: _Element) -> str:
        """The qualified name that a name stands for inside a module: the innermost first, as in IDL."""
        if name.startswith("::"):
            candidates = [name.removeprefix("::")]
        else:
            parts = module.split("::")[:-1] if module else []
            candidates = ["::".join([*parts[:depth], name]) for depth in range(len(parts), -1, -1)]
        for candidate in candidates:
            if candidate in self._named or candidate in BUILTIN_TYPES:
                return candidate
        known = [*self._named, *SPELLINGS]
        self._wrong(
            element,
            f"there is no type {name}",
            found=name,
            allowed="a primitive or a type of <types>",
            suggestion=did_you_mean(name, known),
        )
        return name

    def _wrong(
        self, element: _Element, message: str, *, found: str = "", allowed: str = "", suggestion: str = ""
    ) -> None:
        self.problems.append(problem_at(element, message, found=found, allowed=allowed, suggestion=suggestion))


def _flag(element: _Element, attribute: str) -> bool:
    try:
        return boolean(element.get(attribute, "false").strip())
    except ValueForm:
        return False


def _extensibility(element: _Element) -> Extensibility:
    word = element.get("extensibility", "").strip().lower().removesuffix("_extensibility")
    return {"final": Extensibility.FINAL, "mutable": Extensibility.MUTABLE}.get(word, Extensibility.APPENDABLE)
