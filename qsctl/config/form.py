"""The building blocks of settings tables: rows for single settings, and elements that contain rows.

A table is an `Element`: a tag, the dataclass that it makes, and its rows. The reader, the writers, the options of
`create-queue` and the test against the XSD walk the same rows; see `tables`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields
from enum import StrEnum
from functools import cache
from typing import Any, Final, TypeAlias

from qsctl.declared.values import Value


class Shape(StrEnum):
    """The form in which a setting is written."""

    ELEMENT = "element"
    """`<tag>text</tag>`"""
    ATTRIBUTE = "attribute"
    """`tag="text"`"""
    DURATION = "duration"
    """`<tag><sec/><nanosec/></tag>`"""
    HELD_DURATION = "held duration"
    """`<tag><duration><sec/><nanosec/></duration></tag>`"""
    PROPERTY = "property"
    """`<property><value><element><name>tag</name><value>text</value></element></value></property>`"""


OF_THE_FIELD: Final = object()
"""A setting's default is that of its dataclass's field."""


@dataclass(frozen=True, slots=True)
class Option:
    """The option of `create-queue` that sets a setting; its help is the setting's unless it has its own."""

    name: str
    panel: str | None = None
    help: str = ""
    metavar: str | None = None
    default: str = ""
    """The default in words, where the setting's own value is not clear."""
    given: object = None
    """Value of the bare option; None: it needs a value."""
    words: Mapping[str, object] = field(default_factory=dict)
    """Meanings of the words that it accepts."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: where it is written, the field that it sets, its kind and range, and what it is when not given."""

    tag: str
    field: str
    value: Value
    section: str
    """The section of [QS] that states the default."""
    help: str
    shape: Shape = Shape.ELEMENT
    default: Any = OF_THE_FIELD
    when_present: tuple[object, str] | None = None
    """The default, and where it is stated, once any element that holds the setting is there."""
    nearest_only: bool = False
    """The setting itself is not inherited."""
    also_in: str = ""
    """A child element that may hold it instead."""
    option: Option | None = None
    replay: str = ""
    """The attribute of a replayed queue that varies it, see `qsctl.sim.scenario.forms.replay`; empty: none does."""


@dataclass(frozen=True, slots=True)
class QosElements:
    """DDS QoS elements: the field `qos` of the dataclass around, canonical XML by tag, for a transport to read."""

    tags: tuple[str, ...]


class InheritedOrigin(StrEnum):
    """The element around a queue that a value is inherited from."""

    SESSION = "session"
    SERVICE = "service"


@dataclass(frozen=True, slots=True)
class Inherit:
    """An element further out that gives what the own one leaves out."""

    origin: InheritedOrigin
    path: str


@dataclass(frozen=True, slots=True)
class Element:
    """An element and its contents.

    It makes the dataclass `makes` for `field` of the dataclass around it; without one, its rows set fields of the
    dataclass around it, and without a tag they belong to the element around it.
    """

    tag: str
    rows: tuple[Row, ...]
    makes: Callable[..., Any] | None = None
    field: str = ""
    """With dots where the dataclass holds it further in."""
    inherits: tuple[Inherit, ...] = ()
    """Nearest first."""
    whole: bool = False
    """The nearest element counts alone, instead of each of its settings."""
    switch: bool = False
    """Being present means something by itself: without it the field keeps its default."""


@dataclass(frozen=True, slots=True)
class Repeated:
    """A tuple of elements, of one form or of several; they are inside `inside` where that is given."""

    field: str
    forms: tuple[Element, ...]
    inside: str = ""


Row: TypeAlias = Setting | QosElements | Element | Repeated


@cache
def defaults_of(makes: Callable[..., Any]) -> Mapping[str, Any]:
    """Return the default of each field of a dataclass; an empty text where a field has none."""
    found: dict[str, Any] = {}
    for each in fields(makes):  # type: ignore[arg-type]
        default = each.default if each.default_factory is MISSING else each.default_factory()
        found[each.name] = "" if default is MISSING else default
    return found


def default_of(setting: Setting, makes: Callable[..., Any] | None) -> Any:
    """Return what a setting is when nothing gives it."""
    if setting.default is not OF_THE_FIELD or makes is None:
        return setting.default
    return defaults_of(makes)[setting.field]


@dataclass(frozen=True, slots=True)
class SettingPlace:
    """A setting with its path from the table's element and the dataclass that it is a field of."""

    path: str
    setting: Setting
    makes: Callable[..., Any] | None
    inherits: tuple[Inherit, ...]
    field: str
    """The field with those that hold it, in the dataclass of the table's element, with dots."""

    @property
    def default(self) -> Any:
        """The value when it is omitted."""
        return default_of(self.setting, self.makes)


def settings_in(form: Element, path: str = "") -> Iterator[SettingPlace]:
    """Yield each setting under an element, tables inside included, with its path: tags, `@name`, `property/NAME`."""
    yield from _settings_in(form.rows, path, form.makes, form.inherits, "")


def _settings_in(
    rows: tuple[Row, ...], path: str, makes: Callable[..., Any] | None, inherits: tuple[Inherit, ...], holder: str
) -> Iterator[SettingPlace]:
    for row in rows:
        match row:
            case Setting():
                step = f"@{row.tag}" if row.shape is Shape.ATTRIBUTE else row.tag
                step = f"property/{step}" if row.shape is Shape.PROPERTY else step
                yield SettingPlace(
                    f"{path}{step}", row, makes, () if row.nearest_only else inherits, f"{holder}{row.field}"
                )
            case Element():
                further = tuple(Inherit(each.origin, f"{each.path}/{row.tag}") for each in inherits) + row.inherits
                inner = f"{path}{row.tag}/" if row.tag else path
                held = f"{holder}{row.field}." if row.makes else holder
                yield from _settings_in(row.rows, inner, row.makes or makes, further if row.tag else inherits, held)
            case Repeated():
                inside = f"{path}{row.inside}/" if row.inside else path
                for form in row.forms:
                    yield from settings_in(form, f"{inside}{form.tag}/")
            case QosElements():
                pass
