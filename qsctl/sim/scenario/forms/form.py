"""The building blocks of the table in `elements.py`: elements, their attributes and children, and the models that use
them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final

from qsctl.declared.values import Value
from qsctl.sim.scenario import scenario as s

SOLACE: Final = frozenset({s.Model.SOLACE})
TIBCO: Final = frozenset({s.Model.TIBCO})
EGRESS: Final = SOLACE | TIBCO
SERVICE: Final = frozenset({s.Model.SHARED_READER_QUEUE, s.Model.WORLD})
CLUSTER: Final = frozenset({s.Model.WORLD})
REPLAY: Final = frozenset({s.Model.REPLAY})
INTEGRATION: Final = frozenset({s.Model.INTEGRATION})
MESSAGE_QUEUE: Final = frozenset({s.Model.QUEUE})
EVERY_MODEL: Final = frozenset(s.Model)


def value_at(holder: Any, path: str) -> Any:
    """Return the value of a field of a dataclass; a path with dots leads into nested dataclasses."""
    for name in path.split("."):
        holder = getattr(holder, name)
    return holder


def with_value(holder: Any, path: str, value: object) -> Any:
    """Return a copy of a dataclass with another value of this field; dots lead into nested dataclasses."""
    name, _, inner = path.partition(".")
    return replace(holder, **{name: with_value(getattr(holder, name), inner, value) if inner else value})


def default_at(kind: type[object], path: str) -> Any:
    """Return the default of a field of a dataclass; dots lead into nested dataclasses."""
    name, _, inner = path.partition(".")
    default = next(each.default for each in fields(kind) if each.name == name)  # type: ignore[arg-type]
    return value_at(default, inner) if inner else default


@dataclass(frozen=True, slots=True)
class Attribute:
    """An XML attribute and the path of the field that it sets; scenarios of models outside `models` refuse it."""

    name: str
    field: str
    value: Value
    required: bool = False
    models: frozenset[s.Model] = EVERY_MODEL
    tibco_value: Value | None = None
    """The text in a TIBCO scenario, where that differs."""

    def value_for(self, model: s.Model) -> Value:
        """Return the kind of the attribute's value in a scenario of this model."""
        return self.tibco_value if model is s.Model.TIBCO and self.tibco_value is not None else self.value


@dataclass(frozen=True, slots=True)
class Child:
    """A field that contains child elements: one, a tuple with `many`, or a dict by the child's key with `mapping`."""

    field: str
    forms: tuple[Form, ...]
    many: bool = False
    mapping: bool = False
    required: bool = False


@dataclass(frozen=True, slots=True)
class Columns:
    """Fields that are tuples of equal length, written as one element for each index."""

    element: str
    attributes: tuple[Attribute, ...]


@dataclass(frozen=True, slots=True)
class Form:
    """An XML element: the dataclass that it describes, its attributes and its children.

    `key` is the attribute whose value identifies the element in a path, as in `element[key]`; elements without one are
    numbered from 1. `aside` names the attributes and `foreign` the child elements that the XML reader processes itself.
    Scenarios of models outside `models` refuse the element.
    """

    element: str
    type: type[object]
    attributes: tuple[Attribute, ...] = ()
    children: tuple[Child, ...] = ()
    columns: Columns | None = None
    key: str = ""
    aside: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()
    models: frozenset[s.Model] = EVERY_MODEL
    elsewhere: Mapping[str, str] = field(default_factory=dict)
    """Attributes that belong to other elements, each with the text that names the right one, for error messages."""

    def attribute(self, name: str) -> Attribute | None:
        """Return the attribute of this name."""
        return next((each for each in self.attributes if each.name == name), None)

    def child(self, element: str) -> tuple[Child, Form] | None:
        """Return the child whose element has this name."""
        for child in self.children:
            for form in child.forms:
                if form.element == element:
                    return child, form
        return None
