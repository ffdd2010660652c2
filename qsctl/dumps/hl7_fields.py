"""Conditions on the fields of HL7 v2 messages, as in `PID-3=4711`; the package hl7 reads the fields.

Decides: what a condition means. It holds where any repetition of the field, in any segment of that name, fits. Without
a component the value is compared with the whole repetition and with its first component, for people write `PID-3=4711`
and mean `4711^^^WARD`. Fields are numbered as HL7 numbers them: MSH-1 is the field separator.

Only the lines of the segment that is asked for are given to the package, and none with more separators than
`MOST_SEPARATORS`: it makes an object of each.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum, StrEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from qsctl.errors import Unavailable, UsageError
from qsctl.profiles.listings.wildcard import matches

if TYPE_CHECKING:
    from collections.abc import Sequence

_CONDITION: Final = re.compile(
    r"\s*([A-Z][A-Z0-9]{2})[-.]([1-9][0-9]{0,2})(?:\.([1-9][0-9]{0,2}))?(?:\.([1-9][0-9]{0,2}))?\s*(!=|=|~)(.*)",
    re.DOTALL,
)
_FRAME: Final = b"\x0b\x1c \t\r\n"
"""The octets around a message on its connection."""
_SEPARATORS: Final = re.compile(r"[!-/:-@\[-`{-~]{5}")
"""Printable characters of ASCII that are neither letters nor digits: with others the package fails."""
MOST_SEPARATORS: Final = 100_000
_PLAIN: Final = re.compile(r"[A-Za-z0-9 .,:/_-]+")
"""A value that is in the message as it is: no separator, no wildcard, nothing that may be escaped."""


class FieldRelation(StrEnum):
    """The relation between a field's value and the value of the condition."""

    EQUAL = "="
    DIFFERENT = "!="
    CONTAINS = "~"


class FieldCondition(NamedTuple):
    """One condition."""

    text: str
    segment: str
    field: int
    component: int | None
    subcomponent: int | None
    relation: FieldRelation
    value: str
    """With `?` and `*` as wildcards; empty: the field is empty or absent."""


class FieldMatch(Enum):
    """A match of a condition in the data of a message."""

    HOLDS = "holds"
    DIFFERS = "differs"
    NOT_HL7 = "not HL7"
    """The data is not an HL7 v2 message, or one of which nothing can be read."""


def parse_condition(text: str) -> FieldCondition:
    """Read `PID-3=4711`, `PID-3.4=WARD`, `OBX-5~positive` or `PV1-2!=I`.

    Raises:
        UsageError: it is not such a condition.
    """
    found = _CONDITION.fullmatch(text)
    if found is None:
        raise UsageError(
            f"--hl7 {text!r} is not a condition on a field",
            remedy="Write segment, field and value, as in PID-3=4711, PID-5.1=Doe*, OBX-5~positive or PV1-2!=I.",
        )
    segment, field, component, subcomponent, relation, value = found.groups()
    return FieldCondition(
        text, segment, int(field), int(component) if component else None, int(subcomponent) if subcomponent else None,
        FieldRelation(relation), value,
    )  # fmt: skip


def check_reader() -> None:
    """Check that the package that reads HL7 is installed.

    Raises:
        Unavailable: the package is not installed.
    """
    try:
        import hl7  # noqa: F401
    except ImportError:
        raise Unavailable("--hl7 needs the package hl7", remedy="pip install 'qsctl[hl7]'") from None


def match_field(data: bytes, condition: FieldCondition) -> FieldMatch:
    """Return whether a condition holds for the data of a message."""
    lines = _lines_of(data, condition.segment)
    if lines is None:
        return FieldMatch.NOT_HL7
    head, chosen = lines
    if _cannot_fit(chosen, condition):
        return FieldMatch.DIFFERS
    try:
        values = [value for line in chosen for value in _values(head, line, condition)]
    except _Unreadable:
        return FieldMatch.NOT_HL7
    return FieldMatch.HOLDS if _holds(values, condition) else FieldMatch.DIFFERS


