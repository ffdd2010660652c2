"""Configurations as flat lists of paths and values: for tables, for origins and for differences.

Siblings of one tag are distinguished by name, properties by their names, others by number. A duration is one value.
"""

from __future__ import annotations

from collections.abc import Iterator

from lxml import etree
from lxml.etree import _Element

from qsctl.config.files.document import attributes_of, text_of
from qsctl.config.qos_libraries.qos_tree import QosNode
from qsctl.config.tables.qos import QOS_DEFAULTS, qos_holder
from qsctl.declared.values import duration, nanoseconds, seconds
from qsctl.instant import format_duration

_DURATION_PARTS = frozenset({"sec", "nanosec"})


def values_of(element: _Element, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield the path and text of each value under an element of canonical XML; paths begin with its own tag."""
    here = path or _step(element)
    for key, value in attributes_of(element).items():
        if key != "name":
            yield f"{here}/@{key}", value
    tags = [str(child.tag) for child in element]
    if not tags:
        if element.text or not element.attrib:
            yield here, text_of(element)
    elif set(tags) <= _DURATION_PARTS:
        yield here, _duration(element)
    elif tags == ["duration"]:
        yield here, _duration(element[0])
    elif element.tag == "property":
        yield from _properties(element, here)
    else:
        seen: dict[str, int] = {}
        for child in element:
            tag = str(child.tag)
            seen[tag] = seen.get(tag, 0) + 1
            numbered = tags.count(tag) > 1 and not child.get("name")
            yield from values_of(child, f"{here}/{tag}[{seen[tag]}]" if numbered else f"{here}/{_step(child)}")


def _step(element: _Element) -> str:
    name = element.get("name")
    return f"{element.tag}[{name}]" if name else str(element.tag)


def _duration(element: _Element) -> str:
    sec, nanosec = element.find("sec"), element.find("nanosec")
    whole = seconds(text_of(sec)) if sec is not None and text_of(sec) else 0
    rest = nanoseconds(text_of(nanosec)) if nanosec is not None and text_of(nanosec) else 0
    return format_duration(duration(whole, rest))


def _properties(element: _Element, here: str) -> Iterator[tuple[str, str]]:
    for each in element.findall("value/element"):
        name = each.findtext("name") or ""
        yield f"{here}/{name}", each.findtext("value") or ""
        propagate = each.findtext("propagate")
        if propagate is not None:
            yield f"{here}/{name}/propagate", propagate


def origins_of(node: QosNode, path: str) -> Iterator[tuple[str, str]]:
    """Return the origin of each value of a QoS element, by the same paths."""
    if node.tag == "property":
        for each in (element for value in node.children for element in value.children):
            named = each.find("name")
            step = f"{path}/{named.text if named else ''}"
            yield step, each.origin
            yield f"{step}/propagate", each.origin
        return
    if not node.children or {child.tag for child in node.children} <= _DURATION_PARTS:
        yield path, node.children[0].origin if node.children else node.origin
        return
    tags = [child.tag for child in node.children]
    seen: dict[str, int] = {}
    for child in node.children:
        seen[child.tag] = seen.get(child.tag, 0) + 1
        name = child.attributes.get("name", "")
        mark = f"[{name}]" if name else f"[{seen[child.tag]}]" if tags.count(child.tag) > 1 else ""
        yield from origins_of(child, f"{path}/{child.tag}{mark}")


def origin_at(origins: dict[str, str], path: str) -> str:
    """Return the origin of the value at a path: that of the value itself or of an element around it."""
    if path in origins:
        return origins[path]
    parent, _, step = path.rpartition("/")
    if step.startswith("@") and parent in origins:
        return origins[parent]
    holder, tag = _qos_place(path)
    if tag:
        default = QOS_DEFAULTS.get((qos_holder(holder), tag))
        return f"default of {default.section}" if default else ""
    while "/" in path:
        path = path.rpartition("/")[0]
        if path in origins:
            return origins[path]
    return ""


def _qos_place(path: str) -> tuple[str, str]:
    """Return the tag that holds the QoS element of a path, and the element's own tag; empty where the path has none."""
    tags = [step.partition("[")[0] for step in path.split("/")]
    for at in range(len(tags) - 1, 0, -1):
        if tags[at].endswith("_qos") and tags[at] not in {"queue_qos", "service_qos"}:
            return tags[at - 1], tags[at]
    return "", ""


def sorted_text(element: _Element) -> str:
    """Return the element as indented XML, named siblings in the order of their names, to compare line by line."""
    for parent in element.iter():
        children = list(parent)
        if any(child.get("name") for child in children) and parent.tag not in {"struct", "enum", "bitmask"}:
            parent[:] = sorted(children, key=lambda child: (str(child.tag), child.get("name") or ""))
    etree.indent(element)
    return etree.tostring(element, encoding="unicode") + "\n"
