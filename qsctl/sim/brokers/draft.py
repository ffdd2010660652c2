"""The draft of a scenario for a broker's queue: every value with its origin, to be written as XML.

A value is given by the user, listed by the broker's tool, the broker's default, the broker's fixed behaviour, or
assumed. Unknown parts of the load are assumed so that the consumers are busy for 70 % of the time: then a setting makes
a difference, and nothing is overloaded.

Decides: the simulated time: long enough for `MESSAGES` messages, and for many of the longest durations.
"""

from __future__ import annotations

import math
import os
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from html import escape
from pathlib import Path
from typing import Final

from qsctl.errors import UsageError
from qsctl.instant import HOUR_NS, MINUTE_NS, SECOND_NS, Nanoseconds, format_duration, parse_duration
from qsctl.sim.brokers.kinds import BrokerKind
from qsctl.sim.brokers.listed.model import ForeignQueue
from qsctl.sim.brokers.presets import LOAD, preset_of
from qsctl.sim.brokers.settings import BrokerSetting, round_duration
from qsctl.sim.scenario.forms.values import PROBABILITY, RATE, integer
from qsctl.sim.scenario.parts.empirical import read_times
from qsctl.sim.scenario.parts.work_time import WORK, WorkKind, WorkTime

MESSAGES: Final = 15_000
"""Number of messages that arrive in a run."""
LOAD_RATIO: Final = 0.7
"""Of the time for which the consumers are assumed to be busy."""
HORIZONS_NS: Final = tuple(
    unit * number
    for unit, numbers in ((SECOND_NS, (10, 20)), (MINUTE_NS, (1, 2, 5, 10, 20)), (HOUR_NS, (1, 2, 6, 12)),
                          (24 * HOUR_NS, (1, 2, 7, 14, 30)))
    for number in numbers
)  # fmt: skip
_LONGEST_TIMES: Final = 10
"""A horizon is at least this many times as long as the longest duration that matters."""
_COMMENT_WIDTH: Final = 110
_COUNT: Final = integer(1, 10_000)
_SERVERS: Final = integer(1, 1_000)
_NAME: Final = re.compile(r"[^A-Za-z0-9_.:@/\-]")
_ELEMENTS: Final = (
    "publisher", "backlog", "class", "consumer", "visibility", "retry", "limits", "dead-letters", "outage", "price",
)  # fmt: skip
"""Elements of a queue in the order that the schema has them; a queue's own attributes are of `queue`."""
_NAMED: Final = {"publisher": "publishers", "class": "message", "consumer": "consumers"}
"""Names of the elements that a scenario may have several of."""


class ValueFrom(StrEnum):
    """The kinds of origins that a value can have."""

    GIVEN = "given"
    LISTED = "listed"
    DEFAULT = "default"
    WAY = "way"
    ASSUMED = "assumed"


@dataclass(frozen=True, slots=True)
class DraftValue:
    """A value of a scenario by its path, with the user's word for it and the reason for it."""

    path: str
    text: str
    word: str
    origin: ValueFrom
    why: str


@dataclass(frozen=True, slots=True)
class QueueDraft:
    """A scenario of one queue, not yet written."""

    name: str
    broker: BrokerKind
    values: tuple[DraftValue, ...]
    words: Mapping[str, str]
    """Of each setting, the text that the scenario has for it."""
    horizon_ns: Nanoseconds
    warm_up_ns: Nanoseconds
    source: str = ""

    @property
    def by_path(self) -> dict[str, str]:
        """Return the values by their paths in the scenario."""
        return {each.path: each.text for each in self.values}

    def changes_from(self, base: QueueDraft) -> dict[str, str] | None:
        """Return the values that differ from another draft's, by the paths that `--set` accepts.

        None: one of the drafts has an element or an attribute that the other one lacks.
        """
        known, own = base.by_path, self.by_path
        if known.keys() != own.keys():
            return None
        return {set_path(path): text for path, text in own.items() if known[path] != text}

    def scenario_text(self, folder: Path = Path()) -> str:
        """Return the scenario as XML, with a comment above each element that names the origins of its values.

        Args:
            folder: where it will be written: files that it names are relative to it; the user's to the working
                directory.
        """
        values = [replace(each, text=_relative(each.text, folder)) for each in self.values]
        lines = [
            '<?xml version="1.0" encoding="UTF-8"?>',
            f'<scenario name="{_clean(self.name)}" model="queue" horizon="{round_duration(self.horizon_ns)}" '
            f'warm-up="{round_duration(self.warm_up_ns)}">',
            f"  <description>{escape(self._description(), quote=False)}</description>",
        ]
        queue = [each for each in values if each.path.startswith("queue/")]
        lines += [f"  {each}" for each in _comments(queue)]
        attributes = {"name": _clean(self.name), **{each.path.partition("/")[2]: each.text for each in queue}}
        lines.append(f"  <queue {_attributes(attributes)}>")
        for element in _ELEMENTS:
            of_it = [each for each in values if each.path.split("/")[0] == element]
            if of_it:
                lines += [f"    {each}" for each in (*_comments(of_it), *_element(element, of_it))]
        return "\n".join([*lines, "  </queue>", "</scenario>", ""])

    def _description(self) -> str:
        of_it = [f"{each.word}={each.text}" for each in self.values if each.origin is ValueFrom.ASSUMED]
        assumed = f"Assumed: {', '.join(of_it)}." if of_it else "Nothing is assumed."
        listed = f", as listed in {_plain(self.source)}" if self.source else ""
        return f"{preset_of(self.broker).title}{listed}; see `qsctl help broker-{self.broker}`. {assumed}"


