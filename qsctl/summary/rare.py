"""The estimate of a rare event from independent split runs, with its interval and what plain runs would have cost.

Each split run gives an unbiased estimate of what one plain run counts (`sim.splitting.restart`), independent of the
others. A loss ratio is the quotient of two means; its interval is Student's of the residuals, numerator − ratio ·
denominator, as of any ratio estimator (Cochran, *Sampling Techniques*, 3rd edition 1977, chapter 6). How many runs
there are is decided by pilot runs, which are no part of the estimate, so that the number does not depend on what the
estimate is made of. The estimates of single runs are skewed to the right: of few that saw anything, the interval would
hold the true value too rarely. So there are `FEWEST` at least, and an interval is given only where `SEEN_LEAST` of them
saw what is asked for. `tests/sim/test_splitting_theory.py` measures how often intervals hold the exact value.

What plain runs would need for the same half width is computed from their variance: exactly for a probability of runs;
for a loss ratio as if messages were lost independently of each other. They are lost in groups, which makes it more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from qsctl.sim.splitting.question import Question
from qsctl.sim.splitting.restart import Sample
from qsctl.summary.student import t_quantile

FEWEST: Final = 30
"""Split runs of an estimate."""
MOST: Final = 100_000
SEEN_LEAST: Final = 10
"""Split runs that saw what is asked for: of fewer, there is no interval."""
PILOTS: Final = 10
"""Pilot runs that show how much split runs differ."""


@dataclass(frozen=True, slots=True)
class RareEstimate:
    """A rare figure, half the width of its interval, and what it cost."""

    value: float
    half_width: float
    """Infinite where too few runs saw what is asked for."""
    samples: int
    seen: int
    """Split runs that saw what is asked for."""
    messages: int
    """Arrivals simulated."""
    trajectories: int
    plain_runs: float
    """Plain runs that an interval of the same half width needs; infinite where there is none."""
    plain_messages: float
    """Arrivals of those."""

    @property
    def low(self) -> float:
        """The lower end of the interval."""
        return max(0.0, self.value - self.half_width)

    @property
    def high(self) -> float:
        """The upper end of the interval."""
        return self.value + self.half_width


def estimate(samples: Sequence[Sample], question: Question, confidence: float) -> RareEstimate:
    """Return the estimate of independent split runs."""
    count = len(samples)
    numerator = math.fsum(sample.value for sample in samples)
    denominator = math.fsum(sample.base for sample in samples)
    value = numerator / denominator if denominator else 0.0
    seen = sum(sample.value > 0.0 for sample in samples)
    error = _error(samples, value)
    half_width = t_quantile(confidence, count - 1) * error if seen >= SEEN_LEAST and count > 1 else math.inf
    runs, messages = math.inf, math.inf
    if math.isfinite(half_width) and error > 0.0 and value < 1.0:
        needed = value * (1.0 - value) / error**2
        runs = needed if question.is_probability else needed / (denominator / count)
        messages = runs * math.fsum(sample.plain_messages for sample in samples) / count
    return RareEstimate(
        value=value,
        half_width=half_width,
        samples=count,
        seen=seen,
        messages=sum(sample.messages for sample in samples),
        trajectories=sum(sample.trajectories for sample in samples),
        plain_runs=runs,
        plain_messages=messages,
    )


def samples_needed(pilots: Sequence[Sample], confidence: float, precision: float) -> int:
    """Return how many split runs give about this half width, relative to the value, by what pilot runs show."""
    denominator = math.fsum(sample.base for sample in pilots)
    value = math.fsum(sample.value for sample in pilots) / denominator if denominator else 0.0
    if value <= 0.0:
        return MOST
    spread = _error(pilots, value) * math.sqrt(len(pilots)) / value
    return min(MOST, max(FEWEST, math.ceil((t_quantile(confidence, FEWEST) * spread / precision) ** 2)))


def _error(samples: Sequence[Sample], value: float) -> float:
    """Return the standard error of the quotient; 0 of one sample."""
    count = len(samples)
    denominator = math.fsum(sample.base for sample in samples)
    if count < 2 or not denominator:
        return 0.0
    squares = math.fsum((sample.value - value * sample.base) ** 2 for sample in samples)
    return math.sqrt(squares / (count - 1) / count) / (denominator / count)
