"""The comparison of two runs of one replication each: sample by sample if the arrivals are equal, else by blocks.

The messages of a queue are divided into `BLOCKS` blocks of consecutive arrivals: batches that are long enough to depend
little on each other (Schmeiser, "Batch size effects in the analysis of simulation output", Operations Research 30,
1982: 10 to 30 batches). Messages within a block depend on each other and are never counted as observations.

If both runs have the same messages in the same order, their blocks are paired. If neither side is better, exchanging
the two in any block changes nothing: the p-value is the part of random exchanges whose difference is at least as large
(Fisher's randomization test; Pitman, "Significance tests which may be applied to samples from any populations", Journal
of the Royal Statistical Society Supplement 4, 1937), which holds for means, ratios and percentiles alike. The interval
is that of a bootstrap of whole blocks, in pairs (Künsch, "The jackknife and the bootstrap for general stationary
observations", Annals of Statistics 17, 1989). Otherwise the blocks of each side are resampled separately, and the
difference is compared with its standard error by Student's t.

The statements hold for this load: its variation beyond one run is not included.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from qsctl.errors import QsctlError
from qsctl.eventlog.location import Location
from qsctl.eventlog.outcomes import LOSSES, Outcome
from qsctl.eventlog.reader import open_run
from qsctl.eventlog.schema import BUCKETS_PER_OCTAVE_BITS, bucket_bounds_ns
from qsctl.summary.inference.statistics import Interval, TestedDifference
from qsctl.summary.inference.student import t_quantile, two_sided_p

if TYPE_CHECKING:
    import pyarrow as pa

BLOCKS: Final = 20
DRAWS: Final = 1_999
_CHUNK: Final = 500
MOST_MESSAGES: Final = 20_000_000
"""Largest number of messages of a run that are read for a comparison."""
FEWEST_MESSAGES: Final = 10 * BLOCKS
SAMPLES: Final = "exchange of blocks of paired samples"
BOOTSTRAP: Final = "block bootstrap of one run each"
_TO_DONE: Final = "time_to_done"
_COLUMNS: Final = ("client_id", "queue", "size_bytes", "enqueued_ns", "wait_ns", "acknowledge_ns", "outcome")


@dataclass(frozen=True, slots=True)
class QueueMessages:
    """The messages that arrived in a queue, in the order of arrival, as arrays."""

    arrivals: np.ndarray
    """Client and size of each message, which do not depend on the settings."""
    wait_ns: np.ndarray
    """The wait of each message; −1 if it was not delivered."""
    done_ns: np.ndarray
    """The time to done of each message; −1 if it was not acknowledged."""
    lost: np.ndarray
    elided: np.ndarray
    discarded: np.ndarray


@dataclass(frozen=True, slots=True)
class Blocks:
    """Sums of each block: delivered, lost and elided messages, their times, and the histograms of the times."""

    counts: np.ndarray
    """A row for each block, with columns: messages delivered, lost, elided; sum of the waits in ns; messages discarded
    by the limit; messages acknowledged, and the sum of their times to done in ns.
    """
    histogram: np.ndarray
    """Histogram of waits: a row for each block, a column for each bucket of `edges`."""
    edges: np.ndarray
    """The last duration of each bucket of waits, in ns."""
    done_histogram: np.ndarray
    """Histogram of times to done, in the same form."""
    done_edges: np.ndarray

    def of(self, measure: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the histogram and its edges from which a measure is computed."""
        if measure.startswith(_TO_DONE):
            return self.done_histogram, self.done_edges
        return self.histogram, self.edges


def messages_of(folder: Location) -> Mapping[str, QueueMessages]:
    """Return the messages of a run of one replication, by queue; empty if they were not logged or are too many."""
    import pyarrow as pa

    try:
        run = open_run(folder)
        logged = run.info.log_level != "counters" and len(run.info.done) == 1
        if not logged or sum(each.message_rows for each in run.info.done) > MOST_MESSAGES:
            return {}
        table = pa.Table.from_batches(list(run.messages(_COLUMNS)))
    except (QsctlError, ValueError):
        return {}
    return {name: _of_queue(table, name) for name in sorted(set(table["queue"].unique().to_pylist()))}


def _of_queue(table: pa.Table, queue: str) -> QueueMessages:
    import pyarrow as pa
    import pyarrow.compute as pc

    mine = table.filter(pc.equal(pc.cast(table["queue"], pa.string()), queue))
    outcomes = pc.cast(mine["outcome"], pa.string())
    columns = {name: mine[name].to_numpy() for name in ("client_id", "size_bytes", "enqueued_ns")}
    order = np.lexsort((columns["size_bytes"], columns["client_id"], columns["enqueued_ns"]))
    delivered = pc.equal(outcomes, Outcome.DELIVERED.value).to_numpy()
    wait = np.where(delivered, pc.fill_null(mine["wait_ns"], 0).to_numpy(), -1)
    lost = pc.is_in(outcomes, pa.array([each.value for each in LOSSES])).to_numpy()
    elided = pc.equal(outcomes, Outcome.ELIDED.value).to_numpy()
    arrivals = np.stack([columns["client_id"], columns["size_bytes"]], axis=1)
    discarded = pc.equal(outcomes, Outcome.DISCARDED.value).to_numpy()
    done = np.where(delivered, pc.fill_null(mine["acknowledge_ns"], -1).to_numpy(), -1)
    return QueueMessages(arrivals[order], wait[order], done[order], lost[order], elided[order], discarded[order])


