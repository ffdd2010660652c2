"""`--precision`: replications are added until the intervals of the means are narrow enough.

What is asked for is the half width of the interval against the mean: 5 % of it. As the mean is an estimate too, the
half width must be at most γ ÷ (1 + γ) of the estimate for the mean itself to be within γ (Law, *Simulation Modeling
and Analysis*, "Obtaining a specified precision"). Looking again and again, and stopping at the first interval that is
narrow enough, keeps the stated confidence as the precision grows (Chow and Robbins, "On the asymptotic theory of
fixed-width sequential confidence intervals for the mean", Annals of Mathematical Statistics 36, 1965); of few
replications it does not, so that there are `FEWEST` at least. `tests/summary/test_precision.py` measures how often.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from qsctl.errors import UsageError
from qsctl.sim.figures import Figures
from qsctl.summary.inference.statistics import Interval, interval_of
from qsctl.summary.inference.student import t_quantile
from qsctl.summary.sweeps.points import MEASURES

FEWEST: Final = 10
MOST: Final = 1_000
"""Replications after which it is given up, where the caller names no number."""
_GROWTH: Final = 1.5
"""A round has this many times the replications of the one before, at most."""
_USUAL: Final = ("throughput", "time_in_queue_mean", "time_to_done_mean")
"""Measures of every queue where none is named."""
_FORM: Final = re.compile(r"\s*(?:(?P<measure>[a-z][a-z0-9_]*)\((?P<queue>[^)]+)\)\s*=)?\s*(?P<share>[0-9.]+)\s*%\s*")


@dataclass(frozen=True, slots=True)
class Precision:
    """The wanted width of a measure's interval, as a fraction of its mean; None: the usual ones of every queue."""

    ratio: float
    measure: str | None = None
    queue: str | None = None


@dataclass(frozen=True, slots=True)
class Reached:
    """The width of an interval."""

    queue: str
    measure: str
    interval: Interval
    ratio: float
    """The wanted ratio."""

    @property
    def wanted(self) -> float:
        """The half width that is narrow enough."""
        return self.ratio / (1.0 + self.ratio) * abs(self.interval.mean)

    @property
    def is_enough(self) -> bool:
        """Return whether it is narrow enough; where every replication has the same value, it is."""
        return self.interval.half_width <= self.wanted

    @property
    def reached(self) -> float:
        """The half width as a fraction of the mean."""
        if not self.interval.half_width:
            return 0.0
        return self.interval.half_width / abs(self.interval.mean) if self.interval.mean else math.inf


def parse_precision(text: str) -> Precision:
    """Read one `--precision`: `5%`, or of one measure `time_to_done_p99(Orders)=5%`.

    Raises:
        UsageError: it is not of that form, there is no such measure, or it is not between 0 and 100 %.
    """
    found = _FORM.fullmatch(text)
    share = math.nan
    if found:
        try:
            share = float(found["share"]) / 100.0
        except ValueError:
            found = None
    if not found or not 0.0 < share < 1.0:
        raise UsageError(
            f"--precision {text!r} is not a percentage between 0 and 100",
            remedy="Write it as in --precision 5%, or of one measure, as in --precision 'time_to_done_p99(Orders)=5%'.",
        )
    if found["measure"] is not None and found["measure"] not in MEASURES:
        raise UsageError(
            f"--precision {text!r}: there is no measure {found['measure']!r}", remedy=f"Use {', '.join(MEASURES)}."
        )
    return Precision(share, found["measure"], found["queue"])


def reached(wanted: Sequence[Precision], replications: Sequence[Sequence[Figures]], confidence: float) -> list[Reached]:
    """Return how narrow every interval that is asked for is.

    Args:
        wanted: what is asked for.
        replications: the figures of each, one row a queue.
        confidence: of the intervals.

    Raises:
        UsageError: no replication has the measure, or the queue.
    """
    queues = list(dict.fromkeys(row.queue for rows in replications for row in rows))
    found = []
    for each in wanted:
        if each.measure is None:
            pairs = [(queue, measure) for queue in queues for measure in _USUAL]
        elif each.queue not in queues:
            raise UsageError(
                f"--precision: no message comes to a queue {each.queue}", remedy=f"Use {', '.join(queues)}."
            )
        else:
            pairs = [(each.queue, each.measure)]
        for queue, measure in pairs:
            read = MEASURES[measure]
            values = [
                value for rows in replications for row in rows
                if row.queue == queue and (value := read(row)) is not None
            ]  # fmt: skip
            if values:
                found.append(Reached(queue, measure, interval_of(values, confidence), each.ratio))
            elif each.measure is not None:
                raise UsageError(f"--precision: no replication has a {measure}({queue})")
    return found


def rounds(most: int) -> Iterator[int]:
    """Yield how many replications there are after each round, up to the most."""
    count = min(FEWEST, most)
    while True:
        yield count
        if count >= most:
            return
        count = min(most, max(count + 1, int(count * _GROWTH)))


def expected(found: Sequence[Reached], replications: int, confidence: float, most: int) -> int:
    """Return about how many replications there will be: half widths shrink with the root of their number."""
    needed = replications
    # Student's factor of few replications is larger than that of many.
    few = (t_quantile(confidence, max(1, replications - 1)) / t_quantile(confidence, MOST)) ** 2
    for each in found:
        if not each.is_enough:
            growth = (each.interval.half_width / each.wanted) ** 2 / few if each.wanted else math.inf
            needed = max(needed, replications + 1, math.ceil(min(float(most), replications * growth)))
    return min(needed, most)


def enough(
    wanted: Sequence[Precision],
    simulate: Callable[[int], Sequence[Figures]],
    confidence: float,
    most: int,
    report: Callable[[int, int], None] = lambda _, __: None,
    agree: Callable[[int, float], None] = lambda _, __: None,
) -> tuple[int, list[Reached]]:
    """Simulate replications one by one until they are enough.

    Args:
        wanted: what is asked for.
        simulate: gives the figures of a replication by its number.
        confidence: of the intervals.
        most: replications that there may be.
        report: called with the number of replications that were simulated, and about how many there will be.
        agree: called once the first round was simulated and is not enough, with about how many replications there will
            be and how many seconds one takes; what it raises ends the simulation.

    Returns:
        How many there are, and what they reach: not all of it where the most were not enough.
    """
    done: list[Sequence[Figures]] = []
    found: list[Reached] = []
    total = min(FEWEST, most)
    began = time.monotonic()
    for count in rounds(most):
        while len(done) < count:
            if len(done) == 1:
                began = time.monotonic()  # the first one compiles the kernels
            done.append(simulate(len(done)))
            report(len(done), total)
        found = reached(wanted, done, confidence)
        if all(each.is_enough for each in found):
            break
        is_first, total = total == count, max(total, expected(found, count, confidence, most))
        if is_first and total > count:
            agree(total, (time.monotonic() - began) / max(1, len(done) - 1))
    return len(done), found


def precision_text(found: Sequence[Reached], replications: int) -> str:
    """Return what was reached, in words."""
    widest = max(found, key=lambda each: each.reached / each.ratio, default=None)
    if widest is None:
        return "No replication has the measures that a precision was asked for."
    what = f"{widest.measure}({widest.queue})"
    if all(each.is_enough for each in found):
        return (
            f"{replications} replications are enough: the widest interval is that of {what}, with a half width of "
            f"{100 * widest.reached:.3g} % of the mean."
        )
    return (
        f"{replications} replications are not enough: the half width of {what} is still {100 * widest.reached:.3g} % "
        f"of the mean, and {100 * widest.ratio:g} % were asked for."
    )