class _Unreadable(Exception):
    """A segment that the package cannot read."""


def _lines_of(data: bytes, segment: str) -> tuple[str, list[str]] | None:
    """Return the first line, and those of a segment; None: it is not an HL7 message."""
    octets = data.strip(_FRAME)
    if not octets.startswith(b"MSH"):
        return None
    try:
        text = octets.decode("utf-8")
    except UnicodeDecodeError:
        text = octets.decode("latin-1")
    head, *others = re.split(r"[\r\n]+", text)
    if len(head) < 8 or len({*head[3:8]}) < 5 or not _SEPARATORS.fullmatch(head, 3, 8):
        # MSH-1 and the four characters of MSH-2 are what separates everything else.
        return None
    return head, [line for line in ([head] if segment == "MSH" else others) if line.startswith(segment)]


def _cannot_fit(lines: Sequence[str], condition: FieldCondition) -> bool:
    """Return whether the lines do not contain the value at all, so that parsing them is not necessary."""
    if condition.relation is FieldRelation.DIFFERENT or not _PLAIN.fullmatch(condition.value):
        return False
    return not any(condition.value in line or "\\" in line[8:] for line in lines)


def _values(head: str, line: str, condition: FieldCondition) -> Iterator[str]:
    """Yield the value to compare with a condition, for each repetition of the field in a line."""
    import hl7

    if sum(map(line.count, head[3:8])) > MOST_SEPARATORS:
        raise _Unreadable
    try:
        message = hl7.parse(head if condition.segment == "MSH" else f"{head[:8]}\r{line}")
        segment = message[0 if condition.segment == "MSH" else 1]
        if str(segment[0]) != condition.segment or condition.field >= len(segment):
            return
        field = segment[condition.field]
        if condition.segment == "MSH" and condition.field <= 2:
            yield str(field)
            return
        for repetition in _parts(field, hl7.Field):
            for value in _of_repetition(repetition, condition, hl7):
                yield value if head[6] not in value else unescaped(value, head)
    except (hl7.HL7Exception, LookupError, ValueError, TypeError, AttributeError, AssertionError, RecursionError):
        raise _Unreadable from None


def unescaped(value: str, head: str) -> str:
    """Return a value with its escapes replaced: separators, and octets in hexadecimal; all others stay as they are.

    The package warns of those that it does not know on standard error, with the data in the warning.

    Args:
        value: of a field.
        head: the first line of the message, which defines separators and the escape character.
    """
    escape = re.escape(head[6])
    separators = {"F": head[3], "S": head[4], "R": head[5], "E": head[6], "T": head[7]}

    def plain(found: re.Match[str]) -> str:
        if found[2]:
            return bytes.fromhex(found[2]).decode("latin-1")
        return separators[found[1]]

    return re.sub(rf"{escape}(?:([FSRET])|X((?:[0-9A-Fa-f]{{2}})+)){escape}", plain, value)


def _of_repetition(repetition: Any, condition: FieldCondition, hl7: Any) -> Iterator[str]:
    components = _parts(repetition, hl7.Repetition)
    if condition.component is None:
        yield str(repetition)
        yield str(components[0])
        return
    if condition.component > len(components):
        return
    component = components[condition.component - 1]
    if condition.subcomponent is None:
        yield str(component)
        return
    subcomponents = _parts(component, hl7.Component)
    if condition.subcomponent <= len(subcomponents):
        yield str(subcomponents[condition.subcomponent - 1])


def _parts(container: Any, kind: Any) -> list[Any]:
    """Return what is in a container; the package has plain text in place of one that has a single part."""
    return list(container) or [""] if isinstance(container, kind) else [container]


def _holds(values: Sequence[str], condition: FieldCondition) -> bool:
    if condition.value == "":
        is_empty = not any(values)
        return is_empty is (condition.relation is not FieldRelation.DIFFERENT)
    pattern = f"*{condition.value}*" if condition.relation is FieldRelation.CONTAINS else condition.value
    fits = any(matches(pattern, value) for value in values)
    return fits is not (condition.relation is FieldRelation.DIFFERENT)
