"""Sequential tests of replications, which may be evaluated after each one without exceeding their stated error.

`statistics.py` has the methods and their sources. A test receives all values from the first replication on, and gives
the same result for the same values, whatever the batches in which they arrived.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from functools import cache
from typing import Final

import numpy as np

from qsctl.summary.inference.statistics import runs_without_violation

EARLIEST_REFUSAL: Final = 5
"""Least number of replications after which a clearly worse candidate is abandoned, which makes no statement and thus
uses no error probability.
"""

MOST_REPLICATIONS: Final = 160
"""Largest number of replications of a candidate, unless the user sets another or the targets need more."""

_DOUBLED_UNTIL: Final = 20
_GROWTH: Final = 1.4
"""Growth of the number of replications between evaluations, which bounds the ratio of used to needed replications."""


class SequentialAnswer(StrEnum):
    """The conclusion from the values so far."""

    SHOWN = "shown"
    REFUSED = "refused"
    OPEN = "open"


def fewer_than(violations: Sequence[bool], proportion: float, *, error: float, most: int) -> SequentialAnswer:
    """Test whether less than a proportion of all runs violates a condition.

    Args:
        violations: whether each replication violates it, in their order; at most `most`.
        proportion: the proportion that must not be reached.
        error: probability of the result SHOWN although the proportion is reached.
        most: largest number of replications.
    """
    boundary = proportion_boundary(proportion, error, most)
    count = 0
    for run, violated in enumerate(violations):
        count += violated
        if count <= boundary[run]:
            return SequentialAnswer.SHOWN
    if count > boundary[-1] or len(violations) >= most:
        return SequentialAnswer.REFUSED
    return SequentialAnswer.OPEN


def never(violations: Sequence[bool], proportion: float, *, error: float) -> SequentialAnswer:
    """Test whether no run violates a condition, in the sense of less than a proportion of all runs.

    Args:
        violations: whether each replication violates it, in their order.
        proportion: the proportion that must not be reached.
        error: probability of the result SHOWN although the proportion is reached.
    """
    needed = runs_without_violation(proportion, error)
    if any(violations[:needed]):
        return SequentialAnswer.REFUSED
    return SequentialAnswer.SHOWN if len(violations) >= needed else SequentialAnswer.OPEN


@cache
def proportion_boundary(proportion: float, error: float, most: int) -> tuple[int, ...]:
    """Return the largest number of violations that shows less than a proportion, after each number of runs up to
    `most`.

    −1 if no number is small enough yet. It never decreases. The probability of ever being at or below it, if the true
    proportion is exactly `proportion`, is at most `error`.
    """
    first = runs_without_violation(proportion, error / 2.0)
    boundary: list[int] = []
    # The probability of each count that has not crossed the boundary yet, if `proportion` is the true one.
    open_counts = np.zeros(most + 2)
    open_counts[0] = 1.0
    crossed = 0.0
    for run in range(1, most + 1):
        open_counts[1:] = open_counts[1:] * (1.0 - proportion) + open_counts[:-1] * proportion
        open_counts[0] *= 1.0 - proportion
        allowed = 0.0
        if run >= first:
            allowed = error / 2.0 * (1.0 + (run - first) / max(1, most - first))
        best = boundary[-1] if boundary else -1
        # Crossed counts are 0 here; the boundary rises if the probability of the next count is still allowed.
        while open_counts[: best + 2].sum() + crossed <= allowed:
            best += 1
        crossed += float(open_counts[: best + 1].sum())
        open_counts[: best + 1] = 0.0
        boundary.append(best)
    return tuple(boundary)


def rounds(most: int, needed: Sequence[int] = ()) -> Iterator[int]:
    """Yield the numbers of replications after which a candidate is evaluated.

    Args:
        most: the last number.
        needed: numbers at which a decision is possible, in addition to the regular ones.
    """
    looks, at = {most}, EARLIEST_REFUSAL
    while at < most:
        looks.add(at)
        at = 2 * at if at < _DOUBLED_UNTIL else int(at * _GROWTH)
    yield from sorted({*looks, *(number for number in needed if number <= most)})
