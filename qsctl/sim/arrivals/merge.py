"""Many streams' arrivals of one window put into time order: a stable radix sort, least significant digit first."""

from __future__ import annotations

from typing import Any, Final

from qsctl.sim.kernel.jit import kernel

DIGIT_BITS: Final = 11
DIGITS: Final = 1 << DIGIT_BITS


@kernel
def merge_by_time(
    rows: Any, count: int, start_ns: int, ordered: Any, keys: Any, order: Any, spare: Any, counts: Any
) -> None:
    """Copy the first `count` rows to `ordered`, by time; rows of one time stay in the order of their streams.

    Arrays:
        rows: ARRIVAL with times ≥ `start_ns`; ordered: ARRIVAL, filled.
        keys: int64; order, spare: int32; scratch of the same length. counts: int64[DIGITS].
    """
    widest = 0
    ascending = True
    for i in range(count):
        keys[i] = rows[i].time - start_ns
        order[i] = i
        widest = max(widest, keys[i])
        if i > 0 and keys[i] < keys[i - 1]:
            ascending = False
    if ascending:
        widest = 0
    shift = 0
    while widest >> shift > 0:
        for digit in range(DIGITS):
            counts[digit] = 0
        for i in range(count):
            counts[(keys[i] >> shift) & (DIGITS - 1)] += 1
        total = 0
        for digit in range(DIGITS):
            here = counts[digit]
            counts[digit] = total
            total += here
        for i in range(count):
            row = order[i]
            digit = (keys[row] >> shift) & (DIGITS - 1)
            spare[counts[digit]] = row
            counts[digit] += 1
        for i in range(count):
            order[i] = spare[i]
        shift += DIGIT_BITS
    for i in range(count):
        ordered[i] = rows[order[i]]
