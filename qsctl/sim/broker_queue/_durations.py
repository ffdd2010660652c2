"""Draws of durations: work, start-ups and thinking times, out of the distributions of `scenario.parts.work_time`.

Draw n of a key is the same whatever else is drawn. The gamma distribution is drawn by rejection (Marsaglia and Tsang,
"A simple method for generating gamma variables", ACM Transactions on Mathematical Software 26, 2000), each draw from a
stream of its own; below a shape of 1 one of shape + 1 is multiplied by a power of a uniform number, as they propose.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Final

from qsctl.sim.arrivals.draw import whole
from qsctl.sim.arrivals.quantities import cumulative
from qsctl.sim.broker_queue._records import DISTRIBUTION, VALUE
from qsctl.sim.kernel.jit import part, row
from qsctl.sim.kernel.random import exponential, logarithm, normal, uniform, uniform_bits
from qsctl.sim.scenario.parts.empirical import read_times
from qsctl.sim.scenario.parts.work_time import WORK_MAX_NS, WorkKind, WorkTime

CONSTANT: Final = 0
EXPONENTIAL: Final = 1
LOGNORMAL: Final = 2
GAMMA: Final = 3
UNIFORM: Final = 4
TABLE: Final = 5

_FAR: Final = 1 << 40
"""The number of the uniform draw that a gamma distribution below shape 1 needs besides those of its rejections."""
_TRIES: Final = 1000


def lay_work(work: WorkTime, values: list[float]) -> tuple[int, int, int, int, float, float]:
    """Return the row of DISTRIBUTION of a distribution.

    Args:
        work: the distribution.
        values: the kernel's table, to which cumulative weights and times are added.
    """
    times = work.times_ns
    match work.kind:
        case WorkKind.CONSTANT:
            return CONSTANT, times[0], 0, 0, 0.0, 0.0
        case WorkKind.EXPONENTIAL:
            return EXPONENTIAL, WORK_MAX_NS, 0, 0, float(times[0]), 0.0
        case WorkKind.LOGNORMAL:
            return LOGNORMAL, WORK_MAX_NS, 0, 0, *work.lognormal_parameters()
        case WorkKind.GAMMA:
            shape = 1.0 / (work.variation * work.variation)
            return GAMMA, WORK_MAX_NS, 0, 0, shape, times[0] / shape
        case WorkKind.UNIFORM:
            return UNIFORM, times[1], 0, 0, float(times[0]), float(times[1])
        case WorkKind.HISTOGRAM:
            weights = list(work.weights)
        case WorkKind.EMPIRICAL:
            times, counts = read_times(Path(work.path))
            weights = [float(count) for count in counts]
    place = len(values)
    values += cumulative(weights)
    values += [float(time) for time in times]
    return TABLE, WORK_MAX_NS, place, len(times), 0.0, 0.0


@part
def draw_gamma(key: Any, n: int, shape: float) -> float:
    """Return draw `n` of the gamma distribution of this shape and scale 1."""
    own = uniform_bits(key, n)
    boost = 1.0
    if shape < 1.0:
        boost = exponential(max(-700.0, logarithm(uniform(own, _FAR)) / shape))
        shape += 1.0
    d = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    for attempt in range(_TRIES):
        x = normal(own, 2 * attempt)
        v = 1.0 + c * x
        if v > 0.0:
            v = v * v * v
            if logarithm(uniform(own, 2 * attempt + 1)) < 0.5 * x * x + d - d * v + d * logarithm(v):
                return boost * d * v
    return boost * d


@part
def draw_time(distributions: Any, place: int, key: Any, n: int, values: Any) -> int:
    """Return draw `n` of a distribution in nanoseconds: at least 1, except from a constant, a range or a table."""
    drawn = row(distributions, place, DISTRIBUTION)
    kind = drawn.kind
    longest = drawn.most
    if kind == CONSTANT:
        return int(longest)
    if kind == EXPONENTIAL:
        return whole(-logarithm(uniform(key, n)) * drawn.a, longest)
    if kind == LOGNORMAL:
        return whole(exponential(drawn.a + drawn.b * normal(key, n)), longest)
    if kind == GAMMA:
        return whole(draw_gamma(key, n, drawn.a) * drawn.b, longest)
    u = uniform(key, n)
    if kind == UNIFORM:
        return int(drawn.a) + int(u * (drawn.b - drawn.a + 1.0))
    low = drawn.table
    high = low + drawn.entries - 1
    while low < high:
        middle = (low + high) >> 1
        if row(values, middle, VALUE).value > u:
            high = middle
        else:
            low = middle + 1
    return int(row(values, low + drawn.entries, VALUE).value)
