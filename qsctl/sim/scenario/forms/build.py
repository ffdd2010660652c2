"""The builder of a scenario: elements to dataclasses, by the table of `elements.py`.

Every problem is recorded with the element path, the value found and the values allowed, and reading continues. The XSD
checks the same structure for editors of XML; the messages here are more precise, and a test holds that both agree.
"""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from qsctl.core.settings import ServiceSettings
from qsctl.declared.problems import Problem, problem_at
from qsctl.errors import InvalidInput
from qsctl.profiles.names import WRONG_NAMES
from qsctl.profiles.ranges import BY_FIELD, SETTINGS
from qsctl.profiles.setting import ProfileSetting
from qsctl.sim.scenario.forms.elements import CHANGE, PROFILE, QUEUE, TRAFFIC, WORKLOAD, queue_name
from qsctl.sim.scenario.forms.form import SOLACE, Attribute, Child, Columns, Form, with_value
from qsctl.sim.scenario.forms.replay import REPLAY
from qsctl.sim.scenario.forms.values import PORT_RATE
from qsctl.sim.scenario.scenario import TIBCO_MIN_BURST_MESSAGES, Model, Queue, default_queue_limits

if TYPE_CHECKING:
    from lxml import etree

XSI: Final = "{http://www.w3.org/2001/XMLSchema-instance}"
_RENAMED: Final = {
    "reading-delay": ": it is acknowledgment-latency now, which limits no rate but by the window; an application that "
    'needs time for each message has a <service-time duration="…"/>',
}
"""Settings of earlier versions, and what they became."""
_COS_QUEUES: Final = {"1": Queue.D_1, "2": Queue.D_2, "3": Queue.D_3}
"""Class of service of a direct message to its queue [SOL-QUEUES]."""


_DEPTH_SETTING: Final = BY_FIELD["d_1_max_depth_work_units"]
_DEPTH: Final = f'max-depth="{_DEPTH_SETTING.minimum} to {_DEPTH_SETTING.maximum} {_DEPTH_SETTING.unit}"'
_UNITS: Final = {"tcpMaxWindowSize": " KB", "elidingDelay": "ms"}


def _place(setting: ProfileSetting) -> str:
    """Return the XML text that sets a setting of a client profile in a scenario file."""
    step, _, attribute = setting.scenario.partition("/")
    element, _, key = step.rstrip("]").partition("[")
    name = f' name="{key}"' if key else ""
    return f'<{element}{name} {attribute}="…{_UNITS.get(setting.semp_v2, "")}"/> inside <profile>'


_PLACES: Final = {setting.semp_v2: _place(setting) for setting in SETTINGS if setting.scenario}
SEMP_PLACES: Final = {
    **_PLACES,
    **{wrong: _PLACES[right] for wrong, right in WRONG_NAMES.items() if right in _PLACES},
    "flowCount": '<endpoint flows="…"/>',
    "flowWindowSize": '<endpoint window="…"/>',
    "maxDeliveredUnackedMsgsPerFlow": '<endpoint unacknowledged-limit="…"/>',
    "clientProfileName": '<profile name="…"/>',
}
"""Attributes of SEMP v2 (and names that people write for them) to where a scenario has the same."""


class ScenarioReading:
    """One reading in progress: the problems so far, the place of each object, and the values from other files."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.model = Model.SOLACE
        """Of the scenario: settings that it does not know are refused."""
        self._places: dict[int, tuple[object, etree._Element]] = {}

    def add(
        self, element: etree._Element, message: str, found: str = "", allowed: str = "", attribute: str = ""
    ) -> None:
        """Record one problem; reading continues."""
        problem = problem_at(element, message, found=found, allowed=allowed)
        if attribute:
            problem = dataclasses.replace(problem, path=f"{problem.path}/@{attribute}")
        self.problems.append(problem)

    def remember(self, made: object, element: etree._Element) -> None:
        """Record the element that an object was made from."""
        self._places[id(made)] = (made, element)

    def place_of(self, made: object) -> etree._Element | None:
        """Return the element that an object was made from."""
        place = self._places.get(id(made))
        return place[1] if place else None

    def profile_of(self, element: etree._Element) -> etree._Element | None:
        """Return the `<profile>` element that `file` refers to; the element itself without one."""
        return element

    def service_of(self, element: etree._Element) -> ServiceSettings | None:
        """Return the service of a `<workload>`; None if it cannot be read, after its problems were recorded."""
        self.add(element, "a workload needs files", allowed='<service file="…"/>')
        return None


def elements_of(element: etree._Element) -> Iterator[etree._Element]:
    """Yield an element's child elements, without comments and processing instructions."""
    return element.iterchildren("{*}*")


