"""Little's law as a check of the log: mean depth = arrivals per second × mean wait.

The left side is the waiting time inside the observation, the right side the rate and the mean of the messages that
left. Over a run that starts and ends empty both are the same sum; what waits at either end makes the difference.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from qsctl.instant import SECOND_NS
from qsctl.summary.observation import Observation, listed


def littles_law(per_replication: DataFrame, observation: Observation, keys: Sequence[str]) -> DataFrame:
    """One row a group that any message met: both sides of the law, and their difference as a share of the larger.

    Args:
        per_replication: of `counters.replicated`, with these keys.
        observation: the observed part of the run.
        keys: the columns grouped by; several replications count as one long run.
    """
    return per_replication.sparkSession.sql(
        f"""with sums as (
            select {listed(*keys)}, double(count(1)) * {observation.observed_ns} as observed_ns,
                sum(inside_ns) as inside_ns, sum(arrived_messages) as arrived, sum(left_messages) as left_messages,
                sum(all_wait_sum_ns) as wait_sum_ns
            from {{rows}} where arrived_messages + left_messages + inside_ns > 0 group by {listed(*keys)}
        ), sides as (
            select *, inside_ns / observed_ns as mean_depth_messages,
                double(arrived) * {SECOND_NS} / observed_ns as arrivals_per_second,
                if(left_messages > 0, double(wait_sum_ns) / left_messages, 0d) as mean_wait_ns
            from sums
        ), both as (
            select *, arrivals_per_second * mean_wait_ns / {SECOND_NS} as expected_depth_messages from sides
        )
        select {listed(*keys)}, mean_depth_messages, arrivals_per_second, mean_wait_ns, expected_depth_messages,
            if(greatest(mean_depth_messages, expected_depth_messages) > 0,
                abs(mean_depth_messages - expected_depth_messages)
                    / greatest(mean_depth_messages, expected_depth_messages), 0d) as relative_difference
        from both""",
        rows=per_replication,
    )