def draft_of(
    broker: BrokerKind,
    given: Mapping[str, str],
    listed: ForeignQueue | None = None,
    *,
    name: str = "",
    source: str = "",
    horizon_ns: Nanoseconds | None = None,
    longest_ns: Nanoseconds = 0,
) -> QueueDraft:
    """Return a scenario of a queue.

    Args:
        broker: whose preset is used.
        given: the user's values, by the broker's words or those of the load.
        listed: what a tool lists of the queue.
        name: of the scenario and of its queue; the listed queue's unless given.
        source: where the listing is from, in words for the description.
        horizon_ns: the simulated time; None: long enough.
        longest_ns: the longest duration that matters to the question.

    Raises:
        UsageError: there is no such setting, or one is given twice.
        InvalidInput: a value is not of its setting's kind.
    """
    known = _known(broker, given)
    settings = list(_settings(broker, known, listed))
    load = _load(known, listed, broker, {each.path: text for each, text, _, _ in settings})
    words = {each.word: text for each, text, _, _ in (*load, *settings)}
    values = [
        DraftValue(each.path, text, each.word, origin, why)
        for each, text, origin, why in (*load, *settings)
        if each.is_direct
    ]
    values += [DraftValue(each.path, each.text, each.path, ValueFrom.WAY, each.why) for each in preset_of(broker).ways]
    values = list(_with_derived(broker, values, settings))
    values = [each for each in values if _ABSENT.get(each.path) != each.text]
    horizon = horizon_ns or _horizon(words, longest_ns)
    for path in [each.path for each in values if each.path in _EVENTS]:
        start = path.replace("duration", "start")
        values.append(
            DraftValue(start, format_duration(horizon // _EVENT_AT), start, ValueFrom.WAY, "a quarter of the run")
        )
    has_backlog = any(each.path == _BACKLOG for each in values)
    return QueueDraft(
        name or (listed.name if listed is not None else "") or f"{broker}-queue", broker, tuple(values), words, horizon,
        0 if has_backlog else horizon // 20, source,
    )  # fmt: skip


_BACKLOG_MAX: Final = 10_000_000
_BACKLOG: Final = "backlog/messages"
_EVENTS: Final = ("outage/duration", "consumer/absence/duration")
_ABSENT: Final = {_BACKLOG: "0", **dict.fromkeys(_EVENTS, "0s")}
"""Values of elements that are not there, by path."""
_EVENT_AT: Final = 4
"""An outage or absence begins at this part of the run."""
_Found = tuple[BrokerSetting, str, ValueFrom, str]


def set_path(path: str) -> str:
    """Return the path of a draft's value as `--set` and `--grid` accept it, of a scenario that was written."""
    element, _, attribute = path.partition("/")
    if element == "publisher":
        return f"publisher/{attribute.split('/')[-1]}" if "/" in attribute else path
    return attribute if element == "queue" else path


def find_setting(broker: BrokerKind, name: str) -> BrokerSetting:
    """Return the setting that a word names: one of the broker, or of the load.

    Raises:
        UsageError: there is none; the message lists the valid words.
    """
    preset = preset_of(broker)
    load = load_of(broker)
    found = preset.setting(name) or next((each for each in load if each.is_called(name)), None)
    if found is None:
        words = [each.word for each in (*preset.settings, *load)]
        raise UsageError(f"{broker} has no setting {name!r}", remedy=f"There are {', '.join(words)}.")
    return found


def _known(broker: BrokerKind, given: Mapping[str, str]) -> dict[str, str]:
    known: dict[str, str] = {}
    for name, text in given.items():
        setting = find_setting(broker, name)
        if setting.word in known:
            raise UsageError(f"{setting.word} is given twice", remedy="State it once.")
        known[setting.word] = setting.scenario_text(text)
    return known


def _settings(broker: BrokerKind, known: Mapping[str, str], listed: ForeignQueue | None) -> Iterator[_Found]:
    """Yield each setting of the preset with its text for a scenario."""
    for setting in preset_of(broker).settings:
        if setting.word in known:
            yield setting, known[setting.word], ValueFrom.GIVEN, "given"
            continue
        of_tool = listed_text(setting, listed)
        if of_tool is not None:
            yield setting, setting.scenario_text(of_tool), ValueFrom.LISTED, "listed"
        elif listed is not None and setting.path == "queue/partitions" and listed.partitions:
            yield setting, str(len(listed.partitions)), ValueFrom.LISTED, "listed"
        else:
            yield setting, setting.scenario_text(setting.default), ValueFrom.DEFAULT, setting.source


def listed_text(setting: BrokerSetting, listed: ForeignQueue | None) -> str | None:
    """Return a setting's value as a tool lists it, in the broker's notation; None where it does not."""
    if listed is None:
        return None
    return next((text for word, text in listed.settings.items() if setting.is_called(word)), None)


def _with_derived(broker: BrokerKind, values: Sequence[DraftValue], settings: Sequence[_Found]) -> Iterator[DraftValue]:
    """Yield the values; those that follow from several settings replace the single ones."""
    derived = dict(preset_of(broker).derived({each.word: text for each, text, _, _ in settings}))
    sources = {each.path: (each.word, origin) for each, _, origin, _ in settings if not each.is_direct}
    for each in values:
        text = derived.pop(each.path, None)
        yield each if text is None else replace(each, text=text)
    for path, text in derived.items():
        word, origin = sources.get(path, (path, ValueFrom.WAY))
        yield DraftValue(path, text, word, origin, "follows from the settings")


def load_of(broker: BrokerKind) -> tuple[BrokerSetting, ...]:
    """Return the settings of the load and the consumers that the broker's preset does not determine."""
    preset = preset_of(broker)
    taken = {each.path for each in preset.settings} | {each.path for each in preset.ways}
    return tuple(each for each in LOAD if each.path not in taken)


def _load(
    known: Mapping[str, str], listed: ForeignQueue | None, broker: BrokerKind, of_preset: Mapping[str, str]
) -> list[_Found]:
    """Return the load and the consumers; unknown values are chosen so that these are busy for `LOAD_RATIO` of the time.

    Args:
        known: the given values, by word.
        listed: what a tool lists.
        broker: whose preset is used.
        of_preset: values of the broker's own settings, by path.
    """
    found: dict[str, tuple[str, ValueFrom, str]] = {
        word: (text, ValueFrom.GIVEN, "given") for word, text in known.items() if word in {each.word for each in LOAD}
    }
    if listed is not None:
        of_tool = {
            "arrivals": None if not listed.arrivals_per_s else f"{listed.arrivals_per_s:.6g}/s",
            "consumers": None if not listed.consumers else str(min(listed.consumers, 10_000)),
            "size": None if listed.size_bytes is None else str(min(listed.size_bytes, 2**31)),
            "backlog": str(min((listed.waiting or 0) + (listed.outstanding or 0), _BACKLOG_MAX)),
        }
        for word, text in of_tool.items():
            if text is not None:
                found.setdefault(word, (text, ValueFrom.LISTED, "listed"))
    for setting in LOAD:
        if setting.word not in {"arrivals", "consumers"}:
            found.setdefault(setting.word, (setting.default, ValueFrom.ASSUMED, "no tool lists it"))
    work_s = mean_ns(WORK.parse(found["work"][0])) / SECOND_NS
    servers = int(_SERVERS.parse(of_preset.get("consumer/servers", found["servers"][0])))
    if "arrivals" in found:
        wanted = math.ceil(float(RATE.parse(found["arrivals"][0])) * work_s / LOAD_RATIO / servers)
        found.setdefault(
            "consumers",
            (
                str(min(max(1, wanted), 10_000)),
                ValueFrom.ASSUMED,
                f"busy for at most {100 * LOAD_RATIO:.0f} % of the time",
            ),
        )
    else:
        found.setdefault("consumers", ("1", ValueFrom.ASSUMED, "no tool lists it"))
        consumers = int(_COUNT.parse(found["consumers"][0]))
        rate = min(1e6, LOAD_RATIO * consumers * servers / work_s) if work_s else 1.0
        found["arrivals"] = (
            f"{rate:.3g}/s",
            ValueFrom.ASSUMED,
            f"the consumers are busy for {100 * LOAD_RATIO:.0f} % of the time",
        )
    PROBABILITY.parse(found["fails"][0])
    return [(setting, *found[setting.word]) for setting in load_of(broker)]


def mean_ns(work: WorkTime) -> float:
    """Return the mean of a distribution of work times, in nanoseconds."""
    match work.kind:
        case WorkKind.UNIFORM:
            return sum(work.times_ns) / 2
        case WorkKind.HISTOGRAM:
            weighted = sum(time * weight for time, weight in zip(work.times_ns, work.weights, strict=True))
            return weighted / sum(work.weights)
        case WorkKind.EMPIRICAL:
            times, counts = read_times(Path(work.path))
            return sum(time * count for time, count in zip(times, counts, strict=True)) / sum(counts)
        case _:
            return float(work.times_ns[0])


def _horizon(words: Mapping[str, str], longest_ns: Nanoseconds) -> Nanoseconds:
    rate = float(RATE.parse(words["arrivals"]))
    work = WORK.parse(words["work"])
    longest = max([longest_ns, *work.times_ns, *(parse_duration(words[each]) for each in ("outage", "absence"))])
    wanted = max(MESSAGES / rate * SECOND_NS if rate else 0.0, _LONGEST_TIMES * longest)
    return next((each for each in HORIZONS_NS if each >= wanted), HORIZONS_NS[-1])


def _clean(name: str) -> str:
    return _NAME.sub("_", name)[:100] or "queue"


def _relative(text: str, folder: Path) -> str:
    """Return a distribution whose file is named relative to a folder; other texts unchanged."""
    word, colon, name = text.partition(":")
    if word != WorkKind.EMPIRICAL or not colon or folder.resolve() == Path.cwd() or Path(name).is_absolute():
        return text
    return f"{word}:{os.path.relpath(name, folder)}"


def _plain(text: str) -> str:
    """Return a text that a scenario may contain: without control characters, and without the syntax of variables."""
    return "".join(each if each.isprintable() else "?" for each in text).replace("$(", "$ (")


def _attributes(values: Mapping[str, str]) -> str:
    return " ".join(f'{name}="{escape(text)}"' for name, text in values.items())


def _comments(values: Sequence[DraftValue]) -> Iterator[str]:
    """Yield the comments that name the origin of each value of an element."""
    lines = [
        f"{each.path.rpartition('/')[2]}: {_origin(each)}" for each in values if each.text or "/" not in each.path
    ]  # fmt: skip
    if lines:
        text = textwrap.fill("; ".join(lines).replace("--", "- -"), _COMMENT_WIDTH, subsequent_indent=" " * 9)
        yield f"<!-- {text} -->"


def _origin(value: DraftValue) -> str:
    if value.origin is ValueFrom.WAY:
        return value.why
    word = "" if value.word == value.path.rpartition("/")[2] else f"{value.word}, "
    return f"{word}{value.origin}" + (f" ({value.why})" if value.origin is ValueFrom.ASSUMED else "")


def _element(element: str, values: Sequence[DraftValue]) -> Iterator[str]:
    attributes = {"name": _NAMED[element]} if element in _NAMED else {}
    inner: dict[str, dict[str, str]] = {}
    for each in values:
        _, _, attribute = each.path.partition("/")
        if not attribute:
            continue
        name, _, below = attribute.partition("/")
        if below:
            inner.setdefault(name, {})[below] = each.text
        else:
            attributes[name] = each.text
    text = f" {_attributes(attributes)}" if attributes else ""
    below_it = "".join(f"<{name} {_attributes(given)}/>" for name, given in inner.items())
    yield f"<{element}{text}>{below_it}</{element}>" if below_it else f"<{element}{text}/>"


def parse_settings(texts: Sequence[str]) -> dict[str, str]:
    """Return the values of `WORD=VALUE` texts, by word.

    Raises:
        UsageError: one is not of that form, or a word is given twice.
    """
    found: dict[str, str] = {}
    for text in texts:
        word, equals, value = text.partition("=")
        if not equals or not word.strip():
            raise UsageError(f"{text[:80]!r} is not SETTING=VALUE", remedy="Write it as in VisibilityTimeout=60.")
        if word.strip() in found:
            raise UsageError(f"{word.strip()} is given twice", remedy="State it once.")
        found[word.strip()] = value.strip()
    return found
