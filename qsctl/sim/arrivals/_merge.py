"""The final sorting of a window's rows, which are nearly in order of time."""

from __future__ import annotations

from typing import Any, Final

from qsctl.sim.kernel.jit import kernel

MOVES_A_ROW: Final = 16
"""Beyond which another way to sort is faster."""


@kernel
def sort_within_spans(rows: Any, count: int, aside: Any) -> bool:
    """Sort the first `count` rows by time, in place, by insertion; rows of one time stay in their order.

    Few rows written by `draw.place_rows` are out of order, and these by few places.

    Args:
        rows: rows of ARRIVAL.
        count: the number of rows to sort.
        aside: one row, scratch.

    Returns:
        False when too many rows were out of order: the rows are unsorted then, with those of one time still in order.
    """
    moves = MOVES_A_ROW * count
    for i in range(1, count):
        time = rows[i].time
        if rows[i - 1].time <= time:
            continue
        aside[0] = rows[i]
        place = i
        while place > 0 and rows[place - 1].time > time:
            rows[place] = rows[place - 1]
            place -= 1
        rows[place] = aside[0]
        moves -= i - place
        if moves < 0:
            return False
    return True
