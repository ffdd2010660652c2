"""The SQL expressions shared by all measures: which messages count, and when they enter and leave a queue.

Decides the warm-up rule (statistics restart at `warm_up_ns`, the queues' state does not), the definitions of entering
and leaving a queue, and the bucket of a wait. An event counts when it happened at or after the end of the warm-up.
Expressions are texts, not column objects, since each step of a column object is a round trip to Java of about a
millisecond.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from qsctl.eventlog.outcomes import Outcome
from qsctl.eventlog.schema import BUCKETS_PER_OCTAVE_BITS
from qsctl.instant import Nanoseconds
from qsctl.summary.measures.by_run import by_run, expression_by_run

LEFT_NS: Final = "(enqueued_ns + wait_ns)"
"""The instant at which a message's wait ended, because it was sent or lost; null while it waits."""

ENTERED_NS: Final = "(enqueued_ns + enter_ns)"
"""The instant at which a message entered its queue; null if it did not, for instance while it waits at its endpoint."""

DELIVERED: Final = f"outcome = '{Outcome.DELIVERED.value}'"
"""The message left its queue for the client's connection (Delivered counts what left the queue [SOL-QUEUES]); from G-1,
which holds it until then, when it was acknowledged.
"""

_BUCKETS_AN_OCTAVE_ROOT: Final = 12

SUM_HIGH: Final = "_high"
SUM_LOW: Final = "_low"
SUM_LOW_BITS: Final = 31
"""Bits of each value in the lower of the two sums of `exact_sum`."""

COARSE_BUCKET: Final = f"int({_BUCKETS_AN_OCTAVE_ROOT} * sqrt(sqrt(sqrt(double(wait_ns)))))"
"""A bucket number that increases with the wait: some 240 buckets from a microsecond to a minute. It only locates a rank
before the second pass. With twice as many, the first pass was slower by more than the second was faster; the
histogram's fine buckets would make twenty times the groups. A logarithm costs more than three square roots.
"""

_WHOLE_WAIT: Final = "greatest(wait_ns, 1L)"
_ROUGH_POWER: Final = f"int(log2(double({_WHOLE_WAIT})))"
_POWER: Final = (
    f"({_ROUGH_POWER} + int(shiftleft(1L, {_ROUGH_POWER} + 1) <= {_WHOLE_WAIT}) "
    f"- int(shiftleft(1L, {_ROUGH_POWER}) > {_WHOLE_WAIT}))"
)
"""The power of two in a wait; a logarithm may be wrong by one near a power of two, which two comparisons correct."""

_SHIFT: Final = f"greatest(0, {_POWER} - {BUCKETS_PER_OCTAVE_BITS})"

FINE_BUCKET: Final = f"int(shiftleft({_SHIFT}, {BUCKETS_PER_OCTAVE_BITS}) + shiftright(wait_ns, {_SHIFT}))"
"""The bucket of the histogram, as computed by `eventlog.schema.bucket_of`."""


def coarse_start_ns(bucket: int) -> Nanoseconds:
    """Return the shortest wait in a coarse bucket, or in the next non-empty bucket, by bisection, since roots are
    rounded.
    """
    low, high = 0, 1 << 63
    while low < high:
        middle = (low + high) // 2
        if int(_BUCKETS_AN_OCTAVE_ROOT * math.sqrt(math.sqrt(math.sqrt(middle)))) < bucket:
            low = middle + 1
        else:
            high = middle
    return min(low, (1 << 63) - 1)


