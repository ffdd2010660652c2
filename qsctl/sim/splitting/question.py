"""The question of `--rare`: the fraction of a queue's messages that is lost, or how often a run loses any or is filled
to a depth.

`loss_ratio(D-1)` is the share of all messages of the queue that is lost; `P(lost(D-1)>0)` the probability that one run
of the scenario, from the end of its warm-up to its horizon, loses a message; `P(high_water_mark(D-1)>=400)` that the
queue is filled to 400 work units in one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from qsctl.errors import InvalidInput, UsageError

_FORMS: Final = "'loss_ratio(D-1)', 'P(lost(D-1)>0)' or 'P(high_water_mark(D-1)>=400)'"
_RATIO: Final = re.compile(r"\s*loss_ratio\((?P<queue>[^()]+)\)\s*")
_PROBABILITY: Final = re.compile(
    r"\s*P\(\s*(?P<measure>[a-z_]+)\((?P<queue>[^()]+)\)\s*(?P<operator>>=|>)\s*(?P<bound>[^<>=()]+?)\s*\)\s*"
)


class Asked(StrEnum):
    """The kind of figure in question."""

    LOSS_RATIO = "loss_ratio"
    """The fraction of lost messages among all lost, delivered and elided ones."""
    LOSS = "loss"
    """The fraction of runs that lose a message."""
    DEPTH = "depth"
    """The fraction of runs in which the queue reaches `level` work units."""


@dataclass(frozen=True, slots=True)
class Question:
    """One figure of one queue; `level` is 0 where the question is not about a depth."""

    text: str
    asked: Asked
    queue: str
    level: int = 0

    @property
    def by_depth(self) -> bool:
        """Return whether the question is about a depth, not about a loss."""
        return self.asked is Asked.DEPTH

    @property
    def is_probability(self) -> bool:
        """Return whether the figure is a fraction of runs, not of messages."""
        return self.asked is not Asked.LOSS_RATIO


def parse_question(text: str) -> Question:
    """Read one `--rare`.

    Raises:
        UsageError: the text has none of the allowed forms.
    """
    if found := _RATIO.fullmatch(text):
        return Question(text.strip(), Asked.LOSS_RATIO, found["queue"].strip())
    found = _PROBABILITY.fullmatch(text)
    if found is None or found["measure"] not in {"lost", "high_water_mark"}:
        raise UsageError(f"--rare {text!r} is none of the figures that can be rare", remedy=f"Write {_FORMS}.")
    try:
        bound = int(found["bound"])
    except ValueError:
        raise UsageError(
            f"--rare {text!r}: {found['bound']!r} is not a whole number", remedy=f"Write {_FORMS}."
        ) from None
    least = bound if found["operator"] == ">=" else bound + 1
    if found["measure"] == "lost":
        if least != 1:
            raise UsageError(
                f"--rare {text!r} asks for {least} lost messages", remedy="Ask whether any is lost: 'P(lost(D-1)>0)'."
            )
        return Question(text.strip(), Asked.LOSS, found["queue"].strip())
    if least < 1:
        raise UsageError(f"--rare {text!r}: every queue is filled to {least} work units", remedy="Ask for 1 or more.")
    return Question(text.strip(), Asked.DEPTH, found["queue"].strip(), least)


def no_such_queue(queue: str, names: Sequence[str]) -> InvalidInput:
    """Return the error for a queue that receives no messages."""
    return InvalidInput(
        f"--rare: no messages reach a queue {queue!r}", remedy=f"Name one of {', '.join(names) or 'the scenario'}."
    )


def no_limit(queue: str) -> InvalidInput:
    """Return the error for a queue without a limit, which therefore never loses messages."""
    return InvalidInput(
        f"--rare: the queue {queue!r} has no limit, so that no message is lost because it is full",
        remedy=f"Give it one, or ask for a depth: 'P(high_water_mark({queue})>=400)'.",
    )
