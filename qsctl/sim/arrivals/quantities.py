"""Distributions of message lengths and service times as the records that `draw.draw_quantity` reads."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from qsctl.sim.arrivals.draw import (
    GUIDES,
    SIZE_CONSTANT,
    SIZE_EXPONENTIAL,
    SIZE_LOGNORMAL,
    SIZE_MIXED,
    SIZE_PARETO,
    SIZE_UNIFORM,
)
from qsctl.sim.kernel.random import logarithm
from qsctl.sim.scenario.parts.client import (
    ConstantTime,
    ExponentialTime,
    LognormalTime,
    MixedTime,
    ParetoTime,
    ServiceTime,
    UniformTime,
)
from qsctl.sim.scenario.scenario import (
    ConstantSize,
    ExponentialSize,
    LognormalSize,
    MixedSize,
    ParetoSize,
    Size,
    UniformSize,
)


def lay_quantity(records: npt.NDArray[Any], quantity: Size | ServiceTime, table: list[float]) -> bool:
    """Write a distribution into records; return whether all its values are at least 1.

    Args:
        records: records with the fields `size_…` of STREAM; changed in place.
        quantity: the distribution.
        table: the kernel's table, to which the cumulative weights and values of a mixed distribution are appended.
    """
    match quantity:
        case ConstantSize(value) | ConstantTime(value):
            least: float = value
            records["size_kind"], records["size_max"] = SIZE_CONSTANT, value
        case UniformSize(minimum, maximum) | UniformTime(minimum, maximum):
            least = min(minimum, maximum - minimum + 1)
            records["size_kind"], records["size_max"] = SIZE_UNIFORM, maximum
            records["size_a"], records["size_b"] = minimum, maximum
        case LognormalSize(median, sigma, maximum) | LognormalTime(median, sigma, maximum):
            least = min(median, maximum, 1 if sigma >= 0 else 0)
            records["size_kind"], records["size_max"] = SIZE_LOGNORMAL, maximum
            records["size_a"], records["size_b"] = logarithm(float(max(1, median))), sigma
        case ExponentialSize(mean, maximum) | ExponentialTime(mean, maximum):
            least = min(mean, maximum)
            records["size_kind"], records["size_max"], records["size_a"] = SIZE_EXPONENTIAL, maximum, mean
        case ParetoSize(minimum, shape, maximum) | ParetoTime(minimum, shape, maximum):
            least = min(minimum, maximum - minimum + 1, 1 if shape > 0 else 0)
            records["size_kind"], records["size_max"] = SIZE_PARETO, maximum
            records["size_a"], records["size_b"] = minimum, shape
        case MixedSize(values, weights) | MixedTime(values, weights):
            usable = len(values) == len(weights) and all(w >= 0 for w in weights) and sum(weights) > 0
            least = min(values, default=0) if usable else 0
            records["size_kind"], records["size_max"] = SIZE_MIXED, max(values, default=0)
            records["size_table"], records["size_entries"] = len(table), len(values)
            if usable:
                table += guided(cumulative(list(weights)), [float(value) for value in values])
    return least >= 1


def cumulative(weights: list[float]) -> list[float]:
    """Return the cumulative sums of the weights, as fractions of their total."""
    total = sum(weights)
    shares, reached = [], 0.0
    for weight in weights:
        reached += weight
        shares.append(reached / total)
    return shares


def guided(shares: list[float], values: list[float]) -> list[float]:
    """Return one table of cumulative shares, their values, and a guide table, for `draw.find_step`.

    Entry g of the guide is the index of the first share above g divided by the number of entries.
    """
    parts = np.arange(GUIDES * len(shares)) / (GUIDES * len(shares))
    guide = np.minimum(np.searchsorted(shares, parts, side="right"), len(shares) - 1)
    return [*shares, *values, *guide.astype(np.float64).tolist()]
