"""The inputs of `qsctl size`: targets on measures, and the settings it may vary.

A target is `measure(queue)` compared with a bound: `discards(D-1)=0`, `time_to_done_p99(G-1)<50ms`,
`loss_ratio(D-2)<0.1%`; or the probability of such a comparison, over runs: `P(discards(D-1)>0)<5%`.
A setting is a path of the scenario, or the short `max-depth(D-1)` and `min-msg-burst(G-1)`, which mean every profile;
of a recording `consumers(QUEUE)`, `unacked_threshold(QUEUE)`, `max_count(QUEUE)`, `max_delivery_retries(QUEUE)`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from qsctl.errors import UsageError
from qsctl.instant import parse_duration
from qsctl.profiles.ranges import BY_FIELD
from qsctl.sim.scenario.overrides.short_paths import whole_path
from qsctl.sim.scenario.scenario import QUEUE_ORDER, TIBCO_QUEUE

_DEPTH: Final = BY_FIELD["d_1_max_depth_work_units"]
_BURST: Final = BY_FIELD["d_1_min_msg_burst"]
RANGES: Final = {"max-depth": (_DEPTH.minimum, _DEPTH.maximum), "min-msg-burst": (_BURST.minimum, _BURST.maximum)}
"""Ranges that the broker allows [SOL-QUEUES, "Configuring Max Egress Queue Depths" and "… Minimum Message Bursts"]."""

_TARGET = re.compile(
    r"\s*(?P<measure>[a-z][a-z0-9_]*)\((?P<queue>[^)]+)\)\s*(?P<operator><=|>=|<|>|=)\s*(?P<bound>.+?)\s*"
)
_PROBABILITY = re.compile(r"\s*P\((?P<inner>.+)\)\s*(?P<operator><=|>=|<|>|=)\s*(?P<share>[^<>=()]+?)\s*")
_QUEUE_OF_ALL_PROFILES = re.compile(r"profile\[\*\]/queue\[([^\]]+)\]/[a-z-]+")
_RANGE = re.compile(r"(?P<low>\d+)\.\.(?P<high>\d+)")
_WITH_UNIT = re.compile(r"(?P<number>\d+)\s*(?P<unit>ns|us|ms|s|min|h|d)?")


_LATENCY: Final = "latency_"
"""Former name of the time in the queue, from before there were two times."""

ALWAYS_SHARE: Final = 0.05
"""Fraction of runs that "always" allows in a target of zero: a number of runs proves only that less than some fraction
differs.
"""


class TargetKind(StrEnum):
    """The kind of a target."""

    MEAN = "mean"
    """The condition holds for the mean of the measure over runs."""
    ALWAYS = "always"
    """The condition holds in every run: `measure(queue)=0`."""
    SHARE = "share"
    """The condition holds for the share of runs that fulfil a comparison: `P(…)<5%`."""


@dataclass(frozen=True, slots=True)
class Target:
    """A condition on a measure; `bound` is in the measure's unit: messages, a ratio, nanoseconds, messages a second.

    `share` is the fraction of runs that may violate the condition. Of a target `P(…)`, `wanted` is whether the
    comparison inside is desired of a run (`P(discards(D-1)=0)>95%`) or undesired (`P(discards(D-1)>0)<5%`).
    """

    text: str
    measure: str
    queue: str
    operator: str
    bound: float
    kind: TargetKind = TargetKind.MEAN
    share: float = ALWAYS_SHARE
    wanted: bool = True

    @property
    def at_most(self) -> bool:
        """Return whether small values of the measure meet the target."""
        return (self.operator in {"<", "<=", "="}) == self.wanted

    def met_by(self, value: float) -> bool:
        """Return whether this value of the measure, of one run or a mean, meets the target."""
        match self.operator:
            case "<":
                holds = value < self.bound
            case "<=":
                holds = value <= self.bound
            case ">":
                holds = value > self.bound
            case ">=":
                holds = value >= self.bound
            case _:
                holds = value == self.bound
        return holds == self.wanted


@dataclass(frozen=True, slots=True)
class VariedSetting:
    """A setting that may be varied: from `low` to `high`, or only the `choices`."""

    text: str
    path: str
    low: int
    high: int
    choices: tuple[int, ...] = ()
    unit: str = ""
    """The unit of time after each number, such as `s` in 30s..600s; empty: the setting has none."""

    def value_text(self, value: int) -> str:
        """Return a value as a scenario contains it, with its unit."""
        return f"{value}{self.unit}"


def parse_target(text: str, measures: Sequence[str]) -> Target:
    """Read one target.

    Args:
        text: a target such as `time_to_done_p99(G-1)<50ms` or `P(discards(D-1)>0)<5%`.
        measures: the names that a measure may have.

    Raises:
        UsageError: the text is not of that form, the measure is unknown, or the bound does not have its unit.
    """
    probability = _PROBABILITY.fullmatch(text)
    if not probability:
        measure, queue, operator, bound = _comparison(text, text, measures)
        if operator == "=" and bound != 0.0:
            raise UsageError(
                f"--target {text!r} asks for one exact value", remedy="Use < or <=; only a target of zero takes =."
            )
        return Target(text, measure, queue, operator, bound, TargetKind.ALWAYS if operator == "=" else TargetKind.MEAN)
    measure, queue, operator, bound = _comparison(text, probability["inner"], measures)
    share = _number(text, probability["share"])
    if probability["operator"] == "=" or not 0.0 < share < 1.0:
        raise UsageError(
            f"--target {text!r}: no number of runs shows that a probability is {probability['operator']} "
            f"{probability['share']}",
            remedy="Ask for less, or more, than a share between 0 and 100 %: 'P(discards(D-1)>0)<5%'.",
        )
    wanted = probability["operator"] in {">", ">="}
    return Target(text, measure, queue, operator, bound, TargetKind.SHARE, 1.0 - share if wanted else share, wanted)


def parse_bound(text: str, measures: Sequence[str]) -> tuple[str, str, float]:
    """Read one `--assume`: the measure, the queue, and the bound that the measure exceeds in no run.

    Raises:
        UsageError: it is not of the form `time_to_done_p99(G-1)<=1s`.
    """
    measure, queue, operator, bound = _comparison(text, text, measures, "--assume")
    if operator not in {"<", "<="}:
        raise UsageError(
            f"--assume {text!r} is not an upper bound", remedy="Write it as in 'time_to_done_p99(G-1)<=1s'."
        )
    return measure, queue, bound


def is_time(measure: str) -> bool:
    """Return whether a measure is a duration, in ns."""
    return measure.startswith("time_") or measure.endswith("_ns")


def _comparison(
    text: str, inner: str, measures: Sequence[str], option: str = "--target"
) -> tuple[str, str, str, float]:
    """Return the measure, the queue, the operator and the bound."""
    found = _TARGET.fullmatch(inner)
    if not found:
        raise UsageError(
            f"{option} {text!r} is not MEASURE(QUEUE) and a bound",
            remedy="Write it as in --target 'discards(D-1)=0', 'time_to_done_p99(G-1)<50ms' or "
            "'P(discards(D-1)>0)<5%'.",
        )
    measure = found["measure"]
    if measure.startswith(_LATENCY):
        part = measure.removeprefix(_LATENCY)
        raise UsageError(
            f"{option} {text!r}: {measure} does not name which time is meant",
            remedy=f"Use time_in_queue_{part}, until a message is sent to its client, or time_to_done_{part}, until "
            "it is acknowledged: where clients accept messages ahead of their work, only that is how long it took.",
        )
    if measure not in measures:
        raise UsageError(f"{option} {text!r}: there is no measure {measure!r}", remedy=f"Use {', '.join(measures)}.")
    bound = float(parse_duration(found["bound"])) if is_time(measure) else _number(text, found["bound"])
    return measure, found["queue"].strip(), found["operator"], bound


def _number(text: str, bound: str) -> float:
    try:
        return float(bound.removesuffix("%")) / 100.0 if bound.endswith("%") else float(bound)
    except ValueError:
        raise UsageError(f"--target {text!r}: {bound!r} is not a number", remedy="Write 0, 0.001 or 0.1%.") from None


def parse_setting(text: str) -> VariedSetting:
    """Read one `--vary`: `max-depth(D-1)`, `max-depth(D-1)=100..20000`, `PATH=100,200,400`.

    Raises:
        UsageError: it is not of that form, or its range is empty or beyond what the broker allows.
    """
    name, values = _split(text)
    path = whole_path(name)
    queue = _QUEUE_OF_ALL_PROFILES.fullmatch(path)
    known = (*QUEUE_ORDER, TIBCO_QUEUE)
    if queue and queue[1] not in known:
        raise UsageError(f"--vary {text!r}: there is no queue {queue[1]}", remedy=f"Use {', '.join(known)}.")
    lowest, highest = RANGES.get(path.rpartition("/")[2], (0, 2**31 - 1))
    if not values:
        if path.rpartition("/")[2] not in RANGES:
            raise UsageError(f"--vary {text!r} gives no range", remedy="Write it as in --vary 'PATH=100..20000'.")
        return VariedSetting(text, path, lowest, highest)
    numbers, unit = _without_unit(values)
    limits = _RANGE.fullmatch(numbers)
    if limits:
        low, high = int(limits["low"]), int(limits["high"])
        choices: tuple[int, ...] = ()
    else:
        try:
            choices = tuple(sorted({int(value) for value in numbers.split(",")}))
        except ValueError:
            raise UsageError(
                f"--vary {text!r}: {values!r} is neither LOW..HIGH nor whole numbers, which the search is over",
                remedy="Write 100..20000, 100,200 or 30s..600s, of one unit; for other values try them: "
                f"`qsctl sweep --grid '{name}={values.replace('..', ',')}'`.",
            ) from None
        low, high = choices[0], choices[-1]
    if low > high:
        raise UsageError(
            f"--vary {text!r}: {low} is above {high}",
            remedy=f"Write the lower end first: {name}={high}{unit}..{low}{unit}.",
        )
    if low < lowest or high > highest:
        raise UsageError(
            f"--vary {text!r}: {low}..{high} is not within {lowest}..{highest}", remedy="Give a range inside it."
        )
    return VariedSetting(text, path, low, high, choices, unit)


def _without_unit(values: str) -> tuple[str, str]:
    """Return a range or list without the unit of time of its numbers, and the unit; empty where they have none."""
    separator = ".." if ".." in values else ","
    parts = [_WITH_UNIT.fullmatch(each.strip()) for each in values.split(separator)]
    found = [each for each in parts if each is not None]
    units = {each["unit"] for each in found}
    if len(found) < len(parts) or len(units) != 1 or None in units:
        return values, ""
    return separator.join(each["number"] for each in found), str(units.pop())


def _split(text: str) -> tuple[str, str]:
    depth = 0
    for at, character in enumerate(text):
        depth += (character in "[(") - (character in "])")
        if character == "=" and depth <= 0:
            return text[:at].strip(), text[at + 1 :].strip()
    return text.strip(), ""
