"""Counter-based random numbers: draw n of a stream is a hash of the stream's key and n, independent of other draws.

So a client's arrivals stay the same when other clients, queues or limits change (common random numbers), and any
number of workers draws the same. The functions use integer arithmetic and the four operations and square root of
IEEE 754 alone, no library's logarithm, so that every machine draws the same bits.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from qsctl.sim.kernel._ziggurat import ENDS, HEIGHTS, SURE, TAIL
from qsctl.sim.kernel.jit import inlined, kernel

GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)
MIX_1: Final = np.uint64(0xBF58476D1CE4E5B9)
MIX_2: Final = np.uint64(0x94D049BB133111EB)
S30: Final = np.uint64(30)
S27: Final = np.uint64(27)
S31: Final = np.uint64(31)
S11: Final = np.uint64(11)
S52: Final = np.uint64(52)
S55: Final = np.uint64(55)
MANTISSA: Final = np.uint64((1 << 52) - 1)
HALF: Final = np.uint64(0x3FE << 52)
"""The exponent of numbers from 0.5 to 1."""
LAYER: Final = np.uint64(255)
NEGATIVE: Final = np.uint64(256)
TWO_53: Final = 1.0 / 9007199254740992.0
LN_2: Final = 0.6931471805599453
LN_2_HIGH: Final = 6.93147180369123816490e-01
LN_2_LOW: Final = 1.90821492927058770002e-10
"""The two halves of ln 2: the first has so few digits that its product with an exponent is exact."""
HALF_SQRT_2: Final = 0.7071067811865476
ONE: Final = np.uint64(1)
TRIES: Final = 64
"""Of a draw by rejection; each succeeds nearly always."""
TWICE_TRIES: Final = 2 * TRIES


def stream_key(seed: int, replication: int, *names: object) -> int:
    """Return the key of a stream: a hash of the seed, the replication and the stream's name and purpose."""
    text = "\x1f".join(str(part) for part in (seed, replication, *names))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def stream_keys(
    seed: int, replication: int, names: tuple[object, ...], count: int, purpose: str = ""
) -> npt.NDArray[np.uint64]:
    """Return the keys of streams that differ by a number from 0 on: `stream_key` of the names, a number, the purpose.

    The common beginning of their texts is hashed once, so that each takes 0.6 µs. Hashing in NumPy arrays takes longer;
    a kernel does not, but has to be compiled where no ready-made code exists.
    """
    begin = "\x1f".join(str(part) for part in (seed, replication, *names, ""))
    begun = hashlib.blake2b(begin.encode(), digest_size=8)
    end = f"\x1f{purpose}" if purpose else ""
    digests = bytearray()
    for number in range(count):
        each = begun.copy()
        each.update(f"{number}{end}".encode())
        digests += each.digest()
    return np.frombuffer(digests, "<u8").astype(np.uint64)


@inlined
def uniform_bits(key: Any, n: int) -> Any:
    """Return 64 random bits: draw `n` ≥ 0 of the stream `key` (the mixer of splitmix64)."""
    z = key + (np.uint64(n) + ONE) * GOLDEN
    z = (z ^ (z >> S30)) * MIX_1
    z = (z ^ (z >> S27)) * MIX_2
    return z ^ (z >> S31)


@inlined
def uniform(key: Any, n: int) -> float:
    """Return a uniform draw in (0, 1), from the 53 upper bits, at least half a step from both ends."""
    return (float(uniform_bits(key, n) >> S11) + 0.5) * TWO_53


@inlined
def logarithm(x: float) -> float:
    """Return the natural logarithm of x ≥ 2.3e-308, within 4 units in the last place, the same on every machine.

    Without a branch or a call, so that a compiler does several at a time.
    """
    bits = np.float64(x).view(np.uint64)
    exponent = float(bits >> S52) - 1022.0
    part = np.uint64((bits & MANTISSA) | HALF).view(np.float64)
    low = part < HALF_SQRT_2
    part = part * 2.0 if low else part
    exponent = exponent - 1.0 if low else exponent
    s = (part - 1.0) / (part + 1.0)
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
    return 2.0 * s * series + exponent * LN_2


@inlined
def exponential(x: float) -> float:
    """Return e to the power x, the same on every machine; x is limited to ±700."""
    x = min(max(x, -700.0), 700.0)
    k = np.floor(x * (1.0 / LN_2) + 0.5)
    r = (x - k * LN_2_HIGH) - k * LN_2_LOW
    total = 1.0 / 6227020800.0
    total = total * r + 1.0 / 479001600.0
    total = total * r + 1.0 / 39916800.0
    total = total * r + 1.0 / 3628800.0
    total = total * r + 1.0 / 362880.0
    total = total * r + 1.0 / 40320.0
    total = total * r + 1.0 / 5040.0
    total = total * r + 1.0 / 720.0
    total = total * r + 1.0 / 120.0
    total = total * r + 1.0 / 24.0
    total = total * r + 1.0 / 6.0
    total = total * r + 0.5
    total = total * r + 1.0
    total = total * r + 1.0
    return float(total * np.uint64(np.uint64(np.int64(k) + 1023) << S52).view(np.float64))


@inlined
def with_sign(distance: float, bits: Any) -> float:
    """Return `distance` with a random sign, without a branch: the processor would mispredict half of them."""
    return float(np.uint64(np.float64(distance).view(np.uint64) | ((bits & NEGATIVE) << S55)).view(np.float64))


@inlined
def normal(key: Any, n: int) -> float:
    """Return draw `n` of the standard normal distribution, by the ziggurat of `_ziggurat.py`."""
    own = uniform_bits(key, n)
    layer = own & LAYER
    part = float(own >> S11) * TWO_53
    if part < SURE[layer]:
        return with_sign(part * ENDS[layer], own)
    return normal_by_rejection(own)


@kernel
def normal_by_rejection(own: Any) -> float:
    """Return a normal draw by rejection, for first bits outside the sure part of a layer; `own`: the draw's stream."""
    bits = own
    for attempt in range(TRIES):
        layer = bits & LAYER
        part = float(bits >> S11) * TWO_53
        distance = part * ENDS[layer]
        accepted = part < SURE[layer]
        if not accepted and layer == 0:
            distance = beyond_tail(own, attempt)
            accepted = True
        elif not accepted:
            height = HEIGHTS[layer] + uniform(own, 2 * attempt) * (HEIGHTS[layer + ONE] - HEIGHTS[layer])
            accepted = height < exponential(-0.5 * distance * distance)
        if accepted:
            return with_sign(distance, bits)
        bits = uniform_bits(own, 2 * attempt + 1)
    return 0.0


@kernel
def beyond_tail(own: Any, attempt: int) -> float:
    """Return a draw of the tail of the normal distribution (Marsaglia 1964): `own` is the draw's stream."""
    first = uniform_bits(own, TWICE_TRIES + attempt)
    for n in range(TRIES):
        x = -logarithm(uniform(first, 2 * n)) / TAIL
        if -2.0 * logarithm(uniform(first, 2 * n + 1)) > x * x:
            return TAIL + x
    return TAIL
