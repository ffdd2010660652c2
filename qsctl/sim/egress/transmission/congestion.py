"""The congestion window of a lossy connection, its growth, and its reduction at a loss: Reno, and CUBIC by option.

Reno (RFC 5681, RFC 3465): below the threshold the window grows by the segments acknowledged, at most by two for each
acknowledgment; above it by one segment for each window acknowledged, which is one a round trip. A loss halves it. CUBIC
(RFC 9438): after a loss at W_max the window is the larger of W_max + 0.4 (t − K)³, t in seconds, and that of a Reno
flow of the same average; a loss reduces it by three tenths.

All in integers, so that every machine computes the same: milliseconds and thousandths of a segment.
"""

from __future__ import annotations

from typing import Any, Final

from qsctl.sim.kernel.jit import inlined_part, part, row, wide
from qsctl.sim.kernel.records import MORE, NONE, STATE, TCP

WINDOW_SEGMENTS_MIN: Final = 2
"""Below which no loss brings the threshold (RFC 5681, equation 4)."""
SLOW_START_SEGMENTS: Final = 2
"""By which one acknowledgment opens the window at most in slow start (RFC 3465, 2.2)."""
MILLI: Final = 1000
CUBED_MS_A_SEGMENT: Final = 2_500_000_000
"""1 ÷ C, with C = 0.4 segments ÷ s³ (RFC 9438, 5.1)."""
CUBED_MS_A_MILLI_TWICE: Final = 5_000_000
"""Twice the same for a thousandth of a segment."""
SPAN_MAX_MS: Final = 1_000_000
"""Of the distance from K, beyond which every window is at its maximum; the cube of it fits 64 bits."""
RENO_MILLI: Final = 529
"""α = 3 (1 − β) ÷ (1 + β), in thousandths, with β = 0.7 (RFC 9438, 4.3)."""


@part
def cube_root(value: int) -> int:
    """Return the integer part of the cube root of a value ≥ 0, bit by bit."""
    root = wide(0)
    rest = value
    for shift in range(60, -1, -3):
        root += root
        step = 3 * root * (root + 1) + 1
        if (rest >> shift) >= step:
            rest -= step << shift
            root += 1
    return root


@inlined_part
def opened(window: int, threshold: int, credit: int, acknowledged: int) -> tuple[int, int]:
    """Return the window after an acknowledgment of `acknowledged` segments, and the fractional growth left over.

    For slow start and for Reno's congestion avoidance.
    """
    if window < threshold:
        return min(window + min(acknowledged, SLOW_START_SEGMENTS), threshold), credit
    credit += acknowledged
    if credit >= window:
        steps = credit // window
        credit -= steps * window
        window += steps
    return window, credit


@inlined_part
def grow(state: Any, c: int, t: int, acknowledged: int) -> None:
    """Enlarge the congestion window after an acknowledgment of `acknowledged` segments."""
    broker = row(state, 0, STATE)
    tcp = row(broker.connections, row(broker.more, c, MORE).connection, TCP)
    window = wide(tcp.window)
    if window >= tcp.threshold and tcp.cubic != 0:
        window = follow_cubic(state, c, t, acknowledged)
    else:
        window, credit = opened(window, wide(tcp.threshold), wide(tcp.credit), acknowledged)
        tcp.credit = credit
    tcp.window = min(window, wide(tcp.most))


@inlined_part
def cubic_milli(peak: int, elapsed_ms: int, root_ms: int) -> int:
    """Return the value of CUBIC's window function, in thousandths of a segment."""
    span = max(-SPAN_MAX_MS, min(SPAN_MAX_MS, elapsed_ms - root_ms))
    return peak * MILLI + 2 * span * span * span // CUBED_MS_A_MILLI_TWICE


@part
def follow_cubic(state: Any, c: int, t: int, acknowledged: int) -> int:
    """Return CUBIC's window after an acknowledgment in congestion avoidance (RFC 9438, 4.2 to 4.5)."""
    broker = row(state, 0, STATE)
    tcp = row(broker.connections, row(broker.more, c, MORE).connection, TCP)
    window = wide(tcp.window)
    if tcp.epoch == NONE:
        tcp.epoch = t
        tcp.estimate = window * MILLI
        tcp.root = 0
        if window < tcp.peak:
            tcp.root = cube_root((tcp.peak - window) * CUBED_MS_A_SEGMENT)
        else:
            tcp.peak = window
    gain = MILLI if tcp.estimate >= tcp.prior * MILLI else RENO_MILLI
    tcp.estimate += gain * acknowledged // window
    elapsed = wide(t - tcp.epoch)
    peak = wide(tcp.peak)
    root = wide(tcp.root)
    if cubic_milli(peak, elapsed // 1_000_000, root) < tcp.estimate:
        return wide(max(window, tcp.estimate // MILLI))
    target = cubic_milli(peak, (elapsed + tcp.smoothed) // 1_000_000, root)
    target = min(max(target, window * MILLI), window * MILLI * 3 // 2)
    credit = tcp.credit + acknowledged * (target - window * MILLI) // window
    steps = credit // MILLI
    tcp.credit = credit - steps * MILLI
    return wide(window + steps)


@part
def note_loss(state: Any, c: int) -> None:
    """Lower the slow start threshold after the loss of a segment; for CUBIC record the window at the loss as well."""
    broker = row(state, 0, STATE)
    tcp = row(broker.connections, row(broker.more, c, MORE).connection, TCP)
    flight = wide(tcp.newest - tcp.oldest)
    if tcp.cubic == 0:
        tcp.threshold = max(flight // 2, WINDOW_SEGMENTS_MIN)
        return
    window = wide(tcp.window)
    tcp.prior = window
    tcp.peak = window * 17 // 20 if window < tcp.peak else window  # fast convergence (4.7)
    tcp.epoch = NONE
    tcp.threshold = max(flight * 7 // 10, WINDOW_SEGMENTS_MIN)
