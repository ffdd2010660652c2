"""Distributions of sizes, with their moments."""

from __future__ import annotations

import numpy as np

from qsctl.sim.scenario.scenario import (
    ConstantSize,
    MixedSize,
    Size,
)


def geometric(mean: float, longest: int) -> MixedSize:
    sizes = tuple(range(1, longest + 1))
    return MixedSize(sizes, tuple((1 - 1 / mean) ** (size - 1) for size in sizes))


def moments(size: Size) -> tuple[float, float]:
    if isinstance(size, ConstantSize):
        return float(size.size_bytes), float(size.size_bytes) ** 2
    assert isinstance(size, MixedSize)
    weights = np.array(size.weights) / sum(size.weights)
    values = np.array(size.sizes_bytes, float)
    return float((weights * values).sum()), float((weights * values**2).sum())
