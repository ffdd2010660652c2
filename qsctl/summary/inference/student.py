"""Quantiles and tail probabilities of Student's t distribution.

Plain Python, exact to about ten digits, so that no statistics library is a dependency.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Final

_ITERATIONS: Final = 300
_TINY: Final = 1e-300
_PRECISION: Final = 1e-15


@cache
def t_quantile(confidence: float, degrees_of_freedom: int) -> float:
    """Return the t of a two-sided interval of this confidence: 12.706 for 0.95 and one degree of freedom.

    Raises:
        ValueError: the confidence is not inside (0, 1), or the degrees of freedom are less than 1.
    """
    if not 0.0 < confidence < 1.0 or degrees_of_freedom < 1:
        raise ValueError(f"no t quantile for confidence {confidence} and {degrees_of_freedom} degrees of freedom")
    low, high = 0.0, 1.0
    while _two_sided(high, degrees_of_freedom) < confidence:
        high *= 2.0
    for _ in range(200):
        middle = (low + high) / 2.0
        if _two_sided(middle, degrees_of_freedom) < confidence:
            low = middle
        else:
            high = middle
        if high - low <= _PRECISION * high:
            break
    return (low + high) / 2.0


def two_sided_p(t: float, degrees_of_freedom: int) -> float:
    """Return the probability of |T| > t, for t ≥ 0, exact to about ten digits also for small probabilities."""
    x = degrees_of_freedom / (degrees_of_freedom + t * t)
    return _incomplete_beta(degrees_of_freedom / 2.0, 0.5, x)


def _two_sided(t: float, degrees_of_freedom: int) -> float:
    """Return the probability of |T| ≤ t."""
    return 1.0 - two_sided_p(t, degrees_of_freedom)


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """Return the regularized incomplete beta function, by its continued fraction on the side where that converges
    fast.
    """
    if x <= 0.0:
        return 0.0
    if x >= 1.0:
        return 1.0
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    if x < (a + 1.0) / (a + b + 2.0):
        return front * _beta_fraction(a, b, x) / a
    return 1.0 - front * _beta_fraction(b, a, 1.0 - x) / b


def _beta_fraction(a: float, b: float, x: float) -> float:
    """Return the continued fraction of the incomplete beta function, evaluated forward (Lentz's method)."""
    numerator = 1.0
    denominator = 1.0 / _away_from_zero(1.0 - (a + b) * x / (a + 1.0))
    fraction = denominator
    for step in range(1, _ITERATIONS):
        for term in (
            step * (b - step) * x / ((a + 2 * step - 1) * (a + 2 * step)),
            -(a + step) * (a + b + step) * x / ((a + 2 * step) * (a + 2 * step + 1)),
        ):
            denominator = 1.0 / _away_from_zero(1.0 + term * denominator)
            numerator = _away_from_zero(1.0 + term / numerator)
            change = numerator * denominator
            fraction *= change
        if abs(change - 1.0) < _PRECISION:
            break
    return fraction


def _away_from_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY
