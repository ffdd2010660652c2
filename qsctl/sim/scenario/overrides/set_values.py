"""`--set path=value`: one value of a scenario, named as its file shows it, replaced in a copy.

A path is the elements from the scenario inwards, the repeated ones with their key in brackets, and an attribute at the
end: `profile[default]/queue[D-1]/max-depth`, `group[slow]/pause[1]/duration`, `horizon`. Shorter is allowed where it is
clear: an element that occurs once needs no key, and one that may occur only once can be left out (`traffic[web]/rate`
for `traffic[web]/poisson/rate`). `[*]` means all of them. Timed changes use the same paths. `engine_paths.py` has the
short paths into an integration engine.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from qsctl.declared.values import Value
from qsctl.errors import InvalidInput, UsageError
from qsctl.sim.scenario.forms.build import elsewhere_hint, semp_hint
from qsctl.sim.scenario.forms.elements import QUEUE, SCENARIO, queue_name
from qsctl.sim.scenario.forms.form import Attribute, Child, Columns, Form, value_at, with_value
from qsctl.sim.scenario.overrides.engine_paths import engine_paths, thread_of, whole_engine_path, with_engine_value
from qsctl.sim.scenario.overrides.short_paths import whole_path
from qsctl.sim.scenario.places import place_of
from qsctl.sim.scenario.scenario import QUEUE_ORDER, Model, Queue, QueueLimits, Scenario, default_queue_limits

_STEP: Final = re.compile(r"([A-Za-z][A-Za-z0-9-]*)(?:\[([^\]]*)\])?(?:/|$)")
EVERY: Final = "*"


@dataclass(frozen=True, slots=True)
class _Step:
    name: str
    key: str | None

    def __str__(self) -> str:
        return self.name if self.key is None else f"{self.name}[{self.key}]"


@dataclass(frozen=True, slots=True)
class _Override:
    path: str
    steps: tuple[_Step, ...]
    text: str
    model: Model


def apply_overrides(scenario: Scenario, values: Mapping[str, str]) -> Scenario:
    """Return a copy of the scenario with each value at its path, in order.

    Parts that no path names stay the same objects.

    Raises:
        UsageError: a path does not exist; the message lists the names that exist where it fails.
        InvalidInput: a value is not of its kind; the message contains the allowed values.
    """
    for given, text in values.items():
        path = whole_path(given)
        try:
            changed = _changed(scenario, path, text)
        except _Unfit as error:
            raise _placed(error, scenario) from None
        assert isinstance(changed, Scenario)
        places = changed.places
        if places is not None:
            places = dataclasses.replace(places, changes=(*places.changes, f"{path}={text}"))
        scenario = dataclasses.replace(changed, places=places)
    return scenario


def _changed(scenario: Scenario, path: str, text: str) -> Any:
    """Return the scenario with the value of one path replaced."""
    if scenario.engine is not None:
        try:
            engine = with_engine_value(scenario.engine, path, text)
        except InvalidInput as error:
            raise _Unfit(error.message, thread_of(scenario.engine, path), remedy=error.remedy) from None
        if engine is not None:
            return dataclasses.replace(scenario, engine=engine)
        path = whole_engine_path(scenario.engine, path)
    return _replaced(SCENARIO, scenario, _Override(path, _parse(path), text, scenario.model), 0)


class _Unfit(InvalidInput):
    """A value that an element cannot have; `owner` is the element's object in the scenario as it was."""

    def __init__(self, message: str, owner: object, *, remedy: str = "") -> None:
        super().__init__(message, remedy=remedy)
        self.owner = owner


def _placed(error: _Unfit, scenario: Scenario) -> InvalidInput:
    """Return the same error with the line of the element that would have changed."""
    place = place_of(scenario, error.owner, scenario.places)
    where = f"{place.file}:{place.line}: " if place is not None else ""
    return InvalidInput(where + error.message, remedy=error.remedy)


