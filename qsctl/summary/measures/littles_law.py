"""Little's law as a check of the log: mean depth = rate of entering messages × mean time in the queue.

The left side is the time that messages spent in the queue inside the observation, the right side the rate of those that
entered and the mean time of those that left. Over a run that starts and ends empty both are the same sum; messages in
the queue at either end make the difference. A message is in its queue from the time it enters, not from its arrival: a
message that waits at its endpoint is not. For the time to done, the law holds for the messages that arrived and are not
acknowledged.

Source: J. D. C. Little, "A Proof for the Queuing Formula: L = λW", Operations Research 9 (1961).
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from qsctl.instant import SECOND_NS
from qsctl.summary.measures.observation import Observation, listed


def littles_law(moves: DataFrame, observation: Observation, keys: Sequence[str]) -> DataFrame:
    """Return one row for each group that had any message, in the schema `tables.LITTLES_LAW`.

    Args:
        moves: result of `moves.moves`, with these keys.
        observation: the observed part of the run.
        keys: the grouping columns; several replications count as one long run.
    """
    each = listed(*keys, "replication")
    return moves.sparkSession.sql(
        f"""with replicated as (
            select {each}, sum(counted_entries) as entered, sum(counted_exits) as gone, sum(stayed_ns) as stayed_ns,
                sum(if(entered_window is null, 0d, inside_ns)) as inside_ns,
                sum(counted_arrivals) as arrived, sum(counted_done) as done,
                sum(done_ns) as done_ns, sum(unfinished_ns) as unfinished_ns
            from {{moves}} where entered_window is not null or counted_arrivals + counted_done + unfinished_ns > 0
            group by {each}
        ), summed as (
            select {listed(*keys)}, sum(entered) as entered, sum(gone) as gone, sum(stayed_ns) as stayed_ns,
                sum(inside_ns) as inside_ns, sum(arrived) as arrived, sum(done) as done, sum(done_ns) as done_ns,
                sum(unfinished_ns) as unfinished_ns, count(1) * {observation.observed} as observed_ns
            from replicated where entered + gone + inside_ns + unfinished_ns > 0 group by {listed(*keys)}
        ), sides as (
            select *, inside_ns / observed_ns as mean_depth_messages,
                entered * {SECOND_NS}d / observed_ns as arrivals_per_second,
                stayed_ns / greatest(gone, 1) as mean_wait_ns,
                if(done > 0, unfinished_ns / observed_ns, null) as mean_unfinished_messages,
                done_ns / nullif(done, 0) as mean_done_ns
            from summed
        ), both as (
            select *, arrivals_per_second * mean_wait_ns / {SECOND_NS}d as expected_depth_messages,
                arrived / observed_ns * mean_done_ns as expected_unfinished_messages
            from sides
        )
        select {listed(*keys)}, mean_depth_messages, arrivals_per_second, mean_wait_ns, expected_depth_messages,
            coalesce(abs(mean_depth_messages - expected_depth_messages)
                / nullif(greatest(mean_depth_messages, expected_depth_messages), 0), 0) as relative_difference,
            mean_unfinished_messages, mean_done_ns, expected_unfinished_messages,
            abs(mean_unfinished_messages - expected_unfinished_messages)
                / nullif(greatest(mean_unfinished_messages, expected_unfinished_messages), 0)
                as done_relative_difference
        from both""",
        moves=moves,
    )