def buckets_of(durations_ns: np.ndarray) -> np.ndarray:
    """Return the bucket of each duration, as defined by `eventlog.schema.bucket_of`."""
    exponent = np.frexp(np.maximum(durations_ns, 1).astype(np.float64))[1].astype(np.int64)
    shift = np.maximum(0, exponent - BUCKETS_PER_OCTAVE_BITS - 1)
    buckets: np.ndarray = (shift << BUCKETS_PER_OCTAVE_BITS) + (durations_ns.astype(np.int64) >> shift)
    return buckets


def same_arrivals(a: QueueMessages, b: QueueMessages) -> bool:
    """Return whether both sides had the same messages in the same order."""
    return a.arrivals.shape == b.arrivals.shape and bool((a.arrivals == b.arrivals).all())


def blocks_of(a: QueueMessages, b: QueueMessages, count: int = BLOCKS) -> tuple[Blocks, Blocks]:
    """Return the blocks of two sides, with common buckets."""
    waits, dones = ([getattr(side, time) for side in (a, b)] for time in ("wait_ns", "done_ns"))
    (wait_a, wait_b), edges = _histograms(waits, count)
    (done_a, done_b), done_edges = _histograms(dones, count)
    return (
        Blocks(_sums(a, count), wait_a, edges, done_a, done_edges),
        Blocks(_sums(b, count), wait_b, edges, done_b, done_edges),
    )


def _block_of(messages: int, count: int) -> np.ndarray:
    """Return the number of each message's block."""
    block: np.ndarray = np.arange(messages) * count // max(1, messages)
    return block


def _histograms(sides: list[np.ndarray], count: int) -> tuple[list[np.ndarray], np.ndarray]:
    """Return the histograms of a time on both sides, by block, and the last duration of each bucket.

    A time of −1 means that the message has none.
    """
    names = np.unique(np.concatenate([buckets_of(times[times >= 0]) for times in sides]))
    edges = np.array([bucket_bounds_ns(int(bucket))[1] for bucket in names], dtype=np.float64)
    made = []
    for times in sides:
        there = times >= 0
        histogram = np.zeros((count, max(1, len(names))))
        place = np.searchsorted(names, buckets_of(times[there]))
        np.add.at(histogram, (_block_of(len(times), count)[there], place), 1.0)
        made.append(histogram)
    return made, edges


def _sums(side: QueueMessages, count: int) -> np.ndarray:
    block = _block_of(len(side.wait_ns), count)
    delivered, done = side.wait_ns >= 0, side.done_ns >= 0
    columns = (
        delivered, side.lost, side.elided, np.where(delivered, side.wait_ns, 0), side.discarded, done,
        np.where(done, side.done_ns, 0),
    )  # fmt: skip
    sums = [np.bincount(block, weights=values.astype(np.float64), minlength=count) for values in columns]
    return np.stack(sums, axis=1)


Statistic = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
"""Computes a measure for each draw, from sums of blocks (a row for each draw), histograms and edges."""


def _percentile(part: float, column: int = 0) -> Statistic:
    def statistic(counts: np.ndarray, histogram: np.ndarray, edges: np.ndarray) -> np.ndarray:
        if not len(edges):
            return np.full(len(counts), np.nan)
        rank = np.ceil(part * counts[:, column])
        place = (np.cumsum(histogram, axis=1) < rank[:, None] - 0.5).sum(axis=1)
        return np.where(counts[:, column] > 0, edges[np.minimum(place, len(edges) - 1)], np.nan)

    return statistic


STATISTICS: Final[Mapping[str, Statistic]] = {
    "discards": lambda counts, _h, _e: counts[:, 4],
    "lost": lambda counts, _h, _e: counts[:, 1],
    "loss_ratio": lambda counts, _h, _e: counts[:, 1] / np.maximum(1.0, counts[:, :3].sum(axis=1)),
    "delivered": lambda counts, _h, _e: counts[:, 0],
    "throughput": lambda counts, _h, _e: counts[:, 0],
    "time_in_queue_mean": lambda counts, _h, _e: counts[:, 3] / np.maximum(1.0, counts[:, 0]),
    "time_in_queue_p50": _percentile(0.5),
    "time_in_queue_p90": _percentile(0.9),
    "time_in_queue_p99": _percentile(0.99),
    "time_in_queue_p999": _percentile(0.999),
    "time_to_done_mean": lambda counts, _h, _e: counts[:, 6] / np.maximum(1.0, counts[:, 5]),
    "time_to_done_p50": _percentile(0.5, 5),
    "time_to_done_p90": _percentile(0.9, 5),
    "time_to_done_p99": _percentile(0.99, 5),
    "time_to_done_p999": _percentile(0.999, 5),
}
"""The measures that can be compared within runs; for counts and throughput only the sign and the p-value are used."""


