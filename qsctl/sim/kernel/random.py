"""Counter-based random numbers: draw n of a stream is a hash of the stream's key and n, whatever else is drawn.

So a client's arrivals stay the same when other clients, queues or limits change (common random numbers), and any
number of workers draws the same. The functions use integer arithmetic and the four operations and square root of
IEEE 754 alone, no library's logarithm, so that every machine draws the same bits.
"""

from __future__ import annotations

import hashlib
import math
from typing import Any, Final

import numpy as np

from qsctl.sim.kernel.jit import kernel

GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)
MIX_1: Final = np.uint64(0xBF58476D1CE4E5B9)
MIX_2: Final = np.uint64(0x94D049BB133111EB)
S30: Final = np.uint64(30)
S27: Final = np.uint64(27)
S31: Final = np.uint64(31)
S11: Final = np.uint64(11)
TWO_53: Final = 1.0 / 9007199254740992.0
LN_2: Final = 0.6931471805599453
HALF_SQRT_2: Final = 0.7071067811865476
ONE: Final = np.uint64(1)


def stream_key(seed: int, replication: int, *names: object) -> int:
    """Return the key of a stream: a hash of the seed, the replication and the stream's name and purpose."""
    text = "\x1f".join(str(part) for part in (seed, replication, *names))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


@kernel
def uniform_bits(key: Any, n: int) -> Any:
    """64 random bits: draw `n` ≥ 0 of the stream `key` (the mixer of splitmix64)."""
    z = key + (np.uint64(n) + ONE) * GOLDEN
    z = (z ^ (z >> S30)) * MIX_1
    z = (z ^ (z >> S27)) * MIX_2
    return z ^ (z >> S31)


@kernel
def uniform(key: Any, n: int) -> float:
    """In (0, 1): the 53 upper bits, half a step off the ends."""
    return (float(uniform_bits(key, n) >> S11) + 0.5) * TWO_53


@kernel
def logarithm(x: float) -> float:
    """Return the natural logarithm of x > 0, within 4 units in the last place, the same on every machine."""
    x, exponent = math.frexp(x)
    if x < HALF_SQRT_2:
        x *= 2.0
        exponent -= 1
    s = (x - 1.0) / (x + 1.0)
    z = s * s
    series = 1.0 / 19.0
    series = series * z + 1.0 / 17.0
    series = series * z + 1.0 / 15.0
    series = series * z + 1.0 / 13.0
    series = series * z + 1.0 / 11.0
    series = series * z + 1.0 / 9.0
    series = series * z + 1.0 / 7.0
    series = series * z + 1.0 / 5.0
    series = series * z + 1.0 / 3.0
    series = series * z + 1.0
    return 2.0 * s * series + float(exponent) * LN_2


@kernel
def exponential(x: float) -> float:
    """E to the power x, for |x| ≤ 700, the same on every machine."""
    k = int(np.floor(x / LN_2 + 0.5))
    r = x - float(k) * LN_2
    total = 1.0
    for i in range(16, 0, -1):
        total = 1.0 + total * r / float(i)
    scale = 2.0 if k > 0 else 0.5
    for _ in range(abs(k)):
        total *= scale
    return total


@kernel
def normal(key: Any, n: int) -> float:
    """Draw `n` of the standard normal distribution: Marsaglia's polar method, with a stream of its own for each n."""
    own = uniform_bits(key, n)
    for attempt in range(64):  # each succeeds with probability π/4
        u = 2.0 * uniform(own, 2 * attempt) - 1.0
        v = 2.0 * uniform(own, 2 * attempt + 1) - 1.0
        s = u * u + v * v
        if 0.0 < s < 1.0:
            return u * math.sqrt(-2.0 * logarithm(s) / s)
    return 0.0
