"""Bits of a message's flags as listings print them.

Decides: their numbers. The vendor's documents give USERDB and ISONDISK; the others are this engine's own, in bits that
nothing else uses.
"""

from __future__ import annotations

from typing import Final

from qsctl.core.integration.message import Flag

BITS: Final[dict[Flag, int]] = {
    Flag.ISONDISK: 0x0000_1000,
    Flag.KEEPONDISK: 0x0000_2000,
    Flag.USERDB: 0x0000_8000,
    Flag.REROUTED: 0x0100_0000,
    Flag.POSSIBLE_DUPLICATE: 0x0200_0000,
    Flag.RESENT: 0x0400_0000,
}


def listed_bits(flags: Flag) -> int:
    """Return the bits that a listing prints for a message's flags."""
    return sum(bit for flag, bit in BITS.items() if flag in flags)


def names_of(bits: int) -> list[str]:
    """Return the names of the known bits, lowest bit first."""
    return [str(flag.name) for flag, bit in BITS.items() if bits & bit]
