"""Alert files in the form that operators of integration engines have, such as default.alrt [CLOVERLEAF].

Decides which alerts can be evaluated on a database or on listings, and their meaning. An alert is a keyed list: VALUE
is the figure, SOURCE its threads, COMP a comparison, WITH the number of sources for which it must hold (-1, our
reading: any), FOR the duration. The words for VALUE are those of the vendor's list of alert types and of `qsctl check
engine`; the vendor's documents contain few of the words that its files have, so that others can be added as
WORD=MEASURE. An alert with an unknown word is reported, and never counted as good.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from qsctl.errors import UsageError

if TYPE_CHECKING:
    from qsctl.netconfig.tcl import TclKeyedList

LARGEST_BYTES: Final = 16 * 1024 * 1024
_FORM: Final = "{ALERT {NAME …} {VALUE …} {SOURCE …} {COMP …}}"
_COMPARISON: Final = re.compile(r"(<=|>=|==|!=|<|>|=)\s*(-?[0-9]{1,15}(?:\.[0-9]{1,9})?)")
_OPERATORS: Final[Mapping[str, Callable[[float, float], bool]]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "=": operator.eq, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
_UNITS_S: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_DURATION: Final = re.compile(r"(?:n?([smhd])[a-z]*[ =]*([0-9]{1,9})|([0-9]{1,9})\s*([smhd])?[a-z]*)", re.IGNORECASE)
_ALWAYS: Final = re.compile(r"[*/\s{}]*")


class AlertMeasure(NamedTuple):
    """The measure that a word for VALUE refers to."""

    measure: str
    """Name of a measure of `qsctl check engine`."""
    states: str | None = None
    per_minute: float = 1.0
    """Factor from the measure's unit to the unit of the alert's limit."""


INBOUND, OUTBOUND = "1-5", "7-17"
VALUES: Final[Mapping[str, AlertMeasure]] = {
    "error count": AlertMeasure("error_messages"),
    "inbound queue depth": AlertMeasure("queue_messages", INBOUND),
    "outbound queue depth": AlertMeasure("queue_messages", OUTBOUND),
    "queue depth": AlertMeasure("queue_messages"),
    "recovery database count": AlertMeasure("recovery_messages"),
    "last receive": AlertMeasure("last_receive_s"),
    "transactions/sec": AlertMeasure("left_per_min", None, 1 / 60),
}
"""Measures by the titles of alert types in the vendor's configurator."""


@dataclass(frozen=True)
class Alert:
    """One alert that can be evaluated."""

    name: str
    line: int
    value: AlertMeasure
    sources: tuple[str, ...]
    """Threads, with wildcards; empty for all."""
    relation: str
    limit: float
    least_sources: int
    """Number of sources for which the comparison must hold."""
    for_s: int

    def holds(self, value: float) -> bool:
        """Return whether a figure satisfies the alert's comparison."""
        return _OPERATORS[self.relation](value * self.value.per_minute, self.limit)

    @property
    def condition(self) -> str:
        """Return the comparison in words."""
        return f"{self.value.measure} {self.relation} {self.limit:g}"


class AlertFile(NamedTuple):
    """The alerts of a file, and descriptions of those that cannot be evaluated, each with the reason."""

    alerts: tuple[Alert, ...]
    left_out: tuple[str, ...]


def parse_words(texts: Sequence[str], measures: Sequence[str]) -> dict[str, AlertMeasure]:
    """Return the measures of words for VALUE that a user adds, as in `opqd=queue_messages`.

    Raises:
        UsageError: one is not of this form.
    """
    found = {}
    for text in texts:
        word, equals, measure = text.partition("=")
        if not equals or not word.strip() or measure not in measures:
            raise UsageError(
                f"--alert-value {text!r} is not a word and a measure",
                remedy=f"Write WORD=MEASURE of {', '.join(measures)}.",
            )
        found[_normal(word)] = AlertMeasure(measure)
    return found