def build(form: Form, element: etree._Element, reading: ScenarioReading, given: dict[str, object] | None = None) -> Any:
    """Return the dataclass that an element describes; None if problems prevent building it.

    `given` contains fields that the caller has read by itself.
    """
    values: dict[str, object] = dict(given or {})
    if reading.model not in form.models:
        reading.add(
            element, f"<{form.element}> means nothing in a {reading.model} scenario", form.element,
            f'model="{one_of(form.models)}"',
        )  # fmt: skip
    if form is TRAFFIC:
        values |= _class_of_service(element, reading)
    _read_attributes(form, element, values, reading)
    _read_children(form, element, values, reading)
    missing = {each.name for each in dataclasses.fields(form.type)} - set(values)  # type: ignore[arg-type]
    if any(_is_required(form.type, name) for name in missing):
        assert reading.problems, "a required field is only missing where a problem says so"
        return None
    if form is CHANGE:
        values = _in_plain_units(values)
    further = {field: values.pop(field) for field in list(values) if "." in field}
    made = form.type(**values)
    for field, value in further.items():
        made = with_value(made, field, value)
    reading.remember(made, element)
    return made


def _in_plain_units(change: dict[str, object]) -> dict[str, object]:
    """Return a change in the units of the models: a port's new rate, written as in `<port>`, in bits a second."""
    path, value = str(change.get("path")), str(change.get("value"))
    if path.startswith("port[") and path.endswith("/rate"):
        with contextlib.suppress(InvalidInput):  # the rules decide what is allowed here
            return change | {"value": str(PORT_RATE.parse(value))}
    return change


def _is_required(kind: type[object], name: str) -> bool:
    one = next(each for each in dataclasses.fields(kind) if each.name == name)  # type: ignore[arg-type]
    return one.default is dataclasses.MISSING and one.default_factory is dataclasses.MISSING


def _read_attributes(form: Form, element: etree._Element, values: dict[str, object], reading: ScenarioReading) -> None:
    known = [each.name for each in form.attributes] + list(form.aside)
    for name, text in element.items():
        name = str(name)
        if name.startswith((XSI, "{http://www.w3.org/XML/1998/namespace}")):
            continue
        attribute = form.attribute(name)
        if attribute is not None:
            _read_attribute(attribute, element, str(text), values, reading)
        elif name not in form.aside:
            hint = elsewhere_hint(form, name) or semp_hint(name) or _hint(name, known)
            reading.add(element, f"unknown attribute {name!r}{hint}", str(text), ", ".join(known), attribute=name)
    for attribute in form.attributes:
        if attribute.required and element.get(attribute.name) is None:
            reading.add(element, f"attribute {attribute.name!r} is missing", allowed=attribute.value.allowed)


def _read_attribute(
    attribute: Attribute, element: etree._Element, text: str, values: dict[str, object], reading: ScenarioReading
) -> None:
    value = attribute.value_for(reading.model)
    if reading.model not in attribute.models:
        reading.add(
            element, f"{attribute.name!r} means nothing in a {reading.model} scenario", text.strip(),
            f'model="{one_of(attribute.models)}"', attribute=attribute.name,
        )  # fmt: skip
        return
    try:
        values[attribute.field] = value.parse(text)
    except InvalidInput:
        reading.add(
            element, f"{attribute.name} is {text.strip()!r}", text.strip(), value.allowed, attribute=attribute.name
        )


