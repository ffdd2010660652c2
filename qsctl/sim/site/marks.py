"""The text of a scenario with a comment at every value that is not known, or that was derived."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from lxml import etree

from qsctl.sim.captured.scenario import CapturedParameter
from qsctl.sim.scenario.forms.text import scenario_text
from qsctl.sim.scenario.scenario import Scenario

_STEP: Final = re.compile(r"([a-z-]+)(?:\[([^\]]*)\])?(?:/|$)")
_KEYS: Final = ("name", "id", "transaction")


def marked_text(scenario: Scenario, notes: Sequence[CapturedParameter]) -> str:
    """Return the scenario as XML with a comment before each element whose values are not captured, with the reason.

    Where the element is missing because its value is the default, the comment is before the element that would contain
    it.
    """
    root = etree.fromstring(scenario_text(scenario).encode(), etree.XMLParser(resolve_entities=False))
    places: dict[etree._Element, list[str]] = {}
    by_parent: dict[etree._Element, dict[tuple[str, str], etree._Element]] = {}
    general: list[str] = []
    for note in notes:
        text = f"{note.origin}: {note.path.rpartition('/')[2]} {note.value} ({note.why})"
        element = _element_of(root, note.path, by_parent)
        if element is None:
            general.append(f"{note.origin}: {note.path} {note.value} ({note.why})")
        else:
            places.setdefault(element, []).append(text)
    for element, texts in places.items():
        comment = etree.Comment(f" {_harmless('; '.join(texts))} ")
        comment.tail = _indent_of(element)
        element.addprevious(comment)
    body = etree.tostring(root, encoding="unicode")
    heads = "".join(f"<!-- {_harmless(each)} -->\n" for each in general)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{heads}{body}\n'


def _element_of(
    root: etree._Element, path: str, by_parent: dict[etree._Element, dict[tuple[str, str], etree._Element]]
) -> etree._Element | None:
    """Return the innermost existing element of a path, or None where the path has none below the root."""
    at, place = root, 0
    steps = [(found[1], found[2] or "") for found in _STEP.finditer(path)]
    for step in steps[:-1]:
        known = by_parent.get(at)
        if known is None:
            known = by_parent[at] = {}
            for child in at:
                if isinstance(child.tag, str):
                    key = next((str(child.get(name)) for name in _KEYS if child.get(name) is not None), "")
                    known.setdefault((child.tag, key), child)
                    known.setdefault((child.tag, ""), child)
        inner = known.get(step)
        if inner is None:
            break
        at, place = inner, place + 1
    return None if place == 0 else at


def _indent_of(element: etree._Element) -> str:
    """Return the line break and indentation before an element, for a comment line to be inserted there."""
    before = element.getprevious()
    parent = element.getparent()
    space = before.tail if before is not None else parent.text if parent is not None else None
    return space if space is not None and not space.strip() else "\n"


def _harmless(text: str) -> str:
    """Return a text with its double hyphens separated, which XML forbids in a comment."""
    return re.sub(r"-(?=-)|-$", "- ", text)
