"""Names, numbers and shapes of `<types>`, resolved in their scope: a module and the constants visible there.

The problems of all definitions are gathered here, a bounded number of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from lxml.etree import _Element

from qsctl.config.sample_types._type_constants import Constant, ConstantForm, evaluate
from qsctl.config.sample_types.type_model import (
    BUILTIN_TYPES,
    DEFAULT_STRING_BOUND,
    SPELLINGS,
    UNBOUNDED,
    Primitive,
    TypeShape,
)
from qsctl.declared.problems import Problem, did_you_mean, problem_at, shown
from qsctl.declared.values import INT32_MAX, ValueForm, boolean

PROBLEMS_MAX: Final = 200
"""More are not gathered: a file of nonsense is not worth more."""

DIMENSIONS_MAX: Final = 16
_SUGGESTED_AMONG_MAX: Final = 2_000
"""Among more names than these no near one is sought."""


@dataclass
class Named:
    """A definition that is still XML: its element and its module."""

    element: _Element
    module: str


@dataclass
class TypeScope:
    """The names that a set of `<types>` defines."""

    problems: list[Problem] = field(default_factory=list)
    constants: dict[str, Constant] = field(default_factory=dict)
    named: dict[str, Named] = field(default_factory=dict)

    def wrong(
        self, element: _Element, message: str, *, found: str = "", allowed: str = "", suggestion: str = ""
    ) -> None:
        """Add a problem with an element."""
        if len(self.problems) < PROBLEMS_MAX:
            self.problems.append(problem_at(element, message, found=found, allowed=allowed, suggestion=suggestion))

    def number(
        self, element: _Element, attribute: str, module: str, absent: int, *, low: int | None = None, high: int = 0
    ) -> int:
        """Return the whole number in an attribute, between `low` and `high` where `low` is given."""
        text = element.get(attribute, "").strip()
        if not text:
            return absent
        number = absent
        if text.isascii() and text.isdigit() and len(text) < 20:
            number = int(text)
        else:
            try:
                number = evaluate(text, ModuleConstants(self.constants, module))
            except ConstantForm as form:
                self.wrong(element, f"{attribute} is not a whole number", found=text, allowed=str(form))
                return absent
        if low is not None and not low <= number <= high:
            self.wrong(element, f"{attribute} is out of range", found=text, allowed=f"{low} to {high}")
            return absent
        return number

    def shape(self, element: _Element, module: str) -> TypeShape:
        """Return what a member, alias or discriminator holds."""
        kind = element.get("type", "").strip()
        base: Primitive | str
        if kind == "nonBasic":
            named = element.get("nonBasicTypeName", "").strip()
            if not named:
                self.wrong(element, "a nonBasic type needs the attribute nonBasicTypeName", found="none")
            base = self.resolve(named, module, element) if named else Primitive.OCTET
        else:
            base = SPELLINGS.get(kind) or self.resolve(kind, module, element)
        bound = self._bound(element, "stringMaxLength", module)
        sequence = self._bound(element, "sequenceMaxLength", module)
        texts = [text.strip() for text in (element.get("arrayDimensions") or "").split(",")]
        if len(texts) > DIMENSIONS_MAX:
            self.wrong(
                element,
                "the array has too many dimensions",
                found=f"{len(texts)} dimensions",
                allowed=f"at most {DIMENSIONS_MAX}",
            )
        dimensions = tuple(self._size(element, text, module) for text in texts[:DIMENSIONS_MAX] if text)
        is_string = base in {Primitive.STRING, Primitive.WSTRING}
        string_bound = (DEFAULT_STRING_BOUND if bound is None else bound) if is_string else UNBOUNDED
        return TypeShape(base, string_bound, sequence, dimensions)

    def resolve(self, name: str, module: str, element: _Element) -> str:
        """Return the qualified name that a name means inside a module; inner modules are searched first, as in IDL."""
        if name.startswith("::"):
            candidates = [name.removeprefix("::")]
        else:
            parts = module.split("::")[:-1] if module else []
            candidates = ["::".join([*parts[:depth], name]) for depth in range(len(parts), -1, -1)]
        for candidate in candidates:
            if candidate in self.named or candidate in BUILTIN_TYPES:
                return candidate
        self.wrong(
            element,
            f"there is no type {shown(name)}",
            found=name,
            allowed="a primitive or a type of <types>",
            suggestion=self._near(name, [*self.named, *SPELLINGS]) if len(self.problems) < PROBLEMS_MAX else "",
        )
        return name

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
            size = int(text) if short else evaluate(text, ModuleConstants(self.constants, module))
        except ConstantForm as form:
            self.wrong(element, "the bound is not a number", found=text, allowed=str(form))
            return 1
        if not 1 <= size <= INT32_MAX:
            self.wrong(element, "the bound is out of range", found=text, allowed=allowed)
            return 1
        return size

    @staticmethod
    def _near(name: str, known: Iterable[str]) -> str:
        names = list(known)
        return did_you_mean(name, names) if len(names) <= _SUGGESTED_AMONG_MAX else ""


class ModuleConstants:
    """Constants by the names that they have inside a module, the nearest first."""

    def __init__(self, constants: dict[str, Constant], module: str) -> None:
        self._constants = constants
        parts = module.split("::")[:-1] if module else []
        self._prefixes = ["".join(f"{part}::" for part in parts[:depth]) for depth in range(len(parts), -1, -1)]

    def get(self, name: str) -> Constant | None:
        """Return the constant of a name, if there is one."""
        for prefix in self._prefixes:
            found = self._constants.get(prefix + name)
            if found is not None:
                return found
        return None


def is_set(element: _Element, attribute: str) -> bool:
    """Return whether an attribute is true; the schema reported texts that are not truth values."""
    try:
        return boolean(element.get(attribute, "false").strip())
    except ValueForm:
        return False
