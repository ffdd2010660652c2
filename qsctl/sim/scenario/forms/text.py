"""The canonical XML text of a scenario, after variables, references and overrides were applied.

Values equal to their default are omitted, except those that identify the scenario itself. Reading the text back gives
the same scenario; a run folder keeps it as `scenario.xml`.
"""

from __future__ import annotations

import dataclasses
import hashlib
from html import escape
from pathlib import Path
from typing import Any, Final

import msgspec

from qsctl.eventlog.location import location
from qsctl.eventlog.run_folder import SERVICE_FILE, read_run_info
from qsctl.sim.scenario.forms.elements import QUEUE, SCENARIO, TRACE, WORKLOAD, queue_name
from qsctl.sim.scenario.forms.form import Attribute, Child, Form, default_at, value_at
from qsctl.sim.scenario.forms.replay import ANOTHER_RECORDING, REPLAY, REPLAYED_QUEUE
from qsctl.sim.scenario.parts.work_time import WorkKind, WorkTime, write_work
from qsctl.sim.scenario.scenario import QUEUE_ORDER, Model, Scenario, default_queue_limits

_INDENT: Final = "  "


def scenario_text(scenario: Scenario) -> str:
    """Return the scenario as XML. Its `<service>` refers to a file `service.json` in the same folder."""
    return _text(scenario, portable=False)


def scenario_digest(scenario: Scenario) -> str:
    """Return sixteen hexadecimal digits that are the same on every machine for the same scenario and seed.

    Traces and schedules enter the digest by their content, not by their path; the amount of logging and the number of
    repetitions do not enter it.
    """
    plain = dataclasses.replace(scenario, log_level="messages", replications=1, description="")
    if plain.world is not None and plain.world.schedule:
        lines = Path(plain.world.schedule).read_bytes()
        content = hashlib.blake2b(lines, digest_size=8).hexdigest()
        plain = dataclasses.replace(plain, world=dataclasses.replace(plain.world, schedule=content))
    digest = hashlib.blake2b(_text(plain, portable=True).encode(), digest_size=8)
    if scenario.service is not None:
        digest.update(msgspec.json.encode(scenario.service, order="deterministic"))
    return digest.hexdigest()


def _text(scenario: Scenario, *, portable: bool) -> str:
    lines = ['<?xml version="1.0" encoding="UTF-8"?>']
    _ScenarioWriter(scenario.model, portable).write(SCENARIO, scenario, {}, lines, 0)
    return "\n".join(lines) + "\n"


@dataclasses.dataclass(frozen=True, slots=True)
class _ScenarioWriter:
    """A writer of the scenarios of one model; with `portable`, traces are written by content instead of by path."""

    model: Model
    portable: bool

    def write(self, form: Form, value: Any, extra: dict[str, str], lines: list[str], depth: int) -> None:
        """Append one object to `lines` as an element."""
        attributes = dict(extra)
        for attribute in form.attributes:
            text = self._attribute_text(form, value, attribute)
            if text is not None:
                attributes[attribute.name] = text
        inner: list[str] = []
        if form is SCENARIO and value.description:
            inner.append(f"{_INDENT * (depth + 1)}<description>{escape(value.description, quote=False)}</description>")
        if form in (WORKLOAD, REPLAY):
            inner.append(f'{_INDENT * (depth + 1)}<service file="{SERVICE_FILE}"/>')
        for child in form.children:
            self._write_child(child, value, inner, depth + 1)
        if form.columns:
            for row in zip(*(getattr(value, each.field) for each in form.columns.attributes), strict=True):
                written = {
                    each.name: each.value.write(cell) for each, cell in zip(form.columns.attributes, row, strict=True)
                }
                inner.append(_tag(form.columns.element, written, depth + 1, closed=True))
        if inner:
            lines.append(_tag(form.element, attributes, depth, closed=False))
            lines.extend(inner)
            lines.append(f"{_INDENT * depth}</{form.element}>")
        else:
            lines.append(_tag(form.element, attributes, depth, closed=True))

    def _attribute_text(self, form: Form, value: Any, attribute: Attribute) -> str | None:
        found = value_at(value, attribute.field)
        if form is TRACE and self.portable:
            return _digest_of(found)
        if self.portable and isinstance(found, WorkTime) and found.kind is WorkKind.EMPIRICAL:
            return write_work(dataclasses.replace(found, path=_digest_of(found.path)))
        if form in (REPLAY, ANOTHER_RECORDING) and self.portable and attribute.field == "recording":
            return read_run_info(location(found)).fingerprint
        default = default_at(form.type, attribute.field)
        if self.model not in attribute.models:
            return None
        if not attribute.required and form not in (QUEUE, REPLAYED_QUEUE) and found == default:
            return None
        return attribute.value_for(self.model).write(found)

    def _write_child(self, child: Child, value: Any, lines: list[str], depth: int) -> None:
        found = getattr(value, child.field)
        if child.mapping:
            defaults = {} if self.model is Model.TIBCO else default_queue_limits()
            for name in QUEUE_ORDER:
                if name in found and found[name] != defaults.get(name):
                    named = {"name": queue_name(self.model).write(name)}
                    self.write(child.forms[0], found[name], named, lines, depth)
        elif child.many:
            for each in found:
                self.write(child.forms[0], each, {}, lines, depth)
        elif found is not None:
            form = next(each for each in child.forms if type(found) is each.type)
            default = next(each.default for each in dataclasses.fields(type(value)) if each.name == child.field)
            if found != default:
                self.write(form, found, {}, lines, depth)


def _digest_of(path: str) -> str:
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "blake2b").hexdigest()


def _tag(element: str, attributes: dict[str, str], depth: int, *, closed: bool) -> str:
    written = "".join(f' {name}="{escape(text)}"' for name, text in attributes.items())
    return f"{_INDENT * depth}<{element}{written}{'/' if closed else ''}>"
