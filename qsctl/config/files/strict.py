"""Spellings that only files in the field use, for `qsctl validate --strict`: truth values other than true false 1 0."""

from __future__ import annotations

from collections.abc import Iterator

from lxml.etree import _Element

from qsctl.config.files.document import attributes_of, text_of
from qsctl.config.files.schema_model import schema_model
from qsctl.declared.problems import Problem, Severity, problem_at
from qsctl.declared.values import STRICT_BOOLEANS, ValueForm, boolean

_ALLOWED = "true, false, 1 or 0"


def spelling_problems(root: _Element) -> Iterator[Problem]:
    """Yield a problem for each truth value that is not written as [QS 3] lists them."""
    model = schema_model()
    for element in root.iter():
        if not len(element):
            text = text_of(element)
            if _is_loose(text) and model.type_of(element) == "boolean":
                yield _problem(element, f"<{element.tag}>", text)
        if element.attrib:
            described = None
            for key, value in attributes_of(element).items():
                if not _is_loose(value.strip()):
                    continue
                described = described or model.model_of(element)
                if described and described.attributes.get(key) == "boolean":
                    yield _problem(element, f"the attribute {key} of <{element.tag}>", value)


def _is_loose(text: str) -> bool:
    if text in STRICT_BOOLEANS or not text or len(text) > len("DDS_BOOLEAN_FALSE"):
        return False
    try:
        boolean(text)
    except ValueForm:
        return False
    return True


def _problem(element: _Element, what: str, text: str) -> Problem:
    return problem_at(
        element,
        f"{what} has an unusual truth value",
        severity=Severity.ERROR,
        found=text,
        allowed=_ALLOWED,
        suggestion=f"Write {'true' if boolean(text.strip()) else 'false'}.",
    )
