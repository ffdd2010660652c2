"""Tests that look at the replications again and again and still have the error that they state.

`statistics.py` names the methods and their sources. A test sees the values from the first replication
on and always gives the same answer for the same values, however they came in batches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from functools import cache
from typing import Final

import numpy as np

from qsctl.summary.inference.statistics import runs_without_violation

EARLIEST_REFUSAL: Final = 5
"""Number of replications from which on a candidate that is plainly worse is abandoned; that needs no error, since
nothing is claimed.
"""

MOST_REPLICATIONS: Final = 160
"""Of one candidate, where the user names no other number and the targets need no more."""

_DOUBLED_UNTIL: Final = 20
_GROWTH: Final = 1.4
"""Growth from look to look: bound on the ratio of used replications to those needed."""


class SequentialAnswer(StrEnum):
    """The conclusion from the values so far."""

    SHOWN = "shown"
    REFUSED = "refused"
    OPEN = "open"


def fewer_than(violations: Sequence[bool], proportion: float, *, error: float, most: int) -> SequentialAnswer:
    """Test whether less than a proportion of all runs violates something.

    Args:
        violations: one a replication, in their order; at most `most`.
        proportion: what must not be reached.
        error: the probability that SHOWN is given where it is reached.
        most: the replications that there may be.
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
    """Test whether nothing violates in any run, as far as runs can show it: in less than a proportion of them.

    Args:
        violations: one a replication, in their order.
        proportion: what must not be reached.
        error: the probability that SHOWN is given where it is reached.
    """
    needed = runs_without_violation(proportion, error)
    if any(violations[:needed]):
        return SequentialAnswer.REFUSED
    return SequentialAnswer.SHOWN if len(violations) >= needed else SequentialAnswer.OPEN


@cache
def proportion_boundary(proportion: float, error: float, most: int) -> tuple[int, ...]:
    """Return the count at which a proportion is shown to be undercut, after each number of runs from 1 to `most`.

    −1 where no count is small enough yet. It never falls. The probability of ever being at or below it, where the
    true proportion is exactly `proportion`, is at most `error`.
    """
    first = runs_without_violation(proportion, error / 2.0)
    boundary: list[int] = []
    # Of the counts that did not cross yet: their probabilities after each run, at the proportion itself.
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
        # What has crossed already is 0 here: the boundary rises where the next count's probability fits.
        while open_counts[: best + 2].sum() + crossed <= allowed:
            best += 1
        crossed += float(open_counts[: best + 1].sum())
        open_counts[: best + 1] = 0.0
        boundary.append(best)
    return tuple(boundary)


def rounds(most: int, needed: Sequence[int] = ()) -> Iterator[int]:
    """Yield the number of replications up to which a candidate is simulated before it is looked at again.

    Args:
        most: the last.
        needed: numbers at which something may be decided, besides those that follow each other.
    """
    looks, at = {most}, EARLIEST_REFUSAL
    while at < most:
        looks.add(at)
        at = 2 * at if at < _DOUBLED_UNTIL else int(at * _GROWTH)
    yield from sorted({*looks, *(number for number in needed if number <= most)})
