"""The page of scenarios: every element and attribute, from the schema, which tests compare with the reader."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from lxml import etree

from qsctl.cli.help.reference.markdown import code, table, text_in_markdown
from qsctl.shipped import shipped

_XS: Final = "{http://www.w3.org/2001/XMLSchema}"
_HOW = """\
{about}

`schemas/qsctl_simulation.xsd` completes and checks this in an editor. `--set PATH=VALUE` changes one value: the
path has the elements below `<scenario>`, with `[NAME]` behind one that there are several of and `[*]` for all of
them, as in `profile/queue[D-1]/max-depth=4000`. `qsctl simulate --list` shows the scenarios that come with qsctl."""


def page() -> str:
    """Return a section for each element, the outermost first, then one for each kind of value."""
    schema = etree.parse(str(shipped("schemas/qsctl_simulation.xsd"))).getroot()
    types: dict[str, Any] = {
        str(each.get("name")): each for each in schema.iterchildren(f"{_XS}complexType", f"{_XS}simpleType")
    }
    parts = [_HOW.format(about=text_in_markdown(_documented(schema)))]
    for group in schema.iterchildren(f"{_XS}group"):  # looked up by name, as types are
        types[f"group {group.get('name')}"] = group
    seen: set[str] = set()
    for element in schema.iterchildren(f"{_XS}element"):
        parts += _sections(element, types, seen)
    parts.append("## Kinds of values")
    named = [each for each in types.values() if each.tag == f"{_XS}simpleType"]
    parts.append(table(("kind", "values"), ((code(str(each.get("name"))), _kind(each)) for each in named)))
    return "\n\n".join(parts)


def _sections(element: Any, types: dict[str, Any], seen: set[str]) -> Iterator[str]:
    """Yield the section of an element, then those of its children; a type that was listed before is not repeated."""
    described = types.get(element.get("type"), element.find(f"{_XS}complexType"))
    name = element.get("type") or element.get("name")
    if described is None or described.tag != f"{_XS}complexType" or name in seen:
        return
    seen.add(name)
    yield f"## `<{element.get('name')}>`"
    yield text_in_markdown(_documented(described) or _documented(element))
    attributes = list(described.iter(f"{_XS}attribute"))
    if attributes:
        rows = (
            (
                code(each.get("name")) + (" (required)" if each.get("use") == "required" else ""),
                code(each.get("type") or "") or _kind(each.find(f"{_XS}simpleType")),
                text_in_markdown(_documented(each)),
            )
            for each in attributes
        )
        yield table(("attribute", "values", "what it is"), rows)
    groups = [types[f"group {each.get('ref')}"] for each in described.iter(f"{_XS}group")]
    children = [child for part in (described, *groups) for child in part.iter(f"{_XS}element")]
    if children:
        rows_of_children = ((code(f"<{each.get('name')}>"), text_in_markdown(_documented(each))) for each in children)
        yield table(("child", "what it is"), rows_of_children)
    for child in children:
        yield from _sections(child, types, seen)


def _documented(node: Any) -> str:
    return " ".join((node.findtext(f"{_XS}annotation/{_XS}documentation") or "").split())


def _kind(simple: Any) -> str:
    """Return the allowed values of a simple type: its words, its range, or its documentation."""
    if simple is None:
        return ""
    words = [
        f"{code(each.get('value'))}{': ' * bool(_documented(each))}{text_in_markdown(_documented(each))}"
        for each in simple.iter(f"{_XS}enumeration")
    ]
    ends = [simple.find(f".//{_XS}{end}Inclusive") for end in ("min", "max")]
    low, high = (None if end is None else end.get("value") for end in ends)
    span = f"{low} to {high}" if low and high else f"at least {low}" if low else ""
    about = text_in_markdown(_documented(simple))
    return " ".join(part for part in (about or span, " ".join(words)) if part)
