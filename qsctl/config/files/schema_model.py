"""The schema read as data: the children, attributes and values that each element of a file may have.

Read from the shipped schema itself, so that messages, suggestions and the schema cannot differ. Relies on the schema's
own style: every type is named, and a simple type describes its values in `<xs:appinfo>`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final

from lxml import etree
from lxml.etree import _Element

from qsctl.shipped import shipped

SCHEMA: Final = "schemas/rti_queuing_service.xsd"
VENDOR_EXTENSION: Final = "vendor_extension"
_XS: Final = "{http://www.w3.org/2001/XMLSchema}"


@dataclass(frozen=True)
class ElementModel:
    """A complex type: its children and attributes with the names of their types."""

    name: str
    children: dict[str, str] = field(default_factory=dict)
    attributes: dict[str, str] = field(default_factory=dict)
    required_children: frozenset[str] = frozenset()
    required_attributes: frozenset[str] = frozenset()
    single_children: frozenset[str] = frozenset()
    """Those that the schema allows once (an `xs:all`)."""


@dataclass(frozen=True)
class SchemaModel:
    """All types by name."""

    elements: dict[str, ElementModel]
    allowed: dict[str, str]
    """For a simple type, what it allows in words."""
    words: dict[str, tuple[str, ...]]
    """For a simple type, the words of its enumeration."""
    roots: dict[str, str]

    def type_of(self, element: _Element) -> str | None:
        """Return the name of the element's type by its place in the tree; None for one that the schema lacks."""
        steps = [str(element.tag), *(str(ancestor.tag) for ancestor in element.iterancestors())]
        name = self.roots.get(steps.pop())
        while steps and name is not None:
            model = self.elements.get(name)
            name = model.children.get(steps.pop()) if model else None
        return name

    def model_of(self, element: _Element) -> ElementModel | None:
        """Return the element's type where it is one with children or attributes."""
        name = self.type_of(element)
        return self.elements.get(name) if name else None


def _files(path: Path) -> Iterator[_Element]:
    root = etree.parse(str(path)).getroot()
    for include in root.findall(f"{_XS}include"):
        yield etree.parse(str(path.parent / str(include.get("schemaLocation")))).getroot()
    yield root


def _read_complex(node: _Element) -> ElementModel:
    children: dict[str, str] = {}
    required: set[str] = set()
    single: set[str] = set()
    for child in node.iter(f"{_XS}element"):
        tag = str(child.get("name") or child.get("ref"))
        children[tag] = str(child.get("type") or child.get("ref"))
        parent = child.getparent()
        inside = parent.tag if parent is not None else ""
        if inside in {f"{_XS}all", f"{_XS}sequence"} and child.get("minOccurs", "1") != "0":
            required.add(tag)
        if inside != f"{_XS}choice" and child.get("maxOccurs", "1") == "1":
            single.add(tag)
    attributes = {str(each.get("name")): str(each.get("type")) for each in node.iter(f"{_XS}attribute")}
    must = {str(each.get("name")) for each in node.iter(f"{_XS}attribute") if each.get("use") == "required"}
    return ElementModel(
        str(node.get("name")), children, attributes, frozenset(required), frozenset(must), frozenset(single)
    )


@cache
def schema_model() -> SchemaModel:
    """Return the model of the shipped schema, read once."""
    elements: dict[str, ElementModel] = {}
    allowed: dict[str, str] = {}
    words: dict[str, tuple[str, ...]] = {}
    roots: dict[str, str] = {}
    for root in _files(shipped(SCHEMA)):
        for node in root:
            name = str(node.get("name"))
            if node.tag == f"{_XS}complexType":
                elements[name] = _read_complex(node)
            elif node.tag == f"{_XS}simpleType":
                allowed[name] = str(node.findtext(f"{_XS}annotation/{_XS}appinfo") or "")
                words[name] = tuple(str(each.get("value")) for each in node.iter(f"{_XS}enumeration"))
            elif node.tag == f"{_XS}element":
                roots[name] = str(node.get("type"))
    return SchemaModel(elements, allowed, words, roots)
