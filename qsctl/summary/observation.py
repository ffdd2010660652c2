"""What of a message counts, and when: the columns that every measure builds on.

Decides: the warm-up rule (statistics restart at `warm_up_ns`, the queues' state does not), what leaving a queue is,
and the bucket of a duration. An event counts when it happened at or after the end of the warm-up.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as f

from qsctl.eventlog.schema import BUCKETS_PER_OCTAVE_BITS, Outcome
from qsctl.instant import Nanoseconds


@dataclass(frozen=True, slots=True)
class Observation:
    """The observed part of a run: from `warm_up_ns` (included) to `horizon_ns` (excluded)."""

    warm_up_ns: Nanoseconds
    horizon_ns: Nanoseconds

    @property
    def observed_ns(self) -> Nanoseconds:
        """How long the observation lasts."""
        return self.horizon_ns - self.warm_up_ns


def left_queue() -> Column:
    """The message is no longer in its queue: sent, or lost."""
    return f.col("wait_ns").isNotNull()


def left_ns() -> Column:
    """When the message left its queue; null while it is in it."""
    return f.col("enqueued_ns") + f.col("wait_ns")


def delivered() -> Column:
    """The message left its queue for the client's connection (seed 004: Delivered counts what left the queue)."""
    return left_queue() & f.col("outcome").isin(Outcome.DELIVERED.value, Outcome.HELD.value)


def ended_as(outcome: Outcome) -> Column:
    """The message left its queue with this outcome."""
    return left_queue() & (f.col("outcome") == outcome.value)


def still_queued() -> Column:
    """The message was in its queue when the run ended."""
    return f.col("wait_ns").isNull() & (f.col("outcome") == Outcome.HELD.value)


def counted_at(instant: Column, observation: Observation) -> Column:
    """The instant belongs to the observed part."""
    return instant >= f.lit(observation.warm_up_ns)


def counted(condition: Column) -> Column:
    """How many rows hold the condition."""
    return f.count(f.when(condition, f.lit(1)))


def summed(value: Column, condition: Column) -> Column:
    """The sum of a column over the rows that hold the condition; 0 where none does."""
    return f.coalesce(f.sum(f.when(condition, value).otherwise(f.lit(0))), f.lit(0))


def bucket_of(duration: str) -> Column:
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
    return f.expr(f"int(shiftleft({shift}, {bits}) + shiftright({duration}, {shift}))")
