"""Tests that look at the replications again and again and still have the error that they state.

`statistics.py` names the methods and their sources. A test sees the values from the first replication
on and always gives the same answer for the same values, however they came in batches.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Final

import numpy as np

from qsctl.summary.statistics import (
    interval_of,
    runs_without_violation,
    upper_bound_of_mean,
    varied_enough,
)

FIRST_LOOK: Final = 20
"""Fewer replications show nothing of a mean: their skewness cannot be estimated."""

EARLIEST_REFUSAL: Final = 5
"""From so many on, a candidate that is plainly worse is given up; that needs no error, for it shows nothing."""

MOST_REPLICATIONS: Final = 160
"""Of one candidate, where the user names no other number and the targets need no more."""


class Answer(StrEnum):
    """What the values show so far."""

    SHOWN = "shown"
    REFUSED = "refused"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class MeanAnswer:
    """What is known of a mean: the answer, and the one-sided bound at the look that decided or came last."""

    answer: Answer
    bound: float


def looks_at(most: int) -> tuple[int, ...]:
    """Return the numbers of replications after which a mean may be found to meet its target; the last is `most`."""
    doubling = itertools.takewhile(lambda number: number < most, (FIRST_LOOK << step for step in itertools.count()))
    return (*doubling, most)


def below(values: Sequence[float], limit: float, *, strictly: bool, error: float, most: int) -> MeanAnswer:
    """Test whether the mean of what the values are drawn from is below a limit.

    Args:
        values: one a replication, in their order; at most `most`.
        limit: what the mean is compared with.
        strictly: whether a bound that equals the limit is not enough.
        error: the probability that SHOWN is given of a mean that is not below, over all looks.
        most: the replications that there may be.
    """
    looks = looks_at(most)
    bound = float("inf")
    for count in sorted({EARLIEST_REFUSAL, 2 * EARLIEST_REFUSAL, *looks}):
        if count > len(values) or count < 2:
            break
        seen = values[:count]
        if not varied_enough(seen):
            continue
        if count in looks:
            bound = upper_bound_of_mean(seen, error / len(looks))
            if bound < limit or (bound == limit and not strictly):
                return MeanAnswer(Answer.SHOWN, bound)
        if interval_of(seen, 1.0 - error).low > limit:
            return MeanAnswer(Answer.REFUSED, upper_bound_of_mean(seen, error / len(looks)))
    return MeanAnswer(Answer.REFUSED if len(values) >= most else Answer.OPEN, bound)


def fewer_than(violations: Sequence[bool], proportion: float, *, error: float, most: int) -> Answer:
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
            return Answer.SHOWN
    if count > boundary[-1] or len(violations) >= most:
        return Answer.REFUSED
    return Answer.OPEN


def never(violations: Sequence[bool], proportion: float, *, error: float) -> Answer:
    """Test whether nothing violates in any run, as far as runs can show it: in less than a proportion of them.

    Args:
        violations: one a replication, in their order.
        proportion: what must not be reached.
        error: the probability that SHOWN is given where it is reached.
    """
    needed = runs_without_violation(proportion, error)
    if any(violations[:needed]):
        return Answer.REFUSED
    return Answer.SHOWN if len(violations) >= needed else Answer.OPEN


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
        needed: numbers at which something may be decided, besides the looks at means.
    """
    early = (EARLIEST_REFUSAL, 2 * EARLIEST_REFUSAL)
    yield from sorted({number for number in (*early, *looks_at(most), *needed) if number <= most})
