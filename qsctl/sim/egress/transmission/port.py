"""The port: when what is given to it leaves it."""

from __future__ import annotations

from typing import Any

from qsctl.sim.kernel.jit import inlined_part, quotient, row, wide
from qsctl.sim.kernel.records import PORT


@inlined_part
def serialization(size: int, numerator: int, denominator: int) -> int:
    """Return nanoseconds on the wire, rounded up."""
    if denominator == 1:
        return size * numerator
    return quotient(size * numerator + denominator - 1, denominator)


@inlined_part
def leave_port_in_turn(ports: Any, number: int, t: int, size: int, count: int) -> tuple[int, int]:
    """Give a port `count` times `size` bytes at `t`; return when the first begin to leave, and how long each takes."""
    port = row(ports, number, PORT)
    begin = wide(max(t, port.free))
    pace = wide(serialization(size, port.num, port.den))
    port.free = begin + count * pace
    return begin, pace


@inlined_part
def leave_port(ports: Any, number: int, t: int, size: int) -> int:
    """Return when the last byte of a message given to a port at `t` leaves it: a FIFO, Lindley's recursion."""
    port = row(ports, number, PORT)
    depart = max(t, port.free) + serialization(size, port.num, port.den)
    port.free = depart
    return wide(depart)
