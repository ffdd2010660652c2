"""The page of a service's settings, from the tables that the readers, writers and options of `create-queue` use."""

from __future__ import annotations

from itertools import groupby

from qsctl.cli.help.reference.markdown import code, table, text_in_markdown
from qsctl.config.form import SettingPlace, Shape, settings_in
from qsctl.config.tables.service import SERVICE

_HOW = """\
A heading is the path of an element below `<queuing_service>`; `@name` is an attribute, `property/NAME` an element
of a `<property>`. Sections and tables are those of the *Queuing Service User's Manual*, version 5.3.0, in which the
default is stated. A setting that may be *inherited* is looked for further out, in the order given. `qsctl render
FILE --origins` shows where each value of a file comes from, `schemas/rti_queuing_service.xsd` completes the
elements in an editor.

Durations are written as `<sec>` and `<nanosec>` in a file, and as in `250ms`, `1.5s` or `1min30s` on the command
line. QoS elements (`datareader_qos`, `datawriter_qos`, …) are those of DDS and stand beside the settings."""


def page() -> str:
    """Return a table of settings for each element."""
    parts = [_HOW]
    for element, places in groupby(settings_in(SERVICE), key=_element):
        parts.append(f"## {element or 'queuing_service'}")
        parts.append(table(("setting", "values", "default", "section", "what it is"), map(_row, places)))
    return "\n\n".join(parts)


def _element(place: SettingPlace) -> str:
    inner = place.path.removesuffix(f"property/{place.setting.tag}") if _is_property(place) else place.path
    return inner.rstrip("/") if _is_property(place) else inner.rpartition("/")[0]


def _is_property(place: SettingPlace) -> bool:
    return place.setting.shape is Shape.PROPERTY


def _row(place: SettingPlace) -> tuple[str, ...]:
    setting = place.setting
    name = place.path.removeprefix(_element(place)).lstrip("/")
    option = f" Option: `{setting.option.name}`." if setting.option else ""
    further_out = ", then ".join(f"`{each.path}` of the {each.origin}" for each in place.inherits)
    inherited = f" Inherited from {further_out}." if further_out else ""
    meaning = f"{text_in_markdown(setting.help)}{inherited}{option}"
    return code(name), text_in_markdown(setting.value.allowed), _default(place), setting.section, meaning


def _default(place: SettingPlace) -> str:
    default, when_present = place.default, place.setting.when_present
    written = "" if default is None or default == "" else code(place.setting.value.write(default))
    if when_present is None:
        return written
    held = code(place.setting.value.write(when_present[0]))
    return f"{written or 'none'}; {held} where its element is given"
