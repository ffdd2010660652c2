"""The results of `qsctl what-if`: the answer in a sentence, the simulated values, and the command for more."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from qsctl.cli.output.results import Block, Column, Plain, Result, Row, TableBlock, TextBlock
from qsctl.cli.simulation.results.durations import short_duration
from qsctl.errors import ExitStatus
from qsctl.sim.brokers.settings import round_duration

if TYPE_CHECKING:
    from qsctl.summary.inference.statistics import Interval
    from qsctl.summary.sweeps.what_if import ValuePoint, WhatIfAnswer

_WORDS: Final[Mapping[str, str]] = {
    "duplicates": "work done more than once",
    "parallel_duplicates": "work done twice at the same time",
    "dead": "dead letters",
    "lost": "messages lost",
    "time_to_done_p99": "99 % done within",
    "time_to_done_p50": "half done within",
    "time_to_done_mean": "mean time to done",
    "time_in_queue_p99": "99 % started within",
    "utilization": "consumers busy",
    "backlog_max": "most messages at once",
    "requests": "requests",
}
"""Measures in words."""
_COMPILE_SHOWN_S: Final = 0.5
_EXACT: Final = 1e-4
"""Relative half width below which it is not shown, since every digit of the mean is certain."""
_NOUNS: Final[Mapping[str, str]] = {
    "time_to_done_p99": "a 99th percentile of the time to done",
    "time_in_queue_p99": "a 99th percentile of the time to start",
    "lost": "lost messages",
    "dead": "dead letters",
    "backlog_max": "a backlog",
}
"""Measures as noun phrases; others are shown by their names."""


@dataclass(frozen=True)
class WhatIf(Result):
    """The answer to a question; the exit status is 1 if no value is shown to suffice."""

    file: str
    broker: str
    setting: str
    path: str
    in_force: str
    answer: WhatIfAnswer
    assumed: tuple[str, ...]
    notes: tuple[str, ...]
    horizon_ns: int
    ordered: bool
    more: str
    compile_s: float
    source: str

    field_help: ClassVar[Mapping[str, str]] = {
        "value": "a value of the setting, in the broker's words; of a queue as it is, that",
        "in_force": "whether the queue has this value unless it is varied",
        "chosen": "whether it is the answer: the first value that is shown to be enough",
        "measure": "what is measured",
        "mean": "its mean over the runs",
        "half_width": "mean ± half_width is its interval; of the measure that decides, all hold together",
        "messages": "messages that arrived in a run, on average",
        "sentence": "-o json and yaml: the answer in words",
        "enough": "-o json and yaml: the measure that decides, and what of it is enough",
        "assumed": "-o json and yaml: what was neither given nor listed nor a default",
        "file": "-o json and yaml: the scenario that was written",
        "path": "-o json and yaml: where the scenario has the setting, for --set and --grid",
        "more": "-o json and yaml: the command that shows more",
        "compile_s": "-o json and yaml: seconds that compiling the simulator for this machine took: of a first run",
    }

    @property
    def exit_status(self) -> ExitStatus:
        """Return NO if no value suffices, else DONE."""
        return ExitStatus.DONE if self.answer.chosen is not None or not self.setting else ExitStatus.NO

    def document(self) -> Plain:
        """Return the answer under stable names."""
        return {
            "sentence": self.sentence(),
            "broker": self.broker,
            "setting": self.setting or None,
            "path": self.path or None,
            "in_force": self.in_force or None,
            "chosen": self.answer.chosen.text if self.answer.chosen and self.setting else None,
            "enough": {"measure": self.answer.enough.measure, "is": self.answer.enough.text},
            "replications": self.answer.replications,
            "confidence": self.answer.confidence,
            "horizon_ns": self.horizon_ns,
            "assumed": list(self.assumed),
            "notes": list(self.notes),
            "file": self.file,
            "more": self.more,
            "compile_s": round(self.compile_s, 3),
            "values": list(self.rows()),
        }

    def rows(self) -> Sequence[Row]:
        """Return one row per value and measure."""
        return [
            {
                "value": point.text,
                "in_force": point.text == self.in_force,
                "chosen": bool(self.setting) and point == self.answer.chosen,
                "measure": name,
                "mean": interval.mean,
                "half_width": interval.half_width if math.isfinite(interval.half_width) else None,
                "messages": point.arrived,
            }
            for point in self.answer.points
            for name, interval in point.measures.items()
        ]

    def blocks(self) -> Sequence[Block]:
        """Return the sentence, the values, the assumptions, and the next steps."""
        names = list(dict.fromkeys(name for point in self.answer.points for name in point.measures))
        columns = [
            Column("value", self.setting or "Queue", "right"),
            *(Column(name, _heading(name), "right") for name in names),
            *([Column("note", "")] if self.setting else []),
        ]
        rows: list[Row] = [
            {
                "value": point.text,
                **{name: interval_text(name, each, point.arrived) for name, each in point.measures.items()},
                "note": self._note(point),
            }
            for point in self.answer.points
        ]
        title = (
            f"{self.answer.replications} runs of {round_duration(self.horizon_ns)} each, with the same arrivals; "
            f"± of {100 * self.answer.confidence:g} % confidence"
        )
        assumed = f"Assumed: {', '.join(self.assumed)}." if self.assumed else ""
        return [
            TextBlock(self.sentence(), "good" if self.exit_status is ExitStatus.DONE else "bad"),
            TableBlock(columns, rows, title=title),
            *([TextBlock(assumed, "faint")] if assumed else []),
            *(TextBlock(each, "faint") for each in self.notes),
            *([TextBlock(self._compiled(), "faint")] if self.compile_s >= _COMPILE_SHOWN_S else []),
            TextBlock(f"The scenario is {self.file}. More of it: {self.more}"),
        ]

    def _compiled(self) -> str:
        return f"Compiling the simulator for this machine took {self.compile_s:.0f} s; it is kept for the next time."

    def _note(self, point: ValuePoint) -> str:
        words = [
            *(["enough"] if point == self.answer.chosen else []),
            *([self.source] if point.text == self.in_force else []),
        ]
        return ", ".join(words)

    def sentence(self) -> str:
        """Return the answer in words."""
        if not self.setting:
            (point,) = self.answer.points
            parts = [
                f"{_word(name)} {interval_text(name, each, point.arrived)}" for name, each in point.measures.items()
            ]
            return f"{self.broker}: of {_count(point.arrived)} messages a run, {'; '.join(parts)}."
        measure, enough = self.answer.enough.measure, self.answer.enough.text
        chosen, current = self.answer.chosen, self._current()
        if chosen is None:
            best = self.answer.best
            told = "" if best is None else f"; the lowest is with {best.text}: {self._of(best)}"
            return f"{self.setting}: no value is shown to have {_noun(measure)} {enough}{told}."
        first = "the smallest" if self.ordered else "the first"
        found = f"{self.setting} = {chosen.text} is {first} of {len(self.answer.points)} values with {_noun(measure)} "
        found += f"{enough}: {self._of(chosen)}"
        if current is None:
            return f"{found}."
        if current == chosen:
            return f"{found}; it is {self.source}."
        return f"{found}; with {current.text}, {self.source}, {self._of(current)}."

    def _current(self) -> ValuePoint | None:
        return next((each for each in self.answer.points if each.text == self.in_force), None)

    def _of(self, point: ValuePoint) -> str:
        measure = self.answer.enough.measure
        return interval_text(measure, point.measures[measure], point.arrived)


def interval_text(measure: str, interval: Interval, arrived: float) -> str:
    """Return a mean with its half width and unit; for counted messages with their fraction."""
    from qsctl.summary.sweeps.what_if import counts_messages

    if measure.startswith("time_"):
        return _with_half(short_duration, interval)
    if measure == "utilization":
        return _with_half(lambda value: f"{100 * value:.3g} %", interval)
    text = _with_half(_count, interval)
    if counts_messages(measure) and arrived and interval.mean:
        text += f" ({100 * interval.mean / arrived:.2g} %)"
    return text


def _with_half(text_of: object, interval: Interval) -> str:
    assert callable(text_of)
    mean = text_of(interval.mean)
    is_exact = abs(interval.half_width) <= _EXACT * abs(interval.mean)
    return str(mean) if is_exact else f"{mean} ± {text_of(interval.half_width)}"


def _count(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _noun(measure: str) -> str:
    """Return a measure as a noun phrase."""
    return _NOUNS.get(measure, measure)


def _heading(measure: str) -> str:
    return _word(measure).capitalize()


def _word(measure: str) -> str:
    return _WORDS.get(measure, measure.replace("_", " "))
