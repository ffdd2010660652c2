"""The selection of samples that have rows: a fraction, chosen by a hash of the identity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from zlib import crc32

from qsctl.identity import Guid, SampleIdentity

_HASHES: Final = 1 << 32


class Sampling:
    """The selection of a fraction of samples. It depends on the identity only, so all rows of a sample exist, or none.

    Args:
        share: the fraction of samples, above 0 and at most 1.
    """

    def __init__(self, share: float) -> None:
        self.share = share
        self._below = _HASHES if share >= 1 else round(share * _HASHES)

    def choose(self, writer_guid: Guid, numbers: range) -> Sequence[int]:
        """Return the numbers of those samples of a writer that have rows."""
        if self._below == _HASHES:
            return numbers
        return [number for number in numbers if self.chooses(SampleIdentity(writer_guid, number))]

    def chooses(self, identity: SampleIdentity) -> bool:
        """Return whether a sample has rows."""
        if self._below == _HASHES:
            return True
        # Two rounds: the CRC of consecutive numbers alone is as regular as the numbers are.
        first = crc32(identity.sequence_number.to_bytes(8, "little", signed=True), crc32(identity.writer_guid))
        return (first * 0x9E3779B1 ^ first >> 15) % _HASHES < self._below