def _read_children(form: Form, element: etree._Element, values: dict[str, object], reading: ScenarioReading) -> None:
    collected: dict[str, list[tuple[etree._Element, Any]]] = {}
    columns: list[etree._Element] = []
    known = [each.element for child in form.children for each in child.forms] + list(form.foreign)
    if form.columns:
        known.append(form.columns.element)
    if element.text and element.text.strip():
        reading.add(element, "text is found where only elements are allowed", element.text)
    for inner in elements_of(element):
        if inner.tail and inner.tail.strip():
            reading.add(element, "text is found where only elements are allowed", inner.tail)
        tag = str(inner.tag)
        if form.columns and tag == form.columns.element:
            columns.append(inner)
            continue
        match = form.child(tag)
        if match is not None:
            child, child_form = match
            collected.setdefault(child.field, []).append((inner, _read_child(child_form, inner, reading)))
        elif tag not in form.foreign:
            hint = semp_hint(tag) or _hint(tag, known)
            reading.add(inner, f"unknown element <{tag}> in <{element.tag}>{hint}", allowed=_tags(known))
    for child in form.children:
        _collect(child, element, collected.get(child.field, []), values, reading)
    if form.columns:
        _read_columns(form.columns, element, columns, values, reading)


def _read_child(form: Form, element: etree._Element, reading: ScenarioReading) -> Any:
    if form is PROFILE:
        source = reading.profile_of(element)
        return None if source is None else build(form, source, reading)
    if form in (WORKLOAD, REPLAY):
        service = reading.service_of(element)
        return build(form, element, reading, {} if service is None else {"service": service})
    if form is not QUEUE:
        return build(form, element, reading)
    text = element.get("name")
    names = queue_name(reading.model)
    if text is None:
        reading.add(element, "attribute 'name' is missing", allowed=names.allowed)
        return None
    try:
        name = names.parse(text)
    except InvalidInput:
        reading.add(element, f"name is {text!r}", text, names.allowed, attribute="name")
        return None
    assert isinstance(name, Queue)
    if reading.model is Model.TIBCO and element.get("max-depth") is None:
        reading.add(element, "attribute 'max-depth' is missing: the broker has no public default", allowed=_DEPTH)
    defaults = default_queue_limits()[name]
    given = {each.name: getattr(defaults, each.name) for each in dataclasses.fields(defaults)}
    if reading.model is Model.TIBCO:
        given["min_msg_burst"] = TIBCO_MIN_BURST_MESSAGES
    return name, build(form, element, reading, given)


def _collect(
    child: Child,
    element: etree._Element,
    found: Sequence[tuple[etree._Element, Any]],
    values: dict[str, object],
    reading: ScenarioReading,
) -> None:
    if child.mapping:
        mapping: dict[Any, Any] = {}
        for inner, pair in found:
            if pair is None:
                continue
            if pair[0] in mapping:
                reading.add(inner, f"a second <{inner.tag}> for {pair[0]}", pair[0], f"one <{inner.tag}> for each name")
            mapping[pair[0]] = pair[1]
        # A TIBCO profile has one queue, and no default for it.
        values[child.field] = mapping if reading.model is Model.TIBCO else default_queue_limits() | mapping
    elif child.many:
        if found:
            _check_keys(child.forms[0], found, reading)
            values[child.field] = tuple(value for _, value in found if value is not None)
        elif child.required:
            reading.add(element, f"<{element.tag}> has no {_forms(child)}", allowed=f"at least one {_forms(child)}")
    elif found:
        for inner, _ in found[1:]:
            reading.add(inner, f"a second <{inner.tag}> in <{element.tag}>", allowed=f"one of {_forms(child)}")
        if found[0][1] is not None:
            values[child.field] = found[0][1]
    elif child.required:
        reading.add(element, f"<{element.tag}> has none of {_forms(child)}", allowed=f"one of {_forms(child)}")


