"""The place of each part of a scenario in its file, kept beside it: overrides change values, but not places.

A part is identified by its path through the scenario (`groups`, 2, `pauses`, 0), which stays the same when a copy is
made with other values. A part that the file does not state, as a default, is placed where the part around it is.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, TypeAlias

from qsctl.declared.problems import Problem, Severity, file_of, line_of, path_of, shown

if TYPE_CHECKING:
    from lxml import etree

Way: TypeAlias = tuple[str | int, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Breach:
    """A violation of a rule; `owner` is the part of the scenario that violates it."""

    owner: object
    message: str
    found: str = ""
    allowed: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class ElementPlace:
    """An element of a scenario file: its file, path and line."""

    file: str
    line: int
    path: str


@dataclasses.dataclass(frozen=True, slots=True)
class Places:
    """The places of a scenario's parts in its file. `changes`: the overrides applied since, as `PATH=VALUE`."""

    by_way: Mapping[Way, ElementPlace]
    changes: tuple[str, ...] = ()

    def of(self, way: Way) -> ElementPlace | None:
        """Return the place of a part, or else of the nearest part around it that has one."""
        for length in range(len(way), -1, -1):
            if way[:length] in self.by_way:
                return self.by_way[way[:length]]
        return None


def parts(value: object, way: Way = ()) -> Iterator[tuple[Way, object]]:
    """Yield every dataclass within a value, the value first, each with its path of fields and indices."""
    if not dataclasses.is_dataclass(value) or isinstance(value, type | Places):
        return
    yield way, value
    for field in dataclasses.fields(value):
        inner = getattr(value, field.name)
        if isinstance(inner, tuple):
            for index, each in enumerate(inner):
                yield from parts(each, (*way, field.name, index))
        elif isinstance(inner, dict):
            for key, each in inner.items():
                yield from parts(each, (*way, field.name, str(key)))
        else:
            yield from parts(inner, (*way, field.name))


def places_of(scenario: object, element_of: Callable[[object], etree._Element | None]) -> Places:
    """Return the places of all parts of a scenario that was just read.

    Args:
        scenario: the scenario.
        element_of: returns the element that an object was made from, None for an object not in the file.
    """
    found: dict[Way, ElementPlace] = {}
    for way, part in parts(scenario):
        element = element_of(part)
        if element is not None:
            found[way] = ElementPlace(file_of(element), line_of(element), path_of(element))
    return Places(found)


def place_of(scenario: object, owner: object, places: Places | None) -> ElementPlace | None:
    """Return the place of the part `owner`, in a scenario or a changed copy of it."""
    if places is None:
        return None
    way = next((way for way, part in parts(scenario) if part is owner), ())
    return places.of(way)


def problem_in(place: ElementPlace, places: Places, message: str, found: str = "", allowed: str = "") -> Problem:
    """Return a problem with a part of a scenario; its message names the overrides that were applied."""
    set_since = f"With {shown(', '.join(places.changes))} set." if places.changes else ""
    return Problem(Severity.ERROR, place.file, place.line, place.path, message, shown(found), allowed, set_since)
