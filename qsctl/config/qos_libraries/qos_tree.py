"""QoS elements as small trees that remember where each value came from; merging one over another; canonical text.

Merging a QoS element over its base: a value replaces, a policy merges, a list replaces, properties merge by name unless
they have `inherit="false"`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from lxml import etree
from lxml.etree import _Element

from qsctl.config.files.document import attributes_of, text_of
from qsctl.declared.problems import file_of, line_of
from qsctl.declared.values import ValueForm, boolean

_KIND = re.compile(r"DDS_[A-Z][A-Z0-9_]+")
_TRUE = re.compile(r"(DDS_)?BOOLEAN_TRUE", re.IGNORECASE)
_FALSE = re.compile(r"(DDS_)?BOOLEAN_FALSE", re.IGNORECASE)
_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,18})")
_LITERAL_TAGS = frozenset({"property", "user_data", "topic_data", "group_data", "partition"})
_OWN_ATTRIBUTES = frozenset({"name", "base_name", "is_default_qos", "topic_filter"})


@dataclass(frozen=True, slots=True)
class QosNode:
    """An element of QoS: a value, or children. `origin` is the file and line, or what else the value comes from."""

    tag: str
    text: str = ""
    children: tuple[QosNode, ...] = ()
    attributes: dict[str, str] = field(default_factory=dict)
    origin: str = ""

    def find(self, path: str) -> QosNode | None:
        """Return the first node at a path such as `history/kind`."""
        at: QosNode | None = self
        for step in path.split("/"):
            at = next((child for child in at.children if child.tag == step), None) if at else None
        return at


def read_qos(element: _Element) -> QosNode:
    """Return the tree of a QoS element, kinds and truth values in one spelling; texts of properties are not changed.

    The element's own attributes (base_name and the like) are for inheritance and do not belong to the QoS.
    """
    node = _read(element, literal=False)
    own = {key: value for key, value in node.attributes.items() if key not in _OWN_ATTRIBUTES}
    return replace(node, attributes=own, children=tuple(child for child in node.children if child.tag != "base_name"))


def _read(element: _Element, *, literal: bool) -> QosNode:
    tag = str(element.tag)
    literal = literal or tag in _LITERAL_TAGS
    children = tuple(_read(child, literal=literal) for child in element)
    text = "" if children else text_of(element)
    if not literal:
        text = _one_spelling(text)
    node = QosNode(tag, text, children, dict(attributes_of(element)), f"{file_of(element)}:{line_of(element)}")
    return _one_property_list(node) if tag == "property" else node


def _one_spelling(text: str) -> str:
    if _KIND.fullmatch(text):
        text = text.removeprefix("DDS_")
    if _TRUE.fullmatch(text):
        return "true"
    if _FALSE.fullmatch(text):
        return "false"
    return text


def _one_property_list(node: QosNode) -> QosNode:
    """Return a property policy with one `<value>`; of two properties of one name the later counts."""
    elements = [element for value in node.children if value.tag == "value" for element in value.children]
    if not elements:
        return replace(node, children=())
    by_name = {_name_of(element): element for element in elements}
    return replace(node, children=(QosNode("value", children=tuple(by_name.values()), origin=node.origin),))


def _name_of(element: QosNode) -> str:
    name = element.find("name")
    return name.text if name else ""


def merge(base: QosNode, over: QosNode, inherited_from: str = "") -> QosNode:
    """Merge a QoS element over its base; parts that only the base has are marked as inherited from it."""
    if over.tag == "property":
        if not _inherits(over):
            return over
        named = {_name_of(element): mark_inherited(element, inherited_from) for element in _listed(base)}
        named.update((_name_of(element), element) for element in _listed(over))
        if not named:
            return over
        return replace(over, children=(QosNode("value", children=tuple(named.values()), origin=over.origin),))
    if not over.children and not over.text:
        return replace(
            mark_inherited(base, inherited_from), tag=over.tag, attributes={**base.attributes, **over.attributes}
        )
    if not over.children or not base.children or _is_list(over) or _is_list(base):
        return over
    below = {child.tag: child for child in base.children}
    above = {child.tag: child for child in over.children}
    merged: list[QosNode] = []
    for tag in [*below, *(tag for tag in above if tag not in below)]:
        if tag in below and tag in above:
            merged.append(merge(below[tag], above[tag], inherited_from))
        elif tag in above:
            merged.append(above[tag])
        else:
            merged.append(mark_inherited(below[tag], inherited_from))
    return replace(over, children=tuple(merged), attributes={**base.attributes, **over.attributes})


def _inherits(node: QosNode) -> bool:
    """Return whether the properties of the base are added to these: the attribute `inherit`, true by default."""
    try:
        return boolean(node.attributes.get("inherit", "true").strip())
    except ValueForm:
        return True  # the schema has reported it


def _listed(node: QosNode) -> tuple[QosNode, ...]:
    return node.children[0].children if node.children else ()


def _is_list(node: QosNode) -> bool:
    tags = [child.tag for child in node.children]
    return "element" in tags or len(set(tags)) < len(tags)


def mark_inherited(node: QosNode, inherited_from: str) -> QosNode:
    """Return the same tree with the inherited-from place in each origin; unchanged where it has one already."""
    if not inherited_from:
        return node
    origin = node.origin
    if origin and not origin.startswith(("inherited", "default")):
        origin = f"inherited from {inherited_from} ({origin})"
    children = tuple(mark_inherited(child, inherited_from) for child in node.children)
    return replace(node, children=children, origin=origin)


def to_element(node: QosNode) -> _Element:
    """Return the tree as XML with the children of policies in alphabetical order; lists keep theirs."""
    element = etree.Element(node.tag, dict(sorted(node.attributes.items())))
    children = node.children if _is_list(node) else tuple(sorted(node.children, key=lambda child: child.tag))
    if children:
        element.extend([to_element(child) for child in children])
    elif node.text:
        element.text = node.text
    return element


def canonical_text(node: QosNode) -> str:
    """Return the one way to write this QoS: equal QoS has equal text."""
    return etree.tostring(to_element(node), encoding="unicode")


def as_data(text: str) -> object:
    """Return a QoS element, given as canonical text, as data: for JSON.

    Elements are objects by tag, lists where a tag occurs several times or is `element`; attributes are `@name`. Truth
    values and whole numbers are converted, except in texts of the user's own: properties, user data, partitions.
    """
    return _as_data(_read(etree.fromstring(text.encode()), literal=False), literal=False)


def _as_data(node: QosNode, *, literal: bool) -> object:
    literal = literal or node.tag in _LITERAL_TAGS
    if not node.children and not node.attributes:
        return node.text if literal else _as_scalar(node.text)
    found: dict[str, object] = {f"@{name}": value for name, value in node.attributes.items()}
    if not node.children and node.text:
        found["text"] = node.text
    tags = [child.tag for child in node.children]
    for child in node.children:
        value = _as_data(child, literal=literal)
        if child.tag == "element" or tags.count(child.tag) > 1:
            several = found.setdefault(child.tag, [])
            assert isinstance(several, list)
            several.append(value)
        else:
            found[child.tag] = value
    return found


def _as_scalar(text: str) -> object:
    if text in {"true", "false"}:
        return text == "true"
    return int(text) if _NUMBER.fullmatch(text) else text
