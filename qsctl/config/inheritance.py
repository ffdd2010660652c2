"""Values that are inherited: a scope looks a tag up in the nearest element first, then in those further out.

Sections 3.3.4.2.1 (publication period), 3.3.4.3 (statistics) and 7.1.3 (replication) of the manual all work this way:
queue, session, service QoS, service. Each value found is noted with where it came from, for `render --origins`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from lxml.etree import _Element

from qsctl.config.defaults import Default
from qsctl.config.document import text_of
from qsctl.config.problems import Problem, file_of, line_of, path_of, problem_at
from qsctl.config.values import ValueForm, duration, nanoseconds, seconds
from qsctl.instant import Nanoseconds

Value = TypeVar("Value")


@dataclass
class Reading:
    """What reading a service leaves beside its settings: problems, and the origin and element of each value."""

    problems: list[Problem] = field(default_factory=list)
    origins: dict[str, str] = field(default_factory=dict)
    """Path in the effective configuration to where the value comes from."""
    elements: dict[str, _Element] = field(default_factory=dict)
    """The same paths to the elements that gave the values."""
    substituted: dict[_Element, str] = field(default_factory=dict)

    def note(self, path: str, element: _Element, inherited_from: str = "") -> None:
        """Remember that the value at `path` stands in `element`."""
        origin = f"{file_of(element)}:{line_of(element)}"
        variables = self.substituted.get(element)
        if variables:
            origin += f", {variables}"
        self.origins[path] = f"inherited from {inherited_from} ({origin})" if inherited_from else origin
        self.elements[path] = element


@dataclass(frozen=True, slots=True)
class Layer:
    """An element to look into; `label` names it when it is not the nearest."""

    element: _Element
    label: str = ""


@dataclass(frozen=True, slots=True)
class Scope:
    """Elements of one meaning, the nearest first, and the path that they have in the effective configuration."""

    reading: Reading
    path: str
    layers: tuple[Layer, ...]

    def inside(self, tag: str) -> Scope:
        """The scope of a child: each layer's child of this tag, where it has one."""
        found = ((layer, layer.element.find(tag)) for layer in self.layers)
        below = tuple(Layer(child, layer.label) for layer, child in found if child is not None)
        return Scope(self.reading, f"{self.path}/{tag}", below)

    def at(self, path: str) -> Scope:
        """The same elements under another path of the effective configuration."""
        return Scope(self.reading, path, self.layers)

    def then(self, *further: Scope | None) -> Scope:
        """Look into the layers of these scopes after the own ones."""
        more = tuple(layer for scope in further if scope for layer in scope.layers)
        return Scope(self.reading, self.path, self.layers + more)

    def labelled(self, label: str) -> Scope:
        """The same elements as layers that others inherit from."""
        return Scope(self.reading, self.path, tuple(Layer(layer.element, label) for layer in self.layers))

    @property
    def present(self) -> bool:
        """Whether any layer has the element."""
        return bool(self.layers)

    @property
    def nearest(self) -> _Element | None:
        """The element of the nearest layer."""
        return self.layers[0].element if self.layers else None

    def value(self, tag: str, read: Callable[[str], Value], default: Default[Value]) -> Value:
        """The value of the nearest `<tag>` that has one, else the default."""
        for layer in self.layers:
            child = layer.element.find(tag)
            if child is None:
                continue
            text = text_of(child)
            if not text:
                continue  # an empty element is the default (the schema says so)
            try:
                value = read(text)
            except ValueForm as form:
                self.wrong(child, form.allowed)
                continue
            self.reading.note(f"{self.path}/{tag}", child, layer.label)
            return value
        return self.default(tag, default)

    def length_of_time(self, tag: str, default: Default[Nanoseconds], *, held: bool = False) -> Nanoseconds:
        """The duration in the nearest `<tag>`, inside `<duration>` where `held`; an empty one is the default."""
        for layer in self.layers:
            child = layer.element.find(f"{tag}/duration" if held else tag)
            if child is None or len(child) == 0:
                continue
            value = self._duration(child)
            if value is not None:
                self.reading.note(f"{self.path}/{tag}", child, layer.label)
                return value
        return self.default(tag, default)

    def _duration(self, element: _Element) -> Nanoseconds | None:
        try:
            sec = _part(element, "sec", seconds)
            nanosec = _part(element, "nanosec", nanoseconds)
            return duration(sec, nanosec)
        except _PartForm as wrong:
            self.wrong(wrong.element, wrong.allowed)
        except ValueForm as form:
            self.wrong(element, form.allowed)
        return None

    def default(self, tag: str, default: Default[Value]) -> Value:
        """The default of a tag that nobody gives."""
        self.reading.origins[f"{self.path}/{tag}"] = f"default of {default.section}"
        return default.value

    def attribute(self, name: str) -> str:
        """An attribute of the nearest element, white space dropped; empty where it is not given."""
        element = self.nearest
        text = " ".join((element.get(name) or "").split()) if element is not None else ""
        if element is not None and text:
            self.reading.note(f"{self.path}/@{name}", element)
        return text

    def wrong(self, element: _Element, allowed: str) -> None:
        """Report a value that is not of its form. The schema reports most of them before."""
        found = text_of(element) or path_of(element)
        self.reading.problems.append(
            problem_at(element, f"<{element.tag}> has a value that is not allowed", found=found, allowed=allowed)
        )


class _PartForm(ValueForm):
    def __init__(self, element: _Element, allowed: str) -> None:
        super().__init__(allowed)
        self.element = element


def _part(element: _Element, tag: str, read: Callable[[str], int | None]) -> int | None:
    child = element.find(tag)
    text = text_of(child) if child is not None else ""
    if child is None or not text:
        return 0
    try:
        return read(text)
    except ValueForm as form:
        raise _PartForm(child, form.allowed) from None
