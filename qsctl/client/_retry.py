"""Attempts and the pauses between them: to process a sample, or to write one.

>>> from qsctl.client import Retry
>>> [round(pause, 1) for pause in Retry(attempts=5, first_s=0.1, factor=3.0, longest_s=2.0, jitter=0.0).pauses()]
[0.1, 0.3, 0.9, 2.0]
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass

from qsctl.errors import UsageError


@dataclass(frozen=True, slots=True)
class Retry:
    """Attempts with exponential back-off. Times in seconds.

    Args:
        attempts: the number of attempts, the first included.
        first_s: the pause before the second attempt.
        factor: the ratio of each pause to the one before.
        longest_s: the longest pause.
        jitter: the random fraction of each pause, so that many consumers do not retry at once; 0: none.

    Raises:
        UsageError: a value is out of range.
    """

    attempts: int = 3
    first_s: float = 0.1
    factor: float = 2.0
    longest_s: float = 10.0
    jitter: float = 0.2

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise UsageError(f"attempts {self.attempts} is out of range", remedy="Give 1 or more.")
        for name, least in (("first_s", 0.0), ("factor", 1.0), ("longest_s", 0.0)):
            value = getattr(self, name)
            if not (least <= value < math.inf):
                raise UsageError(f"{name} {value} is out of range", remedy=f"Give {least:g} or more.")
        if not 0.0 <= self.jitter <= 1.0:
            raise UsageError(f"jitter {self.jitter} is out of range", remedy="Give a fraction from 0 to 1.")

    def pauses(self) -> Iterator[float]:
        """Yield the pause before each attempt except the first, in seconds."""
        pause_s = self.first_s
        for _ in range(self.attempts - 1):
            bounded = min(pause_s, self.longest_s)
            yield bounded * (1.0 - self.jitter * random.random())
            pause_s = bounded * self.factor


ONCE = Retry(attempts=1)
"""A single attempt."""
