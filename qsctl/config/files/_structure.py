"""Elements and attributes that are misplaced, repeated or missing, reported by the schema's model.

Runs over the whole tree when the validator has refused it, so that one misplaced tag does not hide the next.
"""

from __future__ import annotations

from collections.abc import Iterator

from lxml.etree import _Element

from qsctl.config.files.document import attributes_of
from qsctl.config.files.schema_model import VENDOR_EXTENSION, ElementModel, SchemaModel
from qsctl.declared.problems import Problem, did_you_mean, problem_at

_ALLOWED_NAMES_SHOWN = 30


def structure_problems(root: _Element, model: SchemaModel) -> Iterator[Problem]:
    """Yield a problem for each unknown, repeated or missing part of the tree under `root`, which is one of the schema's
    roots.
    """
    pending: list[tuple[_Element, str]] = [(root, model.roots[str(root.tag)])]
    while pending:
        element, type_name = pending.pop()
        if type_name == VENDOR_EXTENSION:
            continue
        described = model.elements.get(type_name)
        if described is None:
            yield from _inside_a_value(element, model.allowed.get(type_name, ""))
            continue
        yield from _children_problems(element, described)
        yield from _attribute_problems(element, described)
        pending.extend(
            (child, described.children[str(child.tag)]) for child in element if child.tag in described.children
        )


def _inside_a_value(element: _Element, allowed: str) -> Iterator[Problem]:
    for child in element:
        yield problem_at(child, f"<{element.tag}> holds a value, not elements", found=f"<{child.tag}>", allowed=allowed)


def _children_problems(element: _Element, described: ElementModel) -> Iterator[Problem]:
    seen: set[str] = set()
    unknown: list[str] = []
    for child in element:
        tag = str(child.tag)
        if tag not in described.children:
            unknown.append(tag)
            yield _unknown_child(element, child, described)
        elif tag in seen and tag in described.single_children:
            yield problem_at(child, f"<{tag}> occurs twice in <{element.tag}>", found=f"<{tag}>", allowed="once")
        seen.add(tag)
    for tag in sorted(described.required_children - seen):
        if any(did_you_mean(other, [tag]) for other in unknown):
            continue  # it is there, misspelt, and has its own problem
        yield problem_at(element, f"<{element.tag}> needs a <{tag}>", found="none", allowed=f"<{tag}>…</{tag}>")
    text = "".join([element.text or "", *(child.tail or "" for child in element)]).split()
    if text:
        yield problem_at(
            element, f"<{element.tag}> holds elements, not text", found=" ".join(text), allowed=_names(described)
        )


def _unknown_child(element: _Element, child: _Element, described: ElementModel) -> Problem:
    tag = str(child.tag)
    if described.name == "dead_letter_shared_reader_queue" and tag in {"type_name", "reply_type", "reply_topic"}:
        return problem_at(
            child,
            f"a dead-letter queue cannot have <{tag}>: its samples are dead letters [QS 3.3.11]",
            found=f"<{tag}>",
            suggestion=f"Remove <{tag}>.",
        )
    return problem_at(
        child,
        f"<{tag}> is not allowed in <{element.tag}>",
        found=f"<{tag}>",
        allowed=_names(described),
        suggestion=did_you_mean(tag, described.children),
    )


def _names(described: ElementModel) -> str:
    names = [f"<{tag}>" for tag in described.children]
    more = " …" if len(names) > _ALLOWED_NAMES_SHOWN else ""
    return ", ".join(names[:_ALLOWED_NAMES_SHOWN]) + more if names else "no elements"


def _attribute_problems(element: _Element, described: ElementModel) -> Iterator[Problem]:
    attributes = attributes_of(element)
    unknown = [key for key in attributes if key not in described.attributes]
    for key in unknown:
        yield problem_at(
            element,
            f"the attribute {key} is not allowed on <{element.tag}>",
            found=f'{key}="{attributes[key]}"',
            allowed=", ".join(described.attributes) or "no attributes",
            suggestion=did_you_mean(key, described.attributes),
        )
    for key in sorted(described.required_attributes - attributes.keys()):
        if any(did_you_mean(other, [key]) for other in unknown):
            continue
        yield problem_at(element, f"<{element.tag}> needs the attribute {key}", found="none", allowed=f'{key}="…"')