def _check_keys(form: Form, found: Sequence[tuple[etree._Element, Any]], reading: ScenarioReading) -> None:
    if form.key != "name":
        return
    seen: dict[str, etree._Element] = {}
    for inner, _ in found:
        name = inner.get("name")
        if name is None:
            continue
        if name in seen:
            reading.add(
                inner, f"a second <{inner.tag}> named {name!r} (the first is in line {seen[name].sourceline})", name,
                f"a name for each <{inner.tag}>", attribute="name",
            )  # fmt: skip
        seen.setdefault(name, inner)


def _read_columns(
    columns: Columns,
    element: etree._Element,
    rows: Sequence[etree._Element],
    values: dict[str, object],
    reading: ScenarioReading,
) -> None:
    form = Form(columns.element, object, columns.attributes)
    read: list[dict[str, object]] = []
    for row in rows:
        one: dict[str, object] = {}
        _read_attributes(form, row, one, reading)
        for inner in elements_of(row):
            reading.add(inner, f"unknown element <{inner.tag}> in <{row.tag}>", allowed="nothing")
        read.append(one)
    if not rows:
        reading.add(element, f"<{element.tag}> has no <{columns.element}>", allowed=f"at least one <{columns.element}>")
        return
    for attribute in columns.attributes:
        if all(attribute.field in one for one in read):
            values[attribute.field] = tuple(one[attribute.field] for one in read)


def _class_of_service(element: etree._Element, reading: ScenarioReading) -> dict[str, object]:
    """Return the queue that `delivery` and `cos` select, for an element that does not name one [SOL-QUEUES].

    A direct message of COS 1, 2, 3 goes to D-1, D-2, D-3. A guaranteed one goes to G-1 and its COS is its discard
    eligibility: 1 is low, 2 is treated as low, 3 is high.
    """
    delivery, cos = element.get("delivery"), element.get("cos")
    if delivery is None and cos is None:
        return {}
    ok = True
    if reading.model not in SOLACE:
        for taken in ("delivery", "cos"):
            if element.get(taken) is not None:
                reading.add(
                    element, f"{taken!r} means nothing in a {reading.model} scenario", str(element.get(taken)),
                    'model="solace"', attribute=taken,
                )  # fmt: skip
        return {}
    if delivery not in {None, "direct", "guaranteed"}:
        reading.add(
            element, f"delivery is {delivery!r}", str(delivery), "one of direct, guaranteed", attribute="delivery"
        )
        ok = False
    if cos not in {None, *_COS_QUEUES}:
        reading.add(element, f"cos is {cos!r}", str(cos), "one of 1, 2, 3", attribute="cos")
        ok = False
    for taken in ("queue", "discard-eligible"):
        if element.get(taken) is not None:
            reading.add(
                element, f"{taken!r} is given beside 'delivery' or 'cos'", str(element.get(taken)),
                "either a queue, or a delivery mode and a class of service", attribute=taken,
            )  # fmt: skip
            ok = False
    if not ok:
        return {}
    if delivery == "guaranteed":
        return {"queue": Queue.G_1, "discard_eligible": (cos or "1") != "3"}
    return {"queue": _COS_QUEUES[cos or "1"]}


def one_of(models: frozenset[Model]) -> str:
    """Return the names of models, joined by "or"."""
    return " or ".join(sorted(models))


def semp_hint(name: str) -> str:
    """Return a hint that names the scenario setting of a SEMP attribute, or the new name of a renamed setting.

    Any other name gives an empty text.
    """
    if name in _RENAMED:
        return _RENAMED[name]
    place = SEMP_PLACES.get(name)
    if place is None:
        near = difflib.get_close_matches(name, SEMP_PLACES, n=1, cutoff=0.8) if name[:1].islower() else []
        place = SEMP_PLACES[near[0]] if near and any(letter.isupper() for letter in name) else None
    return f": in a scenario that is {place}" if place else ""


def elsewhere_hint(form: Form, name: str) -> str:
    """Return a hint that names the element which has this attribute instead; empty if no element is known."""
    return f": {form.elsewhere[name]}" if name in form.elsewhere else ""


def _hint(name: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def _tags(names: Sequence[str]) -> str:
    return ", ".join(f"<{name}>" for name in names) or "no element"


def _forms(child: Child) -> str:
    return _tags([each.element for each in child.forms])
