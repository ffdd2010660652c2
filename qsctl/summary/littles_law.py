"""Little's law as a check of the log: mean depth = arrivals per second × mean wait.

The left side is the waiting time inside the observation, the right side the rate and the mean of the messages that
left. Over a run that starts and ends empty both are the same sum; what waits at either end makes the difference.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from qsctl.instant import SECOND_NS
from qsctl.summary.groups import grouped, whole, with_columns
from qsctl.summary.observation import Observation


def littles_law(per_replication: pa.Table, observation: Observation, keys: Sequence[str]) -> pa.Table:
    """One row a group that any message met: both sides of the law, and their difference as a share of the larger.

    Args:
        per_replication: of `counters.replicated`, with these keys.
        observation: the observed part of the run.
        keys: the columns grouped by; several replications count as one long run.
    """
    summed = ("arrived_messages", "left_messages", "inside_ns", "all_wait_sum_ns")
    met = whole(per_replication, "arrived_messages") + whole(per_replication, "left_messages")
    rows = per_replication.filter(pa.array(met + whole(per_replication, "inside_ns") > 0))
    rows = with_columns(rows, {"replications": pa.array(np.ones(rows.num_rows, np.int64))})
    sums = grouped(rows, keys, **dict.fromkeys((*summed, "replications"), "sum"))
    observed_ns = whole(sums, "replications") * float(observation.observed_ns)
    mean_depth = whole(sums, "inside_ns") / observed_ns
    arrivals_per_second = whole(sums, "arrived_messages") * float(SECOND_NS) / observed_ns
    mean_wait_ns = whole(sums, "all_wait_sum_ns") / np.maximum(whole(sums, "left_messages"), 1)
    expected_depth = arrivals_per_second * mean_wait_ns / SECOND_NS
    larger = np.maximum(mean_depth, expected_depth)
    difference = np.abs(mean_depth - expected_depth) / np.where(larger > 0, larger, 1.0)
    return with_columns(
        sums.select(list(keys)),
        {
            "mean_depth_messages": pa.array(mean_depth),
            "arrivals_per_second": pa.array(arrivals_per_second),
            "mean_wait_ns": pa.array(mean_wait_ns),
            "expected_depth_messages": pa.array(expected_depth),
            "relative_difference": pa.array(difference),
        },
    )
