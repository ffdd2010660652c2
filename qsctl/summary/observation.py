"""What of a message counts, and when: for columns of Arrow and, as texts of SQL, for those of Spark.

Decides: the warm-up rule (statistics restart at `warm_up_ns`, the queues' state does not), what leaving a queue is,
and the bucket of a duration. An event counts when it happened at or after the end of the warm-up. They are texts and
no column objects, for each step of a column object is a round trip to Java of about a millisecond.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from qsctl.eventlog.schema import BUCKETS_PER_OCTAVE_BITS, Outcome
from qsctl.instant import Nanoseconds
from qsctl.summary.groups import Whole

Flags = npt.NDArray[np.bool_]

LEFT: Final = "wait_ns is not null"
"""The message is no longer in its queue: sent, or lost."""

LEFT_NS: Final = "(enqueued_ns + wait_ns)"
"""When the message left its queue; null while it is in it."""

DELIVERED: Final = f"wait_ns is not null and outcome = '{Outcome.DELIVERED.value}'"
"""The message left its queue for the client's connection (seed 004: Delivered counts what left the queue); from G-1,
which holds it until then, by being acknowledged."""

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


def waits(batch: pa.Table) -> tuple[Flags | None, Whole, Whole]:
    """Of a part of the log: which messages left their queues (None: all of them), their waits, and when they left.

    A message that is still there has a wait of 0 and left when it came; the flags tell it apart.
    """
    wait = batch["wait_ns"]
    gone = None if wait.null_count == 0 else np.asarray(pc.is_valid(wait).to_numpy(), np.bool_)
    wait_ns = np.asarray(pc.fill_null(wait, 0).to_numpy(), np.int64)
    return gone, wait_ns, np.asarray(batch["enqueued_ns"].to_numpy(), np.int64) + wait_ns


def outcome_numbers(batch: pa.Table, numbers: Mapping[str, int], otherwise: int) -> Whole:
    """A number for each message's outcome."""
    outcome = batch["outcome"].combine_chunks()
    outcome = outcome.chunk(0) if isinstance(outcome, pa.ChunkedArray) else outcome
    of_word = np.array([numbers.get(word, otherwise) for word in outcome.dictionary.to_pylist()] or [0], np.int64)
    return np.asarray(of_word[outcome.indices.to_numpy(zero_copy_only=False)], np.int64)


def coarse_bucket(wait_ns: Whole) -> Whole:
    """`COARSE_BUCKET` in numpy: the same operations of the same doubles."""
    return np.asarray(16 * np.sqrt(np.sqrt(np.sqrt(wait_ns.astype(np.float64)))), np.int64)


def fine_bucket(duration_ns: Whole) -> Whole:
    """The histogram bucket of durations, as `eventlog.schema.bucket_of` computes it.

    A double's exponent gives the power of two up to rounding; one integer comparison makes it exact.
    """
    power = np.frexp(np.maximum(duration_ns, 1).astype(np.float64))[1].astype(np.int64) - 1
    power -= (np.int64(1) << power) > np.maximum(duration_ns, 1)
    shift = np.maximum(0, power - BUCKETS_PER_OCTAVE_BITS)
    return (shift << BUCKETS_PER_OCTAVE_BITS) + (duration_ns >> shift)


def literal(text: str) -> str:
    """A text as SQL writes it."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def listed(*columns: str) -> str:
    """Columns in a row, each once."""
    return ", ".join(dict.fromkeys(columns))
