"""The port as a FIFO server with a line rate: the departure times of the bytes sent to it."""

from __future__ import annotations

from typing import Any

from qsctl.sim.kernel.jit import inlined_part, quotient, row, wide
from qsctl.sim.kernel.records import PORT


@inlined_part
def serialization(size: int, numerator: int, denominator: int) -> int:
    """Return the transmission time of `size` bytes in nanoseconds, rounded up."""
    if denominator == 1:
        return size * numerator
    return quotient(size * numerator + denominator - 1, denominator)


@inlined_part
def leave_port_in_turn(ports: Any, number: int, t: int, size: int, count: int) -> tuple[int, int]:
    """Send `count` segments of `size` bytes to a port at `t`.

    Returns the time at which the first begins to leave, and the transmission time of each.
    """
    port = row(ports, number, PORT)
    begin = wide(max(t, port.free))
    pace = wide(serialization(size, port.num, port.den))
    port.free = begin + count * pace
    return begin, pace


@inlined_part
def leave_port(ports: Any, number: int, t: int, size: int) -> int:
    """Return when the last byte of a message sent to a port at `t` leaves it: a FIFO, by Lindley's recursion."""
    port = row(ports, number, PORT)
    depart = max(t, port.free) + serialization(size, port.num, port.den)
    port.free = depart
    return wide(depart)