def paths_of(scenario: Scenario) -> list[str]:
    """Return every path that can be set on this scenario, for completion and for messages."""
    short = () if scenario.engine is None else engine_paths(scenario.engine)
    return [*(path for path, _, _, _ in settings_of(scenario)), *short]


def _parse(path: str) -> tuple[_Step, ...]:
    steps: list[_Step] = []
    at = 0
    text = path.strip().removeprefix("scenario/").strip("/")
    while at < len(text):
        match = _STEP.match(text, at)
        if not match:
            raise UsageError(
                f"{path!r} is not a path: {text[at:]!r} is not allowed there",
                remedy="Write elements and an attribute, as in profile[default]/queue[D-1]/max-depth.",
            )
        steps.append(_Step(match[1], match[2]))
        at = match.end()
    if not steps:
        raise UsageError(f"{path!r} is an empty path", remedy="Name an attribute, as in horizon.")
    return tuple(steps)


def _replaced(form: Form, value: Any, override: _Override, depth: int) -> Any:
    """Return a part of the scenario with the override applied; `depth` is the number of steps already followed."""
    step = override.steps[depth]
    last = depth == len(override.steps) - 1
    attribute = form.attribute(step.name)
    if last and attribute and step.key is None:
        return _with_attribute(value, attribute, override)
    found = form.child(step.name)
    through = _transparent(form, value, step)
    # A name may be that of an element of another model, and of one inside an element that this model has.
    if found and not last and not (len(through) == 1 and override.model not in found[1].models):
        child, child_form = found
        _known(override, child_form.element, child_form.models, value)
        if child.mapping:
            return _with_mapping(value, child, child_form, override, depth)
        if child.many:
            return _with_one_of_many(value, child, child_form, override, depth)
        return _with_single(value, child, child_form, override, depth)
    if form.columns and step.name == form.columns.element and not last:
        return _with_column(value, form.columns, override, depth)
    if len(through) == 1:
        child, child_form = through[0]
        inner = _replaced(child_form, getattr(value, child.field), override, depth)
        return dataclasses.replace(value, **{child.field: inner})
    raise _lost(form, value, override, depth)


def _transparent(form: Form, value: Any, step: _Step) -> list[tuple[Child, Form]]:
    """Return the non-repeated children that a path may omit before this step."""
    found = []
    for child in form.children:
        if child.many:
            continue
        inner = getattr(value, child.field)
        inner_form = next((each for each in child.forms if type(inner) is each.type), None)
        if inner_form is None:
            continue
        names = {each.name for each in inner_form.attributes}
        names |= {each.element for below in inner_form.children for each in below.forms}
        if inner_form.columns:
            names.add(inner_form.columns.element)
        if step.name in names:
            found.append((child, inner_form))
    return found


def _known(override: _Override, name: str, models: frozenset[Model], owner: object) -> None:
    if override.model not in models:
        raise _Unfit(
            f"{override.path}: {name!r} means nothing in a {override.model} scenario",
            owner,
            remedy=f"It is known in a scenario of model {' or '.join(sorted(models))}.",
        )


def _with_attribute(value: Any, attribute: Attribute, override: _Override) -> Any:
    _known(override, attribute.name, attribute.models, value)
    try:
        parsed = attribute.value_for(override.model).parse(override.text)
    except InvalidInput as error:
        raise _Unfit(f"{override.path}: {error.message}", value) from None
    return with_value(value, attribute.field, parsed)


def _with_single(value: Any, child: Child, form: Form, override: _Override, depth: int) -> Any:
    inner = getattr(value, child.field)
    if inner is None or type(inner) is not form.type:
        raise _lost(None, value, override, depth, found=_element_of(child, inner))
    return dataclasses.replace(value, **{child.field: _replaced(form, inner, override, depth + 1)})


