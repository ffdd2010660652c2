"""Tests and confidence bounds of a mean that hold for every distribution between 0 and a bound.

The method is betting: under the hypothesis that the mean is on the wrong side of the limit, a capital that is
multiplied after each run by 1 + bet · (observed value − value under the hypothesis) does not grow in expectation, so
that it ever reaches 1/ε with a probability of at most ε (Ville's inequality). Therefore a test may be evaluated after
every run, and the bound of a mean is the value at which the capital is 1/ε: a confidence sequence (Waudby-Smith and
Ramdas, "Estimating means of bounded random variables by betting", Journal of the Royal Statistical Society B 86, 2024).
The capital here is a fixed average over a few bets, so that it does not depend on the order of the runs.

No method bounds the mean of an arbitrary distribution from above (Bahadur and Savage, "The nonexistence of certain
statistical procedures in nonparametric problems", Annals of Mathematical Statistics 27, 1956): one run in a thousand
may outweigh all others. Therefore an upper bound of a run's value must be known or assumed, and is stated with the
answer. To show that a mean is *above* a limit, it is enough that no value is negative.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

BETS: Final = (0.98, 0.7, 0.4, 0.2, 0.08, 0.02)
"""The bets, as fractions of the largest bet that keeps the capital positive."""
WEIGHTS: Final = (0.7, 0.06, 0.06, 0.06, 0.06, 0.06)
"""Parts of the capital for each bet; the largest bet is best if peaks are possible but not observed."""
_STEPS: Final = 60
_BETS: Final = np.array(BETS)
_LOG_WEIGHTS: Final = np.log(np.array(WEIGHTS))


def shown_below(values: Sequence[float], limit: float, bound: float, error: float) -> bool:
    """Return whether the mean of values between 0 and `bound` is shown to be below a limit, with error probability
    `error`.
    """
    return limit > bound or _log_capital_below(np.asarray(values), limit, bound) >= -math.log(error)


def shown_above(values: Sequence[float], limit: float, error: float) -> bool:
    """Return whether the mean of non-negative values is shown to be above a limit, with error probability `error`."""
    return limit < 0.0 or _log_capital_above(np.asarray(values), limit) >= -math.log(error)


def upper_bound(values: Sequence[float], bound: float, error: float) -> float:
    """Return the upper confidence bound of the mean of values between 0 and `bound`, with error probability `error`."""
    seen, needed = np.asarray(values), -math.log(error)
    low, high = float(seen.mean()), bound
    for _ in range(_STEPS):
        middle = (low + high) / 2.0
        low, high = (low, middle) if _log_capital_below(seen, middle, bound) >= needed else (middle, high)
    return high


def lower_bound(values: Sequence[float], error: float) -> float:
    """Return the lower confidence bound of the mean of non-negative values, with error probability `error`."""
    seen, needed = np.asarray(values), -math.log(error)
    low, high = 0.0, float(seen.mean())
    for _ in range(_STEPS):
        middle = (low + high) / 2.0
        low, high = (middle, high) if _log_capital_above(seen, middle) >= needed else (low, middle)
    return low


def can_be_shown_below(
    values: Sequence[float], more: int, limit: float, bound: float, error: float, then: float = 0.0
) -> bool:
    """Return whether the mean could be shown to be below a limit after `more` further values that are all `then`."""
    return limit > bound or _log_capital_below(np.asarray(values), limit, bound, more, then) >= -math.log(error)


def runs_to_show_below(value: float, limit: float, bound: float, error: float) -> float:
    """Return the number of runs that show a mean below a limit if each has this value; infinite if no number does."""
    if limit > bound:
        return 1.0
    best = math.inf
    for bet, weight in zip(BETS, WEIGHTS, strict=True):
        growth = math.log1p(bet * (limit - value) / (bound - limit)) if bound > limit else math.inf
        if growth > 0.0:
            best = min(best, max(1.0, math.ceil((-math.log(error) - math.log(weight)) / growth)))
    return best


def _log_capital_below(values: np.ndarray, limit: float, bound: float, more: int = 0, then: float = 0.0) -> float:
    """Return the logarithm of the capital against "the mean is not below the limit"."""
    room = bound - limit
    if room <= 0.0:
        # Every value is at most the limit, and the capital grows without bound if one is below it.
        return math.inf if (values < limit).any() else -math.inf
    return _log_capital((limit - values) / room, more, (limit - then) / room)


def _log_capital_above(values: np.ndarray, limit: float) -> float:
    """Return the logarithm of the capital against "the mean is not above the limit"."""
    if limit <= 0.0:
        return math.inf if (values > 0.0).any() else -math.inf
    return _log_capital((values - limit) / limit)


def _log_capital(gains: np.ndarray, more: int = 0, then: float = 0.0) -> float:
    """Return the logarithm of the capital averaged over all bets, from the gains of the runs, which are at least −1."""
    logs = _LOG_WEIGHTS + np.log1p(np.multiply.outer(_BETS, gains)).sum(axis=1)
    if more:
        logs += more * np.log1p(_BETS * then)
    return float(np.logaddexp.reduce(logs))
