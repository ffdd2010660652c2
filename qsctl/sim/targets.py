"""What `qsctl size` is asked: targets on measures, and the settings it may vary.

A target is `measure(queue)` compared with a bound: `discards(D-1)=0`, `latency_p99(G-1)<50ms`, `loss_ratio(D-2)<0.1%`.
A setting is a path of the scenario, or the short `max-depth(D-1)` and `min-msg-burst(G-1)`, which mean every profile.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from qsctl.errors import UsageError
from qsctl.instant import parse_duration
from qsctl.profiles.ranges import BY_FIELD
from qsctl.sim.scenario import QUEUE_ORDER, TIBCO_QUEUE

_DEPTH: Final = BY_FIELD["d_1_max_depth_work_units"]
_BURST: Final = BY_FIELD["d_1_min_msg_burst"]
RANGES: Final = {"max-depth": (_DEPTH.minimum, _DEPTH.maximum), "min-msg-burst": (_BURST.minimum, _BURST.maximum)}
"""What the broker allows (seed 004, "Configuring Max Egress Queue Depths" and "… Minimum Message Bursts")."""

_TARGET = re.compile(
    r"\s*(?P<measure>[a-z][a-z0-9_]*)\((?P<queue>[^)]+)\)\s*(?P<operator><=|>=|<|>|=)\s*(?P<bound>.+?)\s*"
)
_SHORT = re.compile(r"(?P<setting>max-depth|min-msg-burst)\((?P<queue>[^)]+)\)")
_RANGE = re.compile(r"(?P<low>\d+)\.\.(?P<high>\d+)")


@dataclass(frozen=True, slots=True)
class Target:
    """One condition; `bound` is in the measure's unit: messages, a ratio, nanoseconds, messages a second."""

    text: str
    measure: str
    queue: str
    operator: str
    bound: float

    @property
    def at_most(self) -> bool:
        """Whether small values meet it; a target of equality is met by zero alone."""
        return self.operator in {"<", "<=", "="}

    def met_by(self, value: float) -> bool:
        """Whether a value meets it."""
        match self.operator:
            case "<":
                return value < self.bound
            case "<=" | "=":
                return value <= self.bound
            case ">":
                return value > self.bound
            case _:
                return value >= self.bound


@dataclass(frozen=True, slots=True)
class Setting:
    """What may be varied: from `low` to `high`, or only the `choices`."""

    text: str
    path: str
    low: int
    high: int
    choices: tuple[int, ...] = ()


def parse_target(text: str, measures: Sequence[str]) -> Target:
    """Read one target.

    Args:
        text: as in `latency_p99(G-1)<50ms`.
        measures: the names that a measure may have.

    Raises:
        UsageError: it is not of that form, the measure is unknown, or the bound is not of the measure's kind.
    """
    found = _TARGET.fullmatch(text)
    if not found:
        raise UsageError(
            f"--target {text!r} is not MEASURE(QUEUE) and a bound",
            remedy="Write it as in --target 'discards(D-1)=0' or --target 'latency_p99(G-1)<50ms'.",
        )
    measure, operator = found["measure"], found["operator"]
    if measure not in measures:
        raise UsageError(f"--target {text!r}: there is no measure {measure!r}", remedy=f"Use {', '.join(measures)}.")
    in_time = measure.startswith("latency_") or measure.endswith("_ns")
    bound = float(parse_duration(found["bound"])) if in_time else _number(text, found["bound"])
    if operator == "=" and bound != 0.0:
        raise UsageError(
            f"--target {text!r} asks for one exact value", remedy="Use < or <=; only a target of zero takes =."
        )
    return Target(text, measure, found["queue"].strip(), operator, bound)


def _number(text: str, bound: str) -> float:
    try:
        return float(bound.removesuffix("%")) / 100.0 if bound.endswith("%") else float(bound)
    except ValueError:
        raise UsageError(f"--target {text!r}: {bound!r} is not a number", remedy="Write 0, 0.001 or 0.1%.") from None


def parse_setting(text: str) -> Setting:
    """Read one `--vary`: `max-depth(D-1)`, `max-depth(D-1)=100..20000`, `PATH=100,200,400`.

    Raises:
        UsageError: it is not of that form, or its range is empty or beyond what the broker allows.
    """
    name, values = _split(text)
    short = _SHORT.fullmatch(name)
    path = f"profile[*]/queue[{short['queue']}]/{short['setting']}" if short else name
    known = (*QUEUE_ORDER, TIBCO_QUEUE)
    if short and short["queue"] not in known:
        raise UsageError(f"--vary {text!r}: there is no queue {short['queue']}", remedy=f"Use {', '.join(known)}.")
    lowest, highest = RANGES.get(path.rpartition("/")[2], (0, 2**31 - 1))
    if not values:
        if path.rpartition("/")[2] not in RANGES:
            raise UsageError(f"--vary {text!r} gives no range", remedy="Write it as in --vary 'PATH=100..20000'.")
        return Setting(text, path, lowest, highest)
    limits = _RANGE.fullmatch(values)
    if limits:
        low, high = int(limits["low"]), int(limits["high"])
        choices: tuple[int, ...] = ()
    else:
        try:
            choices = tuple(sorted({int(value) for value in values.split(",")}))
        except ValueError:
            raise UsageError(
                f"--vary {text!r}: {values!r} is neither LOW..HIGH nor numbers", remedy="Write 100..20000 or 100,200."
            ) from None
        low, high = choices[0], choices[-1]
    if low > high or low < lowest or high > highest:
        raise UsageError(
            f"--vary {text!r}: {low}..{high} is not within {lowest}..{highest}", remedy="Give a range inside it."
        )
    return Setting(text, path, low, high, choices)


def _split(text: str) -> tuple[str, str]:
    depth = 0
    for at, character in enumerate(text):
        depth += (character in "[(") - (character in "])")
        if character == "=" and depth <= 0:
            return text[:at].strip(), text[at + 1 :].strip()
    return text.strip(), ""