def _with_one_of_many(value: Any, child: Child, form: Form, override: _Override, depth: int) -> Any:
    elements: tuple[Any, ...] = getattr(value, child.field)
    chosen = _chosen(form, elements, override, depth)
    changed = tuple(
        _replaced(form, each, override, depth + 1) if index in chosen else each for index, each in enumerate(elements)
    )
    return dataclasses.replace(value, **{child.field: changed})


def _with_mapping(value: Any, child: Child, form: Form, override: _Override, depth: int) -> Any:
    assert form is QUEUE
    names = queue_name(override.model)
    limits = _all_limits(getattr(value, child.field), override.model)
    step = override.steps[depth]
    if step.key != EVERY:
        try:
            wanted = {names.parse(step.key or "")}
        except InvalidInput:
            raise _not_among([names.write(name) for name in limits], form, override, depth) from None
    else:
        wanted = set(limits)
    changed = {
        name: _replaced(form, each, override, depth + 1) if name in wanted else each for name, each in limits.items()
    }
    return dataclasses.replace(value, **{child.field: changed})


def _all_limits(given: Mapping[Queue, QueueLimits], model: Model) -> Mapping[Queue, QueueLimits]:
    """Return the limits of all queues of a profile, defaults included; of a TIBCO profile only those stated."""
    return given if model is Model.TIBCO else default_queue_limits() | dict(given)


def _with_column(value: Any, columns: Columns, override: _Override, depth: int) -> Any:
    count = len(getattr(value, columns.attributes[0].field))
    numbered = Form(columns.element, type(value), columns.attributes)
    chosen = _chosen(numbered, range(count), override, depth)
    if depth + 1 != len(override.steps) - 1:
        raise _lost(numbered, value, override, depth + 1)
    attribute = numbered.attribute(override.steps[depth + 1].name)
    if attribute is None:
        raise _lost(numbered, value, override, depth + 1)
    old: tuple[Any, ...] = getattr(value, attribute.field)
    try:
        parsed = attribute.value.parse(override.text)
    except InvalidInput as error:
        raise _Unfit(f"{override.path}: {error.message}", value) from None
    new = tuple(parsed if index in chosen else each for index, each in enumerate(old))
    return dataclasses.replace(value, **{attribute.field: new})


def _names(form: Form, elements: Sequence[Any]) -> list[str]:
    """Return the names of elements; an empty list if elements of this form have no name."""
    key = form.attribute(form.key) if form.key else None
    return [] if key is None else [str(getattr(each, key.field)) for each in elements]


def _keys(form: Form, elements: Sequence[Any]) -> list[str]:
    """Return the key of each element: its name, or its number from 1 if it has none or shares it with another."""
    names = _names(form, elements)
    if names and len(set(names)) == len(names):
        return names
    return [str(index + 1) for index in range(len(elements))]


def _chosen(form: Form, elements: Sequence[Any], override: _Override, depth: int) -> set[int]:
    """Return the indices of the elements that a step selects; a name that several share selects all of them."""
    keys = _keys(form, elements)
    step = override.steps[depth]
    if step.key == EVERY and keys:
        return set(range(len(keys)))
    if step.key is None and len(keys) == 1:
        return {0}
    chosen = {index for index, key in enumerate(keys) if key == step.key}
    chosen = chosen or {index for index, name in enumerate(_names(form, elements)) if name == step.key}
    if not chosen:
        raise _not_among(keys, form, override, depth)
    return chosen


def _not_among(keys: Sequence[str], form: Form, override: _Override, depth: int) -> UsageError:
    step = override.steps[depth]
    what = f"has no {step}" if step.key is not None else f"has several {form.element} elements: name one"
    if not keys:
        return UsageError(f"{override.path!r}: {_place(override, depth)} has no {form.element}")
    return UsageError(
        f"{override.path!r}: {_place(override, depth)} {what}",
        remedy="There "
        + ("is " if len(keys) == 1 else "are ")
        + ", ".join(f"{form.element}[{key}]" for key in keys)
        + ".",
    )


