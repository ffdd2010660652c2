"""Tables of the ziggurat that the normal distribution is drawn with (Marsaglia and Tsang, 2000).

The half below the density exp(-x²/2) at x ≥ 0 is covered by `LAYERS` pieces of one area: rectangles, and below them
all a rectangle with the tail. Layer i ends at x(i), and x(i + 1) < x(i); x(0) is the width that the lowest rectangle
would have if the tail were in it. The tables are worked out in decimal arithmetic and rounded once, so that they are
the same bits on every machine.

Source: G. Marsaglia, W. W. Tsang, "The ziggurat method for generating random variables", Journal of Statistical
Software 5 (8), 2000. Layer, sign and position are drawn from independent bits, as J. A. Doornik requires ("An
improved ziggurat method to generate normal random samples", University of Oxford, 2005).
"""

from __future__ import annotations

from decimal import Context, Decimal, localcontext
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt

LAYERS: Final = 256
_TAIL: Final = "3.6541528853610087963519472518"
"""Beginning of the tail for 256 layers: with it the recurrence ends at the top of the density."""
_DIGITS: Final = 30
_TERMS: Final = 150
"""Of the continued fraction of the tail's area: more than all digits want."""


def _tables() -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return the ends of the layers, the part of each that is surely below the density, and the density at the ends."""
    with localcontext(Context(prec=_DIGITS)):
        tail = Decimal(_TAIL)
        fraction = tail
        for term in range(_TERMS, 0, -1):
            fraction = tail + term / fraction
        at_tail = (-tail * tail / 2).exp()
        area = tail * at_tail + at_tail / fraction
        ends, heights = [area / at_tail, tail], [Decimal(0), at_tail]
        while len(ends) < LAYERS:
            heights.append(heights[-1] + area / ends[-1])
            ends.append((-2 * heights[-1].ln()).sqrt())
        ends.append(Decimal(0))
        heights.append(Decimal(1))
        sure = [following / end for end, following in pairwise(ends)]
        return (
            np.array([float(end) for end in ends[:LAYERS]]),
            np.array([float(part) for part in sure]),
            np.array([float(height) for height in heights]),
        )


ENDS, SURE, HEIGHTS = _tables()
"""Of layer i: x(i), the part x(i + 1) / x(i) of it that is below the density, the density at x(i); 0 at x(0)."""

TAIL: Final = float(_TAIL)
