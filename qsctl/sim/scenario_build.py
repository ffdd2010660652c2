"""Elements to dataclasses, by the table of `forms.py`; every fault is reported and reading goes on.

Names the element path, the value found and the values allowed. Structure is checked here and by the XSD alike: this
side explains, the XSD is for editors and proves that both say the same.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from qsctl.errors import InvalidInput
from qsctl.sim.forms import QUEUE, QUEUE_NAME, TRAFFIC, Attribute, Child, Columns, Form
from qsctl.sim.scenario import Queue, default_queue_limits

if TYPE_CHECKING:
    from lxml import etree

XSI: Final = "{http://www.w3.org/2001/XMLSchema-instance}"
_COS_QUEUES: Final = {"1": Queue.D_1, "2": Queue.D_2, "3": Queue.D_3}
"""Class of service of a direct message to its queue (seeds 000 and 004)."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong: where, what stands there, what may stand there."""

    element: etree._Element
    message: str
    found: str = ""
    allowed: str = ""
    attribute: str = ""


@dataclass(slots=True)
class Faults:
    """All faults of a reading, in document order of their discovery."""

    found: list[Fault] = field(default_factory=list)

    def add(
        self, element: etree._Element, message: str, found: str = "", allowed: str = "", attribute: str = ""
    ) -> None:
        """Note one fault and go on."""
        self.found.append(Fault(element, message, found, allowed, attribute))


def elements_of(element: etree._Element) -> Iterator[etree._Element]:
    """Its child elements, without comments and processing instructions."""
    return element.iterchildren("{*}*")


def build(form: Form, element: etree._Element, faults: Faults, given: dict[str, object] | None = None) -> Any:
    """The dataclass that an element describes; None where faults leave none.

    `given` are fields that the caller has read by itself.
    """
    before = len(faults.found)
    values: dict[str, object] = dict(given or {})
    if form is TRAFFIC:
        values |= _class_of_service(element, faults)
    _read_attributes(form, element, values, faults)
    _read_children(form, element, values, faults)
    if len(faults.found) > before:
        missing = {each.name for each in dataclasses.fields(form.type)} - set(values)  # type: ignore[arg-type]
        if any(_is_required(form.type, name) for name in missing):
            return None
    return form.type(**values)


def _is_required(kind: type[object], name: str) -> bool:
    one = next(each for each in dataclasses.fields(kind) if each.name == name)  # type: ignore[arg-type]
    return one.default is dataclasses.MISSING and one.default_factory is dataclasses.MISSING


def _read_attributes(form: Form, element: etree._Element, values: dict[str, object], faults: Faults) -> None:
    known = [each.name for each in form.attributes] + list(form.aside)
    for name, text in element.items():
        name = str(name)
        if name.startswith((XSI, "{http://www.w3.org/XML/1998/namespace}")):
            continue
        attribute = form.attribute(name)
        if attribute is not None:
            _read_attribute(attribute, element, str(text), values, faults)
        elif name not in form.aside:
            faults.add(
                element, f"unknown attribute {name!r}{_hint(name, known)}", str(text), ", ".join(known), attribute=name
            )
    for attribute in form.attributes:
        if attribute.required and element.get(attribute.name) is None:
            faults.add(element, f"attribute {attribute.name!r} is missing", allowed=attribute.value.allowed)


def _read_attribute(
    attribute: Attribute, element: etree._Element, text: str, values: dict[str, object], faults: Faults
) -> None:
    try:
        values[attribute.field] = attribute.value.parse(text)
    except InvalidInput:
        faults.add(
            element,
            f"{attribute.name} is {text.strip()!r}",
            text.strip(),
            attribute.value.allowed,
            attribute=attribute.name,
        )


def _read_children(form: Form, element: etree._Element, values: dict[str, object], faults: Faults) -> None:
    collected: dict[str, list[tuple[etree._Element, Any]]] = {}
    columns: list[etree._Element] = []
    known = [each.element for child in form.children for each in child.forms] + list(form.foreign)
    if form.columns:
        known.append(form.columns.element)
    if element.text and element.text.strip():
        faults.add(element, "text stands where only elements may", element.text.strip()[:40])
    for inner in elements_of(element):
        if inner.tail and inner.tail.strip():
            faults.add(element, "text stands where only elements may", inner.tail.strip()[:40])
        tag = str(inner.tag)
        if form.columns and tag == form.columns.element:
            columns.append(inner)
            continue
        match = form.child(tag)
        if match is not None:
            child, child_form = match
            collected.setdefault(child.field, []).append((inner, _read_child(child_form, inner, faults)))
        elif tag not in form.foreign:
            faults.add(inner, f"unknown element <{tag}> in <{element.tag}>{_hint(tag, known)}", allowed=_tags(known))
    for child in form.children:
        _collect(child, element, collected.get(child.field, []), values, faults)
    if form.columns:
        _read_columns(form.columns, element, columns, values, faults)


