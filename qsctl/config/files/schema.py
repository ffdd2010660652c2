"""Validation of a document against the schema: lxml's compiled validator decides; where it rejects, xmlschema explains.

The schema is always ours, whatever `xsi:noNamespaceSchemaLocation` names: nothing is fetched. One rule that XSD 1.0
cannot express is applied here: elements inside QoS that the schema does not have are set aside as extensions of a
vendor.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from lxml import etree
from lxml.etree import _Element

from qsctl.config.files._structure import structure_problems
from qsctl.config.files.document import Document, attributes_of, text_of
from qsctl.config.files.schema_model import SCHEMA, VENDOR_EXTENSION, ElementModel, schema_model
from qsctl.declared.problems import Problem, Severity, did_you_mean, file_of, problem_at, shown
from qsctl.shipped import shipped

if TYPE_CHECKING:
    import xmlschema

PROBLEMS_MAX: Final = 200
"""More than these are not shown for one document: a file of nonsense is not worth more."""

EXPLAINED_ELEMENTS_MAX: Final = 50_000
"""In larger documents the gate explains too: xmlschema takes a minute for a million elements."""

_LONG_CHARACTERS: Final = 255

QOS_TAGS: Final = (
    "participant_qos",
    "publisher_qos",
    "subscriber_qos",
    "topic_qos",
    "datawriter_qos",
    "datareader_qos",
    "update_datawriter_qos",
    "update_datareader_qos",
    "redistribution_datawriter_qos",
)


@cache
def _gate() -> etree.XMLSchema:
    return etree.XMLSchema(etree.parse(str(shipped(SCHEMA))))


@cache
def explainer() -> xmlschema.XMLSchema10:
    """Return the validator that names every error, with path and reason."""
    import xmlschema

    return xmlschema.XMLSchema10(str(shipped(SCHEMA)), allow="local")


def gate_accepts(root: _Element) -> bool:
    """Return whether lxml's validator accepts the element unchanged."""
    return bool(_gate().validate(root))


def check_document(
    document: Document, roots: tuple[str, ...] = ("dds",), *, note_extensions: bool = False
) -> list[Problem]:
    """Return a problem for each departure of the document from the schema, in the order of its lines.

    Args:
        document: a parsed source, its variables replaced.
        roots: the tags that its root element may have.
        note_extensions: whether extensions of a vendor inside QoS are noted.
    """
    if document.root.tag not in roots:
        allowed = " or ".join(f"<{tag}>" for tag in roots)
        found = f"<{document.root.tag}>"
        near = did_you_mean(str(document.root.tag), roots)
        return [
            problem_at(document.root, "this is not the root element", found=found, allowed=allowed, suggestion=near)
        ]
    aside = _set_aside_extensions(document.root)
    try:
        problems = [each for each in aside.problems if note_extensions or each.severity is not Severity.NOTE]
        if not gate_accepts(document.root):
            problems = problems + explain(document.root)
    finally:
        aside.put_back()
    return sorted(problems, key=lambda problem: problem.line)


class _Aside:
    """Elements and attributes taken out of the tree for a while, each with the place it came from."""

    def __init__(self) -> None:
        self.taken: list[tuple[_Element, int, _Element]] = []
        self.attributes: list[tuple[_Element, str, str]] = []
        self.problems: list[Problem] = []

    def take(self, parent: _Element, element: _Element) -> None:
        self.taken.append((parent, parent.index(element), element))
        parent.remove(element)

    def take_attribute(self, element: _Element, name: str) -> None:
        self.attributes.append((element, name, str(element.attrib.pop(name))))

    def put_back(self) -> None:
        for element, name, value in self.attributes:
            element.set(name, value)
        for parent, index, element in reversed(self.taken):
            parent.insert(index, element)


def _set_aside_extensions(root: _Element) -> _Aside:
    aside = _Aside()
    model = schema_model()
    for element in list(root.iter(*QOS_TAGS)):
        if any(ancestor.tag in QOS_TAGS for ancestor in element.iterancestors()):
            continue
        name = model.type_of(element)
        if name is None or name not in model.elements:
            continue
        pending = [(element, model.elements[name])]
        while pending:
            parent, parent_model = pending.pop()
            _set_aside_attributes(aside, parent, parent_model)
            for child in list(parent):
                child_type = parent_model.children.get(str(child.tag))
                if child_type == VENDOR_EXTENSION:
                    aside.problems.append(_extension_note(child))
                elif child_type is None and _may_be_extended(parent_model):
                    aside.problems.append(_unknown_extension(child, parent_model))
                    aside.take(parent, child)
                elif child_type in model.elements:
                    pending.append((child, model.elements[str(child_type)]))
    return aside


def _set_aside_attributes(aside: _Aside, element: _Element, model: ElementModel) -> None:
    """Take unknown attributes of a policy out of the tree, as extensions of a vendor.

    One that is spelled nearly as a known attribute is left: it is a mistake, which the schema reports.
    """
    if not _may_be_extended(model):
        return
    for name in attributes_of(element):
        if name not in model.attributes and not did_you_mean(name, model.attributes):
            aside.problems.append(
                problem_at(
                    element,
                    f"the attribute {name} of <{element.tag}> is an extension of a vendor: kept, and not used here",
                    severity=Severity.NOTE,
                )
            )
            aside.take_attribute(element, name)


def _may_be_extended(model: ElementModel) -> bool:
    """Return whether a vendor may extend an element of this kind: a policy or a whole QoS element."""
    return model.name.endswith(("_policy", "_qos"))


def _extension_note(element: _Element) -> Problem:
    return problem_at(
        element, f"<{element.tag}> is an extension of a vendor: kept, and not used", severity=Severity.NOTE
    )


