"""What of a message counts, and when: the SQL texts that every measure builds on.

Decides: the warm-up rule (statistics restart at `warm_up_ns`, the queues' state does not), what leaving a queue is,
and the bucket of a duration. An event counts when it happened at or after the end of the warm-up. They are texts and
no column objects, for each step of a column object is a round trip to Java of about a millisecond.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from qsctl.eventlog.schema import BUCKETS_PER_OCTAVE_BITS, Outcome
from qsctl.instant import Nanoseconds

LEFT: Final = "wait_ns is not null"
"""The message is no longer in its queue: sent, or lost."""

LEFT_NS: Final = "(enqueued_ns + wait_ns)"
"""When the message left its queue; null while it is in it."""

DELIVERED: Final = f"wait_ns is not null and outcome in ('{Outcome.DELIVERED.value}', '{Outcome.HELD.value}')"
"""The message left its queue for the client's connection (seed 004: Delivered counts what left the queue)."""

COARSE_BUCKET: Final = "int(16 * sqrt(sqrt(sqrt(double(wait_ns)))))"
"""A number that never falls as the wait grows: some 200 from a microsecond to a minute.

It only narrows down where a rank lies before the second pass. The histogram's fine buckets would make ten times the
groups, and a logarithm costs more than three square roots.
"""


def coarse_start_ns(bucket: int) -> Nanoseconds:
    """The shortest wait in a coarse bucket, or in the next that has any: found by halving, for roots are rounded."""
    low, high = 0, 1 << 63
    while low < high:
        middle = (low + high) // 2
        if int(16 * math.sqrt(math.sqrt(math.sqrt(middle)))) < bucket:
            low = middle + 1
        else:
            high = middle
    return min(low, (1 << 63) - 1)


@dataclass(frozen=True, slots=True)
class Observation:
    """The observed part of a run: from `warm_up_ns` (included) to `horizon_ns` (excluded)."""

    warm_up_ns: Nanoseconds
    horizon_ns: Nanoseconds

    @property
    def observed_ns(self) -> Nanoseconds:
        """How long the observation lasts."""
        return self.horizon_ns - self.warm_up_ns

    def counts(self, instant: str) -> str:
        """The condition that an instant belongs to the observed part."""
        return f"{instant} >= {self.warm_up_ns}L" if self.warm_up_ns else f"{instant} is not null"


def bucket_of(duration: str) -> str:
    """The histogram bucket of a duration column, as `eventlog.schema.bucket_of` computes it.

    The logarithm gives the power of two up to rounding; two integer comparisons make it exact.
    """
    bits = BUCKETS_PER_OCTAVE_BITS
    guess = f"int(floor(log2(double(greatest({duration}, 1L)))))"
    power = (
        f"({guess} + if(shiftleft(1L, least({guess} + 1, 62)) <= {duration}, 1, 0)"
        f" - if(shiftleft(1L, {guess}) > greatest({duration}, 1L), 1, 0))"
    )
    shift = f"greatest(0, {power} - {bits})"
    return f"int(shiftleft({shift}, {bits}) + shiftright({duration}, {shift}))"


def literal(text: str) -> str:
    """A text as SQL writes it."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def listed(*columns: str) -> str:
    """Columns in a row, each once."""
    return ", ".join(dict.fromkeys(columns))