def _read_child(form: Form, element: etree._Element, faults: Faults) -> Any:
    if form is not QUEUE:
        return build(form, element, faults)
    text = element.get("name")
    if text is None:
        faults.add(element, "attribute 'name' is missing", allowed=QUEUE_NAME.allowed)
        return None
    try:
        name = QUEUE_NAME.parse(text)
    except InvalidInput:
        faults.add(element, f"name is {text!r}", text, QUEUE_NAME.allowed, attribute="name")
        return None
    assert isinstance(name, Queue)
    defaults = default_queue_limits()[name]
    given = {each.name: getattr(defaults, each.name) for each in dataclasses.fields(defaults)}
    return name, build(form, element, faults, given)


def _collect(
    child: Child,
    element: etree._Element,
    found: Sequence[tuple[etree._Element, Any]],
    values: dict[str, object],
    faults: Faults,
) -> None:
    if child.mapping:
        mapping: dict[Any, Any] = {}
        for inner, pair in found:
            if pair is None:
                continue
            if pair[0] in mapping:
                faults.add(inner, f"a second <{inner.tag}> for {pair[0]}", pair[0], f"one <{inner.tag}> for each name")
            mapping[pair[0]] = pair[1]
        values[child.field] = default_queue_limits() | mapping
    elif child.many:
        if found:
            _check_keys(child.forms[0], found, faults)
            values[child.field] = tuple(value for _, value in found if value is not None)
    elif found:
        for inner, _ in found[1:]:
            faults.add(inner, f"a second <{inner.tag}> in <{element.tag}>", allowed=f"one of {_forms(child)}")
        if found[0][1] is not None:
            values[child.field] = found[0][1]
    elif child.required:
        faults.add(element, f"<{element.tag}> has none of {_forms(child)}", allowed=f"one of {_forms(child)}")


def _check_keys(form: Form, found: Sequence[tuple[etree._Element, Any]], faults: Faults) -> None:
    if form.key != "name":
        return
    seen: dict[str, etree._Element] = {}
    for inner, _ in found:
        name = inner.get("name")
        if name is None:
            continue
        if name in seen:
            faults.add(
                inner, f"a second <{inner.tag}> named {name!r} (the first is in line {seen[name].sourceline})", name,
                f"a name for each <{inner.tag}>", attribute="name",
            )  # fmt: skip
        seen.setdefault(name, inner)


def _read_columns(
    columns: Columns, element: etree._Element, rows: Sequence[etree._Element], values: dict[str, object], faults: Faults
) -> None:
    form = Form(columns.element, object, columns.attributes)
    read: list[dict[str, object]] = []
    for row in rows:
        one: dict[str, object] = {}
        _read_attributes(form, row, one, faults)
        for inner in elements_of(row):
            faults.add(inner, f"unknown element <{inner.tag}> in <{row.tag}>", allowed="nothing")
        read.append(one)
    if not rows:
        faults.add(element, f"<{element.tag}> has no <{columns.element}>", allowed=f"at least one <{columns.element}>")
        return
    for attribute in columns.attributes:
        if all(attribute.field in one for one in read):
            values[attribute.field] = tuple(one[attribute.field] for one in read)


def _class_of_service(element: etree._Element, faults: Faults) -> dict[str, object]:
    """`delivery` and `cos` instead of a queue's name (seed 000).

    A direct message of COS 1, 2, 3 goes to D-1, D-2, D-3. A guaranteed one goes to G-1 and its COS is its discard
    eligibility: 1 is low, 2 is treated as low, 3 is high.
    """
    delivery, cos = element.get("delivery"), element.get("cos")
    if delivery is None and cos is None:
        return {}
    ok = True
    if delivery not in {None, "direct", "guaranteed"}:
        faults.add(
            element, f"delivery is {delivery!r}", str(delivery), "one of direct, guaranteed", attribute="delivery"
        )
        ok = False
    if cos not in {None, *_COS_QUEUES}:
        faults.add(element, f"cos is {cos!r}", str(cos), "one of 1, 2, 3", attribute="cos")
        ok = False
    for taken in ("queue", "discard-eligible"):
        if element.get(taken) is not None:
            faults.add(
                element, f"{taken!r} stands beside 'delivery' or 'cos'", str(element.get(taken)),
                "either a queue, or a delivery mode and a class of service", attribute=taken,
            )  # fmt: skip
            ok = False
    if not ok:
        return {}
    if delivery == "guaranteed":
        return {"queue": Queue.G_1, "discard_eligible": (cos or "1") != "3"}
    return {"queue": _COS_QUEUES[cos or "1"]}


def _hint(name: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def _tags(names: Sequence[str]) -> str:
    return ", ".join(f"<{name}>" for name in names) or "no element"


def _forms(child: Child) -> str:
    return _tags([each.element for each in child.forms])