def _unknown_extension(element: _Element, model: ElementModel) -> Problem:
    suggestion = did_you_mean(str(element.tag), model.children)
    if not suggestion:
        return _extension_note(element)
    return problem_at(
        element,
        f"<{element.tag}> is not a known part of QoS; it is kept as an extension of a vendor",
        severity=Severity.WARNING,
        found=f"<{element.tag}>",
        suggestion=suggestion,
    )


def explain(root: _Element) -> list[Problem]:
    """Return a problem for each departure from the schema: structure by the schema's model, the rest by xmlschema."""
    found = list(itertools.islice(structure_problems(root, schema_model()), PROBLEMS_MAX))
    if len(found) >= PROBLEMS_MAX:
        return found
    size = sum(1 for _ in itertools.islice(root.iter(), EXPLAINED_ELEMENTS_MAX + 1))
    explanations = _explanations(root) if size <= EXPLAINED_ELEMENTS_MAX else _gate_explanations(root)
    found.extend(dict.fromkeys(itertools.islice(explanations, PROBLEMS_MAX)))
    if not found:
        # Only lxml rejected it, without an explanation by xmlschema: report lxml's own message.
        log: Any = _gate().error_log  # iterable, which its stub does not know
        found.extend(
            Problem(Severity.ERROR, file_of(root), entry.line, "", shown(entry.message))
            for entry in itertools.islice(log, PROBLEMS_MAX)
            if entry.type_name != "SCHEMAV_CVC_IDC"  # references and names are for the rules
        )
    return found[:PROBLEMS_MAX]


def _explanations(root: _Element) -> Iterator[Problem]:
    import xmlschema

    model = schema_model()
    for error in explainer().iter_errors(root, use_location_hints=False):
        element = error.elem
        if not isinstance(element, etree._Element):
            continue
        reason = str(error.reason or "")
        if isinstance(error, xmlschema.XMLSchemaChildrenValidationError):
            continue  # the structure of the tree was explained from the model
        if any(part in reason for part in _SAID_ELSEWHERE):
            continue
        attribute = _ATTRIBUTE.match(reason)
        if attribute:
            yield _attribute_problem(element, attribute[1])
        else:
            yield _value_problem(element, reason, model.type_of(element))


def _gate_explanations(root: _Element) -> Iterator[Problem]:
    """Yield a problem for each wrong value and attribute that lxml's validator logged."""
    model = schema_model()
    log: Any = _gate().error_log
    tree = root.getroottree()
    for entry in log:
        if not entry.path or entry.type_name in _GATE_SAID_ELSEWHERE:
            continue
        places = tree.xpath(entry.path)
        element = places[0] if isinstance(places, list) and places else None
        if not isinstance(element, etree._Element):
            continue
        attribute = _GATE_ATTRIBUTE.search(entry.message)
        if attribute:
            yield _attribute_problem(element, attribute[1])
        else:
            yield _value_problem(element, entry.message, model.type_of(element))


_GATE_ATTRIBUTE = re.compile(r"attribute '([A-Za-z_]+)'")
_GATE_SAID_ELSEWHERE: Final = frozenset(
    {
        "SCHEMAV_CVC_IDC",
        "SCHEMAV_ELEMENT_CONTENT",
        "SCHEMAV_CVC_COMPLEX_TYPE_3_2_1",  # an attribute that is not allowed
        "SCHEMAV_CVC_COMPLEX_TYPE_3_2_2",
        "SCHEMAV_CVC_COMPLEX_TYPE_4",  # an attribute that is missing
        "SCHEMAV_CVC_COMPLEX_TYPE_2_3",  # text among elements
        "SCHEMAV_CVC_TYPE_3_1_2",  # elements in a value
        "SCHEMAV_CVC_TYPE_3_1_1",
    }
)

_ATTRIBUTE = re.compile(r"attribute ([A-Za-z_]+)=")
_SAID_ELSEWHERE: Final = (
    "XsdKey(name=",  # rules of references name what there is to refer to
    "XsdKeyref(name=",
    "XsdUnique(name=",
    "attribute not allowed",  # the structure of the tree was explained from the model
    "missing required attribute",
    "simple content element can't have child elements",
    "character data",
)


def _attribute_problem(element: _Element, name: str) -> Problem:
    model = schema_model()
    described = model.model_of(element)
    type_name = described.attributes.get(name, "") if described else ""
    value = " ".join((element.get(name) or "").split())
    return problem_at(
        element,
        f"the attribute {name} of <{element.tag}> has a value that is not allowed",
        found=_found(value),
        allowed=model.allowed.get(type_name, ""),
        suggestion=suggestion_for_value(name, value, type_name),
    )


def _value_problem(element: _Element, reason: str, type_name: str | None) -> Problem:
    model = schema_model()
    value = text_of(element)
    allowed = model.allowed.get(type_name or "", "")
    if not allowed:
        return problem_at(element, f"<{element.tag}>: {shown(reason)}", found=value)
    return problem_at(
        element,
        f"<{element.tag}> has a value that is not allowed",
        found=_found(value),
        allowed=allowed,
        suggestion=suggestion_for_value(str(element.tag), value, type_name or ""),
    )


def _found(value: str) -> str:
    """Return the value as a message shows it; before a long one, the number of its characters."""
    return f"{len(value)} characters: {value}" if len(value) > _LONG_CHARACTERS else value or "(nothing)"


def suggestion_for_value(tag: str, value: str, type_name: str) -> str:
    """Return what was probably meant by a wrong value."""
    if value.startswith(">"):
        return f"The tag is closed twice: write <{tag}>{value.lstrip('> ')}</{tag}>."
    words = schema_model().words.get(type_name, ())
    for word in words:
        if word.lower() == value.lower():
            return f"Did you mean {word}?"
    return did_you_mean(value.upper(), words)