def paired_by_samples(
    a: Blocks, b: Blocks, measure: str, difference: float, confidence: float, draws: np.random.Generator
) -> TestedDifference:
    """Test a difference between two runs with the same arrivals.

    Args:
        a: blocks of one side.
        b: blocks of the other side, with the same messages.
        measure: one of `STATISTICS`.
        difference: B − A, from the counters.
        confidence: confidence level of the interval.
        draws: generator of random numbers.
    """
    statistic, count = STATISTICS[measure], len(a.counts)
    (histogram_a, edges), (histogram_b, _) = a.of(measure), b.of(measure)
    sides = draws.integers(0, 2, (DRAWS, count)).astype(np.float64)

    def of(weights_a: np.ndarray, weights_b: np.ndarray) -> np.ndarray:
        # In chunks, since one histogram for each draw is large.
        chunks = [slice(at, at + _CHUNK) for at in range(0, len(weights_a), _CHUNK)]
        return np.concatenate(
            [
                statistic(
                    weights_a[each] @ a.counts + weights_b[each] @ b.counts,
                    weights_a[each] @ histogram_a + weights_b[each] @ histogram_b,
                    edges,
                )
                for each in chunks
            ]
        )

    none, every = np.zeros((1, count)), np.ones((1, count))
    seen = float((of(none, every) - of(every, none))[0])
    exchanged = of(sides, 1.0 - sides) - of(1.0 - sides, sides)
    # Comparisons of floating-point sums must not depend on the order of summation.
    reached = np.abs(exchanged) >= abs(seen) * (1.0 - 1e-9)
    p_value = 1.0 if not seen else float((1 + np.nan_to_num(reached).sum()) / (DRAWS + 1))
    picked = draws.multinomial(count, np.full(count, 1.0 / count), 999).astype(np.float64)
    zero = np.zeros_like(picked)
    spread = np.nanstd(of(zero, picked) - of(picked, zero))
    scale = abs(difference / seen) if seen else 1.0
    half_width = t_quantile(confidence, count - 1) * float(spread) * scale
    return TestedDifference(Interval(difference, half_width, 1, SAMPLES), p_value)


def by_blocks(
    a: Blocks, b: Blocks, measure: str, difference: float, confidence: float, draws: np.random.Generator
) -> TestedDifference:
    """Test a difference between two runs with different arrivals; arguments as for `paired_by_samples`."""
    statistic = STATISTICS[measure]
    errors, seen = [], []
    if "_p" in measure:
        # A percentile depends on few messages, which are correlated over longer times.
        a, b = _longer(a), _longer(b)
    for side in (a, b):
        count = len(side.counts)
        histogram, edges = side.of(measure)
        picked = draws.multinomial(count, np.full(count, 1.0 / count), 999).astype(np.float64)
        resampled = float(np.nanstd(statistic(picked @ side.counts, picked @ histogram, edges)))
        every = np.ones((1, count))
        whole = float(statistic(every @ side.counts, every @ histogram, edges)[0])
        seen.append(whole)
        # A percentile that depends on few blocks varies more than resampling shows; the percentiles of blocks show it.
        of_time = measure.startswith("time_")
        own = statistic(side.counts, histogram, edges) if of_time else np.zeros(count)
        sections = math.sqrt(float(np.nanmean((own - whole) ** 2)) / (count - 1)) if own.any() else 0.0
        errors.append(max(resampled, sections))
    plain = seen[1] - seen[0]
    error = math.hypot(*errors) * (abs(difference / plain) if plain else 1.0)
    degrees = min(len(a.counts), len(b.counts)) - 1
    if not error:
        return TestedDifference(Interval(difference, math.inf, 1, BOOTSTRAP), 1.0)
    p_value = two_sided_p(abs(difference) / error, degrees)
    return TestedDifference(Interval(difference, t_quantile(confidence, degrees) * error, 1, BOOTSTRAP), p_value)


def _longer(blocks: Blocks) -> Blocks:
    """Merge pairs of blocks into blocks of twice the length."""
    count = len(blocks.counts) // 2

    def pairs(rows: np.ndarray) -> np.ndarray:
        summed: np.ndarray = rows[: 2 * count].reshape(count, 2, -1).sum(axis=1)
        return summed

    return Blocks(
        pairs(blocks.counts), pairs(blocks.histogram), blocks.edges, pairs(blocks.done_histogram), blocks.done_edges
    )
