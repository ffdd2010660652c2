"""Elements to settings by the tables: own, inherited and default values, each with its origin [QS 3.3].

An element is looked up in layers: the nearest first, then those further out that the table inherits from. Every value
is noted with where it came from, for `render --origins` and for problems that rules find later.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from lxml.etree import _Element

from qsctl.config.files.document import text_of
from qsctl.config.flatten import origins_of
from qsctl.config.form import (
    Element,
    Inherit,
    InheritedOrigin,
    QosElements,
    Repeated,
    Row,
    Setting,
    Shape,
    default_of,
)
from qsctl.config.qos_libraries.qos import QosLibraries
from qsctl.config.qos_libraries.qos_tree import canonical_text
from qsctl.declared.problems import Problem, did_you_mean, file_of, line_of, path_of, problem_at
from qsctl.declared.values import ValueForm, duration, nanoseconds, seconds
from qsctl.instant import Nanoseconds


@dataclass
class ServiceReading:
    """The results of reading a service beside its settings: problems, and the origin and element of each value."""

    problems: list[Problem] = field(default_factory=list)
    origins: dict[str, str] = field(default_factory=dict)
    """Path in the effective configuration to where the value comes from."""
    elements: dict[str, _Element] = field(default_factory=dict)
    """The same paths to the elements that gave the values."""
    substituted: dict[_Element, str] = field(default_factory=dict)

    def note(self, path: str, element: _Element, inherited_from: str = "") -> None:
        """Remember `element` as the source of the value at `path`."""
        origin = f"{file_of(element)}:{line_of(element)}"
        variables = self.substituted.get(element)
        if variables:
            origin += f", {variables}"
        self.origins[path] = f"inherited from {inherited_from} ({origin})" if inherited_from else origin
        self.elements[path] = element

    def wrong(self, element: _Element, allowed: str) -> None:
        """Report a value that is not of its kind. The schema reports most of them before."""
        found = text_of(element) or path_of(element)
        self.problems.append(
            problem_at(element, f"<{element.tag}> has a value that is not allowed", found=found, allowed=allowed)
        )


class Layer(NamedTuple):
    """An element to look into; `label` names it when it is not the nearest."""

    element: _Element
    label: str = ""


Layers = tuple[Layer, ...]


class Reader:
    """Reads the elements of one service; what queues inherit comes from it and from their session."""

    def __init__(
        self, reading: ServiceReading, libraries: QosLibraries, service: _Element, session: _Element | None = None
    ) -> None:
        self.reading = reading
        self._libraries = libraries
        self._around = {InheritedOrigin.SERVICE: service, InheritedOrigin.SESSION: session}
        self._inherited: dict[Inherit, Layers] = {}

    def values(self, form: Element, element: _Element, path: str) -> dict[str, Any]:
        """Return the fields of what a table makes of an element, except those of `Repeated` rows."""
        self.reading.elements[path] = element
        values: dict[str, Any] = {}
        self._read(form.rows, (Layer(element),), path, form.makes, values)
        return values

    def _read(
        self, rows: tuple[Row, ...], layers: Layers, path: str, makes: Callable[..., Any] | None, values: dict[str, Any]
    ) -> None:
        properties: dict[str, Setting] | None = None
        for row in rows:
            if isinstance(row, Setting):
                if row.shape is Shape.PROPERTY:
                    properties = properties or {}
                    properties[row.tag] = row
                else:
                    values[row.field] = self._setting(row, layers, path, makes)
            elif isinstance(row, Element):
                self._element(row, layers, path, makes, values)
            elif isinstance(row, QosElements):
                values["qos"] = self._qos(row, layers, path)
            else:
                assert isinstance(row, Repeated)
        if properties:
            self._properties(properties, layers, f"{path}/property", makes, values)

    def _element(
        self, row: Element, layers: Layers, path: str, makes: Callable[..., Any] | None, values: dict[str, Any]
    ) -> None:
        if row.tag:
            path = f"{path}/{row.tag}"
            layers = _inside(layers, row.tag) if layers else layers
            for each in row.inherits:
                layers += self._layers_of(each)
            if row.whole:
                layers = layers[:1]
        if row.makes is None:
            self._read(row.rows, layers, path, makes, values)
        elif layers or not row.switch:
            inner: dict[str, Any] = {}
            self._read(row.rows, layers, path, row.makes, inner)
            values[row.field] = row.makes(**inner)

    def _layers_of(self, inherit: Inherit) -> Layers:
        if inherit not in self._inherited:
            start = self._around[inherit.origin]
            layers: Layers = () if start is None else (Layer(start),)
            steps = inherit.path.split("/")
            for step in steps:
                layers = _inside(layers, step)
            label = f"<{steps[-1]}> of the service"
            if inherit.origin is InheritedOrigin.SESSION and start is not None:
                label = f"session {start.get('name')}"
            self._inherited[inherit] = tuple(Layer(layer.element, label) for layer in layers)
        return self._inherited[inherit]

    def _setting(self, row: Setting, layers: Layers, path: str, makes: Callable[..., Any] | None) -> Any:
        shape = row.shape
        if shape is Shape.ATTRIBUTE:
            element, _ = layers[0]
            text = " ".join((element.get(row.tag) or "").split())
            if text:
                self.reading.note(f"{path}/@{row.tag}", element)
            return text
        here = f"{path}/{row.tag}"
        if layers:
            tag = f"{row.tag}/duration" if shape is Shape.HELD_DURATION else row.tag
            for element, label in layers[:1] if row.nearest_only else layers:
                child = element.find(tag)
                if child is None and row.also_in:
                    child = element.find(f"{row.also_in}/{tag}")
                if child is None:
                    continue
                value = self._text(row, child) if shape is Shape.ELEMENT else self._duration(child)
                if value is not None:
                    self.reading.note(here, child, label)
                    return value
        if layers and row.when_present:
            default, section = row.when_present
        else:
            default, section = default_of(row, makes), row.section
        self.reading.origins[here] = f"default of {section}"
        return default

    def _text(self, row: Setting, element: _Element) -> Any:
        """Return the value of an element; None where it is wrong, or empty, which is the default in the schema too."""
        text = text_of(element)
        if not text:
            return None
        try:
            return row.value.read(text)
        except ValueError:
            self.reading.wrong(element, row.value.allowed)
            return None

    def _duration(self, element: _Element) -> Nanoseconds | None:
        if len(element) == 0:
            return None
        part = element
        try:
            parts: list[int | None] = []
            for tag, read in (("sec", seconds), ("nanosec", nanoseconds)):
                child = element.find(tag)
                part = element if child is None else child
                text = "" if child is None else text_of(child)
                parts.append(read(text) if text else 0)
            part = element
            return duration(*parts)
        except ValueForm as form:
            self.reading.wrong(part, form.allowed)
            return None

    def _properties(
        self,
        known: Mapping[str, Setting],
        layers: Layers,
        path: str,
        makes: Callable[..., Any] | None,
        values: dict[str, Any],
    ) -> None:
        """Read properties by name; they may be in one `<value>` or in several."""
        for name, row in known.items():
            values[row.field] = default_of(row, makes)
            self.reading.origins[f"{path}/{name}"] = f"default of {row.section}"
        for element in layers[0].element.findall("property/value/element") if layers else ():
            tag, child = element.find("name"), element.find("value")
            name = text_of(tag) if tag is not None else ""
            if child is None:
                continue
            if name not in known:
                self.reading.problems.append(_unknown_property(element, name, known))
                continue
            try:
                values[known[name].field] = known[name].value.read(text_of(child))
            except ValueError:
                self.reading.wrong(child, known[name].value.allowed)
                continue
            self.reading.note(f"{path}/{name}", child)

    def _qos(self, row: QosElements, layers: Layers, path: str) -> dict[str, str]:
        """Return the QoS elements of an entity, what they start from laid under them, as canonical text by tag."""
        qos: dict[str, str] = {}
        for tag in row.tags if layers else ():
            element = layers[0].element.find(tag)
            node = self._libraries.default_for(tag) if element is None else self._libraries.resolve(element)
            if node is None:
                continue
            if element is not None:
                self.reading.note(f"{path}/{tag}", element)
            for place, origin in origins_of(node, f"{path}/{tag}"):
                if origin:
                    self.reading.origins[place] = origin
            qos[tag] = canonical_text(node)
        return qos


def _inside(layers: Layers, tag: str) -> Layers:
    """Return each layer's child of this tag, where it has one."""
    found = ((layer.element.find(tag), layer.label) for layer in layers)
    return tuple(Layer(child, label) for child, label in found if child is not None)


def _unknown_property(element: _Element, name: str, known: Mapping[str, Setting]) -> Problem:
    return problem_at(
        element,
        "the dispatch policy has no such property (Table 3.15)",
        found=name or "(no name)",
        allowed=" or ".join(known),
        suggestion=did_you_mean(name.upper(), known),
    )