def _lost(form: Form | None, value: Any, override: _Override, depth: int, found: str | None = None) -> UsageError:
    step = override.steps[depth]
    if form is None:
        has = f"there is {found} instead" if found else "there is none"
        return UsageError(
            f"{override.path!r}: {_place(override, depth)} has no {step}: {has}",
            remedy="An override changes a value that the scenario has; add the element in the file.",
        )
    names = _names_at(form, value)
    near = difflib.get_close_matches(step.name, [name.partition("[")[0] for name in names], n=1)
    attribute = form.attribute(step.name)
    if attribute is not None:
        message = f"{override.path!r}: {step.name} is an attribute of {_place(override, depth)}; nothing can follow it"
    elif depth == len(override.steps) - 1 and form.child(step.name):
        message = f"{override.path!r}: {step} is an element; name the attribute to set"
        child = form.child(step.name)
        assert child is not None
        names = [f"{step}/{each.name}" for each in child[1].attributes] or names
    else:
        message = f"{override.path!r}: {_place(override, depth)} has no {step}"
        if hint := elsewhere_hint(form, step.name) or semp_hint(step.name):
            message += hint
        elif near:
            message += f"; did you mean {near[0]}?"
    return UsageError(message, remedy=f"There are {', '.join(names)}.")


def _names_at(form: Form, value: Any) -> list[str]:
    """Return the names that a path may continue with: attributes, then elements with their keys."""
    names = [each.name for each in form.attributes]
    for child in form.children:
        inner = getattr(value, child.field)
        if child.mapping:
            names += [f"{child.forms[0].element}[{name}]" for name in QUEUE_ORDER]
        elif child.many:
            names += [f"{child.forms[0].element}[{key}]" for key in _keys(child.forms[0], inner)]
        else:
            names += [each.element for each in child.forms if type(inner) is each.type]
    if form.columns:
        count = len(getattr(value, form.columns.attributes[0].field))
        names += [f"{form.columns.element}[{index + 1}]" for index in range(count)]
    return names


def _element_of(child: Child, inner: Any) -> str | None:
    return next((form.element for form in child.forms if type(inner) is form.type), None)


def _place(override: _Override, depth: int) -> str:
    return "/".join(map(str, override.steps[:depth])) or "the scenario"


def settings_of(scenario: Scenario) -> list[tuple[str, Value, Any, str]]:
    """Return every value that can be set: its path, its kind, the value, and the name of its field.

    The field's name ends with the unit, as in `round_trip_ns`.
    """
    return list(_settings(SCENARIO, scenario, "", scenario.model))


def _settings(form: Form, value: Any, prefix: str, model: Model) -> Iterator[tuple[str, Value, Any, str]]:
    if model not in form.models:
        return
    for each in form.attributes:
        if model in each.models:
            yield prefix + each.name, each.value_for(model), value_at(value, each.field), each.field
    for child in form.children:
        inner = getattr(value, child.field)
        found: list[tuple[Form, str, Any]]
        if child.mapping:
            limits, names = _all_limits(inner, model), queue_name(model)
            found = [(child.forms[0], f"queue[{names.write(name)}]", limits[name]) for name in limits]
        elif child.many:
            one = child.forms[0]
            found = [(one, f"{one.element}[{key}]", each) for key, each in zip(_keys(one, inner), inner, strict=True)]
        else:
            found = [(each, each.element, inner) for each in child.forms if type(inner) is each.type]
        for below, step, each in found:
            yield from _settings(below, each, f"{prefix}{step}/", model)
    if form.columns:
        for index in range(len(getattr(value, form.columns.attributes[0].field))):
            for one_of in form.columns.attributes:
                step = f"{prefix}{form.columns.element}[{index + 1}]/{one_of.name}"
                yield step, one_of.value, getattr(value, one_of.field)[index], one_of.field
