"""`--precision`: add replications until the intervals of the means are narrow enough.

The requested precision is the half width of the interval relative to the mean, such as 5 %. As the mean is an estimate
too, the half width must be at most γ ÷ (1 + γ) of the estimate for the mean itself to be within γ (Law, *Simulation
Modeling and Analysis*, "Obtaining a specified precision"). Evaluating repeatedly, and stopping at the first interval
that is narrow enough, keeps the stated confidence as the precision grows (Chow and Robbins, "On the asymptotic theory
of fixed-width sequential confidence intervals for the mean", Annals of Mathematical Statistics 36, 1965); with few
replications it does not, so that at least `FEWEST` are run. `tests/summary/test_precision.py` measures how often.
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
"""Default of the largest number of replications."""
_GROWTH: Final = 1.5
"""Largest ratio of the numbers of replications of successive rounds."""
_USUAL: Final = ("throughput", "time_in_queue_mean", "time_to_done_mean")
"""The measures for which the precision is required if none is named."""
_FORM: Final = re.compile(r"\s*(?:(?P<measure>[a-z][a-z0-9_]*)\((?P<queue>[^)]+)\)\s*=)?\s*(?P<share>[0-9.]+)\s*%\s*")


@dataclass(frozen=True, slots=True)
class Precision:
    """The requested relative half width of a measure's interval; without a measure, for the usual ones of every
    queue.
    """

    ratio: float
    measure: str | None = None
    queue: str | None = None


@dataclass(frozen=True, slots=True)
class Reached:
    """The half width of an interval, compared with the requested one."""

    queue: str
    measure: str
    interval: Interval
    ratio: float
    """The requested half width as a fraction of the mean."""

    @property
    def wanted(self) -> float:
        """The largest half width that is narrow enough."""
        return self.ratio / (1.0 + self.ratio) * abs(self.interval.mean)

    @property
    def is_enough(self) -> bool:
        """Return whether the interval is narrow enough, which it always is if all replications have the same value."""
        return self.interval.half_width <= self.wanted

    @property
    def reached(self) -> float:
        """The half width as a fraction of the mean."""
        if not self.interval.half_width:
            return 0.0
        return self.interval.half_width / abs(self.interval.mean) if self.interval.mean else math.inf


def parse_precision(text: str) -> Precision:
    """Parse the value of `--precision`: `5%`, or for one measure `time_to_done_p99(Orders)=5%`.

    Raises:
        UsageError: it has another form, the measure does not exist, or it is not between 0 and 100 %.
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
    """Return the widths of all requested intervals.

    Args:
        wanted: the requested precisions.
        replications: the figures of each replication, one row for each queue.
        confidence: confidence level of the intervals.

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
                f"--precision: no message reaches a queue {each.queue}", remedy=f"Use {', '.join(queues)}."
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
    """Yield the total number of replications after each round, up to `most`."""
    count = min(FEWEST, most)
    while True:
        yield count
        if count >= most:
            return
        count = min(most, max(count + 1, int(count * _GROWTH)))


def expected(found: Sequence[Reached], replications: int, confidence: float, most: int) -> int:
    """Return the estimated final number of replications, since half widths shrink with its square root."""
    needed = replications
    # Student's factor is larger with few replications than with many.
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
    """Simulate replications until all intervals are narrow enough, or `most` are simulated.

    Args:
        wanted: the requested precisions.
        simulate: returns the figures of a replication by its number.
        confidence: confidence level of the intervals.
        most: largest number of replications.
        report: called with the number of simulated replications, and the estimated final number.
        agree: called once if the first round is not enough, with the estimated final number of replications and the
            seconds of one; an exception that it raises ends the simulation.

    Returns:
        The number of replications, and the widths reached, which may be too large after `most` replications.
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
    """Return the reached precision as text."""
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
