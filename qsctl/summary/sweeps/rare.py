"""Estimation of a rare event from independent split runs, with its interval and the cost of plain runs.

Each split run gives an unbiased estimate of one plain run's count (`sim.splitting.restart`), independent of the others.
A loss ratio is the quotient of two means; its standard error is that of the residuals, numerator − ratio · denominator,
as of any ratio estimator (Cochran, *Sampling Techniques*, 3rd edition 1977, chapter 6). The estimates of single runs
are skewed to the right, and a low estimate has a low standard error; therefore the interval is Student's for the
logarithm, by the delta method.

The reliability of an estimate is determined neither by the number of runs, nor by the number of those with a count. All
counts above a threshold come from the states at its crossings, and where a few of these contribute most, others like
them may have been missed: the estimate is then too low most of the time, and far too high now and then, and its
standard error with it. So the *effective number* of states is found for each threshold, (Σ contribution)² ÷ Σ
contribution² (Kish, *Survey Sampling*, 1965). The smallest is the number of observations: an interval has as many
degrees of freedom at most, and below `EFFECTIVE_LEAST` none is given. This occurs where the loss depends on more than
the queue's depth.

Pilot runs, which are not part of the estimate, decide the number of runs. `tests/sim/test_splitting.py` measures how
often intervals hold the exact value.

The cost of plain runs with the same half width is computed from their variance: exactly for a probability of runs; for
a loss ratio as if messages were lost independently of each other. They are lost in groups, which increases it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from qsctl.sim.splitting.question import Question
from qsctl.sim.splitting.restart import SplitRun
from qsctl.summary.inference.student import t_quantile

FEWEST: Final = 30
"""Least number of split runs of an estimate."""
MOST: Final = 100_000
SEEN_LEAST: Final = 10
"""Least number of split runs with the event for an interval."""
EFFECTIVE_LEAST: Final = 10
"""Least effective number of states for an interval."""
EFFECTIVE_WANTED: Final = 30
"""Wanted effective number of states, which pilot runs estimate roughly."""
_MORE: Final = 4
"""Largest ratio of split runs to the number planned from pilot runs, if these depend on too few states."""
PILOTS: Final = 10
"""Number of pilot runs, which show the variation of split runs."""


@dataclass(frozen=True, slots=True)
class RareEstimate:
    """The estimate of a rare event, its interval, and its cost."""

    value: float
    low: float
    """The lower end of the interval; 0 without an interval."""
    high: float
    """The upper end of the interval; infinite without an interval."""
    samples: int
    seen: int
    """Number of split runs in which the event occurred."""
    effective: float
    """Effective number of states that contribute to the estimate, at the threshold with the fewest."""
    messages: int
    """Number of simulated arrivals."""
    trajectories: int
    plain_runs: float
    """Number of plain runs that an interval of the same half width would need; infinite without an interval."""
    plain_messages: float
    """Number of arrivals of these plain runs."""

    @property
    def half_width(self) -> float:
        """Half the width of the interval."""
        return (self.high - self.low) / 2.0

    @property
    def has_interval(self) -> bool:
        """Return whether the observations are enough for an interval."""
        return math.isfinite(self.high)


def estimate(samples: Sequence[SplitRun], question: Question, confidence: float) -> RareEstimate:
    """Return the estimate from independent split runs."""
    count = len(samples)
    numerator = math.fsum(sample.value for sample in samples)
    denominator = math.fsum(sample.base for sample in samples)
    value = numerator / denominator if denominator else 0.0
    seen = sum(sample.value > 0.0 for sample in samples)
    rests_on = effective(samples)
    error = _error(samples, value)
    low, high, runs, messages = 0.0, math.inf, math.inf, math.inf
    if seen >= SEEN_LEAST and rests_on >= EFFECTIVE_LEAST and count > 1:
        relative = t_quantile(confidence, min(count, int(rests_on)) - 1) * error / value
        low, high = value * math.exp(-relative), value * math.exp(relative)
        if question.is_probability:
            high = min(1.0, high)
        if error > 0.0 and value < 1.0:
            needed = value * (1.0 - value) / error**2
            runs = needed if question.is_probability else needed / (denominator / count)
            messages = runs * math.fsum(sample.plain_messages for sample in samples) / count
    return RareEstimate(
        value=value,
        low=low,
        high=high,
        samples=count,
        seen=seen,
        effective=rests_on,
        messages=sum(sample.messages for sample in samples),
        trajectories=sum(sample.trajectories for sample in samples),
        plain_runs=runs,
        plain_messages=messages,
    )


def effective(samples: Sequence[SplitRun]) -> float:
    """Return the smallest effective number of contributions: of the runs, and of the states at each threshold."""
    total = math.fsum(sample.value for sample in samples)
    if total <= 0.0:
        return 0.0
    runs = math.fsum(sample.value**2 for sample in samples)
    squares = (math.fsum(each) for each in zip(*(sample.squares for sample in samples), strict=True))
    return total**2 / max([runs, *squares])


def samples_needed(pilots: Sequence[SplitRun], confidence: float, precision: float) -> int:
    """Return the number of split runs for a relative half width, estimated from pilot runs.

    It is also large enough for the effective number of states.
    """
    denominator = math.fsum(sample.base for sample in pilots)
    value = math.fsum(sample.value for sample in pilots) / denominator if denominator else 0.0
    if value <= 0.0:
        return MOST
    spread = _error(pilots, value) * math.sqrt(len(pilots)) / value
    wanted = max(
        (t_quantile(confidence, FEWEST) * spread / precision) ** 2,
        EFFECTIVE_WANTED * len(pilots) / effective(pilots),
    )
    return min(MOST, max(FEWEST, math.ceil(wanted)))


def draw_enough(draw: Callable[[int, int], list[SplitRun] | None], count: int) -> list[SplitRun] | None:
    """Draw `count` split runs, and more while their effective number is too low, at most `_MORE` times as many.

    Args:
        draw: makes split runs, given the number of the first and their count; returns None if it was stopped.
        count: the result of `samples_needed`.
    """
    samples = draw(0, count)
    while samples is not None and len(samples) < _MORE * count and effective(samples) < EFFECTIVE_LEAST:
        more = draw(len(samples), min(len(samples), _MORE * count - len(samples)))
        samples = None if more is None else samples + more
    return samples


def _error(samples: Sequence[SplitRun], value: float) -> float:
    """Return the standard error of the ratio estimate; 0 for one sample."""
    count = len(samples)
    denominator = math.fsum(sample.base for sample in samples)
    if count < 2 or not denominator:
        return 0.0
    squares = math.fsum((sample.value - value * sample.base) ** 2 for sample in samples)
    return math.sqrt(squares / (count - 1) / count) / (denominator / count)