def read_alerts(file: Path, words: Mapping[str, AlertMeasure], measures: Sequence[str]) -> AlertFile:
    """Read a file of alerts.

    Args:
        file: in the form of default.alrt.
        words: further words for VALUE with their measures.
        measures: of `qsctl check engine`, whose names are words as well.

    Raises:
        NotFound: the file does not exist.
        InvalidInput: it is not such a file; names every problem with its line.
    """
    from qsctl.cli.engine.keyed_list_file import KeyedListFile
    from qsctl.netconfig.tcl import TclKeyedList

    source = KeyedListFile(file, LARGEST_BYTES, "Name a file of alerts.")
    known = {**VALUES, **{_normal(each): AlertMeasure(each) for each in measures}, **words}
    alerts: list[Alert] = []
    left_out: list[str] = []
    for word in source.text.words(_behind_prologue(source.content), len(source.content)):
        entry, entries = source.text.list_of(word)
        line = source.text.line_of(word.start)
        if not entries or entry.value(entries[0]).upper() != "ALERT":
            source.problems.add(line, "this is not an alert", source.text.value(word), _FORM)
        else:
            found = _alert(TclKeyedList(entry, entries[1:], line), known, len(alerts) + len(left_out) + 1)
            if isinstance(found, Alert):
                alerts.append(found)
            else:
                left_out.append(found)
        if source.problems.is_full:
            break
    if not alerts and not left_out and not source.problems.errors:
        source.problems.add(0, "there is no alert in it", allowed=_FORM)
    source.check()
    return AlertFile(tuple(alerts), tuple(left_out))


def _behind_prologue(content: str) -> int:
    """Return the offset after a file's prologue, which editors write before the alerts; 0 without one."""
    end = "end_prologue"
    place = content.find(end)
    return place + len(end) if content.lstrip().startswith("prologue") and place >= 0 else 0


def _alert(keyed: TclKeyedList, known: Mapping[str, AlertMeasure], number: int) -> Alert | str:
    """Return an alert, or a description of it with the reason why it cannot be evaluated."""
    name = keyed.value("NAME") or f"alert {number}"
    where = f"line {keyed.line}, {name}"
    word = _normal(keyed.value("VALUE"))
    value = known.get(word)
    if value is None:
        return f"{where}: VALUE {word or '(none)'} is not supported"
    comparison = _COMPARISON.fullmatch(keyed.value("COMP"))
    if comparison is None:
        return f"{where}: COMP {keyed.value('COMP')[:40]!r} is not a comparison with a number"
    for_s = _duration_s(keyed.value("FOR"))
    if for_s is None:
        return f"{where}: FOR {keyed.value('FOR')[:40]!r} is not a duration"
    if not _ALWAYS.fullmatch(keyed.value("WINDOW")):
        return f"{where}: WINDOW {keyed.value('WINDOW')[:40]!r} is not always"
    if keyed.value("MODE").lower() not in {"", "actual"}:
        return f"{where}: MODE {keyed.value('MODE')[:40]!r} is not actual"
    least = re.fullmatch(r"-?[0-9]{1,6}", keyed.value("WITH") or "-1")
    if least is None:
        return f"{where}: WITH {keyed.value('WITH')[:40]!r} is not a number of sources"
    sources = tuple(source for source, _ in keyed.words("SOURCE"))
    is_all = sources in {(), ("*",), ("all",)}
    return Alert(
        name, keyed.line, value, () if is_all else sources, comparison[1], float(comparison[2]),
        max(1, int(least[0])), for_s,
    )  # fmt: skip


def _normal(word: str) -> str:
    return " ".join(word.lower().split())


def _duration_s(text: str) -> int | None:
    """Return the seconds of `once`, `nmin 5`, `5 min` or `300`; None for any other text."""
    text = text.strip()
    if text.lower() in {"", "once"}:
        return 0
    found = _DURATION.fullmatch(text)
    if found is None:
        return None
    count, unit = (found[2], found[1]) if found[1] else (found[3], found[4] or "s")
    return int(count) * _UNITS_S[unit.lower()]