@dataclass(frozen=True, slots=True)
class Observation:
    """The observed part of each run of a frame: from `warm_up_ns` (included) to `horizon_ns` (excluded).

    For several runs both are tuples, in the order of the column `run_number`.
    """

    warm_up_ns: Nanoseconds | tuple[Nanoseconds, ...]
    horizon_ns: Nanoseconds | tuple[Nanoseconds, ...]

    @property
    def warm_ups_ns(self) -> tuple[Nanoseconds, ...]:
        """The end of each run's warm-up."""
        return self.warm_up_ns if isinstance(self.warm_up_ns, tuple) else (self.warm_up_ns,)

    @property
    def horizons_ns(self) -> tuple[Nanoseconds, ...]:
        """The end of each run."""
        return self.horizon_ns if isinstance(self.horizon_ns, tuple) else (self.horizon_ns,)

    @property
    def warm_up(self) -> str:
        """The end of the warm-up of a row's run, as an SQL expression."""
        return by_run([f"{each}L" for each in self.warm_ups_ns])

    @property
    def horizon(self) -> str:
        """The end of a row's run, as an SQL expression."""
        return by_run([f"{each}L" for each in self.horizons_ns])

    @property
    def observed(self) -> str:
        """The length of the observation of a row's run, as an SQL expression."""
        return by_run([f"{end - begin}d" for begin, end in zip(self.warm_ups_ns, self.horizons_ns, strict=True)])

    @property
    def has_warm_up(self) -> bool:
        """Return whether any run has a warm-up."""
        return any(self.warm_ups_ns)

    @property
    def left(self) -> str:
        """The SQL condition that a message's wait ended in the observed part."""
        # Without a warm-up, the condition reads only one column.
        return "wait_ns is not null" + (f" and {self.counts(LEFT_NS)}" if self.has_warm_up else "")

    def counts(self, instant: str) -> str:
        """Return the SQL condition that an instant belongs to the observed part."""
        return f"{instant} >= {self.warm_up}" if self.has_warm_up else f"{instant} is not null"


@dataclass(frozen=True, slots=True)
class Holding:
    """The queues that hold messages after sending, until they are acknowledged.

    The log's `wait_ns` ends, for every message, when it is sent. G-1 holds a guaranteed message for longer (the
    vendor's tuning guide, `scenario.GuaranteedOverflow.HOLD`), and a shared reader queue holds every sample: a message
    leaves such a queue with its acknowledgment, and one that was sent and not acknowledged is still held.
    """

    clients: frozenset[int] = frozenset()
    """Numbers of the clients whose G-1 holds messages."""
    everywhere: bool = False
    """Whether every queue holds messages, as in a service with shared reader queues."""

    @property
    def gone_ns(self) -> str:
        """Return the SQL expression of the instant at which a message left its queue; null if it is still in it or
        never was.
        """
        held = (
            f"case outcome when '{Outcome.HELD}' then null "
            f"when '{Outcome.DELIVERED}' then enqueued_ns + coalesce(acknowledge_ns, wait_ns) else {LEFT_NS} end"
        )
        if self.everywhere:
            return f"({held})"
        if not self.clients:
            return LEFT_NS
        holds = f"queue = 'G-1' and client_id in ({listed_numbers(self.clients)})"
        return f"(case when {holds} then {held} else {LEFT_NS} end)"


@dataclass(frozen=True, slots=True)
class HoldingByRun:
    """The queues that hold messages until they are acknowledged, for each run of a frame."""

    runs: tuple[Holding, ...]

    @property
    def gone_ns(self) -> str:
        """Return the SQL expression of the instant at which a message left its queue, as `Holding.gone_ns`."""
        return expression_by_run([each.gone_ns for each in self.runs])


def exact_sum(column: str, name: str) -> str:
    """Return two SQL sums of a 64-bit column that cannot overflow; `finishing.arrow.with_exact_sums` combines them.

    Spark's own check of each addition (`spark.sql.ansi.enabled`) was a third of the time of a short summary.
    """
    return (
        f"sum(shiftright({column}, {SUM_LOW_BITS})) as {name}{SUM_HIGH}, "
        f"sum({column} & {(1 << SUM_LOW_BITS) - 1}L) as {name}{SUM_LOW}"
    )


def listed_numbers(numbers: Collection[int]) -> str:
    """Return numbers as a list in SQL."""
    return ", ".join(map(str, sorted(numbers)))


def literal(text: str) -> str:
    """Return a text as an SQL literal without braces, since a statement has the names of frames between braces."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    parts = [_BRACES.get(part, f"'{part}'") for part in re.split(r"([{}])", escaped)]
    return parts[0] if len(parts) == 1 else f"concat({', '.join(parts)})"


_BRACES: Final = {brace: f"char({ord(brace)})" for brace in "{}"}


def listed(*columns: str) -> str:
    """Return the names of columns as a list in SQL, without duplicates."""
    return ", ".join(dict.fromkeys(columns))
